"""Laplace's approximation for several classes: mode, log evidence and its adjoint.

**Target.** Psi(f) = log p(y | f) + log p(f) over the latent values f_ci of class c at row i, each
class with its own process f_c ~ N(0, K_c), and p(y | f) the softmax. Its maximum is at f = K a
with a = Y - pi(f), Y one-hot. There, with D_c = diag(pi_c),

    B_c = I + D_c^.5 K_c D_c^.5 = L_c L_c',   E_c = D_c^.5 B_c^-1 D_c^.5,   S = sum_c E_c = M M'
    R b = E_c b_c - E_c S^-1 sum_a E_a b_a                        [= (K + W^-1)^-1 b]
    log Z = -sum a f/2 + sum Y f - sum_i log sum_c e^f - sum_c log |L_c| - log |M| .

**Gradient.** d log Z = sum_c <A_c, dK_c> with V_c = M^-1 E_c, U_c = M^-1 E_c K_c D_c^.5:

    A_c = 1/2 (a_c a_c' + q_c a_c' + a_c q_c' - E_c + V_c'V_c),        q = s2 - R K s2
    s2_ci = -1/2 (v_ci - pi_ci sum_a v_ai),   v_ci = (1 - B_c^-1_ii)(1 - 2 pi_ci)
            + sum_k U_c[k,i]^2 - 2 pi_ci^.5 sum_k U_c[k,i] Z[k,i],     Z = sum_c U_c D_c^.5 .

Since the D_c sum to one and the E_c to M M', Z = M^-1 - M'. Nothing is divided by a probability.

**Deviations.** As in `mercer.gp.binary.laplace`: every mode is sought from f = 0 by direct solves,
so that the evidence is a function of the Gram matrices alone.

**Cost.** For each set of factors C + 1 Cholesky factors and C inverses, three to five sets (ten at
a signal variance of e^12); then C triangular and C symmetric products: O(C n^3). Memory: two stacks
of C matrices of order n.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.errors import NumericalError
from mercer.gp.compiled import weighted_identity_plus
from mercer.gp.several.compiled import (
    add_products,
    add_weighted,
    chord_steps,
    column_sums,
    mirror,
)
from mercer.likelihoods.softmax import class_probabilities, log_likelihood
from mercer.numerics.cholesky import factorise, invert_factored, invert_lower, solve_factored

__all__ = ["Curvature", "SoftmaxFit", "curvature", "fit_softmax"]

Array = NDArray[np.float64]

# As for two classes: the last factors are taken once f is known to the first number, and a step
# below the second, with these, ends within rounding of the mode.
_LAST_FACTORS, _POLISHED = 1e-8, 1e-7
_MAX_STEPS, _MEMORY, _MAX_SETS = 16, 5, 40
_STATIONARY = 1e-6  # the largest |Y - pi - a| of a mode, in units of the latent values
_NO_MODE = "no mode found: the latent values are too large for double precision"


@dataclass(frozen=True)
class Curvature:
    """Factors of I + K W at latent values.

    Attributes
    ----------
    roots : ndarray of shape (C, n)
        D^.5: square roots of the probabilities.
    inverses : ndarray of shape (C, n, n)
        B_c^-1, symmetric.
    M : ndarray of shape (n, n)
        Lower factor of S, Fortran-ordered; what stands above the diagonal has no meaning.
    log_det : float
        Half of log |I + K W|, in nats.
    """

    roots: Array
    inverses: Array
    M: Array
    log_det: float

    def solve(self, b: Array) -> Array:
        """R b for b of shape (C, n)."""
        h = self._weigh(b)
        return h - self._weigh(np.broadcast_to(solve_factored(self.M, h.sum(axis=0)), b.shape))

    def _weigh(self, b: Array) -> Array:
        """E_c b_c."""
        scaled = (self.roots * b)[:, :, np.newaxis]
        return np.asarray(self.roots * np.matmul(self.inverses, scaled)[:, :, 0])


@dataclass(frozen=True)
class SoftmaxFit:
    """Mode and evidence for the Gram matrices, with what gradients and predictions need.

    Attributes
    ----------
    log_evidence : float
        In nats.
    a : ndarray of shape (C, n)
        K_c^-1 f_c at the mode, Y - pi there.
    q : ndarray of shape (C, n)
        K q is the first-order step from the mode to the mean of the posterior.
    f : ndarray of shape (C, n)
        The mode, in logits.
    adjoint : ndarray of shape (C, n, n), or (1, n, n) for a shared Gram matrix
        Symmetric matrices A_c such that d log Z = sum_c <A_c, dK_c>.
    """

    log_evidence: float
    a: Array
    q: Array
    f: Array
    adjoint: Array


def fit_softmax(K: Array, Y: Array, scratch: tuple[Array, Array] | None = None) -> SoftmaxFit:
    """Find the mode for Gram matrices K and one-hot targets Y, and the log evidence.

    Parameters
    ----------
    K : ndarray of shape (C, n, n) or (1, n, n)
        One for each class, or one that all share.
    Y : ndarray of shape (C, n)
        1.0 for the class of a row, else 0.0.
    scratch : two ndarrays of shape (C, n, n), optional
        Overwritten; the first holds the adjoint in the end.

    Raises
    ------
    NumericalError
        If no mode is found: signal variances beyond about e^18.
    """
    if not np.isfinite(K[:, 0, 0]).all():
        raise NumericalError("a Gram matrix is not finite")
    Y = np.ascontiguousarray(Y)
    shape = (len(Y), *K.shape[1:])
    inverses, products = (np.empty(shape), np.empty(shape)) if scratch is None else scratch
    a, f, factors = _find_mode(K, Y, inverses)
    factor_f = f.copy()
    chord_steps(K, *_parts(factors), Y, a, f, _POLISHED, 3, 0)
    proba = class_probabilities(f)
    if not np.abs(Y - proba - a).max() <= _STATIONARY * max(1.0, np.abs(f).max()):
        raise NumericalError(_NO_MODE)
    s2 = _slope(factors, proba, products)
    log_det = factors.log_det - float(np.sum(s2 * (f - factor_f)))
    log_evidence = log_likelihood(Y, f) - 0.5 * float(np.sum(a * f)) - log_det
    q = s2 - factors.solve(_multiply(K, s2))
    return SoftmaxFit(log_evidence, a, q, f, _adjoint(len(K), factors, products, a, q))


def curvature(K: Array, proba: Array, scratch: Array) -> Curvature:
    """Factorise at probabilities ``proba`` (C, n); ``scratch`` (C, n, n) becomes the inverses."""
    roots = np.sqrt(proba)
    S, log_dets = np.zeros(K.shape[1:]), np.empty(len(roots))
    is_alike = len(K) == 1 and bool((roots == roots[0]).all())  # as at f = 0
    for c in range(len(roots)):
        if is_alike and c > 0:
            scratch[c], log_dets[c] = scratch[0], log_dets[0]
        else:
            log_dets[c] = _invert_class(K[c % len(K)], roots[c], scratch[c])
        add_weighted(scratch[c], roots[c], S)
    M = factorise(S.T)
    return Curvature(roots, scratch, M, float(log_dets.sum() + np.log(M.diagonal()).sum()))


def _invert_class(K: Array, roots: Array, out: Array) -> float:
    """Write the inverse of B = I + D^.5 K D^.5 into ``out``; half of log |B|."""
    weighted_identity_plus(K, roots, out)
    L = factorise(out.T)
    log_det = float(np.log(L.diagonal()).sum())
    invert_factored(L)
    mirror(out)
    return log_det


def _find_mode(K: Array, Y: Array, scratch: Array) -> tuple[Array, Array, Curvature]:
    """(a, f, factors), these taken within 1e-8 of the mode, in place of ``scratch``."""
    a, f = np.zeros_like(Y), np.zeros_like(Y)
    factors = curvature(K, class_probabilities(f), scratch)
    for _ in range(_MAX_SETS):
        error, _ = chord_steps(K, *_parts(factors), Y, a, f, _LAST_FACTORS, _MAX_STEPS, _MEMORY)
        if not np.isfinite(error):
            break
        factors = curvature(K, class_probabilities(f), scratch)
        if error < _LAST_FACTORS * max(1.0, np.abs(f).max()):
            return a, f, factors
    raise NumericalError(_NO_MODE)


def _parts(factors: Curvature) -> tuple[Array, Array, Array]:
    return factors.inverses, factors.roots, factors.M.T


def _multiply(K: Array, b: Array) -> Array:
    """K_c b_c."""
    return np.asarray(np.matmul(K, b[:, :, np.newaxis])[:, :, 0])


def _slope(factors: Curvature, proba: Array, products: Array) -> Array:
    """s2 = -1/2 d log |I + K W| / df, (C, n); ``products`` becomes the stack of V_c'."""
    inverses, roots = factors.inverses, factors.roots
    inverse_M = invert_lower(factors.M)
    difference = inverse_M.T - np.tril(factors.M)
    squares, mixed = np.empty_like(roots), np.empty_like(roots)
    for c, N in enumerate(products):
        np.multiply(inverses[c], roots[c], out=N)
        blas.dtrmm(1.0, inverse_M, N.T, lower=1, overwrite_b=1)  # N_c = M^-1 D_c^.5 B_c^-1
        column_sums(N, inverse_M.T, difference, roots[c], squares[c], mixed[c])
    gain = 1.0 - np.diagonal(inverses, axis1=1, axis2=2)
    v = gain * (1.0 - 2.0 * proba) + squares - 2.0 * roots * mixed
    return np.asarray(-0.5 * (v - proba * v.sum(axis=0)))


def _adjoint(n_grams: int, factors: Curvature, products: Array, a: Array, q: Array) -> Array:
    """Overwrite the inverses by the A_c, or the first of them by their sum."""
    inverses, roots = factors.inverses, factors.roots
    inverses *= roots[:, :, np.newaxis]
    inverses *= roots[:, np.newaxis, :]
    if n_grams == 1:
        inverses[0] = inverses.sum(axis=0)
    adjoint = inverses[:n_grams]
    for c in range(len(roots)):
        A = adjoint[c % n_grams]
        share = -0.5 if c < n_grams else 1.0
        blas.dsyrk(0.5, products[c].T, beta=share, c=A.T, trans=1, lower=1, overwrite_c=1)
        add_products(A, a[c], q[c])
    for A in adjoint:
        mirror(A)
    return adjoint
