"""GPR-3: the predictive law at fixed hyperparameters against scikit-learn's, and draws of it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from mercer.gp import gaussian as predict
from mercer.gp.regressor import GPRegressor
from support.process_fits import tiny
from support.spectral_fits import waves
from support.statistics import z_limit

X, Y = waves(40)
Z = waves(12, seed=4)[0]


@pytest.fixture(scope="module")
def model() -> GPRegressor:
    return tiny(inference="map").fit(X, 5.0 * Y + 3.0)


def reference(model: GPRegressor) -> tuple[GaussianProcessRegressor, float]:
    """scikit-learn's process of the function at the maximum, and the variance of the noise."""
    draws = model.posterior_
    scale = np.exp(-0.5 * draws.flat("log_weight")[0])
    kernel = ConstantKernel(np.exp(draws.flat("log_signal_variance")[0])) * RBF(scale)
    kernel += ConstantKernel(1.0)  # the intercept
    noise = (model.noise_std_ / model.target_scale_) ** 2
    process = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None)
    return process.fit(model._X, model._y), noise


def law_error(model: GPRegressor) -> float:
    """Largest difference of mean and standard deviation, in those of the target."""
    process, noise = reference(model)
    mean, std = process.predict(model.standardizer_.transform(Z), return_std=True)
    seen_mean, seen_std = model.predict(Z, return_std=True)
    centre, scale = model.target_centre_, model.target_scale_
    gaps = (seen_mean - centre) / scale - mean, seen_std / scale - np.sqrt(std**2 + noise)
    return float(np.abs(gaps).max())


def test_gpr_3_scikit_learn(model: GPRegressor) -> None:
    assert law_error(model) < 1e-8
    process, _ = reference(model)
    mean, std = process.predict(model.standardizer_.transform(Z), return_std=True)
    seen_mean, variance = model.latent(Z)
    scale = model.target_scale_
    np.testing.assert_allclose(seen_mean, model.target_centre_ + scale * mean, rtol=1e-8)
    np.testing.assert_allclose(variance, scale**2 * std**2, rtol=1e-7)
    np.testing.assert_allclose(model.predict(Z), seen_mean, rtol=1e-12)
    own = process.log_marginal_likelihood_value_ - len(Y) * np.log(scale)
    assert model.log_marginal_likelihood_ == pytest.approx(own, rel=1e-8)


def test_gpr_3_scikit_learn_sees_the_factor_without_noise(
    model: GPRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    factor = predict.noisy_factor
    monkeypatch.setattr(model._functions[0].memory, "_kept", {})
    monkeypatch.setattr(predict, "noisy_factor", lambda K, s2, out, v: factor(K, 0.5 * s2, out, v))
    assert law_error(model) > 1e-4


def worst_moment(model: GPRegressor, count: int) -> float:
    """Largest |z| of the means and second moments of joint draws at new rows."""
    process, noise = reference(model)
    mean, cov = process.predict(model.standardizer_.transform(Z), return_cov=True)
    cov += noise * np.eye(len(Z))
    drawn = model.sample_y(Z, count, random_state=1)
    L = np.linalg.cholesky(cov)
    white = np.linalg.solve(L, ((drawn - model.target_centre_) / model.target_scale_ - mean).T)
    first = white.mean(axis=1) * np.sqrt(count)
    second = (white @ white.T - count * np.eye(len(Z))) / np.sqrt(count)
    second[np.diag_indices(len(Z))] /= np.sqrt(2.0)
    return float(max(np.abs(first).max(), np.abs(second).max()))


def test_gpr_3_draws_of_functions(model: GPRegressor) -> None:
    """Given the hyperparameters, white to the last pair of rows; 90 statistics, 4000 draws."""
    assert worst_moment(model, 4000) < z_limit(4000, 90)


def test_gpr_3_draws_of_functions_see_rows_drawn_apart(
    model: GPRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predict.np, "tril", lambda L: np.diag(np.linalg.norm(np.triu(L.T), axis=0)))
    assert worst_moment(model, 4000) > z_limit(4000, 90)


def test_the_law_is_the_average_of_draws() -> None:
    """One normal a draw; with all hyperparameters in it, wider than one of them."""
    model = tiny(n_draws=30, inference="hmc").fit(X, Y)
    law = model.predictive(Z)
    assert law.locations.shape == law.scales.shape == (len(Z), 30)
    np.testing.assert_allclose(law.mean, law.locations.mean(axis=1), rtol=1e-10)
    mean, variance = model.latent(Z)
    np.testing.assert_allclose(mean, law.mean, rtol=1e-12)
    noise = (model._functions[0].noise_variance * model.target_scale_**2).mean()
    np.testing.assert_allclose(law.std**2, variance + noise, rtol=1e-8)
