"""One scale for all columns or one for each, clipped or warped: the targets' evidence decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal, yeojohnson_normmax
from sklearn.datasets import load_digits

import mercer.estimation.standardize as standardize
from mercer import (
    BaNKClassifier,
    BaNKRegressor,
    GPClassifier,
    GPRegressor,
    KernelGibbsClassifier,
    SequentialKernelClassifier,
    SequentialKernelRegressor,
    load,
)
from mercer.estimation.standardize import (
    ALL_WARPED,
    MANY_COLUMNS,
    NOT_CLIPPED,
    ONE_SCALE,
    SEVERAL_COLUMNS,
    SKEWED_WARPED,
    WEIGHED,
    _Weighing,
    fit_scales,
    fit_standardizer,
    indicators,
    rows_that_decide,
    rows_that_weigh,
    weigh_inputs,
)

D = 20
NAMES = tuple(f"x{j}" for j in range(D))


def table(n: int = 200, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Columns of one unit: the first three move much and say all, the others hardly move."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * np.where(np.arange(D) < 3, 10.0, 0.5) + 100.0
    return X, np.sin(X[:, 0] / 8.0) + X[:, 1] * X[:, 2] / 1000.0


def test_common_divides_all_columns_by_the_root_mean_variance() -> None:
    X, _ = table()
    X[:, 4] = 7.0
    with pytest.warns(UserWarning, match="x4"):
        found = fit_standardizer(X, "common", NAMES)
    is_used = np.arange(D) != 4
    expected = (X - X.mean(axis=0)) / np.sqrt(X[:, is_used].var(axis=0).mean())
    np.testing.assert_allclose(found.transform(X), expected, atol=1e-12)
    assert found.scale[4] == 0.0


def test_columns_that_say_all_by_their_spread_have_one_scale() -> None:
    X, y = table()
    found, said = fit_scales(X, "auto", NAMES, y, MANY_COLUMNS)
    np.testing.assert_array_equal(found.scale, fit_standardizer(X, "common", NAMES).scale)
    assert said == (ONE_SCALE,)
    classes = np.digitize(y, np.quantile(y, [0.4, 0.7]))
    labels, _ = fit_scales(X, "auto", NAMES, indicators(classes), MANY_COLUMNS)
    np.testing.assert_array_equal(labels.scale, found.scale)
    outputs, _ = fit_scales(X, "auto", NAMES, np.column_stack([y, np.ones(len(y))]), MANY_COLUMNS)
    np.testing.assert_array_equal(outputs.scale, found.scale)


def _of_what_hardly_moves(X, y):
    return X, np.sin(4.0 * X[:, 5]) + X[:, 6]


def _of_noise(X, y):
    return X, np.random.default_rng(1).standard_normal(len(y))


def _few_columns(X, y):
    return X[:, :15], y


def _alike_columns(X, y):
    return (X - 100.0) / np.where(np.arange(D) < 3, 10.0, 0.5), y


def _few_rows(X, y):
    return X[:19], y[:19]


def _constant_targets(X, y):
    return X, np.zeros(len(y))


@pytest.mark.parametrize(
    "change",
    [_of_what_hardly_moves, _of_noise, _few_columns, _alike_columns, _few_rows, _constant_targets],
)
def test_else_each_column_has_its_own(change) -> None:
    X, y = change(*table())
    names = NAMES[: X.shape[1]]
    found, said = fit_scales(X, "auto", names, y, MANY_COLUMNS)
    np.testing.assert_array_equal(found.scale, fit_standardizer(X, "std", names).scale)
    assert said == ()


def test_of_models_without_weights_of_the_inputs_few_columns_are_asked() -> None:
    X, y = table()
    X, names = X[:, 2:5], NAMES[2:5]
    y = np.sin(X[:, 0] / 8.0)
    assert fit_scales(X, "auto", names, y, MANY_COLUMNS)[1] == ()
    assert fit_scales(X, "auto", names, y, SEVERAL_COLUMNS)[1] == (ONE_SCALE,)
    assert fit_scales(X[:, :1], "auto", names[:1], y, SEVERAL_COLUMNS)[1] == ()


def test_targets_of_one_class_so_far_decide_nothing() -> None:
    X, _ = table()
    found, _ = fit_scales(X, "auto", NAMES, indicators(np.zeros(len(X))), MANY_COLUMNS)
    np.testing.assert_allclose(found.scale, X.std(axis=0))


def test_other_methods_and_tables_without_targets_are_not_asked() -> None:
    X, y = table()
    for found in (
        fit_scales(X, "std", NAMES, y, MANY_COLUMNS)[0],
        fit_standardizer(X, "auto", NAMES),
    ):
        np.testing.assert_allclose(found.scale, X.std(axis=0))


def test_a_column_that_was_to_be_clipped_counts_with_its_standard_deviation() -> None:
    X, y = table()
    X[0, 9] = 1000.0
    assert fit_standardizer(X, "auto", NAMES).is_clipped[9]
    found, _ = fit_scales(X, "auto", NAMES, y, MANY_COLUMNS)
    np.testing.assert_array_equal(found.scale, fit_standardizer(X, "common", NAMES).scale)
    assert not found.is_clipped.any()


def test_the_evidence_is_that_of_a_normal_law(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    Z, T = rng.standard_normal((12, 2)), rng.standard_normal((12, 2))
    monkeypatch.setattr(standardize, "_NOISES", (0.1,))
    monkeypatch.setattr(standardize, "_LENGTHS", (2.0,))
    squares = np.square(Z[:, np.newaxis] - Z).sum(axis=2)
    typical = np.median(squares[np.triu_indices(12, 1)])
    K = np.exp(-squares / (8.0 * typical)) + 1.0 + 0.1 * np.eye(12)

    def loss(log_size: float) -> float:
        return -float(multivariate_normal.logpdf(T.T, cov=np.exp(log_size) * K).sum())

    best = -minimize_scalar(loss, bounds=(-3.0, 3.0), options={"xatol": 1e-6}).fun
    of_unit = -12.0 * (1.0 + np.log(2.0 * np.pi))
    assert standardize._evidence(Z, T)[0] == pytest.approx(best - of_unit, abs=1e-5)


@pytest.mark.parametrize("n", [1, 399, 400, 401, 1297, 10_000_000])
def test_rows_that_decide_are_all_over_the_table(n: int) -> None:
    rows = rows_that_decide(n)
    assert len(rows) >= min(n, 350)
    assert rows[0] == 0
    assert rows[-1] < n
    assert (np.diff(rows) > 0).all()
    if n > 1000:
        counts = np.bincount(rows % 10)
        assert counts.min() > 25, "a table whose classes come in turn"


DIGITS = load_digits(return_X_y=True)
SOME = {"random_state": 0, "progress": False}
SHORT = {**SOME, "n_draws": 4, "n_warmup": 4, "n_chains": 1, "n_frequencies": 8}
MODELS = [
    (GPClassifier, {**SOME, "inference": "map", "kernel": "isotropic(rbf)"}),
    (GPRegressor, {**SOME, "inference": "map", "kernel": "isotropic(rbf)"}),
    (KernelGibbsClassifier, {**SOME, "n_draws": 10, "n_warmup": 10, "n_chains": 1}),
    (BaNKClassifier, SHORT),
    (BaNKRegressor, {**SHORT, "noise": "normal"}),
    (SequentialKernelClassifier, {**SOME, "n_particles": 8}),
    (SequentialKernelRegressor, {**SOME, "n_particles": 8}),
]


def digits(kind: type) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A hundred pictures of 0 to 3, as classes or as numbers; numbers of BaNK are of `table`."""
    if kind is BaNKRegressor:  # it also warps columns that are skewed
        return table()
    X, y = (each[DIGITS[1] < 4][:100] for each in DIGITS)
    return X, (y if "Classifier" in kind.__name__ else y.astype(float))


@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
@pytest.mark.parametrize(("kind", "arguments"), MODELS)
def test_pixels_have_one_scale_in_every_model(kind, arguments) -> None:
    X, y = digits(kind)
    model = kind(**arguments).fit(X, y)
    assert any("one scale" in note for note in model.notes_), model.notes_
    same = kind(**arguments, standardize="common").fit(X, y)
    assert not any("one scale" in note for note in same.notes_)
    np.testing.assert_array_equal(model.standardizer_.scale, same.standardizer_.scale)
    if "Classifier" in kind.__name__:
        np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    else:
        np.testing.assert_array_equal(model.predict(X), same.predict(X))


@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (KernelGibbsClassifier, {"lengthscale": 8.0}),
        (SequentialKernelClassifier, {"lengthscale": 8.0}),
        (GPClassifier, {"prior": {"weight": (-4.0, 1.0)}, "kernel": "rbf", "inference": "map"}),
    ],
)
def test_a_length_scale_that_is_given_is_in_standard_deviations(kind, given) -> None:
    X, y = digits(kind)
    model = kind(random_state=0, progress=False, **given).fit(X, y)
    np.testing.assert_allclose(model.standardizer_.scale, X.std(axis=0))
    assert not any("one scale" in note for note in model.notes_)


@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
@pytest.mark.parametrize("method", ["auto", "common"])
def test_a_stream_gives_pixels_that_were_dark_so_far_the_same_scale(method: str) -> None:
    X, y = digits(SequentialKernelClassifier)
    model = SequentialKernelClassifier(**SOME, scale_rows=80, standardize=method)
    model.partial_fit(X, y, classes=np.arange(4))
    first = fit_standardizer(X[:80], "common", tuple(f"x{j}" for j in range(64)))
    assert (first.scale == 0.0).any()
    np.testing.assert_allclose(model.standardizer_.scale, first.scale.max())


@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
def test_relevance_is_that_of_a_standard_deviation_of_each_input(tmp_path) -> None:
    """Weights of pixels that hardly move would else stand beside those that tell the digit."""
    X, y = table()
    X[:, 7] = 3.0
    model = GPRegressor(kernel="rbf", inference="map", **SOME).fit(X, y)
    log_weight = model.posterior_.flat("log_weight")
    spread = X.std(axis=0) / model.standardizer_.scale.max()
    is_used = np.arange(D) != 7
    expected = np.exp(log_weight[:, is_used]) * spread[is_used] ** 2
    np.testing.assert_allclose(model.relevance_[:, is_used], expected, rtol=1e-9)
    assert (model.relevance_[:, 7] > 0.0).all()
    assert set(np.argsort(-model.relevance_[0])[:3]) == {0, 1, 2}
    assert model.prior_weight_interval_ is None
    model.plot.relevance()
    model.save(tmp_path / "m.mercer")
    again = load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.relevance_, model.relevance_)
    assert again.prior_weight_interval_ is None


def test_columns_whose_far_values_tell_something_are_not_clipped() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 3))
    X[:60, 1] *= 300.0
    assert fit_standardizer(X, "auto", NAMES[:3]).is_clipped[1]
    found, said = fit_scales(X, "auto", NAMES[:3], X[:, 1] / 300.0, MANY_COLUMNS)
    assert said == (NOT_CLIPPED,)
    np.testing.assert_array_equal(found.scale, fit_standardizer(X, "std", NAMES[:3]).scale)


def test_artefacts_are_clipped() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 3))
    y = np.sin(2.0 * X[:, 1]) + X[:, 0]
    X[:2, 1] = 1e6
    found, said = fit_scales(X, "auto", NAMES[:3], y, MANY_COLUMNS)
    assert said == ()
    assert found.is_clipped[1]


# Skewed columns, warped or not.


def skewed(n: int = 200, seed: int = 0) -> NDArray[np.float64]:
    """A log-normal column, one that is bent a little, a normal one and one of two values."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 4))
    X = np.column_stack([np.exp(1.2 * Z[:, 0]), np.exp(0.25 * Z[:, 1]), Z[:, 2], Z[:, 3] > 1.0])
    return np.asarray(X / [3.0, 0.25, 1.0, 0.4])  # of one scale none is better


@pytest.mark.parametrize("is_class", [False, True])
def test_skewed_columns_are_warped_where_targets_are_functions_of_that(is_class: bool) -> None:
    X = skewed()
    y = np.sin(2.0 * np.log(X[:, 0])) + X[:, 2]
    targets = indicators(y > 0.3) if is_class else y
    found, (said,) = fit_scales(X, "auto", NAMES[:4], targets, MANY_COLUMNS)
    assert said in (SKEWED_WARPED, ALL_WARPED)
    Z = found.transform(X)
    assert np.corrcoef(Z[:, 0], np.log(X[:, 0]))[0, 1] > 0.95
    plain = fit_standardizer(X, "std", NAMES[:4])
    kept = [1, 2, 3] if said == SKEWED_WARPED else [3]
    np.testing.assert_array_equal(Z[:, kept], plain.transform(X)[:, kept])
    np.testing.assert_allclose(found.inverse(Z), X, rtol=1e-9)


def test_what_is_far_out_on_both_sides_stays_clipped() -> None:
    X = skewed()
    X[:4, 2] = [3e5, -3e5, 2e5, -2e5]
    found, (said,) = fit_scales(X, "auto", NAMES[:4], np.sin(2.0 * np.log(X[:, 0])), MANY_COLUMNS)
    assert said in (SKEWED_WARPED, ALL_WARPED)
    assert found.is_warped[0]
    assert found.is_clipped[2]


@pytest.mark.parametrize("kept", [{"may_warp": False}, {"method": "std"}, {"fewest": None}, {}])
def test_skewed_columns_stay_where_that_is_asked_or_targets_are_for_it(
    kept: dict[str, Any],
) -> None:
    X, how = skewed(), {"method": "auto", "fewest": MANY_COLUMNS, **kept}
    y = np.sin(2.0 * np.log(X[:, 0])) if kept else X[:, 0] + np.sin(X[:, 2])
    found, said = fit_scales(X, names=NAMES[:4], targets=y, **how)
    assert said == ()
    assert not found.is_warped.any()


@pytest.mark.parametrize(("unit", "is_one"), [(20.0, True), (1e5, False), (1e300, False)])
def test_columns_without_a_unit_in_common_keep_their_scales(unit: float, is_one: bool) -> None:
    """Else the widest would be left alone, and that only by the unit it happens to have."""
    X = np.random.default_rng(5).standard_normal((80, 3))
    y = np.sin(2.0 * X[:, 0])
    X[:, 0] *= unit
    found, said = fit_scales(X, "auto", NAMES[:3], y, 2)
    assert found.has_one_scale == is_one
    assert said == (ONE_SCALE,) * is_one


def test_a_warp_is_the_likeliest_of_its_family() -> None:
    """As SciPy finds it, where that is within 5."""
    X = skewed()
    found = fit_standardizer(X, "yeo-johnson", NAMES[:4])
    for j in range(3):
        column = (X[:, j] - X[:, j].mean()) / X[:, j].std()
        assert found.shape[j] == pytest.approx(yeojohnson_normmax(column), abs=1e-5)


@pytest.mark.parametrize(
    "kind", [GPRegressor, GPClassifier, KernelGibbsClassifier, SequentialKernelRegressor]
)
def test_models_say_that_they_warp_and_predict_alike_from_files(kind: Any, tmp_path: Path) -> None:
    X = skewed(120)
    y = np.sin(2.0 * np.log(X[:, 0])) + X[:, 2]
    y = y if kind in (GPRegressor, SequentialKernelRegressor) else y > 0.3
    quick = {"inference": "map"} if kind in (GPRegressor, GPClassifier) else {}
    model = kind(random_state=0, progress=False, **quick).fit(X, y)
    assert model.standardizer_.is_warped[0]
    assert {SKEWED_WARPED, ALL_WARPED} & set(model.notes_)
    model.save(tmp_path / "m.mercer")
    new = skewed(20, 1)
    np.testing.assert_array_equal(load(tmp_path / "m.mercer").predict(new), model.predict(new))


def test_a_kernel_that_is_named_takes_columns_as_they_are() -> None:
    X = skewed(120)
    y = np.sin(2.0 * np.log(X[:, 0])) + X[:, 2]
    model = GPRegressor(kernel="rbf", inference="map", random_state=0, progress=False).fit(X, y)
    assert not model.standardizer_.is_warped.any()


# Weights of inputs, for models that have one length scale.


def few_that_count(
    n: int = 200, d: int = 12, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Labels that are a function of the first two inputs, in units of their own."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.geomspace(1.0, 1e3, d) - 7.0
    f = (X[:, 0] + 7.0) * (X[:, 1] + 7.0) / np.geomspace(1.0, 1e3, d)[1]
    return X, (f + 0.1 * rng.standard_normal(n) > 0.0).astype(np.int64)


def weighed(X: NDArray[np.float64], targets: NDArray[Any]) -> Any:
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    found = standardize.fit_quietly(X, "auto")
    return found, *weigh_inputs(found, X, targets, names)


@pytest.mark.parametrize("is_class", [True, False])
def test_inputs_weigh_as_targets_depend_on_them(is_class: bool) -> None:
    X, labels = few_that_count()
    X[:, 5] = 3.0
    found, learned, (said,) = weighed(X, indicators(labels) if is_class else X[:, 0] * X[:, 1])
    weights = found.after_scale / learned.after_scale
    assert weights[5] == 1.0
    used = np.delete(weights, 5)
    assert np.mean(used**2) == pytest.approx(1.0)
    assert set(np.argsort(-used)[:2]) == {0, 1}
    assert used[2:].max() < 0.25 * used[:2].min()
    assert said.startswith((f"{WEIGHED}'x0' 1, 'x1'", f"{WEIGHED}'x1' 1, 'x0'"))
    Z = learned.transform(X)
    np.testing.assert_allclose(Z, found.transform(X) * weights, rtol=1e-12)
    assert not Z[:, 5].any()
    np.testing.assert_allclose(learned.inverse(Z), X, rtol=1e-9)


def test_a_note_says_how_many_inputs_hardly_count() -> None:
    X, labels = few_that_count()
    (said,) = weighed(X, indicators(labels))[2]
    assert said.endswith(" of 12 hardly count")


@pytest.mark.parametrize("n_classes", [2, 4])
def test_inputs_of_noise_are_not_weighed(n_classes: int) -> None:
    """Of forty inputs and sixty rows the evidence alone would find some that tell all labels."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, labels = rng.standard_normal((60, 40)), np.arange(60) % n_classes
        found, learned, said = weighed(X, indicators(rng.permutation(labels)))
        assert learned is found
        assert said == ()


@pytest.mark.parametrize("seed", range(3))
def test_inputs_that_count_alike_are_hardly_weighed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 12))
    labels = (X.sum(axis=1) + rng.standard_normal(300) > 0.0).astype(np.int64)
    found, learned, said = weighed(X, indicators(labels))
    assert np.ptp(np.log(found.after_scale / learned.after_scale)) < 1.0
    assert (learned is found) == (said == ())


@pytest.mark.parametrize("kept", ["few rows", "one column", "one class", "many columns"])
def test_inputs_that_cannot_be_weighed_stay(kept: str) -> None:
    X, labels = few_that_count()
    X, targets = {
        "few rows": (X[:19], indicators(labels[:19])),
        "one column": (X * (np.arange(12) == 0), indicators(labels)),
        "one class": (X, indicators(np.zeros(len(X)))),
        "many columns": (np.tile(X, 26), indicators(labels)),
    }[kept]
    found, learned, said = weighed(X, targets)
    assert learned is found
    assert said == ()


def test_the_density_of_weights_has_its_gradient() -> None:
    X, labels = few_that_count(60, 4)
    T = np.column_stack([labels - labels.mean(), X[:, 0] + 7.0])
    weighing = _Weighing(standardize.fit_quietly(X, "std").transform(X), T)
    x = np.array([0.3, -0.7, 1.1, 0.2, -0.5, -1.5])
    for spread in (0.0, 0.6):
        value, slope = weighing._loss(x, spread)
        steps = 1e-6 * np.eye(6)
        by_steps = [
            (weighing._loss(x + e, spread)[0] - weighing._loss(x - e, spread)[0]) / 2e-6
            for e in steps
        ]
        np.testing.assert_allclose(slope, by_steps, rtol=1e-5, atol=1e-6)
        assert np.isfinite(value)


def test_the_density_of_weights_is_that_of_a_gaussian_process() -> None:
    """Its size integrated out at the maximum: differences are those of SciPy's normal law."""
    X, labels = few_that_count(40, 3)
    Z = standardize.fit_quietly(X, "std").transform(X)
    y = (labels - labels.mean()) / labels.std()
    weighing, found = _Weighing(Z, y[:, np.newaxis]), []
    for x in (np.array([0.4, -0.2, 0.1, -0.3, -2.0]), np.array([0.0, 0.5, -1.0, 0.2, -1.0])):
        W = Z * np.exp(x[3] + 0.6 * x[:3])
        C = np.exp(-0.5 * np.square(W[:, None] - W).sum(axis=2)) + 1.0 + np.exp(x[4]) * np.eye(40)
        size = y @ np.linalg.solve(C, y) / 40.0
        law = multivariate_normal(np.zeros(40), size * C)
        found.append(weighing._loss(x, 0.6)[0] + law.logpdf(y) - 0.5 * x[:3] @ x[:3])
    assert found[0] == pytest.approx(found[1], abs=1e-8)


def test_sphere_weighs_inputs_by_default(tmp_path: Path) -> None:
    X, labels = few_that_count(150, 8)
    model = KernelGibbsClassifier(random_state=0, n_draws=100, n_chains=2).fit(X, labels)
    assert any(said.startswith(WEIGHED) for said in model.notes_)
    model.save(tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    kept = {"lengthscale": 1.0}, {"standardize": "std"}, {"kernel": "linear", "nugget": 0.1}
    for own in kept:
        other = KernelGibbsClassifier(random_state=0, n_draws=20, n_chains=1, **own)
        notes = other.fit(X, labels).notes_
        assert not any(said.startswith(WEIGHED) for said in notes), own


def test_basis_weighs_inputs_of_a_table_and_none_of_a_stream(tmp_path: Path) -> None:
    X, labels = few_that_count(250, 8)
    model = SequentialKernelClassifier(random_state=0, n_particles=30).fit(X, labels)
    assert any(said.startswith(WEIGHED) for said in model.notes_)
    model.save(tmp_path / "model.mercer")
    again = load(tmp_path / "model.mercer")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    streamed = SequentialKernelClassifier(random_state=0, n_particles=30)
    streamed.partial_fit(X, labels, classes=[0, 1])
    assert (streamed.standardizer_.after_scale == 1.0).all()
    for own in ({"lengthscale": 1.0}, {"standardize": "std"}):
        other = SequentialKernelClassifier(random_state=0, n_particles=30, **own).fit(X, labels)
        assert not any(said.startswith(WEIGHED) for said in other.notes_), own


@pytest.mark.slow
def test_idle_inputs_cost_sphere_little() -> None:
    """In log loss of new rows ahead of one length scale by three standard errors."""
    X, labels = few_that_count(200, 12)
    Z, new = few_that_count(2000, 12, seed=1)
    losses = []
    for how in ("auto", "std"):
        model = KernelGibbsClassifier(random_state=0, standardize=how).fit(X, labels)
        losses.append(-np.log(model.predict_proba(Z)[np.arange(2000), new]))
    gap = losses[1] - losses[0]
    assert gap.mean() > 3.0 * gap.std() / np.sqrt(len(gap))


@pytest.mark.parametrize(("n", "expected"), [(30, 30), (1000, 400), (1001, 800), (10**7, 800)])
def test_more_rows_weigh_the_inputs_of_many(n: int, expected: int) -> None:
    rows = rows_that_weigh(n)
    assert 0.87 * expected <= len(rows) <= expected
    assert len(rows_that_decide(len(rows))) <= 400
