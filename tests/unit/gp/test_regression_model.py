from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from mercer.gp import gaussian
from mercer.gp.gaussian import NOISE_FLOOR, RegressionPosterior, whole_noise_variance
from mercer.gp.hyperparameters import Recorder
from support.process_fits import process_posterior


def test_the_prior_must_be_of_all_parameters() -> None:
    base = process_posterior(6, 2)
    with pytest.raises(ValueError, match="4 parameters for 3"):
        RegressionPosterior(base.X, base.y, base.kernel, base.prior, log_noise_variance=-2.0)


def test_noise_has_a_floor_that_grows_with_the_function() -> None:
    noise = whole_noise_variance(np.exp([0.0, 2.0, -40.0]), np.array([0.0, -40.0, -40.0]))
    expected = [1.0 + 2.0 * NOISE_FLOOR, NOISE_FLOOR * (1.0 + np.exp(2.0)), NOISE_FLOOR]
    np.testing.assert_allclose(noise, expected, rtol=1e-8)


def test_known_noise_is_no_parameter() -> None:
    learned, known = process_posterior(12, 2), process_posterior(12, 2, log_noise=-1.0)
    theta = np.array([0.3, -1.0, -2.0])
    whole = learned.evaluate(np.append(theta, -1.0))
    point = known.evaluate(theta)
    gap = learned.prior.log_density(np.append(theta, -1.0)) - known.prior.log_density(theta)
    assert point.log_density == pytest.approx(whole.log_density - gap, rel=1e-12)
    np.testing.assert_allclose(point.gradient, whole.gradient[:3], rtol=1e-10)


def test_targets_without_noise_and_constant_ones_have_an_evidence() -> None:
    model = process_posterior(40, 2)
    still = dataclasses.replace(model, y=np.zeros(40))
    for log_v0 in (-39.0, 0.0, 39.0):
        theta = np.array([log_v0, -5.0, -5.0, -39.0])
        for each in (model, still):
            point = each.evaluate(theta)
            assert np.isfinite(point.log_density)
            assert np.isfinite(point.gradient).all()


def gap_of_halves(kernel: str, monkeypatch: pytest.MonkeyPatch) -> float:
    """Between the evidence with a gradient and without, of rows that are many enough for halves."""
    monkeypatch.setattr(gaussian, "_HALVED", 30)
    model = process_posterior(41, 2, kernel=kernel)
    theta = np.linspace(-1.0, -0.4, len(model.prior.mean))
    point = model.evaluate(theta)
    model.workspace.take("factor", 41)[:] = 1e3  # what is not filled has no part
    log_density, recorded = model.values(point, None, np.arange(41))(theta)
    np.testing.assert_allclose(recorded["dual_coef"], point.extra["dual_coef"], rtol=1e-8)
    return log_density - point.log_density


KERNELS = ["rbf", "rbf[0] + matern52[1]", "isotropic(matern12) * categorical[1] + linear"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_half_a_gram_matrix_has_the_evidence(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gap_of_halves(kernel, monkeypatch) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("kernel", KERNELS)
def test_halves_that_end_too_early_are_seen(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian, "pairwise", lambda edges: [(0, 10), (10, 20), (20, 30)])
    with pytest.raises(AssertionError):
        assert gap_of_halves(kernel, monkeypatch) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("log_noise", [None, -1.0])
def test_recorder_names_the_parts(log_noise: float | None) -> None:
    model = process_posterior(12, 2, log_noise=log_noise)
    theta = np.array([0.5, -1.0, -2.0, -1.0])[: 4 if log_noise is None else 3]
    point = model.evaluate(theta)
    record = Recorder(model, np.array([2, 5]))(point)
    assert (record["log_signal_variance"], record["log_noise_variance"]) == (0.5, -1.0)
    np.testing.assert_array_equal(record["log_weight"], [-1.0, -2.0])
    assert record["log_density"] == point.log_density
    prior = model.prior.log_density(theta)
    assert record["log_evidence"] == pytest.approx(point.log_density - prior)
    K = model.kernel.gram(theta[:3], model.X) + model.intercept_variance
    np.testing.assert_allclose(record["latent"], (K @ record["dual_coef"])[[2, 5]], rtol=1e-9)
