"""The journal of a review: one line a decision, on disk before the next row is shown.

A line is JSON. The first one says which table and target it is of; a line that a crash cut short is
no decision, and is taken off. Nothing is ever changed: an undone decision is one more line.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

from mercer.atomic import locked
from mercer.data.files import printable
from mercer.errors import DataError, StorageError

Action = Literal["keep", "change", "unsure", "label", "undo"]
_KIND, _FORMAT = "mercer review", 1
_OTHER = {
    "data": "other rows", "pool": "other rows in the pool", "names": "other names of rows"
}  # fmt: skip


@dataclass(frozen=True)
class Decision:
    """What was decided of one row: position among the rows that are reviewed, from 0."""

    row: int
    name: str  # what the row is called, for a person who reads the journal
    action: Action
    recorded: str | None  # the label that stands in the table; None of a row without
    label: str | None  # the one that holds from now on; None where nobody knows
    p_wrong: float | None  # as it was shown
    at: str  # ISO 8601, UTC


class Journal:
    """Decisions so far, and the file that the next ones go to."""

    def __init__(self, path: Path, stream: BinaryIO, lines: list[Decision]) -> None:
        self.path = path
        self._stream = stream
        self._lines = lines

    @property
    def n_lines(self) -> int:
        """Number of lines, undone decisions and undoings too: it only grows."""
        return len(self._lines)

    @property
    def standing(self) -> dict[int, Decision]:
        """The decisions that hold, by row, the latest last."""
        found: list[Decision] = []
        for line in self._lines:
            if line.action == "undo":
                found = [each for each in found if each.row != line.row]
            else:
                found = [*(each for each in found if each.row != line.row), line]
        return {each.row: each for each in found}

    def add(
        self, row: int, name: str, action: Action, recorded: str | None, label: str | None,
        p_wrong: float | None,
    ) -> Decision:  # fmt: skip
        """Write a decision; it is on disk when this returns.

        A `StorageError` where it cannot be written, and is not taken.
        """
        at = datetime.now(UTC).isoformat(timespec="seconds")
        decision = Decision(row, name, action, recorded, label, p_wrong, at)
        end = self._stream.seek(0, os.SEEK_END)
        try:
            line = _line(asdict(decision))
            if self._stream.write(line) != len(line):  # a disk that fills up takes a part of it
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._stream.fileno())
        except OSError as error:
            with suppress(OSError):
                self._stream.truncate(end)  # or half a line would spoil the next
            raise StorageError(
                f"{printable(str(self.path))}: the decision was not written: {error.strerror}"
            ) from error
        self._lines.append(decision)
        return decision


@contextmanager
def open_journal(
    path: Path, identity: Mapping[str, Any], names: Sequence[str] = ()
) -> Iterator[Journal]:
    """Begin a journal, or go on with the one that is there, kept from all other processes.

    ``identity`` is what the decisions are of, as JSON can hold it, "n_rows" among it; ``names`` are
    what the rows are called now: decisions must name theirs the same. A `DataError` where the
    journal is of another table, pool, target or classes, or no journal.
    """
    mine = {"kind": _KIND, "format": _FORMAT, **identity}
    name = printable(str(path))
    with locked(path):
        try:
            with open(path, "a+b", buffering=0) as stream:
                stream.seek(0)
                text = stream.read()
                whole = text[: text.rfind(b"\n") + 1]
                lines = whole.splitlines()
                decisions: list[Decision] = []
                if lines:
                    _check_identity(name, _parse(name, 1, lines[0]), mine)
                    n_rows = int(mine["n_rows"])
                    for number, line in enumerate(lines[1:], start=2):
                        found = _decision(name, number, _parse(name, number, line), n_rows)
                        if names and found.name != names[found.row]:
                            raise DataError(
                                f"{name}, line {number}: is a decision about {found.name}, where "
                                f"{names[found.row]} stands now; give the rows as they were"
                            )
                        decisions.append(found)
                elif text and not b'{"kind": "mercer review"'.startswith(text[:24]):  # cut short
                    raise DataError(f"{name}: is no journal of a review; name another file")
                stream.truncate(len(whole))
                if not lines:
                    stream.write(_line(mine))
                    os.fsync(stream.fileno())
                yield Journal(path, stream, decisions)
        except OSError as error:
            raise StorageError(f"{name}: {error.strerror or error}") from error


def _line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def _parse(name: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise DataError(f"{name}, line {number}: is no line of a review's journal; correct it")
    return found


def _check_identity(name: str, found: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    if found.get("kind") != _KIND:
        raise DataError(f"{name}: is no journal of a review; name another file with --journal")
    for key in mine:
        if found.get(key) != mine[key]:
            words = _OTHER.get(key, f"{key} {found.get(key)!r}, not {mine[key]!r}")
            raise DataError(
                f"{name}: is the journal of another table ({words}); name another file with "
                "--journal, or give the table that it was begun with"
            )


def _decision(name: str, number: int, fields: Mapping[str, Any], n_rows: int) -> Decision:
    try:
        decision = Decision(**fields)
        is_right = (
            isinstance(decision.row, int)
            and not isinstance(decision.row, bool)
            and decision.action in get_args(Action)
            and isinstance(decision.label, (str, type(None)))
        )
    except TypeError:
        is_right = False
    if not is_right:
        raise DataError(f"{name}, line {number}: is no decision of a review; correct it")
    if not 0 <= decision.row < n_rows:
        raise DataError(f"{name}, line {number}: there is no row {decision.row} in the table")
    return decision
