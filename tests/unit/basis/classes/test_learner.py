"""Streams: nothing depends on how the rows are cut into calls; what fails changes nothing."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from mercer.errors import MercerWarning
from support.class_fits import bits, little, make_rows

X, Y = make_rows(50, 3)
CLASSES = np.unique(Y)
CUTS = {
    "row by row": list(range(1, 50)),
    "while rows are held back": [4],
    "where the scales are known": [10],
    "several": [3, 9, 10, 11, 33, 49],
}


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
def test_how_rows_are_cut_into_calls_does_not_matter(cuts: list[int]) -> None:
    whole = little().partial_fit(X, Y, CLASSES)
    cut, scores = little(), []
    for start, end in zip([0, *cuts], [*cuts, 50], strict=True):
        cut.partial_fit(X[start:end], Y[start:end], CLASSES)
        scores.extend(cut._last_densities)
    assert bits(cut) == bits(whole)
    np.testing.assert_array_equal(scores, whole.log_predictive_)
    assert cut.mean_log_predictive_ == whole.mean_log_predictive_


def test_rows_that_are_held_back_are_learned_once_somebody_predicts() -> None:
    model = little().partial_fit(X[:7], Y[:7], CLASSES)
    assert model._learner.running is None
    assert model.n_rows_seen_ == 7
    model.predict(X)
    assert model._learner.running is not None
    assert model.n_rows_seen_ == 7
    assert len(model.log_predictive_) == 7


def test_with_known_scales_no_row_is_held_back() -> None:
    model = little(input_scale=3.0).partial_fit(X[:1], Y[:1], CLASSES)
    assert model._learner.running is not None


def test_a_column_that_leaves_ten_scales_is_pointed_out_once() -> None:
    model = little().partial_fit(X[:30], Y[:30], CLASSES)
    far = X[30:32] * [1.0, 100.0]
    with pytest.warns(MercerWarning, match="^x1: more than ten scales"):
        model.partial_fit(far, Y[30:32])
    model.partial_fit(far, Y[30:32])


BAD_ROWS = {
    "NaN": (np.nan, "ash", r"NaN: row 1 .*column 'x1'"),
    "infinity": (-np.inf, "ash", r"infinity: row 1 .*column 'x1'"),
    "large": (-1e200, "ash", "row 1 .*: an input is too large"),
    "unknown": (0.0, "oak", "row 1 .*: 'oak' is none of the classes"),
}


@pytest.mark.parametrize(("x", "label", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
@pytest.mark.parametrize("n_learned", [0, 5, 30])
@pytest.mark.parametrize("call", ["partial_fit", "prequential"])
def test_a_bad_row_is_named_and_nothing_is_learned(call, n_learned, x, label, message) -> None:
    model = little()
    if n_learned:
        model.partial_fit(X[:n_learned], Y[:n_learned], CLASSES)
        before, scores = bits(model), list(model._last_densities)
    rows, labels = X[30:33].copy(), Y[30:33].copy()
    rows[1, 1], labels[1] = x, label
    with pytest.raises(ValueError, match=message):
        getattr(model, call)(rows, labels, CLASSES)
    if n_learned:
        assert bits(model) == before
        assert model._last_densities == scores
    else:
        assert not hasattr(model, "classes_")
        model.partial_fit(X[:2, :1], Y[:2], CLASSES)  # also with other columns: it has not begun


def test_rows_too_large_for_the_scales_just_learned_are_held_back_no_more() -> None:
    """Small enough as they came, not as they are standardised."""
    X = np.linspace(0.0, 1e-60, 12)[:, np.newaxis]
    y = np.arange(12) % 2
    model = little().partial_fit(X[:9], y[:9])
    before = bits(model)
    X[11] = 1e60
    with pytest.raises(ValueError, match=r"row 2 .*: an input is too large"):
        model.partial_fit(X[9:], y[9:])
    assert bits(model) == before
    model.partial_fit(X[9:11], y[9:11])
    assert model._learner.running is not None


def test_ctrl_c_is_heeded_after_a_whole_row(monkeypatch: pytest.MonkeyPatch) -> None:
    model = little().partial_fit(X[:20], Y[:20], CLASSES)
    sticks, n_left = type(model._learner.running.sticks), [5]
    learn = sticks.learn

    def learn_and_stop(*arguments):
        n_left[0] -= 1
        if n_left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return learn(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(sticks, "learn", learn_and_stop)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[20:], Y[20:])
    assert model.n_rows_seen_ == 25
    assert len(model.log_predictive_) == 5
    assert bits(model) == bits(little().partial_fit(X[:25], Y[:25], CLASSES))
