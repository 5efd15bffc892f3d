"""Compiled loops over one particle: factor and set changed in place, variances drawn."""

from __future__ import annotations

import math

from mercer.basis.regression.compiled import (
    append_column,
    drop_column,
    factorise_set,
    fill_columns,
    log_evidence,
    precisions,
    solve_back,
)
from mercer.numerics.compilation import compiled

__all__ = [
    "append_in_place",
    "draw_scale",
    "draw_variance",
    "draw_variances",
    "drop_in_place",
    "refactor",
]

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
        of_mean, of_centres, particles.factor[i], particles.whitened[i],
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
    out = drop_column(U, particles.whitened[i], p, j)
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
