"""McNemar's test of two methods that predicted the same rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

__all__ = ["mcnemar"]


def mcnemar(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """Return the two-sided mid-p value of "both are wrong equally often".

    Parameters
    ----------
    first, second : ndarray of shape (n,), bool
        Which rows each method has wrong.

    Returns
    -------
    float
        1 where they are never wrong apart.

    Notes
    -----
    Of the rows that one alone has wrong, each is as likely to be that of either. The mid-p value
    counts what was seen half, which [1]_ recommends.

    References
    ----------
    .. [1] M. W. Fagerland, S. Lydersen and P. Laake, The McNemar test for binary matched-pairs
       data: mid-p and asymptotic are better than exact conditional, BMC Medical Research
       Methodology (2013).
    """
    only_first = int(np.sum(first & ~second))
    only_second = int(np.sum(second & ~first))
    n, fewer = only_first + only_second, min(only_first, only_second)
    if n == 0:
        return 1.0
    seen = float(binom.pmf(fewer, n, 0.5))
    if only_first == only_second:
        return 1.0 - 0.5 * seen
    return 2.0 * float(binom.cdf(fewer, n, 0.5)) - seen
