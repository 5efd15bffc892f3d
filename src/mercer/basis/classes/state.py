"""All that the filter of two classes needs for the next row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.basis.arrays import Array
from mercer.basis.classes.arrays import ClassParticles

__all__ = ["ClassState", "HeldRows", "with_more_rows"]


class HeldRows(NamedTuple):
    """The last rows, in a ring: row number t stands at t modulo the length B.

    Attributes
    ----------
    X : ndarray of shape (B, d)
    sign : ndarray of shape (B,)
        1 where y = 1, -1 where y = 0.
    design : ndarray of shape (L, C, B)
        Columns of the design at each level.
    """

    X: Array
    sign: Array
    design: Array


@dataclass(frozen=True, eq=False)
class ClassState:
    """The filter after some rows. Its arrays are changed in place by the next.

    Attributes
    ----------
    particles : ClassParticles
    rows : HeldRows
    centres : ndarray of shape (R, d)
        Inputs of the candidates, standardised.
    n_candidates : int
        Candidates held.
    waiting : ndarray of shape (R, d)
        Inputs that become candidates at the next move, in their slots.
    is_waiting : ndarray of shape (R,), bool
    n_seen : int
        Rows learned.
    log_evidence : float
        Of the rows held, in nats: unbiased on the scale of the evidence itself.
    evidence_variance : float
        Of its logarithm, to first order, from the resamplings so far.
    n_ancestors : int
        Distinct ancestors of the particles after the last fifty rows.
    """

    particles: ClassParticles
    rows: HeldRows
    centres: Array
    n_candidates: int
    waiting: Array
    is_waiting: NDArray[np.bool_]
    n_seen: int
    log_evidence: float
    evidence_variance: float
    n_ancestors: int

    @property
    def n_held(self) -> int:
        """Rows in the ring."""
        return min(self.n_seen, len(self.rows.sign))


def with_more_rows(rows: HeldRows, length: int) -> HeldRows:
    """Return a longer ring; only before it is full."""
    more = length - len(rows.sign)
    return HeldRows(
        np.pad(rows.X, ((0, more), (0, 0))),
        np.pad(rows.sign, (0, more)),
        np.pad(rows.design, ((0, 0), (0, 0), (0, more))),
    )
