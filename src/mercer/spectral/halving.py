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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.errors import NumericalError
from mercer.numerics.cholesky import factorise
from mercer.spectral.compiled import decide_few, gather

__all__ = ["Decisions", "decide"]

Array = NDArray[np.float64]

# Frequencies that one compiled call decides: below, calls of BLAS cost more than they save.
_FEW = 12


@dataclass(frozen=True, eq=False)
class Decisions:
    """What became of the proposals: both ndarrays of shape (M,)."""

    is_accepted: NDArray[np.bool_]
    log_ratio: Array


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
    m = len(log_uniform)
    decisions = Decisions(np.zeros(m, dtype=bool), np.empty(m))
    _decide(joint, log_uniform, (shape, rate), decisions)
    if np.isnan(decisions.log_ratio).any():
        raise NumericalError(
            "the features are collinear to working precision: the ridge is too low"
        )
    return decisions


def _decide(
    joint: Array, log_uniform: Array, noise: tuple[float, float], decisions: Decisions
) -> None:
    m = len(log_uniform)
    is_accepted, log_ratio = decisions.is_accepted, decisions.log_ratio
    if m <= _FEW:
        decide_few(joint, log_uniform, *noise, is_accepted, log_ratio)
        return
    h = m // 2
    for half, other in ((slice(0, h), slice(h, m)), (slice(h, m), slice(0, h))):
        schur = _eliminate(joint, other, is_accepted[other], half)
        _decide(schur, log_uniform[half], noise, Decisions(is_accepted[half], log_ratio[half]))


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
