"""Which rows to label next: those that say most about the classifier, and not twice the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["choose_batch", "short_list"]

Array = NDArray[np.float64]

# Rows with the most information, among which a batch is put together.
_SHORT_LIST = 500


def choose_batch(
    information: Array, latent: Array, outside: Array, n_queries: int
) -> NDArray[np.int64]:
    """Choose rows one after the other, each by its information not yet covered by those before.

    Covered is the share of the variance of its latent value that the values of the chosen rows
    explain: of a second copy of a row all of it.

    Parameters
    ----------
    information : ndarray of shape (m,)
    latent : ndarray of shape (k, m)
        Latent values given each draw.
    outside : ndarray of shape (m, m)
        Covariance of their parts outside the span of the training rows.
    n_queries : int

    Returns
    -------
    ndarray of shape (n_queries,), int64
        Positions, the most wanted first.
    """
    deviations = latent - latent.mean(axis=0)
    covariance = deviations.T @ deviations / len(latent) + outside
    variance = np.maximum(covariance.diagonal().copy(), np.finfo(float).tiny)
    left, factors = variance.copy(), np.empty((0, len(variance)))
    chosen: list[int] = []
    for _ in range(n_queries):
        score = information * np.clip(left / variance, 0.0, 1.0)
        score[chosen] = -1.0
        best = int(np.argmax(score))
        chosen.append(best)
        if left[best] > 1e-10 * variance[best]:
            row = (covariance[best] - factors.T @ factors[:, best]) / np.sqrt(left[best])
            factors = np.vstack([factors, row])
            left = np.maximum(left - row**2, 0.0)
    return np.array(chosen, dtype=np.int64)


def short_list(information: Array, n_queries: int) -> NDArray[np.int64]:
    """Positions of the rows that a batch is chosen from."""
    size = max(_SHORT_LIST, 3 * n_queries)
    return np.argsort(-information, kind="stable")[:size]
