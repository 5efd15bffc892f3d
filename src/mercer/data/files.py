"""Files before they are opened: typed errors of reading, words for them, time stamps."""

from __future__ import annotations

import difflib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mercer.errors import DataError, MercerError, StorageError, UsageError

# Words of messages about data: names made printable, places in a file, the nearest name.

LONGEST = 60


def printable(text: str) -> str:
    r"""Escape control and direction characters, which disturb a terminal or break a line.

    Examples
    --------
    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def quoted(text: object) -> str:
    """Put a name, a label or a cell in quotes, printable and not too long."""
    words = str(text)
    return f"'{printable(words if len(words) <= LONGEST else words[: LONGEST - 3] + '...')}'"


def listing(words: Sequence[str], most: int = 12) -> str:
    """Return words joined by commas and "and"; of many, the first ones and how many more.

    Examples
    --------
    >>> listing(["a"]), listing(["a", "b", "c"]), listing(["a", "b", "c"], most=1)
    ('a', 'a, b and c', 'a and 2 more')
    """
    shown = list(words)
    if len(shown) > most:
        shown = [*shown[:most], f"{len(shown) - most} more"]
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def place(file: str, row: int, line: int = 0, column: str | None = None) -> str:
    """Name a place in a file: file, row, line (where there are lines) and column.

    Examples
    --------
    >>> place("pima.csv", 3, 4, "bmi")
    "pima.csv, row 3 (line 4), column 'bmi'"
    """
    words = f"{printable(file)}, row {row}"
    if line:
        words += f" (line {line})"
    if column is not None:
        words += f", column {quoted(column)}"
    return words


def stray_words(cells: Iterable[str], kind: str) -> str:
    """Say that these cells are not what the others of their column are, and what to do about it."""
    words = list(dict.fromkeys(cells))
    first, others = quoted(words[0]), listing(list(map(quoted, words[1:])), most=4)
    nulls = " ".join(f"--null-values {quoted(word)}" for word in words[:5])
    return (
        f"{first} is not {kind} of the column are{f', nor is {others}' if others else ''}; correct "
        f"it, or, if it stands for a missing value, empty it or learn with {nulls}"
    )


def nearest(name: str, names: Iterable[str]) -> str:
    """Say which of the names is nearest: "; did you mean 'bmi'?", or nothing."""
    by_lower = {other.lower(): other for other in names}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"; did you mean {quoted(by_lower[found[0]])}?" if found else ""


#: What messages call the table that is piped in.
STANDARD_INPUT = "standard input"


@contextmanager
def spooled_input() -> Iterator[Path]:
    """Copy standard input to a temporary file, which can be read as often as needed."""
    if sys.stdin is None or sys.stdin.closed:
        raise StorageError("standard input is closed; pipe a table into it, or name a file")
    if sys.stdin.isatty():
        raise UsageError("standard input is a terminal; pipe a table into it: mercer ... - < FILE")
    with tempfile.TemporaryDirectory(prefix="mercer-") as folder:
        path = Path(folder) / "input"
        with reading(Path(STANDARD_INPUT)), open(path, "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield path


#: The largest table that is read whole: 4 GiB as float64.
MAX_CELLS = 2**29


def check_path(path: Path) -> bool:
    """Say whether a path is a folder; refuse what is neither a folder nor a regular file.

    Nothing is opened, so that a named pipe cannot make the caller wait.
    """
    name = printable(str(path))
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if os.path.islink(path):
            raise StorageError(f"{name}: the link leads to nothing; correct the link") from None
        scheme, slash, rest = name.partition(":/")
        if slash and len(scheme) > 1:  # of one letter: a drive
            raise StorageError(
                f"{scheme}://{rest}: an address is not read; save the table to a file, or pipe it "
                "in: curl -L ADDRESS | mercer ... -"
            ) from None
        others = os.listdir(path.parent) if path.parent.is_dir() else []
        hint = nearest(path.name, [each for each in others if not each.startswith(".")])
        raise StorageError(f"{name}: there is no such file or folder{hint}") from None
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
    """Turn the operating system's errors while reading, and an early end, into typed ones."""
    name = printable(str(path))
    try:
        yield
    except MercerError:
        raise
    except EOFError:
        raise DataError(f"{name}: ends in the middle; fetch or write the file again") from None
    except OSError as error:
        raise StorageError(f"{name}: cannot be read ({_reason(error)})") from None


def first_bytes(path: Path) -> bytes:
    """Read the bytes that say what a file is."""
    with reading(path), open(path, "rb") as stream:
        return stream.read(16)


def check_size(path: Path, n_rows: int, n_columns: int) -> None:
    """Refuse a table of more than `MAX_CELLS` cells, before memory is taken for it."""
    n_cells = n_rows * n_columns
    if n_cells > MAX_CELLS:
        raise DataError(
            f"{printable(str(path))}: {n_rows} rows and more of {n_columns} columns take over "
            f"{n_cells * 8 / 2**30:.1f} GiB; fit on fewer rows or columns"
        )


def _reason(error: Exception) -> str:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return printable(reason.lower())


# What a file looked like when it was opened, to notice that it changed since.


@dataclass(frozen=True)
class Stamp:
    """Size and time of a file."""

    name: str  # as the user named it
    path: str  # absolute: processes in other folders find it too
    size: int  # in bytes
    mtime: int  # time of the last change of the contents, in nanoseconds

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Stamp:
        """Look at a file."""
        with reading(Path(path)):
            status = os.stat(path)
        name = os.fspath(path)
        return cls(name, os.path.abspath(path), status.st_size, status.st_mtime_ns)

    def check(self) -> None:
        """Refuse a file that is gone, or whose size or time is not what it was."""
        now = Stamp.of(self.path)
        if (now.size, now.mtime) != (self.size, self.mtime):
            raise changed(self.name)


def changed(name: str) -> DataError:
    """Make the error for a file, or an array, whose contents changed."""
    return DataError(
        f"{printable(name)}: changed while it was being read; start again, and leave it alone "
        "until the end"
    )
