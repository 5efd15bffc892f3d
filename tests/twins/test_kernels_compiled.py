"""Compiled loop of the stationary kernels against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.kernels.compiled import exponent_from_products


def twin(S: np.ndarray, s: np.ndarray, z: np.ndarray, log_scale: float) -> np.ndarray:
    return np.minimum(S - s[:, None] - z[None, :], 0.0) + log_scale


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 3), (4, 9)])
def test_exponent_from_products(n: int, m: int) -> None:
    rng = np.random.default_rng(1)
    X, Z = rng.standard_normal((n, 2)), rng.standard_normal((m, 2))
    S, s, z = X @ Z.T, 0.5 * (X**2).sum(axis=1), 0.5 * (Z**2).sum(axis=1)
    expected = twin(S, s, z, 0.7)
    exponent_from_products(S, s, z, 0.7)
    np.testing.assert_array_equal(S, expected)
    distances = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(S, 0.7 - 0.5 * distances, atol=1e-14)


def test_a_squared_distance_is_never_negative() -> None:
    S = np.array([[1.0 + 1e-15]])
    exponent_from_products(S, np.array([0.5]), np.array([0.5]), -2.0)
    assert S[0, 0] == -2.0
