"""Spectral mixture: a sum of squared exponentials, each times a cosine along every input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from mercer.errors import UsageError
from mercer.kernels.algebra import MAX_LEAVES, Sum
from mercer.kernels.base import VARIANCE, WEIGHTS, Array, Kernel, Parameter
from mercer.kernels.compiled import multiply_by_cosines, slopes_of_cosines
from mercer.kernels.rows import half_scatter, row_blocks, scaled_rows, turned_rows

__all__ = ["SpectralComponent", "SpectralMixture"]

_FREQUENCIES = Parameter("log_frequency", "frequency", per_input=True)


def SpectralMixture(n_components: int) -> Kernel:  # noqa: N802 - named as the kernels are
    """Return C(x, x') = sum_q v_q prod_l exp(-1/2 w_ql (x_l - x'_l)^2) cos(2 pi f_ql (x_l - x'_l)).

    Parameters
    ----------
    n_components : int
        Terms q, from 1 to 10, each a `SpectralComponent`; of a single one no sum is made.

    Returns
    -------
    Kernel
        theta is log(v_q, w_q1, .., w_qd, f_q1, .., f_qd) for q = 1, 2, ..

    Raises
    ------
    UsageError
        For another number of components.

    Notes
    -----
    Eq. (12) of [1]_. The spectral density is a mixture of normals: of share v_q, centred at
    the frequencies f_q (turns per unit of the input) with variances w_q / (2 pi)^2.

    References
    ----------
    .. [1] Wilson & Adams, Gaussian Process Kernels for Pattern Discovery and Extrapolation, ICML
       2013.

    Examples
    --------
    >>> [parameter.name for parameter in SpectralMixture(1).parameters()]
    ['log_signal_variance', 'log_weight', 'log_frequency']
    """
    is_whole = isinstance(n_components, int) and not isinstance(n_components, bool)
    if not is_whole or not 1 <= n_components <= MAX_LEAVES:
        raise UsageError(
            f"a spectral mixture has from 1 to {MAX_LEAVES} components; got {n_components!r}"
        )
    components = (SpectralComponent(),) * n_components
    return Sum(components) if n_components > 1 else components[0]


@dataclass(frozen=True)
class SpectralComponent(Kernel):
    """C(x, x') = v0 exp(-1/2 sum_l w_l t_l^2) prod_l cos(2 pi f_l t_l), t = x - x'.

    ==========================  ================================
    theta                       log(v0, w_1, .., w_d, f_1, .., f_d)
    d log C / d log w_l         -w_l t_l^2 / 2
    dC / d log f_l              -2 pi f_l t_l sin(2 pi f_l t_l) times the other factors
    ==========================  ================================

    Notes
    -----
    With u = f_l x_l and C_l the other factors, the derivative to log f_l is the sum of -2 pi A_ij
    C_l (u_i - u_j) sin(2 pi (u_i - u_j)) over all i and j: since A is symmetric, twice that with
    u_i in the place of u_i - u_j. Cost O(n m d); memory beyond the result is a few blocks of rows.
    """

    def parameters(self) -> tuple[Parameter, ...]:
        """One variance, then weights and frequencies of the inputs."""
        return VARIANCE, WEIGHTS, _FREQUENCIES

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """Covariances of all pairs of rows."""
        rows = _Rows.of(theta, X, X)
        return _covariances(theta, rows, rows, out)

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Covariances of the rows of X with those of Z."""
        return _covariances(theta, _Rows.of(theta, X, Z), _Rows.of(theta, Z, Z), None)

    def diagonal(self, theta: Array, X: Array) -> Array:
        """The variance v0, the same for every row."""
        return np.full(len(X), np.exp(theta[0]))

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """d/dlog w_l from H = A * K; d/dlog f_l from products of all cosines but one."""
        d = X.shape[1]
        rows = _Rows.of(theta, X, X)
        others, sums = rows.transposed(), np.zeros(d)
        for block in row_blocks(len(X), len(X)):
            own = rows.taken(block)
            G = own.envelope(rows, theta[0])
            G *= A[block]
            slopes_of_cosines(G, own.turns, own.cosine, own.sine, *others, sums)
        H = np.multiply(A, K, out=A)
        h = H @ np.ones(len(H))
        of_weights = -np.exp(theta[1 : 1 + d]) * half_scatter(H, h, X)
        return np.concatenate(([h.sum()], of_weights, -4.0 * np.pi * sums))


@dataclass(frozen=True)
class _Rows:
    """Rows in units of the length scales, and how they turn along each input: all (n, d)."""

    scaled: Array
    turns: Array
    cosine: Array
    sine: Array

    @classmethod
    def of(cls, theta: Array, X: Array, reference: Array) -> _Rows:
        d = X.shape[1]
        turned = turned_rows(theta[1 + d :], X, reference)
        return cls(scaled_rows(theta[1 : 1 + d], X, reference), *turned)

    def taken(self, block: slice) -> _Rows:
        return _Rows(self.scaled[block], self.turns[block], self.cosine[block], self.sine[block])

    def transposed(self) -> tuple[Array, Array]:
        """Cosines and sines with one input in a row: (d, n)."""
        return np.ascontiguousarray(self.cosine.T), np.ascontiguousarray(self.sine.T)

    def envelope(self, other: _Rows, log_variance: float) -> Array:
        """v0 exp(-1/2 sum_l w_l t_l^2) for all pairs."""
        exponent = cdist(self.scaled, other.scaled, "sqeuclidean")
        exponent *= -0.5
        exponent += log_variance
        return np.asarray(np.exp(exponent, out=exponent))


def _covariances(theta: Array, rows: _Rows, others: _Rows, out: Array | None) -> Array:
    K = np.empty((len(rows.scaled), len(others.scaled))) if out is None else out
    turned = others.transposed()
    for block in row_blocks(*K.shape):
        own = rows.taken(block)
        K[block] = own.envelope(others, theta[0])
        multiply_by_cosines(K[block], own.cosine, own.sine, *turned)
    return K
