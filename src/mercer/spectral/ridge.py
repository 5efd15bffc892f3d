"""Draws of the ridge precision with all coefficients and the noise integrated out.

The linear part is eliminated from the products (a Schur complement), what is left is brought to
tridiagonal form once (dsytrd, its reflectors applied to the targets' column), and each evaluation
of the evidence is then a recursion over 2 M numbers. One slice (Neal 2003, stepping out and
shrinking) on the logarithm of the precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from mercer.errors import NumericalError
from mercer.numerics.cholesky import factorise
from mercer.spectral.compiled import tridiagonal_evidence
from mercer.spectral.model import GammaPrior, RegressionModel

__all__ = ["RIDGE_LIMITS", "RidgeDensity", "draw_ridge", "reduce_products", "ridge_density"]

Array = NDArray[np.float64]

# The prior is cut off here. Below, features of many rows are collinear to double precision.
RIDGE_LIMITS = (1e-12, 1e8)
_WIDTH = 1.0  # of the first slice, on the logarithm
_MOST_STEPS_OUT = 20


@dataclass(frozen=True, eq=False)
class RidgeDensity:
    """Log posterior density of log ridge, up to a constant.

    Attributes
    ----------
    diagonal, off, b : ndarray of shape (2 M,), (2 M - 1,), (2 M,)
        Tridiagonal T = Q'AQ and Q'c, with A and c what is left of Phi'Phi and Phi'y.
    target : float
        What is left of y'y.
    shape, rate : float
        a_n and b_0.
    prior : GammaPrior
    """

    diagonal: Array
    off: Array
    b: Array
    target: float
    shape: float
    rate: float
    prior: GammaPrior

    def __call__(self, log_ridge: float) -> float:
        """Evaluate at one value; minus infinity beyond `RIDGE_LIMITS`."""
        ridge = math.exp(log_ridge)
        if not RIDGE_LIMITS[0] <= ridge <= RIDGE_LIMITS[1]:
            return -math.inf
        log_det, quadratic = tridiagonal_evidence(self.diagonal, self.off, self.b, ridge)
        noise_rate = self.rate + 0.5 * (self.target - quadratic)
        if not (noise_rate > 0.0 and math.isfinite(log_det)):
            return -math.inf
        evidence = -0.5 * log_det - self.shape * math.log(noise_rate)
        evidence += 0.5 * len(self.diagonal) * log_ridge
        return float(evidence + self.prior.shape * log_ridge - self.prior.rate * ridge)


def ridge_density(model: RegressionModel, gram: Array, linear_precision: float) -> RidgeDensity:
    """Prepare the density of the ridge from [Phi, H, y]'[Phi, H, y].

    Raises
    ------
    NumericalError
        If the linear part is collinear to working precision.
    """
    prior = model.ridge_prior
    if prior is None:
        raise ValueError("the ridge is fixed")
    reduced = reduce_products(gram, model.linear_precisions(linear_precision))
    return RidgeDensity(*reduced, model.posterior_shape, model.noise_rate, prior)


def reduce_products(gram: Array, linear_precisions: Array) -> tuple[Array, Array, Array, float]:
    """Eliminate the linear part of [Phi, H, y]'[Phi, H, y], bring the rest to tridiagonal form.

    Returns
    -------
    diagonal, off, b : ndarray of shape (2 M,), (2 M - 1,), (2 M,)
    target : float
        As the attributes of `RidgeDensity`.

    Raises
    ------
    NumericalError
        If the linear part is collinear to working precision.
    """
    p = len(linear_precisions)
    m = len(gram) - p - 1
    features = [*range(m), len(gram) - 1]
    left = np.asfortranarray(gram[np.ix_(features, features)])
    if p:
        inner = np.array(gram[m : m + p, m : m + p], order="F")
        inner[np.arange(p), np.arange(p)] += linear_precisions
        across = np.asfortranarray(gram[np.ix_(range(m, m + p), features)])
        solved = blas.dtrsm(1.0, factorise(inner), across, lower=1)
        left = blas.dsyrk(-1.0, solved, beta=1.0, c=left, trans=1, lower=1, overwrite_c=1)
    packed, diagonal, off, tau, info = lapack.dsytrd(np.asfortranarray(left[:m, :m]), lower=1)
    b = np.array(left[m, :m])
    if m > 1 and info == 0:
        reflectors = np.asfortranarray(packed[1:, :-1])
        column = b[1:, np.newaxis]
        rotated, _, info = lapack.dormqr("L", "T", reflectors, tau, column, max(1, 64))
        b[1:] = rotated[:, 0]
    if info != 0:
        raise NumericalError(f"reduction to tridiagonal form failed ({info})")
    return diagonal, off, b, float(left[m, m])


def draw_ridge(rng: np.random.Generator, density: Callable[[float], float], ridge: float) -> float:
    """Take one slice step on log ridge; leaves the density invariant."""
    x = math.log(ridge)
    level = density(x) + math.log(rng.random())
    low = x - _WIDTH * rng.random()
    high = low + _WIDTH
    # Steps out are shared between the ends at random, as the detailed balance of a limit asks.
    n_low = int(rng.integers(_MOST_STEPS_OUT))
    n_high = _MOST_STEPS_OUT - 1 - n_low
    while n_low > 0 and density(low) > level:
        low, n_low = low - _WIDTH, n_low - 1
    while n_high > 0 and density(high) > level:
        high, n_high = high + _WIDTH, n_high - 1
    while True:
        proposal = low + (high - low) * rng.random()
        if density(proposal) > level:
            return math.exp(proposal)
        low, high = (proposal, high) if proposal < x else (low, proposal)
