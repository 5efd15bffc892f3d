"""Looking at a file before it is opened, and the typed errors of reading it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mercer.data.wording import printable
from mercer.errors import DataError, MercerError, StorageError

__all__ = ["MAX_CELLS", "check_path", "check_size", "reading"]

#: The largest table that is read whole: 4 GiB as float64.
MAX_CELLS = 2**29


def check_path(path: Path) -> bool:
    """Say whether a path is a folder; refuse what is neither a folder nor a regular file.

    Nothing is opened, so that a named pipe cannot make the caller wait.

    Raises
    ------
    StorageError
        Missing, a dangling link, no permission, or a pipe, socket or device.
    """
    name = printable(str(path))
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if os.path.islink(path):
            raise StorageError(f"{name}: the link leads to nothing; correct the link") from None
        raise StorageError(f"{name}: there is no such file or folder") from None
    except (OSError, ValueError) as error:
        raise StorageError(f"{name}: cannot be read ({_reason(error)})") from None
    if stat.S_ISDIR(mode):
        return True
    if not stat.S_ISREG(mode):
        kind = "a named pipe" if stat.S_ISFIFO(mode) else "a device or socket"
        raise StorageError(f"{name}: is {kind}; save the data to a file first")
    return False


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn the operating system's errors while reading into one-line typed ones.

    Raises
    ------
    StorageError
        The file cannot be read.
    DataError
        Its contents end early.
    """
    name = printable(str(path))
    try:
        yield
    except MercerError:
        raise
    except EOFError:
        raise DataError(f"{name}: ends in the middle; fetch or write the file again") from None
    except OSError as error:
        raise StorageError(f"{name}: cannot be read ({_reason(error)})") from None


def check_size(path: Path, n_rows: int, n_columns: int) -> None:
    """Refuse a table that is too large to be held whole, before memory is taken for it.

    Raises
    ------
    DataError
        The table has more than `MAX_CELLS` cells; the estimate of its size is given.
    """
    n_cells = n_rows * n_columns
    if n_cells > MAX_CELLS:
        raise DataError(
            f"{printable(str(path))}: {n_rows} rows and more of {n_columns} columns take over "
            f"{n_cells * 8 / 2**30:.1f} GiB; fit on fewer rows or columns"
        )


def _reason(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return printable(reason.lower())
