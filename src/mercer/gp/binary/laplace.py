"""Laplace's approximation for a binary GP classifier: mode, log evidence and its adjoint.

**Target.** Psi(f) = log p(y | f) + log p(f) has its maximum at f = K a with a = y - pi(f)
(eqs. 5 to 7); with W = diag(pi (1 - pi)) and B = I + W^.5 K W^.5 = L L' there (eq. 10)

    log Z = -a'f/2 + sum( y f - log(1 + e^f) ) - sum log L_ii .

**Symbols** (paper -> code): y -> f, t -> y, pi -> proba, Q -> K.

**Deviations.** The paper stops Newton's method when W changes by 1e-4, and solves its systems by
conjugate gradients from the last solution; the energy of a trajectory must be a function of the
hyperparameters alone, so every mode is sought from f = 0 by direct solves, to rounding (to 1e-6 of
a beyond a signal variance of e^12). At f = 0 the curvature is largest: its factor serves the first
steps, which are accelerated, and a new factor is taken only when they slow down.

**Cost.** Two to four Cholesky factors, and one inverse for the adjoint: O(n^3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.gp.compiled import chord_steps, evidence_adjoint, weighted_identity_plus
from mercer.likelihoods.logistic import log_likelihood, success_probability
from mercer.numerics.cholesky import factorise, invert_factored, symmetric_product

__all__ = ["LaplaceFit", "curvature_factor", "fit_laplace"]

Array = NDArray[np.float64]

# The last factor is taken once f is known to this; its own first step then leaves an error of the
# order of the square, and B^-1 differs from that at the mode by no more than this.
_LAST_FACTOR = 1e-8
_POLISHED = 1e-7  # a step below this, with that factor, ends within rounding of the mode
_MAX_STEPS, _MEMORY, _MAX_FACTORS = 16, 5, 60


@dataclass(frozen=True)
class LaplaceFit:
    """Mode and evidence for one Gram matrix, with what its gradient and predictions need.

    Attributes
    ----------
    log_evidence : float
        Eq. (10), in nats.
    a : ndarray of shape (n,)
        K^-1 f at the mode, y - pi there.
    q : ndarray of shape (n,)
        K q is the first-order step from the mode to the mean of the posterior.
    gain : ndarray of shape (n,)
        1 - diag B^-1: the variance of Laplace's posterior of f, times W.
    f : ndarray of shape (n,)
        The mode, in logits.
    adjoint : ndarray of shape (n, n)
        Symmetric matrix A such that d log Z = sum A_ij dK_ij.
    """

    log_evidence: float
    a: Array
    q: Array
    f: Array
    gain: Array
    adjoint: Array


def fit_laplace(K: Array, y: Array, scratch: Array | None = None) -> LaplaceFit:
    """Find the mode for the Gram matrix K and targets y in {0, 1}, and the log evidence.

    ``scratch``, of the shape of K, is overwritten where given: it becomes the adjoint.

    Raises
    ------
    NumericalError
        If no mode is found: K holds numbers too large for double precision.
    """
    if not np.isfinite(K[0, 0]):
        raise NumericalError("the Gram matrix is not finite")
    B = np.empty_like(K) if scratch is None else scratch
    a, f, L, root_weights = _find_mode(K, y, B.T)
    factor_f = f.copy()
    chord_steps(K, L.T, root_weights, y, a, f, _POLISHED, 3, 0)
    log_det = np.log(L.diagonal()).sum()
    inverse = invert_factored(L)
    proba = success_probability(f)
    # s2 = -1/2 d log|B|/df. No division by W: safe where a probability is 0 or 1.
    gain = 1.0 - inverse.diagonal()
    s2 = -0.5 * gain * (1.0 - 2.0 * proba)
    log_det -= s2 @ (f - factor_f)
    log_evidence = -0.5 * (a @ f) + log_likelihood(y, f) - log_det
    q = s2 - root_weights * symmetric_product(inverse, root_weights * (K @ s2))
    adjoint = inverse.T
    evidence_adjoint(adjoint, root_weights, a, q)
    return LaplaceFit(float(log_evidence), a, q, f, gain, adjoint)


def curvature_factor(K: Array, a: Array, y: Array, scratch: Array) -> tuple[Array, Array]:
    """Factor L of B at the mode whose dual coefficients are ``a``, and W^.5: for predictions.

    ``scratch``, of the shape of K, is overwritten and holds L.
    """
    proba = y - a
    root_weights = np.sqrt(np.maximum(proba * (1.0 - proba), 0.0))
    return _factor(K, root_weights, scratch.T), root_weights


def _find_mode(K: Array, y: Array, B: Array) -> tuple[Array, Array, Array, Array]:
    """Eqs. (5) to (7): (a, f, L, W^.5), L factorised within 1e-8 of the mode, in place of B."""
    n = len(y)
    a, f = np.zeros(n), np.zeros(n)
    root_weights = np.full(n, 0.5)
    for _ in range(_MAX_FACTORS):
        L = _factor(K, root_weights, B)
        error, _ = chord_steps(K, L.T, root_weights, y, a, f, _LAST_FACTOR, _MAX_STEPS, _MEMORY)
        if not np.isfinite(error):
            break
        proba = success_probability(f)
        root_weights = np.sqrt(proba * (1.0 - proba))
        if error < _LAST_FACTOR * max(1.0, np.abs(f).max()):
            return a, f, _factor(K, root_weights, B), root_weights
    raise NumericalError("no mode found: the latent values are too large for double precision")


def _factor(K: Array, root_weights: Array, B: Array) -> Array:
    """Overwrite B by the factor of I + W^.5 K W^.5."""
    weighted_identity_plus(K, root_weights, B.T)
    return factorise(B)
