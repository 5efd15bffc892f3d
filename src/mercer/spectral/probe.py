"""Where the kernel and the function of each draw are looked at, for the diagnostics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.features.products import fill_features

__all__ = ["Probe", "design", "feature_kernel"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Probe:
    """Fixed lags and rows.

    Attributes
    ----------
    lags : ndarray of shape (10, d)
        Differences of standardised inputs.
    rows : ndarray of shape (20, d)
        Standardised inputs.
    has_linear_part : bool
    """

    lags: Array
    rows: Array
    has_linear_part: bool

    def kernel(self, frequencies: Array) -> Array:
        """Kernel at the lags, shape (10,)."""
        return feature_kernel(frequencies, self.lags)

    def function(self, frequencies: Array, coef: Array) -> Array:
        """Function values at the rows, standardised, shape (20,)."""
        return np.asarray(coef @ design(frequencies, self.rows, self.has_linear_part))


def feature_kernel(frequencies: Array, lags: Array) -> Array:
    """Return phi(x)'phi(x + t) = (1/M) sum_j cos(W_j't) at lags t (n, d): eq. (2), shape (n,)."""
    return np.asarray(np.cos(lags @ frequencies.T).mean(axis=1))


def design(frequencies: Array, X: Array, has_linear_part: bool) -> Array:
    """Features, intercept and inputs of rows X (b, d), as rows: shape (2 M + p, b)."""
    m2 = 2 * len(frequencies)
    out = np.empty((m2 + (1 + X.shape[1] if has_linear_part else 0), len(X)))
    fill_features(frequencies, X, out[:m2])
    if has_linear_part:
        out[m2] = 1.0
        out[m2 + 1 :] = X.T
    return out
