"""Gaussians close to the posterior of latent values: Laplace's, shifted, and a variational one.

All are N(K c, (K^-1 + W)^-1) with a diagonal W, so one class describes them. The shifted Laplace
Gaussian has c = a + q, the mode moved to the mean in first order, and W at the mode. The
variational one maximises the lower bound

    E log p(y | f) - c'K c/2 + sum(gain)/2 - log|B|/2,  gain = 1 - diag B^-1,  B = I + W^.5 K W^.5

over c and W: there c = y - E pi and W = E pi (1 - pi), averages over the Gaussian itself. Its
variances are wider than Laplace's where the likelihood is skewed, which is what the weights of
importance sampling need.

**Steps.** From Laplace's Gaussian, at most three times: with the variances fixed, Newton
steps for c (concave), then W anew; the result is moved back towards the start of the step while the
bound falls. So it is never worse than the Gaussian that it starts from, and where no step succeeds
it is that one, and says so.

**Cost.** Two factors and an inverse for every step: O(n^3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.gp.compiled import weighted_identity_plus
from mercer.numerics.cholesky import factorise, invert_factored, solve_factored
from mercer.numerics.logistic_normal import logistic_moments

__all__ = ["SMALLEST_WEIGHT", "Proposal", "fit_variational", "make_proposal"]

Array = NDArray[np.float64]

_MAX_STEPS, _NEWTON_STEPS, _HALVINGS = 3, 4, 4
_SETTLED = 0.05  # change of log W, or of f in standard deviations, that no longer matters
SMALLEST_WEIGHT = 1e-12  # so that a logarithm and a root can be taken


@dataclass(frozen=True)
class Proposal:
    """N(K c, (K^-1 + W)^-1), n latent values in logits.

    Attributes
    ----------
    coef : ndarray of shape (n,)
        c, the coefficients of the mean.
    mean : ndarray of shape (n,)
        K c.
    root_weights : ndarray of shape (n,)
        W^.5.
    L : ndarray of shape (n, n)
        Factor of B in the lower triangle, Fortran-ordered.
    log_det : float
        log|B|/2.
    bound : float
        Lower bound of the log evidence, nats; minus infinity where it was not computed.
    is_settled : bool
        Whether the search that made it came to rest, or had nothing to search.
    """

    coef: Array
    mean: Array
    root_weights: Array
    L: Array
    log_det: float
    bound: float = -np.inf
    is_settled: bool = True


@dataclass(frozen=True)
class _Stage:
    """A proposal with the moments of its latent values."""

    proposal: Proposal
    weights: Array
    variance: Array


def make_proposal(K: Array, coef: Array, weights: Array) -> Proposal:
    """Make the Gaussian with these coefficients and this diagonal W, both of shape (n,).

    Raises
    ------
    NumericalError
        If B cannot be factorised in double precision.
    """
    root_weights = np.sqrt(weights)
    B = np.empty_like(K)
    weighted_identity_plus(K, root_weights, B)
    L = factorise(B.T)
    return Proposal(coef, K @ coef, root_weights, L, float(np.log(L.diagonal()).sum()))


def fit_variational(K: Array, y: Array, coef: Array, weights: Array) -> Proposal:
    """Climb the lower bound from the Gaussian with these coefficients and this W.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix, nugget included.
    y : ndarray of shape (n,)
        Targets, 0.0 or 1.0.
    coef, weights : ndarray of shape (n,)

    Returns
    -------
    Proposal
        ``is_settled`` is False where a step that was needed could not be taken.

    Raises
    ------
    NumericalError
        If B cannot be factorised in double precision.
    """
    best = _stage(K, y, coef, np.maximum(weights, SMALLEST_WEIGHT))
    for _ in range(_MAX_STEPS):
        new_coef = _newton(K, y, best)
        new_mean = K @ new_coef
        slope = logistic_moments(new_mean, best.variance).slope
        new_weights = np.maximum(slope, SMALLEST_WEIGHT)
        shift = (new_mean - best.proposal.mean) / np.sqrt(best.variance)
        stretch = np.log(new_weights / best.weights) * best.weights * best.variance
        change = max(float(np.abs(shift).max()), float(np.abs(stretch).max()))
        if change < _SETTLED:
            return best.proposal
        better = _raised(K, y, best, new_coef, new_weights)
        if better is None:
            return _unsettled(best.proposal)
        best = better
    return best.proposal


def _stage(K: Array, y: Array, coef: Array, weights: Array) -> _Stage:
    """Make a proposal, its variances and its bound."""
    plain = make_proposal(K, coef, weights)
    inverse = invert_factored(plain.L.copy(order="F"))
    gain = np.clip(1.0 - inverse.diagonal(), 0.0, weights * K.diagonal())
    variance = gain / weights
    log_likelihood = y @ plain.mean - logistic_moments(plain.mean, variance).softplus.sum()
    bound = log_likelihood - 0.5 * (coef @ plain.mean) + 0.5 * gain.sum() - plain.log_det
    proposal = Proposal(
        plain.coef, plain.mean, plain.root_weights, plain.L, plain.log_det, float(bound)
    )
    return _Stage(proposal, weights, variance)


def _newton(K: Array, y: Array, stage: _Stage) -> Array:
    """Newton steps for the coefficients, variances and B fixed; each raises the bound."""
    old, variance = stage.proposal, stage.variance
    coef, mean, w = old.coef, old.mean, old.root_weights
    moments = logistic_moments(mean, variance)
    value = y @ mean - moments.softplus.sum() - 0.5 * (coef @ mean)
    for _ in range(_NEWTON_STEPS):
        slope = y - moments.logistic - coef
        step = slope - w * solve_factored(old.L, w * (K @ slope))
        step_mean = K @ step
        fraction, new_value = 2.0, -np.inf
        while not new_value >= value and fraction > 0.01:
            fraction *= 0.5
            new_coef, new_mean = coef + fraction * step, mean + fraction * step_mean
            moments = logistic_moments(new_mean, variance)
            new_value = y @ new_mean - moments.softplus.sum() - 0.5 * (new_coef @ new_mean)
        if not new_value >= value:
            break
        coef, mean, value = new_coef, new_mean, new_value
        if (np.abs(step_mean) < _SETTLED * np.sqrt(variance)).all():
            break
    return coef


def _raised(K: Array, y: Array, best: _Stage, coef: Array, weights: Array) -> _Stage | None:
    """Go to the new Gaussian, or part of the way, where the bound is higher; None if nowhere."""
    fraction = 1.0
    for _ in range(_HALVINGS):
        part_coef = best.proposal.coef + fraction * (coef - best.proposal.coef)
        part_weights = best.weights * (weights / best.weights) ** fraction
        stage = _stage(K, y, part_coef, part_weights)
        if stage.proposal.bound > best.proposal.bound:
            return stage
        fraction *= 0.5
    return None


def _unsettled(proposal: Proposal) -> Proposal:
    return Proposal(
        proposal.coef, proposal.mean, proposal.root_weights, proposal.L, proposal.log_det,
        proposal.bound, is_settled=False,
    )  # fmt: skip
