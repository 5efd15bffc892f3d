"""Polya-Gamma draws, compiled and not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mercer.likelihoods.polya_gamma import fill_polya_gamma
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
