"""Predictions of the rows of a table by a saved model, block by block."""

from __future__ import annotations

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

__all__ = ["Predictions", "encoder_of", "predict_frame", "score_frame", "score_predictions"]

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
    columns: dict[str, NDArray[Any]] = {}
    labels = estimator.classes_.tolist()
    taken = {"prediction", "latent_mean", "latent_sd", *(f"proba_{label}" for label in labels)}
    if id_column in taken:
        raise UsageError(f"--id {quoted(id_column)} is also the name of a prediction; rename it")
    if id_column is None:
        columns["row"] = encoded.rows + 1
    else:
        columns[id_column] = as_levels(frame.column(id_column))[encoded.rows]
    probas, means, variances = [], [], []
    for begin in range(0, len(encoded.X), _BLOCK):
        X = encoded.X[begin : begin + _BLOCK]
        probas.append(estimator.predict_proba(X))
        mean, variance = estimator.latent(X)
        means.append(mean)
        variances.append(variance)
    proba = np.concatenate(probas)
    columns["prediction"] = estimator.classes_[np.argmax(proba, axis=1)]
    for index, label in enumerate(labels):
        columns[f"proba_{label}"] = proba[:, index]
    columns["latent_mean"] = np.concatenate(means)
    columns["latent_sd"] = np.sqrt(np.concatenate(variances))
    notes = list(encoded.notes)
    target = None if model.table is None else model.table.target
    ignored = [name for name in encoded.ignored if name not in (target, id_column)]
    if ignored:
        shown = ", ".join(quoted(name) for name in ignored[:10])
        more = f" and {len(ignored) - 10} more" if len(ignored) > 10 else ""
        notes.append(f"columns that the model does not use: {shown}{more}")
    return Predictions(columns, encoded.rows, tuple(notes))


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
