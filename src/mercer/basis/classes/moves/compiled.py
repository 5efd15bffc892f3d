"""Compiled moves of particles: omega, then set and length scale, coefficients, their variance.

Omega given the coefficients extends the target with weight 1; set and length scale move with the
coefficients integrated out; then these are drawn anew and omega is forgotten. Each particle's
weight stays.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.basis.classes.augmentation.compiled import (
    augment,
    draw_coefficients,
    factorise,
    fill_products,
    fill_set,
    log_evidence,
)
from mercer.basis.moves.compiled import other_level
from mercer.basis.particle.compiled import draw_scale
from mercer.basis.redraw.compiled import solve_all, stays
from mercer.numerics.compilation import compiled

__all__ = ["move_particles"]

_FAST = {"contract", "reassoc", "nsz"}


@compiled(nogil=True, error_model="numpy")
def _drawn(rng, gains, first, n_columns, stay):
    """Draw a column in proportion to e^gain, or -1 in proportion to e^stay."""
    highest = stay
    for c in range(first, n_columns):
        highest = max(highest, gains[c])
    total = math.exp(stay - highest)
    for c in range(first, n_columns):
        total += math.exp(gains[c] - highest)
    rest = rng.random() * total - math.exp(stay - highest)
    chosen = -1
    for c in range(first, n_columns):
        if rest < 0.0:
            break
        if gains[c] > -math.inf:
            chosen = c
            rest -= math.exp(gains[c] - highest)
    return chosen


@compiled(nogil=True, error_model="numpy")
def _redraw(rng, prior, log_size, columns, p, largest, n_columns, scale, sums, factor, room):
    """Keep the set or drop one centre, then keep that or add one, in proportion to the target.

    Two-block Gibbs on (set, core): never rejected. Contains birth, death and swap. Returns the
    number of columns and the one that was added last, or -1.
    """
    gram, moment = sums
    (U, w), (V, squares, parts, gains) = factor, room
    m = prior.n_mean
    if rng.random() >= stays(p - m, largest):
        for j in range(rng.integers(m, p), p - 1):
            columns[j] = columns[j + 1]
        p -= 1
    size = p - m
    if size >= min(largest, n_columns - m):
        return p, -1
    factorise(prior, gram, moment, columns, p, scale, U, w)
    solve_all(gram, moment, columns, p, 1.0 / scale, U, w, n_columns, V, squares, parts)
    for c in range(m, n_columns):
        gains[c] = 0.5 * (parts[c] * parts[c] / squares[c] - math.log(squares[c]))
    for j in range(m, p):
        gains[columns[j]] = -math.inf
    more = log_size[size + 1] - log_size[size] - 0.5 * math.log(scale)
    more += math.log((1.0 - stays(size + 1, largest)) / (size + 1))
    chosen = _drawn(rng, gains, m, n_columns, math.log(stays(size, largest)) - more)
    if chosen >= 0:
        columns[p] = chosen
        p += 1
    return p, chosen


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _fill_diagonal(features, omega, n, n_columns, gram):
    for c in range(n_columns):
        column, total = features[c], 0.0
        for s in range(n):
            total += omega[s] * column[s] * column[s]
        gram[c, c] = total


@compiled(nogil=True, error_model="numpy")
def _move_set(
    rng, features, omega, moment, n, prior, log_size, n_columns, n_redraws, columns, p, largest,
    scale, gram, factor, room, spare,
):  # fmt: skip
    """Redraw the set some times; return its number of columns. Their factor follows."""
    weighted, everything, is_filled = spare
    _fill_diagonal(features, omega, n, n_columns, gram)
    is_filled[:] = False
    for j in range(p):
        fill_products(features, omega, n, columns[j], everything, n_columns, weighted, gram)
        is_filled[columns[j]] = True
    for _ in range(n_redraws):
        p, added = _redraw(
            rng, prior, log_size, columns, p, largest, n_columns, scale, (gram, moment), factor,
            room,
        )  # fmt: skip
        if added >= 0 and not is_filled[added]:
            fill_products(features, omega, n, added, everything, n_columns, weighted, gram)
            is_filled[added] = True
    return p


@compiled(nogil=True, error_model="numpy")
def _move_level(rng, prior, design, omega, moment, n, n_widths, columns, p, particles, i, gram,
                factor, other, weighted):  # fmt: skip
    """Propose another length scale for the whole set; return the factor of the one it then has.

    ``gram`` holds the products of the set at its own.
    """
    U, w = factor
    size, scale, level = p - prior.n_mean, particles.scale[i], particles.level[i]
    half_logdet, fit = factorise(prior, gram, moment[level], columns, p, scale, U, w)
    here = log_evidence(prior, half_logdet, fit, size, scale)
    level = other_level(rng, level, n_widths, len(design))
    if level == particles.level[i]:
        return factor
    U, w = other
    fill_set(design[level], omega, n, columns, p, weighted, gram)
    half_logdet, fit = factorise(prior, gram, moment[level], columns, p, scale, U, w)
    if math.log(1.0 - rng.random()) >= log_evidence(prior, half_logdet, fit, size, scale) - here:
        return factor
    particles.level[i] = level
    return other


@compiled(nogil=True, error_model="numpy")
def _draw_scale(rng, prior, particles, i):
    """Draw the variance of the centres' coefficients given these."""
    squares = 0.0
    for j in range(prior.n_mean, prior.n_mean + particles.size[i]):
        squares += particles.beta[i, j] * particles.beta[i, j]
    shape, rate = prior.scale_shape + 0.5 * particles.size[i], prior.scale_rate + 0.5 * squares
    particles.scale[i] = draw_scale(rng, shape, rate, particles.scale[i])


@compiled(nogil=True, error_model="numpy")
def move_particles(
    rng, design, moment, n, prior, log_size, n_widths, n_candidates, n_redraws, particles
):
    """Move every particle.

    Parameters
    ----------
    rng : numpy.random.Generator
    design : ndarray of shape (L, C, B)
    moment : ndarray of shape (L, C)
        Sums of column times y - 1/2 over the first n rows.
    n : int
    prior : ClassPrior
    log_size : ndarray of shape (k_max + 2,)
        Log prior of a set of each size.
    n_widths, n_candidates, n_redraws : int
    particles : ClassParticles
    """
    m, P, C = prior.n_mean, particles.beta.shape[1], design.shape[1]
    n_columns, largest = m + n_candidates, particles.members.shape[1]
    columns, f, omega = np.empty(P, np.int64), np.empty(n), np.empty(n)
    spare = np.empty(n), np.arange(C), np.zeros(C, np.bool_)
    room = np.empty((P, C)), np.empty(C), np.empty(C), np.empty(C)
    factor, other = (np.empty((P, P)), np.empty(P)), (np.empty((P, P)), np.empty(P))
    gram = np.empty((C, C))
    for i in range(len(particles.size)):
        level, scale = particles.level[i], particles.scale[i]
        p = augment(rng, design[level], n, m, particles, i, columns, f, omega)
        p = _move_set(
            rng, design[level], omega, moment[level], n, prior, log_size, n_columns, n_redraws,
            columns, p, largest, scale, gram, factor, room, spare,
        )  # fmt: skip
        particles.size[i] = p - m
        for j in range(m, p):
            particles.members[i, j - m] = columns[j]
        U, w = _move_level(
            rng, prior, design, omega, moment, n, n_widths, columns, p, particles, i, gram,
            factor, other, spare[0],
        )  # fmt: skip
        draw_coefficients(rng, U, w, p, particles.beta[i])
        _draw_scale(rng, prior, particles, i)
