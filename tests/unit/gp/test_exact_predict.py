from __future__ import annotations

import numpy as np
import pytest

from mercer.gp.exact import (
    ExactDraws,
    draw_probabilities,
    laplace_weights,
)
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.likelihoods.logistic import expected_logistic
from support.exact_cases import gram
from support.gp_cases import plain_gram, problem

_THETA = np.array([[0.5, 0.0, -1.0], [2.0, 1.0, 0.5], [-1.0, -1.0, -1.0]])


def made() -> tuple[ExactDraws, np.ndarray]:
    X, _ = problem(15, 2)
    coef = np.random.default_rng(0).standard_normal((3, 15))
    return ExactDraws(X, SquaredExponentialARD(), _THETA, coef), problem(11, 2, seed=3)[0]


def direct(draws: ExactDraws, X: np.ndarray) -> np.ndarray:
    """Probabilities of every draw, by plain solves."""
    rows = []
    for theta, coef in zip(draws.theta, draws.dual_coef, strict=True):
        K, k = gram(theta, draws.X), plain_gram(theta, draws.X, X)
        variance = np.exp(theta[0]) - np.einsum("ij,ij->j", k, np.linalg.solve(K, k))
        rows.append(expected_logistic(k.T @ coef, variance))
    return np.array(rows)


def test_against_plain_solves_in_any_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    draws, X = made()
    for block in (512, 11, 4, 1):
        monkeypatch.setattr(ExactDraws, "rows_at_once", block)
        found = np.array(list(draw_probabilities(draws, X)))
        np.testing.assert_allclose(found, direct(draws, X), atol=1e-6)
    np.testing.assert_allclose(draws.probabilities(X)[:, 1], found.mean(axis=0), rtol=1e-12)


def test_weights() -> None:
    weights = laplace_weights(np.array([1000.0, 1001.0, 1000.0]))
    assert weights.mean() == pytest.approx(1.0)
    assert weights[0] / weights[1] == pytest.approx(np.e)
