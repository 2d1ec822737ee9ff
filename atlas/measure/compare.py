"""Two saved runs of the same questions -> paired differences, in all and by kind.

Question by question, b less a. "clear" means that a permutation test of the signs gives p < 0.05;
anything else "could be chance". What this many questions could have shown stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from atlas.errors import NothingToMeasure, UsageError
from atlas.measure.paired import Difference, difference
from atlas.measure.runs import SavedRun
from atlas.measure.statistics import Unscored

COMPARED = (
    "hit", "recall", "precision", "evidence", "hit@1", "hit@5", "recall@10", "reciprocal_rank@10",
    "ndcg@10", "declined", "wrongly_declined", "passed", "prompt_tokens", "milliseconds",
)  # fmt: skip
BY_KIND = ("recall", "ndcg@10", "passed")
LOWER_IS_BETTER = frozenset({"wrongly_declined", "prompt_tokens", "milliseconds"})
Values = Mapping[str, Any]
LEVEL = 0.05
FEW = 30
"""Questions below which a comparison says that it has few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The difference of one measure."""

    measure: str
    first: float
    second: float
    """Means over the questions that both runs scored."""
    difference: Difference
    p_value: float
    """As it decides: adjusted where several setups are compared."""

    @property
    def verdict(self) -> str:
        return "clear" if self.p_value < LEVEL else "could be chance"

    @property
    def better(self) -> bool:
        return (self.difference.value < 0) == (self.measure in LOWER_IS_BETTER)

    def as_json(self) -> dict[str, Any]:
        return {
            "a": self.first,
            "b": self.second,
            **self.difference.as_json(),
            "p_value": self.p_value,
            "verdict": self.verdict,
        }


Measures = Mapping[str, Compared]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything about two runs."""

    a: SavedRun
    b: SavedRun
    overall: Measures
    by_kind: Mapping[str, Measures]
    changed: tuple[str, ...]
    """Settings and models that differ, one line each."""
    moved: tuple[str, ...]
    """Questions that one run got right and the other did not, one line each."""

    def as_json(self) -> dict[str, Any]:
        return {
            "a": self.a.name,
            "b": self.b.name,
            "changed": list(self.changed),
            **{name: item.as_json() for name, item in self.overall.items()},
            "by_kind": {
                kind: {name: item.as_json() for name, item in items.items()}
                for kind, items in self.by_kind.items()
            },
            "moved": list(self.moved),
        }


def compare(a: SavedRun, b: SavedRun) -> Comparison:
    """Compare two runs. Raises UsageError where they did not ask the same of the same documents."""
    for name, what in (("questions", "questions or labels"), ("collection", "documents")):
        one, other = a.head["fingerprints"][name], b.head["fingerprints"][name]
        if one != other:
            raise UsageError(
                f"{a.name} and {b.name} were made on different {what} ({one}, {other}); "
                "measure both again"
            )
    before = {question["id"]: question for question in a.questions}
    after = {question["id"]: question for question in b.questions}
    if before.keys() != after.keys():
        lone = sorted(before.keys() ^ after.keys())
        raise UsageError(
            f"{a.name} and {b.name} asked different questions ({len(lone)} in one of them only, "
            f"first: {lone[0]}); measure both on the same ones"
        )
    pairs = [(before[name], after[name]) for name in before]
    overall = _compared(*_apart(pairs), COMPARED)
    if not overall:
        raise NothingToMeasure(f"{a.name} and {b.name}: no question was scored in both")
    kinds = sorted({question["kind"] or "no kind" for question in a.questions})
    return Comparison(
        a=a,
        b=b,
        overall=overall,
        by_kind={
            kind: _compared(
                *_apart([pair for pair in pairs if (pair[0]["kind"] or "no kind") == kind]), BY_KIND
            )
            for kind in kinds
        },
        changed=tuple(_changed(a.head, b.head)),
        moved=tuple(_moved(pairs)),
    )


def compare_rows(a: Sequence[Values], b: Sequence[Values], measure: str) -> Difference | Unscored:
    """The paired difference of one measure over questions in the same order."""
    return difference(_scores(a, measure), _scores(b, measure))


def _scores(questions: Sequence[Values], measure: str) -> list[float | Unscored]:
    none = Unscored("the question has no value of this measure")
    scores = [score(question, measure) for question in questions]
    return [none if value is None else value for value in scores]


def _compared(a: Sequence[Values], b: Sequence[Values], measures: Sequence[str]) -> Measures:
    """Every measure that some question has in both runs."""
    found = {}
    for name in measures:
        result = compare_rows(a, b, name)
        if not isinstance(result, Unscored):
            pairs = [(score(x, name), score(y, name)) for x, y in zip(a, b, strict=True)]
            first = [x for x, y in pairs if x is not None and y is not None]
            mean = sum(first) / len(first)
            found[name] = Compared(
                measure=name,
                first=mean,
                second=mean + result.value,
                difference=result,
                p_value=result.p_value,
            )
    return found


def score(question: Values, measure: str) -> float | None:
    """A saved question's value of a measure; None where it has none.

    `declined` is kept for every question and counts for those without an answer.
    """
    value = question.get(measure)
    if value is None or (measure == "declined" and question["expect"] != "abstain"):
        return None
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise UsageError(f"{question['id']}: {measure} is {value!r}, no number; save the run again")
    return float(value)


def _apart(pairs: Sequence[tuple[Values, Values]]) -> tuple[list[Values], list[Values]]:
    return [one for one, _ in pairs], [other for _, other in pairs]


def _changed(a: Values, b: Values) -> Iterator[str]:
    seen: set[str] = set()
    for part in ("settings", "fingerprints"):
        one, other = a[part], b[part]
        for name in dict.fromkeys((*one, *other)):
            told = name in seen or name in (
                "settings",
                "index",
            )  # a setting names its model already
            if one.get(name) != other.get(name) and not told:
                seen.add(name)
                yield f"{name}: {one.get(name)} to {other.get(name)}"


def _moved(pairs: Sequence[tuple[Values, Values]]) -> Iterator[str]:
    for one, other in pairs:
        for name in ("hit", "passed"):
            before, after = score(one, name), score(other, name)
            if before is not None and after is not None and before != after:
                yield f"{one['id']:<8}{name:<8}{'lost' if after < before else 'won'}"
