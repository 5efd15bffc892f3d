"""Compiled loops of the Laplace approximation: arrays and scalars in and out.

``U`` is the transpose of LAPACK's Fortran-ordered lower factor: the same memory, read row by row.
Twins in NumPy: ``tests/twins``.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

__all__ = ["chord_steps", "evidence_adjoint", "solve_factored", "weighted_identity_plus"]


@njit(cache=True, nogil=True)
def _scale_row(row, weights, scale, out):
    for i in range(row.shape[0]):
        out[i] = row[i] * weights[i] * scale


@njit(cache=True, nogil=True)
def weighted_identity_plus(K, root_weights, out):
    """Write the upper triangle of B = I + W^.5 K W^.5 into the C-ordered ``out``.

    Row by row through a function of vectors, here and below: so the loop is vectorised.
    """
    for j in range(K.shape[0]):
        _scale_row(K[j, j:], root_weights[j:], root_weights[j], out[j, j:])
        out[j, j] += 1.0


_FAST = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, fastmath=_FAST)
def _subtract_four(x, r0, r1, r2, r3, x0, x1, x2, x3):
    for i in range(x.shape[0]):
        x[i] -= r0[i] * x0 + r1[i] * x1 + r2[i] * x2 + r3[i] * x3


@njit(cache=True, nogil=True, fastmath=_FAST)
def _dot_four(x, r0, r1, r2, r3):
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for i in range(x.shape[0]):
        s0 += r0[i] * x[i]
        s1 += r1[i] * x[i]
        s2 += r2[i] * x[i]
        s3 += r3[i] * x[i]
    return s0, s1, s2, s3


@njit(cache=True, nogil=True)
def solve_factored(U, x):
    """Overwrite x with B^-1 x, where B = U'U and U is upper triangular with contiguous rows.

    Four rows at a time, so that the inner loops run at the speed of the memory.
    """
    n = x.shape[0]
    n4 = n - n % 4
    for j in range(0, n4, 4):  # U'z = x
        r0, r1, r2, r3 = U[j], U[j + 1], U[j + 2], U[j + 3]
        x0 = x[j] / r0[j]
        x1 = (x[j + 1] - r0[j + 1] * x0) / r1[j + 1]
        x2 = (x[j + 2] - r0[j + 2] * x0 - r1[j + 2] * x1) / r2[j + 2]
        x3 = (x[j + 3] - r0[j + 3] * x0 - r1[j + 3] * x1 - r2[j + 3] * x2) / r3[j + 3]
        x[j], x[j + 1], x[j + 2], x[j + 3] = x0, x1, x2, x3
        _subtract_four(
            x[j + 4 :], r0[j + 4 :], r1[j + 4 :], r2[j + 4 :], r3[j + 4 :], x0, x1, x2, x3
        )
    for j in range(n4, n):
        x[j] /= U[j, j]
        for i in range(j + 1, n):
            x[i] -= U[j, i] * x[j]
    for j in range(n - 1, n4 - 1, -1):  # U x = z
        s = x[j]
        for i in range(j + 1, n):
            s -= U[j, i] * x[i]
        x[j] = s / U[j, j]
    for j in range(n4 - 4, -1, -4):
        r0, r1, r2, r3 = U[j], U[j + 1], U[j + 2], U[j + 3]
        s0, s1, s2, s3 = _dot_four(x[j + 4 :], r0[j + 4 :], r1[j + 4 :], r2[j + 4 :], r3[j + 4 :])
        x3 = (x[j + 3] - s3) / r3[j + 3]
        x2 = (x[j + 2] - s2 - r2[j + 3] * x3) / r2[j + 2]
        x1 = (x[j + 1] - s1 - r1[j + 3] * x3 - r1[j + 2] * x2) / r1[j + 1]
        x0 = (x[j] - s0 - r0[j + 3] * x3 - r0[j + 2] * x2 - r0[j + 1] * x1) / r0[j]
        x[j], x[j + 1], x[j + 2], x[j + 3] = x0, x1, x2, x3


@njit(cache=True, nogil=True)
def _log_joint(a, f, y):
    """Psi = -a'f/2 + sum( y f - log(1 + e^f) ): log p(y | f) + log p(f) up to a constant."""
    value = 0.0
    for i in range(f.shape[0]):
        value += f[i] * (y[i] - 0.5 * a[i])
        value -= max(f[i], 0.0) + math.log1p(math.exp(-abs(f[i])))
    return value


@njit(cache=True, nogil=True)
def _residual(K, U, root_weights, y, a, f, out):
    """Write into ``out`` the chord step of a: g - W^.5 B^-1 W^.5 K g with g = (y - pi) - a."""
    n = f.shape[0]
    g = np.empty(n)
    for i in range(n):
        g[i] = y[i] - 1.0 / (1.0 + math.exp(-f[i])) - a[i]
    z = np.dot(K, g)
    for i in range(n):
        z[i] *= root_weights[i]
    solve_factored(U, z)
    for i in range(n):
        out[i] = g[i] - root_weights[i] * z[i]


@njit(cache=True, nogil=True)
def _eliminate(A, b):
    """Overwrite b with A^-1 b for a small symmetric A, overwritten too; pivots kept positive.

    Where a pivot vanishes to rounding (steps that are all but parallel) its unknown becomes 0.
    """
    m = b.shape[0]
    for k in range(m):
        if A[k, k] <= 0.0:
            A[k, k] = np.inf
        for i in range(k + 1, m):
            ratio = A[i, k] / A[k, k]
            for j in range(k, m):
                A[i, j] -= ratio * A[k, j]
            A[i, i] = max(A[i, i], 0.0)
            b[i] -= ratio * b[k]
    for k in range(m - 1, -1, -1):
        for j in range(k + 1, m):
            b[k] -= A[k, j] * b[j]
        b[k] /= A[k, k]


@njit(cache=True, nogil=True)
def _mix(step, steps, points, n_kept, out):
    """Move ``out`` from the last point to the Anderson mixture of the last ``n_kept`` points.

    The coefficients minimise the norm of the mixed step; ``steps[k]``, ``points[k]`` are the
    differences of a step and of the point that it led to from those before.
    """
    gram, coef = np.empty((n_kept, n_kept)), np.empty(n_kept)
    for k in range(n_kept):
        coef[k] = np.dot(steps[k], step)
        for m in range(k + 1):
            gram[k, m] = np.dot(steps[k], steps[m])
            gram[m, k] = gram[k, m]
        gram[k, k] *= 1.0 + 1e-12
    _eliminate(gram, coef)
    for k in range(n_kept):
        for i in range(out.shape[0]):
            out[i] -= coef[k] * points[k, i]


@njit(cache=True, nogil=True)
def _ascend(K, y, a, f, psi, step, new_a):
    """Move (a, f) to ``new_a`` if Psi does not fall, else along ``step``, halved until it does not.

    Returns Psi there, the largest change of f, and whether ``new_a`` was taken.
    """
    n = f.shape[0]
    floor = psi - 1e-12 * (1.0 + abs(psi))
    new_f = np.dot(K, new_a)
    new_psi = _log_joint(new_a, new_f, y)
    is_taken = new_psi >= floor
    fraction = 1.0
    while not new_psi >= floor and fraction > 1e-6:
        for i in range(n):
            new_a[i] = a[i] + fraction * step[i]
        new_f = np.dot(K, new_a)
        new_psi = _log_joint(new_a, new_f, y)
        fraction *= 0.5
    change = 0.0
    for i in range(n):
        change = max(change, abs(new_f[i] - f[i]))
        a[i] = new_a[i]
        f[i] = new_f[i]
    return new_psi, change, is_taken


@njit(cache=True, nogil=True)
def chord_steps(K, U, root_weights, y, a, f, tolerance, max_steps, memory):
    """Move (a, f = K a) towards the mode with one factor, Anderson acceleration, in place.

    Each step costs two products with K and one solve. Stops once the largest error that is left
    in f is below ``tolerance``, extrapolated from the last two changes (after one step, that
    change), or once the steps hardly shrink. Returns that error and the number of steps.
    """
    n = f.shape[0]
    steps, points = np.empty((memory, n)), np.empty((memory, n))
    step, last_step, last_point = np.empty(n), np.zeros(n), np.zeros(n)
    new_a = np.empty(n)
    psi = _log_joint(a, f, y)
    n_kept, change, error = 0, np.inf, np.inf
    for k in range(max_steps):
        _residual(K, U, root_weights, y, a, f, step)
        if k > 0 and memory > 0:
            row = (k - 1) % memory
            for i in range(n):
                steps[row, i] = step[i] - last_step[i]
                points[row, i] = a[i] + step[i] - last_point[i]
            n_kept = min(n_kept + 1, memory)
        for i in range(n):
            last_step[i] = step[i]
            last_point[i] = a[i] + step[i]
            new_a[i] = last_point[i]
        if n_kept > 0:
            _mix(step, steps, points, n_kept, new_a)
        previous = change
        psi, change, is_taken = _ascend(K, y, a, f, psi, step, new_a)
        if not is_taken:
            n_kept = 0
        shrinkage = min(change / previous, 0.9)
        error = change if k == 0 else change * shrinkage / (1.0 - shrinkage)
        if error < tolerance or (k >= 4 and change > 0.9 * previous):
            return error, k + 1
    return error, max_steps


@njit(cache=True, nogil=True)
def _adjoint_row(row, root_weights, a, q, scales):
    half_a_plus_q, half_a, half_weight = scales
    for i in range(row.shape[0]):
        row[i] = a[i] * half_a_plus_q + q[i] * half_a - root_weights[i] * half_weight * row[i]


@njit(cache=True, nogil=True)
def evidence_adjoint(inverse, root_weights, a, q):
    """Overwrite B^-1 by A = (a a' + q a' + a q' - W^.5 B^-1 W^.5)/2, symmetric.

    Only the upper triangle of the C-ordered ``inverse`` is read.
    """
    n = a.shape[0]
    for j in range(n):
        scales = (0.5 * (a[j] + q[j]), 0.5 * a[j], 0.5 * root_weights[j])
        _adjoint_row(inverse[j, j:], root_weights[j:], a[j:], q[j:], scales)
    for i in range(n):
        for j in range(i):
            inverse[i, j] = inverse[j, i]
