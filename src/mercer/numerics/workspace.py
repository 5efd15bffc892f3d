"""Large arrays that one evaluation after the other overwrites.

A fresh array of megabytes costs a page fault every four kilobytes, which is a fifth of the time of
a gradient at 500 rows. Nothing that is returned to a caller may live here.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Workspace"]


class Workspace:
    """Named scratch arrays, one set a thread; pickled and copied empty."""

    def __init__(self) -> None:
        self._local = threading.local()

    def take(self, name: str, n: int) -> NDArray[np.float64]:
        """Return the C-ordered (n, n) array of that name; what it holds has no meaning."""
        return self._take(name, (n, n))

    def take_stack(self, name: str, count: int, n: int) -> NDArray[np.float64]:
        """Return the C-ordered (count, n, n) array of that name, likewise."""
        return self._take(name, (count, n, n))

    def _take(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
        arrays: dict[str, NDArray[np.float64]] = self._local.__dict__
        if name not in arrays or arrays[name].shape != shape:
            arrays[name] = np.empty(shape)
        return arrays[name]

    def __reduce__(self) -> Any:
        return Workspace, ()
