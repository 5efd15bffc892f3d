"""Which rows of a stream hold what is no finite number, and which have a target."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["known_runs", "name_not_finite"]


def name_not_finite(X: Any, y: Any) -> str | None:
    """Say which is the first value that is not finite, by row (its position) and column.

    Parameters
    ----------
    X : array or frame of shape (m, d)
        As the user gave it.
    y : array of shape (m,)

    Returns
    -------
    str or None
        None if all are finite, or these are no tables of numbers.
    """
    names = getattr(X, "columns", None)
    for name, values, ndim in (("X", X, 2), ("y", y, 1)):
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            continue
        is_bad = ~np.isfinite(array)
        if array.ndim != ndim or not is_bad.any():
            continue
        row, *column = (int(i) for i in np.argwhere(is_bad)[0])
        what = "NaN" if np.isnan(array[row, *column]) else "infinity"
        of_column = ""
        if column:
            label = f"x{column[0]}" if names is None else str(names[column[0]])
            of_column = f", column {label!r}"
        return f"Input {name} contains {what}: row {row} (a position, the first is 0){of_column}"
    return None


def known_runs(is_known: NDArray[np.bool_]) -> list[slice]:
    """Cut rows where known and unknown targets meet."""
    if not len(is_known):
        return []
    ends = [0, *(np.flatnonzero(np.diff(is_known)) + 1).tolist(), len(is_known)]
    return [slice(a, b) for a, b in pairwise(ends)]
