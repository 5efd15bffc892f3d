"""P(class) of the training rows, their recorded labels taken into account."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.draws import Draws
from mercer.sphere.space import Space

__all__ = ["label_proba"]

Array = NDArray[np.float64]

# Rows whose |mean f| is above so many standard deviations are on that side in every draw.
_N_SD = 8.0
_BLOCK_ROWS = 16384


def label_proba(draws: Draws, space: Space, labels: NDArray[np.int64], n_classes: int) -> Array:
    """Average over draws the class that each classifier gives to a training row.

    Parameters
    ----------
    draws : Draws
        With "is_wrong", for several classes "chosen" too; for many rows neither, but the
        coefficients of finite features.
    space : Space
        Of those features.
    labels : ndarray of shape (n,), int64
        As recorded, 0..C-1.
    n_classes : int

    Returns
    -------
    ndarray of shape (n, C)
    """
    if "chosen" in draws.variables:
        chosen = draws.flat("chosen")
        return np.stack([(chosen == c).mean(axis=0) for c in range(n_classes)], axis=1)
    if "is_wrong" in draws.variables:
        p_wrong = draws.flat("is_wrong").mean(axis=0)
        p = np.where(labels == 1, 1.0 - p_wrong, p_wrong)
    else:
        p = _second_class(space.single_precision_rows(), draws.flat("coefficients"))
    return np.column_stack([1.0 - p, p])


def _second_class(L: NDArray[np.float32], g: Array) -> Array:
    """Share of draws with f > 0; rows far from the boundary are decided by their mean."""
    mean, deviations = g.mean(axis=0), g - g.mean(axis=0)
    widths = np.linalg.cholesky(
        deviations.T @ deviations / len(g) + 1e-12 * np.eye(g.shape[1]) * np.mean(deviations**2)
    ).astype(np.float32)
    centre, p = mean.astype(np.float32), np.empty(len(L))
    for begin in range(0, len(L), _BLOCK_ROWS):
        block = L[begin : begin + _BLOCK_ROWS]
        f = block @ centre
        sd = np.sqrt(((block @ widths) ** 2).sum(axis=1))
        own = (f > 0.0).astype(np.float64)
        near = np.flatnonzero(np.abs(f) < _N_SD * sd)
        own[near] = ((block[near].astype(np.float64) @ g.T) > 0.0).mean(axis=1)
        p[begin : begin + len(block)] = own
    return p
