"""A run of whole answers adds up: rates, gaps, causes and costs, all worked out by hand here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from test_outcomes import case, outcome, without_answer

from atlas.measure.answers.outcome import Outcome
from atlas.measure.answers.summary import Gap, Summary
from atlas.measure.cases import Case
from atlas.measure.paired import Difference
from atlas.measure.statistics import Estimate, Interval, Unscored
from atlas.settings import Chat

CASES = (
    *(case(name, kind="code") for name in ("A1", "A2", "A3")),
    case("A4", kind="table"),
    case("F", facts=(), reject=()),
    without_answer("N1"),
    without_answer("N2"),
    case("C", expect="clarify", facts=(), reject=()),
)


def declined(name: str, right: bool = False, **changes: Any) -> Outcome:
    given: dict[str, Any] = {"status": "abstained", "drafted": "abstained", "cause": "declined"}
    return outcome(name, right, **{**given, "cause": "" if right else "declined", **changes})


def failed(name: str, **changes: Any) -> Outcome:
    given: dict[str, Any] = {"status": "failed", "drafted": "failed", "error": "no reply"}
    return outcome(name, **{**given, "wrong": (), "cause": "deadline", **changes})


REAL = (
    outcome("A1", relevance=0.75),
    outcome("A2", False, cause="left out", relevance=0.25),
    declined("A3"),
    failed("A4"),
    outcome("F", None),
    declined("N1", True),
    outcome("N2", False, cause="invented"),
    outcome("C", status="needs_clarification", drafted="needs_clarification"),
)
NONE = tuple(
    replace(item, arm="none")
    for item in (
        outcome("A1"), outcome("A2"), declined("A3"), outcome("A4", False), outcome("F", None),
        declined("N1", True), outcome("N2", False), outcome("C", False),
    )
)  # fmt: skip
ORACLE = tuple(
    replace(item, arm="oracle")
    for item in (
        *(outcome(name) for name in ("A1", "A2", "A3", "A4")), outcome("F", None), REAL[5],
        REAL[6], REAL[7],
    )
)  # fmt: skip


def summary(
    outcomes: Sequence[Outcome] = (*NONE, *REAL, *ORACLE),
    cases: Sequence[Case] = CASES,
    **changes: Any,
) -> Summary:
    given: dict[str, Any] = {"k": 5, "ks": (5,), "repeats": 1, "chat": None, **changes}
    return Summary(cases=tuple(cases), outcomes=tuple(outcomes), **given)


def value(found: Estimate | Interval | Unscored) -> float:
    mean = found.mean if isinstance(found, Estimate) else found
    assert isinstance(mean, Interval), mean
    return mean.value


def counts(found: Estimate) -> tuple[int, int, int]:
    return found.scored, found.total, found.failed


def apart(gap: Gap) -> float:
    assert isinstance(gap.difference, Difference), gap
    return gap.difference.value


# ---- rates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "mean", "counted"),
    [
        ("accuracy", 3 / 6, (6, 8, 1)),  # A1, N1, C of all but the error and that without a fact
        ("abstained", 2 / 7, (7, 8, 1)),  # A3, N1
        ("wrongly_abstained", 1 / 4, (4, 5, 1)),  # A3 of A1, A2, A3, F; A4 failed
        ("invented", 1 / 2, (2, 2, 0)),  # N2
        ("wrong_if_answered", 2 / 3, (3, 4, 0)),  # A2, N2 of A1, A2, N2; F is unscored
        ("errors", 1 / 8, (8, 8, 0)),
        ("relevance", 0.5, (2, 4, 0)),
    ],
)
def test_the_rates_of_an_arm_have_the_denominators_that_they_name(
    measure: str, mean: float, counted: tuple[int, int, int]
) -> None:
    found = summary().arms["real"][measure]
    assert value(found) == pytest.approx(mean)
    assert counts(found) == counted


def test_errors_stay_in_the_totals_and_out_of_the_means() -> None:
    whole = summary().arms["real"]
    healed = [outcome("A4") if item.case == "A4" else item for item in REAL]
    other = summary(healed).arms["real"]
    assert value(other["accuracy"]) == pytest.approx(4 / 7)
    assert counts(other["accuracy"]) == (7, 8, 0)
    assert whole["accuracy"].total == other["accuracy"].total
    everything = summary([failed(case.id) for case in CASES]).arms["real"]
    assert counts(everything["accuracy"]) == (0, 8, 8)
    assert isinstance(everything["accuracy"].mean, Unscored)
    assert value(everything["errors"]) == 1.0


def test_an_arm_that_not_every_question_has_says_for_how_many_it_speaks() -> None:
    noise = [replace(outcome("A1"), arm="oracle+noise")]
    found = summary([*REAL, *noise])
    assert list(found.arms) == ["real", "oracle+noise"]
    assert counts(found.arms["oracle+noise"]["accuracy"]) == (1, 8, 0)


def test_an_arm_is_spoken_of_by_its_first_run_with_the_k_of_the_settings() -> None:
    others = [replace(outcome(item.case, False), **change)
              for item in REAL for change in ({"k": 3}, {"repeat": 1})]  # fmt: skip
    assert summary([*others, *REAL]).arms == summary(REAL).arms


def test_kinds_add_up_to_all() -> None:
    kinds = summary().by_kind()
    assert list(kinds) == ["code", "no kind", "table"]
    assert value(kinds["code"]["real"]) == pytest.approx(1 / 3)
    assert counts(kinds["table"]["real"]) == (0, 1, 1)
    assert value(kinds["table"]["oracle"]) == 1.0
    for arm in ("none", "real", "oracle"):
        assert sum(rates[arm].total for rates in kinds.values()) == len(CASES)
        scored = sum(rates[arm].scored for rates in kinds.values())
        assert scored == summary().arms[arm]["accuracy"].scored


def test_easy_hard_and_unsorted_are_all_answerable_questions() -> None:
    parts = summary().split()
    assert {name: part["questions"] for name, part in parts.items()} == {
        "easy": 2, "hard": 2, "unsorted": 1,
    }  # fmt: skip
    assert sum(part["questions"] for part in parts.values()) == 5
    assert value(parts["easy"]["real"]) == 0.5  # A1 right, A2 wrong
    assert value(parts["hard"]["real"]) == 0.0  # A3; A4 failed
    assert counts(parts["hard"]["real"]) == (1, 2, 1)
    assert value(parts["hard"]["oracle"]) == 1.0
    assert counts(parts["unsorted"]["real"]) == (0, 1, 0)


def test_without_the_arm_none_or_where_it_failed_a_question_is_unsorted() -> None:
    assert summary(REAL).split()["unsorted"]["questions"] == 5
    broke = [failed("A1", arm="none"), *NONE[1:]]
    parts = summary([*broke, *REAL]).split()
    assert [part["questions"] for part in parts.values()] == [1, 2, 2]


# ---- gaps -------------------------------------------------------------------------------------


def test_headroom_is_oracle_minus_real_on_the_questions_that_both_have() -> None:
    gap = summary().headroom
    assert (gap.first, gap.second) == (pytest.approx(3 / 6), pytest.approx(5 / 6))
    assert apart(gap) == pytest.approx(2 / 6)  # A2, A3 gained; A4 failed and F has no fact
    assert gap.as_json()["n"] == 6
    assert gap.as_json()["value"] == pytest.approx(gap.second - gap.first)


def test_the_ceiling_is_what_the_oracle_gets_wrong() -> None:
    found = summary()
    oracle = found.arms["oracle"]["accuracy"].mean
    assert isinstance(found.ceiling, Interval)
    assert isinstance(oracle, Interval)
    assert found.ceiling.value == pytest.approx(1 / 7)  # N2 of A1 to A4, N1, N2, C
    assert (found.ceiling.low, found.ceiling.high) == (1 - oracle.high, 1 - oracle.low)


def test_without_the_oracle_there_is_neither_headroom_nor_ceiling() -> None:
    found = summary(REAL)
    assert found.headroom.as_json()["value"] is None
    assert "unscored" in found.headroom.as_json()
    assert found.ceiling == Unscored("the arm oracle was not asked")
    broke = summary([*REAL, *(failed(case.id, arm="oracle") for case in CASES)])
    assert isinstance(broke.ceiling, Unscored)


def many(rights: int, of: int = 30, **changes: Any) -> list[Outcome]:
    """The first answers right, the others wrong."""
    return [replace(outcome(f"Q{n}", n < rights), **changes) for n in range(of)]


def gap_of(real: int, oracle: int, *repeats: int) -> Gap:
    """The headroom of 30 questions, with further runs of the real arm."""
    runs = [item for n, rights in enumerate(repeats, 1) for item in many(rights, repeat=n)]
    return summary(
        [*many(real), *many(oracle, arm="oracle"), *runs],
        [case(f"Q{n}") for n in range(30)],
        repeats=1 + len(repeats),
    ).headroom


def test_a_gap_is_noise_where_its_interval_holds_zero() -> None:
    assert gap_of(15, 15).noise
    assert gap_of(15, 17).noise
    clear = gap_of(12, 24)
    assert isinstance(clear.difference, Difference)
    assert clear.difference.low > 0
    assert not clear.noise
    assert not gap_of(24, 12).noise


def test_a_gap_is_noise_within_twice_the_spread_of_equal_runs() -> None:
    # runs of 12, 18 and 24 of 30: a standard deviation of 0.2, twice that is 12 of 30
    assert gap_of(12, 24, 18, 24).noise
    assert not gap_of(12, 25, 18, 24).noise
    assert not gap_of(12, 24, 13, 12).noise
    assert gap_of(24, 12, 18, 12).noise


def test_a_gap_without_a_common_question_is_no_gap() -> None:
    found = summary()
    assert found.gap({}, found.real).as_json() == {
        "value": None, "unscored": "no question was scored in both runs",
    }  # fmt: skip


# ---- repeats ----------------------------------------------------------------------------------


def test_the_spread_is_the_standard_deviation_over_equal_runs() -> None:
    runs = [*many(1, 4), *many(2, 4, repeat=1), *many(3, 4, repeat=2)]
    found = summary(runs, [case(f"Q{n}") for n in range(4)], repeats=3)
    assert found.spread == pytest.approx(0.25)
    assert value(found.changed()) == 0.5  # Q1 and Q2 of four


def test_one_run_shows_no_spread() -> None:
    assert isinstance(summary().spread, Unscored)
    two = [*REAL, *(failed(case.id, repeat=1) for case in CASES)]
    assert isinstance(summary(two, repeats=2).spread, Unscored)


def test_a_question_changes_where_it_is_right_in_one_run_and_wrong_in_another() -> None:
    cases = [case(name) for name in ("A", "B", "C", "D")]
    first = [outcome("A"), outcome("B"), outcome("C", None), failed("D")]
    second = [outcome("A"), outcome("B", False), outcome("C", None), outcome("D")]
    again = [replace(item, repeat=1) for item in second]
    changed = summary([*first, *again], cases, repeats=2).changed()
    assert value(changed) == pytest.approx(1 / 3)  # B of A, B, D
    assert counts(changed) == (3, 4, 0)


# ---- k ----------------------------------------------------------------------------------------


def swept(**rights: int) -> Summary:
    runs = [item for k, right in rights.items() for item in many(right, 20, k=int(k[1:]))]
    cases = [case(f"Q{n}") for n in range(20)]
    return summary(runs, cases, ks=(3, 10))


@pytest.mark.parametrize(
    ("rights", "enough"),
    [
        ((10, 15, 15), 5), ((10, 11, 12), 10), ((10, 8, 12), 10), ((12, 12, 12), 3),
        ((12, 11, 10), 3), ((10, 12, 11), 5),
    ],
)  # fmt: skip
def test_k_is_enough_where_no_larger_one_is_better(
    rights: tuple[int, int, int], enough: int
) -> None:
    found = swept(**dict(zip(("k3", "k5", "k10"), rights, strict=True)))
    assert found.enough == enough


def test_the_sweep_holds_the_k_of_the_settings_and_the_steps_between() -> None:
    steps = swept(k10=15, k3=10, k5=14).sweep
    assert [k for k, _, _ in steps] == [3, 5, 10]
    assert [value(rate) for _, rate, _ in steps] == [0.5, 0.7, 0.75]
    assert steps[0][2] is None
    gaps = [apart(gap) for _, _, gap in steps if gap is not None]
    assert gaps == [pytest.approx(0.2), pytest.approx(0.05)]


def test_where_nothing_is_scored_no_k_is_enough() -> None:
    assert summary([failed(case.id) for case in CASES]).enough is None
    assert swept(k5=14, k10=15).enough == 10  # k 3 was not answered


# ---- what went wrong --------------------------------------------------------------------------


def test_every_wrong_answer_of_the_real_arm_is_counted_under_one_cause() -> None:
    found = summary([*REAL, *(replace(item, k=3) for item in REAL)])
    assert found.causes() == {"left out": 1, "declined": 1, "invented": 1}
    assert [item.case for item in found.wrong()] == ["A2", "A3", "N2"]
    accuracy = found.arms["real"]["accuracy"]
    right = round(value(accuracy) * accuracy.scored)
    assert sum(found.causes().values()) == accuracy.scored - right


def test_the_most_frequent_cause_comes_first() -> None:
    wrong = [outcome(f"Q{n}", False, cause="b" if n else "a") for n in range(3)]
    assert list(summary(wrong, [case(f"Q{n}") for n in range(3)]).causes()) == ["b", "a"]


def test_the_table_of_abstentions_has_every_question_once() -> None:
    table = summary().abstention("real")
    assert table["answered"] == {
        "answered": 3, "abstained": 1, "needs_clarification": 0, "failed": 1,
    }  # fmt: skip
    assert {row: sum(columns.values()) for row, columns in table.items()} == {
        "answered": 5, "abstained": 2, "needs_clarification": 1,
    }  # fmt: skip
    assert table["abstained"]["abstained"] == table["abstained"]["answered"] == 1


def test_accuracy_by_place_leaves_out_what_has_no_evidence() -> None:
    places = {"A1": 1, "A2": 1, "A3": 3, "A4": 3, "F": 0, "N1": 2, "C": 4}
    found = summary([replace(item, place=places.get(item.case, 0)) for item in REAL]).by_place()
    assert list(found) == [1, 3]
    assert (value(found[1]), value(found[3])) == (0.5, 0.0)
    assert counts(found[3]) == (1, 2, 1)


def test_the_citation_checks_are_told_by_what_they_caught_and_what_they_lost() -> None:
    def drafted(name: str, draft: bool, status: str, kept: int, invalid: int) -> Outcome:
        made = outcome(name, status == "answered" and draft, status=status)
        wrong = () if draft else ("lacks '3 years'",)
        return replace(
            made, drafted_wrong=wrong, sentences=4, presented=kept, markers=2, invalid=invalid
        )

    runs = [
        drafted("A1", True, "answered", 4, 0),
        drafted("A2", False, "answered", 3, 1),
        drafted("A3", False, "abstained", 0, 2),
        drafted("A4", True, "abstained", 0, 0),
        outcome("F", None, sentences=1, presented=1),
        declined("N1", True),
        failed("N2"),
    ]
    found = summary(runs, CASES[:-1]).citations()
    assert (found["wrong_drafts"], found["caught"]) == (2, 1)
    assert (found["right_drafts"], found["lost"]) == (2, 1)
    assert value(found["supported"]) == pytest.approx((1 + 0.75 + 0 + 0 + 1) / 5)
    assert value(found["invalid"]) == pytest.approx((0 + 0.5 + 1 + 0) / 4)  # F has no citation
    assert counts(found["invalid"]) == (4, 5, 0)


# ---- cost -------------------------------------------------------------------------------------


def paid(**prices: Any) -> Chat:
    return Chat(base_url="http://127.0.0.1:9/v1", model="m", **prices)


RUNS = [
    outcome("A1", prompt_tokens=1000, completion_tokens=100, seconds=1.0),
    outcome("A2", prompt_tokens=3000, completion_tokens=0, seconds=2.0),
    failed("A3", prompt_tokens=9999, seconds=99.0),
]


@pytest.mark.parametrize(
    ("prices", "price"),
    [
        ({"input_price": 2.0, "output_price": 10.0}, (0.003 + 0.006) / 2),
        ({"input_price": 2.0}, 0.004),
        ({"output_price": 10.0}, 0.0005),
        ({"input_price": 0.0}, 0.0),
        ({}, None),
    ],
)
def test_the_price_of_an_answer_is_that_of_its_tokens(
    prices: dict[str, float], price: float | None
) -> None:
    found = summary(RUNS, chat=paid(**prices)).cost(RUNS)
    assert found["price"] == (price if price is None else pytest.approx(price))
    assert ("unscored" in found) == (price is None)
    assert (found["answers"], found["prompt_tokens"], found["seconds"]) == (2, 2000, 1.5)
    assert found["completion_tokens"] == 50


def test_what_was_not_answered_has_no_cost() -> None:
    found = summary(RUNS, chat=paid(input_price=1.0)).cost(RUNS[2:])
    assert found["answers"] == 0
    assert found["price"] is found["prompt_tokens"] is found["seconds"] is None
