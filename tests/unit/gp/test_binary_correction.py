"""The damped step from the mode to the mean, against quadrature at one row."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from mercer.gp.laplace import damped_correction, fit_laplace, posterior_variance
from mercer.likelihoods.logistic import expected_logistic
from support.gp_cases import plain_gram, problem


def other_class(log_variance: float, *, is_damped: bool) -> tuple[float, float]:
    """Probability of class 0 at the one row, whose label is 1: exact, and as predicted there."""
    v = np.exp(log_variance)
    z = np.sqrt(v) * np.linspace(-12.0, 12.0, 200_001)
    weight = np.exp(-0.5 * z**2 / v) * expit(z)
    exact = 1.0 - (weight @ expit(z)) / weight.sum()
    K, y = np.array([[v]]), np.ones(1)
    fit = fit_laplace(K, y)
    q, variance = fit.q, posterior_variance(y, np.ones(len(y)), fit.a, fit.gain, v)
    if is_damped:
        q = damped_correction(y, np.ones(len(y)), fit.f, variance, fit.a, fit.q, K @ fit.q)
    return exact, float(1.0 - expected_logistic(K @ (fit.a + q), variance)[0])


@pytest.mark.parametrize("log_variance", range(-1, 9))
def test_one_row_within_a_tenth_of_the_exact_odds(log_variance: int) -> None:
    exact, predicted = other_class(log_variance, is_damped=True)
    assert predicted == pytest.approx(exact, rel=0.1)


def test_the_undamped_step_is_caught() -> None:
    exact, predicted = other_class(5, is_damped=False)
    assert predicted < 0.1 * exact


def exact_variance(K: np.ndarray, y: np.ndarray, a: np.ndarray) -> np.ndarray:
    weights = (y - a) * (1.0 - y + a)
    return np.diag(np.linalg.inv(np.linalg.inv(K) + np.diag(weights)))


def test_the_length_maximises_the_bound() -> None:
    """The bound is concave along the step: its slope changes sign at the length, or is up at 1."""
    X, y = problem(15, 2)
    K = plain_gram(np.array([4.0, -0.5, -0.5]), X)
    fit = fit_laplace(K, y)
    K_q = K @ fit.q
    variance = posterior_variance(y, np.ones(len(y)), fit.a, fit.gain, np.exp(4.0))
    np.testing.assert_allclose(variance, exact_variance(K, y, fit.a), rtol=1e-6)
    length = (damped_correction(y, np.ones(len(y)), fit.f, variance, fit.a, fit.q, K_q) / fit.q)[0]
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)

    def bound(t: float) -> float:
        f = (fit.f + t * K_q)[:, None] + np.sqrt(variance)[:, None] * nodes
        likelihood = (y[:, None] * f - np.logaddexp(0.0, f)) @ weights / weights.sum()
        a = fit.a + t * fit.q
        return float(likelihood.sum() - 0.5 * a @ K @ a)

    lengths = np.linspace(0.0, 1.0, 201)
    best = lengths[np.argmax([bound(t) for t in lengths])]
    assert length == pytest.approx(best, abs=0.02)
