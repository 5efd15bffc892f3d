from __future__ import annotations

import numpy as np
import pytest

from mercer.spectral import class_sampler as joint_sampler
from mercer.spectral.class_sampler import JointSampler
from support.spectral_class_cases import functions, make_classes, plain_log_likelihood, problem
from support.spectral_class_fits import tiny, waves


def joint(n_classes: int, **own):
    codes = problem(30, 2, n_classes)
    return make_classes(*codes, n_classes=n_classes, kind=JointSampler, **own)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("has_linear_part", [False, True])
def test_a_step(n_classes: int, has_linear_part: bool) -> None:
    """The likelihood is that of the state; a draw stores coefficients without deviations."""
    sampler = joint(n_classes, has_linear_part=has_linear_part)
    rng = np.random.default_rng(1)
    state = sampler.init(rng)
    for _ in range(10):
        state, info = sampler.step(rng, state)
        expected = plain_log_likelihood(functions(sampler, state), sampler.rows.y)
        assert state.log_likelihood == info.log_density == pytest.approx(expected, rel=1e-10)
    record = sampler.record(state)
    assert record["coef_deviation"].shape == (n_classes - 1, 1, record["coef_mean"].shape[1])
    assert not record["coef_deviation"].any()


def test_a_ridge_that_is_given_stays() -> None:
    sampler, rng = joint(3, is_ridge_learned=False, ridge=0.37), np.random.default_rng(2)
    state, _ = sampler.step(rng, sampler.init(rng))
    np.testing.assert_array_equal(state.ridge, 0.37)


def test_frequencies_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many fit into memory at a time, the step is the same."""
    sampler, found = joint(3, n_frequencies=7), []
    for most in (2**20, 2 * 30 * 3, 1):
        monkeypatch.setattr(joint_sampler, "_MOST_NUMBERS", most)
        rng = np.random.default_rng(3)
        state, _ = sampler.step(rng, sampler.init(rng))
        found.append(state.coef)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_learns(n_classes: int) -> None:
    X, y = waves(200, n_classes=n_classes)
    model = tiny(sampler="joint", n_frequencies=20, n_draws=40, n_warmup=40).fit(X[:150], y[:150])
    assert (model.predict(X[150:]) == y[150:]).mean() > 0.6
