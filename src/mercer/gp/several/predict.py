"""Predictions for several classes: one draw after the other, blocks of rows within.

Memory is two stacks of C n x n arrays and one block of rows, however many draws and rows there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.gp.several.covariance import latent_covariance
from mercer.gp.several.expectation import expected_softmax
from mercer.gp.several.laplace import curvature
from mercer.kernels.base import Kernel
from mercer.likelihoods.softmax import one_hot
from mercer.numerics.workspace import Workspace

__all__ = ["SoftmaxDraws", "class_probabilities", "latent_moments"]

Array = NDArray[np.float64]

_BLOCK = 256  # rows predicted at a time


@dataclass(frozen=True)
class SoftmaxDraws:
    """What the latent functions of each draw are computed from.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised training inputs.
    y : ndarray of shape (n,), int
        Codes of the classes, from 0 to C - 1.
    kernel : Kernel
    theta : ndarray of shape (n_total, C, p) or (n_total, 1, p)
        Log parameters of the kernel of each class, or of the one that all share.
    dual_coef : ndarray of shape (n_total, C, n)
        Y - pi at the mode.
    mean_coef : ndarray of shape (n_total, C, n)
        Coefficients of the predictive mean: ``dual_coef``, or that plus its correction.
    """

    X: Array
    y: NDArray[np.int64]
    kernel: Kernel
    theta: Array
    dual_coef: Array
    mean_coef: Array

    def moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (rows, mean (m, C), covariance (m, C, C)) of f at rows of X, by draw and block.

        One BLAS thread, so that the bits do not depend on the machine's load.
        """
        with threadpool_limits(limits=1, user_api="blas"):
            yield from self._moments(X)

    def _moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        n_classes, n = self.dual_coef.shape[1:]
        Y, workspace, kernel = one_hot(self.y, n_classes), Workspace(), self.kernel
        for theta, a, mean_coef in zip(self.theta, self.dual_coef, self.mean_coef, strict=True):
            K = workspace.take_stack("grams", len(theta), n)
            for c, own in enumerate(theta):
                kernel.gram(own, self.X, out=K[c])
            inverses = workspace.take_stack("inverses", n_classes, n)
            factors = curvature(K, np.maximum(Y - a, 0.0), inverses)
            for begin in range(0, len(X), _BLOCK):
                rows = slice(begin, begin + _BLOCK)
                cross = np.stack([kernel.cross_gram(own, X[rows], self.X) for own in theta])
                variance = np.stack([kernel.diagonal(own, X[rows]) for own in theta])
                mean = np.matmul(cross, mean_coef[:, :, np.newaxis])[:, :, 0].T
                yield rows, mean, latent_covariance(factors, cross, variance)


def class_probabilities(draws: SoftmaxDraws, X: Array) -> Array:
    """Probabilities of the classes (m, C), averaged over latent values and over draws."""
    total = np.zeros((len(X), draws.dual_coef.shape[1]))
    for rows, mean, covariance in draws.moments(X):
        total[rows] += expected_softmax(mean, covariance)
    return total / len(draws.theta)


def latent_moments(draws: SoftmaxDraws, X: Array) -> tuple[Array, Array]:
    """Posterior mean and variance of f, (m, C): mean of variances plus variance of means."""
    shape = (len(X), draws.dual_coef.shape[1])
    count = np.zeros((len(X), 1))
    mean, spread, variance = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for rows, m, covariance in draws.moments(X):
        count[rows] += 1.0
        step = m - mean[rows]
        mean[rows] += step / count[rows]
        spread[rows] += step * (m - mean[rows])
        variance[rows] += np.diagonal(covariance, axis1=1, axis2=2)
    return mean, (variance + spread) / count
