"""Compiled Gibbs step over all candidates: keep or drop a centre, then keep or add one."""

from __future__ import annotations

import math

import numpy as np

from mercer.basis.particle.compiled import append_in_place, drop_in_place
from mercer.basis.regression.compiled import fill_columns
from mercer.numerics.compilation import compiled

__all__ = ["redraw", "solve_all", "stays"]

_FAST = {"contract", "reassoc", "nsz"}


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def solve_all(gram, moment, columns, p, ridge, U, w, n_columns, V, squares, parts):
    """`append_terms` for all columns at once: one triangular solve."""
    for c in range(n_columns):
        squares[c] = gram[c, c] + ridge
        parts[c] = moment[c]
    for i in range(p):
        Vi, Si = V[i], gram[columns[i]]
        for c in range(n_columns):
            Vi[c] = Si[c]
        for r in range(i):
            left, Vr = U[r, i], V[r]
            for c in range(n_columns):
                Vi[c] -= left * Vr[c]
        inverse, wi = 1.0 / U[i, i], w[i]
        for c in range(n_columns):
            value = Vi[c] * inverse
            Vi[c] = value
            squares[c] -= value * value
            parts[c] -= value * wi
    for c in range(n_columns):
        squares[c] = max(squares[c], ridge)


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _log_gains(prior, shape, rss, noise, first, n_columns, squares, parts, gains):
    """Write the change of the log evidence for each column but for -log(pivot) and its prior.

    Returns the largest.
    """
    highest = -math.inf
    base = prior.noise_rate + 0.5 * rss
    for c in range(first, n_columns):
        half_square = 0.5 * parts[c] * parts[c] / squares[c]
        if prior.is_sampled:
            gains[c] = half_square / noise
        else:
            gains[c] = -shape * math.log(max(base - half_square, prior.noise_rate) / base)
        highest = max(highest, gains[c])
    return highest


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _exponentiate(first, n_columns, highest, squares, gains):
    """Turn them into weights, with the pivots: exp(gain - highest) / pivot; return their sum."""
    total = 0.0
    for c in range(first, n_columns):
        gains[c] = math.exp(gains[c] - highest) / math.sqrt(squares[c])
        total += gains[c]
    return total


@compiled(nogil=True, error_model="numpy")
def _pick(gains, first, n_columns, rest):
    """Return the column where the running sum of weights exceeds ``rest``; -1 if none has any."""
    chosen = -1
    for c in range(first, n_columns):
        if gains[c] > 0.0:
            chosen = c
            rest -= gains[c]
            if rest < 0.0:
                break
    return chosen


@compiled(nogil=True, error_model="numpy")
def stays(size, largest):
    """Probability that the redraw starts from the whole set rather than from all but one."""
    if size == 0:
        return 1.0
    return 0.0 if size == largest else 0.5


@compiled(nogil=True, error_model="numpy")
def redraw(rng, statistics, prior, shape, log_size, particles, i, columns, room):
    """Keep the set or drop one centre, then keep that or add one, in proportion to the target.

    Two-block Gibbs on (set, core): never rejected. Contains birth, death and swap.
    """
    V, squares, parts, gains = room
    m, largest = prior.n_mean, particles.members.shape[1]
    if rng.random() >= stays(particles.size[i], largest):
        drop_in_place(particles, i, m, rng.integers(0, particles.size[i]))
    size, level = particles.size[i], particles.level[i]
    if size >= min(largest, statistics.n_candidates):
        return
    p = fill_columns(particles.members[i], size, m, columns)
    ridge = 1.0 / particles.scale[i]
    n_columns = m + statistics.n_candidates
    solve_all(
        statistics.gram[level], statistics.moment[level], columns, p, ridge, particles.factor[i],
        particles.whitened[i], n_columns, V, squares, parts,
    )  # fmt: skip
    highest = _log_gains(
        prior, shape, particles.rss[i], particles.noise[i], m, n_columns, squares, parts, gains
    )
    for j in range(size):
        gains[particles.members[i, j]] = -math.inf
    more = log_size[size + 1] - log_size[size] - 0.5 * math.log(particles.scale[i])
    more += math.log((1.0 - stays(size + 1, largest)) / (size + 1))
    stay = math.log(stays(size, largest)) - more
    highest = max(highest, stay)
    total = _exponentiate(m, n_columns, highest, squares, gains)
    rest = rng.random() * (total + math.exp(stay - highest)) - math.exp(stay - highest)
    if rest < 0.0:
        return
    chosen = _pick(gains, m, n_columns, rest)
    if chosen < 0:
        return
    v = _column_of(V, chosen, p)
    append_in_place(particles, i, m, chosen, v, squares[chosen], parts[chosen])


@compiled(nogil=True, error_model="numpy")
def _column_of(V, column, p):
    """Copy one column."""
    v = np.empty(p)
    for i in range(p):
        v[i] = V[i, column]
    return v
