"""What a user sees of the populations: draws with weights, and what they say about themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln, log_expit

from mercer.basis.arrays import Array
from mercer.basis.classes.filter import ClassFilter
from mercer.basis.classes.several import StickBreaking, StickState
from mercer.basis.classes.state import ClassState
from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.sampling.resampling import resample

__all__ = ["class_draws", "log_targets"]

_MONITORED = ("n_centres", "coef_std", "lengthscale")


def log_targets(filter_: ClassFilter, state: ClassState) -> Array:
    """Log posterior density of each particle (N,) up to a constant, in nats."""
    particles, prior, n = state.particles, filter_.prior, state.n_held
    m, (N, P) = prior.n_mean, particles.beta.shape
    used = np.arange(P) < m + particles.size[:, np.newaxis]
    of_centres = used.copy()
    of_centres[:, :m] = False
    squares = particles.beta**2
    a, b, scale = prior.scale_shape, prior.scale_rate, particles.scale
    result = -0.5 * prior.mean_precision * squares[:, :m].sum(axis=1)
    result -= 0.5 * np.where(of_centres, squares, 0.0).sum(axis=1) / scale
    result -= 0.5 * particles.size * np.log(2.0 * math.pi * scale)
    result += a * math.log(b) - gammaln(a) - (a + 1.0) * np.log(scale) - b / scale
    result += filter_.sets.log_size(state.n_candidates)[particles.size]
    columns = np.concatenate([np.tile(np.arange(m), (N, 1)), particles.members], axis=1)
    for i in range(N):
        k = m + particles.size[i]
        design = state.rows.design[particles.level[i], columns[i, :k], :n]
        result[i] += log_expit(state.rows.sign[:n] * (particles.beta[i, :k] @ design)).sum()
    return np.asarray(result)


def class_draws(
    sticks: StickBreaking, state: StickState, entropy: int, classes: Sequence[Any]
) -> Draws:
    """Return the particles as weighted draws; for more than two classes, resampled ones.

    Variables, each of shape (1, particles), or (1, particles, C - 1) where there are more classes
    (entries are named by them): "n_centres"; "coef_std" (prior standard deviation of a
    coefficient, in logits); "lengthscale", in standardised units.
    """
    rng = stream(entropy, "coefficients")
    columns: dict[str, list[Array]] = {name: [] for name in _MONITORED}
    N = sticks.filters[0].n_particles
    target, logs = np.zeros(N), np.full(N, -math.log(N))
    for filter_, each in zip(sticks.filters, state.states, strict=True):
        particles, levels = each.particles, filter_.levels
        chosen = np.arange(filter_.n_particles)
        if len(sticks.filters) > 1:
            chosen = resample(rng, np.exp(particles.log_weight), "systematic")
            chosen = rng.permutation(chosen)  # the functions are independent
        else:
            logs = particles.log_weight
        lengthscale = levels.lengthscales[particles.level % levels.n_widths]
        columns["n_centres"].append(particles.size[chosen].astype(np.float64))
        columns["coef_std"].append(np.sqrt(particles.scale[chosen]))
        columns["lengthscale"].append(lengthscale[chosen])
        target = target + log_targets(filter_, each)[chosen]
    variables = {name: np.stack(parts, axis=-1)[np.newaxis] for name, parts in columns.items()}
    labels = dict.fromkeys(_MONITORED, tuple(str(each) for each in classes[:-1]))
    if len(sticks.filters) == 1:
        variables, labels = {name: values[..., 0] for name, values in variables.items()}, {}
    stats = {"log_density": target[np.newaxis]}
    return Draws(variables, stats, labels, _MONITORED, logs[np.newaxis])
