"""Products of Fourier features are unbiased for the covariance.

False alarm: 1e-6 over all kernels and pairs of rows together. Mutants: weights in place of their
roots, a Gaussian spectrum for the Matern kernels, half of their degrees of freedom.
"""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.features import maps
from mercer.features.maps import FourierMap, draw_fourier
from mercer.kernels.names import kernel_named
from support.statistics import largest_z, z_limit

THETA = np.array([0.7, 0.9, -1.2])
NAMES = ("rbf", "matern12", "matern32", "matern52")
# Lags from a tenth of a length scale to two of them, of either sign.
X = np.array([[0.0, 0.0], [0.1, -0.1], [0.6, 0.2], [-0.3, 1.5], [1.0, -2.0], [0.2, 3.0]])
N_FREQUENCIES, N_BATCHES = 100_000, 50
PAIRS = np.triu_indices(len(X), 1)

each_name = pytest.mark.parametrize("name", NAMES)


def z_of(name: str) -> float:
    """Largest |z| of the estimates of the covariances, from single frequencies."""
    kernel = kernel_named(name)
    phi = draw_fourier(np.random.default_rng(5), kernel, THETA, 2, N_FREQUENCIES)
    cosines, sines = np.split(phi.features(X) * np.sqrt(N_FREQUENCIES), 2, axis=1)
    i, j = PAIRS
    estimates = (cosines[i] * cosines[j] + sines[i] * sines[j]).T
    return largest_z(estimates, kernel.gram(THETA, X)[PAIRS], N_BATCHES)


LIMIT = z_limit(N_BATCHES, len(NAMES) * len(PAIRS[0]))


@each_name
def test_products_are_unbiased(name: str) -> None:
    assert z_of(name) < LIMIT


@each_name
def test_sees_weights_in_place_of_their_roots(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = maps.draw_fourier

    def mutant(rng, kernel, theta, *sizes):
        return draw(rng, kernel, np.append(theta[0], 2.0 * theta[1:]), *sizes)

    monkeypatch.setitem(globals(), "draw_fourier", mutant)
    assert z_of(name) > LIMIT


@pytest.mark.parametrize("name", NAMES[1:])
def test_sees_a_gaussian_spectrum(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "_t_divisors", lambda rng, degrees, n: np.ones(n))
    assert z_of(name) > LIMIT


@pytest.mark.parametrize("name", NAMES[1:])
def test_sees_half_the_degrees_of_freedom(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    divisors = maps._t_divisors
    monkeypatch.setattr(
        maps, "_t_divisors", lambda rng, degrees, n: divisors(rng, degrees / 2.0, n)
    )
    assert z_of(name) > LIMIT


@each_name
def test_variances_are_exact(name: str) -> None:
    phi = draw_fourier(np.random.default_rng(5), kernel_named(name), THETA, 2, 7)
    Phi = phi.features(X)
    np.testing.assert_allclose(np.einsum("ij,ij->i", Phi, Phi), np.exp(THETA[0]), rtol=1e-13)


def test_single_precision_takes_whole_turns_off() -> None:
    """Phases of 1e5 radians, where single precision alone is wrong by 0.01."""
    phi = FourierMap(np.array([[1.0, 1e5, -3e5]]), 0.0)
    rows = np.linspace(-1.0, 1.0, 101)[:, np.newaxis]
    error = np.abs(phi.features(rows, dtype=np.float32) - phi.features(rows)).max()
    assert error * np.sqrt(3.0) < 4e-7


def test_same_stream_same_map() -> None:
    kernel = kernel_named("matern12")
    maps = [draw_fourier(np.random.default_rng(3), kernel, THETA, 2, 5) for _ in range(2)]
    np.testing.assert_array_equal(maps[0].frequencies, maps[1].frequencies)


@pytest.mark.parametrize("name", ["linear", "polynomial"])
def test_kernels_that_are_not_stationary_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="not stationary"):
        draw_fourier(np.random.default_rng(1), kernel_named(name), THETA[:1], 2, 5)


@pytest.mark.parametrize(("n_inputs", "n_frequencies"), [(2, 0), (3, 5), (0, 5)])
def test_numbers_that_do_not_fit_are_refused(n_inputs: int, n_frequencies: int) -> None:
    with pytest.raises(UsageError):
        draw_fourier(np.random.default_rng(1), kernel_named("rbf"), THETA, n_inputs, n_frequencies)
