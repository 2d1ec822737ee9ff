"""Scores of questions -> means, agreements and correlations, each with a 95% interval.

Numbers come in one per question and in any order: sorting makes every result independent of it, and
a fixed seed makes it repeatable. Refused, as mistakes of the caller: numbers that are not finite,
and counts that contradict each other. A missing measurement is `Unscored` with its reason.

**The interval of a mean.** Questions are resampled 2,000 times with random shares (the Bayesian
bootstrap, Rubin 1981), each time with one question added that was not asked: the upper end is the
97.5% quantile of the means with the added one at the highest possible value, the lower end the 2.5%
quantile with it at the lowest. This is the bound of Gaffke (2005), see Learned-Miller and Thomas
(2019) and Phan et al. (ICML 2021). On zeros and ones it is the interval of Clopper and Pearson
(1934), which is then computed exactly. Plain percentiles, Student's t and the studentised bootstrap
were tried and are not used: of fifteen reciprocal ranks that are mostly 1 their "95%" intervals
held the true mean in 76 to 78 of 100 trials. `bench/coverage.py` prints the comparison.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

SEED = 20260101
RESAMPLES = 2000
TAIL = 0.025
"""What a 95% interval leaves out at either end."""
_KEPT_QUESTIONS = 500
"""Up to this many questions the random shares are kept for the next measure."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Unscored:
    """There is no measurement, and why. Never averaged in, never taken for zero."""

    reason: str

    def __str__(self) -> str:
        return f"unscored ({self.reason})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A value with its 95% interval; an end is infinite where the sample cannot bound it."""

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, float | None]:
        """`value`, `low`, `high`; an end without a bound is null."""
        return {"value": self.value, "low": finite(self.low), "high": finite(self.high)}

    def __str__(self) -> str:
        size = max(abs(n) for n in (self.value, self.low, self.high) if math.isfinite(n))
        value, end = (3, 2) if size < 10 else (1, 1) if size < 100 else (0, 0)
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return f"{self.value:.{value}f} [no interval]"
        return f"{self.value:.{value}f} [{self.low:.{end}f}, {self.high:.{end}f}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The mean of a measure, and how many questions it speaks for."""

    mean: Interval | Unscored
    scored: int
    total: int
    """Questions asked: those scored, those without a value of this measure, those failed."""
    failed: int

    def as_json(self) -> dict[str, Any]:
        """`mean`, `low`, `high`, `scored`, `total`, `failed`; null with `unscored` if no mean."""
        counts = {"scored": self.scored, "total": self.total, "failed": self.failed}
        if isinstance(self.mean, Unscored):
            nothing = {"mean": None, "low": None, "high": None}
            return {**nothing, **counts, "unscored": self.mean.reason}
        ends = self.mean.as_json()
        return {"mean": ends["value"], "low": ends["low"], "high": ends["high"], **counts}

    @property
    def counted(self) -> str:
        return f"scored {self.scored} of {self.total}, failed {self.failed}"

    def __str__(self) -> str:
        return str(self.mean)


def estimate(
    values: Sequence[float | Unscored], total: int | None = None, failed: int = 0
) -> Estimate:
    """The mean over scored questions, with its 95% interval.

    Formula: sum of scored values / number of scored values. Unscored values are counted in `total`
    and not averaged in; with nothing scored the mean is Unscored. `total` defaults to the number of
    values, and `failed` is how many of the total could not be asked.

    Values of 0 and 1 alone get the exact interval (ten of ten: 0.69 to 1), values within 0 to 1 the
    interval of the module's docstring, and one value alone 0 to 1. Any value outside 0 to 1 makes
    it a measure without bounds (tokens, milliseconds): see `mean_interval`; where none is negative
    the interval ends at 0. Raises ValueError for a value that is not finite and for counts that do
    not add up.
    """
    scored = [float(value) for value in values if not isinstance(value, Unscored)]
    asked = len(values) if total is None else total
    if failed < 0 or len(scored) + failed > asked:
        raise ValueError(f"{len(scored)} scored and {failed} failed of {asked}")
    mean: Interval | Unscored
    if not scored:
        mean = Unscored("no question was scored" if asked else "there was no question")
    else:
        numbers = np.array(scored)
        bounded = bool(numbers.min() >= 0 and numbers.max() <= 1)
        mean = mean_interval(numbers, (0.0, 1.0) if bounded else None)
        if numbers.min() >= 0 and math.isfinite(mean.low):
            mean = Interval(value=mean.value, low=max(mean.low, 0.0), high=mean.high)
    return Estimate(mean=mean, scored=len(scored), total=asked, failed=failed)


def mean_interval(values: Numbers, bounds: tuple[float, float] | None) -> Interval:
    """The mean of one or more numbers with its 95% interval, given the bounds they cannot pass.

    One number says nothing but the bounds. Without bounds the question that was not asked is put
    half the observed range beyond the values seen (beyond zero and the value, where all are equal);
    no such interval can foresee rare values that no question showed. One number without bounds, or
    zeros alone, give infinite ends. Raises ValueError on numbers that are not finite or outside.
    """
    values = np.sort(np.asarray(values, np.float64))
    if not len(values) or not np.isfinite(values).all():
        raise ValueError("expected one or more finite numbers")
    mean = float(values.mean())
    if bounds is not None:
        floor, ceiling = bounds
        if values[0] < floor or values[-1] > ceiling:
            raise ValueError(f"{values[0]} to {values[-1]} is outside {floor} to {ceiling}")
        if np.isin(values, bounds).all():
            low, high = _exact(int((values == ceiling).sum()), len(values))
            width = ceiling - floor
            return Interval(value=mean, low=floor + width * low, high=floor + width * high)
        if len(values) == 1:
            return Interval(value=mean, low=floor, high=ceiling)
    else:
        floor, ceiling = float(values[0]), float(values[-1])
        ends = (floor, ceiling) if floor < ceiling else (min(floor, 0.0), max(ceiling, 0.0))
        reach = (ends[1] - ends[0]) / 2
        if len(values) == 1 or reach == 0:
            return Interval(value=mean, low=-math.inf, high=math.inf)
        floor, ceiling = floor - reach, ceiling + reach
    sums, added = _resampled(values)
    low, high = (
        np.quantile(sums + added * floor, TAIL),
        np.quantile(sums + added * ceiling, 1 - TAIL),
    )
    return Interval(value=mean, low=min(float(low), mean), high=max(float(high), mean))


def kappa(pairs: Sequence[tuple[Hashable, Hashable]]) -> Interval | Unscored:
    """Cohen's kappa of two raters (Cohen 1960), -1 to 1, higher agrees more; 0 is chance.

    Formula: (observed - expected) / (1 - expected) agreement, expected from each rater's own share
    of every label. Denominator: all pairs given. Unscored without pairs, and where both raters gave
    one and the same label throughout, since expected agreement is then 1.

    The interval is made as that of a mean: shares of the cells of the table are drawn 2,000 times
    with one pair added, in the cell that lowers kappa most for the lower end and in the one that
    raises it most for the upper. The variance of Fleiss, Cohen and Everitt (1969) was tried and
    covers as little as 41% (30 pairs, kappa 0.9, a label of 10%): `bench/coverage.py`.
    """
    if not pairs:
        return Unscored("no pair of ratings")
    labels = sorted({label for pair in pairs for label in pair}, key=repr)
    if len(labels) == 1:
        return Unscored("both raters gave one and the same label throughout")
    place = {label: number for number, label in enumerate(labels)}
    size = len(labels)
    table = np.zeros(size * size)
    for one, other in pairs:
        table[place[one] * size + place[other]] += 1
    value = float(_kappas(table[None], size)[0])
    steps = _kappas(table + np.eye(size * size), size)
    ends = []
    for cell, share in ((int(steps.argmin()), TAIL), (int(steps.argmax()), 1 - TAIL)):
        counts = table.copy()
        counts[cell] += 1
        random = np.random.default_rng(SEED)
        drawn = random.standard_gamma(np.broadcast_to(counts, (RESAMPLES, len(counts))))
        ends.append(float(np.quantile(_kappas(drawn, size), share)))
    return Interval(value=value, low=min(ends[0], value), high=max(ends[1], value))


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> Interval | Unscored:
    """Spearman's rank correlation of paired numbers, -1 to 1, ties by their mean rank.

    Formula: Pearson's correlation of the ranks, over all pairs. The interval is Fisher's z with the
    standard error sqrt((1 + r^2 / 2) / (n - 3)) of Bonett and Wright (2000); one swap of neighbours
    stands for a perfect order, whose z is infinite. (Resampled ranks covered 69 to 92% of 15
    pairs.) Unscored with fewer than four pairs, and where one side is constant. Raises ValueError
    for unequal lengths and numbers that are not finite.
    """
    if len(x) != len(y):
        raise ValueError(f"{len(x)} and {len(y)} numbers are not pairs")
    first, second = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("expected finite numbers")
    n = len(first)
    if n < 4:
        return Unscored(f"a rank correlation needs at least 4 pairs, there are {n}")
    if first.min() == first.max() or second.min() == second.max():
        return Unscored("one side has the same value throughout")
    a, b = _centred_ranks(first), _centred_ranks(second)
    value = float(np.clip((a @ b) / math.sqrt((a @ a) * (b @ b)), -1, 1))
    most = 1 - 12 / (n * (n * n - 1))
    bent = min(max(value, -most), most)
    margin = 1.959963984540054 * math.sqrt((1 + bent * bent / 2) / (n - 3))
    low, high = math.tanh(math.atanh(bent) - margin), math.tanh(math.atanh(bent) + margin)
    return Interval(value=value, low=min(low, value), high=max(high, value))


def finite(number: float) -> float | None:
    """For JSON: None, read as null, where a number has no bound."""
    return number if math.isfinite(number) else None


def _exact(hits: int, n: int) -> tuple[float, float]:
    """Clopper and Pearson (1934) for `hits` of `n`."""
    from scipy import special

    low = float(special.betaincinv(hits, n - hits + 1, TAIL)) if hits else 0.0
    high = float(special.betaincinv(hits + 1, n - hits, 1 - TAIL)) if hits < n else 1.0
    return low, high


def _resampled(values: Numbers) -> tuple[Numbers, Numbers]:
    """For every resample the values' part of the mean, and the added question's share of it."""
    n = len(values)
    if n <= _KEPT_QUESTIONS:
        shares = _shares(n)
        return shares[:, :n] @ values, shares[:, n]
    random = np.random.default_rng(SEED)
    parts = np.empty((2, RESAMPLES))
    for row in range(RESAMPLES):
        drawn = random.standard_exponential(n + 1)
        parts[:, row] = np.array([drawn[:n] @ values, drawn[n]]) / drawn.sum()
    return parts[0], parts[1]


@lru_cache(maxsize=8)
def _shares(n: int) -> Numbers:
    drawn = np.random.default_rng(SEED).standard_exponential((RESAMPLES, n + 1))
    shares: Numbers = drawn / drawn.sum(1, keepdims=True)
    return shares


def _kappas(tables: Numbers, size: int) -> Numbers:
    """Kappa of every row, a flattened table of two raters."""
    square = tables.reshape(-1, size, size)
    square = square / square.sum((1, 2), keepdims=True)
    observed = np.trace(square, axis1=1, axis2=2)
    expected = (square.sum(2) * square.sum(1)).sum(1)
    values: Numbers = (observed - expected) / (1 - expected)
    return values


def _centred_ranks(values: Numbers) -> Numbers:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    centred: Numbers = ranks - ranks.mean()
    return centred
