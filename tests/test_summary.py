"""Rows become means over the questions that have a measure; the rest is counted, not averaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from atlas.measure.cases import Case
from atlas.measure.leaks import Leak
from atlas.measure.rows import NAMES, Row
from atlas.measure.statistics import Estimate, Unscored
from atlas.measure.summary import (
    BY_KIND,
    by_kind,
    leak_rate,
    leaking_looks,
    risk_coverage,
    summarise,
)

NONE = Unscored("the question has no relevant block")


def row(
    name: str = "Q",
    kind: str = "",
    error: str = "",
    status: str = "answered",
    wrong: str = "",
    probability: float | None = 0.5,
    scores: Mapping[str, float | Unscored] | None = None,
) -> Row:
    decision = {} if probability is None else {"probability": probability}
    return Row(
        case=Case(id=name, question=name, where="x.yaml:1", kind=kind),
        relevant=(),
        trace=None if error else {"status": status, "decision": decision, "context": []},
        error=error,
        scores={**dict.fromkeys(NAMES, NONE), **(scores or {})},
        first_rank=None,
        wrong=(wrong,) if wrong else (),
    )


def mean(value: Estimate) -> float:
    assert not isinstance(value.mean, Unscored)
    return value.mean.value


ROWS = (
    row("Q1", "code", scores={"hit": 1.0, "recall": 0.5}),
    row("Q2", "code", scores={"hit": 0.0, "recall": 0.0}),
    row("Q3", "table", scores={"hit": 1.0, "recall": NONE, "declined": 1.0}),
    row("Q4", scores={"declined": 0.0}),
    row("Q5", "table", error="broke"),
)


def test_means_are_over_the_scored_and_say_of_how_many() -> None:
    found = summarise(ROWS)
    assert tuple(found) == NAMES
    assert mean(found["hit"]) == pytest.approx(2 / 3)
    assert found["hit"].counted == "scored 3 of 5, failed 1"
    assert mean(found["recall"]) == pytest.approx(0.25)
    assert found["recall"].counted == "scored 2 of 5, failed 1"
    assert mean(found["declined"]) == 0.5
    assert isinstance(found["evidence"].mean, Unscored)
    assert found["evidence"].counted == "scored 0 of 5, failed 1"


def test_a_mean_has_an_interval_that_holds_it_and_is_honest_at_the_ends() -> None:
    hits = summarise([row(str(n), scores={"hit": 1.0}) for n in range(10)])["hit"]
    values = hits.as_json()
    assert values["mean"] == values["high"] == 1
    assert values["low"] == pytest.approx(0.69, abs=0.005)
    assert (values["scored"], values["total"], values["failed"]) == (10, 10, 0)


def test_kinds_stand_apart_and_together_make_the_whole() -> None:
    kinds = by_kind(ROWS)
    assert list(kinds) == ["code", "no kind", "table"]
    assert mean(kinds["code"]["hit"]) == 0.5
    assert kinds["table"]["hit"].counted == "scored 1 of 2, failed 1"
    assert set(BY_KIND) <= set(kinds["code"])
    whole = summarise(ROWS)
    for name in NAMES:
        assert sum(kind[name].scored for kind in kinds.values()) == whole[name].scored
        assert sum(kind[name].total for kind in kinds.values()) == len(ROWS)


def test_without_rows_there_is_no_mean() -> None:
    assert summarise(())["hit"].mean == Unscored("there was no question")
    assert by_kind(()) == {}


# ---- leaks ----------------------------------------------------------------------------------


def test_a_look_with_several_leaks_counts_once() -> None:
    def leak(case: str, reader: str | None, ref: str) -> Leak:
        return Leak(case=case, reader=reader, ref=ref, where="context", why="x")

    found = [leak("Q1", None, "A-1-p0"), leak("Q1", None, "A-2-p0"), leak("Q1", "sales", "A-1-p0")]
    assert leaking_looks(found) == 2
    assert leaking_looks([*found, leak("Q2", None, "A-1-p0")]) == 3
    assert mean(leak_rate(40, leaking_looks(found))) == pytest.approx(2 / 40)


def test_no_leak_in_few_looks_is_not_shown_as_certain() -> None:
    rate = leak_rate(10, 0).as_json()
    assert (rate["mean"], rate["low"], rate["scored"]) == (0, 0, 10)
    assert rate["high"] == pytest.approx(0.31, abs=0.005)
    assert leak_rate(0, 0).mean == Unscored("there was no question")


# ---- risk and coverage ----------------------------------------------------------------------


def test_declining_the_least_probable_answers_first_costs_coverage_and_saves_risk() -> None:
    rows = [
        *(row(f"R{n}", probability=0.9 - n / 100) for n in range(8)),
        row("W1", probability=0.3, wrong="the answer lacks '3 years'"),
        row("W2", probability=0.2, wrong="status is answered, expected abstained"),
        *(row(f"D{n}", status="abstained") for n in range(9)),
        row("B1", status="needs_clarification"),
        row("F1", error="broke"),
    ]
    steps = risk_coverage(rows)
    assert [step["answered"] for step in steps] == list(range(10, 0, -1))
    assert [step["coverage"] for step in steps[:2]] == [10 / 20, 9 / 20]  # of those not failed
    assert [step["risk"]["mean"] for step in steps[:3]] == pytest.approx([0.2, 1 / 9, 0])
    assert [step["least_probability"] for step in steps[:3]] == [0.2, 0.3, 0.83]
    assert steps[0]["risk"]["low"] <= 0.2 <= steps[0]["risk"]["high"]


def test_an_answer_without_a_probability_is_declined_last() -> None:
    steps = risk_coverage([row("C", probability=None), row("L", probability=0.4, wrong="x")])
    assert steps[-1]["answered"] == 1
    assert steps[-1]["risk"]["mean"] == 0
    assert steps[-1]["least_probability"] == 1


def test_no_step_is_repeated_and_without_answers_there_is_none() -> None:
    steps = risk_coverage([row("A"), row("B", probability=0.6), row("C", probability=0.7)])
    assert [step["answered"] for step in steps] == [3, 2, 1]
    assert risk_coverage([row("D", status="abstained"), row("F", error="broke")]) == []
    assert risk_coverage(()) == []


def test_a_summary_is_plain_json() -> None:
    values: dict[str, Any] = summarise(ROWS)["evidence"].as_json()
    assert values["mean"] is None
    assert values["unscored"] == "no question was scored"
