"""The spectral density and the kernel that a mixture stands for.

With weights m_k / (M + alpha) of the components and alpha / (M + alpha) of a new one, the next
frequency has density p. Since a feature map does not tell w from -w, what is reported is
(p(w) + p(-w)) / 2; its Fourier transform is the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

from mercer.spectral.mixture.base import Array, BaseMeasure
from mercer.spectral.mixture.state import MixtureState

__all__ = [
    "ComponentTable",
    "log_spectral_density",
    "mixture_kernel",
    "mixture_marginal_density",
    "mixture_weights",
    "tabulate",
]


@dataclass(frozen=True)
class ComponentTable:
    """The components, the one with most members first.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        Share of the frequencies, m_k / M.
    means, stds : ndarray of shape (K, d)
        Of each input, in units of a frequency.
    """

    weights: Array
    means: Array
    stds: Array


def mixture_weights(state: MixtureState) -> Array:
    """Probability of each component, and last of a new one, for the next frequency: (K + 1,)."""
    weights = np.append(state.counts, state.concentration)
    return np.asarray(weights / weights.sum())


def log_spectral_density(state: MixtureState, base: BaseMeasure[Any], W: Array) -> Array:
    """Log density of the next frequency at W (n, d), the mean of both signs, shape (n,)."""
    known = [state.components.log_densities(side) for side in (W, -W)]
    weights = mixture_weights(state)
    halves = 0.5 * weights[:-1]
    logs = np.column_stack([*known, base.log_predictive(W)])
    return np.asarray(logsumexp(logs, axis=1, b=np.concatenate([halves, halves, weights[-1:]])))


def mixture_marginal_density(
    state: MixtureState, base: BaseMeasure[Any], values: Array, j: int
) -> Array:
    """Density of input j of the next frequency at values (n,), the mean of both signs."""
    weights = mixture_weights(state)
    means, stds = state.components.means[:, j], state.components.stds[:, j]
    densities = weights[-1] * np.exp(base.log_marginal_predictive(values, j))
    for side in (values, -values):
        densities += 0.5 * (norm.pdf(side[:, np.newaxis], means, stds) @ weights[:-1])
    return np.asarray(densities)


def mixture_kernel(state: MixtureState, base: BaseMeasure[Any], lags: Array) -> Array:
    """Kernel at lags (n, d): the mean of cos(w't) over the next frequency, shape (n,)."""
    weights = mixture_weights(state)
    of_components = state.components.characteristic(lags) @ weights[:-1]
    return np.asarray(of_components + weights[-1] * base.characteristic(lags))


def tabulate(state: MixtureState) -> ComponentTable:
    """List weights, means and standard deviations of the components."""
    order = np.argsort(-state.counts, kind="stable")
    weights = state.counts[order] / len(state.assignment)
    return ComponentTable(weights, state.means[order], state.components.stds[order])
