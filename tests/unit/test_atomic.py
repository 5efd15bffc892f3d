"""What `tests/unit/posterior/test_atomic.py` does not show of a file that is replaced."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mercer import atomic
from mercer.atomic import locked, replacing
from mercer.errors import DataError, StorageError


def test_what_is_written_may_be_written_over(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"0 rows and the rows")
        file.seek(0)
        file.write(b"9")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"9 rows and the rows"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError("wrong"), DataError("wrong"), KeyboardInterrupt()])
def test_errors_of_the_block_pass_as_they_are(tmp_path: Path, error: BaseException) -> None:
    def write() -> None:
        with replacing(tmp_path / "file") as file:
            file.write(b"half")
            raise error

    with pytest.raises(type(error)) as caught:
        write()
    assert caught.value is error
    assert os.listdir(tmp_path) == []


_OWN = """
import sys, time
from mercer.atomic import locked
with locked(sys.argv[1]):
    print("locked", flush=True)
    time.sleep(60)
"""


@contextmanager
def _owner(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that locks a path, and kill it at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", _OWN, str(path)], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "locked\n"
        yield owner
        owner.kill()


def _lock(path: Path, patience: float = 0.1) -> None:
    with locked(path, patience=patience):
        pass


def _is_refused(path: Path, owner: int) -> bool:
    with pytest.raises(StorageError, match=f"in use by process {owner} on "):
        _lock(path)
    return True


@pytest.mark.parametrize("name", ["", "model.mercer"])
def test_r5_a_second_process_is_refused_and_told_by_whom(tmp_path: Path, name: str) -> None:
    """A folder, or a file that is not there yet; and nothing is left of a lock once it is over."""
    path = tmp_path / name
    with _owner(path) as owner:
        assert _is_refused(path, owner.pid)
    assert len(os.listdir(tmp_path)) == 1  # of the owner that was killed: it locks nothing
    _lock(path)
    assert os.listdir(tmp_path) == []


def test_r5_an_owner_that_is_about_to_end_is_waited_for(tmp_path: Path) -> None:
    with _owner(tmp_path) as owner:
        threading.Timer(0.3, owner.kill).start()
        _lock(tmp_path, patience=20.0)
        assert owner.wait() == -signal.SIGKILL


def test_r5_in_one_process_too(tmp_path: Path) -> None:
    with locked(tmp_path):
        assert _is_refused(tmp_path, os.getpid())
    _lock(tmp_path)


def test_r5_without_locks_the_process_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    with _owner(tmp_path) as owner:
        monkeypatch.setattr(atomic.fcntl, "flock", refuse)
        assert _is_refused(tmp_path, owner.pid)
    _lock(tmp_path)


def test_r5_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot lock .*missing"):
        _lock(tmp_path / "missing" / "model.mercer")
