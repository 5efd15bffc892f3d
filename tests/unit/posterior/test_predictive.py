"""Predictive laws, mixtures of normals and of Student's t: scipy, brute force and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from mercer.errors import DataError, UsageError
from mercer.posterior.diagnostics import effective_size, flat_weights, mean_sd, quantiles
from mercer.posterior.draws import Draws
from mercer.posterior.predictive import NormalMixture, one_value_per_row, search_quantiles
from support.statistics import dkw_distance, dkw_limit


def some_laws(seed: int = 0, m: int = 40, n_components: int = 7) -> NormalMixture:
    rng = np.random.default_rng(seed)
    locations = rng.normal(size=(m, 1)) * 100 + rng.standard_cauchy(size=(m, n_components))
    return NormalMixture(locations, rng.uniform(0.01, 2.0, size=(m, n_components)))


def test_one_component_is_a_normal() -> None:
    law = NormalMixture(np.array([[3.0], [-2.0]]), np.array([0.5]))
    exact = stats.norm([3.0, -2.0], 0.5)
    y = np.array([3.4, -4.0])
    np.testing.assert_array_equal(law.mean, [3.0, -2.0])
    np.testing.assert_array_equal(law.std, 0.5)
    np.testing.assert_allclose(law.log_density(y), exact.logpdf(y), rtol=1e-13)
    np.testing.assert_allclose(law.cdf(y), exact.cdf(y), rtol=1e-13)
    for level in (1e-6, 0.5, 0.9, 1 - 1e-9):
        np.testing.assert_allclose(law.interval(level), exact.interval(level), rtol=1e-8)


def test_density_distribution_and_moments_are_those_of_the_components() -> None:
    law = some_laws()
    y = law.mean + np.linspace(-3, 3, len(law.mean))
    parts = stats.norm(law.locations, law.scales)
    logs = special.logsumexp(parts.logpdf(y[:, None]), axis=1) - math.log(7)
    np.testing.assert_allclose(law.log_density(y), logs)
    np.testing.assert_allclose(law.cdf(y), parts.cdf(y[:, None]).mean(axis=1))
    second = (parts.var() + parts.mean() ** 2).mean(axis=1)
    np.testing.assert_allclose(law.std**2, second - law.mean**2, rtol=1e-6)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.999999])
def test_ends_of_intervals_are_the_roots_that_brent_finds(level: float) -> None:
    law = some_laws()
    lower, upper = law.interval(level)
    for i in range(len(law.mean)):
        row = NormalMixture(law.locations[i : i + 1], law.scales[i : i + 1])
        for end, p in ((lower[i], (1 - level) / 2), (upper[i], (1 + level) / 2)):
            root = optimize.brentq(
                lambda x, p=p, row=row: float(row.cdf([x])[0]) - p, -1e6, 1e6, xtol=1e-12
            )
            assert abs(end - root) < 1e-8 * law.std[i]


def test_quantiles_between_far_components_are_found() -> None:
    """Where the distribution function is flat, Newton leads nowhere: the bracket is halved."""
    locations = np.array([[0.0, 1e6], [0.0, 1e6], [-1e3, 0.0]])
    law = NormalMixture(locations, np.array([1.0, 1e-3]))
    lower, upper = law.interval(0.5)  # quarters: the medians of the two components
    np.testing.assert_allclose(lower, [0.0, 0.0, -1e3], atol=1e-8 * law.std.max())
    np.testing.assert_allclose(upper, [1e6, 1e6, 0.0], atol=1e-8 * law.std.max())


def test_few_evaluations_suffice(rows_evaluated: list[int]) -> None:
    rng = np.random.default_rng(3)
    law = NormalMixture(rng.normal(size=(500, 1)) + 0.5 * rng.normal(size=(500, 50)), np.ones(50))
    law.interval(0.9)
    assert 0 < sum(rows_evaluated) < 2 * 500 * 6


def test_units_and_offsets_only_shift_and_scale() -> None:
    law = some_laws()
    other = NormalMixture(1e8 + 1e-3 * law.locations, 1e-3 * law.scales)
    for a, b in zip(law.interval(0.9), other.interval(0.9), strict=True):
        np.testing.assert_allclose((b - 1e8) / 1e-3, a, atol=1e-4)  # 1e8 keeps 8 digits of these
    huge = NormalMixture(1e200 * law.locations, 1e200 * law.scales)
    np.testing.assert_allclose(huge.std, 1e200 * law.std)
    np.testing.assert_allclose(huge.interval(0.9), 1e200 * np.array(law.interval(0.9)))


def test_log_density_is_finite_for_finite_values() -> None:
    law = NormalMixture(np.array([[0.0, 1.0], [-1.7e308, 1.7e308]]), np.array([1e-300, 1.0]))
    y = np.array([1.7e308, -1.7e308])
    assert np.isfinite(law.log_density(y)).all()
    assert np.isfinite(law.cdf(y)).all()


def test_a_centre_is_what_is_reported() -> None:
    law = some_laws()
    centre = law.mean + 1.0
    moved = NormalMixture(law.locations, law.scales, centre)
    np.testing.assert_array_equal(moved.mean, centre)
    np.testing.assert_array_equal(moved.std, law.std)
    np.testing.assert_array_equal(moved.interval(0.9), law.interval(0.9))


def test_samples_have_the_law_and_share_their_component() -> None:
    """False alarm 1e-6 over both rows; the mutant below, noise left out, must fail."""
    law = NormalMixture(np.array([[-1.0, 2.0], [5.0, 0.0]]), np.array([0.5, 1.5]))
    n = 20_000
    draws = law.sample(np.random.default_rng(5), n)
    assert draws.shape == (n, 2)
    limit = dkw_limit(n, 2)
    for i in range(2):
        row = NormalMixture(np.tile(law.locations[i], (n, 1)), law.scales)
        assert dkw_distance(draws[:, i], row.cdf) < limit
        without_noise = law.locations[i][np.random.default_rng(5).integers(2, size=n)]
        assert dkw_distance(without_noise, row.cdf) > limit
    assert np.corrcoef(draws.T)[0, 1] < -0.5  # the first component is low here and high there


def test_what_is_no_law_is_refused() -> None:
    one = np.ones((2, 3))
    for locations, scales in (
        (np.ones(3), np.ones(3)), (one, np.ones(2)), (one, np.zeros(3)), (one * np.nan, np.ones(3)),
        (np.ones((2, 0)), np.ones(0)),
    ):  # fmt: skip
        with pytest.raises(DataError):
            NormalMixture(locations, scales)
    with pytest.raises(DataError, match="centre"):
        NormalMixture(one, np.ones(3), np.ones(3))
    law = NormalMixture(one, np.ones(3))
    for y in ([1.0], [1.0, math.nan], [1.0, math.inf]):
        with pytest.raises(DataError, match="one finite value"):
            law.log_density(y)
    for level in (0.0, 1.0, math.nan, 90):
        with pytest.raises(UsageError, match="level"):
            law.interval(level)


# Roots of many rows at once: smooth, flat and broken gaps.


ROOTS = np.array([-3.0, 0.0, 0.5, 4.0])


def search(gap_and_slope, **options) -> np.ndarray:
    ends = np.full(len(ROOTS), -10.0), np.full(len(ROOTS), 10.0)
    start = np.full(len(ROOTS), 9.0)
    found = search_quantiles(start, *ends, gap_and_slope, 1e-9, **options)
    assert (start == 9.0).all()  # arguments are left alone
    assert (ends[0] == -10.0).all()
    assert (ends[1] == 10.0).all()
    return found


def cube(x, rows):
    return (x - ROOTS[rows]) ** 3, 3.0 * (x - ROOTS[rows]) ** 2


def stairs(x, rows):
    return np.sign(x - ROOTS[rows]), np.zeros(len(x))


def endless(x, rows):
    with np.errstate(divide="ignore"):
        gap = np.log(np.where(x > ROOTS[rows], np.inf, 0.0))
    return gap, np.full(len(x), np.nan)


def misleading(x, rows):
    return x - ROOTS[rows], np.full(len(x), 1e9)


@pytest.mark.parametrize("is_patient", [False, True])
@pytest.mark.parametrize("gap_and_slope", [cube, stairs, endless, misleading])
def test_roots_are_found_whatever_newton_does(gap_and_slope, is_patient: bool) -> None:
    found = search(gap_and_slope, is_patient=is_patient)
    np.testing.assert_allclose(found, ROOTS, rtol=0.0, atol=4e-9)


def test_a_row_has_a_tolerance_of_its_own_and_found_rows_are_left_alone() -> None:
    asked: list[list[int]] = []

    def gap_and_slope(x, rows):
        asked.append(rows.tolist())
        return stairs(x, rows)

    tolerance = np.array([20.0, 1e-3, 1e-6, 1e-9])
    ends = np.full(4, -10.0), np.full(4, 10.0)
    found = search_quantiles(np.full(4, 9.0), *ends, gap_and_slope, tolerance)
    assert found[0] == 9.0
    assert (np.abs(found - ROOTS)[1:] < 4.0 * tolerance[1:]).all()
    assert asked[0] == [1, 2, 3]
    assert asked[-1] == [3]


def test_a_step_that_meets_the_root_before_a_halving_costs_nothing_with_patience() -> None:
    """Newton leads to the root to the last digit in the third step; the fourth is the middle."""

    def evaluations(is_patient: bool) -> int:
        count = 0

        def late(x, rows):
            nonlocal count
            count += 1
            slope = 1.2 if count < 3 else 1.0
            return x - ROOTS[rows], np.full(len(x), slope)

        search(late, is_patient=is_patient)
        return count

    assert evaluations(is_patient=True) <= 6
    assert evaluations(is_patient=False) > 20


# Shapes and numbers that are no mixtures; the laws' own tests refuse them through the laws.


def test_values_become_an_array_of_floats() -> None:
    values = one_value_per_row([1, 2], 2)
    assert values.dtype == np.float64
    np.testing.assert_array_equal(values, [1.0, 2.0])
    for y in ([1.0], [[1.0, 2.0]], [1.0, np.nan], [np.inf, 0.0]):
        with pytest.raises(DataError, match="one finite value for each of 2 rows"):
            one_value_per_row(y, 2)


def test_components_need_a_place_and_a_scale() -> None:
    NormalMixture(np.zeros((2, 3)), np.ones(3))
    NormalMixture(np.zeros((2, 3)), np.ones((2, 3)), np.zeros(2))
    NormalMixture(np.zeros((0, 3)), np.ones(3))
    with pytest.raises(DataError, match="centre"):
        NormalMixture(np.zeros((2, 3)), np.ones(3), np.zeros(3))
    with pytest.raises(DataError, match="positive"):
        NormalMixture(np.zeros((2, 3)), np.array([1.0, 0.0, 1.0]))


# Means, spreads and quantiles, weighted or not.


def weighted(log_weights: np.ndarray) -> Draws:
    return Draws({"a": np.zeros(log_weights.shape)}, {}, {}, (), log_weights=log_weights)


def test_weights_are_normalised_and_may_be_zero() -> None:
    draws = weighted(np.array([[1000.0, 1000.0 + np.log(3.0), -np.inf]]))
    np.testing.assert_allclose(flat_weights(draws), [0.25, 0.75, 0.0])


def test_no_weights() -> None:
    assert flat_weights(Draws({"a": np.zeros((1, 2))}, {}, {}, ())) is None


def test_effective_size_adds_over_populations() -> None:
    assert effective_size(weighted(np.zeros((2, 5)))) == pytest.approx(10.0)
    one = np.where(np.arange(5) == 0, 0.0, -np.inf)
    assert effective_size(weighted(np.stack([one, np.zeros(5)]))) == pytest.approx(6.0)


def test_mean_sd_agree_with_numpy() -> None:
    x = np.random.default_rng(2).normal(3.0, 2.0, size=(50, 4))
    mean, sd = mean_sd(x, None)
    np.testing.assert_allclose(mean, x.mean(axis=0))
    np.testing.assert_allclose(sd, x.std(axis=0, ddof=1))


def test_weighted_mean_sd() -> None:
    mean, sd = mean_sd(np.array([[0.0], [4.0]]), np.array([0.75, 0.25]))
    assert mean[0] == pytest.approx(1.0)
    assert sd[0] == pytest.approx(np.sqrt(3.0))


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_extreme_scales(scale: float) -> None:
    mean, sd = mean_sd(scale * np.array([[1.0], [3.0]]), None)
    np.testing.assert_allclose([mean[0] / scale, sd[0] / scale], [2.0, np.sqrt(2.0)])


def test_one_draw_has_no_spread() -> None:
    assert mean_sd(np.array([[7.0]]), None)[1][0] == 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite_is_nan_for_that_quantity_only(bad: float) -> None:
    mean, sd = mean_sd(np.array([[1.0, bad], [2.0, 0.0]]), None)
    assert mean[0] == 1.5
    assert np.isnan([mean[1], sd[1]]).all()


def test_quantiles() -> None:
    x = np.arange(101.0)
    assert quantiles(x, None, (0.05, 0.95)) == (5.0, 95.0)
    assert quantiles(np.array([3.0, 1.0, 2.0]), np.array([0.0, 0.5, 0.5]), (0.05, 0.95)) == (1, 2)
    assert quantiles(np.array([1.0, 2.0]), np.array([0.5, 0.5 - 1e-12]), (1.0,)) == (2.0,)
