"""Periodic covariance with one weight and one period per input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.kernels.base import VARIANCE, WEIGHTS, Array, Kernel, Parameter
from mercer.kernels.compiled import exponent_from_products
from mercer.kernels.rows import turned_rows

__all__ = ["Periodic"]

_PERIODS = Parameter("log_period", "period", per_input=True)


@dataclass(frozen=True)
class Periodic(Kernel):
    """C(x, x') = v0 exp(-2 sum_l w_l sin^2(pi (x_l - x'_l) / p_l)).

    With u = (x_l - x'_l) / p_l, of which whole turns do not matter:

    ==========================  ============================
    theta                       log(v0, w_1, .., w_d, p_1, .., p_d)
    d log C / d log w_l         -2 w_l sin^2(pi u)
    d log C / d log p_l         2 pi w_l u sin(2 pi u)
    ==========================  ============================

    Notes
    -----
    Eq. (4.31) of [1]_, one factor for each input. It is the squared exponential of the points
    (cos, sin)(2 pi x_l / p_l), whose squared distance is 4 sin^2(pi u): so it is a covariance for
    any number of inputs, and costs O(n m d) in one product. w_l has no unit.

    References
    ----------
    .. [1] Rasmussen & Williams, Gaussian Processes for Machine Learning, MIT Press 2006.
    """

    def parameters(self) -> tuple[Parameter, ...]:
        """One variance, then weights and periods of the inputs."""
        return VARIANCE, WEIGHTS, _PERIODS

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """Covariances of all pairs of rows."""
        points = _points(theta, X, X)
        K = np.matmul(points, points.T, out=out)
        half_norms = 0.5 * K.diagonal()
        exponent_from_products(K, half_norms, half_norms, theta[0])
        return np.asarray(np.exp(K, out=K))

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Covariances of the rows of X with those of Z."""
        points, others = _points(theta, X, Z), _points(theta, Z, Z)
        K = points @ others.T
        x = 0.5 * np.einsum("ij,ij->i", points, points)
        z = 0.5 * np.einsum("ij,ij->i", others, others)
        exponent_from_products(K, x, z, theta[0])
        return np.exp(K, out=K)

    def diagonal(self, theta: Array, X: Array) -> Array:
        """The variance v0, the same for every row."""
        return np.full(len(X), np.exp(theta[0]))

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """With H = A * K, c and s the cosines and sines of the rows: see Notes.

        Notes
        -----
        cos 2 pi u and sin 2 pi u are c_i c_j + s_i s_j and s_i c_j - c_i s_j: one product of H
        with [c, s] serves all weights and periods.
        """
        weights = np.exp(theta[1 : 1 + X.shape[1]])
        turns, cosine, sine = _turned(theta, X, X)
        H = np.multiply(A, K, out=A)
        total = H.sum()
        along = np.hsplit(H @ np.hstack((cosine, sine)), 2)
        cosines = np.einsum("il,il->l", cosine, along[0]) + np.einsum("il,il->l", sine, along[1])
        sines = np.einsum("il,il->l", turns, sine * along[0] - cosine * along[1])
        # 2 sin^2 = 1 - cos; u_i - u_j meets an odd function: twice the sum over u_i.
        of_periods = 4.0 * np.pi * weights * sines
        return np.concatenate(([total], -weights * (total - cosines), of_periods))


def _turned(theta: Array, X: Array, reference: Array) -> tuple[Array, Array, Array]:
    return turned_rows(-theta[1 + X.shape[1] :], X, reference)


def _points(theta: Array, X: Array, reference: Array) -> Array:
    """Rows as points on circles (n, 2 d), of radius sqrt(w_l) each."""
    _, cosine, sine = _turned(theta, X, reference)
    radii = np.exp(0.5 * theta[1 : 1 + X.shape[1]])
    return np.hstack((cosine * radii, sine * radii))
