"""The state of the mixture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.spectral.mixture.base import Array, Components, Labels

__all__ = ["MixtureState"]


@dataclass(frozen=True)
class MixtureState:
    """Which component each frequency comes from, and what the components are.

    Attributes
    ----------
    assignment : ndarray of shape (M,), int64
        Z, in 0, .., K - 1; each component has a member.
    components : DiagonalComponents or FullComponents
        K of them.
    scale : ndarray
        Of the base measure: shape (d,) for a diagonal one, (1,) for a full one.
    concentration : float
    """

    assignment: Labels
    components: Components
    scale: Array
    concentration: float

    @property
    def n_components(self) -> int:
        """K."""
        return self.components.n_components

    @property
    def means(self) -> Array:
        """mu_k, shape (K, d)."""
        return self.components.means

    @property
    def counts(self) -> NDArray[np.int64]:
        """Members of each component, shape (K,)."""
        return np.bincount(self.assignment, minlength=self.n_components)
