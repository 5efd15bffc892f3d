"""The papers' data sets as arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.data.named import TARGET, load_named

__all__ = ["named_arrays"]


def named_arrays(
    name: str, *, without: tuple[str, ...] = ()
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return inputs (n, d), leaving out the columns named, and whole-number labels (n,).

    Labels that are words are numbered from 0 in alphabetical order.
    """
    frame = load_named(name)
    inputs = [c.values for c in frame.columns if c.name != TARGET and c.name not in without]
    labels = frame.column(TARGET).values
    if not np.issubdtype(labels.dtype, np.number):
        labels = np.unique(labels.astype(str), return_inverse=True)[1]
    return np.column_stack(inputs), labels.astype(np.int64)
