"""Evidence of every noise rate from one ladder of rungs.

**Target.** With a common rate the likelihood depends on a classifier through its number of errors e
only, so the evidence of any rate, known or integrated out, follows from the prior law of e:

    p(labels | noise) = exp(log_no_errors) sum_e P(e) exp(-cost(e)).

**Method.** P(e) from the errors of a ladder of chains, rung k with costs U_k(e): see
`mercer.sphere.mbar`. Where rates differ between rows or classes, the cost takes the place of e.

**What cannot be known.** A number of errors that was never seen has P(e) = 0 here. So at q = 0,
where one error is one too many, there is an estimate only if some draw had none: let the last rung
reach eta = 9 or so. Without such a draw the value is nan, and `ErrorLaw.curve` leaves the rate
out: "no classifier separates the rows" and "the ladder is too short" look the same from here.

**Symbols.** eta_k, the cost of an error at rung k -> ``rung_costs[k] = eta_k * arange(n + 1)``.

**Cost.** O(M K^2) a Newton step, M distinct numbers of errors and K rungs. In all 5 ms for 1000
rows, 30 rungs and 1000 sweeps; 0.15 s for 10^5 rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import LabelNoise, fixed_rate
from mercer.sphere.mbar import LadderCounts, PriorWeights, weigh_draws

__all__ = [
    "ErrorLaw",
    "EvidenceCurve",
    "error_costs",
    "error_law",
    "log_evidence_of",
    "place_rungs",
]

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

_RUNGS = (6, 40)  # fewest and most that are placed


@dataclass(frozen=True)
class EvidenceCurve:
    """Log evidence of noise rates, in nats.

    Attributes
    ----------
    noise_rates, log_evidence, standard_error : ndarray of shape (n_rates,)
    """

    noise_rates: Array
    log_evidence: Array
    standard_error: Array


@dataclass(frozen=True)
class ErrorLaw:
    """Prior law of the number of errors.

    Attributes
    ----------
    log_prior : ndarray of shape (n + 1,)
        log P(e) for e = 0..n; -inf for numbers of errors that no draw had.
    support : ndarray of shape (M,), int64
        Those that some draw had.
    influence : ndarray of shape (n_blocks, M)
        Part of each block of sweeps in the error of log P(e), to first order.
    is_connected : bool
        Whether neighbouring rungs have draws in common; if not, standard errors are inf.
    """

    log_prior: Array
    support: IntArray
    influence: Array
    is_connected: bool

    def log_evidence(self, noise: LabelNoise) -> tuple[float, float]:
        """Log probability of the labels, in nats, and its standard error.

        Both nan where every draw has an error and the noise allows none: see the notes above.

        Raises
        ------
        ValueError
            If the noise is of other rows, or differs between rows or classes.
        """
        if not noise.is_common or len(noise.group) + 1 != len(self.log_prior):
            raise ValueError("the noise must be common to all rows, and of as many rows")
        weights = PriorWeights(self.log_prior[self.support], self.influence, self.is_connected)
        value, standard_error = weights.log_mean(error_costs(noise)[self.support])
        return value + noise.log_no_errors, standard_error

    def curve(self, rates: Array, n_classes: int = 2) -> EvidenceCurve:
        """Log evidence of known rates; those without a finite estimate are left out."""
        n = len(self.log_prior) - 1
        noises = [fixed_rate(float(q), n, n_classes) for q in rates]
        values = np.array([self.log_evidence(noise) for noise in noises]).reshape(-1, 2)
        is_known = np.isfinite(values).all(axis=1)
        return EvidenceCurve(rates[is_known], values[is_known, 0], values[is_known, 1])


def error_costs(noise: LabelNoise) -> Array:
    """Cost in nats of e = 0..n errors at a common rate: shape (n + 1,)."""
    return np.append(0.0, np.cumsum(noise.step[0, :-1]))


def error_law(errors: IntArray | Sequence[IntArray], rung_costs: Array) -> ErrorLaw:
    """Estimate the prior law of the number of errors from the draws of a ladder.

    Parameters
    ----------
    errors : ndarray of shape (n_sweeps, K), or a sequence of K arrays
        Errors of the draws of each rung, in the order of the sweeps; as a sequence the rungs may
        have different numbers of draws, at least 8. Chains follow one another.
    rung_costs : ndarray of shape (K, n + 1)
        Cost in nats of e errors at each rung; zero at the first, the prior.

    Returns
    -------
    ErrorLaw
    """
    columns = list(errors.T) if isinstance(errors, np.ndarray) else list(errors)
    if len(columns) != len(rung_costs) or rung_costs[0].any():
        raise ValueError("there must be one cost for each rung, and the first rung is the prior")
    support, index = np.unique(np.concatenate(columns), return_inverse=True)
    counts = LadderCounts.of([len(column) for column in columns], index, len(support))
    weights = weigh_draws(counts, rung_costs[:, support].T)
    log_prior = np.full(rung_costs.shape[1], -np.inf)
    log_prior[support] = weights.log_weight
    return ErrorLaw(log_prior, support, weights.influence, weights.is_connected)


def log_evidence_of(target: Array, rung_costs: Array) -> tuple[float, float]:
    """Log E_prior[exp(-cost)] for noise of any kind, and its standard error.

    Parameters
    ----------
    target : ndarray of shape (n_sweeps, K)
        Cost in nats of each rung's draws under the noise that is asked for.
    rung_costs : ndarray of shape (n_sweeps, K, K)
        rung_costs[s, k, j]: cost under rung j of the draw of rung k; zero for j = 0. For a ladder
        of powers of one likelihood, ``target[:, :, None] * powers``.

    Returns
    -------
    tuple of float
        To be added to ``log_no_errors``. Both nan if no draw is possible under the target.
    """
    n_sweeps, n_rungs = target.shape
    if rung_costs[..., 0].any():
        raise ValueError("the first rung must be the prior")
    counts = LadderCounts.of([n_sweeps] * n_rungs, np.arange(target.size), target.size)
    weights = weigh_draws(counts, rung_costs.transpose(1, 0, 2).reshape(target.size, n_rungs))
    return weights.log_mean(target.T.ravel())


def place_rungs(etas: Array, errors: Array | IntArray, step: float = 1.2) -> Array:
    """Rungs at equal thermodynamic length from those of a pilot run.

    Length is the integral of sd(e) d eta: neighbours at distance d differ by so many standard
    deviations and swap with probability erfc(d/2), 0.4 at 1.2. The standard deviation is
    interpolated in logarithms, and scaled on each interval so that the integral of the variance is
    the fall of the mean, which it must be; by at most a factor of two, as pilot runs are short.

    Parameters
    ----------
    etas : ndarray of shape (K,)
        Rising, from 0; or powers of a likelihood.
    errors : ndarray of shape (n_sweeps, K)
        Errors of the draws of each rung, or their costs.
    step : float
        Wanted distance.

    Returns
    -------
    ndarray of shape (6 to 40,)
        From 0 to the last of ``etas``.
    """
    if len(etas) < 2 or etas[0] != 0.0 or (np.diff(etas) <= 0.0).any():
        raise ValueError("etas must rise from 0")
    mean, sd = errors.mean(axis=0), errors.std(axis=0)
    # A rung that never moves has no scale: a hundredth of the largest keeps the inverse defined.
    log_sd = np.log(np.maximum(sd, max(0.01 * float(sd.max()), 1e-12)))
    length, grid = [0.0], [0.0]
    for k in range(len(etas) - 1):
        eta = np.linspace(etas[k], etas[k + 1], 51)
        density = np.exp(np.interp(eta, etas, log_sd))
        variance = _trapezoid(density**2, eta)[-1]
        fall = max(float(mean[k] - mean[k + 1]), 0.0)
        scale = np.clip(np.sqrt(fall / variance), 0.5, 2.0)
        length.extend(length[-1] + scale * _trapezoid(density, eta)[1:])
        grid.extend(eta[1:])
    n_rungs = int(np.clip(np.ceil(length[-1] / step) + 1, *_RUNGS))
    placed = np.interp(np.linspace(0.0, length[-1], n_rungs), length, grid)
    placed[-1] = etas[-1]
    return placed


def _trapezoid(y: Array, x: Array) -> Array:
    """Integral of y from the first x to each: shape of x."""
    return np.append(0.0, np.cumsum(0.5 * (y[1:] + y[:-1]) * np.diff(x)))
