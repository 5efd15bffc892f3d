"""`mercer explain`: what each input contributed to the prediction of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.outputs import check_format, check_outputs, records, write_rows
from mercer.cli.prediction import (
    encoder_of,
    find_id,
    ignored_words,
    output_of,
    read_for,
    read_model_before,
)
from mercer.cli.terminal import Session, digits3, rows_table
from mercer.data.files import nearest, printable, quoted
from mercer.data.frame import Frame
from mercer.data.row_names import RowNames
from mercer.errors import UsageError
from mercer.estimation.inspection import Explanation, explain_rows
from mercer.models import SavedModel

_MOST_SHOWN = 15
_COLUMNS = ("file", "row", "input", "value", "contribution", "lower_90", "upper_90", "error")


@dataclass(frozen=True, eq=False)
class Explained:
    """The rows that were asked about, with what explains them."""

    names: RowNames
    values: NDArray[Any]  # (n, d), the entries of the table
    found: Explanation
    background: str  # what stands for not knowing an input, in words
    notes: tuple[str, ...]

    def columns(self, row: int) -> dict[str, NDArray[Any]]:
        """Name what is written of one row: an entry an input, the largest contribution first."""
        found = self.found
        order = np.argsort(-np.abs(found.contributions[row]), kind="stable")
        names = self.names.take(np.full(len(order), row)).columns()
        return {
            **names,
            "input": np.array(found.names, dtype=object)[order],
            "value": self.values[row][order],
            "contribution": found.contributions[row][order],
            "lower_90": found.lower[row][order],
            "upper_90": found.upper[row][order],
            "error": found.errors[row][order],
        }


def explain_frame(
    model: SavedModel,
    frame: Frame,
    asked: Sequence[str],
    id_column: str | None,
    *,
    label: str | None,
    seed: int,
) -> Explained:
    """Explain the rows that are named as `mercer predict` names them."""
    is_named = id_column is not None
    id_column, id_notes = find_id(model, frame.names, id_column, _COLUMNS)
    encoder, estimator = encoder_of(model), model.estimator
    encoded, inputs = encoder.transform(frame), encoder.inputs
    names = RowNames.of_frame(frame, encoded.rows, id_column)
    by_number = names.without_ids()
    # A column that was not asked for may call rows, but a number is a row's own, as in reports.
    numbers = set() if names.has_files else set(map(str, frame.origin.row.tolist()))
    ids = set() if names.ids is None else set(map(str, names.ids.tolist()))

    def called(each: str) -> RowNames:
        return names if is_named or each in ids - numbers else by_number

    rows = np.array([find_row(called(each), each) for each in asked], dtype=np.int64)
    if names.ids is not None and not is_named:
        id_notes += tuple(
            f"--row {printable(each)} is a number; with --id {quoted(names.id_column)} it is the "
            "row of that name"
            for each, row in zip(asked, rows, strict=True)
            if each in ids & numbers and str(names.ids[row]) != each
        )
    parts, is_centre, given = [], False, _class_of(estimator, label)
    for row in rows:  # each beside all others, whatever else is asked about
        others, is_centre = estimator._background(np.delete(encoded.X, row, axis=0))
        x = encoded.X[[row]]
        parts.append(explain_rows(estimator, x, others, inputs, label=given, entropy=seed))
    arrays = ("prediction", "baseline", "contributions", "lower", "upper", "errors")
    joined: Any = {name: np.concatenate([getattr(x, name) for x in parts]) for name in arrays}
    found = replace(parts[0], output=tuple(label for x in parts for label in x.output), **joined)
    words = f"{found.n_background} other rows of {printable(frame.source)}"
    if is_centre:
        words = "the centre of the training rows"
    values = np.stack(
        [frame.column(name).values[encoded.rows[rows]].astype(object) for name in inputs.names],
        axis=1,
    )
    notes = (*encoded.notes, *id_notes, *ignored_words(model, encoded.ignored, id_column))
    return Explained(names.take(rows), values, found, words, notes)


def find_row(names: RowNames, asked: str) -> int:
    """Return the position of the row that is called so: by its id, else by its number.

    Of several files a row is FILE:NUMBER. A `UsageError` where no row, or several are called so.
    """
    if names.ids is not None:
        called = [None if name is None else str(name) for name in names.ids.tolist()]
        what = f"{quoted(names.id_column)} {quoted(asked)}"
    elif names.has_files:
        called = [
            f"{names.files[file]}:{number}"
            for file, number in zip(names.file.tolist(), names.number.tolist(), strict=True)
        ]
        what = f"row {quoted(asked)} (FILE:NUMBER)"
    else:
        called = [str(number) for number in names.number.tolist()]
        what = f"row {quoted(asked)}"
    found = [i for i, name in enumerate(called) if name == asked.strip()]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"--row: {what} names {len(found)} rows; name one by its number, or --id")
    known = [name for name in called if name is not None]
    hint = "" if names.ids is None and not names.has_files else nearest(asked, known)
    ends = f"; rows that can be used go from {known[0]} to {known[-1]}" if known else ""
    ends += "" if asked.isdecimal() or names.ids is not None else "; with --id COLUMN, its names do"
    raise UsageError(f"--row: there is no {what}{hint or ends}")


def _class_of(estimator: Any, label: str | None) -> Any:
    """Return the class that is written so."""
    if label is None:
        return None
    classes = getattr(estimator, "classes_", np.zeros(0)).tolist()
    for each in classes:
        if str(each) == label:
            return each
    if not classes:
        raise UsageError("--label is for classes; the model predicts a number")
    raise UsageError(f"--label {quoted(label)}: the classes are {', '.join(map(str, classes))}")


def run(
    model: Path,
    data: str,
    asked: tuple[str, ...],
    id_column: str | None,
    encoding: str | None,
    output: str | None,
    label: str | None,
    seed: int,
    out: Path | None,
    is_for_spreadsheet: bool,
    is_json: bool,
) -> None:
    """Do the work of `mercer explain`: `mercer.cli.commands` has its options."""
    check_outputs({"--out": out}, {"MODEL": model, "DATA": data})
    check_format(out, is_for_spreadsheet=is_for_spreadsheet)
    session = Session(is_json)
    saved = output_of(read_model_before(model, data), output)
    frame = read_for(saved, data, id_column, encoding)
    explained = explain_frame(saved, frame, asked, id_column, label=label, seed=seed)
    for note in explained.notes:
        session.note("note", note)
    for i in range(len(asked)):
        _say_row(session, explained, i)
    if out is not None:
        parts = [explained.columns(i) for i in range(len(asked))]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        write_rows(out, columns, is_for_spreadsheet=is_for_spreadsheet)
        session.say("written", f"{out}, {len(asked)} row{'s' * (len(asked) > 1)}")
    found = explained.found
    session.give(
        {
            "background": explained.background,
            "rows": [
                {
                    "row": str(explained.names.number[i]),
                    "class": str(found.output[i]) if found.output else None,
                    "prediction": float(found.prediction[i]),
                    "mean_prediction": float(found.baseline[i]),
                    "contributions": records(explained.columns(i)),
                }
                for i in range(len(asked))
            ],
        }
    )


def _say_row(session: Any, explained: Explained, i: int) -> None:
    """Say the prediction of a row, and show the largest contributions."""
    found = explained.found
    what = f"the probability of {quoted(found.output[i])} is " if found.output else ""
    have = f"{explained.background} {'have' if found.n_background > 1 else 'has'}"
    gap = found.prediction[i] - found.baseline[i]
    session.say("row", explained.names.listed([i]))
    session.say(
        "predicted",
        f"{what}{digits3(found.prediction[i])}; {have} {digits3(found.baseline[i])} on average, "
        f"and the inputs add {digits3(gap)}:",
    )
    columns = explained.columns(i)
    shown = {name: values[:_MOST_SHOWN] for name, values in columns.items() if name in _SHOWN}
    session.blank()
    session.show(rows_table(shown, n_text=2))
    left = len(found.names) - _MOST_SHOWN
    if left > 0:
        rest = columns["contribution"][_MOST_SHOWN:].sum()
        session.say("rest", f"{left} more inputs add {digits3(rest)} in all")
    session.blank()


_SHOWN = ("input", "value", "contribution", "lower_90", "upper_90", "error")
