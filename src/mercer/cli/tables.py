"""From DATA and the options to what is fitted: inputs, targets, groups, and notes about them."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from mercer.cli.options import TableOptions
from mercer.data.csv_reader import line_end
from mercer.data.encoding import (
    ColumnCode,
    Encoder,
    Missing,
    as_levels,
    fit_encoder,
    times_of,
    without_empty,
)
from mercer.data.files import STANDARD_INPUT, listing, printable, quoted
from mercer.data.formats import CellFormat, Dates
from mercer.data.frame import (
    INDEX_COLUMNS,
    Column,
    Frame,
    InputFacts,
    Inputs,
    Origin,
    TableFacts,
    code_notes,
    far_values,
    gap_words,
    index_column,
    index_words,
    null_words,
    parse_number,
    strengths_alone,
)
from mercer.data.row_names import RowNames
from mercer.data.tables import read_frame
from mercer.data.target import Task as AnyTask
from mercer.data.target import read_target, spelling_notes
from mercer.errors import DataError, UsageError
from mercer.estimation.cross_validate import Fold
from mercer.estimation.splits import folds, forward_folds, holdout, latest
from mercer.estimation.tasks import TASKS, Task
from mercer.kernels.columns import distinct_rows
from mercer.posterior.evaluation import FEW_ROWS, digits
from mercer.random import stream

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """A table to learn from; all rows are usable."""

    source: str  # the file, folder or data set, as it was named
    inputs: Frame  # the columns to learn from
    encoder: Encoder  # fitted on all rows
    X: NDArray[np.float64]  # (n, d)
    classes: tuple[Any, ...]  # labels, sorted; empty for regression
    labels: NDArray[Any]  # (n,), the targets in their own type; (n, q) of several
    y: NDArray[Any]  # (n,), position in `classes`, or the number; (n, q) of several
    groups: Rows | None  # (n,), numbers
    names: RowNames  # what the rows are called in the file
    task: Task
    reason: str  # why it is this task
    notes: tuple[str, ...]  # what was done to columns and rows
    order: tuple[Any, ...] = ()  # `classes` from the lowest to the highest, where the file knows it
    targets: tuple[str, ...] = ()  # names of several
    written: tuple[CellFormat | None, ...] = ()  # how the numbers of each of these stand in it
    times: NDArray[np.float64] | None = None  # (n,), where rows are scored forward in time
    time: str | None = None  # the column that these are from

    @functools.cached_property
    def n_costly(self) -> int:
        """How many rows there are, of classes those alike in their inputs once: gp fits them so."""
        return len(distinct_rows(self.X)[0]) if self.classes else len(self.labels)

    def output(self, k: int) -> TrainingTable:
        """Return the table of one of several targets."""
        encoder = replace(self.encoder, target=self.written[k])
        labels, y = self.labels[:, k], self.y[:, k]
        return replace(self, labels=labels, y=y, encoder=encoder, targets=())

    def fold(self, train: Rows, test: Rows) -> Fold:
        """Encode one split; what the encoding learns, it learns on the training part."""
        if len(train) < 2:
            words = f"of {len(self.labels)} rows one would be left to learn from; score on fewer"
            raise DataError(f"{printable(self.source)}: {words}, or add rows")
        part = self.part(train)
        own = None if self.groups is None else self.groups[test]
        encoder = part.encoder
        X_test = encoder.transform(self.inputs.take(test)).X if encoder.learns else self.X[test]
        names = encoder.feature_names, encoder.sources
        fold = Fold(part.X, part.y, X_test, self.y[test], train, own, part.groups, *names)
        if not encoder.learns:
            return fold
        rows = zip(part.X, self.X[train], strict=True)
        keys = {own.tobytes(): row.tobytes() for own, row in rows}
        return replace(fold, keys=keys, table=(part.inputs, encoder))

    def part(self, rows: Rows) -> TrainingTable:
        """Keep some rows, which alone say how they are encoded."""
        inputs, encoder, X = self.inputs.take(rows), self.encoder, self.X[rows]
        if encoder.learns:
            encoder = encoder.again(inputs)
            X = encoder.transform(inputs).X
        return replace(
            self, inputs=inputs, encoder=encoder, X=X, labels=self.labels[rows], y=self.y[rows],
            groups=None if self.groups is None else self.groups[rows], names=self.names.take(rows),
            times=None if self.times is None else self.times[rows],
        )  # fmt: skip


def read_training(
    data: str, options: TableOptions, *, may_be_several: bool = False
) -> TrainingTable:
    """Read a table to learn from; its targets ``may_be_several`` numbers, commas between names."""
    as_text = (*options.as_text, *INDEX_COLUMNS)
    coded = None if options.task == "regression" else options.target
    words = options.null_values
    frame = read_frame(
        data, as_text=as_text, target=coded, encoding=options.encoding, null_values=words
    )
    targets = _named_targets(frame, options.target)
    is_several = len(targets) > 1
    if is_several and not may_be_several:
        raise UsageError("several targets are for mercer fit; name one of them")
    if is_several and options.task == "classification":
        raise UsageError("several targets are numbers: --task regression")
    named = _special_columns(frame, targets, options)
    asked = cast("AnyTask", "regression" if is_several else options.task)
    target_notes: tuple[str, ...] = ()
    if options.missing != "error":
        frame, target_notes = _with_targets(frame, targets)
    found = [read_target(frame, name, asked, is_alone=not is_several) for name in targets]
    target, task = found[0], TASKS[found[0].task]
    id_column = options.id_column
    id_notes: tuple[str, ...] = ()
    if id_column is None and (index := index_column(frame.names)) not in (None, *named):
        id_column, id_notes = index, _refuse_equal_names(frame, str(index))
        named.append(str(index))
    time, dates = options.time, cast("Dates", options.dates)
    categories = frame.named(options.categories)
    inputs, empty_notes = without_empty(frame.without(named), categories)
    encoder = replace(
        fit_encoder(
            inputs, missing=cast("Missing", options.missing), dates=dates, categories=categories
        ),
        target=target.written,
        null_values=null_words(words),
    )
    encoded = encoder.transform(inputs)
    values = [each.values[encoded.rows] for each in found]
    for column in values:
        if all(label == column[0] for label in column):
            raise DataError(
                f"{frame.source}: after rows with missing values were dropped the target has only "
                f"one {task.noun}, {quoted(column[0])}; use --missing impute"
            )
    labels = np.column_stack(values) if is_several else values[0]
    classes, y = task.encode(labels)
    if len(classes) == len(labels) >= _TEXTS:
        target_notes += (f"target {quoted(options.target)} differs in every row, as names do",)
    groups = None if options.group is None else groups_of(frame.take(encoded.rows), options.group)
    order = tuple(level for level in frame.column(targets[0]).order if level in classes)
    several = f"targets {', '.join(map(quoted, targets))}: numbers, several of them, so regression"
    return TrainingTable(
        source=STANDARD_INPUT if data == "-" else data,
        inputs=inputs.take(encoded.rows),
        encoder=encoder,
        X=encoded.X,
        classes=classes,
        labels=labels,
        y=y,
        groups=groups,
        names=RowNames.of_frame(frame, encoded.rows, id_column),
        task=task,
        reason=several if is_several else target.reason,
        notes=(
            *target_notes,
            *(() if classes == () else spelling_notes(frame.column(options.target))),
            *_order_notes(options.target, order),
            *id_notes,
            *empty_notes,
            *_name_hints(inputs, encoder, id_column),
            *code_notes(inputs.columns),
            *(() if options.group else _group_hints(inputs, encoder)),
            *(() if options.time or options.group else _time_hints(inputs, encoder)),
            *_case_notes(frame, [options.target] if classes else [], encoder),
            *(
                note
                for code in encoder.codes
                if not code.differs_in_every(inputs.n_rows) and (note := code.note())
            ),  # what `_name_hints` says is said once
            *encoded.notes,
        ),
        order=order,
        targets=targets if is_several else (),
        written=tuple(each.written for each in found),
        times=None if time is None else times_of(frame.take(encoded.rows), time, dates),
        time=time,
    )


@dataclass(frozen=True, eq=False)
class WrittenTable:
    """The cells of a table as its file has them, to be written again with another target."""

    columns: dict[str, NDArray[Any]]
    origin: Origin
    line_end: str  # of its first file, where that is text

    @classmethod
    def read(
        cls, data: str, encoding: str | None, null_values: Iterable[str] | None = None
    ) -> WrittenTable:
        """Read a table again; numbers with a decimal comma get a point, as CSV by commas needs."""
        read = functools.partial(read_frame, data, encoding=encoding, null_values=null_values)
        typed = read()
        frame = read(as_text=typed.names)
        columns = {}
        for column, plain in zip(frame.columns, typed.columns, strict=True):
            texts = as_levels(column)
            is_read = plain.kind != "number" or all(
                parse_number(text) is not None for text in set(texts) - {None}
            )
            columns[column.name] = texts.copy() if is_read else as_levels(plain)
        return cls(columns, frame.origin, line_end(Path(frame.origin.files[0]), encoding))

    def at(self, names: RowNames) -> Rows:
        """Return where the rows of these names stand in it."""
        own = zip(self.origin.file.tolist(), self.origin.row.tolist(), strict=True)
        place = {where: k for k, where in enumerate(own)}
        wanted = zip(names.file.tolist(), names.number.tolist(), strict=True)
        return np.array([place[where] for where in wanted], dtype=np.int64)


def spellings(labels: list[Any], texts: list[str]) -> dict[str, str]:
    """Find how the table itself writes each class: as most of its cells do."""
    counts: dict[str, Counter[str]] = {}
    for label, text in zip(labels, texts, strict=True):
        counts.setdefault(str(label), Counter())[text] += 1
    return {label: found.most_common(1)[0][0] for label, found in counts.items()}


def _named_targets(frame: Frame, asked: str) -> tuple[str, ...]:
    """Names of several targets with commas between them; one name may hold a comma, too."""
    names = (asked,) if asked in frame.names else tuple(asked.split(","))
    if len(set(names)) < len(names):
        raise UsageError("--target names a column twice")
    return names


def _with_targets(frame: Frame, targets: Sequence[str]) -> tuple[Frame, tuple[str, ...]]:
    """Leave out rows that lack a target, unless all do, and say how many."""
    columns = [frame.column(name) for name in targets]
    is_missing = np.any([column.is_missing for column in columns], axis=0)
    if not is_missing.any() or any(column.is_missing.all() for column in columns):
        return frame, ()
    lack = "lack a target" if len(columns) > 1 else "have no target"
    words = [f"{is_missing.sum()} of {frame.n_rows} rows {lack} and were dropped"]
    return frame.take(np.flatnonzero(~is_missing)), ("".join([*words, *map(gap_words, columns)]),)


def _order_notes(target: str, order: tuple[str, ...]) -> tuple[str, ...]:
    """Say which order the classes have in the file."""
    words, how = ", ".join(order), "--model spectral --set ordered=true learns it"
    return (f"target {quoted(target)}: an ordered category, {words}; {how}",) if order else ()


def _special_columns(frame: Frame, targets: Sequence[str], options: TableOptions) -> list[str]:
    """Name the columns that are not inputs: targets, names of rows, groups, dropped ones."""
    dropped = frame.named(options.drop)
    for name in targets:
        if name in dropped:
            raise UsageError(f"--drop {quoted(name)} is the target")
        if name in (options.id_column, options.group, options.time):
            raise UsageError(TARGET_IS_NAMED)
    levels = frame.named(options.categories)
    for taken in {*targets, *dropped, options.id_column}.intersection(levels):
        words = "it is the target, --id or in --drop"
        raise UsageError(f"--categories {quoted(taken)} is no input: {words}")
    others = [name for name in (options.id_column, options.group) if name not in (None, *levels)]
    return [*targets, *dropped, *(frame.column(str(name)).name for name in others)]


_NAME_OF_ROWS = re.compile(r"(?:^|[^a-z])(id|ids|nr|no|num|number|index|idx|key|uuid|guid)$")
TARGET_IS_NAMED = "the target cannot be --id, --group or --time"
_TEXTS = 20  # so many texts that all differ are no levels, whatever the column is called


def _name_hints(inputs: Frame, encoder: Encoder, id_column: str | None) -> tuple[str, ...]:
    """Say which inputs look like names of the rows: all different, text or called like names."""
    found = []
    for column, code in zip(inputs.columns, encoder.codes, strict=True):
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column.name).lower()
        is_text = code.is_text
        is_whole = code.kind == "number" and column.kind == "number"
        is_named = _NAME_OF_ROWS.search(snake) is not None
        if not (is_text or is_whole) or not (is_named or (is_text and inputs.n_rows >= _TEXTS)):
            continue
        values = column.values
        if column.is_missing.any() or len(set(values.tolist())) < len(values):
            continue
        if is_text or (np.floor(values) == values).all():
            found.append(column.name)
    if not found or id_column is not None:
        return tuple(
            f"column {quoted(name)} differs in every row, as names do: --drop {quoted(name)} "
            "leaves it out"
            for name in found
        )
    return tuple(
        f"column {quoted(name)} looks like names of rows, since it differs in every one: "
        f"--id {quoted(name)} keeps it as a name, and no input"
        for name in found
    )


def _group_hints(inputs: Frame, encoder: Encoder) -> tuple[str, ...]:
    """Say which text of many levels, several rows each, looks like what rows come in groups of."""
    return tuple(
        f"column {quoted(code.name)}: {inputs.n_rows / len(code.levels):.0f} rows a level; where "
        f"those of one are alike, --group {quoted(code.name)} scores on levels that are new, and "
        f"--categories {quoted(code.name)} learns what each of them adds"
        for code in encoder.codes
        if code.kind == "frequency" and inputs.n_rows >= 2 * len(code.levels)
    )


def _time_hints(inputs: Frame, encoder: Encoder) -> tuple[str, ...]:
    """Say how forecasts are scored, of a table with a date that differs in most rows."""
    for code in encoder.codes:
        values = inputs.column(code.name).values.tolist()
        if code.kind == "date" and 2 * len(set(values)) >= len(values):
            name = quoted(code.name)
            words = f"scores are of rows between others in time; --time {name} scores forecasts"
            return (f"column {name}: {words}",)
    return ()


def _case_notes(frame: Frame, targets: list[str], encoder: Encoder) -> tuple[str, ...]:
    """Say of which columns of text two levels differ only in case, and name two of them."""
    names = [*targets, *(code.name for code in encoder.codes if code.is_text)]
    found = []
    for column in map(frame.column, names):
        seen: dict[str, str] = {}
        for text in sorted(set(as_levels(column).tolist()) - {None}):
            if (first := seen.setdefault(text.casefold(), text)) != text:
                found.append(
                    f"column {quoted(column.name)}: {quoted(first)} and {quoted(text)} differ only "
                    "in case, and are taken for two; write them alike if they are one"
                )
                break
    return tuple(found)


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
    return (index_words(name),)


def groups_of(frame: Frame, name: str) -> Rows:
    """Number the groups of rows by a column (n,); a `DataError` where a cell is missing."""
    column = frame.column(name)
    if column.is_missing.any():
        row = int(np.argmax(column.is_missing))
        raise DataError(f"{frame.place(row, name)}: the group is missing; fill it in")
    return np.unique(as_levels(column).astype(str), return_inverse=True)[1]


# Rows to score on: those whose target is known, in the form that a task scores.


@dataclass(frozen=True, eq=False)
class Known:
    """Targets of the rows of a table where they can be scored."""

    positions: Rows  # (k,), among the rows that were asked about, ascending
    y: NDArray[Any]  # (k,), position of the class, or the number
    notes: tuple[str, ...]  # why some are left out

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
    names: RowNames  # what they are called in the file
    inputs: Frame  # their entries in the table


def read_known(
    frame: Frame, target: str, task: Task, encoder: Encoder, classes: Sequence[Any], rows: Rows
) -> Known:
    """Read the targets of some rows of a table, and find those that can be scored."""
    column = frame.column(target)
    there = np.flatnonzero(~column.is_missing[rows])
    notes: tuple[str, ...] = ()
    if len(there) < len(rows):
        notes = (untold_words(len(rows) - len(there), len(rows)) + gap_words(column),)
    if not len(there):
        return Known(there, there, notes)
    part = Frame((column,), frame.source, frame.origin).take(rows[there])
    found = read_target(
        part, target, task.name, allow_one_class=True, written=encoder.target, classes=classes
    )
    known = known_rows(found.values, task, classes)
    return Known(there[known.positions], known.y, (*notes, *known.notes))


def known_rows(values: NDArray[Any], task: Task, classes: Sequence[Any]) -> Known:
    """Find the targets that can be scored; labels that were not in training are left out."""
    positions, y = task.known(values, classes)
    notes: tuple[str, ...] = ()
    if len(positions) < len(values):
        is_known = np.isin(np.arange(len(values)), positions)
        first = values[int(np.argmin(is_known))]
        notes = (unknown_words(len(values) - len(positions), len(values), first),)
    return Known(positions, y, notes)


def untold_words(n_missing: int, n_rows: int) -> str:
    """Say that some rows are not scored, since they have no target."""
    return f"{n_missing} of {n_rows} rows have no target and are not scored"


def unknown_words(n_unknown: int, n_rows: int, first: Any) -> str:
    """Say that some rows are not scored, and the label of the first of them."""
    return (
        f"{n_unknown} of {n_rows} rows have a label that was not in training ({quoted(first)}) "
        "and are not scored"
    )


def read_scored(
    frame: Frame, target: str, encoder: Encoder, task: Task, classes: Sequence[Any]
) -> ScoredRows:
    """Encode rows to score on; those without a target, or with a new label, are left out."""
    encoded = encoder.transform(frame)
    known = read_known(frame, target, task, encoder, classes, encoded.rows)
    if not len(known.positions):
        what = "a label that the model knows" if classes else "a target"
        words = f" ({', '.join(quoted(label) for label in classes[:5])})" if classes else ""
        raise DataError(
            f"{frame.source}: no row has {what}{words}; correct column {quoted(target)}"
        )
    kept = encoded.rows[known.positions]
    notes = (*encoded.notes, *known.notes)
    names = RowNames.of_frame(frame, kept, None)
    return ScoredRows(encoded.X[known.positions], known.y, notes, names, frame.take(kept))


# How `fit` scores: a test file, a part held out, or folds.

SMALL = 1000  # below so many rows, cross-validation
TEST_SIZE = 0.25
#: Of these, and where each costs more: forward in time, or in comparisons of many rows.
N_FOLDS, FEWER_FOLDS = 10, 5


@dataclass(frozen=True)
class ScoringOptions:
    """What the user asked for; at most one of the first three."""

    test: str | None
    test_size: float | None
    cv: int | None
    is_refitted: bool
    encoding: str | None = None  # of the test file

    def __post_init__(self) -> None:
        asked = {"--test": self.test, "--test-size": self.test_size, "--cv": self.cv}
        given = [name for name, value in asked.items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"{given[0]} and {given[1]} exclude each other")
        if self.test_size is not None and not 0.0 < self.test_size < 1.0:
            raise UsageError(f"--test-size must be between 0 and 1, and is {self.test_size:g}")
        if not self.is_refitted and self.cv is not None:
            raise UsageError("--no-refit keeps the model that was scored; --cv has none, it has K")


@dataclass(frozen=True, eq=False)
class Split:
    """The folds to score on."""

    folds: tuple[Fold, ...]
    how: str  # in words
    notes: tuple[str, ...]
    #: Rows of the saved model, which alone say how cells are encoded, where it is itself the one
    #: that is scored; None where it is fitted again on all rows.
    train: Rows | None
    names: RowNames  # what the rows to score on are called, fold after fold


UNSCORED = Split((), "no row is held out", (), None, RowNames.positions(0))


def split_rows(table: TrainingTable, target: str, options: ScoringOptions, seed: int) -> Split:
    """Choose how to score, and split."""
    n = len(table.labels)
    if options.test is not None:
        if table.times is not None:
            raise UsageError("--time and --test exclude each other")
        return test_file(table, target, options.test, options.encoding)
    if options.cv is not None or (options.test_size is None and n < SMALL):
        if not options.is_refitted:
            raise UsageError("--no-refit needs --test-size here: folds leave no model to keep")
        default = N_FOLDS if table.times is None else FEWER_FOLDS
        return cross_validation(table, options.cv or default, seed)
    size = TEST_SIZE if options.test_size is None else options.test_size
    if table.times is not None:
        train, test = latest(table.times, size)
        refuse_new_classes(table.classes, table.y, [(train, test)], table.source, table.time)
        rows = f"rows, the latest by {quoted(table.time)},"
    else:
        rows = "rows"
        train, test = holdout(
            table.labels,
            size,
            stream(seed, "folds"),
            table.groups,
            is_classification=table.task.is_stratified,
        )
    how = f"{100 * size:g} % of the {rows} held out"
    kept = None if options.is_refitted else train
    few = few_words(len(test), table.task)
    return Split((table.fold(train, test),), how, few, kept, table.names.take(test))


def few_words(n_rows: int, task: Task) -> tuple[str, ...]:
    """Say that rows are too few to judge a model by; nothing where they are not."""
    if n_rows >= FEW_ROWS:
        return ()
    words = f"{n_rows} row{'s' * (n_rows > 1)}: too few to judge a model by"
    if not task.is_stratified:
        return (f"{words}, scores may well be chance",)
    worst = 100.0 * (1.0 - 0.05 ** (1.0 / n_rows))  # errs so often, it is right on all with 5 %
    return (f"{words}; one that is right on all may still err on {worst:.0f} % of others",)


def cross_validation(table: TrainingTable, n_folds: int, seed: int) -> Split:
    """Split into folds."""
    if table.times is not None:
        found = forward_folds(table.times, n_folds)
        refuse_new_classes(table.classes, table.y, found.pairs, table.source, table.time)
        how = f"{len(found.pairs)} folds by {quoted(table.time)}, each predicted by rows before it"
    else:
        found = folds(
            table.labels,
            n_folds,
            stream(seed, "folds"),
            table.groups,
            is_classification=table.task.is_stratified,
        )
        how = f"{len(found.pairs)}-fold cross-validation"
    notes = few_words(len(table.labels), table.task)
    notes += (found.note,) if found.note else ()
    names = table.names.take(np.concatenate([test for _, test in found.pairs]))
    return Split(tuple(table.fold(*pair) for pair in found.pairs), how, notes, None, names)


def refuse_new_classes(
    classes: Sequence[Any], y: Rows, pairs: Iterable[tuple[Rows, Rows]], source: str, time: Any
) -> None:
    """Refuse splits by a column ``time`` with too few classes before them, or a new one after."""
    for train, test in pairs if classes else ():
        before, after = ({classes[k] for k in np.unique(y[rows])} for rows in (train, test))
        if len(before) > 1 and after <= before:
            continue
        new = sorted(map(str, after - before))
        what = f"class {quoted(new[0])} is not" if new else f"only class {quoted(*before)} is"
        raise DataError(
            f"{printable(source)}: {what} among the {len(train)} earliest rows by "
            f"{quoted(time)}, which later ones are predicted by; use a small "
            "--test-size, or leave --time out"
        )


def test_file(table: TrainingTable, target: str, test: str, encoding: str | None) -> Split:
    """Read the rows of a file, to score on."""
    several = {name: table.output(k).encoder for k, name in enumerate(table.targets)}
    encoders = several or {target: table.encoder}
    written = [text for name, own in encoders.items() for text in own.texts(name, table.classes)]
    words = table.encoder.null_values
    frame = read_frame(test, as_written=written, encoding=encoding, null_values=words)
    whole = _with_targets(frame, table.targets)[0] if several else frame
    n_left, task, classes = frame.n_rows - whole.n_rows, table.task, table.classes
    untold = (untold_words(n_left, frame.n_rows),) if n_left else ()
    found = [read_scored(whole, name, own, task, classes) for name, own in encoders.items()]
    rows, y = found[0], [each.y for each in found]
    how = f"the {len(rows.y)} rows of {printable(frame.source)}"
    names = table.encoder.feature_names, table.encoder.sources
    y_test = np.column_stack(y) if several else rows.y
    fold = Fold(table.X, table.y, rows.X, y_test, None, None, table.groups, *names)
    notes = (*few_words(len(rows.y), task), *untold, *rows.notes)
    return Split((fold,), how, notes, np.arange(len(table.labels)), rows.names)


# Rows with equal inputs and different labels: no classifier is right on both.


def conflicting_rows(table: TrainingTable) -> tuple[int, int, int] | None:
    """Find the first row whose inputs an earlier one has with another label.

    Returned are the earlier, the later, and how many rows share their inputs with one of another
    label.
    """
    _, same = np.unique(table.X, axis=0, return_inverse=True)
    same = same.reshape(-1)
    n_classes = len(table.classes)
    pairs = np.unique(same * n_classes + table.y) // n_classes
    is_mixed = np.bincount(pairs, minlength=len(same))[same] > 1
    if not is_mixed.any():
        return None
    first: dict[int, int] = {}
    for row in np.flatnonzero(is_mixed).tolist():
        earlier = first.setdefault(int(same[row]), row)
        if table.y[earlier] != table.y[row]:
            return earlier, row, int(is_mixed.sum())
    raise AssertionError("rows of one group with two labels hold a pair that differs")


def say_conflicts(table: TrainingTable) -> str:
    """Say which rows have equal inputs and different labels; empty if none have."""
    if (found := conflicting_rows(table)) is None:
        return ""
    earlier, later, n = found
    return (
        f"{n} rows have the inputs of a row with another label, such as "
        f"{table.names.listed([earlier, later])}: there the inputs cannot tell which is wrong"
    )


def refuse_conflicts(table: TrainingTable, estimator: Any) -> None:
    """Refuse, before any work, labels that cannot all be right where the noise rate is 0."""
    rate = estimator.get_params().get("noise_rate")
    if isinstance(rate, (tuple, str, bool)) or rate != 0:
        return
    if (found := conflicting_rows(table)) is None:
        return
    earlier, later, _ = found
    labels = [quoted(table.classes[table.y[row]]) for row in (earlier, later)]
    raise DataError(
        f"{printable(table.source)}: {table.names.listed([earlier, later])} have equal inputs and "
        f"different labels, {labels[0]} and {labels[1]}; with noise_rate=0 every label must be "
        "right: correct one, or use noise_rate > 0"
    )


def far_words(
    encoder: Encoder, X: NDArray[np.float64], y: NDArray[Any], names: RowNames
) -> tuple[str, ...]:
    """Say which rows have an input, or a number to predict y (n,), that is far from all others."""
    inputs, found = encoder.inputs, []
    numbers = [j for j, code in enumerate(encoder.codes) if code.kind == "number"]
    columns = [(quoted(inputs.names[j]), X[:, inputs.columns[j][0]]) for j in numbers]
    if y.dtype.kind == "f" and y.ndim == 1:
        columns.append(("the target", y))
    for name, x in columns:
        far = far_values(x)
        if len(far):
            low, high = np.nanmin(np.delete(x, far)), np.nanmax(np.delete(x, far))
            values = listing([f"{value:g}" for value in x[far]])
            rows = names.listed(far.tolist())
            found.append(f"{name} of {rows} is {values}, of all others {low:g} to {high:g}")
    return tuple(found)


# What the table is, for reports.

_N_BARS = 10
_MOST_PAIRS = 10
_MOST_CORRELATED = 60  # inputs: pairs of more are too many to look at
_MOST_RANKED = 2000  # rows
_TOGETHER = 0.95  # rank correlation from which two inputs say nearly the same


def table_facts(
    frame: Frame,
    encoder: Encoder,
    X: NDArray[np.float64],
    y: NDArray[Any],
    classes: Sequence[Any],
    names: RowNames,
) -> TableFacts:
    """Describe rows that were encoded as X (n, d), with targets y (n,) as tasks encode them."""
    inputs, found = encoder.inputs, []
    strengths = strengths_alone(X, y, inputs, is_classes=len(classes) > 0).tolist()
    for code, columns, strength in zip(encoder.codes, inputs.columns, strengths, strict=True):
        found.append(_input_facts(frame.column(code.name), code, X[:, columns], strength))
    twins = np.unique(X, axis=0, return_counts=True)[1]
    return TableFacts(
        n_rows=len(X),
        inputs=tuple(found),
        target=_target_words(y, classes),
        pairs=_correlated(X, encoder, inputs),
        n_twins=int(twins[twins > 1].sum()),
        far=far_words(encoder, X, y, names.without_ids()),
    )


def _input_facts(
    column: Column, code: ColumnCode, X: NDArray[np.float64], strength: float
) -> InputFacts:
    is_missing = column.is_missing
    present = column.values[~is_missing]
    n_missing, n_distinct = int(is_missing.sum()), len(set(present.tolist()))
    if code.kind in ("levels", "frequency", "boolean"):
        words = as_levels(column)[~is_missing].tolist()
        common = Counter(words).most_common(_N_BARS)
        shares = [100 * n / max(len(words), 1) for _, n in common[:3]]
        names = [level if len(level) <= 24 else f"{level[:21]}..." for level, _ in common[:3]]
        pairs = zip(map(printable, names), shares, strict=True)
        shown = ", ".join(f"{name} {share:.0f} %" for name, share in pairs)
        kinds = {"levels": "text", "frequency": "text, by frequency", "boolean": "yes or no"}
        counts = tuple(n for _, n in common)
        return InputFacts(
            code.name, kinds[code.kind], n_missing, n_distinct, shown, counts, strength
        )
    place = code.parts.index("days") if "days" in code.parts else 0
    x = X[~is_missing, place]
    if len(x) == 0:
        return InputFacts(code.name, code.kind, n_missing, 0, "", (), strength)
    half = x / 2.0  # differences of halves do not overflow
    width = np.ptp(half)
    share = (half - half.min()) / width if width > 0.0 else np.full(len(x), 0.5)
    counts = tuple(np.histogram(share, bins=_N_BARS, range=(0.0, 1.0))[0].tolist())
    if code.kind == "date":
        first, last = present[np.argmin(x)], present[np.argmax(x)]
        shown = f"{printable(str(first))} to {printable(str(last))}"
    else:
        low, middle, high = (digits(2.0 * float(q)) for q in np.quantile(half, (0.0, 0.5, 1.0)))
        shown = f"{low} to {high}, median {middle}"
    return InputFacts(code.name, code.kind, n_missing, n_distinct, shown, counts, strength)


def _target_words(y: NDArray[Any], classes: Sequence[Any]) -> str:
    if not len(classes):
        low, middle, high = (digits(float(q)) for q in np.quantile(y, (0.0, 0.5, 1.0)))
        return f"The target goes from {low} to {high}, with median {middle}."
    shares = np.bincount(y, minlength=len(classes)) / len(y)
    order = np.argsort(-shares, kind="stable")[:6]
    listed = ", ".join(f"{quoted(classes[c])} {100 * shares[c]:.1f} %" for c in order)
    more = f" and {len(classes) - 6} more" if len(classes) > 6 else ""
    return f"The classes of the target: {listed}{more}."


def _correlated(
    X: NDArray[np.float64], encoder: Encoder, inputs: Inputs
) -> tuple[tuple[str, str, float], ...]:
    """Find numbers that go together, by rank correlation in up to 2000 rows."""
    numbers = [j for j, code in enumerate(encoder.codes) if code.kind == "number"]
    numbers = numbers[:_MOST_CORRELATED]
    step = -(-len(X) // _MOST_RANKED)
    values = X[::step, [int(inputs.columns[j][0]) for j in numbers]]
    values = np.where(np.isnan(values), np.nanmedian(values, axis=0), values)
    is_varied = np.ptp(values, axis=0) > 0 if len(values) else np.zeros(0, bool)
    numbers = [j for j, varies in zip(numbers, is_varied, strict=True) if varies]
    if len(numbers) < 2 or len(values) < _LEAST_RANKED:
        return ()
    rho = np.corrcoef(rankdata(values[:, is_varied], axis=0), rowvar=False)
    rows, columns = np.triu_indices(len(numbers), 1)
    strong = np.flatnonzero(np.abs(rho[rows, columns]) >= _TOGETHER)
    strong = strong[np.argsort(-np.abs(rho[rows, columns][strong]), kind="stable")][:_MOST_PAIRS]
    return tuple(
        (inputs.names[numbers[i]], inputs.names[numbers[j]], float(rho[i, j]))
        for i, j in zip(rows[strong], columns[strong], strict=True)
    )


_LEAST_RANKED = 10
