"""Runs in their own process that are killed, terminated or interrupted: P2, R1, R2, R3."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np
import pytest

from mercer.sampling.driver import sample
from mercer.sampling.hmc import HamiltonianAdaptation
from support import run_to_kill
from support.forked import Forked
from support.runs import digest, options
from support.targets import make_hmc
from support.toy_sampler import ToyAdaptation, ToySampler

_SCRIPT = Path(run_to_kill.__file__)


def start(kind: str, folder: Path, n_jobs: int = 1, seconds: float = 0.0) -> Forked:
    return Forked([str(_SCRIPT), kind, str(folder), str(n_jobs), str(seconds)], text=True)


def finish(process: Forked) -> str:
    """Wait for the end; what it printed after "begun"."""
    output, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors, errors
    return output.removeprefix("begun\n").strip()


def wait_for_checkpoint(process: Forked, folder: Path, n_chains: int = 1) -> None:
    """Wait until so many chains have taken a step."""
    deadline = time.monotonic() + 120.0
    while len(list(folder.glob("*/chain-*.mercer"))) < n_chains:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)


def kill_and_finish(kind: str, folder: Path, delays: list[float]) -> tuple[str, int]:
    """Kill a run after each delay, then let it end: its digest and the kills that hit it."""
    n_killed = 0
    for delay in delays:
        process = start(kind, folder, seconds=0.004)
        wait_for_checkpoint(process, folder)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay)
        process.kill()
        finish(process)
        n_killed += process.returncode == -signal.SIGKILL
    return finish(start(kind, folder)), n_killed


def test_p2_killed_and_resumed_is_undisturbed(tmp_path: Path) -> None:
    """180 steps of about 6 ms, a checkpoint after each; kills at random moments."""
    delays = list(np.random.default_rng(0).uniform(0.0, 0.25, 4))
    seen, n_killed = kill_and_finish("toy", tmp_path, delays)
    assert n_killed == 4
    assert seen == digest(sample(ToySampler(), options(), adaptation=ToyAdaptation()).draws)
    # R3: a temporary file that a kill left is ignored.
    left = sorted(path.name for path in tmp_path.glob("*/*.mercer"))
    assert left == ["chain-0.mercer", "chain-1.mercer", "run.mercer"]


def test_p2_killed_hmc_is_undisturbed(tmp_path: Path) -> None:
    """Mass and step size in the making are part of the checkpoint."""
    delays = list(np.random.default_rng(1).uniform(0.0, 0.3, 2))
    seen, _ = kill_and_finish("hmc", tmp_path, delays)
    plan = options(60, 90, 1)
    assert seen == digest(sample(make_hmc(0.5), plan, adaptation=HamiltonianAdaptation(90)).draws)


@pytest.mark.parametrize(
    ("number", "n_jobs"),
    [
        (signal.SIGTERM, 1),
        (signal.SIGINT, 2),
        pytest.param(signal.SIGINT, 1, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 2, marks=pytest.mark.slow),
    ],
)
def test_r1_r2_a_signal_ends_the_process_soon(tmp_path: Path, number: int, n_jobs: int) -> None:
    """Ninety steps of 1 s a chain: by itself it would end after what `finish` waits for."""
    process = start("toy", tmp_path, n_jobs, 1.0)
    wait_for_checkpoint(process, tmp_path, n_jobs)
    process.send_signal(number)
    assert finish(process) == f"stopped {int(number)}"
    assert process.returncode == 128 + number
    resumed = finish(start("toy", tmp_path))
    assert resumed == digest(sample(ToySampler(), options(), adaptation=ToyAdaptation()).draws)


def test_workers_follow_a_parent_that_was_killed(tmp_path: Path) -> None:
    """Ninety steps of 1 s: without that they hold its pipes for longer than is waited here."""
    process = start("toy", tmp_path, 2, 1.0)
    wait_for_checkpoint(process, tmp_path, 2)
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


def test_r2_a_signal_between_steps_gives_the_chain_time_to_save(tmp_path: Path) -> None:
    process = start("slow-record", tmp_path)
    assert finish(process) == f"stopped {int(signal.SIGTERM)}"
    assert process.returncode == 128 + signal.SIGTERM
    assert len(list(tmp_path.glob("*/chain-0.mercer"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_p2_kill_storm(tmp_path: Path, seed: int) -> None:
    """Five kills a run, six runs: digests as if nothing had happened (P2), files whole (P3)."""
    delays = list(np.random.default_rng([2, seed]).uniform(0.0, 0.2, 5))
    seen, n_killed = kill_and_finish("toy", tmp_path, delays)
    assert n_killed >= 3
    assert seen == digest(sample(ToySampler(), options(), adaptation=ToyAdaptation()).draws)
