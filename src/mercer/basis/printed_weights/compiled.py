"""Compiled step of Algorithm 1 as it is printed: one move and its weight, then the variances."""

from __future__ import annotations

import math

import numpy as np

from mercer.basis.particle.compiled import draw_variances, refactor
from mercer.basis.population.compiled import normalise
from mercer.basis.regression.compiled import constants
from mercer.numerics.compilation import compiled

__all__ = ["move_probabilities", "printed_step"]


@compiled(nogil=True, error_model="numpy")
def move_probabilities(log_size, size, n_candidates, share):
    """Return the probabilities of a birth and of a death, as printed before eq. (9).

    Without a centre there is a birth; with all that there can be, there is none.
    """
    if size == 0:
        return 1.0, 0.0
    birth = 0.0
    if log_size[size + 1] > -math.inf:
        # log_size shares p(k) among all sets of k: p(k + 1) / p(k) has the ratio of their numbers.
        ratio = log_size[size + 1] - log_size[size]
        birth = share * min(1.0, math.exp(ratio) * (n_candidates - size) / (size + 1.0))
    ratio = log_size[size - 1] - log_size[size]
    death = share * min(1.0, math.exp(ratio) * size / (n_candidates - size + 1.0))
    return birth, death


@compiled(nogil=True, error_model="numpy")
def _unoccupied(rng, particles, i, n_mean, n_candidates):
    """Draw the column of a candidate that is not in the set."""
    while True:
        column = n_mean + rng.integers(0, n_candidates)
        is_free = True
        for j in range(particles.size[i]):
            if particles.members[i, j] == column:
                is_free = False
        if is_free:
            return column


@compiled(nogil=True, error_model="numpy")
def printed_step(rng, statistics, prior, log_size, share, particles):
    """Move every particle once, weigh it by eq. (9), draw its variances, eqs. (4) and (5).

    Parameters
    ----------
    rng : numpy.random.Generator
    statistics : Statistics
        With the row and its candidate.
    prior : Prior
        Its variances are sampled.
    log_size : ndarray of shape (k_max + 2,)
        Log prior of a set of each size, -inf where it is not allowed.
    share : float
        c, of moves that change the number of centres.
    particles : Particles
        Changed. ``log_target`` is that of the rows with this one and of the sets before it.

    Returns
    -------
    float
        Logarithm of the mean weight of the moves.
    """
    shape, constant = constants(prior, statistics.n_rows)
    m, r = prior.n_mean, statistics.n_candidates
    P = particles.factor.shape[1]
    columns = np.empty(P, np.int64)
    spare = np.empty(P), np.empty(P), np.empty((P, P)), np.empty(P)
    for i in range(len(particles.size)):
        size = particles.size[i]
        birth, death = move_probabilities(log_size, size, r, share)
        drawn, log_choice = rng.random(), 0.0
        if drawn < birth:
            particles.members[i, size] = _unoccupied(rng, particles, i, m, r)
            particles.size[i] = size + 1
            log_choice = -math.log(r - size)
        elif drawn < birth + death:
            position = rng.integers(0, size)
            particles.members[i, position] = particles.members[i, size - 1]
            particles.size[i] = size - 1
            log_choice = -math.log(size)
        evidence = refactor(statistics, prior, shape, constant, particles, i, columns)
        log_target = evidence + log_size[particles.size[i]]
        particles.log_weight[i] += log_target - particles.log_target[i] - log_choice
        draw_variances(rng, prior, shape, particles, i, spare)
        evidence = refactor(statistics, prior, shape, constant, particles, i, columns)
        particles.log_target[i] = evidence + log_size[particles.size[i]]
    return normalise(particles.log_weight)
