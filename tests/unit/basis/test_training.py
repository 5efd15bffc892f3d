"""``fit`` through the driver: stopped, resumed, out of time, out of memory."""

from __future__ import annotations

import itertools
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from mercer.basis import length_scales
from mercer.basis.learner import BatchSampler
from mercer.errors import DataError, ModelFileError
from mercer.estimation import run as estimation_run
from mercer.sampling.driver import SamplingStoppedError
from support.basis_streams import STREAMS, bits, make_stream, small
from support.statistics import few_first

X, Y = make_stream(200)


def stop_at(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Raise SIGTERM in the step of that number from now."""
    step, n_left = BatchSampler.step, [count]

    def watched(self, rng, state):
        n_left[0] -= 1
        if n_left[0] == 0:
            signal.raise_signal(signal.SIGTERM)
        return step(self, rng, state)

    monkeypatch.setattr(BatchSampler, "step", watched)


@pytest.mark.parametrize("name", few_first(STREAMS, "default", "retiring, two filters"))
def test_p2_stopped_and_resumed(name: str, tmp_path: Path, monkeypatch) -> None:
    own = STREAMS[name]
    undisturbed = small(**own).fit(X, Y)
    for count in (1, 3, 2):
        with monkeypatch.context() as patch:
            stop_at(patch, count)
            with pytest.raises(SamplingStoppedError):
                small(checkpoint=tmp_path, **own).fit(X, Y)
    resumed = small(checkpoint=tmp_path, **own).fit(X, Y)
    assert bits(resumed) == bits(undisturbed)
    np.testing.assert_array_equal(resumed.log_predictive_, undisturbed.log_predictive_)
    assert "resumed from" in resumed.notes_[0]
    again = small(checkpoint=tmp_path, **own).fit(X, Y)
    assert bits(again) == bits(undisturbed)


def test_without_a_seed_a_run_still_resumes(tmp_path: Path) -> None:
    runs = [small(checkpoint=tmp_path, random_state=None).fit(X[:40], Y[:40]) for _ in range(2)]
    assert bits(runs[0]) == bits(runs[1])


CHANGES = [
    {"n_particles": 13}, {"expected_centres": 2.0}, {"max_centres": 4}, {"max_candidates": 5},
    {"forgetting": 0.9}, {"centres_prior": "poisson"}, {"variances": "sampled"},
    {"linear_part": True}, {"resampling": "stratified"}, {"standardize": "std"},
    {"input_scale": 2.0}, {"target_scale": 2.0}, {"lengthscale": 1.0}, {"kernel": "matern12"},
    {"random_state": 1}, {"input_scalings": 2}, {"move_fraction": 0.5},
]  # fmt: skip


def test_r6_other_options_are_another_run(tmp_path: Path) -> None:
    """Each begins anew in the folder of all the others."""
    X, Y = make_stream(30)
    small(checkpoint=tmp_path).fit(X, Y)
    for change in CHANGES:
        other = small(checkpoint=tmp_path, **change).fit(X, Y)
        assert other.notes_ == (), change
    assert bits(other) == bits(small(**change).fit(X, Y))


def test_r6_other_data_are_another_run(tmp_path: Path) -> None:
    X, Y = make_stream(30)
    small(checkpoint=tmp_path).fit(X, Y)
    assert small(checkpoint=tmp_path).fit(X, -Y).notes_ == ()


def test_r6_another_version_is_refused(tmp_path: Path, monkeypatch) -> None:
    X, Y = make_stream(30)
    small(checkpoint=tmp_path).fit(X, Y)
    monkeypatch.setattr(estimation_run, "mercer_version", lambda: "99.0")
    with pytest.raises(ModelFileError, match=r"this is 99\.0"):
        small(checkpoint=tmp_path).fit(X, Y)


def test_out_of_time(tmp_path: Path) -> None:
    """A usable model of the first rows, which says so; with a checkpoint it goes on."""
    X, Y = make_stream(90)
    model = small(max_seconds=1e-6, checkpoint=tmp_path).fit(X, Y)
    n = model.n_rows_seen_
    assert 0 < n < 90
    assert model.notes_ == (f"stopped by max_seconds: {n} of 90 rows learned",)
    assert model.log_predictive_.shape == (n,)
    assert np.isfinite(model.predict(X, return_std=True)).all()
    rest = small(checkpoint=tmp_path).fit(X, Y)
    assert bits(rest) == bits(small().fit(X, Y))


def test_the_search_for_scalings_is_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that ticks a second when it is looked at: the search ends early, and says so."""
    calls = []
    factorised = length_scales.factorise

    def counted(A):
        calls.append(len(A))
        return factorised(A)

    monkeypatch.setattr(length_scales, "factorise", counted)
    wide = np.random.default_rng(5).standard_normal((80, 8))
    y = wide[:, 0] + np.sin(2.0 * wide[:, 1])
    small(input_scalings=8).fit(wide, y)
    n_whole = len(calls)
    calls.clear()
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    cut = small(input_scalings=8, max_seconds=20.0).fit(wide, y)
    assert len(calls) < n_whole / 3
    assert cut.notes_[0].startswith("search for scalings of the inputs cut short by max_seconds")
    assert np.isfinite(cut.predict(wide, return_std=True)).all()


def test_with_a_checkpoint_the_search_for_scalings_is_whole(tmp_path: Path) -> None:
    wide = np.random.default_rng(5).standard_normal((60, 3))
    cut = small(input_scalings=4, max_seconds=1e-6, checkpoint=tmp_path).fit(wide, wide[:, 0])
    assert not any("scalings" in note for note in cut.notes_)
    rest = small(input_scalings=4, checkpoint=tmp_path).fit(wide, wide[:, 0])
    assert bits(rest) == bits(small(input_scalings=4).fit(wide, wide[:, 0]))


def test_what_takes_too_much_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"200 rows with 200000 candidates take about \d+ GiB"):
        small(max_candidates=200_000, n_particles=10**8).fit(X, Y)


def test_a_bar_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    small(progress=True).fit(X[:40], Y[:40])
    shown = capsys.readouterr().err
    assert "2/2" in shown
    assert "nan" not in shown
