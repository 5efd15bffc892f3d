"""Which rows a Gaussian process is fitted to where there are more than matrices are for.

A first look at a few hundred random rows, at the maximum of their posterior, says how precisely the
target of a row tells of the function there; with that the others are chosen greedily
(`mercer.gp.informative`), from at most 20,000 at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UsageError
from mercer.estimation.options import check_count
from mercer.gp.informative import informative_rows
from mercer.kernels.base import Kernel

__all__ = ["MOST_ROWS", "Look", "choose_rows", "limit_of_rows", "note_of_choice"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
# From rows looked at first, and all that may be chosen (m, d): log parameters of the kernel and
# precisions (m,), one pair for each function that is modelled.
Look = Callable[[Rows, Array], Sequence[tuple[Array, Array]]]

MOST_ROWS = 5000
_MOST_SAMPLED = 2000  # "auto": beyond it, chains take hours
_POOL, _FIRST = 20_000, 500


def limit_of_rows(max_rows: object, inference: str) -> int:
    """Return how many rows are fitted at most.

    Raises
    ------
    UsageError
        If the argument is neither "auto" nor a number from 10 to 5000.
    """
    if isinstance(max_rows, str) and max_rows == "auto":
        return MOST_ROWS if inference == "map" else _MOST_SAMPLED
    if isinstance(max_rows, str):
        raise UsageError(f'max_rows must be "auto" or a number; got {max_rows!r}')
    limit = check_count("max_rows", max_rows, 10)
    if limit > MOST_ROWS:
        raise UsageError(
            f"max_rows must be at most {MOST_ROWS}: matrices of n x n numbers take hours beyond; "
            f"got {max_rows!r}"
        )
    return limit


def choose_rows(
    X: Array,
    kernel: Kernel,
    limit: int,
    rng: np.random.Generator,
    look: Look,
    codes: Array | None = None,
) -> Rows:
    """Choose ``limit`` of the standardised rows X (n, d); every class of ``codes`` is among them.

    Returns
    -------
    ndarray of shape (limit,), int
        In ascending order.
    """
    order = rng.permutation(len(X))
    if codes is not None:
        classes, leading = np.unique(codes[order], return_index=True)
        if len(classes) > limit // 2:
            raise UsageError(f"max_rows={limit} is too few for {len(classes)} classes: take twice")
        order = np.concatenate([order[leading], np.delete(order, leading)])
    pool = order[:_POOL]
    chosen = np.arange(min(_FIRST, limit // 2))  # of the pool, as all that follows
    looks = look(pool[chosen], X[pool])
    for k, (theta, precision) in enumerate(looks):
        share = (limit - len(chosen)) // (len(looks) - k)
        more = informative_rows(kernel, theta, X[pool], precision, chosen, share, rng)
        chosen = np.concatenate([chosen, more])
    return np.sort(pool[chosen])


def note_of_choice(n_rows: int, limit: int) -> str:
    """Say that rows were chosen, and what to do about it."""
    more = f"; max_rows={min(n_rows, MOST_ROWS)} takes more" if limit < MOST_ROWS else ""
    return f"fitted to {limit} of {n_rows} rows, chosen by what they tell of the function{more}"
