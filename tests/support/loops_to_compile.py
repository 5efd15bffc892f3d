"""A loop of the tests' own, and a function that compiles it."""

from __future__ import annotations

from mercer.numerics.compilation import compiled


@compiled(nogil=True)
def total(n):
    """The sum of n ones."""
    found = 0.0
    for _ in range(n):
        found += 1.0
    return found


def warm_up() -> None:
    """Use it once."""
    total(2)


def fails() -> None:
    """Warm up in vain."""
    raise RuntimeError
