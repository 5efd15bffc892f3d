"""GP-15: classes given more rows than taught the hyperparameters: Laplace's mode of all rows."""

from __future__ import annotations

import dataclasses
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import mercer
from mercer import GPClassifier, GPRegressor
from mercer.gp import base, fitting, softmax
from mercer.gp import estimator as module
from mercer.gp.fitting import GPSettings, RegressionSettings
from mercer.gp.hyperparameters import NormalPrior
from mercer.kernels.names import kernel_named
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.sampling.sampler import Point
from support.mangled import set_array, taken

N, LEARNING = 60, 24
RNG = np.random.default_rng(15)
X = RNG.standard_normal((N, 2))
NOISY = 1.5 * np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.5 * RNG.standard_normal(N)
Z = np.vstack([RNG.standard_normal((9, 2)), [[50.0, -50.0]]])
TINY: dict[str, Any] = {
    "kernel": "rbf", "n_draws": 20, "n_warmup": 10, "n_chains": 1, "random_state": 0,
    "progress": False, "max_rows": LEARNING,
}  # fmt: skip


def classes(count: int) -> np.ndarray:
    return np.searchsorted(np.quantile(NOISY, np.arange(1, count) / count), NOISY)


def fitted(count: int, **own: Any) -> GPClassifier:
    return GPClassifier(**{**TINY, "inference": "map", **own}).fit(X, classes(count))


def test_gp_15_two_classes_are_those_of_scikit_learn_given_all_rows() -> None:
    """Its Laplace approximation with the hyperparameters that a part of the rows taught."""
    model = fitted(2, predictive_mean="mode")
    theta = model._task_.thetas(model.posterior_)[0, 0]
    kernel = ConstantKernel(np.exp(theta[0])) * RBF(np.exp(-0.5 * theta[1:]))
    peer = GaussianProcessClassifier(kernel, optimizer=None)
    peer.fit(model.standardizer_.transform(X), classes(2))
    expected = peer.predict_proba(model.standardizer_.transform(Z))
    np.testing.assert_allclose(model.predict_proba(Z), expected, atol=3e-3)  # its probit's error
    alone = fitted(2, predictive_mean="mode", max_rows=N).predict_proba(Z)
    assert np.abs(alone - model.predict_proba(Z)).max() > 0.01  # other hyperparameters


@pytest.mark.parametrize("kernel", ["rbf", "auto"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_gp_15_the_mode_of_every_draw_is_that_of_all_rows(
    count: int, shared: bool, kernel: str
) -> None:
    """As `HyperparameterPosterior.evaluate` finds it, which tests GP-1 and GP-11 hold."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_PREDICTING", 3)
        model = fitted(count, inference="importance", shared_kernel=shared, kernel=kernel)
    assert f"learned from {LEARNING} of {N} rows" in model.notes_[0]
    assert "given them the function is that of all rows" in model.notes_[0]
    task, draws = model._whole
    assert len(task.X) == N
    assert len(draws) == len(model._fits)
    for fit, own in zip(model._fits, draws, strict=True):
        settings = GPSettings("map", "wide", None, None, kernel=fit.kernel)
        thetas = task.of(fit.kernel).thetas(own).reshape(own.n_total, -1)
        assert 1 <= own.n_total <= 3
        np.testing.assert_array_equal(own.log_weights, fit.predicting.log_weights)
        for theta, coef in zip(thetas, own.flat("dual_coef"), strict=True):
            point = task.of(fit.kernel).model(settings).evaluate(theta)
            np.testing.assert_allclose(coef, point.extra["a"], atol=1e-6)
    p = model.predict_proba(Z)
    np.testing.assert_array_equal(p, model.predict_proba(Z, n_draws="all"))
    assert np.isfinite(p).all()


def test_gp_15_where_products_find_no_mode_factors_do(monkeypatch: pytest.MonkeyPatch) -> None:
    given = fitted(3, shared_kernel=True)._whole.draws[0].flat("dual_coef")
    monkeypatch.setattr(softmax, "climb_without_factors", lambda *_: False)
    again = fitted(3, shared_kernel=True)._whole.draws[0].flat("dual_coef")
    np.testing.assert_allclose(given, again, atol=1e-6)
    assert not np.array_equal(given, again)


@pytest.mark.parametrize("count", [2, 3])
def test_gp_15_rows_that_are_alike_are_given_as_often_as_they_stand(count: int) -> None:
    """Weights and repeated rows: those that taught nothing count, too."""
    times = np.arange(N) % 3 + 1
    y = classes(count)
    given = {**TINY, "inference": "map", "standardize": False}
    weighted = GPClassifier(**given).fit(X, y, sample_weight=times)
    assert weighted._whole.task.y.sum() == times.sum()
    order = np.argsort(weighted._whole.task.X[:, 0])
    np.testing.assert_allclose(
        weighted._whole.task.y[:, order].sum(axis=0), times[np.argsort(X[:, 0])]
    )


def test_gp_15_many_rows_are_given_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "MOST_ROWS", 40)
    model = fitted(2)
    assert len(model._whole.task.X) == 40
    assert {tuple(x) for x in model._X} <= {tuple(x) for x in model._whole.task.X}
    assert "given them the function is that of 40 of them; BaNKClassifier" in model.notes_[0]
    assert fitted(3)._whole is None  # of three classes fewer than taught


@pytest.mark.parametrize("count", [2, 3])
def test_gp_15_a_file_and_a_pickle_keep_all_rows(count: int, tmp_path: Path) -> None:
    model = fitted(count, inference="importance")
    model.save(tmp_path / "m.mercer")
    for again in (mercer.load(tmp_path / "m.mercer"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(Z), model.predict_proba(Z))
        again.save(tmp_path / "again.mercer")
        assert (tmp_path / "again.mercer").read_bytes() == (tmp_path / "m.mercer").read_bytes()
    changes = {
        "coefficients of no mode": set_array("given/0/dual_coef", lambda a: a + 3.0),
        "draws left out": set_array("given/0/dual_coef", lambda a: a[:1]),
        "rows left out": set_array("given/X", lambda a: a[:-1]),
        "another input": set_array("given/X", lambda a: np.hstack([a, a])),
        "parameters of nothing": set_array("given/0/log_weight", lambda a: a * 1e9),
        "no number": set_array("given/0/dual_coef", lambda a: a * np.nan),
        "a class too many": set_array("given/y", lambda a: a + 1.0),
    }
    assert taken(tmp_path / "m.mercer", tmp_path, changes) == []


def test_gp_15_once_it_is_late_the_rows_that_taught_answer() -> None:
    model = fitted(2, inference="importance", max_seconds=1e-6)
    assert model._whole is None
    assert model.notes_[0].startswith(f"fitted to {LEARNING} of {N} rows, a random choice")
    assert model.notes_[1] == (
        "predictions are those of these rows alone: max_seconds left no time for more"
    )


def test_gp_15_of_numbers_too_once_it_is_late() -> None:
    model = GPRegressor(**TINY, max_seconds=1e-6).fit(X, NOISY)
    assert len(model._functions[0].X) == LEARNING
    assert model.notes_[0].startswith(f"fitted to {LEARNING} of {N} rows, a random choice")
    assert model.notes_[1].endswith("rows alone: max_seconds left no time for more")


@dataclasses.dataclass(frozen=True)
class Options:
    deadline: float | None


def test_gp_15_part_of_the_time_is_left_for_all_rows() -> None:
    model, now = GPRegressor(), time.monotonic()
    learning = model._learning(Options(now + 1000.0), np.arange(3))
    assert learning.deadline == pytest.approx(now + 600.0, abs=20.0)
    assert model._learning(Options(None), np.arange(3)).deadline is None
    assert model._learning(Options(now + 1000.0), None).deadline == now + 1000.0


def test_gp_15_where_no_mode_is_found_the_rows_that_taught_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: Any) -> None:
        raise mercer.errors.NumericalError("no mode")

    monkeypatch.setattr(module, "mode_near", fails)
    model = fitted(3)
    assert model._whole is None
    assert model.notes_[1].endswith("these rows alone: no mode was found given more")
    assert np.isfinite(model.predict_proba(Z)).all()


def test_gp_15_exact_draws_are_of_the_rows_that_taught() -> None:
    model = fitted(2, inference="hmc", integration="exact")
    assert model._whole is None
    assert model.notes_[0].startswith(f"fitted to {LEARNING} of {N} rows")


def test_gp_15_functions_are_drawn_and_rows_explained_given_all() -> None:
    model = fitted(3, inference="importance")
    drawn = model._function_draws([model.standardizer_.transform(Z)], 40, np.random.default_rng(0))
    assert drawn[0].shape == (40, 3, len(Z))
    np.testing.assert_allclose(drawn[0].mean(axis=0).T, model.predict_proba(Z), atol=0.25)
    explained = model.explain(Z[:2])
    assert np.isfinite(explained.contributions).all()


# The hyperparameters that some rows taught, moved to where all have them.


KERNEL = SquaredExponentialARD()


@dataclasses.dataclass(frozen=True)
class Normal:
    """A posterior N(mean, covariance) of log parameters, of so many rows."""

    mean: np.ndarray
    covariance: np.ndarray
    n: int
    kernel: Any = KERNEL

    @property
    def X(self) -> np.ndarray:  # noqa: N802 - as the attribute of all that have it
        return np.zeros((self.n, 1))

    @property
    def prior(self) -> NormalPrior:
        return NormalPrior(np.zeros(2), np.full(2, 1e4))

    def evaluate(self, theta: np.ndarray, near: Any = None) -> Point:
        gradient = np.linalg.solve(self.covariance, self.mean - theta)
        return Point(theta, 0.5 * float(gradient @ (theta - self.mean)), gradient, {})


COVARIANCE = np.array([[0.5, 0.2], [0.2, 0.3]])
DRAWN = RNG.multivariate_normal([0.0, 1.0], COVARIANCE, 400)
DRAWN = (DRAWN - DRAWN.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(DRAWN.T, ddof=0))).T
DRAWN = np.array([0.0, 1.0]) + DRAWN @ np.linalg.cholesky(COVARIANCE).T
EQUAL = np.full(400, 1 / 400)


def moved_to(mean: Any, part: float = 0.25, deadline: float | None = None) -> np.ndarray:
    taught = Normal(np.array([0.0, 1.0]), COVARIANCE, 100)
    model = Normal(np.asarray(mean), part * COVARIANCE, round(100 / part))
    return fitting.moved(taught, model, (DRAWN, EQUAL), DRAWN, deadline)


def test_gp_15_draws_of_a_normal_law_become_those_of_the_law_given_all_rows() -> None:
    """Mean and covariance, up to what 400 draws tell of how parameters go together (.5 %)."""
    found = moved_to([0.7, 0.5])
    np.testing.assert_allclose(found.mean(axis=0), [0.7, 0.5], atol=5e-3)
    np.testing.assert_allclose(np.cov(found.T, ddof=0), 0.25 * COVARIANCE, rtol=0.02)
    far = moved_to([9.0, 1.0]).mean(axis=0)  # three steps of two at most
    np.testing.assert_allclose(far, [6.0, 1.0], atol=0.05)


def test_gp_15_once_it_is_late_draws_are_nearer_to_their_mean_and_no_more() -> None:
    found = moved_to([0.7, 0.5], deadline=0.0)
    np.testing.assert_allclose(found.mean(axis=0), [0.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(np.cov(found.T, ddof=0), 0.25 * COVARIANCE, rtol=0.02)


def test_gp_15_draws_stay_where_they_have_no_one_mean() -> None:
    """A single draw; two maxima with nothing between; terms of a kernel that are alike."""
    wide = Normal(np.zeros(2), COVARIANCE, 400)
    one = (DRAWN[:1], np.ones(1))
    np.testing.assert_array_equal(fitting.moved(wide, wide, one, one[0], None), one[0])

    class Two(Normal):
        def evaluate(self, theta: np.ndarray, near: Any = None) -> Point:
            point = super().evaluate(np.abs(theta) * np.sign(self.mean))
            return dataclasses.replace(point, log_density=-50.0 * np.min((np.abs(theta) - 3) ** 2))

    pair = np.vstack([DRAWN + 3.0, -DRAWN - 3.0])
    found = fitting.moved(
        Two(np.full(2, 3.0), COVARIANCE, 100), wide, (pair, np.full(800, 1 / 800)), pair[:5], None
    )
    np.testing.assert_array_equal(found, pair[:5])
    alike = dataclasses.replace(wide, kernel=kernel_named("spectral_mixture(2)"))
    p = alike.kernel.n_parameters(1)
    many = RNG.standard_normal((50, p))
    np.testing.assert_array_equal(
        fitting.moved(alike, alike, (many, np.full(50, 0.02)), many[:4], None), many[:4]
    )


def test_gp_15_moved_draws_are_likelier_given_all_rows() -> None:
    """Of classes and of numbers; the draws themselves, of the rows that taught, stay."""
    model = fitted(2, inference="importance", n_draws=200)
    (fit,), task = model._fits, model._whole.task
    posterior = task.of("rbf").model(model._settings("rbf"))
    before, after = (
        np.mean([posterior.evaluate(theta).log_density for theta in task.thetas(each)[:, 0]])
        for each in (fit.predicting, model._whole.draws[0])
    )
    assert after > before + 0.5
    numbers = GPRegressor(**{**TINY, "n_draws": 200}).fit(X, NOISY)
    (functions,), (fit,) = numbers._functions, numbers._fits
    ys = (NOISY - numbers.target_centre_) / numbers.target_scale_
    settings = RegressionSettings(numbers._settings("rbf"), None)
    exact = settings.posterior(numbers.standardizer_.transform(X), ys)
    logs = np.log(functions.noise_variance / functions.scales)
    places = np.column_stack([functions.theta, logs])
    before, after = (
        np.mean([exact.evaluate(each).log_density for each in every])
        for every in (exact.positions(fit.predicting), places)
    )
    assert after > before + 0.5
