"""The exact evidence of targets under a Gaussian process with Gaussian noise, and its adjoint.

**Target.** y ~ N(0, C), C = K + v 11' + s2 I = L L', where v is the prior variance of an intercept
that is integrated out:

    log p(y) = -y'a/2 - sum log L_ii - n/2 log 2 pi,    a = C^-1 y,
    d log p(y) = sum A_ij dC_ij,    A = (a a' - C^-1)/2 .

**Cost.** One Cholesky factor and one inverse: O(n^3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.gp.compiled import evidence_adjoint
from mercer.numerics.cholesky import factorise, invert_factored, solve_factored

__all__ = ["ExactFit", "fit_exact", "noisy_factor"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ExactFit:
    """Evidence for one Gram matrix, with what its gradient and predictions need.

    Attributes
    ----------
    log_evidence : float
        In nats.
    dual_coef : ndarray of shape (n,)
        a = C^-1 y: the mean at a new row is (k + v 1)'a.
    adjoint : ndarray of shape (n, n)
        Symmetric matrix A such that d log p(y) = sum A_ij dC_ij.
    """

    log_evidence: float
    dual_coef: Array
    adjoint: Array


def fit_exact(
    K: Array, y: Array, noise_variance: float, scratch: Array, intercept_variance: float = 0.0
) -> ExactFit:
    """Compute the evidence of targets y (n,) for the Gram matrix K (n, n).

    ``scratch``, of the shape of K, is overwritten: it becomes the adjoint.

    Raises
    ------
    NumericalError
        If C is not positive definite in double precision.
    """
    n = len(y)
    L = noisy_factor(K, noise_variance, scratch, intercept_variance)
    a = solve_factored(L, y)
    log_det_half = np.log(L.diagonal()).sum()
    log_evidence = -0.5 * (y @ a) - log_det_half - 0.5 * n * math.log(2.0 * math.pi)
    adjoint = invert_factored(L).T
    evidence_adjoint(adjoint, np.ones(n), a, np.zeros(n))
    return ExactFit(float(log_evidence), a, adjoint)


def noisy_factor(
    K: Array, noise_variance: float, scratch: Array, intercept_variance: float = 0.0
) -> Array:
    """Factor L of K + v 11' + s2 I, Fortran-ordered, in the memory of ``scratch``.

    Raises
    ------
    NumericalError
        If it is not positive definite in double precision.
    """
    np.add(K, intercept_variance, out=scratch)
    scratch.ravel()[:: len(K) + 1] += noise_variance
    return factorise(scratch.T)
