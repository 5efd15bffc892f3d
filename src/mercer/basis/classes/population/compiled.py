"""Compiled loop over all particles at one row."""

from __future__ import annotations

import math

from mercer.basis.population.compiled import normalise
from mercer.numerics.compilation import compiled

__all__ = ["fill_latent", "weigh_row"]


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
