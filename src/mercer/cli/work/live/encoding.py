"""Learning from the first rows of a stream how cells become numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mercer.cli.work.live.cells import Problems, read_numbers
from mercer.cli.work.live.rows import Row, present
from mercer.data.encoding import Encoder, fit_encoder
from mercer.data.frame import Column, Frame, Origin
from mercer.data.infer import column_of_texts
from mercer.data.wording import printable, quoted
from mercer.errors import DataError

__all__ = ["encoding_notes", "learn_encoder", "refuse_text"]

Array = NDArray[np.float64]
_MANY = 10  # rows that each have a text of their own, so that the column may name them


def learn_encoder(
    names: Sequence[str], rows: Sequence[Row], *, source: str, has_decimal_comma: bool
) -> tuple[Encoder, Problems]:
    """Learn from the first rows how columns become numbers.

    Parameters
    ----------
    names : sequence of str
        What the cells of a row are; one at least.
    rows : sequence of Row
        With cells, none of them missing.
    source : str
    has_decimal_comma : bool

    Returns
    -------
    encoder : Encoder
    problems : dict of int to str
        A column that holds more numbers than other texts is one of numbers; here are the rows of
        these texts.

    Raises
    ------
    DataError
        No row can be used, or a column holds dates.
    """
    numbers: dict[str, Array] = {}
    problems: Problems = {}
    for place, name in enumerate(names):
        cells = [row.cells[place] for row in rows]
        values, strays = read_numbers(cells, has_decimal_comma=has_decimal_comma)
        if 2 * len(strays) < len(rows):
            numbers[name] = values
            for position, words in strays.items():
                problems.setdefault(position, f"column {quoted(name)}: {words}")
    kept = np.array([k for k in range(len(rows)) if k not in problems], dtype=np.int64)
    if not len(kept):
        raise DataError(f"{printable(source)}: none of the first {len(rows)} rows can be used")
    columns = []
    for place, name in enumerate(names):
        if name in numbers:
            columns.append(Column(name, numbers[name][kept], "number"))
        else:
            texts = [present(rows[k].cells[place]) for k in kept]
            columns.append(column_of_texts(name, texts, is_text=False))
    origin = Origin(
        (source,),
        np.zeros(len(kept), dtype=np.int32),
        np.array([rows[k].number for k in kept], dtype=np.int64),
        np.array([rows[k].line for k in kept], dtype=np.int64),
    )
    return fit_encoder(Frame(tuple(columns), source, origin)), problems


def encoding_notes(encoder: Encoder, n_rows: int) -> list[str]:
    """Say of columns of text what may surprise, when the encoding was learned from ``n_rows``."""
    notes = list(encoder.notes)
    notes += [
        f"column {quoted(code.name)}: another text in each of the first {n_rows} rows; if it names "
        "the rows, use --id"
        for code in encoder.codes
        if code.kind == "levels" and len(code.levels) == n_rows >= _MANY
    ]
    return notes


def refuse_text(encoder: Encoder, source: str) -> None:
    """Refuse columns of text, if their levels would be those of a single row.

    Raises
    ------
    DataError
        Naming the first.
    """
    for code in encoder.codes:
        if code.kind in ("levels", "frequency", "date") or code.written is not None:
            raise DataError(
                f"{printable(source)}: column {quoted(code.name)} holds text, which is read as "
                "the first rows have it; use --warmup above 0, or --drop it"
            )
