"""A ranked list of refs and graded judgements -> the measures of ranked retrieval.

A measure is a value: one small object with the name that is printed everywhere. Definitions and
values are those of trec_eval and ir_measures. Refused, as mistakes of the caller: a ref that stands
twice in a ranking, since no definition gives such a list a value.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atlas.errors import UsageError
from atlas.measure.statistics import Unscored

Formula = Callable[[Sequence[int], Sequence[int], int], float]
"""Gains of the first k ranked, gains of all relevant from the highest, k -> 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedMeasure:
    """One measure of a ranked list, 0 to 1, higher is better."""

    name: str
    """As printed, saved and asked for, such as `ndcg@10`."""
    meaning: str
    """One line for people."""
    k: int
    """How many of the first refs it looks at."""
    formula: Formula

    def __call__(self, ranked: Sequence[str], relevant: Mapping[str, int]) -> float | Unscored:
        """Score refs in rank order against grades by ref; a grade of 0 or less is not relevant.

        Refs without a grade are not relevant. Fewer than k refs, or none, are scored as they are;
        without a relevant ref there is no score. Raises ValueError on a ref ranked twice.
        """
        if len(set(ranked)) != len(ranked):
            twice = next(ref for place, ref in enumerate(ranked) if ref in ranked[:place])
            raise ValueError(f"{twice} is ranked twice")
        ideal = sorted((grade for grade in relevant.values() if grade > 0), reverse=True)
        if not ideal:
            return Unscored("the question has no relevant block")
        gains = [max(0, relevant.get(ref, 0)) for ref in ranked[: self.k]]
        return self.formula(gains, ideal, self.k)


def _hit(gains: Sequence[int], ideal: Sequence[int], k: int) -> float:
    """1 if any of the first k is relevant, else 0 (Success@k)."""
    return float(any(gains))


def _precision(gains: Sequence[int], ideal: Sequence[int], k: int) -> float:
    """Relevant among the first k / k, also where fewer were ranked (P@k)."""
    return sum(gain > 0 for gain in gains) / k


def _recall(gains: Sequence[int], ideal: Sequence[int], k: int) -> float:
    """Relevant among the first k / all relevant (R@k)."""
    return sum(gain > 0 for gain in gains) / len(ideal)


def _reciprocal_rank(gains: Sequence[int], ideal: Sequence[int], k: int) -> float:
    """1 / rank of the first relevant, 0 where it is not among the first k (RR@k)."""
    return next((1 / rank for rank, gain in enumerate(gains, 1) if gain), 0.0)


def _ndcg(gains: Sequence[int], ideal: Sequence[int], k: int) -> float:
    """Discounted gain of the first k / that of the best order of all relevant, cut at k (nDCG@k).

    The gain is the grade and the discount log2(rank + 1), as in trec_eval; after Järvelin and
    Kekäläinen (2002), whose own discount leaves the second rank whole.
    """
    return _discounted(gains) / _discounted(ideal[:k])


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


_KINDS: dict[str, tuple[Formula, str]] = {
    "hit": (_hit, "share of questions with a relevant block among the first {k}"),
    "precision": (_precision, "relevant blocks among the first {k}, of {k}"),
    "recall": (_recall, "relevant blocks among the first {k}, of all relevant"),
    "reciprocal_rank": (_reciprocal_rank, "1 / rank of the first relevant block, 0 beyond {k}"),
    "ndcg": (_ndcg, "gain of the first {k}, discounted by rank, of that of the best order"),
}
_REPORTED = {
    "hit": (1, 3, 5, 10),
    "precision": (1, 3, 5, 10),
    "recall": (3, 5, 10),
    "reciprocal_rank": (10,),
    "ndcg": (10,),
}


def _measure(kind: str, k: int) -> RankedMeasure:
    formula, meaning = _KINDS[kind]
    return RankedMeasure(name=f"{kind}@{k}", meaning=meaning.format(k=k), k=k, formula=formula)


RANKED = tuple(_measure(kind, k) for kind, depths in _REPORTED.items() for k in depths)
"""The measures of the ranked list that every report holds, in the order of the report."""


def measure(name: str) -> RankedMeasure:
    """The measure of a name such as `recall@20`, for any k from 1.

    Raises UsageError for a name that is none, with the nearest ones.
    """
    kind, _, depth = name.partition("@")
    if kind in _KINDS and depth.isascii() and depth.isdigit() and not depth.startswith("0"):
        return _measure(kind, int(depth))
    known = [item.name for item in RANKED]
    near = [item.name for item in RANKED if item.name.partition("@")[0] == kind]
    near = near or difflib.get_close_matches(name, known, 3, 0.5) or known
    raise UsageError(f"unknown measure {name!r}; did you mean {', '.join(near)}?")


def ordered(rows: Iterable[tuple[str, float]]) -> list[str]:
    """Refs with scores -> refs in rank order: the one rule for ties.

    Higher score first; equal scores by ref in descending order of its code points, as trec_eval
    orders them whatever rank a run states. Scores are compared in single precision, as trec_eval 9
    keeps them, and pytrec_eval and ir_measures with it: 1.000000000001 equals 1. (For reciprocal
    rank at a cutoff ir_measures has another rule, and trec_eval has since gone over to double
    precision.) Raises ValueError on a score that is not a number.
    """
    refs, scores = [], []
    for ref, score in rows:
        if math.isnan(score):
            raise ValueError(f"the score of {ref} is not a number")
        refs.append(ref)
        scores.append(score)
    with np.errstate(over="ignore"):
        single = np.array(scores, np.float64).astype(np.float32).tolist()
    return [ref for _, ref in sorted(zip(single, refs, strict=True), reverse=True)]
