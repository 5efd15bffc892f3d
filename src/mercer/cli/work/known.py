"""Rows to score on: those whose target is known, in the form that a task scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.encoding import Encoder
from mercer.data.frame import Frame
from mercer.data.target import read_target
from mercer.data.wording import quoted
from mercer.errors import DataError
from mercer.estimation.tasks import Task

__all__ = [
    "Known",
    "ScoredRows",
    "known_rows",
    "read_known",
    "read_scored",
    "unknown_words",
]

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Known:
    """Targets of the rows of a table where they can be scored.

    Attributes
    ----------
    positions : ndarray of shape (k,)
        Among the rows that were asked about, ascending.
    y : ndarray of shape (k,)
        Position of the class, or the number.
    notes : tuple of str
        Why some are left out.
    """

    positions: Rows
    y: NDArray[Any]
    notes: tuple[str, ...]

    def within(self, begin: int, end: int) -> tuple[Rows, NDArray[Any]]:
        """Return those of the rows begin..end: positions counted from begin, and targets."""
        first, last = np.searchsorted(self.positions, [begin, end])
        return self.positions[first:last] - begin, self.y[first:last]


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows to score on, encoded: only those whose target can be scored."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    notes: tuple[str, ...]


def read_known(frame: Frame, target: str, task: Task, encoder: Encoder) -> NDArray[Any]:
    """Read the target of rows that are only scored.

    Raises
    ------
    DataError
        If the column is missing or holds what is no target of this task.
    """
    written = encoder.target
    return read_target(frame, target, task.name, allow_one_class=True, written=written).values


def known_rows(values: NDArray[Any], task: Task, classes: Sequence[Any]) -> Known:
    """Find the targets that can be scored; labels that were not in training are left out."""
    positions, y = task.known(values, classes)
    notes: tuple[str, ...] = ()
    if len(positions) < len(values):
        is_known = np.isin(np.arange(len(values)), positions)
        first = values[int(np.argmin(is_known))]
        notes = (unknown_words(len(values) - len(positions), len(values), first),)
    return Known(positions, y, notes)


def unknown_words(n_unknown: int, n_rows: int, first: Any) -> str:
    """Say that some rows are not scored, and the label of the first of them."""
    return (
        f"{n_unknown} of {n_rows} rows have a label that was not in training ({quoted(first)}) "
        "and are not scored"
    )


def read_scored(
    frame: Frame, target: str, encoder: Encoder, task: Task, classes: Sequence[Any]
) -> ScoredRows:
    """Encode rows to score on; those with a label that was not in training are left out.

    Raises
    ------
    DataError
        If no row is left, or a column is missing.
    """
    values = read_known(frame, target, task, encoder)
    encoded = encoder.transform(frame)
    known = known_rows(values[encoded.rows], task, classes)
    if not len(known.positions):
        raise DataError(
            f"{frame.source}: no row has a label that the model knows "
            f"({', '.join(quoted(label) for label in classes[:5])}); correct column "
            f"{quoted(target)}"
        )
    return ScoredRows(encoded.X[known.positions], known.y, (*encoded.notes, *known.notes))
