"""Reading text tables (CSV, also with semicolons or tabs, also gzipped) with exact row numbers."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mercer.data.files import check_size, place, printable, quoted, reading
from mercer.data.frame import INDEX_COLUMNS, Column, ColumnBuilder, Frame, Origin, parse_number
from mercer.errors import DataError

#: Longest line, and longest text after unpacking, in characters.
MAX_LINE = 2**24
MAX_TEXT = 2**33
#: Cells that are held as text before they are turned into numbers.
BLOCK_CELLS = 2**17
DELIMITERS = ",;\t"


def read_csv(path: Path, *, as_text: frozenset[str] = frozenset()) -> Frame:
    """Read a table with a header line from a text file, gzipped or not; it may have no rows.

    UTF-8 or, with a byte-order mark, UTF-16; separated by commas, semicolons (then a comma may be
    the decimal point) or tabs, whichever splits the header into the most names. Blank lines are
    skipped. Columns in `as_text` are text whatever they look like, such as identifiers.
    """
    held: frozenset[str] = frozenset()
    while True:
        columns, origin, broken = _read_once(path, as_text, held)
        if not broken:
            return Frame(columns, str(path), origin)
        held |= broken


def _read_once(
    path: Path, as_text: frozenset[str], held: frozenset[str]
) -> tuple[tuple[Column, ...], Origin, frozenset[str]]:
    builders: list[ColumnBuilder] = []
    line_numbers: list[int] = []
    for block in read_blocks(path):
        if not builders:
            builders = [
                ColumnBuilder(
                    name,
                    is_text=name in as_text,
                    is_held=name in held,
                    has_decimal_comma=block.has_decimal_comma,
                )
                for name in block.names
            ]
        line_numbers.extend(block.lines)
        for builder, cells in zip(builders, block.columns, strict=True):
            builder.add(cells)
        check_size(path, len(line_numbers), len(builders))
    broken = frozenset(builder.name for builder in builders if builder.is_broken)
    origin = Origin.of_file(str(path), np.array(line_numbers, dtype=np.int64))
    return tuple(builder.finish() for builder in builders), origin, broken


@dataclass(frozen=True)
class CsvBlock:
    """Some rows of a text table."""

    names: tuple[str, ...]
    has_decimal_comma: bool  # numbers may be written with a comma for the decimal point
    lines: list[int]  # the line on which each row starts
    columns: list[tuple[str, ...]]  # the cells, column by column
    position: int  # bytes of the file, as it is on disk, that were read so far


def read_blocks(path: Path, *, is_bounded: bool = True) -> Iterator[CsvBlock]:
    """Read a text table in blocks of about `BLOCK_CELLS` cells, as `read_csv` reads it whole.

    The last block has no rows. `is_bounded` refuses more than `MAX_TEXT` characters after
    unpacking.
    """
    with reading(path), _open(path) as stream:
        records = _records(path, _lines(path, stream, MAX_TEXT if is_bounded else math.inf))
        line, header, delimiter = next(records, (1, [], ","))
        names = tuple(check_header(str(path), line, header))
        n_rows = 0
        while True:
            lines: list[int] = []
            rows: list[list[str]] = []
            for line, cells, _ in islice(records, max(1, BLOCK_CELLS // len(names))):
                n_rows += 1
                if len(cells) != len(names):
                    raise DataError(
                        f"{place(str(path), n_rows, line)}: has {len(cells)} cells, "
                        f"but the header has {len(names)}; correct the row"
                    )
                lines.append(line)
                rows.append(cells)
            columns = list(zip(*rows, strict=True)) or [()] * len(names)
            packed: Any = stream.buffer
            position = getattr(packed, "fileobj", packed).tell()
            yield CsvBlock(names, delimiter == ";", lines, columns, position)
            if not rows:
                return


@contextmanager
def _open(path: Path) -> Iterator[io.TextIOWrapper]:
    """Open as text; bytes that are not UTF-8 become surrogates, which `_lines` finds."""
    with open(path, "rb") as raw:
        stream: io.BufferedReader | gzip.GzipFile = raw
        if raw.peek(2)[:2] == b"\x1f\x8b":
            stream = gzip.GzipFile(fileobj=raw)
        try:
            start = stream.peek(4)[:4]
        except (gzip.BadGzipFile, zlib.error) as error:
            _damaged(path, error)
        if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            text = io.TextIOWrapper(stream, encoding="utf-16", newline="")
        else:
            text = io.TextIOWrapper(
                stream, encoding="utf-8-sig", errors="surrogateescape", newline=""
            )
        with text:
            yield text


def _lines(path: Path, stream: io.TextIOWrapper, max_text: float) -> Iterator[str]:
    """Yield the lines one by one, within the limits, all of them text."""
    name = printable(str(path))
    n_characters = 0
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(MAX_LINE)
        except UnicodeDecodeError:
            raise DataError(f"{name}, line {number}: damaged UTF-16 text") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            _damaged(path, error)
        if not line:
            return
        n_characters += len(line)
        if len(line) == MAX_LINE:
            raise DataError(f"{name}, line {number}: longer than {MAX_LINE} characters; is it CSV?")
        if n_characters > max_text:
            raise DataError(
                f"{name}, line {number}: more than {max_text} characters (unpacked); split the file"
            )
        if "\0" in line:
            raise DataError(
                f"{name}, line {number}: holds a NUL byte, so it is no text; save it as UTF-8 CSV"
            )
        if not line.isascii() and any("\udc80" <= letter <= "\udcff" for letter in line):
            raise DataError(f"{name}, line {number}: not UTF-8 text; save the file as UTF-8")
        yield line


def _records(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str], str]]:
    """Yield the line on which a record starts, its cells, and the delimiter of the file."""
    skipped: list[str] = []
    for line in lines:
        skipped.append(line)
        if line.strip():
            break
    if not skipped:
        return
    delimiter = max(DELIMITERS, key=lambda mark: _n_cells(skipped[-1], mark))
    reader = csv.reader(chain(skipped, lines), delimiter=delimiter, strict=True)
    start = 1
    try:
        for cells in reader:
            if cells and (len(cells) > 1 or cells[0].strip()):
                yield start, cells, delimiter
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{printable(str(path))}, line {start}: {error}; look for a quotation mark that is "
            "not closed, or for cells that something other than a comma, a semicolon or a tab "
            "separates"
        ) from None


def _n_cells(header: str, delimiter: str) -> int:
    """Count the cells that a delimiter makes of a header; 0 where one of them is too long."""
    try:
        return len(next(csv.reader([header], delimiter=delimiter)))
    except csv.Error:
        return 0


def check_header(source: str, line: int, header: Sequence[str]) -> list[str]:
    """Strip the names of the columns; refuse an empty header, an empty name, or numbers only.

    A first column without a name holds the names of rows, as pandas writes them, and is called as
    pandas calls it.
    """
    file = printable(source)
    names = [name.strip() for name in header]
    if not names:
        raise DataError(
            f"{file}: the file is empty, found 0 sample(s); a header line and rows are needed"
        )
    if all(parse_number(name) is not None for name in names) and not all(
        name.isdecimal() for name in names
    ):
        raise DataError(
            f"{file}, line {line}: holds numbers ({quoted(names[0])}, ...); write a header line "
            "with the names of the columns above it"
        )
    if not names[0] and any(names):
        names[0] = INDEX_COLUMNS[0]
    for position, name in enumerate(names, start=1):
        if not name:
            raise DataError(
                f"{file}, line {line}: column {position} has no name; name it in the header, or "
                "remove the column"
            )
    return names


def _damaged(path: Path, error: Exception) -> NoReturn:
    raise DataError(
        f"{printable(str(path))}: damaged gzip file ({printable(str(error))}); fetch it again"
    ) from None
