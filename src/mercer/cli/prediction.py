"""Predictions of the rows of a table by a saved model, block by block."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.tables import Known, ScoredRows, read_known, read_scored, table_facts
from mercer.data.encoding import ColumnCode, Encoder
from mercer.data.files import quoted
from mercer.data.frame import INDEX_COLUMNS, Frame, index_column
from mercer.data.row_names import RowNames
from mercer.data.tables import read_frame
from mercer.errors import DataError, ModelFileError, UsageError
from mercer.estimation.cross_validate import Result
from mercer.estimation.inspection import Inspection
from mercer.estimation.tasks import BLOCK, REGRESSION, Task, task_of
from mercer.models import SavedModel, read_model
from mercer.posterior.container import is_container
from mercer.posterior.evaluation import AnyEvaluation, HeldClasses, HeldOut, hold
from mercer.posterior.scores import LEVEL

# The model of a command that takes MODEL and DATA.


def read_model_before(model: Path, data: str | None) -> SavedModel:
    """Read the model of a command; where its two arguments look swapped, the error says so."""
    try:
        return read_model(model)
    except ModelFileError as error:
        if data is None or is_container(model) or not is_container(data):
            raise
        raise ModelFileError(f"{error}, but {data!r} is one: the model comes first") from None


def output_of(model: SavedModel, asked: str | None) -> SavedModel:
    """Return the model of the one target that a command is about, by its name."""
    names: tuple[str, ...] = getattr(model.estimator, "output_names_", ())
    if asked is None and len(model.outputs) == 1:
        return model
    own = None if model.table is None else model.table.target
    found = dict(zip(names or (own,), model.outputs, strict=True))
    if asked not in found:
        known = ", ".join(quoted(name) for name in found if name is not None)
        what = "which target" if asked is None else f"no target {quoted(asked)}"
        raise UsageError(f"--target: {what}; the model learned {known or 'one'}")
    return found[asked]


# What a saved model says of a block of rows, as columns of a table: classes or numbers.

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Predictor:
    """Predicts one block of rows after the other by a fitted estimator.

    Of a class, the most probable one and the probability of each; what else depends on the method.
    Of a number, mean and spread of a new observation, and the central 90 % interval.
    """

    estimator: Any
    variance: float  # of the training targets of a regressor; nan if it is not known
    target: str | None  # the column that it predicts, where that is known
    output: str = ""  # name of the output, where the model has several

    @property
    def task(self) -> Task:
        """The task of the model."""
        return task_of(self.estimator)

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class labels; none of a regressor."""
        return () if self.task is REGRESSION else tuple(self.estimator.classes_.tolist())

    @property
    def n_rows(self) -> int:
        """Rows of a block, at most."""
        return BLOCK if self.task is REGRESSION else 10_000

    def about(self, words: str) -> str:
        """Let words be about the output, where the model has several."""
        return f"{self.output}: {words}" if self.output else words

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        if self.task is REGRESSION:
            own = ("prediction", "std", "lower_90", "upper_90")
            return tuple(f"{name}_{self.output}" for name in own) if self.output else own
        more: tuple[str, ...] = ()
        if self._has_latent:
            more = ("latent_mean", "latent_sd")
        elif hasattr(self.estimator, "clean_proba"):
            more = (*(f"clean_{label}" for label in self.classes), "vote_margin")
        return ("prediction", *(f"proba_{label}" for label in self.classes), *more)

    def block(self, X: Array, known: Rows, y: NDArray[Any]) -> tuple[Columns, HeldOut | None]:
        """Predict rows X (m, d), and say what was predicted of those whose target is known.

        ``known`` (k,) are their positions in the block and ``y`` (k,) their targets. Columns have
        shape (m,); the second result is None if nothing is known.
        """
        values, held = (self._numbers if self.task is REGRESSION else self._labels)(X, known, y)
        return dict(zip(self.names, values, strict=True)), held

    def _numbers(self, X: Array, known: Rows, y: Array) -> tuple[list[Array], HeldOut | None]:
        law = self.estimator.predictive(X)
        if len(known) == 0:
            return [law.mean, law.std, *law.interval(LEVEL)], None
        targets = np.full(len(X), y[0])  # one that is possible, where none is known
        targets[known] = y
        held = hold(law, targets, self.variance)
        return [held.mean, held.std, held.lower, held.upper], held.at(known)

    def _labels(self, X: Array, known: Rows, y: Rows) -> tuple[list[NDArray[Any]], HeldOut | None]:
        proba = self.estimator.predict_proba(X)
        values = [self.estimator.classes_[np.argmax(proba, axis=1)], *proba.T]
        if self._has_latent:
            mean, variance = self.estimator.latent(X)
            values += [mean, np.sqrt(variance)]
        elif hasattr(self.estimator, "clean_proba"):
            values += [*self.estimator.clean_proba(X).T, self.estimator.vote_margin(X)]
        return values, HeldClasses(y, proba[known]) if len(known) else None

    @property
    def _has_latent(self) -> bool:
        """Whether there is one function to speak of: that of two classes."""
        return len(self.classes) == 2 and hasattr(self.estimator, "latent")


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of each row, as named columns of equal length, and its scores."""

    columns: dict[str, NDArray[Any]]
    notes: tuple[str, ...]  # about the table
    evaluations: dict[str, AnyEvaluation]  # of the rows whose target is known, by output


def encoder_of(model: SavedModel) -> Encoder:
    """Return how a table becomes inputs; a model saved from Python takes its columns as numbers."""
    if model.table is not None:
        return model.table.encoder
    if hasattr(model.estimator, "encoder_"):
        encoding: Encoder = model.estimator.encoder_.encoding_
        return encoding
    names = model.estimator.feature_labels_
    return Encoder(tuple(ColumnCode(name, "number") for name in names), "error")


def read_for(
    model: SavedModel, data: str, id_column: str | None = None, encoding: str | None = None
) -> Frame:
    """Read a table whose columns are written as those that the model learned from."""
    written = [
        name
        for one, own in zip(model.outputs, find_predictors(model), strict=True)
        for name in encoder_of(one).texts(own.target, own.classes)
    ]
    names = (*INDEX_COLUMNS, _fitted_id(model)) if id_column is None else (id_column,)
    words = encoder_of(model).null_values
    return read_frame(data, as_text=names, as_written=written, encoding=encoding, null_values=words)


def find_id(
    model: SavedModel, names: Sequence[str], asked: str | None, own: Collection[str]
) -> tuple[str | None, tuple[str, ...]]:
    """Find the column that names the rows, and say where it is not that of the fit.

    It is as asked, as it was for the fit, or one without a name that is no input. ``own`` are the
    result's columns; it may not be called like one.
    """
    if asked in own:
        raise UsageError(f"--id {quoted(asked)} is also a column of the result; rename it")
    if asked is not None:
        return asked, ()
    index, fitted = index_column(names), _fitted_id(model)
    found = None if index in encoder_of(model).input_names else index
    if not fitted or fitted in set(names) - set(own):
        return fitted or found, ()
    why = "also a column of the result" if fitted in names else "not there"
    by = "numbers" if found is None else f"column {quoted(found)}"
    words = f"column {quoted(fitted)}, which named the rows of the fit, is {why}; rows go by {by}"
    return found, (words,)


def _fitted_id(model: SavedModel) -> str:
    return (model.table and model.table.id_column) or ""


def predict_frame(model: SavedModel, frame: Frame, id_column: str | None) -> Predictions:
    """Predict every row, and score those whose target is known."""
    encoded = encoder_of(model).transform(frame)
    predictors = find_predictors(model)
    own = [name for predictor in predictors for name in predictor.names]
    id_column, id_notes = find_id(model, frame.names, id_column, own)
    columns = RowNames.of_frame(frame, encoded.rows, id_column).columns()
    columns = columns if id_column is None else {id_column: columns[id_column]}
    notes = (*encoded.notes, *id_notes, *ignored_words(model, encoded.ignored, id_column))
    evaluations = {}
    for one, predictor in zip(model.outputs, predictors, strict=True):
        known = _known(one, frame, encoded.rows, predictor)
        said, held = _predict(predictor, encoded.X, known)
        columns |= said
        notes += tuple(predictor.about(note) for note in known.notes)
        if held:
            evaluations[predictor.output] = _evaluation(one, "predictions", predictor, held)
    return Predictions(columns, notes, evaluations)


def find_predictors(model: SavedModel) -> tuple[Predictor, ...]:
    """Return what predicts by a saved model, each of its outputs."""
    names, found = getattr(model.estimator, "output_names_", ()) or ("",), []
    for name, one in zip(names, model.outputs, strict=True):
        variance = None if one.table is None else one.table.target_variance
        target = None if one.table is None else one.table.target
        variance = math.nan if variance is None else variance
        found.append(Predictor(one.estimator, variance, target, name))
    return tuple(found)


def _known(model: SavedModel, frame: Frame, rows: NDArray[np.int64], predictor: Predictor) -> Known:
    """Find the targets of the rows; if they cannot be used, none, and why."""
    none, target = np.zeros(0, dtype=np.int64), predictor.target
    if target is None or target not in frame.names:
        return Known(none, none, ())
    try:
        encoder, classes = encoder_of(model), predictor.classes
        return read_known(frame, target, predictor.task, encoder, classes, rows)
    except DataError as error:
        return Known(none, none, (f"not scored: {error}",))


def _predict(
    predictor: Predictor, X: NDArray[np.float64], known: Known
) -> tuple[dict[str, NDArray[Any]], tuple[HeldOut, ...]]:
    """Predict block by block; what was said of rows that are known, in as many parts."""
    blocks, held = [], []
    for begin in range(0, len(X), predictor.n_rows):
        end = min(begin + predictor.n_rows, len(X))
        columns, part = predictor.block(X[begin:end], *known.within(begin, end))
        blocks.append(columns)
        held += [] if part is None else [part]
    whole = {name: np.concatenate([block[name] for block in blocks]) for name in predictor.names}
    return whole, tuple(held)


def ignored_words(
    model: SavedModel, ignored: Sequence[str], id_column: str | None
) -> tuple[str, ...]:
    """Say which columns the model does not use; nothing where there are none."""
    table = model.manifest.get("table") or {}
    others = (each["target"] for each in table.get("outputs", ()))  # of an output, too
    used = (id_column, *others, *(predictor.target for predictor in find_predictors(model)))
    names = [name for name in ignored if name not in used]
    if not names:
        return ()
    shown = ", ".join(quoted(name) for name in names[:10])
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return (f"columns that the model does not use: {shown}{more}",)


def score_frame(
    model: SavedModel, frame: Frame, how: str
) -> tuple[AnyEvaluation, tuple[str, ...], Inspection]:
    """Score a model on rows that hold the target, and see which inputs decide.

    Rows whose label it does not know are left out, and said in the notes.
    """
    (predictor,) = find_predictors(model)
    target = "target" if model.table is None else model.table.target
    rows = read_scored(frame, target, encoder_of(model), predictor.task, predictor.classes)
    known = Known(np.arange(len(rows.y)), rows.y, ())
    _, held = _predict(predictor, rows.X, known)
    return _evaluation(model, how, predictor, held), rows.notes, _inspect(model, predictor, rows)


def _inspect(model: SavedModel, predictor: Predictor, rows: ScoredRows) -> Inspection:
    """See which inputs decide on rows whose target is known."""
    from mercer.report.build import inspect_rows

    encoder = encoder_of(model)
    facts = table_facts(rows.inputs, encoder, rows.X, rows.y, predictor.classes, rows.names)
    inputs = encoder.inputs
    return inspect_rows(model.estimator, rows.X, rows.y, inputs, rows.names, facts)


def _evaluation(
    model: SavedModel, how: str, predictor: Predictor, held: tuple[HeldOut, ...]
) -> AnyEvaluation:
    result = Result(type(model.estimator).__name__, False, held, 0.0, predictor.task)
    return predictor.task.evaluate(how, predictor.classes, [result])
