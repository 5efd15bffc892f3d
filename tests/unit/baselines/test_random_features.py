"""Products of the features of several kernels are unbiased for its kernels.

False alarm: 1e-6 over all kernels and pairs of rows together. Mutants: the Laplace and Cauchy
kernels with each other's frequencies, either of them with normal frequencies, a length scale that
multiplies frequencies.
"""

from __future__ import annotations

import numpy as np
import pytest

from mercer.baselines import base as random_features
from mercer.baselines.base import KERNELS, draw_frequencies, typical_distance
from mercer.features.products import fill_features
from support.statistics import largest_z, z_limit

# Lags from a tenth of a length scale to three of them, of either sign.
X = np.array([[0.0, 0.0], [0.1, -0.1], [0.6, 0.2], [-0.3, 1.5], [1.0, -2.0], [0.2, 3.0]])
N_FREQUENCIES, N_BATCHES = 100_000, 50
PAIRS = np.triu_indices(len(X), 1)
LAGS = X[PAIRS[0]] - X[PAIRS[1]]
LIMIT = z_limit(N_BATCHES, len(KERNELS) * len(PAIRS[0]))
SCALE = 1.7

CLOSED = {
    "rbf": lambda t: np.exp(-0.5 * (t**2).sum(axis=1)),
    "laplace": lambda t: np.exp(-np.abs(t).sum(axis=1)),
    "cauchy": lambda t: (1.0 / (1.0 + t**2)).prod(axis=1),
}

each_kernel = pytest.mark.parametrize("kernel", list(KERNELS))


def drawn(kernel: str, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Frequencies of rows whose typical distance is 1."""
    monkeypatch.setattr(random_features, "typical_distance", lambda rng, Z, metric: 1.0)
    return draw_frequencies(np.random.default_rng(5), X, (kernel,), (SCALE,), N_FREQUENCIES)


def z_of(frequencies: np.ndarray, kernel: str) -> float:
    """Largest |z| of the estimates of the kernel, from single frequencies."""
    Phi = np.empty((2 * N_FREQUENCIES, len(X)))
    fill_features(frequencies / 0.8, X, Phi)
    cosines, sines = (part.T * np.sqrt(N_FREQUENCIES) for part in (Phi[::2], Phi[1::2]))
    i, j = PAIRS
    estimates = (cosines[i] * cosines[j] + sines[i] * sines[j]).T
    return largest_z(estimates, CLOSED[kernel](LAGS / (0.8 * SCALE)), N_BATCHES)


@each_kernel
def test_products_are_unbiased(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert z_of(drawn(kernel, monkeypatch), kernel) < LIMIT


@pytest.mark.parametrize(
    ("kernel", "other"),
    [("laplace", "cauchy"), ("cauchy", "laplace"), ("laplace", "rbf"), ("cauchy", "rbf")],
)
def test_sees_frequencies_of_another_kernel(
    kernel: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KERNELS, kernel, KERNELS[other])
    assert z_of(drawn(kernel, monkeypatch), kernel) > LIMIT


@each_kernel
def test_sees_a_length_scale_that_multiplies(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frequencies = drawn(kernel, monkeypatch)
    assert z_of(frequencies * SCALE**2, kernel) > LIMIT


def test_every_kernel_and_scale_has_its_share() -> None:
    """14 frequencies over 6 members: 3, 3, 2, 2, 2, 2, each member at its own scale."""
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((50, 3))
    frequencies = draw_frequencies(
        np.random.default_rng(2), Z, ("rbf", "cauchy"), (1.0, 1e3, 1e6), 14
    )
    assert frequencies.shape == (14, 3)
    sizes = np.abs(frequencies).max(axis=1)
    decades = np.floor(np.log10(sizes / sizes[0]) / 3.0 + 0.5)
    np.testing.assert_array_equal(decades, np.repeat([0, -1, -2, 0, -1, -2], [3, 3, 2, 2, 2, 2]))


def test_concatenated_features_are_the_mean_of_the_kernels() -> None:
    """Eq. (17), weights equal: products of the pooled features are the mean of those apart."""
    W = np.random.default_rng(3).standard_normal((8, 2))
    whole, first, second = (products_of(part) for part in (W, W[:4], W[4:]))
    np.testing.assert_allclose(whole, (first + second) / 2.0, atol=1e-14)


def products_of(W: np.ndarray) -> np.ndarray:
    Phi = np.empty((2 * len(W), len(X)))
    fill_features(W, X, Phi)
    return Phi.T @ Phi


@pytest.mark.parametrize(("metric", "power"), [("euclidean", 2), ("cityblock", 1)])
def test_typical_distance_is_the_median(metric: str, power: int) -> None:
    rng = np.random.default_rng(4)
    Z = rng.standard_normal((101, 3))
    distances = [
        np.linalg.norm(Z[i] - Z[j], power) for i in range(len(Z)) for j in range(i + 1, len(Z))
    ]
    assert typical_distance(rng, Z, metric) == pytest.approx(np.median(distances), rel=1e-12)
    large = rng.standard_normal((3000, 3))
    assert typical_distance(rng, large, metric) == pytest.approx(np.median(distances), rel=0.2)


def test_equal_rows_have_distance_one() -> None:
    assert typical_distance(np.random.default_rng(0), np.zeros((5, 2)), "euclidean") == 1.0
