"""The beginning of a stream: where rows come from, and whether they are CSV or JSON lines."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mercer.cli.work.live.csv_rows import CsvRows
from mercer.cli.work.live.json_rows import JsonRows
from mercer.cli.work.live.lines import Line, LineSource
from mercer.cli.work.live.rows import Parser, Wanted, listed
from mercer.cli.work.live.stopping import Stopping
from mercer.data.arrow_reader import is_arrow
from mercer.data.files import check_path, reading
from mercer.data.tables import refuse_foreign
from mercer.data.wording import printable, quoted
from mercer.errors import DataError, StorageError

__all__ = ["STANDARD_INPUT", "find_parser", "opened"]

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
    """Wait for the first line, and let it decide how lines are read.

    Parameters
    ----------
    source : LineSource
    wanted : Wanted
    form : {"auto", "csv", "jsonl"}
        "auto": a line that begins with a brace is JSON.
    tell : callable
    stopping : Stopping

    Returns
    -------
    parser : CsvRows or JsonRows
    lines : list of Line
        Lines of rows that were read meanwhile.

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
