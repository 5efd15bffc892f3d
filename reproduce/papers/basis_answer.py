"""Problems, methods, and what a method says of test rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LEVEL", "Answer", "Method", "Problem"]

Array = NDArray[np.float64]
Band = tuple[Array, Array]

#: Of all intervals.
LEVEL = 0.9


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to learn, and rows to be tested on.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        In units of which a kernel's width is spoken of.
    y : ndarray of shape (n,)
    X_test : ndarray of shape (m, d)
    y_test : ndarray of shape (m,)
    f_test : ndarray of shape (m,) or None
        The true curve, where it is known: the error is then that of the curve.
    """

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    f_test: Array | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """Of test rows: means, and bounds of 90 % intervals where the method has them.

    Attributes
    ----------
    mean : ndarray of shape (m,)
    n_kernels : float
        Nan where there is none at each row.
    noise_std : float
    of_function, of_target : pair of ndarray of shape (m,) or None
        Intervals without and with the noise of a target.
    """

    mean: Array
    n_kernels: float = math.nan
    noise_std: float = math.nan
    of_function: Band | None = None
    of_target: Band | None = None


@dataclass(frozen=True)
class Method:
    """A row of a table.

    Attributes
    ----------
    key : str
        In names of files.
    name : str
        In tables.
    run : callable
        (problem, seed, is_quick) -> Answer.
    """

    key: str
    name: str
    run: Callable[[Problem, int, bool], Answer]
