"""GPR-1: evidence and gradient of a GP regressor against scikit-learn's and differences."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from mercer.gp import gaussian as evidence_module
from mercer.gp.gaussian import (
    NOISE_FLOOR,
    NoiseOfRows,
    RegressionPosterior,
    whole_noise_variance,
)
from mercer.numerics.cholesky import Workspace
from support.mutants import drop_noise_gradient
from support.process_fits import process_posterior, process_thetas

_STEP = 2e-3
SMOOTHNESS = {"rbf": np.inf, "matern12": 0.5, "matern32": 1.5, "matern52": 2.5}


def errors(n: int, d: int, kernel: str) -> tuple[float, float]:
    """Largest relative difference of log evidence and of its gradient."""
    model = process_posterior(n, d, kernel=kernel)
    worst = np.zeros(2)
    for theta in process_thetas(d, 12):
        evidence, gradient = _scikit_learn(model, theta, SMOOTHNESS[kernel])
        point = model.evaluate(theta)
        seen = point.log_density - model.prior.log_density(theta)
        slope = point.gradient - model.prior.gradient(theta)
        worst[0] = max(worst[0], abs(seen - evidence) / abs(evidence))
        worst[1] = max(worst[1], np.abs(slope - gradient).max() / np.abs(gradient).max())
        assert point.extra["log_evidence"] == pytest.approx(evidence, rel=1e-8)
    return float(worst[0]), float(worst[1])


def _scikit_learn(model: RegressionPosterior, theta: np.ndarray, smoothness: float):
    """Its length scale is w^-1/2, its noise the whole one, e^t + floor (1 + v0)."""
    scale, variance = np.exp(-0.5 * theta[1:-1]), float(np.exp(theta[0]))
    whole = float(whole_noise_variance(np.exp(theta[0]), theta[-1]))
    shape = RBF(scale) if smoothness == np.inf else Matern(scale, nu=smoothness)
    intercept = ConstantKernel(model.intercept_variance, "fixed")
    kernel = ConstantKernel(variance) * shape + WhiteKernel(whole) + intercept
    reference = GaussianProcessRegressor(kernel, alpha=1e-300, optimizer=None)
    reference.fit(model.X, model.y)
    evidence, own = reference.log_marginal_likelihood(reference.kernel_.theta, True)
    gradient = own * np.r_[1.0, np.full(len(scale), -0.5), np.exp(theta[-1]) / whole]
    gradient[0] += own[-1] * NOISE_FLOOR * variance / whole
    return evidence, gradient


def five_points(model: RegressionPosterior, theta: np.ndarray) -> np.ndarray:
    """The gradient by five-point differences: error of order step^4."""
    gradient = np.empty_like(theta)
    for k in range(len(theta)):
        shift = np.zeros_like(theta)
        shift[k] = _STEP
        one = [model.evaluate(theta + m * shift).log_density for m in (-2, -1, 1, 2)]
        gradient[k] = (one[0] - 8.0 * one[1] + 8.0 * one[2] - one[3]) / (12.0 * _STEP)
    return gradient


def worst_gradient_error(model: RegressionPosterior, thetas: np.ndarray) -> float:
    """Largest error relative to the largest entry of the gradient."""
    worst = 0.0
    for theta in thetas:
        expected = five_points(model, theta)
        error = np.abs(model.evaluate(theta).gradient - expected).max()
        worst = max(worst, error / np.abs(expected).max())
    return float(worst)


CASES = [(30, 1, "rbf"), (60, 3, "rbf"), *[(30, 2, f"matern{k}") for k in (12, 32, 52)]]


@pytest.mark.parametrize(("n", "d", "kernel"), CASES)
def test_gpr_1_scikit_learn(n: int, d: int, kernel: str) -> None:
    evidence, gradient = errors(n, d, kernel)
    assert evidence < 1e-8
    assert gradient < 1e-8


def test_gpr_1_scikit_learn_sees_the_intercept_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = evidence_module.noisy_factor
    monkeypatch.setattr(evidence_module, "noisy_factor", lambda K, s2, out, v: factor(K, s2, out))
    with pytest.raises(AssertionError):
        errors(30, 1, "rbf")


def test_gpr_1_scikit_learn_sees_the_noise_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    drop_noise_gradient(monkeypatch)
    evidence, gradient = errors(30, 1, "rbf")
    assert evidence < 1e-8
    assert gradient > 1e-2


@pytest.mark.parametrize("log_noise", [None, -2.0])
def test_gpr_1_gradient(log_noise: float | None) -> None:
    model = process_posterior(30, 2, log_noise=log_noise)
    assert worst_gradient_error(model, process_thetas(2, 12, has_noise=log_noise is None)) < 1e-7


def test_gpr_1_gradient_where_the_floor_is_all_the_noise() -> None:
    thetas = process_thetas(2, 6)
    thetas[:, 0], thetas[:, -1] = 2.0, -24.0
    assert worst_gradient_error(process_posterior(12, 2), thetas) < 1e-3


def test_gpr_1_gradient_sees_the_noise_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    drop_noise_gradient(monkeypatch)
    assert worst_gradient_error(process_posterior(30, 2), process_thetas(2, 12)) > 1e-2


def test_no_evidence_beyond_double_precision() -> None:
    model = process_posterior(12, 2)
    for bad in (41.0, -41.0, np.inf, np.nan):
        for k in range(4):
            theta = np.zeros(4)
            theta[k] = bad
            point = model.evaluate(theta)
            assert point.log_density == -np.inf
            np.testing.assert_array_equal(point.gradient, np.zeros(4))


# Rows that count differently: a row of weight w is the row w times.


def weighted_cases(known: bool) -> tuple[RegressionPosterior, RegressionPosterior]:
    """Posteriors of rows with weights, and of the same rows repeated."""
    once = process_posterior(20, 2, log_noise=-2.0 if known else None)
    rng = np.random.default_rng(5)
    weights, variances = rng.integers(1, 4, 20), rng.uniform(0.2, 3.0, 20)
    rows = NoiseOfRows(weights.astype(float), variances)
    each = NoiseOfRows(np.ones(weights.sum()), np.repeat(variances, weights))
    repeated = dataclasses.replace(
        once,
        X=np.repeat(once.X, weights, axis=0),
        y=np.repeat(once.y, weights),
        noise_of_rows=each,
        workspace=Workspace(),
    )
    return dataclasses.replace(once, noise_of_rows=rows, workspace=Workspace()), repeated


def gap_to_repeated(known: bool) -> float:
    weighted, repeated = weighted_cases(known)
    worst = 0.0
    for theta in process_thetas(2, 12, has_noise=not known):
        one, other = weighted.evaluate(theta), repeated.evaluate(theta)
        worst = max(worst, abs(one.log_density - other.log_density))
        worst = max(worst, np.abs(one.gradient - other.gradient).max())
        value, _ = weighted.values(one, None, np.arange(3))(theta)
        worst = max(worst, abs(value - one.log_density))
    return worst


@pytest.mark.parametrize("known", [False, True])
def test_gpr_1_weights_are_repeated_rows(known: bool) -> None:
    assert gap_to_repeated(known) < 1e-6


def test_gpr_1_weights_see_noise_that_is_only_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: noise over weight alone is not the power of a density."""
    monkeypatch.setattr(NoiseOfRows, "log_factor", lambda self, noise: 0.0)
    assert gap_to_repeated(known=False) > 1.0


def test_gpr_1_weights_that_are_no_whole_numbers_are_powers() -> None:
    """Log evidence by definition: one row, the function integrated out by quadrature."""
    once = process_posterior(20, 1)
    theta = process_thetas(1, 1)[0]
    model = dataclasses.replace(
        once,
        X=once.X[:1],
        y=once.y[:1],
        noise_of_rows=NoiseOfRows(np.array([2.5]), np.array([0.7])),
        workspace=Workspace(),
    )
    signal = float(np.exp(theta[0]))
    noise = 0.7 * float(whole_noise_variance(np.asarray(signal), theta[-1]))
    prior_std = np.sqrt(signal + model.intercept_variance)

    def integrand(f: float) -> float:
        return norm.pdf(f, 0.0, prior_std) * norm.pdf(model.y[0], f, np.sqrt(noise)) ** 2.5

    peak = model.y[0]
    expected, _ = quad(integrand, -10 * prior_std, 10 * prior_std, points=[peak], limit=400)
    seen = float(model.evaluate(theta).extra["log_evidence"])
    assert seen == pytest.approx(np.log(expected), abs=1e-6)


def test_gpr_1_gradient_with_weights() -> None:
    weighted, _ = weighted_cases(known=False)
    assert worst_gradient_error(weighted, process_thetas(2, 6)) < 1e-7
