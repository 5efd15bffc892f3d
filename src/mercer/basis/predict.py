"""What a filter says of new rows: a Student t a particle, averaged over particles."""

from __future__ import annotations

import math

import numpy as np

from mercer.basis.arrays import Array
from mercer.basis.population.compiled import coefficients, predict_rows
from mercer.basis.printed import AnyFilter
from mercer.basis.state import State
from mercer.posterior.student_predictive import StudentMixture

__all__ = ["filter_law", "mean_function", "noise_variances"]

# Of the function, in noise variances: what rounding leaves of it.
_LEAST_SPREAD = 1e-15


def filter_law(
    filter_: AnyFilter, state: State, Z: Array, *, has_noise: bool = True
) -> StudentMixture:
    """Law of the targets of rows Z (m, d), standardised, or of the function without their noise."""
    particles, m = state.particles, filter_.levels.n_mean
    means = np.empty((len(Z), len(particles.size)))
    spreads = np.empty_like(means)
    Z_candidates = state.centres[: state.statistics.n_candidates]
    for level in np.unique(particles.level):
        design = filter_.levels.design(Z, Z_candidates, int(level))
        which = np.flatnonzero(particles.level == level)
        predict_rows(design, which, m, particles, means, spreads)
    variances, degrees = noise_variances(filter_, state)
    if not has_noise:
        spreads = np.maximum(spreads - 1.0, _LEAST_SPREAD)
    weights = np.exp(particles.log_weight)
    return StudentMixture(means, np.sqrt(variances * spreads), weights / weights.sum(), degrees)


def noise_variances(filter_: AnyFilter, state: State) -> tuple[Array, float]:
    """Squared scale of each particle's noise (N,), and its degrees of freedom."""
    particles, prior = state.particles, filter_.prior
    if prior.is_sampled:
        return particles.noise, math.inf
    shape = prior.noise_shape + 0.5 * (state.statistics.n_rows + state.n_pending)
    return (prior.noise_rate + 0.5 * particles.rss) / shape, 2.0 * shape


def mean_function(filter_: AnyFilter, state: State, Z: Array) -> Array:
    """Posterior mean of the function at rows Z (m, d): shape (m,)."""
    particles, m = state.particles, filter_.levels.n_mean
    N, r = len(particles.size), state.statistics.n_candidates
    beta = np.zeros(particles.whitened.shape)
    coefficients(particles, m, beta)
    weights, result = np.exp(particles.log_weight), np.zeros(len(Z))
    by_column = np.zeros((filter_.levels.n_levels, m + r))
    for i in range(N):
        k = particles.size[i]
        row = by_column[particles.level[i]]
        row[:m] += weights[i] * beta[i, :m]
        row[particles.members[i, :k]] += weights[i] * beta[i, m : m + k]
    for level in np.unique(particles.level):
        result += filter_.levels.design(Z, state.centres[:r], int(level)) @ by_column[level]
    return result
