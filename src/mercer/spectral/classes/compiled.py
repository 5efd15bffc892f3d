"""Compiled loops: joint moves, one frequency with its coefficients after the other, and a gradient.

Rows stand in the inner loops; a move changes the functions f in place, so that the next frequency
meets them as they are. NumPy twins: `tests/twins/test_spectral_classes_compiled.py`.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.numerics.compilation import compiled

__all__ = ["move_jointly", "pull_of_phases"]

# Newton's method stops once twice the gain that it expects is this small, in nats: the law is a
# proposal, which the ratio corrects.
_SHORT = 1e-3
_MOST_STEPS = 10


@compiled(nogil=True, error_model="numpy")
def _gap(f, sign, cosine, sine, at_cosine, at_sine):
    """Log likelihood of f + at_cosine * cosine + at_sine * sine."""
    total = 0.0
    for i in range(len(f)):
        if sign[i] != 0.0:
            x = sign[i] * (f[i] + at_cosine * cosine[i] + at_sine * sine[i])
            total += min(x, 0.0) - math.log1p(math.exp(-abs(x)))
    return total


@compiled(nogil=True, error_model="numpy")
def _laplace(f, sign, cosine, sine, ridge):
    """Normal law around the mode of two coefficients, by Newton's method from 0.

    A function of what the other coefficients make of f and of one frequency alone. Returns the
    mode, and the factor L of the negative Hessian: L00, L10, L11.
    """
    a, b = 0.0, 0.0
    l00, l10, l11 = 1.0, 0.0, 1.0
    for _ in range(_MOST_STEPS):
        g0, g1 = -ridge * a, -ridge * b
        h00, h01, h11 = ridge, 0.0, ridge
        for i in range(len(f)):
            if sign[i] != 0.0:
                c, s = cosine[i], sine[i]
                p = 1.0 / (1.0 + math.exp(sign[i] * (f[i] + a * c + b * s)))
                weight = p * (1.0 - p)
                pull = sign[i] * p
                g0 += pull * c
                g1 += pull * s
                h00 += weight * c * c
                h01 += weight * c * s
                h11 += weight * s * s
        l00 = math.sqrt(h00)
        l10 = h01 / l00
        l11 = math.sqrt(h11 - l10 * l10)
        u0 = g0 / l00
        u1 = (g1 - l10 * u0) / l11
        step1 = u1 / l11
        a += (u0 - l10 * step1) / l00
        b += step1
        if u0 * u0 + u1 * u1 < _SHORT:
            break
    return a, b, l00, l10, l11


@compiled(nogil=True, error_model="numpy")
def _log_law(a, b, law):
    """Logarithm of the density of that law at two coefficients, up to log 2 pi."""
    mode_a, mode_b, l00, l10, l11 = law
    u0 = l00 * (a - mode_a) + l10 * (b - mode_b)
    u1 = l11 * (b - mode_b)
    return math.log(l00) + math.log(l11) - 0.5 * (u0 * u0 + u1 * u1)


@compiled(nogil=True, error_model="numpy")
def _log_target(f, sign, cosine, sine, a, b, ridge):
    """Log likelihood of two coefficients and their prior, up to a constant."""
    return _gap(f, sign, cosine, sine, a, b) - 0.5 * ridge * (a * a + b * b)


@compiled(nogil=True, error_model="numpy")
def move_jointly(now, proposed, sign, coef, ridge, normals, log_uniform, f, is_accepted, log_ratio):
    """Propose and decide some frequencies, each with two coefficients of every function.

    Parameters
    ----------
    now, proposed : ndarray of shape (2 m, n)
        Features of the frequencies, rows 2 j and 2 j + 1 the cosine and the sine of frequency j.
    sign : ndarray of shape (K, n)
        1 or -1: whether a row belongs to the class that the function tells; 0 if it says nothing.
    coef : ndarray of shape (K, 2 m)
        Changed in place.
    ridge : ndarray of shape (K,)
    normals : ndarray of shape (m, K, 2)
        Standard normal.
    log_uniform : ndarray of shape (m,)
    f : ndarray of shape (K, n)
        The functions at the rows; changed in place.
    is_accepted, log_ratio : ndarray of shape (m,)
        Written.
    """
    K, n = f.shape
    new = np.empty((K, 2))
    for j in range(len(log_uniform)):
        c0, s0, c1, s1 = now[2 * j], now[2 * j + 1], proposed[2 * j], proposed[2 * j + 1]
        total = 0.0
        for k in range(K):
            a, b = coef[k, 2 * j], coef[k, 2 * j + 1]
            for i in range(n):
                f[k, i] -= a * c0[i] + b * s0[i]
            law0 = _laplace(f[k], sign[k], c0, s0, ridge[k])
            law1 = _laplace(f[k], sign[k], c1, s1, ridge[k])
            new[k, 1] = law1[1] + normals[j, k, 1] / law1[4]
            new[k, 0] = (
                law1[0] + (normals[j, k, 0] - law1[3] * normals[j, k, 1] / law1[4]) / law1[2]
            )
            total += _log_target(f[k], sign[k], c1, s1, new[k, 0], new[k, 1], ridge[k])
            total -= _log_target(f[k], sign[k], c0, s0, a, b, ridge[k])
            total += _log_law(a, b, law0) - _log_law(new[k, 0], new[k, 1], law1)
        log_ratio[j] = total
        is_accepted[j] = log_uniform[j] < total
        for k in range(K):
            if is_accepted[j]:
                coef[k, 2 * j], coef[k, 2 * j + 1] = new[k, 0], new[k, 1]
                c, s = c1, s1
            else:
                c, s = c0, s0
            for i in range(n):
                f[k, i] += coef[k, 2 * j] * c[i] + coef[k, 2 * j + 1] * s[i]


@compiled(nogil=True, error_model="numpy", fastmath={"contract"})
def pull_of_phases(features, residual, coef, out):
    """Gradient of the log likelihood in the phase of each frequency at each row.

    Parameters
    ----------
    features : ndarray of shape (2 M, n)
        Rows 2 j and 2 j + 1 the cosine and the sine of frequency j.
    residual : ndarray of shape (K, n)
        Gradient in the functions.
    coef : ndarray of shape (K, q)
        The first 2 M are those of the features.
    out : ndarray of shape (M, n)
        Written.
    """
    n_frequencies, n_rows = out.shape
    for j in range(n_frequencies):
        cosine, sine, row = features[2 * j], features[2 * j + 1], out[j]
        row[:] = 0.0
        for k in range(len(coef)):
            a, b, r = coef[k, 2 * j], coef[k, 2 * j + 1], residual[k]
            for i in range(n_rows):
                row[i] += r[i] * (b * cosine[i] - a * sine[i])
