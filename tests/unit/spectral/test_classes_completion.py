"""Coefficients from all rows: the maximum, its curvature, and what is said."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.spectral import class_fitting as completion
from mercer.spectral import class_model
from mercer.spectral.class_fitting import _complete, _Task
from mercer.spectral.class_model import CLASSES, maximise
from mercer.spectral.rows import MemoryRows, RowsWithout
from support.spectral_cases import plain_design
from support.spectral_class_cases import plain_log_likelihood, problem
from support.spectral_class_fits import tiny, waves

X, CODES = problem(60, 2, 3)
ROWS = MemoryRows(X, CODES, True)
PRIOR = np.full((2, 11), 0.4)


def task(scale: float = 0.0) -> _Task:
    rng = np.random.default_rng(4)
    W, coef = rng.standard_normal((4, 2)), scale * rng.standard_normal((2, 11))
    return 3, W, coef, PRIOR, CLASSES


def loss(coef: np.ndarray, W: np.ndarray) -> float:
    coef = coef.reshape(2, 11)
    f = coef @ plain_design(W, X, True).T
    return 0.2 * float(np.square(coef).sum()) - plain_log_likelihood(f, CODES)


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_the_maximum(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from where Newton's method would run away."""
    monkeypatch.setattr(class_model, "_SHORT", 1e-12)
    _, W, coef, precisions, law = task(scale)
    found = maximise(W, coef, law, precisions, ROWS)
    expected = minimize(loss, np.zeros(22), args=(W,), tol=1e-10).x
    np.testing.assert_allclose(found.ravel(), expected, atol=2e-4)


def test_rows_that_were_left_out_are_added() -> None:
    """The last step is taken on all rows, and the deviations have the curvature there."""
    one, gone = task(), np.array([0, 7, 8, 59])
    others = RowsWithout(ROWS, gone)
    assert (others.n_rows, others.n_inputs, others.has_linear_part) == (56, 2, True)
    found = _complete(others, MemoryRows(X[gone], CODES[gone], True), 0, one)
    expected = minimize(loss, np.zeros(22), args=(one[1],), tol=1e-10).x
    before, after = (np.abs(coef.ravel() - expected).max() for coef in found[:2])
    assert after < 0.15 * before
    assert found[2].shape == (2, 64, 11)


def test_a_fit_on_some_of_the_rows_says_so() -> None:
    rows, labels = waves(400, n_classes=3)
    model = tiny(n_frequencies=20, kernel_rows=150, full_draws=3).fit(rows[:300], labels[:300])
    assert "learned on 150 of 300 rows, the coefficients of 3 draws on all" in model.notes_[-1]
    assert len(model._functions.mean) == 3
    assert model.score(rows[300:], labels[300:]) > 0.75
    late = tiny(n_frequencies=20, kernel_rows=150, max_seconds=1e-3).fit(rows[:300], labels[:300])
    assert "out of time before the pass over all rows" in late.notes_[-1]


def test_coefficients_that_predict_worse_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of classes that are all but separable, whose law around the maximum is not normal."""
    rows, labels = waves(600)
    model = tiny(n_frequencies=20, kernel_rows=300).fit(rows, labels)
    assert "the coefficients of 4 draws on all" in model.notes_[-1]
    complete = completion._complete

    def far_too_wide(*arguments, deadline=None):
        before, mean, deviations = complete(*arguments)
        return before, mean, 30.0 * deviations

    monkeypatch.setattr(completion, "_complete", far_too_wide)
    kept = tiny(n_frequencies=20, kernel_rows=300).fit(rows, labels)
    assert "all was learned from 300 of 600 rows" in kept.notes_[-1]
    assert len(kept._functions.mean) == len(kept.posterior_.flat("frequencies"))


@pytest.mark.parametrize("deadline", [-1.0, 0.5, 1.5])
def test_a_maximum_that_time_ends_is_none(monkeypatch: pytest.MonkeyPatch, deadline: float) -> None:
    """A clock that ticks before each pass: coefficients half-way are given to nobody."""
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    assert _complete(ROWS, ROWS, 0, task(), deadline) is None
    assert next(ticks) == max(deadline, 0.0) + 2.5 if deadline > 0.0 else 2


def test_draws_that_time_leaves_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the first two: predictions come from these."""
    counter, complete = itertools.count(), completion._complete

    def first_two(*arguments, deadline=None):
        return complete(*arguments) if next(counter) < 2 else None

    monkeypatch.setattr(completion, "_complete", first_two)
    rows, labels = waves(400, n_classes=3)
    model = tiny(n_frequencies=20, kernel_rows=200, full_draws=5).fit(rows, labels)
    assert "coefficients of 2 draws on all" in model.notes_[-1]
    assert "max_seconds left no time for 3 more draws" in model.notes_[-1]
    assert len(model._functions.mean) == 2
    assert np.isfinite(model.predict_proba(rows)).all()


def test_completing_does_not_depend_on_the_jobs() -> None:
    rows, labels = waves(60)
    one, two = (tiny(kernel_rows=25, full_draws=2, n_jobs=n).fit(rows, labels) for n in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(rows), two.predict_proba(rows))
