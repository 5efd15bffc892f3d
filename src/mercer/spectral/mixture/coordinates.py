"""Frequencies and components in coordinates whose prior is standard normal, or nearly.

Given the partition, W_j = mu_Zj + L_Zj u_j and mu_k = L_k m_k / sqrt(kappa0), where L_k L_k' is
Sigma_k: u and m are standard normal, and a component that moves takes its members with it. That is
what Gibbs steps of (mu, Sigma) given hundreds of members cannot do. Of a diagonal base measure
s_kl = log Sigma_kl - log(t_l / nu0) moves as well, of density

    log p(s) = -nu0 / 2 (s + e^-s) + const;

standard normal it is not, but of about that width: what is missing is `Coordinates.log_density`.
Of a full one Sigma stays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mercer.errors import UsageError
from mercer.spectral.mixture.base import Array, BaseMeasure, Components, Labels
from mercer.spectral.mixture.diagonal import DiagonalBase, DiagonalComponents
from mercer.spectral.mixture.full import FullComponents
from mercer.spectral.mixture.state import MixtureState

__all__ = ["Coordinates", "coordinates_of"]


@dataclass(frozen=True, eq=False)
class Coordinates(ABC):
    """A chart of all frequencies (M, d) and their components, given what does not move.

    Attributes
    ----------
    assignment : ndarray of shape (M,)
        Z.
    n_components : int
        K.
    kappa0 : float
        Of the base measure.
    variances : ndarray of shape (M, d) or (1, d)
        About those of the frequencies, which may not depend on anything that moves.
    """

    assignment: Labels
    n_components: int
    kappa0: float
    variances: Array

    @abstractmethod
    def position(self, W: Array, components: Components) -> Array:
        """Coordinates of frequencies (M, d) and components, shape (p,)."""

    @abstractmethod
    def frequencies(self, theta: Array) -> Array:
        """W, shape (M, d)."""

    @abstractmethod
    def components(self, theta: Array) -> Components:
        """(mu, Sigma) of all components."""

    @abstractmethod
    def pull(self, theta: Array, gradient: Array) -> Array:
        """Turn a gradient in W (M, d) into one in the coordinates, shape (p,)."""

    @abstractmethod
    def log_density(self, theta: Array) -> tuple[float, Array]:
        """Log density of the prior over a standard normal one, and its gradient (p,)."""

    @abstractmethod
    def precisions(self, information: float) -> Array:
        """How firmly each coordinate is held, beyond a standard normal law: shape (p,).

        For masses, which need the size only: factors were found by trial.

        Parameters
        ----------
        information : float
            Precision that a likelihood gives to an entry of W by itself.
        """

    def _split(self, theta: Array) -> list[Array]:
        """Parts u (M, d), m (K, d), and s (K, d) if it moves."""
        size, d = len(self.assignment), self.variances.shape[1]
        ends = np.arange(size, len(theta) // d, self.n_components)
        return np.split(theta.reshape(-1, d), ends)

    def _sums(self, values: Array) -> Array:
        """Sum values (M, d) over the members of each component, shape (K, d)."""
        is_member = self.assignment == np.arange(self.n_components)[:, np.newaxis]
        return np.asarray(is_member.astype(np.float64) @ values)

    def _precisions_of_members(self, information: float) -> tuple[Array, Array]:
        """Those of u, and their sums over the members of each component."""
        of_members = information * np.broadcast_to(
            self.variances, (len(self.assignment), self.variances.shape[1])
        )
        return of_members, self._sums(of_members)


@dataclass(frozen=True, eq=False)
class _Diagonal(Coordinates):
    nu0: float
    scale: Array

    def position(self, W: Array, components: Components) -> Array:
        stds, root = components.stds, np.sqrt(self.kappa0)
        u = (W - components.means[self.assignment]) / stds[self.assignment]
        s = 2.0 * np.log(stds) - np.log(self.scale / self.nu0)
        return np.concatenate([u.ravel(), (root * components.means / stds).ravel(), s.ravel()])

    def frequencies(self, theta: Array) -> Array:
        u, m, s = self._split(theta)
        moved = self._stds(s) * m / np.sqrt(self.kappa0)
        return np.asarray(moved[self.assignment] + self._stds(s)[self.assignment] * u)

    def components(self, theta: Array) -> Components:
        _, m, s = self._split(theta)
        stds = self._stds(s)
        return DiagonalComponents(stds * m / np.sqrt(self.kappa0), stds**2)

    def pull(self, theta: Array, gradient: Array) -> Array:
        _, _, s = self._split(theta)
        of_u = gradient * self._stds(s)[self.assignment]
        of_m = self._sums(of_u) / np.sqrt(self.kappa0)
        of_s = 0.5 * self._sums(gradient * self.frequencies(theta))
        return np.concatenate([of_u.ravel(), of_m.ravel(), of_s.ravel()])

    def log_density(self, theta: Array) -> tuple[float, Array]:
        _, _, s = self._split(theta)
        half, gradient = 0.5 * self.nu0, np.zeros_like(theta)
        inverse = np.exp(-s)
        gradient[-s.size :] = (s - half * (1.0 - inverse)).ravel()
        return float((0.5 * s**2 - half * (s + inverse)).sum()), gradient

    def precisions(self, information: float) -> Array:
        of_u, summed = self._precisions_of_members(information)
        of_m, of_s = summed / (2.0 * self.kappa0), summed / 8.0 + 0.5 * self.nu0 - 1.0
        return np.concatenate([of_u.ravel(), of_m.ravel(), np.maximum(of_s, 0.0).ravel()])

    def _stds(self, s: Array) -> Array:
        return np.asarray(np.sqrt(self.scale / self.nu0) * np.exp(0.5 * s))


@dataclass(frozen=True, eq=False)
class _Full(Coordinates):
    factors: Array

    def position(self, W: Array, components: Components) -> Array:
        u = np.linalg.solve(
            self.factors[self.assignment],
            (W - components.means[self.assignment])[:, :, np.newaxis],
        )
        m = np.linalg.solve(self.factors, components.means[:, :, np.newaxis])
        return np.concatenate([u.ravel(), np.sqrt(self.kappa0) * m.ravel()])

    def frequencies(self, theta: Array) -> Array:
        u, m = self._split(theta)
        whitened = u + m[self.assignment] / np.sqrt(self.kappa0)
        return np.asarray(np.einsum("jab,jb->ja", self.factors[self.assignment], whitened))

    def components(self, theta: Array) -> Components:
        _, m = self._split(theta)
        means = np.einsum("kab,kb->ka", self.factors, m) / np.sqrt(self.kappa0)
        return FullComponents(means, self.factors)

    def pull(self, theta: Array, gradient: Array) -> Array:
        of_u = np.einsum("jab,ja->jb", self.factors[self.assignment], gradient)
        of_m = self._sums(of_u) / np.sqrt(self.kappa0)
        return np.concatenate([of_u.ravel(), of_m.ravel()])

    def log_density(self, theta: Array) -> tuple[float, Array]:
        return 0.0, np.zeros_like(theta)

    def precisions(self, information: float) -> Array:
        of_u, summed = self._precisions_of_members(information)
        return np.concatenate([of_u.ravel(), (summed / (2.0 * self.kappa0)).ravel()])


def coordinates_of(base: BaseMeasure[Components], state: MixtureState) -> Coordinates:
    """Make the chart for a state of the mixture, whose components move and whose rest stays."""
    common = (state.assignment, state.n_components, base.kappa0)
    components = state.components
    if isinstance(base, DiagonalBase):
        return _Diagonal(*common, state.scale[np.newaxis], base.nu0, state.scale)
    if isinstance(components, FullComponents):
        variances = components.stds[state.assignment] ** 2
        return _Full(*common, variances, components.factors)
    raise UsageError(f"no coordinates for components of {type(base).__name__}")
