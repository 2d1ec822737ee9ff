"""One trace judged by its case: right, wrong or unscored, before the citation checks and after."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from atlas.measure.answers.outcome import DECLINED, Outcome, broken, from_json, outcome_of
from atlas.measure.cases import Case
from atlas.measure.statistics import Unscored

RIGHT = "The battery is under warranty for three years."


def case(name: str = "Q1", **changes: Any) -> Case:
    """A case that wants `3 years` and no `2 years`, unless it is changed."""
    wants: dict[str, Any] = {"facts": (("3 years", "36 months"),), "reject": ("2 years",)}
    return Case(id=name, where="cases.yaml:1", **{"question": name, **wants, **changes})


def without_answer(name: str = "N1", **changes: Any) -> Case:
    return case(name, facts=(), reject=(), expect="abstain", **changes)


def outcome(name: str = "Q1", right: bool | None = True, **changes: Any) -> Outcome:
    """An answer of the real arm; `right` is None where the case names no fact."""
    made = broken(case(name), "", "", arm="real", k=5, repeat=0)
    wrong = () if right in (True, None) else ("lacks '3 years'",)
    given: dict[str, Any] = {"status": "answered", "drafted": "answered", "wrong": wrong}
    return replace(made, **{**given, "scored": right is not None, "drafted_wrong": wrong} | changes)


def claim(text: str, *markers: int, kept: bool = True) -> dict[str, Any]:
    return {"text": text, "markers": list(markers), "kept": kept}


def trace(
    status: str = "answered",
    answer: str = RIGHT,
    refs: Sequence[str] = ("A-1-p0", "B-1-p0"),
    **changes: Any,
) -> dict[str, Any]:
    """The part of a trace that is judged; what was drafted is what was answered."""
    values = {
        "status": status,
        "answer": answer,
        "choices": [],
        "proposed": [claim(answer, 1)] if answer else [],
        "drafted": status,
        "context": [{"ref": ref, "text": ref} for ref in refs],
        "tokens": {"question": 4, "supplied": 70},
        "timings_seconds": {"answer": 0.25, "total": 9.0},
        "reason": "",
        "cause": None,
        "chat": None,
    }
    return values | changes


def judged(
    case: Case, values: dict[str, Any], relevant: Sequence[str] = (), relevance: float | None = None
) -> Outcome:
    return outcome_of(case, values, relevant, relevance, arm="real", k=5, repeat=0)


# ---- right and wrong --------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [RIGHT, "36 months.", "3 years, no less"])
def test_an_answer_with_every_fact_is_right(answer: str) -> None:
    found = judged(case(), trace(answer=answer))
    assert (found.correct, found.drafted_correct, found.wrong) == (1.0, 1.0, ())


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("For 13 years.", ("lacks '3 years or 36 months'",)),
        ("For 3 years, not 2 years.", ("holds '2 years'",)),
        ("For 2 years.", ("lacks '3 years or 36 months'", "holds '2 years'")),
    ],
)
def test_a_wrong_answer_says_what_it_lacks_and_holds(answer: str, wrong: tuple[str, ...]) -> None:
    found = judged(case(), trace(answer=answer))
    assert (found.correct, found.wrong) == (0.0, wrong)


def test_every_fact_is_needed() -> None:
    both = case(facts=(("3 years",), ("5 years",)))
    assert judged(both, trace()).wrong == ("lacks '5 years'",)
    assert judged(both, trace(answer=f"{RIGHT} The lock for 5 years.")).correct == 1.0


def test_another_status_is_wrong_whatever_the_words_say() -> None:
    assert judged(case(), trace("abstained")).wrong == ("abstained, expected answered",)
    back = trace("needs_clarification", answer="", choices=["3 years", "36 months"])
    assert judged(case(), back).wrong == ("needs_clarification, expected answered",)


def test_declining_is_right_where_the_documents_do_not_say() -> None:
    assert judged(without_answer(), trace("abstained", "")).correct == 1.0
    assert judged(without_answer(), trace()).wrong == ("answered, expected abstained",)


def test_the_facts_of_a_question_back_are_among_its_choices() -> None:
    back = case(expect="clarify", facts=(("C-3",), ("T-7",)), reject=("K-1",))
    asked = trace("needs_clarification", "", choices=["C-3", "T-7"])
    assert judged(back, asked).correct == 1.0
    assert judged(back, {**asked, "choices": ["C-3"]}).wrong == ("lacks 'T-7'",)
    assert judged(back, {**asked, "choices": ["C-3", "T-7", "K-1"]}).wrong == ("holds 'K-1'",)


def test_without_a_fact_an_answer_is_unscored_and_a_refusal_to_answer_is_not() -> None:
    found = judged(case(facts=(), reject=()), trace())
    assert found.correct == found.drafted_correct == Unscored("the case names no fact")
    assert judged(without_answer(), trace("abstained", "")).scored


def test_what_failed_is_unscored_with_its_cause() -> None:
    failed = trace("failed", "", reason="chat model: deadline: no reply", cause="deadline")
    found = judged(case(), failed)
    assert (found.error, found.cause) == ("chat model: deadline: no reply", "deadline")
    assert found.correct == found.drafted_correct
    assert found.correct == Unscored("failed: chat model: deadline: no reply")
    assert (found.wrong, found.drafted_wrong) == ((), ())
    nameless = judged(case(), trace("failed", ""))
    assert (nameless.error, nameless.cause) == ("no cause named", "failed")


def test_a_question_that_broke_is_a_failure_of_its_case() -> None:
    found = broken(case("Q7"), "ZeroDivisionError: x", "bug", arm="oracle", k=3, repeat=2)
    assert (found.key, found.status) == (("Q7", "oracle", 3, 2), "failed")
    assert found.correct == Unscored("failed: ZeroDivisionError: x")


# ---- the draft --------------------------------------------------------------------------------


def test_a_wrong_draft_that_the_checks_removed_is_told_from_the_answer() -> None:
    caught = trace("abstained", "", drafted="answered", proposed=[claim("8 years.", 1, kept=False)])
    found = judged(without_answer(), caught)
    assert (found.correct, found.drafted_correct) == (1.0, 0.0)
    assert (found.sentences, found.presented) == (1, 0)


def test_a_right_draft_that_the_checks_removed_is_told_from_the_answer() -> None:
    lost = trace("abstained", "", drafted="answered", proposed=[claim(RIGHT, 1, kept=False)])
    found = judged(case(), lost)
    assert (found.correct, found.drafted_correct) == (0.0, 1.0)


def test_citations_that_point_at_no_supplied_block_are_counted() -> None:
    drafts = [claim("One.", 1, 2), claim("Two.", 0, 3, -1, kept=False)]
    found = judged(case(), trace(proposed=drafts))
    assert (found.markers, found.invalid, found.sentences, found.presented) == (5, 3, 2, 1)


# ---- where and what it took -------------------------------------------------------------------


def test_the_place_of_the_evidence_is_counted_in_the_prompt() -> None:
    chat = {"prompt": ["A-1-p0", "C-1-p0", "B-1-p0"], "seconds": 2.5, "cached": True}
    values = trace(refs=("A-1-p0", "B-1-p0", "C-1-p0"), chat=chat)
    found = judged(case(), values, relevant=("B-1-p0",))
    assert (found.place, found.supplied[1], found.prompt[2]) == (3, "B-1-p0", "B-1-p0")
    assert judged(case(), values, relevant=("B-1-p0", "C-1-p0")).place == 2
    assert judged(case(), values, relevant=("Z-1-p0",)).place == 0
    assert judged(case(), trace(), relevant=("B-1-p0",)).place == 2


def test_the_cost_is_that_of_the_chat_model_where_one_was_asked() -> None:
    quoted = judged(case(), trace(), relevance=0.75)
    assert (quoted.prompt_tokens, quoted.completion_tokens, quoted.seconds) == (70, 0, 0.25)
    assert (quoted.cached, quoted.relevance) == (False, 0.75)
    tokens = {"question": 4, "supplied": 70, "prompt": 210, "completion": 33}
    chat = {"prompt": [], "seconds": 2.5, "cached": True}
    written = judged(case(), trace(tokens=tokens, chat=chat))
    assert (written.prompt_tokens, written.completion_tokens, written.seconds) == (210, 33, 2.5)
    assert written.cached


def test_what_a_person_reads_is_an_answer_a_question_back_or_that_there_is_none() -> None:
    assert judged(case(), trace()).said == RIGHT
    assert judged(case(), trace("abstained", "Hidden.")).said == DECLINED
    back = trace("needs_clarification", "", choices=["C-3", "T-7"])
    assert judged(case(), back).said == "Which one do you mean: C-3, T-7?"


# ---- on disk ----------------------------------------------------------------------------------


def test_an_outcome_is_read_back_as_it_was_written() -> None:
    chat = {"prompt": ["B-1-p0", "A-1-p0"], "seconds": 2, "cached": True}
    drafts = [claim("For 2 years\u2028\x1b\ud800.", 1, 7)]
    values = trace("needs_clarification", "", chat=chat, proposed=drafts, choices=["C-3", "T-7"])
    for made in (judged(case(), values, ("A-1-p0",), 0.5), outcome(), outcome(right=False)):
        assert from_json(json.loads(json.dumps(made.as_json()))) == made


@pytest.mark.parametrize(
    "change",
    [
        {"case": None}, {"status": 1}, {"wrong": "lacks"}, {"supplied": [1]}, {"k": 5.0},
        {"k": True}, {"scored": 1}, {"seconds": "2"}, {"relevance": "0.5"}, {"place": None},
        {"new": 1},
    ],
)  # fmt: skip
def test_what_is_no_outcome_is_not_taken_for_one(change: dict[str, Any]) -> None:
    assert from_json({**outcome().as_json(), **change}) is None


def test_a_field_that_lacks_makes_it_no_outcome() -> None:
    values = outcome().as_json()
    for name in values:
        assert from_json({key: value for key, value in values.items() if key != name}) is None
    for other in (None, [], "x", 3, {}):
        assert from_json(other) is None
