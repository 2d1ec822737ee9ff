"""Traces, a list of values for one setting -> what would have been supplied under each of them.

Only settings of what follows reranking can be swept: the reranked scores of the traces are used
again, and no model runs. Whether an answer would still have been given is not asked here; that
needs the answerer. A table over several values is made on development questions; held-out columns
stand beside it on request, and the mark is set by the development column alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from atlas.errors import UsageError
from atlas.measure.doors import Opened
from atlas.measure.questions import Questions
from atlas.measure.rows import Row, of_the_supplied
from atlas.measure.statistics import Estimate, Unscored, estimate
from atlas.settings import Settings, with_value

SWEEPABLE = ("min_score", "k", "max_per_document", "token_budget")
MAX_VALUES = 101
MEASURES = ("hit", "recall", "precision", "evidence")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One value of a sweep."""

    value: float
    summary: dict[str, Estimate]
    """`hit`, `recall`, `precision`, `evidence`, the `prompt_tokens`, and over questions without an
    answer `emptied`: the share of them for which nothing is supplied any more."""

    def as_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "summary": {name: value.as_json() for name, value in self.summary.items()},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """A setting with its values, measured on one set of questions."""

    name: str
    steps: tuple[Step, ...]

    @property
    def falls_at(self) -> float | None:
        """The first value at which mean recall is lower than at the value before; None if never."""
        means = [step.summary["recall"].mean for step in self.steps]
        pairs = zip(means, means[1:], self.steps[1:], strict=False)
        for before, now, step in pairs:
            if isinstance(before, Unscored) or isinstance(now, Unscored):
                continue
            if now.value < before.value - 1e-12:
                return step.value
        return None


def parse_sweep(text: str) -> tuple[str, tuple[float, ...]]:
    """`min_score=0:0.9:0.1` (both ends included) or `k=3,5,10` -> name and values.

    Raises UsageError for another form, a setting that cannot be swept or a value out of range.
    """
    name, equals, values = text.partition("=")
    name = name.strip()
    if not equals or not values.strip():
        raise UsageError(f"--sweep {text!r}: expected `min_score=0:0.9:0.1` or `k=3,5,10`")
    if name not in SWEEPABLE:
        raise UsageError(
            f"--sweep: {name!r} takes effect before reranking or is no setting; sweep one of "
            f"{', '.join(SWEEPABLE)}, and compare others with `atlas experiment`"
        )
    numbers = _values(text, values)
    if not 2 <= len(numbers) <= MAX_VALUES:
        raise UsageError(
            f"--sweep {text!r}: {len(numbers)} values; expected 2 to {MAX_VALUES}, rising"
        )
    for number in numbers:
        with_value(Settings(), f"--sweep {text!r}", name, number)
    return name, tuple(numbers)


def sweep(
    name: str, values: Sequence[float], rows: Sequence[Row], questions: Questions, opened: Opened
) -> Sweep:
    """Measure every value on rows that were asked already."""
    settings = [with_value(opened.settings, f"--sweep {name}", name, value) for value in values]
    selections = [_of_row(row, settings, questions, opened) for row in rows]
    steps = []
    for place, value in enumerate(values):
        at_value = [selection[place] for selection in selections]
        steps.append(Step(value=value, summary=_summary(rows, at_value)))
    return Sweep(name=name, steps=tuple(steps))


def _of_row(
    row: Row, settings: Sequence[Settings], questions: Questions, opened: Opened
) -> list[dict[str, float | Unscored]]:
    """The scores of one question under every value."""
    if row.trace is None or row.failed:
        return [{} for _ in settings]
    scores = []
    for choice in settings:
        chosen = opened.reselect(row.trace, choice)
        refs = [hit.block.ref for hit in chosen.kept]
        texts = [hit.block.text for hit in chosen.kept]
        values = of_the_supplied(row.case, row.relevant, refs, texts, questions)
        values["prompt_tokens"] = float(chosen.tokens)
        if row.case.expect == "abstain":
            values["emptied"] = float(not refs)
        scores.append(values)
    return scores


def _summary(
    rows: Sequence[Row], scores: Sequence[dict[str, float | Unscored]]
) -> dict[str, Estimate]:
    failed = sum(row.failed for row in rows)
    return {
        name: estimate(
            [v for values in scores if not isinstance(v := values.get(name, _NONE), Unscored)],
            total=len(rows),
            failed=failed,
        )
        for name in (*MEASURES, "prompt_tokens", "emptied")
    }


_NONE = Unscored("not a question of this measure")


def _values(text: str, values: str) -> list[float]:
    try:
        if ":" in values:
            low, high, step = (Decimal(part.strip()) for part in values.split(":"))
            if step <= 0 or high < low:
                raise ValueError
            count = int((high - low) / step) + 1
            numbers = [low + step * place for place in range(min(count, MAX_VALUES + 1))]
        else:
            numbers = [Decimal(part.strip()) for part in re.split(r",", values)]
    except (ValueError, InvalidOperation, OverflowError):
        raise UsageError(
            f"--sweep {text!r}: expected numbers, low:high:step with a step above 0, or a,b,c"
        ) from None
    if any(not number.is_finite() for number in numbers) or sorted(set(numbers)) != numbers:
        raise UsageError(f"--sweep {text!r}: expected finite values, each once, rising")
    return [float(number) for number in numbers]
