"""From DATA and the options to what is fitted: inputs, targets, groups, and notes about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mercer.cli.options import TableOptions
from mercer.data.column_code import as_levels
from mercer.data.encoding import Encoder, Missing, fit_encoder
from mercer.data.formats import Dates
from mercer.data.frame import INDEX_COLUMNS, Frame, index_column
from mercer.data.row_names import RowNames
from mercer.data.tables import read_frame
from mercer.data.target import Task as AnyTask
from mercer.data.target import read_target
from mercer.data.wording import quoted
from mercer.errors import DataError, UsageError
from mercer.estimation.cross_validate import Fold
from mercer.estimation.tasks import TASKS, Task

__all__ = ["TrainingTable", "read_training"]

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A table to learn from; all rows are usable.

    Attributes
    ----------
    source : str
        The file, folder or data set, as it was named.
    inputs : Frame
        The columns to learn from.
    encoder : Encoder
        Fitted on all rows.
    X : ndarray of shape (n, d)
    classes : tuple
        Class labels, sorted; empty for regression.
    labels : ndarray of shape (n,)
        The targets in their own type.
    y : ndarray of shape (n,)
        Position in ``classes``, or the number.
    groups : ndarray of shape (n,) or None
    names : RowNames
        What the rows are called in the file.
    task : Task
    reason : str
        Why it is this task.
    notes : tuple of str
        What was done to columns and rows.
    """

    source: str
    inputs: Frame
    encoder: Encoder
    X: NDArray[np.float64]
    classes: tuple[Any, ...]
    labels: NDArray[Any]
    y: NDArray[Any]
    groups: NDArray[Any] | None
    names: RowNames
    task: Task
    reason: str
    notes: tuple[str, ...]

    def fold(self, train: Rows, test: Rows) -> Fold:
        """Encode one split; what the encoding learns, it learns on the training part."""
        y = self.y
        learns_nothing = self.encoder.missing != "impute" and all(
            code.kind in ("number", "boolean", "date") for code in self.encoder.codes
        )
        if learns_nothing:
            return Fold(self.X[train], y[train], self.X[test], y[test], train)
        part = self.inputs.take(train)
        encoder = fit_encoder(part, missing=self.encoder.missing, like=self.encoder)
        X_test = encoder.transform(self.inputs.take(test)).X
        return Fold(encoder.transform(part).X, y[train], X_test, y[test], train)


def read_training(data: str, options: TableOptions) -> TrainingTable:
    """Read a table to learn from.

    Raises
    ------
    DataError, StorageError, UsageError
        As the readers of `mercer.data`.
    """
    frame = read_frame(data, as_text=(*options.as_text, *INDEX_COLUMNS))
    target = read_target(frame, options.target, cast("AnyTask", options.task))
    task = TASKS[target.task]
    named = _special_columns(frame, options)
    id_column = options.id_column
    id_notes: tuple[str, ...] = ()
    if id_column is None and (index := index_column(frame.names)) not in (None, *named):
        id_column, id_notes = index, _refuse_equal_names(frame, str(index))
        named.append(str(index))
    inputs = frame.without(named)
    missing, dates = cast("Missing", options.missing), cast("Dates", options.dates)
    encoder = replace(fit_encoder(inputs, missing=missing, dates=dates), target=target.written)
    encoded = encoder.transform(inputs)
    labels = target.values[encoded.rows]
    if all(label == labels[0] for label in labels):
        raise DataError(
            f"{frame.source}: after rows with missing values were dropped the target has only "
            f"one {task.noun}, {quoted(labels[0])}; use --missing impute"
        )
    classes, y = task.encode(labels)
    groups = None if options.group is None else _groups(frame, options.group)[encoded.rows]
    return TrainingTable(
        source=data,
        inputs=inputs.take(encoded.rows),
        encoder=encoder,
        X=encoded.X,
        classes=classes,
        labels=labels,
        y=y,
        groups=groups,
        names=RowNames.of_frame(frame, encoded.rows, id_column),
        task=task,
        reason=target.reason,
        notes=(*id_notes, *encoder.notes, *encoded.notes),
    )


def _special_columns(frame: Frame, options: TableOptions) -> list[str]:
    """Name the columns that are not inputs: target, names of rows, groups, dropped ones."""
    dropped: list[str] = []
    for entry in options.drop:
        is_name = entry in frame.names
        names = [entry] if is_name else [part.strip() for part in entry.split(",")]
        dropped += [frame.column(name).name for name in names if name]
    for name in dropped:
        if name == options.target:
            raise UsageError(f"--drop {quoted(name)} is the target")
    special = [options.target, *dropped]
    special += [frame.column(name).name for name in options.as_text]
    if options.target in options.as_text:
        raise UsageError("the target cannot be --id or --group")
    return special


def _refuse_equal_names(frame: Frame, name: str) -> tuple[str, ...]:
    """Check that a column without a name does name the rows, and say that it is taken for that."""
    seen: dict[Any, int] = {}
    for row, entry in enumerate(frame.column(name).values):
        if entry is None or entry in seen:
            found = "is empty" if entry is None else f"holds {quoted(entry)} a second time"
            raise DataError(
                f"{frame.place(row)}: the column without a name, taken for the names of the rows, "
                f"{found}; name it in the header, or leave it out with --drop {quoted(name)}"
            )
        seen[entry] = row
    return (f"column {quoted(name)}, which has no name: the names of the rows, and no input",)


def _groups(frame: Frame, name: str) -> NDArray[Any]:
    column = frame.column(name)
    if column.is_missing.any():
        row = int(np.argmax(column.is_missing))
        raise DataError(f"{frame.place(row, name)}: the group is missing; fill it in")
    return as_levels(column).astype(str)
