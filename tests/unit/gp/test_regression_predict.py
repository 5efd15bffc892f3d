from __future__ import annotations

import numpy as np
import pytest

from mercer import GPRegressor
from mercer.gp import gaussian as predict
from mercer.gp.gaussian import FunctionDraws, function_draws
from mercer.kernels.stationary import SquaredExponentialARD
from support.process_fits import process_posterior, process_thetas, tiny
from support.spectral_fits import waves

Z = waves(7, d=2, seed=4)[0]


def functions(count: int) -> tuple[FunctionDraws, np.ndarray]:
    model, thetas = process_posterior(15, 2), process_thetas(2, count)
    points = [model.evaluate(theta) for theta in thetas]
    dual_coef = np.array([point.extra["dual_coef"] for point in points])
    noise, intercept = np.exp(thetas[:, 3]), model.intercept_variance
    own = FunctionDraws(model.X, model.kernel, thetas[:, :3], noise, dual_coef, intercept)
    return own, model.y


def test_moments_against_dense_solves() -> None:
    own, y = functions(4)
    means, variances = own.moments(Z)
    assert means.shape == variances.shape == (7, 4)
    for s in range(4):
        K = own.kernel.gram(own.theta[s], own.X) + own.noise_variance[s] * np.eye(15) + 1.0
        k = own.kernel.cross_gram(own.theta[s], Z, own.X) + 1.0
        np.testing.assert_allclose(means[:, s], k @ np.linalg.solve(K, y), rtol=1e-4, atol=1e-4)
        expected = np.exp(own.theta[s, 0]) + 1.0 - np.sum(k.T * np.linalg.solve(K, k.T), axis=0)
        np.testing.assert_allclose(variances[:, s], expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(own.expected(Z), means.mean(axis=1), rtol=1e-10)


def test_blocks_within_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    own, _ = functions(3)
    expected = own.moments(Z)
    monkeypatch.setattr(predict, "_BLOCK", 2)
    np.testing.assert_allclose(own.moments(Z), expected, rtol=1e-12)
    np.testing.assert_allclose(own.expected(Z), expected[0].mean(axis=1), rtol=1e-10)


def test_the_spread_is_of_some_draws_and_the_mean_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    own, _ = functions(10)
    assert own.of_spread.tolist() == list(range(10))
    monkeypatch.setattr(predict, "_SPREAD_DRAWS", 4)
    few, _ = functions(10)
    assert few.of_spread.tolist() == [0, 3, 6, 9]
    assert few.moments(Z)[0].shape == (7, 4)
    np.testing.assert_array_equal(few.expected(Z), own.expected(Z))


def test_sampled_targets_come_from_one_function_a_draw() -> None:
    """Equal rows of one draw differ by noise only."""
    own, _ = functions(5)
    twice = np.repeat(20.0 * Z[:1], 2, axis=0)
    drawn = own.sample(np.random.default_rng(0), twice, 3000)
    noise, v0 = own.noise_variance.mean(), np.exp(own.theta[:, 0]).mean()
    assert np.var(drawn[:, 0] - drawn[:, 1]) == pytest.approx(2.0 * noise, rel=0.2)
    assert np.var(drawn[:, 0]) == pytest.approx(v0 + 1.0 + noise, rel=0.2)


def test_what_predictions_need_comes_from_the_draws() -> None:
    model = tiny().fit(*waves(20, d=2))
    own = function_draws(model.posterior_, model._X, SquaredExponentialARD())
    assert own.theta.shape == (20, 3)
    np.testing.assert_array_equal(own.theta[:, 1:], model.posterior_.flat("log_weight"))
    assert (own.noise_variance > np.exp(model.posterior_.flat("log_noise_variance"))).all()


def test_far_from_all_rows_few_draws_are_as_sure_as_all() -> None:
    """They were chosen by what they say near the rows, and up to 65 % too unsure beyond."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((101, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(101)
    model = GPRegressor(random_state=0).fit(X, y)
    Z = np.array([[3.0], [5.0], [7.0], [9.0]])
    few, every = (model.predict(Z, return_std=True, n_draws=n)[1] for n in (None, "all"))
    np.testing.assert_allclose(few, every, rtol=0.1)
    assert "between means" in "".join(model.notes_)
