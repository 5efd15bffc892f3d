"""GP-15: classes given more rows than taught the hyperparameters: Laplace's mode of all rows."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import mercer
from mercer import GPClassifier
from mercer.gp import base
from mercer.gp import estimator as module
from mercer.gp.fitting import GPSettings
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
