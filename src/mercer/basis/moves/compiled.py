"""Compiled moves of particles: centres, length scale, variances. Each leaves the target invariant.

The target of a particle is the evidence of its regression times the prior of its set: all sets of k
out of r candidates share p(k). ``log_size[k]`` is log p(k) - log C(r, k), -inf where k is not
allowed. Twins in NumPy: ``tests/twins``; invariance: ``tests/exact``.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.basis.particle.compiled import (
    append_in_place,
    draw_variances,
    drop_in_place,
    refactor,
)
from mercer.basis.redraw.compiled import redraw
from mercer.basis.regression.compiled import (
    append_terms,
    constants,
    drop_column,
    drop_terms,
    factorise_set,
    fill_columns,
    log_evidence,
    precisions,
)
from mercer.numerics.compilation import compiled

__all__ = ["move_particles", "other_level"]


@compiled(nogil=True, error_model="numpy")
def _free_candidate(rng, statistics, particles, i, n_mean):
    """Draw the column of a candidate that is not in the set."""
    while True:
        column = n_mean + rng.integers(0, statistics.n_candidates)
        is_free = True
        for j in range(particles.size[i]):
            if particles.members[i, j] == column:
                is_free = False
        if is_free:
            return column


@compiled(nogil=True, error_model="numpy")
def _change(rng, statistics, prior, shape, constant, log_size, particles, i, columns, spare):
    """Propose a birth, a death or a swap, each with probability 1/3; return whether it was taken.

    A move that is impossible is a rejection.
    """
    x, v, U, w = spare
    m, r, size = prior.n_mean, statistics.n_candidates, particles.size[i]
    kind = rng.integers(0, 3)
    level, scale = particles.level[i], particles.scale[i]
    is_birth, is_death = kind == 0, kind == 1
    if is_birth and size >= min(particles.members.shape[1], r):
        return False
    if not is_birth and (size == 0 or (not is_death and size >= r)):
        return False
    p = m + size
    rss, half_logdet = particles.rss[i], particles.half_logdet[i]
    factor, whitened = particles.factor[i], particles.whitened[i]
    position, column, square, part = -1, -1, 1.0, 0.0
    if not is_birth:
        position = rng.integers(0, size)
        variance, estimate = drop_terms(factor, whitened, p, m + position, x, v)
        rss += estimate * estimate / variance
        half_logdet += 0.5 * math.log(variance)
    if not is_death:
        column = _free_candidate(rng, statistics, particles, i, m)
        fill_columns(particles.members[i], size, m, columns)
        if not is_birth:
            _copy_without(factor, whitened, p, m + position, columns, U, w)
            factor, whitened, p = U, w, p - 1
        square, part = append_terms(
            statistics.gram[level], statistics.moment[level], columns, p, 1.0 / scale, factor,
            whitened, column, x, v,
        )  # fmt: skip
        rss = max(rss - part * part / square, 0.0)
        half_logdet += 0.5 * math.log(square)
    new_size = size + 1 if is_birth else (size - 1 if is_death else size)
    evidence = log_evidence(
        prior, shape, constant, rss, half_logdet, new_size, scale, particles.noise[i]
    )
    log_target = evidence + log_size[new_size]
    ratio = 0.0
    if is_birth:
        ratio = math.log((r - size) / (size + 1.0))
    if is_death:
        ratio = math.log(size / (r - size + 1.0))
    if math.log(1.0 - rng.random()) >= log_target - particles.log_target[i] + ratio:
        return False
    if not is_birth:
        drop_in_place(particles, i, m, position)
    if not is_death:
        append_in_place(particles, i, m, column, v, square, part)
    particles.log_target[i] = log_target
    return True


@compiled(nogil=True, error_model="numpy")
def _copy_without(factor, whitened, p, j, columns, U, w):
    """Copy a factor and drop one position of the copy, and of the list of columns."""
    for r in range(p):
        w[r] = whitened[r]
        for c in range(r, p):
            U[r, c] = factor[r, c]
    drop_column(U, w, p, j)
    for r in range(j, p - 1):
        columns[r] = columns[r + 1]


@compiled(nogil=True, error_model="numpy")
def other_level(rng, level, n_widths, n_levels):
    """Propose a length scale next to this one, or the same for another scaling of the inputs."""
    if n_levels > n_widths and rng.random() < 0.5:
        shift = rng.integers(1, n_levels // n_widths)
        return (level + shift * n_widths) % n_levels
    new = level % n_widths + (1 if rng.random() < 0.5 else -1)
    if new < 0 or new >= n_widths:
        return level
    return level - level % n_widths + new


@compiled(nogil=True, error_model="numpy")
def _change_level(
    rng, statistics, prior, shape, constant, log_size, n_widths, log_prior, particles, i, columns,
    spare,
):  # fmt: skip
    """Propose another length scale or scaling for the whole set; return whether it was taken."""
    _, _, U, w = spare
    level = other_level(rng, particles.level[i], n_widths, len(statistics.gram))
    if level == particles.level[i]:
        return False
    size, scale = particles.size[i], particles.scale[i]
    p = fill_columns(particles.members[i], size, prior.n_mean, columns)
    of_mean, of_centres = precisions(prior, scale)
    half_logdet, fit = factorise_set(
        statistics.gram[level], statistics.moment[level], columns, p, prior.n_mean,
        of_mean, of_centres, U, w,
    )  # fmt: skip
    rss = max(statistics.square - fit, 0.0)
    evidence = log_evidence(
        prior, shape, constant, rss, half_logdet, size, scale, particles.noise[i]
    )
    log_target = evidence + log_size[size]
    ratio = log_prior[level // n_widths] - log_prior[particles.level[i] // n_widths]
    if math.log(1.0 - rng.random()) >= log_target - particles.log_target[i] + ratio:
        return False
    particles.level[i] = level
    particles.log_target[i] = log_target
    particles.rss[i] = rss
    particles.half_logdet[i] = half_logdet
    particles.factor[i, :p, :p] = U[:p, :p]
    particles.whitened[i, :p] = w[:p]
    return True


@compiled(nogil=True, error_model="numpy")
def move_particles(
    rng, statistics, prior, log_size, n_widths, particles, fraction, n_redraws, n_changes, log_prior
):
    """Move each particle with probability ``fraction``; return proposals and how many were taken.

    ``log_prior`` (A,) is that of the scalings of the inputs, which ``log_target`` leaves out.
    The choice does not depend on the particles: moves that did would bias the evidence.
    """
    shape, constant = constants(prior, statistics.n_rows)
    n_columns = prior.n_mean + statistics.n_candidates
    P = particles.factor.shape[1]
    columns = np.empty(P, np.int64)
    spare = np.empty(P), np.empty(P), np.zeros((P, P)), np.empty(P)
    room = np.empty((P, n_columns)), np.empty(n_columns), np.empty(n_columns), np.empty(n_columns)
    n_proposed, n_taken = 0, 0
    for i in range(len(particles.size)):
        if fraction < 1.0 and rng.random() >= fraction:
            continue
        for _ in range(n_redraws):
            redraw(rng, statistics, prior, shape, log_size, particles, i, columns, room)
        evidence = log_evidence(
            prior, shape, constant, particles.rss[i], particles.half_logdet[i], particles.size[i],
            particles.scale[i], particles.noise[i],
        )  # fmt: skip
        particles.log_target[i] = evidence + log_size[particles.size[i]]
        for _ in range(n_changes):
            n_proposed += 1
            n_taken += _change(
                rng, statistics, prior, shape, constant, log_size, particles, i, columns, spare
            )
        _change_level(
            rng, statistics, prior, shape, constant, log_size, n_widths, log_prior, particles, i,
            columns, spare,
        )  # fmt: skip
        draw_variances(rng, prior, shape, particles, i, spare)
        evidence = refactor(statistics, prior, shape, constant, particles, i, columns)
        particles.log_target[i] = evidence + log_size[particles.size[i]]
    return n_proposed, n_taken
