"""Rows as they come: lines of CSV or JSON from a file or a pipe, until a signal ends them.

Ctrl-C and SIGTERM while rows come: the row in hand is finished, and no wait goes on.
"""

from __future__ import annotations

import codecs
import csv
import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from mercer.data.csv_reader import DELIMITERS, check_header
from mercer.data.encoding import no_column
from mercer.data.files import check_path, printable, quoted, reading
from mercer.data.frame import INDEX_COLUMNS, MISSING, Column, Frame
from mercer.errors import DataError, StorageError, UsageError
from mercer.sampling.progress import Board
from mercer.sampling.signals import StopSignals

__all__ = [
    "MAX_ID", "MAX_LINE", "STANDARD_INPUT", "CsvRows", "Example", "JsonRows", "Line", "LineSource",
    "Parser", "Row", "Stopping", "StreamStoppedError", "Wanted", "choose_inputs", "find_parser",
    "listed", "opened", "present",
]  # fmt: skip


class StreamStoppedError(Exception):
    """A signal has ended a stream between two rows."""


class Stopping:
    """Context manager: while it is open, the two signals set ``received`` and end a wait.

    Attributes
    ----------
    wake : int
        Descriptor that can be read once a signal has come, for `select`.
    """

    def __init__(self) -> None:
        self._signals = StopSignals(Board.in_memory(1))
        self._is_main = threading.current_thread() is threading.main_thread()

    @property
    def received(self) -> int | None:
        """The first signal that came."""
        return self._signals.received

    def check(self) -> None:
        """Raise `StreamStoppedError` if a signal came."""
        if self.received is not None:
            raise StreamStoppedError

    def __enter__(self) -> Stopping:
        self.wake, self._end = os.pipe()
        os.set_blocking(self._end, False)
        self._signals.__enter__()
        if self._is_main:
            self._previous = signal.set_wakeup_fd(self._end, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            signal.set_wakeup_fd(self._previous)
        self._signals.__exit__()
        os.close(self.wake)
        os.close(self._end)


# One row of a stream, and which of its columns are what.

#: Longest name of a row, in characters.
MAX_ID = 100

Id = str | int | float | bool | None


@dataclass(frozen=True)
class Row:
    """One row, as it was read.

    The first ``number`` is 1; cells are those of the inputs; the target is None where it is
    missing. A row that ``is_late`` brings nothing but the target of an earlier row; ``problem``
    says why a row cannot be used.
    """

    number: int
    line: int
    cells: tuple[str, ...] = ()
    target: str | None = None
    id: Id = None
    is_late: bool = False
    problem: str = ""


@dataclass(frozen=True)
class Example:
    """A row whose target is known."""

    row: Row
    target: Any
    lags: tuple[float, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """What the command line says of columns.

    ``drop`` may hold several names separated by commas; ``needed`` are the inputs of a model that
    was loaded, None all other columns. In a series the past of the target is an input, so that
    there need be no other.
    """

    source: str
    target: str
    id_column: str | None
    drop: tuple[str, ...]
    needed: tuple[str, ...] | None
    is_series: bool

    def __post_init__(self) -> None:
        if self.id_column == self.target:
            raise UsageError("the target cannot be --id")
        if self.target in self.drop:
            raise UsageError(f"--drop {quoted(self.target)} is the target")


def choose_inputs(
    names: Sequence[str], wanted: Wanted, *, has_target: bool = True
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Choose, of all columns, those that the model learns from; and say which are ignored.

    Raises
    ------
    DataError
        A column is missing (the nearest is named; the target may be, unless ``has_target``), or
        no input is left.
    """
    columns = tuple(Column(name, np.empty(0), "number") for name in names)
    header = Frame.from_columns(columns, wanted.source)
    special = [wanted.target] if has_target else []
    special += [] if wanted.id_column is None else [wanted.id_column]
    for name in special:
        header.column(name)
    dropped = header.named(wanted.drop)
    if wanted.target in dropped:
        raise UsageError(f"--drop {quoted(wanted.target)} is the target")
    others = tuple(n for n in names if n not in {wanted.target, wanted.id_column, *dropped})
    if wanted.needed is not None:
        for name in wanted.needed:
            if name not in others:
                raise no_column(wanted.source, name, others)
        return wanted.needed, tuple(name for name in others if name not in wanted.needed)
    if not others and not wanted.is_series:
        raise DataError(
            f"{printable(wanted.source)}: there is no column left to learn from, found 0 "
            "feature(s); --lags learns from the past of the target"
        )
    return others, ()


def present(cell: str) -> str | None:
    """Return a cell without the blanks around it; None where it is missing."""
    text = cell.strip()
    return None if text in MISSING else text


def listed(names: Sequence[str]) -> str:
    """List names, ten at most."""
    return ", ".join(quoted(name) for name in names[:10]) + (", ..." if len(names) > 10 else "")


# Lines of a pipe or a file, as they come: what is there is given at once.

#: Longest line, in bytes.
MAX_LINE = 2**20
_READ = 2**16  # bytes at once: what a pipe holds


class Line(NamedTuple):
    """One line without its end; ``problem`` says why it cannot be read, where it cannot."""

    number: int
    text: str
    problem: str = ""


class LineSource:
    """Cut what a descriptor (of a pipe, a file, a terminal) gives into lines.

    `wait` ends too when the descriptor ``wake`` can be read.
    """

    def __init__(self, descriptor: int, name: str, wake: int | None = None) -> None:
        self.name = name
        self.start = b""  # of the first read: says what the file is
        self.is_over = False
        self._descriptor = descriptor
        self._watched = [descriptor] if wake is None else [descriptor, wake]
        self._rest = bytearray()
        self._is_skipping = False
        self._n_lines = 0

    def wait(self, seconds: float | None) -> bool:
        """Wait, at most so long, until there is something to read; False if there is not."""
        ready, _, _ = select.select(self._watched, [], [], seconds)
        return self._descriptor in ready

    def read(self) -> list[Line]:
        """Return the lines that one read completes; the last one of a file needs no end.

        Raises
        ------
        StorageError
            It cannot be read.
        """
        with reading(Path(self.name)):
            data = os.read(self._descriptor, _READ)
        self.start = self.start or data
        self.is_over = not data
        if self._is_skipping:
            _, newline, data = data.partition(b"\n")
            self._is_skipping = not newline and not self.is_over
        if self.is_over:
            data = b"\n" if self._rest else b""
        body, newline, tail = data.rpartition(b"\n")
        lines = []
        if newline:
            lines = self._cut(bytes(self._rest) + body)
            self._rest.clear()
        self._rest += tail
        if len(self._rest) > MAX_LINE:
            lines.append(self._line("", f"the line is longer than {MAX_LINE} bytes"))
            self._rest.clear()
            self._is_skipping = True
        return lines

    def _cut(self, body: bytes) -> list[Line]:
        """Cut whole lines; text that is none is found line by line."""
        try:
            text = body.decode()
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text or len(body) > MAX_LINE:
            return [self._decoded(part) for part in body.split(b"\n")]
        return self._lines(text.split("\n"))

    def _lines(self, texts: Sequence[str]) -> list[Line]:
        first = self._n_lines + 1
        self._n_lines += len(texts)
        return [Line(first + k, text.removesuffix("\r")) for k, text in enumerate(texts)]

    def _decoded(self, part: bytes) -> Line:
        if len(part) > MAX_LINE:
            return self._line("", f"the line is longer than {MAX_LINE} bytes")
        if b"\0" in part:
            return self._line("", "the line holds a NUL byte, so it is no text")
        try:
            return self._line(part.decode().removesuffix("\r"))
        except UnicodeDecodeError:
            return self._line("", "the line is not UTF-8 text")

    def _line(self, text: str, problem: str = "") -> Line:
        self._n_lines += 1
        return Line(self._n_lines, text, problem)


# Rows of a stream of CSV: a header, then a line for each row.


class CsvRows:
    """Turn lines into rows; cells are separated by what splits the header into the most names.

    A row is one line: a line break inside quotation marks is not taken, so that a mark that is
    never closed spoils one row and not all that follow.

    Parameters
    ----------
    header : Line
    wanted : Wanted

    Attributes
    ----------
    inputs : tuple of str
        The columns that `Row.cells` holds.
    ignored : tuple of str
        Columns that are not needed.
    has_decimal_comma : bool
        Numbers may be written with a comma for the decimal point.
    index : str or None
        A first column without a name, where it is taken for the names of the rows.

    Raises
    ------
    DataError
        The header is none, or lacks a column.
    """

    def __init__(self, header: Line, wanted: Wanted) -> None:
        if header.problem:
            raise DataError(f"{printable(wanted.source)}: {header.problem}; is it CSV?")
        self._delimiter = max(DELIMITERS, key=lambda mark: len(_cells(header.text, mark) or ()))
        cells = _cells(header.text, self._delimiter) or ("",)
        names = check_header(wanted.source, header.number, cells)
        is_index = names[0] == INDEX_COLUMNS[0] and names[0] not in (wanted.needed or wanted.drop)
        self.index: str | None = None
        if is_index and wanted.id_column is None and names[0] != wanted.target:
            self.index = names[0]
            wanted = replace(wanted, id_column=self.index)
        has_target = wanted.needed is None or wanted.is_series
        self.inputs, self.ignored = choose_inputs(names, wanted, has_target=has_target)
        self.has_decimal_comma = self._delimiter == ";"
        self._n_cells = len(names)
        self._places = [names.index(name) for name in self.inputs]
        self._target = names.index(wanted.target) if wanted.target in names else None
        self._id = None if wanted.id_column is None else names.index(wanted.id_column)
        self._can_be_late = bool(self.inputs) and not wanted.is_series
        self._n_rows = 0

    def rows(self, lines: Iterable[Line]) -> list[Row]:
        """Read rows; blank lines are none."""
        return [self._row(line) for line in lines if line.problem or line.text.strip()]

    def _row(self, line: Line) -> Row:
        self._n_rows += 1
        number = self._n_rows
        if line.problem:
            return Row(number, line.number, problem=line.problem)
        cells = _cells(line.text, self._delimiter)
        if cells is None:
            problem = "a quotation mark is not closed on the line"
            return Row(number, line.number, problem=problem)
        if len(cells) != self._n_cells:
            words = f"has {len(cells)} cells, but the header has {self._n_cells}"
            return Row(number, line.number, problem=words)
        target = None if self._target is None else present(cells[self._target])
        name = None if self._id is None else cells[self._id].strip()
        if name is not None and len(name) > MAX_ID:
            words = f"the name of the row is longer than {MAX_ID} characters"
            return Row(number, line.number, problem=words)
        inputs = tuple([cells[place] for place in self._places])
        is_late = self._can_be_late and bool(name) and target is not None
        is_late = is_late and all(present(cell) is None for cell in inputs)
        return Row(number, line.number, inputs, target, name, is_late)


def _cells(text: str, delimiter: str) -> Sequence[str] | None:
    """Split a line; None where a quotation mark is out of place."""
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error:
        return None


# Rows of a stream of JSON: an object on each line.

_LITERALLY = {
    "id",
    "target",
}  # of a row that brings a target later, whatever the columns are called


class JsonRows:
    """Turn lines into rows; the first object with an input says which inputs there are.

    Parameters
    ----------
    wanted : Wanted
    tell : callable
        Is told, once, of keys that are not used.

    Attributes
    ----------
    inputs : tuple of str
        The keys that `Row.cells` holds.
    """

    has_decimal_comma = False

    def __init__(self, wanted: Wanted, tell: Callable[[str], None]) -> None:
        self.inputs: tuple[str, ...] = wanted.needed or ()
        self._wanted = wanted
        self._tell = tell
        self._id = wanted.id_column
        self._is_chosen = wanted.needed is not None
        self._expected = set(self.inputs)
        self._not_inputs = {wanted.target, self._id, *wanted.drop}
        self._not_inputs |= {part.strip() for entry in wanted.drop for part in entry.split(",")}
        self._n_rows = 0

    def rows(self, lines: Iterable[Line]) -> list[Row]:
        """Read rows; blank lines are none."""
        return [self._row(line) for line in lines if line.problem or line.text.strip()]

    def _row(self, line: Line) -> Row:
        self._n_rows += 1
        if line.problem:
            return Row(self._n_rows, line.number, problem=line.problem)
        try:
            return self._read(line, _parse(line.text))
        except DataError:
            raise
        except (ValueError, RecursionError) as error:
            return Row(self._n_rows, line.number, problem=_reason(error))

    def _read(self, line: Line, fields: dict[str, Any]) -> Row:
        wanted = self._wanted
        names = set(fields)
        is_late = not wanted.is_series and (
            names == {wanted.target, self._id}
            or (names == _LITERALLY and names.isdisjoint(self._expected))
        )
        if is_late:
            is_own = wanted.target in names
            target = fields[wanted.target if is_own else "target"]
            name = _name(fields[str(self._id) if is_own else "id"])
            return Row(self._n_rows, line.number, (), _cell(wanted.target, target), name, True)
        if not self._is_chosen:
            self._choose(fields)
        if names - self._expected - self._not_inputs:
            self._tell_of(names - self._expected - self._not_inputs)
        missing = [name for name in self.inputs if name not in fields]
        if self._id is not None and self._id not in fields:
            missing.append(self._id)
        if missing:
            raise ValueError(f"there is no key {quoted(missing[0])}")
        cells = tuple([_cell(name, fields[name]) or "" for name in self.inputs])
        target = _cell(wanted.target, fields.get(wanted.target))
        name = None if self._id is None else _name(fields[self._id])
        return Row(self._n_rows, line.number, cells, target, name)

    def _choose(self, fields: dict[str, Any]) -> None:
        """Let an object say which inputs there are."""
        self.inputs, _ = choose_inputs(list(fields), self._wanted, has_target=False)
        self._expected = set(self.inputs)
        self._is_chosen = True

    def _tell_of(self, names: set[str]) -> None:
        self._tell(f"keys that the model does not use: {listed(sorted(names))}")
        self._not_inputs |= names


def _parse(text: str) -> dict[str, Any]:
    fields = json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse_constant)
    if not isinstance(fields, dict):
        raise ValueError("is JSON, but no object with names and values")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number that JSON has")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON ({error.msg}, column {error.colno})"
    return "is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _cell(name: str, value: Any) -> str | None:
    """Write a value as a cell of a table has it; None where it is missing."""
    if isinstance(value, str):
        return present(value)
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    raise ValueError(f"column {quoted(name)}: neither a number nor text")


def _name(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        raise ValueError("the name of the row is neither a number nor text")
    if len(str(value)) > MAX_ID:
        raise ValueError(f"the name of the row is longer than {MAX_ID} characters")
    return value


Parser: TypeAlias = CsvRows | JsonRows


# The beginning of a stream: where rows come from, and whether they are CSV or JSON lines.

STANDARD_INPUT = "standard input"
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@contextmanager
def opened(path: Path | None) -> Iterator[int]:
    """Open a file, or standard input, as a descriptor.

    Raises
    ------
    StorageError
        It cannot be read.
    """
    if path is None:
        if sys.stdin is None or sys.stdin.closed:
            raise StorageError("standard input is closed; pipe rows into it, or name a file")
        yield sys.stdin.fileno()
        return
    if check_path(path):
        raise StorageError(f"{printable(str(path))}: is a folder; name a file")
    with reading(path):
        descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def find_parser(
    source: LineSource,
    wanted: Wanted,
    form: str,
    tell: Callable[[str], None],
    stopping: Stopping,
) -> tuple[Parser, list[Line]]:
    """Wait for the first line, and let it decide how lines are read, and what was read with it.

    ``form`` is "auto", "csv" or "jsonl"; "auto": a line that begins with a brace is JSON.

    Raises
    ------
    DataError
        There is nothing to read, it is no text, or the header cannot be used.
    StreamStoppedError
        A signal came first.
    """
    lines: list[Line] = []
    while not lines:
        if source.is_over:
            raise DataError(
                f"{printable(wanted.source)}: is empty, found 0 sample(s); a header line and rows "
                "are needed, or a JSON object a line"
            )
        if source.wait(None):
            found = source.read()
            _refuse_foreign(wanted.source, source.start)
            lines = [line for line in found if line.problem or line.text.strip("\ufeff \t")]
        stopping.check()
    text = lines[0].text.removeprefix("\ufeff")
    first = lines[0]._replace(text=text)
    if form == "auto" and text.lstrip().startswith("["):
        raise DataError(
            f"{printable(wanted.source)}: begins with [, as a JSON array does; write an object a "
            "line, or use --format csv"
        )
    if form == "jsonl" or (form == "auto" and text.lstrip().startswith("{")):
        return JsonRows(wanted, tell), [first, *lines[1:]]
    parser = CsvRows(first, wanted)
    if parser.index is not None:
        tell(f"column {quoted(parser.index)}, which has no name: the names of the rows")
    if parser.ignored:
        tell(f"columns that the model does not use: {listed(parser.ignored)}")
    return parser, lines[1:]


def _refuse_foreign(source: str, start: bytes) -> None:
    """Refuse what is no text in UTF-8, by its first bytes."""
    from mercer.data.arrow import is_arrow
    from mercer.data.tables import refuse_foreign

    refuse_foreign(Path(source), start)
    kind = ""
    if start.startswith(b"\x1f\x8b"):
        kind = "gzipped; unpack it on the way: gunzip -c FILE | mercer stream"
    elif is_arrow(start):
        kind = "a Parquet or Arrow file; save the table as CSV"
    elif start.startswith(_UTF_16):
        kind = "UTF-16 text; save it as UTF-8"
    if kind:
        raise DataError(f"{printable(source)}: is {kind}")
