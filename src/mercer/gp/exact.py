"""The exact posterior of a GP classifier by delayed acceptance: sampler, warm-up, predictions.

A straight line through Laplace's errors: what makes the second stage accept more often.

The error of Laplace's log evidence changes with the hyperparameters, mostly with the signal
variance, and where it is steep a chain on Laplace's posterior proposes what the exact one refuses.
The first stage may aim at any density; so it aims at Laplace's posterior times exp(slope'theta).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import NumericalError
from mercer.gp.importance import (
    Estimate,
    EvidenceEstimator,
    lower_factor,
    matched_evidence,
    no_estimate,
)
from mercer.gp.laplace import ClassDraws, HyperparameterPosterior, LaplaceValues
from mercer.kernels.base import Kernel
from mercer.likelihoods.logistic import expected_logistic
from mercer.numerics.cholesky import Workspace, add_nugget, solve_lower
from mercer.posterior.diagnostics import effective_sample_size
from mercer.sampling.hmc import (
    HMC,
    HamiltonianAdaptation,
    HamiltonianTuning,
    HMCInfo,
    LearnedTuning,
    PointState,
)
from mercer.sampling.nuts import NUTS, NUTSInfo
from mercer.sampling.sampler import Adaptation, Point, Sampler, Target
from mercer.sampling.signals import is_late

__all__ = ["PredictiveDistance"]

Array = NDArray[np.float64]

_PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
_MIN_POINTS = 20


@dataclass(frozen=True)
class TiltedTarget:
    """A target times exp(slope'theta), slope of shape (p,)."""

    target: Target
    slope: Array

    def evaluate(self, theta: Array) -> Point:
        """Evaluate the target and tilt what it gives."""
        return tilted(self.target.evaluate(theta), self.slope)


def tilted(point: Point, slope: Array) -> Point:
    """Return the point with slope'theta added to its log density; the prior keeps it proper."""
    log_density = point.log_density + float(slope @ point.position)
    return replace(point, log_density=log_density, gradient=point.gradient + slope)


def fit_slope(theta: Array, errors: Array) -> Array:
    """Fit a slope (p,) by ridge regression on standardised coordinates.

    ``errors`` (k,) are estimated errors of Laplace's log evidence, nats, at distinct
    hyperparameters theta (k, p). The penalty, of six, is that whose predictions of left-out points
    are best; the slope is zero where the mean predicts as well, and where there are fewer than 20
    points.
    """
    k, p = theta.shape
    if k < _MIN_POINTS:
        return np.zeros(p)
    scale = theta.std(axis=0) + 1e-12
    Z, centred = (theta - theta.mean(axis=0)) / scale, errors - errors.mean()
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    projected = U.T @ centred
    best = float(np.mean((centred / (1.0 - 1.0 / k)) ** 2))
    coef = np.zeros(p)
    for penalty in _PENALTIES:
        shrink = s**2 / (s**2 + penalty)
        leverage = 1.0 / k + np.square(U) @ shrink
        residual = (centred - U @ (shrink * projected)) / (1.0 - leverage)
        score = float(np.mean(residual**2))
        if score < best:
            best, coef = score, Vt.T @ (shrink / s * projected)
    return np.asarray(coef / scale)


# The exact posterior of the hyperparameters by delayed acceptance.
#
# **Target.** p(theta | y), proportional to the exact evidence Z(theta) times the prior, of which
# only unbiased estimates Zhat can be had (`mercer.gp.importance`); jointly with the random numbers
# of the estimate, so that the hyperparameters alone have exactly this law (pseudo-marginal).
#
# **One step** (Christen & Fox 2005; Andrieu & Roberts 2009)
#
# 1. ``n_inner`` steps of HMC or NUTS, each reversible, on the tilted Laplace posterior
#    Z_LA(theta) exp(slope'theta) times the prior: theta -> theta'.
# 2. A new estimate Zhat(theta').
# 3. Accept theta' with its estimate with probability
#    min(1, [Zhat/(Z_LA exp(slope'theta'))](theta') / [Zhat/(Z_LA exp(slope'theta))](theta)).
#    The estimate at the current theta is the one it was accepted with: made anew, it would change
#    the law of the chain.
#
# A latent function is drawn with each estimate; hyperparameters and function together are draws
# from their exact joint posterior.
#
# **Symbols**: rho = log Zhat - log Z_LA -> ``log_laplace_error``.
#
# **Deviations.** Where step 1 ends at its start nothing is estimated. In warm-up step 3 may be left
# out, with or without step 2: `mercer.gp.exact`.
#
# **Cost.** The steps on Laplace's posterior, and as much as four to eight of its gradients.


@dataclass(frozen=True)
class Correction:
    """How Laplace's chain is corrected; warm-up learns it.

    ``slope`` (p,) is that of the tilt of the first stage; estimates are made where
    ``is_estimated``, and the second stage decides where ``is_exact``.
    """

    slope: Array
    is_estimated: bool
    is_exact: bool


@dataclass(frozen=True)
class ExactState:
    """The point at which the chain stands, and the estimate it was accepted with."""

    inner: PointState
    estimate: Estimate

    @property
    def point(self) -> Point:
        """The hyperparameters as Laplace's posterior sees them."""
        return self.inner.point


@dataclass(frozen=True)
class ExactInfo:
    """What a diagnostician needs to know of one step; of the inner steps, means and sums."""

    acceptance_rate: float
    second_acceptance_rate: float
    is_accepted: bool
    is_divergent: bool
    n_leapfrog: int
    step_size: float
    log_laplace_error: float
    weights_ess: float
    n_evidence_draws: int
    is_fallback: bool


@dataclass(frozen=True)
class DelayedAcceptance(Sampler[ExactState, ExactInfo]):
    """Delayed acceptance: Laplace's chain proposes, estimates of the evidence decide.

    ``inner`` is on Laplace's posterior ``model``, with its start, recorder and tuning; it takes
    ``n_inner`` steps between two decisions. Latent values are monitored at ``rows`` (k,).
    """

    inner: HMC | NUTS
    model: HyperparameterPosterior
    estimator: EvidenceEstimator
    rows: NDArray[np.int64]
    correction: Correction
    n_inner: int = 1

    def init(self, rng: np.random.Generator) -> ExactState:
        """Draw a start, evaluate it and estimate its evidence."""
        inner = self.inner.init(rng)
        return ExactState(inner, self._estimate(rng, inner.point))

    def step(self, rng: np.random.Generator, state: ExactState) -> tuple[ExactState, ExactInfo]:
        """Take the inner steps and decide about where they end."""
        correction = self.correction
        old = state
        if correction.is_estimated and state.estimate.n_draws == 0:  # a new part of warm-up
            old = ExactState(state.inner, self._estimate(rng, state.point))
        end, told = self._propose(rng, state.inner)  # step 1
        new, rate, is_accepted = old, 1.0, False
        if end is not state.inner:
            proposed = ExactState(end, self._estimate(rng, end.point))  # step 2
            rate = self._acceptance_rate(old, proposed)
            is_accepted = bool(rng.random() < rate)  # step 3
            new = proposed if is_accepted else old
        info = ExactInfo(
            acceptance_rate=float(np.mean([info.acceptance_rate for info in told])),
            second_acceptance_rate=rate,
            is_accepted=is_accepted,
            is_divergent=any(info.is_divergent for info in told),
            n_leapfrog=sum(info.n_leapfrog for info in told),
            step_size=self.inner.tuning.step_size,
            log_laplace_error=log_laplace_error(self.model, new),
            weights_ess=new.estimate.ess,
            n_evidence_draws=new.estimate.n_draws,
            is_fallback=new.estimate.is_fallback,
        )
        return new, info

    def record(self, state: ExactState) -> Mapping[str, Array]:
        """Return what the inner sampler records, Laplace's error and the exact function.

        A run whose time is up in the part of warm-up that estimates nothing records its state, too:
        there the function is the one of an estimate made for this, of random numbers of its own.
        """
        if not self.correction.is_estimated:
            estimate = self.estimator.estimate(np.random.default_rng(0), state.point)
            state = replace(state, estimate=estimate)
        estimate = state.estimate
        return {
            **self.inner.record(state.inner),
            "log_laplace_error": np.asarray(log_laplace_error(self.model, state)),
            "exact_latent": estimate.latent[self.rows],
            "exact_coef": estimate.coef,
        }

    def _propose(
        self, rng: np.random.Generator, start: PointState
    ) -> tuple[PointState, list[HMCInfo | NUTSInfo]]:
        """Take the inner steps; returns the start itself where none was accepted."""
        slope = self.correction.slope
        inner: Sampler[Any, Any] = replace(self.inner, target=TiltedTarget(self.model, slope))
        origin = replace(start, point=tilted(start.point, slope))
        told: list[HMCInfo | NUTSInfo] = []
        end = origin
        for _ in range(self.n_inner if self.correction.is_exact else 1):
            end, info = inner.step(rng, end)
            told.append(info)
        if np.array_equal(end.point.position, origin.point.position):
            return start, told
        return replace(end, point=tilted(end.point, -slope)), told

    def _estimate(self, rng: np.random.Generator, point: Point) -> Estimate:
        if not self.correction.is_estimated:
            return no_estimate(len(self.model.X))
        return self.estimator.estimate(rng, point)

    def _acceptance_rate(self, old: ExactState, new: ExactState) -> float:
        """Acceptance probability of the second stage."""
        if not self.correction.is_exact:
            return 1.0
        if not math.isfinite(new.estimate.log_evidence):
            return 0.0
        if not math.isfinite(old.estimate.log_evidence):
            return 1.0
        change = log_laplace_error(self.model, new) - log_laplace_error(self.model, old)
        change -= float(self.correction.slope @ (new.point.position - old.point.position))
        return math.exp(min(0.0, change))


def log_laplace_error(model: HyperparameterPosterior, state: ExactState) -> float:
    """Return rho = log Zhat - log Z_LA at a state, nats; not a number where there is no Zhat."""
    if not math.isfinite(state.estimate.log_evidence):
        return math.nan
    point = state.point
    log_laplace = point.log_density - model.prior.log_density(point.position)
    return state.estimate.log_evidence - log_laplace


def make_exact_sampler(
    inner: HMC | NUTS, model: HyperparameterPosterior, rows: NDArray[np.int64], *, n_inner: int = 1
) -> DelayedAcceptance:
    """Make the sampler whose first stage is ``inner``, a sampler of ``model``."""
    estimator = EvidenceEstimator(model.X, model.y, model.kernel)
    correction = Correction(np.zeros(len(model.prior.mean)), is_estimated=True, is_exact=True)
    return DelayedAcceptance(inner, model, estimator, rows, correction, n_inner)


# Warm-up of delayed acceptance: Laplace's chain first, then its errors, then the exact chain.
#
# 1. In the first half nothing is estimated: the chain finds Laplace's posterior and its mass.
# 2. Until five sixths the chain is still Laplace's, and every point that it visits gets an
# estimate:
#    from these comes the slope of the tilt.
# 3. The rest is the exact chain, on its way from Laplace's posterior to the exact one.
#
# Step size and mass are learned all the way, as for the inner sampler alone. Under 60 steps the
# chain is exact from its start, without a tilt.

_SHORTEST = 60  # steps of warm-up with all three parts


@dataclass(frozen=True)
class ExactTuning:
    """All that warm-up changes."""

    hamiltonian: HamiltonianTuning
    correction: Correction


@dataclass(frozen=True)
class LearnedCorrection:
    """What warm-up has learned so far.

    ``errors`` (k,) are estimates of Laplace's errors, nats, at the points theta (k, p).
    """

    hamiltonian: LearnedTuning
    theta: Array
    errors: Array


@dataclass(frozen=True)
class ExactAdaptation(Adaptation):
    """Tune `DelayedAcceptance` over the steps of ``hamiltonian``."""

    hamiltonian: HamiltonianAdaptation

    def init(self, sampler: DelayedAcceptance) -> LearnedCorrection:
        """Begin with nothing but the inner sampler's step size."""
        p = len(sampler.correction.slope)
        learned = self.hamiltonian.init(sampler.inner)
        return LearnedCorrection(learned, np.empty((0, p)), np.empty(0))

    def update(
        self, learned: LearnedCorrection, sampler: DelayedAcceptance, state: Any, info: Any
    ) -> tuple[LearnedCorrection, DelayedAcceptance]:
        """Learn from one step; go on to the next part of the warm-up where it begins."""
        tuned, inner = self.hamiltonian.update(learned.hamiltonian, sampler.inner, state, info)
        learned = dataclasses.replace(learned, hamiltonian=tuned)
        if sampler.correction.is_estimated and not sampler.correction.is_exact:
            learned = _noted(learned, sampler, state)
        correction = self._correction(learned, sampler.correction)
        return learned, dataclasses.replace(sampler, inner=inner, correction=correction)

    def finish(self, learned: LearnedCorrection, sampler: DelayedAcceptance) -> DelayedAcceptance:
        """Fix step size and mass; the correction is fixed already."""
        inner = self.hamiltonian.finish(learned.hamiltonian, sampler.inner)
        return dataclasses.replace(sampler, inner=inner)

    def tuning(self, sampler: DelayedAcceptance) -> ExactTuning:
        """Step size, mass and correction."""
        return ExactTuning(self.hamiltonian.tuning(sampler.inner), sampler.correction)

    def with_tuning(self, sampler: DelayedAcceptance, tuning: ExactTuning) -> DelayedAcceptance:
        """Return the sampler with this tuning."""
        inner = self.hamiltonian.with_tuning(sampler.inner, tuning.hamiltonian)
        return dataclasses.replace(sampler, inner=inner, correction=tuning.correction)

    def _correction(self, learned: LearnedCorrection, now: Correction) -> Correction:
        """Correction of the next step."""
        n_warmup, n_seen = self.hamiltonian.n_warmup, learned.hamiltonian.n_seen
        if n_warmup < _SHORTEST:
            return now
        if n_seen == 1:
            return dataclasses.replace(now, is_estimated=False, is_exact=False)
        if n_seen == n_warmup // 2:
            return dataclasses.replace(now, is_estimated=True)
        if n_seen == n_warmup - n_warmup // 6:
            slope = fit_slope(learned.theta, learned.errors)
            return Correction(slope, is_estimated=True, is_exact=True)
        return now


def _noted(learned: LearnedCorrection, sampler: DelayedAcceptance, state: Any) -> LearnedCorrection:
    """Add the point of a state, unless it is the last one or has no estimate."""
    error = log_laplace_error(sampler.model, state)
    is_last = len(learned.theta) > 0 and np.array_equal(learned.theta[-1], state.point.position)
    if is_last or not np.isfinite(error):
        return learned
    return dataclasses.replace(
        learned,
        theta=np.vstack([learned.theta, state.point.position]),
        errors=np.append(learned.errors, error),
    )


# Predictions from exact draws, and Laplace's from the same draws.
#
# **Exact.** Given theta and the latent values f of the training rows, the function at a new row is
# normal: mean k'K^-1 f, variance k** - k'K^-1 k, the nugget in K. The logistic is averaged over
# that normal distribution, then over draws of (theta, f).
#
# **Laplace's, reweighted.** A draw of the exact chain comes with its estimate Zhat(theta, u), u the
# random numbers that the estimate was made of; its law is p(theta) Zhat(theta, u) g(u) up to a
# constant. With weights exp(-rho) = Z_LA(theta)/Zhat(theta, u) the average of h(theta) tends to
#
#     int p(theta) Z_LA(theta) h(theta) int g(u) du dtheta / int p(theta) Z_LA(theta) dtheta:
#
# Laplace's posterior itself, whatever the noise of the estimates. So two predictions can be
# compared without a second chain, and chance changes both in the same direction.
#
# **Cost.** A factor of n x n a draw, and O(n^2) a draw and new row, for each of the two.


@dataclass(frozen=True, eq=False)
class ExactDraws(ClassDraws):
    """Draws of hyperparameters and latent values from the exact posterior.

    ``theta`` is (S, p), and ``dual_coef`` (S, n) "exact_coef": K^-1 f, nugget in K.
    """

    def expected(self, mean: Array, spread: Array) -> Array:
        """Probability of target 1, (m,)."""
        return expected_logistic(mean, spread)

    def joint(self, i: int, X: Array) -> tuple[Array, Array]:
        """Mean (m,) and covariance (m, m) of f at rows X (m, d), by draw ``i``."""
        cross = self.kernel.cross_gram(self.theta[i], X, self.X)
        V = solve_lower(self._factors(i, Workspace())[0], cross.T)
        return cross @ self.dual_coef[i], self.kernel.gram(self.theta[i], X) - V.T @ V

    def _at(self, i: int, factors: tuple[Array, ...], X: Array) -> tuple[Array, Array]:
        cross = self.kernel.cross_gram(self.theta[i], X, self.X)
        V = solve_lower(factors[0], cross.T)
        variance = self.kernel.diagonal(self.theta[i], X) - np.einsum("ij,ij->j", V, V)
        return cross @ self.dual_coef[i], np.maximum(variance, 0.0)

    def _solve(self, i: int, scratch: Workspace) -> tuple[Array, ...]:
        K = self.kernel.gram(self.theta[i], self.X, out=scratch.take("gram", len(self.X)))
        add_nugget(K)
        return (lower_factor(K),)


def draw_probabilities(draws: ClassDraws, X: Array) -> Iterator[Array]:
    """Yield the probabilities of target 1 at rows X (m, d), shape (m,), draw after draw."""
    proba = np.empty(len(X))
    for rows, mean, variance in draws.moments(X):
        proba[rows] = expected_logistic(mean, variance)
        if rows.start + len(mean) == len(X):
            yield proba.copy()


def laplace_weights(log_errors: Array) -> Array:
    """Turn Laplace's errors rho (S,), in nats, into weights exp(-rho) with mean 1."""
    weights = np.exp(log_errors.min() - log_errors)
    return np.asarray(weights / weights.mean())


# How far Laplace's predictions are from the exact ones, with the error of saying so.

_BATCHES = 24  # at least, in all chains together
_REGION_DRAWS = 50  # for the rows per region, which need no precision


@dataclass(frozen=True, eq=False)
class PredictiveDistance:
    """Differences between exact and Laplace's probabilities of target 1 over rows.

    Attributes
    ----------
    n_rows, n_draws : int
    mean : float
        Mean over rows of the absolute difference.
    mean_noise : float
        What that mean would be, were all differences 0 and only the draws' noise left.
    largest : float
        Largest absolute difference.
    largest_row : int
        Where it is.
    largest_error : float
        Its standard error; not a number, like ``mean_noise``, where there is a single batch.
    laplace_size : float
        Effective size of the draws as draws of Laplace's posterior.
    differences : ndarray of shape (n_rows,)
        Exact less Laplace's probability.
    """

    n_rows: int
    n_draws: int
    mean: float
    mean_noise: float
    largest: float
    largest_row: int
    largest_error: float
    laplace_size: float
    differences: Array


def predictive_distance(
    exact: ClassDraws, laplace: ClassDraws, log_errors: Array, X: Array, *, n_chains: int
) -> PredictiveDistance:
    """Compare exact and Laplace's predictions at standardised rows X (m, d), from the same draws.

    ``log_errors`` (S,) are "log_laplace_error" of the draws, nats; chain after chain, as all that
    belongs to draws.

    Standard errors are those of batch means: at least 24 stretches of draws, none across two
    chains, of exact minus weighted Laplace probability, the ratio of the latter linearised. They
    are too small where a stretch is shorter than the chain's memory.
    """
    batch_of = _batches(len(log_errors), n_chains)
    n_batches, weights = int(batch_of[-1]) + 1, laplace_weights(log_errors)
    of_exact, of_laplace = np.zeros((n_batches, len(X))), np.zeros((n_batches, len(X)))
    pairs = zip(draw_probabilities(exact, X), draw_probabilities(laplace, X), strict=True)
    for batch, weight, (p_exact, p_laplace) in zip(batch_of, weights, pairs, strict=True):
        of_exact[batch] += p_exact
        of_laplace[batch] += weight * p_laplace
    sizes = np.bincount(batch_of).astype(np.float64)
    of_weights = np.bincount(batch_of, weights)
    n = len(log_errors)
    p_exact, p_laplace = of_exact.sum(axis=0) / n, of_laplace.sum(axis=0) / n
    residual = of_exact - sizes[:, None] * p_exact - of_laplace + of_weights[:, None] * p_laplace
    scale = n_batches / (n_batches - 1) if n_batches > 1 else np.nan
    errors = np.sqrt(scale * np.square(residual).sum(axis=0)) / n
    difference = np.abs(p_exact - p_laplace)
    row = int(np.argmax(difference))
    return PredictiveDistance(
        n_rows=len(X),
        n_draws=n,
        mean=float(difference.mean()),
        mean_noise=float(np.sqrt(2.0 / np.pi) * errors.mean()),
        largest=float(difference[row]),
        largest_row=row,
        largest_error=float(errors[row]),
        laplace_size=effective_sample_size(-log_errors),
        differences=p_exact - p_laplace,
    )


def rows_per_region(
    kernel: Kernel, thetas: Array, training: Array, totals: Array, X: Array
) -> Array:
    """How many training rows are within about a length scale of each of X (m, d): shape (m,).

    The sum of their correlations with it, each as often as that row counts, ``totals`` (n,),
    averaged over some of the draws ``thetas`` (S, p).
    """
    chosen = np.unique(np.linspace(0, len(thetas) - 1, _REGION_DRAWS).astype(np.int64))
    total = np.zeros(len(X))
    for theta in thetas[chosen]:
        scales = [np.sqrt(kernel.diagonal(theta, rows)) for rows in (X, training)]
        correlation = kernel.cross_gram(theta, X, training) / np.outer(*scales)
        total += np.abs(correlation) @ totals
    return total / len(chosen)


def _batches(n_total: int, n_chains: int) -> NDArray[np.int64]:
    """Number of the batch of every draw, chain after chain."""
    length = n_total // n_chains
    per_chain = max(1, min(-(-_BATCHES // n_chains), length // 2))
    within = np.arange(length) * per_chain // length
    return np.concatenate([chain * per_chain + within for chain in range(n_chains)])


# Laplace's evidence, corrected by what expectation propagation says of a few hyperparameters.
#
# With 300 rows and 30 inputs Laplace's evidence is 2 to 8 nats too low, and from draw to draw the
# error changes by 1 to 2 nats: averages give too much weight to short length scales and small
# variances, whose predictions are too close to 1/2. The other's error is .1 to .2 nats, at three
# times the cost. Their difference is nearly a function of two numbers that Laplace's evaluation
# gives: what all rows say together, log|B|/2, and each by itself, sum log(1 + W_i K_ii)/2.

_RIDGE = 0.1  # in units of a position: two numbers may be nearly one where parameters are few
_LEAST_CALIBRATING = 6  # positions that must have an evidence
_MOST_LEFT = 0.5  # nats, of the standard deviation of what the fit leaves of the difference
_BEYOND = 0.5  # of the range of either number among them: farther out the difference stays
_UNCORRECTED = "hyperparameters are averaged by Laplace's evidence, uncorrected: "
# A normal log density is below its maximum by p/2 on average, with a standard deviation of
# (p/2)^.5; positions that are farther down by more than so many of these have no mass.
_WITHIN = 5.0


@dataclass(frozen=True)
class CalibratedValues:
    """`LaplaceValues` with the difference as fitted: a constant and slopes by the two numbers.

    These, (2,), are moved into the limits, (2,) each, before. ``error``, nats, is that of the fit.
    """

    values: LaplaceValues
    constant: float
    slopes: Array
    limits: tuple[Array, Array]
    error: float

    def __call__(self, theta: Array) -> tuple[float, Mapping[str, Array]]:
        """Return the log density, and the latent values and dual coefficients of a draw."""
        log_density, recorded = self.values(theta)
        return log_density + self.difference(theta, log_density, recorded), recorded

    def difference(self, theta: Array, log_density: float, recorded: Mapping[str, Array]) -> float:
        """Return what is added to Laplace's log density, where that is finite."""
        if not np.isfinite(log_density):
            return 0.0
        a = recorded["dual_coef"]
        two = _log_determinants(self.values.model, theta, log_density, a).clip(*self.limits)
        return self.constant + float(self.slopes @ two)


def calibrated(
    values: LaplaceValues, positions: Array, deadline: float | None = None
) -> tuple[LaplaceValues | CalibratedValues, tuple[str, ...]]:
    """Fit the difference of expectation propagation's evidence at positions (m, p) of theta.

    The values come back as they are, with a sentence that says so and why, where too few positions
    have such an evidence, where the difference is no such function, or once it is late.
    """
    model, found = values.model, list[tuple[Array, float]]()
    late = (f"{_UNCORRECTED}max_seconds left no time for expectation propagation's",)
    evaluated = []
    for theta in positions:
        if is_late(deadline):
            return values, late
        evaluated.append(values(theta))
    p, n_tried = positions.shape[1], 0
    best = max((log_density for log_density, _ in evaluated), default=-np.inf)
    least = best - 0.5 * p - _WITHIN * np.sqrt(0.5 * p)
    for theta, (log_density, recorded) in zip(positions, evaluated, strict=True):
        if is_late(deadline):
            return values, late
        if not log_density >= least > -np.inf:
            continue
        n_tried += 1
        a, K = recorded["dual_coef"], model.kernel.gram(theta, model.X)
        with suppress(NumericalError):
            y, totals = model.Y, model.totals
            W = (y - a) * (totals - y + a) / totals
            log_evidence = matched_evidence(K, y, totals, a, W)
            if log_evidence is not None:
                difference = log_evidence + model.prior.log_density(theta) - log_density
                found.append((_log_determinants(model, theta, log_density, a), difference))
    if len(found) < _LEAST_CALIBRATING:
        said = f"expectation propagation settled at {len(found)} of the {n_tried} points that count"
        return values, (f"{_UNCORRECTED}{said}; {_LEAST_CALIBRATING} are needed",)
    numbers, differences = (np.array(each) for each in zip(*found, strict=True))
    mean, std = numbers.mean(axis=0), np.maximum(numbers.std(axis=0), 1e-9)
    z = (numbers - mean) / std
    slopes = np.linalg.solve(z.T @ z + _RIDGE * np.eye(2), z.T @ differences) / std
    constant = float(differences.mean() - slopes @ mean)
    left = float(np.std(differences - constant - numbers @ slopes))
    if not left < _MOST_LEFT:
        said = f"how far expectation propagation's differs is known to {left:.1f} nats only"
        return values, (_UNCORRECTED + said,)
    spare = _BEYOND * np.ptp(numbers, axis=0)
    limits = numbers.min(axis=0) - spare, numbers.max(axis=0) + spare
    error = left * math.sqrt(3.0 / (len(found) - 3.0))  # a constant and two slopes were fitted
    return CalibratedValues(values, constant, slopes, limits, error), ()


def _log_determinants(
    model: HyperparameterPosterior, theta: Array, log_density: float, a: Array
) -> Array:
    """log|B|/2, and what it would be if B were diagonal, from Laplace's log density."""
    y, totals = model.Y, model.totals
    first, second = (np.maximum(each / totals, 1e-300) for each in (totals - y + a, y - a))
    logs = np.log(first), np.log(second)
    log_likelihood = np.sum((totals - y) * logs[0] + y * logs[1])
    log_evidence = log_density - model.prior.log_density(theta)
    together = log_likelihood - 0.5 * (a @ (logs[1] - logs[0])) - log_evidence
    W = totals * first * second
    alone = 0.5 * np.log1p(W * model.kernel.diagonal(theta, model.X)).sum()
    return np.array([together, alone])
