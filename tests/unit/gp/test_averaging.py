"""Kernels that the data choose: the comparison, the weights, what is said and stored of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

import mercer
from mercer import GPClassifier, GPRegressor
from mercer.errors import MercerWarning, ModelFileError
from mercer.gp.averaging import Candidate, choose_kernels, compare_kernels, is_simpler
from mercer.gp.fitting import GPSettings
from mercer.gp.hyperparameters import Maximum
from mercer.gp.laplace import HyperparameterPosterior
from mercer.kernels.names import kernel_named
from mercer.posterior.container import read_container, write_container
from mercer.posterior.scores import log_score
from mercer.report.build import build_report
from mercer.sampling.sampler import Point

SHORT: dict[str, Any] = {"n_draws": 6, "n_warmup": 6, "n_chains": 2, "random_state": 0}


def two_shells(n: int, d: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, and whether they are farther out than half of them: the radius is the label."""
    X = np.random.default_rng(5).standard_normal((n, d))
    return X, (np.linalg.norm(X, axis=1) > np.sqrt(d - 2.0 / 3.0)).astype(int)


def smooth(n: int, d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Numbers from a Gaussian process: RBF, of which the first input has by far most weight."""
    rng = np.random.default_rng(2)
    X, kernel = rng.standard_normal((n, d)), kernel_named("rbf")
    K = kernel.gram(np.array([1.0, 1.0, -3.0, -6.0])[: d + 1], X)
    f = np.linalg.cholesky(K + 1e-9 * np.eye(n)) @ rng.standard_normal(n)
    return X, f + 0.1 * rng.standard_normal(n)


def compared(name: str, log_evidence: float, *, is_bound: bool = False) -> Candidate:
    point = Point(np.zeros(2), 0.0, np.zeros(2), {})
    terms = tuple(name.split(" + "))
    return Candidate(terms, Maximum(point, None, True), log_evidence, is_bound)


def test_which_kernel_is_a_case_of_which() -> None:
    rich = ("isotropic(rbf)", "rbf", "linear")
    for simple in (("rbf",), ("isotropic(rbf)",), ("isotropic(rbf)", "rbf"), ("rbf", "linear")):
        assert is_simpler(simple, rich)
        assert not is_simpler(rich, simple)
    assert is_simpler(("isotropic(rbf)",), ("rbf",))
    assert not is_simpler(("matern52",), rich)
    assert not is_simpler(rich, rich)


def test_occams_window() -> None:
    best = compared("isotropic(rbf)", -10.0)
    near, richer = compared("isotropic(matern52)", -12.0), compared("rbf", -10.5)
    far, hidden = compared("matern52 + linear", -15.0), compared("rbf + linear", 0.0, is_bound=True)
    assert choose_kernels([far, near, richer, best, hidden]) == (best, near)
    assert choose_kernels([near, richer, best], margin=1.0) == (best, richer, near)
    assert choose_kernels([near, richer, best], margin=1.0, most=1) == (best,)


def test_the_evidence_is_that_of_quadrature() -> None:
    """Two parameters, and a prior that is a density: without its constant it is 1.8 nats off."""
    X, y = two_shells(40, 2)
    settings = GPSettings("map", "wide", None, None, "isotropic(rbf)")
    model = HyperparameterPosterior(
        X, y.astype(float), settings.make_kernel(), settings.prior_of(2)
    )

    def model_of(name: str) -> HyperparameterPosterior:
        own = GPSettings("map", "wide", None, None, name)
        return HyperparameterPosterior(X, y.astype(float), own.make_kernel(), own.prior_of(2))

    found = {each.name: each for each in compare_kernels(model_of, 2)}["isotropic(rbf)"]
    prior = model.prior
    axes = [
        np.linspace(m - 3.0 * s, m + 3.0 * s, 21)
        for m, s in zip(prior.mean, prior.std, strict=True)
    ]
    values = [[model.evaluate(np.array([a, b])).log_density for b in axes[1]] for a in axes[0]]
    cell = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
    exact = logsumexp(values) + np.log(cell) - np.log(2.0 * np.pi * model.prior.std.prod())
    assert abs(found.log_evidence - exact) < 0.4


def test_two_shells_are_no_matter_of_one_rbf() -> None:
    X, y = two_shells(500)
    scores = {}
    for kernel in ("rbf", "auto"):
        model = GPClassifier(kernel=kernel, inference="map").fit(X[:250], y[:250])
        scores[kernel] = log_score(y[250:], model.predict_proba(X[250:]))
    assert scores["auto"] < scores["rbf"] - 0.1
    assert "rbf" not in model.kernel_weights_
    assert sum(model.kernel_weights_.values()) == pytest.approx(1.0, abs=1e-12)
    evidences = [each.log_evidence for each in model._fits]
    np.testing.assert_allclose(list(model.kernel_weights_.values()), softmax(evidences))
    assert all(name in model.notes_[0] for name in model.kernel_weights_)


def test_the_kernel_that_made_the_data_wins() -> None:
    X, y = smooth(120)
    model = GPRegressor(kernel="auto", inference="map").fit(X, y)
    assert model.kernel_weights_["rbf"] > 0.9
    assert any("left out" in note and "isotropic(rbf)" in note for note in model.notes_)
    assert model.relevance_.mean(axis=0).argmax() == 0


def test_predictions_are_the_weighted_mean_of_the_kernels() -> None:
    X, y = two_shells(60, 3)
    model = GPClassifier(kernel="auto", inference="map").fit(X, y)
    assert len(model.kernel_weights_) > 1
    single = [
        GPClassifier(kernel=name, inference="map").fit(X, y).predict_proba(X)
        for name in model.kernel_weights_
    ]
    expected = np.average(single, axis=0, weights=list(model.kernel_weights_.values()))
    # The searches have other starts, and end within their tolerance of the same maximum.
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=2e-3)


def test_numbers_are_a_mixture_over_kernels_too() -> None:
    X, y = smooth(50, 2)
    model = GPRegressor(kernel="auto", **SHORT, progress=False).fit(X, y)
    weights = model.kernel_weights_
    assert len(weights) > 1
    Z = X[:4]
    mean, std = model.predict(Z, return_std=True)
    law = model.predictive(Z)
    np.testing.assert_allclose(mean, model.predict(Z), rtol=1e-12)
    np.testing.assert_allclose(std, law.std)
    drawn = model.sample_y(Z, 4000, random_state=1)
    assert np.abs(drawn.mean(axis=0) - mean).max() < 6.0 * (std / np.sqrt(4000)).max()
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.1)  # 4000 draws: to 1 or 2 %
    location, variance = model.latent(Z)
    np.testing.assert_allclose(location, mean, rtol=1e-9)
    np.testing.assert_allclose(variance, std**2 - model.noise_std_**2, rtol=0.6)


def test_one_kernel_has_all_the_weight() -> None:
    X, y = two_shells(30, 2)
    model = GPClassifier(kernel="matern32", inference="map").fit(X, y)
    assert model.kernel_weights_ == {"matern32": 1.0}
    assert list(model.kernel_posteriors_.values()) == [model.posterior_]


@pytest.mark.parametrize("kind", ["two", "three", "numbers"])
def test_a_file_gives_the_same_answers(kind: str, tmp_path: Path) -> None:
    X, y = smooth(40, 2)
    target = {"two": y > 0, "three": np.digitize(y, (-0.5, 0.5)), "numbers": y}[kind]
    estimator = GPRegressor if kind == "numbers" else GPClassifier
    model = estimator(kernel="auto", **SHORT, progress=False).fit(X, target)
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    ask = "predict" if kind == "numbers" else "predict_proba"
    np.testing.assert_array_equal(getattr(again, ask)(X), getattr(model, ask)(X))
    for mine, its in zip(model.latent(X), again.latent(X), strict=True):
        np.testing.assert_array_equal(mine, its)
    np.testing.assert_array_equal(again.relevance_, model.relevance_)
    assert again.kernel_weights_ == model.kernel_weights_
    assert again.prior_weight_interval_ == model.prior_weight_interval_
    assert again.notes_ == model.notes_


def test_kernels_of_a_file_are_checked(tmp_path: Path) -> None:
    X, y = two_shells(30, 3)
    GPClassifier(kernel="auto", inference="map").fit(X, y).save(tmp_path / "m.mercer")
    manifest, arrays = read_container(tmp_path / "m.mercer")
    kernels = manifest["fields"]["kernels"]
    assert len(kernels) > 1
    for wrong in (
        kernels[:1],
        [],
        [{**kernels[0], "weight": 1.0}, *kernels[1:]],
        [{**kernels[0], "kernel": "no kernel"}, *kernels[1:]],
        kernels[::-1],
    ):
        changed = {**manifest, "fields": {**manifest["fields"], "kernels": wrong}}
        write_container(tmp_path / "wrong.mercer", changed, arrays)
        with pytest.raises(ModelFileError):
            mercer.load(tmp_path / "wrong.mercer")


def test_a_constant_column_and_one_row_a_class() -> None:
    X, y = two_shells(30, 3)
    pair = GPClassifier(kernel="auto", inference="map").fit(X[:3], np.arange(3))
    X[:, 1] = 7.0
    with pytest.warns(MercerWarning, match="constant"):
        model = GPClassifier(kernel="auto", inference="map").fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert sum(pair.kernel_weights_.values()) == pytest.approx(1.0)
    assert np.isfinite(pair.predict_proba(X)).all()
    with pytest.warns(MercerWarning, match="constant"):
        flat = GPRegressor(kernel="auto", inference="map").fit(X[:, :1], np.zeros(30))
    assert np.isfinite(flat.predict(X[:, :1], return_std=True)).all()


def test_one_input_has_no_isotropic_kernel() -> None:
    X, y = smooth(40, 1)
    model = GPRegressor(kernel="auto", inference="map").fit(X, y)
    assert not any("isotropic" in name for name in model.kernel_weights_)
    assert model.relevance_.shape[1] == 1


def test_many_rows_are_first_compared_on_some() -> None:
    X, y = two_shells(420, 2)
    model = GPClassifier(kernel="auto", inference="map").fit(X, y)
    assert "kernels were first compared on 300 of the rows" in model.notes_
    assert model._fits[0].fitted.draws.variables["dual_coef"].shape[-1] == 420


def test_a_checkpoint_holds_the_chains_of_all_kernels(tmp_path: Path) -> None:
    X, y = two_shells(40, 3)
    plain = GPClassifier(kernel="auto", inference="hmc", **SHORT, progress=False).fit(X, y)
    model = GPClassifier(
        kernel="auto", inference="hmc", **SHORT, progress=False, checkpoint=tmp_path
    )
    first = model.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(first, plain.predict_proba(X))
    assert len(list(tmp_path.rglob("chain-*.mercer"))) == 2 * len(model.kernel_weights_)
    np.testing.assert_array_equal(model.fit(X, y).predict_proba(X), first)
    assert any("loaded the finished run" in note for note in model.notes_)


def test_time_that_is_over_leaves_a_model() -> None:
    X, y = two_shells(100, 4)
    model = GPClassifier(kernel="auto", **SHORT, progress=False, max_seconds=1e-6).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert "max_seconds cut the comparison of kernels short" in model.notes_


def test_a_report_says_which_kernels_the_data_chose() -> None:
    X, y = two_shells(60, 3)
    model = GPClassifier(kernel="auto", inference="map").fit(X, y)
    text = " ".join(build_report(model, evaluation=None, provenance=None).sections[0].text)
    for name in model.kernel_weights_:
        assert name in text
    assert "left to the data" in text


def test_evidence_of_importance_sampling_weighs_the_kernels(tmp_path: Path) -> None:
    X, y = two_shells(40, 3)
    settings: dict[str, Any] = {"inference": "importance", "random_state": 0, "progress": False}
    model = GPClassifier(kernel="auto", **settings, checkpoint=tmp_path / "run").fit(X, y)
    assert len(model.kernel_weights_) > 1
    assert "importance sampling, standard error" in model.notes_[0]
    alone = [GPClassifier(kernel=name, **settings).fit(X, y) for name in model.kernel_weights_]
    evidences = np.array([each.log_evidence_ for each in alone])
    # The same points, but for the starts of the search: two fits differ by a few standard errors.
    error = max(each.log_evidence_se_ for each in alone)
    weights = np.array(list(model.kernel_weights_.values()))
    np.testing.assert_allclose(np.log(weights), np.log(softmax(evidences)), atol=6.0 * error)
    assert model.log_evidence_ == pytest.approx(model._fits[0].log_evidence, abs=1e-12)
    p = model.predict_proba(X)
    model.save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict_proba(X), p)
    np.testing.assert_array_equal(model.fit(X, y).predict_proba(X), p)  # from its checkpoint
    assert any("run" in note and "resumed" in note for note in model.notes_)
