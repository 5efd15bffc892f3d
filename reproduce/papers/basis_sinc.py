"""The sinc data of Vermaak, Godsill & Doucet, section 4.1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reproduce.papers.basis_answer import Problem

__all__ = ["NOISE_STD", "WIDTH", "sinc", "sinc_set"]

Array = NDArray[np.float64]

NOISE_STD = 0.1
#: w of exp(-r^2 / w^2), the paper's kernel.
WIDTH = 1.6
_N_ROWS, _N_TEST, _REACH = 50, 1000, 10.0


def sinc(x: Array) -> Array:
    """Sin(x) / x."""
    return np.asarray(np.sinc(x / np.pi))


def sinc_set(seed: int, order: int | None = None) -> Problem:
    """Return fifty noisy rows in random order, and a fine grid with the true curve.

    The curve with fresh noise is the grid's target; ``order`` permutes the rows once more.
    """
    rng = np.random.default_rng(seed)
    x = np.linspace(-_REACH, _REACH, _N_ROWS)[rng.permutation(_N_ROWS)]
    y = sinc(x) + NOISE_STD * rng.standard_normal(_N_ROWS)
    if order is not None:
        rows = np.random.default_rng([seed, order]).permutation(_N_ROWS)
        x, y = x[rows], y[rows]
    grid = np.linspace(-_REACH, _REACH, _N_TEST)
    f = sinc(grid)
    fresh = np.random.default_rng([seed, _N_TEST]).standard_normal(_N_TEST)
    return Problem(x[:, np.newaxis], y, grid[:, np.newaxis], f + NOISE_STD * fresh, f)
