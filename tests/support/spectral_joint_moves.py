"""The joint moves of a frequency and its coefficients in NumPy, and Laplace's evidence."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit

N_NEWTON, SHORT = 10, 1e-3

Law = tuple[np.ndarray, np.ndarray]  # mode, negative Hessian


def laplace(
    f: np.ndarray, sign: np.ndarray, F: np.ndarray, precisions: np.ndarray,
    *, short: float = SHORT, most: int = N_NEWTON,
) -> Law:  # fmt: skip
    """Normal law around the mode of coefficients of features F (n, q), by Newton's method."""
    beta, H = np.zeros(len(precisions)), np.diag(precisions)
    for _ in range(most):
        p = expit(-sign * (f + F @ beta))
        gradient = F.T @ (sign * p) - precisions * beta
        H = (F.T * (p * (1.0 - p) * sign**2)) @ F + np.diag(precisions)
        step = np.linalg.solve(H, gradient)
        beta = beta + step
        if step @ gradient < short:
            break
    return beta, H


def log_law(beta: np.ndarray, law: Law) -> float:
    """Log density of a normal law, up to log 2 pi."""
    mode, H = law
    return float(0.5 * np.linalg.slogdet(H)[1] - 0.5 * (beta - mode) @ H @ (beta - mode))


def log_target(
    f: np.ndarray, sign: np.ndarray, F: np.ndarray, beta: np.ndarray, precisions: np.ndarray
) -> float:
    """Log likelihood and prior of the coefficients, up to a constant."""
    fit = log_expit(sign * (f + F @ beta))[sign != 0.0].sum()
    return float(fit - 0.5 * precisions @ np.square(beta))


def move_plain(
    now, proposed, sign, coef, ridge, normals, log_uniform, f, is_accepted, log_ratio,
    *, is_printed: bool = False,
) -> None:  # fmt: skip
    """As `mercer.spectral.loops.move_jointly`; or with the printed ratio (trap B1)."""
    for j in range(len(log_uniform)):
        own = slice(2 * j, 2 * j + 2)
        old, total, new = now[own].T, 0.0, []
        for k in range(len(f)):
            precisions, beta = np.full(2, ridge[k]), coef[k, own].copy()
            f[k] -= old @ beta
            laws = [laplace(f[k], sign[k], F, precisions) for F in (old, proposed[own].T)]
            factor = np.linalg.cholesky(laws[1][1])
            drawn = laws[1][0] + np.linalg.solve(factor.T, normals[j, k])
            total += log_target(f[k], sign[k], proposed[own].T, drawn, precisions)
            total -= log_target(f[k], sign[k], old, beta, precisions)
            total += log_law(drawn if is_printed else beta, laws[0]) - log_law(drawn, laws[1])
            new.append(drawn)
        log_ratio[j], is_accepted[j] = total, log_uniform[j] < total
        F = proposed[own].T if is_accepted[j] else old
        for k in range(len(f)):
            if is_accepted[j]:
                coef[k, own] = new[k]
            f[k] += F @ coef[k, own]


def laplace_evidence(F: np.ndarray, sign: np.ndarray, precisions: np.ndarray) -> float:
    """Laplace's log p(labels | W) of eq. (13); q coefficients give q / 2 log 2 pi, not n / 2."""
    mode, H = laplace(np.zeros(len(F)), sign, F, precisions, short=1e-20, most=50)
    q = len(precisions)
    log_prior_scale = 0.5 * np.log(precisions).sum() - 0.5 * q * np.log(2.0 * np.pi)
    top = log_target(np.zeros(len(F)), sign, F, mode, precisions) + log_prior_scale
    return float(top + 0.5 * q * np.log(2.0 * np.pi) - 0.5 * np.linalg.slogdet(H)[1])
