"""Which inputs are candidates: a reservoir that looks neither at targets nor at particles."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

__all__ = ["Reservoir"]

# With forgetting, inputs are admitted as if the stream were never longer than so many rows for
# each candidate: one candidate is replaced every twenty rows or so.
_ROWS_PER_CANDIDATE = 20
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Reservoir:
    """Algorithm R with a random stream of its own: any input is kept with the same probability.

    Attributes
    ----------
    n_slots : int
        The most candidates.
    key : int
        Of the random stream; what happens at a row depends on the key and its number alone.
    is_forgetting : bool
        Whether recent inputs are preferred.
    """

    n_slots: int
    key: int
    is_forgetting: bool

    def slot(self, n_seen: int) -> int | None:
        """Return the slot that the input of row number ``n_seen`` (from 0) takes, or None."""
        if n_seen < self.n_slots:
            return n_seen
        length = n_seen + 1
        if self.is_forgetting:
            length = min(length, _ROWS_PER_CANDIDATE * self.n_slots)
        numbers = _numbers(self.key, n_seen // _ROWS_AT_ONCE)
        drawn = numbers[n_seen % _ROWS_AT_ONCE] * length >> 64
        return drawn if drawn < self.n_slots else None


@functools.lru_cache(maxsize=64)
def _numbers(key: int, block: int) -> list[int]:
    """Whole numbers below 2^64, one for each row of a block."""
    seed = np.random.SeedSequence(key, spawn_key=(block,))
    values: list[int] = seed.generate_state(_ROWS_AT_ONCE, np.uint64).tolist()
    return values
