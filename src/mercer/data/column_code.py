"""How one column of a table becomes columns of a matrix: learned, applied, written and read."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.data.formats import CellFormat
from mercer.data.frame import Column
from mercer.data.wording import quoted
from mercer.errors import ModelFileError

__all__ = ["DATE_PARTS", "MAX_LEVELS", "ColumnCode", "as_levels", "fit_code"]

#: Text with more levels than this is encoded by the frequency of the level.
MAX_LEVELS = 50
CodeKind = Literal["number", "boolean", "date", "levels", "frequency"]
#: What a date gives, and what it is called.
DATE_PARTS = {
    "year": "year",
    "month": "month",
    "weekday": "day of week",
    "hour": "hour",
    "days": "days since",
}
#: Days from 1970 of the first and the last date that there may be.
_FIRST_DAY, _LAST_DAY = -719162.0, 2932897.0


@dataclass(frozen=True)
class ColumnCode:
    """The encoding of one column, fixed by the training rows.

    Parameters
    ----------
    name : str
        The column.
    kind : {"number", "boolean", "date", "levels", "frequency"}
        Numbers and booleans pass as one column; text becomes one column per level (a single one
        for two levels), or the frequency of its level; a date becomes its `parts`.
    levels : tuple of str
        The levels of text seen in training, sorted.
    frequencies : tuple of float
        The share of each level in training, for "frequency".
    fill : float, str or None
        What takes the place of a missing value; None: nothing does. Of a date: days since 1970.
    written : CellFormat or None
        How dates, and numbers that are not as a program writes them, stand in the table.
    parts : tuple of str
        What is taken of a date: those of `DATE_PARTS` that vary in training.
    origin : float
        The first date of training, in days since 1970; that from which days are counted.
    """

    name: str
    kind: CodeKind
    levels: tuple[str, ...] = ()
    frequencies: tuple[float, ...] = ()
    fill: float | str | None = None
    written: CellFormat | None = None
    parts: tuple[str, ...] = ()
    origin: float = 0.0

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns of the matrix."""
        if self.kind == "levels":
            shown = self.levels[1:] if len(self.levels) == 2 else self.levels
            return tuple(f"{self.name}={level}" for level in shown)
        if self.kind == "frequency":
            return (f"{self.name} (frequency)",)
        if self.kind == "date":
            return tuple(f"{self.name} ({words})" for words in self._part_words())
        return (self.name,)

    def _part_words(self) -> list[str]:
        first = f" {np.datetime64(int(self.origin), 'D')}"
        return [DATE_PARTS[part] + (first if part == "days" else "") for part in self.parts]

    def encode(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Encode values without a missing one: floats (of dates as `read` gives them), or texts.

        Returns
        -------
        ndarray of shape (n, n_features)
        """
        if self.kind == "date":
            return np.column_stack([_date_part(values, part, self.origin) for part in self.parts])
        if self.kind == "frequency":
            shares = dict(zip(self.levels, self.frequencies, strict=True))
            return np.array([[shares.get(value, 0.0)] for value in values]).reshape(-1, 1)
        if self.kind == "levels":
            X = np.zeros((len(values), len(self.feature_names)))
            offset = len(self.levels) - len(self.feature_names)
            positions = {level: k - offset for k, level in enumerate(self.levels)}
            for row, value in enumerate(values):
                k = positions.get(value, -1)
                if k >= 0:
                    X[row, k] = 1.0
            return X
        return np.asarray(values, dtype=np.float64).reshape(-1, 1)

    def note(self) -> str | None:
        """Say in one line what may surprise; None: nothing does."""
        column = f"column {quoted(self.name)}"
        if self.kind == "frequency":
            return (
                f"{column}: {len(self.levels)} levels of text (more than {MAX_LEVELS}), encoded by "
                "their frequency in training"
            )
        if self.kind == "date":
            assert self.written is not None
            words = self._part_words()
            if "weekday" in self.parts:
                words[self.parts.index("weekday")] += " (Monday is 1)"
            zone = " in UTC" if self.written.has_zone else ""
            return f"{column}: {self.written.kinds}{zone}, as {', '.join(words)}"
        if self.written is not None:
            return f"{column}: {self.written.kinds}"
        return None

    def to_dict(self) -> dict[str, Any]:
        """Turn into plain Python types."""
        return {
            "name": self.name,
            "kind": self.kind,
            "levels": list(self.levels),
            "frequencies": list(self.frequencies),
            "fill": self.fill,
            "written": None if self.written is None else self.written.to_dict(),
            "parts": list(self.parts),
            "origin": self.origin,
        }

    @classmethod
    def from_dict(cls, fields: Any) -> ColumnCode:
        """Read back what `to_dict` gave.

        Raises
        ------
        ModelFileError
            The fields are not those of an encoding, or do not fit together.
        """
        if isinstance(fields, dict):  # older files do not have these
            fields = {"written": None, "parts": [], "origin": 0.0, **fields}
        if not isinstance(fields, dict) or set(fields) != set(cls.__dataclass_fields__):
            raise ModelFileError("inconsistent encoding: a column has the wrong fields")
        written = None if fields["written"] is None else CellFormat.from_dict(fields["written"])
        levels, frequencies = fields["levels"], fields["frequencies"]
        is_text = fields["kind"] in ("levels", "frequency")
        if not (
            isinstance(fields["name"], str)
            and fields["kind"] in ("number", "boolean", "date", "levels", "frequency")
            and isinstance(levels, list)
            and isinstance(frequencies, list)
            and all(isinstance(level, str) for level in levels)
            and len(set(levels)) == len(levels)
            and bool(levels) == is_text
            and len(frequencies) == (len(levels) if fields["kind"] == "frequency" else 0)
            and all(_is_number(share) and 0 < share <= 1 for share in frequencies)
            and _is_fill(fields["fill"], is_text)
            and _is_date_code(fields, written)
        ):
            raise ModelFileError("inconsistent encoding: a column does not fit together")
        return cls(
            fields["name"],
            fields["kind"],
            tuple(levels),
            tuple(frequencies),
            fields["fill"],
            written,
            tuple(fields["parts"]),
            float(fields["origin"]),
        )


def fit_code(column: Column, *, has_fill: bool, written: CellFormat | None = None) -> ColumnCode:
    """Learn the encoding of a column that has at least one value and can be encoded.

    Parameters
    ----------
    column : Column
        Of dates and numbers that are ``written`` in some way: what was read, as numbers.
    has_fill : bool
        Learn what takes the place of a missing value.
    written : CellFormat or None
    """
    present = column.values[~column.is_missing]
    if written is not None and written.kind == "date":
        origin = float(np.floor(present.min()))
        varied = tuple(
            part for part in DATE_PARTS if np.ptp(_date_part(present, part, origin)) > 0.0
        )
        fill = float(np.median(present)) if has_fill else None
        parts = varied or ("days",)
        return ColumnCode(
            column.name, "date", fill=fill, written=written, parts=parts, origin=origin
        )
    if column.kind == "boolean":
        fill = float(np.mean(present) > 0.5) if has_fill else None
        return ColumnCode(column.name, "boolean", fill=fill)
    if column.kind == "number":
        fill = float(np.median(present)) if has_fill else None
        return ColumnCode(column.name, "number", fill=fill, written=written)
    counts = Counter(present)
    levels = tuple(sorted(counts))
    commonest = max(levels, key=lambda level: counts[level]) if has_fill else None
    if len(levels) <= MAX_LEVELS:
        return ColumnCode(column.name, "levels", levels, fill=commonest)
    shares = tuple(counts[level] / len(present) for level in levels)
    return ColumnCode(column.name, "frequency", levels, shares, commonest)


def as_levels(column: Column) -> NDArray[Any]:
    """Write the cells of any column as text, whole numbers without a point; None is missing."""
    if column.values.dtype != np.float64:
        return column.values
    words = np.empty(len(column.values), dtype=object)
    for row, value in enumerate(column.values):
        if math.isnan(value):
            continue
        if column.kind == "boolean":
            words[row] = "true" if value else "false"
        else:
            words[row] = str(int(value)) if value.is_integer() else repr(float(value))
    return words


def _date_part(days: NDArray[Any], part: str, origin: float) -> NDArray[np.float64]:
    """Take one part of dates that are days since 1970."""
    days = np.asarray(days, dtype=np.float64)
    whole = np.floor(days)
    if part == "days":
        return days - origin
    if part == "hour":
        return np.asarray(np.round(24.0 * (days - whole), 9))
    if part == "weekday":
        return np.asarray((whole + 3.0) % 7.0 + 1.0)  # the first day of 1970 was a Thursday
    dates = whole.astype(np.int64).astype("datetime64[D]")
    if part == "year":
        return np.asarray(dates.astype("datetime64[Y]").astype(np.int64) + 1970.0)
    return np.asarray(dates.astype("datetime64[M]").astype(np.int64) % 12 + 1.0)


def _is_date_code(fields: dict[str, Any], written: CellFormat | None) -> bool:
    """Whether the format of a column fits its kind, and parts and origin are there for dates."""
    parts, origin, fill = fields["parts"], fields["origin"], fields["fill"]
    if not isinstance(parts, list) or not _is_number(origin):
        return False
    if fields["kind"] != "date":
        is_written = written is None or (written.kind == "number" and fields["kind"] == "number")
        return is_written and not parts and origin == 0.0
    days = [origin] if fill is None else [origin, fill]
    return (
        written is not None
        and written.kind == "date"
        and bool(parts)
        and all(isinstance(part, str) and part in DATE_PARTS for part in parts)
        and len(set(parts)) == len(parts)
        and float(origin).is_integer()
        and all(_FIRST_DAY <= day <= _LAST_DAY for day in days)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_fill(fill: Any, is_text: bool) -> bool:
    return fill is None or (isinstance(fill, str) if is_text else _is_number(fill))
