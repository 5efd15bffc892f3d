"""Frequencies of a mixture of normals, as a function of its parameters, and gradients back to them.

With unit draws w_kj ~ N(0, I) that are made once and kept, component k has the frequencies

    omega_kj = M_k w_kj + mu_k

with a matrix M_k of any kind, or diag(exp(s_k)) for a diagonal one. The vector of parameters holds
all M_k (or s_k), row by row, then all mu_k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FrequencyMixture", "draw_mixture"]

Array = NDArray[np.float64]

# Length scales of the components at the start, in typical distances, from the first to the last.
_WIDEST, _NARROWEST = 2.0, 0.5


@dataclass(frozen=True, eq=False)
class FrequencyMixture:
    """Unit draws, and how parameters move them.

    Attributes
    ----------
    draws : ndarray of shape (K, D, d)
    is_full : bool
        Whether M_k is a full matrix.
    """

    draws: Array
    is_full: bool

    @property
    def n_components(self) -> int:
        """K."""
        return len(self.draws)

    @property
    def n_frequencies(self) -> int:
        """F = K D."""
        return int(np.prod(self.draws.shape[:2]))

    def start(self, distance: float) -> Array:
        """Return parameters of components around 0, their length scales apart.

        Parameters
        ----------
        distance : float
            Typical distance of two rows; length scales are half of it to twice as much.
        """
        K, _, d = self.draws.shape
        lengths = distance * np.geomspace(_WIDEST, _NARROWEST, K) if K > 1 else np.array([distance])
        if self.is_full:
            spreads = (np.eye(d) / lengths[:, np.newaxis, np.newaxis]).ravel()
        else:
            spreads = np.repeat(-np.log(lengths), d)
        return np.append(spreads, np.zeros(K * d))

    def frequencies(self, theta: Array) -> Array:
        """Return omega, of shape (F, d), component after component."""
        K, _, d = self.draws.shape
        spreads, shifts = self._parts(theta)
        if self.is_full:
            moved = self.draws @ spreads.transpose(0, 2, 1)
        else:
            moved = self.draws * np.exp(spreads)[:, np.newaxis]
        return np.ascontiguousarray((moved + shifts.reshape(K, 1, d)).reshape(-1, d))

    def pull_back(self, theta: Array, gradient: Array) -> Array:
        """Return the gradient with respect to theta, given that with respect to omega (F, d)."""
        by_component = gradient.reshape(self.draws.shape)
        spreads, _ = self._parts(theta)
        if self.is_full:
            of_spreads = by_component.transpose(0, 2, 1) @ self.draws
        else:
            of_spreads = (by_component * self.draws).sum(axis=1) * np.exp(spreads)
        return np.append(of_spreads.ravel(), by_component.sum(axis=1).ravel())

    def _parts(self, theta: Array) -> tuple[Array, Array]:
        """Return M (K, d, d) or s (K, d), and mu (K, d)."""
        K, _, d = self.draws.shape
        n_shifts = K * d
        shape = (K, d, d) if self.is_full else (K, d)
        return theta[:-n_shifts].reshape(shape), theta[-n_shifts:].reshape(K, d)


def draw_mixture(
    rng: np.random.Generator, n_components: int, n_each: int, d: int, is_full: bool
) -> FrequencyMixture:
    """Draw the unit draws of so many components, with so many frequencies each."""
    return FrequencyMixture(rng.standard_normal((n_components, n_each, d)), is_full)
