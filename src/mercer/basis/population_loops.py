# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over all particles: the weights of a row, candidates, the printed step."""

from __future__ import annotations

import math

import numpy as np

from mercer.basis.loops import (
    append_column,
    append_terms,
    constants,
    draw_variances,
    drop_column,
    drop_terms,
    fill_columns,
    free_candidate,
    log_evidence,
    refactor,
    rotate_row,
    solve_back,
    solve_forward,
    whole_below,
)
from mercer.numerics.compilation import compiled

# Compiled loops over all particles: a row, a new candidate, a retired one, a discount.
#
# Each changes ``log_target`` and ``log_weight`` of the particles in place. Twins in NumPy:
# ``tests/twins``; unbiasedness of the evidence: ``tests/exact``.

#
# **A kernel at the row itself.** Far from all candidates every kernel is 0, and a particle would be
# as sure of a row there as of its mean. So a kernel centred at the row is added to each particle
# for the prediction of that row, as in [1]_: its coefficient has the prior of the others, N(0, g
# s2), and given these and the n rows the variance s2 g / (1 + g sum_s k(x, x_s)^2). Of it counts
# the share 1 - max_c k(x, c)^2 that the nearest candidate leaves of a kernel's value at x. The sum
# over rows is n / r times that over the r candidates, which are drawn from them. Means, weights
# and evidence stay as they are; so do predictions where variances are sampled, as in the paper.
#
# .. [1] C. E. Rasmussen and J. Quinonero-Candela, Healing the relevance vector machine through
#    augmentation, ICML 2005.

_LOG_2PI = math.log(2.0 * math.pi)
# Of a target further out, in scales, the difference from it would say too little of the mean.
_FAR = 1e6


@compiled(nogil=True, error_model="numpy")
def normalise(log_weight):
    """Make the weights sum to 1; return the logarithm of what they summed to."""
    highest = -math.inf
    for value in log_weight:
        highest = max(highest, value)
    total = 0.0
    for value in log_weight:
        total += math.exp(value - highest)
    log_total = math.log(total)
    for i in range(len(log_weight)):
        log_weight[i] = log_weight[i] - highest - log_total  # in this order: both may be huge
    return highest + log_total


@compiled(nogil=True, error_model="numpy")
def effective_size(log_weight):
    """Effective sample size of normalised weights."""
    total = 0.0
    for value in log_weight:
        total += math.exp(2.0 * value)
    return 1.0 / total


@compiled(nogil=True, error_model="numpy")
def _reach(row, n_mean, n_candidates, n_rows):
    """Return what the nearest candidate leaves of a kernel at a row, and its squares over rows."""
    nearest, squares = 0.0, 0.0
    for j in range(n_mean, n_mean + n_candidates):
        nearest = max(nearest, row[j])
        squares += row[j] * row[j]
    return 1.0 - nearest * nearest, squares * n_rows / max(n_candidates, 1)


@compiled(nogil=True, error_model="numpy")
def _own_kernel(reach, g):
    """Return the variance that a kernel at a row adds, in noise variances."""
    left, squares = reach
    return left * g / (1.0 + g * squares)


@compiled(allocates=True, nogil=True, error_model="numpy")
def learn_row(rows, y, n_candidates, n_rows, prior, particles, means, variances):
    """Weigh every particle by the density of a target, and take the row in.

    ``rows`` (L, C) is the row of the design at each level, ``n_rows`` the sum of the weights of
    the rows before it. Written: location and squared scale of each particle's prediction, with a
    kernel at the row. Returns log p(y) in nats, without that kernel and with it.
    """
    shape, _ = constants(prior, n_rows)
    log_weight, reach = particles.log_weight.copy(), np.empty((len(rows), 2))
    for level in range(len(rows)):
        reach[level, 0], reach[level, 1] = _reach(rows[level], prior.n_mean, n_candidates, n_rows)
    student = 0.0
    if not prior.is_sampled:
        student = math.lgamma(shape + 0.5) - math.lgamma(shape) - 0.5 * math.log(math.pi)
    P = particles.factor.shape[1]
    columns, x, v = np.empty(P, np.int64), np.empty(P), np.empty(P)
    for i in range(len(particles.size)):
        p = fill_columns(particles.members[i], particles.size[i], prior.n_mean, columns)
        row = rows[particles.level[i]]
        for j in range(p):
            x[j] = row[columns[j]]
        mean = 0.0
        if abs(y) > _FAR:
            solve_forward(particles.factor[i], p, x.copy(), v)
            for j in range(p):
                mean += v[j] * particles.whitened[i, j]
        error, spread = rotate_row(particles.factor[i], particles.whitened[i], p, x, y)
        if prior.is_sampled:
            variances[i] = particles.noise[i] * spread
            gain = -0.5 * (_LOG_2PI + math.log(variances[i]) + error * error / variances[i])
            log_weight[i] += gain
        else:
            rate = prior.noise_rate + 0.5 * particles.rss[i]
            wider = spread + _own_kernel(reach[particles.level[i]], particles.scale[i])
            variances[i] = rate / shape * wider
            gain = _log_student(error, 2.0 * rate * spread, shape, student)
            log_weight[i] += _log_student(error, 2.0 * rate * wider, shape, student)
        means[i] = mean if abs(y) > _FAR else y - error
        particles.log_weight[i] += gain
        particles.log_target[i] += gain
        particles.rss[i] += error * error / spread
        particles.half_logdet[i] += 0.5 * math.log(spread)
    return normalise(particles.log_weight), normalise(log_weight)


@compiled(nogil=True, error_model="numpy")
def _log_student(error, base, shape, constant):
    return constant - 0.5 * math.log(base) - (shape + 0.5) * math.log1p(error * error / base)


@compiled(allocates=True, nogil=True, error_model="numpy")
def extend(rng, statistics, prior, before, after, column, particles):
    """Offer a new candidate to all: with it or without, in proportion; return the log weight.

    ``before`` and ``after`` are the log priors of sets without and with that candidate.
    """
    shape, constant = constants(prior, statistics.n_rows)
    m, largest = prior.n_mean, particles.members.shape[1]
    P = particles.factor.shape[1]
    columns, x, v = np.empty(P, np.int64), np.empty(P), np.empty(P)
    for i in range(len(particles.size)):
        size, level = particles.size[i], particles.level[i]
        without = particles.log_target[i] - before[size] + after[size]
        with_it, square, part, p = -math.inf, 1.0, 0.0, m + size
        rss, half_logdet = 0.0, 0.0
        if size < largest:
            fill_columns(particles.members[i], size, m, columns)
            square, part = append_terms(
                statistics.gram[level], statistics.moment[level], columns, p,
                1.0 / particles.scale[i], particles.factor[i], particles.whitened[i], column, x, v,
            )  # fmt: skip
            rss = max(particles.rss[i] - part * part / square, 0.0)
            half_logdet = particles.half_logdet[i] + 0.5 * math.log(square)
            with_it = after[size + 1] + log_evidence(
                prior, shape, constant, rss, half_logdet, size + 1, particles.scale[i],
                particles.noise[i],
            )  # fmt: skip
        highest = max(without, with_it)
        both = highest + math.log(math.exp(without - highest) + math.exp(with_it - highest))
        particles.log_weight[i] += both - particles.log_target[i]
        if math.log(1.0 - rng.random()) < with_it - both:
            append_column(particles.factor[i], particles.whitened[i], p, v, square, part)
            particles.rss[i], particles.half_logdet[i] = rss, half_logdet
            particles.members[i, size] = column
            particles.size[i] = size + 1
            particles.log_target[i] = with_it
        else:
            particles.log_target[i] = without
    return normalise(particles.log_weight)


@compiled(nogil=True, error_model="numpy")
def _position_of(particles, i, column):
    for j in range(particles.size[i]):
        if particles.members[i, j] == column:
            return j
    return -1


@compiled(allocates=True, nogil=True, error_model="numpy")
def drop_candidate(statistics, prior, before, after, column, particles):
    """Retire a candidate: the mirror image of `extend`; return the log weight.

    V = U without it; the weight is the new target of V over the old ones of V and of V with it.
    """
    shape, constant = constants(prior, statistics.n_rows)
    m, largest = prior.n_mean, particles.members.shape[1]
    P = particles.factor.shape[1]
    columns, x, v = np.empty(P, np.int64), np.empty(P), np.empty(P)
    for i in range(len(particles.size)):
        position, size = _position_of(particles, i, column), particles.size[i]
        with_it = -math.inf
        if position >= 0:
            with_it = particles.log_target[i]
            variance, estimate = drop_terms(
                particles.factor[i], particles.whitened[i], m + size, m + position, x, v
            )
            U = particles.factor[i]
            drop_column(U, particles.whitened[i], m + size, m + position, U[:, :0])
            particles.rss[i] += estimate * estimate / variance
            particles.half_logdet[i] += 0.5 * math.log(variance)
            for j in range(position, size - 1):
                particles.members[i, j] = particles.members[i, j + 1]
            size -= 1
            particles.size[i] = size
        scale, noise = particles.scale[i], particles.noise[i]
        rss, half_logdet = particles.rss[i], particles.half_logdet[i]
        evidence = log_evidence(prior, shape, constant, rss, half_logdet, size, scale, noise)
        if position < 0 and size < largest:
            fill_columns(particles.members[i], size, m, columns)
            level = particles.level[i]
            square, part = append_terms(
                statistics.gram[level], statistics.moment[level], columns, m + size, 1.0 / scale,
                particles.factor[i], particles.whitened[i], column, x, v,
            )  # fmt: skip
            with_it = before[size + 1] + log_evidence(
                prior, shape, constant, max(rss - part * part / square, 0.0),
                half_logdet + 0.5 * math.log(square), size + 1, scale, noise,
            )  # fmt: skip
        without = evidence + before[size]
        highest = max(without, with_it)
        both = highest + math.log(math.exp(without - highest) + math.exp(with_it - highest))
        particles.log_target[i] = evidence + after[size]
        particles.log_weight[i] += particles.log_target[i] - both
    return normalise(particles.log_weight)


@compiled(allocates=True, nogil=True, error_model="numpy")
def discount(statistics, prior, log_size, particles):
    """Weigh all particles anew after the sums were discounted; return the log weight."""
    shape, constant = constants(prior, statistics.n_rows)
    columns = np.empty(particles.factor.shape[1], np.int64)
    for i in range(len(particles.size)):
        evidence = refactor(statistics, prior, shape, constant, particles, i, columns)
        log_target = evidence + log_size[particles.size[i]]
        particles.log_weight[i] += log_target - particles.log_target[i]
        particles.log_target[i] = log_target
    return normalise(particles.log_weight)


@compiled(allocates=True, nogil=True, error_model="numpy")
def predict_rows(rows, which, n_rows, prior, particles, means, spreads):
    """Write location and relative variance of the prediction of each row by some particles.

    ``rows`` (m, C) is the design at their level, for all candidates and no more columns; ``n_rows``
    the sum of the weights of the rows learned. Written are the columns ``which`` (n,) of means and
    spreads (m, N); a spread is 1 + k'A^-1 k, in noise variances, and that of a kernel at the row.
    """
    P, n_mean = particles.factor.shape[1], prior.n_mean
    columns, x, v = np.empty(P, np.int64), np.empty(P), np.empty(P)
    reach = np.zeros((len(rows), 2))  # as sampled: nothing is added
    if not prior.is_sampled:
        for t in range(len(rows)):
            reach[t, 0], reach[t, 1] = _reach(rows[t], n_mean, rows.shape[1] - n_mean, n_rows)
    for i in which:
        p = fill_columns(particles.members[i], particles.size[i], n_mean, columns)
        for t in range(len(rows)):
            for j in range(p):
                x[j] = rows[t, columns[j]]
            solve_forward(particles.factor[i], p, x, v)
            mean, spread = 0.0, 1.0 + _own_kernel(reach[t], particles.scale[i])
            for j in range(p):
                mean += v[j] * particles.whitened[i, j]
                spread += v[j] * v[j]
            means[t, i] = mean
            spreads[t, i] = spread


@compiled(allocates=True, nogil=True, error_model="numpy")
def log_density_of_few(row, y, n_few, most_degrees, level, prior, n_rows, particles):
    """Return what a level's first particles contribute to the log density of a target, in nats.

    ``row`` (1, C) is the design at the level. The law has at most so many degrees of freedom.
    """
    which, n = np.empty(n_few, np.int64), 0
    for i in range(len(particles.size)):
        if n < n_few and particles.level[i] == level:
            which[n] = i
            n += 1
    means, spreads = np.empty((1, len(particles.size))), np.empty((1, len(particles.size)))
    predict_rows(row, which[:n], n_rows, prior, particles, means, spreads)
    shape = prior.noise_shape + 0.5 * n_rows
    degrees = most_degrees if prior.is_sampled else min(2.0 * shape, most_degrees)
    half, logs = 0.5 * (degrees + 1.0), np.empty(n)
    for j in range(n):
        i = which[j]
        noise = particles.noise[i]
        if not prior.is_sampled:
            noise = (prior.noise_rate + 0.5 * particles.rss[i]) / shape
        square = noise * spreads[0, i]
        ratio = (y - means[0, i]) ** 2 / square
        logs[j] = particles.log_weight[i] - 0.5 * math.log(square)
        logs[j] -= half * math.log1p(ratio / degrees)
    highest = logs.max()
    if not highest > -math.inf:
        return highest
    constant = math.lgamma(half) - math.lgamma(0.5 * degrees) - 0.5 * math.log(degrees * math.pi)
    return constant + highest + math.log(np.exp(logs - highest).sum())


@compiled(nogil=True, error_model="numpy")
def coefficients(particles, n_mean, beta):
    """Write the posterior mean of each particle's coefficients into rows of beta (N, P)."""
    for i in range(len(particles.size)):
        p = n_mean + particles.size[i]
        solve_back(particles.factor[i], p, particles.whitened[i], beta[i])


# Compiled step of Algorithm 1 as it is printed: one move and its weight, then the variances.


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


@compiled(allocates=True, nogil=True, error_model="numpy")
def printed_step(rng, statistics, prior, log_size, share, particles):
    """Move every particle once, weigh it by eq. (9), draw its variances, eqs. (4) and (5).

    The statistics hold the row and its candidate. ``log_size`` (k_max + 2,) is the log prior of
    a set of each size, -inf where it is not allowed; ``share`` the paper's c, of moves that
    change the number of centres. ``log_target`` of the particles is that of the rows with this
    one and of the sets before it. Returns the logarithm of the mean weight of the moves.
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
            particles.members[i, size] = free_candidate(rng, statistics, particles, i, m)
            particles.size[i] = size + 1
            log_choice = -math.log(r - size)
        elif drawn < birth + death:
            position = whole_below(rng, size)
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
