"""Two runs on the same questions -> how far apart they are, and whether that could be chance.

Scores come in pairs, one question's in both runs at the same place. Refused, as mistakes of the
caller: lists of unequal length, numbers that are not finite. A question unscored in either run is
left out, and `n` says how many were used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from atlas.measure.statistics import SEED, Numbers, Unscored, finite, mean_interval

FLIPS = 10_000
EXACT_UP_TO = 16
"""Non-zero differences up to which every pattern of signs is tried."""
LEAST_CHANGED = 6
"""Questions that must change, all one way, before 2 / 2^n falls below 0.05."""
POWER = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The second run minus the first, in the measure's own unit."""

    value: float
    low: float
    high: float
    """The 95% interval; infinite where the sample cannot bound it."""
    p_value: float
    """Two-sided: how often chance alone parts two equal runs this far."""
    detectable: float | Unscored
    """The smallest true difference that this many questions show four times in five."""
    n: int

    def as_json(self) -> dict[str, Any]:
        """`difference`, `low`, `high`, `p_value`, `detectable`, `n`; null where there is none."""
        values: dict[str, Any] = {
            "difference": self.value,
            "low": finite(self.low),
            "high": finite(self.high),
            "p_value": self.p_value,
            "detectable": None if isinstance(self.detectable, Unscored) else self.detectable,
            "n": self.n,
        }
        if isinstance(self.detectable, Unscored):
            values["unscored"] = self.detectable.reason
        return values


def difference(
    a: Sequence[float | Unscored], b: Sequence[float | Unscored]
) -> Difference | Unscored:
    """The mean of b - a over the questions scored in both, Unscored where there is none.

    The interval is `mean_interval` of the differences, which lie within -1 to 1 where all scores
    lie within 0 to 1. Questions that all agree still leave what n of them cannot exclude (30:
    -0.12 to 0.12). For hits and misses it excludes zero when the exact sign test says p <= 0.05,
    up to the resampling: the chance that b improved questions weigh less than c worsened and one
    more is the binomial tail of that test.

    `p_value` flips the signs of the differences (Fisher's randomisation test), all patterns where
    up to 16 are not zero, else 10,000 seeded ones with (hits + 1) / (flips + 1); 1 where all are
    zero. Raises ValueError for unequal lengths and numbers that are not finite.
    """
    pairs = [
        (float(one), float(other))
        for one, other in zip(a, b, strict=True)
        if not isinstance(one, Unscored) and not isinstance(other, Unscored)
    ]
    if not pairs:
        return Unscored("no question was scored in both runs")
    scores = np.array(pairs)
    if not np.isfinite(scores).all():
        raise ValueError("expected finite numbers")
    bounded = bool(scores.min() >= 0 and scores.max() <= 1)
    changes = np.sort(scores[:, 1] - scores[:, 0])
    interval = mean_interval(changes, (-1.0, 1.0) if bounded else None)
    return Difference(
        value=interval.value,
        low=interval.low,
        high=interval.high,
        p_value=_sign_flip(changes[changes != 0]),
        detectable=_detectable(changes, bounded),
        n=len(changes),
    )


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """The same p-values corrected for their number, in the same order (Holm 1979).

    The smallest of m is multiplied by m, the next by m - 1 and so on; none is above 1 or below the
    one before it. Nothing in, nothing out. Raises ValueError for a value outside 0 to 1.
    """
    if any(not 0 <= p <= 1 for p in p_values):
        raise ValueError("a p-value lies within 0 to 1")
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for before, place in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        largest = max(largest, min(1.0, p_values[place] * (len(p_values) - before)))
        corrected[place] = largest
    return tuple(corrected)


def _sign_flip(changes: Numbers) -> float:
    """Two-sided p-value of non-zero differences under random signs."""
    count = len(changes)
    if not count:
        return 1.0
    observed = abs(float(changes.sum())) * (1 - 1e-9)
    if count <= EXACT_UP_TO:
        patterns = np.arange(2 ** (count - 1))[:, None] >> np.arange(count - 1)
        signs = 1.0 - 2.0 * (patterns & 1)
        sums = changes[0] + signs @ changes[1:]
        return float((np.abs(sums) >= observed).mean())
    random = np.random.default_rng(SEED)
    hits, total = 0, changes.sum()
    for _ in range(0, FLIPS, 1000):
        positive = random.integers(0, 2, (1000, count), np.int8) @ changes
        hits += int((np.abs(2 * positive - total) >= observed).sum())
    return (hits + 1) / (FLIPS + 1)


def _detectable(changes: Numbers, bounded: bool) -> float | Unscored:
    """The true difference shown at 5% with 80% power: the larger of two needs.

    The spread: (t at 0.975 + t at 0.8, n - 1 degrees of freedom) * standard deviation / sqrt(n).
    And changes enough: six questions that change one way are the fewest that can reach p < 0.05,
    so the share of changing questions must make six of n likely (80%), and each changes by the mean
    size of the changes seen, or by 1 where none was. Never above 1 for scores within 0 to 1.
    """
    from scipy import special

    n = len(changes)
    if n < LEAST_CHANGED:
        return Unscored(f"{n} questions cannot show any difference at 5%; {LEAST_CHANGED} could")
    changed = changes[changes != 0]
    if not len(changed) and not bounded:
        return Unscored("nothing changed, and the measure has no bounds")
    size = float(np.abs(changed).mean()) if len(changed) else 1.0
    enough = size * float(special.betaincinv(LEAST_CHANGED, n - LEAST_CHANGED + 1, POWER))
    deviations = float(special.stdtrit(n - 1, 0.975) + special.stdtrit(n - 1, POWER))
    spread = deviations * float(changes.std(ddof=1)) / math.sqrt(n)
    return min(max(enough, spread), 1.0) if bounded else max(enough, spread)
