"""`GPClassifier` with more than two classes: what draws hold, files, resuming, reports."""

from __future__ import annotations

import functools
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

import mercer
from mercer import GPClassifier
from mercer.errors import ModelFileError
from mercer.gp.laplace import HyperparameterPosterior
from mercer.posterior.container import read_container, write_container
from mercer.report.gp import describe, sections
from mercer.sampling.driver import SamplingStoppedError
from mercer.sampling.sampler import Point
from support.toy_sampler import AtCall

SETTINGS: dict[str, Any] = {
    "kernel": "rbf",
    "n_draws": 6,
    "n_warmup": 4,
    "n_chains": 2,
    "random_state": 0,
    "progress": False,
}
X, codes = load_iris(return_X_y=True)
X, Y = X[::5], np.array(["setosa", "versicolor", "virginica"])[codes[::5]]


@pytest.fixture(scope="module", params=[False, True], ids=["own", "shared"])
def model(request: pytest.FixtureRequest) -> GPClassifier:
    return GPClassifier(**SETTINGS, shared_kernel=request.param).fit(X, Y)


def test_probabilities(model: GPClassifier) -> None:
    proba = model.predict_proba(X)
    assert proba.shape == (30, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    assert np.mean(model.predict(X) == Y) > 0.9
    mean, variance = model.latent(X)
    assert mean.shape == variance.shape == (30, 3)
    np.testing.assert_array_equal(model.classes_[mean.argmax(axis=1)], model.predict(X))


def test_hundreds_of_hyperparameters_are_those_of_all_classes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not GPClassifier(**SETTINGS).fit(X, Y).shared_kernel_
    monkeypatch.setattr("mercer.gp.estimator.MOST_PARAMETERS", 14)  # 3 classes, 4 weights and 1
    model = GPClassifier(**SETTINGS).fit(X, Y)
    assert model.shared_kernel_
    assert "hyperparameters in common" in " ".join(model.notes_)
    assert "average over the classes" not in " ".join(sections(model)[0].text)
    model.save(tmp_path / "m.mercer")
    back = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))


def test_draws_have_names(model: GPClassifier) -> None:
    draws = model.posterior_
    n_kernels = 1 if model.shared_kernel else 3
    assert draws.flat("log_weight").shape == (12, 4 * n_kernels)
    names = draws.entry_names("log_weight")
    assert names[0] == ("log_weight[x0]" if n_kernels == 1 else "log_weight[setosa: x0]")
    assert draws.flat("dual_coef").shape == (12, 3, 30)
    assert model.relevance_.shape == (12, 4)
    weights = np.exp(draws.flat("log_weight")).reshape(12, n_kernels, 4)
    averages = weights.mean(axis=1)
    if draws.is_weighted:  # each as often as it weighs
        assert all((np.abs(averages - row).max(axis=1) < 1e-12).any() for row in model.relevance_)
    else:
        np.testing.assert_allclose(model.relevance_, averages)


def test_files(model: GPClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "m.mercer")
    back = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    assert back.get_params()["shared_kernel"] == model.shared_kernel


def test_a_stopped_fit_goes_on_to_the_same_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = HyperparameterPosterior.evaluate
    stop = AtCall(10**9, lambda: None)

    def watched(
        self: HyperparameterPosterior, theta: np.ndarray, near: np.ndarray | None = None
    ) -> Point:
        stop(None)
        return evaluate(self, theta, near)

    monkeypatch.setattr(HyperparameterPosterior, "evaluate", watched)
    whole = GPClassifier(**SETTINGS).fit(X, Y)
    settings = {**SETTINGS, "checkpoint": tmp_path}
    stop = AtCall(int(0.7 * stop.seen), functools.partial(signal.raise_signal, signal.SIGTERM))
    with pytest.raises(SamplingStoppedError):
        GPClassifier(**settings).fit(X, Y)
    again = GPClassifier(**settings).fit(X, Y)
    for name, values in whole.posterior_.variables.items():
        np.testing.assert_array_equal(again.posterior_.variables[name], values)


@pytest.mark.parametrize("inference", ["map", "nuts", "metropolis"])
def test_every_inference(inference: str) -> None:
    settings = {**SETTINGS, "inference": inference, "kernel": "matern32"}
    model = GPClassifier(**settings).fit(X, Y)
    assert np.mean(model.predict(X) == Y) > 0.9


CHANGES: dict[str, Any] = {
    "codes": lambda manifest, arrays: arrays.update(y=arrays["y"] + 1.0),
    "fewer classes": lambda manifest, arrays: manifest["fields"]["classes"]["values"].pop(),
    "weights": lambda manifest, arrays: arrays.update(
        {"draws/log_weight": arrays["draws/log_weight"][..., :-1]}
    ),
    "coefficients": lambda manifest, arrays: arrays.update(
        {"draws/dual_coef": arrays["draws/dual_coef"] - 1.5}
    ),
    "shared": lambda manifest, arrays: manifest["params"].update(
        shared_kernel=not manifest["params"]["shared_kernel"]
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_f8_inconsistent(model: GPClassifier, tmp_path: Path, change: Any) -> None:
    model.save(tmp_path / "m.mercer")
    manifest, arrays = read_container(tmp_path / "m.mercer")
    change(manifest, arrays)
    write_container(tmp_path / "m.mercer", manifest, arrays)
    with pytest.raises(ModelFileError):
        mercer.load(tmp_path / "m.mercer")


def test_the_report_speaks_of_all_classes(model: GPClassifier) -> None:
    assert "each of 3 classes" in describe(model)[0]
    text = " ".join(sections(model)[0].text)
    assert ("average over the classes" in text) != model.shared_kernel
