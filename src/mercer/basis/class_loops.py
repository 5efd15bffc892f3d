# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of classes: weights, candidates, moves by an approximation that all share.

Around anchors a_s, log p(y_s | f_s) is near l_s + h_s (f_s - a_s) - w_s (f_s - a_s)^2 / 2: it is
a regression whose sums, ``gram`` = K'diag(w)K and ``moment`` = K'(h + w a), are the same for all
particles of a level; so are the first steps of a factorisation, those of the mean's columns, which
`eliminate_mean` takes. What it proposes is accepted, or weighted, by the ratio of likelihood and
approximation before and after, so that the target is the exact one however poor the
approximation is. It must not depend on the particles.

A centre comes with coefficient b and moves those of the others by -b A^-1 s (s its products with
them), and takes that back when it goes: given b, the others' coefficients have the law that they
have without it, so that weights are those with the coefficients integrated out. All that is carried
of the coefficients while sets change is z = U beta: with a centre more it has an entry more, and
where one goes it is rotated as U is.

A design holds one column for each candidate, its rows along memory: shape (L, C, B).
"""

from __future__ import annotations

import math

import numpy as np

from mercer.basis.loops import (
    append_column,
    append_row,
    append_terms,
    copy_factor,
    draw_scale,
    drawn_column,
    drop_column,
    factorise_set,
    fill_columns,
    less_rows,
    other_level,
    solve_all,
    solve_back,
    stays,
    terms_less,
    whole_below,
)
from mercer.basis.population_loops import normalise
from mercer.numerics.compilation import compiled

_FAST = {"contract", "reassoc", "nsz"}


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def eliminate_mean(prior, gram, moment, n_columns):
    """Factorise the columns of the mean in sums of one level, which are the first of every set.

    Their rows of ``gram`` (C, C) and ``moment`` (C,) become those of U, where U'U = gram + R, and
    of U'^-1 moment; the others are left with the sums of what the mean does not explain.
    """
    m = prior.n_mean
    for r in range(n_columns):
        row, n_before = gram[r], min(r, m)
        less_rows(row, n_before, n_columns, gram, 0, n_before, gram[:, r])
        for i in range(n_before):
            moment[r] -= gram[i, r] * moment[i]
        if r >= m:
            continue
        ridge = prior.slope_precision if r > 0 else prior.constant_precision
        pivot = math.sqrt(max(row[r] + ridge, ridge))
        row[r] = pivot
        moment[r] /= pivot
        for c in range(r + 1, n_columns):
            row[c] /= pivot


@compiled(nogil=True, error_model="numpy")
def _factorise(prior, gram, moment, columns, p, scale, U, w):
    """Factorise the regression of a set; return (log|U|, |U'^-1 b|^2)."""
    m = prior.n_mean
    for i in range(m):
        w[i] = moment[i]
        for j in range(i, p):
            U[i, j] = gram[i, columns[j]]
    factorise_set(gram, moment, columns, p, m, 0.0, 0.0, 1.0 / scale, U, w, m)
    return _terms(U, w, p)


@compiled(nogil=True, error_model="numpy")
def _terms(U, w, p):
    """Return (log|U|, w'w)."""
    half_logdet, fit = 0.0, 0.0
    for i in range(p):
        half_logdet += math.log(U[i, i])
        fit += w[i] * w[i]
    return half_logdet, fit


@compiled(nogil=True, error_model="numpy")
def _log_evidence(half_logdet, fit, size, scale):
    """Return log p(y | set, omega, ...) up to a constant."""
    return 0.5 * (fit - size * math.log(scale)) - half_logdet


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
def weigh_row(f, sign, times, particles):
    """Weigh by a power of the likelihood of a row, or divide it out, ``times`` < 0.

    ``sign`` is 1 where y = 1 and -1 where y = 0. Returns the log of the mean weight.
    """
    for i in range(len(f)):
        margin = sign * f[i]
        gain = times * (min(margin, 0.0) - math.log1p(math.exp(-abs(margin))))
        particles.log_weight[i] += gain
        particles.log_likelihood[i] += gain
    return normalise(particles.log_weight)


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
# e^-t = e^-(j/8) e^(j/8 - t) with |j/8 - t| <= 1/16, from a table and the series of the second: the
# compiler then takes several rows at a time. Beyond 40, 1 + e^-t is 1.
_EIGHTHS = np.exp(-0.125 * np.arange(321))
_FURTHEST = 40.0
# Angles that are tried before coefficients stay: fewer than one in a billion.
_MOST_ANGLES = 60


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _fill_latent_rows(features, n, columns, p, beta, f):
    """Write the latent values of n rows, four columns at a time."""
    for s in range(n):
        f[s] = 0.0
    for j in range(0, p - 3, 4):
        a, b = features[columns[j]], features[columns[j + 1]]
        c, d = features[columns[j + 2]], features[columns[j + 3]]
        of_a, of_b, of_c, of_d = beta[j], beta[j + 1], beta[j + 2], beta[j + 3]
        for s in range(n):
            f[s] += of_a * a[s] + of_b * b[s] + of_c * c[s] + of_d * d[s]
    for j in range(p - p % 4, p):
        column, value = features[columns[j]], beta[j]
        for s in range(n):
            f[s] += value * column[s]


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _product(sign, f, first, last):
    """Return the sum of min(margin, 0) of rows, and the product of their 1 + e^-|margin|."""
    total, product = 0.0, 1.0
    for s in range(first, last):
        margin = sign[s] * f[s]
        total += min(margin, 0.0)
        t = min(abs(margin), _FURTHEST)
        j = np.int32(8.0 * t + 0.5)
        r = 0.125 * j - t
        high = 1.0 / 120 + r * (1.0 / 720 + r * (1.0 / 5040 + r * (1.0 / 40320)))
        series = 1.0 + r * (1.0 + r * (0.5 + r * (1.0 / 6 + r * (1.0 / 24 + r * high))))
        product *= 1.0 + _EIGHTHS[j] * series
    return total, product


@compiled(nogil=True, error_model="numpy")
def _log_likelihood(labels, n, f):
    """Return the log likelihood of the first n rows, by weight, given their latent values."""
    sign, weight, total = labels.sign, labels.weight, 0.0
    if len(weight) > 0:
        for s in range(n):
            margin = sign[s] * f[s]
            total += weight[s] * (min(margin, 0.0) - math.log1p(math.exp(-abs(margin))))
        return total
    for first in range(0, n, _TERMS):
        part, product = _product(sign, f, first, min(first + _TERMS, n))
        total += part - math.log(product)
    return total


@compiled(nogil=True, error_model="numpy")
def _precision(prior, scale, j):
    """Return the prior precision of the j-th coefficient of a set."""
    if j >= prior.n_mean:
        return 1.0 / scale
    return prior.slope_precision if j > 0 else prior.constant_precision


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _fill_white(U, p, beta, z):
    """Write z = U beta."""
    for i in range(p):
        total = 0.0  # in a register: added up in memory, the order depends on where arrays lie
        for j in range(i, p):
            total += U[i, j] * beta[j]
        z[i] = total


@compiled(nogil=True, error_model="numpy")
def _approximation(prior, scale, w, z, beta, p):
    """Return moment'beta - beta'gram beta / 2, where z = U beta and U'U = gram + R."""
    value = 0.0
    for i in range(p):
        value += w[i] * z[i] - 0.5 * z[i] * z[i]
        value += 0.5 * _precision(prior, scale, i) * beta[i] * beta[i]
    return value


@compiled(nogil=True, error_model="numpy")
def _fits(prior, features, labels, n, p, scale, of_set):
    """Return the log likelihood and its approximation; the latent values are written."""
    columns, _, w, z, beta, f = of_set
    _fill_latent_rows(features, n, columns, p, beta, f)
    return _log_likelihood(labels, n, f), _approximation(prior, scale, w, z, beta, p)


@compiled(nogil=True, error_model="numpy")
def _without(columns, p, position, U, w, z, V):
    """Drop a centre from columns, factor and what they make of the coefficients; return p - 1.

    The rows of V are those of `drop_column`, its last column is used for z.
    """
    last = V.shape[1] - 1
    for i in range(p):
        V[i, last] = z[i]
    drop_column(U, w, p, position, V)
    for i in range(p - 1):
        z[i] = V[i, last]
    for j in range(position, p - 1):
        columns[j] = columns[j + 1]
    return p - 1


@compiled(nogil=True, error_model="numpy")
def _with_centre(rng, column, square, part, columns, p, U, w, z, v):
    """Append a centre whose terms are known, with a coefficient drawn; return p + 1."""
    append_column(U, w, p, v, square, part)
    z[p] = w[p] + rng.standard_normal()
    columns[p] = column
    return p + 1


@compiled(allocates=True, nogil=True, error_model="numpy")
def _room_of_sets(P, C, n):
    """Scratch arrays: x, v; two copies of columns, factor, w, z, beta, f; of all columns."""
    x, v, a = np.empty(P), np.empty(P), np.empty((6, P))
    here = np.empty(P, np.int64), np.empty((P, P)), a[0], a[1], a[2], np.empty(n)
    there = np.empty(P, np.int64), np.empty((P, P)), a[3], a[4], a[5], np.empty(n)
    return x, v, here, there, (np.empty((P, C + 1)), np.empty(C), np.empty(C), np.empty(C))


@compiled(nogil=True, error_model="numpy")
def _copy_first(p, source, target):
    for j in range(p):
        target[j] = source[j]


@compiled(nogil=True, error_model="numpy")
def _copy_set(p, source, target):
    copy_factor(source[1], source[2], p, target[1], target[2])
    for i in range(p):
        target[0][i], target[3][i] = source[0][i], source[3][i]


@compiled(nogil=True, error_model="numpy")
def _carried(rng, prior, gram, log_size, n_columns, p, largest, scale, of_set, v, room):
    """Redraw a set with its coefficients (`mercer.basis.loops.redraw`); return its columns.

    ``room`` holds the terms of all columns (`solve_all`), which follow the set.
    """
    columns, U, w, z, _, _ = of_set
    V, squares, parts, gains = room
    m = prior.n_mean
    if rng.random() >= stays(p - m, largest):
        p = _without(columns, p, m + whole_below(rng, p - m), U, w, z, V)
        terms_less(V, w, p, -1.0, 1.0 / scale, squares, parts)
    size = p - m
    if size >= min(largest, n_columns - m):
        return p
    highest = -math.inf
    for c in range(m, n_columns):
        gains[c] = 0.5 * parts[c] * parts[c] / squares[c]
        highest = max(highest, gains[c])
    for j in range(m, p):
        gains[columns[j]] = -math.inf
    more = log_size[size + 1] - log_size[size] - 0.5 * math.log(scale)
    more += math.log((1.0 - stays(size + 1, largest)) / (size + 1))
    stay = math.log(stays(size, largest)) - more
    chosen = drawn_column(rng, m, n_columns, highest, stay, squares, gains)
    if chosen >= 0:
        for i in range(p):
            v[i] = V[i, chosen]
        p = _with_centre(rng, chosen, squares[chosen], parts[chosen], columns, p, U, w, z, v)
        append_row(V, v, gram[chosen, :n_columns], p - 1, U[p - 1, p - 1], m)
        terms_less(V, w, p - 1, 1.0, 1.0 / scale, squares, parts)
    return p


@compiled(nogil=True, error_model="numpy")
def _redrawn(
    rng, prior, gram, moment, log_size, n_columns, p, largest, scale, of_set, v, room, n_redraws
):
    """Redraw a set so many times; one triangular solve for all, then a row comes or goes."""
    columns, U, w, z, beta, _ = of_set
    V, squares, parts, _ = room
    m = prior.n_mean
    solve_all(gram, moment, columns, p, 1.0 / scale, U, w, n_columns, V, squares, parts, m)
    for _ in range(n_redraws):
        p = _carried(rng, prior, gram, log_size, n_columns, p, largest, scale, of_set, v, room)
    solve_back(U, p, z, beta)
    return p


@compiled(nogil=True, error_model="numpy")
def _rotate(rng, prior, features, labels, n, of_set, p, scale, fits, spare):
    """Draw the coefficients by elliptical slice sampling about the approximation, whose law of
    them is normal: on an ellipse through the old ones, by what likelihood and approximation differ.

    ``fits`` are those of `_fits`; returns the new log likelihood.
    """
    columns, U, w, z, beta, f_here = of_set
    (mean, aside, new), (f_mean, f_aside, f_new) = spare
    solve_back(U, p, w, mean)
    old_square, cross, aside_square, fit = 0.0, 0.0, 0.0, 0.0
    for j in range(p):
        aside[j] = rng.standard_normal()
        away = z[j] - w[j]
        old_square += away * away
        cross += away * aside[j]
        aside_square += aside[j] * aside[j]
        fit += w[j] * w[j]
    solve_back(U, p, aside, aside)
    _fill_latent_rows(features, n, columns, p, mean, f_mean)
    _fill_latent_rows(features, n, columns, p, aside, f_aside)
    limit = fits[0] - fits[1] + math.log(1.0 - rng.random())
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
        log_likelihood = _log_likelihood(labels, n, f_new)
        if log_likelihood - near > limit:
            for j in range(p):
                beta[j] = new[j]
            return log_likelihood
        if angle < 0.0:
            lower = angle
        else:
            upper = angle
        angle = lower + (upper - lower) * rng.random()
    return fits[0]


@compiled(nogil=True, error_model="numpy")
def _put_set(particles, i, m, columns, p, beta):
    particles.size[i] = p - m
    for j in range(p):
        particles.beta[i, j] = beta[j]
    for j in range(m, p):
        particles.members[i, j - m] = columns[j]


@compiled(allocates=True, nogil=True, error_model="numpy")
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
    _, v, here, there, room = _room_of_sets(P, n_columns, n)
    spare = np.empty((3, P)), np.empty((3, n))
    n_sets, n_levels = 0, 0
    for i in range(first, last):
        level, scale = particles.level[i], particles.scale[i]
        p = fill_columns(particles.members[i], particles.size[i], m, here[0])
        _factorise(prior, gram[level], moment[level], here[0], p, scale, here[1], here[2])
        _copy_first(p, particles.beta[i], here[4])
        _fill_white(here[1], p, here[4], here[3])
        near = _approximation(prior, scale, here[2], here[3], here[4], p)
        fits, is_new = (particles.log_likelihood[i], near), False
        # The set, with its coefficients.
        _copy_set(p, here, there)
        q = _redrawn(
            rng, prior, gram[level], moment[level], log_size, n_columns, p, largest, scale, there,
            v, room, n_redraws,
        )  # fmt: skip
        proposed = _fits(prior, design[level], labels, n, q, scale, there)
        if math.log(1.0 - rng.random()) < proposed[0] - proposed[1] - fits[0] + fits[1]:
            here, there, p, fits, is_new = there, here, q, proposed, True
            n_sets += 1
        # Another length scale, with coefficients drawn afresh.
        other = other_level(rng, level, n_widths, len(design))
        if other != level:
            half_logdet, fit = _terms(here[1], here[2], p)
            now = _log_evidence(half_logdet, fit, p - m, scale)
            half_logdet, fit = _factorise(
                prior, gram[other], moment[other], here[0], p, scale, there[1], there[2]
            )
            then = _log_evidence(half_logdet, fit, p - m, scale)
            if math.log(1.0 - rng.random()) < then - now:
                _copy_first(p, here[0], there[0])
                for j in range(p):
                    there[3][j] = there[2][j] + rng.standard_normal()
                solve_back(there[1], p, there[3], there[4])
                proposed = _fits(prior, design[other], labels, n, p, scale, there)
                if math.log(1.0 - rng.random()) < proposed[0] - proposed[1] - fits[0] + fits[1]:
                    here, there, level, fits, is_new = there, here, other, proposed, True
                    particles.level[i] = level
                    n_levels += 1
        if not is_new:
            _fill_latent_rows(design[level], n, here[0], p, here[4], here[5])
        particles.log_likelihood[i] = _rotate(
            rng, prior, design[level], labels, n, here, p, scale, fits, spare
        )
        _put_set(particles, i, m, here[0], p, here[4])
        _redraw_scale(rng, prior, particles, i)
    return n_sets, n_levels


@compiled(allocates=True, nogil=True, error_model="numpy")
def fill_log_likelihood(design, labels, n, n_mean, particles):
    """Write the log likelihood of the rows held, of a file that did not have it."""
    columns, f = np.empty(particles.beta.shape[1], np.int64), np.empty(n)
    for i in range(len(particles.size)):
        p = fill_columns(particles.members[i], particles.size[i], n_mean, columns)
        _fill_latent_rows(design[particles.level[i]], n, columns, p, particles.beta[i], f)
        particles.log_likelihood[i] = _log_likelihood(labels, n, f)


@compiled(allocates=True, nogil=True, error_model="numpy")
def admit(rng, design, labels, gram, moment, n, prior, log_sizes, new, particles):
    """Let the columns ``new`` in one after the other, each into a particle or not by its weight.

    ``log_sizes`` (len(new) + 1, k_max + 2) are those of the sets before the first, and after each;
    other arguments are as in `move_particles`. Returns the gain of the log evidence.
    """
    m, P = prior.n_mean, particles.beta.shape[1]
    largest = particles.members.shape[1]
    x, v, here, _, _ = _room_of_sets(P, 0, n)
    columns, U, w, z, beta, _ = here
    for i in range(len(particles.size)):
        level, scale = particles.level[i], particles.scale[i]
        features, G, b = design[level], gram[level], moment[level]
        p = fill_columns(particles.members[i], particles.size[i], m, columns)
        half_logdet, fit = _factorise(prior, G, b, columns, p, scale, U, w)
        _copy_first(p, particles.beta[i], beta)
        size, gain, before, is_changed = p - m, 0.0, 0.0, False
        for a in range(len(new)):
            evidence = _log_evidence(half_logdet, fit, size, scale)
            without, with_it = evidence + log_sizes[a + 1, size], -math.inf
            square, part = 1.0, 0.0
            if size < largest:
                square, part = append_terms(G, b, columns, p, 1.0 / scale, U, w, new[a], x, v, m)
                with_it = log_sizes[a + 1, size + 1] + _log_evidence(
                    half_logdet + 0.5 * math.log(square), fit + part * part / square,
                    size + 1, scale,
                )  # fmt: skip
            both = _sum_of_both(without, with_it)
            gain += both - evidence - log_sizes[a, size]
            if math.log(1.0 - rng.random()) < with_it - both:
                if not is_changed:
                    _fill_white(U, p, beta, z)
                    before = _approximation(prior, scale, w, z, beta, p)
                    is_changed = True
                p = _with_centre(rng, new[a], square, part, columns, p, U, w, z, v)
                half_logdet += 0.5 * math.log(square)
                fit += part * part / square
                size += 1
        log_likelihood = particles.log_likelihood[i]
        if is_changed:
            solve_back(U, p, z, beta)
            log_likelihood, after = _fits(prior, features, labels, n, p, scale, here)
            gain += log_likelihood - after - particles.log_likelihood[i] + before
        if math.isfinite(gain):  # else inputs so far out that all else is lost: it stays as it is
            particles.log_weight[i] += gain
            particles.log_likelihood[i] = log_likelihood
            _put_set(particles, i, m, columns, p, beta)
    return normalise(particles.log_weight)


@compiled(allocates=True, nogil=True, error_model="numpy")
def retire(design, labels, gram, moment, n, prior, log_sizes, old, particles):
    """Take the columns ``old`` out one after the other, as `admit` lets them in; draws nothing."""
    m, P = prior.n_mean, particles.beta.shape[1]
    largest = particles.members.shape[1]
    x, v, here, _, (V, _, _, _) = _room_of_sets(P, 0, n)
    columns, U, w, z, beta, _ = here
    for i in range(len(particles.size)):
        level, scale = particles.level[i], particles.scale[i]
        features, G, b = design[level], gram[level], moment[level]
        p = fill_columns(particles.members[i], particles.size[i], m, columns)
        half_logdet, fit = _factorise(prior, G, b, columns, p, scale, U, w)
        _copy_first(p, particles.beta[i], beta)
        gain, before, is_changed = 0.0, 0.0, False
        for a in range(len(old)):
            size, with_it, position = p - m, -math.inf, -1
            for j in range(m, p):
                if columns[j] == old[a]:
                    position = j
            if position >= 0:
                with_it = _log_evidence(half_logdet, fit, size, scale) + log_sizes[a, size]
                if not is_changed:
                    _fill_white(U, p, beta, z)
                    before = _approximation(prior, scale, w, z, beta, p)
                    is_changed = True
                p = _without(columns, p, position, U, w, z, V)
                size -= 1
                half_logdet, fit = _terms(U, w, p)
            elif size < largest:
                square, part = append_terms(G, b, columns, p, 1.0 / scale, U, w, old[a], x, v, m)
                with_it = log_sizes[a, size + 1] + _log_evidence(
                    half_logdet + 0.5 * math.log(square), fit + part * part / square,
                    size + 1, scale,
                )  # fmt: skip
            evidence = _log_evidence(half_logdet, fit, size, scale)
            both = _sum_of_both(evidence + log_sizes[a, size], with_it)
            gain += evidence + log_sizes[a + 1, size] - both
        if is_changed:
            solve_back(U, p, z, beta)
            for j in range(p):
                beta[j] = beta[j] if math.isfinite(beta[j]) else 0.0
            log_likelihood, after = _fits(prior, features, labels, n, p, scale, here)
            gain += log_likelihood - after - particles.log_likelihood[i] + before
            particles.log_likelihood[i] = log_likelihood
            _put_set(particles, i, m, columns, p, beta)
        if math.isfinite(gain):
            particles.log_weight[i] += gain
    return normalise(particles.log_weight)
