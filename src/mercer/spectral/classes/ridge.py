"""The density of the ridge of one stick given Polya-Gamma variables, coefficients integrated out.

As `mercer.spectral.ridge`, with noise of variance 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.spectral.compiled import tridiagonal_evidence
from mercer.spectral.model import GammaPrior
from mercer.spectral.ridge import RIDGE_LIMITS, reduce_products

__all__ = ["LogisticRidgeDensity", "logistic_ridge_density"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LogisticRidgeDensity:
    """Log posterior density of log ridge, up to a constant.

    Attributes
    ----------
    diagonal, off, b : ndarray of shape (2 M,), (2 M - 1,), (2 M,)
        Tridiagonal T = Q'AQ and Q'c, with A and c what is left of Phi' Omega Phi and Phi' kappa.
    prior : GammaPrior
    """

    diagonal: Array
    off: Array
    b: Array
    prior: GammaPrior

    def __call__(self, log_ridge: float) -> float:
        """Evaluate at one value; minus infinity beyond `RIDGE_LIMITS`."""
        ridge = math.exp(log_ridge)
        if not RIDGE_LIMITS[0] <= ridge <= RIDGE_LIMITS[1]:
            return -math.inf
        log_det, quadratic = tridiagonal_evidence(self.diagonal, self.off, self.b, ridge)
        if not (math.isfinite(log_det) and math.isfinite(quadratic)):
            return -math.inf
        evidence = 0.5 * (quadratic - log_det + len(self.diagonal) * log_ridge)
        return float(evidence + self.prior.shape * log_ridge - self.prior.rate * ridge)


def logistic_ridge_density(
    gram: Array, linear_precisions: Array, prior: GammaPrior
) -> LogisticRidgeDensity:
    """Prepare the density of the ridge from [Phi, H, z]' Omega [Phi, H, z].

    Raises
    ------
    NumericalError
        If the linear part is collinear to working precision.
    """
    diagonal, off, b, _ = reduce_products(gram, linear_precisions)
    return LogisticRidgeDensity(diagonal, off, b, prior)
