"""Mixtures of Student's t: against scipy, at the edges of what numbers hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from mercer.posterior import predictive
from mercer.posterior.predictive import student_cdf, student_log_density, student_quantiles


def some_mixture(m: int = 30, n: int = 8, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    locations = 5.0 * rng.normal(size=(m, 1)) + rng.standard_cauchy(size=(m, n))
    return locations, rng.uniform(0.01, 2.0, size=(m, n)), rng.dirichlet(np.ones(n))


@pytest.mark.parametrize("df", [2.5, 3.0, 20.0, 30.0, 99.0, 101.0, 1e6, math.inf, "each its own"])
def test_density_distribution_and_quantiles_are_those_of_the_components(df) -> None:
    locations, scales, weights = some_mixture()
    df = np.array([2.1, 3, 5, 30, 99, 100, 1e4, np.inf]) if df == "each its own" else df
    parts = stats.t(df, locations, scales)
    for p in (1e-9, 0.0005, 0.25, 0.5, 0.9):
        x = student_quantiles(p, locations, scales, weights, df)
        exact = (weights * parts.cdf(x[:, None])).sum(axis=1)
        density = (weights * parts.pdf(x[:, None])).sum(axis=1)
        assert (np.abs(exact - p) < 1e-8 * density + 1e-14).all()
        np.testing.assert_allclose(student_cdf(x, locations, scales, weights, df), exact, 1e-10)
        logs = student_log_density(x, locations, scales, weights, df)
        np.testing.assert_allclose(logs, np.log(density), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("df", [100.0, 130.0, 1e3, 1e10, 1e30])
def test_the_fast_distribution_function(df: float) -> None:
    """To 1e-8 of probabilities down to 5e-17, the least that a level asks for.

    From a fifth as many degrees of freedom on, to 1e-9 of those in the middle.
    """
    p = np.logspace(math.log10(5e-17), math.log10(0.5), 400)
    z = special.stdtrit(df, p)
    np.testing.assert_allclose(predictive._cdf_of_many_df(df, z), p, rtol=1e-8)
    np.testing.assert_allclose(predictive._cdf_of_many_df(df, -z), 1.0 - p, rtol=1e-13)
    middle = p[p > predictive._MIDDLE]
    z = special.stdtrit(df / 5.0, middle)
    np.testing.assert_allclose(predictive._cdf_of_many_df(df / 5.0, z), middle, rtol=1e-9)
    far = np.array([-np.inf, -1e200, 0.0, 1e200, np.inf])
    seen = predictive._cdf_of_many_df(df, far)
    np.testing.assert_array_equal(seen, [0.0, 0.0, 0.5, 1.0, 1.0])


@pytest.mark.parametrize("df", [2.1, 3.0, 20.0, 300.0, math.inf])
@pytest.mark.parametrize("p", [0.0005, 0.05, 0.25])
def test_few_evaluations_suffice(rows_evaluated: list[int], df: float, p: float) -> None:
    rng = np.random.default_rng(3)
    locations = rng.normal(size=(500, 1)) + 0.3 * rng.normal(size=(500, 50))
    scales = rng.uniform(0.5, 1.5, size=(500, 50))
    student_quantiles(p, locations, scales, rng.dirichlet(np.ones(50)), df)
    assert 0 < sum(rows_evaluated) < 6 * 500


def test_tails_of_the_log_density_follow_their_power() -> None:
    """Where the square overflows, and where the quotient does."""
    one, w = np.ones((1, 1)), np.ones(1)
    for y, scale in ((1e250, 1.0), (-1e250, 1e-50), (1e300, 1e-100), (1.7e308, 1e-300)):
        log_z = math.log(abs(y)) - math.log(scale)
        for df in (3.0, 1e3):
            log_height = special.gammaln((df + 1) / 2) - special.gammaln(df / 2)
            log_height -= 0.5 * math.log(df * math.pi) + math.log(scale)
            exact = log_height - (df + 1) * (log_z - 0.5 * math.log(df))
            seen = student_log_density(np.array([y]), 0.0 * one, scale * one, w, df)
            np.testing.assert_allclose(seen, exact, rtol=1e-12)


@pytest.mark.parametrize("df", [3.0, 1e3, 1e30, 1e308, math.inf])
def test_log_densities_are_finite(df: float) -> None:
    largest = np.finfo(float).max
    locations = np.array([[0.0, 1.0], [-1e300, 1e300], [0.0, 0.0]])
    y = np.array([largest, -largest, 5e-324])
    for scale in (5e-324, 1e-300, 1.0, 1e300):
        scales = np.full(locations.shape, scale)
        assert np.isfinite(student_log_density(y, locations, scales, np.full(2, 0.5), df)).all()
        below = student_cdf(y, locations, scales, np.full(2, 0.5), df)
        assert ((below >= 0) & (below <= 1)).all()


def test_quantiles_between_far_components_are_found() -> None:
    """Where the distribution function is flat, Newton leads nowhere: the bracket is halved."""
    locations = np.array([[0.0, 1e6], [0.0, 1e6], [-1e3, 0.0]])
    scales = np.tile([1.0, 1e-3], (3, 1))
    for df in (9.0, 200.0):
        x = student_quantiles(0.25, locations, scales, np.full(2, 0.5), df)
        np.testing.assert_allclose(x, [0.0, 0.0, -1e3], atol=1e-6)
        x = student_quantiles(0.75, locations, scales, np.full(2, 0.5), df)
        np.testing.assert_allclose(x, [1e6, 1e6, 0.0], atol=1e-6)
