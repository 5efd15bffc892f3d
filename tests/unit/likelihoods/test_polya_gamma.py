"""Polya-Gamma draws, compiled and not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mercer.likelihoods.polya_gamma import fill_polya_gamma, fill_polya_gamma_of_shapes
from support.statistics import FALSE_ALARM, dkw_distance, dkw_limit

# Polya-Gamma draws against their law.


TILTS = (0.0, 0.3, 1.0, -3.0, 5.0, 12.0)
N_DRAWS = 20_000


def drawn(c: float, n: int, seed: int = 3) -> np.ndarray:
    omega = np.empty(n)
    fill_polya_gamma(np.random.default_rng(seed), np.full(n, c), n, omega)
    return omega


def distribution(w: np.ndarray, c: float) -> np.ndarray:
    """P(PG(1, c) <= w) from the series of inverse Gaussian laws of PG(1, 0), tilted.

    The density of PG(1, 0) is sum_n (-1)^n (2n+1) / sqrt(2 pi w^3) exp(-(2n+1)^2 / (8w)); tilted,
    each term is the density at w of an inverse Gaussian with shape (2n+1)^2 / 4 and mean
    (2n+1) / (2|c|), times 2 exp(-(2n+1)|c|/2) cosh(c/2).
    """
    total = np.zeros_like(w)
    z = 0.5 * abs(c)
    for n in range(60):
        a = 0.5 * (2 * n + 1)  # square root of the shape
        low = stats.norm.cdf((2.0 * z * w - a) / np.sqrt(w))
        high = stats.norm.logcdf(-(2.0 * z * w + a) / np.sqrt(w))
        part = np.exp(-2.0 * a * z) * low + np.exp(2.0 * a * z + high)
        total += (-1) ** n * 2.0 * math.cosh(z) * part
    return total


@pytest.mark.parametrize("c", TILTS)
def test_mean_and_variance(c: float) -> None:
    """Two z-scores each; false alarm 1e-6 over all."""
    w, n = drawn(c, N_DRAWS), N_DRAWS
    h = abs(c)
    mean = 0.25 if h == 0.0 else math.tanh(0.5 * h) / (2.0 * h)
    variance = 1.0 / 24.0
    if h > 0.0:
        variance = (math.sinh(h) - h) / (4.0 * h**3 * math.cosh(0.5 * h) ** 2)
    limit = stats.norm.isf(FALSE_ALARM / (4.0 * len(TILTS)))
    assert abs(w.mean() - mean) * math.sqrt(n) < limit * w.std()
    squares = (w - mean) ** 2
    assert abs(squares.mean() - variance) * math.sqrt(n) < limit * squares.std()


@pytest.mark.parametrize("c", TILTS)
def test_distribution(c: float) -> None:
    """Detects a distance of 0.04; the mutant below has 0.05."""
    limit = dkw_limit(N_DRAWS, len(TILTS))
    assert dkw_distance(drawn(c, N_DRAWS), lambda w: distribution(w, c)) < limit


@pytest.mark.parametrize("c", [1.0, 5.0])
def test_distribution_sees_a_wrong_tilt(c: float) -> None:
    """The tilt by c^2 / 2 taken as c^2 / 4: a root of 2 in c."""
    draws = drawn(c / math.sqrt(2.0), N_DRAWS)
    limit = dkw_limit(N_DRAWS, len(TILTS))
    assert dkw_distance(draws, lambda w: distribution(w, c)) > limit


@pytest.mark.parametrize("c", [40.0, 61.0, 600.0, 1e8, 1e200])
def test_large_tilts_have_their_mean(c: float) -> None:
    w = drawn(c, 2000)
    assert np.all(w > 0.0)
    assert w.mean() == pytest.approx(0.5 / c, rel=6.0 * w.std() / w.mean() / math.sqrt(2000) + 1e-9)


def test_what_is_not_finite_ends() -> None:
    assert math.isnan(drawn(math.nan, 1)[0])
    assert drawn(-math.inf, 1)[0] == 0.0


# PG(b, c) of any shape: what is drawn, against the law.

SHAPES = (1e-3, 0.3, 1.0, 2.5, 40.0, 3e5)
TILTS_OF_SHAPES = (0.0, 0.4, -3.0, 12.0, 22.0, 60.0)
N_TERMS = 24


def one(c: float) -> tuple[float, float]:
    """Mean and variance of PG(1, c)."""
    c = abs(c)
    if c < 1e-3:
        return 0.25 - c * c / 48.0, 1.0 / 24.0 - c * c / 120.0
    return math.tanh(0.5 * c) / (2.0 * c), (
        (math.sinh(c) - c) / (4.0 * c**3 * math.cosh(0.5 * c) ** 2)
    )


def log_laplace(t: np.ndarray, b: float, c: float) -> np.ndarray:
    """Log E exp(-t w) of PG(b, c): b log cosh(c / 2) - b log cosh(sqrt(c^2 / 4 + t / 2))."""
    root = np.sqrt(0.25 * c * c + 0.5 * t + 0j)
    return np.asarray(b * (math.log(math.cosh(0.5 * c)) - np.log(np.cosh(root)).real))


def log_laplace_of_the_series(t: np.ndarray, b: float, c: float, n_terms: int) -> np.ndarray:
    """The same of terms that are drawn, and one gamma that stands for the others."""
    places = np.arange(n_terms) + 0.5
    w = 0.5 / (np.pi**2 * (places**2 + (c / (2.0 * np.pi)) ** 2))
    mean, variance = one(c)
    mean, variance = mean - w.sum(), variance - np.square(w).sum()
    drawn = np.log1p(np.outer(t, w)).sum(axis=1)
    return -b * (drawn + mean**2 / variance * np.log1p(t * variance / mean))


def reachable(b: float, c: float) -> np.ndarray:
    """Up to ten over the standard deviation on either side, where the expectations exist."""
    sizes = np.array([0.1, 0.3, 1.0, 3.0, 10.0])
    t = np.concatenate([-sizes, sizes]) / math.sqrt(b * one(c)[1])
    return t[t > -0.9 * (0.5 * np.pi**2 + 0.5 * c * c)]


@pytest.mark.parametrize("b", [0.01, *SHAPES[1:]])
@pytest.mark.parametrize(("c", "most"), [(0.0, 1e-6), (0.4, 1e-5), (5.0, 1e-4), (23.0, 1e-2)])
def test_the_law_of_the_series_is_all_but_that_of_polya_gamma(
    b: float, c: float, most: float
) -> None:
    t = reachable(b, c)
    gap = np.abs(log_laplace(t, b, c) - log_laplace_of_the_series(t, b, c, N_TERMS))
    assert gap.max() < most


def test_the_law_of_fewer_terms_is_seen() -> None:
    t = reachable(1.0, 5.0)
    gap = np.abs(log_laplace(t, 1.0, 5.0) - log_laplace_of_the_series(t, 1.0, 5.0, 4))
    assert gap.max() > 1e-3


@pytest.mark.parametrize("b", [0.3, 40.0, 3e5])
def test_far_tilts_have_the_law_of_an_inverse_gaussian(b: float) -> None:
    """Where draws change over to it, its Laplace transform is that of Polya-Gamma."""
    c = 23.0 + max(math.log(b), 0.0)
    mean, shape = 0.5 * b / c, 0.25 * b * b
    t = reachable(b, c)
    logs = shape / mean * (1.0 - np.sqrt(1.0 + 2.0 * mean**2 * t / shape))
    gap = np.abs(logs - log_laplace(t, b, c))
    is_near = np.abs(t) < 5.0 / math.sqrt(b * one(c)[1])
    assert gap.max() < 1e-2
    assert gap[is_near].max() < 1e-8 * (1.0 + np.abs(logs).max())


def drawn_of(b: float, c: float, n: int, seed: int = 8) -> np.ndarray:
    omega = np.empty(n)
    shapes, tilts = np.full(n, b), np.full(n, c)
    fill_polya_gamma_of_shapes(np.random.default_rng(seed), shapes, tilts, n, omega)
    return omega


def z_scores(w: np.ndarray, b: float, c: float) -> np.ndarray:
    """Of mean, variance and two values of the Laplace transform."""
    mean, variance = (b * each for each in one(c))
    t = np.array([0.3, 1.0]) / math.sqrt(variance)
    values = [w - mean, (w - mean) ** 2 - variance]
    values += [np.exp(s * (mean - w)) - math.exp(log_laplace(s, b, c) + s * mean) for s in t]
    return np.array([v.mean() * math.sqrt(len(w)) / v.std() for v in values])


@pytest.mark.parametrize("b", SHAPES[1:])
@pytest.mark.parametrize("c", TILTS_OF_SHAPES)
def test_draws_of_any_shape(b: float, c: float) -> None:
    """Four z-scores each; false alarm 1e-6 over all."""
    limit = stats.norm.isf(FALSE_ALARM / (8.0 * len(SHAPES) * len(TILTS_OF_SHAPES)))
    assert np.abs(z_scores(drawn_of(b, c, N_DRAWS), b, c)).max() < limit


def test_draws_of_any_shape_see_a_shape_that_lacks_a_tenth() -> None:
    assert np.abs(z_scores(drawn_of(0.9 * 2.5, 3.0, N_DRAWS), 2.5, 3.0)).max() > 10.0


@pytest.mark.parametrize("c", [0.0, 1.0, -3.0])
def test_shape_one_is_that_of_the_exact_draws(c: float) -> None:
    limit = dkw_limit(N_DRAWS, 3)
    assert dkw_distance(drawn_of(1.0, c, N_DRAWS), lambda w: distribution(w, c)) < limit


def test_tiny_shapes_and_what_is_not_finite() -> None:
    assert np.all(drawn_of(1e-3, 2.0, 1000) >= 0.0)
    assert drawn_of(1.0, math.inf, 1)[0] == 0.0
    assert np.isnan([drawn_of(math.nan, 1.0, 1)[0], drawn_of(1.0, math.nan, 1)[0]]).all()
    assert drawn_of(2.0, 1e200, 1)[0] == pytest.approx(1e-200)
