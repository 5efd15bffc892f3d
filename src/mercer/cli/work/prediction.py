"""Predictions of the rows of a table by a saved model, block by block."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.work.table import read_labelled
from mercer.data.column_code import ColumnCode, as_levels
from mercer.data.encoding import Encoder
from mercer.data.frame import Frame
from mercer.data.target import read_target
from mercer.data.wording import quoted
from mercer.errors import DataError, UsageError
from mercer.models import SavedModel
from mercer.posterior.evaluation import Evaluation, ModelScore
from mercer.posterior.scores import score_classification

__all__ = [
    "Predictions",
    "encoder_of",
    "ignored_words",
    "predict_frame",
    "row_names",
    "score_frame",
    "score_predictions",
]

_BLOCK = 10_000  # rows


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of each row, as named columns of equal length."""

    columns: dict[str, NDArray[Any]]
    rows: NDArray[np.int64]  # positions, in the table, of the rows that were predicted
    notes: tuple[str, ...]


def encoder_of(model: SavedModel) -> Encoder:
    """Return how a table becomes inputs; a model saved from Python takes its columns as numbers."""
    if model.table is not None:
        return model.table.encoder
    names = model.estimator.feature_labels_
    return Encoder(tuple(ColumnCode(name, "number") for name in names), "error")


def predict_frame(model: SavedModel, frame: Frame, id_column: str | None) -> Predictions:
    """Predict every row.

    Raises
    ------
    DataError
        If a column that the model needs is missing, or a cell cannot be used.
    """
    encoded = encoder_of(model).transform(frame)
    estimator = model.estimator
    labels = estimator.classes_.tolist()
    own = ("prediction", *(f"proba_{label}" for label in labels), *_more_columns(estimator))
    names = row_names(frame, encoded.rows, id_column, own)
    columns = {"row" if id_column is None else id_column: names}
    blocks = [
        _predict_block(estimator, encoded.X[begin : begin + _BLOCK])
        for begin in range(0, len(encoded.X), _BLOCK)
    ]
    values = np.concatenate(blocks)
    columns["prediction"] = estimator.classes_[np.argmax(values[:, : len(labels)], axis=1)]
    columns |= dict(zip(own[1:], values.T, strict=True))
    notes = (*encoded.notes, *ignored_words(model, encoded.ignored, id_column))
    return Predictions(columns, encoded.rows, notes)


def row_names(
    frame: Frame, rows: NDArray[np.int64], id_column: str | None, own: Collection[str]
) -> NDArray[Any]:
    """Return what the rows are called: entries of a column, or their numbers, the first one 1.

    Raises
    ------
    UsageError
        If the column is called like one of the result's ``own``.
    """
    if id_column is None:
        return rows + 1
    if id_column in own:
        raise UsageError(f"--id {quoted(id_column)} is also a column of the result; rename it")
    return as_levels(frame.column(id_column))[rows]


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


def _more_columns(estimator: Any) -> tuple[str, ...]:
    """Name what a model says beyond probabilities of the recorded label."""
    if hasattr(estimator, "latent"):
        return ("latent_mean", "latent_sd")
    return (*(f"clean_{label}" for label in estimator.classes_.tolist()), "vote_margin")


def _predict_block(estimator: Any, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of the classes, then what `_more_columns` names: shape (m, n_columns)."""
    proba = estimator.predict_proba(X)
    if hasattr(estimator, "latent"):
        mean, variance = estimator.latent(X)
        return np.column_stack([proba, mean, np.sqrt(variance)])
    return np.column_stack([proba, estimator.clean_proba(X), estimator.vote_margin(X)])


def score_frame(model: SavedModel, frame: Frame, how: str) -> tuple[Evaluation, tuple[str, ...]]:
    """Score a model on rows that hold the target; labels that it does not know are left out.

    Raises
    ------
    DataError
        If the target is missing, or no row has a label that the model knows.
    """
    classes = tuple(model.estimator.classes_.tolist())
    target = "target" if model.table is None else model.table.target
    rows = read_labelled(frame, target, encoder_of(model), classes)
    blocks = range(0, len(rows.X), _BLOCK)
    predict = model.estimator.predict_proba
    proba = np.concatenate([predict(rows.X[begin : begin + _BLOCK]) for begin in blocks])
    return _evaluation(model, how, rows.y_index, proba), rows.notes


def score_predictions(
    model: SavedModel, frame: Frame, predictions: Predictions
) -> tuple[Evaluation | None, tuple[str, ...]]:
    """Score predictions where the target is known; None, and why, where it cannot be used."""
    assert model.table is not None
    classes = model.estimator.classes_.tolist()
    try:
        values = read_target(
            frame, model.table.target, "classification", allow_one_class=True
        ).values
    except DataError as error:
        return None, (f"not scored: {error}",)
    position = {label: index for index, label in enumerate(classes)}
    rows = predictions.rows
    index = np.array([position.get(label, -1) for label in values[rows].tolist()])
    known = np.flatnonzero(index >= 0)
    notes: tuple[str, ...] = ()
    if len(known) < len(index):
        first = values[rows][int(np.argmax(index < 0))]
        notes = (
            f"{len(index) - len(known)} of {len(index)} rows have a label that was not in "
            f"training ({quoted(first)}) and are not scored",
        )
    if not len(known):
        return None, notes
    proba = np.column_stack([predictions.columns[f"proba_{label}"] for label in classes])
    return _evaluation(model, "predictions", index[known], proba[known]), notes


def _evaluation(
    model: SavedModel, how: str, y_index: NDArray[Any], proba: NDArray[np.float64]
) -> Evaluation:
    entry = ModelScore(
        type(model.estimator).__name__, False, score_classification(y_index, proba), 0.0
    )
    names = tuple(str(label) for label in model.estimator.classes_.tolist())
    return Evaluation(how, names, y_index, proba, (entry,))
