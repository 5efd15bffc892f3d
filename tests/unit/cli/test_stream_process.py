"""`mercer stream` between other processes: rows that come alone, signals, readers that go away."""

from __future__ import annotations

import array
import fcntl
import json
import os
import re
import select
import shutil
import signal
import termios
import time
from pathlib import Path

import pytest

from mercer.cli.main import main
from mercer.posterior.container import read_container
from support.forked import Forked
from support.statistics import few_first
from support.streams import start, write_rows

WORDS = ["--target", "y", "--drop", "name", "--warmup", "20"]
LIMIT = 60.0  # seconds, for a process to start
# A pipe of 16 pages holds at least so many bytes where the next answers have no room: an answer, or
# some of them at once, that does not fit into a page begins the next one.
FULL, STILL = 30_000, 0.5  # bytes; seconds without another one


@pytest.fixture
def lines(tmp_path: Path) -> list[bytes]:
    """Header and rows."""
    return write_rows(tmp_path / "rows.csv").read_bytes().splitlines(keepends=True)


def answer(process: Forked) -> dict:
    ready, _, _ = select.select([process.stdout], [], [], LIMIT)
    assert ready, "no answer"
    return json.loads(process.stdout.readline())


def send(process: Forked, *rows: bytes) -> None:
    process.stdin.write(b"".join(rows))


def finish(process: Forked) -> tuple[int, bytes, str]:
    out, err = process.communicate(timeout=LIMIT)
    return process.returncode, out, err.decode()


def waiting_bytes(process: Forked) -> int:
    """Answers in the pipe that nobody has read."""
    count = array.array("i", [0])
    fcntl.ioctl(process.stdout.fileno(), termios.FIONREAD, count)
    return count[0]


def n_rows(path: Path) -> int:
    return read_container(path)[0]["fields"]["n"]


def test_a_row_that_comes_alone_is_answered_at_once(lines: list[bytes]) -> None:
    process = start(*WORDS)
    send(process, lines[0])
    for number, line in enumerate(lines[1:60], start=1):
        send(process, line[:3])  # half a row is none
        send(process, line[3:])
        assert answer(process)["row"] == number
    send(process, lines[60].rstrip())  # the last one needs no end
    code, out, err = finish(process)
    assert code == 0, err
    assert json.loads(out)["row"] == 60


@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow), (signal.SIGTERM, 143)],
)
def test_a_signal_ends_an_idle_stream_and_saves(
    lines: list[bytes], tmp_path: Path, number: int, code: int
) -> None:
    out = tmp_path / "m.mercer"
    process = start(*WORDS, "--save", out)
    send(process, *lines[:51])
    for _ in range(50):
        answer(process)
    os.kill(process.pid, number)
    process.wait(timeout=LIMIT)  # while nobody ends its rows: by itself it would not end
    found, _, err = finish(process)
    assert found == code, err
    assert f"--load {out} goes on from it" in err.splitlines()[-1]
    assert n_rows(out) == 50


@pytest.mark.slow
def test_a_signal_in_the_warm_up_learns_what_was_held_back(
    lines: list[bytes], tmp_path: Path
) -> None:
    out = tmp_path / "m.mercer"
    process = start(*WORDS, "--save", out)
    send(process, *lines[:8])
    for _ in range(7):
        answer(process)
    os.kill(process.pid, signal.SIGTERM)
    assert finish(process)[0] == 143
    assert n_rows(out) == 7


@pytest.mark.slow
def test_a_signal_before_the_first_row_changes_no_file(tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    out.write_bytes(b"as it was")
    process = start(*WORDS, "--save", out)
    assert process.stderr.read(5) == b"model"  # it is there
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGTERM)
    code, _, err = finish(process)
    assert (code, "no row was read" in err) == (143, True), err
    assert out.read_bytes() == b"as it was"


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_it_quietly(lines: list[bytes], tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    process = start(*WORDS, "--save", out, "--quiet")
    send(process, *lines[:41])
    for _ in range(40):
        answer(process)
    process.stdout.close()
    send(process, *lines[41:61])
    process.stdin.close()
    assert process.wait(timeout=LIMIT) == 141
    assert process.stderr.read() == b""
    process.stderr.close()
    assert n_rows(out) >= 41


def many_rows(lines: list[bytes], folder: Path) -> Path:
    """Rows whose answers do not fit into a pipe."""
    path = folder / "many.csv"
    path.write_bytes(lines[0] + b"".join(lines[1:]) * 8)
    return path


@pytest.mark.slow
def test_a_slow_reader_loses_nothing(lines: list[bytes], tmp_path: Path) -> None:
    process = start(many_rows(lines, tmp_path), *WORDS)
    time.sleep(1.5)
    out, _ = process.communicate(timeout=LIMIT)
    assert [json.loads(line)["row"] for line in out.splitlines()] == list(range(1, 961))


def test_a_command_that_waits_for_its_reader_can_be_stopped(
    lines: list[bytes], tmp_path: Path
) -> None:
    process = start(many_rows(lines, tmp_path), *WORDS, "--save", tmp_path / "m.mercer")
    deadline, waiting = time.monotonic() + LIMIT, (-1, 0)
    while waiting[0] < waiting[1] or waiting[1] < FULL:
        assert time.monotonic() < deadline
        time.sleep(STILL)
        waiting = waiting[1], waiting_bytes(process)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(timeout=LIMIT) == 143
    assert 20 < n_rows(tmp_path / "m.mercer") < 960
    process.stdout.close()
    process.stderr.close()
    process.stdin.close()


@pytest.mark.slow
def test_the_file_is_written_while_no_row_comes(lines: list[bytes], tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    process = start(*WORDS, "--save", out, "--save-every", "0.3s")
    send(process, *lines[:31])
    deadline = time.monotonic() + LIMIT
    while not out.exists() or n_rows(out) < 30:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    stamp = out.stat().st_mtime_ns
    time.sleep(0.8)
    assert out.stat().st_mtime_ns == stamp  # nothing new, nothing written
    assert finish(process)[0] == 0


@pytest.mark.parametrize("every", few_first([1, 7], 7))
def test_a_kill_loses_fewer_rows_than_were_promised(
    lines: list[bytes], tmp_path: Path, every: int
) -> None:
    """SIGKILL, at any answer: the file lacks fewer than so many rows, and is as if never killed."""
    whole, killed, both = (tmp_path / name for name in ("whole", "killed", "both"))
    assert main(["stream", *WORDS, "--save", str(whole), str(write_rows(tmp_path / "r.csv"))]) == 0
    process = start(*WORDS, "--save", killed, "--save-every", every)
    send(process, *lines)
    for _ in range(83):
        last = answer(process)["row"]
    process.kill()
    process.wait(timeout=LIMIT)
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()
    assert n_rows(killed) > last - every
    rest = start("--load", killed, "--drop", "name", "--save", both)
    send(rest, lines[0], *lines[1 + n_rows(killed) :])
    assert finish(rest)[0] == 0
    assert n_rows(both) == 120


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_for_answers_loses_no_row_that_was_learned(
    lines: list[bytes], tmp_path: Path
) -> None:
    """Exit code 6; what was learned is saved, and it says which answers are lost."""
    out, path = tmp_path / "m.mercer", tmp_path / "rows.csv"
    with open("/dev/full", "wb") as full:
        process = start(path, *WORDS, "--save", out, stdout=full)
        code, _, err = finish(process)
    words = " ".join(err.split())
    assert code == 6, err
    assert "cannot write to standard output: No space left on device" in err.splitlines()[-1]
    assert "the answers of rows 1 to " in words
    last = re.search(r"has learned the rows to row (\d+):", words)
    assert n_rows(out) == int(last.group(1)) > 0


@pytest.mark.slow
def test_a_file_that_cannot_be_written_ends_it(lines: list[bytes], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    process = start(*WORDS, "--save", folder / "m.mercer")
    send(process, *lines[:31])
    for _ in range(30):
        answer(process)
    shutil.rmtree(folder)  # with the lock in it
    code, _, err = finish(process)
    assert code == 6
    assert "cannot write" in err


def test_r5_a_second_stream_into_one_file_is_refused(lines: list[bytes], tmp_path: Path) -> None:
    """Before it reads what the first will write over; and the first is not disturbed."""
    out = tmp_path / "m.mercer"
    first = start(*WORDS, "--save", out)
    send(first, *lines[:31])
    for _ in range(30):
        answer(first)
    code, _, err = finish(start(tmp_path / "rows.csv", *WORDS, "--save", out))
    assert code == 6
    assert f"m.mercer' is in use by process {first.pid} on " in err
    assert err.count("\n") == 1
    send(first, *lines[31:])
    assert finish(first)[0] == 0
    assert n_rows(out) == len(lines) - 1
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_help_says_how_rows_come(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stream", "--help"]) == 0
    assert "JSON object a line" in " ".join(capsys.readouterr().out.split())
