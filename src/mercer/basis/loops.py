# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over particles: one regression, its changes, the informed redraw, the moves.

One regression with a ridge: A = K'K + R = U'U, w = U'^-1 K'y. U is upper triangular and stored by
rows, so that inner loops run along memory; nothing here updates an inverse. Twins: ``tests/twins``.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.numerics.compilation import compiled

_FAST = {"contract", "reassoc", "nsz"}
_LOG_2PI = math.log(2.0 * math.pi)


@compiled(nogil=True, error_model="numpy")
def whole_below(rng, n):
    """Draw 0, .., n - 1, each as likely to 1e-16 n, without the array that ``integers`` makes."""
    return int(n * rng.random())


@compiled(nogil=True, error_model="numpy")
def constants(prior, n):
    """Return the shape and the constant of the evidence of n rows, for `log_evidence`."""
    if prior.is_sampled:
        return 0.5 * n, -0.5 * n * _LOG_2PI
    a = prior.noise_shape
    shape = a + 0.5 * n
    constant = math.lgamma(shape) - math.lgamma(a) + a * math.log(prior.noise_rate)
    return shape, constant - 0.5 * n * _LOG_2PI


@compiled(nogil=True, error_model="numpy")
def precisions(prior, scale):
    """Return the prior precisions of the mean's and of the centres' coefficients."""
    of_centres = 1.0 / scale
    return (of_centres if prior.is_sampled else prior.mean_precision), of_centres


@compiled(nogil=True, error_model="numpy")
def log_evidence(prior, shape, constant, rss, half_logdet, size, scale, noise):
    """Return log p(y | set, ...): the noise variance integrated out, or given where sampled."""
    of_mean, of_centres = precisions(prior, scale)
    half_prior = 0.5 * (prior.n_mean * math.log(of_mean) + size * math.log(of_centres))
    if prior.is_sampled:
        fit = -shape * math.log(noise) - 0.5 * rss / noise
    else:
        fit = -shape * math.log(prior.noise_rate + 0.5 * rss)
    return constant + fit - half_logdet + half_prior


@compiled(nogil=True, error_model="numpy")
def fill_columns(members, size, n_mean, columns):
    """Write the columns of a set: those of the mean, then its members; return how many."""
    for j in range(n_mean):
        columns[j] = j
    for j in range(size):
        columns[n_mean + j] = members[j]
    return n_mean + size


@compiled(nogil=True, error_model="numpy", fastmath=_FAST, inline="always")
def less_rows(target, begin, end, rows, first, last, times):
    """Take rows ``first`` to ``last``, each so many times, off a row; four in one pass over it."""
    for r in range(first, last - 3, 4):
        a, b, c, d = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
        of_a, of_b, of_c, of_d = times[r], times[r + 1], times[r + 2], times[r + 3]
        for j in range(begin, end):
            target[j] -= of_a * a[j] + of_b * b[j] + of_c * c[j] + of_d * d[j]
    for r in range(last - max(last - first, 0) % 4, last):
        row, value = rows[r], times[r]
        for j in range(begin, end):
            target[j] -= value * row[j]


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def factorise_set(
    gram, moment, columns, p, n_mean, of_constant, of_slopes, of_centres, U, w, first=0
):
    """Factorise from the sums; return (log|U|, w'w), from row ``first`` on.

    Rows before it are written, and taken out of the sums, by `mercer.basis.class_loops`. A pivot of
    a centre is never below its prior precision, which rounding could deny.
    """
    half_logdet, fit = 0.0, 0.0
    for i in range(first, p):
        row, Ui = gram[columns[i]], U[i]
        for j in range(i, p):
            Ui[j] = row[columns[j]]
        rest = moment[columns[i]]
        above = U[:, i]
        less_rows(Ui, i, p, U, first, i, above)
        for r in range(first, i):
            rest -= above[r] * w[r]
        ridge = of_centres
        if i < n_mean:
            ridge = of_slopes if i > 0 else of_constant
        pivot = math.sqrt(max(Ui[i] + ridge, ridge))
        Ui[i] = pivot
        inverse = 1.0 / pivot
        for j in range(i + 1, p):
            Ui[j] *= inverse
        w[i] = rest / pivot
        half_logdet += math.log(pivot)
        fit += w[i] * w[i]
    return half_logdet, fit


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def solve_forward(U, p, x, v, first=0):
    """Write v with U'v = x from row ``first`` on, see `factorise_set`; x is used up."""
    for i in range(first, p):
        Ui = U[i]
        vi = x[i] / Ui[i]
        v[i] = vi
        for r in range(i + 1, p):
            x[r] -= Ui[r] * vi


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def solve_back(U, p, z, beta):
    """Write beta with U beta = z; both may be the same array."""
    for i in range(p - 1, -1, -1):
        Ui = U[i]
        rest = z[i]
        for r in range(i + 1, p):
            rest -= Ui[r] * beta[r]
        beta[i] = rest / Ui[i]


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def append_terms(gram, moment, columns, p, ridge, U, w, column, x, v, first=0):
    """Prepare one more column: return its squared pivot and its part e of K'y.

    v is written; appending it lowers the residual sum of squares by e^2 / pivot^2. ``first``: see
    `factorise_set`.
    """
    row = gram[column]
    for i in range(first):
        v[i] = gram[i, column]
    for i in range(first, p):
        x[i] = row[columns[i]]
    solve_forward(U, p, x, v, first)
    square, part = row[column] + ridge, moment[column]
    for i in range(first, p):
        square -= v[i] * v[i]
        part -= v[i] * w[i]
    return max(square, ridge), part


@compiled(nogil=True, error_model="numpy")
def append_column(U, w, p, v, square, part):
    """Append the column that `append_terms` prepared, at position p."""
    for i in range(p):
        U[i, p] = v[i]
    pivot = math.sqrt(square)
    U[p, p] = pivot
    w[p] = part / pivot


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def drop_terms(U, w, p, j, x, v):
    """Return what dropping position j costs: (A^-1)_jj and the coefficient's estimate.

    The residual sum of squares rises by estimate^2 / (A^-1)_jj, and log|A| by its logarithm.
    """
    for i in range(p):
        x[i] = 0.0
    x[j] = 1.0
    variance, estimate = 0.0, 0.0
    for i in range(j, p):
        Ui = U[i]
        vi = x[i] / Ui[i]
        for r in range(i + 1, p):
            x[r] -= Ui[r] * vi
        variance += vi * vi
        estimate += vi * w[i]
    return variance, estimate


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def drop_column(U, w, p, j, V):
    """Drop position j by rotations of rows (i, i + 1), i >= j; return what falls out of w.

    The residual sum of squares rises by its square. The rows of V, right-hand sides as w is one,
    are rotated along; what falls out stands in row p - 1.
    """
    n = V.shape[1]
    for i in range(p):
        Ui = U[i]
        for c in range(max(j, i - 1), p - 1):
            Ui[c] = Ui[c + 1]
    for i in range(j, p - 1):
        Ui, Un = U[i], U[i + 1]
        inverse = 1.0 / math.sqrt(Ui[i] * Ui[i] + Un[i] * Un[i])
        c, s = Ui[i] * inverse, Un[i] * inverse
        for r in range(i, p - 1):
            a, b = Ui[r], Un[r]
            Ui[r] = c * a + s * b
            Un[r] = c * b - s * a
        a, b = w[i], w[i + 1]
        w[i] = c * a + s * b
        w[i + 1] = c * b - s * a
        if n > 0:
            Vi, Vn = V[i], V[i + 1]
            for r in range(n):
                a, b = Vi[r], Vn[r]
                Vi[r] = c * a + s * b
                Vn[r] = c * b - s * a
    return w[p - 1]


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def rotate_row(U, w, p, x, y):
    """Take in a row of the design x and its target; return y - x'beta and 1 + x'A^-1 x before that.

    x is used up. Givens rotations of x into U, all cosines and sines known from the solution v of
    U'v = x, which is found in the same pass: with alpha_i = 1 + v_0^2 + ... + v_i^2 and z what is
    left of x, row i becomes sqrt(alpha_(i-1) / alpha_i) U_i + v_i / sqrt(alpha_(i-1) alpha_i) z.
    """
    alpha = 1.0
    for i in range(p):
        Ui = U[i]
        v = x[i] / Ui[i]
        beyond = alpha + v * v
        inverse = 1.0 / math.sqrt(alpha * beyond)
        c, k = alpha * inverse, v * inverse
        for r in range(i, p):
            u, z = Ui[r], x[r]
            Ui[r] = c * u + k * z
            x[r] = z - v * u
        rest = w[i]
        w[i] = c * rest + k * y
        y -= v * rest
        alpha = beyond
    return y, alpha


# Compiled loops over one particle: factor and set changed in place, variances drawn.

# The coefficients' variance, in noise variances, is kept within this: its prior is cut there.
_SMALLEST_SCALE, _LARGEST_SCALE = 1e-6, 1e6
_MOST_TRIES = 100


@compiled(nogil=True, error_model="numpy")
def draw_variance(rng, shape, rate):
    """Draw from an inverse gamma."""
    return rate / max(rng.standard_gamma(shape), 1e-300)


@compiled(nogil=True, error_model="numpy")
def draw_scale(rng, shape, rate, current):
    """Draw from an inverse gamma cut to the allowed range; ``current`` where none falls in it."""
    for _ in range(_MOST_TRIES):
        value = draw_variance(rng, shape, rate)
        if _SMALLEST_SCALE <= value <= _LARGEST_SCALE:
            return value
    return current


@compiled(nogil=True, error_model="numpy")
def refactor(statistics, prior, shape, constant, particles, i, columns):
    """Factorise particle i from the sums and return its log evidence."""
    p = fill_columns(particles.members[i], particles.size[i], prior.n_mean, columns)
    of_mean, of_centres = precisions(prior, particles.scale[i])
    level = particles.level[i]
    half_logdet, fit = factorise_set(
        statistics.gram[level], statistics.moment[level], columns, p, prior.n_mean,
        of_mean, of_mean, of_centres, particles.factor[i], particles.whitened[i],
    )  # fmt: skip
    particles.half_logdet[i] = half_logdet
    particles.rss[i] = max(statistics.square - fit, 0.0)
    return log_evidence(
        prior, shape, constant, particles.rss[i], half_logdet, particles.size[i],
        particles.scale[i], particles.noise[i],
    )  # fmt: skip


@compiled(nogil=True, error_model="numpy")
def _drop_member(particles, i, position):
    """Take one centre out of the list of members."""
    size = particles.size[i]
    members = particles.members[i]
    for j in range(position, size - 1):
        members[j] = members[j + 1]
    particles.size[i] = size - 1


@compiled(nogil=True, error_model="numpy")
def drop_in_place(particles, i, n_mean, position):
    """Drop one centre from set and factor; rss and log|U| follow."""
    p, j = n_mean + particles.size[i], n_mean + position
    U = particles.factor[i]
    before = 0.0
    for r in range(j, p):
        before += math.log(U[r, r])
    out = drop_column(U, particles.whitened[i], p, j, U[:, :0])
    after = 0.0
    for r in range(j, p - 1):
        after += math.log(U[r, r])
    particles.half_logdet[i] += after - before
    particles.rss[i] += out * out
    _drop_member(particles, i, position)


@compiled(nogil=True, error_model="numpy")
def append_in_place(particles, i, n_mean, column, v, square, part):
    """Append a column whose terms are known; rss and log|U| follow."""
    size = particles.size[i]
    append_column(particles.factor[i], particles.whitened[i], n_mean + size, v, square, part)
    particles.half_logdet[i] += 0.5 * math.log(square)
    particles.rss[i] = max(particles.rss[i] - part * part / square, 0.0)
    particles.members[i, size] = column
    particles.size[i] = size + 1


@compiled(nogil=True, error_model="numpy")
def draw_variances(rng, prior, shape, particles, i, spare):
    """Draw the variances by Gibbs, through coefficients that are dropped again.

    The factor is that of the old ones: `refactor` must follow.
    """
    z, beta, _, _ = spare
    m, size = prior.n_mean, particles.size[i]
    p = m + size
    noise = particles.noise[i]
    if not prior.is_sampled:
        noise = draw_variance(rng, shape, prior.noise_rate + 0.5 * particles.rss[i])
    spread, length = math.sqrt(noise), 0.0
    for j in range(p):
        draw = rng.standard_normal()
        length += draw * draw
        z[j] = particles.whitened[i, j] + spread * draw
    solve_back(particles.factor[i], p, z, beta)
    first = 0 if prior.is_sampled else m
    squares = 0.0
    for j in range(first, p):
        squares += beta[j] * beta[j]
    a, b = prior.scale_shape + 0.5 * (p - first), prior.scale_rate
    if not prior.is_sampled:
        particles.scale[i] = draw_scale(rng, a, b + 0.5 * squares / noise, particles.scale[i])
        return
    # |y - K beta|^2 = y'y - w'w + |U (beta - mean)|^2 - beta'R beta
    errors = max(particles.rss[i] + noise * length - squares / particles.scale[i], 0.0)
    old = particles.scale[i] * noise
    for _ in range(_MOST_TRIES):
        new_noise = draw_variance(rng, prior.noise_shape + shape, prior.noise_rate + 0.5 * errors)
        variance = draw_variance(rng, a, b + 0.5 * squares)
        if _SMALLEST_SCALE <= variance / new_noise <= _LARGEST_SCALE:
            particles.noise[i] = new_noise
            particles.scale[i] = variance / new_noise
            return
    particles.scale[i] = old / particles.noise[i]


# Compiled Gibbs step over all candidates: keep or drop a centre, then keep or add one.


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def solve_all(gram, moment, columns, p, ridge, U, w, n_columns, V, squares, parts, first=0):
    """`append_terms` for all columns at once: one triangular solve."""
    for c in range(n_columns):
        squares[c] = gram[c, c] + ridge
        parts[c] = moment[c]
    for i in range(p):
        Vi, Si = V[i], gram[columns[i]]
        for c in range(n_columns):
            Vi[c] = Si[c]
        if i < first:
            continue
        less_rows(Vi, 0, n_columns, V, first, i, U[:, i])
        inverse, wi = 1.0 / U[i, i], w[i]
        for c in range(n_columns):
            value = Vi[c] * inverse
            Vi[c] = value
            squares[c] -= value * value
            parts[c] -= value * wi
    for c in range(n_columns):
        squares[c] = max(squares[c], ridge)


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def terms_less(V, w, i, sign, floor, squares, parts):
    """Take what row i of V says off the terms of all columns (sign 1), or give it back (-1)."""
    Vi, wi = V[i], w[i]
    for c in range(len(squares)):
        squares[c] = max(squares[c] - sign * Vi[c] * Vi[c], floor)
        parts[c] -= sign * Vi[c] * wi


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def append_row(V, v, row, p, pivot, first=0):
    """Append the row of V that belongs to a column appended with these v; see `factorise_set`."""
    Vp = V[p]
    for c in range(len(row)):
        Vp[c] = row[c]
    less_rows(Vp, 0, len(row), V, first, p, v)
    inverse = 1.0 / pivot
    for c in range(len(row)):
        Vp[c] *= inverse


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
def drawn_column(rng, first, n_columns, highest, stay, squares, gains):
    """Draw a column in proportion to e^gain / pivot, or -1 in proportion to e^stay.

    ``highest`` is at least every gain; these are used up.
    """
    highest = max(highest, stay)
    total = _exponentiate(first, n_columns, highest, squares, gains)
    rest = rng.random() * (total + math.exp(stay - highest)) - math.exp(stay - highest)
    chosen = -1
    for c in range(first, n_columns):
        if rest < 0.0:
            break
        if gains[c] > 0.0:
            chosen = c
            rest -= gains[c]
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
    V, squares, parts, gains, v = room
    m, largest = prior.n_mean, particles.members.shape[1]
    if rng.random() >= stays(particles.size[i], largest):
        drop_in_place(particles, i, m, whole_below(rng, particles.size[i]))
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
    chosen = drawn_column(rng, m, n_columns, highest, stay, squares, gains)
    if chosen < 0:
        return
    for k in range(p):
        v[k] = V[k, chosen]
    append_in_place(particles, i, m, chosen, v, squares[chosen], parts[chosen])


# Compiled moves of particles: centres, length scale, variances. Each leaves the target invariant.
#
# The target of a particle is the evidence of its regression times the prior of its set: all sets
# of k out of r candidates share p(k). ``log_size[k]`` is log p(k) - log C(r, k), -inf where k is
# not allowed. Twins in NumPy: ``tests/twins``; invariance: ``tests/exact``.


@compiled(nogil=True, error_model="numpy")
def free_candidate(rng, statistics, particles, i, n_mean):
    """Draw the column of a candidate that is not in the set."""
    while True:
        column = n_mean + whole_below(rng, statistics.n_candidates)
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
    kind = whole_below(rng, 3)
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
        position = whole_below(rng, size)
        variance, estimate = drop_terms(factor, whitened, p, m + position, x, v)
        rss += estimate * estimate / variance
        half_logdet += 0.5 * math.log(variance)
    if not is_death:
        column = free_candidate(rng, statistics, particles, i, m)
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
def copy_factor(U, w, p, to_U, to_w):
    """Copy the triangle of a factor, and w."""
    for r in range(p):
        to_w[r] = w[r]
        for c in range(r, p):
            to_U[r, c] = U[r, c]


@compiled(nogil=True, error_model="numpy")
def _copy_without(factor, whitened, p, j, columns, U, w):
    """Copy a factor and drop one position of the copy, and of the list of columns."""
    copy_factor(factor, whitened, p, U, w)
    drop_column(U, w, p, j, U[:, :0])
    for r in range(j, p - 1):
        columns[r] = columns[r + 1]


@compiled(nogil=True, error_model="numpy")
def other_level(rng, level, n_widths, n_levels):
    """Propose a length scale next to this one, or the same for another scaling of the inputs."""
    if n_levels > n_widths and rng.random() < 0.5:
        shift = 1 + whole_below(rng, n_levels // n_widths - 1)
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
        of_mean, of_mean, of_centres, U, w,
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
    copy_factor(U, w, p, particles.factor[i], particles.whitened[i])
    return True


@compiled(allocates=True, nogil=True, error_model="numpy")
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
    squares, parts, gains = np.empty(n_columns), np.empty(n_columns), np.empty(n_columns)
    room = np.empty((P, n_columns)), squares, parts, gains, np.empty(P)
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
