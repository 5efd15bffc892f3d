"""Compiled loops over one particle and its Polya-Gamma variables.

Given omega_s ~ PG(1, f_s) the likelihood is that of a regression: coefficients N(A^-1 b, A^-1) with
A = K' diag(omega) K + R, b = K'(y - 1/2), log evidence |U'^-1 b|^2 / 2 - log|U| + log|R| / 2,
A = U'U, up to a constant of the omegas. Omega is drawn afresh each time and never kept.

A design holds one column for each candidate, its rows along memory: shape (L, C, B).
"""

from __future__ import annotations

import math

from mercer.basis.regression.compiled import factorise_set, fill_columns, solve_back
from mercer.likelihoods.polya_gamma.compiled import fill_polya_gamma
from mercer.numerics.compilation import compiled

__all__ = [
    "augment",
    "draw_coefficients",
    "factorise",
    "fill_products",
    "fill_set",
    "log_evidence",
    "sum_of_both",
]

_FAST = {"contract", "reassoc", "nsz"}


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _add_scaled(f, column, value, n):
    for s in range(n):
        f[s] += value * column[s]


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _dot(a, b, n):
    total = 0.0
    for s in range(n):
        total += a[s] * b[s]
    return total


@compiled(nogil=True, error_model="numpy")
def augment(rng, features, n, n_mean, particles, i, columns, f, omega):
    """Draw omega of the first n rows given the particle's coefficients; return its columns' number.

    ``columns``, ``f`` and ``omega`` are written; ``features`` (C, B) are those of its level.
    """
    p = fill_columns(particles.members[i], particles.size[i], n_mean, columns)
    for s in range(n):
        f[s] = 0.0
    for j in range(p):
        _add_scaled(f, features[columns[j]], particles.beta[i, j], n)
    fill_polya_gamma(rng, f, n, omega)
    return p


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _weigh(omega, column, n, weighted):
    for s in range(n):
        weighted[s] = omega[s] * column[s]


@compiled(nogil=True, error_model="numpy")
def fill_products(features, omega, n, column, others, n_others, weighted, gram):
    """Write the products of one column with others, and with itself, into ``gram`` (C, C)."""
    _weigh(omega, features[column], n, weighted)
    gram[column, column] = _dot(weighted, features[column], n)
    for j in range(n_others):
        other = others[j]
        value = _dot(weighted, features[other], n)
        gram[column, other] = value
        gram[other, column] = value


@compiled(nogil=True, error_model="numpy")
def fill_set(features, omega, n, columns, p, weighted, gram):
    """Write the products of all pairs of a set's columns."""
    for j in range(p):
        fill_products(features, omega, n, columns[j], columns, j, weighted, gram)


@compiled(nogil=True, error_model="numpy")
def factorise(prior, gram, moment, columns, p, scale, U, w):
    """Factorise the regression of a set; return (log|U|, |U'^-1 b|^2)."""
    return factorise_set(
        gram, moment, columns, p, prior.n_mean, prior.mean_precision, 1.0 / scale, U, w
    )


@compiled(nogil=True, error_model="numpy")
def log_evidence(prior, half_logdet, fit, size, scale):
    """Return log p(y | set, omega, ...) up to a constant of the omegas."""
    half_prior = prior.n_mean * math.log(prior.mean_precision) - size * math.log(scale)
    return 0.5 * (fit + half_prior) - half_logdet


@compiled(nogil=True, error_model="numpy")
def draw_coefficients(rng, U, w, p, beta):
    """Write a draw of N(A^-1 b, A^-1) into beta; w is used up."""
    for j in range(p):
        w[j] += rng.standard_normal()
    solve_back(U, p, w, beta)


@compiled(nogil=True, error_model="numpy")
def sum_of_both(a, b):
    """Return log(e^a + e^b); one of them may be -inf."""
    highest = max(a, b)
    return highest + math.log(math.exp(a - highest) + math.exp(b - highest))
