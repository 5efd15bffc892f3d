"""Resampling of weighted particles: who is kept, how often, and when it is worth it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.errors import NumericalError, UsageError

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

_SUM_TOLERANCE = 1e-8


def resample(rng: np.random.Generator, weights: ArrayLike, scheme: str) -> Counts:
    """Draw the positions, ascending, of N ancestors among N weighted particles.

    Particle i is drawn N w_i times on average, and never if it has no weight; weights sum to 1 up
    to 1e-8. "systematic": one uniform number for all; counts are N w_i rounded down or up.
    "stratified": one in each of N equal strata. "multinomial": N independent draws. Cost O(N). See
    [1]_, chapter 9.

    References
    ----------
    .. [1] N. Chopin and O. Papaspiliopoulos, "An Introduction to Sequential Monte Carlo" (2020).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> resample(rng, [0.5, 0.0, 0.25, 0.25], "systematic").tolist()
    [0, 0, 2, 3]
    """
    if scheme not in SCHEMES:
        raise UsageError(f"resampling must be one of {', '.join(SCHEMES)}, and is {scheme!r}")
    W = np.asarray(weights, dtype=np.float64)
    is_right = W.ndim == 1 and len(W) > 0 and bool(np.all(W >= 0))
    if not is_right or not abs(W.sum() - 1.0) <= _SUM_TOLERANCE:
        raise NumericalError("weights must be a row of numbers that are not negative, with sum 1")
    return np.repeat(np.arange(len(W), dtype=np.int64), SCHEMES[scheme](rng, W))


def _systematic(rng: np.random.Generator, W: Array) -> Counts:
    """Count the points j + u below N C_i, C the cumulative weights and j = 0 .. N - 1."""
    ends = _ends(W)
    return _counts(np.ceil(ends - rng.random()), ends)


def _stratified(rng: np.random.Generator, W: Array) -> Counts:
    """Count the points j + u_j below N C_i."""
    ends = _ends(W)
    whole = np.minimum(np.floor(ends), len(W) - 1.0)
    u = rng.random(len(W))[whole.astype(np.int64)]
    return _counts(whole + (u < ends - whole), ends)


def _multinomial(rng: np.random.Generator, W: Array) -> Counts:
    """Count N independent draws, by conditional binomials among the particles with weight."""
    kept = np.flatnonzero(W)
    counts = np.zeros(len(W), dtype=np.int64)
    counts[kept] = rng.multinomial(len(W), W[kept] / W.sum())
    return counts


def _ends(W: Array) -> Array:
    """Return N C_i with C_N = 1, whatever the weights' sum was rounded to."""
    cumulative = np.cumsum(W)
    return np.asarray(len(W) * (cumulative / cumulative[-1]))


def _counts(n_below: Array, ends: Array) -> Counts:
    """Return how many points fall between the ends, given how many fall below each."""
    # All points are below N: said here, since N - u may be rounded to N - 1.
    whole = np.where(ends < len(ends), n_below, len(ends))
    return np.diff(whole, prepend=0.0).astype(np.int64)


SCHEMES: dict[str, Callable[[np.random.Generator, Array], Counts]] = {
    "systematic": _systematic,
    "stratified": _stratified,
    "multinomial": _multinomial,
}
