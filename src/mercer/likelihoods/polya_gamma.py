# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled draws of PG(1, c), exact by Devroye's rejection, and of PG(b, c), all but exact.

**Target.** 1 / (1 + e^-f) = 1/2 e^(f/2) E[exp(-w f^2 / 2)] over w ~ PG(1, 0), and PG(1, c) has the
density of PG(1, 0) times exp(-c^2 w / 2) cosh(c/2) [1]_. Mean tanh(c/2) / (2c), 1/4 at c = 0.

**One draw** of x = 4 w, tilted by z = |c| / 2:

1. propose from two pieces joined at `_JOINT`: to the right an exponential, to the left an inverse
   Gaussian;
2. accept by the series sum_n (-1)^n a_n(x), whose partial sums bracket the density: here divided
   by a_0(x), so that no term overflows.

**Deviations.** Every loop is bounded: what is left at the bound, of probability below 1e-300, gets
the mean. Where the right piece has a share below e^-280 it is left out. NaN gives NaN.

**Cost**: about 0.1 microseconds.

References
----------
.. [1] N. G. Polson, J. G. Scott and J. Windle, "Bayesian Inference for Logistic Models Using
   Polya-Gamma Latent Variables", JASA 2013; the sampler is that of section 4.
"""

from __future__ import annotations

import math

from mercer.numerics.compilation import compiled

_JOINT = 0.64
_MOST_TRIES = 1000
# Above this z the right piece's share is below exp(-2 z - 0.32 z^2) or so, below e^-280.
_ALL_LEFT = 30.0
# Above this z the draw is its mean to fifty digits, and squares would leave the range of floats.
_LARGEST = 1e100


@compiled(nogil=True, error_model="numpy")
def _normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@compiled(nogil=True, error_model="numpy")
def _right_share(z):
    """Share of the exponential piece in the proposal."""
    if z > _ALL_LEFT:
        return 0.0
    rate = math.pi * math.pi / 8.0 + 0.5 * z * z
    right = 0.5 * math.pi / rate * math.exp(-rate * _JOINT)
    root = math.sqrt(1.0 / _JOINT)
    below = _normal_cdf(root * (_JOINT * z - 1.0))
    above = math.exp(2.0 * z) * _normal_cdf(-root * (_JOINT * z + 1.0))
    return right / (right + 2.0 * math.exp(-z) * (below + above))


@compiled(nogil=True, error_model="numpy")
def _left(rng, z):
    """Draw an inverse Gaussian with mean 1/z and shape 1, below the joint."""
    if z * _JOINT < 1.0:
        for _ in range(_MOST_TRIES):
            e = rng.standard_exponential()
            if e * e > 2.0 * rng.standard_exponential() / _JOINT:
                continue
            x = _JOINT / ((1.0 + _JOINT * e) * (1.0 + _JOINT * e))
            if rng.random() <= math.exp(-0.5 * z * z * x):
                return x
        return _JOINT
    mean = 1.0 / z
    for _ in range(_MOST_TRIES):
        y = rng.standard_normal()
        half = 0.5 * mean * y * y
        # the smaller root, written without the difference of nearly equal numbers
        x = mean / (1.0 + half + math.sqrt(half * (2.0 + half)))
        if rng.random() * (mean + x) > mean:
            x = mean * mean / x
        if x <= _JOINT:
            return x
    return mean


@compiled(nogil=True, error_model="numpy")
def _is_accepted(rng, x):
    """Accept with probability sum_n (-1)^n a_n(x) / a_0(x)."""
    u, total = rng.random(), 1.0
    for n in range(1, _MOST_TRIES):
        exponent = 0.5 * math.pi * math.pi * x if x > _JOINT else 2.0 / x
        term = (2.0 * n + 1.0) * math.exp(-n * (n + 1.0) * exponent)
        if n % 2 == 1:
            total -= term
            if u <= total:
                return True
        else:
            total += term
            if u > total:
                return False
    return True


@compiled(nogil=True, error_model="numpy")
def draw_polya_gamma(rng, c):
    """Draw PG(1, c) for any c; NaN gives NaN, an infinity 0."""
    if math.isnan(c):
        return math.nan
    z = 0.5 * abs(c)
    if z > _LARGEST:
        return 0.25 / z
    share = _right_share(z)
    rate = math.pi * math.pi / 8.0 + 0.5 * z * z
    for _ in range(_MOST_TRIES):
        is_right = rng.random() < share
        x = _JOINT + rng.standard_exponential() / rate if is_right else _left(rng, z)
        if _is_accepted(rng, x):
            return 0.25 * x
    return 0.25 if z == 0.0 else math.tanh(z) / (4.0 * z)


@compiled(nogil=True, error_model="numpy")
def fill_polya_gamma(rng, f, n, omega):
    """Write draws of PG(1, f_s) for the first n entries of f."""
    for s in range(n):
        omega[s] = draw_polya_gamma(rng, f[s])


# PG(b, c) of any shape b > 0, as counts need it.
#
# **Series** [1]_, section 2: with independent g_k ~ Gamma(b, 1),
#
#     PG(b, c) = sum_k g_k / d_k,      d_k = 2 pi^2 ((k - 1/2)^2 + (c / 2 pi)^2).
#
# `_N_TERMS` terms are drawn; the rest, a sum of ever smaller gammas, is one gamma with the mean and
# the variance of that rest. Where b e^-|c| is below e^-`_FAR` the law is an inverse Gaussian, of
# mean b / (2 |c|) and shape b^2 / 4: the first term of the series of the density, the others being
# smaller by that factor.
#
# **Error.** Mean and variance are exact; the third cumulant is to 2e-4 of itself, whatever b and
# c. The logarithm of E exp(-t PG), |t| up to ten over the standard deviation, is to 1e-4 where
# |c| is up to 5, to 1e-2 everywhere.
#
# **Cost**: about 0.7 microseconds, for every b.

_N_TERMS = 24
_FAR = 23.0
_SMALL = 0.5  # |c| below which (sinh c - c) / c^3 is its series


@compiled(nogil=True, error_model="numpy")
def _variance_of_one(c):
    """Variance of PG(1, c), c >= 0 and below 700."""
    if c < _SMALL:
        s = c * c
        cubic = 1.0 / 6.0 + s * (1.0 / 120.0 + s * (1.0 / 5040.0 + s / 362880.0))
    else:
        cubic = (math.sinh(c) - c) / (c * c * c)
    root = math.cosh(0.5 * c)
    return 0.25 * cubic / (root * root)


@compiled(nogil=True, error_model="numpy")
def _inverse_gaussian(rng, mean, shape):
    y = rng.standard_normal()
    half = 0.5 * mean / shape * y * y
    x = mean / (1.0 + half + math.sqrt(half * (2.0 + half)))
    return mean * (mean / x) if rng.random() * (mean + x) > mean else x


@compiled(nogil=True, error_model="numpy")
def draw_polya_gamma_of_shape(rng, b, c):
    """Draw PG(b, c) for b > 0 and any c; NaN gives NaN, an infinite c 0."""
    if math.isnan(b) or math.isnan(c):
        return math.nan
    c = abs(c)
    if c > _LARGEST:
        return 0.5 * b / c
    if c > _FAR + max(math.log(b), 0.0):
        return _inverse_gaussian(rng, 0.5 * b / c, 0.25 * b * b)
    mean = 0.25 if c < 1e-8 else math.tanh(0.5 * c) / (2.0 * c)
    variance, total, square = _variance_of_one(c), 0.0, c * c / (4.0 * math.pi * math.pi)
    for k in range(_N_TERMS):
        weight = 0.5 / (math.pi * math.pi * ((k + 0.5) * (k + 0.5) + square))
        total += weight * rng.standard_gamma(b)
        mean -= weight
        variance -= weight * weight
    return total + variance / mean * rng.standard_gamma(b * mean * mean / variance)


@compiled(nogil=True, error_model="numpy")
def fill_polya_gamma_of_shapes(rng, b, f, n, omega):
    """Write draws of PG(b_s, f_s) for the first n entries of b and f."""
    for s in range(n):
        omega[s] = draw_polya_gamma_of_shape(rng, b[s], f[s])
