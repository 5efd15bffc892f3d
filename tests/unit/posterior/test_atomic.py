"""A file is the old one or the new one, whole, whatever fails."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mercer.atomic import STALE_SECONDS
from mercer.errors import StorageError
from mercer.posterior.container import write_atomically

OLD, NEW = b"old content", (b"new ", b"content")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "model.mercer"
    path.write_bytes(OLD)
    return path


def failing(*at_calls: int, wrapped: Callable[..., Any], error: OSError) -> Callable[..., Any]:
    """Return a function that raises at these calls (counted from 1), else does its work."""
    calls = 0

    def function(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls in at_calls:
            raise error
        return wrapped(*arguments, **options)

    return function


def test_replaces_and_leaves_nothing_else(target: Path) -> None:
    write_atomically(target, NEW)
    assert target.read_bytes() == b"new content"
    assert os.listdir(target.parent) == ["model.mercer"]


@pytest.mark.parametrize("name", ["replace", "fsync", "chmod"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_failing_call_leaves_the_old_file(
    target: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int
) -> None:
    error = OSError(code, os.strerror(code))
    monkeypatch.setattr(os, name, failing(1, wrapped=getattr(os, name), error=error))
    with pytest.raises(StorageError, match=os.strerror(code)) as caught:
        write_atomically(target, NEW)
    assert "model.mercer" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert target.read_bytes() == OLD
    assert os.listdir(target.parent) == ["model.mercer"]


def test_a_failing_fsync_of_the_folder_leaves_the_new_file_whole(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError(errno.EIO, "EIO")
    monkeypatch.setattr(os, "fsync", failing(2, wrapped=os.fsync, error=error))
    with pytest.raises(StorageError):
        write_atomically(target, NEW)
    assert target.read_bytes() == b"new content"
    assert os.listdir(target.parent) == ["model.mercer"]


def test_a_file_system_without_fsync_of_folders(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError(errno.EINVAL, "EINVAL")
    monkeypatch.setattr(os, "fsync", failing(2, wrapped=os.fsync, error=error))
    write_atomically(target, NEW)
    assert target.read_bytes() == b"new content"


@pytest.mark.parametrize("kind", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_write_that_stops_half_way(target: Path, kind: BaseException) -> None:
    def parts() -> Any:
        yield b"half"
        raise kind

    expected = StorageError if isinstance(kind, OSError) else KeyboardInterrupt
    with pytest.raises(expected):
        write_atomically(target, parts())
    assert target.read_bytes() == OLD
    assert os.listdir(target.parent) == ["model.mercer"]


def test_the_order_of_the_steps(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    fsync, replace = os.fsync, os.replace

    def logged_fsync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        size = os.fstat(descriptor).st_size
        log.append("fsync folder" if is_folder else f"fsync file of {size}")
        fsync(descriptor)

    def logged_replace(source: Any, destination: Any) -> None:
        assert Path(source).parent == Path(destination).parent
        log.append("replace")
        replace(source, destination)

    monkeypatch.setattr(os, "fsync", logged_fsync)
    monkeypatch.setattr(os, "replace", logged_replace)
    write_atomically(target, NEW)
    assert log == ["fsync file of 11", "replace", "fsync folder"]


def test_a_failing_clean_up_does_not_hide_the_reason(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError(errno.EROFS, "read-only now")
    monkeypatch.setattr(os, "replace", failing(1, wrapped=os.replace, error=error))
    monkeypatch.setattr(os, "unlink", failing(1, wrapped=os.unlink, error=OSError("other")))
    with pytest.raises(StorageError, match="read-only now"):
        write_atomically(target, NEW)
    assert target.read_bytes() == OLD


def test_permissions(tmp_path: Path) -> None:
    path = tmp_path / "model.mercer"
    mask = os.umask(0o027)
    try:
        write_atomically(path, NEW)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        write_atomically(path, NEW)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(mask)


def test_a_link_is_followed(target: Path) -> None:
    link = target.parent / "latest"
    link.symlink_to(target.name)
    write_atomically(link, NEW)
    assert link.is_symlink()
    assert target.read_bytes() == b"new content"


def test_a_long_name(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_atomically(path, NEW)
    assert path.read_bytes() == b"new content"


@pytest.mark.parametrize("kind", ["folder", "fifo", "device"])
def test_only_regular_files_are_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "thing"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    with pytest.raises(StorageError, match="not a regular file"):
        write_atomically(path, NEW)
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("name", ["missing/model.mercer", "a\0b", "n" * 300])
def test_impossible_paths(tmp_path: Path, name: str) -> None:
    with pytest.raises(StorageError):
        write_atomically(tmp_path / name, NEW)
    assert os.listdir(tmp_path) == []


def test_control_characters_are_escaped(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        write_atomically(tmp_path / "missing" / "a\x1b[2J\n", NEW)
    assert str(caught.value).isprintable()


def test_stale_temporary_files_are_removed_and_recent_ones_left(target: Path) -> None:
    stale, recent = (target.parent / f".mercer-{name}.tmp" for name in ("stale", "recent"))
    for path in (stale, recent):
        path.write_bytes(b"half")
    long_ago = time.time() - STALE_SECONDS - 10
    os.utime(stale, (long_ago, long_ago))
    write_atomically(target, NEW)
    assert not stale.exists()
    assert recent.exists()
