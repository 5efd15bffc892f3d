"""Which rows to label next: those that say most about the classifier, and not twice the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["choose_batch", "short_list"]

Array = NDArray[np.float64]

# Rows with the most information, among which a batch is put together.
_SHORT_LIST = 500
# A row with a smaller share of its variance left is a copy of what was chosen, but for rounding.
_COPY = 1e-10


def choose_batch(
    information: Array, latent: Array, outside: Array, n_queries: int
) -> NDArray[np.int64]:
    """Choose rows one after the other, each by its information not yet covered by those before.

    Covered is the share of the variance of its latent value that the values of the chosen rows
    explain: of a second copy of a row all of it. Copies come after all other rows.

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
        share = np.clip(left / variance, 0.0, 1.0)
        score = np.where(share > _COPY, information * share, -0.5)
        score[chosen] = -1.0
        best = int(np.argmax(score))
        chosen.append(best)
        if share[best] > _COPY:
            row = (covariance[best] - factors.T @ factors[:, best]) / np.sqrt(left[best])
            factors = np.vstack([factors, row])
            left = np.maximum(left - row**2, 0.0)
    return np.array(chosen, dtype=np.int64)


def short_list(information: Array, n_queries: int, rows: Array | None = None) -> NDArray[np.int64]:
    """Positions of the rows that a batch is chosen from: those with the most information.

    Where ``rows`` of shape (m, d) are given, of equal ones only the first comes before all others.
    """
    order = np.argsort(-information, kind="stable")
    if rows is not None:
        is_copy = np.ones(len(rows), dtype=bool)
        is_copy[np.unique(rows, axis=0, return_index=True)[1]] = False
        order = order[np.argsort(is_copy[order], kind="stable")]
    return order[: max(_SHORT_LIST, 3 * n_queries)]
