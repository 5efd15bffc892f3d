"""Logistic regression on Fourier features given Polya-Gamma variables, coefficients integrated out.

**Model.** For the rows of one stick (`mercer.spectral.classes.labels`), t_i in {0, 1},

    p(t_i = 1) = 1 / (1 + e^-f_i),   f = Phi beta + H gamma
    beta ~ N(0, I / ridge)           features, shape (2 M,)
    gamma ~ N(0, Lambda_H^-1)        linear part: an intercept, a precision for the inputs

**Augmentation** [1]_. With kappa_i = t_i - 1/2 and omega_i ~ PG(1, 0),

    p(t_i | f_i) = 1/2 E exp(kappa_i f_i - omega_i f_i^2 / 2),   omega_i | f_i ~ PG(1, f_i),

so that given omega this is the regression of targets z_i = kappa_i / omega_i with noise of variance
1 / omega_i: F = [Phi, H], Lambda_n = F' Omega F + Lambda_0, m = F' Omega z = F' kappa (kappa is not
multiplied by omega), beta ~ N(Lambda_n^-1 m, Lambda_n^-1), and

    log p(t | W, omega) = -n log 2 + log|Lambda_0| / 2 - log|Lambda_n| / 2 + m' Lambda_n^-1 m / 2

There is no noise variance to be integrated out: the ratio of eq. (12) is that of these, not that of
normal-inverse-gamma evidences.

References
----------
.. [1] N. G. Polson, J. G. Scott and J. Windle, "Bayesian Inference for Logistic Models Using
   Polya-Gamma Latent Variables", JASA 2013.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from mercer.numerics.cholesky import factorise
from mercer.spectral.model import GammaPrior

__all__ = ["LogisticCoefficients", "LogisticModel", "logistic_coefficients"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LogisticModel:
    """What is fixed of the regressions of all sticks.

    Attributes
    ----------
    n_linear : int
        p: columns of H, an intercept and the inputs, or none.
    ridge_prior : GammaPrior or None
        Of the precision of the features' coefficients; None keeps it as it is.
    linear_prior : GammaPrior
        Of the precision of the inputs' coefficients.
    intercept_precision : float
        The default is a standard deviation of 10 logits: shares of classes are left to the data.
    """

    n_linear: int
    ridge_prior: GammaPrior | None
    linear_prior: GammaPrior
    intercept_precision: float = 1e-2

    def linear_precisions(self, linear_precision: float) -> Array:
        """Diagonal of Lambda_H, shape (p,)."""
        if self.n_linear == 0:
            return np.empty(0)
        return np.array([self.intercept_precision] + [linear_precision] * (self.n_linear - 1))

    def prior_precisions(self, n_features: int, ridge: float, linear_precision: float) -> Array:
        """Diagonal of Lambda_0, shape (2 M + p,)."""
        linear = self.linear_precisions(linear_precision)
        return np.concatenate([np.full(n_features, ridge), linear])

    def precisions_of_all(self, n_features: int, ridges: Array, linear_precisions: Array) -> Array:
        """Those of every function, shape (K, 2 M + p), from precisions of shape (K,)."""
        return np.stack(
            [
                self.prior_precisions(n_features, float(ridge), float(linear))
                for ridge, linear in zip(ridges, linear_precisions, strict=True)
            ]
        )


@dataclass(frozen=True, eq=False)
class LogisticCoefficients:
    """The law of the coefficients of one stick given frequencies, precisions and omega.

    Attributes
    ----------
    mean : ndarray of shape (2 M + p,)
        Lambda_n^-1 m.
    factor : ndarray of shape (2 M + p, 2 M + p)
        Lower Cholesky factor of Lambda_n, Fortran-ordered.
    log_evidence : float
        log p(t | W, omega) + n log 2, in nats.
    """

    mean: Array
    factor: Array
    log_evidence: float

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw n deviations beta - mean, shape (n, 2 M + p)."""
        z = rng.standard_normal((len(self.mean), n))
        deviations, _ = lapack.dtrtrs(self.factor, z, lower=1, trans=1)
        return np.asarray(deviations).T


def logistic_coefficients(gram: Array, prior_precisions: Array) -> LogisticCoefficients:
    """Solve the regression from [F, z]' Omega [F, z].

    Raises
    ------
    NumericalError
        If the features are collinear to working precision.
    """
    m = len(prior_precisions)
    inner = np.array(gram[:m, :m], order="F")
    inner[np.arange(m), np.arange(m)] += prior_precisions
    factor = factorise(inner)
    solved, _ = lapack.dtrtrs(factor, gram[:m, m], lower=1)
    mean, _ = lapack.dtrtrs(factor, solved, lower=1, trans=1)
    log_det_ratio = 2.0 * np.log(np.diag(factor)).sum() - np.log(prior_precisions).sum()
    evidence = 0.5 * float(solved @ solved) - 0.5 * float(log_det_ratio)
    if not math.isfinite(evidence):
        evidence = -math.inf
    return LogisticCoefficients(np.asarray(mean), factor, evidence)
