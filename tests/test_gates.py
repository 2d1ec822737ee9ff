"""A gate passes or fails a run by the mean of one measure."""

from __future__ import annotations

import pytest

from atlas.errors import UsageError
from atlas.measure.gates import Gate, missed, parse_gate
from atlas.measure.statistics import Estimate, estimate

MEASURES = ("hit", "recall", "recall@10", "ndcg@10", "leak_rate")
HALF = {"recall": estimate([1.0, 0.0, 1.0, 0.0])}


def misses(text: str, summary: dict[str, Estimate]) -> list[str]:
    return list(missed([parse_gate(text, summary)], summary))


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("recall>=0.95", Gate(measure="recall", sign=">=", bar=0.95)),
        (" recall@10 > .5 ", Gate(measure="recall@10", sign=">", bar=0.5)),
        ("leak_rate<=0", Gate(measure="leak_rate", sign="<=", bar=0)),
        ("hit < -1.5", Gate(measure="hit", sign="<", bar=-1.5)),
    ],
)
def test_a_gate_is_a_measure_a_sign_and_a_number(text: str, gate: Gate) -> None:
    assert parse_gate(text, MEASURES) == gate


@pytest.mark.parametrize(
    "text",
    ["", "recall", "recall=0.9", "recall=>0.9", "recall>=", ">=0.9", "recall>=95%", "recall>=nan",
     "recall>=0.9 hit>=0.9", "recall>=0,9", "recall == 1", "recall >= x"],
)  # fmt: skip
def test_anything_else_is_refused_with_the_form_expected(text: str) -> None:
    with pytest.raises(UsageError, match="expected a measure, >=, <=, > or <, and a number"):
        parse_gate(text, MEASURES)


def test_a_typing_error_is_answered_with_the_nearest_measure() -> None:
    with pytest.raises(UsageError, match="unknown measure 'recal'; did you mean 'recall'"):
        parse_gate("recal>=0.9", MEASURES)
    with pytest.raises(UsageError, match="did you mean 'leak_rate'"):
        parse_gate("leakrate<=0", MEASURES)
    with pytest.raises(UsageError, match="known: hit, recall, recall@10, ndcg@10, leak_rate"):
        parse_gate("xyz>=0.9", MEASURES)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("recall>=0.5", True),
        ("recall>0.5", False),
        ("recall<=0.5", True),
        ("recall<0.5", False),
        ("recall>=0.51", False),
        ("recall<=0.49", False),
    ],
)
def test_the_bar_itself_passes_only_where_the_sign_says_so(text: str, passes: bool) -> None:
    assert (misses(text, HALF) == []) == passes


def test_a_missed_gate_says_what_the_mean_was() -> None:
    [line] = misses("recall>=0.95", HALF)
    assert line.startswith("gate recall >= 0.95: it is 0.5")


def test_a_measure_that_no_question_has_misses_its_gate_whatever_the_sign() -> None:
    for sign in (">=", "<="):
        for values in (estimate([]), estimate([], total=3, failed=3)):
            found = misses(f"recall{sign}0.5", {"recall": values})
            assert found == [f"gate recall {sign} 0.5: no question was scored"]


def test_every_gate_is_looked_at() -> None:
    summary = {"hit": estimate([1.0, 1.0]), "recall": estimate([0.0, 1.0])}
    gates = [parse_gate(text, summary) for text in ("recall>0.9", "hit>=1", "recall>=0.8")]
    found = [line.partition(":")[0] for line in missed(gates, summary)]
    assert found == ["gate recall > 0.9", "gate recall >= 0.8"]
    assert list(missed([], summary)) == []


def test_a_mean_just_below_the_bar_is_not_shown_as_the_bar() -> None:
    [line] = misses("recall>=0.95", {"recall": estimate([0.949996, 0.949996])})
    assert not line.endswith("it is 0.9500")
