"""Files that a command will write: looked at before the work, written whole after it.

What would destroy an input, or another output, is refused: whatever the two paths look like, they
are the same file where the file system says so.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import io
import json
import os
import platform
import re
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from mercer.data.arrow import need_pyarrow
from mercer.data.files import printable
from mercer.data.row_writer import CsvWriter, RowWriter, writing_rows
from mercer.data.tables import ARROW_SUFFIXES, TEXT_SUFFIXES, split_sheet
from mercer.errors import StorageError, UsageError
from mercer.posterior.container import write_atomically
from mercer.posterior.evaluation import Provenance

# Writing named columns as CSV, JSON or Parquet: whole or not at all.

_BLOCK = 10_000  # rows of CSV written at a time
_SUFFIXES = (".csv", ".parquet", ".json")
# What a formula begins with, by OWASP's page on CSV injection, also in full width; and a plain
# number, which begins like one and is none.
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", flags=re.ASCII)


def check_format(path: Path | None, *, is_for_spreadsheet: bool = False) -> None:
    """Refuse, before any work, a format that cannot be written, or has no formulas to disarm."""
    if path is None:
        return
    name = printable(str(path))
    if path.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"{name}: the name must end in {', '.join(_SUFFIXES)}")
    if is_for_spreadsheet and path.suffix.lower() != ".csv":
        raise UsageError(f"{name}: --for-spreadsheet is for .csv; other formats hold no formulas")
    if path.suffix.lower() == ".parquet":
        need_pyarrow(path, "writing Parquet")


def write_rows(
    path: Path | None,
    columns: Mapping[str, NDArray[Any]],
    line_end: str = "\n",
    *,
    is_for_spreadsheet: bool = False,
) -> None:
    """Write columns to a file by its suffix, or as CSV to standard output."""
    if is_for_spreadsheet:
        columns = for_spreadsheet(columns)
    if path is not None and path.suffix.lower() == ".json":
        write_atomically(path, (json.dumps(records(columns), indent=1).encode(),))
        return
    n_rows = len(next(iter(columns.values())))
    is_parquet = path is not None and path.suffix.lower() == ".parquet"
    step = max(n_rows, 1) if is_parquet else _BLOCK  # text takes more memory than numbers
    with appending_rows(path, line_end) as writer:
        for begin in range(0, max(n_rows, 1), step):
            writer.append({name: each[begin : begin + step] for name, each in columns.items()})


def for_spreadsheet(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Put an apostrophe before texts that a spreadsheet would run, names of columns included.

    Numbers stay as they are, also those that are written as text.

    Examples
    --------
    >>> found = for_spreadsheet({"@id": np.array(["=1+2", "-5", "b"], dtype=object)})
    >>> {name: values.tolist() for name, values in found.items()}
    {"'@id": ["'=1+2", '-5', 'b']}
    """
    return {
        _disarmed(name): values
        if values.dtype.kind in "biuf"
        else np.array([_disarmed(cell) for cell in values.tolist()], dtype=object)
        for name, values in columns.items()
    }


def _disarmed(cell: Any) -> Any:
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


@contextmanager
def appending_rows(path: Path | None, line_end: str = "\n") -> Iterator[RowWriter]:
    """Open a .csv or .parquet file, or CSV on standard output, to append blocks of rows to.

    The file is there when the block has ended well.
    """
    if path is None:
        writer = CsvWriter(_Screen() if sys.stdout.isatty() else sys.stdout)
        yield writer
        writer.close()
    else:
        with writing_rows(path, line_end) as file:
            yield file


class _Screen(io.StringIO):
    """Standard output where it is a terminal, which a label must not steer."""

    def write(self, text: str) -> int:
        return sys.stdout.write("".join(f"{printable(line)}\n" for line in text.splitlines()))


def records(columns: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Return one dict a row, as JSON can hold it."""
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


#: What a command keeps in ``--checkpoint DIR``.
_OF_CHECKPOINT = ("run.json", "fit", "folds")


@dataclass(frozen=True)
class _Place:
    """One path of a command: the option that names it, and which file or folder that is."""

    option: str
    path: str
    is_written: bool
    is_checkpoint: bool = False

    @property
    def real(self) -> str:
        """The path without symbolic links, also of what does not exist yet."""
        return os.path.normcase(os.path.realpath(self.path))

    @property
    def name(self) -> str:
        is_stream = self.option.startswith("standard")
        return self.option if is_stream else f"{self.option} {printable(self.path)}"


def check_outputs(
    writes: Mapping[str, Path | None],
    reads: Mapping[str, str | os.PathLike[str] | None],
    *,
    checkpoint: Path | None = None,
    html: str = "--report",
) -> None:
    """Refuse, before any work, a file that could not be written or that would destroy another.

    ``writes`` and ``reads`` lead from the option or argument to its file, or None. What is no path
    (the name of a data set) may be among those that are read. ``--load`` and ``--save`` may be the
    same file: it is read whole before it is replaced. "-", standard input, can be read once. The
    option ``html`` is a page.
    """
    piped = [
        option for option, path in reads.items() if path is not None and os.fspath(path) == "-"
    ]
    if len(piped) > 1:
        raise UsageError(
            f"{piped[0]} and {piped[1]} are both standard input, which can be read once; save one "
            "of them to a file"
        )
    places = [_Place(o, os.fspath(path), True) for o, path in writes.items() if path is not None]
    for option, path in reads.items():
        file = None if path is None or path == "-" else split_sheet(os.fspath(path))[0]
        if file is not None and os.path.lexists(file):
            places.append(_Place(option, str(file), False))
    if checkpoint is not None:
        places.append(_Place("--checkpoint", str(checkpoint), True, is_checkpoint=True))
    places += _standard_streams()
    for first, second in combinations(places, 2):
        if first.is_written or second.is_written:
            _refuse_pair(*sorted((first, second), key=lambda place: not place.is_written))
    for option, path in writes.items():
        if path is not None:
            _check_output(path)
            if option == html and path.suffix.lower() not in ("", ".html", ".htm"):
                raise UsageError(f"{option} writes HTML; name a file such as {path.stem}.html")


def _refuse_pair(one: _Place, other: _Place) -> None:
    """Refuse a path that is written where another one, written or read, is or reaches."""
    if _is_same(one.path, other.path) or one.real == other.real:
        if {one.option, other.option} == {"--load", "--save"}:
            return
        raise UsageError(
            f"{one.name} and {other.name} are the same file: writing one would destroy the "
            "other; name another file"
        )
    for inner, outer in ((one, other), (other, one)):
        if outer.is_checkpoint and _is_in_checkpoint(inner.real, outer.real):
            raise UsageError(
                f"{inner.name} lies in {outer.name}, among what is kept there; name another file"
            )
    if not other.is_written and os.path.isdir(other.path) and not one.is_checkpoint:
        _refuse_part(one, other)


def _refuse_part(written: _Place, folder: _Place) -> None:
    """Refuse to write a file of a folder that is read as one table, or one that would join it."""
    for entry in _entries(folder.path):
        if _is_same(written.path, entry):
            raise UsageError(
                f"{written.name} is a file of {folder.name}, and would be destroyed; name another "
                "file"
            )
    is_part = written.real.lower().endswith((*TEXT_SUFFIXES, *ARROW_SUFFIXES))
    if is_part and os.path.dirname(written.real) == folder.real:
        raise UsageError(
            f"{written.name} lies in {folder.name}, and would be read as a part of it next time; "
            "name a file elsewhere"
        )


def _is_in_checkpoint(path: str, folder: str) -> bool:
    """Whether a path is, or lies in, what a command keeps in its checkpoint folder."""
    kept = (os.path.join(folder, name) for name in _OF_CHECKPOINT)
    return any(path == place or path.startswith(place + os.sep) for place in kept)


def _is_same(one: str, other: str) -> bool:
    """Whether two paths lead to one file: also by links of either kind."""
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them is not there yet
        return False


def _entries(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry.path for entry in entries)
    except OSError:  # whoever reads it will say so
        return


def _standard_streams() -> list[_Place]:
    """Standard input and output, where they are files: ``mercer ... < a.csv > b.csv``."""
    places = []
    for number, option in enumerate(("standard input", "standard output")):
        path = f"/dev/fd/{number}"
        try:
            if stat.S_ISREG(os.fstat(number).st_mode) and os.path.exists(path):
                places.append(_Place(option, path, number == 1))
        except OSError:  # closed
            continue
    return places


def _check_output(path: Path) -> None:
    name = printable(str(path))
    folder = Path(os.path.realpath(path)).parent
    if path.exists() and not path.is_file():
        raise StorageError(f"{name}: cannot be written, it is not a regular file")
    if not folder.is_dir():
        raise StorageError(f"{name}: there is no folder {printable(str(folder))}; make it first")
    if not os.access(folder, os.W_OK):
        raise StorageError(f"{name}: no permission to write in {printable(str(folder))}")


# What a model file keeps of its making.

_PACKAGES = ("mercer", "numpy", "scipy", "scikit-learn", "numba")


def typed_words() -> list[str]:
    """Return the command line that is running, without the name of the program."""
    return list(click.get_current_context().find_root().obj or ())


def make_provenance(
    source: str,
    input_names: tuple[str, ...],
    *,
    target: str,
    n_rows: int,
    seed: int,
    seconds: float,
    notes: tuple[str, ...],
) -> Provenance:
    """Put together where a model came from, with the command, the day and the versions."""
    return Provenance(
        source=source,
        target=target,
        n_rows=n_rows,
        n_inputs=len(input_names),
        input_names=input_names,
        notes=notes,
        command=shlex.join(["mercer", *typed_words()]),
        seed=seed,
        seconds=seconds,
        created=datetime.date.today().isoformat(),
        versions=_versions(),
    )


def provenance_json(made: Provenance) -> dict[str, Any]:
    """Return it as JSON can hold it."""
    return {**asdict(made), "versions": dict(made.versions)}


def _versions() -> tuple[tuple[str, str], ...]:
    """Return the versions that the numbers depend on."""
    packages = [(name, importlib.metadata.version(name)) for name in _PACKAGES]
    return (
        packages[0],
        ("python", platform.python_version()),
        *packages[1:],
        ("platform", platform.platform(terse=True) + " " + platform.machine()),
    )
