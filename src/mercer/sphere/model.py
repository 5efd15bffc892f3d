"""The posterior of a classifier in feature space, given labels that may be wrong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import LabelNoise

__all__ = ["SphereModel", "signed_rows"]

Array = NDArray[np.float64]

# A row that must be right is given this much where rounding put it on its wall.
_TOUCH = 1e-12


def signed_rows(L: Array, labels: NDArray[np.int64]) -> Array:
    """Multiply the rows of the feature space by labels 0 -> -1 and 1 -> +1."""
    return np.asarray(np.where(labels[:, np.newaxis] == 1, L, -L))


@dataclass(frozen=True)
class SphereModel:
    """Density N(g; 0, I) exp(-cost of the rows with L_i g <= 0): the Gaussian lift of eq. (2).

    The direction g / |g| has the paper's posterior: its prior is uniform on the sphere, and the
    likelihood does not depend on |g|.

    Attributes
    ----------
    L : ndarray of shape (n, r)
        Rows of the feature space, labels multiplied in.
    noise : LabelNoise
    """

    L: Array
    noise: LabelNoise

    @property
    def n_rows(self) -> int:
        """Number of rows n."""
        return len(self.L)

    @property
    def rank(self) -> int:
        """Dimension r of the feature space."""
        return int(self.L.shape[1])

    @cached_property
    def table(self) -> Array:
        """What an event of `reflect_and_refract` adds: row j is [L L_j; L_j], (n, n + r)."""
        n, r = self.L.shape
        table = np.empty((n, n + r))
        np.matmul(self.L, self.L.T, out=table[:, :n])
        table[:, n:] = self.L
        return table

    def point(self, g: Array) -> Array:
        """[f; g] with f = L g; rows that must be right are, where rounding alone denied it."""
        f = self.L @ g
        f[self.noise.must_be_right & (f <= 0.0)] = _TOUCH
        return np.concatenate([f, g])

    def extended(self, Z: Array) -> Array:
        """[L z; z] for each row z of Z, shape (k, n + r): one matrix product."""
        return np.concatenate([Z @ self.L.T, Z], axis=1)

    def log_likelihood(self, f: Array) -> Array:
        """Log probability of the labels at latent values f of shape (..., n), in nats; eq. (3)."""
        return self.noise.log_no_errors - self.noise.cost(f <= 0.0)
