"""Stationary kernels: squared exponential, Matern, rational quadratic, periodic, mixtures."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from mercer.errors import UsageError
from mercer.kernels.base import (
    VARIANCE,
    WEIGHTS,
    Array,
    Kernel,
    Parameter,
    Stationary,
    Sum,
    block_memory,
    half_scatter,
    row_blocks,
    scaled_rows,
    turned_rows,
)
from mercer.numerics.compilation import compiled

__all__ = [
    "MaternARD",
    "Periodic",
    "RationalQuadraticARD",
    "SpectralComponent",
    "SpectralMixture",
    "SquaredExponentialARD",
]


# Compiled loops: arrays and scalars in and out. Loops over rows of a matrix are functions of
# their own, so that their arrays are known to be apart.


_FAST = {"reassoc", "contract"}  # no promise about infinities or NaN
# Of exponents: beyond, a covariance is 0. exp(-_FAR), 1e-87, is lost in every sum with a variance.
# Smaller ones, or products of them, would be subnormal numbers, with which exponentials, products
# and factors of matrices take two to six times as long.
_FAR = 200.0
_NEARLY = 1.0 + 1e-6  # two ways to compute an exponential differ by less


@compiled(nogil=True)
def _exponent_row(row: Array, z: Array, s: float, log_scale: float) -> None:
    for j in range(row.shape[0]):
        row[j] = max(min(row[j] - s - z[j], 0.0), -_FAR) + log_scale


@compiled(nogil=True)
def exponent_from_products(S: Array, s: Array, z: Array, log_scale: float) -> None:
    """Overwrite the inner products S_ij = x_i'z_j by log_scale - |x_i - z_j|^2 / 2.

    ``s`` and ``z`` are half the squared norms of the rows of x and z. Half the squared distance is
    not allowed to be negative by rounding, nor over `_FAR`.
    """
    for i in range(S.shape[0]):
        _exponent_row(S[i], z, s[i], log_scale)


@compiled(nogil=True)
def _take_half_squares(row: Array, z: Array, x: float) -> None:
    for j in range(row.shape[0]):
        row[j] -= 0.5 * (x - z[j]) * (x - z[j])


@compiled(nogil=True)
def minus_half_squares(S: Array, X: Array, Z: Array) -> None:
    """Overwrite S (n, m) by -|x_i - z_j|^2 / 2 of rows x of X (n, d) and columns z of Z (d, m)."""
    for i in range(S.shape[0]):
        S[i] = 0.0
        for k in range(Z.shape[0]):
            _take_half_squares(S[i], Z[k], X[i, k])


@compiled(nogil=True)
def _distance_row(row: Array, z: Array, s: float, rate: float, farthest: float) -> None:
    for j in range(row.shape[0]):
        row[j] = min(np.sqrt(max((s - row[j]) + z[j], 0.0)) * rate, farthest)


@compiled(nogil=True)
def distances_from_products(S: Array, s: Array, z: Array, rate: float, farthest: float) -> None:
    """Overwrite the inner products S_ij = x_i'z_j by rate |x_i - z_j| / sqrt(2), or ``farthest``.

    ``s`` and ``z`` are as in `exponent_from_products`.
    """
    for i in range(S.shape[0]):
        _distance_row(S[i], z, s[i], rate, farthest)


@compiled(nogil=True)
def _matern_row(a: Array, decay: Array, share: float, variance: float) -> None:
    for j in range(a.shape[0]):
        a[j] = decay[j] * (1.0 + a[j] * (1.0 + a[j] / share)) * variance


@compiled(nogil=True)
def matern_from_distances(a: Array, decay: Array, share: float, variance: float) -> None:
    """Overwrite scaled distances a (n, m) by variance (1 + a + a^2 / share) decay."""
    for i in range(a.shape[0]):
        _matern_row(a[i], decay[i], share, variance)


@compiled(nogil=True)
def _matern_slope_row(A: Array, K: Array, a: Array, factor: float, share: float) -> None:
    more = 0.0 if share == np.inf else 1.0  # the polynomial's slope over a: factor (1 + more a)
    inverse = 1.0 / share
    for j in range(a.shape[0]):
        A[j] *= K[j] * (factor * (1.0 + more * a[j]) / (1.0 + a[j] * (1.0 + a[j] * inverse)))


@compiled(nogil=True)
def multiply_by_matern_slopes(A: Array, K: Array, a: Array, factor: float, share: float) -> None:
    """Multiply A (n, m) by -C'(r) / r at the scaled distances a, given the covariances K.

    C'(r) / r has the exponential of K: K times the quotient of two polynomials in a. ``factor`` is
    nu / (nu - 1).
    """
    for i in range(a.shape[0]):
        _matern_slope_row(A[i], K[i], a[i], factor, share)


@compiled(nogil=True)
def _times_cosines(out: Array, row: Array, c: float, s: float, cosine: Array, sine: Array) -> None:
    for j in range(row.shape[0]):
        out[j] = row[j] * (c * cosine[j] + s * sine[j])


@compiled(nogil=True)
def multiply_by_cosines(
    K: Array, cosine: Array, sine: Array, others_cosine: Array, others_sine: Array
) -> None:
    """Multiply K_ij (n, m) by the product of cos(a_il - b_jl) over the inputs l.

    ``cosine`` and ``sine`` are those of the angles a, shape (n, d); ``others_cosine`` and
    ``others_sine`` of b, shape (d, m).
    """
    for i in range(K.shape[0]):
        for k in range(cosine.shape[1]):
            row = K[i]
            _times_cosines(row, row, cosine[i, k], sine[i, k], others_cosine[k], others_sine[k])


@compiled(nogil=True, fastmath=_FAST)
def _odd_sum(before: Array, after: Array, c: float, s: float, cosine: Array, sine: Array) -> float:
    total = 0.0
    for j in range(before.shape[0]):
        total += before[j] * after[j] * (s * cosine[j] - c * sine[j])
    return total


@compiled(allocates=True, nogil=True)
def slopes_of_cosines(
    G: Array,
    turns: Array,
    cosine: Array,
    sine: Array,
    others_cosine: Array,
    others_sine: Array,
    slopes: Array,
) -> None:
    """Add to slopes_l the sum over i, j of G_ij turns_il sin(a_il - b_jl) times the other cosines.

    Arguments are as in `multiply_by_cosines`, with ``turns`` of shape (n, d) and ``slopes`` of
    shape (d,). No cosine is divided by: products before and after l are kept. G is overwritten.
    """
    n, d = cosine.shape
    after = np.empty((d, G.shape[1]))  # after[l]: G times the cosines behind l
    for i in range(n):
        before = G[i]
        for j in range(len(before)):
            after[d - 1, j] = before[j]
        for k in range(d - 1, 0, -1):
            _times_cosines(
                after[k - 1], after[k], cosine[i, k], sine[i, k], others_cosine[k], others_sine[k]
            )
        before[:] = 1.0
        for k in range(d):
            c, s = cosine[i, k], sine[i, k]
            odd = _odd_sum(before, after[k], c, s, others_cosine[k], others_sine[k])
            slopes[k] += turns[i, k] * odd
            _times_cosines(before, before, c, s, others_cosine[k], others_sine[k])


# e^x = 2^k e^r with |r| <= log(2) / 2: log(2) in two parts, the first of few digits, and a series.
# Added to a number, `_ROUNDING` leaves the nearest integer in the last bits of the sum.
_INVERSE, _LOG_2, _REST = 1.4426950408889634, 6.93147180369123816e-1, 1.90821492927058770e-10
_ROUNDING, _BIAS, _MANTISSA = 1.5 * 2.0**52, 1023, 52
_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(13))


@compiled(nogil=True, fastmath={"contract"})
def _exponentials_of_row(row: Array, smallest: float) -> None:
    c = _FACTORIALS
    for j in range(row.shape[0]):
        x = row[j]
        shifted = min(max(x, -708.0), 709.0) * _INVERSE + _ROUNDING
        k = shifted - _ROUNDING
        r = (x - k * _LOG_2) - k * _REST
        tail = c[7] + r * (c[8] + r * (c[9] + r * (c[10] + r * (c[11] + r * c[12]))))
        series = c[2] + r * (c[3] + r * (c[4] + r * (c[5] + r * (c[6] + r * tail))))
        power = np.int64((np.float64(shifted).view(np.int64) + _BIAS) << _MANTISSA)
        value = (1.0 + (r + r * r * series)) * power.view(np.float64)
        row[j] = 0.0 if value <= smallest else value


@compiled(nogil=True)
def exponentials(K: Array, smallest: float) -> None:
    """Overwrite K (n, m) by exponentials, to two units of the last place, or 0 up to the smallest.

    Several at a time, which is three times as fast as one after the other; NaN stays.
    """
    for i in range(K.shape[0]):
        _exponentials_of_row(K[i], smallest)


def _exponential(exponent: Array, log_variance: float) -> Array:
    """Overwrite exponents, at least log_variance - `_FAR`, by exponentials: of the least by 0."""
    exponentials(exponent, np.exp(log_variance - _FAR) * _NEARLY)
    return exponent


# Inputs of which differences take no longer than a product of the rows. They lose no digits where
# rows that are close to each other are many length scales from the others.
_FEW_INPUTS = 2


def _products(points: Array, others: Array, out: Array) -> tuple[Array, Array]:
    """Fill ``out`` with S, and return s and z: S_ij - s_i - z_j is -|p_i - q_j|^2 / 2."""
    if points.shape[1] <= _FEW_INPUTS:
        minus_half_squares(out, np.ascontiguousarray(points), np.ascontiguousarray(others.T))
        return np.zeros(len(points)), np.zeros(len(others))
    np.matmul(points, others.T, out=out)
    s = 0.5 * (out.diagonal() if points is others else np.einsum("ij,ij->i", points, points))
    return s, s if points is others else 0.5 * np.einsum("ij,ij->i", others, others)


def _covariances_of_points(
    points: Array, others: Array, log_variance: float, out: Array | None
) -> Array:
    """v0 exp(-|p - q|^2 / 2) of points p (n, d) against others q (m, d), (n, m)."""
    K = np.empty((len(points), len(others))) if out is None else out
    if points.shape[1] > _FEW_INPUTS:  # of equal points one product is symmetric to the last bit
        exponent_from_products(K, *_products(points, others, K), log_variance)
        return _exponential(K, log_variance)
    for rows in row_blocks(*K.shape):  # each goes through the cache once
        exponent_from_products(K[rows], *_products(points[rows], others, K[rows]), log_variance)
        _exponential(K[rows], log_variance)
    return K


@dataclass(frozen=True)
class SquaredExponentialARD(Stationary):
    """C(x, x') = v0 exp(-1/2 sum_l w_l (x_l - x'_l)^2), theta = log(v0, w_1, .., w_d).

    Notes
    -----
    Eq. (8) of Barber & Williams. w_l is an inverse squared length scale, in units of the input.
    A value amid those of each input is subtracted before products are formed: a common offset costs
    no digits. Up to two inputs there are no products, and rows far from it lose none either.
    """

    def parameters(self) -> tuple[Parameter, ...]:
        """One variance and one weight per input."""
        return VARIANCE, WEIGHTS

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """Eq. (8) for all pairs of rows; cost O(n^2 d)."""
        points = scaled_rows(theta[1:], X, X)
        return _covariances_of_points(points, points, theta[0], out)

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Eq. (8) for the rows of X against those of Z; cost O(n m d)."""
        Xs, Zs = scaled_rows(theta[1:], X, Z), scaled_rows(theta[1:], Z, Z)
        return _covariances_of_points(Xs, Zs, theta[0], None)

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """With H = A * K, h = H 1: d/dlog v0 is sum h, others -w_l `half_scatter`(H, h, X)_l."""
        H = np.multiply(A, K, out=A)
        h = H @ np.ones(len(H))
        return np.concatenate(([h.sum()], -np.exp(theta[1:]) * half_scatter(H, h, X)))


# Matern covariances of half-integer smoothness with one weight per input.

Mask = NDArray[np.bool_]
_SMOOTHNESS = (0.5, 1.5, 2.5)
_SHARE = {1.5: np.inf, 2.5: 3.0}  # the polynomial is 1 + a + a^2 / share
_FAR_ROW = 1e3  # in length scales, along one input: beyond, products lose the digits of differences


@dataclass(frozen=True)
class MaternARD(Stationary):
    """Matern covariance of r = sqrt(sum_l w_l (x_l - x'_l)^2), theta = log(v0, w_1, .., w_d).

    With a = sqrt(2 nu) r and nu the smoothness:

    ====  ================================
    nu    C(x, x')
    ====  ================================
    1/2   v0 exp(-a)
    3/2   v0 (1 + a) exp(-a)
    5/2   v0 (1 + a + a^2 / 3) exp(-a)
    ====  ================================

    Attributes
    ----------
    smoothness : {0.5, 1.5, 2.5}
        nu; functions are differentiable ceil(nu) - 1 times.

    Notes
    -----
    w_l is an inverse squared length scale, in units of the input. A value amid those of each input
    is subtracted before scaling: a common offset costs no digits. Squared distances come from one
    product of the rows, whose rounding errors are below 1e-8; from differences of up to two
    inputs, for a row over a thousand length scales from there, and at smoothness 1/2: there a
    covariance goes with r, the root of the error. Cost O(n m d); memory beyond the result is one
    block of rows, and the rows far out.
    """

    smoothness: float

    def __post_init__(self) -> None:
        if self.smoothness not in _SMOOTHNESS:
            raise UsageError(f"smoothness must be 0.5, 1.5 or 2.5; got {self.smoothness!r}")

    def parameters(self) -> tuple[Parameter, ...]:
        """One variance and one weight per input."""
        return VARIANCE, WEIGHTS

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """Covariances of all pairs of rows."""
        Xs = scaled_rows(theta[1:], X, X)
        return self._covariances(theta, Xs, Xs, out)

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Covariances of the rows of X with those of Z."""
        return self._covariances(
            theta, scaled_rows(theta[1:], X, Z), scaled_rows(theta[1:], Z, Z), None
        )

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """With H = A * (-C'(r) / r): d/dlog w_l is -1/2 sum_ij H_ij w_l (x_il - x_jl)^2.

        Notes
        -----
        Where distances come from differences so do the squares, one input at a time: at smoothness
        1/2 the factor 1/r of rows that almost repeat would lift the errors of `half_scatter`.
        """
        Xs = scaled_rows(theta[1:], X, X)
        gradient, is_far = np.zeros(len(theta)), self._is_far(Xs)
        gradient[0] = np.vdot(A, K)
        memory = block_memory(*K.shape)
        for rows in row_blocks(*K.shape):
            out = memory[: rows.stop - rows.start]
            distances = self._scaled_distances(Xs[rows], Xs, is_far[rows], is_far, out)
            self._multiply_by_slopes(A[rows], K[rows], distances)
        np.fill_diagonal(A, 0.0)  # of no effect
        far = np.flatnonzero(is_far)
        for block in row_blocks(len(far), len(Xs)):
            own = far[block]
            H = A[own]
            H[:, far] *= 0.5  # those pairs come twice, all others once
            for k, column in enumerate(Xs.T, start=1):
                D = column[own, np.newaxis] - column
                D *= D
                gradient[k] -= np.vdot(H, D)
        if len(far) < len(Xs):
            A[far] = A[:, far] = 0.0
            gradient[1:] -= np.exp(theta[1:]) * half_scatter(A, A @ np.ones(len(A)), X)
        return gradient

    def _covariances(self, theta: Array, Xs: Array, Zs: Array, out: Array | None) -> Array:
        """Fill ``out``, or a new array, from rows in units of the length scales."""
        x_far = self._is_far(Xs)
        z_far = x_far if Xs is Zs else self._is_far(Zs)
        K = self._scaled_distances(Xs, Zs, x_far, z_far, out)
        variance, memory = np.exp(theta[0]), block_memory(*K.shape)
        for rows in row_blocks(*K.shape):
            a = K[rows]
            decay = _exponential(np.negative(a, out=memory[: len(a)]), 0.0)
            if self.smoothness == 0.5:
                np.multiply(decay, variance, out=a)
            else:
                matern_from_distances(a, decay, _SHARE[self.smoothness], variance)
        return K

    def _is_far(self, Xs: Array) -> Mask:
        """Which rows, in units of the length scales, have distances from differences: (n,)."""
        if self.smoothness == 0.5 or np.abs(Xs).max(initial=0.0) <= _FAR_ROW:
            return np.full(len(Xs), self.smoothness == 0.5)
        return np.asarray(np.abs(Xs).max(axis=1) > _FAR_ROW)

    def _scaled_distances(
        self, Xs: Array, Zs: Array, x_far: Mask, z_far: Mask, out: Array | None = None
    ) -> Array:
        """Fill ``out``, or a new array, with a = sqrt(2 nu) r, at most `_FAR`."""
        A = np.empty((len(Xs), len(Zs))) if out is None else out
        if x_far.all() or z_far.all():
            return self._from_differences(Xs, Zs, A)
        rate = np.sqrt(2.0 * self.smoothness) * np.sqrt(2.0)
        distances_from_products(A, *_products(Xs, Zs, A), rate, _FAR)
        if x_far.any():
            A[x_far] = self._from_differences(Xs[x_far], Zs)
        if z_far.any():
            A[:, z_far] = self._from_differences(Xs, Zs[z_far])
        return A

    def _from_differences(self, Xs: Array, Zs: Array, out: Array | None = None) -> Array:
        """Fill ``out``, or a new array, likewise, whatever the rows are."""
        A = np.empty((len(Xs), len(Zs))) if out is None else out
        for rows in row_blocks(*A.shape):
            block = cdist(Xs[rows], Zs, out=A[rows])
            block *= np.sqrt(2.0 * self.smoothness)
            np.minimum(block, _FAR, out=block)
        return A

    def _multiply_by_slopes(self, A: Array, K: Array, a: Array) -> None:
        """Multiply A by -C'(r) / r at the scaled distances a; 0 where 1/r is infinite."""
        nu = self.smoothness
        if nu == 0.5:  # the difference that 1/r is multiplied by is 0, too
            A *= np.divide(K, a, out=np.zeros_like(a), where=a > 0.0)
        else:  # 3 for 3/2, 5/3 for 5/2
            multiply_by_matern_slopes(A, K, a, nu / (nu - 1.0), _SHARE[nu])


# Rational quadratic covariance with one weight per input.

_SHAPE = Parameter("log_shape", "shape", per_input=False)


@dataclass(frozen=True)
class RationalQuadraticARD(Stationary):
    """C(x, x') = v0 (1 + s / alpha)^-alpha, s = 1/2 sum_l w_l (x_l - x'_l)^2.

    ==========================  =======================================
    theta                       log(v0, w_1, .., w_d, alpha)
    d log C / d log w_l         -w_l (x_l - x'_l)^2 / (2 (1 + s / alpha))
    d log C / d log alpha       -alpha log(1 + s / alpha) + s / (1 + s / alpha)
    ==========================  =======================================

    Notes
    -----
    Eq. (4.19) of [1]_: squared exponentials of many length scales, those of the inverse squares
    w tau with tau from a gamma law of shape alpha and mean 1. It tends to the squared exponential
    for large alpha, without loss of digits. Cost O(n m d); memory beyond the result is one block
    of rows, and in `gradient` a copy of the rows.

    References
    ----------
    .. [1] Rasmussen & Williams, Gaussian Processes for Machine Learning, MIT Press 2006.
    """

    def parameters(self) -> tuple[Parameter, ...]:
        """One variance, one weight per input, and alpha."""
        return VARIANCE, WEIGHTS, _SHAPE

    def gram(self, theta: Array, X: Array, out: Array | None = None) -> Array:
        """Covariances of all pairs of rows."""
        Xs = scaled_rows(theta[1:-1], X, X)
        return _covariances(theta, Xs, Xs, out)

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Covariances of the rows of X with those of Z."""
        Xs, Zs = scaled_rows(theta[1:-1], X, Z), scaled_rows(theta[1:-1], Z, Z)
        return _covariances(theta, Xs, Zs, None)

    def gradient(self, theta: Array, X: Array, K: Array, A: Array) -> Array:
        """With H = A * K / (1 + s / alpha): d/dlog w_l is -w_l `half_scatter`(H, H 1, X)_l."""
        Xs, alpha = scaled_rows(theta[1:-1], X, X), np.exp(theta[-1])
        H = np.multiply(A, K, out=A)
        gradient = np.empty(len(theta))
        gradient[0], gradient[-1] = H.sum(), 0.0
        for rows in row_blocks(len(Xs), len(Xs)):
            ratio = _ratio(alpha, Xs[rows], Xs)
            log_rate = np.log1p(ratio)
            ratio /= 1.0 + ratio
            log_rate -= ratio
            gradient[-1] -= alpha * np.vdot(H[rows], log_rate)
            H[rows] -= ratio * H[rows]  # 1 / (1 + r) = 1 - r / (1 + r)
        gradient[1:-1] = -np.exp(theta[1:-1]) * half_scatter(H, H @ np.ones(len(H)), X)
        return gradient


def _covariances(theta: Array, Xs: Array, Zs: Array, out: Array | None) -> Array:
    """Fill ``out``, or a new array, from rows in units of the length scales."""
    K = np.empty((len(Xs), len(Zs))) if out is None else out
    alpha = np.exp(theta[-1])
    for rows in row_blocks(*K.shape):
        exponent = np.log1p(_ratio(alpha, Xs[rows], Zs))
        exponent *= -alpha
        exponent += theta[0]
        np.exp(exponent, out=K[rows])
    return K


def _ratio(alpha: float, Xs: Array, Zs: Array) -> Array:
    """s / alpha: half the squared distances over alpha."""
    return np.asarray(cdist(Xs, Zs, "sqeuclidean") / (2.0 * alpha))


# Periodic covariance with one weight and one period per input.

_PERIODS = Parameter("log_period", "period", per_input=True)


@dataclass(frozen=True)
class Periodic(Stationary):
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
        return _covariances_of_points(points, points, theta[0], out)

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Covariances of the rows of X with those of Z."""
        points, others = _points(theta, X, Z), _points(theta, Z, Z)
        return _covariances_of_points(points, others, theta[0], None)

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


# Spectral mixture: a sum of squared exponentials, each times a cosine along every input.

_FREQUENCIES = Parameter("log_frequency", "frequency", per_input=True)
_MOST_COMPONENTS = 10


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
    if not is_whole or not 1 <= n_components <= _MOST_COMPONENTS:
        raise UsageError(
            f"a spectral mixture has from 1 to {_MOST_COMPONENTS} components; got {n_components!r}"
        )
    components = (SpectralComponent(),) * n_components
    return Sum(components) if n_components > 1 else components[0]


@dataclass(frozen=True)
class SpectralComponent(Stationary):
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
        return _mixture_covariances(theta, rows, rows, out)

    def cross_gram(self, theta: Array, X: Array, Z: Array) -> Array:
        """Covariances of the rows of X with those of Z."""
        return _mixture_covariances(theta, _Rows.of(theta, X, Z), _Rows.of(theta, Z, Z), None)

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
        np.maximum(exponent, -_FAR, out=exponent)
        exponent += log_variance
        return _exponential(exponent, log_variance)


def _mixture_covariances(theta: Array, rows: _Rows, others: _Rows, out: Array | None) -> Array:
    K = np.empty((len(rows.scaled), len(others.scaled))) if out is None else out
    turned = others.transposed()
    for block in row_blocks(*K.shape):
        own = rows.taken(block)
        K[block] = own.envelope(others, theta[0])
        multiply_by_cosines(K[block], own.cosine, own.sine, *turned)
    return K
