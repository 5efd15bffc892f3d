"""Replacing a file whole or not at all, and locking what two processes must not write at once.

A temporary file in the same folder, fsync, rename, fsync of the folder: whatever interrupts this, a
reader finds the old file or the new one. Temporary files that a killed process left in the folder
are removed by the next write after an hour.

A lock is the operating system's (`flock`), on a small hidden file that names the owner. The system
drops it when the owner ends, however it ends, so a file that was left behind locks nothing.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mercer.errors import MercerError, StorageError

try:
    import fcntl
except ImportError:  # a system without it: nothing is locked there
    fcntl = None  # type: ignore[assignment]

PREFIX, SUFFIX = ".mercer-", ".tmp"
STALE_SECONDS = 3600.0  # a temporary file untouched for so long has no living writer
_LOCK = ".mercer.lock"
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # of a file system without `flock`


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of another at the end, or leave the old one as it is.

    Parameters
    ----------
    path : str or path
        The file; a symbolic link is followed, the permissions of an existing file are kept.

    Yields
    ------
    binary file
        To write to; it may seek. When the block ends well, it is renamed to `path`.

    Raises
    ------
    StorageError
        When the file cannot be written, or `path` is something other than a regular file. The
        temporary file is gone then. If only the last step fails (fsync of the folder), the new
        file is in place, but may not survive a power failure.
    """
    try:
        target, mode = _find_target(path)
        _remove_stale(target.parent)
        temporary = target.with_name(f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}")
        try:
            with open(temporary, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if mode is not None:
                os.chmod(temporary, mode)
            os.replace(temporary, target)
        except BaseException:  # also Ctrl-C: nothing is left behind
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(target.parent)
    except MercerError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"cannot write {os.fspath(path)!r}: {reason}") from error


def _find_target(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """Follow links; return also the permissions of a file that is to be replaced, or None."""
    try:
        target = Path(os.path.realpath(path))
        status = target.stat()
    except FileNotFoundError:
        return target, None
    except ValueError as error:  # a NUL byte
        raise StorageError(f"cannot write {os.fspath(path)!r}: {error}") from error
    if not stat.S_ISREG(status.st_mode):
        raise StorageError(f"cannot write {os.fspath(target)!r}: it is not a regular file")
    return target, stat.S_IMODE(status.st_mode)


def _sync_folder(folder: Path) -> None:
    """Make a rename durable."""
    if not hasattr(os, "O_DIRECTORY"):  # a system that cannot open folders
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system without this
            raise
    finally:
        os.close(descriptor)


def _remove_stale(folder: Path) -> None:
    """Remove temporary files that a killed process left long ago, where that is possible."""
    with contextlib.suppress(OSError):
        for entry in folder.glob(f"{PREFIX}*{SUFFIX}"):
            if time.time() - entry.lstat().st_mtime > STALE_SECONDS:
                entry.unlink()


@contextmanager
def locked(path: str | os.PathLike[str], *, patience: float = 1.0) -> Iterator[None]:
    """Keep a file or a folder to this block: no other may lock it, here or in another process.

    Parameters
    ----------
    path : str or path
        A folder that exists, or a file that may not exist yet, in one that does.
    patience : float
        Seconds to wait for an owner that is about to end.

    Raises
    ------
    StorageError
        When somebody else has it, with the process and the host that do; or when no lock can be
        written there.

    Notes
    -----
    On a file system without locks the owner's process is looked up; one on another host counts as
    running. Nothing is locked on a system without `fcntl` (Windows).
    """
    if fcntl is None:
        yield
        return
    target = Path(os.path.realpath(path))
    file = target / _LOCK if target.is_dir() else target.with_name(f".{target.name}{_LOCK}")
    try:
        descriptor = _lock(file, os.fspath(path), time.monotonic() + patience)
    except MercerError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"cannot lock {os.fspath(path)!r}: {reason}") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink()
        os.close(descriptor)


def _lock(file: Path, name: str, deadline: float) -> int:
    """Return the descriptor of a lock file that is locked, once nobody else has it."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if _is_taken(descriptor):
                if time.monotonic() > deadline:
                    raise StorageError(
                        f"{name!r} is in use by {_owner_words(descriptor)}; wait until that ends, "
                        "or name another place"
                    )
            elif _is_same_file(file, descriptor):
                content = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, json.dumps(content).encode(), 0)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        time.sleep(0.02)


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return _is_running(_owner(descriptor))
    return False


def _is_same_file(file: Path, descriptor: int) -> bool:
    """Whether the owner before has not removed the file in the meantime."""
    try:
        there, ours = os.stat(file), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _owner(descriptor: int) -> dict[str, object]:
    try:
        content = json.loads(os.pread(descriptor, 1000, 0))
    except ValueError:  # between locking and writing
        return {}
    return content if isinstance(content, dict) else {}


def _owner_words(descriptor: int) -> str:
    owner = _owner(descriptor)
    pid, host, since = (owner.get(key) for key in ("pid", "host", "since"))
    if not (isinstance(pid, int) and isinstance(host, str) and isinstance(since, (int, float))):
        return "another process"
    moment = time.strftime("%Y-%m-%d %H:%M", time.localtime(since))
    return f"process {pid} on {host!a}, since {moment}"


def _is_running(owner: dict[str, object]) -> bool:
    """Whether a process is still there, as far as can be told from here."""
    pid = owner.get("pid")
    if not isinstance(pid, int):
        return False
    if owner.get("host") != socket.gethostname():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
