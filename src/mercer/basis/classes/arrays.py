"""Groups of arrays that the compiled loops for classes take and change in place.

Columns of a design are numbered as in `mercer.basis.arrays`: the mean first, then the candidates.
"""

from __future__ import annotations

from typing import NamedTuple

from mercer.basis.arrays import Array, Integers

__all__ = ["ClassParticles", "ClassPrior"]


class ClassPrior(NamedTuple):
    """Priors of coefficients; see `mercer.basis.classes.model`.

    Attributes
    ----------
    scale_shape, scale_rate : float
        Of the inverse gamma prior of the variance of a centre's coefficient.
    mean_precision : float
        Of the coefficients of the mean.
    n_mean : int
        Columns of the mean.
    """

    scale_shape: float
    scale_rate: float
    mean_precision: float
    n_mean: int


class ClassParticles(NamedTuple):
    """N particles, their coefficients explicit.

    Attributes
    ----------
    size : ndarray of shape (N,), int
        Number of centres.
    members : ndarray of shape (N, k_max), int
        Their columns; the first ``size`` entries of a row count.
    level : ndarray of shape (N,), int
        Position of the length scale.
    scale : ndarray of shape (N,)
        Prior variance of a centre's coefficient.
    beta : ndarray of shape (N, p + k_max)
        Coefficients: of the mean, then of the members in their order.
    log_weight : ndarray of shape (N,)
        Normalised: their exponentials sum to 1.
    ancestor : ndarray of shape (N,), int
        Which particle it comes from, since this was last counted.
    """

    size: Integers
    members: Integers
    level: Integers
    scale: Array
    beta: Array
    log_weight: Array
    ancestor: Integers
