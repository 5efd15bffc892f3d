"""Rows as they come: lines of CSV or JSON from a file or a pipe, until a signal ends them.

Ctrl-C and SIGTERM while rows come: the row in hand is finished, and no wait goes on.
"""

from __future__ import annotations

import codecs
import csv
import functools
import io
import os
import select
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from mercer.data.arrow import is_arrow
from mercer.data.csv_reader import (
    DELIMITERS,
    GZIP,
    SEPARATOR,
    ZIP,
    ZSTD,
    cell_of,
    check_header,
    named_cells,
    parse_object,
    refuse_damaged,
    unpacked,
    why_no_object,
)
from mercer.data.encoding import as_levels, no_column
from mercer.data.files import check_path, printable, quoted, reading
from mercer.data.frame import INDEX_COLUMNS, MISSING, Frame
from mercer.data.tables import read_frame, refuse_foreign, split_sheet
from mercer.errors import DataError, StorageError, UsageError
from mercer.sampling.progress import Board
from mercer.sampling.signals import StopSignals


class StreamStoppedError(Exception):
    """A signal has ended a stream between two rows."""


class Stopping:
    """Context manager: while it is open, the two signals set ``received`` and end a wait.

    The descriptor ``wake`` can be read once a signal has come, for `select`.
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
    missing. A row that ``is_late`` brings nothing but the target of an earlier row, or has cells,
    all missing, if gaps are filled in: then it may be a row like others; ``problem``
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
class Wanted:
    """What the command line says of columns.

    ``drop`` may hold several names separated by commas; ``needed`` are the inputs of a model that
    was loaded, None all other columns. In a series the past of the target is an input, so that
    there need be no other. ``texts`` are columns that are text in a source with types. Where a
    model ``fills_gaps``, a JSON object may lack a key. ``null_values`` stand for a missing value;
    cells of rows are empty then. ``fitted_id`` names rows where there is such a column, unless
    ``id_column`` does.
    """

    source: str
    target: str
    id_column: str | None
    drop: tuple[str, ...]
    needed: tuple[str, ...] | None
    is_series: bool
    texts: tuple[str, ...] = ()
    fills_gaps: bool = False
    null_values: frozenset[str] = MISSING
    fitted_id: str | None = None

    def __post_init__(self) -> None:
        if self.id_column == self.target:
            raise UsageError("the target cannot be --id")
        if self.target in self.drop:
            raise UsageError(f"--drop {quoted(self.target)} is the target")

    def inputs(
        self, names: Sequence[str], *, has_target: bool
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Choose, of all columns, those that the model learns from; and say which are ignored.

        The target may be missing, unless ``has_target``.
        """
        header = Frame.of_header(names, self.source)
        for name in ([self.target] if has_target else []) + [self.id_column or ""]:
            if name:
                header.column(name)
        dropped = header.named(self.drop)
        if self.target in dropped:
            raise UsageError(f"--drop {quoted(self.target)} is the target")
        others = tuple(n for n in names if n not in {self.target, self.id_column, *dropped})
        if self.needed is not None:
            for name in self.needed:
                if name not in others:
                    raise no_column(self.source, name, others)
            return self.needed, tuple(name for name in others if name not in self.needed)
        if not others and not self.is_series:
            raise DataError(
                f"{printable(self.source)}: there is no column left to learn from; "
                "--lags learns from the past of the target"
            )
        return others, ()


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

    def __init__(
        self, descriptor: int, name: str, wake: int | None = None, encoding: str | None = None
    ) -> None:
        self.name = name
        self._encoding = encoding or "utf-8"
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
        """Return the lines that one read completes; the last one of a file needs no end."""
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
            lines = [self._decoded(part) for part in (bytes(self._rest) + body).split(b"\n")]
            self._rest.clear()
        self._rest += tail
        if len(self._rest) > MAX_LINE:
            lines.append(self._line("", f"the line is longer than {MAX_LINE} bytes"))
            self._rest.clear()
            self._is_skipping = True
        return lines

    def _decoded(self, part: bytes) -> Line:
        if len(part) > MAX_LINE:
            return self._line("", f"the line is longer than {MAX_LINE} bytes")
        if b"\0" in part:
            return self._line("", "the line holds a NUL byte, so it is no text")
        try:
            return self._line(part.decode(self._encoding).removesuffix("\r"))
        except UnicodeDecodeError:
            name = "UTF-8" if self._encoding == "utf-8" else self._encoding
            return self._line("", f"the line is not {name} text")

    def _line(self, text: str, problem: str = "") -> Line:
        self._n_lines += 1
        return Line(self._n_lines, text, problem)


# Rows of CSV, a header and then a line each, or of JSON, an object on each line.

#: Of a row that brings a target later, whatever the columns are called.
_LITERALLY = {"id", "target"}


class Parser:
    """Turn lines into rows.

    CSV has a ``header``; what splits it into the most names separates cells. A line is a row: a
    line break inside quotation marks is not taken, so that a mark that is never closed spoils one
    row and not all that follow. Of JSON the first object with an input says which inputs there are.
    """

    def __init__(
        self,
        wanted: Wanted,
        tell: Callable[[str], None],
        header: Line | None = None,
        delimiter: str = "",
    ) -> None:
        self.inputs: tuple[str, ...] = wanted.needed or ()  # what `Row.cells` holds
        self.has_decimal_comma = False  # numbers may be written with a comma for the point
        self.null_values = wanted.null_values
        self.texts = wanted.texts  # columns whose cells are text, whatever they look like
        self._wanted = wanted
        self._tell = tell
        self._is_chosen = wanted.needed is not None
        self._names: list[str] = []  # of the columns of CSV
        self._n_rows = 0
        if header is not None:
            self._read_header(header, delimiter)
        self._id = self._wanted.id_column
        self._unused = {wanted.target, self._id, *wanted.drop}  # keys that nothing is said of
        self._unused |= {part.strip() for entry in wanted.drop for part in entry.split(",")}

    def rows(self, lines: Iterable[Line]) -> list[Row]:
        """Read rows; blank lines are none."""
        return [self._row(line) for line in lines if line.problem or line.text.strip()]

    def _row(self, line: Line) -> Row:
        self._n_rows += 1
        try:
            if line.problem:
                raise ValueError(line.problem)
            read = self._read_csv if self._names else self._read_json
            cells, target, name, is_late = read(line.text)
            if len(str(name)) > MAX_ID:
                raise ValueError(f"the name of the row is longer than {MAX_ID} characters")
        except DataError:
            raise
        except (ValueError, RecursionError) as error:
            return Row(self._n_rows, line.number, problem=why_no_object(error))
        return Row(self._n_rows, line.number, cells, target, name, is_late)

    def _read_header(self, header: Line, delimiter: str) -> None:
        wanted = self._wanted
        if header.problem:
            raise DataError(f"{printable(wanted.source)}: {header.problem}; is it CSV?")
        self._delimiter = delimiter or max(
            DELIMITERS, key=lambda mark: len(_cells(header.text, mark) or ())
        )
        cells = _cells(header.text, self._delimiter) or ("",)
        names = self._names = check_header(wanted.source, header.number, cells)
        if wanted.id_column is None and wanted.fitted_id in names:
            self._wanted = wanted = replace(wanted, id_column=wanted.fitted_id)
        is_index = names[0] == INDEX_COLUMNS[0] and names[0] not in (wanted.needed or wanted.drop)
        if is_index and wanted.id_column is None and names[0] != wanted.target:
            self._tell(f"column {quoted(names[0])}, which has no name: the names of the rows")
            self._wanted = wanted = replace(wanted, id_column=names[0])
        has_target = wanted.needed is None or wanted.is_series
        self.inputs, ignored = wanted.inputs(names, has_target=has_target)
        if ignored:
            self._tell(f"columns that the model does not use: {listed(ignored)}")
        self.has_decimal_comma = self._delimiter == ";"

    def _read_csv(self, text: str) -> tuple[tuple[str, ...], str | None, Id, bool]:
        cells = _cells(text, self._delimiter)
        if cells is None:
            raise ValueError("a quotation mark is not closed on the line")
        fields = dict(zip(self._names, named_cells(cells, len(self._names)), strict=True))
        target = self._cell(fields.get(self._wanted.target, "")) or None
        name = None if self._id is None else fields[self._id].strip()
        inputs = tuple([self._cell(fields[each]) for each in self.inputs])
        is_late = bool(inputs and name) and target is not None and not self._wanted.is_series
        is_late = is_late and not any(inputs)
        return () if is_late and not self._wanted.fills_gaps else inputs, target, name, is_late

    def _read_json(self, text: str) -> tuple[tuple[str, ...], str | None, Id, bool]:
        fields, wanted = parse_object(text), self._wanted
        if self._id is None and wanted.fitted_id in fields:
            self._id = wanted.fitted_id
            self._unused.add(self._id)
        names, is_own = set(fields), fields.keys() == {wanted.target, self._id}
        is_literal = names == _LITERALLY and names.isdisjoint(self.inputs)
        if not self._is_chosen and self._id is None and wanted.target in names:
            is_literal = False  # of a first row the other key is the input
        if not wanted.is_series and (is_own or is_literal):
            keys = (wanted.target, str(self._id)) if is_own else ("target", "id")
            cells = ("",) * len(self.inputs) if wanted.fills_gaps and is_own else ()
            return cells, self._value(fields, keys[0]) or None, _name(fields[keys[1]]), True
        if not self._is_chosen:
            self.inputs, _ = wanted.inputs(list(fields), has_target=False)
            self._is_chosen = True
        unused = names.difference(self.inputs, self._unused)
        if unused:
            self._tell(f"keys that the model does not use: {listed(sorted(unused))}")
            self._unused |= unused
        for key in (*(() if wanted.fills_gaps else self.inputs), self._id):
            if key is not None and key not in fields:
                raise ValueError(f"there is no key {quoted(key)}{self._late_hint(names)}")
        cells = tuple([self._value(fields, key) for key in self.inputs])
        name = None if self._id is None else _name(fields[self._id])
        return cells, self._value(fields, wanted.target) or None, name, False

    def _late_hint(self, names: set[str]) -> str:
        """Say how to name rows where one with these keys seems to bring the target of another."""
        others = names - {self._wanted.target, "target"}
        if self._id is not None or self._wanted.is_series or not len(others) == 1 == len(names) - 1:
            return ""
        return f"; if this is the target of an earlier row, use --id {quoted(others.pop())}"

    def _cell(self, cell: str) -> str:
        """Strip a cell; empty where it is missing."""
        text = cell.strip()
        return "" if text in self._wanted.null_values else text

    def _value(self, fields: dict[str, Any], key: str) -> str:
        return self._cell(cell_of(key, fields.get(key)) or "")


def _cells(text: str, delimiter: str) -> Sequence[str] | None:
    """Split a line; None where a quotation mark is out of place."""
    if '"' not in text:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error:
        return None


def _name(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        raise ValueError("the name of the row is neither a number nor text")
    return value


# The beginning of a stream: where rows come from, and whether they are CSV or JSON lines.

_OPEN = Path("/dev/fd"), Path("/proc/self/fd")  # where shells name what <(command) writes
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Opened(NamedTuple):
    """Where lines come from, and which columns are text, where the source has types."""

    descriptor: int
    texts: tuple[str, ...] = ()


@contextmanager
def opened(name: Path | None, of_text: Sequence[str] = ()) -> Iterator[Opened]:
    """Open a file, a pipe that the shell has opened, or standard input, as lines.

    ``of_text`` are options that speak of text, refused where a file is none.
    """
    if name is None:
        if sys.stdin is None or sys.stdin.closed:
            raise StorageError("standard input is closed; pipe rows into it, or name a file")
        yield Opened(sys.stdin.fileno())
        return
    path, sheet = split_sheet(str(name))
    is_pipe = path.parent in _OPEN and path.is_fifo()
    if not is_pipe and check_path(path):
        raise StorageError(f"{printable(str(path))}: is a folder; name a file")
    with reading(path):
        descriptor = os.open(path, os.O_RDONLY)
    try:
        start = b"" if is_pipe else os.pread(descriptor, 16, 0)
        if start.startswith((GZIP, ZSTD)):
            with _feeding(path, functools.partial(_unpack, path)) as reader:
                yield Opened(reader)
        elif start.startswith(ZIP) or is_arrow(start) or sheet is not None:
            if of_text:
                raise UsageError(f"{of_text[0]} is for text, and {printable(str(path))} is none")
            frame = read_frame(name, null_values=())  # the parser knows them
            columns = frame.columns if is_arrow(start) else ()  # a spreadsheet has types by cell
            texts = tuple(each.name for each in columns if each.kind == "text")
            with _feeding(path, functools.partial(_write_lines, frame)) as reader:
                yield Opened(reader, texts)
        else:
            yield Opened(descriptor)
    finally:
        os.close(descriptor)


def _unpack(path: Path, sink: BinaryIO) -> None:
    with open(path, "rb") as raw:
        shutil.copyfileobj(unpacked(path, raw), sink)


def _write_lines(frame: Frame, sink: BinaryIO) -> None:
    """Write a table as lines of CSV, numbers with all their digits."""
    with io.TextIOWrapper(sink, encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(frame.names)
        writer.writerows(zip(*map(as_levels, frame.columns), strict=True))


@contextmanager
def _feeding(path: Path, write: Callable[[BinaryIO], None]) -> Iterator[int]:
    """Write what a file holds, in a thread, into a pipe that is read like any other."""
    reader, writer = os.pipe()
    failures: list[Exception] = []

    def feed() -> None:
        try:
            with open(writer, "wb") as sink:
                write(sink)
        except BrokenPipeError:  # the stream has ended before the file
            pass
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=feed, daemon=True)
    thread.start()
    try:
        yield reader
    finally:
        os.close(reader)
        thread.join()
        for error in failures:  # the cause of what the stream has to say, if anything
            if isinstance(error, EOFError):
                raise DataError(f"{printable(str(path))}: ends early; fetch it again") from None
            refuse_damaged(path, error)


def find_parser(
    source: LineSource, wanted: Wanted, form: str, tell: Callable[[str], None], stopping: Stopping
) -> tuple[Parser, list[Line]]:
    """Wait for the first line, and let it decide how lines are read, and what was read with it.

    ``form`` is "auto", "csv" or "jsonl"; "auto": a line that begins with a brace is JSON.
    """
    lines: list[Line] = []
    delimiter = ""
    name = printable(wanted.source)
    while not lines:
        if source.is_over:
            raise DataError(
                f"{name}: is empty; a header line and rows are needed, or a JSON object a line"
            )
        if source.wait(None):
            found = source.read()
            _refuse_foreign(wanted.source, source.start)
            lines = [line for line in found if line.problem or line.text.strip("\ufeff \t")]
            if lines and (told := SEPARATOR.fullmatch(lines[0].text.removeprefix("\ufeff"))):
                delimiter, lines = told[1], lines[1:]
        stopping.check()
    first = lines[0]._replace(text=lines[0].text.removeprefix("\ufeff"))
    start = first.text.lstrip()[:1]
    if form == "auto" and start == "[":
        raise DataError(
            f"{name}: begins with [, as a JSON array does; write an object a line, or use "
            "--format csv"
        )
    if form == "jsonl" or (form == "auto" and start == "{"):
        return Parser(wanted, tell), [first, *lines[1:]]
    return Parser(wanted, tell, first, delimiter), lines[1:]


def _refuse_foreign(source: str, start: bytes) -> None:
    """Refuse what is no text in UTF-8, by its first bytes."""
    refuse_foreign(Path(source), start)
    kind = ""
    if start.startswith(GZIP):
        kind = "gzipped; unpack it on the way: gunzip -c FILE | mercer stream"
    elif is_arrow(start):
        kind = "a Parquet or Arrow file; name it, or write CSV into the pipe"
    elif start.startswith(_UTF_16):
        kind = "UTF-16 text; save it as UTF-8"
    if kind:
        raise DataError(f"{printable(source)}: is {kind}")
