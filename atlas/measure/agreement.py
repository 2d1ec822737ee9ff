"""Counts and ratings -> how far a judge agrees with people, and people with each other.

Enters: how many labels a judge agrees on; or for every answer what each rater gave, on one scale
where more is better, and the judge's score. Leaves: a rate with a verdict on trust; or rank
correlations beside the raters' own agreement. Raters are told by their place.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from atlas.measure.statistics import Interval, Unscored, estimate, kappa, rank_correlation

TRUSTED = 0.75
"""Agreement that the whole interval of a kind must reach for a judge to be trusted with it."""
_MOST_MISSING = 1000
Rated = tuple[Sequence[float], float]
"""What the raters gave one answer, and the judge's score of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How often a judge says what the person says, over some labels; unscored is never the same."""

    same: int
    of: int
    share: Interval
    """same / of with the exact 95% interval of a rate."""
    bar: float = TRUSTED
    """What the whole interval must reach: TRUSTED, or what a constant judge gets if it is more."""

    @property
    def verdict(self) -> str:
        """Whether the judge may be trusted here, by the interval."""
        if self.share.low >= self.bar:
            return "may be trusted"
        if self.share.high < self.bar:
            return "not to be trusted"
        return "open"

    @property
    def missing(self) -> int:
        """Further labels, all agreed on, that it would take to trust the judge; 0 if decided."""
        if self.verdict != "open":
            return 0
        low, high = 1, _MOST_MISSING
        while low < high:
            middle = (low + high) // 2
            if agreement_of(self.same + middle, self.of + middle).share.low >= self.bar:
                high = middle
            else:
                low = middle + 1
        return low

    def as_json(self) -> dict[str, Any]:
        """`same`, `of`, the interval's `low` and `high`, `verdict`, `missing`."""
        return {
            "same": self.same,
            "of": self.of,
            "low": self.share.low,
            "high": self.share.high,
            "verdict": self.verdict,
            "missing": self.missing,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Raters:
    """A judge beside people who rated the same answers."""

    answers: int
    people: int
    judge: Interval | Unscored
    """Spearman's rank correlation of the judge's score and the raters' mean."""
    each: tuple[Interval | Unscored, ...]
    """For each rater the rank correlation with the mean of the others."""
    kappa: float | Unscored
    """Mean of Cohen's kappa over all pairs of raters, on the ratings as given."""

    def as_json(self) -> dict[str, Any]:
        """`rank_correlation` of the judge, `each_rater` with the others, `pairwise_kappa`."""
        agreed = self.kappa
        return {
            "answers": self.answers,
            "people": self.people,
            "rank_correlation": interval_json(self.judge),
            "each_rater": [interval_json(item) for item in self.each],
            "pairwise_kappa": None if isinstance(agreed, Unscored) else agreed,
        }

    def lines(self) -> Iterator[str]:
        """The report for a person."""
        yield ""
        yield f"{self.people} raters, {self.answers} answers: rank correlation"
        yield f"  judge with their mean          {self.judge}"
        for number, item in enumerate(self.each, start=1):
            yield f"  rater {number} with the others' mean   {item}"
        agreed = self.kappa
        text = str(agreed) if isinstance(agreed, Unscored) else f"{agreed:.3f}"
        yield f"  mean kappa of two raters       {text}"


def agreement_of(same: int, of: int, bar: float = TRUSTED) -> Agreement:
    """The agreement over one or more labels. Raises ValueError where same > of."""
    if not 0 <= same <= of or not of:
        raise ValueError(f"{same} of {of} is no agreement")
    share = estimate([1.0] * same + [0.0] * (of - same)).mean
    assert isinstance(share, Interval), "a rate over at least one label has an interval"
    return Agreement(same=same, of=of, share=share, bar=bar)


def raters_of(rows: Sequence[Rated]) -> Raters | None:
    """Compare; None where there is nothing to compare.

    A rater takes part in an answer only where there is a rating at that place, and is compared with
    the mean of the others there.
    """
    if not rows:
        return None
    people = max(len(ratings) for ratings, _ in rows)
    each: list[Interval | Unscored] = []
    for place in range(people):
        there = [ratings for ratings, _ in rows if len(ratings) > max(place, 1)]
        own = [ratings[place] for ratings in there]
        others = [(sum(ratings) - ratings[place]) / (len(ratings) - 1) for ratings in there]
        each.append(_correlation(own, others))
    kappas = []
    for one, other in itertools.combinations(range(people), 2):
        pairs = [(r[one], r[other]) for r, _ in rows if len(r) > max(one, other)]
        value = kappa(pairs) if pairs else Unscored("no answer that both rated")
        if isinstance(value, Interval):
            kappas.append(value.value)
    return Raters(
        answers=len(rows),
        people=people,
        judge=_correlation([score for _, score in rows], [sum(r) / len(r) for r, _ in rows]),
        each=tuple(each),
        kappa=sum(kappas) / len(kappas) if kappas else Unscored("the raters never differ"),
    )


def _correlation(x: Sequence[float], y: Sequence[float]) -> Interval | Unscored:
    return rank_correlation(x, y) if x else Unscored("no answer")


def interval_json(value: Interval | Unscored) -> dict[str, Any]:
    """`value`, `low`, `high`; null and `unscored` with the reason where there is none."""
    if isinstance(value, Unscored):
        return {"value": None, "low": None, "high": None, "unscored": value.reason}
    return value.as_json()
