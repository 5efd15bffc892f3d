from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RationalQuadratic

from mercer.kernels import base as rows
from mercer.kernels import stationary as rational_quadratic
from mercer.kernels.base import Isotropic
from mercer.kernels.stationary import RationalQuadraticARD, SquaredExponentialARD
from support.kernel_cases import gradient_error, plain_covariances

KERNEL = RationalQuadraticARD()
THETA = np.array([0.7, 0.2, -1.0, -0.4])
X = np.random.default_rng(1).standard_normal((15, 2))
Z = np.random.default_rng(2).standard_normal((4, 2)) * 3.0


def formula(x: np.ndarray, z: np.ndarray) -> float:
    s = 0.5 * (np.exp(THETA[1:3]) * (x - z) ** 2).sum()
    alpha = np.exp(THETA[3])
    return float(np.exp(THETA[0]) * (1.0 + s / alpha) ** -alpha)


def formula_error() -> float:
    return float(np.abs(KERNEL.gram(THETA, X) - plain_covariances(formula, X, X)).max())


def adjoint() -> np.ndarray:
    A = np.random.default_rng(3).standard_normal((15, 15))
    return A + A.T


def test_against_the_formula() -> None:
    assert formula_error() < 1e-13
    cross = KERNEL.cross_gram(THETA, X, Z)
    np.testing.assert_allclose(cross, plain_covariances(formula, X, Z), rtol=1e-12)


def test_sees_lengthscales_in_place_of_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rational_quadratic, "scaled_rows", lambda w, X, reference: X * np.exp(-w))
    assert formula_error() > 1e-2


def test_against_scikit_learn() -> None:
    plain = np.exp(0.7) * RationalQuadratic(length_scale=np.exp(-0.1), alpha=np.exp(-0.4))(X, Z)
    seen = Isotropic(KERNEL).cross_gram(np.array([0.7, 0.2, -0.4]), X, Z)
    np.testing.assert_allclose(seen, plain, rtol=1e-12)


@pytest.mark.parametrize("log_alpha", [25.0, 40.0, 300.0])
def test_tends_to_the_squared_exponential(log_alpha: float) -> None:
    """At 25 the two differ by s^2 / 2 alpha, below 1e-9; beyond by rounding only."""
    theta = np.append(THETA[:3], log_alpha)
    rbf = SquaredExponentialARD()
    tolerance = 1e-8 if log_alpha == 25.0 else 1e-13
    expected = rbf.gram(THETA[:3], X)
    np.testing.assert_allclose(KERNEL.gram(theta, X), expected, rtol=tolerance)
    seen = KERNEL.gradient(theta, X, expected, adjoint())
    gradient = rbf.gradient(THETA[:3], X, expected, adjoint())
    np.testing.assert_allclose(seen[:3], gradient, rtol=100.0 * tolerance)
    assert abs(seen[3]) < tolerance * np.abs(adjoint()).sum()


def test_gradient() -> None:
    assert gradient_error(KERNEL, THETA, X, adjoint()) < 1e-9


def test_gradient_sees_the_shape_without_the_change_of_scale(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """log C = -alpha log(1 + s / alpha) depends on alpha twice."""
    of_ratio = rational_quadratic._ratio
    monkeypatch.setattr(
        rational_quadratic, "_ratio", lambda alpha, Xs, Zs: of_ratio(np.exp(THETA[3]), Xs, Zs)
    )
    assert gradient_error(KERNEL, THETA, X, adjoint()) > 1e-3


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    K = KERNEL.gram(THETA, X)
    gradient = KERNEL.gradient(THETA, X, K, adjoint())
    monkeypatch.setattr(rows, "_BLOCK_ENTRIES", 60)
    np.testing.assert_array_equal(KERNEL.gram(THETA, X), K)
    np.testing.assert_allclose(KERNEL.gradient(THETA, X, K, adjoint()), gradient, rtol=1e-12)
