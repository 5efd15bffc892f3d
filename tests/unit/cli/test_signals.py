"""R1 and R2: a signal in the middle of sampling, in a real process."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mercer.atomic import replacing
from mercer.cli.exits import fail
from mercer.posterior.container import read_container
from support.forked import Forked

from .conftest import write_csv

SETTINGS = ["--target", "label", "--set", "n_draws=400", "--set", "n_warmup=20"]
SETTINGS += ["--set", "n_chains=2", "--set", "inference=hmc"]


# Seconds; a machine that is busy with other things (the load counts them) gets twice as many.
LIMIT = 2.0


def limit() -> float:
    is_busy = os.getloadavg()[0] > 0.9 * (os.cpu_count() or 1)
    return 2 * LIMIT if is_busy else LIMIT


def start(words: list[object]) -> Forked:
    return Forked(["mercer", *map(str, words)], text=True, start_new_session=True)


def stop(process: Forked, number: int, folder: Path, pattern: str) -> tuple[float, str]:
    """Send a signal once a file like ``pattern`` is there; return the seconds to the end."""
    deadline = time.monotonic() + 60
    while not list(folder.glob(pattern)):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    time.sleep(0.5)
    started = time.monotonic()
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=20)
    return time.monotonic() - started, err


def digest(path: Path) -> str:
    """Digest of the draws: times and dates of a file differ from run to run."""
    _, arrays = read_container(path)
    sha = hashlib.sha256()
    for name in sorted(arrays):
        sha.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return sha.hexdigest()


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("rows") / "rows.csv", n=150)


@pytest.fixture(scope="module")
def undisturbed(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("whole") / "m.mercer"
    process = start(["fit", rows, *SETTINGS, "--test", rows, "--jobs", "1", "--out", out])
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return digest(out)


@pytest.mark.slow  # three processes each; of the sampler alone: tests/sampling/test_kill.py
@pytest.mark.parametrize(
    ("number", "code", "jobs"), [(signal.SIGINT, 130, 1), (signal.SIGTERM, 143, 2)]
)
def test_a_stopped_fit_goes_on_to_the_same_model(
    rows: Path, tmp_path: Path, undisturbed: str, number: int, code: int, jobs: int
) -> None:
    out, state = tmp_path / "m.mercer", tmp_path / "state"
    words = ["fit", rows, *SETTINGS, "--test", rows, "--jobs", jobs]
    words += ["--out", out, "--checkpoint", state]
    process = start(words)
    seconds, err = stop(process, number, state, "fit/*/run.mercer")  # ends with its workers
    assert process.returncode == code, err
    assert seconds < limit()
    assert err.count("\n") == 1
    assert "the same command goes on" in err
    assert not out.exists()
    process = start(words)
    said, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "resumed from" in said
    assert digest(out) == undisturbed


@pytest.mark.slow  # four processes
def test_folds_in_other_processes_end_too(rows: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    long = ["--set", "n_draws=20000"]
    process = start(["fit", rows, *SETTINGS, *long, "--jobs", "2", "--checkpoint", state])
    seconds, err = stop(process, signal.SIGINT, state, "folds/*/chain-0.mercer")
    assert process.returncode == 130, err
    assert seconds < limit()
    for path in state.glob("folds/*/*.mercer"):
        read_container(path)
    deadline = time.monotonic() + 2.0  # of the resource tracker, which ends after its parent
    while _alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(process.pid)


def test_r5_a_second_fit_into_one_checkpoint_names_the_first(
    run, rows: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    words = ["fit", rows, *SETTINGS, "--set", "n_draws=20000", "--checkpoint", state]
    first = start([*words, "--jobs", "1"])
    deadline = time.monotonic() + 60
    while not (state / "run.json").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    code, _, err = run(*words, "--jobs", "1")
    os.kill(first.pid, signal.SIGINT)
    first.communicate(timeout=20)
    assert code == 6
    assert err.count("\n") == 1
    assert f"in use by process {first.pid} on " in err


def test_without_a_checkpoint_it_says_what_would_have_helped(rows: Path, tmp_path: Path) -> None:
    process = start(["fit", rows, *SETTINGS, "--jobs", "1", "--set", "n_draws=100000"])
    for line in process.stdout or ():
        if line.startswith("seed"):
            break
    time.sleep(1.0)
    os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 143
    assert "nothing was saved" in err
    assert "--checkpoint" in err


def _alive(session: int) -> list[int]:
    """Processes of a session that are still there (Linux)."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


EARLY = """
import os, sys, threading
from mercer.cli import run
threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), int(sys.argv[1]))).start()
sys.argv[1:] = ["datasets"]
run()
"""


@pytest.mark.parametrize(
    ("number", "delay"),
    [
        (signal.SIGINT, 0.02),
        (signal.SIGTERM, 0.05),
        (signal.SIGINT, 0.1),
        pytest.param(signal.SIGTERM, 0.02, marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, 0.05, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 0.1, marks=pytest.mark.slow),
    ],
)
def test_a_signal_among_the_first_imports_is_one_line(number: int, delay: float) -> None:
    """Before, a traceback; on a fast machine the command may be done before it comes."""
    done = subprocess.run(
        [sys.executable, "-c", EARLY, str(int(number)), str(delay)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 128 + number)
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 1


def test_a_signal_before_the_command_is_known_is_one_line(run, monkeypatch) -> None:
    """Before, an empty line came first."""

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mercer.cli.commands.Group.parse_args", stopped)
    assert run("datasets") == (130, "", "mercer: stopped by SIGINT\n")


LATE = """
import os
from mercer.cli import main
scope = {"__name__": "numba", "os": os}  # where no signal may raise
exec("def work(arguments): os.kill(os.getpid(), 2); return 0", scope)
main.main = scope["work"]
main.run()
"""


def test_a_signal_at_the_very_end_of_a_command_is_one_line() -> None:
    """Before, a traceback and exit code 1, wherever no safe place came before the end."""
    done = subprocess.run(
        [sys.executable, "-c", LATE], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (130, 1)


def test_a_block_that_a_signal_met_as_it_was_entered_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped() -> None:
        block = replacing(tmp_path / "p.csv")
        block.__enter__()  # and before `with` knows of it:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as info:
        stopped()
    assert len(list(tmp_path.iterdir())) == 1
    assert fail(info.value, is_debug=False) == 130
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err.startswith("mercer: stopped")
