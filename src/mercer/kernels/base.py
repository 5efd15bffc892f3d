"""What a covariance function can do; parameters are always on the log scale."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Kernel"]

Array = NDArray[np.float64]


class Kernel(ABC):
    """A covariance function with unconstrained parameters theta of shape (p,).

    Implementations are frozen dataclasses without data: the same object serves any inputs.
    """

    @property
    @abstractmethod
    def has_lengthscale(self) -> bool:
        """Whether theta ends with one log weight per input (an inverse squared length scale)."""

    @abstractmethod
    def n_parameters(self, n_inputs: int) -> int:
        """Length p of theta for inputs with ``n_inputs`` columns."""

    @abstractmethod
    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """Covariances of all pairs of rows of X: symmetric, shape (n, n), C-ordered.

        ``out`` is overwritten and returned, where given.
        """

    @abstractmethod
    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Covariances of the rows of X (n, d) with those of Z (m, d): shape (n, m)."""

    @abstractmethod
    def diagonal(self, theta: Array, X: Array) -> Array:
        """Variances of the rows of X: the diagonal of ``gram``, shape (n,)."""

    @abstractmethod
    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """Sum over i, j of A_ij dK_ij/dtheta_k for each k: shape (p,).

        K is ``gram(theta, X)`` and A a symmetric matrix of the same shape, which may be
        overwritten.
        """
