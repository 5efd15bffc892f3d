"""``fit`` through the driver: stopped, resumed, out of time, out of memory."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

from mercer.basis.learner import BatchSampler
from mercer.errors import DataError
from mercer.sampling.driver import SamplingStoppedError
from support.class_fits import bits, little, make_rows


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
    assert "resumed from" in resumed.notes_[0]


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
    assert model.notes_ == (f"stopped by max_seconds: {n} of 150 rows learned",)
    assert model.log_predictive_.shape == (n,)
    assert np.isfinite(model.predict_proba(X)).all()
    assert bits(little(checkpoint=tmp_path).fit(X, y)) == bits(little().fit(X, y))


def test_what_takes_too_much_memory_is_refused() -> None:
    X, y = make_rows(150)
    with pytest.raises(DataError, match=r"to hold 150 rows takes about \d+ GiB; use partial_fit"):
        little(max_candidates=10**7).fit(X, y)


def test_the_mean_score_is_that_of_the_rows() -> None:
    X, y = make_rows(60, 4)
    model = little().fit(X, y)
    assert model.mean_log_predictive_ == pytest.approx(model.log_predictive_.mean())
