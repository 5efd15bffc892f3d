"""Checkpoints with a toy sampler: a run that was stopped goes on to the same bits."""

from __future__ import annotations

import dataclasses
import functools
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from mercer.errors import ModelFileError
from mercer.posterior.container import read_container, write_container
from mercer.sampling import checkpoint
from mercer.sampling.checkpoint import open_run
from mercer.sampling.driver import Sampled, SamplingStoppedError, load_finished, sample
from mercer.sampling.signals import check_stop
from support.runs import ENTROPY, digest, identity, open_folder, options
from support.statistics import few_first
from support.toy_sampler import AtCall, ToyAdaptation, ToySampler


def run(folder: Path | None, before_step=None, **rest) -> Sampled:
    saved = None if folder is None else open_folder(folder)
    return sample(
        ToySampler(before_step=before_step),
        options(run=saved, **rest),
        adaptation=ToyAdaptation(),
    )


@pytest.fixture(scope="module")
def undisturbed() -> str:
    return digest(run(None).draws)


def raise_signal(number: int) -> functools.partial:
    return functools.partial(signal.raise_signal, number)


# Two chains of 90 steps: in warm-up, at its last step, at the first draw, late, in chain two.
MOMENTS = (1, 17, 30, 31, 77, 90, 91, 105, 150)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("count", MOMENTS)
def test_a_signal_stops_and_the_run_goes_on(
    tmp_path: Path, undisturbed: str, count: int, number: int
) -> None:
    with pytest.raises(SamplingStoppedError) as caught:
        run(tmp_path, AtCall(count, raise_signal(number)))
    assert isinstance(caught.value, KeyboardInterrupt)
    assert caught.value.signal_number == number
    assert str(caught.value.folder) in str(caught.value)
    resumed = run(tmp_path)
    assert digest(resumed.draws) == undisturbed
    assert resumed.notes == (f"resumed from {caught.value.folder}",)


def test_nothing_is_done_twice(tmp_path: Path) -> None:
    with pytest.raises(SamplingStoppedError):
        run(tmp_path, AtCall(101, raise_signal(signal.SIGINT)))
    counter = AtCall(-1, lambda: None)
    run(tmp_path, counter)
    assert counter.seen == 180 - 101  # the step in hand was finished


def look(number: int) -> None:
    signal.raise_signal(number)
    check_stop()


@pytest.mark.parametrize("count", MOMENTS)
def test_a_step_that_looks_is_given_up(tmp_path: Path, undisturbed: str, count: int) -> None:
    with pytest.raises(SamplingStoppedError):
        run(tmp_path, AtCall(count, functools.partial(look, signal.SIGINT)))
    counter = AtCall(-1, lambda: None)
    assert digest(run(tmp_path, counter).draws) == undisturbed
    assert counter.seen == 180 - (count - 1)


def test_stopped_again_and_again(tmp_path: Path, undisturbed: str) -> None:
    n_stops = 0
    for count in (7, 19, 11, 40, 13, 29, 3):
        with pytest.raises(SamplingStoppedError):
            run(tmp_path, AtCall(count, raise_signal(signal.SIGTERM)))
        n_stops += 1
    assert n_stops == 7
    assert digest(run(tmp_path).draws) == undisturbed


@pytest.mark.parametrize("count", few_first(MOMENTS[1:], 31, 90, 150))
def test_a_crash_loses_what_was_not_saved_and_no_more(
    tmp_path: Path, undisturbed: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash() -> None:
        raise RuntimeError("crash")

    monkeypatch.setattr(checkpoint, "_INTERVAL", -1.0)  # a checkpoint after each step
    with pytest.raises(RuntimeError, match="crash"):
        run(tmp_path, AtCall(count, crash))
    counter = AtCall(-1, lambda: None)
    assert digest(run(tmp_path, counter).draws) == undisturbed
    assert counter.seen == 180 - (count - 1)


def test_a_finished_run_is_loaded_at_once(tmp_path: Path, undisturbed: str) -> None:
    run(tmp_path)
    counter = AtCall(-1, lambda: None)
    again = run(tmp_path, counter)
    assert counter.seen == 0
    assert digest(again.draws) == undisturbed


@pytest.mark.parametrize("count", [10, 40])
def test_a_run_cut_by_max_seconds_goes_on(tmp_path: Path, undisturbed: str, count: int) -> None:
    """In warm-up and after it; the run is cut again before it can take a step, then goes on."""
    slow = AtCall(count, lambda: time.sleep(0.4))  # past the deadline of both chains
    assert "max_seconds" in run(tmp_path, slow, seconds=0.3).notes[-1]
    assert "max_seconds" in run(tmp_path, seconds=1e-9).notes[-1]
    assert digest(run(tmp_path).draws) == undisturbed


def test_resumed_with_other_jobs(tmp_path: Path, undisturbed: str) -> None:
    with pytest.raises(SamplingStoppedError):
        run(tmp_path, AtCall(50, raise_signal(signal.SIGINT)))
    assert digest(run(tmp_path, n_jobs=2).draws) == undisturbed


def test_the_entropy_of_the_first_run_is_kept(tmp_path: Path) -> None:
    first = open_run(tmp_path, identity(), 77)
    again = open_run(tmp_path, identity(), 88)
    assert (first.entropy, first.is_resumed) == (77, False)
    assert (again.entropy, again.is_resumed) == (77, True)
    assert open_run(tmp_path, identity(n=2), 88).entropy == 88


def test_signal_handlers_are_put_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(SamplingStoppedError):
        run(tmp_path, AtCall(5, raise_signal(signal.SIGTERM)))
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_timer_of_the_caller_goes_on() -> None:
    previous = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 100.0)
    try:
        run(None)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


# What must not be resumed


def stopped(folder: Path) -> Path:
    """A run that was stopped in its first chain; the folder of its files."""
    with pytest.raises(SamplingStoppedError) as caught:
        run(folder, AtCall(50, raise_signal(signal.SIGINT)))
    return Path(caught.value.folder)


def test_another_version_is_refused(tmp_path: Path) -> None:
    stopped(tmp_path)
    with pytest.raises(ModelFileError, match=r"begun by mercer 1\.0, this is 1\.1"):
        open_run(tmp_path, identity("1.1"), ENTROPY)


@pytest.mark.parametrize("name", ["run.mercer", "chain-0.mercer"])
@pytest.mark.parametrize("where", [0, 20, 60, -1])
def test_a_flipped_bit_is_refused(tmp_path: Path, name: str, where: int) -> None:
    path = stopped(tmp_path) / name
    content = bytearray(path.read_bytes())
    content[where] ^= 4
    path.write_bytes(content)
    with pytest.raises(ModelFileError):
        run(tmp_path)


def test_a_truncated_checkpoint_is_refused(tmp_path: Path) -> None:
    path = stopped(tmp_path) / "chain-0.mercer"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ModelFileError, match="checksum"):
        run(tmp_path)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    path = stopped(tmp_path) / "chain-0.mercer"
    other = open_run(tmp_path, identity(n=2), ENTROPY)
    sample(ToySampler(), options(n_chains=1, run=other))
    path.write_bytes((other.path / "chain-0.mercer").read_bytes())
    with pytest.raises(ModelFileError, match="not a checkpoint of this run"):
        run(tmp_path)


def damage(manifest: dict, arrays: dict, what: str) -> None:
    if what == "no state":
        del arrays["state/x"]
    elif what == "state of another type":
        arrays["state/path"] = arrays["state/path"].astype(np.float32)
    elif what == "state of another shape":
        arrays["state/x"] = np.zeros(3)
    elif what == "no learned":
        del arrays["learned/positions"]
    elif what == "no rng":
        del manifest["rng"]
    elif what == "rng of the wrong kind":
        manifest["rng"] = {"state": "x", "inc": [], "has_uint32": 0, "uinteger": 0}
    else:
        del manifest["n_done"]


@pytest.mark.parametrize(
    "what",
    ["no state", "state of another type", "state of another shape", "no learned", "no rng",
     "rng of the wrong kind", "no count"],
)  # fmt: skip
def test_an_inconsistent_checkpoint_is_refused(tmp_path: Path, what: str) -> None:
    path = stopped(tmp_path) / "chain-0.mercer"
    manifest, arrays = read_container(path)
    damage(manifest, arrays, what)
    write_container(path, manifest, arrays)
    with pytest.raises(ModelFileError):
        run(tmp_path)


def test_other_options_begin_another_run(tmp_path: Path) -> None:
    stopped(tmp_path)
    other = open_run(tmp_path, dataclasses.replace(identity(), data="e" * 64), ENTROPY)
    assert not other.is_resumed


def test_a_finished_run_needs_no_sampler(tmp_path: Path, undisturbed: str) -> None:
    run(tmp_path)
    folder = open_folder(tmp_path)
    loaded = load_finished(options(run=folder))
    assert loaded is not None
    assert loaded.notes == (f"loaded the finished run in {folder.path}",)
    assert digest(loaded.draws) == undisturbed
    assert load_finished(options(n_draws=61, run=folder)) is None


@pytest.mark.parametrize("name", ["chain-0.mercer", "run.mercer"])
def test_a_damaged_file_names_the_remedy_which_works(
    tmp_path: Path, undisturbed: str, name: str
) -> None:
    run(tmp_path)
    (path,) = tmp_path.glob(f"*/{name}")
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    with pytest.raises(ModelFileError, match=r"checksum.*; remove") as caught:
        run(tmp_path)
    assert str(path) in str(caught.value)
    path.unlink()
    assert digest(run(tmp_path).draws) == undisturbed


def test_a_chain_file_without_its_arrays_names_the_remedy(tmp_path: Path) -> None:
    run(tmp_path)
    (path,) = tmp_path.glob("*/chain-1.mercer")
    manifest, arrays = read_container(path)
    manifest["n_done"] -= 1  # not finished, so that its state is asked for
    write_container(path, manifest, {name: arrays[name] for name in arrays if "path" not in name})
    with pytest.raises(ModelFileError, match=r"chain-1.mercer.*missing; remove this file"):
        run(tmp_path)
