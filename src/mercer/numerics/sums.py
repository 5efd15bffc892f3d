"""Sums whose bits depend on their terms alone, whoever adds them and in however many parts.

Terms are added in pairs, pairs in fours and so on, as a binary counter counts them. A run of 2^k
terms that begins at a multiple of 2^k is a whole subtree, so that runs may be summed anywhere and
put together at their level.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

#: Rows that one term is the sum of.
ROWS_PER_TERM = 16384


Plus = Callable[[Any, Any], Any]


def plus(a: Any, b: Any) -> Any:
    """Add arrays, or tuples of them one by one."""
    return tuple(map(plus, a, b)) if isinstance(a, tuple) else operator.add(a, b)


class PairwiseSum:
    """A sum in pairs; ``plus`` adds two terms, by default arrays, the first in place."""

    def __init__(self, plus: Plus | None = None) -> None:
        self._add: Plus = operator.iadd if plus is None else plus
        self._total: Plus = operator.add if plus is None else plus
        self._partial: list[tuple[int, Any]] = []

    def add(self, term: Any, level: int = 0) -> None:
        """Take in the next term, or the sum of the next 2^level; it may be overwritten."""
        while self._partial and self._partial[-1][0] == level:
            term = self._add(self._partial.pop()[1], term)
            level += 1
        self._partial.append((level, term))

    def total(self) -> Any:
        """Return the sum of all terms, smallest parts first."""
        parts = [part for _, part in self._partial]
        total = parts.pop()
        while parts:
            total = self._total(parts.pop(), total)
        return total


def aligned_runs(n_terms: int, level: int) -> Iterator[tuple[int, int]]:
    """Cut terms into runs of 2^level and, at the end, of smaller powers: (first, level) of each."""
    first = 0
    while first < n_terms:
        while first + (1 << level) > n_terms:
            level -= 1
        yield first, level
        first += 1 << level
