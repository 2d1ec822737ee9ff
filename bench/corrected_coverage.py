"""Do the 95% intervals of `atlas.measure.corrected` hold the true share 95 times in a hundred?

    python bench/corrected_coverage.py [--trials N]

Draws runs again and again: answers that are right with a known share, a judge of known sensitivity
and specificity that leaves none or a fifth of them unscored, and labels on a random draw. Prints in
how many percent of the trials each interval held the true share, with the mean width in brackets.
The last column is what atlas reports. Beside it: the labels alone (exact), the normal interval of
prediction-powered inference (weight 1, an unscored answer counted as 0.5), and the same with the
weight that atlas uses. Below: judges of other kinds than those on the grid.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from surroundings import machine

from atlas.measure.corrected import REST, RIGHT, WRONG, corrected_share
from atlas.measure.statistics import mean_interval

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Ends = NDArray[np.float64]

LABELS, ANSWERS = (30, 60, 100, 200), (100, 209, 1000)
SHARES = (0.02, 0.1, 0.3, 0.5, 0.8, 0.95)
JUDGES = ((1.0, 1.0), (0.95, 0.9), (0.8, 0.6), (0.5, 0.5), (0.99, 0.3))
DUCKED = (0.0, 0.2)
METHODS = ("labels alone", "normal, 1", "normal, tuned", "atlas")
SCORES = np.array([0.0, 0.5, 1.0])
SEED = 11
GRADED = np.linspace(0, 1, 21)


def judge(sensitivity: float, specificity: float, ducked: float) -> Array:
    """Chances of the scores 0, 0.5 (unscored) and 1, for wrong answers and for right ones."""
    says = np.array([[specificity, 0, 1 - specificity], [1 - sensitivity, 0, sensitivity]])
    return (1 - ducked) * says + ducked * np.array([0, 1, 0])


def graded(wrong: tuple[float, float], right: tuple[float, float]) -> Array:
    """Chances of 21 scores that follow a beta distribution each for wrong and right answers."""
    middles = np.clip(GRADED, 0.01, 0.99)
    dense = [middles ** (a - 1) * (1 - middles) ** (b - 1) for a, b in (wrong, right)]
    return np.array([row / row.sum() for row in dense])


OTHERS: dict[str, tuple[Array, Array]] = {
    "ducks half of the wrong answers": (
        SCORES,
        np.array([[0.4, 0.5, 0.1], [0.05, 0.0, 0.95]]),
    ),
    "ducks half of the right answers": (
        SCORES,
        np.array([[0.9, 0.0, 0.1], [0.05, 0.5, 0.45]]),
    ),
    "says the opposite": (SCORES, judge(0.2, 0.2, 0)),
    "always says right": (SCORES, judge(1, 0, 0)),
    "graded, telling": (GRADED, graded((1, 4), (5, 1))),
    "graded, weak": (GRADED, graded((3, 3), (4, 3))),
    "graded, within 0.4 to 0.6": (GRADED, graded((40, 50), (50, 40))),
}


def runs(
    random: np.random.Generator, trials: int, labels: int, answers: int, share: float, says: Array
) -> Counts:
    """Counts of shape (trials, scores, 3), as `corrected_share` takes them."""
    chances = says * np.array([[1 - share], [share]])
    drawn = random.multinomial(labels, chances.ravel(), trials).reshape(trials, *chances.shape)
    rest = random.multinomial(answers - labels, chances.sum(0), trials)
    counts = np.empty((trials, says.shape[1], 3), np.int64)
    counts[..., WRONG], counts[..., RIGHT], counts[..., REST] = drawn[:, 0], drawn[:, 1], rest
    return counts


def normal(counts: Counts, scores: Array, weights: Array) -> Ends:
    """The interval of Angelopoulos et al. (2023) by the central limit theorem."""
    labelled, rest = counts[..., WRONG] + counts[..., RIGHT], counts[..., REST]
    n, others = labelled.sum(1), rest.sum(1)
    part = weights * others / (n + others)
    left = np.stack([0 - part[:, None] * scores, 1 - part[:, None] * scores], -1)
    shares = counts[..., :REST] / n[:, None, None]
    centre = (left * shares).sum((1, 2))
    variance = (((left - centre[:, None, None]) ** 2) * shares).sum((1, 2)) / np.maximum(n - 1, 1)
    mean = rest @ scores / np.maximum(others, 1)
    spread = (rest * (scores - mean[:, None]) ** 2).sum(1) / np.maximum(others, 1)
    margin = 1.96 * np.sqrt(variance + part**2 * spread / np.maximum(others - 1, 1))
    value = centre + part * mean
    return np.stack([value - margin, value + margin], -1)


def intervals(counts: Counts, scores: Array) -> Ends:
    """Ends of every method, of shape (methods, trials, 2)."""
    known: dict[bytes, tuple[float, ...]] = {}
    found = []
    for table in counts:
        key = table.tobytes()
        if key not in known:
            seen = table.any(1)
            ours, weight = corrected_share(scores[seen], table[seen])
            wrong, right = table[:, WRONG].sum(), table[:, RIGHT].sum()
            alone = mean_interval(np.repeat([0.0, 1.0], [wrong, right]), (0, 1))
            known[key] = (alone.low, alone.high, ours.low, ours.high, weight)
        found.append(known[key])
    rows = np.array(found)
    always, tuned = np.ones(len(counts)), rows[:, 4]
    both = [normal(counts, scores, always), normal(counts, scores, tuned)]
    return np.stack([rows[:, :2], *both, rows[:, 2:4]])


def row(label: str, ends: Ends, true: float) -> tuple[Array, Array]:
    """Print one combination; returns how often it was held and how wide the intervals are."""
    low, high = ends[..., 0], ends[..., 1]
    held = 100 * ((low <= true + 1e-9) & (true - 1e-9 <= high)).mean(1)
    width = (high - low).mean(1)
    cells = "".join(f"{h:10.1f} ({w:.3f})" for h, w in zip(held, width, strict=True))
    print(f"  {label:<34}{cells}", flush=True)
    return held, width


def head(title: str, first: str) -> None:
    print(f"\n{title}\n  {first:<34}" + "".join(f"{name:>18}" for name in METHODS))


def summary(name: str, rows: Sequence[tuple[Array, Array]]) -> None:
    held, width = np.array([one for one, _ in rows]), np.array([one for _, one in rows])
    print(f"\n{name}: {len(rows)} combinations")
    print("                 least held   below 94   width to that of the labels alone: least, mean,"
          " most")  # fmt: skip
    for place, method in enumerate(METHODS):
        ratio = width[:, place] / width[:, 0]
        print(
            f"  {method:<15}{held[:, place].min():10.1f}{int((held[:, place] < 94).sum()):11}"
            f"{ratio.min():12.2f}{ratio.mean():7.2f}{ratio.max():7.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=2000, help="simulations a row (2000)")
    trials = parser.parse_args().trials
    began = time.perf_counter()
    print(f"{machine()}\n{trials} trials a row: percent that held the true share (mean width)")
    numbers = itertools.count()
    rows = []
    for labels, answers in itertools.product(LABELS, ANSWERS):
        if labels > answers:
            continue
        head(f"{labels} labels of {answers} answers", "true share, judge, unscored")
        for share, quality, ducked in itertools.product(SHARES, JUDGES, DUCKED):
            random = np.random.default_rng([SEED, next(numbers)])
            counts = runs(random, trials, labels, answers, share, judge(*quality, ducked))
            label = f"{share:<6}{quality[0]:.2f}/{quality[1]:.2f}  {ducked or ''}"
            rows.append(row(label, intervals(counts, SCORES), share))
    grid, rows = rows, []
    for labels, answers in ((30, 209), (60, 209), (100, 1000)):
        head(f"{labels} labels of {answers} answers, other judges", "true share, judge")
        for share, (name, (scores, says)) in itertools.product((0.05, 0.4, 0.9), OTHERS.items()):
            random = np.random.default_rng([SEED, next(numbers)])
            counts = runs(random, trials, labels, answers, share, says)
            rows.append(row(f"{share:<6}{name}", intervals(counts, scores), share))
    summary("The grid", grid)
    summary("Other judges", rows)
    error = 100 * math.sqrt(0.95 * 0.05 / trials)
    print(f"\nA share held of 95 is known to {error:.1f} at {trials} trials (standard error)")
    print(f"{time.perf_counter() - began:.0f} seconds")


if __name__ == "__main__":
    main()
