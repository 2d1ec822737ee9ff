"""Means, agreements and correlations with honest intervals."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from atlas.measure.statistics import (
    Estimate,
    Interval,
    Unscored,
    estimate,
    kappa,
    mean_interval,
    rank_correlation,
)

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
TRIALS = 400
ENOUGH = 366
"""Of 400 intervals that cover in 94%, fewer than 366 cover once in fifty runs of the test."""


def mean_of(result: Estimate) -> Interval:
    assert isinstance(result.mean, Interval)
    return result.mean


def reciprocal_ranks(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    ranks = random.geometric(0.9, n)
    return np.where(ranks <= 10, 1 / ranks, 0.0)


def mostly_perfect(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    return np.where(random.random(n) < 0.9, 1.0, random.beta(0.5, 3, n))


def mostly_nothing(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    return random.beta(0.3, 6, n)


def two_humps(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    return random.beta(0.5, 0.5, n)


def rates(random: np.random.Generator, n: int) -> NDArray[np.float64]:
    return (random.random(n) < 0.95).astype(float)


# ---- estimate -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (10, 10, 0.6915, 1.0),
        (0, 10, 0.0, 0.3085),
        (9, 10, 0.5550, 0.9975),
        (0, 1240, 0.0, 0.00297),
        (50, 100, 0.3983, 0.6017),
    ],
)
def test_rates_have_the_exact_interval(hits: int, n: int, low: float, high: float) -> None:
    mean = mean_of(estimate([1.0] * hits + [0.0] * (n - hits)))
    assert mean.value == pytest.approx(hits / n)
    assert (mean.low, mean.high) == pytest.approx((low, high), abs=5e-5)


def test_ten_of_ten_is_printed_as_it_should_be_read() -> None:
    assert str(estimate([1.0] * 10)) == "1.000 [0.69, 1.00]"


@pytest.mark.parametrize("n", [15, 60])
@pytest.mark.parametrize(
    "draw", [reciprocal_ranks, mostly_perfect, mostly_nothing, two_humps, rates]
)
def test_the_interval_covers_the_true_mean(draw: Draw, n: int) -> None:
    true = float(draw(np.random.default_rng(1), 1_000_000).mean())
    trials = draw(np.random.default_rng(2), TRIALS * n).reshape(TRIALS, n)
    found = [mean_interval(values, (0.0, 1.0)) for values in trials]
    assert sum(one.low <= true <= one.high for one in found) >= ENOUGH


def test_in_the_middle_the_interval_is_hardly_wider_than_percentiles() -> None:
    values = two_humps(np.random.default_rng(3), 200)
    drawn = np.random.default_rng(4).choice(values, (2000, 200)).mean(1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    found = mean_of(estimate(list(values)))
    assert high - low < found.high - found.low < 1.2 * (high - low)


def test_equal_values_do_not_make_a_certain_mean() -> None:
    whole = mean_of(estimate([1.0] * 15))
    half = mean_of(estimate([0.5] * 15))
    assert whole.low < 0.8
    assert whole.high == 1
    assert half.low < 0.45
    assert half.high > 0.55


def test_one_question_says_nothing_but_the_bounds() -> None:
    assert mean_of(estimate([0.4])) == Interval(value=0.4, low=0.0, high=1.0)
    assert mean_of(estimate([1.0])).low == pytest.approx(0.025)
    assert mean_of(estimate([0.0])).high == pytest.approx(0.975)


def test_unscored_questions_are_counted_and_not_averaged_in() -> None:
    result = estimate([1.0, Unscored("no relevant block"), 0.5], total=4, failed=1)
    values = result.as_json()
    assert (values["mean"], values["scored"], values["total"], values["failed"]) == (0.75, 2, 4, 1)
    assert 0 < values["low"] < 0.75 < values["high"] < 1
    assert "unscored" not in values
    assert result.counted == "scored 2 of 4, failed 1"


@pytest.mark.parametrize("values", [[], [Unscored("no relevant block")]])
def test_with_nothing_scored_the_mean_is_missing_and_says_why(values: list[Unscored]) -> None:
    result = estimate(values)
    assert isinstance(result.mean, Unscored)
    assert result.as_json() == {
        "mean": None,
        "low": None,
        "high": None,
        "scored": 0,
        "total": len(values),
        "failed": 0,
        "unscored": result.mean.reason,
    }
    assert str(result) == f"unscored ({result.mean.reason})"


def test_the_order_of_questions_and_repeating_change_nothing() -> None:
    values = [i / 37 for i in range(37)]
    shuffled = random.Random(5).sample(values, len(values))
    assert estimate(values) == estimate(shuffled) == estimate(values)


def test_both_ends_use_their_own_bound() -> None:
    values = np.array([0.1, 0.4, 0.6, 0.9, 0.9])
    found = mean_interval(values, (0.0, 1.0))
    turned = mean_interval(-values, (-1.0, 0.0))
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low), abs=0.01)
    wide = mean_interval(values, (-1.0, 2.0))
    assert wide.low < found.low - 0.05
    assert wide.high > found.high + 0.05


def test_many_questions_are_resampled_by_the_same_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [i / 60 for i in range(61)]
    kept = mean_of(estimate(values))
    monkeypatch.setattr("atlas.measure.statistics._KEPT_QUESTIONS", 0)
    drawn = mean_of(estimate(values))
    assert (drawn.low, drawn.high) == pytest.approx((kept.low, kept.high), abs=1e-12)


def test_measures_without_bounds_are_covered_too() -> None:
    trials = np.random.default_rng(6).lognormal(6, 0.7, (TRIALS, 40))
    true = math.exp(6 + 0.7**2 / 2)
    means = [mean_of(estimate(list(values))) for values in trials]
    assert sum(one.low <= true <= one.high for one in means) >= ENOUGH
    assert min(one.low for one in means) >= 0


def test_without_bounds_equal_values_widen_and_one_value_bounds_nothing() -> None:
    same = mean_of(estimate([2000.0] * 30))
    assert 1500 < same.low < 1920
    assert 2080 < same.high < 2500
    assert mean_of(estimate([0.0, 1.0, 3000.0])).low == 0
    assert str(same) == f"2000 [{same.low:.0f}, {same.high:.0f}]"
    one = estimate([2000.0])
    assert str(one) == "2000 [no interval]"
    assert (one.as_json()["low"], one.as_json()["high"]) == (None, None)


def test_numbers_that_are_none_and_counts_that_contradict_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        estimate([0.5, math.nan])
    with pytest.raises(ValueError, match="finite"):
        estimate([0.5, math.inf])
    with pytest.raises(ValueError, match="2 scored and 1 failed of 2"):
        estimate([0.5, 1.0], failed=1)
    with pytest.raises(ValueError, match="outside"):
        mean_interval(np.array([0.5, 1.5]), (0.0, 1.0))


# ---- kappa ----------------------------------------------------------------------------------


def ratings(both: int, first: int, second: int, neither: int) -> list[tuple[str, str]]:
    return (
        [("yes", "yes")] * both
        + [("yes", "no")] * first
        + [("no", "yes")] * second
        + [("no", "no")] * neither
    )


def test_kappa_is_that_of_a_hand_computed_table() -> None:
    found = kappa(ratings(20, 5, 10, 15))
    assert isinstance(found, Interval)
    assert found.value == pytest.approx((0.7 - 0.5) / (1 - 0.5))
    assert found.low < 0.2 < 0.6 < found.high


def test_kappa_takes_any_labels_in_any_number() -> None:
    pairs: list[tuple[object, object]] = [(1, 1), ("a", "a"), (None, None), (1, "a")] * 10
    found = kappa(pairs)
    assert isinstance(found, Interval)
    expected = (20 * 10 + 10 * 20 + 10 * 10) / 40**2
    assert found.value == pytest.approx((0.75 - expected) / (1 - expected))


def test_kappa_of_full_agreement_is_not_certain() -> None:
    found = kappa(ratings(10, 0, 0, 20))
    assert isinstance(found, Interval)
    assert found.value == found.high == 1
    assert 0.5 < found.low < 0.9


def test_kappa_of_a_constant_judge_is_zero() -> None:
    found = kappa([("yes", "yes")] * 7 + [("no", "yes")] * 3)
    assert isinstance(found, Interval)
    assert found.value == pytest.approx(0)
    assert found.low < 0 < found.high


def test_kappa_is_unscored_where_it_is_not_defined() -> None:
    assert isinstance(kappa([]), Unscored)
    assert kappa(ratings(9, 0, 0, 0)) == Unscored(
        "both raters gave one and the same label throughout"
    )


@pytest.mark.parametrize(("share", "true"), [(0.5, 0.9), (0.1, 0.0)])
def test_the_interval_of_kappa_covers(share: float, true: float) -> None:
    shares = np.array([share, 1 - share])
    cells = true * np.diag(shares) + (1 - true) * np.outer(shares, shares)
    tables = np.random.default_rng(7).multinomial(30, cells.ravel(), TRIALS).tolist()
    found = {table: kappa(ratings(*table)) for table in set(map(tuple, tables))}
    scored = [one for table in tables if isinstance(one := found[tuple(table)], Interval)]
    missed = sum(not one.low <= true <= one.high for one in scored)
    assert len(scored) > 0.9 * TRIALS
    assert missed <= TRIALS - ENOUGH


# ---- rank correlation -----------------------------------------------------------------------


def test_ranks_that_tie_share_their_mean_rank() -> None:
    found = rank_correlation([1, 2, 2, 4, 5], [10, 30, 20, 20, 50])
    assert isinstance(found, Interval)
    a, b = np.array([1, 2.5, 2.5, 4, 5]), np.array([1, 4, 2.5, 2.5, 5])
    assert found.value == pytest.approx(np.corrcoef(a, b)[0, 1])


def test_rank_correlation_sees_order_alone() -> None:
    x = [0.1, 0.4, 0.2, 0.9, 0.5, 0.7]
    found = rank_correlation(x, [math.exp(9 * value) for value in x])
    turned = rank_correlation(x, [-value for value in x])
    assert isinstance(found, Interval)
    assert isinstance(turned, Interval)
    assert (found.value, turned.value) == (1, -1)
    assert (found.high, turned.low) == (1, -1)
    assert found.low == pytest.approx(-turned.high)
    assert found.low < 0.8


def test_the_interval_of_a_rank_correlation_is_that_of_its_formula() -> None:
    found = rank_correlation([1, 2, 3, 4, 5], [2, 1, 4, 3, 5])
    assert isinstance(found, Interval)
    assert (found.value, found.low, found.high) == pytest.approx((0.8, -0.457, 0.991), abs=5e-4)


def test_rank_correlation_covers() -> None:
    true = 6 / math.pi * math.asin(0.7 / 2)
    random = np.random.default_rng(8)
    x, noise = random.standard_normal((2, TRIALS, 30))
    found = [rank_correlation(a, b) for a, b in zip(x, 0.7 * x + 0.51**0.5 * noise, strict=True)]
    covered = sum(isinstance(one, Interval) and one.low <= true <= one.high for one in found)
    assert covered >= ENOUGH


def test_rank_correlation_is_unscored_where_it_is_not_defined() -> None:
    assert isinstance(rank_correlation([1, 2, 3], [1, 2, 3]), Unscored)
    assert isinstance(rank_correlation([1, 1, 1, 1], [1, 2, 3, 4]), Unscored)
    with pytest.raises(ValueError, match="not pairs"):
        rank_correlation([1, 2], [1])
    with pytest.raises(ValueError, match="finite"):
        rank_correlation([1, 2, 3, math.nan], [1, 2, 3, 4])
