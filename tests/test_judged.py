"""A judge looks at the answers of the real arm, and labels correct what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from small import SETTINGS, collection, opened, use_fakes
from test_answers_summary import CASES, REAL, summary

from atlas.measure.answers.judged import Judged, given_answers, judge_answers
from atlas.measure.answers.outcome import DECLINED
from atlas.measure.doors import Silent
from atlas.measure.draws import Given
from atlas.measure.judges import Verdict
from atlas.measure.questions import Questions, load_questions
from atlas.measure.statistics import Estimate, Interval, Unscored

RIGHT = Verdict(verdict="correct", score=1.0, reason="yes")
WRONG = Verdict(verdict="wrong", score=0.0, reason="no")
DUCKED = Verdict(verdict="unscored", score=Unscored("no reply"), reason="no reply")
ANSWERS = [
    Given(id=case.id, question=case.id, sources=(), answer="x", writer="w")
    for case in CASES
    if case.id != "A4"
]


class Says:
    """A judge that says what it is told of a question."""

    name = "says"

    def __init__(self, **verdicts: Verdict) -> None:
        self.verdicts = verdicts
        self.seen: list[tuple[str, str, tuple[str, ...]]] = []

    def judge(
        self,
        question: str,
        answer: str,
        sources: Sequence[str],
        *,
        reference: str = "",
        history: Sequence[str] = (),
    ) -> Verdict:
        assert (reference, history) == ("", ())
        self.seen.append((question, answer, tuple(sources)))
        return self.verdicts.get(question, RIGHT)


class Steps(Silent):
    """Progress that is counted."""

    def __init__(self) -> None:
        self.total = self.done = 0

    def stage(self, name: str, total: int) -> None:
        self.total += total

    def step(self, count: int = 1) -> None:
        self.done += count


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Questions:
    use_fakes(monkeypatch)
    return load_questions(opened(collection(tmp_path / "c", settings=SETTINGS)))


def looked(
    *judges: Says, labels: Mapping[str, float] | None = None, at_once: int = 1
) -> tuple[Judged, Steps]:
    steps = Steps()
    run = summary(REAL)
    return judge_answers(judges, run, ANSWERS, labels or {}, steps, at_once), steps


def mean(found: Estimate) -> float:
    assert isinstance(found.mean, Interval), found
    return found.mean.value


# ---- what is judged ---------------------------------------------------------------------------


def test_what_a_person_reads_is_judged_by_the_blocks_it_was_made_from(questions: Questions) -> None:
    first = replace(REAL[0], supplied=("WARR-1-p0", "MANUAL-2-p0"), answer="For 3 years.")
    back = replace(REAL[7], choices=("C-3", "T-7"))
    found = given_answers(summary([first, *REAL[1:7], back]), questions, "extractive")
    assert [item.id for item in found] == ["A1", "A2", "A3", "F", "N1", "N2", "C"]  # A4 failed
    assert found[0] == Given(
        id="A1",
        question="A1",
        sources=(
            "Battery warranty > Term\nThe battery is under warranty for 3 years. "
            "The lock is under warranty for 5 years.",
            "Manual > Errors\nError E-417 means that the battery is too hot.",
        ),
        answer="For 3 years.",
        writer="extractive",
    )
    assert found[2].answer == found[4].answer == DECLINED
    assert found[6].answer == "Which one do you mean: C-3, T-7?"


def test_other_arms_other_k_and_repeats_are_not_judged(questions: Questions) -> None:
    others = [
        replace(REAL[0], answer="no", **change)
        for change in ({"arm": "none"}, {"k": 3}, {"repeat": 1})
    ]
    found = given_answers(summary([*others, REAL[0]]), questions, "w")
    assert [(item.id, item.answer) for item in found] == [("A1", REAL[0].answer)]


# ---- what it says -----------------------------------------------------------------------------


def test_the_share_is_over_the_answers_that_the_judge_scored() -> None:
    judge = Says(A2=WRONG, N2=WRONG, C=DUCKED)
    found, steps = looked(judge)
    assert mean(found.rate) == pytest.approx(4 / 6)
    assert (found.rate.scored, found.rate.total) == (6, 7)
    assert found.verdicts["C"] == DUCKED
    assert (steps.total, steps.done) == (7, 7)
    assert found.as_json()["verdicts"]["A2"] == {"verdict": "wrong", "reason": "no"}


def test_it_is_compared_with_the_facts_where_both_have_a_say() -> None:
    # facts: A1, N1, C right; A2, A3, N2 wrong; F names no fact
    found, _ = looked(Says(A2=WRONG, N2=WRONG, C=DUCKED))
    assert mean(found.with_facts) == pytest.approx(4 / 5)  # it takes A3 for right
    assert (found.with_facts.scored, found.with_facts.total) == (5, 7)


def test_one_look_shows_no_spread_and_several_show_what_changed() -> None:
    assert looked(Says())[0].changed == Unscored("one look shows no spread; give --repeat 3")
    found, steps = looked(Says(), Says(A1=WRONG), Says(A1=WRONG, N1=DUCKED))
    assert isinstance(found.changed, Estimate)
    assert mean(found.changed) == pytest.approx(2 / 7)
    assert found.verdicts["A1"] == RIGHT  # those of the first look
    assert mean(found.rate) == 1.0
    assert (steps.total, steps.done) == (21, 21)
    assert found.as_json()["changed"]["mean"] == pytest.approx(2 / 7)


@pytest.mark.parametrize("at_once", [1, 3])
def test_every_answer_is_judged_once_also_several_at_a_time(at_once: int) -> None:
    judge = Says(A2=WRONG)
    found, _ = looked(judge, at_once=at_once)
    assert sorted(question for question, _, _ in judge.seen) == sorted(item.id for item in ANSWERS)
    assert [case for case, item in found.verdicts.items() if item == WRONG] == ["A2"]


def test_too_few_labels_correct_nothing_and_say_how_many_lack() -> None:
    found, _ = looked(Says(A2=WRONG), labels={"A1": 1.0, "A2": 0.0})
    assert isinstance(found.corrected.value, Unscored)
    assert (found.corrected.labels, found.corrected.missing) == (2, 28)


def test_labels_correct_a_judge_that_takes_everything_for_right() -> None:
    names = [f"Q{n}" for n in range(40)]
    run = summary(
        [replace(REAL[0], case=name) for name in names],
        [replace(CASES[0], id=name) for name in names],
    )
    answers = [replace(ANSWERS[0], id=name, question=name) for name in names]
    people = {name: float(n % 2) for n, name in enumerate(names)}
    found = judge_answers([Says()], run, answers, people, Silent(), 1)
    assert mean(found.rate) == 1.0
    assert isinstance(found.corrected.value, Interval)
    assert found.corrected.value.value == pytest.approx(0.5)


def test_a_judge_that_breaks_is_not_hidden() -> None:
    class Broken(Says):
        def judge(self, *texts: object, **more: object) -> Verdict:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        looked(Broken(), at_once=3)
