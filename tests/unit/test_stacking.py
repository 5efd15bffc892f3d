"""Weights of several laws by what they said of held-out rows, and the models that are mixed so."""

from __future__ import annotations

import pickle
import time
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import log_softmax, logsumexp, softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier
from threadpoolctl import threadpool_limits

import mercer
from mercer.errors import DataError, MercerWarning, ModelFileError, NumericalError, UsageError
from mercer.posterior.container import read_container, write_container
from mercer.posterior.draws import stacking_weights
from mercer.posterior.predictive import Contamination, LawMixture, NormalMixture, StudentMixture
from mercer.posterior.scores import PROBA_FLOOR
from mercer.report import build_report
from mercer.sampling.driver import RunOptions
from mercer.stacking.estimator import MercerClassifier, MercerRegressor
from mercer.stacking.members import (
    StackLeft,
    Trees,
    WeightsPosterior,
    draw_weights,
    rows_by_member,
    weights_of,
    with_targets,
)
from support.quick_boosting import all_trees, quick_boosting

__all__ = ["all_trees", "quick_boosting"]

QUICK: dict[str, Any] = {
    "n_folds": 3,
    "n_draws": 6,
    "n_warmup": 4,
    "n_chains": 1,
    "random_state": 0,
    "progress": False,
}


@pytest.fixture(autouse=True)
def few_particles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of members by name that are filters: what a stack does with a member is the same."""
    for kind in (mercer.SequentialKernelClassifier, mercer.SequentialKernelRegressor):
        monkeypatch.setitem(kind.__init__.__kwdefaults__, "n_particles", 20)


@pytest.mark.parametrize("prior_rows", [0.0, 2.0])
def test_stacking_weights_are_those_of_a_generic_optimiser(prior_rows: float) -> None:
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((4, 60)) * np.array([[1.0], [2.0], [0.5], [1.5]])

    def loss(theta: np.ndarray) -> float:
        log_weights = log_softmax(np.append(theta, 0.0))
        mixture = logsumexp(scores + log_weights[:, np.newaxis], axis=0).sum()
        return -float(mixture + prior_rows * log_weights.sum())

    found = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-7}).x
    weights, score = stacking_weights(scores, prior_rows)
    np.testing.assert_allclose(weights, softmax(np.append(found, 0.0)), atol=3e-4)
    assert score == pytest.approx(-loss(found) - prior_rows * np.log(weights).sum(), abs=1e-3)
    # What has no prior has another maximum: a mutant that forgets one of the two fails.
    assert np.abs(weights - stacking_weights(scores, 2.0 - prior_rows)[0]).max() > 0.01


@pytest.mark.parametrize("prior_rows", [0.0, 1.0])
def test_weights_are_the_best_of_a_grid(prior_rows: float) -> None:
    """Neither equal weights nor those of the highest mean of logs do as well."""
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((3, 40)) - np.array([[1.0], [0.9], [2.0]])
    edge = np.linspace(0.0, 1.0, 101)[1:-1]
    grid = np.array([(a, b, 1.0 - a - b) for a in edge for b in edge if a + b < 0.9999])

    def value(weights: np.ndarray) -> np.ndarray:
        return np.log(weights @ np.exp(scores)).sum(-1) + prior_rows * np.log(weights).sum(-1)

    weights, score = stacking_weights(scores, prior_rows)
    best = grid[np.argmax(value(grid))]
    np.testing.assert_allclose(weights, best, atol=0.015)
    assert value(np.maximum(weights, 1e-12)) >= value(best) - 1e-6
    assert score == pytest.approx(np.log(weights @ np.exp(scores)).sum())
    by_mean_of_logs = np.eye(3)[np.argmax(scores.mean(axis=1))] + 1e-3
    for mutant in (np.full(3, 1.0 / 3.0), by_mean_of_logs / by_mean_of_logs.sum()):
        assert value(mutant) < value(weights) - 1.0


# The mixture of laws.


def laws() -> list[StudentMixture]:
    """Three laws of four rows: one with outliers, one of normals, one of a few degrees."""
    rng = np.random.default_rng(1)
    return [
        StudentMixture(
            rng.standard_normal((4, 3)),
            np.array([0.5, 1.0, 2.0]),
            np.array([0.2, 0.3, 0.5]),
            np.array([3.0, 5.0, 9.0]),
            outliers=Contamination(0.1, 0.0, 3.0),
        ),
        NormalMixture(rng.standard_normal((4, 2)), np.array([0.3, 0.7])),
        StudentMixture(rng.standard_normal((4, 1)), np.ones((4, 1)), np.ones(1), 4.0),
    ]


WEIGHTS = np.array([0.5, 0.2, 0.3])


def test_the_density_of_a_mixture_is_the_weighted_sum() -> None:
    y = np.array([0.1, -0.4, 2.0, -3.0])
    each = np.exp([law.log_density(y) for law in laws()])
    found = LawMixture(laws(), WEIGHTS).log_density(y)
    np.testing.assert_allclose(np.exp(found), WEIGHTS @ each, rtol=1e-12)
    mean_of_logs = WEIGHTS @ np.log(each)  # the mutant
    assert np.abs(found - mean_of_logs).min() > 1e-3


def test_moments_and_quantiles_of_a_mixture() -> None:
    parts, mixed = laws(), LawMixture(laws(), WEIGHTS)
    means = np.array([law.mean for law in parts])
    squares = np.array([law.std**2 + law.mean**2 for law in parts])
    np.testing.assert_allclose(mixed.mean, WEIGHTS @ means)
    np.testing.assert_allclose(mixed.std, np.sqrt(WEIGHTS @ squares - (WEIGHTS @ means) ** 2))

    def gap(value: float, row: int, level: float) -> float:
        at = np.full(4, value)
        return float(WEIGHTS @ [law.cdf(at)[row] for law in parts]) - level

    lower, upper = mixed.interval(0.8)
    for row in range(4):
        assert lower[row] == pytest.approx(brentq(gap, -99.0, 99.0, args=(row, 0.1)), abs=1e-6)
        assert upper[row] == pytest.approx(brentq(gap, -99.0, 99.0, args=(row, 0.9)), abs=1e-6)


def test_draws_of_a_mixture_lie_in_its_intervals() -> None:
    """40 000 draws: a share is 4.5 of its standard errors off with a probability of 7e-6."""
    mixed, n = LawMixture(laws(), WEIGHTS), 40_000
    lower, upper = mixed.interval(0.8)
    drawn = mixed.sample(np.random.default_rng(2), n)
    inside = ((lower <= drawn) & (drawn <= upper)).mean(axis=0)
    assert np.abs(inside - 0.8).max() < 4.5 * np.sqrt(0.16 / n)
    equal = LawMixture(laws(), np.full(3, 1.0 / 3.0)).interval(0.8)  # the mutant
    inside = ((equal[0] <= drawn) & (drawn <= equal[1])).mean(axis=0)
    assert np.abs(inside - 0.8).max() > 9.0 * np.sqrt(0.16 / n)


# Draws of the weights.


def test_the_gradient_of_the_weights_is_that_of_differences() -> None:
    rng = np.random.default_rng(4)
    target = WeightsPosterior(rng.standard_normal((4, 30)))
    theta, h = rng.standard_normal(3), 1e-6
    for j, own in enumerate(target.evaluate(theta).gradient):
        step = h * np.eye(3)[j]
        up, down = (target.evaluate(theta + sign * step).log_density for sign in (1, -1))
        assert own == pytest.approx((up - down) / (2.0 * h), abs=1e-5)


def test_draws_of_two_weights_are_those_of_a_grid() -> None:
    """Mean and spread within 4 standard errors by the effective size: one run in 10 000 fails."""
    scores = np.random.default_rng(5).standard_normal((2, 3))
    scores[0] += 0.5
    options = RunOptions(500, 200, 2, 1, entropy=0, progress=False)
    draws = draw_weights(scores, weights_of(scores), ("one", "other"), options).draws
    drawn = draws.flat("weight")[:, 0]
    w = (np.arange(20_000) + 0.5) / 20_000
    log_p = np.log(
        w[:, np.newaxis] @ np.exp(scores[:1]) + (1 - w)[:, np.newaxis] @ np.exp(scores[1:])
    )
    density = np.exp(log_p.sum(axis=1) + 0.5 * np.log(w * (1 - w)))
    density /= density.sum()
    mean = density @ w
    std = np.sqrt(density @ (w - mean) ** 2)
    n = 300.0  # of 1000 draws: a lower bound of what they are worth
    assert drawn.mean() == pytest.approx(mean, abs=4.0 * std / np.sqrt(n))
    assert drawn.std() == pytest.approx(std, abs=4.0 * std / np.sqrt(2.0 * n))
    # A mutant that forgets the Jacobian has a flat prior.
    flat = density / (w * (1 - w))
    flat /= flat.sum()
    assert np.sqrt(flat @ (w - flat @ w) ** 2) > std * (1.0 + 4.0 / np.sqrt(2.0 * n))


def test_a_member_alone_has_no_weights_to_draw() -> None:
    X, y = rings()
    quick = {**QUICK, "n_draws": 250, "n_chains": 2}  # enough to be judged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = MercerClassifier(models="boosting", **quick).fit(X, y)
    assert fitted.diagnostics_.warnings == ()
    np.testing.assert_array_equal(fitted.posterior_.variables["weight"], np.ones((2, 250, 1)))
    assert fitted.comparison_.rows[0][:4] == ("boosting", 1.0, 1.0, 1.0)
    build_report(fitted, evaluation=None, provenance=None)


# The members.


def rings(n: int = 90, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows in the plane, and labels by their distance from 0."""
    X = np.random.default_rng(6).standard_normal((n, 2))
    radius = np.argsort(np.argsort((X**2).sum(axis=1)))
    return X, np.array(["a", "b", "c"])[radius * n_classes // n]


def line(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((n, 2))
    return X, X[:, 0] + 0.3 * rng.standard_normal(n)


class Parrot(ClassifierMixin, BaseEstimator):
    """Knows the labels of rows that it has seen, and says the wrong thing of all others."""

    def fit(self, X, y):
        self.classes_, index = np.unique(y, return_inverse=True)
        self.known_ = {row.tobytes(): k for row, k in zip(np.asarray(X), index, strict=True)}
        return self

    def predict_proba(self, X):
        n_classes = len(self.classes_)
        found = [self.known_.get(row.tobytes(), -1) for row in np.asarray(X)]
        right = (np.asarray(X)[:, 0] ** 2 + np.asarray(X)[:, 1] ** 2 > 1.4).astype(int)
        sure = np.where(np.array(found) >= 0, found, 1 - right)
        return 0.9 * np.eye(n_classes)[sure] + 0.1 / n_classes


class Failing(ClassifierMixin, BaseEstimator):
    """Fits the whole table of so many rows, and no part of it."""

    def __init__(self, n_rows: int = 90, slow: float = 0.0):
        self.n_rows, self.slow = n_rows, slow

    def fit(self, X, y):
        ends = time.process_time() + self.slow
        while time.process_time() < ends:
            pass
        if len(X) < self.n_rows:
            raise ArithmeticError("no root was found")
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1.0 / len(self.classes_))


class Plain(RegressorMixin, BaseEstimator):
    """The mean, without a law."""

    def fit(self, X, y):
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


def test_members_are_judged_by_rows_that_they_have_not_seen() -> None:
    X, y = rings()
    fitted = MercerClassifier(models=[Parrot(), "boosting"], **QUICK).fit(X, y)
    assert fitted.weights_["boosting"] > 0.9
    assert fitted.log_score_folds_["Parrot"].min() > 1.0  # nats
    proba = [model.predict_proba(X) for model in fitted.members_.values()]
    mixed = sum(w * p for w, p in zip(fitted.weights_.values(), proba, strict=True))
    np.testing.assert_allclose(fitted.predict_proba(X), mixed, rtol=1e-12)
    assert set(fitted.predict(X)) <= {"a", "b"}


def test_no_class_is_impossible() -> None:
    """A tree is sure of all rows; its held-out score counts a probability of 2.2e-16 then."""
    X, y = rings(60, 3)
    fitted = MercerClassifier(models=[DecisionTreeClassifier(random_state=0)], **QUICK).fit(X, y)
    proba = fitted.predict_proba(X)
    assert 0.0 < proba.min() <= PROBA_FLOOR
    assert proba.max() < 1.0
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-15)
    assert (fitted.predict(X) == y).all()


def test_weights_are_those_of_the_held_out_scores() -> None:
    X, y = rings()
    fitted = MercerClassifier(models=[LogisticRegression(), "boosting"], **QUICK).fit(X, y)
    weights, _ = stacking_weights(fitted._scores, 1.0 / 2.0)
    names = fitted.posterior_.labels["weight"]
    np.testing.assert_allclose([fitted.weights_[name] for name in names], weights)
    assert fitted._scores.shape == (2, 90)
    by_fold = fitted.log_score_folds_
    assert list(by_fold) == ["LogisticRegression", "boosting", "stack"]
    assert by_fold["boosting"].mean() == pytest.approx(-fitted._scores[1].mean())
    shown = fitted.comparison_
    assert shown.column("model") == ("boosting", "LogisticRegression", "stack")
    assert shown.column("log_score")[0] == pytest.approx(-fitted._scores[1].mean())
    gap = shown.column("log_score")[0] - shown.column("log_score")[2]
    assert shown.column("gap")[0] == pytest.approx(gap)
    report = build_report(fitted, evaluation=None, provenance=None)
    (section,) = [each for each in report.sections if each.key == "members"]
    assert [row[0].text for row in section.tables[0].rows] == list(shown.column("model"))
    assert "boosting scores best" in section.text[1]


def test_numbers_are_mixed_with_the_laws_of_their_members() -> None:
    X, y = line()
    fitted = MercerRegressor(models=[LinearRegression(), Plain(), "boosting"], **QUICK).fit(X, y)
    assert max(fitted.weights_, key=fitted.weights_.get) == "LinearRegression"
    laws = [model.predictive(X) for model in fitted.members_.values()]
    own = np.array(list(fitted.weights_.values()))
    density = own @ np.exp([law.log_density(y) for law in laws])
    np.testing.assert_allclose(np.exp(fitted.predictive(X).log_density(y)), density, rtol=1e-10)
    mean, std = fitted.predict(X, return_std=True)
    np.testing.assert_allclose(mean, own @ [law.mean for law in laws])
    assert (std > 0.0).all()
    lower, upper = fitted.predict_interval(X, 0.5)
    drawn = fitted.sample_y(X, 4000, random_state=0)
    inside = ((lower <= drawn) & (drawn <= upper)).mean(axis=0)
    # 4.5 standard errors, 60 rows that share members: one run in 2000 fails.
    assert np.abs(inside - 0.5).max() < 4.5 * np.sqrt(0.25 / 4000)


def test_members_know_the_names_of_columns() -> None:
    """So that a kernel may name them, and text is one column to a kernel of categories."""
    rng = np.random.default_rng(2)
    frame = pandas.DataFrame({"age": rng.normal(size=60), "city": rng.choice(["a", "b", "c"], 60)})
    y = np.sin(frame["age"]) + (frame["city"] == "b") + 0.1 * rng.normal(size=60)
    kernel = "rbf[age] + categorical[city]"
    member = mercer.GPRegressor(kernel=kernel, inference="map", random_state=0, progress=False)
    fitted = MercerRegressor(models=[member, Plain()], **QUICK).fit(frame, y)
    inner = fitted.members_["gp"]
    assert inner.feature_labels_ == fitted.feature_labels_ == ("age", "city=a", "city=b", "city=c")
    assert fitted.weights_["gp"] > 0.8


@pytest.mark.parametrize(
    "own",
    [{"kernel": ConstantKernel() * RBF([1.0, 1.0])}, {"encode": mercer.TableEncoder("impute")}],
    ids=["kernel", "encoder"],
)
def test_a_member_may_have_arguments_with_arguments_of_their_own(own: dict[str, Any]) -> None:
    X, _ = line(40)
    member = mercer.GPRegressor(**{"kernel": "rbf", "inference": "map", "progress": False, **own})
    fitted = MercerRegressor(models=[member, LinearRegression()], **QUICK).fit(X, np.sin(X[:, 0]))
    assert fitted.weights_["gp"] > 0.9


class Remembering(ClassifierMixin, BaseEstimator):
    """Knows the label of each first input that it has seen, and is wrong of all others."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.known_ = dict(zip(X[:, 0], np.searchsorted(self.classes_, y), strict=True))
        return self

    def predict_proba(self, X):
        found = [self.known_.get(x, x % 2) for x in X[:, 0]]
        return 0.9 * np.eye(2)[np.array(found, dtype=int)] + 0.05


@pytest.mark.parametrize("given", ["fit", "routed"])
def test_rows_of_a_group_are_held_out_together(given: str) -> None:
    """Alone, each row would be judged by a member that has seen others of its group."""
    groups = np.repeat(np.arange(20), 4)
    X = np.stack([groups, np.random.default_rng(1).normal(size=80)], axis=1).astype(float)
    y = np.where(groups % 2 == 1, "ill", "well")
    model = MercerClassifier(models=[Remembering(), LogisticRegression()], **QUICK)
    alone = model.fit(X, y)
    assert alone.weights_["Remembering"] > 0.9
    if given == "fit":
        fitted = model.fit(X, y, groups=[f"patient {k}" for k in groups])
    else:
        with config_context(enable_metadata_routing=True):
            own = model.set_fit_request(groups=True)
            search = GridSearchCV(own, {"n_folds": [3]}, cv=GroupKFold(3))
            fitted = search.fit(X, y, groups=groups).best_estimator_
    assert fitted.weights_["Remembering"] < 0.1
    assert (np.bincount(fitted._fold) % 4 == 0).all()
    with pytest.raises(UsageError, match="80 rows, but 3 entries of groups"):
        model.fit(X, y, groups=[1, 2, 3])
    for gaps in (np.array(["a", None] * 40, dtype=object), pandas.array([pandas.NA, "a"] * 40)):
        with pytest.raises(DataError, match="groups must be all numbers or all text"):
            model.fit(X, y, groups=gaps)
    assert "found 1 group" in model.fit(X, y, groups=np.zeros(80)).notes_[0]
    assert set(model.weights_.values()) == {0.5}


def test_a_gap_is_told_by_groups_and_not_by_rows(tmp_path: Path) -> None:
    """Rows that are there five times tell a gap no better than once; a file and a fold know them.

    Then sums over groups are five times a row, and the standard error is that of the rows alone.
    """
    X, y = line(40)
    X, y, groups = (np.repeat(each, 5, axis=0) for each in (X, y, np.arange(40) + 7))
    fitted = MercerRegressor(models="boosting,basis", **QUICK).fit(X, y, groups=groups)
    table = fitted.comparison_
    *said, mixed = -rows_by_member(fitted._scores, fitted._fold)
    once = np.unique(fitted._groups, return_index=True)[1]
    assert len(once) == 40
    for name, own in zip(fitted.posterior_.labels["weight"], said, strict=True):
        expected = (own - mixed)[once].std(ddof=1) / np.sqrt(40)
        row = table.column("model").index(name)
        assert table.column("gap_error")[row] == pytest.approx(expected)
    fitted.save(tmp_path / "m.mercer")
    assert str(mercer.load(tmp_path / "m.mercer").comparison_) == str(table)
    part = clone(fitted)
    part._nearby = fitted._left
    part.fit(X[:100], y[:100], groups=groups[:100])
    assert len(np.unique(part._groups)) == 20


def test_all_rows_but_one_in_a_group_tell_no_weights() -> None:
    X, y = line()
    groups = np.arange(len(y)) == 3
    fitted = MercerRegressor(models="boosting,basis", **QUICK).fit(X, y, groups=groups)
    assert list(fitted.weights_.values()) == [0.5, 0.5]
    assert "too few rows to hold any out" in fitted.notes_[0]


def test_groups_reach_the_members_that_hold_rows_out(all_trees: None) -> None:
    """The law of one that knows the group of each row is as wide as for rows of other groups."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(15), 20)
    level = rng.normal(size=15)[groups]
    X, y = groups[:, np.newaxis].astype(float), level + 0.01 * rng.normal(size=300)
    tree = DecisionTreeRegressor(random_state=0)
    inner = MercerRegressor(models=[clone(tree)], **QUICK)
    stack = MercerRegressor(models=[tree, inner, "boosting"], **QUICK)
    narrow, wide = (clone(stack).fit(X, y, groups=each) for each in (None, groups))
    for name in ("DecisionTreeRegressor", "boosting"):
        assert wide.members_[name].std_ > 1.5 * narrow.members_[name].std_
    own = [each.members_["stack"].members_ for each in (narrow, wide)]
    own = [each["DecisionTreeRegressor"].std_ for each in own]
    assert own[1] > 10.0 * own[0]


class Counting(Plain):
    """Notes how many columns it gets."""

    seen: ClassVar[list[tuple[int, int]]] = []

    def fit(self, X, y):
        self.seen.append(X.shape)
        return super().fit(X, y)


def test_rows_that_are_held_out_do_not_say_how_the_others_are_encoded() -> None:
    y = line(30)[1]
    city = np.array(["a", "b", "c"])[np.arange(30) % 3].astype(object)
    city[7] = "only here"
    for table in (pandas.DataFrame({"city": city}), city[:, np.newaxis]):
        Counting.seen.clear()
        MercerRegressor(
            models=[Counting(), "boosting"], **{**QUICK, "encode": mercer.TableEncoder()}
        ).fit(table, y)
        # ResidualSpread fits each part several times; some parts lack the row, and its column.
        whole, parts = Counting.seen[0], {d for n, d in Counting.seen if n < 30}
        assert (whole[1], parts) == (4, {3, 4})


def test_what_a_column_is_does_not_depend_on_the_fold() -> None:
    """Half of its cells look like numbers: of some folds more than half, which were refused."""
    table = pandas.DataFrame({"a": ["1", "B", "2", "A"] * 10, "x": np.arange(40.0)})
    y = np.sin(np.arange(40.0))
    model = MercerRegressor(models=[LinearRegression(), "boosting"], **QUICK)
    assert len(model.fit(table, y).weights_) == 2  # that one is left out would be a warning


def test_a_table_whose_fit_failed_is_forgotten() -> None:
    X, y = line(40)
    table = pandas.DataFrame({"x": X[::-1, 0], "city": ["a", "b"] * 20})
    models = [LinearRegression(), "boosting"]
    once = MercerRegressor(models=models, **{**QUICK, "encode": "auto"})
    again = MercerRegressor(models=models, **{**QUICK, "encode": "auto"}).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        once.fit(table, np.where(np.arange(40) == 3, np.nan, y))
    assert once.fit(X, y).weights_ == again.weights_


def test_a_member_that_fails_in_a_fold_is_left_out() -> None:
    X, y = rings()
    model = MercerClassifier(models=[Failing(), "boosting", LogisticRegression()], **QUICK)
    with pytest.warns(MercerWarning, match=r"Failing is left out: it failed \(no root was found\)"):
        model.fit(X, y)
    assert list(model.members_) == ["boosting", "LogisticRegression"]
    assert any("Failing is left out" in note for note in model.notes_)


def test_members_that_all_fail_are_a_typed_error() -> None:
    X, y = rings()
    with pytest.raises(NumericalError, match=r"no member .* \(no root was found"):
        MercerClassifier(models=[Failing(1000), Failing(2000)], **QUICK).fit(X, y)


def test_a_member_that_takes_too_long_is_left_out() -> None:
    X, y = rings()
    model = MercerClassifier(
        models=[LogisticRegression(), Failing(0, slow=0.15)],
        max_seconds=1.0,
        **{**QUICK, "n_folds": 8},
    ).fit(X, y)
    assert list(model.members_) == ["LogisticRegression"]
    assert any("Failing is left out: out of time" in note for note in model.notes_)


def test_where_none_is_scored_in_time_the_first_stands_alone() -> None:
    X, y = rings()
    model = MercerClassifier(models="basis,boosting", max_seconds=1e-9, **QUICK).fit(X, y)
    assert model.weights_ == {"basis": 1.0}
    assert any("max_seconds" in note for note in model.notes_)
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_fit_that_was_cut_short_goes_on_with_all_members(tmp_path: Path) -> None:
    """The members go on from their chains; weights of other scores are others."""
    X, y = line(30)
    own = {**QUICK, "checkpoint": tmp_path}
    cut = MercerRegressor(models="basis,boosting", max_seconds=1e-9, **own).fit(X, y)
    assert cut.weights_ == {"basis": 1.0}
    whole, again = (MercerRegressor(models="basis,boosting", **own).fit(X, y) for _ in range(2))
    fresh = MercerRegressor(models="basis,boosting", **QUICK).fit(X, y)
    for fitted in (whole, again):
        assert fitted.weights_ == fresh.weights_
        drawn = fitted.posterior_.variables["weight"]
        np.testing.assert_array_equal(drawn, fresh.posterior_.variables["weight"])
        assert any("resumed from" in note for note in fitted.notes_)


def test_a_pipeline_is_the_same_for_the_same_seed() -> None:
    X, y = rings()
    member = make_pipeline(StandardScaler(), ExtraTreeClassifier())
    model = MercerClassifier(models=[member, LogisticRegression()], **QUICK)
    one, two = (clone(model).fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.slow  # two processes start
def test_members_at_a_time_change_nothing(all_trees: None) -> None:
    X, y = line()
    one, two = (
        MercerRegressor(models="basis,boosting", n_jobs=n, **QUICK).fit(X, y) for n in (1, 2)
    )
    assert one.weights_ == two.weights_
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_a_class_with_a_single_row_is_never_held_out() -> None:
    X, y = rings()
    y[0] = "c"
    model = MercerClassifier(models=["boosting", LogisticRegression()], **QUICK).fit(X, y)
    assert model.predict_proba(X).shape == (90, 3)
    assert model._scores.shape == (2, 89)
    assert any("never tested" in note for note in model.notes_)


@pytest.mark.parametrize("n", [2, 3])
def test_hardly_any_rows(n: int) -> None:
    X, y = line()
    model = MercerRegressor(models=["basis", Plain()], **QUICK).fit(X[:n], y[:n])
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0.0).all()
    assert (n > 2) or model.weights_ == {"basis": 0.5, "Plain": 0.5}


def test_a_constant_target_is_said_once() -> None:
    X, _ = line()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = MercerRegressor(models="basis,boosting", **QUICK).fit(X, np.full(60, 2.5))
    assert sum("the target is constant" in str(each.message) for each in caught) == 1
    np.testing.assert_allclose(model.predict(X), 2.5)


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ("basis,bosting", "did you mean 'boosting'"),
        ("sphere", "no model 'sphere' for regression"),
        ((), "one model at least"),
        (3, "'auto' or a list"),
        ([3], "no name and no estimator"),
        ([Plain], "no name and no estimator"),
    ],
)
def test_members_that_cannot_be(models: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        MercerRegressor(models=models).fit(*line())


def test_missing_numbers_are_refused() -> None:
    X, y = line()
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        MercerRegressor(models="basis,boosting", **QUICK).fit(X, y)


def test_auto_leaves_out_what_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    model = MercerClassifier()
    codes = np.arange(1200) % 2
    members, notes = model._members(1200, codes, 0)
    assert list(members) == ["spectral", "basis", "boosting"]
    assert [note.split()[0] for note in notes] == ["gp", "sphere"]
    assert "gp" in model._members(1200, codes, 0, 12)[0]
    assert list(model._members(300, codes[:300], 0)[0]) == [
        *("gp", "spectral", "sphere", "basis", "boosting"),
    ]


def test_a_model_from_an_older_file_keeps_its_weights(tmp_path: Path) -> None:
    """Its prior was worth a row for each member."""
    older = mercer.load(Path(__file__).parents[1] / "golden" / "stack-classes.mercer")
    expected, _ = stacking_weights(older._scores, 1.0)
    np.testing.assert_allclose(older._weights, expected)
    older.save(tmp_path / "again.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "again.mercer")._weights, older._weights)
    assert np.abs(expected - weights_of(older._scores)).max() > 1e-3


def test_a_fit_to_some_of_the_rows_takes_weights_by_their_scores_alone() -> None:
    X, y = rings()
    whole = MercerClassifier(models=["boosting", LogisticRegression()], **QUICK).fit(X, y)
    part = MercerClassifier(models=["boosting", LogisticRegression()], **QUICK)
    part._nearby = whole._left
    part.fit(X[:50], y[:50])
    known = {row.tobytes(): k for k, row in enumerate(X)}
    mine = [known[key[:16]] < 50 for key in whole._left.keys]  # x, and the target
    expected, _ = stacking_weights(whole._scores[:, mine], 1.0 / 2.0)
    np.testing.assert_allclose(part._weights, expected)
    assert np.abs(part._weights - whole._weights).max() > 1e-6


def test_rows_with_equal_inputs_are_told_apart() -> None:
    """Scores of rows that a fold tests, with their targets, are none of its training rows."""
    rng = np.random.default_rng(8)
    X = rng.integers(0, 2, size=(120, 2)).astype(float)
    y = rng.integers(0, 2, 120)
    whole = MercerClassifier(models=[LogisticRegression(), "boosting"], **QUICK).fit(X, y)
    part = clone(whole)
    part._nearby = whole._left
    part.fit(X[:60], y[:60])
    assert part._scores.shape == (2, 60)
    labels = [int.from_bytes(key[16:], "little") for key in whole._left.keys]
    scores = np.array([labels], dtype=float)
    known = StackLeft(("m",), whole._left.keys, scores, whole._fold, np.arange(120), {})
    found, *_ = known.chosen(with_targets([row.tobytes() for row in X[:60]], y[:60]), ("m",))
    assert found.sum() == y[:60].sum()


def test_weights_by_known_scores_stand_where_a_member_fails(all_trees: None) -> None:
    X, y = rings()
    others = [LogisticRegression(), "boosting"]
    whole = MercerClassifier(models=[*others, Failing(0)], **QUICK).fit(X, y)
    part = MercerClassifier(models=[*others, Failing(51)], **QUICK)
    part._nearby = whole._left
    with pytest.warns(MercerWarning, match="Failing is left out"):
        part.fit(X[:50], y[:50])
    known = {row.tobytes(): k for k, row in enumerate(X)}
    mine = [known[key[:16]] < 50 for key in whole._left.keys]  # x, and the target
    expected, _ = stacking_weights(whole._scores[:2, mine], 1.0 / 2.0)
    np.testing.assert_allclose(part._weights, expected)
    assert np.abs(expected - 0.5).max() > 0.1


# Files.


@threadpool_limits.wrap(limits=1)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_are_those_of_scikit_learn(n_classes: int) -> None:
    X, y = rings(200, n_classes)
    fitted = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    expected = fitted.decision_function(X).reshape(200, -1)
    np.testing.assert_allclose(Trees.of(fitted)(X), expected, rtol=1e-12, atol=1e-12)
    numbers = HistGradientBoostingRegressor(random_state=0).fit(X, X[:, 0] ** 2)
    np.testing.assert_allclose(Trees.of(numbers)(X)[:, 0], numbers.predict(X), atol=1e-12)


def test_saved_and_loaded(tmp_path: Path) -> None:
    X, y = load_wine(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:80]
    fitted = MercerClassifier(models="basis,boosting", **QUICK).fit(X[rows], y[rows])
    fitted.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.weights_ == fitted.weights_
    assert str(again.comparison_) == str(fitted.comparison_)
    assert again.get_params()["models"] == "basis,boosting"
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(X), fitted.predict_proba(X))


def test_a_stack_of_numbers_of_every_kind_is_saved_and_loaded(tmp_path: Path) -> None:
    X, y = line(30)
    fitted = MercerRegressor(models="spectral,basis,boosting", **QUICK).fit(X, y)
    fitted.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert again.noise_std_ == fitted.noise_std_
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))


def test_a_loaded_stack_is_fitted_again_with_the_members_that_were_given(tmp_path: Path) -> None:
    X, y = line(40)
    member = mercer.GPRegressor(kernel="linear", inference="map")
    models = [member, "basis", mercer.GPRegressor(kernel="rbf", inference="map"), "boosting"]
    fitted = MercerRegressor(models=models, **QUICK).fit(X, y)
    fitted.save(tmp_path / "m.mercer")
    for _ in range(2):  # one that was loaded is saved again
        again = mercer.load(tmp_path / "m.mercer")
        given = again.get_params()["models"]
        assert [getattr(each, "kernel", each) for each in given] == [
            *("linear", "basis", "rbf", "boosting"),
        ]
        again.save(tmp_path / "m.mercer")
    refitted = clone(again).fit(X, y)
    assert refitted.members_["gp"].get_params() == fitted.members_["gp"].get_params()
    np.testing.assert_allclose(refitted.predict(X), fitted.predict(X), rtol=1e-6)


def test_a_member_that_was_left_out_is_none_of_the_file(tmp_path: Path) -> None:
    X, y = rings()
    model = MercerClassifier(models=[Failing(), "basis", "boosting"], **QUICK)
    with pytest.warns(MercerWarning, match="Failing is left out"):
        model.fit(X, y).save(tmp_path / "m.mercer")
    assert mercer.load(tmp_path / "m.mercer").get_params()["models"] == "basis,boosting"


def test_a_file_holds_no_estimator_of_others(tmp_path: Path) -> None:
    fitted = MercerClassifier(models=[LogisticRegression(), "boosting"], **QUICK).fit(*rings())
    with pytest.raises(UsageError, match=r"LogisticRegression .* cannot be written to a file"):
        fitted.save(tmp_path / "m.mercer")


def test_trees_of_a_file_that_lead_in_circles_are_refused(tmp_path: Path) -> None:
    MercerRegressor(models="boosting", **QUICK).fit(*line()).save(tmp_path / "m.mercer")
    manifest, arrays = read_container(tmp_path / "m.mercer")
    left = arrays["members/0/trees/left"]
    inner = np.flatnonzero(left != np.arange(len(left)))[1]
    left[inner] = 0
    write_container(tmp_path / "m.mercer", manifest, arrays)
    with pytest.raises(ModelFileError, match="trees/left"):
        mercer.load(tmp_path / "m.mercer")


def test_a_fit_whose_warning_is_an_error_knows_its_noise() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((24, 1))
    model = MercerRegressor(models="basis,boosting", **QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error", mercer.ConvergenceWarning)
        with pytest.raises(mercer.ConvergenceWarning):
            model.fit(X, X[:, 0])
    assert model.noise_std_ > 0.0


@pytest.mark.slow
def test_the_record_compares_rows_with_themselves() -> None:
    from reproduce.scenarios.stack_v2 import rows_of, summary
    from reproduce.tables import _stack

    settings = {"models": "basis,boosting", **QUICK, "n_folds": 2}
    del settings["random_state"], settings["progress"]
    rows = rows_of(("wine", "diabetes"), (0, 1), 60, 20, **settings)
    metrics = summary(rows)
    for row in metrics["rows"]:
        assert row["n_judged"] == 40
        for name, gap in row["gap"].items():
            assert gap == pytest.approx(
                row["log_score"]["stack"] - row["log_score"][name], abs=2e-4
            )
        equal = [np.array(each["scores"]["equal"]) for each in rows if each["data"] == row["data"]]
        assert row["log_score"]["equal"] == pytest.approx(np.concatenate(equal).mean(), abs=1e-4)
    first = rows[0]["scores"]
    mixed = -np.log(
        0.5 * np.exp(-np.array(first["basis"])) + 0.5 * np.exp(-np.array(first["boosting"]))
    )
    np.testing.assert_allclose(first["equal"], mixed, atol=2e-5)
    assert len(_stack(metrics)) == 2 + 2
