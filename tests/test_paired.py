"""Differences of two runs: interval, p-value, and what the questions could show."""

from __future__ import annotations

import math
from functools import cache
from math import comb

import numpy as np
import pytest

from atlas.measure.paired import Difference, difference, holm
from atlas.measure.statistics import Unscored

TRIALS = 400
ENOUGH = 366
"""Of 400 intervals that cover in 94%, fewer than 366 cover once in fifty runs of the test."""


def outcomes(better: int, worse: int, same: int) -> tuple[list[float], list[float]]:
    """Hits of two runs: the second is better on some questions and worse on others."""
    first = [0.0] * better + [1.0] * worse + [1.0] * same
    second = [1.0] * better + [0.0] * worse + [1.0] * same
    return first, second


@cache
def of(better: int, worse: int, same: int) -> Difference:
    found = difference(*outcomes(better, worse, same))
    assert isinstance(found, Difference)
    return found


def sign_test(better: int, worse: int) -> float:
    n, k = better + worse, min(better, worse)
    return min(1.0, 2 * sum(comb(n, i) for i in range(k + 1)) / 2**n)


def test_the_difference_is_the_second_run_minus_the_first() -> None:
    found = difference([0.5, 1.0, 0.0], [1.0, 1.0, 0.25])
    assert isinstance(found, Difference)
    assert found.value == pytest.approx(0.25)
    assert found.n == 3


def test_questions_unscored_in_either_run_are_left_out() -> None:
    gone = Unscored("no relevant block")
    found = difference([0.5, gone, 0.0, 1.0], [1.0, 1.0, gone, 1.0])
    assert isinstance(found, Difference)
    assert (found.value, found.n) == (0.25, 2)
    assert difference([gone], [1.0]) == Unscored("no question was scored in both runs")
    assert isinstance(difference([], []), Unscored)


@pytest.mark.parametrize(("better", "worse"), [(6, 0), (5, 0), (0, 6), (8, 3), (4, 4), (13, 3)])
def test_the_p_value_of_hits_is_that_of_the_exact_sign_test(better: int, worse: int) -> None:
    assert of(better, worse, 10).p_value == pytest.approx(sign_test(better, worse))


def test_many_differences_are_flipped_at_random_to_the_same_end() -> None:
    assert of(20, 9, 10).p_value == pytest.approx(sign_test(20, 9), abs=0.006)
    assert of(60, 0, 0).p_value == pytest.approx(1 / 10_001)


def test_a_p_value_weighs_how_much_each_question_changed() -> None:
    found = difference([0.5, 0.5, 0.5], [0.8, 0.7, 0.4])
    assert isinstance(found, Difference)
    assert found.p_value == pytest.approx(4 / 8)
    assert sign_test(2, 1) == 1


def test_the_p_value_is_uniform_where_nothing_differs() -> None:
    random = np.random.default_rng(1)
    a, b = random.beta(2, 1, (2, TRIALS, 20)).round(2)
    found = [difference(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    below = sum(isinstance(one, Difference) and one.p_value <= 0.05 for one in found)
    assert 6 <= below <= 34


@pytest.mark.parametrize(("better", "worse"), [(5, 0), (6, 0), (7, 1), (9, 1), (10, 3), (12, 3)])
def test_interval_and_p_value_agree_about_zero(better: int, worse: int) -> None:
    found = of(better, worse, 12)
    assert (found.low > 0) == (found.p_value <= 0.05)


def test_equal_runs_leave_what_the_questions_cannot_exclude() -> None:
    few, many = of(0, 0, 15), of(0, 0, 300)
    assert (few.value, few.p_value) == (0, 1)
    assert (few.low, few.high) == pytest.approx((-0.218, 0.218), abs=0.01)
    assert (many.low, many.high) == pytest.approx((-0.0122, 0.0122), abs=0.001)


@pytest.mark.parametrize(
    ("n", "better", "worse"), [(15, 0.05, 0.0), (15, 0.1, 0.1), (15, 0.4, 0.1), (60, 0.05, 0.02)]
)
def test_the_interval_covers_when_outcomes_mostly_agree(
    n: int, better: float, worse: float
) -> None:
    shares = [better, worse, 1 - better - worse]
    drawn = np.random.default_rng(2).multinomial(n, shares, TRIALS).tolist()
    found = [of(*counts) for counts in drawn]
    assert sum(one.low <= better - worse <= one.high for one in found) >= ENOUGH


def test_a_measure_without_bounds_has_an_interval_in_its_own_unit() -> None:
    random = np.random.default_rng(3)
    before = random.lognormal(6, 0.5, 40)
    found = difference(list(before), list(before + 30 + 5 * random.standard_normal(40)))
    assert isinstance(found, Difference)
    assert 25 < found.low < found.value < found.high < 35
    assert found.p_value < 0.001


def test_without_bounds_and_without_change_nothing_is_bounded() -> None:
    found = difference([500.0] * 8, [500.0] * 8)
    assert isinstance(found, Difference)
    assert (found.value, found.p_value, found.low, found.high) == (0, 1, -math.inf, math.inf)
    values = found.as_json()
    assert (values["low"], values["high"], values["detectable"]) == (None, None, None)
    assert "no bounds" in values["unscored"]


def test_more_questions_and_less_spread_make_smaller_gaps_detectable() -> None:
    gaps = [of(n // 5, n // 5, n - 2 * (n // 5)).detectable for n in (15, 60, 240)]
    assert all(isinstance(gap, float) for gap in gaps)
    assert gaps == sorted(gaps, reverse=True)
    assert of(2, 2, 56).detectable < of(12, 12, 36).detectable


def test_the_detectable_gap_is_found_four_times_in_five() -> None:
    n, better, worse = 60, 0.42, 0.15
    random = np.random.default_rng(4)
    counts = random.multinomial(n, [better, worse, 1 - better - worse], TRIALS).tolist()
    found = [of(*row) for row in counts]
    gap = np.mean([one.detectable for one in found])
    assert gap == pytest.approx(better - worse, abs=0.02)
    assert 0.7 < np.mean([one.p_value <= 0.05 for one in found]) < 0.9


def test_without_change_the_detectable_gap_follows_from_the_number_of_questions() -> None:
    gap = of(0, 0, 30).detectable
    assert isinstance(gap, float)
    drawn = np.random.default_rng(5).binomial(30, gap, 20_000)
    assert np.mean(drawn >= 6) == pytest.approx(0.8, abs=0.01)
    assert sign_test(6, 0) < 0.05 < sign_test(5, 0)


def test_five_questions_can_show_nothing() -> None:
    found = of(5, 0, 0)
    assert isinstance(found.detectable, Unscored)
    assert found.as_json()["detectable"] is None
    assert "6 could" in found.as_json()["unscored"]


def test_order_and_repeating_change_nothing() -> None:
    first, second = outcomes(14, 9, 20)
    assert difference(first, second) == difference(first[::-1], second[::-1]) == of(14, 9, 20)


def test_lists_of_unequal_length_and_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        difference([1.0], [1.0, 0.0][:0])
    with pytest.raises(ValueError, match="finite"):
        difference([1.0], [math.nan])


def test_holm_corrects_in_the_order_given() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.5, 0.9]) == (1.0, 1.0)
    assert holm([]) == ()
    with pytest.raises(ValueError, match="p-value"):
        holm([0.5, 1.5])
