"""Kernels that the data choose: the comparison, the weights, what is said and stored of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp
from sklearn.datasets import load_breast_cancer

import mercer
from mercer import GPClassifier, GPRegressor
from mercer.errors import MercerWarning, ModelFileError, NumericalError
from mercer.estimation.cross_validate import for_folds, maker_of
from mercer.gp.averaging import (
    Candidate,
    KernelTask,
    _say_left_out,
    choose_kernels,
    compare_kernels,
    fit_kernels,
    is_simpler,
    plain_kernels,
)
from mercer.gp.fitting import GPSettings
from mercer.gp.hyperparameters import Maximum, find_maximum
from mercer.gp.laplace import HyperparameterPosterior
from mercer.kernels.names import kernel_named
from mercer.posterior.container import read_container, write_container
from mercer.posterior.scores import log_score
from mercer.report.build import build_report
from mercer.report.gp import relevance_sections
from mercer.sampling.driver import RunOptions
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


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every fit take three kernels, whatever the third one adds."""
    monkeypatch.setattr("mercer.gp.averaging._LEAST_GAIN", -np.inf)


def scored(name: str, scores: list[float]) -> Candidate:
    point = Point(np.zeros(2), 0.0, np.zeros(2), {})
    return Candidate(tuple(name.split(" + ")), Maximum(point, None, True), 0.0, np.array(scores))


def task_of(model: Any, X: Any, y: Any, monkeypatch: pytest.MonkeyPatch) -> KernelTask:
    """Return what a fit of that model compares kernels by."""
    seen: list[KernelTask] = []

    def spy(task: KernelTask, *given: Any, **how: Any) -> Any:
        seen.append(task)
        return fit_kernels(task, *given, **how)

    monkeypatch.setattr("mercer.gp.base.fit_kernels", spy)
    model.fit(X, y)
    return seen[0]


def test_which_kernel_is_a_case_of_which() -> None:
    rich = ("isotropic(rbf)", "rbf", "linear")
    for simple in (("rbf",), ("isotropic(rbf)",), ("isotropic(rbf)", "rbf"), ("rbf", "linear")):
        assert is_simpler(simple, rich)
        assert not is_simpler(rich, simple)
    assert is_simpler(("isotropic(rbf)",), ("rbf",))
    assert not is_simpler(("matern52",), rich)
    assert not is_simpler(rich, rich)


def test_a_kernel_that_is_never_the_best_alone_is_taken_for_where_it_is_right() -> None:
    best = scored("rbf", [-1.0] * 9 + [-6.0])
    like_it = scored("matern52", [-1.05] * 9 + [-6.0])
    other = scored("linear", [-3.0] * 9 + [0.0])
    chosen, weights = choose_kernels([like_it, other, best], 10)
    assert [each.name for each in chosen] == ["rbf", "linear"]
    assert weights.sum() == pytest.approx(1.0)
    assert 0.05 < weights[1] < 0.35
    assert choose_kernels([like_it, other, best], 10, most=1)[0] == (best,)
    # Ten rows, held out three times each, say no more than ten: the prior counts alike.
    thrice = [scored(each.name, [*each.scores] * 3) for each in (like_it, other, best)]
    np.testing.assert_allclose(choose_kernels(thrice, 10)[1], weights, atol=1e-5)
    # Scores of some of the rows only, or of none: these fell behind, or are no likelier.
    short = scored("matern32", [0.0] * 5)
    assert choose_kernels([short, scored("periodic", []), best], 10)[0] == (best,)
    assert choose_kernels([scored("periodic", [])], 10)[0][0].name == "periodic"
    assert choose_kernels([], 10)[0] == ()


@pytest.mark.parametrize(("n", "n_folds"), [(2, 8), (7, 20), (100, 15), (300, 5), (1000, 2)])
def test_folds_hold_out_fifths_until_rows_are_enough(n: int, n_folds: int) -> None:
    y = np.sort(np.random.default_rng(0).integers(0, 3, n)).astype(float)
    task = KernelTask(*[lambda *_: None] * 3, y, 2, is_classes=True)  # type: ignore[arg-type,list-item]
    folds = task.folds(np.arange(n), 0)
    assert len(folds) == n_folds
    held_out = np.bincount(np.concatenate([out for _, out in folds]), minlength=n)
    assert held_out.max() <= 4
    assert held_out.max() - held_out.min() <= (n > 300)
    for kept, out in folds:
        assert set(kept) | set(out) == set(range(n))
        assert not set(kept) & set(out)
        if n >= 100:  # of each class a fifth, to a row
            shares = np.bincount(y[out].astype(int)) - np.bincount(y.astype(int)) / 5.0
            assert np.abs(shares).max() < 1.5


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["two", "three", "numbers"])
def test_scores_are_those_of_models_fitted_without_the_rows(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = smooth(60, 2)
    target = {"two": y > 0, "three": np.digitize(y, (-0.5, 0.5)), "numbers": y}[kind]
    settings: dict[str, Any] = {"inference": "map", "standardize": False, "random_state": 0}
    of_kind = GPRegressor if kind == "numbers" else GPClassifier
    task = task_of(of_kind(kernel="auto", **settings), X, target, monkeypatch)
    name, extra = "isotropic(rbf)", {} if kind == "numbers" else {"shared_kernel": True}
    kept, out = task.folds(np.arange(60), 0)[0]
    maximum = find_maximum(task.model_of(name, kept), with_covariance=False)
    scores = task.score(name, maximum, kept, out)
    again = of_kind(kernel=name, **settings, **extra).fit(X[kept], target[kept])
    if kind == "numbers":
        # Targets are standardised by all rows: the refit sees others, and so has another prior.
        expected = again.predictive(X[out]).log_density(y[out]) + np.log(y.std())
        np.testing.assert_allclose(scores, expected, atol=0.15)
    else:
        codes = np.searchsorted(again.classes_, target[out])
        expected = np.log(again.predict_proba(X[out])[np.arange(len(out)), codes])
        np.testing.assert_allclose(scores, expected, atol=2e-3)
    own = np.log(np.full(len(out), 1.0 / max(len(np.unique(target)), 2)))
    assert np.abs(scores - own).max() > 0.3  # a score that knows nothing would fail above


def test_a_kernel_that_cannot_be_fitted_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = two_shells(40, 2)
    task = task_of(GPClassifier(kernel="auto", inference="map"), X, y, monkeypatch)
    options = RunOptions(1, 0, 1, 1, 0, progress=False)

    def model_of(broken: tuple[str, ...]) -> Any:
        def given(name: str, rows: Any) -> Any:
            if any(term in name for term in broken):
                raise NumericalError("no factor")
            return task.model_of(name, rows)

        return given

    found = fit_kernels(replace(task, model_of=model_of(("matern52",))), None, options)
    assert found.fits
    assert not any("matern52" in each.kernel for each in found.fits)

    def nothing(name: str, *given: Any) -> np.ndarray:
        scores = task.score(name, *given)
        return scores * np.nan if "isotropic(rbf)" in name else scores

    found = fit_kernels(replace(task, score=nothing), None, options)
    assert not any("isotropic(rbf)" in each.kernel for each in found.fits)
    with pytest.raises(NumericalError, match="evidence"):
        fit_kernels(replace(task, model_of=model_of(("matern52", "rbf"))), None, options)


def test_the_evidence_is_that_of_quadrature() -> None:
    """Two parameters, and a prior that is a density: without its constant it is 1.8 nats off."""
    X, y = two_shells(40, 2)
    settings = GPSettings("map", "wide", None, None, "isotropic(rbf)")
    model = HyperparameterPosterior(
        X, y.astype(float), settings.make_kernel(), settings.prior_of(2)
    )

    found = find_maximum(model, with_covariance=True).log_evidence(model.prior)
    assert found is not None
    prior = model.prior
    axes = [
        np.linspace(m - 3.0 * s, m + 3.0 * s, 21)
        for m, s in zip(prior.mean, prior.std, strict=True)
    ]
    values = [[model.evaluate(np.array([a, b])).log_density for b in axes[1]] for a in axes[0]]
    cell = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
    exact = logsumexp(values) + np.log(cell) - np.log(2.0 * np.pi * model.prior.std.prod())
    assert abs(found - exact) < 0.4


def test_two_shells_are_no_matter_of_one_rbf() -> None:
    X, y = two_shells(500)
    scores = {}
    for kernel in ("rbf", "auto"):
        model = GPClassifier(kernel=kernel, inference="map").fit(X[:250], y[:250])
        scores[kernel] = log_score(y[250:], model.predict_proba(X[250:]))
    assert scores["auto"] < scores["rbf"] - 0.1
    assert "rbf" not in model.kernel_weights_
    assert sum(model.kernel_weights_.values()) == pytest.approx(1.0, abs=1e-12)
    assert all(name in model.notes_[0] for name in model.kernel_weights_)


def test_relevance_is_of_the_kernels_that_predict_or_of_none() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = GPClassifier(inference="map", random_state=0).fit(X[:150, [0, 1, 4, 7]], y[:150])
    terms = {term for name in model.kernel_weights_ for term in name.split(" + ")}
    assert terms <= {"isotropic(rbf)", "isotropic(matern52)", "linear"}
    assert not hasattr(model, "relevance_")


def test_the_kernel_that_made_the_data_wins() -> None:
    X, y = smooth(200)
    model = GPRegressor(kernel="auto", inference="map", random_state=0).fit(X, y)
    with_weights = [w for name, w in model.kernel_weights_.items() if "rbf" in name.split(" + ")]
    assert sum(with_weights) > 0.9
    assert any("left out" in note and "isotropic(rbf)" in note for note in model.notes_)
    assert model.relevance_.mean(axis=0).argmax() == 0


@pytest.mark.usefixtures("several")
def test_predictions_are_the_weighted_mean_of_the_kernels() -> None:
    X, y = two_shells(60, 3)
    model = GPClassifier(kernel="auto", inference="map", random_state=0).fit(X, y)
    assert len(model.kernel_weights_) > 1
    single = [
        model._task_.of(name).answers(draws, is_corrected=True).probabilities(model._X)
        for name, draws in model.kernel_posteriors_.items()
    ]
    expected = np.average(single, axis=0, weights=list(model.kernel_weights_.values()))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-10)
    assert np.abs(model.predict_proba(X) - single[0]).max() > 1e-3


@pytest.mark.usefixtures("several")
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


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("several")
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


@pytest.mark.usefixtures("several")
def test_kernels_of_a_file_are_checked(tmp_path: Path) -> None:
    X, y = two_shells(30, 3)
    GPClassifier(kernel="auto", inference="map", random_state=0).fit(X, y).save(
        tmp_path / "m.mercer"
    )
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
    pair = GPClassifier(kernel="auto", inference="map", random_state=0).fit(X[:3], np.arange(3))
    X[:, 1] = 7.0
    with pytest.warns(MercerWarning, match="constant"):
        model = GPClassifier(kernel="auto", inference="map", random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert sum(pair.kernel_weights_.values()) == pytest.approx(1.0)
    assert np.isfinite(pair.predict_proba(X)).all()
    with pytest.warns(MercerWarning, match="constant"):
        flat = GPRegressor(kernel="auto", inference="map", random_state=0).fit(
            X[:, :1], np.zeros(30)
        )
    assert np.isfinite(flat.predict(X[:, :1], return_std=True)).all()


def three_of(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, and whether the sum of their first three inputs is above 0."""
    X = np.random.default_rng(0).standard_normal((n, d))
    return X, (X[:, :3].sum(axis=1) > 0.0).astype(int)


def test_three_of_many_inputs_are_found() -> None:
    """Weights of 100 inputs that lie around 1 / d set all rows so far apart that none tells."""
    X, y = three_of(600, 100)
    own: dict[str, Any] = {"random_state": 0, "progress": False}
    model = GPClassifier(**own).fit(X[:80], y[:80])
    assert log_score(y[80:], model.predict_proba(X[80:])) < 0.5
    assert set(model.kernel_weights_) & {"rbf", "matern52"}
    far = GPClassifier(**own, kernel="rbf", prior={"weight": (-1.0 - np.log(100), 3.0)})
    assert log_score(y[80:], far.fit(X[:80], y[:80]).predict_proba(X[80:])) > 0.6


@pytest.mark.slow
def test_chains_keep_the_three_of_hundreds_that_the_maximum_finds() -> None:
    """The mutant: a normal prior of all weights, by which none of so many decides."""
    rng, d = np.random.default_rng(0), 600
    X = rng.standard_normal((1060, d))
    y = (rng.random(1060) < expit(4.0 * X[:, :3].sum(axis=1))).astype(int)
    normal = {"weight": (-1.0 - np.log(d) - 2.0 * np.log(d / 30), 3.0)}
    losses = []
    for prior in ("wide", normal):
        model = GPClassifier(
            kernel="rbf", inference="hmc", prior=prior, n_chains=1, n_draws=150, random_state=0
        )
        losses.append(log_score(y[60:], model.fit(X[:60], y[:60]).predict_proba(X[60:])))
    assert losses[0] < 0.4
    assert losses[1] > 0.6


def test_inputs_that_act_by_their_squares_are_found_among_many() -> None:
    X = np.random.default_rng(0).standard_normal((500, 100))
    y = (X[:, 0] ** 2 + X[:, 1] ** 2 > 2.0).astype(int)
    model = GPClassifier(inference="map", random_state=0).fit(X[:150], y[:150])
    assert log_score(y[150:], model.predict_proba(X[150:])) < 0.4
    assert set(np.argsort(-model.relevance_.mean(axis=0))[:2]) == {0, 1}


def test_inputs_chosen_by_all_rows_are_not_scored_by_some_of_them() -> None:
    """Of 100 inputs of chance a few go with any target; rows held out must not have chosen them."""
    scores = []
    for seed in (0, 1, 6):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((400, 100)), rng.standard_normal(400)
        model = GPRegressor(inference="map", random_state=0).fit(X[:150], y[:150])
        scores.append(model.score(X[150:], y[150:]))
    assert np.mean(scores) > -0.1


def test_levels_of_one_column_are_not_many_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds begin at the maximum of all rows: forty levels of chance do not seem to tell more."""
    begun: list[tuple[int, int]] = []

    def counted(model: Any, **given: Any) -> Maximum:
        begun.append((len(model.X), len(given["starts"])))
        return find_maximum(model, **given)

    monkeypatch.setattr("mercer.gp.averaging.find_maximum", counted)
    levels, scores = [f"level {k % 40}" for k in range(400)], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = pd.DataFrame({"a": rng.standard_normal(400), "b": levels}), rng.standard_normal(400)
        model = GPRegressor(inference="map", random_state=0).fit(X[:150], y[:150])
        scores.append(model.score(X[150:], y[150:]))
    assert np.mean(scores) > -0.1
    assert {starts for rows, starts in begun if rows < 150} == {1}
    assert max(starts for rows, starts in begun if rows == 150) > 1


def test_a_large_table_of_hundreds_of_inputs_has_one_weight_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mercer.gp.candidates._MOST_PRODUCTS", 1e5)
    X, y = three_of(24, 301)
    model = GPClassifier(inference="map", random_state=0).fit(X, y)
    assert all("isotropic" in kernel for kernel in model.kernel_weights_)
    assert "a weight for each of 301 inputs" in " ".join(model.notes_)


def test_of_hundreds_of_weights_those_of_few_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mercer.gp.fitting._MOST_CELLS_OF_CHAINS", 0)
    X, y = three_of(60, 310)
    model = GPRegressor(kernel="rbf", **SHORT).fit(X, X[:, :3].sum(axis=1) + 0.01 * y)
    assert "of 312 hyperparameters are averaged over" in " ".join(model.notes_)
    spread = np.log(model.relevance_).std(axis=0)
    assert (spread[:3] > 0.01).all()
    assert (spread < 1e-9).sum() > 290
    assert model.log_evidence_ is None
    shown = [row[0] for row in model.diagnostics_.table.rows]
    assert "log_weight[x0]" in shown
    assert "log_weight[x9]" not in shown
    assert model.plot.relevance().get_xlabel().endswith("3 greatest of 310")
    (section,) = relevance_sections(model)
    assert "weights of 307 other inputs were not drawn" in " ".join(section.text)
    assert {row[0].text for row in section.tables[0].rows} == {"x0", "x1", "x2"}
    assert np.abs(model.predict(X[:5]) - X[:5, :3].sum(axis=1)).max() < 1.0


def test_several_classes_of_hundreds_of_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mercer.gp.fitting._MOST_CELLS_OF_CHAINS", 0)
    X, _ = three_of(60, 305)
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    model = GPClassifier(kernel="rbf", shared_kernel=False, **SHORT).fit(X, labels)
    assert "of 918 hyperparameters are averaged over" in " ".join(model.notes_)
    assert (model.predict(X) == labels).mean() > 0.9


@pytest.mark.parametrize("prior", ["wide", {"weight": (-9.0, 2.0)}])
def test_hundreds_of_weights_of_a_small_table_are_drawn_by_chains(prior: Any) -> None:
    X, y = three_of(24, 310)
    with pytest.warns(MercerWarning):  # of few draws
        model = GPRegressor(kernel="rbf", prior=prior, **SHORT).fit(X, y + X[:, 0])
    assert "312 hyperparameters are too many for importance" in " ".join(model.notes_)
    assert model.posterior_.n_chains == 2


def test_a_pair_that_only_its_product_tells_of_is_found() -> None:
    """Neither input goes with the label alone; the mutant begins where those lie that do."""
    X = np.random.default_rng(0).standard_normal((700, 100))
    y = (X[:, 0] * X[:, 1] > 0.0).astype(int)
    model = GPClassifier(kernel="rbf", inference="map", random_state=0).fit(X[:100], y[:100])
    assert log_score(y[100:], model.predict_proba(X[100:])) < 0.45


def test_one_input_has_no_isotropic_kernel() -> None:
    X, y = smooth(40, 1)
    model = GPRegressor(kernel="auto", inference="map", random_state=0).fit(X, y)
    assert not any("isotropic" in name for name in model.kernel_weights_)
    assert model.relevance_.shape[1] == 1


def test_many_rows_are_first_compared_on_some() -> None:
    X, y = two_shells(420, 2)
    model = GPClassifier(kernel="auto", inference="map", random_state=0).fit(X, y)
    assert "kernels were first compared on 300 of the rows" in model.notes_
    assert model._fits[0].fitted.draws.variables["dual_coef"].shape[-1] == 420


@pytest.mark.parametrize("seed", [0, 2, 8])
def test_terms_of_a_sum_find_their_own_part(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Climbs from where both explain the same end 20 to 35 nats lower."""
    rng, name = np.random.default_rng(seed), "isotropic(rbf) + rbf"
    X = rng.uniform(-2.0, 2.0, (80, 3))
    y = X[:, 0] ** 2 + np.sin(4.0 * X[:, 1]) + 0.5 * np.sin(3.0 * (X[:, 0] + X[:, 2]))
    y += 0.1 * rng.standard_normal(80)
    task = task_of(GPRegressor(inference="map", random_state=0), X, y, monkeypatch)
    found = {each.name: each.maximum for each in compare_kernels(task, np.arange(80), 0)}
    model = task.model_of(name, np.arange(80))
    draws = model.prior.mean + model.prior.std * rng.standard_normal((30, len(model.prior.mean)))
    best = max(find_maximum(model, starts=(each,)).point.log_density for each in draws)
    assert found[name].point.log_density > best - 5.0
    assert find_maximum(model).point.log_density > best - 5.0  # of a kernel that is named


def test_a_sum_leaves_the_plateau_where_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow function of all inputs beside a linear one learns the radius from 150 rows."""
    X, _ = two_shells(150)
    radius = np.linalg.norm(X, axis=1)
    task = task_of(GPRegressor(inference="map", random_state=0), X, radius, monkeypatch)
    found = {each.name: each.log_likelihood for each in compare_kernels(task, np.arange(150), 0)}
    for family in ("rbf", "matern52"):
        best = max(found[family], found[f"isotropic({family})"])
        assert found[f"isotropic({family}) + {family}"] > best + 8.0


def test_classes_within_one_another_have_a_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function of one sign less a level: without one the shells are hardly told apart."""
    X, y = two_shells(150)
    task = task_of(GPClassifier(inference="map", random_state=0), X, y, monkeypatch)
    plain, level, *others = compare_kernels(task, np.arange(150), 0)
    assert (plain.name, level.name) == ("isotropic(rbf)", "isotropic(rbf) + constant")
    assert level.log_likelihood > plain.log_likelihood + 10.0
    assert level.scores.sum() > plain.scores.sum() + 40.0
    assert others
    assert all(each.terms[-1] == "constant" for each in others)


@pytest.mark.parametrize("is_class", [True, False])
def test_no_constant_where_it_gains_nothing(
    is_class: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = smooth(80)
    kind, targets = (GPClassifier, y > np.median(y)) if is_class else (GPRegressor, y)
    task = task_of(kind(inference="map", random_state=0), X, targets, monkeypatch)
    names = [each.name for each in compare_kernels(task, np.arange(80), 0) if len(each.scores)]
    assert not any("constant" in name for name in names)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_searches_with_a_constant_begin_at_the_maximum_of_simpler_ones(n_classes: int) -> None:
    """Of each of several classes the blocks of all terms, the constant last."""
    rng, found = np.random.default_rng(0), dict[Any, Candidate]()

    def search(terms: tuple[str, ...], scores: float) -> Candidate:
        p = kernel_named(" + ".join(terms)).n_parameters(2)
        theta = rng.standard_normal(p * (1 if n_classes == 2 else n_classes))
        point = Point(theta, 0.0, theta, {})
        return Candidate(terms, Maximum(point, None, True), 0.0, np.full(5, scores))

    for k, (terms, starts) in enumerate(plain_kernels(found, 50, 2, n_classes=n_classes)):
        p = kernel_named(" + ".join(terms)).n_parameters(2)
        assert all(len(each) == p * (1 if n_classes == 2 else n_classes) for each in starts)
        if terms == ("rbf", "constant"):
            simple = found["isotropic(rbf)", "constant"].maximum.point.position.reshape(-1, 3)
            expected = np.column_stack([simple[:, 0], simple[:, 1], simple[:, 1], simple[:, 2]])
            np.testing.assert_array_equal(starts[0], expected.ravel())
        found[terms] = search(terms, float(k))
    assert len(found) == 11
    assert sum("constant" in terms for terms in found) == 10


@pytest.mark.usefixtures("several")
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


def test_a_kernel_left_out_may_have_been_ahead_where_time_was_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = task_of(GPRegressor(), *smooth(12), monkeypatch)
    first, behind = scored("rbf", [-1.0, -1.0]), scored("linear", [-2.0, -2.0])
    compared = (first, behind, scored("matern52", [-0.5]))  # of its second row there is no score
    assert list(_say_left_out(task, (first,), np.ones(1), compared, compared)) == [
        "kernels left out (nats a held-out row below the rest; above: the first rows ruled it out, "
        "or time was over): matern52 0.500 above, linear 1.000"
    ]


def test_the_nearest_kernels_left_out_are_named_and_the_others_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = task_of(GPRegressor(), *smooth(12), monkeypatch)
    first = scored("rbf", [-1.0, -1.0])
    names = ("linear", "matern52", "matern32", "exponential", "periodic")
    behind = tuple(scored(name, [-2.0 - k] * 2) for k, name in enumerate(names))
    compared = (first, *behind, scored("rbf + linear", []))
    assert list(_say_left_out(task, (first,), np.ones(1), compared, compared)) == [
        "kernels left out (nats a held-out row below the rest): linear 1.000, matern52 2.000, "
        "matern32 3.000, 2 further behind, 1 at their maximum as likely as a simpler one"
    ]


def test_time_that_is_over_leaves_a_model() -> None:
    X, y = two_shells(100, 4)
    model = GPClassifier(kernel="auto", **SHORT, progress=False, max_seconds=1e-6).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert "max_seconds cut the comparison of kernels short" in model.notes_


def test_a_report_says_which_kernels_the_data_chose() -> None:
    X, y = two_shells(60, 3)
    model = GPClassifier(kernel="auto", inference="map", random_state=0).fit(X, y)
    sections = build_report(model, evaluation=None, provenance=None).sections
    text = " ".join(next(section for section in sections if section.key == "fit").text)
    for name in model.kernel_weights_:
        assert name in text
    assert "left to the data" in text


@pytest.mark.usefixtures("several")
def test_importance_sampling_gives_each_kernel_draws_by_its_weight(tmp_path: Path) -> None:
    X, y = two_shells(40, 3)
    settings: dict[str, Any] = {"inference": "importance", "random_state": 0, "progress": False}
    model = GPClassifier(kernel="auto", **settings, checkpoint=tmp_path / "run").fit(X, y)
    assert len(model.kernel_weights_) > 1
    at_maximum = GPClassifier(kernel="auto", inference="map", random_state=0).fit(X, y)
    assert model.kernel_weights_ == at_maximum.kernel_weights_  # nothing but held-out scores
    for each in model._fits:
        alone = GPClassifier(kernel=each.kernel, **settings).fit(X, y)
        error = 6.0 * np.hypot(alone.log_evidence_se_, each.fitted.evidence[1])
        assert each.log_evidence == pytest.approx(alone.log_evidence_, abs=error)
    assert model.log_evidence_ == pytest.approx(model._fits[0].log_evidence, abs=1e-12)
    p = model.predict_proba(X)
    model.save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict_proba(X), p)
    np.testing.assert_array_equal(model.fit(X, y).predict_proba(X), p)  # from its checkpoint
    assert any("run" in note and "resumed" in note for note in model.notes_)


@pytest.mark.parametrize("kind", ["two", "numbers"])
def test_a_fold_knows_nothing_of_the_rows_held_out(kind: str) -> None:
    """What a fit to all rows has found would flatter it."""
    X, y = smooth(60, 2)
    target = y > 0 if kind == "two" else y
    whole = (GPClassifier if kind == "two" else GPRegressor)(random_state=0, n_draws=60)
    whole.fit(X, target)
    kept = np.arange(60) % 5 != 0
    fold, anew = (
        maker_of(for_folds(whole), left)(48, 20).fit(X[kept], target[kept])
        for left in (whole._left, None)
    )
    assert fold.kernel_weights_ == anew.kernel_weights_
    np.testing.assert_array_equal(fold.predict(X[~kept]), anew.predict(X[~kept]))


@pytest.mark.parametrize(("n_draws", "lowest", "highest"), [(250, 45, 120), (1000, 180, 400)])
def test_a_short_run_wants_a_part_of_the_effective_draws(
    n_draws: int, lowest: float, highest: float
) -> None:
    X, y = smooth(160, 2)
    fitted = GPRegressor(kernel="rbf", random_state=0, n_draws=n_draws, n_chains=1).fit(X, y)
    size = fitted.diagnostics_.effective_size
    assert size is not None
    assert lowest < size < highest


@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
def test_one_row_that_repeats_tells_no_kernels_apart() -> None:
    model = GPRegressor(inference="map", progress=False).fit(np.ones((20, 2)), np.full(20, 2.0))
    assert model.predict(np.zeros((1, 2))) == pytest.approx([2.0])
    assert sum(model.kernel_weights_.values()) == pytest.approx(1.0)
