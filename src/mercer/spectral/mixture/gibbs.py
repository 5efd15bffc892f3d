"""Dirichlet-process mixture of normal distributions over frequencies, by Gibbs sampling.

**Target.** Z ~ CRP(alpha), (mu_k, Sigma_k) ~ base measure, W_j ~ N(mu_Zj, Sigma_Zj), eq. (6) of
[1]_, given the frequencies W; optionally alpha ~ Gamma(a, b) and the scale of the base ~ Gamma.

**One step**

1. (Z_j, sign of W_j) for j = 1, .., M: `mercer.spectral.mixture.seating`.
2. (mu_k, Sigma_k) given the members of each component.
3. The scale of the base measure given all components, if it is learned.
4. alpha given K, if it is learned.

**Symbols** (paper -> code): Z -> ``assignment``, mu_k, Sigma_k -> ``components``,
alpha -> ``concentration``, omega_j -> a row of ``W``.

**Deviations.** Centred at 0: with that, signs are drawn too. Scale and concentration may be
learned. A new component's parameters come from their posterior.

**Cost** of a step: O(M K d), with full covariances O(M K d^2 + K d^3).

References
----------
.. [1] Oliva et al., Bayesian nonparametric kernel-learning (AISTATS 2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.errors import UsageError
from mercer.spectral.mixture.base import Array, BaseMeasure, Labels, ScalePrior, require_positive
from mercer.spectral.mixture.partition import (
    ConcentrationPrior,
    draw_concentration,
    draw_partition,
)
from mercer.spectral.mixture.seating import reseat
from mercer.spectral.mixture.spectrum import (
    ComponentTable,
    log_spectral_density,
    mixture_kernel,
    mixture_marginal_density,
    tabulate,
)
from mercer.spectral.mixture.state import MixtureState

__all__ = ["Mixture"]

_LARGEST_LOG = np.log(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Mixture:
    """The prior of frequencies and its Gibbs sampler. Nothing that is passed in is changed.

    Attributes
    ----------
    base : DiagonalBase or FullBase
        Its scale is where the chain starts, and stays if ``scale_prior`` is None.
    concentration : float
        Where the chain starts, and stays if ``concentration_prior`` is None.
    concentration_prior : ConcentrationPrior or None
    scale_prior : ScalePrior or None
    is_symmetric : bool
        Whether a step may turn the sign of a frequency.

    Raises
    ------
    UsageError
        If the concentration is not positive, or the prior of the scale is of another shape.
    """

    base: BaseMeasure[Any]
    concentration: float = 2.0
    concentration_prior: ConcentrationPrior | None = None
    scale_prior: ScalePrior | None = None
    is_symmetric: bool = True

    def __post_init__(self) -> None:
        require_positive("concentration", self.concentration)
        prior = self.scale_prior
        if prior is not None and prior.mean.shape != self.base.scale.shape:
            raise UsageError(
                f"the prior of the scale has shape {prior.mean.shape}, "
                f"the scale of the base measure {self.base.scale.shape}"
            )

    def init(self, rng: np.random.Generator, W: Array, assignment: Labels) -> MixtureState:
        """Start from a partition of frequencies W (M, d): components given their members.

        Parameters
        ----------
        rng : Generator
        W : ndarray of shape (M, d)
        assignment : ndarray of shape (M,)
            Any integers: frequencies with the same one share a component.

        Raises
        ------
        UsageError
            If the shapes do not fit.
        """
        if W.ndim != 2 or W.shape[1] != self.base.n_inputs or assignment.shape != W.shape[:1]:
            raise UsageError(
                f"frequencies of shape {W.shape} and an assignment of shape {assignment.shape}; "
                f"expected (M, {self.base.n_inputs}) and (M,)"
            )
        labels, Z = np.unique(assignment, return_inverse=True)
        Z = Z.astype(np.int64)
        components = self.base.draw_components(rng, W, Z, len(labels))
        return MixtureState(Z, components, self.base.scale.copy(), self.concentration)

    def draw_prior(
        self, rng: np.random.Generator, n_frequencies: int
    ) -> tuple[MixtureState, Array]:
        """Draw a state and frequencies of shape (n_frequencies, d) from the prior."""
        concentration, base = self.concentration, self.base
        if self.concentration_prior is not None:
            concentration = self.concentration_prior.draw(rng)
        if self.scale_prior is not None:
            base = base.with_scale(self.scale_prior.draw(rng))
        Z = draw_partition(rng, n_frequencies, concentration)
        nobody = np.empty((0, base.n_inputs)), np.empty(0, dtype=np.int64)
        components = base.draw_components(rng, *nobody, int(Z.max()) + 1)
        state = MixtureState(Z, components, base.scale, concentration)
        return state, self.centre(state) + self.draw_noise(rng, state)

    def step(
        self, rng: np.random.Generator, state: MixtureState, W: Array
    ) -> tuple[MixtureState, Array]:
        """Take one step given frequencies W (M, d).

        Returns
        -------
        state : MixtureState
            That of the frequencies ``signs[:, None] * W``.
        signs : ndarray of shape (M,)
            1 or -1. Where -1, the coefficient of the frequency's sine changes its sign with it.
        """
        base, concentration = self.base.with_scale(state.scale), state.concentration
        Z, signs = reseat(
            rng, base, state.components, state.assignment, concentration, W, self.is_symmetric
        )
        n_components = int(Z.max()) + 1
        components = base.draw_components(rng, signs[:, np.newaxis] * W, Z, n_components)
        if self.scale_prior is not None:
            base = base.draw_scale(rng, components, self.scale_prior)
        if self.concentration_prior is not None:
            concentration = draw_concentration(
                rng, concentration, n_components, len(W), self.concentration_prior
            )
        return MixtureState(Z, components, base.scale, concentration), signs

    def centre(self, state: MixtureState) -> Array:
        """Return the prior mean mu_Zj of each frequency, shape (M, d)."""
        return state.means[state.assignment]

    def draw_noise(self, rng: np.random.Generator, state: MixtureState) -> Array:
        """Draw N(0, Sigma_Zj) for each frequency, shape (M, d): with `centre`, the prior."""
        return state.components.draw_noise(rng, state.assignment)

    def log_density(self, state: MixtureState, W: Array) -> float:
        """Log density of frequencies W (M, d) given their components, in nats."""
        logs = state.components.log_densities(W)
        return float(logs[np.arange(len(W)), state.assignment].sum())

    def density(self, state: MixtureState, frequencies: Array) -> Array:
        """Spectral density at frequencies (n, d), the mean of both signs, shape (n,).

        In many inputs it may be 0 or the largest number there is: then take its logarithm.
        """
        return np.exp(np.minimum(self.log_spectral_density(state, frequencies), _LARGEST_LOG))

    def log_spectral_density(self, state: MixtureState, frequencies: Array) -> Array:
        """Logarithm of `density`, shape (n,), in nats."""
        return log_spectral_density(state, self._base(state), frequencies)

    def marginal_density(self, state: MixtureState, values: Array, j: int) -> Array:
        """Spectral density of input j at values (n,), the mean of both signs, shape (n,)."""
        return mixture_marginal_density(state, self._base(state), values, j)

    def kernel(self, state: MixtureState, lags: Array) -> Array:
        """Kernel of the mixture at lags (n, d), shape (n,); 1 at lag 0."""
        return mixture_kernel(state, self._base(state), lags)

    def table(self, state: MixtureState) -> ComponentTable:
        """List weights, means and standard deviations of the components, the largest first."""
        return tabulate(state)

    def _base(self, state: MixtureState) -> BaseMeasure[Any]:
        return self.base.with_scale(state.scale)
