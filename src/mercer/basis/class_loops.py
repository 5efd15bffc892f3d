# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of classes: Polya-Gamma variables, weights, candidates, moves.

Compiled loops over one particle and its Polya-Gamma variables.

Given omega_s ~ PG(1, f_s) the likelihood is that of a regression: coefficients N(A^-1 b, A^-1) with
A = K' diag(omega) K + R, b = K'(y - 1/2), log evidence |U'^-1 b|^2 / 2 - log|U| + log|R| / 2,
A = U'U, up to a constant of the omegas. Omega is drawn afresh each time and never kept.

A design holds one column for each candidate, its rows along memory: shape (L, C, B).
"""

from __future__ import annotations

import math

import numpy as np

from mercer.basis.loops import (
    append_column,
    append_terms,
    draw_scale,
    factorise_set,
    fill_columns,
    other_level,
    solve_all,
    solve_back,
    stays,
)
from mercer.basis.population_loops import normalise
from mercer.likelihoods.polya_gamma import fill_polya_gamma
from mercer.numerics.compilation import compiled

__all__ = [
    "admit",
    "augment",
    "draw_coefficients",
    "drawn",
    "factorise",
    "fill_latent",
    "fill_products",
    "fill_set",
    "log_evidence",
    "move_particles",
    "redraw_scale",
    "retire",
    "sum_of_both",
    "weigh_row",
]


_FAST = {"contract", "reassoc", "nsz"}


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _add_scaled(f, column, value, n):
    for s in range(n):
        f[s] += value * column[s]


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _dot(a, b, n):
    total = 0.0
    for s in range(n):
        total += a[s] * b[s]
    return total


@compiled(nogil=True, error_model="numpy")
def augment(rng, features, n, n_mean, particles, i, columns, f, omega):
    """Draw omega of the first n rows given the particle's coefficients; return its columns' number.

    ``columns``, ``f`` and ``omega`` are written; ``features`` (C, B) are those of its level.
    """
    p = fill_columns(particles.members[i], particles.size[i], n_mean, columns)
    for s in range(n):
        f[s] = 0.0
    for j in range(p):
        _add_scaled(f, features[columns[j]], particles.beta[i, j], n)
    fill_polya_gamma(rng, f, n, omega)
    return p


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _weigh(omega, column, n, weighted):
    for s in range(n):
        weighted[s] = omega[s] * column[s]


@compiled(nogil=True, error_model="numpy")
def fill_products(features, omega, n, column, others, n_others, weighted, gram):
    """Write the products of one column with others, and with itself, into ``gram`` (C, C)."""
    _weigh(omega, features[column], n, weighted)
    gram[column, column] = _dot(weighted, features[column], n)
    for j in range(n_others):
        other = others[j]
        value = _dot(weighted, features[other], n)
        gram[column, other] = value
        gram[other, column] = value


@compiled(nogil=True, error_model="numpy")
def fill_set(features, omega, n, columns, p, weighted, gram):
    """Write the products of all pairs of a set's columns."""
    for j in range(p):
        fill_products(features, omega, n, columns[j], columns, j, weighted, gram)


@compiled(nogil=True, error_model="numpy")
def factorise(prior, gram, moment, columns, p, scale, U, w):
    """Factorise the regression of a set; return (log|U|, |U'^-1 b|^2)."""
    return factorise_set(
        gram, moment, columns, p, prior.n_mean, prior.constant_precision, prior.slope_precision,
        1.0 / scale, U, w,
    )  # fmt: skip


@compiled(nogil=True, error_model="numpy")
def log_evidence(prior, half_logdet, fit, size, scale):
    """Return log p(y | set, omega, ...) up to a constant of the omegas."""
    half_prior = math.log(prior.constant_precision) - size * math.log(scale)
    half_prior += (prior.n_mean - 1) * math.log(prior.slope_precision)
    return 0.5 * (fit + half_prior) - half_logdet


@compiled(nogil=True, error_model="numpy")
def draw_coefficients(rng, U, w, p, beta):
    """Write a draw of N(A^-1 b, A^-1) into beta; w is used up."""
    for j in range(p):
        w[j] += rng.standard_normal()
    solve_back(U, p, w, beta)


@compiled(nogil=True, error_model="numpy")
def sum_of_both(a, b):
    """Return log(e^a + e^b); one of them may be -inf."""
    highest = max(a, b)
    return highest + math.log(math.exp(a - highest) + math.exp(b - highest))


# Compiled loop over all particles at one row.


@compiled(nogil=True, error_model="numpy")
def fill_latent(rows, n_mean, particles, f):
    """Write each particle's latent value at a row of the design (L, C), given at each level."""
    for i in range(len(particles.size)):
        row, beta = rows[particles.level[i]], particles.beta[i]
        total = 0.0
        for j in range(n_mean):
            total += beta[j] * row[j]
        for j in range(particles.size[i]):
            total += beta[n_mean + j] * row[particles.members[i, j]]
        f[i] = total


@compiled(nogil=True, error_model="numpy")
def weigh_row(f, sign, times, log_weight):
    """Weigh by the likelihood of a row, ``times`` 1, or divide it out, -1; return the log weight.

    ``sign`` is 1 where y = 1 and -1 where y = 0.
    """
    for i in range(len(f)):
        margin = sign * f[i]
        log_likelihood = min(margin, 0.0) - math.log1p(math.exp(-abs(margin)))
        log_weight[i] += times * log_likelihood
    return normalise(log_weight)


# Compiled loops that let candidates come and go, for all particles.
#
# Both change the target, and weigh by the ratio: given omega, drawn afresh, the coefficients are
# integrated out, and drawn again at the end.


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


# Compiled moves of particles: omega, then set and length scale, coefficients, their variance.
#
# Omega given the coefficients extends the target with weight 1; set and length scale move with the
# coefficients integrated out; then these are drawn anew and omega is forgotten. Each particle's
# weight stays.


@compiled(nogil=True, error_model="numpy")
def drawn(rng, gains, first, n_columns, stay):
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
    chosen = drawn(rng, gains, m, n_columns, math.log(stays(size, largest)) - more)
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
def redraw_scale(rng, prior, particles, i):
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
        redraw_scale(rng, prior, particles, i)
