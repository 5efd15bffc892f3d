"""Rows larger than memory: `mercer fit --engine`, and predictions and scores block by block.

Scores are of rows that are predicted block by block, as long as their target can be read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray

from mercer import models
from mercer.cli.fitting import (
    FitOptions,
    Fitted,
    Plan,
    always,
    claim_folder,
    features_of_many,
    features_words,
    identity_of,
    make_estimator,
    parse_settings,
    provenance_of,
)
from mercer.cli.prediction import Predictor, encoder_of, find_id, find_predictors, ignored_words
from mercer.cli.tables import (
    TARGET_IS_NAMED,
    UNSCORED,
    Split,
    TrainingTable,
    few_words,
    groups_of,
    refuse_new_classes,
    table_facts,
    test_file,
    unknown_words,
    untold_words,
)
from mercer.cli.terminal import Session
from mercer.data.arrow import PARQUET, is_arrow
from mercer.data.encoding import ColumnCode, Encoder, Missing, as_levels, no_column, times_of
from mercer.data.files import changed, check_path, first_bytes, printable, quoted
from mercer.data.formats import Dates
from mercer.data.frame import (
    INDEX_COLUMNS,
    Column,
    Frame,
    Origin,
    TableFacts,
    index_column,
    index_words,
    null_words,
)
from mercer.data.opening import column_names, open_rows, read_rows
from mercer.data.row_names import RowNames
from mercer.data.row_writer import RowWriter
from mercer.data.source import NPY, REMEDY, RowSource, regroup, take_rows
from mercer.data.tables import list_folder, read_texts
from mercer.data.target import LARGEST, MAX_CLASSES, Task, choose_task, spelling_notes
from mercer.errors import DataError, UsageError
from mercer.estimation.cross_validate import Fold
from mercer.estimation.model_file import TableModel
from mercer.estimation.splits import holdout, latest
from mercer.estimation.table_encoder import TableEncoder
from mercer.estimation.tasks import TASKS
from mercer.models import ModelEntry, SavedModel
from mercer.numerics.sums import ROWS_PER_TERM
from mercer.posterior.evaluation import HeldOut, RunningScores
from mercer.posterior.scores import RegressionScores, Scores
from mercer.random import stream

Rows = NDArray[np.int64]


class BlockScores:
    """What is known of the target of each block, and the scores so far.

    The targets, numbers or words, come in the blocks that are predicted; a `DataError` from them
    ends the scoring, not the predictions; so does their end.
    """

    def __init__(self, predictor: Predictor, targets: Iterator[NDArray[Any]]) -> None:
        self._predictor = predictor
        self._targets: Iterator[NDArray[Any]] | None = targets
        self._running = RunningScores()
        self._problem = ""
        self._n_rows = self._n_unknown = self._n_missing = 0
        self._stranger: Any = None

    def next_known(self) -> tuple[Rows, NDArray[Any]]:
        """Return positions, in the next block, of the rows that can be scored, and targets."""
        values = None
        if self._targets is not None:
            try:
                values = next(self._targets, None)
            except DataError as error:
                self._targets, self._problem = None, f"not scored: {error}"
        if values is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._n_rows += len(values)
        there = np.flatnonzero(~Column("", values, "text").is_missing)
        self._n_missing += len(values) - len(there)
        values = values[there]
        positions, y = self._predictor.task.known(values, self._predictor.classes)
        if len(positions) < len(values):
            if self._n_unknown == 0:
                first = np.setdiff1d(np.arange(len(values)), positions)[0]
                self._stranger = values[first]
            self._n_unknown += len(values) - len(positions)
        return there[positions], y

    def add(self, held: HeldOut | None) -> None:
        """Take what was said of these rows; None where none is known."""
        if held is not None:
            self._running.add(held)

    def scores(self) -> Scores | RegressionScores | None:
        """Return the scores of all blocks, without those that need all rows at once."""
        return None if self._problem else self._running.scores()

    @property
    def notes(self) -> tuple[str, ...]:
        """What kept rows from being scored, and which scores are left out."""
        if self._problem:
            return (self._problem,)
        notes: tuple[str, ...] = ()
        if self._n_missing:
            notes = (untold_words(self._n_missing, self._n_rows),)
        if self._n_unknown:
            n_told = self._n_rows - self._n_missing
            notes += (unknown_words(self._n_unknown, n_told, self._stranger),)
        if self._running.scores() is not None:
            notes += (
                "the table was predicted block by block, so the calibration error, which needs "
                "all rows at once, is left out",
            )
        return notes


# Predictions of tables that need not fit into memory: from file to file, block by block.
#
# The blocks are those of `prediction`, so the numbers are the same to the last bit.

#: Files that take more than this in all are read block by block.
LARGE_BYTES = 200_000_000


@dataclass(frozen=True)
class Streamed:
    """What is left to say once the predictions are written."""

    n_rows: int
    notes: tuple[str, ...]
    #: of the rows whose target is known, by output; without what needs all rows at once
    scores: dict[str, Scores | RegressionScores]


@dataclass(frozen=True, eq=False)
class TableStream:
    """A table, opened, and who predicts its rows."""

    predictors: tuple[Predictor, ...]  # of each output
    table: RowSource  # all columns
    inputs: RowSource  # those that the model takes, in its order
    texts: tuple[Path, ...]  # files whose cells can be read as text; none of an array
    id_column: str | None  # the column that names the rows
    notes: tuple[str, ...]  # about the table
    null_values: frozenset[str]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.inputs.n_rows

    def check(self) -> None:
        """Read all inputs once, to find bad cells before output that cannot be taken back."""
        for _ in self.inputs.blocks(self._n_block):
            pass

    @property
    def _n_block(self) -> int:
        """Rows of a block."""
        return self.predictors[0].n_rows

    def predict(
        self,
        writer: RowWriter,
        advance: Callable[[int], None],
        dress: Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]] = dict,
    ) -> Streamed:
        """Predict and write all rows.

        ``advance`` is given the number of rows of each block that is done; ``dress`` turns the
        columns of a block into those that are written.
        """
        marks = [BlockScores(each, self._targets(each)) for each in self.predictors]
        names = self._names()
        for X in self.inputs.blocks(self._n_block):
            called = next(names, None)
            if called is None or len(next(iter(called.values()))) != len(X):
                raise changed(self.table.name)
            for predictor, own in zip(self.predictors, marks, strict=True):
                columns, held = predictor.block(X, *own.next_known())
                own.add(held)
                called = called | columns
            writer.append(dress(called))
            advance(len(X))
        pairs = list(zip(self.predictors, marks, strict=True))
        notes = (each.about(note) for each, own in pairs for note in own.notes)
        found = {each.output: own.scores() for each, own in pairs}
        scores = {name: own for name, own in found.items() if own is not None}
        return Streamed(self.n_rows, tuple(dict.fromkeys(notes)), scores)

    def _names(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield what the rows of each block are called, as columns."""
        n = self._n_block
        if self.id_column is None:
            for begin in range(0, self.n_rows, n):
                at = np.arange(begin, min(begin + n, self.n_rows))
                yield RowNames.of_source(self.table, at).columns()
        else:
            for ids in _ids(self.table, self.texts, self.id_column, n, self.null_values):
                yield {self.id_column: ids}

    def _targets(self, predictor: Predictor) -> Iterator[NDArray[Any]]:
        """Yield the target of each block; numbers, or words where the classes are words."""
        target, n = predictor.target, self._n_block
        if target is None or target not in self.table.names:
            return
        if self.texts and any(isinstance(label, str) for label in predictor.classes):
            blocks: Iterator[NDArray[Any]] = read_texts(self.texts, target, n, self.null_values)
        else:
            _refuse_words(self.table, target)
            rows = self.table.select([target])  # gaps and all, which `blocks` refuses
            chunks = regroup(rows._chunks(0, rows.n_rows), n, rows.n_rows)
            blocks = (block[:, 0] for block in chunks)
        position = 0
        for values in blocks:
            self._refuse_targets(values, position, target)
            yield values
            position += len(values)

    def _refuse_targets(self, values: NDArray[Any], position: int, target: str) -> None:
        """Refuse a number that cannot be computed with."""
        if values.dtype != object and (is_bad := np.abs(values) > LARGEST).any():
            place = self.table.place(position + int(np.argmax(is_bad)), target)
            raise DataError(f"{place}: the target is too large to compute with; correct it")


def open_stream(
    model: SavedModel, data: str, out: Path | None, id_column: str | None
) -> TableStream | None:
    """Open a table to be predicted block by block, if it is large and that can be done; else None.

    A file of more than `LARGE_BYTES`, or an array in a .npy file, is not read whole, if the model
    does not drop rows with gaps, and ``out`` is .csv, .parquet or standard output (None). Where it
    takes more than numbers, the encoded rows are written into the cache.
    """
    encoder = encoder_of(model)
    are_numbers = all(encoder_of(one).target is None for one in model.outputs)
    is_possible = encoder.missing != "drop" and are_numbers
    is_written = out is None or out.suffix.lower() in (".csv", ".parquet")
    paths = _large_files(data) if is_possible and is_written else ()
    if not paths:
        return None
    predictors = find_predictors(model)
    words = encoder.null_values
    table = open_rows(data, null_values=words)
    own = [name for predictor in predictors for name in predictor.names]
    id_column, id_notes = find_id(model, table.names, id_column, own)
    is_array = first_bytes(paths[0]).startswith(NPY)
    is_plain = all(c.kind == "number" and not c.written for c in encoder.codes)
    if first_bytes(paths[0]).startswith(PARQUET):  # numerals in strings may be what is needed
        is_plain = is_plain and not set(table.refusals) & set(encoder.input_names)
    if is_plain and encoder.missing == "error":
        for name in encoder.input_names:
            if name not in table.names:
                raise no_column(table.name, name, table.names)
            _refuse_words(table, name)
        inputs = table.select(encoder.input_names)
    elif is_array:
        return None
    else:
        inputs = open_rows(data, encode=TableEncoder.of(encoder), null_values=words)
    if id_column is not None and id_column not in table.names:
        table.select([id_column])  # says what there is
    others = tuple(name for name in table.names if name not in encoder.input_names)
    return TableStream(
        predictors=predictors,
        table=table,
        inputs=inputs,
        texts=() if is_array else paths,
        id_column=id_column,
        notes=(*id_notes, *ignored_words(model, others, id_column)),
        null_values=words,
    )


def _large_files(data: str) -> tuple[Path, ...]:
    """List the files of a table that is too large to be read whole; else none."""
    if data == "-" or not os.path.lexists(data):
        return ()
    path = Path(data)
    paths = tuple(list_folder(path)) if check_path(path) else (path,)
    starts = [first_bytes(part) for part in paths]
    if any(is_arrow(start) and not start.startswith(PARQUET) for start in starts):
        return ()
    n_bytes = sum(os.path.getsize(part) for part in paths)
    return paths if n_bytes > LARGE_BYTES or starts[0].startswith(NPY) else ()


def _ids(
    table: RowSource, texts: Sequence[Path], column: str, n: int, null_values: frozenset[str]
) -> Iterator[NDArray[Any]]:
    """Yield what a column calls each row, ``n`` rows at a time; ``texts`` are files of text."""
    if texts:
        yield from read_texts(texts, column, n, null_values)
    else:
        for block in table.select([column]).blocks(n):
            yield as_levels(Column(column, block[:, 0], "number"))


def _refuse_words(table: RowSource, name: str) -> None:
    """Refuse a column that is not numbers, with the place of the first cell that is none."""
    if name in table.refusals:
        raise DataError(table.refusals[name].replace(REMEDY, "the model needs numbers there"))


# Training on rows that stay in their files.


@dataclass(frozen=True, eq=False)
class StoredTraining:
    """Rows to learn from, inputs and target, and what learns."""

    rows: RowSource
    entry: ModelEntry
    estimator: Any  # unfitted
    reason: str  # for the task
    options: FitOptions
    held_out: Rows = field(default_factory=lambda: np.zeros(0, np.int64))  # ascending positions
    scoring: tuple[str, ...] = ()  # what is said of these

    @property
    def words(self) -> str:
        """What the rows are."""
        encoding = self.rows.encoding
        n_inputs = self.rows.n_columns - 1 if encoding is None else len(encoding.codes)
        place = "in place" if encoding is None else "encoded once, into the cache"
        inputs = f"{n_inputs} input{'s' * (n_inputs != 1)}"
        return f"{printable(self.rows.name)}: {self.rows.n_rows} rows, {inputs}, {place}"

    def named(self, rows: Rows) -> RowNames:
        """Name some rows, at ascending positions."""
        names, id_column = RowNames.of_source(self.rows, rows), self.options.table.id_column
        if id_column is None:
            return names
        table, cells = self._cells(id_column, names)
        at = table.positions(names.file, names.number)
        return replace(names, id_column=id_column, ids=take_rows(at, 0, cells))

    def levels(self, column: str, *, as_text: bool) -> tuple[Frame, Rows]:
        """Read a column of the files: its levels, each where it stands first, and that of each row.

        The levels are a table of one column; numbers are such, unless all are to be text.
        """
        names = RowNames.of_source(self.rows, np.arange(self.rows.n_rows))
        table, cells = self._cells(column, names)
        number: dict[Any, int] = {}
        found = [
            np.array([number.setdefault(cell, len(number)) for cell in block], np.int64)
            for block in cells
        ]
        of_rows = np.concatenate(found)[table.positions(names.file, names.number)]
        used, first, which = np.unique(of_rows, return_index=True, return_inverse=True)
        own = Column(column, np.array([*number], dtype=object)[used], "text")
        if not as_text and column not in table.refusals:
            own = Column(column, own.values.astype(np.float64), "number")
        origin = Origin(
            names.files,
            names.file[first].astype(np.int32),
            names.number[first],
            np.zeros_like(first),
        )
        return Frame((own,), self.rows.name, origin), which

    def _cells(self, column: str, names: RowNames) -> tuple[RowSource, Iterator[NDArray[Any]]]:
        """Open the files as they stand, and read a column, as text and block by block."""
        words = null_words(self.options.table.null_values)
        table = open_rows(self.options.data, null_values=words)
        paths = [Path(file) for file in names.files]
        texts = () if first_bytes(paths[0]).startswith(NPY) else paths
        return table, _ids(table, texts, column, ROWS_PER_TERM, words)


def check_engine(
    engine: str | None, scheduler: str | None, workers: int | None, unused: dict[str, Any]
) -> None:
    """Refuse options of a cluster without one, and with an engine those of the whole table."""
    if engine != "dask" and (scheduler is not None or workers is not None):
        raise UsageError("--scheduler and --workers are of --engine dask")
    given = [name for name, value in unused.items() if value is not None]
    if engine is not None and given:
        instead = {"--cv": "use --test-size", "--encoding": "save them as UTF-8, as iconv does"}
        words = "; ".join(["", *(instead[name] for name in given if name in instead)])
        raise UsageError(
            f"{', '.join(given)}: not with --engine, which leaves the rows in their files{words}"
        )


def open_training(
    options: FitOptions,
    engine: str,
    session: Session,
    *,
    scheduler: str | None = None,
    n_workers: int | None = None,
) -> StoredTraining:
    """Open files whose rows this process ("disk"), or workers of a Dask cluster ("dask"), read.

    Without scoring it is an audit, which "sphere" makes. A `UsageError` where the model cannot
    learn from such rows, or the data are no files; a `DataError` where a column is not there, or is
    not numbers.
    """
    header = _header_of(options)
    options = _with_id(options, header)
    model, table = _model_of_stored(options), options.table
    encode: Any = TableEncoder(
        cast(Missing, table.missing), cast(Dates, table.dates), table.null_values, table.categories
    )
    if (encode.missing, encode.dates, encode.categories) == ("error", "auto", ()):
        encode = "auto"
    with session.warnings_as_lines():
        rows = open_rows(
            options.data,
            engine="dask" if engine == "dask" else None,
            scheduler=scheduler,
            n_workers=n_workers,
            target=table.target,
            encode=encode,
            drop=(*table.drop, *_names_of_rows(options, header)),
            null_values=None if table.null_values is None else null_words(table.null_values),
            task="regression" if table.task == "regression" else "auto",
        )
    target = rows.names[-1]
    labels, kind = rows.labels.get(target, ()), rows.kinds.get(target)
    written = frozenset(labels) if kind == "code" else frozenset[str]()
    column = Column(target, np.array(labels), "text", written)
    if target not in rows.labels:
        is_counted = table.task == "auto" or model == "sphere"
        found = rows.count(target, MAX_CLASSES) if is_counted else {}
        column = Column(target, np.array(list(found)), "boolean" if kind == "boolean" else "number")
    chosen, reason = choose_task(column, cast(Task, table.task))
    reason = "; ".join((reason, *spelling_notes(column)))
    if options.scoring is None and chosen == "regression":
        raise UsageError(f"{reason}; an audit of numbers needs them in memory, without --engine")
    n_classes = len(column.values) if chosen == "classification" else 0
    entry = models.choose_model(model, chosen, n_classes, rows.n_rows)
    common = {
        **always(options.seed),
        "n_jobs": options.jobs or (cpu_count() if engine == "disk" else None),
        "checkpoint": options.checkpoint and options.checkpoint / "fit",
        "progress": False if session.is_json else "auto",
    }  # fmt: skip
    settings = parse_settings(options.settings)
    common |= features_of_many(entry, settings, rows.n_rows)
    estimator = make_estimator(entry.estimator_class(), settings, common)
    if model == "sphere":
        estimator._refuse_many(rows.n_rows, n_classes)
    return StoredTraining(rows, entry, estimator, reason, options)


def _header_of(options: FitOptions) -> Frame:
    """Read which columns there are: a table without rows."""
    if options.data == "-":
        raise UsageError(
            "--engine reads the rows again and again, and standard input can be read once; save "
            "them to a file"
        )
    if not os.path.lexists(options.data):
        raise UsageError(f"--engine: {printable(options.data)} is no file or folder")
    return Frame.of_header(column_names(options.data), options.data)


def _with_id(options: FitOptions, header: Frame) -> FitOptions:
    """Take a column without a name for the names of the rows, as long as none is given."""
    table = options.table
    index, dropped = index_column(header.names), header.named(table.drop)
    if table.id_column is not None or index in (None, table.target, *dropped):
        return options
    return replace(options, table=replace(table, id_column=index))


def _names_of_rows(options: FitOptions, header: Frame) -> list[str]:
    """Name the columns that are names of rows or of groups, and no input.

    A `DataError` where one of these, or that of the time, is not there.
    """
    table = options.table
    names, levels = filter(None, [table.id_column, table.group]), header.named(table.categories)
    if table.time is not None:
        header.column(table.time)
    return [header.column(name).name for name in names if name not in levels]


def _model_of_stored(options: FitOptions) -> str:
    """Name the model that learns; refuse what it, or rows that stay in their files, cannot do."""
    model, table = options.model, options.table
    if model == "auto":
        model = "spectral" if options.scoring else "sphere"
    if model not in ("spectral", "sphere"):
        raise UsageError(f"--engine: {model} needs all rows in memory; use --model spectral")
    if model != "sphere" and options.scoring is None:
        raise UsageError("--engine: sphere alone audits rows that stay in their files")
    if table.missing == "posterior":
        raise UsageError("--missing posterior: not with --engine; use impute, indicator or drop")
    if table.target in (table.id_column, table.group, table.time):
        raise UsageError(TARGET_IS_NAMED)
    is_split = options.scoring is not None and options.scoring.test_size is not None
    if (table.time or table.group) and not is_split:
        raise UsageError(
            "--engine: --time and --group say which rows --test-size holds out; add it"
        )
    return model


_MOST_SCORED = 20_000  # of rows that stay in their files; as many others teach baselines


@dataclass(frozen=True, eq=False)
class StoredSample:
    """Some of the rows, in memory: those that are held out to score on, and others."""

    at: Rows  # ascending positions (n,)
    rows: NDArray[np.float64]  # (n, d + 1), inputs and target
    is_held_out: NDArray[np.bool_]  # (n,); the model learns from the others
    names: RowNames  # of those that are held out
    how: str
    groups: Rows | None  # of those, where rows come in groups

    def plan(self, stored: StoredTraining, fitted: Fitted, saved: TableModel) -> Plan:
        """Return the plan that scores what was fitted beside baselines, which learn from these.

        On the rows that are held out, or those of the file that was named.
        """
        rows, encoder, task = stored.rows, saved.encoder, TASKS[stored.entry.task]
        classes = tuple(fitted.estimator.classes_.tolist()) if task.is_stratified else ()
        train, held_out = self.rows[~self.is_held_out], self.rows[self.is_held_out]
        learned, y = _known(stored, train, classes)
        held, y_test = _known(stored, held_out, classes)
        X, X_test, names = train[learned, :-1], held_out[held, :-1], self.names.take(held)
        inputs = Frame.of_header(encoder.input_names, rows.name)
        table = TrainingTable(
            rows.name, inputs, encoder, X, classes, y, y, None, names, task, stored.reason, ()
        )
        options = stored.options
        if options.scoring is not None and options.scoring.test is not None:
            split = test_file(table, rows.names[-1], options.scoring.test, None)
        else:
            parts = encoder.feature_names, encoder.sources
            groups = None if self.groups is None else self.groups[held]
            fold = Fold(X, y, X_test, y_test, np.arange(len(y)), groups, None, *parts)
            split = Split((fold,), self.how, few_words(len(held), task), fold.train, names)
        n_jobs = options.jobs or cpu_count()
        return Plan(
            stored.entry, table, split, stored.estimator, options.seed, n_jobs, None, frozenset()
        )

    def facts(self, stored: StoredTraining, plan: Plan) -> TableFacts:
        """Describe these rows, as they stand in the files."""
        classes, encoder = plan.table.classes, plan.table.encoder
        known, y = _known(stored, self.rows, classes)
        X, at = self.rows[known, :-1], self.at[known]
        if stored.rows.encoding is None:
            own = (Column(name, X[:, k], "number") for k, name in enumerate(encoder.input_names))
            inputs = Frame.from_columns(list(own), stored.rows.name)
        else:
            inputs = read_rows(stored.options.data, stored.rows, at, encoder)
        names = RowNames.of_source(stored.rows, at)
        found = table_facts(inputs, encoder, X, y, classes, names)
        return replace(found, n_all=stored.rows.n_rows)


def _known(
    stored: StoredTraining, block: NDArray[np.float64], classes: tuple[Any, ...]
) -> tuple[Rows, NDArray[Any]]:
    """Which rows have a target that the model knows, and these as tasks encode them."""
    return TASKS[stored.entry.task].known(_said(stored.rows, block[:, -1]), classes)


def _said(rows: RowSource, values: NDArray[np.float64]) -> NDArray[Any]:
    """Return what targets are in the files, of numbers that may stand for labels."""
    labels = rows.labels.get(rows.names[-1])
    return np.array(labels)[values.astype(int)] if labels else values


def beside_file(stored: StoredTraining, test: str) -> tuple[StoredTraining, StoredSample]:
    """Score on the rows of a file, and read `_MOST_SCORED` rows at most, which teach baselines.

    A `DataError` where the file lacks a column.
    """
    rows, n = stored.rows, stored.rows.n_rows
    *inputs, target = rows.names
    header = Frame.of_header(column_names(test), test)
    for name in (target, *(inputs if rows.encoding is None else rows.encoding.input_names)):
        header.column(name)
    chosen = stream(stored.options.seed, "folds").choice(n, min(n, _MOST_SCORED), replace=False)
    at = np.union1d(chosen, _first_of_classes(stored))
    none = np.zeros(0, dtype=np.int64)
    names = RowNames.of_source(rows, none)
    sample = StoredSample(at, rows.take(at), np.zeros(len(at), np.bool_), names, "", None)
    words = (f"the rows of {printable(test)}", f"baselines learn from {len(at)} of {n} rows")
    return replace(stored, scoring=words), sample


def hold_out(stored: StoredTraining, test_size: float) -> tuple[StoredTraining, StoredSample]:
    """Hold a share of the rows out, at most about `_MOST_SCORED`, and read these.

    A row of each class is not held out, and teaches baselines. The latest rows are held out with
    all of the same time, and groups as a whole: of more than `_MOST_SCORED` as many are read.
    """
    rows, n, table = stored.rows, stored.rows.n_rows, stored.options.table
    n_test = min(max(1, round(test_size * n)), _MOST_SCORED)
    n_learned = min(n - n_test, _MOST_SCORED)
    rng, which, groups = stream(stored.options.seed, "folds"), "rows", None
    if table.time is None and table.group is None:
        chosen = rng.choice(n, n_test + n_learned, replace=False)
        of_classes = _first_of_classes(stored)
        held_out, others = np.setdiff1d(chosen[:n_test], of_classes), chosen[n_test:]
    else:
        share = min(test_size, _MOST_SCORED / n)
        others, held_out, of_classes, groups = _split_by_column(stored, share, rng)
        others = rng.choice(others, min(len(others), n_learned), replace=False)
        which = f"rows, the latest by {quoted(table.time)}," if groups is None else "rows in groups"
    is_cut = len(held_out) > _MOST_SCORED
    test = np.sort(rng.choice(held_out, _MOST_SCORED, replace=False)) if is_cut else held_out
    learned = np.setdiff1d(np.concatenate([others, of_classes]), test)
    if len(test) == 0 or len(learned) < 2:
        raise DataError(f"{printable(rows.name)}: {n} rows are too few to hold some of them out")
    order = np.union1d(test, learned)
    taken, is_test = rows.take(order), np.isin(order, test)
    most = " (no more are with --engine)" if n_test == _MOST_SCORED else ""
    how = f"{len(held_out)} of {n} {which} held out{most}"
    how += f", {len(test)} of them scored" if is_cut else ""
    words = [f"{how}; the saved model does not learn from them"]
    if len(learned) < n - len(held_out):
        words.append(f"baselines learn from {len(learned)} of the others")
    words += few_words(len(test), TASKS[stored.entry.task])
    own = None if groups is None else groups[test]
    sample = StoredSample(order, taken, is_test, stored.named(test), how, own)
    return replace(stored, held_out=held_out, scoring=tuple(words)), sample


def _split_by_column(
    stored: StoredTraining, share: float, rng: np.random.Generator
) -> tuple[Rows, Rows, Rows, Rows | None]:
    """Hold the latest rows out, or whole groups, as of a table in memory.

    Returns the positions of the other rows, of these, and of the first of the others of each class,
    and the group of each row; None where it is the latest.
    """
    rows, table, task = stored.rows, stored.options.table, TASKS[stored.entry.task]
    labels, y, groups = [], np.zeros(rows.n_rows, np.int64), None
    if task.is_stratified:
        targets = rows.select(rows.names[-1:]).take(np.arange(rows.n_rows))[:, 0]
        values, y = np.unique(targets, return_inverse=True)
        labels = _said(rows, values).tolist()
    if table.time is not None:
        frame, level = stored.levels(table.time, as_text=False)
        times = times_of(frame, table.time, cast(Dates, table.dates))
        train, test = latest(times[level], share)
        refuse_new_classes(labels, y, [(train, test)], rows.name, table.time)
    else:
        frame, level = stored.levels(str(table.group), as_text=True)
        groups = groups_of(frame, str(table.group))[level]
        train, test = holdout(y, share, rng, groups, is_classification=task.is_stratified)
    first = np.unique(y[train], return_index=True)[1] if task.is_stratified else train[:0]
    return train, test, train[first], groups


def _first_of_classes(stored: StoredTraining) -> Rows:
    """Return the position of the first row of each class; none of numbers."""
    first: dict[float, int] = {}
    if TASKS[stored.entry.task].is_stratified:
        for found in stored.rows.select(stored.rows.names[-1:]).each(_first_rows, ROWS_PER_TERM):
            first = found | first
    return np.array([*first.values()], dtype=np.int64)


def _first_rows(position: int, blocks: Iterator[NDArray[np.float64]]) -> dict[float, int]:
    """Return where each value of the only column stands first."""
    first: dict[float, int] = {}
    for block in blocks:
        values, at = np.unique(block[:, 0], return_index=True)
        first = dict(zip(values.tolist(), (position + at).tolist(), strict=True)) | first
        position += len(block)
    return first


def fit_stored(stored: StoredTraining, session: Session) -> tuple[Fitted, TableModel]:
    """Fit, and say what of; return, too, how a table becomes the inputs of the model."""
    session.say("data", stored.words)
    for note in stored.rows.encoding.notes if stored.rows.encoding else ():
        session.note("", note)
    session.say("task", stored.reason)
    summary = stored.entry.summary + features_words(stored.estimator)
    session.say("model", f"{stored.entry.name} ({summary})")
    id_column = stored.options.table.id_column
    if id_column in INDEX_COLUMNS:
        session.say("columns", index_words(id_column))
        id_column = None  # it is found anew
    for k, words in enumerate(stored.scoring):
        session.say("" if k else "scoring", words)
    session.say("seed", str(stored.options.seed))
    started = time.perf_counter()
    estimator, options = stored.estimator, stored.options
    rows = stored.rows.without_rows(stored.held_out).verified()
    *inputs, target = rows.names
    if stored.entry.name == "sphere":  # which says of each row whether its label is wrong
        kept = np.delete(np.arange(stored.rows.n_rows), stored.held_out)
        estimator._names_of_rows = stored.named(kept)
    if options.checkpoint is not None:
        identity = identity_of(options, stored.entry, parse_settings(options.settings), UNSCORED)
        claim_folder(options.checkpoint, rows.digest(), identity, session)
    with session.warnings_as_lines(), session.at_work("fitting"):
        estimator.fit(rows, target)
    seconds = time.perf_counter() - started
    estimator.set_params(progress="auto", checkpoint=None, n_jobs=None)
    encoder = rows.encoding
    if encoder is None:
        del estimator.feature_names_in_  # the encoder matches columns by name, and gives arrays
        encoder = Encoder(tuple(ColumnCode(name, "number") for name in inputs), "error")
    fitted = Fitted(estimator, rows.n_rows, seconds, None)
    notes = (stored.reason, *encoder.notes)
    provenance = provenance_of(
        fitted, rows.name, list(encoder.input_names), target, options.seed, notes
    )
    return fitted, TableModel(encoder, target, None, provenance, id_column=id_column)
