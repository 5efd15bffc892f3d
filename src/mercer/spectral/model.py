"""Bayesian linear regression on Fourier features, noise and coefficients integrated out.

**Model** (section 2.2 of the paper, conjugate form). y = Phi beta + H gamma + noise, with

    beta | s2 ~ N(0, s2 / ridge I)        features, shape (2 M,)
    gamma | s2 ~ N(0, s2 Lambda_H^-1)     linear part: a nearly flat intercept, a precision for
                                          the inputs
    s2 ~ IG(a_0, b_0)

**Evidence**, eq. (11) with the constant it leaves out: Lambda_n = F'F + Lambda_0 for F = [Phi, H],
mu_n = Lambda_n^-1 F'y, a_n = a_0 + n / 2, b_n = b_0 + (y'y - y'F Lambda_n^-1 F'y) / 2,

    log p(y) = -n/2 log 2 pi + a_0 log b_0 - a_n log b_n + log Gamma(a_n) / Gamma(a_0)
               + log|Lambda_0| / 2 - log|Lambda_n| / 2

b_n comes from the last pivot of the Cholesky factor of [F, y]'[F, y] with Lambda_0 added: no
difference of large numbers.

**Deviation.** The paper prints a prior N(mu_beta, sigma I) for beta in one place and Lambda_0 = I/2
relative to the noise in another; only the second gives eq. (11).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import gammaln

from mercer.numerics.cholesky import factorise

__all__ = ["Coefficients", "GammaPrior", "RegressionModel", "coefficients"]

Array = NDArray[np.float64]

# Of the intercept, relative to the noise variance: targets are centred, so this is nearly flat.
_INTERCEPT_PRECISION = 1e-4


@dataclass(frozen=True)
class GammaPrior:
    """Gamma(shape, rate)."""

    shape: float
    rate: float


@dataclass(frozen=True)
class RegressionModel:
    """What is fixed of the regression.

    Attributes
    ----------
    n_rows : int
    n_linear : int
        p: columns of H, an intercept and the inputs, or none.
    noise_shape, noise_rate : float
        a_0 and b_0 of the noise variance, in squared units of the standardised target.
    ridge_prior : GammaPrior or None
        Of the precision of the features' coefficients; None keeps it as it is.
    linear_prior : GammaPrior
        Of the precision of the inputs' coefficients.
    """

    n_rows: int
    n_linear: int
    noise_shape: float
    noise_rate: float
    ridge_prior: GammaPrior | None
    linear_prior: GammaPrior

    @property
    def posterior_shape(self) -> float:
        """a_n."""
        return self.noise_shape + 0.5 * self.n_rows

    def linear_precisions(self, linear_precision: float) -> Array:
        """Diagonal of Lambda_H, shape (p,)."""
        if self.n_linear == 0:
            return np.empty(0)
        return np.array([_INTERCEPT_PRECISION] + [linear_precision] * (self.n_linear - 1))

    def prior_precisions(self, n_features: int, ridge: float, linear_precision: float) -> Array:
        """Diagonal of Lambda_0, shape (2 M + p,)."""
        return np.concatenate(
            [np.full(n_features, ridge), self.linear_precisions(linear_precision)]
        )

    def log_evidence(self, log_det_ratio: float, rate: float) -> float:
        """log p(y | W) in nats.

        Parameters
        ----------
        log_det_ratio : float
            log|Lambda_n| - log|Lambda_0|.
        rate : float
            b_n.
        """
        a0, an = self.noise_shape, self.posterior_shape
        constant = -0.5 * self.n_rows * math.log(2.0 * math.pi) + gammaln(an) - gammaln(a0)
        ratio = a0 * math.log(self.noise_rate) - an * math.log(rate) - 0.5 * log_det_ratio
        return float(constant + ratio)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """The law of the coefficients given frequencies and precisions.

    Attributes
    ----------
    mean : ndarray of shape (2 M + p,)
        mu_n.
    factor : ndarray of shape (2 M + p, 2 M + p)
        Lower Cholesky factor of Lambda_n, Fortran-ordered.
    rate : float
        b_n.
    log_evidence : float
        In nats.
    """

    mean: Array
    factor: Array
    rate: float
    log_evidence: float

    def draw(self, rng: np.random.Generator, posterior_shape: float, n: int) -> tuple[float, Array]:
        """Draw the noise variance and, given it, n deviations beta - mu_n, shape (n, 2 M + p)."""
        noise_variance = self.rate / rng.gamma(posterior_shape)
        z = rng.standard_normal((len(self.mean), n))
        return noise_variance, math.sqrt(noise_variance) * self.deviations(z).T

    def deviations(self, z: Array) -> Array:
        """Turn standard normals (2 M + p, k) into draws of beta - mu_n for s2 = 1."""
        deviations, _ = lapack.dtrtrs(self.factor, z, lower=1, trans=1)
        return np.asarray(deviations)


def coefficients(model: RegressionModel, gram: Array, prior_precisions: Array) -> Coefficients:
    """Solve the regression from [F, y]'[F, y].

    Raises
    ------
    NumericalError
        If the features are collinear to working precision.
    """
    m = len(prior_precisions)
    bordered = np.array(gram, order="F")
    bordered[np.arange(m), np.arange(m)] += prior_precisions
    bordered[m, m] += 2.0 * model.noise_rate
    factor = factorise(bordered)
    inner, solved = np.asfortranarray(factor[:m, :m]), factor[m, :m]
    rate = 0.5 * float(factor[m, m]) ** 2
    mean, _ = lapack.dtrtrs(inner, solved, lower=1, trans=1)
    log_det_ratio = 2.0 * np.log(np.diag(inner)).sum() - np.log(prior_precisions).sum()
    evidence = model.log_evidence(float(log_det_ratio), rate)
    return Coefficients(np.asarray(mean), inner, rate, evidence)
