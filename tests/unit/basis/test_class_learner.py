"""Learning classes from rows and tables."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from mercer.basis.learner import BatchSampler
from mercer.errors import DataError, MercerWarning
from mercer.sampling.driver import SamplingStoppedError
from support.class_batches import class_settings
from support.class_fits import bits, little, make_rows

# Streams: nothing depends on how the rows are cut into calls; what fails changes nothing.


X, Y = make_rows(50, 3)
CLASSES = np.unique(Y)
CUTS = {
    "row by row": list(range(1, 50)),
    "while rows are held back": [4],
    "where the scales are known": [10],
    "several": [3, 9, 10, 11, 33, 49],
}


@pytest.mark.one_in(2)
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


# Settings.


def test_length_scales() -> None:
    Z = np.random.default_rng(0).standard_normal((300, 2))
    learned = class_settings(lengthscale="learn").lengthscales(Z)
    assert learned.shape == (10,)  # a shorter one is below the nearest rows
    assert (np.diff(learned) < 0.0).all()
    (median,) = class_settings(lengthscale="median").lengthscales(Z)
    distances = np.sqrt(((Z[:, np.newaxis] - Z) ** 2).sum(axis=-1))
    assert median == pytest.approx(np.median(distances[np.triu_indices(300, 1)]), rel=0.1)
    given = class_settings(lengthscale=(0.5, 2.0)).lengthscales(Z)
    np.testing.assert_array_equal(given, [2.0, 0.5])


def test_a_filter_for_each_class_but_the_last() -> None:
    sticks = class_settings().sticks(np.ones(1), 2, 4, 0, 7)
    assert len(sticks.filters) == 3
    keys = {each.reservoir.key for each in sticks.filters}
    assert len(keys) == 3
    assert {each.schedule.n_buffered for each in sticks.filters} == {12}
    assert all(each.reservoir.is_forgetting for each in sticks.filters)


def test_of_a_table_all_rows_are_held() -> None:
    (filter_,) = class_settings().sticks(np.ones(1), 2, 2, 100, 7).filters
    assert filter_.schedule.n_buffered == 100
    assert not filter_.reservoir.is_forgetting


def test_memory_grows_with_rows_levels_and_classes() -> None:
    one = class_settings(lengthscale="median").n_bytes(1000, 2, 2)
    assert class_settings(lengthscale="learn").n_bytes(1000, 2, 2) == 13 * one
    assert class_settings(lengthscale="median").n_bytes(2000, 2, 3) == 4 * one
    assert one == 16 * 1000 * (1 + 2 + 7)


# ``fit`` through the driver: stopped, resumed, out of time, out of memory.


@pytest.mark.parametrize("n_classes", [2, 3])
def test_p2_stopped_and_resumed(n_classes: int, tmp_path: Path, monkeypatch) -> None:
    X, y = make_rows(150, n_classes)
    undisturbed = little().fit(X, y)
    step = BatchSampler.step
    for count in (1, 3, 2):
        n_left = [count]

        def watched(self, rng, state, n_left=n_left):
            n_left[0] -= 1
            if n_left[0] == 0:
                signal.raise_signal(signal.SIGTERM)
            return step(self, rng, state)

        with monkeypatch.context() as patch:
            patch.setattr(BatchSampler, "step", watched)
            with pytest.raises(SamplingStoppedError):
                little(checkpoint=tmp_path).fit(X, y)
    resumed = little(checkpoint=tmp_path).fit(X, y)
    assert bits(resumed) == bits(undisturbed)
    np.testing.assert_array_equal(resumed.log_predictive_, undisturbed.log_predictive_)
    assert "resumed from" in resumed.notes_[len(undisturbed.notes_)]


def test_all_rows_of_a_table_are_held() -> None:
    """More than ``n_buffered``, which is that of a stream; the stream goes on with as many."""
    X, y = make_rows(60)
    model = little().fit(X, y)
    assert model._learner.running.state.states[0].n_held == 60
    model.partial_fit(X[:5], y[:5])
    assert model._learner.running.state.states[0].n_held == 60


def test_out_of_time(tmp_path: Path) -> None:
    """A usable model of the first rows, which says so; with a checkpoint it goes on."""
    X, y = make_rows(150)
    model = little(max_seconds=1e-6, checkpoint=tmp_path).fit(X, y)
    n = model.n_rows_seen_
    assert 0 < n < 150
    whole = little().fit(X, y)
    assert model.notes_ == (*whole.notes_, f"stopped by max_seconds: {n} of 150 rows learned")
    assert model.log_predictive_.shape == (n,)
    assert np.isfinite(model.predict_proba(X)).all()
    assert bits(little(checkpoint=tmp_path).fit(X, y)) == bits(whole)


def test_what_takes_too_much_memory_is_refused() -> None:
    X, y = make_rows(150)
    with pytest.raises(DataError, match=r"to hold 150 rows takes about \d+ GiB; use partial_fit"):
        little(max_candidates=10**7).fit(X, y)


def test_the_mean_score_is_that_of_the_rows() -> None:
    X, y = make_rows(60, 4)
    model = little().fit(X, y)
    assert model.mean_log_predictive_ == pytest.approx(model.log_predictive_.mean())
