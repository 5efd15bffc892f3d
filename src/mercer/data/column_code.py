"""How one column of a table becomes columns of a matrix: learned, applied, written and read."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer.data.frame import Column
from mercer.errors import ModelFileError

__all__ = ["MAX_LEVELS", "ColumnCode", "as_levels", "fit_code"]

#: Text with more levels than this is encoded by the frequency of the level.
MAX_LEVELS = 50
CodeKind = Literal["number", "boolean", "levels", "frequency"]


@dataclass(frozen=True)
class ColumnCode:
    """The encoding of one column, fixed by the training rows.

    Parameters
    ----------
    name : str
        The column.
    kind : {"number", "boolean", "levels", "frequency"}
        Numbers and booleans pass as one column; text becomes one column per level (a single one
        for two levels), or the frequency of its level.
    levels : tuple of str
        The levels of text seen in training, sorted.
    frequencies : tuple of float
        The share of each level in training, for "frequency".
    fill : float, str or None
        What takes the place of a missing value; None: nothing does.
    """

    name: str
    kind: CodeKind
    levels: tuple[str, ...] = ()
    frequencies: tuple[float, ...] = ()
    fill: float | str | None = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns of the matrix."""
        if self.kind == "levels":
            shown = self.levels[1:] if len(self.levels) == 2 else self.levels
            return tuple(f"{self.name}={level}" for level in shown)
        if self.kind == "frequency":
            return (f"{self.name} (frequency)",)
        return (self.name,)

    def encode(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Encode values without a missing one: floats, or texts; shape (n, n_features)."""
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

    def to_dict(self) -> dict[str, Any]:
        """Turn into plain Python types."""
        return {
            "name": self.name,
            "kind": self.kind,
            "levels": list(self.levels),
            "frequencies": list(self.frequencies),
            "fill": self.fill,
        }

    @classmethod
    def from_dict(cls, fields: Any) -> ColumnCode:
        """Read back what `to_dict` gave.

        Raises
        ------
        ModelFileError
            The fields are not those of an encoding, or do not fit together.
        """
        if not isinstance(fields, dict) or set(fields) != set(cls.__dataclass_fields__):
            raise ModelFileError("inconsistent encoding: a column has the wrong fields")
        levels, frequencies = fields["levels"], fields["frequencies"]
        is_text = fields["kind"] in ("levels", "frequency")
        if not (
            isinstance(fields["name"], str)
            and fields["kind"] in ("number", "boolean", "levels", "frequency")
            and isinstance(levels, list)
            and isinstance(frequencies, list)
            and all(isinstance(level, str) for level in levels)
            and len(set(levels)) == len(levels)
            and bool(levels) == is_text
            and len(frequencies) == (len(levels) if fields["kind"] == "frequency" else 0)
            and all(_is_number(share) and 0 < share <= 1 for share in frequencies)
            and _is_fill(fields["fill"], is_text)
        ):
            raise ModelFileError("inconsistent encoding: a column does not fit together")
        return cls(
            fields["name"], fields["kind"], tuple(levels), tuple(frequencies), fields["fill"]
        )


def fit_code(column: Column, *, has_fill: bool) -> ColumnCode:
    """Learn the encoding of a column that has at least one value and can be encoded."""
    present = column.values[~column.is_missing]
    if column.kind == "boolean":
        fill = float(np.mean(present) > 0.5) if has_fill else None
        return ColumnCode(column.name, "boolean", fill=fill)
    if column.kind == "number":
        fill = float(np.median(present)) if has_fill else None
        return ColumnCode(column.name, "number", fill=fill)
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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_fill(fill: Any, is_text: bool) -> bool:
    return fill is None or (isinstance(fill, str) if is_text else _is_number(fill))
