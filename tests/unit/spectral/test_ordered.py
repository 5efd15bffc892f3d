"""`BaNKClassifier(ordered=...)`: from labels and their order to files and reports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

import mercer
from mercer.errors import UsageError
from mercer.spectral.class_fitting import order_of_labels
from support.mangled import set_array, taken
from support.spectral_class_fits import tiny

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")

NAMES = np.array(["low", "mid", "high", "top"])  # not as they are sorted


def graded(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and ranks 0, .., 3 by thresholds at -2, 0 and 2."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    f = 3.0 * np.sin(2.0 * X[:, 0]) + X[:, 1]
    goes_on = rng.logistic(size=(3, n)) < f - np.array([[-2.0], [0.0], [2.0]])
    return X, np.logical_and.accumulate(goes_on).sum(axis=0)


X, RANK = graded(300)
Z, NEW = graded(600, 1)
MORE = {"n_frequencies": 24, "n_draws": 60, "n_warmup": 60, "n_chains": 2}


@pytest.fixture(scope="module")
def model() -> mercer.BaNKClassifier:
    return tiny(**MORE, ordered=list(NAMES)).fit(X, NAMES[RANK])


@pytest.mark.slow
@pytest.mark.usefixtures("whole_start")
def test_an_order_is_worth_rows() -> None:
    """Of a hundred rows: ahead in both scores, in the log score by three standard errors."""
    few, labels = X[:100], NAMES[RANK[:100]]
    many, rank = graded(4000, 2)
    losses, steps = [], []
    for ordered in (list(NAMES), False):
        model = tiny(**MORE, ordered=ordered).fit(few, labels)
        np.testing.assert_array_equal(model.classes_, np.sort(NAMES))
        proba = model.predict_proba(many)[:, np.searchsorted(model.classes_, NAMES)]
        losses.append(-np.log(proba[np.arange(len(proba)), rank]))
        is_below = np.arange(4) >= rank[:, np.newaxis]
        steps.append(np.square(proba.cumsum(axis=1) - is_below).sum(axis=1))
    gap = losses[1] - losses[0]
    assert gap.mean() > 3.0 * gap.std() / np.sqrt(len(gap))
    assert steps[0].mean() < steps[1].mean()


def test_thresholds_are_found(model: mercer.BaNKClassifier) -> None:
    np.testing.assert_array_equal(model.class_order_, NAMES)
    thresholds = model.posterior_.flat("thresholds")
    assert np.all(np.abs(thresholds.mean(axis=0) - [-2.0, 0.0, 2.0]) < 0.6)
    np.testing.assert_allclose(thresholds.sum(axis=1), 0.0, atol=1e-12)
    assert model.posterior_.monitored[-1] == "thresholds"


def test_the_function_rises_with_the_class(model: mercer.BaNKClassifier) -> None:
    mean, variance = model.latent(Z)
    assert mean.shape == variance.shape == (600,)
    assert np.corrcoef(mean, NEW)[0, 1] > 0.6
    (drawn,) = model._function_draws([model._standardized(Z)], 7, np.random.default_rng(0))
    assert drawn.shape == (7, 4, 600)
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)


def test_what_classes_are_called_changes_nothing() -> None:
    """Numbers in the sorted order, names in that of a list, a Categorical in its own."""
    category = pd.Categorical(NAMES[RANK], categories=["none", *NAMES], ordered=True)
    numbers = tiny(ordered=True).fit(X, RANK).predict_proba(Z)
    columns = np.searchsorted(np.sort(NAMES), NAMES)
    for ordered, y in ((list(NAMES), NAMES[RANK]), (True, category), (True, pd.Series(category))):
        found = tiny(ordered=ordered).fit(X, y).predict_proba(Z)
        np.testing.assert_allclose(found[:, columns], numbers, rtol=1e-12)


@pytest.mark.parametrize(
    ("ordered", "classes", "order"),
    [
        (True, ["a", "b", "c"], [0, 1, 2]),
        (True, ["10", "9"], [1, 0]),
        (["c", "a", "b"], ["a", "b", "c"], [2, 0, 1]),
        ("c, a,b", ["a", "b", "c"], [2, 0, 1]),
        ((3.0, 1.0, 2.0), ["1", "2", "3"], [2, 0, 1]),
        ((1, 0), [0.0, 1.0], [1, 0]),
        ((True, False), [False, True], [1, 0]),
        (np.array(["b", "a"]), ["a", "b"], [1, 0]),
        (["2", "01", "1"], ["01", "1", "2"], [2, 0, 1]),
        ("low ,mid,low", ["low", "low ", "mid"], [1, 2, 0]),
        ([2**53 + 1, 2**53], [2**53, 2**53 + 1], [1, 0]),
        (True, [2**53, 2**53 + 1], [0, 1]),
        ("True,False", [False, True], [1, 0]),
        (["nan", "a"], ["a", "nan"], [1, 0]),
    ],
)
def test_orders(ordered: object, classes: list, order: list[int]) -> None:
    found = order_of_labels(ordered, np.array(classes), np.array(classes))
    np.testing.assert_array_equal(found, order)


@pytest.mark.parametrize(
    ("ordered", "words"),
    [
        (["low", "mid", "high"], "ordered lacks top of the target"),
        ("low,mid,high,top,summit", "ordered holds summit, no class of the target"),
        (["low", "mid", "high", "top", "mid"], "ordered holds a label twice"),
    ],
)
def test_orders_that_do_not_fit_the_labels(ordered: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tiny(ordered=ordered).fit(X, NAMES[RANK])


@pytest.mark.parametrize(
    ("ordered", "classes", "words"),
    [
        (True, ["01", "1", "2"], "cannot tell 01, 1 apart"),
        ([1, 2], ["01", "1", "2"], "cannot tell 01, 1 apart"),
        ([None, "a"], ["a", "b"], "holds None, no class"),
        ([("a",), "b"], ["a", "b"], "no class of the target"),
        ([0, 1], [0, 1, 2], "lacks 2 of the target"),
    ],
)
def test_orders_that_name_no_class(ordered: object, classes: list, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        order_of_labels(ordered, np.array(classes), None)


def test_a_category_has_the_order_of_labels_that_are_one_number() -> None:
    y = pd.Categorical(["01", "1"], categories=["1", "01"], ordered=True)
    np.testing.assert_array_equal(order_of_labels(True, np.array(["01", "1"]), y), [1, 0])


def test_notes_name_the_order_that_is_taken() -> None:
    few, names = X[:60], NAMES[RANK[:60]]
    category = pd.Categorical(names, categories=NAMES, ordered=True)
    frame = pd.DataFrame({"grade": category})
    for y, note in (
        (names, "high, low, mid, top (sorted)"),
        (category, "low, mid, high, top (that of the Categorical)"),
        (frame.grade, "low, mid, high, top (that of the Categorical)"),
    ):
        assert (
            f"classes from the lowest to the highest: {note}"
            in tiny(ordered=True).fit(few, y).notes_
        )
    assert not any("lowest" in note for note in tiny(ordered=list(NAMES)).fit(few, category).notes_)
    with pytest.warns(DataConversionWarning):
        column = tiny(ordered=True).fit(few, frame)
    np.testing.assert_array_equal(column.class_order_, NAMES)


def test_a_stack_does_not_lose_an_order_without_a_word() -> None:
    stack = mercer.MercerClassifier(models=[tiny(ordered=True)], n_draws=20, random_state=0)
    few, names = X[:60], NAMES[RANK[:60]]
    category = pd.Categorical(names, categories=NAMES, ordered=True)
    with pytest.raises(UsageError, match=r"ordered=\['low', 'mid', 'high', 'top'\]"):
        stack.fit(few, category)
    assert any("high, low, mid, top (sorted)" in note for note in stack.fit(few, names).notes_)


def test_joint_moves_have_no_order() -> None:
    with pytest.raises(UsageError, match="leave ordered out"):
        tiny(ordered=True, sampler="joint").fit(X, RANK)


@pytest.mark.slow
def test_two_classes_are_the_logistic_model() -> None:
    """Up to the draws."""
    y = (RANK > 1).astype(int)
    own = {**MORE, "n_draws": 150, "n_leapfrog": 0}
    a, b = (tiny(**own, ordered=order).fit(X, y).predict_proba(Z)[:, 1] for order in (True, False))
    assert np.abs(a - b).mean() < 0.03
    flipped = tiny(**own, ordered=[1, 0]).fit(X, y)
    assert np.abs(flipped.predict_proba(Z)[:, 1] - b).mean() < 0.03
    assert np.corrcoef(flipped.latent(Z)[0], b)[0, 1] < -0.9


def test_categories_of_a_column_are_a_list(tmp_path: Path) -> None:
    tiny(ordered=pd.Index(NAMES)).fit(X, NAMES[RANK]).save(tmp_path / "m.mercer")
    assert mercer.load(tmp_path / "m.mercer").ordered == list(NAMES)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("own", [{}, {"linear_part": False}, {"kernel_rows": 150, "full_draws": 3}])
def test_a_saved_model_predicts_the_same(own: dict, tmp_path: Path) -> None:
    model = tiny(ordered=list(NAMES), **own).fit(X, NAMES[RANK])
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert again.ordered == list(NAMES)
    np.testing.assert_array_equal(again.predict_proba(Z), model.predict_proba(Z))
    np.testing.assert_array_equal(again.class_order_, NAMES)
    assert model.score(Z, NAMES[NEW]) > 0.35


def test_f8_thresholds(model: mercer.BaNKClassifier, tmp_path: Path) -> None:
    changes = {
        "no thresholds": lambda _, arrays: arrays.pop("draws/thresholds"),
        "a threshold less": set_array("draws/thresholds", lambda v: v[..., :-1]),
        "a draw less": set_array("draws/thresholds", lambda v: v[:, :-1]),
        "far off": set_array("draws/thresholds", lambda v: v + 1e200),
        "a class twice": set_array("class_order", lambda v: 0 * v),
        "an order gone": lambda manifest, _: manifest["params"].update(ordered=False),
    }
    model.save(tmp_path / "m.mercer")
    assert taken(tmp_path / "m.mercer", tmp_path, changes) == []


def test_rows_on_a_disk_are_ordered_by_number(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    text = [f"{a!r},{b!r},{10 * k}" for (a, b), k in zip(X.tolist(), RANK.tolist(), strict=True)]
    path.write_text("\n".join(["a,b,grade", *text]) + "\n")
    model = tiny(ordered=[0, 10, 20, 30]).fit(mercer.data.open(path), "grade")
    found = model.predict_proba(pd.DataFrame(Z, columns=["a", "b"]))
    np.testing.assert_array_equal(found, tiny(ordered=True).fit(X, RANK).predict_proba(Z))


def test_many_rows_begin_with_a_climb() -> None:
    rows, rank = graded(3000)
    model = tiny(ordered=True, n_frequencies=12, n_draws=10, n_warmup=5).fit(rows, rank)
    proba = model.predict_proba(Z)
    assert -np.log(proba[np.arange(len(Z)), NEW]).mean() < 1.1


def test_the_report_names_the_order(model: mercer.BaNKClassifier, tmp_path: Path) -> None:
    model.report(tmp_path / "r.html", Z, NAMES[NEW])
    text = (tmp_path / "r.html").read_text()
    assert "The 4 classes have an order, low, mid, high and top." in text
    assert "thresholds[k]" in text
