"""Do the 95% intervals of `atlas.measure` hold the true value 95 times in a hundred?

    python bench/coverage.py [--trials N]

Draws questions again and again from distributions whose true mean, difference, kappa or correlation
is known, and prints in how many percent of the trials each interval held it, with the mean width in
brackets. The last column is what atlas reports; the others were tried and are not used: percentiles
of the bootstrap, Student's t, the studentised bootstrap, and a beta interval that takes the sum of
the scores for a number of hits. Below: how often two equal runs are called different at 5%, and how
often a true gap of the size given as detectable is found.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from surroundings import machine

from atlas.measure.paired import Difference, difference
from atlas.measure.statistics import Interval, estimate, kappa, mean_interval, rank_correlation

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]
Ends = tuple[Array, Array]


def reciprocal_ranks(found: float) -> Draw:
    """1 / rank where every rank is the right one with this probability, 0 beyond ten."""

    def draw(random: np.random.Generator, n: int) -> Array:
        ranks = random.geometric(found, n)
        return np.where(ranks <= 10, 1 / ranks, 0.0)

    return draw


def beta(a: float, b: float) -> Draw:
    return lambda random, n: random.beta(a, b, n)


def mostly(share: float, value: float, rest: Draw) -> Draw:
    """One value with this probability, else one drawn from the rest."""
    return lambda random, n: np.where(random.random(n) < share, value, rest(random, n))


def always(value: float) -> Draw:
    return lambda random, n: np.full(n, value)


SCORES: dict[str, Draw] = {
    "reciprocal rank, 97% first": reciprocal_ranks(0.97),
    "reciprocal rank, 90% first": reciprocal_ranks(0.9),
    "reciprocal rank, 60% first": reciprocal_ranks(0.6),
    "reciprocal rank, 30% first": reciprocal_ranks(0.3),
    "ndcg: 60% whole, 12% none": mostly(0.6, 1, mostly(0.3, 0, beta(3, 2))),
    "95% whole, rest near 0": mostly(0.95, 1, beta(0.5, 3)),
    "90% whole, rest half": mostly(0.9, 1, always(0.5)),
    "90% none, rest near 1": mostly(0.9, 0, beta(5, 1)),
    "rate of 0.985": mostly(0.985, 1, always(0)),
    "beta(8, 0.5)": beta(8, 0.5),
    "beta(0.3, 6)": beta(0.3, 6),
    "beta(0.5, 0.5)": beta(0.5, 0.5),
    "beta(2, 2)": beta(2, 2),
    "even": beta(1, 1),
    "beta(40, 40)": beta(40, 40),
}
UNBOUNDED: dict[str, Draw] = {
    "milliseconds, log sd 0.5": lambda random, n: random.lognormal(6, 0.5, n),
    "milliseconds, log sd 1": lambda random, n: random.lognormal(6, 1, n),
    "milliseconds, exponential": lambda random, n: random.exponential(500, n),
    "tokens, even spread": lambda random, n: random.normal(1500, 200, n),
    "tokens, 15% short": mostly(0.85, 1500, lambda random, n: 300 * random.random(n)),
}


def tried(values: Array) -> dict[str, Ends]:
    """Intervals of the mean that are not used, for each row of scores."""
    n = values.shape[1]
    resamples = np.random.default_rng(3).multinomial(n, [1 / n] * n, 2000) / n
    mean, deviation = values.mean(1), values.std(1)
    means = values @ resamples.T
    spreads = np.sqrt(np.maximum((values * values) @ resamples.T - means * means, 1e-12))
    t = (means - mean[:, None]) / np.maximum(spreads, 1e-6 * np.abs(mean[:, None]) + 1e-9)
    low, high = np.quantile(t, [0.025, 0.975], axis=1)
    margin = special.stdtrit(n - 1, 0.975) * values.std(1, ddof=1) / n**0.5
    ends = np.quantile(means, [0.025, 0.975], axis=1)
    return {
        "percentile": (ends[0], ends[1]),
        "Student's t": (mean - margin, mean + margin),
        "studentised": (mean - deviation * high, mean - deviation * low),
    }


def beta_interval(values: Array) -> Ends:
    n, sums = values.shape[1], values.sum(1)
    low = special.betaincinv(np.maximum(sums, 1e-9), n - sums + 1, 0.025)
    return low, special.betaincinv(sums + 1, np.maximum(n - sums, 1e-9), 0.975)


def both_ends(intervals: Iterable[Interval]) -> Ends:
    ends = np.array([(one.low, one.high) for one in intervals])
    return ends[:, 0], ends[:, 1]


def cell(ends: Ends, true: float) -> str:
    low, high = ends
    slack = 1e-4 * max(1.0, abs(true)) if abs(true) > 1 else 1e-5
    held = 100 * float(((low <= true + slack) & (true - slack <= high)).mean())
    width = float((high - low).mean())
    return f"{held:5.1f} ({width:.3f})" if width < 10 else f"{held:5.1f} ({width:.0f})"


def row(label: str, cells: Sequence[str]) -> None:
    print(f"  {label:<34}" + "".join(f"{text:>16}" for text in cells), flush=True)


def means(title: str, draws: dict[str, Draw], bounded: bool, trials: int) -> None:
    truth = {
        label: float(draw(np.random.default_rng(1), 2_000_000).mean())
        for label, draw in draws.items()
    }
    for n in (15, 30, 60, 200):
        extra = ["beta"] if bounded else []
        print(f"\n{title}, {n} questions")
        row("", ["percentile", "Student's t", "studentised", *extra, "atlas"])
        for label, draw in draws.items():
            values = draw(np.random.default_rng(2), trials * n).reshape(trials, n)
            ends = list(tried(values).values()) + ([beta_interval(values)] if bounded else [])
            found = [estimate(scores).mean for scores in values.tolist()]
            ends.append(both_ends(one for one in found if isinstance(one, Interval)))
            row(label, [cell(pair, truth[label]) for pair in ends])


@cache
def of_hits(better: int, worse: int, same: int) -> Difference:
    first = [0.0] * better + [1.0] * (worse + same)
    found = difference(first, [1.0] * better + [0.0] * worse + [1.0] * same)
    assert isinstance(found, Difference)
    return found


def differences(trials: int) -> None:
    shares = [(0.0, 0.0), (0.02, 0.0), (0.05, 0.02), (0.1, 0.1), (0.3, 0.1), (0.9, 0.02)]
    for n in (15, 30, 60, 200):
        print(f"\nDifference of hits, {n} questions: p <= 0.05 in percent, then the interval")
        row("better, worse", ["p <= 0.05", "percentile", "Student's t", "studentised", "atlas"])
        for better, worse in shares:
            chances = [better, worse, 1 - better - worse]
            counts = np.random.default_rng(4).multinomial(n, chances, trials)
            values = np.array([np.repeat([1.0, -1.0, 0.0], count) for count in counts])
            found = [of_hits(*count) for count in counts.tolist()]
            shown = 100 * float(np.mean([one.p_value <= 0.05 for one in found]))
            low, high = np.array([(one.low, one.high) for one in found]).T
            ends = [*tried(values).values(), (low, high)]
            true = better - worse
            row(f"{better}, {worse}", [f"{shown:.1f}", *(cell(pair, true) for pair in ends)])
        graded = np.random.default_rng(5).beta(8, 0.5, (2, trials, n))
        ends = [*tried(graded[1] - graded[0]).values()]
        ends.append(both_ends(mean_interval(one, (-1, 1)) for one in graded[1] - graded[0]))
        row("two of beta(8, 0.5)", ["", *(cell(pair, 0.0) for pair in ends)])


def detectable(trials: int) -> None:
    print("\nA true gap of the size called detectable is found (80 percent was asked for)")
    row("better, worse, questions", ["true gap", "mean detectable", "found"])
    for better, worse, n in ((0.42, 0.15, 60), (0.25, 0.0, 30), (0.27, 0.16, 240), (0.62, 0.1, 20)):
        chances = [better, worse, 1 - better - worse]
        counts = np.random.default_rng(6).multinomial(n, chances, trials).tolist()
        found = [of_hits(*count) for count in counts]
        size = np.mean([one.detectable for one in found if isinstance(one.detectable, float)])
        shown = 100 * float(np.mean([one.p_value <= 0.05 for one in found]))
        row(f"{better}, {worse}, {n}", [f"{better - worse:.3f}", f"{size:.3f}", f"{shown:.1f}"])


@cache
def of_table(table: tuple[int, ...]) -> tuple[float, float]:
    size = round(len(table) ** 0.5)
    pairs: list[tuple[Any, Any]] = []
    for place, count in enumerate(table):
        pairs += [divmod(place, size)] * count
    found = kappa(pairs)
    return (found.low, found.high) if isinstance(found, Interval) else (np.nan, np.nan)


def fleiss(tables: Array, n: int) -> Ends:
    """Kappa with the large-sample variance of Fleiss, Cohen and Everitt (1969)."""
    shares = tables / n
    a, b = shares.sum(2), shares.sum(1)
    same = np.einsum("tii->ti", shares)
    observed, expected = same.sum(1), (a * b).sum(1)
    value = (observed - expected) / (1 - expected)
    apart = shares * (1 - np.eye(shares.shape[1]))
    first = (same * (1 - (a + b) * (1 - value[:, None])) ** 2).sum(1)
    second = (1 - value) ** 2 * (apart * (b[:, :, None] + a[:, None, :]) ** 2).sum((1, 2))
    third = (value - expected * (1 - value)) ** 2
    variance = np.maximum(first + second - third, 0) / n / (1 - expected) ** 2
    return value - 1.96 * np.sqrt(variance), value + 1.96 * np.sqrt(variance)


def kappas(trials: int) -> None:
    for n in (30, 66, 234):
        print(f"\nKappa, {n} pairs (trials where it is defined)")
        row("label shares, true kappa", ["Fleiss et al.", "atlas"])
        for labels in ([0.5, 0.5], [0.1, 0.9], [0.2, 0.3, 0.5]):
            for true in (0.0, 0.6, 0.9):
                cells = true * np.diag(labels) + (1 - true) * np.outer(labels, labels)
                tables = np.random.default_rng(7).multinomial(n, cells.ravel(), trials)
                found = np.array([of_table(tuple(table)) for table in tables.tolist()])
                defined = np.isfinite(found[:, 0])
                square = tables[defined].reshape(-1, len(labels), len(labels)).astype(float)
                ours = (found[defined, 0], found[defined, 1])
                row(f"{labels}, {true}", [cell(fleiss(square, n), true), cell(ours, true)])


def pairs(random: np.random.Generator, size: int, strength: float, graded: bool) -> list[Any]:
    """Normal pairs of this correlation, the second rounded to five grades or not."""
    x, noise = random.standard_normal((2, size))
    y = strength * x + (1 - strength * strength) ** 0.5 * noise
    return [x.tolist(), (np.clip(np.round(y), -2, 2) if graded else y).tolist()]


def correlations(trials: int) -> None:
    kinds = [(strength, graded) for strength in (0.0, 0.5, 0.8, 0.95) for graded in (False, True)]
    truth = {}
    for kind in kinds:
        whole = rank_correlation(*pairs(np.random.default_rng(8), 300_000, *kind))
        truth[kind] = whole.value if isinstance(whole, Interval) else 0.0
    for n in (15, 30, 66):
        print(f"\nRank correlation, {n} pairs")
        row("normal correlation", ["atlas"])
        for kind in kinds:
            random = np.random.default_rng(9)
            found = [rank_correlation(*pairs(random, n, *kind)) for _ in range(trials)]
            ends = both_ends(one for one in found if isinstance(one, Interval))
            row(f"{kind[0]}{', five grades' if kind[1] else ''}", [cell(ends, truth[kind])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=2000, help="simulations a row (2000)")
    trials = parser.parse_args().trials
    began = time.perf_counter()
    print(f"{machine()}\n{trials} trials a row: percent that held the true value (mean width)")
    means("Scores within 0 to 1", SCORES, True, trials)
    means("Scores without bounds", UNBOUNDED, False, trials)
    differences(trials)
    detectable(trials)
    kappas(trials)
    correlations(trials)
    print(f"\n{time.perf_counter() - began:.0f} seconds")


if __name__ == "__main__":
    main()
