"""Compiled loops of Laplace's approximation for several classes: arrays and scalars in and out.

Arrays over classes and rows are (C, n), C-ordered; ``U`` is the transpose of LAPACK's
Fortran-ordered factor M, as in `mercer.gp.compiled`. Twins in NumPy: ``tests/twins``.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.gp.compiled import (
    _FAST,
    _LOCAL,
    _SMALL_ROOT_WEIGHT,
    _advance,
    _mixing_coef,
    _note_differences,
    solve_factored,
)
from mercer.numerics.compilation import compiled

__all__ = ["add_products", "add_weighted", "chord_steps", "column_sums", "mirror"]


@compiled(nogil=True)
def _add_weighted_row(row, roots, root, total):
    for i in range(row.shape[0]):
        total[i] += row[i] * roots[i] * root


@compiled(nogil=True)
def mirror(A):
    """Copy the upper triangle of A into the lower one, in place."""
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] = A[j, i]


@compiled(nogil=True)
def add_weighted(inverse, roots, total):
    """Add the upper triangle of D^.5 B^-1 D^.5 to that of ``total``."""
    for j in range(inverse.shape[0]):
        _add_weighted_row(inverse[j, j:], roots[j:], roots[j], total[j, j:])


@compiled(nogil=True)
def _softmax(f, proba):
    """Write the probabilities of all classes into ``proba``; return sum of log sum exp f."""
    n_classes, n = f.shape
    value = 0.0
    for i in range(n):
        largest = f[0, i]
        for c in range(1, n_classes):
            largest = max(largest, f[c, i])
        total = 0.0
        for c in range(n_classes):
            proba[c, i] = math.exp(f[c, i] - largest)
            total += proba[c, i]
        for c in range(n_classes):
            proba[c, i] /= total
        value += largest + math.log(total)
    return value


@compiled(nogil=True)
def _log_joint(a, f, Y, proba):
    """Psi = -a'f/2 + sum( Y f ) - sum log sum exp f; ``proba`` becomes the softmax of f."""
    value = -_softmax(f, proba)
    for c in range(f.shape[0]):
        for i in range(f.shape[1]):
            value += f[c, i] * (Y[c, i] - 0.5 * a[c, i])
    return value


@compiled(nogil=True)
def _multiply(K, b, out):
    """Write K_c b_c into ``out``, K of shape (C, n, n), or (1, n, n) for one that is shared."""
    for c in range(b.shape[0]):
        out[c] = np.dot(K[c if K.shape[0] > 1 else 0], b[c])


@compiled(nogil=True)
def _newton_step(K, inverses, roots, U, Y, a, f, step, step_f):
    """Write g - R K g into ``step``, g = (Y - pi) - a, and K times it into ``step_f``.

    With b = K g, x = (M M')^-1 sum E b and w_c = B_c^-1 D_c^.5 (b_c - x) they are g - D^.5 w and
    x + w / D^.5: the second costs nothing but where a weight is so small that rounding shows.
    """
    n_classes, n = f.shape
    b, w, x = np.empty((n_classes, n)), np.empty((n_classes, n)), np.zeros(n)
    _softmax(f, step)
    for c in range(n_classes):
        for i in range(n):
            step[c, i] = Y[c, i] - step[c, i] - a[c, i]
    _multiply(K, step, b)
    for c in range(n_classes):
        w[c] = np.dot(inverses[c], roots[c] * b[c])
        for i in range(n):
            x[i] += roots[c, i] * w[c, i]
    solve_factored(U, x)
    for c in range(n_classes):
        w[c] -= np.dot(inverses[c], roots[c] * x)
        for i in range(n):
            step[c, i] -= roots[c, i] * w[c, i]
        own = K[c if K.shape[0] > 1 else 0]
        for i in range(n):
            if roots[c, i] > _SMALL_ROOT_WEIGHT:
                step_f[c, i] = x[i] + w[c, i] / roots[c, i]
            else:
                step_f[c, i] = np.dot(own[i], step[c])


@compiled(nogil=True)
def _halve_until_ascent(Y, a, f, psi, step, step_f, new_a, new_f, proba):
    """Shorten the plain step until Psi does not fall; the new point goes into new_a and new_f."""
    floor = psi - 1e-12 * (1.0 + abs(psi))
    fraction = 1.0
    new_psi = -np.inf
    while not new_psi >= floor and fraction > 1e-6:
        new_a[:] = a + fraction * step
        new_f[:] = f + fraction * step_f
        new_psi = _log_joint(new_a, new_f, Y, proba)
        fraction *= 0.5
    return new_psi


@compiled(nogil=True)
def chord_steps(K, inverses, roots, U, Y, a, f, tolerance, max_steps, memory):
    """Move (a, f = K a) towards the mode with one set of factors, Anderson acceleration, in place.

    As `mercer.gp.compiled.chord_steps`, for (C, n) latent values. Each step costs one product with
    every K_c and two with every B_c^-1. Returns the error that is left in f and the number of
    steps.
    """
    size = f.size
    rows = max(memory, 1)
    steps, points, points_f = np.empty((rows, size)), np.empty((rows, size)), np.empty((rows, size))
    step, step_f, last_step = np.empty_like(f), np.empty_like(f), np.zeros(size)
    last_point, last_point_f = np.zeros(size), np.zeros(size)
    new_a, new_f, proba = np.empty_like(f), np.empty_like(f), np.empty_like(f)
    flat_step, flat_step_f = step.reshape(-1), step_f.reshape(-1)
    psi = _log_joint(a, f, Y, proba)
    n_kept, change, error, n_steps = 0, np.inf, np.inf, 0
    for k in range(max_steps):
        _newton_step(K, inverses, roots, U, Y, a, f, step, step_f)
        row = (k - 1) % rows
        steps[row] = flat_step - last_step
        last_step[:] = flat_step
        _note_differences(a.reshape(-1), flat_step, last_point, points[row])
        _note_differences(f.reshape(-1), flat_step_f, last_point_f, points_f[row])
        n_kept = min(n_kept + 1, memory) if k > 0 else 0
        coef = _mixing_coef(flat_step, steps, n_kept)
        _advance(a.reshape(-1), flat_step, points, coef, new_a.reshape(-1))
        _advance(f.reshape(-1), flat_step_f, points_f, coef, new_f.reshape(-1))
        if change > _LOCAL:
            new_psi = _log_joint(new_a, new_f, Y, proba)
            if not new_psi >= psi - 1e-12 * (1.0 + abs(psi)):
                n_kept = 0
                new_psi = _halve_until_ascent(Y, a, f, psi, step, step_f, new_a, new_f, proba)
            psi = new_psi
        previous = change
        change = np.abs(new_f - f).max()
        a[:] = new_a
        f[:] = new_f
        n_steps = k + 1
        shrinkage = min(change / previous, 0.9)
        error = change if k == 0 else change * shrinkage / (1.0 - shrinkage)
        if error < tolerance or (k >= 4 and change > 0.9 * previous):
            break
    _multiply(K, a, f)
    return error, n_steps


@compiled(nogil=True, fastmath=_FAST)
def _sums_of_row(row, inverse_row, difference, root):
    squares, products = 0.0, 0.0
    for k in range(row.shape[0]):
        u = inverse_row[k] * root - row[k]
        squares += u * u
        products += u * difference[k]
        row[k] *= root
    return squares, products


@compiled(nogil=True)
def column_sums(N, inverse_M, difference, roots, squares, products):
    """Sums over the columns of U = M^-1 D^.5 - N, and N scaled to V = N D^.5, of one class.

    All three matrices are given by their transposes, C-ordered; ``difference`` is M^-1 - M'. Row i
    of U meets itself in ``squares`` and ``difference`` in ``products``, both of shape (n,).
    """
    for i in range(N.shape[0]):
        squares[i], products[i] = _sums_of_row(N[i], inverse_M[i], difference[i], roots[i])


@compiled(nogil=True)
def _add_row(row, a, q, half_a_plus_q, half_a):
    for i in range(row.shape[0]):
        row[i] += a[i] * half_a_plus_q + q[i] * half_a


@compiled(nogil=True)
def add_products(A, a, q):
    """Add (a a' + q a' + a q')/2 to the upper triangle of A, a and q of shape (n,)."""
    for j in range(a.shape[0]):
        _add_row(A[j, j:], a[j:], q[j:], 0.5 * (a[j] + q[j]), 0.5 * a[j])
