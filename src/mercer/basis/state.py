"""All that the filter needs for the next row."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.basis.arrays import Array, Integers, Particles, Statistics

__all__ = ["RowBuffer", "State", "Sums", "copied", "with_room"]


class Sums(NamedTuple):
    """Sums over rows that have left the buffer, for each level; without columns until one has."""

    gram: Array
    moment: Array


class RowBuffer(NamedTuple):
    """The last rows, in a ring: row number t stands at t modulo the length.

    Attributes
    ----------
    X : ndarray of shape (B, d)
    y : ndarray of shape (B,)
    distances : ndarray of shape (A, B, R)
        Squared, to each candidate, for each scaling of the inputs.
    age : ndarray of shape (B,), int
        Discounts that had been applied when the row came.
    """

    X: Array
    y: Array
    distances: Array
    age: Integers


@dataclass(frozen=True, eq=False)
class State:
    """The filter after some rows. Its arrays are changed in place by the next: see `copied`.

    Attributes
    ----------
    particles : Particles
    statistics : Statistics
        Without the rows that are pending.
    old : Sums
    rows : RowBuffer
    centres : ndarray of shape (R, d)
        Inputs of the candidates, standardised.
    pending : ndarray of shape (block, L, C)
        Rows of the design that the particles know, not yet the sums.
    pending_y : ndarray of shape (block,)
    leaving : ndarray of shape (n, L, C)
        Rows that have left the buffer, times the root of their weight, not yet in ``old``.
    leaving_y : ndarray of shape (n,)
    n_pending, n_leaving : int
    n_seen : int
        Rows learned.
    n_discounts : int
    log_evidence : float
        Of the rows, in nats: unbiased on the scale of the evidence itself.
    evidence_variance : float
        Of the log evidence, to first order, from the times of resampling.
    n_ancestors : int
        Distinct ancestors of the particles after the last fifty rows.
    """

    particles: Particles
    statistics: Statistics
    old: Sums
    rows: RowBuffer
    centres: Array
    pending: Array
    pending_y: Array
    leaving: Array
    leaving_y: Array
    n_pending: int
    n_leaving: int
    n_seen: int
    n_discounts: int
    log_evidence: float
    evidence_variance: float
    n_ancestors: int


def copied(state: State) -> State:
    """Return a state that shares no array with this one."""
    values = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, np.ndarray):
            value = value.copy()
        elif isinstance(value, tuple):
            kind = type(value)
            value = kind(*(v.copy() if isinstance(v, np.ndarray) else v for v in value))
        values[field.name] = value
    return State(**values)


def with_room(state: State, n_rows: int, n_candidates: int, n_mean: int) -> State:
    """Return a state with longer arrays: for so many rows in the ring, and so many candidates.

    The ring may only grow before it is full.
    """
    C = n_mean + n_candidates
    statistics, rows = state.statistics, state.rows
    n_old = 0 if state.old.gram.shape[1] == 0 else C
    return replace(
        state,
        statistics=statistics._replace(
            gram=_grown(statistics.gram, 0, C, C), moment=_grown(statistics.moment, 0, C)
        ),
        old=Sums(_grown(state.old.gram, 0, n_old, n_old), _grown(state.old.moment, 0, n_old)),
        rows=RowBuffer(
            _grown(rows.X, n_rows),
            _grown(rows.y, n_rows),
            _grown(rows.distances, 0, n_rows, n_candidates),
            _grown(rows.age, n_rows),
        ),
        centres=_grown(state.centres, n_candidates),
        pending=_grown(state.pending, 0, 0, C),
        leaving=_grown(state.leaving, 0, 0, C),
    )


def _grown(array: NDArray[Any], *lengths: int) -> NDArray[Any]:
    """Lengthen the leading axes to at least these lengths, with zeros; 0 leaves an axis alone."""
    wanted = [max(n, m) for n, m in zip(lengths, array.shape, strict=False)]
    shape = (*wanted, *array.shape[len(lengths) :])
    if shape == array.shape:
        return array
    result = np.zeros(shape, array.dtype)
    result[tuple(slice(n) for n in array.shape)] = array
    return result
