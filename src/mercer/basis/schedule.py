"""When particles are moved, rows are added to the sums, and the sums are discounted.

It depends on the number of the row alone: a schedule that looked at the particles, even only at
whether they were just resampled, would bias the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Schedule"]


@dataclass(frozen=True)
class Schedule:
    """The first rows one by one, with all particles, then with some; then blocks.

    Attributes
    ----------
    n_eager : int
        So many rows are blocks of one, after each of which every particle is moved; a multiple of
        ``block``.
    block : int
        Rows in a later block.
    later_fraction : float
        Share of the particles that is moved after a later block.
    n_young : int
        Rows until this are blocks of one too; a multiple of ``block``.
    young_fraction : float
        Share of the particles that is moved after each of those.
    n_redraws, n_changes : int
        Of a particle that is moved: redraws of a centre; births, deaths and swaps proposed.
    n_buffered : int
        Rows kept, for the sums of later candidates.
    """

    n_eager: int = 64
    block: int = 8
    later_fraction: float = 0.2
    n_redraws: int = 1
    n_changes: int = 10
    n_buffered: int = 512
    n_young: int = 0
    young_fraction: float = 0.2

    def rows_in_block(self, n_seen: int) -> int:
        """Rows in the block of row number ``n_seen`` (from 0)."""
        return 1 if n_seen < max(self.n_eager, self.n_young) else self.block

    def begins_block(self, n_seen: int) -> bool:
        """Whether row number ``n_seen`` (from 0) is the first of its block."""
        return n_seen % self.rows_in_block(n_seen) == 0

    def fraction(self, n_seen: int) -> float:
        """Share of the particles that is moved after so many rows."""
        if n_seen <= self.n_eager:
            return 1.0
        if n_seen <= self.n_young:
            return self.young_fraction
        return self.later_fraction if n_seen % self.block == 0 else 0.0
