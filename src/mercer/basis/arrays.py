"""Groups of arrays that the compiled loops take and change in place.

Columns of a design are numbered 0 .. p - 1 for the mean (a constant, then the inputs where there is
a linear part) and p + c for candidate c. A particle is a set of candidates, held as column numbers,
with its length scale, the variance of its coefficients, and the factor of its regression.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Integers", "Particles", "Prior", "Statistics", "taken"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Prior(NamedTuple):
    """Priors of variances and mean; see `mercer.basis.model`.

    Attributes
    ----------
    noise_shape, noise_rate : float
        Of the inverse gamma prior of the noise variance.
    scale_shape, scale_rate : float
        Of that of the coefficients' variance: relative to the noise's, or absolute if sampled.
    mean_precision : float
        Of the coefficients of the mean, in noise precisions.
    n_mean : int
        Columns of the mean.
    is_sampled : bool
        Both variances are carried by the particle, and the mean shares that of the coefficients;
        else the noise variance is integrated out.
    """

    noise_shape: float
    noise_rate: float
    scale_shape: float
    scale_rate: float
    mean_precision: float
    n_mean: int
    is_sampled: bool


class Statistics(NamedTuple):
    """Sums over rows that all particles share.

    Attributes
    ----------
    gram : ndarray of shape (L, C, C)
        Products of columns, for each of L levels of the length scale; symmetric.
    moment : ndarray of shape (L, C)
        Products of columns with targets.
    square : float
        Sum of squared targets.
    n_rows : float
        Sum of the rows' weights: their number where nothing is forgotten.
    n_candidates : int
        Columns of candidates in use.
    """

    gram: Array
    moment: Array
    square: float
    n_rows: float
    n_candidates: int


class Particles(NamedTuple):
    """N particles.

    Attributes
    ----------
    size : ndarray of shape (N,), int
        Number of centres.
    members : ndarray of shape (N, k_max), int
        Their columns; the first ``size`` entries of a row count.
    level : ndarray of shape (N,), int
        Position of the length scale.
    scale : ndarray of shape (N,)
        Prior variance of a coefficient, in noise variances.
    noise : ndarray of shape (N,)
        Noise variance where it is sampled; else without meaning.
    factor : ndarray of shape (N, p + k_max, p + k_max)
        Upper triangle U with U'U = K'K + R.
    whitened : ndarray of shape (N, p + k_max)
        w with U'w = K'y.
    rss : ndarray of shape (N,)
        y'y - w'w.
    half_logdet : ndarray of shape (N,)
        log|U|.
    log_target : ndarray of shape (N,)
        Log evidence plus log prior of the set, in nats.
    log_weight : ndarray of shape (N,)
        Normalised: their exponentials sum to 1.
    ancestor : ndarray of shape (N,), int
        Which particle it comes from, since this was last counted.
    """

    size: Integers
    members: Integers
    level: Integers
    scale: Array
    noise: Array
    factor: Array
    whitened: Array
    rss: Array
    half_logdet: Array
    log_target: Array
    log_weight: Array
    ancestor: Integers


def taken(particles: Particles, which: Integers) -> Particles:
    """Return copies of some particles, by position; of factors, the part that is in use."""
    chosen = {name: array[which] for name, array in particles._asdict().items() if name != "factor"}
    P, k_max = particles.factor.shape[1], particles.members.shape[1]
    p = P - k_max + int(chosen["size"].max(initial=0))
    factor = np.zeros((len(which), P, P))
    factor[:, :p, :p] = particles.factor[which, :p, :p]
    return Particles(**chosen, factor=factor)
