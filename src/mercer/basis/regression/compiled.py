"""Compiled loops over one regression with a ridge: A = K'K + R = U'U, w = U'^-1 K'y.

U is upper triangular and stored by rows, so that every inner loop runs along memory. Twins in
NumPy: ``tests/twins``. Nothing here updates an inverse.
"""

from __future__ import annotations

import math

from mercer.numerics.compilation import compiled

__all__ = [
    "append_column",
    "append_terms",
    "constants",
    "drop_column",
    "drop_terms",
    "factorise_set",
    "fill_columns",
    "log_evidence",
    "precisions",
    "rotate_row",
    "solve_back",
    "solve_forward",
]

_FAST = {"contract", "reassoc", "nsz"}
_LOG_2PI = math.log(2.0 * math.pi)


@compiled(nogil=True, error_model="numpy")
def constants(prior, n):
    """Return the shape and the constant of the evidence of n rows, for `log_evidence`."""
    if prior.is_sampled:
        return 0.5 * n, -0.5 * n * _LOG_2PI
    a = prior.noise_shape
    shape = a + 0.5 * n
    constant = math.lgamma(shape) - math.lgamma(a) + a * math.log(prior.noise_rate)
    return shape, constant - 0.5 * n * _LOG_2PI


@compiled(nogil=True, error_model="numpy")
def precisions(prior, scale):
    """Return the prior precisions of the mean's and of the centres' coefficients."""
    of_centres = 1.0 / scale
    return (of_centres if prior.is_sampled else prior.mean_precision), of_centres


@compiled(nogil=True, error_model="numpy")
def log_evidence(prior, shape, constant, rss, half_logdet, size, scale, noise):
    """Return log p(y | set, ...): the noise variance integrated out, or given where sampled."""
    of_mean, of_centres = precisions(prior, scale)
    half_prior = 0.5 * (prior.n_mean * math.log(of_mean) + size * math.log(of_centres))
    if prior.is_sampled:
        fit = -shape * math.log(noise) - 0.5 * rss / noise
    else:
        fit = -shape * math.log(prior.noise_rate + 0.5 * rss)
    return constant + fit - half_logdet + half_prior


@compiled(nogil=True, error_model="numpy")
def fill_columns(members, size, n_mean, columns):
    """Write the columns of a set: those of the mean, then its members; return how many."""
    for j in range(n_mean):
        columns[j] = j
    for j in range(size):
        columns[n_mean + j] = members[j]
    return n_mean + size


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def factorise_set(gram, moment, columns, p, n_mean, of_mean, of_centres, U, w):
    """Factorise from the sums; return (log|U|, w'w).

    A pivot of a centre is never below its prior precision, which rounding could deny.
    """
    half_logdet, fit = 0.0, 0.0
    for i in range(p):
        row, Ui = gram[columns[i]], U[i]
        for j in range(i, p):
            Ui[j] = row[columns[j]]
        rest = moment[columns[i]]
        for r in range(i):
            Ur = U[r]
            left = Ur[i]
            for j in range(i, p):
                Ui[j] -= left * Ur[j]
            rest -= left * w[r]
        ridge = of_mean if i < n_mean else of_centres
        pivot = math.sqrt(max(Ui[i] + ridge, ridge))
        Ui[i] = pivot
        for j in range(i + 1, p):
            Ui[j] /= pivot
        w[i] = rest / pivot
        half_logdet += math.log(pivot)
        fit += w[i] * w[i]
    return half_logdet, fit


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def solve_forward(U, p, x, v):
    """Write v with U'v = x; x is used up."""
    for i in range(p):
        Ui = U[i]
        vi = x[i] / Ui[i]
        v[i] = vi
        for r in range(i + 1, p):
            x[r] -= Ui[r] * vi


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def solve_back(U, p, z, beta):
    """Write beta with U beta = z; both may be the same array."""
    for i in range(p - 1, -1, -1):
        Ui = U[i]
        rest = z[i]
        for r in range(i + 1, p):
            rest -= Ui[r] * beta[r]
        beta[i] = rest / Ui[i]


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def append_terms(gram, moment, columns, p, ridge, U, w, column, x, v):
    """Prepare one more column: return its squared pivot and its part e of K'y.

    v is written; appending it lowers the residual sum of squares by e^2 / pivot^2.
    """
    row = gram[column]
    for i in range(p):
        x[i] = row[columns[i]]
    solve_forward(U, p, x, v)
    square, part = row[column] + ridge, moment[column]
    for i in range(p):
        square -= v[i] * v[i]
        part -= v[i] * w[i]
    return max(square, ridge), part


@compiled(nogil=True, error_model="numpy")
def append_column(U, w, p, v, square, part):
    """Append the column that `append_terms` prepared, at position p."""
    for i in range(p):
        U[i, p] = v[i]
    pivot = math.sqrt(square)
    U[p, p] = pivot
    w[p] = part / pivot


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def drop_terms(U, w, p, j, x, v):
    """Return what dropping position j costs: (A^-1)_jj and the coefficient's estimate.

    The residual sum of squares rises by estimate^2 / (A^-1)_jj, and log|A| by its logarithm.
    """
    for i in range(p):
        x[i] = 0.0
    x[j] = 1.0
    variance, estimate = 0.0, 0.0
    for i in range(j, p):
        Ui = U[i]
        vi = x[i] / Ui[i]
        for r in range(i + 1, p):
            x[r] -= Ui[r] * vi
        variance += vi * vi
        estimate += vi * w[i]
    return variance, estimate


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def drop_column(U, w, p, j):
    """Drop position j by rotations of rows (i, i + 1), i >= j; return what falls out of w.

    The residual sum of squares rises by its square.
    """
    for i in range(p):
        Ui = U[i]
        for c in range(max(j, i - 1), p - 1):
            Ui[c] = Ui[c + 1]
    for i in range(j, p - 1):
        Ui, Un = U[i], U[i + 1]
        inverse = 1.0 / math.sqrt(Ui[i] * Ui[i] + Un[i] * Un[i])
        c, s = Ui[i] * inverse, Un[i] * inverse
        for r in range(i, p - 1):
            a, b = Ui[r], Un[r]
            Ui[r] = c * a + s * b
            Un[r] = c * b - s * a
        a, b = w[i], w[i + 1]
        w[i] = c * a + s * b
        w[i + 1] = c * b - s * a
    return w[p - 1]


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def rotate_row(U, w, p, x, y):
    """Take in a row of the design x and its target; return y - x'beta and 1 + x'A^-1 x before that.

    x is used up. Givens rotations of x into U, all cosines and sines known from the solution v of
    U'v = x, which is found in the same pass: with alpha_i = 1 + v_0^2 + ... + v_i^2 and z what is
    left of x, row i becomes sqrt(alpha_(i-1) / alpha_i) U_i + v_i / sqrt(alpha_(i-1) alpha_i) z.
    """
    alpha = 1.0
    for i in range(p):
        Ui = U[i]
        v = x[i] / Ui[i]
        beyond = alpha + v * v
        inverse = 1.0 / math.sqrt(alpha * beyond)
        c, k = alpha * inverse, v * inverse
        for r in range(i, p):
            u, z = Ui[r], x[r]
            Ui[r] = c * u + k * z
            x[r] = z - v * u
        rest = w[i]
        w[i] = c * rest + k * y
        y -= v * rest
        alpha = beyond
    return y, alpha
