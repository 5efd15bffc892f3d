"""Compiled loops that let candidates come and go, for all particles.

Both change the target, and weigh by the ratio: given omega, drawn afresh, the coefficients are
integrated out, and drawn again at the end.
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
    sum_of_both,
)
from mercer.basis.population.compiled import normalise
from mercer.basis.regression.compiled import append_column, append_terms
from mercer.numerics.compilation import compiled

__all__ = ["admit", "retire"]


@compiled(nogil=True, error_model="numpy")
def _room(particles, design):
    """Scratch arrays: columns, f, omega, a weighted column; factor, w, x, v; products."""
    P, C, B = particles.beta.shape[1], design.shape[1], design.shape[2]
    rows = np.empty(P, np.int64), np.empty(B), np.empty(B), np.empty(B)
    return rows, (np.empty((P, P)), np.empty(P), np.empty(P), np.empty(P)), np.empty((C, C))


@compiled(nogil=True, error_model="numpy")
def admit(rng, design, moment, n, prior, log_sizes, new, particles):
    """Offer candidates to all, one after the other; return the log weight.

    A set of more candidates holds the new one or does not, so it has one parent: the weight is
    the sum of both targets over the old one, and one of both is drawn in proportion.

    Parameters
    ----------
    rng : numpy.random.Generator
    design : ndarray of shape (L, C, B)
    moment : ndarray of shape (L, C)
        Sums of column times y - 1/2 over the first n rows.
    n : int
    prior : ClassPrior
    log_sizes : ndarray of shape (q + 1, k_max + 2)
        Log prior of a set before, and after each new candidate.
    new : ndarray of shape (q,), int
        Their columns.
    particles : ClassParticles
    """
    (columns, f, omega, weighted), (U, w, x, v), gram = _room(particles, design)
    largest = particles.members.shape[1]
    for i in range(len(particles.size)):
        level, scale = particles.level[i], particles.scale[i]
        features = design[level]
        p = augment(rng, features, n, prior.n_mean, particles, i, columns, f, omega)
        fill_set(features, omega, n, columns, p, weighted, gram)
        half_logdet, fit = factorise(prior, gram, moment[level], columns, p, scale, U, w)
        size = p - prior.n_mean
        for a in range(len(new)):
            evidence = log_evidence(prior, half_logdet, fit, size, scale)
            without, with_it = evidence + log_sizes[a + 1, size], -math.inf
            square, part = 1.0, 0.0
            if size < largest:
                fill_products(features, omega, n, new[a], columns, p, weighted, gram)
                square, part = append_terms(
                    gram, moment[level], columns, p, 1.0 / scale, U, w, new[a], x, v
                )
                with_it = log_sizes[a + 1, size + 1] + log_evidence(
                    prior, half_logdet + 0.5 * math.log(square), fit + part * part / square,
                    size + 1, scale,
                )  # fmt: skip
            both = sum_of_both(without, with_it)
            particles.log_weight[i] += both - evidence - log_sizes[a, size]
            if math.log(1.0 - rng.random()) < with_it - both:
                append_column(U, w, p, v, square, part)
                half_logdet += 0.5 * math.log(square)
                fit += part * part / square
                particles.members[i, size] = new[a]
                columns[p] = new[a]
                size, p = size + 1, p + 1
        particles.size[i] = size
        draw_coefficients(rng, U, w, p, particles.beta[i])
    return normalise(particles.log_weight)


@compiled(nogil=True, error_model="numpy")
def _take_out(columns, p, column):
    """Take a column out of a list of p; return how many are left."""
    position = p
    for j in range(p):
        if columns[j] == column:
            position = j
    for j in range(position, p - 1):
        columns[j] = columns[j + 1]
    return p - 1 if position < p else p


@compiled(nogil=True, error_model="numpy")
def retire(rng, design, moment, n, prior, log_sizes, old, particles):
    """Take candidates away from all, one after the other: the mirror image of `admit`.

    V = U without it; the weight is the new target of V over the old ones of V and of V with it.
    Arguments as there, ``log_sizes`` before and after each one goes.
    """
    (columns, f, omega, weighted), (U, w, x, v), gram = _room(particles, design)
    largest = particles.members.shape[1]
    for i in range(len(particles.size)):
        level, scale = particles.level[i], particles.scale[i]
        features, b = design[level], moment[level]
        p = augment(rng, features, n, prior.n_mean, particles, i, columns, f, omega)
        fill_set(features, omega, n, columns, p, weighted, gram)
        half_logdet, fit = factorise(prior, gram, b, columns, p, scale, U, w)
        for a in range(len(old)):
            size, with_it = p - prior.n_mean, -math.inf
            left = _take_out(columns, p, old[a])
            if left < p:
                evidence = log_evidence(prior, half_logdet, fit, size, scale)
                with_it = evidence + log_sizes[a, size]
                p, size = left, size - 1
                half_logdet, fit = factorise(prior, gram, b, columns, p, scale, U, w)
            elif size < largest:
                fill_products(features, omega, n, old[a], columns, p, weighted, gram)
                square, part = append_terms(gram, b, columns, p, 1.0 / scale, U, w, old[a], x, v)
                with_it = log_sizes[a, size + 1] + log_evidence(
                    prior, half_logdet + 0.5 * math.log(square), fit + part * part / square,
                    size + 1, scale,
                )  # fmt: skip
            evidence = log_evidence(prior, half_logdet, fit, size, scale)
            both = sum_of_both(evidence + log_sizes[a, size], with_it)
            particles.log_weight[i] += evidence + log_sizes[a + 1, size] - both
        particles.size[i] = p - prior.n_mean
        for j in range(particles.size[i]):
            particles.members[i, j] = columns[prior.n_mean + j]
        draw_coefficients(rng, U, w, p, particles.beta[i])
    return normalise(particles.log_weight)
