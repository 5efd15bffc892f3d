"""River: pipelines, its evaluation and its own checks."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from mercer.basis.classifier import SequentialKernelClassifier
from mercer.errors import DataError
from support.basis_streams import make_stream, small

X, Y = make_stream()


def small_classes() -> SequentialKernelClassifier:
    """An unfitted classifier of few particles that learns its scales from ten rows."""
    plan = {"n_particles": 12, "max_centres": 5, "scale_rows": 10, "random_state": 0}
    return SequentialKernelClassifier(progress=False, **plan)


NAMES = ("left", "right")
ROWS = [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]


def test_without_river_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "mercer.basis.river", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'mercer\[river\]'"):
        small().to_river()


@pytest.fixture
def river():
    return pytest.importorskip("river", reason="River is missing")


def test_rows_as_dicts_are_rows(river) -> None:
    wrapped, model = small().to_river(), small().partial_fit(X, Y)
    assert wrapped.predict_one(ROWS[0]) == 0.0
    for t, (row, y) in enumerate(zip(ROWS, Y, strict=True)):
        wrapped.learn_one(dict(reversed(row.items())) if t % 2 else row, y)
    seen = [wrapped.predict_one({**row, "more": 3.0}) for row in ROWS[:5]]
    np.testing.assert_array_equal(seen, model.predict(X[:5]))
    assert wrapped.learned.feature_labels_ == NAMES


def test_a_first_row_that_is_refused_leaves_nothing(river) -> None:
    wrapped = small().to_river()
    with pytest.raises(ValueError, match="NaN"):
        wrapped.learn_one({**ROWS[0], "left": float("nan")}, 1.0)
    assert wrapped.predict_one(ROWS[0]) == 0.0


def test_while_rows_are_held_back_it_says_their_mean_and_changes_nothing(river) -> None:
    """Asked before every row, as River does: the scales are still learned from the first ten."""
    wrapped = small().to_river()
    for t in range(60):
        predicted = wrapped.predict_one(ROWS[t])
        if 0 < t < 10:
            assert predicted == pytest.approx(Y[:t].mean())
        wrapped.learn_one(ROWS[t], Y[t])
    expected = small().partial_fit(X, Y)
    np.testing.assert_array_equal(wrapped.learned.predict(X), expected.predict(X))


def test_it_goes_on_with_a_copy_of_what_was_learned(river) -> None:
    pd = pytest.importorskip("pandas")
    model = small().partial_fit(pd.DataFrame(X, columns=list(NAMES)), Y)
    before = model.predict(pd.DataFrame(X, columns=list(NAMES)))
    wrapped = model.to_river()
    assert wrapped.predict_one(ROWS[3]) == before[3]
    for row, y in zip(ROWS, Y, strict=True):
        wrapped.learn_one(row, -y)
    assert wrapped.predict_one(ROWS[3]) != before[3]
    assert wrapped.clone().predict_one(ROWS[3]) == before[3]
    assert model.n_rows_seen_ == 60


def test_a_row_without_an_input_is_refused(river) -> None:
    wrapped = small().to_river()
    wrapped.learn_one(ROWS[0], 1.0)
    with pytest.raises(DataError, match="no 'right', which earlier ones had; did you mean 'rigth'"):
        wrapped.learn_one({"left": 1.0, "rigth": 2.0}, 1.0)


def test_in_pipelines(river) -> None:
    from river import compose, evaluate, metrics, preprocessing

    stream = [({**row, "name": "a"}, y) for row, y in zip(ROWS, Y, strict=True)]
    for first in (compose.Select(*NAMES), compose.Select(*NAMES) | preprocessing.StandardScaler()):
        score = evaluate.progressive_val_score(stream, first | small().to_river(), metrics.MAE())
        assert 0.0 < score.get() < 0.95 * np.abs(Y).mean()


def test_classes_in_a_pipeline(river) -> None:
    from river import evaluate, metrics, preprocessing

    inputs, targets = make_stream(200)
    rows = [dict(zip(NAMES, row, strict=True)) for row in inputs.tolist()]
    stream = list(zip(rows, np.where(targets > 0.0, "up", "down").tolist(), strict=True))
    for classes in (None, ["down", "up"]):
        wrapped = small_classes().to_river(classes)
        score = evaluate.progressive_val_score(
            stream, preprocessing.StandardScaler() | wrapped, metrics.Accuracy()
        )
        assert score.get() > 0.7  # by chance about a half
        assert set(wrapped.predict_proba_one(ROWS[0])) == {"down", "up"}


def test_classes_are_those_of_the_first_rows_and_then_rows_are_learned_as_they_came(river) -> None:
    labels = np.where(Y > 0.0, "up", "down")
    wrapped = small_classes().to_river()
    assert wrapped.predict_proba_one(ROWS[0]) == {}
    for t, (row, label) in enumerate(zip(ROWS, labels.tolist(), strict=True)):
        wrapped.learn_one(row, label)
        if t == 4:
            shares = wrapped.predict_proba_one(ROWS[0])
            assert shares["up"] == pytest.approx(np.mean(labels[:5] == "up"))
    model = small_classes().partial_fit(X, labels)
    seen = [list(wrapped.predict_proba_one(row).values()) for row in ROWS[:5]]
    np.testing.assert_allclose(seen, model.predict_proba(X[:5]), rtol=1e-12)
    with pytest.raises(ValueError, match="sideways"):
        wrapped.learn_one(ROWS[0], "sideways")


@pytest.mark.parametrize("classes", [None, np.array(["down", "up"])])
def test_a_row_that_is_refused_changes_nothing(river, classes: np.ndarray | None) -> None:
    labels, wrapped = np.where(Y > 0.0, "up", "down"), small_classes().to_river(classes)
    with pytest.raises(ValueError, match="NaN"):
        wrapped.learn_one({**ROWS[0], "right": float("nan")}, "up")
    for t, (row, label) in enumerate(zip(ROWS, labels.tolist(), strict=True)):
        if t in (3, 30):
            for value in (float("inf"), float("nan"), 1e200):
                with pytest.raises(ValueError, match=r"infinity|NaN|too large"):
                    wrapped.learn_one({**row, "left": value}, label)
            for wrong in (None, float("nan"), 1.5, 2):
                with pytest.raises(ValueError, match=r"None|NaN|continuous|none"):
                    wrapped.learn_one(row, wrong)
        wrapped.learn_one(row, label)
    model = small_classes().partial_fit(X, labels)
    np.testing.assert_array_equal(wrapped.learned.predict_proba(X), model.predict_proba(X))


def test_a_row_too_large_in_the_scales_of_all_goes_alone(river) -> None:
    model = small_classes().set_params(input_scale=1e-30)
    wrapped, labels = model.to_river(), np.where(Y > 0.0, "up", "down").tolist()
    for t in range(9):
        wrapped.learn_one({name: 1e-30 * x for name, x in ROWS[t].items()}, labels[t])
    with pytest.raises(ValueError, match=r"row 9 .* too large"):
        wrapped.learn_one({"left": 1e99, "right": 0.0}, "up")
    wrapped.learn_one({name: 1e-30 * x for name, x in ROWS[9].items()}, labels[9])
    assert wrapped.learned.n_rows_seen_ == 10


def test_to_ask_for_a_class_before_each_row_changes_nothing_that_is_learned(river) -> None:
    """Also where the classes are given, so that the model itself holds rows back for its scales."""
    labels = np.where(Y > 0.0, "up", "down")
    wrapped = small_classes().to_river(["down", "up"])
    for t, (row, label) in enumerate(zip(ROWS, labels.tolist(), strict=True)):
        said = wrapped.predict_proba_one(row)
        if 0 < t < 10:
            assert said.get("up", 0.0) == pytest.approx(np.mean(labels[:t] == "up"))
        wrapped.learn_one(row, label)
    model = small_classes().partial_fit(X, labels)
    np.testing.assert_array_equal(wrapped.learned.predict_proba(X), model.predict_proba(X))


# An input that is missing is refused, so these do not apply: in each, rows lack some.
_NOT_MET = (
    "check_disappearing_features",
    "check_emerging_features",
    "check_radically_disappearing_features",
    "check_init_has_default_params_for_tests",  # the model to wrap has no default
)


@pytest.mark.filterwarnings("ignore:.*more than ten scales")
def test_checks_of_river(river) -> None:
    from river import checks

    model = small(n_particles=3, max_centres=2, max_candidates=4).to_river()
    failed = {}
    for check in checks.yield_checks(model):
        if check.__name__ not in _NOT_MET:
            try:
                check(model.clone())
            except Exception as error:
                failed[check.__name__] = error
    assert failed == {}
