"""GP-11: predictions for several classes: dense algebra, quadrature, and the logistic model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import helmert
from scipy.special import softmax

from mercer.gp import softmax as predict
from mercer.gp.laplace import LatentDraws, fit_laplace
from mercer.gp.laplace import latent_moments as binary_moments
from mercer.gp.laplace import mean_success_probability as success_probability
from mercer.gp.softmax import SoftmaxDraws, expected_softmax, fit_softmax, latent_moments
from mercer.gp.softmax import mean_class_probabilities as class_probabilities
from support.gp_cases import plain_gram, problem
from support.softmax_cases import (
    KERNEL,
    classes,
    dense_gram,
    dense_mode,
    dense_r,
    grams,
    leave_out_products_in_covariance,
    targets,
    thetas,
)

both_kinds = pytest.mark.parametrize("is_shared", [True, False])


def draws_of(X: np.ndarray, y: np.ndarray, n_classes: int, theta: np.ndarray) -> SoftmaxDraws:
    """Draws (S, n_kernels, p) with the undamped correction."""
    fits = [fit_softmax(grams(own, X), targets(y, n_classes)) for own in theta]
    a, q = np.array([fit.a for fit in fits]), np.array([fit.q for fit in fits])
    return SoftmaxDraws(X, y, KERNEL, theta, a, a + q)


def moment_error(*, is_shared: bool) -> float:
    """Largest error of mean and covariance against dense solves, relative to their sizes."""
    X, y = classes(15, 2)
    Z, worst = problem(7, 2, seed=3)[0], 0.0
    for theta in thetas(2, 1 if is_shared else 3, 4).reshape(4, -1, 3):
        draws = draws_of(X, y, 3, theta[np.newaxis])
        _, mean, covariance = next(draws.moments(Z))
        K, cross = grams(theta, X), grams(theta, X, Z)
        R = dense_r(K, dense_mode(K, targets(y, 3)))
        for j in range(len(Z)):
            k = dense_gram(cross[:, :, j : j + 1], 3)
            expected = np.diag(np.broadcast_to(np.exp(theta[:, 0]), 3)) - k.T @ R @ k
            error = np.abs(covariance[j] - expected).max() / np.abs(expected).max()
            expected_mean = k.T @ draws.mean_coef[0].ravel()
            worst = max(worst, error, np.abs(mean[j] - expected_mean).max())
    return worst


def quadrature(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The softmax of three classes averaged by the trapezoid rule, 401^2 points on +-8 sd."""
    H, z = helmert(3), np.linspace(-8.0, 8.0, 401)
    root = np.linalg.cholesky(H @ covariance @ H.T)
    nodes = np.stack(np.meshgrid(z, z, indexing="ij"), -1).reshape(-1, 2)
    weights = np.exp(-0.5 * np.sum(nodes**2, axis=1))
    return weights @ softmax(mean + nodes @ root.T @ H, axis=1) / weights.sum()


@both_kinds
def test_gp_11_moments_against_dense_algebra(is_shared: bool) -> None:
    assert moment_error(is_shared=is_shared) < 1e-7


@both_kinds
def test_gp_11_moments_see_the_products_left_out(
    is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_out_products_in_covariance(monkeypatch)
    assert moment_error(is_shared=is_shared) > 1e-2


@pytest.mark.parametrize(("std", "limit"), [(0.1, 1e-4), (1.0, 2e-3), (10.0, 1.5e-2)])
def test_gp_11_average_against_quadrature(std: float, limit: float) -> None:
    rng = np.random.default_rng(0)
    roots, mean = std * rng.standard_normal((20, 3, 3)), std * rng.standard_normal((20, 3))
    covariance = roots @ np.swapaxes(roots, 1, 2)
    expected = [quadrature(m, S) for m, S in zip(mean, covariance, strict=True)]
    found = expected_softmax(mean, covariance)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    assert np.abs(found - expected).max() < limit


def test_gp_11_average_does_not_see_a_common_shift() -> None:
    """Nor a common variance; and where nothing varies it is the softmax."""
    mean, covariance = np.array([[0.3, -1.0, 2.0, 0.0]]), np.diag([1.0, 2.0, 0.5, 0.0])[None]
    p = expected_softmax(mean, covariance)
    np.testing.assert_allclose(expected_softmax(mean + 40.0, covariance + 9.0), p, atol=1e-7)
    np.testing.assert_allclose(expected_softmax(mean, 0.0 * covariance), softmax(mean, axis=1))
    np.testing.assert_allclose(
        expected_softmax(mean, 0.0 * covariance + 4.0), softmax(mean, axis=1), atol=1e-7
    )


def test_gp_11_two_classes_predict_as_the_logistic_model() -> None:
    X, y = problem(30, 2)
    Z = problem(11, 2, seed=3)[0]
    theta = np.array([[1.5, 0.3, -1.0], [4.0, 0.0, 0.5]])
    fits = [fit_laplace(plain_gram(own, X), y) for own in theta]
    a, q = np.array([fit.a for fit in fits]), np.array([fit.q for fit in fits])
    binary = LatentDraws(X, y, KERNEL, theta, a, a + q)
    expected = success_probability(binary, Z)
    for shares in ([0.3, 0.7], [0.5]):
        log_shares = np.log(shares)[:, np.newaxis] * np.array([1.0, 0.0, 0.0])
        draws = draws_of(X, y.astype(int), 2, theta[:, np.newaxis] + log_shares)
        found = class_probabilities(draws, Z)
        np.testing.assert_allclose(found, np.column_stack([1.0 - expected, expected]), atol=1e-8)
        mean = latent_moments(draws, Z)[0]
        np.testing.assert_allclose(mean[:, 1] - mean[:, 0], binary_moments(binary, Z)[0], atol=1e-6)


@both_kinds
def test_gp_11_averages_over_draws_and_blocks(
    is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = classes(20, 2, 4)
    Z = problem(23, 2, seed=3)[0]
    theta = thetas(2, 1 if is_shared else 4, 3).reshape(3, -1, 3)
    draws = draws_of(X, y, 4, theta)
    singles = [next(draws_of(X, y, 4, own[None]).moments(Z))[1:] for own in theta]
    monkeypatch.setattr(predict, "_BLOCK", 5)
    p = class_probabilities(draws, Z)
    expected = np.mean([expected_softmax(m, S) for m, S in singles], axis=0)
    np.testing.assert_allclose(p, expected, atol=1e-8)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    mean, variance = latent_moments(draws, Z)
    means = np.array([m for m, _ in singles])
    variances = np.array([np.diagonal(S, axis1=1, axis2=2) for _, S in singles])
    np.testing.assert_allclose(mean, means.mean(axis=0), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        variance, variances.mean(axis=0) + means.var(axis=0), rtol=1e-8, atol=1e-9
    )
