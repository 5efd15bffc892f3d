"""Finite features of a classifier: the inputs themselves, or a map of them, plus a constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.features.base import FeatureMap

__all__ = ["FiniteFeatures"]

Array = NDArray[np.float64]

# Rows that the scale is taken from.
_SCALE_ROWS = 16384


@dataclass(frozen=True)
class FiniteFeatures:
    """phi(x) = [map(x) / sqrt(scale), sqrt(constant)].

    Attributes
    ----------
    map : FeatureMap or None
        None for the inputs themselves: a linear classifier.
    scale : float
        Mean squared norm of the mapped training rows.
    constant : float
        Variance of the intercept; 0 for none.
    """

    map: FeatureMap | None
    scale: float
    constant: float

    def __call__(self, X: Array) -> Array:
        """Features of the rows of X: shape (m, r)."""
        Phi = X if self.map is None else self.map.features(X)
        Phi = Phi / np.sqrt(self.scale)
        if self.constant > 0.0:
            Phi = np.column_stack([Phi, np.full(len(Phi), np.sqrt(self.constant))])
        return np.ascontiguousarray(Phi)

    @classmethod
    def fitted(cls, feature_map: FeatureMap | None, X: Array, constant: float) -> FiniteFeatures:
        """Scale to the training rows X: their mean squared norm becomes 1, the constant aside.

        Of many rows some, evenly spaced, are enough.
        """
        some = X[:: max(1, len(X) // _SCALE_ROWS)].astype(np.float64)
        Phi = some if feature_map is None else feature_map.features(some)
        scale = float(np.einsum("ij,ij->", Phi, Phi) / len(Phi))
        return cls(feature_map, scale if scale > 0.0 else 1.0, constant)
