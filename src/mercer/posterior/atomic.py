"""Writing a file whole or not at all.

A temporary file in the same folder, fsync, rename, fsync of the folder: whatever interrupts this, a
reader finds the old file or the new one. Temporary files that a killed process left in the folder
are removed by the next write after an hour.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterable
from pathlib import Path

from mercer.errors import StorageError

__all__ = ["write_atomically"]

PREFIX, SUFFIX = ".mercer-", ".tmp"
STALE_SECONDS = 3600.0  # a temporary file untouched for so long has no living writer


def write_atomically(path: str | os.PathLike[str], parts: Iterable[bytes]) -> None:
    """Put bytes into a file, or leave the old one as it is.

    Parameters
    ----------
    path : str or path
        The file; a symbolic link is followed, the permissions of an existing file are kept.
    parts : iterable of bytes
        Written one after the other.

    Raises
    ------
    StorageError
        When the file cannot be written, or `path` is something other than a regular file. The
        temporary file is gone then. If only the last step fails (fsync of the folder), the new
        file is in place, but may not survive a power failure.
    """
    try:
        target = Path(os.path.realpath(path))
        mode = _existing_mode(target)
        _remove_stale(target.parent)
        temporary = target.with_name(f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}")
        try:
            with open(temporary, "xb") as file:
                for part in parts:
                    file.write(part)
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
    except StorageError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise StorageError(f"cannot write {os.fspath(path)!r}: {reason}") from error


def _existing_mode(target: Path) -> int | None:
    """Return the permissions of the file that is to be replaced; None if there is none."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise StorageError(f"cannot write {os.fspath(target)!r}: it is not a regular file")
    return stat.S_IMODE(status.st_mode)


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
