"""Of more rows than `max_rows` a stratified random choice is fitted: by class, or by quantile."""

from __future__ import annotations

from pathlib import Path
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest

import mercer
from mercer import GPClassifier, GPRegressor
from mercer.gp import base
from mercer.gp.averaging import stratified_rows


def many(n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def test_numbers_are_taken_one_from_each_quantile() -> None:
    """Random rows would leave some of the 40 strata empty, with probability above 1 - 1e-15."""
    y = np.random.default_rng(2).standard_normal(1000)
    rows = stratified_rows(y, 40, np.random.default_rng(0), is_classes=False)
    np.testing.assert_array_equal(rows, np.sort(rows))
    ranks = np.argsort(np.argsort(y))[rows]
    assert sorted(ranks // 25) == list(range(40))


def test_every_row_is_as_likely_as_any_other() -> None:
    """No stratum is favoured: 2000 choices, limits at 5 standard deviations (7e-5 in all)."""
    y = np.exp(2.0 * np.random.default_rng(3).standard_normal(120))
    counts = np.zeros(120)
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        counts[stratified_rows(y, 30, rng, is_classes=False)] += 1.0
    assert np.abs(counts / 2000 - 0.25).max() < 5.0 * np.sqrt(0.25 * 0.75 / 2000)


def test_classes_keep_their_shares() -> None:
    codes = np.repeat([0.0, 1.0, 2.0, 3.0], [500, 300, 199, 1])
    rows = stratified_rows(codes, 100, np.random.default_rng(0), is_classes=True)
    assert len(set(rows)) == 100
    assert np.bincount(codes[rows].astype(int)).tolist() == [50, 30, 19, 1]


def test_more_classes_than_half_of_the_rows() -> None:
    with pytest.raises(ValueError, match="max_rows=10 is too few for 50 classes"):
        stratified_rows(np.arange(50.0), 10, np.random.default_rng(0), is_classes=True)


def test_a_regressor_says_what_it_is_fitted_to_and_who_takes_all_rows() -> None:
    X, y = many()
    models = [
        GPRegressor(
            kernel="rbf", inference="map", max_rows=40, n_inducing=None, random_state=4
        ).fit(X, y)
        for _ in "ab"
    ]
    assert models[0].notes_[0] == (
        "fitted to 40 of 900 rows, a random choice stratified by the target; max_rows=900 takes "
        'more; n_inducing="auto" lets all rows count; BaNKRegressor and SequentialKernelRegressor '
        "(spectral and basis on the command line) take all rows"
    )
    np.testing.assert_array_equal(models[0]._X, models[1]._X)
    other = GPRegressor(
        kernel="rbf", inference="map", max_rows=40, n_inducing=None, random_state=5
    ).fit(X, y)
    assert not np.array_equal(models[0]._X, other._X)


def test_a_file_keeps_a_target_far_beyond_what_as_few_rows_could_have(tmp_path: Path) -> None:
    """All rows standardise targets: of n fitted ones some may be beyond sqrt(n)."""
    X, y = many(100)
    y[7] = 1e3
    model = GPRegressor(kernel="rbf", max_rows=50, inference="map", random_state=1).fit(X, y)
    assert np.abs(model._y).max() > np.sqrt(50)
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_with_wrong_targets_no_advice_is_given_that_is_refused() -> None:
    X, y = many(40)
    given = {"n_draws": 20, "n_warmup": 10, "n_chains": 1, "random_state": 0}
    model = GPRegressor(kernel="isotropic(rbf)", noise="contaminated", max_rows=20, **given)
    with catch_warnings():
        simplefilter("ignore")
        model.fit(X, y)
    assert "n_inducing" not in model.notes_[0]
    assert 'BaNKRegressor(noise="contaminated")' in model.notes_[0]


@pytest.mark.parametrize("shared", [False, True])
def test_every_class_is_among_the_chosen(shared: bool) -> None:
    X, f = many(400)
    y = np.where(f > 0.0, "high", "low")
    y[7] = "rare"
    model = GPClassifier(
        kernel="rbf", inference="map", max_rows=20, shared_kernel=shared, random_state=0
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "MOST_ROWS", 100)
        model.fit(X, y)
    np.testing.assert_array_equal(model.classes_, ["high", "low", "rare"])
    assert model.predict_proba(X).shape == (400, 3)
    assert model._task_.y.size == 20
    assert set(model._task_.y) == {0.0, 1.0, 2.0}
    assert "by class" in model.notes_[0]
    for name in ("BaNKClassifier", "KernelGibbsClassifier", "SequentialKernelClassifier"):
        assert name in model.notes_[0]


def test_two_classes_and_the_same_rows_each_time() -> None:
    X, f = many(300)
    y = f > 0.0
    models = [
        GPClassifier(kernel="rbf", inference="map", max_rows=30, random_state=3).fit(X, y)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(models[0]._X, models[1]._X)
    assert np.mean(models[0].predict(X) == y) > 0.85


@pytest.mark.parametrize(
    ("n_classes", "d", "most"), [(2, 2, 1000), (3, 2, 700), (10, 65, 316), (2, 58, 981)]
)
def test_by_itself_fewer_rows_where_each_costs_more(n_classes: int, d: int, most: int) -> None:
    """Of several classes and of many inputs; of many that one length scale serves as of few."""
    model = GPClassifier()
    model.n_features_in_, model.feature_labels_ = d, tuple(f"x{j}" for j in range(d))
    assert model._limit_of_rows(n_classes, model._cost_of_rows(n_classes)) == most
    model.kernel = "isotropic(rbf)"
    few = model._limit_of_rows(n_classes, model._cost_of_rows(n_classes))
    assert few == (1000 if n_classes == 2 else most if d < 20 else 468)
    model.max_rows = 50
    assert model._limit_of_rows(n_classes, model._cost_of_rows(n_classes)) == 50


def test_by_itself_ten_rows_of_each_of_many_classes() -> None:
    model = GPClassifier()
    assert [model._limit_of_rows(n, 1e5) for n in (3, 50, 300)] == [30, 500, 1000]


def test_of_many_inputs_hyperparameters_are_learned_from_no_more_rows_than_there_are() -> None:
    """The thousand rows that teach where there are inducing points may be more than all."""
    model, y = GPRegressor(n_inducing="auto"), np.arange(800.0)
    rows, inducing = model._chosen_rows(y, 736, model._wanted_inducing, 0, is_classes=False)
    (note,) = model._said_of_rows(800, rows, inducing)
    assert (len(rows), len(set(rows))) == (736, 736)
    assert inducing is not None
    assert len(inducing) == 800
    assert "learned from 736 of 800 rows" in note
