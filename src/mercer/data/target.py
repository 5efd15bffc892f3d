"""The target column: which task it is for, and its values as an estimator takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mercer.data.encoding import as_levels
from mercer.data.files import printable, quoted
from mercer.data.formats import CellFormat, FormatError, find_number_format
from mercer.data.frame import Column, Frame, gap_words, parse_number, stray_text
from mercer.errors import DataError, UsageError

#: At most so many distinct whole numbers are taken for classes.
MAX_CLASSES = 10
#: Numbers, and differences between them, whose squares neither overflow nor underflow.
LARGEST, SMALLEST = 1e150, 1e-150
Task = Literal["auto", "classification", "regression"]


@dataclass(frozen=True, eq=False)
class Target:
    """The values to predict."""

    task: Literal["classification", "regression"]
    #: (n_rows,), numbers; or labels as they are: strings (objects), bool, or int64
    values: NDArray[Any]
    reason: str  # one line that says why it is this task
    #: How the numbers stand in the table, where not as a program writes them.
    written: CellFormat | None = None


def read_target(
    frame: Frame,
    name: str,
    task: Task = "auto",
    *,
    allow_one_class: bool = False,
    written: CellFormat | None = None,
    classes: Sequence[Any] = (),
    is_alone: bool = True,
) -> Target:
    """Take the target, one value a row, from a table.

    With the task "auto", text, booleans or at most 10 distinct whole numbers are classes.
    `allow_one_class` accepts a single class, or the same number in all rows, as in rows that are
    only scored. `written` is how the numbers were written in the table that was learned from: in
    rows that are only scored nothing else is a number but what a program writes. `classes` are
    those that were learned: where they are words so are these labels, else those that are numbers
    (true, false) are, whatever the others are. Not `is_alone` says that the model has more targets.

    A `DataError` where there is no such column (the nearest is named), a value is missing, infinite
    or of the wrong kind, there is only one class, or numbers are all the same, or too large or too
    close together to compute with.
    """
    if task not in get_args(Task):
        raise UsageError(f"task must be auto, classification or regression, not {quoted(task)}")
    column = frame.column(name)
    is_words = any(isinstance(label, str) for label in classes)
    if is_words and column.kind != "other":
        column = Column(name, as_levels(column), "text")
    _refuse_gaps(frame, column)
    if written is not None or not allow_one_class:
        column, written = _read_numbers(frame, column, task, written)
    chosen, reason = choose_task(column, task)
    if written is not None:
        reason = f"{reason} ({written.kinds})"
    if column.kind == "text" and not classes and (found := stray_text(column)):
        is_class = chosen == "classification" and len(set(column.values)) <= MAX_CLASSES
        if not is_class:
            raise DataError(f"{frame.place(found[0], name)}: {found[1]}")
    if chosen == "regression":
        if column.kind == "text":
            advice = "regression needs a target of numbers, use --task classification"
            if not is_alone:
                advice = "several targets are numbers: leave this one out of --target"
            text = quoted(column.values[0])
            raise DataError(f"{frame.place(0, name)}: {text} is not a number; {advice}")
        values = column.values.astype(np.float64)
        refuse_range(frame, name, values, is_varied=not allow_one_class)
        return Target("regression", values, reason, written)
    labels = _labels(frame, column)
    if classes and not is_words and column.kind == "text":
        labels = np.array([_plain(label) for label in labels], dtype=object)
    first = labels[0]
    if not allow_one_class and all(label == first for label in labels):
        raise DataError(
            f"{printable(frame.source)}: target {quoted(name)} has only one class, "
            f"{quoted(first)}; classification needs two"
        )
    return Target("classification", labels, reason)


def _read_numbers(
    frame: Frame, column: Column, task: Task, written: CellFormat | None
) -> tuple[Column, CellFormat | None]:
    """Turn text that is numbers, such as '$1,234.50', into them; classes stay as they are."""
    if column.kind != "text" or task == "classification":
        return column, None
    found = written
    try:
        if found is None:
            found = find_number_format(column.values)
        if found is None:
            return column, None
        numbers = Column(column.name, found.read_all(column.values), "number")
    except FormatError as error:
        if written is None and task == "auto" and len(set(column.values)) <= MAX_CLASSES:
            return column, None
        row = next(k for k, text in enumerate(column.values) if text == error.cell)
        raise DataError(f"{frame.place(row, column.name)}: {error}") from None
    if written is None and choose_task(numbers, task)[0] == "classification":
        return column, None
    return numbers, found


def refuse_range(frame: Frame, name: str, values: NDArray[np.float64], *, is_varied: bool) -> None:
    """Refuse numbers that cannot be computed with or, with ``is_varied``, are all the same."""
    source = f"{printable(frame.source)}: target {quoted(name)}"
    if np.abs(values).max() > LARGEST:
        row = int(np.argmax(np.abs(values)))
        raise DataError(
            f"{frame.place(row, name)}: the target is {values[row]:g}, too large to compute with; "
            "rescale it"
        )
    spread = float(np.ptp(values))
    if is_varied and spread == 0.0:
        raise DataError(
            f"{source}: the target is constant, {values[0]:g} in every row; there is nothing to "
            "predict"
        )
    if is_varied and spread < SMALLEST:
        raise DataError(
            f"{source}: its values differ by {spread:g} at most, too little to compute with; "
            "rescale it"
        )


def _refuse_gaps(frame: Frame, column: Column) -> None:
    """Refuse dates and foreign types, and missing and infinite values."""
    if column.kind in ("date", "other"):
        raise DataError(
            f"{printable(frame.source)}: target {quoted(column.name)} is neither numbers nor "
            "text; turn it into one of them first"
        )
    missing = column.is_missing
    if missing.all():
        raise DataError(
            f"{printable(frame.source)}: target {quoted(column.name)} has no value at all; choose "
            f"another column{gap_words(column)}"
        )
    if missing.any():
        raise DataError(
            f"{frame.place(int(np.argmax(missing)), column.name)}: the target is missing "
            f"({int(missing.sum())} of {frame.n_rows} rows); fill it in, or leave such rows "
            f"out (--missing impute, indicator and drop do){gap_words(column)}"
        )
    if column.kind == "number" and np.isinf(column.values).any():
        row = int(np.argmax(np.isinf(column.values)))
        raise DataError(
            f"{frame.place(row, column.name)}: the target is infinite, or too large for a "
            "float64; correct it"
        )


def spelling_notes(column: Column) -> tuple[str, ...]:
    """Say which numbers of classes are codes, or are one class though they differ as written."""
    seen: dict[float, str] = {}
    about = f"target {quoted(column.name)}"
    for text in sorted(column.written):
        if (number := parse_number(text)) is None:
            return ()
        if (first := seen.setdefault(number, text)) != text and column.kind == "number":
            words = "are one class; write them otherwise if they are two"
            return (f"{about}: {quoted(first)} and {quoted(text)} {words}",)
    if column.kind == "number" or not seen:
        return ()
    words = "codes with leading zeros, so classes; --task regression reads numbers"
    return (f"{about}: {words}",)


def _plain(text: str) -> Any:
    """Read a label as true, false or a number, if it is one."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    number = parse_number(text)
    return text if number is None else number


def choose_task(column: Column, task: Task) -> tuple[Literal["classification", "regression"], str]:
    """Choose the task, and say why; more than ``MAX_CLASSES`` distinct values need not be all."""
    about = f"target {quoted(column.name)}"
    if task != "auto":
        return task, f"{about}: {task}, as asked"
    if column.kind == "boolean":
        return "classification", f"{about}: true or false, so classification"
    distinct = len(set(column.values))
    if column.kind == "text":
        return "classification", f"{about}: text with {distinct} classes, so classification"
    if not (np.floor(column.values) == column.values).all():
        return "regression", f"{about}: numbers with a fraction, so regression"
    plural = "s" if distinct > 1 else ""
    if distinct <= MAX_CLASSES:
        words = f"{about}: {distinct} distinct whole number{plural}, so classification"
        if distinct > 2 and np.ptp(column.values) == distinct - 1:  # as counts and grades are
            words += "; if they count or grade something, --task regression predicts numbers"
        return "classification", words
    words = f"{about}: more than {MAX_CLASSES} distinct whole numbers, so regression"
    if column.values.min() == 0.0:  # as of things that are counted; a year or a price is none
        words += "; if they count something, --model spectral --set noise=negative_binomial is"
        words += " a law of counts"
    return "regression", words


def _labels(frame: Frame, column: Column) -> NDArray[Any]:
    """Give the labels in the type in which predictions return them."""
    if column.kind == "text":
        return column.values
    if column.kind == "boolean":
        return column.values.astype(np.bool_)
    has_fraction = (np.floor(column.values) != column.values) | (np.abs(column.values) > 2.0**53)
    if has_fraction.any():
        row = int(np.argmax(has_fraction))
        raise DataError(
            f"{frame.place(row, column.name)}: {column.values[row]:g} is not a whole number, so no "
            "class; use --task regression"
        )
    return column.values.astype(np.int64)
