"""The accept loop of one sweep: every frequency in its turn, from products computed once.

**Task.** Frequency j is replaced by its proposal with probability min(1, p(y | W*) / p(y | W)), all
others as they stand at its turn: new ones before it, old ones after it (eqs. (9), (10)). All inner
products of current features, proposed features and targets are known.

**Recursive halving.** To decide the first half, the current columns of the second half are
eliminated (a Schur complement); to decide the second half, the columns just chosen in the first.
Each half goes on in the same way, down to one frequency: a 5 x 5 matrix whose entries give the
ratio of evidences. Nothing is updated, so nothing drifts; O(M^3) in all, nearly all of it in
triangular solves and products of matrices.

The decisions are those of the single-site chain, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.errors import NumericalError
from mercer.numerics.cholesky import factorise
from mercer.spectral.compiled import assemble, decide_few, decide_few_together, gather

__all__ = ["Decisions", "decide", "decide_together", "join"]

Array = NDArray[np.float64]

# Frequencies that one compiled call decides: below, calls of BLAS cost more than they save.
_FEW = 12


@dataclass(frozen=True, eq=False)
class Decisions:
    """What became of the proposals: both ndarrays of shape (M,)."""

    is_accepted: NDArray[np.bool_]
    log_ratio: Array


# Decides a few frequencies: all products, logarithms of uniform variables, what is to be written.
_Few = Callable[[tuple[Array, ...], Array, Decisions], None]


def join(gram: Array, among: Array, across: Array, ridge: float, linear_precisions: Array) -> Array:
    """Lay out all products for `decide`, what is always in the model eliminated.

    Parameters
    ----------
    gram : ndarray of shape (2 M + p + 1, 2 M + p + 1)
        Of [current features, linear columns, targets].
    among, across : ndarray of shape (2 M, 2 M) and (2 M, 2 M + p + 1)
        Of the proposed features, with each other and with those columns.
    ridge : float
    linear_precisions : ndarray of shape (p,)
        Prior precisions of the coefficients of the linear columns.

    Returns
    -------
    ndarray of shape (4 M + 1, 4 M + 1)
        The lower triangle, Fortran-ordered.
    """
    p, width = len(linear_precisions), 2 * len(among) + 1
    joint = np.empty((width, width), order="F")
    linear = np.empty((p, width), order="F")
    assemble(gram, among, across, ridge, p, joint, linear)
    if p == 0:
        return joint
    inner = np.array(gram[-p - 1 : -1, -p - 1 : -1], order="F")
    inner[np.arange(p), np.arange(p)] += linear_precisions
    solved = blas.dtrsm(1.0, factorise(inner), linear, lower=1, overwrite_b=1)
    reduced: Array = blas.dsyrk(-1.0, solved, beta=1.0, c=joint, trans=1, lower=1, overwrite_c=1)
    return reduced


def decide(joint: Array, log_uniform: Array, shape: float, rate: float) -> Decisions:
    """Accept or reject each proposal in its turn.

    Parameters
    ----------
    joint : ndarray of shape (4 M + 1, 4 M + 1)
        Products, Fortran-ordered, lower triangle; columns 4 j, 4 j + 1 are the current features of
        frequency j, 4 j + 2, 4 j + 3 the proposed ones, the ridge on the diagonal of both; the last
        row belongs to the targets. What is always in the model has been eliminated.
    log_uniform : ndarray of shape (M,)
        Logarithms of uniform variables.
    shape, rate : float
        a_n = a_0 + n / 2 and b_0 of the noise variance.

    Raises
    ------
    NumericalError
        If the current features are collinear to working precision.
    """

    def few(joints: tuple[Array, ...], log_uniform: Array, found: Decisions) -> None:
        decide_few(joints[0], log_uniform, shape, rate, found.is_accepted, found.log_ratio)

    return _all_of((joint,), log_uniform, few)


def decide_together(joints: tuple[Array, ...], log_uniform: Array) -> Decisions:
    """Decide each proposal for several regressions at once: their log ratios add.

    The regressions have the same frequencies and targets of their own, and noise of variance 1.

    Parameters
    ----------
    joints : tuple of ndarray of shape (4 M + 1, 4 M + 1)
        As in `decide`, one for each regression.
    log_uniform : ndarray of shape (M,)

    Raises
    ------
    NumericalError
        If the current features are collinear to working precision.
    """

    def few(joints: tuple[Array, ...], log_uniform: Array, found: Decisions) -> None:
        stack = np.array(joints, order="C")  # one layout: the loop calls itself
        decide_few_together(stack, log_uniform, found.is_accepted, found.log_ratio)

    return _all_of(joints, log_uniform, few)


def _all_of(joints: tuple[Array, ...], log_uniform: Array, few: _Few) -> Decisions:
    m = len(log_uniform)
    decisions = Decisions(np.zeros(m, dtype=bool), np.empty(m))
    _decide(joints, log_uniform, few, decisions)
    if np.isnan(decisions.log_ratio).any():
        raise NumericalError(
            "the features are collinear to working precision: the ridge is too low"
        )
    return decisions


def _decide(joints: tuple[Array, ...], log_uniform: Array, few: _Few, decisions: Decisions) -> None:
    m = len(log_uniform)
    is_accepted, log_ratio = decisions.is_accepted, decisions.log_ratio
    if m <= _FEW:
        few(joints, log_uniform, decisions)
        return
    h = m // 2
    for half, other in ((slice(0, h), slice(h, m)), (slice(h, m), slice(0, h))):
        schurs = tuple(_eliminate(joint, other, is_accepted[other], half) for joint in joints)
        _decide(schurs, log_uniform[half], few, Decisions(is_accepted[half], log_ratio[half]))


def _eliminate(joint: Array, other: slice, is_accepted: NDArray[np.bool_], half: slice) -> Array:
    """Return the Schur complement of one half, the other one standing as it does now."""
    first = 4 * np.arange(other.start, other.stop) + 2 * is_accepted
    gone = (first[:, np.newaxis] + np.arange(2)).ravel()
    k, g = 4 * (half.stop - half.start), len(gone)
    kept = np.empty((k + 1, k + 1), order="F")
    among = np.empty((g, g), order="F")
    across = np.empty((k + 1, g), order="F")
    gather(joint, gone, 4 * half.start, kept, among, across)
    factor = factorise(among)
    solved = blas.dtrsm(1.0, factor, across, side=1, lower=1, trans_a=1, overwrite_b=1)
    schur: Array = blas.dsyrk(-1.0, solved, beta=1.0, c=kept, lower=1, overwrite_c=1)
    return schur
