from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.estimation.run import CommonArguments, mercer_version, run_options
from mercer.random import entropy_of, stream

COMMON = CommonArguments(10, 5, 2, 1, 7, None, False, None, None)


def test_options_pass_through() -> None:
    options = run_options(COMMON, "d", {}, time.monotonic())
    assert (options.n_draws, options.n_warmup, options.n_chains, options.thin) == (10, 5, 2, 1)
    assert (options.entropy, options.run, options.deadline) == (7, None, None)


def test_max_seconds_counts_from_the_start_of_fit() -> None:
    limited = dataclasses.replace(COMMON, max_seconds=10.0)
    assert run_options(limited, "d", {}, 100.0).deadline == 110.0


def test_a_checkpoint_keeps_the_first_entropy(tmp_path: Path) -> None:
    free = dataclasses.replace(COMMON, checkpoint=tmp_path, random_state=None)
    first = run_options(free, "d", {"a": 1}, 0.0)
    again = run_options(free, "d", {"a": 1}, 0.0)
    other = run_options(free, "d", {"a": 2}, 0.0)
    assert first.entropy == again.entropy != other.entropy
    assert again.run is not None
    assert again.run.is_resumed


def test_progress_is_checked() -> None:
    with pytest.raises(UsageError, match="progress"):
        dataclasses.replace(COMMON, progress="always").check()
    COMMON.check()


def test_version() -> None:
    assert mercer_version().count(".") >= 1


def test_entropy() -> None:
    assert entropy_of(5) == entropy_of(np.int64(5)) == 5
    assert entropy_of(None) != entropy_of(None)
    for make in (np.random.default_rng, np.random.RandomState):
        assert entropy_of(make(3)) == entropy_of(make(3))
        shared = make(3)
        assert entropy_of(shared) != entropy_of(shared)
    for bad in (-1, 1.5, "a"):
        with pytest.raises(ValueError, match="random_state"):
            entropy_of(bad)


def test_streams_differ_by_purpose_and_index_and_never_change() -> None:
    keys = [("start", 0), ("chain", 0), ("chain", 1), ("rows", 0), ("folds", 0)]
    first = [stream(1, *key).integers(2**62) for key in keys]
    assert len(set(first)) == len(keys)
    assert first == [stream(1, *key).integers(2**62) for key in keys]
    # A stored reference: the same seed means the same draws in later versions too.
    assert stream(1, "chain", 0).integers(1000, size=4).tolist() == [882, 86, 821, 713]
