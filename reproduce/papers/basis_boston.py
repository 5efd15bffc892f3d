"""Boston housing as Vermaak, Godsill & Doucet split it, section 4.2: 300 rows and 206."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mercer.data.named import TARGET, load_named
from reproduce.papers.basis_answer import Problem

__all__ = ["NAME", "boston_split"]

Array = NDArray[np.float64]

NAME = "boston"
_N_TRAIN = 300


def boston_split(seed: int) -> Problem:
    """Return a random split; inputs are standardised by its training rows.

    Raises
    ------
    StorageError
        If the data set is not at hand.
    """
    X, y = _arrays()
    rows = np.random.default_rng(seed).permutation(len(y))
    train, test = rows[:_N_TRAIN], rows[_N_TRAIN:]
    mean, std = X[train].mean(axis=0), X[train].std(axis=0)
    return Problem((X[train] - mean) / std, y[train], (X[test] - mean) / std, y[test])


@lru_cache(maxsize=1)
def _arrays() -> tuple[Array, Array]:
    frame = load_named(NAME)
    inputs = [column.values for column in frame.columns if column.name != TARGET]
    X = np.column_stack(inputs).astype(np.float64)
    return X, frame.column(TARGET).values.astype(np.float64)
