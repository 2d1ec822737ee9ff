"""A judge's share of right answers, corrected by people's labels."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from atlas.measure.corrected import LEAST_LABELS, Corrected, corrected, corrected_share
from atlas.measure.statistics import Interval, Unscored, mean_interval

TRIALS = 2000
ENOUGH = 1857
"""Of 2,000 intervals that cover in 94%, fewer than 1,857 cover twice in a hundred runs."""
NONE = Unscored("the reply was not readable")
Labelled = list[tuple[float | Unscored, float]]


def run_of(labelled: Labelled, rest: list[float | Unscored]) -> Corrected:
    return corrected([score for score, _ in labelled] + rest, labelled)


def value_of(result: Corrected) -> Interval:
    assert isinstance(result.value, Interval)
    return result.value


def alone(right: int, of: int) -> Interval:
    """The exact interval of the labels alone."""
    return mean_interval(np.repeat([0.0, 1.0], [of - right, right]), (0, 1))


# ---- the value ------------------------------------------------------------------------------


def test_the_value_is_the_labels_mean_moved_by_what_the_judge_sees_in_all_answers() -> None:
    # 40 labels: the judge accepts 20 (16 of them right) and rejects 20 (4 right). Slope 0.8 - 0.2.
    labelled: Labelled = [(1, 1)] * 16 + [(1, 0)] * 4 + [(0, 1)] * 4 + [(0, 0)] * 16
    found = run_of(labelled, [1.0] * 60)
    assert found.weight == pytest.approx(0.6)
    # Labels 20 / 40; the judge accepts 80 / 100 of all and 20 / 40 of the labelled.
    assert value_of(found).value == pytest.approx(0.5 + 0.6 * (0.8 - 0.5))
    assert found.judged == mean_interval(np.repeat([0.0, 1.0], [20, 80]), (0, 1))


def test_a_judge_that_is_always_right_gives_the_share_that_it_sees() -> None:
    labelled: Labelled = [(1, 1)] * 30 + [(0, 0)] * 30
    found = value_of(run_of(labelled, [1.0] * 30 + [0.0] * 110))
    assert found.value == pytest.approx(60 / 200)
    assert found.high - found.low < 0.8 * (alone(30, 60).high - alone(30, 60).low)


def test_a_lenient_judge_is_corrected_downwards() -> None:
    labelled: Labelled = [(1, 1)] * 30 + [(1, 0)] * 20 + [(0, 0)] * 10
    found = run_of(labelled, [1.0] * 125 + [0.0] * 24)
    assert isinstance(found.judged, Interval)
    assert value_of(found).high < found.judged.value


def test_an_unscored_answer_counts_as_undecided_in_both_parts() -> None:
    labelled: Labelled = [(1, 1)] * 20 + [(0, 0)] * 20 + [(NONE, 1)] * 5 + [(NONE, 0)] * 5
    halves: Labelled = [(0.5 if score is NONE else score, label) for score, label in labelled]
    found = run_of(labelled, [1.0] * 40 + [NONE] * 20)
    assert found.value == run_of(halves, [1.0] * 40 + [0.5] * 20).value
    assert found.unscored == 30
    assert found.judged == mean_interval(np.repeat([0.0, 1.0], [20, 60]), (0, 1))
    # All of the 50 labels took part: 25 right; the judge's means are 0.5 and 75 / 110.
    assert value_of(found).value == pytest.approx(0.5 + found.weight * (75 / 110 - 0.5))


def test_graded_scores_are_told_apart_in_hundredths() -> None:
    labelled: Labelled = [(0.904, 1)] * 20 + [(0.096, 0)] * 20
    rounded: Labelled = [(0.9, 1)] * 20 + [(0.1, 0)] * 20
    found = run_of(labelled, [0.898] * 100)
    assert found.value == run_of(rounded, [0.9] * 100).value
    assert found.weight == 1


# ---- when the judge is not listened to ------------------------------------------------------


@pytest.mark.parametrize(
    "labelled",
    [
        pytest.param([(1, 1)] * 20 + [(1, 0)] * 20, id="a constant judge"),
        pytest.param([(NONE, 1)] * 20 + [(NONE, 0)] * 20, id="a judge that scores nothing"),
        pytest.param([(1, 1)] * 5 + [(1, 0)] * 15 + [(0, 1)] * 15 + [(0, 0)] * 5, id="contrary"),
        pytest.param([(1, 1)] * 10 + [(1, 0)] * 10 + [(0, 1)] * 10 + [(0, 0)] * 10, id="blind"),
    ],
)
def test_a_judge_that_tells_nothing_leaves_the_exact_interval_of_the_labels(
    labelled: Labelled,
) -> None:
    found = run_of(labelled, [1.0] * 50 + [0.0] * 50)
    assert (found.value, found.weight) == (alone(20, 40), 0)


@pytest.mark.parametrize(("label", "right"), [(1, 60), (0, 0)])
def test_labels_that_are_all_equal_leave_the_exact_interval(label: int, right: int) -> None:
    labelled: Labelled = [(1, label)] * 30 + [(0, label)] * 30
    assert run_of(labelled, [1.0] * 100).value == alone(right, 60)


@pytest.mark.parametrize("rest", [0, 6])
def test_where_nearly_all_answers_are_labelled_the_labels_speak_alone(rest: int) -> None:
    labelled: Labelled = [(1, 1)] * 40 + [(0, 0)] * 20
    assert run_of(labelled, [1.0] * rest).value == alone(40, 60)


def test_below_the_least_number_of_labels_there_is_no_value() -> None:
    labelled: Labelled = [(1, 1)] * 12
    found = run_of(labelled, [0.0] * 28)
    assert found.value == Unscored("30 labels are needed, 12 are there: 18 missing")
    assert (found.labels, found.answers, found.missing, found.weight) == (12, 40, 18, 0)
    assert isinstance(found.judged, Interval)
    assert found.judged.value == pytest.approx(0.3)
    enough: Labelled = [(1, 1)] * LEAST_LABELS
    assert run_of(enough, [0.0] * 28).missing == 0


def test_a_run_without_answers_has_neither_value() -> None:
    found = corrected([], [])
    assert isinstance(found.value, Unscored)
    assert isinstance(found.judged, Unscored)


# ---- the interval ---------------------------------------------------------------------------


def test_no_order_of_the_input_changes_anything() -> None:
    mixed = random.Random(5)
    labelled: Labelled = [
        (mixed.choice([0, 0.37, 1, NONE]), mixed.choice([0, 1])) for _ in [0] * 60
    ]
    judged = [score for score, _ in labelled] + [mixed.choice([0.0, 0.81, 1.0]) for _ in range(90)]
    once = corrected(judged, labelled)
    for _ in range(3):
        mixed.shuffle(judged)
        mixed.shuffle(labelled)
        assert corrected(judged, labelled) == once


def test_the_interval_holds_the_value_and_stays_within_0_and_1() -> None:
    # One error seen, and a rest in which the judge sees no error: the sum would pass 1.
    labelled: Labelled = [(1, 1)] * 59 + [(0, 0)]
    found = value_of(run_of(labelled, [1.0] * 900))
    assert 0 <= found.low <= found.value <= found.high == 1
    mirrored: Labelled = [(0, 0)] * 59 + [(1, 1)]
    other = value_of(run_of(mirrored, [0.0] * 900))
    assert 0 == other.low <= other.value <= other.high <= 1


@pytest.mark.parametrize(
    ("labels", "answers", "share", "sensitivity", "specificity", "ducked"),
    [
        (30, 100, 0.95, 1.0, 1.0, 0.0),
        (30, 209, 0.02, 0.95, 0.9, 0.2),
        (30, 1000, 0.8, 0.99, 0.3, 0.2),
        (60, 209, 0.5, 0.95, 0.9, 0.0),
        (60, 1000, 0.5, 0.5, 0.5, 0.0),
        (100, 1000, 0.1, 0.8, 0.6, 0.2),
    ],
)
def test_the_interval_holds_the_true_share_and_is_no_wider_than_that_of_the_labels(
    labels: int, answers: int, share: float, sensitivity: float, specificity: float, ducked: float
) -> None:
    drawn = np.random.default_rng(7)
    says = np.array([[specificity, 0, 1 - specificity], [1 - sensitivity, 0, sensitivity]])
    says = (1 - ducked) * says + ducked * np.array([0, 1, 0])
    chances = says * np.array([[1 - share], [share]])
    held, width, width_alone = 0, 0.0, 0.0
    known: dict[bytes, tuple[Interval, Interval]] = {}
    for _ in range(TRIALS):
        wrong, right = drawn.multinomial(labels, chances.ravel()).reshape(2, 3)
        rest = drawn.multinomial(answers - labels, chances.sum(0))
        counts = np.stack([wrong, right, rest], axis=1)
        seen = counts.any(1)
        if (key := counts.tobytes()) not in known:
            scores = np.array([0.0, 0.5, 1.0])[seen]
            both = corrected_share(scores, counts[seen])[0], alone(int(right.sum()), labels)
            known[key] = both
        ours, theirs = known[key]
        held += ours.low <= share <= ours.high
        width += ours.high - ours.low
        width_alone += theirs.high - theirs.low
    assert held >= ENOUGH
    assert width < 1.05 * width_alone


def test_counts_and_lists_give_the_same_interval() -> None:
    labelled: Labelled = [(1, 1)] * 20 + [(1, 0)] * 7 + [(0, 0)] * 9 + [(NONE, 1)] * 4
    counts = np.array([[9, 0, 30], [0, 4, 10], [7, 20, 60]])
    expected, weight = corrected_share(np.array([0.0, 0.5, 1.0]), counts)
    found = run_of(labelled, [0.0] * 30 + [NONE] * 10 + [1.0] * 60)
    assert (found.value, found.weight) == (expected, weight)


# ---- words ----------------------------------------------------------------------------------


def test_the_corrected_share_is_told_in_one_line() -> None:
    labelled: Labelled = [(1, 1)] * 16 + [(1, 0)] * 4 + [(0, 1)] * 4 + [(0, 0)] * 16
    line = run_of(labelled, [1.0] * 58 + [NONE] * 2).line()
    assert line.startswith("corrected 0.6")
    assert line.endswith("] by 40 labels of 100 answers; 2 verdicts are unscored")
    assert "unscored" not in run_of(labelled, [1.0] * 60).line()


def test_json_tells_both_shares_and_what_is_missing() -> None:
    labelled: Labelled = [(1, 1)] * 20 + [(0, 0)] * 20
    values = json.loads(json.dumps(run_of(labelled, [1.0] * 60).as_json()))
    assert values["value"] == pytest.approx(0.8)
    assert values["low"] < 0.8 < values["high"]
    assert (values["labels"], values["answers"], values["missing"]) == (40, 100, 0)
    assert values["judged"]["value"] == pytest.approx(0.8)
    few: Labelled = [(1, 1)]
    nothing = run_of(few, [NONE]).as_json()
    assert (nothing["value"], nothing["low"], nothing["missing"]) == (None, None, 29)
    assert nothing["unscored"].endswith("29 missing")
    assert nothing["judged"]["answers_unscored"] == 1


# ---- mistakes of the caller -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("judged", "labelled", "said"),
    [
        ([1.0], [(1.0, 1), (1.0, 1)], "2 labels of 1 answers"),
        ([1.0, 0.0], [(1.0, 0.5)], "the label 0.5"),
        ([1.0, 0.0], [(1.0, float("nan"))], "the label nan"),
        ([1.2], [], "the score 1.2"),
        ([float("nan")], [], "the score nan"),
        ([1.0, 0.0], [(0.5, 1)], "no answer of the run has"),
    ],
)
def test_contradictions_are_refused(judged: list[float], labelled: Labelled, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        corrected(judged, labelled)
