"""What is said of single rows: their place, what is wrong, and whether that ends the stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mercer.cli.work.live.rows import Row
from mercer.cli.work.live.tally import Tally
from mercer.data.wording import place
from mercer.errors import DataError

__all__ = ["Reporter", "named"]


class Reporter:
    """Say what happens to rows.

    Parameters
    ----------
    tell : callable
        Takes a label and words.
    source : str
        Of the rows.
    is_fatal : bool
        A row that cannot be used ends the stream.
    tally : Tally
        Counts these rows.
    """

    def __init__(
        self, tell: Callable[[str, str], None], source: str, *, is_fatal: bool, tally: Tally
    ) -> None:
        self.source = source
        self._tell = tell
        self.is_fatal = is_fatal
        self._tally = tally
        self._said: set[str] = set()

    def note(self, words: str) -> None:
        """Say something of all rows."""
        self._tell("note", words)

    def once(self, words: str) -> None:
        """Say something the first time only."""
        if words not in self._said:
            self._said.add(words)
            self.note(words)

    def bad(self, row: Row, words: str) -> dict[str, Any]:
        """Say that a row cannot be used.

        Returns
        -------
        dict
            Its answer.

        Raises
        ------
        DataError
            If that ends the stream.
        """
        self._tally.n_bad += 1
        joint = ", " if words.startswith("column ") else ": "
        sentence = f"{place(self.source, row.number, row.line)}{joint}{words}"
        if self.is_fatal:
            self._tally.last_row = row.number - 1
            raise DataError(sentence)
        self._tell("bad row", f"{sentence}; skipped")
        self._tally.last_row = max(self._tally.last_row, row.number)
        return {**named(row), "error": words}


def named(row: Row) -> dict[str, Any]:
    """Return the first fields of an answer: number and name of the row."""
    return {"row": row.number} if row.id is None else {"row": row.number, "id": row.id}
