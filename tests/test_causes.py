"""Every wrong answer has one cause: what was lost and where, or what was made of the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small import QUESTION, SETTINGS, collection, opened, use_fakes
from test_outcomes import case, judged, trace, without_answer

from atlas.assistant import Assistant
from atlas.measure.answers import causes
from atlas.measure.answers.causes import cause_of
from atlas.measure.answers.outcome import Outcome, outcome_of
from atlas.measure.cases import Case
from atlas.measure.questions import Questions, load_questions

TERM = "The battery is under warranty for 3 years. The lock is under warranty for 5 years."
Open = Callable[..., tuple[Assistant, Questions]]


@pytest.fixture
def opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    use_fakes(monkeypatch)

    def make(**settings: Any) -> tuple[Assistant, Questions]:
        assistant = opened(collection(tmp_path / "c", settings=SETTINGS))
        assistant.settings = replace(assistant.settings, **settings)
        return assistant, load_questions(assistant)

    return make


def asked(**changes: Any) -> Case:
    return case(**{"relevant": ("WARR-1",), **changes})


def supplied(status: str = "answered", answer: str = "For 2 years.", **changes: Any) -> Any:
    """The trace of an answer that had the term of the warranty before it."""
    made = trace(status, answer, refs=("WARR-1-p0", "MANUAL-1-p0"), **changes)
    made["context"][0]["text"] = TERM
    return made


def named(wanted: Case, values: Any, assistant: Assistant, questions: Questions) -> str:
    """The cause of a wrong answer."""
    made: Outcome = judged(wanted, values, questions.relevant(wanted))
    assert made.correct == 0.0
    return cause_of(wanted, made, values, questions, assistant)


# ---- supplied and misused ---------------------------------------------------------------------


def test_an_answer_where_there_is_none_is_invented(opening: Open) -> None:
    assert named(without_answer(), supplied(), *opening()) == causes.INVENTED


def test_asking_back_where_there_is_no_answer_is_meaningless(opening: Open) -> None:
    back = supplied("needs_clarification", "", choices=["C-3", "T-7"])
    assert named(without_answer(), back, *opening()) == causes.MEANINGLESS


@pytest.mark.parametrize("status", ["answered", "abstained"])
@pytest.mark.parametrize("relevant", [(), ("WARR-1",)])
def test_a_question_back_that_was_not_asked_is_named(
    opening: Open, status: str, relevant: tuple[str, ...]
) -> None:
    back = case(expect="clarify", facts=(), reject=(), relevant=relevant)
    assert named(back, supplied(status), *opening()) == causes.NOT_ASKED_BACK


def test_declining_with_the_evidence_at_hand_is_told_from_what_the_checks_removed(
    opening: Open,
) -> None:
    at_hand = opening()
    assert named(asked(), supplied("abstained", ""), *at_hand) == causes.DECLINED
    removed = supplied("abstained", "", drafted="answered")
    assert named(asked(), removed, *at_hand) == causes.CHECKED_OUT


def test_asking_back_with_the_evidence_at_hand_is_named(opening: Open) -> None:
    back = supplied("needs_clarification", "", choices=["C-3", "T-7"])
    assert named(asked(), back, *opening()) == causes.ASKED_BACK


def test_a_rejected_detail_is_told_from_one_that_lacks(opening: Open) -> None:
    at_hand = opening()
    assert named(asked(), supplied(answer="For 2 years."), *at_hand) == causes.REJECTED
    assert named(asked(), supplied(answer="For 9 years."), *at_hand) == causes.MISSING
    # the right fact beside a rejected one: nothing was lost
    assert named(asked(), supplied(answer="3 years, once 2 years."), *at_hand) == causes.REJECTED


# ---- lost -------------------------------------------------------------------------------------


def really(wanted: Case, assistant: Assistant, questions: Questions) -> tuple[Outcome, str]:
    """What the assistant makes of a case, and the cause."""
    values = assistant.ask(wanted.question, questions.scope_of(wanted)).values
    relevant = questions.relevant(wanted)
    made = outcome_of(wanted, values, relevant, None, arm="real", k=5, repeat=0)
    assert made.correct == 0.0, made
    return made, cause_of(wanted, made, values, questions, assistant)


def test_evidence_that_the_reader_may_not_see_was_lost_in_scope(opening: Open) -> None:
    price = asked(
        question="what does the battery of the C-3 cost",
        relevant=("PRICES-1",),
        facts=(("499 EUR",),),
        reject=(),
    )
    made, cause = really(price, *opening())
    assert cause == "evidence lost: scope"
    assert "PRICES-1-p0" not in made.supplied


def test_evidence_that_the_selection_dropped_names_the_rule(opening: Open) -> None:
    made, cause = really(asked(question=QUESTION), *opening(min_score=0.999))
    assert made.supplied == ()
    assert cause.startswith("evidence lost: select (")
    assert cause != "evidence lost: select ()"


def test_evidence_that_no_search_brought_was_lost_there(opening: Open) -> None:
    bolts = asked(
        question="crank bolts E-417", relevant=("WARR-2",), facts=(("30 days",),), reject=()
    )
    made, cause = really(bolts, *opening(depth=1, k=1))
    assert cause == "evidence lost: search"
    assert "WARR-2-p0" not in made.supplied


def test_a_question_back_without_its_evidence_is_a_loss(opening: Open) -> None:
    back = case(expect="clarify", facts=(), reject=(), relevant=("PRICES-1",), question="a price")
    assert really(back, *opening())[1] == "evidence lost: scope"


def test_one_of_two_labels_is_lost_where_its_fact_lacks(opening: Open) -> None:
    both = asked(
        question=f"{QUESTION} and what does it cost",
        relevant=("WARR-1", "PRICES-1"),
        facts=(("3 years",), ("499 EUR",)),
        reject=(),
    )
    made, cause = really(both, *opening())
    assert "WARR-1-p0" in made.supplied
    assert cause == "evidence lost: scope"


def test_a_fact_in_other_words_than_those_of_the_documents_was_not_lost(opening: Open) -> None:
    other = asked(question=QUESTION, facts=(("a thousand days",),), reject=())
    made, cause = really(other, *opening())
    assert made.status == "answered"
    assert cause == causes.MISSING
