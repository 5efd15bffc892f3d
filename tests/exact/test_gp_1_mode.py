"""GP-1: the mode solves f = K (y - pi(f)), and an independent optimiser finds the same."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from mercer.gp import laplace
from support.gp_cases import plain_gram, problem, thetas
from support.mutants import stop_newton_early


def worst_residual(n: int, d: int) -> float:
    """Largest |f - K (y - pi)| over twenty thetas, v0 up to e^4."""
    X, y = problem(n, d)
    worst = 0.0
    for theta in thetas(d, 20):
        K = plain_gram(theta, X)
        fit = laplace.fit_laplace(K, y)
        worst = max(worst, np.abs(fit.f - K @ (y - expit(fit.f))).max())
        worst = max(worst, np.abs(fit.f - K @ fit.a).max())
    return float(worst)


def ascend(K: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Maximise Psi along its gradient flow in a, damped: slow, plain, no curvature of W."""
    inverse = np.linalg.inv(np.eye(len(y)) + 0.25 * K)  # curvature is at most 1/4: always uphill
    a = np.zeros(len(y))
    for _ in range(60_000):
        step = inverse @ (y - expit(K @ a) - a)
        a += step
        if np.abs(step).max() < 1e-14:
            break
    return K @ a


@pytest.mark.parametrize(("n", "d"), [(5, 1), (40, 2), (90, 6)])
def test_gp_1_mode(n: int, d: int) -> None:
    assert worst_residual(n, d) < 1e-10


def test_gp_1_mode_independent_optimiser() -> None:
    X, y = problem(25, 2)
    for theta in thetas(2, 6):
        K = plain_gram(theta, X)
        np.testing.assert_allclose(laplace.fit_laplace(K, y).f, ascend(K, y), rtol=0, atol=1e-8)


def test_gp_1_mode_at_extreme_variances() -> None:
    """Above e^4 the mode is good to rounding of f; separable labels, and rows that repeat."""
    X, _ = problem(30, 2)
    X[10:15] = X[0]
    y = (X[:, 0] > 0.0).astype(float)
    for log_variance in (7.0, 10.0, 13.0):
        K = plain_gram(np.array([log_variance, 0.0, -3.0]), X)
        fit = laplace.fit_laplace(K, y)
        residual = np.abs(fit.f - K @ (y - expit(fit.f))).max()
        assert residual < 1e-10 * np.exp(log_variance)
        assert np.isfinite(fit.log_evidence)


def test_gp_1_mode_sees_newton_stopped_at_1e_4(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_newton_early(monkeypatch)
    assert worst_residual(40, 2) > 1e-8
