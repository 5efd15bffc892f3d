from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from mercer.errors import UsageError
from mercer.kernels import base as rows
from mercer.kernels import stationary as matern
from mercer.kernels.stationary import MaternARD

THETA = np.array([0.7, 0.2, -1.0])
X = np.random.default_rng(1).standard_normal((15, 2))
Z = np.random.default_rng(2).standard_normal((4, 2)) * 3.0

each_smoothness = pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])


def scikit_learn(nu: float, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return np.exp(THETA[0]) * Matern(np.exp(-0.5 * THETA[1:]), nu=nu)(X, Z)


def formula_error(nu: float) -> float:
    return float(np.abs(MaternARD(nu).gram(THETA, X) - scikit_learn(nu, X, X)).max())


@each_smoothness
def test_against_scikit_learn(nu: float) -> None:
    assert formula_error(nu) < 1e-13
    cross = MaternARD(nu).cross_gram(THETA, X, Z)
    np.testing.assert_allclose(cross, scikit_learn(nu, X, Z), rtol=1e-12)


@each_smoothness
def test_sees_lengthscales_in_place_of_weights(nu: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matern, "scaled_rows", lambda w, X, reference: X * np.exp(-w))
    assert formula_error(nu) > 1e-2


@each_smoothness
def test_blocks_of_rows_change_nothing(nu: float, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, A = MaternARD(nu), np.random.default_rng(3).standard_normal((15, 15))
    K = kernel.gram(THETA, X)
    gradient = kernel.gradient(THETA, X, K, A + A.T)
    monkeypatch.setattr(rows, "_BLOCK_ENTRIES", 60)
    np.testing.assert_array_equal(kernel.gram(THETA, X), K)
    np.testing.assert_allclose(kernel.gradient(THETA, X, K, A + A.T), gradient, rtol=1e-12)


@each_smoothness
def test_a_common_offset_costs_no_digits(nu: float) -> None:
    grid = np.round(X * 1024.0) / 1024.0  # so that the sum with the offset is exact
    expected = MaternARD(nu).gram(THETA, grid)
    np.testing.assert_array_equal(MaternARD(nu).gram(THETA, grid + 2.0**30), expected)
    cross = MaternARD(nu).cross_gram(THETA, grid[:5] + 2.0**30, grid + 2.0**30)
    np.testing.assert_allclose(cross, expected[:5], rtol=1e-13)


def test_gradient_of_rows_that_almost_repeat() -> None:
    """Smoothness 1/2 divides by a distance of 1e-15: it must not lift rounding errors."""
    kernel, twice = MaternARD(0.5), np.vstack([X, X * (1.0 + 1e-15)])
    A = np.ones((30, 30))
    seen = kernel.gradient(THETA, twice, kernel.gram(THETA, twice), A.copy())
    exact = kernel.gradient(THETA, X, kernel.gram(THETA, X), A[:15, :15].copy())
    np.testing.assert_allclose(seen, 4.0 * exact, rtol=1e-12)


@pytest.mark.parametrize("place", [0, 3])
@each_smoothness
def test_rows_far_out(nu: float, place: int) -> None:
    """Pairs near one another far from all others keep their digits; so do all others."""
    rows = np.insert(X, [place, place, 9], [[6e3, 0.0], [6e3 + 0.5, 0.3], [0.0, -4e7]], axis=0)
    kernel, A = MaternARD(nu), np.random.default_rng(3).standard_normal((18, 18))
    K = kernel.gram(THETA, rows)
    np.testing.assert_allclose(K, scikit_learn(nu, rows, rows), rtol=1e-8)
    assert K[place, place + 1] > 0.5
    cross = kernel.cross_gram(THETA, rows[:12], rows)
    np.testing.assert_allclose(cross, K[:12], rtol=1e-8)
    slopes, A = kernel.gradient(THETA, rows, K, (A + A.T).copy()), A + A.T
    for k, step in enumerate(1e-4 * np.eye(3)):
        ends = [np.vdot(A, kernel.gram(THETA + sign * step, rows)) for sign in (1.0, -1.0)]
        np.testing.assert_allclose(slopes[k], (ends[0] - ends[1]) / 2e-4, rtol=1e-5)


def test_parameters_are_counted() -> None:
    assert MaternARD(0.5).n_parameters(5) == 6


@pytest.mark.parametrize("nu", [1.0, 0.0, float("nan"), "1.5"])
def test_other_smoothness_is_refused(nu: object) -> None:
    with pytest.raises(UsageError, match="smoothness"):
        MaternARD(nu)  # type: ignore[arg-type]
