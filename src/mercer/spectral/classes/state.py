"""Where a chain of classes stands, and what its warm-up changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.spectral.mixture.state import MixtureState
from mercer.spectral.proposals import ProposalTuning

__all__ = ["ClassState", "ClassTuning"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ClassState:
    """Where the chain stands; K functions.

    Attributes
    ----------
    frequencies : ndarray of shape (M, d)
    mean : ndarray of shape (K, 2 M + p)
        Of the coefficients given frequencies and the last omega.
    deviations : ndarray of shape (K, k, 2 M + p)
        Draws around that mean; the first one is the chain's.
    ridge, linear_precision : ndarray of shape (K,)
    mixture : MixtureState
    log_likelihood : float
        In nats.
    """

    frequencies: Array
    mean: Array
    deviations: Array
    ridge: Array
    linear_precision: Array
    mixture: MixtureState
    log_likelihood: float

    @property
    def coef(self) -> Array:
        """The coefficients, shape (K, 2 M + p)."""
        return self.mean + self.deviations[:, 0]


@dataclass(frozen=True)
class ClassTuning(ProposalTuning):
    """The step of the proposals, and that of the trajectories before sweeps."""

    trajectory: float = 0.1
