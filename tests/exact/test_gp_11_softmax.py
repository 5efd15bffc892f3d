"""GP-11: several classes: evidence, mode, gradient and predictions against dense algebra and
quadrature, and moments of the hyperparameters by HMC against a grid.

Of the moments: false alarm 1e-6 (five moments, 50 batches: |t| < 6.04), at an acceptance of 0.5 to
0.85, as GP-5.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import helmert
from scipy.special import softmax

from mercer.gp import softmax as laplace
from mercer.gp.laplace import HyperparameterPosterior, LatentDraws, SoftmaxDraws, fit_laplace
from mercer.gp.softmax import expected_softmax, fit_softmax
from mercer.sampling.hmc import HMC, HamiltonianTuning, unit_mass
from support.gp_cases import plain_gram, problem
from support.grid import Grid, five_moments
from support.mutants import accept_everything
from support.softmax_cases import (
    KERNEL,
    classes,
    dense_gram,
    dense_log_evidence,
    dense_mode,
    dense_r,
    exact_log_evidence,
    grams,
    leave_out_last_determinant,
    leave_out_products_in_adjoint,
    leave_out_products_in_covariance,
    leave_out_third_derivatives,
    log_joint,
    posterior,
    targets,
    thetas,
)
from support.statistics import largest_z, tiers, z_limit
from support.targets import At, record_position, run

_STEP = 2e-3
both_kinds = pytest.mark.parametrize("is_shared", [True, False])


def gradient_error(n: int, d: int, *, is_shared: bool, n_classes: int = 3) -> float:
    """Largest relative error over six thetas, against five-point differences."""
    model, worst = posterior(n, d, n_classes, is_shared=is_shared), 0.0
    for theta in thetas(d, model.n_kernels, 6):
        expected = np.empty_like(theta)
        for k in range(len(theta)):
            shift = np.zeros_like(theta)
            shift[k] = _STEP
            f = [model.evaluate(theta + m * shift).log_density for m in (-2, -1, 1, 2)]
            expected[k] = (f[0] - 8.0 * f[1] + 8.0 * f[2] - f[3]) / (12.0 * _STEP)
        error = np.abs(model.evaluate(theta).gradient - expected).max()
        worst = max(worst, error / np.abs(expected).max())
    return float(worst)


def evidence_error(*, is_shared: bool) -> float:
    """Largest difference of log evidence from dense algebra."""
    X, y = classes(14, 2)
    Y, worst = targets(y, 3), 0.0
    for theta in thetas(2, 1 if is_shared else 3, 6):
        K = grams(theta.reshape(-1, 3), X)
        worst = max(worst, abs(fit_softmax(K, Y).log_evidence - dense_log_evidence(K, Y)))
    return worst


@both_kinds
@pytest.mark.parametrize(("n", "d"), [(12, 1), (40, 2)])
def test_gp_11_gradient(n: int, d: int, is_shared: bool) -> None:
    assert gradient_error(n, d, is_shared=is_shared) < 1e-7


@both_kinds
def test_gp_11_gradient_of_five_classes(is_shared: bool) -> None:
    assert gradient_error(30, 2, is_shared=is_shared, n_classes=5) < 1e-7


@both_kinds
@pytest.mark.parametrize("mutant", [leave_out_third_derivatives, leave_out_products_in_adjoint])
def test_gp_11_gradient_sees_what_is_left_out(
    mutant, is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert gradient_error(12, 1, is_shared=is_shared) > 1e-2


@both_kinds
def test_gp_11_gradient_at_a_huge_variance(is_shared: bool) -> None:
    """v0 = e^8: probabilities down to 1e-20, and the last digits of the mode show."""
    model = posterior(40, 2, is_shared=is_shared)
    theta = np.tile([8.0, -2.0, -1.0], model.n_kernels)
    shift = np.linspace(-1.0, 1.0, len(theta))
    f = [model.evaluate(theta + m * _STEP * shift).log_density for m in (-2, -1, 1, 2)]
    expected = (f[0] - 8.0 * f[1] + 8.0 * f[2] - f[3]) / (12.0 * _STEP)
    point = model.evaluate(theta)
    scale = np.abs(point.gradient) @ np.abs(shift)
    assert abs(point.gradient @ shift - expected) < 1e-7 * scale


@both_kinds
def test_gp_11_evidence_against_dense_algebra(is_shared: bool) -> None:
    assert evidence_error(is_shared=is_shared) < 1e-9


@both_kinds
def test_gp_11_evidence_sees_the_last_determinant_left_out(
    is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_out_last_determinant(monkeypatch)
    assert evidence_error(is_shared=is_shared) > 0.1


def slope(*, is_shared: bool) -> float:
    """Slope of log |Laplace - exact| in log v, two rows, three classes, v -> 0."""
    X, Y = problem(2, 1)[0], targets(np.array([0, 2]), 3)
    sizes = np.array([[1.0]] if is_shared else [[1.0], [0.5], [2.0]])
    log_v, errors = np.linspace(-6.0, -3.5, 6), []
    for value in log_v:
        K = sizes[:, :, None] * plain_gram(np.array([value, 0.0]), X)
        errors.append(abs(fit_softmax(K, Y).log_evidence - exact_log_evidence(K, Y)))
    return float(np.polyfit(log_v, np.log(errors), 1)[0])


@both_kinds
def test_gp_11_small_variance(is_shared: bool) -> None:
    assert 1.8 <= slope(is_shared=is_shared) <= 2.1


def test_gp_11_small_variance_sees_the_last_determinant_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leave_out_last_determinant(monkeypatch)
    assert slope(is_shared=True) < 1.2


@both_kinds
def test_gp_11_mode(is_shared: bool) -> None:
    """|f - K (Y - pi)|, relative to the size of f, and the dense mode."""
    X, y = classes(30, 2)
    Y = targets(y, 3)
    for theta in thetas(2, 1 if is_shared else 3, 6):
        K = grams(theta.reshape(-1, 3), X)
        fit = fit_softmax(K, Y)
        fixed = dense_gram(K, 3) @ (Y - softmax(fit.f, axis=0)).ravel()
        size = max(1.0, np.abs(fit.f).max())
        assert np.abs(fit.f.ravel() - fixed).max() < 1e-9 * size
        np.testing.assert_allclose(fit.f, dense_mode(K, Y), atol=1e-8 * size)
        np.testing.assert_allclose(fit.f, log_joint(K, Y, fit.a)[1], atol=1e-10 * size)


def test_gp_11_correction_is_the_newton_step_of_the_posterior_mean() -> None:
    """K q = Sigma s2 with Sigma = K - K R K and s2 by differences of the determinant."""
    X, y = classes(10, 2)
    Y, h = targets(y, 3), 1e-5
    for theta in thetas(2, 3, 3):
        K = grams(theta.reshape(3, 3), X)
        fit = fit_softmax(K, Y)
        G, s2 = dense_gram(K, 3), np.empty(30)
        for i in range(30):
            ends = []
            for sign in (1.0, -1.0):
                f = fit.f + (sign * h * np.eye(30)[i]).reshape(3, 10)
                factors = laplace.curvature(
                    K, softmax(f, axis=0), np.empty((3, 10, 10)), np.ones(10)
                )
                ends.append(factors.log_det)
            s2[i] = (ends[1] - ends[0]) / (2.0 * h)
        sigma = G - G @ dense_r(K, fit.f) @ G
        K_q = G @ fit.q.ravel()
        np.testing.assert_allclose(K_q, sigma @ s2, atol=1e-6 * np.abs(K_q).max())


def test_gp_11_two_classes_are_the_logistic_model() -> None:
    """Kernels v1 k and v2 k, against (v1 + v2) k: evidence, mode, correction and adjoint."""
    X, y = problem(30, 2)
    Y = targets(y, 2)
    for log_v in (-1.0, 2.0, 5.0):
        K = plain_gram(np.array([log_v, 0.3, -1.0]), X)
        logistic = fit_laplace(K, y)
        for shares in ([0.3, 0.7], [0.5]):
            fit = fit_softmax(np.array(shares)[:, None, None] * K, Y)
            assert fit.log_evidence == pytest.approx(logistic.log_evidence, rel=1e-9)
            np.testing.assert_allclose(fit.f[1] - fit.f[0], logistic.f, rtol=1e-7, atol=1e-8)
            np.testing.assert_allclose(fit.a, [-logistic.a, logistic.a], atol=1e-8)
            np.testing.assert_allclose(fit.q, [-logistic.q, logistic.q], atol=1e-7)
            adjoint = fit.adjoint if len(shares) == 2 else 0.5 * fit.adjoint
            size = np.abs(logistic.adjoint).max()
            for A in adjoint:
                np.testing.assert_allclose(A, logistic.adjoint, atol=1e-7 * size)


def test_gp_11_one_kernel_for_each_class_but_all_alike() -> None:
    """The same evidence as shared; the gradients add up to the shared one."""
    shared, own = posterior(25, 2, is_shared=True), posterior(25, 2, is_shared=False)
    for theta in thetas(2, 1, 3):
        K = np.stack([KERNEL.gram(theta, shared.X)] * 3)
        one, many = (
            fit_softmax(K[:1], targets(shared.y, 3)),
            fit_softmax(K, targets(own.y, 3)),
        )
        assert one.log_evidence == pytest.approx(many.log_evidence, rel=1e-10)
        size = np.abs(one.adjoint).max()
        np.testing.assert_allclose(one.adjoint[0], many.adjoint.sum(axis=0), atol=1e-8 * size)


@both_kinds
def test_gp_11_permuting_classes_permutes(is_shared: bool) -> None:
    model = posterior(25, 2, 4, is_shared=is_shared)
    order = np.array([2, 0, 3, 1])  # class c becomes order[c]
    y = order[model.y.astype(int)].astype(float)
    other = HyperparameterPosterior(model.X, y, KERNEL, model.kernel_prior, 4, is_shared)
    for theta in thetas(2, model.n_kernels, 3):
        parts, moved = model.split(theta), np.empty_like(model.split(theta))
        moved[order[: len(parts)] if not is_shared else [0]] = parts
        here, there = model.evaluate(theta), other.evaluate(moved.ravel())
        assert there.log_density == pytest.approx(here.log_density, rel=1e-10)
        gradient = other.split(there.gradient)
        gradient = gradient if is_shared else gradient[order]
        size = np.abs(here.gradient).max()
        np.testing.assert_allclose(gradient.ravel(), here.gradient, atol=1e-8 * size)
        for name in ("a", "q", "f"):
            size = np.abs(here.extra[name]).max()
            np.testing.assert_allclose(there.extra[name][order], here.extra[name], atol=1e-7 * size)


@both_kinds
def test_gp_11_energy_is_a_function_of_theta(is_shared: bool) -> None:
    """The same bits whatever was evaluated before."""
    model = posterior(25, 2, is_shared=is_shared)
    points = thetas(2, model.n_kernels, 5)
    first = [model.evaluate(theta) for theta in points]
    again = [model.evaluate(theta) for theta in points[::-1]][::-1]
    for one, other in zip(first, again, strict=True):
        assert one.log_density == other.log_density
        np.testing.assert_array_equal(one.gradient, other.gradient)


def draws_of(X: np.ndarray, y: np.ndarray, n_classes: int, theta: np.ndarray) -> SoftmaxDraws:
    """Draws (S, n_kernels, p) with the undamped correction."""
    fits = [fit_softmax(grams(own, X), targets(y, n_classes)) for own in theta]
    a, q = np.array([fit.a for fit in fits]), np.array([fit.q for fit in fits])
    return SoftmaxDraws(X, KERNEL, theta, a, y, a + q)


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
    binary = LatentDraws(X, KERNEL, theta, a, y, a + q)
    expected = binary.probabilities(Z)
    for shares in ([0.3, 0.7], [0.5]):
        log_shares = np.log(shares)[:, np.newaxis] * np.array([1.0, 0.0, 0.0])
        draws = draws_of(X, y.astype(int), 2, theta[:, np.newaxis] + log_shares)
        found = draws.probabilities(Z)
        np.testing.assert_allclose(found, expected, atol=1e-8)
        mean = draws.latent(Z)[0]
        np.testing.assert_allclose(mean[:, 1] - mean[:, 0], binary.latent(Z)[0], atol=1e-6)


@both_kinds
def test_gp_11_averages_over_draws_and_blocks(
    is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = classes(20, 2, 4)
    Z = problem(23, 2, seed=3)[0]
    theta = thetas(2, 1 if is_shared else 4, 3).reshape(3, -1, 3)
    draws = draws_of(X, y, 4, theta)
    singles = [next(draws_of(X, y, 4, own[None]).moments(Z))[1:] for own in theta]
    monkeypatch.setattr(SoftmaxDraws, "rows_at_once", 5)
    p = draws.probabilities(Z)
    expected = np.mean([expected_softmax(m, S) for m, S in singles], axis=0)
    np.testing.assert_allclose(p, expected, atol=1e-8)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    mean, variance = draws.latent(Z)
    means = np.array([m for m, _ in singles])
    variances = np.array([np.diagonal(S, axis1=1, axis2=2) for _, S in singles])
    np.testing.assert_allclose(mean, means.mean(axis=0), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        variance, variances.mean(axis=0) + means.var(axis=0), rtol=1e-8, atol=1e-9
    )


_BATCHES = 50


@pytest.fixture(scope="module")
def model() -> HyperparameterPosterior:
    return posterior(8, 1, is_shared=True)


@pytest.fixture(scope="module")
def truth(model: HyperparameterPosterior) -> np.ndarray:
    grid = Grid.of(model, 51, 5.6)
    assert grid.edge_mass < 1e-7
    return grid.expectation(five_moments)


def hmc_error(
    model: HyperparameterPosterior, truth: np.ndarray, n_draws: int
) -> tuple[float, float]:
    """Largest |t| of the five moments, and the acceptance rate."""
    tuning = HamiltonianTuning(2.5, unit_mass(2))
    hmc = HMC(model, At((-1.0, -1.0)), record_position, tuning, n_leapfrog=3, path_length=None)
    draws, acceptance_rate = run(hmc, n_draws, seed=5)
    return largest_z(five_moments(draws), truth, _BATCHES), acceptance_rate


@pytest.mark.parametrize("n_draws", tiers(600, 4000))
def test_gp_11_hyperposterior(
    model: HyperparameterPosterior, truth: np.ndarray, n_draws: int
) -> None:
    z, acceptance_rate = hmc_error(model, truth, n_draws)
    assert 0.5 < acceptance_rate < 0.85
    assert z < z_limit(_BATCHES, 5)


@pytest.mark.parametrize("mutant", [accept_everything, leave_out_last_determinant])
def test_gp_11_hyperposterior_sees(
    mutant, model: HyperparameterPosterior, truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert hmc_error(model, truth, 2000)[0] > z_limit(_BATCHES, 5)
