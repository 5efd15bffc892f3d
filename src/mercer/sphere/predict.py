"""What a cloud of classifiers says of new rows: probabilities, votes, information.

Latent values of new rows come as means given each draw and a spread that is the same for every
draw: the part of f outside the span of the training rows, and the nugget. With them the class of a
row is certain given a draw, or has the probability Phi(mean / spread).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, log_ndtr, ndtr

__all__ = [
    "class_probability",
    "entropy_bits",
    "finite_log_score",
    "recorded_probability",
    "votes",
]

Array = NDArray[np.float64]

# Nodes of the integral over the largest of several normal variables.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
# A spread below this share of the row's largest mean is rounding.
_NO_SPREAD = 1e-7
# A probability is kept this far from 0 and 1, so that a log score is finite.
_SMALLEST_PROBA = 1e-12


def class_probability(means: Array, spread: Array) -> Array:
    """P(class | draw) of each row.

    Parameters
    ----------
    means : ndarray of shape (k, m) or (k, C, m)
        Of f: of the second of two classes against the first, or of each of C classes.
    spread : ndarray of shape (m,)
        Standard deviation of f given the draw.

    Returns
    -------
    ndarray of shape (k, C, m)
        Sums to one over classes; ties share.
    """
    if means.ndim == 2:
        p = _above_zero(means, spread)
        return np.stack([1.0 - p, p], axis=1)
    is_largest = means == means.max(axis=1, keepdims=True)
    p = is_largest / is_largest.sum(axis=1, keepdims=True)
    wide = np.flatnonzero(spread > _NO_SPREAD * np.abs(means).max(axis=(0, 1), initial=0.0))
    if len(wide):
        p[:, :, wide] = _largest_of_normals(means[:, :, wide] / spread[wide])
    return np.asarray(p)


def _above_zero(means: Array, spread: Array) -> Array:
    is_wide = spread > _NO_SPREAD * np.abs(means).max(axis=0, initial=0.0)
    certain = 0.5 * (1.0 + np.sign(means))
    return np.where(is_wide, ndtr(means / np.where(is_wide, spread, 1.0)), certain)


def _largest_of_normals(z: Array) -> Array:
    """P(z_c + e_c is the largest), e ~ N(0, I), for z of shape (k, C, m)."""
    p = np.empty_like(z)
    for c in range(z.shape[1]):
        others = np.delete(z, c, axis=1)
        total = np.zeros((z.shape[0], z.shape[2]))
        for node, weight in zip(_NODES, _WEIGHTS, strict=True):
            gap = node + z[:, c : c + 1] - others
            total += weight * np.exp(log_ndtr(gap).sum(axis=1))
        p[:, c] = total
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def recorded_probability(v: Array, rates: Array) -> Array:
    """P(recorded label | draw) from P(class | draw) and the noise rates of the draws.

    Parameters
    ----------
    v : ndarray of shape (k, C, m)
    rates : ndarray of shape (k, 1), (k, C) or (k, C, C)
        One rate for all; one for each class, a wrong label being any other; or P(recorded y |
        class c) itself.

    Notes
    -----
    With one rate q: (1 - q) v + q (1 - v)/(C - 1).
    """
    n_classes = v.shape[1]
    if rates.ndim == 3:
        return np.asarray(np.einsum("kcm,kcy->kym", v, rates))
    if rates.shape[1] == 1:
        q = rates[:, :, np.newaxis]
        return np.asarray((1.0 - q) * v + q * (1.0 - v) / (n_classes - 1))
    q = rates[:, :, np.newaxis]
    wrong = q * v / (n_classes - 1)  # of each class, as each other
    return np.asarray((1.0 - q) * v + wrong.sum(axis=1, keepdims=True) - wrong)


def finite_log_score(p: Array, v: Array, *, has_noise: bool) -> Array:
    """Keep averaged probabilities p (C, m) of draws v (k, C, m) from being 0 or 1.

    Without noise, and where every draw is certain, k votes of n are (k + 1/C)/(n + 1).
    """
    n, n_classes = len(v), v.shape[1]
    kept = np.clip(p, _SMALLEST_PROBA, 1.0 - _SMALLEST_PROBA)
    if has_noise:
        return kept
    is_certain = ((v == 0.0) | (v == 1.0)).all(axis=(0, 1))
    return np.where(is_certain, (n * p + 1.0 / n_classes) / (n + 1.0), kept)


def votes(means: Array) -> NDArray[np.int64]:
    """Count the draws whose own classifier chooses each class: (m, C), eq. (4) before its sign.

    The part of f outside the span of the training rows is left out, as in the paper.
    """
    if means.ndim == 2:
        chosen, n_classes = (means > 0.0).astype(np.int64), 2
    else:
        chosen, n_classes = means.argmax(axis=1), means.shape[1]
    return np.stack([(chosen == c).sum(axis=0) for c in range(n_classes)], axis=1)


def entropy_bits(p: Array) -> Array:
    """Entropy of distributions over the last axis, in bits."""
    return np.asarray(entr(p).sum(axis=-1) / np.log(2.0))
