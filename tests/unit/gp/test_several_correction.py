"""The damped step from the mode to the mean: the bound it maximises, quadrature, two classes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from mercer.gp import laplace as binary
from mercer.gp.laplace import fit_laplace
from mercer.gp.softmax import (
    LaplaceFit,
    curvature,
    damped_correction,
    expected_softmax,
    fill_products,
    fit_softmax,
    latent_covariance,
    training_covariance,
)
from support.gp_cases import plain_gram, problem
from support.softmax_cases import classes, grams, targets, thetas


def parts(K: np.ndarray, Y: np.ndarray) -> tuple[LaplaceFit, np.ndarray, np.ndarray]:
    """The fit, covariances of the rows, and K q."""
    fit = fit_softmax(K, Y)
    factors = curvature(K, softmax(fit.f, axis=0), np.empty((len(Y), *K.shape[1:])), Y.sum(axis=0))
    V = latent_covariance(factors, K, np.diagonal(K, axis1=1, axis2=2))
    return fit, V, np.matmul(K, fit.q[:, :, None])[:, :, 0]


@pytest.mark.parametrize("n_kernels", [1, 3])
@pytest.mark.parametrize("log_variance", [0.0, 9.0])
def test_covariances_at_training_rows_are_those_of_any_rows(
    log_variance: float, n_kernels: int
) -> None:
    """Also where a class is hardly possible, as at large variances."""
    X, y = classes(40, 2)
    Y = targets(y, 3)
    K = np.exp(log_variance) * grams(thetas(2, n_kernels, 2)[1].reshape(n_kernels, -1), X)
    fit, V, _ = parts(K, Y)
    assert ((Y.sum(axis=0) * softmax(fit.f, axis=0)).min() < 1e-6) == (log_variance > 5.0)
    factors = curvature(K, softmax(fit.f, axis=0), np.empty((3, 40, 40)), Y.sum(axis=0))
    products = np.empty((3, 40, 40))
    fill_products(factors, products)
    found = training_covariance(K, factors, products)
    np.testing.assert_allclose(found, V, rtol=1e-7, atol=1e-10 * np.abs(V).max())


def length_of(K: np.ndarray, Y: np.ndarray) -> float:
    fit, V, K_q = parts(K, Y)
    corrected = damped_correction(Y, fit.f, V, fit.a, fit.q, K_q)
    return float(corrected.ravel()[0] / fit.q.ravel()[0])


def other_classes(log_variance: float, *, is_damped: bool) -> tuple[float, float]:
    """Probability of the other two classes at the one row there is: exact, and as predicted."""
    v = np.exp(log_variance)
    z = np.linspace(-9.0, 9.0, 121)
    f = np.sqrt(v) * np.stack(np.meshgrid(z, z, z, indexing="ij"), -1).reshape(-1, 3)
    p = softmax(f, axis=1)[:, 0]
    weight = np.exp(-0.5 * np.sum(f**2, axis=1) / v)
    exact = 1.0 - (weight @ p**2) / (weight @ p)
    K, Y = np.array([[[v]]]), np.array([[1.0], [0.0], [0.0]])
    fit, V, K_q = parts(K, Y)
    t = length_of(K, Y) if is_damped else 1.0
    return float(exact), float(1.0 - expected_softmax((fit.f + t * K_q).T, V)[0, 0])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("log_variance", [-1.0, 1.0, 3.0, 5.0])
def test_one_row_near_the_exact_odds(log_variance: float) -> None:
    exact, predicted = other_classes(log_variance, is_damped=True)
    assert predicted == pytest.approx(exact, rel=0.1)


def test_the_undamped_step_is_caught() -> None:
    exact, predicted = other_classes(5.0, is_damped=False)
    assert predicted < 0.1 * exact


def test_two_classes_as_for_the_logistic_model() -> None:
    X, y = problem(25, 2)
    Y = targets(y.astype(int), 2)
    for log_v in (1.0, 4.0, 6.0):
        K = plain_gram(np.array([log_v, 0.0, -0.5]), X)
        fit = fit_laplace(K, y)
        variance = binary.posterior_variance(y, np.ones(len(y)), fit.a, fit.gain, np.diagonal(K))
        K_q = K @ fit.q
        expected = binary.damped_correction(y, np.ones(len(y)), fit.f, variance, fit.a, fit.q, K_q)
        found = length_of(np.array([0.4, 0.6])[:, None, None] * K, Y)
        assert found == pytest.approx(expected[0] / fit.q[0], abs=2e-3)


def test_the_length_maximises_the_bound() -> None:
    X, y = classes(12, 2)
    Y = targets(y, 3)
    K = grams(np.array([[4.0, -0.5, -0.5], [3.0, 0.0, 0.5], [5.0, -1.0, 0.0]]), X)
    fit, V, K_q = parts(K, Y)
    z = np.random.default_rng(0).standard_normal((4000, 12, 3))
    offsets = np.einsum("nij,snj->sni", np.linalg.cholesky(V + 1e-12 * np.eye(3)), z)

    def bound(t: float) -> float:
        f = (fit.f + t * K_q).T + offsets
        likelihood = np.sum(Y.T * f, axis=2) - np.log(np.exp(f).sum(axis=2))
        a = fit.a + t * fit.q
        return float(likelihood.mean(axis=0).sum() - 0.5 * np.sum(a * (fit.f + t * K_q)))

    lengths = np.linspace(0.0, 1.0, 101)
    best = lengths[np.argmax([bound(t) for t in lengths])]
    assert 0.0 < best < 1.0
    assert length_of(K, Y) == pytest.approx(best, abs=0.05)
