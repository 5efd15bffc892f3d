from __future__ import annotations

import numpy as np
import pytest

from mercer.gp.fitting import make_sampler, paper_hmc
from mercer.gp.hyperparameters import Recorder, find_maximum, kernel_prior, paper_start
from mercer.gp.laplace import HyperparameterPosterior
from mercer.sampling.hmc import HMC
from mercer.sampling.metropolis import Metropolis
from mercer.sampling.nuts import NUTS
from support.gp_cases import posterior


def test_the_maximum_is_one() -> None:
    model = posterior(30, 2)
    maximum = find_maximum(model, with_covariance=True)
    assert maximum.is_converged
    assert np.abs(maximum.point.gradient).max() < 1e-2
    rng = np.random.default_rng(0)
    for _ in range(20):
        theta = maximum.point.position + 0.5 * rng.standard_normal(3)
        assert model.evaluate(theta).log_density < maximum.point.log_density


def test_the_covariance_is_the_inverse_hessian_and_no_wider_than_the_prior() -> None:
    model = posterior(60, 2)
    maximum = find_maximum(model, with_covariance=True)
    theta, h = maximum.point.position, 0.05
    rows = [
        (model.evaluate(theta - h * e).gradient - model.evaluate(theta + h * e).gradient) / (2 * h)
        for e in np.eye(3)
    ]
    hessian = 0.5 * (np.array(rows) + np.array(rows).T)
    std = model.prior.std
    assert maximum.covariance is not None
    scaled = maximum.covariance / np.outer(std, std)
    assert np.linalg.eigvalsh(scaled).max() <= 1.0 + 1e-12
    if np.linalg.eigvalsh(hessian * np.outer(std, std)).min() >= 1.0:
        np.testing.assert_allclose(maximum.covariance, np.linalg.inv(hessian), rtol=0.02)


def test_where_data_say_nothing_the_prior_is_the_bound() -> None:
    base = posterior(2, 2)
    model = HyperparameterPosterior(np.zeros((2, 2)), base.y, base.kernel, kernel_prior(2))
    maximum = find_maximum(model, with_covariance=True)
    assert maximum.covariance is not None
    np.testing.assert_allclose(maximum.covariance[1:, 1:], 9.0 * np.eye(2), atol=1e-6)


def test_paper_settings() -> None:
    model = posterior(12, 2)
    sampler = paper_hmc(model, Recorder(model, np.arange(3)), n_leapfrog=20, step_size=0.1)
    state = sampler.init(np.random.default_rng(0))
    np.testing.assert_array_equal(state.point.position, [0.0, -2.0, -2.0])
    np.testing.assert_array_equal(paper_start(2), [0.0, -2.0, -2.0])
    np.testing.assert_array_equal(sampler.tuning.mass.covariance, np.eye(3))
    assert (sampler.n_leapfrog, sampler.tuning.step_size) == (20, 0.1)


def test_recorder_names_the_parts() -> None:
    model = posterior(12, 2)
    point = model.evaluate(np.array([0.5, -1.0, -2.0]))
    record = Recorder(model, np.array([2, 5]))(point)
    assert record["log_signal_variance"] == 0.5
    np.testing.assert_array_equal(record["log_weight"], [-1.0, -2.0])
    assert record["log_density"] == point.log_density
    np.testing.assert_array_equal(record["latent"], point.extra["f"][[2, 5]])
    np.testing.assert_array_equal(record["dual_coef"], point.extra["a"])
    ratio = record["dual_correction"] / point.extra["q"]
    np.testing.assert_allclose(ratio, ratio[0])
    assert 0.5 < ratio[0] <= 1.0


@pytest.mark.parametrize(
    ("inference", "kind"), [("hmc", HMC), ("nuts", NUTS), ("metropolis", Metropolis)]
)
def test_starts_are_draws_of_the_gaussian(inference: str, kind: type) -> None:
    model = posterior(12, 2)
    maximum = find_maximum(model, with_covariance=True)
    sampler = make_sampler(inference, model, maximum, Recorder(model, np.arange(3)))
    assert isinstance(sampler, kind)
    rng = np.random.default_rng(1)
    starts = np.array([sampler.start(rng) for _ in range(5000)])
    centred = starts - maximum.point.position
    np.testing.assert_allclose(centred.mean(axis=0), 0.0, atol=0.25)
    np.testing.assert_allclose(np.cov(starts, rowvar=False), maximum.covariance, atol=0.6)
