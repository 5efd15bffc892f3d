"""Error against coverage: what is gained by leaving the least certain rows undecided.

References
----------
.. [1] T. Graepel, R. Herbrich. The Kernel Gibbs Sampler. NIPS 13, 2001: section 4, rejection of
   the test points with the closest decision.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.posterior.scores import checked_classes

__all__ = ["COVERAGES", "ErrorCoverage", "error_coverage_curve"]

#: Shares of the rows at which reports give the error.
COVERAGES = (1.0, 0.9, 0.75, 0.5)

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ErrorCoverage:
    """Error among the k most certain of n rows, for k = 1..n.

    Parameters
    ----------
    coverage : ndarray of shape (n,)
        k / n, ascending.
    error : ndarray of shape (n,)
        Share of wrong decisions among those rows. Of rows that are equally certain some are
        decided at random: the expected share.
    area : float
        Mean of ``error``: lower is better, and 0 is without errors.
    """

    coverage: Array
    error: Array
    area: float

    def n_decided(self, coverage: float) -> int:
        """Return how many rows a share of them is, rounded up; at least one."""
        return max(1, math.ceil(coverage * len(self.error) - 1e-9))

    def error_at(self, coverage: float) -> float:
        """Return the error among a share of the rows.

        Examples
        --------
        >>> p = np.array([0.1, 0.8, 0.6, 0.55])
        >>> curve = error_coverage_curve([0, 1, 1, 0], np.column_stack([1 - p, p]))
        >>> [curve.error_at(share) for share in (1.0, 0.75, 0.5)]
        [0.25, 0.0, 0.0]
        """
        return float(self.error[self.n_decided(coverage) - 1])


def error_coverage_curve(y_index: ArrayLike, proba: ArrayLike) -> ErrorCoverage:
    """Measure the error among the rows with the largest top probability.

    Parameters
    ----------
    y_index, proba : array_like of shape (n,) and (n, C)
        As in `mercer.posterior.scores.score_classification`.

    Returns
    -------
    ErrorCoverage

    Raises
    ------
    DataError
        As `mercer.posterior.scores.score_classification`.

    Notes
    -----
    The most probable class is chosen, of equal ones the first. For two classes the order is that
    of the distance from the boundary, which [1]_ rejects by. Cost O(n log n).

    References
    ----------
    .. [1] T. Graepel, R. Herbrich. The Kernel Gibbs Sampler. NIPS 13, 2001, section 4.
    """
    y, p = checked_classes(y_index, proba)
    top = p.max(axis=1)
    order = np.argsort(-top, kind="stable")
    is_wrong = (p.argmax(axis=1) != y)[order].astype(np.float64)
    _, tie, sizes = np.unique(-top[order], return_inverse=True, return_counts=True)
    expected = (np.bincount(tie, weights=is_wrong) / sizes)[tie]
    k = np.arange(1, len(y) + 1)
    error = np.cumsum(expected) / k
    return ErrorCoverage(k / len(y), error, float(error.mean()))
