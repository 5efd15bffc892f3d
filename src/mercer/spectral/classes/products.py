"""Passes over the rows for classes: weighted products of features, and log likelihoods.

Of each block of rows the functions f = F beta are computed, Polya-Gamma variables omega | f drawn,
and what the sweep needs is added up:

    [Phi*, Phi, H, z]' Omega [Phi*, Phi, H, z],   z = kappa / omega

for each stick over its own rows. omega is used and forgotten: never stored, never stale. Nothing is
known from the sweep before, since the weights change: 16 n M^2 flops for each stick.

Blocks are summed in pairs, pairs in fours and so on, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.features.products import PairwiseSum, fill_features
from mercer.likelihoods.polya_gamma.compiled import fill_polya_gamma
from mercer.spectral.classes.labels import signs_of
from mercer.spectral.rows import TrainingRows

__all__ = [
    "StickProducts",
    "Weigh",
    "fill_design",
    "log_likelihood",
    "log_probabilities",
    "parts",
    "polya_gamma",
    "weighted_products",
]

Array = NDArray[np.float64]

# Rows whose features stand in memory at a time: what computes them stays in the cache.
_ROWS_AT_ONCE = 1024

# (functions, targets - 1/2) of some rows of a stick -> weights and weights times targets z.
Weigh = Callable[[Array, Array], tuple[Array, Array]]


@dataclass(frozen=True, eq=False)
class StickProducts:
    """Sums over the rows of one stick.

    Attributes
    ----------
    gram : ndarray of shape (2 M + p + 1, 2 M + p + 1)
        Of [Phi, H, z], weighted.
    among, across : ndarray of shape (2 M, 2 M) and (2 M, 2 M + p + 1)
        Of the proposed features, with each other and with those columns, weighted.
    """

    gram: Array
    among: Array
    across: Array


def polya_gamma(rng: np.random.Generator) -> Weigh:
    """Draw omega_i ~ PG(1, f_i); omega z is kappa."""

    def weigh(f: Array, kappa: Array) -> tuple[Array, Array]:
        omega = np.empty(len(f))
        fill_polya_gamma(rng, f, len(f), omega)
        return omega, kappa

    return weigh


def weighted_products(
    rows: TrainingRows, proposed: Array, frequencies: Array, coef: Array, weigh: Weigh
) -> tuple[StickProducts, ...]:
    """Sum the products of all sticks in one pass.

    Parameters
    ----------
    rows : TrainingRows
        Targets are places of classes, see `ClassCodes`.
    proposed : ndarray of shape (M', d)
        May be empty.
    frequencies : ndarray of shape (M, d)
    coef : ndarray of shape (K, 2 M + p)
        Of the functions that the weights depend on.
    weigh : callable
        Called for each stick in turn on some rows at a time, in order.
    """
    n_new, n_sticks = 2 * len(proposed), len(coef)
    n_columns = n_new + coef.shape[1] + 1
    sums = [PairwiseSum() for _ in range(n_sticks)]
    for X, y in rows.blocks():
        tasks = [np.zeros((n_columns, n_columns), order="F") for _ in range(n_sticks)]
        for part, codes in parts(X, y):
            room = np.empty((n_columns, len(part)))
            if n_new:
                fill_features(proposed, part, room[:n_new])
            fill_design(rows, frequencies, part, room[n_new:-1])
            for k, task in enumerate(tasks):
                columns = room if n_sticks == 1 else room[:, codes >= k]
                _add(task, columns, codes[codes >= k] == k, coef[k], weigh)
        for total, task in zip(sums, tasks, strict=True):
            total.add(task)
    return tuple(_split(total.total(), n_new) for total in sums)


def log_likelihood(rows: TrainingRows, frequencies: Array, coef: Array) -> float:
    """Log probability of all labels, in nats: one pass, O(n M)."""
    return float(sum(part.sum() for part in _log_probabilities(rows, frequencies, coef)))


def log_probabilities(rows: TrainingRows, frequencies: Array, coef: Array) -> Array:
    """Log probability of each label, shape (n,), in nats."""
    return np.concatenate(list(_log_probabilities(rows, frequencies, coef)))


def parts(X: Array, y: Array, size: int = _ROWS_AT_ONCE) -> Iterator[tuple[Array, Array]]:
    """Cut a block of rows X (b, d), y (b,) into parts of so many rows."""
    for begin in range(0, len(X), size):
        rows = slice(begin, begin + size)
        yield X[rows], y[rows]


def _log_probabilities(rows: TrainingRows, frequencies: Array, coef: Array) -> Iterator[Array]:
    for part, codes in (part for block in rows.blocks() for part in parts(*block)):
        F = np.empty((coef.shape[1], len(part)))
        fill_design(rows, frequencies, part, F)
        sign = signs_of(codes, len(coef))
        yield -np.logaddexp(0.0, -sign * (coef @ F)).sum(axis=0, where=sign != 0.0)


def fill_design(rows: TrainingRows, frequencies: Array, X: Array, out: Array) -> None:
    """Write [Phi, H] of some rows as rows, shape (2 M + p, b)."""
    m2 = 2 * len(frequencies)
    fill_features(frequencies, X, out[:m2])
    if rows.has_linear_part:
        out[m2] = 1.0
        out[m2 + 1 :] = X.T


def _add(task: Array, columns: Array, is_first: Array, coef: Array, weigh: Weigh) -> None:
    """Add some rows of one stick to the lower triangle of its products; changes the columns."""
    if columns.shape[1] == 0:
        return
    F = columns[-1 - len(coef) : -1]
    weights, weighted = weigh(coef @ F, is_first - 0.5)
    root = np.sqrt(weights)
    columns[:-1] *= root
    columns[-1] = weighted / root
    # Writes into the Fortran-ordered sum, in place.
    blas.dsyrk(1.0, columns.T, beta=1.0, c=task, trans=1, lower=1, overwrite_c=1)


def _split(total: Array, n_new: int) -> StickProducts:
    full = np.tril(total) + np.tril(total, -1).T
    return StickProducts(
        np.ascontiguousarray(full[n_new:, n_new:]),
        np.ascontiguousarray(full[:n_new, :n_new]),
        np.ascontiguousarray(full[:n_new, n_new:]),
    )
