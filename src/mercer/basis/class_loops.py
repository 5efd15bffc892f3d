# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of classes: weights, candidates, moves by an approximation that all share.

Around anchors a_s, log p(y_s | f_s) is near l_s + h_s (f_s - a_s) - w_s (f_s - a_s)^2 / 2: it is
a regression whose sums, ``gram`` = K'diag(w)K and ``moment`` = K'(h + w a), are the same for all
particles of a level. What it proposes is accepted, or weighted, by the ratio of likelihood and
approximation before and after, so that the target is the exact one however poor the
approximation is. It must not depend on the particles.

A centre comes with coefficient b and moves those of the others by -b A^-1 s (s its products with
them), and takes that back when it goes: given b, the others' coefficients have the law that they
have without it, so that weights are those with the coefficients integrated out.

A design holds one column for each candidate, its rows along memory: shape (L, C, B).
"""

from __future__ import annotations

import math

import numpy as np

from mercer.basis.loops import (
    append_column,
    append_row,
    append_terms,
    draw_scale,
    drop_column,
    factorise_set,
    fill_columns,
    other_level,
    solve_all,
    solve_back,
    solve_forward,
    stays,
    terms_less,
)
from mercer.basis.population_loops import normalise
from mercer.numerics.compilation import compiled

_FAST = {"contract", "reassoc", "nsz"}


@compiled(nogil=True, error_model="numpy")
def _factorise(prior, gram, moment, columns, p, scale, U, w):
    """Factorise the regression of a set; return (log|U|, |U'^-1 b|^2)."""
    return factorise_set(
        gram, moment, columns, p, prior.n_mean, prior.constant_precision, prior.slope_precision,
        1.0 / scale, U, w,
    )  # fmt: skip


@compiled(nogil=True, error_model="numpy")
def _log_evidence(prior, half_logdet, fit, size, scale):
    """Return log p(y | set, omega, ...) up to a constant of the omegas."""
    half_prior = math.log(prior.constant_precision) - size * math.log(scale)
    half_prior += (prior.n_mean - 1) * math.log(prior.slope_precision)
    return 0.5 * (fit + half_prior) - half_logdet


@compiled(nogil=True, error_model="numpy")
def _sum_of_both(a, b):
    """Return log(e^a + e^b); one of them may be -inf."""
    highest = max(a, b)
    return highest + math.log(math.exp(a - highest) + math.exp(b - highest))


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
    """Weigh by a power of the likelihood of a row, or divide it out, ``times`` < 0.

    ``sign`` is 1 where y = 1 and -1 where y = 0. Returns the log of the mean weight.
    """
    for i in range(len(f)):
        margin = sign * f[i]
        log_likelihood = min(margin, 0.0) - math.log1p(math.exp(-abs(margin)))
        log_weight[i] += times * log_likelihood
    return normalise(log_weight)


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
def _redraw_scale(rng, prior, particles, i):
    """Draw the variance of the centres' coefficients given these."""
    squares = 0.0
    for j in range(prior.n_mean, prior.n_mean + particles.size[i]):
        squares += particles.beta[i, j] * particles.beta[i, j]
    shape, rate = prior.scale_shape + 0.5 * particles.size[i], prior.scale_rate + 0.5 * squares
    particles.scale[i] = draw_scale(rng, shape, rate, particles.scale[i])


# Terms 1 + e^-|margin| that are multiplied before a logarithm is taken: at most 2^512.
_TERMS = 512
# Angles that are tried before coefficients stay: fewer than one in a billion.
_MOST_ANGLES = 60


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _fill_latent_rows(features, n, columns, p, beta, f):
    for s in range(n):
        f[s] = 0.0
    for j in range(p):
        column, value = features[columns[j]], beta[j]
        for s in range(n):
            f[s] += value * column[s]


@compiled(nogil=True, error_model="numpy")
def _log_likelihood(labels, n, f):
    """Return the log likelihood of the first n rows, by weight, given their latent values."""
    sign, weight = labels.sign, labels.weight
    total, product = 0.0, 1.0
    if len(weight) > 0:
        for s in range(n):
            margin = sign[s] * f[s]
            total += weight[s] * (min(margin, 0.0) - math.log1p(math.exp(-abs(margin))))
        return total
    for s in range(n):
        margin = sign[s] * f[s]
        total += min(margin, 0.0)
        product *= 1.0 + math.exp(-abs(margin))
        if s % _TERMS == _TERMS - 1:
            total -= math.log(product)
            product = 1.0
    return total - math.log(product)


@compiled(nogil=True, error_model="numpy")
def _precision(prior, scale, j):
    """Return the prior precision of the j-th coefficient of a set."""
    if j >= prior.n_mean:
        return 1.0 / scale
    return prior.slope_precision if j > 0 else prior.constant_precision


@compiled(nogil=True, error_model="numpy")
def _approximation(prior, scale, U, w, p, beta):
    """Return moment'beta - beta'gram beta / 2, from the factor of gram + R."""
    value = 0.0
    for i in range(p):
        z = 0.0
        for j in range(i, p):
            z += U[i, j] * beta[j]
        value += w[i] * z - 0.5 * z * z + 0.5 * _precision(prior, scale, i) * beta[i] * beta[i]
    return value


@compiled(nogil=True, error_model="numpy")
def _excess(prior, features, labels, n, columns, p, scale, U, w, beta, f):
    """Return the log likelihood less its approximation."""
    _fill_latent_rows(features, n, columns, p, beta, f)
    return _log_likelihood(labels, n, f) - _approximation(prior, scale, U, w, p, beta)


@compiled(nogil=True, error_model="numpy")
def _without(gram, columns, p, position, U, w, beta, x, v, V):
    """Drop a centre from columns, factor and coefficients, which take its place; return p - 1.

    The rows of V are those of `drop_column`.
    """
    column, value = columns[position], beta[position]
    drop_column(U, w, p, position, V)
    for j in range(position, p - 1):
        columns[j] = columns[j + 1]
        beta[j] = beta[j + 1]
    p -= 1
    for j in range(p):
        x[j] = gram[column, columns[j]]
    solve_forward(U, p, x, v)
    solve_back(U, p, v, x)
    for j in range(p):
        beta[j] += value * x[j]
    return p


@compiled(nogil=True, error_model="numpy")
def _with_centre(rng, column, square, part, columns, p, U, w, v, beta, x):
    """Append a centre whose terms are known, with a coefficient drawn; return p + 1."""
    value = part / square + rng.standard_normal() / math.sqrt(square)
    solve_back(U, p, v, x)
    for j in range(p):
        beta[j] -= value * x[j]
    append_column(U, w, p, v, square, part)
    columns[p], beta[p] = column, value
    return p + 1


@compiled(nogil=True, error_model="numpy")
def _room_of_sets(P, C, n):
    """Scratch arrays: f; two copies of columns, factor, w, coefficients; x, v; of all columns."""
    f, x, v = np.empty(n), np.empty(P), np.empty(P)
    here = np.empty(P, np.int64), np.empty((P, P)), np.empty(P), np.empty(P)
    there = np.empty(P, np.int64), np.empty((P, P)), np.empty(P), np.empty(P)
    return f, x, v, here, there, (np.empty((P, C)), np.empty(C), np.empty(C), np.empty(C))


@compiled(nogil=True, error_model="numpy")
def _copy_set(p, source, target):
    for i in range(p):
        target[0][i] = source[0][i]
        target[2][i] = source[2][i]
        target[3][i] = source[3][i]
        for j in range(i, p):
            target[1][i, j] = source[1][i, j]


@compiled(nogil=True, error_model="numpy")
def _carried(rng, prior, gram, log_size, n_columns, p, largest, scale, of_set, x, v, room):
    """Redraw a set with its coefficients (`mercer.basis.loops.redraw`); return its columns.

    ``room`` holds the terms of all columns (`solve_all`), which follow the set.
    """
    columns, U, w, beta = of_set
    V, squares, parts, gains = room
    m = prior.n_mean
    if rng.random() >= stays(p - m, largest):
        p = _without(gram, columns, p, rng.integers(m, p), U, w, beta, x, v, V)
        terms_less(V, w, p, -1.0, 1.0 / scale, squares, parts)
    size = p - m
    if size >= min(largest, n_columns - m):
        return p
    for c in range(m, n_columns):
        gains[c] = 0.5 * (parts[c] * parts[c] / squares[c] - math.log(squares[c]))
    for j in range(m, p):
        gains[columns[j]] = -math.inf
    more = log_size[size + 1] - log_size[size] - 0.5 * math.log(scale)
    more += math.log((1.0 - stays(size + 1, largest)) / (size + 1))
    chosen = _drawn(rng, gains, m, n_columns, math.log(stays(size, largest)) - more)
    if chosen >= 0:
        for i in range(p):
            v[i] = V[i, chosen]
        p = _with_centre(rng, chosen, squares[chosen], parts[chosen], columns, p, U, w, v, beta, x)
        append_row(V, v, gram[chosen, :n_columns], p - 1, U[p - 1, p - 1])
        terms_less(V, w, p - 1, 1.0, 1.0 / scale, squares, parts)
    return p


@compiled(nogil=True, error_model="numpy")
def _redrawn(
    rng, prior, gram, moment, log_size, n_columns, p, largest, scale, of_set, x, v, room, n_redraws
):
    """Redraw a set so many times; one triangular solve for all, then a row comes or goes."""
    columns, U, w, _ = of_set
    V, squares, parts, _ = room
    solve_all(gram, moment, columns, p, 1.0 / scale, U, w, n_columns, V, squares, parts)
    for _ in range(n_redraws):
        p = _carried(rng, prior, gram, log_size, n_columns, p, largest, scale, of_set, x, v, room)
    return p


@compiled(nogil=True, error_model="numpy")
def _rotate(rng, prior, features, labels, n, columns, p, scale, U, w, beta, excess, spare):
    """Draw the coefficients by elliptical slice sampling about the approximation, whose law of
    them is normal: on an ellipse through the old ones, by what likelihood and approximation differ.
    """
    (mean, aside, new), (f_mean, f_here, f_aside, f_new) = spare
    solve_back(U, p, w, mean)
    old_square, cross, aside_square = 0.0, 0.0, 0.0
    for j in range(p):
        aside[j] = rng.standard_normal()
    for j in range(p):
        z = -w[j]
        for r in range(j, p):
            z += U[j, r] * beta[r]
        old_square += z * z
        cross += z * aside[j]
        aside_square += aside[j] * aside[j]
    solve_back(U, p, aside, aside)
    _fill_latent_rows(features, n, columns, p, mean, f_mean)
    _fill_latent_rows(features, n, columns, p, beta, f_here)
    _fill_latent_rows(features, n, columns, p, aside, f_aside)
    fit = 0.0
    for j in range(p):
        fit += w[j] * w[j]
    limit = excess + math.log(1.0 - rng.random())
    angle = 2.0 * math.pi * rng.random()
    lower, upper = angle - 2.0 * math.pi, angle
    for _ in range(_MOST_ANGLES):
        c, s = math.cos(angle), math.sin(angle)
        near = 0.5 * fit
        near -= 0.5 * (c * c * old_square + s * s * aside_square) + c * s * cross
        for j in range(p):
            new[j] = mean[j] + c * (beta[j] - mean[j]) + s * aside[j]
            near += 0.5 * _precision(prior, scale, j) * new[j] * new[j]
        for r in range(n):
            f_new[r] = f_mean[r] + c * (f_here[r] - f_mean[r]) + s * f_aside[r]
        if _log_likelihood(labels, n, f_new) - near > limit:
            beta[:p] = new[:p]
            return
        if angle < 0.0:
            lower = angle
        else:
            upper = angle
        angle = lower + (upper - lower) * rng.random()


@compiled(nogil=True, error_model="numpy")
def _put_set(particles, i, m, columns, p, beta):
    particles.size[i] = p - m
    for j in range(p):
        particles.beta[i, j] = beta[j]
    for j in range(m, p):
        particles.members[i, j - m] = columns[j]


@compiled(nogil=True, error_model="numpy")
def move_particles(
    rng, design, labels, gram, moment, n, prior, log_size, n_widths, n_candidates, n_redraws,
    particles, first, last,
):  # fmt: skip
    """Move particles ``first`` to ``last``: sets, length scales, coefficients and their variance.

    ``design`` (L, C, B) and ``labels`` are those of `HeldRows`, ``gram`` (L, C, C) and
    ``moment`` (L, C) those of the approximation, for the n_candidates held; log_size (k_max +
    2,) is the log prior of a set of each size. Returns how many of the sets that were proposed
    were taken, and of the length scales.
    """
    m, P = prior.n_mean, particles.beta.shape[1]
    n_columns, largest = m + n_candidates, particles.members.shape[1]
    f, x, v, here, there, room = _room_of_sets(P, n_columns, n)
    spare = np.empty((3, P)), np.empty((4, n))
    n_sets, n_levels = 0, 0
    for i in range(first, last):
        level, scale = particles.level[i], particles.scale[i]
        p = fill_columns(particles.members[i], particles.size[i], m, here[0])
        _factorise(prior, gram[level], moment[level], here[0], p, scale, here[1], here[2])
        for j in range(p):
            here[3][j] = particles.beta[i, j]
        excess = _excess(
            prior, design[level], labels, n, here[0], p, scale, here[1], here[2], here[3], f
        )
        # The set, with its coefficients.
        _copy_set(p, here, there)
        q = _redrawn(
            rng, prior, gram[level], moment[level], log_size, n_columns, p, largest, scale, there,
            x, v, room, n_redraws,
        )  # fmt: skip
        proposed = _excess(
            prior, design[level], labels, n, there[0], q, scale, there[1], there[2], there[3], f
        )
        if math.log(1.0 - rng.random()) < proposed - excess:
            here, there, p, excess = there, here, q, proposed
            n_sets += 1
        # Another length scale, with coefficients drawn afresh.
        other = other_level(rng, level, n_widths, len(design))
        if other != level:
            columns, U, w, beta = here
            fit, half_logdet = 0.0, 0.0
            for j in range(p):
                fit += w[j] * w[j]
                half_logdet += math.log(U[j, j])
            now = _log_evidence(prior, half_logdet, fit, p - m, scale)
            _copy_set(p, here, there)
            half_logdet, fit = _factorise(
                prior, gram[other], moment[other], columns, p, scale, there[1], there[2]
            )
            then = _log_evidence(prior, half_logdet, fit, p - m, scale)
            if math.log(1.0 - rng.random()) < then - now:
                for j in range(p):
                    v[j] = there[2][j] + rng.standard_normal()
                solve_back(there[1], p, v, there[3])
                proposed = _excess(
                    prior, design[other], labels, n, columns, p, scale, there[1], there[2],
                    there[3], f,
                )  # fmt: skip
                if math.log(1.0 - rng.random()) < proposed - excess:
                    here, there, level, excess = there, here, other, proposed
                    particles.level[i] = level
                    n_levels += 1
        columns, U, w, beta = here
        _rotate(rng, prior, design[level], labels, n, columns, p, scale, U, w, beta, excess, spare)
        _put_set(particles, i, m, columns, p, beta)
        _redraw_scale(rng, prior, particles, i)
    return n_sets, n_levels


@compiled(nogil=True, error_model="numpy")
def fill_log_likelihood(design, labels, n, n_mean, particles, first, last, out):
    """Write the log likelihood of the rows held to out[i], for particles ``first`` to ``last``."""
    columns, f = np.empty(particles.beta.shape[1], np.int64), np.empty(n)
    for i in range(first, last):
        p = fill_columns(particles.members[i], particles.size[i], n_mean, columns)
        _fill_latent_rows(design[particles.level[i]], n, columns, p, particles.beta[i], f)
        out[i] = _log_likelihood(labels, n, f)


@compiled(nogil=True, error_model="numpy")
def admit(rng, design, labels, gram, moment, n, prior, log_sizes, new, particles):
    """Let the columns ``new`` in one after the other, each into a particle or not by its weight.

    ``log_sizes`` (len(new) + 1, k_max + 2) are those of the sets before the first, and after each;
    other arguments are as in `move_particles`. Returns the gain of the log evidence.
    """
    m, P = prior.n_mean, particles.beta.shape[1]
    largest = particles.members.shape[1]
    f, x, v, here, _, _ = _room_of_sets(P, 1, n)
    columns, U, w, beta = here
    for i in range(len(particles.size)):
        level, scale = particles.level[i], particles.scale[i]
        features, G, b = design[level], gram[level], moment[level]
        p = fill_columns(particles.members[i], particles.size[i], m, columns)
        half_logdet, fit = _factorise(prior, G, b, columns, p, scale, U, w)
        for j in range(p):
            beta[j] = particles.beta[i, j]
        size, gain, before, is_changed = p - m, 0.0, 0.0, False
        for a in range(len(new)):
            evidence = _log_evidence(prior, half_logdet, fit, size, scale)
            without, with_it = evidence + log_sizes[a + 1, size], -math.inf
            square, part = 1.0, 0.0
            if size < largest:
                square, part = append_terms(G, b, columns, p, 1.0 / scale, U, w, new[a], x, v)
                with_it = log_sizes[a + 1, size + 1] + _log_evidence(
                    prior, half_logdet + 0.5 * math.log(square), fit + part * part / square,
                    size + 1, scale,
                )  # fmt: skip
            both = _sum_of_both(without, with_it)
            gain += both - evidence - log_sizes[a, size]
            if math.log(1.0 - rng.random()) < with_it - both:
                if not is_changed:
                    before = _excess(prior, features, labels, n, columns, p, scale, U, w, beta, f)
                    is_changed = True
                p = _with_centre(rng, new[a], square, part, columns, p, U, w, v, beta, x)
                half_logdet += 0.5 * math.log(square)
                fit += part * part / square
                size += 1
        if is_changed:
            after = _excess(prior, features, labels, n, columns, p, scale, U, w, beta, f)
            gain += after - before
        if math.isfinite(gain):  # else inputs so far out that all else is lost: it stays as it is
            particles.log_weight[i] += gain
            _put_set(particles, i, m, columns, p, beta)
    return normalise(particles.log_weight)


@compiled(nogil=True, error_model="numpy")
def retire(design, labels, gram, moment, n, prior, log_sizes, old, particles):
    """Take the columns ``old`` out one after the other, as `admit` lets them in; draws nothing."""
    m, P = prior.n_mean, particles.beta.shape[1]
    largest = particles.members.shape[1]
    f, x, v, here, _, _ = _room_of_sets(P, 1, n)
    columns, U, w, beta = here
    for i in range(len(particles.size)):
        level, scale = particles.level[i], particles.scale[i]
        features, G, b = design[level], gram[level], moment[level]
        p = fill_columns(particles.members[i], particles.size[i], m, columns)
        half_logdet, fit = _factorise(prior, G, b, columns, p, scale, U, w)
        for j in range(p):
            beta[j] = particles.beta[i, j]
        gain, before, is_changed = 0.0, 0.0, False
        for a in range(len(old)):
            size, with_it, position = p - m, -math.inf, -1
            for j in range(m, p):
                if columns[j] == old[a]:
                    position = j
            if position >= 0:
                with_it = _log_evidence(prior, half_logdet, fit, size, scale) + log_sizes[a, size]
                if not is_changed:
                    before = _excess(prior, features, labels, n, columns, p, scale, U, w, beta, f)
                    is_changed = True
                p = _without(G, columns, p, position, U, w, beta, x, v, U[:, :0])
                size -= 1
                half_logdet, fit = 0.0, 0.0
                for j in range(p):
                    half_logdet += math.log(U[j, j])
                    fit += w[j] * w[j]
            elif size < largest:
                square, part = append_terms(G, b, columns, p, 1.0 / scale, U, w, old[a], x, v)
                with_it = log_sizes[a, size + 1] + _log_evidence(
                    prior, half_logdet + 0.5 * math.log(square), fit + part * part / square,
                    size + 1, scale,
                )  # fmt: skip
            evidence = _log_evidence(prior, half_logdet, fit, size, scale)
            both = _sum_of_both(evidence + log_sizes[a, size], with_it)
            gain += evidence + log_sizes[a + 1, size] - both
        if is_changed:
            after = _excess(prior, features, labels, n, columns, p, scale, U, w, beta, f)
            gain += after - before
            for j in range(p):
                if not math.isfinite(beta[j]):
                    beta[j] = 0.0
            _put_set(particles, i, m, columns, p, beta)
        if math.isfinite(gain):
            particles.log_weight[i] += gain
    return normalise(particles.log_weight)
