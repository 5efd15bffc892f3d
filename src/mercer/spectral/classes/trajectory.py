"""Before a sweep: frequencies, their components and all coefficients move together.

A sweep moves a frequency at a time, and components only as far as their members let them; the
posterior of the kernel is crossed slowly. One trajectory of hybrid Monte Carlo
(`mercer.sampling.split_hmc`) moves

    W and (mu, Sigma)   in the coordinates of `mercer.spectral.mixture.coordinates`
    beta_k, gamma_k     times the roots of their prior precisions

given the partition, ridges and precisions, under the logistic likelihood itself: no variables are
added to it. The masses are one plus about what n rows of balanced classes would say of a coordinate
by itself: too large for functions that few rows speak of, which then move slowly. The paper has
nothing of the kind.

**Cost** of a trajectory: O(n M (d + C - 1)) for each of its steps, with full covariances O(M d^2)
more; a sweep costs O((C - 1) n M^2).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.split_hmc import travel
from mercer.spectral.classes.gradient import likelihood_gradient
from mercer.spectral.classes.model import LogisticModel
from mercer.spectral.classes.state import ClassState
from mercer.spectral.mixture.coordinates import Coordinates, coordinates_of
from mercer.spectral.mixture.gibbs import Mixture
from mercer.spectral.rows import TrainingRows

__all__ = ["move_together"]

Array = NDArray[np.float64]

# Variance of a label at even odds: what a row says of its logit.
_OF_A_ROW = 0.25


def move_together(
    rng: np.random.Generator,
    rows: TrainingRows,
    model: LogisticModel,
    mixture: Mixture,
    state: ClassState,
    step_size: float,
    n_leapfrog: int,
) -> tuple[ClassState, float]:
    """Take one trajectory; return the new state and the probability of its end."""
    chart = coordinates_of(mixture.base.with_scale(state.mixture.scale), state.mixture)
    shape, m2 = state.mean.shape, 2 * len(state.frequencies)
    precisions = model.precisions_of_all(m2, state.ridge, state.linear_precision)
    roots = np.sqrt(precisions)
    start = chart.position(state.frequencies, state.mixture.components)
    size = len(start)

    def coef(theta: Array) -> Array:
        return np.asarray(theta[size:].reshape(shape) / roots)

    def potential(theta: Array) -> tuple[float, Array]:
        own = theta[:size]
        prior, gradient = chart.log_density(own)
        found = likelihood_gradient(rows, chart.frequencies(own), coef(theta))
        gradient = gradient + chart.pull(own, found.frequencies)
        return prior + found.value, np.append(gradient, found.coef / roots)

    position = np.append(start, state.coef * roots)
    rates = _rates(chart, precisions, rows.n_rows, m2)
    end = travel(rng, potential, position, rates, step_size, n_leapfrog)
    if not end.is_accepted:
        return state, end.acceptance_rate
    moved, own = end.position, end.position[:size]
    new = replace(
        state,
        frequencies=chart.frequencies(own),
        mean=coef(moved),
        deviations=np.zeros_like(state.deviations),
        mixture=replace(state.mixture, components=chart.components(own)),
    )
    return new, end.acceptance_rate


def _rates(chart: Coordinates, precisions: Array, n_rows: int, n_features: int) -> Array:
    """Roots of the inverse masses of all coordinates, shape (p,)."""
    information = _OF_A_ROW * n_rows
    of_coef = information / precisions
    of_coef[:, :n_features] /= n_features
    of_frequency = 2.0 * information / n_features * float((1.0 / precisions[:, 0]).sum())
    return np.asarray(1.0 / np.sqrt(1.0 + np.append(chart.precisions(of_frequency), of_coef)))
