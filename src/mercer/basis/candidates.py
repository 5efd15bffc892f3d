"""Sums of a new candidate: exact over the rows in the buffer, by projection over older ones.

On rows that are gone its feature is *defined* as the projection on the nearest candidates then
held, a'k(x, near) with a = (K_near + ridge)^-1 k_near(new). That needs no row, and depends on no
target: the filter is exact for that design.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.basis.arrays import Array
from mercer.basis.levels.levels import Levels
from mercer.basis.state import State
from mercer.numerics.cholesky import solve_positive

__all__ = ["admit"]

_NEAREST = 32
_RIDGE = 1e-6


def admit(state: State, levels: Levels, slot: int, x: Array, weights: Array) -> State:
    """Put a candidate into a slot, with its sums.

    Parameters
    ----------
    state : State
        All its rows are in the sums. Changed in place.
    levels : Levels
    slot : int
        The next free one, or one that no particle uses any more.
    x : ndarray of shape (d,)
        The input.
    weights : ndarray of shape (n,)
        Of the rows in the buffer.
    """
    m, column = levels.n_mean, levels.n_mean + slot
    r = max(state.statistics.n_candidates, slot + 1)
    n_rows = len(weights)
    gram, moment = state.statistics.gram, state.statistics.moment
    projection = _projection(state, levels, slot, x, r) if state.old.gram.shape[1] else None
    state.centres[slot] = x
    rows = state.rows
    own = levels.distances(x, rows.X, n_rows)
    rows.distances[:, :n_rows, slot] = own
    features = np.empty((levels.n_levels, n_rows))
    levels.fill_kernel(own, n_rows, features)
    targets = features @ (weights * rows.y[:n_rows])
    features *= weights
    crosses = np.concatenate(
        [
            features @ levels.mean(rows.X[:n_rows]),
            levels.cross_sums(rows.distances[:, :n_rows, :r], features),
        ],
        axis=1,
    )
    for level in range(levels.n_levels):
        cross, of_target = crosses[level], float(targets[level])
        if projection is not None:
            old_cross, old_target = projection[level]
            state.old.gram[level, column, : m + r] = old_cross
            state.old.gram[level, : m + r, column] = old_cross
            state.old.moment[level, column] = old_target
            cross, of_target = cross + old_cross, of_target + old_target
        gram[level, column, : m + r] = cross
        gram[level, : m + r, column] = cross
        moment[level, column] = of_target
    return replace(state, statistics=state.statistics._replace(n_candidates=r))


def _projection(
    state: State, levels: Levels, slot: int, x: Array, r: int
) -> list[tuple[Array, float]]:
    """Sums of the new feature over rows that are gone, at each level: with all columns, with y."""
    m = levels.n_mean
    others = np.setdiff1d(np.arange(r), [slot])
    Z = state.centres[others]
    distances = levels.distances(x, Z, len(others))
    near = np.argsort(distances[0], kind="stable")[:_NEAREST]
    columns = m + others[near]
    result = []
    for level in range(levels.n_levels):
        a = np.zeros(0)
        if len(near):
            design = levels.design(np.vstack([Z[near], x]), Z[near], level)[:, m:]
            K, k = design[:-1], design[-1]
            a = solve_positive(K + _RIDGE * np.eye(len(near)), k)
        old = state.old.gram[level]
        cross = a @ old[columns, : m + r]
        cross[m + slot] = a @ old[np.ix_(columns, columns)] @ a
        result.append((cross, float(a @ state.old.moment[level, columns])))
    return result
