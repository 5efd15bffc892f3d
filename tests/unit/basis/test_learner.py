"""Streams: nothing depends on how the rows are cut into calls; what fails changes nothing."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from mercer.errors import MercerWarning
from support.basis_streams import STREAMS, bits, make_stream, small
from support.statistics import pairs_first

X, Y = make_stream()
CUTS = {
    "row by row": list(range(1, 60)),
    "while rows are held back": [4],
    "where the scales are known": [10],
    "inside a block": [37],
    "several": [3, 9, 10, 11, 33, 59],
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("own", "cuts"), pairs_first(STREAMS, CUTS))
def test_how_rows_are_cut_into_calls_does_not_matter(own: dict, cuts: list[int]) -> None:
    whole = small(**own).partial_fit(X, Y)
    cut, scores = small(**own), []
    for start, end in zip([0, *cuts], [*cuts, 60], strict=True):
        cut.partial_fit(X[start:end], Y[start:end])
        scores.extend(cut._last_densities)
    assert bits(cut) == bits(whole)
    np.testing.assert_array_equal(scores, whole.log_predictive_)
    assert len(scores) == whole.n_rows_seen_ == 60


def test_rows_that_are_held_back_are_learned_once_somebody_predicts() -> None:
    model = small().partial_fit(X[:7], Y[:7])
    assert model._learner.running is None
    assert model.n_rows_seen_ == 7
    model.predict(X)
    assert model._learner.running is not None
    assert model.n_rows_seen_ == 7
    assert len(model.log_predictive_) == 7


def test_with_known_scales_no_row_is_held_back() -> None:
    model = small(input_scale=1.0, target_scale=1.0).partial_fit(X[:1], Y[:1])
    assert model._learner.running is not None


def test_the_first_rows_set_the_scales_and_later_ones_do_not() -> None:
    model = small().partial_fit(X[:10], Y[:10])
    centre, scale = model.target_centre_, model.target_scale_
    assert centre == pytest.approx(Y[:10].mean())
    assert scale == pytest.approx(Y[:10].std())
    model.partial_fit(X[10:], 5.0 * Y[10:])
    assert (model.target_centre_, model.target_scale_) == (centre, scale)


def test_a_column_that_leaves_ten_scales_is_pointed_out_once() -> None:
    model = small().partial_fit(X[:30], Y[:30])
    far = X[30:32] * [1.0, 100.0]
    with pytest.warns(MercerWarning, match="^x1: more than ten scales"):
        model.partial_fit(far, Y[30:32])
    model.partial_fit(far, Y[30:32])
    with pytest.warns(MercerWarning, match="^the target: more than ten scales"):
        model.prequential(X[32:33], [1e6])


BAD_ROWS = {
    "NaN": (np.nan, 0.0, r"NaN: row 1 .*column 'x1'"),
    "infinity": (-np.inf, 0.0, r"infinity: row 1 .*column 'x1'"),
    "NaN target": (0.0, np.nan, "y contains NaN: row 1 "),
    "infinite target": (0.0, np.inf, "y contains infinity: row 1 "),
    "large target": (0.0, -1e200, "row 1 .*: the target is too large"),
}


CALLS = {
    f"{call} after {n}": (call, n) for call in ("partial_fit", "prequential") for n in (0, 5, 30)
}


@pytest.mark.parametrize(("called", "bad"), pairs_first(CALLS, BAD_ROWS))
def test_a_bad_row_is_named_and_nothing_is_learned(called, bad) -> None:
    (call, n_learned), (x, y, message), model = called, bad, small()
    if n_learned:
        model.partial_fit(X[:n_learned], Y[:n_learned])
        before, scores = bits(model), list(model._last_densities)
    rows, targets = X[30:33].copy(), Y[30:33].copy()
    rows[1, 1], targets[1] = x, y
    if call == "prequential" and np.isnan(y):
        return  # predicted and not learned
    with pytest.raises(ValueError, match=message):
        getattr(model, call)(rows, targets)
    if n_learned:
        assert bits(model) == before
        assert model._last_densities == scores
        # Nor is there a trace in what follows.
        again = small().partial_fit(X[:n_learned], Y[:n_learned]).partial_fit(X[30:], Y[30:])
        assert bits(model.partial_fit(X[30:], Y[30:])) == bits(again)
    else:
        assert not hasattr(model, "n_rows_seen_")
        model.partial_fit(X[:2, :1], Y[:2])  # also with other columns: it has not begun


def test_rows_from_which_no_scale_can_be_learned_are_refused() -> None:
    model = small().partial_fit(X[:4], 1e-200 * Y[:4])
    before = bits(model)
    with pytest.raises(ValueError, match="too large or too small"):
        model.partial_fit(X[4:20], 1e-200 * Y[4:20])
    assert bits(model) == before


@pytest.mark.parametrize("n_columns", [1, 3])
def test_another_number_of_columns(n_columns: int) -> None:
    model = small().partial_fit(X[:20], Y[:20])
    before = bits(model)
    with pytest.raises(ValueError, match=rf"X has {n_columns} features, but \w+ is expecting 2"):
        model.partial_fit(np.ones((3, n_columns)), Y[:3])
    assert bits(model) == before


def test_ctrl_c_is_heeded_after_a_whole_row() -> None:
    model = small().partial_fit(X[:20], Y[:20])
    learn, n_left = model._learner.running.ensemble.filters[0].learn, [5]

    def learn_and_stop(*arguments):
        n_left[0] -= 1
        if n_left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return learn(*arguments)

    object.__setattr__(model._learner.running.ensemble.filters[0], "learn", learn_and_stop)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[20:], Y[20:])
    assert model.n_rows_seen_ == 25
    assert len(model.log_predictive_) == 5
    expected = small().partial_fit(X[:25], Y[:25])
    assert bits(model) == bits(expected)
