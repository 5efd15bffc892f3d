"""Replacing a file whole or not at all.

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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from mercer.errors import MercerError, StorageError

__all__ = ["STALE_SECONDS", "replacing"]

PREFIX, SUFFIX = ".mercer-", ".tmp"
STALE_SECONDS = 3600.0  # a temporary file untouched for so long has no living writer


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
