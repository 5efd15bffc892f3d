"""Numbers of any size in sentences."""

from __future__ import annotations

import math

__all__ = ["digits"]


def digits(value: float, n: int = 3) -> str:
    """Write a number with so many significant digits; those before the point are all kept.

    Examples
    --------
    >>> [digits(x) for x in (0.12345, 1234.56, -2.0, 0.0, 2.3e-7, 1e9)]
    ['0.123', '1235', '-2.00', '0', '2.30e-07', '1.00e+09']
    """
    size = abs(value)
    if size == 0:
        return "0"
    if not 1e-4 <= size < 1e7:
        return f"{value:.{n - 1}e}"
    return f"{value:.{max(0, n - 1 - math.floor(math.log10(size)))}f}"
