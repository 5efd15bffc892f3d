"""Writing named columns as CSV, JSON or Parquet: whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.row_writer import CsvWriter, RowWriter, writing_rows
from mercer.data.wording import printable
from mercer.errors import UsageError
from mercer.posterior.atomic import write_atomically

__all__ = ["appending_rows", "check_format", "for_spreadsheet", "records", "write_rows"]

_BLOCK = 10_000  # rows written at a time
_SUFFIXES = (".csv", ".parquet", ".json")
# What a formula begins with, by OWASP's page on CSV injection, also in full width; and a plain
# number, which begins like one and is none.
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", flags=re.ASCII)


def check_format(path: Path | None, *, is_for_spreadsheet: bool = False) -> None:
    """Refuse, before any work, a format that cannot be written, or has no formulas to disarm.

    Raises
    ------
    UsageError
        If the name does not end in .csv, .parquet or .json; in .csv for a spreadsheet.
    ImportError
        If it is .parquet and pyarrow is not installed.
    """
    if path is None:
        return
    name = printable(str(path))
    if path.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"{name}: the name must end in {', '.join(_SUFFIXES)}")
    if is_for_spreadsheet and path.suffix.lower() != ".csv":
        raise UsageError(f"{name}: --for-spreadsheet is for .csv; other formats hold no formulas")
    if path.suffix.lower() == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise ImportError(
                f"{name}: writing Parquet needs pyarrow; pip install mercer[arrow]"
            ) from None


def write_rows(path: Path | None, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns to a file by its suffix, or as CSV to standard output."""
    if path is None:
        for text in _csv(columns):
            if sys.stdout.isatty():  # a label must not steer the terminal
                text = _for_screen(text)
            sys.stdout.write(text)
        return
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        write_atomically(path, (_parquet(columns),))
    elif suffix == ".json":
        write_atomically(path, (json.dumps(records(columns), indent=1).encode(),))
    else:
        write_atomically(path, (text.encode("utf-8", errors="replace") for text in _csv(columns)))


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
def appending_rows(path: Path | None) -> Iterator[RowWriter]:
    """Open a file, or CSV on standard output, to append blocks of rows to.

    Parameters
    ----------
    path : Path or None
        Ends in .csv or .parquet; the file is there when the block has ended well.
    """
    if path is None:
        writer = CsvWriter(_Screen() if sys.stdout.isatty() else sys.stdout)
        yield writer
        writer.close()
    else:
        with writing_rows(path) as file:
            yield file


class _Screen(io.StringIO):
    """Standard output where it is a terminal, which a label must not steer."""

    def write(self, text: str) -> int:
        return sys.stdout.write(_for_screen(text))


def _for_screen(text: str) -> str:
    return "".join(f"{printable(line)}\n" for line in text.splitlines())


def _csv(columns: Mapping[str, NDArray[Any]]) -> Iterator[str]:
    """Write the header and then some rows at a time: text takes more memory than numbers."""
    yield _lines([tuple(columns)])
    n_rows = len(next(iter(columns.values())))
    for begin in range(0, n_rows, _BLOCK):
        parts = [values[begin : begin + _BLOCK].tolist() for values in columns.values()]
        yield _lines(zip(*parts, strict=True))


def _lines(rows: Iterable[tuple[Any, ...]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def records(columns: Mapping[str, NDArray[Any]]) -> list[dict[str, Any]]:
    """Return one dict a row, as JSON can hold it."""
    rows = zip(*(values.tolist() for values in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _parquet(columns: Mapping[str, NDArray[Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: pa.array(values.tolist()) for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())
