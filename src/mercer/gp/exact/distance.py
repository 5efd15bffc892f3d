"""How far Laplace's predictions are from the exact ones, with the error of saying so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.gp.binary.predict import FunctionMoments
from mercer.gp.exact.predict import (
    ExactDraws,
    draw_probabilities,
    laplace_weights,
)
from mercer.kernels.base import Kernel
from mercer.sampling.resampling import effective_sample_size

__all__ = ["PredictiveDistance", "predictive_distance", "rows_per_region"]

Array = NDArray[np.float64]

_BATCHES = 24  # at least, in all chains together
_REGION_DRAWS = 50  # for the rows per region, which need no precision


@dataclass(frozen=True, eq=False)
class PredictiveDistance:
    """Differences between exact and Laplace's probabilities of target 1 over rows.

    Attributes
    ----------
    n_rows, n_draws : int
    mean : float
        Mean over rows of the absolute difference.
    mean_noise : float
        What that mean would be, were all differences 0 and only the draws' noise left.
    largest : float
        Largest absolute difference.
    largest_row : int
        Where it is.
    largest_error : float
        Its standard error; not a number, like ``mean_noise``, where there is a single batch.
    laplace_size : float
        Effective size of the draws as draws of Laplace's posterior.
    differences : ndarray of shape (n_rows,)
        Exact less Laplace's probability.
    """

    n_rows: int
    n_draws: int
    mean: float
    mean_noise: float
    largest: float
    largest_row: int
    largest_error: float
    laplace_size: float
    differences: Array


def predictive_distance(
    exact: ExactDraws,
    laplace: FunctionMoments,
    log_errors: Array,
    X: Array,
    *,
    n_chains: int,
) -> PredictiveDistance:
    """Compare the two predictions at rows X (m, d), from the same draws.

    Parameters
    ----------
    exact : ExactDraws
    laplace : LatentDraws
        Laplace's function at the same hyperparameters.
    log_errors : ndarray of shape (S,)
        "log_laplace_error" of the draws, nats; chain after chain, as all that belongs to draws.
    X : ndarray of shape (m, d)
        Standardised rows.
    n_chains : int

    Notes
    -----
    Standard errors are those of batch means: at least 24 stretches of draws, none across two
    chains, of exact minus weighted Laplace probability, the ratio of the latter linearised. They
    are too small where a stretch is shorter than the chain's memory.
    """
    batch_of = _batches(len(log_errors), n_chains)
    n_batches, weights = int(batch_of[-1]) + 1, laplace_weights(log_errors)
    of_exact, of_laplace = np.zeros((n_batches, len(X))), np.zeros((n_batches, len(X)))
    pairs = zip(draw_probabilities(exact, X), draw_probabilities(laplace, X), strict=True)
    for batch, weight, (p_exact, p_laplace) in zip(batch_of, weights, pairs, strict=True):
        of_exact[batch] += p_exact
        of_laplace[batch] += weight * p_laplace
    sizes = np.bincount(batch_of).astype(np.float64)
    of_weights = np.bincount(batch_of, weights)
    n = len(log_errors)
    p_exact, p_laplace = of_exact.sum(axis=0) / n, of_laplace.sum(axis=0) / n
    residual = of_exact - sizes[:, None] * p_exact - of_laplace + of_weights[:, None] * p_laplace
    scale = n_batches / (n_batches - 1) if n_batches > 1 else np.nan
    errors = np.sqrt(scale * np.square(residual).sum(axis=0)) / n
    difference = np.abs(p_exact - p_laplace)
    row = int(np.argmax(difference))
    return PredictiveDistance(
        n_rows=len(X),
        n_draws=n,
        mean=float(difference.mean()),
        mean_noise=float(np.sqrt(2.0 / np.pi) * errors.mean()),
        largest=float(difference[row]),
        largest_row=row,
        largest_error=float(errors[row]),
        laplace_size=effective_sample_size(-log_errors),
        differences=p_exact - p_laplace,
    )


def rows_per_region(kernel: Kernel, thetas: Array, training: Array, X: Array) -> Array:
    """How many training rows are within about a length scale of each of X (m, d): shape (m,).

    The sum of their correlations with it, averaged over some of the draws ``thetas`` (S, p).
    """
    chosen = np.unique(np.linspace(0, len(thetas) - 1, _REGION_DRAWS).astype(np.int64))
    total = np.zeros(len(X))
    for theta in thetas[chosen]:
        scales = [np.sqrt(kernel.diagonal(theta, rows)) for rows in (X, training)]
        correlation = kernel.cross_gram(theta, X, training) / np.outer(*scales)
        total += np.abs(correlation).sum(axis=1)
    return total / len(chosen)


def _batches(n_total: int, n_chains: int) -> NDArray[np.int64]:
    """Number of the batch of every draw, chain after chain."""
    length = n_total // n_chains
    per_chain = max(1, min(-(-_BATCHES // n_chains), length // 2))
    within = np.arange(length) * per_chain // length
    return np.concatenate([chain * per_chain + within for chain in range(n_chains)])
