"""Reading a table from a file, from a folder of files, or by the name of a known data set."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.arrow import as_column, decoding, is_arrow, read_arrow, read_batches
from mercer.data.csv_reader import ZIP, read_blocks, read_csv
from mercer.data.encoding import as_levels
from mercer.data.files import (
    STANDARD_INPUT,
    check_path,
    check_size,
    first_bytes,
    printable,
    quoted,
    reading,
    spooled_input,
)
from mercer.data.frame import (
    MISSING,
    Column,
    ColumnBuilder,
    Frame,
    Origin,
    joined_order,
    null_words,
    refuse_other_columns,
)
from mercer.data.named import is_named, load_named, named_hint
from mercer.data.source import no_rows
from mercer.errors import DataError, StorageError

TEXT_SUFFIXES = tuple(
    kind + packed
    for kind in (".csv", ".tsv", ".jsonl", ".ndjson")
    for packed in ("", ".gz", ".zst")
)
ARROW_SUFFIXES = (".parquet", ".arrow", ".feather")
#: First bytes of what people have instead of a table, and what it is.
FOREIGN = {
    ZIP: "a spreadsheet or zip archive",
    b"\xd0\xcf\x11\xe0": "an old or protected spreadsheet",
    b"SQLite format 3": "a database",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
    b"MERCER01": "a model of mercer",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"%PDF": "a PDF document",
    b"<!DOCTYPE": "a web page",
    b"<html": "a web page",
    b"\x80\x04\x95": "a pickle of Python",
    b"\x80\x05\x95": "a pickle of Python",
}


def read_frame(
    path_or_name: str | os.PathLike[str],
    *,
    as_text: Collection[str] = (),
    as_written: Collection[str] = (),
    target: str | None = None,
    encoding: str | None = None,
    null_values: Iterable[str] | None = None,
) -> Frame:
    """Read a table.

    Parameters
    ----------
    path_or_name : str or path
        A CSV file or JSON lines (both also packed, .gz or .zst), a Parquet or Arrow file, a
        spreadsheet ("book.xlsx", its first visible sheet, or "book.xlsx:Sheet"), a folder of CSV
        or of Parquet or Arrow files, the name of a known data set, or "-", standard input. What a
        file is, its first bytes say. A path that exists goes before a name.
    as_text : collection of str
        Columns whose cells are kept as text whatever they look like, such as identifiers ("007").
    as_written : collection of str
        Columns whose cells are kept as text where the file is text, because a model knows how
        their numbers or dates are written.
    target : str, optional
        The column that may be classes: where the file is text it is text if a whole number in it
        has leading zeros ("01"), as codes have.
    encoding : str, optional
        Of text files without a byte-order mark, such as "latin-1"; UTF-8 by default.
    null_values : iterable of str, optional
        What stands for a missing value in files of text, beside an empty cell; by default the words
        NA, N/A, n/a, NaN, nan, NULL, null, ? and None.

    Returns
    -------
    Frame
        With at least one row.

    Raises
    ------
    DataError
        It is not a table that can be used; says file, row, column and remedy.
    StorageError
        It cannot be read.
    ImportError
        A Parquet or Arrow file, and pyarrow is not installed; a spreadsheet, and openpyxl is not;
        a file packed by zstd, and backports.zstd is not (Python 3.14 has it).

    Examples
    --------
    >>> frame = read_frame("iris")
    >>> frame.n_rows, frame.names[-1]
    (150, 'target')
    """
    name = os.fspath(path_or_name)
    read = functools.partial(
        _read_file,
        as_text=frozenset(as_text),
        as_written=frozenset(as_written),
        target=target,
        encoding=encoding,
        null_values=null_words(null_values),
    )
    if name == "-":
        with spooled_input() as copy:
            return _refuse_empty(read(copy, name=STANDARD_INPUT))
    path, sheet = split_sheet(name)
    if not os.path.lexists(path) and os.sep not in name:
        if is_named(name):
            return load_named(name)
        if not path.suffix:
            raise StorageError(
                f"{printable(name)}: there is no such file, folder or data set{named_hint(name)}"
            )
    if check_path(path):
        return _refuse_empty(_read_folder(path, read))
    return _refuse_empty(read(path, sheet=sheet))


def split_sheet(name: str) -> tuple[Path, str | None]:
    """Split "book.xlsx:Sheet" into the file and the sheet; None where no sheet is named."""
    file, mark, sheet = name.rpartition(":")
    is_sheet = mark and file.lower().endswith((".xlsx", ".xlsm")) and not os.path.lexists(name)
    return (Path(file), sheet) if is_sheet else (Path(name), None)


def _refuse_empty(frame: Frame) -> Frame:
    if frame.n_rows == 0:
        raise no_rows(frame.source)
    return frame


def _read_file(
    path: Path,
    *,
    as_text: frozenset[str],
    as_written: frozenset[str],
    name: str | None = None,
    **how: Any,
) -> Frame:
    start = first_bytes(path)
    if is_arrow(start):
        return read_arrow(path, as_text=as_text, name=name)
    if not start.startswith(ZIP):
        refuse_foreign(Path(name or path), start)
    return read_csv(path, as_text=as_text | as_written, name=name, **how)


def refuse_foreign(path: Path, start: bytes) -> None:
    """Refuse a file whose first bytes are those of something else than a table, and say of what."""
    for mark, kind in FOREIGN.items():
        if start.upper().startswith(mark.upper()):
            raise DataError(f"{printable(str(path))}: is {kind}; save the table as CSV or Parquet")


def list_folder(folder: Path) -> list[Path]:
    """List the files of a folder that are parts of its table, in the order of their names.

    Refused are a folder without any, one with both text files and Parquet or Arrow files, and one
    with a part that is no regular file.
    """
    with reading(folder):
        names = sorted(entry.name for entry in os.scandir(folder))
    seen = [name for name in names if not name.startswith(".")]
    texts = [name for name in seen if name.lower().endswith(TEXT_SUFFIXES)]
    arrows = [name for name in seen if name.lower().endswith(ARROW_SUFFIXES)]
    where = printable(str(folder))
    if texts and arrows:
        raise DataError(
            f"{where}: holds both {quoted(texts[0])} and {quoted(arrows[0])}; keep one kind"
        )
    if not texts and not arrows:
        raise StorageError(f"{where}: a folder without a CSV, JSON lines, Parquet or Arrow file")
    paths = [folder / name for name in texts or arrows]
    for path in paths:
        if check_path(path):
            raise StorageError(f"{printable(str(path))}: is a folder, not a file")
    return paths


def _read_folder(folder: Path, read: functools.partial[Frame]) -> Frame:
    """Read the files of a folder as one table."""
    paths = list_folder(folder)
    parts = list(map(read, paths))
    if mixed := _mixed_columns(parts):
        parts = [read(path, as_text=read.keywords["as_text"] | mixed) for path in paths]
    check_size(folder, sum(part.n_rows for part in parts), len(parts[0].columns))
    return _join(str(folder), parts)


def _mixed_columns(parts: list[Frame]) -> frozenset[str]:
    """Check that all parts have the same columns; name those whose kind differs."""
    first = parts[0]
    kinds: dict[str, set[str]] = {name: set() for name in first.names}
    for part in parts:
        refuse_other_columns(first.source, first.names, part.source, part.names)
        for column in part.columns:
            if not column.is_missing.all():
                kinds[column.name].add(column.kind)
    return frozenset(name for name, found in kinds.items() if len(found) > 1)


def _join(source: str, parts: list[Frame]) -> Frame:
    columns = tuple(_join_column([part.column(name) for part in parts]) for name in parts[0].names)
    origins = [part.origin for part in parts]
    files = tuple(origin.files[0] for origin in origins)
    origin = Origin(
        files,
        np.repeat(np.arange(len(parts), dtype=np.int32), [part.n_rows for part in parts]),
        np.concatenate([origin.row for origin in origins]),
        np.concatenate([origin.line for origin in origins]),
    )
    return Frame(columns, source, origin)


def _join_column(parts: list[Column]) -> Column:
    """Join the parts of a column; one without any value takes the kind of the others."""
    kind = next((part.kind for part in parts if not part.is_missing.all()), parts[0].kind)
    missing = np.nan if kind in ("number", "boolean") else None
    dtype = np.dtype(np.float64 if missing is not None else object)
    values = [
        np.full(len(part.values), missing, dtype=dtype) if part.is_missing.all() else part.values
        for part in parts
    ]
    joined = np.concatenate(values).astype(dtype, copy=False)
    written = frozenset[str]().union(*(part.written for part in parts))
    nulls = frozenset[str]().union(*(part.null_words for part in parts))
    orders = {part.order for part in parts if not part.is_missing.all()}
    return Column(parts[0].name, joined, kind, written, joined_order(orders), nulls)


# The cells of one column of files as text, block by block, as a table that is read whole has them.
#
# Sources of rows hold numbers only: names of rows, and labels that are words, come from here.

#: Cells of a Parquet file that are decoded at once.
_BATCH = 2**13


def read_texts(
    paths: Sequence[Path], column: str, rows_per_block: int, null_values: frozenset[str] = MISSING
) -> Iterator[NDArray[np.object_]]:
    """Read one column of CSV (also gzipped) or Parquet files in blocks, one file after the other.

    Texts are as they stand, such as "007"; None where the cell is missing.
    """
    pieces = (_pieces(path, column, null_values) for path in paths)
    cells = chain.from_iterable(chain.from_iterable(pieces))
    while taken := list(islice(cells, rows_per_block)):
        block = np.empty(len(taken), dtype=object)
        block[:] = taken
        yield block


def _pieces(path: Path, column: str, null_values: frozenset[str]) -> Iterator[NDArray[Any]]:
    """Yield the cells of one file in pieces of any length."""
    is_parquet = is_arrow(first_bytes(path))
    for _, columns in (
        parquet_blocks(path, [column], as_text=[column])
        if is_parquet
        else csv_blocks(path, [column], null_values)
    ):
        yield as_levels(columns[column])


Block = tuple[NDArray[np.int64], dict[str, Column]]  # lines of rows (0: has none), and columns


def csv_blocks(path: Path, names: Sequence[str], null_values: frozenset[str]) -> Iterator[Block]:
    """Yield some columns of a text file as text."""
    for block in read_blocks(path, is_bounded=False):
        if not block.lines:
            continue
        columns = {}
        for name in names:
            builder = ColumnBuilder(name, is_text=True, null_values=null_values)
            builder.add(block.columns[block.names.index(name)])
            columns[name] = builder.finish()
        yield np.array(block.lines, dtype=np.int64), columns


def parquet_blocks(
    path: Path,
    names: Sequence[str],
    start: int = 0,
    stop: int | None = None,
    *,
    as_text: Collection[str],
) -> Iterator[Block]:
    """Yield some columns of some rows of a Parquet file, as what they are or as text."""
    import pyarrow as pa

    with decoding(path):
        for batch in read_batches(path, names, _BATCH, start, stop):
            table = pa.Table.from_batches([batch])
            columns = {
                name: as_column(name, table[name], is_text=name in as_text) for name in names
            }
            yield np.zeros(batch.num_rows, dtype=np.int64), columns
