"""A loop of the tests' own, and a function that compiles it."""

from __future__ import annotations

import math

from mercer.numerics.compilation import compiled


@compiled(nogil=True)
def total(n):
    """The sum of cos(k)/k over the first n k: its last bits depend on how it was compiled."""
    found = 0.0
    for k in range(1, n + 1):
        found += math.cos(k) / k
    return found


def warm_up() -> None:
    """Use it once."""
    total(2)


def fails() -> None:
    """Warm up in vain."""
    raise RuntimeError
