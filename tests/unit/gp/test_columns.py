"""Gaussian processes with kernels of chosen inputs and of categories, from tables to files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone

import mercer
from mercer import GPClassifier, GPRegressor
from mercer.errors import DataWarning, ModelFileError, UsageError
from mercer.kernels.columns import Categorical, on_columns
from mercer.kernels.names import name_of_kernel
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.posterior.container import read_container, write_container

MAP: dict[str, Any] = {"inference": "map", "random_state": 0}
SHIFTS = {"Bonn": 0.0, "Kiel": -4.0, "Lima": 1.0, "Oslo": 3.0, "Rome": -2.0}


def table(n: int = 80, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A smooth function of age, shifted by city; size says nothing."""
    rng = np.random.default_rng(seed)
    city, age = rng.choice(list(SHIFTS), n), rng.uniform(20.0, 70.0, n)
    frame = pd.DataFrame({"age": age, "city": city, "the size": rng.standard_normal(n)})
    shift = np.array([SHIFTS[each] for each in city])
    return frame, np.sin(age / 6.0) + shift + 0.2 * rng.standard_normal(n)


def test_evidence_of_a_category_is_that_of_quadrature() -> None:
    """Numbers by city alone, known noise: the integral over variance and weight on a grid."""
    rng = np.random.default_rng(3)
    city = rng.integers(3, size=25)
    y = np.array([0.0, 2.0, -1.0])[city] + 0.5 * rng.standard_normal(25)
    model = GPRegressor(kernel="categorical[0:3]", noise_std=0.5, random_state=0)
    model.fit(np.eye(3)[city], y)

    scale = y.std()
    targets, same = (y - y.mean()) / scale, city[:, np.newaxis] == city
    log_v, log_w = np.linspace(-6.0, 12.0, 46), np.linspace(-9.0, 6.0, 46)
    rest = 1.0 + (0.5 / scale) ** 2 * np.eye(25)  # intercept and noise
    prior = norm.logpdf(log_v, 1.0, 3.0)[:, np.newaxis] + norm.logpdf(log_w, -1.0, 2.0)
    grid = np.empty(prior.shape)
    for i, v in enumerate(np.exp(log_v)):
        for j, w in enumerate(np.exp(log_w)):
            K = v * np.where(same, 1.0, np.exp(-w)) + rest
            grid[i, j] = multivariate_normal.logpdf(targets, cov=K)
    cell = (log_v[1] - log_v[0]) * (log_w[1] - log_w[0])
    expected = logsumexp(grid + prior) + np.log(cell) - len(y) * np.log(scale)
    assert abs(model.log_evidence_ - expected) < 4.0 * model.log_evidence_se_ + 0.01
    assert model.log_evidence_se_ < 0.1


@pytest.mark.parametrize("of_kind", [GPRegressor, GPClassifier])
def test_one_input_of_several_is_a_table_with_no_others(of_kind: Any) -> None:
    frame, y = table()
    X = frame[["age", "the size"]].to_numpy()
    target = y if of_kind is GPRegressor else y > 0
    part = of_kind(kernel="rbf[0]", **MAP).fit(X, target)
    alone = of_kind(kernel="rbf", **MAP).fit(X[:, :1], target)

    def said(model: Any, Z: np.ndarray) -> np.ndarray:
        return model.predict(Z) if of_kind is GPRegressor else model.predict_proba(Z)

    np.testing.assert_allclose(said(part, X), said(alone, X[:, :1]), rtol=1e-6, atol=1e-9)
    assert part.posterior_.labels["log_weight"] == ("x0",)
    assert not hasattr(part, "relevance_")


@pytest.mark.parametrize(
    ("target", "of_kind"),
    [("numbers", GPRegressor), ("two", GPClassifier), ("three", GPClassifier)],
)
def test_a_model_of_a_table_is_saved_with_the_names_of_its_inputs(
    target: str, of_kind: Any, tmp_path: Path
) -> None:
    frame, y = table()
    codes = {"numbers": y, "two": y > 0, "three": np.digitize(y, [-2.0, 1.0])}[target]
    text = 'rbf[age, "the size"] + categorical[city]'
    model = of_kind(kernel=text, **MAP).fit(frame, codes)
    assert model.kernel_weights_ == {text: 1.0}
    assert name_of_kernel(model.kernel_) == "rbf[0, 6] + categorical[1:6]"
    names = ("age", "the size"), ("city",)
    if target == "three":
        names = tuple(tuple(f"{c}: {x}" for c in range(3) for x in each) for each in names)  # type: ignore[assignment]
    labels = model.posterior_.labels
    assert (labels["log_weight_1"], labels["log_weight_2"]) == names
    assert "log_weight_1[age]" in str(model.posterior_.summary()) or target == "three"

    model.save(tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert (again.kernel, again.kernel_weights_) == (text, model.kernel_weights_)
    new = frame.iloc[:9]
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    again.save(tmp_path / "again.mercer")
    assert (
        read_container(tmp_path / "again.mercer")[0] == read_container(tmp_path / "model.mercer")[0]
    )


def test_a_file_whose_kernel_names_no_input_is_refused(tmp_path: Path) -> None:
    frame, y = table(30)
    GPRegressor(kernel="rbf[age]", **MAP).fit(frame, y).save(tmp_path / "model.mercer")
    manifest, arrays = read_container(tmp_path / "model.mercer")
    for kernel in ("rbf[agee]", "rbf[99]", "rbf[age, 3]"):
        bad = {**manifest, "params": {**manifest["params"], "kernel": kernel}}
        write_container(tmp_path / "bad.mercer", bad, arrays)
        with pytest.raises(ModelFileError, match="inconsistent"):
            mercer.load(tmp_path / "bad.mercer")
    fields = {**manifest["fields"], "sources_of_inputs": ["age"]}
    write_container(tmp_path / "bad.mercer", {**manifest, "fields": fields}, arrays)
    with pytest.raises(ModelFileError, match="sources_of_inputs"):
        mercer.load(tmp_path / "bad.mercer")


def test_a_city_that_was_never_seen_has_the_spread_of_the_prior() -> None:
    """Its interval is wide, as that of a new city; and two levels in one column are no less so."""
    frame, y = table(120)
    model = GPRegressor(kernel="rbf[age] + categorical[city]", **MAP).fit(frame, y)
    new = frame.iloc[:1].assign(city="Quito")
    with pytest.warns(DataWarning, match="Quito"):
        _, std = model.predict(new, return_std=True)
    _, known = model.predict(frame.iloc[:1], return_std=True)
    assert std[0] > 5.0 * known[0]
    assert 1.0 < std[0] < 8.0  # cities are 2.4 apart, in standard deviations

    kept = frame["city"].isin(["Oslo", "Kiel"])
    two = GPRegressor(kernel="rbf[age] + categorical[city]", **MAP).fit(frame[kept], y[kept])
    assert len(two.feature_labels_) == 3
    with pytest.warns(DataWarning, match="halfway between the two"):
        mean, wide = two.predict(new, return_std=True)
    assert wide[0] > 5.0 * two.predict(frame[kept].iloc[:1], return_std=True)[1][0]
    assert -4.0 < mean[0] < 3.0


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("rbf[agee]", "no input 'agee': did you mean 'age'"),
        ("rbf[7]", "no input at position 7: there are 7"),
        (on_columns(Categorical(), ["town"]), "no input 'town'"),
    ],
)
@pytest.mark.parametrize("of_kind", [GPRegressor, GPClassifier])
def test_inputs_that_are_not_there_are_refused(of_kind: Any, kernel: Any, words: str) -> None:
    frame, y = table(30)
    with pytest.raises(UsageError, match=words):
        of_kind(kernel=kernel, **MAP).fit(frame, y > 0)


def test_kernels_as_objects_are_cloned_and_refitted() -> None:
    frame, y = table(40)
    kernel = on_columns(SquaredExponentialARD(), ["age"]) + on_columns(Categorical(), ["city"])
    model = GPRegressor(kernel=kernel, **MAP)
    assert clone(model).get_params()["kernel"] == kernel
    by_name = GPRegressor(kernel="rbf[age] + categorical[city]", **MAP).fit(frame, y)
    first = clone(model).fit(frame, y)
    np.testing.assert_array_equal(first.predict(frame), by_name.predict(frame))
    turned = clone(model).fit(frame[["city", "the size", "age"]], y)  # the same columns elsewhere
    np.testing.assert_allclose(turned.predict(frame), first.predict(frame), rtol=1e-6)


def test_columns_in_another_order_are_another_run(tmp_path: Path) -> None:
    """The numbers are the same, and so is the text of the kernel; its input is another."""
    X = np.random.default_rng(0).standard_normal((30, 2))
    settings = {"kernel": "rbf[a]", "n_draws": 5, "n_chains": 1, "random_state": 0}
    for names in (["a", "b"], ["b", "a"]):
        model = GPRegressor(**settings, checkpoint=tmp_path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(pd.DataFrame(X, columns=names), X[:, 0])
    assert len(list(tmp_path.iterdir())) == 2


# Kernels that the data choose, where the table has columns of text.


@pytest.mark.parametrize(
    ("of_kind", "n", "most"),
    [pytest.param(GPRegressor, 40, 0.6, marks=pytest.mark.slow), (GPClassifier, 120, 0.85)],
)
def test_auto_finds_shifts_by_category(of_kind: Any, n: int, most: float) -> None:
    """A smooth function of a number, shifted by city and by day: RBF errs, or knows, much less."""
    rng = np.random.default_rng(4)
    frame, y = table(300, 5)
    frame["day"] = rng.choice(["Mo", "Tu", "We"], 300)
    y = y + frame["day"].map({"Mo": 0.0, "Tu": 2.0, "We": -1.5}).to_numpy()
    target = y if of_kind is GPRegressor else y > np.median(y)

    def loss(model: Any) -> float:
        if of_kind is GPRegressor:
            return float(np.sqrt(np.mean((model.predict(frame[n:]) - y[n:]) ** 2)))
        p = model.predict_proba(frame[n:])[np.arange(300 - n), target[n:].astype(int)]
        return float(-np.log(p).mean())

    auto, rbf = (of_kind(kernel=k, **MAP).fit(frame[:n], target[:n]) for k in ("auto", "rbf"))
    assert "categorical[" in next(iter(auto.kernel_weights_))
    assert loss(auto) < most * loss(rbf)
    assert any("categorical[city" in note for note in auto.notes_)


def test_auto_compares_the_same_kernels_of_numbers() -> None:
    frame, y = table(60)
    numbers = frame[["age", "the size"]]
    named = GPRegressor(kernel="auto", **MAP).fit(numbers, y)
    plain = GPRegressor(kernel="auto", **MAP).fit(numbers.to_numpy(), y)
    np.testing.assert_array_equal(named.predict(numbers), plain.predict(numbers.to_numpy()))
    assert not any("[" in note for note in named.notes_)


def test_auto_of_text_alone() -> None:
    frame, y = table(60)
    frame["day"] = np.random.default_rng(1).choice(["Mo", "Tu"], 60)
    model = GPRegressor(kernel="auto", **MAP).fit(frame[["city", "day"]], y)
    assert any("categorical[city, day]" in note for note in model.notes_)
    assert any("categorical[city] + categorical[day]" in note for note in model.notes_)


def test_a_mixture_of_kernels_is_saved_with_the_names_of_its_inputs(tmp_path: Path) -> None:
    frame, y = table()
    model = GPRegressor(kernel="auto", **MAP).fit(frame, y)
    assert any("city" in name for name in model.kernel_weights_)
    model.save(tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert again.kernel_weights_ == model.kernel_weights_
    assert list(again.kernel_posteriors_) == list(model.kernel_posteriors_)
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
