"""Rows -> estimates: every measure over the questions that have it, in all and by kind.

Each estimate says how many questions were scored of how many asked, and how many failed. The rest
has no value of that measure (no relevant block, say) and is not averaged in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atlas.measure.rows import NAMES, Row
from atlas.measure.statistics import Estimate, Unscored, estimate

LEAK_RATE = "leak_rate"
BY_KIND = ("hit", "recall", "ndcg@10", "declined", "wrongly_declined")
"""What the printed table shows of every kind."""


def summarise(rows: Sequence[Row], names: Sequence[str] = NAMES) -> dict[str, Estimate]:
    """Every measure of a run, or those named, in their order."""
    return {name: _estimate(name, rows) for name in names}


def by_kind(rows: Sequence[Row], names: Sequence[str] = NAMES) -> dict[str, dict[str, Estimate]]:
    """The same for the questions of every kind, kinds in alphabetical order."""
    kinds = sorted({row.case.kind or "no kind" for row in rows})
    return {
        kind: summarise([row for row in rows if (row.case.kind or "no kind") == kind], names)
        for kind in kinds
    }


def leak_rate(looks: int, leaking: int) -> Estimate:
    """Looks that saw something out of scope, over all looks."""
    return estimate([1.0] * leaking + [0.0] * (looks - leaking))


def leaking_looks(leaks: Sequence[Any]) -> int:
    """Looks with at least one leak."""
    return len({(leak.case, leak.reader) for leak in leaks})


def risk_coverage(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What declining more would cost: one entry per share of questions still answered.

    Answers are put in the order of the answerer's own probability, and the least probable are
    declined first. `coverage` is answers kept over all questions that were asked, `risk` the share
    of wrong ones among those kept (El-Yaniv and Wiener 2010). A wrong answer is one whose facts are
    missing, that holds something rejected, or that should not have been given.
    """
    asked = [row for row in rows if not row.failed]
    given = [
        (float(row.trace["decision"].get("probability", 1.0)), bool(row.wrong))
        for row in asked
        if row.trace is not None and row.status == "answered"
    ]
    given.sort(key=lambda pair: -pair[0])
    steps: list[dict[str, Any]] = []
    for tenths in range(10, 0, -1):
        kept = given[: round(len(given) * tenths / 10)]
        if kept and (not steps or len(kept) != steps[-1]["answered"]):
            risk = estimate([float(wrong) for _, wrong in kept])
            steps.append(
                {
                    "answered": len(kept),
                    "coverage": len(kept) / len(asked),
                    "risk": risk.as_json(),
                    "least_probability": round(kept[-1][0], 3),
                }
            )
    return steps


def _estimate(name: str, rows: Sequence[Row]) -> Estimate:
    failed = sum(row.failed for row in rows)
    scored = [v for row in rows if not isinstance(v := row.scores[name], Unscored)]
    return estimate(scored, total=len(rows), failed=failed)
