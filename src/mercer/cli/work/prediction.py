"""Predictions of the rows of a table by a saved model, block by block."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.work.answers import Answerer, answerer_of
from mercer.cli.work.known import Known, known_rows, read_known, read_scored
from mercer.data.column_code import ColumnCode
from mercer.data.encoding import Encoder
from mercer.data.frame import INDEX_COLUMNS, Frame, index_column
from mercer.data.row_names import RowNames
from mercer.data.tables import read_frame
from mercer.data.wording import quoted
from mercer.errors import DataError, UsageError
from mercer.estimation.cross_validate import Result
from mercer.models import SavedModel
from mercer.posterior.evaluation import AnyEvaluation
from mercer.posterior.held_out import HeldOut

__all__ = [
    "Predictions",
    "check_id",
    "encoder_of",
    "find_answerer",
    "ignored_words",
    "implied_id",
    "predict_frame",
    "read_for",
    "row_names",
    "score_frame",
]


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of each row, as named columns of equal length, and its scores.

    Attributes
    ----------
    columns : dict of ndarray
    notes : tuple of str
        About the table.
    evaluation : Evaluation, RegressionEvaluation or None
        Where the target is known, of the rows where it is.
    """

    columns: dict[str, NDArray[Any]]
    notes: tuple[str, ...]
    evaluation: AnyEvaluation | None


def encoder_of(model: SavedModel) -> Encoder:
    """Return how a table becomes inputs; a model saved from Python takes its columns as numbers."""
    if model.table is not None:
        return model.table.encoder
    names = model.estimator.feature_labels_
    return Encoder(tuple(ColumnCode(name, "number") for name in names), "error")


def read_for(model: SavedModel, data: str, id_column: str | None = None) -> Frame:
    """Read a table whose columns are written as those that the model learned from.

    Raises
    ------
    DataError, StorageError
        As `mercer.data.read_frame`.
    """
    encoder = encoder_of(model)
    written = list(encoder.written_names)
    if model.table is not None and encoder.target is not None:
        written.append(model.table.target)
    names = INDEX_COLUMNS if id_column is None else (id_column,)
    return read_frame(data, as_text=names, as_written=written)


def implied_id(model: SavedModel, names: Sequence[str], id_column: str | None) -> str | None:
    """Return the column that names the rows: as asked, or one without a name that is no input."""
    index = index_column(names)
    if id_column is not None or index is None or index in encoder_of(model).input_names:
        return id_column
    return index


def predict_frame(model: SavedModel, frame: Frame, id_column: str | None) -> Predictions:
    """Predict every row, and score those whose target is known.

    Raises
    ------
    DataError
        If a column that the model needs is missing, or a cell cannot be used.
    """
    encoded = encoder_of(model).transform(frame)
    answerer = find_answerer(model)
    id_column = implied_id(model, frame.names, id_column)
    names = row_names(frame, encoded.rows, id_column, answerer.names)
    known = _known(model, frame, encoded.rows, answerer)
    columns, held = _answer(answerer, encoded.X, known)
    notes = (*encoded.notes, *ignored_words(model, encoded.ignored, id_column), *known.notes)
    evaluation = _evaluation(model, "predictions", answerer, held) if held else None
    return Predictions(names | columns, notes, evaluation)


def find_answerer(model: SavedModel) -> Answerer:
    """Return who answers for a model."""
    variance = None if model.table is None else model.table.target_variance
    return answerer_of(model.estimator, math.nan if variance is None else variance)


def _known(model: SavedModel, frame: Frame, rows: NDArray[np.int64], answerer: Answerer) -> Known:
    """Find the targets of the rows; if they cannot be used, none, and why."""
    none = np.zeros(0, dtype=np.int64)
    if model.table is None or model.table.target not in frame.names:
        return Known(none, none, ())
    try:
        encoder = model.table.encoder
        values = read_known(frame, model.table.target, answerer.task, encoder)
    except DataError as error:
        return Known(none, none, (f"not scored: {error}",))
    return known_rows(values[rows], answerer.task, answerer.classes)


def _answer(
    answerer: Answerer, X: NDArray[np.float64], known: Known
) -> tuple[dict[str, NDArray[Any]], tuple[HeldOut, ...]]:
    """Predict block by block; what was said of rows that are known, in as many parts."""
    blocks, held = [], []
    for begin in range(0, len(X), answerer.n_rows):
        end = min(begin + answerer.n_rows, len(X))
        columns, part = answerer.block(X[begin:end], *known.within(begin, end))
        blocks.append(columns)
        held += [] if part is None else [part]
    whole = {name: np.concatenate([block[name] for block in blocks]) for name in answerer.names}
    return whole, tuple(held)


def row_names(
    frame: Frame, rows: NDArray[np.int64], id_column: str | None, own: Collection[str]
) -> dict[str, NDArray[Any]]:
    """Return columns that name the rows: entries of ``id_column``, or numbers as `RowNames` has.

    Raises
    ------
    UsageError
        If the column is called like one of the result's ``own``.
    """
    check_id(id_column, own)
    columns = RowNames.of_frame(frame, rows, id_column).columns()
    return columns if id_column is None else {id_column: columns[id_column]}


def check_id(id_column: str | None, own: Collection[str]) -> None:
    """Refuse a column of names that is called like one of the result's ``own``.

    Raises
    ------
    UsageError
        It is.
    """
    if id_column in own:
        raise UsageError(f"--id {quoted(id_column)} is also a column of the result; rename it")


def ignored_words(
    model: SavedModel, ignored: Sequence[str], id_column: str | None
) -> tuple[str, ...]:
    """Say which columns the model does not use; nothing where there are none."""
    target = None if model.table is None else model.table.target
    names = [name for name in ignored if name not in (target, id_column)]
    if not names:
        return ()
    shown = ", ".join(quoted(name) for name in names[:10])
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return (f"columns that the model does not use: {shown}{more}",)


def score_frame(model: SavedModel, frame: Frame, how: str) -> tuple[AnyEvaluation, tuple[str, ...]]:
    """Score a model on rows that hold the target; labels that it does not know are left out.

    Raises
    ------
    DataError
        If the target is missing, or no row has a label that the model knows.
    """
    answerer = find_answerer(model)
    target = "target" if model.table is None else model.table.target
    rows = read_scored(frame, target, encoder_of(model), answerer.task, answerer.classes)
    known = Known(np.arange(len(rows.y)), rows.y, ())
    _, held = _answer(answerer, rows.X, known)
    return _evaluation(model, how, answerer, held), rows.notes


def _evaluation(
    model: SavedModel, how: str, answerer: Answerer, held: tuple[HeldOut, ...]
) -> AnyEvaluation:
    result = Result(type(model.estimator).__name__, False, held, 0.0, answerer.task)
    return answerer.task.evaluate(how, answerer.classes, [result])
