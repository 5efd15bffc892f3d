from __future__ import annotations

import numpy as np
import pytest

from mercer.gp import importance as proposal
from mercer.gp.importance import Proposal, fit_variational, make_proposal
from mercer.gp.laplace import fit_laplace
from mercer.likelihoods.logistic import logistic_moments
from support.exact_cases import gram, trapezoid_moments
from support.gp_cases import problem


def start(n: int, theta: np.ndarray) -> tuple[np.ndarray, ...]:
    """Gram matrix, targets, and Laplace's coefficients and weights."""
    X, y = problem(n, len(theta) - 1)
    K = gram(theta, X)
    a = fit_laplace(K, y).a
    return K, y, a, (y - a) * (1.0 - y + a)


def variances(K: np.ndarray, found: Proposal) -> np.ndarray:
    return np.diag(np.linalg.inv(np.linalg.inv(K) + np.diag(found.root_weights**2)))


def test_covariance_determinant_and_mean() -> None:
    K, _, a, W = start(8, np.array([2.0, 0.0]))
    found = make_proposal(K, a, W)
    B = np.eye(8) + np.sqrt(W)[:, None] * K * np.sqrt(W)
    L = np.tril(found.L)
    np.testing.assert_allclose(L @ L.T, B, rtol=1e-12)
    assert found.log_det == pytest.approx(0.5 * np.linalg.slogdet(B)[1], rel=1e-12)
    np.testing.assert_allclose(found.mean, K @ a)


def test_where_it_comes_to_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coefficients and weights are averages over the Gaussian itself."""
    monkeypatch.setattr(proposal, "_MAX_STEPS", 60)
    monkeypatch.setattr(proposal, "_SETTLED", 1e-4)
    for log_v0 in (-1.0, 1.0, 3.0):
        K, y, a, W = start(20, np.array([log_v0, 0.0, -1.0]))
        found = fit_variational(K, y, np.ones(len(y)), a, W)
        moments = logistic_moments(found.mean, variances(K, found))
        assert found.is_settled
        np.testing.assert_allclose(found.coef, y - moments.logistic, atol=2e-4)
        np.testing.assert_allclose(found.root_weights**2, moments.slope, rtol=1e-3, atol=1e-5)


def test_the_bound_is_a_bound_and_rises() -> None:
    for log_v0 in (-1.0, 1.0, 3.0):
        K, y, a, W = start(3, np.array([log_v0, -0.5]))
        exact = float(np.log(trapezoid_moments(K, y)[0]))
        found, first = (
            fit_variational(K, y, np.ones(len(y)), a, W),
            proposal._stage(K, y, np.ones(len(y)), a, W).proposal,
        )
        assert first.bound <= found.bound < exact
        assert found.bound > exact - 0.25


def test_is_whole_at_enormous_variances() -> None:
    for log_v0 in (8.0, 15.0, 30.0):
        K, y, a, W = start(30, np.array([log_v0, 0.0, -1.0]))
        found = fit_variational(K, y, np.ones(len(y)), a, W)
        assert np.isfinite(found.bound)
        assert np.isfinite(found.mean).all()


def test_a_step_that_cannot_be_taken_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposal, "_raised", lambda *arguments: None)
    K, y, a, W = start(20, np.array([3.0, 0.0, -1.0]))
    found = fit_variational(K, y, np.ones(len(y)), a, W)
    assert not found.is_settled
    np.testing.assert_array_equal(found.coef, a)
