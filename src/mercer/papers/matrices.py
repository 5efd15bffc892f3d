"""The papers' data sets as arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.data.named import TARGET, load_named

__all__ = ["named_arrays"]


def named_arrays(
    name: str, *, without: tuple[str, ...] = ()
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return inputs (n, d), leaving out the columns named, and whole-number labels (n,)."""
    frame = load_named(name)
    inputs = [c.values for c in frame.columns if c.name != TARGET and c.name not in without]
    return np.column_stack(inputs), frame.column(TARGET).values.astype(np.int64)
