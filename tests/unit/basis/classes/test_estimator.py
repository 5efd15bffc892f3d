"""`SequentialKernelClassifier`: what it learns, predicts and knows of classes."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.basis.classifier import SequentialKernelClassifier
from support.class_fits import make_rows

TINY = {"n_particles": 12, "max_candidates": 8, "random_state": 0, "progress": False}


def assert_same(a: SequentialKernelClassifier, b: SequentialKernelClassifier) -> None:
    X, _ = make_rows(7, seed=9)
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))
    assert a.log_evidence_ == b.log_evidence_
    assert a.mean_log_predictive_ == b.mean_log_predictive_


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_one_by_one_equal_rows_at_once(n_classes: int) -> None:
    X, y = make_rows(40, n_classes)
    options = {**TINY, "scale_rows": 15, "n_buffered": 20}
    at_once = SequentialKernelClassifier(**options).partial_fit(X, y)
    one_by_one, parts = SequentialKernelClassifier(**options), []
    for t in range(40):
        one_by_one.partial_fit(X[t : t + 1], y[t : t + 1], classes=np.unique(y) if t == 0 else None)
        if t >= 15:
            parts.append(one_by_one.log_predictive_)
    assert_same(at_once, one_by_one)
    assert np.array_equal(at_once.log_predictive_[15:], np.concatenate(parts))


def test_prequential_predicts_what_it_then_learns() -> None:
    X, y = make_rows(40, 3)
    options = {**TINY, "scale_rows": 10}
    learned = SequentialKernelClassifier(**options).partial_fit(X, y)
    model = SequentialKernelClassifier(**options)
    first = model.prequential(X[:5], y[:5], classes=np.unique(y))
    model = SequentialKernelClassifier(**options)
    result = model.prequential(X, y)
    assert first.proba.shape == (5, 3)
    assert_same(learned, model)
    place = np.searchsorted(model.classes_, y)
    assert np.array_equal(result.log_density, np.log(result.proba[np.arange(40), place]))
    assert np.array_equal(result.prediction, model.classes_[result.proba.argmax(axis=1)])
    assert result.n_centres.shape == (40,)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_prequential_only_predicts_where_there_is_no_label(missing: object) -> None:
    X, y = make_rows(40)
    y = y.astype(object)
    holes = np.isin(np.arange(40), [0, 20, 21, 39])
    y[holes] = missing
    model = SequentialKernelClassifier(**TINY)
    model.partial_fit(X[:12], *[make_rows(40)[1][:12]], classes=["ash", "birch"])
    rows_before = model.n_rows_seen_
    result = model.prequential(X, y)
    assert np.isnan(result.log_density).tolist() == holes.tolist()
    assert np.isfinite(result.proba).all()
    assert model.n_rows_seen_ == rows_before + 36


@pytest.mark.parametrize("n_classes", [2, 4])
def test_it_learns(n_classes: int) -> None:
    X, y = make_rows(200, n_classes)
    new, truth = make_rows(300, n_classes, seed=1)
    model = SequentialKernelClassifier(n_particles=50, random_state=0).fit(X, y)
    proba = model.predict_proba(new)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    assert proba.min() > 0.0
    assert proba.max() < 1.0
    assert np.mean(model.predict(new) == truth) > 0.85
    assert model.mean_log_predictive_ > 0.6 * np.log(1.0 / n_classes)
    assert model.log_evidence_ > 200 * np.log(1.0 / n_classes)
    assert 0.0 < model.log_evidence_se_ < 5.0
    assert model.centres_.shape[1] == 2
    assert np.abs(model.centres_ - 10.0).max() < 15.0
    assert model.n_centres_ > 0.0
    assert np.isfinite(model.posterior_.stats["log_density"]).all()
    assert "n_centres" in str(model.posterior_.summary())
    assert model.diagnostics_ is not None


def test_fit_equals_a_stream_with_the_same_scales() -> None:
    X, y = make_rows(50)
    options = {**TINY, "standardize": False, "lengthscale": [4.0, 2.0], "input_scale": 1.0}
    table, streamed = (SequentialKernelClassifier(**options) for _ in range(2))
    assert_same(table.fit(X - 10.0, y), streamed.partial_fit(X - 10.0, y))


def test_paper() -> None:
    X, y = make_rows(40)
    model = SequentialKernelClassifier.paper().set_params(n_particles=10, random_state=0)
    assert model.fit(X, y).n_centres_ < 20


def test_classes_are_those_of_the_first_call() -> None:
    X, y = make_rows(40)
    model = SequentialKernelClassifier(**TINY)
    with pytest.raises(ValueError, match="one class"):
        model.partial_fit(X[:1], y[:1])
    assert not hasattr(model, "classes_")
    model.partial_fit(X, y, classes=["ash", "birch", "oak"])
    assert model.classes_.tolist() == ["ash", "birch", "oak"]
    with pytest.raises(ValueError, match="first call"):
        model.partial_fit(X, y, classes=["ash", "oak"])
    with pytest.raises(ValueError, match=r"row 1 .*: 'elm' is none of the classes"):
        model.partial_fit(X[:2], ["ash", "elm"])
    assert (model.predict_proba(X)[:, 2] > 0.0).all()
