from __future__ import annotations

import numpy as np
import pytest

from mercer.gp import importance as propagation
from mercer.gp.importance import match_moments
from mercer.gp.laplace import fit_laplace
from support.exact_cases import gram, trapezoid_moments
from support.gp_cases import problem


def start(n: int, theta: np.ndarray) -> tuple[np.ndarray, ...]:
    """Gram matrix, targets, and Laplace's coefficients and weights."""
    X, y = problem(n, len(theta) - 1)
    K = gram(theta, X)
    a = fit_laplace(K, y).a
    return K, y, a, (y - a) * (1.0 - y + a)


def test_one_row_is_matched_exactly() -> None:
    y = np.array([1.0])
    for variance in (0.5, 10.0, 100.0):
        K = np.array([[variance]])
        a = fit_laplace(K, y).a
        found = match_moments(K, y, a, a * (1.0 - a))
        assert found is not None
        f = np.linspace(-12.0, 12.0, 200001) * np.sqrt(variance)
        density = np.exp(-0.5 * f * f / variance - np.logaddexp(0.0, -f))
        mean = density @ f / density.sum()
        spread = density @ (f - mean) ** 2 / density.sum()
        assert found.mean[0] == pytest.approx(mean, rel=1e-3)
        assert 1.0 / (1.0 / variance + found.root_weights[0] ** 2) == pytest.approx(
            spread, rel=2e-3
        )


def test_means_are_those_of_the_posterior() -> None:
    for log_v0 in (-1.0, 1.0, 3.0):
        K, y, a, W = start(3, np.array([log_v0, -0.5]))
        found = match_moments(K, y, a, W)
        assert found is not None
        means = trapezoid_moments(K, y)[1:]
        laplace_error = np.abs(K @ a - means).max()
        assert np.abs(found.mean - means).max() < 0.1 * laplace_error + 1e-3
        np.testing.assert_allclose(found.mean, K @ found.coef)


def test_sweeps_settle_at_every_variance() -> None:
    for log_v0 in (-3.0, 1.0, 4.0, 8.0, 12.0):
        assert match_moments(*start(40, np.array([log_v0, 0.0, -1.0]))) is not None


def test_sweeps_that_go_astray_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sites, count = propagation._sites, []

    def growing(y, mean, variance, W, nu):
        count.append(1)
        new_W, new_nu, _ = sites(y, mean, variance, W, nu)
        return new_W, new_nu, np.full(len(y), 10.0 ** len(count))

    arguments = start(20, np.array([1.0, 0.0, -1.0]))
    monkeypatch.setattr(propagation, "_sites", growing)
    assert match_moments(*arguments) is None
    monkeypatch.setattr(
        propagation, "_sites", lambda y, mean, variance, W, nu: (W, nu, np.full(len(y), np.nan))
    )
    assert match_moments(*arguments) is None
