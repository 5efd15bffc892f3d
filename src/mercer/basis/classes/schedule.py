"""When particles are moved and candidates change hands: by the number of rows alone."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClassSchedule"]


@dataclass(frozen=True)
class ClassSchedule:
    """So many moves in each doubling of the rows held: a move costs as much as there are rows.

    Attributes
    ----------
    per_doubling : int
        Moves between t and 2 t rows; a power of 2. Up to so many rows, one each.
    n_redraws : int
        Redraws of a centre in a move.
    n_buffered : int
        The most rows held.
    """

    per_doubling: int = 8
    n_redraws: int = 3
    n_buffered: int = 1024

    def moves_at(self, n_seen: int) -> bool:
        """Whether particles are moved after so many rows (from 1)."""
        n_held = min(n_seen, self.n_buffered)
        power = 1 << (n_held.bit_length() - 1)
        return n_seen % max(1, power // self.per_doubling) == 0
