"""Scalings of the inputs to choose among: all alike, and some that a Gaussian process finds likely.

**Prior.** Half of it lies on all inputs alike. The other half is spread over the logarithms of the
inputs' factors, independent standard normals about their mean: the common factor is that of the
length scale, which particles carry besides.

**Proposals.** No scaling drawn from that prior would be near the right one. So they are drawn near
what the first rows say: from q, the normal approximation (Laplace's) of their posterior under a
Gaussian process with a weight for each input. The prior probability of such a draw is its density
under the prior over that under q, one over the number of draws (importance sampling). What the
choice took from the targets is thereby given back: the evidence is unbiased for the prior above,
whatever q is. The probabilities have mean sum 1, not sum 1.

**By steps.** Particles begin with all scalings equally probable, and these probabilities come to
their place in equal steps on the log scale, one for each row that shaped q: at once, they would
leave no particle where the posterior is in the end. What a step costs is charged to the score of
its row: all that the choice took from the targets is given back in the sum of the scores.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import pdist

from mercer.basis.arrays import Array
from mercer.errors import NumericalError
from mercer.kernels.squared_exponential import SquaredExponentialARD
from mercer.numerics.cholesky import factorise, invert_factored

__all__ = ["Scalings", "all_alike", "relevance_scalings"]

# Log weights and log variances are normal around their start, with this standard deviation. A
# factor of an input is the root of its weight.
_SPREAD = 2.0
_FIRST_NOISE = 0.1
_MOST_ROWS = 300
_MOST_STEPS = 60
# With more inputs the curvature is not computed: proposals are then as wide as the prior.
_MOST_CURVED = 64
_DIFFERENCE = 1e-4
_ALIKE = 0.5


class Scalings(NamedTuple):
    """What particles choose among.

    Attributes
    ----------
    factors : ndarray of shape (A, d)
        Of the inputs; the first are all ones.
    log_prior : ndarray of shape (A,)
        Prior probability of each, in nats; see above for their sum.
    n_rows : int
        Rows that shaped them.
    """

    factors: Array
    log_prior: Array
    n_rows: int


def all_alike(d: int) -> Scalings:
    """Return the one scaling of d inputs that leaves them as they are."""
    return Scalings(np.ones((1, d)), np.zeros(1), 0)


def relevance_scalings(rng: np.random.Generator, Z: Array, y: Array, n_scalings: int) -> Scalings:
    """Draw scalings near what the first rows say, with prior probabilities that make up for it.

    Parameters
    ----------
    rng : numpy.random.Generator
    Z : ndarray of shape (n, d)
        Standardised rows; at most 300 are used.
    y : ndarray of shape (n,)
        Standardised targets.
    n_scalings : int
        With 1, or with one input, all are alike.
    """
    d = Z.shape[1]
    if n_scalings == 1 or d == 1 or len(Z) < 3:
        return all_alike(d)
    Z, y = Z[:_MOST_ROWS], y[:_MOST_ROWS]
    centre, root = _proposal(Z, y)
    n_draws = n_scalings - 1
    draws = rng.standard_normal((n_draws, d - 1))
    # In coordinates of the directions along which the mean of the log factors stays.
    away = centre + draws @ root.T
    log_prior = -0.5 * np.einsum("ai,ai->a", away, away)
    log_proposal = -0.5 * np.einsum("ai,ai->a", draws, draws)
    log_proposal -= math.log(abs(np.linalg.det(root)))
    weights = math.log((1.0 - _ALIKE) / n_draws) + log_prior - log_proposal
    factors = np.exp(away @ _directions(d).T)
    typical = np.median(pdist(Z))
    for factor in factors:
        distance = np.median(pdist(Z * factor))
        factor *= typical / distance if distance > 0.0 else 1.0
    return Scalings(
        np.concatenate([np.ones((1, d)), factors]),
        np.concatenate([[math.log(_ALIKE)], weights]),
        len(Z),
    )


def _directions(d: int) -> Array:
    """Orthonormal directions with mean 0: shape (d, d - 1)."""
    basis = np.concatenate([np.ones((d, 1)), np.eye(d)[:, 1:]], axis=1)
    return np.asarray(np.linalg.qr(basis)[0][:, 1:])


def _proposal(Z: Array, y: Array) -> tuple[Array, Array]:
    """Centre (d - 1,) and root of the covariance (d - 1, d - 1) of q, in these directions."""
    n, d = Z.shape
    kernel = SquaredExponentialARD()
    start = np.array([math.log(_FIRST_NOISE), 0.0, *np.full(d, -math.log(d))])

    def loss(theta: Array) -> tuple[float, Array]:
        noise = math.exp(theta[0])
        K = kernel.gram(theta[1:], Z)
        try:
            L = factorise(np.asfortranarray(K + noise * np.eye(n)))
        except NumericalError:
            return 1e10, np.zeros_like(theta)
        log_det = 2.0 * float(np.log(L.diagonal()).sum())
        inverse = np.tril(invert_factored(L))
        inverse += np.tril(inverse, -1).T
        alpha = inverse @ y
        A = 0.5 * (np.outer(alpha, alpha) - inverse)
        gradient = np.concatenate([[noise * np.trace(A)], kernel.gradient(theta[1:], Z, K, A)])
        away = (theta - start) / _SPREAD
        value = 0.5 * (float(y @ alpha) + log_det + float(away @ away))
        return value, away / _SPREAD - gradient

    bounds = [(math.log(1e-6), math.log(10.0)), (-8.0, 8.0), *[(-16.0, 8.0)] * d]
    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _MOST_STEPS}
    )
    best, Q = np.asarray(found.x), _directions(d)
    centre = Q.T @ (0.5 * best[2:])
    if d > _MOST_CURVED:
        return centre, np.eye(d - 1)
    gradient = loss(best)[1]
    hessian = np.array(
        [(loss(best + _DIFFERENCE * e)[1] - gradient) / _DIFFERENCE for e in np.eye(d + 2)]
    )
    # Where the rows say little, or the maximum was not reached: never wider than the prior.
    values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
    scaled = vectors[2:] / np.sqrt(np.maximum(values, _SPREAD**-2))
    half = 0.5 * Q.T @ scaled
    return centre, np.linalg.cholesky(half @ half.T)
