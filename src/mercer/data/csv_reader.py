"""Reading tables of cells with exact row numbers: CSV, JSON lines, spreadsheets.

CSV may have semicolons, tabs or |, and text may be packed by gzip or zstd. Whatever the file is, a
cell becomes the text that CSV would have there, so that all are understood in the same way.
"""

from __future__ import annotations

import codecs
import csv
import datetime
import gzip
import io
import json
import math
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np

from mercer.data.files import check_size, first_bytes, nearest, place, printable, quoted, reading
from mercer.data.frame import INDEX_COLUMNS, MISSING, ColumnBuilder, Frame, Origin, parse_number
from mercer.errors import INSTALL, DataError, MercerError, UsageError

#: Longest line, and longest text after unpacking, in characters.
MAX_LINE = 2**24
MAX_TEXT = 2**33
#: Cells that are held as text before they are turned into numbers.
BLOCK_CELLS = 2**17
DELIMITERS = ",;\t|"
ZIP = b"PK\x03\x04"  # how a spreadsheet begins
#: First bytes of what gzip and zstd pack.
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")  # a frame of zstd with something else
_OBJECT, _ARRAY = re.compile(r'\{\s*(["}]|$)'), re.compile(r"\[\s*([{\[\]]|$)")
SEPARATOR = re.compile(r'"?sep=([^\w\s"]|\t)"?', re.IGNORECASE)  # a first line for Excel
_SURROGATE = re.compile("[\ud800-\udfff]")
_JSON_NAME = re.compile(r"\.(jsonl|ndjson)(\.gz|\.zst)?$", re.IGNORECASE)


def read_csv(
    path: Path,
    *,
    as_text: frozenset[str] = frozenset(),
    target: str | None = None,
    name: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    null_values: frozenset[str] = MISSING,
) -> Frame:
    """Read a table from CSV, JSON lines or a spreadsheet; it may have no rows.

    CSV and JSON lines are UTF-8, or in the `encoding` that is named, or in what a byte-order mark
    says. CSV has a header line and is separated by commas, semicolons (then a comma may be the
    decimal point), tabs or |, whichever splits the header into the most names. JSON lines are an
    object a row; a key that a row lacks is a missing cell. Of a spreadsheet the first visible
    sheet is read, or the one named. Blank lines are skipped. `as_text` and `target` are those of
    `mercer.data.tables.read_frame`. Messages call the file `name`.
    """
    source, held = name or str(path), frozenset[str]()
    while True:
        builders: list[ColumnBuilder] = []
        line_numbers: list[int] = []
        for block in read_blocks(path, name=name, encoding=encoding, sheet=sheet):
            builders = builders or [
                ColumnBuilder(
                    each, is_text=each in as_text, is_held=each in held,
                    has_decimal_comma=block.has_decimal_comma, is_target=each == target,
                    null_values=null_values,
                )
                for each in block.names
            ]  # fmt: skip
            line_numbers.extend(block.lines)
            for builder, cells in zip(builders, block.columns, strict=True):
                builder.add(cells)
            check_size(Path(source), len(line_numbers), len(builders))
        broken = frozenset(builder.name for builder in builders if builder.is_broken)
        if not broken:
            origin = Origin.of_file(source, np.array(line_numbers, dtype=np.int64))
            return Frame(tuple(builder.finish() for builder in builders), source, origin)
        held |= broken


@dataclass(frozen=True)
class CsvBlock:
    """Some rows of a text table."""

    names: tuple[str, ...]
    has_decimal_comma: bool  # numbers may be written with a comma for the decimal point
    lines: list[int]  # the line on which each row starts
    columns: list[tuple[str, ...]]  # the cells, column by column
    position: int  # bytes of the file, as it is on disk, that were read so far


def read_blocks(
    path: Path,
    *,
    is_bounded: bool = True,
    name: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
) -> Iterator[CsvBlock]:
    """Read a table in blocks of about `BLOCK_CELLS` cells, as `read_csv` reads it whole.

    The last block has no rows. `is_bounded` refuses more than `MAX_TEXT` characters after
    unpacking.
    """
    file = Path(name or path)
    limit = MAX_TEXT if is_bounded else math.inf
    with reading(file), open(path, "rb") as raw, ExitStack() as stack:
        text = _Text(file, raw, encoding, limit, stack)
        is_sheet = raw.peek(4)[:4] == ZIP
        if sheet is not None and not is_sheet:
            raise DataError(f"{printable(str(file))}: is no spreadsheet; leave {quoted(sheet)} out")
        records = _sheet_records(file, raw, sheet) if is_sheet else _text_records(file, text)
        line, header, delimiter = next(records, (1, [], ","))
        names = tuple(check_header(str(file), line, header))
        n_rows = 0
        while True:
            lines: list[int] = []
            rows: list[Sequence[str]] = []
            for line, cells, _ in islice(records, max(1, BLOCK_CELLS // len(names))):
                n_rows += 1
                try:
                    cells = named_cells(cells, len(names))
                except ValueError as error:
                    where = place(str(file), n_rows, line)
                    raise DataError(f"{where}: {error}; correct the row") from None
                lines.append(line)
                rows.append(cells)
            columns = list(zip(*rows, strict=True)) or [()] * len(names)
            yield CsvBlock(names, delimiter == ";", lines, columns, raw.tell())
            if not rows:
                return


#: A row: the line on which it starts, its cells, and the delimiter of the file. The first of a
#: table is its header.
Record = tuple[int, Sequence[str], str]


@dataclass(frozen=True)
class _Text:
    """A file whose lines can be read, from the beginning, as often as needed."""

    file: Path  # as messages call it
    raw: io.BufferedReader
    encoding: str | None
    limit: float  # characters, unpacked
    stack: ExitStack  # closes what was opened, once the table is read

    def lines(self) -> Iterator[str]:
        """Yield the lines one by one, within the limits, all of them text."""
        self.raw.seek(0)
        stream = self.stack.enter_context(_open(self.file, self.raw, self.encoding))
        return _lines(self.file, stream, self.limit)


def _open(file: Path, raw: io.BufferedReader, encoding: str | None) -> io.TextIOWrapper:
    """Open as text; bytes that do not belong there become surrogates, which `_lines` finds."""
    stream = unpacked(file, raw)
    try:
        start = stream.peek(4)[:4]
    except Exception as error:
        refuse_damaged(file, error)
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return io.TextIOWrapper(stream, encoding="utf-16", newline="")
    if encoding is None or start[:3] == codecs.BOM_UTF8:
        return io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
    try:
        return io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline="")
    except LookupError:
        raise UsageError(
            f"there is no encoding {quoted(encoding)}; latin-1, cp1252 and utf-16 are some"
        ) from None


def line_end(file: Path, encoding: str | None) -> str:
    """Return what ends the first line of a text table; a line feed for what is none."""
    if not file.is_file() or first_bytes(file).startswith((ZIP, b"PAR1", b"ARROW1")):
        return "\n"
    with reading(file), open(file, "rb") as raw, _open(file, raw, encoding) as text:
        return "\r\n" if text.readline(MAX_LINE).endswith("\r\n") else "\n"


def unpacked(file: Path, raw: io.BufferedReader) -> Any:
    """Return a stream of what is packed by gzip or zstd, or the same one."""
    mark = raw.peek(4)[:4]
    if mark.startswith(GZIP):
        return gzip.GzipFile(fileobj=raw)
    if mark == ZSTD or _SKIPPABLE.match(mark):
        return io.BufferedReader(_zstd(file).ZstdFile(raw))
    return raw


def _zstd(file: Path) -> Any:
    """Import Python's own zstd, from 3.14 on, or its copy for earlier ones."""
    try:
        from compression import zstd
    except ImportError:
        try:
            from backports import zstd
        except ImportError:
            raise ImportError(
                f"{printable(str(file))}: unpacking zstd needs backports.zstd; "
                f"{INSTALL.format('zstd')}"
            ) from None
    return zstd


def refuse_damaged(file: Path, error: Exception) -> NoReturn:
    """Raise a `DataError` for what unpacking raises, and anything else as it is."""
    if not (isinstance(error, (gzip.BadGzipFile, zlib.error)) or _is_of_zstd(error)):
        raise error
    kind = "zstd" if _is_of_zstd(error) else "gzip"
    raise DataError(
        f"{printable(str(file))}: damaged {kind} file ({printable(str(error))}); fetch it again"
    ) from None


def _is_of_zstd(error: Exception) -> bool:
    return type(error).__name__ == "ZstdError"


def _lines(file: Path, stream: io.TextIOWrapper, max_text: float) -> Iterator[str]:
    name = printable(str(file))
    n_characters = 0
    number = 0
    while True:
        number += 1
        try:
            line = stream.readline(MAX_LINE)
        except UnicodeError:
            raise DataError(
                f"{name}, line {number}: damaged {stream.encoding.upper()} text"
            ) from None
        except Exception as error:
            refuse_damaged(file, error)
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
            hint = "say what it is: encoding latin-1 is Western European, cp1252 that of Windows"
            if stream.encoding != "utf-8-sig":
                hint = "name another encoding"
            kind = stream.encoding.removesuffix("-sig").upper()
            raise DataError(
                f"{name}, line {number}: not {kind} text; save the file as UTF-8, or {hint}"
            )
        yield line


def _text_records(file: Path, text: _Text) -> Iterator[Record]:
    """Yield the records of CSV or, where the first line is an object, of JSON lines."""
    lines = text.lines()
    skipped: list[str] = []
    for line in lines:
        skipped.append(line)
        if line.strip():
            break
    first = skipped[-1].strip() if skipped else ""
    if _ARRAY.match(first):
        raise DataError(
            f"{printable(str(file))}: is a JSON array; write JSON lines, an object a line "
            '(of pandas: to_json(path, orient="records", lines=True))'
        )
    if _OBJECT.match(first) or _JSON_NAME.search(str(file)):
        names = {key: "" for _, row in _objects(file, chain(skipped, lines)) for key in row}
        if names:
            yield 1, list(names), ","
        for line_number, row in _objects(file, text.lines()):
            yield line_number, list((names | row).values()), ","
    elif skipped:
        yield from _csv_records(file, skipped, lines)


def _objects(file: Path, lines: Iterator[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the cells of each object of JSON lines."""
    n_rows = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        n_rows += 1
        try:
            fields = parse_object(line)
            yield number, {key: cell_of(key, value) or "" for key, value in fields.items()}
        except (ValueError, RecursionError) as error:
            where = place(str(file), n_rows, number)
            raise DataError(f"{where}: {why_no_object(error)}; correct the row") from None


def parse_object(text: str) -> dict[str, Any]:
    """Read a line of JSON lines; a ValueError or RecursionError where it is no object."""
    fields = json.loads(
        text.removeprefix("\ufeff"),
        parse_constant=_refuse_constant,
        object_pairs_hook=_refuse_twice,
    )
    if not isinstance(fields, dict):
        raise ValueError("is JSON, but no object with names and values")
    if "\\u" in text:
        for name, value in fields.items():
            if _SURROGATE.search(name) or (isinstance(value, str) and _SURROGATE.search(value)):
                raise ValueError(f"column {quoted(name)}: holds half of a character")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number that JSON has")


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {quoted(twice)} is there twice")
    return fields


def why_no_object(error: Exception) -> str:
    """Say what `parse_object` raised."""
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON ({error.msg}, column {error.colno})"
    return "is nested too deeply" if isinstance(error, RecursionError) else str(error)


def cell_of(name: str, value: Any) -> str | None:
    """Write a value of JSON as a cell of a table has it; None where there is none."""
    if value is None or isinstance(value, str):
        return value and value.strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    raise ValueError(f"column {quoted(name)}: neither a number nor text")


def _csv_records(file: Path, skipped: list[str], lines: Iterator[str]) -> Iterator[Record]:
    """Yield the records of CSV; the last line of `skipped` is the header's first."""
    first, told = 0, SEPARATOR.fullmatch(skipped[-1].rstrip("\r\n"))
    if told:
        first, skipped = len(skipped), []
    delimiter = told[1] if told else max(DELIMITERS, key=lambda mark: _n_cells(skipped[-1], mark))
    reader = csv.reader(chain(skipped, lines), delimiter=delimiter, strict=True)
    start = first + 1
    try:
        for cells in reader:
            if cells and (len(cells) > 1 or cells[0].strip()):
                yield start, cells, delimiter
            start = first + reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{printable(str(file))}, line {start}: {error}; look for a quotation mark that is "
            "not closed, or for cells that something other than a comma, a semicolon, a tab or "
            "| separates; JSON lines and Parquet take longer cells"
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
    pandas calls it. Commas at the end make no columns: see `named_cells`.
    """
    file = printable(source)
    names = [name.strip() for name in header]
    while names and not names[-1] and any(names):
        names.pop()
    if not names:
        raise DataError(f"{file}: the file is empty; a header line and rows are needed")
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


def named_cells(cells: Sequence[str], n_names: int) -> Sequence[str]:
    """Cut empty cells beyond those that have names; a `ValueError` where the numbers differ."""
    if len(cells) == n_names:
        return cells
    words = f"has {len(cells)} cells, but the header has {n_names}"
    if len(cells) < n_names:
        raise ValueError(words)
    for position, cell in enumerate(cells[n_names:], start=n_names + 1):
        if cell.strip():
            raise ValueError(f"{words}: column {position} has no name")
    return cells[:n_names]


# Spreadsheets in the format of Excel, by openpyxl, which is optional.

_ERRORS = frozenset({"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"})


def _sheet_records(file: Path, raw: BinaryIO, sheet: str | None) -> Iterator[Record]:
    """Yield the rows of a sheet that are not empty; lines are its own numbers of rows."""
    names: list[str] = []
    n_rows = 0
    with _decoding(file):
        rows = _sheet_rows(file, raw, sheet)
    for number in range(1, 2**20 + 1):
        with _decoding(file):
            values = next(rows, None)
        if values is None:
            return
        cells = list(values)
        while cells and cells[-1] is None:
            cells.pop()
        if not cells:
            continue
        texts = [_sheet_cell(value) for value in cells]
        if not names:
            names = texts
        else:
            n_rows += 1
            texts += [""] * (len(names) - len(texts))
            for name, text in zip(names, texts, strict=False):
                if text in _ERRORS:
                    where = place(str(file), n_rows, number, name)
                    raise DataError(f"{where}: holds the error {text}; correct the formula")
        yield number, texts, ","


def _sheet_rows(file: Path, raw: BinaryIO, sheet: str | None) -> Iterator[Sequence[Any]]:
    name = printable(str(file))
    with zipfile.ZipFile(raw) as archive:
        if "xl/workbook.xml" not in archive.namelist():
            raise DataError(
                f"{name}: is a zip archive, but no spreadsheet (.xlsx); save the table as CSV or "
                "Parquet"
            )
        if sum(entry.file_size for entry in archive.infolist()) > MAX_TEXT:
            raise DataError(f"{name}: more than {MAX_TEXT} bytes (unpacked); split the file")
    try:
        import openpyxl
    except ImportError:
        raise ImportError(
            f"{name}: reading spreadsheets needs openpyxl; {INSTALL.format('excel')}"
        ) from None
    book = openpyxl.load_workbook(raw, read_only=True, data_only=True)
    sheets = {each.title: each for each in book.worksheets}
    shown = [title for title, each in sheets.items() if each.sheet_state == "visible"]
    if sheet is None and not shown:
        raise DataError(f"{name}: has no visible sheet")
    chosen = sheets.get(shown[0] if sheet is None else sheet)
    if chosen is None:
        hint = nearest(str(sheet), sheets) or "; there are " + ", ".join(map(quoted, shown[:10]))
        raise DataError(f"{name}: there is no sheet {quoted(sheet)}{hint}")
    chosen.reset_dimensions()  # what the file says of them may be wrong
    return iter(chosen.iter_rows(values_only=True))


@contextmanager
def _decoding(file: Path) -> Iterator[None]:
    """Turn what openpyxl raises into a typed error, and keep its warnings to itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except (MercerError, ImportError, OSError, MemoryError):
            raise
        except Exception as error:  # of a damaged file it raises anything
            raise DataError(
                f"{printable(str(file))}: is a spreadsheet or zip archive that cannot be decoded "
                f"({printable(str(error)[:200])}); save the table as CSV or Parquet"
            ) from None


def _sheet_cell(value: Any) -> str:
    """Write a cell as CSV would have it: a length of time in seconds."""
    if value is None or value == "#N/A":
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        is_day = value.time() == datetime.time()
        return value.date().isoformat() if is_day else value.isoformat(sep=" ")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return repr(value.total_seconds())
    return value if isinstance(value, str) else repr(value)
