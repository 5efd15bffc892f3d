"""Evidence of every noise rate from one tempered run, its approximation, and draws from that.

**Target.** With a common rate the likelihood depends on a classifier through its number of errors e
only, so the evidence of any rate, known or integrated out, follows from the prior law of e:

    p(labels | noise) = exp(log_no_errors) sum_e P(e) exp(-cost(e)).

**Method.** P(e) from the errors of tempered chains, rung k with costs U_k(e). Where rates differ
between rows or classes, the cost takes the place of e.

**What cannot be known.** A number of errors that was never seen has P(e) = 0 here. So at q = 0,
where one error is one too many, there is an estimate only if some draw had none: let the last rung
reach eta = 9 or so. Without such a draw the value is nan, and `ErrorLaw.curve` leaves the rate
out: "no classifier separates the rows" and "the run is too short" look the same from here.

**Symbols.** eta_k, the cost of an error at rung k -> ``rung_costs[k] = eta_k * arange(n + 1)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr, ndtri

from mercer.errors import NumericalError
from mercer.likelihoods.label_noise import IMPOSSIBLE, LabelNoise, fixed_rate, log_incomplete_beta
from mercer.numerics.cholesky import factorise, invert_triangle, multiply_lower

# Prior weights of the draws of all rungs, and how sure they are.
#
# **Target.** Rung k is a chain on the prior times exp(-U_k(x)), U_0 = 0; x is what the costs depend
# on (the number of errors, or a cost). With N_k draws a rung and H(x) draws of value x among them
# all, the most likely prior law of x is [1]_ (multistate Bennett acceptance ratio, MBAR)
#
#     P(x) = H(x) / D(x),   D(x) = sum_k N_k exp(f_k - U_k(x)),   f_k = -log sum_x P(x)
#     exp(-U_k(x)).
#
# **Solution.** The f_k, f_0 = 0, minimise the convex F(f) = sum_x H(x) log D(x) - sum_k N_k f_k:
# Newton's method, and the fixed-point step f_k above wherever that does not lower the gradient.
#
# **Standard errors.** Blocks of sweeps hold every rung, since swaps tie the rungs together. The
# influence of a block is its part in the first-order error of log P. The long-run variance of the
# series of blocks is the larger of two estimates: that of an autoregression of order one, and the
# sum of autocovariances up to where their pairs turn negative [2]_, which sees a second time scale.
#
# References
# ----------
# .. [1] Shirts & Chodera (2008), Statistically optimal analysis of samples from multiple
#    equilibrium states, J. Chem. Phys. 129.
# .. [2] Geyer (1992), Practical Markov chain Monte Carlo, Statistical Science 7.

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_MAX_BLOCKS = 40
_MIN_SWEEPS = 8
_TOLERANCE = 1e-9  # of sum_x P(x) exp(f_k - U_k(x)) = 1
_MAX_STEPS = 500
# Two sets of rungs that share less than this many draws tell nothing of each other.
_MIN_SHARED_DRAWS = 0.5


@dataclass(frozen=True)
class RungCounts:
    """Draws counted by the M values they have.

    By block of sweeps, at most 40, in ``by_block`` (B, M), and by rung in ``by_rung`` (K, M);
    ``rung_by_block`` (B, K) counts the draws of each rung in each block, whatever their value.
    """

    by_block: Array
    by_rung: Array
    rung_by_block: Array

    @classmethod
    def of(cls, sizes: list[int], index: IntArray, n_values: int) -> RungCounts:
        """From the numbers of draws of the rungs and the values of all draws, rung after rung."""
        if min(sizes) < _MIN_SWEEPS:
            raise ValueError(f"every rung needs {_MIN_SWEEPS} draws or more")
        n_blocks, n_rungs = min(_MAX_BLOCKS, min(sizes)), len(sizes)
        block = np.concatenate([np.arange(size) * n_blocks // size for size in sizes])
        rung = np.repeat(np.arange(n_rungs), sizes)
        return cls(
            _table(block, index, (n_blocks, n_values)),
            _table(rung, index, (n_rungs, n_values)),
            _table(block, rung, (n_blocks, n_rungs)),
        )


@dataclass(frozen=True)
class PriorWeights:
    """Estimated prior law of M values: log P(x), whose exponentials sum to 1.

    ``influence`` (B, M) is the part of each block of sweeps in the error of log P(x), to first
    order; ``is_connected`` says whether neighbouring rungs have draws in common.
    """

    log_weight: Array
    influence: Array
    is_connected: bool

    def log_mean(self, cost: Array) -> tuple[float, float]:
        """Log of the prior mean of exp(-cost), cost of shape (M,), and its standard error.

        Both are nan if no value is possible; the error is inf if the rungs are not connected.
        """
        log_joint = np.where(cost < IMPOSSIBLE, self.log_weight - cost, -np.inf)
        value = float(_log_sum(log_joint))
        if not np.isfinite(value):
            return np.nan, np.nan
        # At cost zero there is nothing to estimate, whatever the rungs.
        if not self.is_connected and cost.any():
            return value, np.inf
        by_block = self.influence @ np.exp(log_joint - value)
        return value, float(np.sqrt(_variance_of_sum(by_block)))


def weigh_draws(counts: RungCounts, U: Array) -> PriorWeights:
    """Estimate the prior law from the costs of the M values under the K rungs, shape (M, K)."""
    H, N = counts.by_block.sum(axis=0), counts.rung_by_block.sum(axis=0)
    log_D, W = _solve(U, H, N, _first_guess(U, counts.by_rung, N))
    shared = W.T @ (H[:, None] * W)
    # The draws that the rungs up to k share with those above: the fewest over k.
    crossing = [shared[: k + 1, k + 1 :].sum() for k in range(len(N) - 1)]
    is_connected = bool(min(crossing, default=np.inf) >= _MIN_SHARED_DRAWS)
    # Newton's step in f for each block alone, f_0 = 0.
    gradient = counts.by_block @ W - counts.rung_by_block
    change = np.zeros_like(gradient)
    change[:, 1:] = -_solve_linear((np.diag(N) - shared)[1:, 1:], gradient[:, 1:].T).T
    influence = counts.by_block / H - change @ W.T
    log_weight = np.log(H) - log_D
    log_weight -= _log_sum(log_weight)
    influence -= (influence @ np.exp(log_weight))[:, None]  # weights sum to 1 in any case
    return PriorWeights(log_weight, influence, is_connected)


def _table(rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> Array:
    flat = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1])
    return flat.reshape(shape).astype(np.float64)


def _first_guess(U: Array, by_rung: Array, N: Array) -> Array:
    """Each rung from the draws of the one before: f_k+1 = f_k - log mean exp(U_k - U_k+1)."""
    with np.errstate(divide="ignore"):
        log_share = np.log(by_rung / N[:, None])[:-1]
    return np.append(0.0, -np.cumsum(_log_sum(log_share - np.diff(U, axis=1).T, axis=1)))


def _solve(U: Array, H: Array, N: Array, f: Array) -> tuple[Array, Array]:
    """Minimise F(f): log D of shape (M,) and the shares W = N exp(f - U)/D (M, K) there."""
    log_D, W = _mixture(U, N, f)
    for _ in range(_MAX_STEPS):
        seen = H @ W
        if np.abs(seen / N - 1.0).max() < _TOLERANCE:
            break
        hessian = np.diag(seen) - W.T @ (H[:, None] * W)
        newton = f.copy()
        newton[1:] -= _solve_linear(hessian[1:, 1:], (seen - N)[1:, None])[:, 0]
        new_log_D, new_W = _mixture(U, N, newton)
        if _misfit(H @ new_W, N) < _misfit(seen, N):
            f, log_D, W = newton, new_log_D, new_W
        else:
            f = f - np.log(np.maximum(seen, 1e-300) / N)
            f = f - f[0]
            log_D, W = _mixture(U, N, f)
    return log_D, W


def _mixture(U: Array, N: Array, f: Array) -> tuple[Array, Array]:
    """Log D of shape (M,) and the share of each rung in it (M, K)."""
    log_terms = np.log(N) + f - U
    log_D = _log_sum(log_terms, axis=1)
    return log_D, np.exp(log_terms - log_D[:, None])


def _misfit(seen: Array, N: Array) -> float:
    return float((np.square(seen - N) / N).sum())


def _solve_linear(hessian: Array, right: Array) -> Array:
    """Solve with the Hessian of F, singular where rungs have nothing in common: least norm."""
    scale = np.sqrt(np.maximum(hessian.diagonal(), 1e-300))
    scaled = hessian / np.outer(scale, scale)
    solved = np.linalg.lstsq(scaled, right / scale[:, None], rcond=1e-13)[0]
    return np.asarray(solved / scale[:, None])


def _log_sum(x: Array, axis: int = 0) -> Array:
    """Log of the sum of exponentials; -inf where there is nothing."""
    top = np.maximum(x.max(axis=axis, keepdims=True), -1e300)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(x - top).sum(axis=axis, keepdims=True)) + top
    return np.asarray(total.squeeze(axis))


def _variance_of_sum(x: Array) -> float:
    """Variance of the sum of a stationary series whose entries sum to 0."""
    n = len(x)
    covariance = np.array([x[t:] @ x[: n - t] for t in range(n)]) / (n - 1.0)
    if covariance[0] <= 0.0:
        return 0.0
    # Autocovariances about the series' own mean are too small: (1 + 3 r)/n, and 1/n a lag.
    r = covariance[1] / covariance[0]
    r = float(np.clip(r + (1.0 + 3.0 * r) / n, 0.0, 0.9))
    autoregression = covariance[0] * (1.0 + r) / (1.0 - r)
    pairs = covariance[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    n_positive = int(np.argmin(np.append(pairs, -1.0) > 0.0))
    monotone = 2.0 * np.minimum.accumulate(pairs[:n_positive]).sum() - covariance[0]
    return float(n * max(autoregression, monotone / max(1.0 - (4 * n_positive - 1) / n, 0.25)))


_RUNGS = (6, 40)  # fewest and most that are placed


@dataclass(frozen=True)
class EvidenceCurve:
    """Log evidence of each of the noise rates, in nats, with its standard error."""

    noise_rates: Array
    log_evidence: Array
    standard_error: Array


@dataclass(frozen=True)
class ErrorLaw:
    """Prior law of the number of errors.

    ``log_prior`` is log P(e) for e = 0..n, -inf where no draw had so many; ``support`` lists
    the M numbers that some draw had. ``influence`` (blocks, M) is the part of each block of
    sweeps in the error of log P(e), to first order. Unless ``is_connected``, whether
    neighbouring rungs have draws in common, standard errors are inf. Of rates below
    ``least_rate`` nothing was seen.
    """

    log_prior: Array
    support: IntArray
    influence: Array
    is_connected: bool
    least_rate: float = 0.0

    def log_evidence(self, noise: LabelNoise) -> tuple[float, float]:
        """Log probability of the labels, in nats, and its standard error.

        Both nan where every draw has an error and the noise allows none: see the notes
        above. Rates that differ between rows or classes are refused.
        """
        if not noise.is_common or len(noise.group) + 1 != len(self.log_prior):
            raise ValueError("the noise must be common to all rows, and of as many rows")
        weights = PriorWeights(self.log_prior[self.support], self.influence, self.is_connected)
        value, standard_error = weights.log_mean(error_costs(noise)[self.support])
        return value + noise.log_no_errors, standard_error

    def curve(self, rates: Array, n_classes: int = 2) -> EvidenceCurve:
        """Log evidence of known rates; those without a finite estimate are left out."""
        n, rates = len(self.log_prior) - 1, rates[rates >= self.least_rate]
        noises = [fixed_rate(float(q), n, n_classes) for q in rates]
        values = np.array([self.log_evidence(noise) for noise in noises]).reshape(-1, 2)
        is_known = np.isfinite(values).all(axis=1)
        return EvidenceCurve(rates[is_known], values[is_known, 0], values[is_known, 1])


def error_costs(noise: LabelNoise) -> Array:
    """Cost in nats of e = 0..n errors at a common rate: shape (n + 1,)."""
    return np.append(0.0, np.cumsum(noise.step[0, :-1]))


def error_law(errors: IntArray | Sequence[IntArray], rung_costs: Array) -> ErrorLaw:
    """Estimate the prior law of the number of errors from the draws of all rungs.

    ``errors`` holds those of the draws of each of K rungs in the order of the sweeps, an array
    (n_sweeps, K) or, with different numbers of draws, at least 8, K arrays; chains follow one
    another. ``rung_costs`` (K, n + 1) is the cost in nats of e errors at each rung, zero at the
    first, the prior.
    """
    columns = list(errors.T) if isinstance(errors, np.ndarray) else list(errors)
    if len(columns) != len(rung_costs) or rung_costs[0].any():
        raise ValueError("there must be one cost for each rung, and the first rung is the prior")
    support, index = np.unique(np.concatenate(columns), return_inverse=True)
    counts = RungCounts.of([len(column) for column in columns], index, len(support))
    weights = weigh_draws(counts, rung_costs[:, support].T)
    log_prior = np.full(rung_costs.shape[1], -np.inf)
    log_prior[support] = weights.log_weight
    return ErrorLaw(log_prior, support, weights.influence, weights.is_connected)


def log_evidence_of(target: Array, rung_costs: Array) -> tuple[float, float, float]:
    """Log E_prior[exp(-cost)] for noise of any kind, its standard error, and effective draws.

    ``target`` (n_sweeps, K) is the cost in nats of each rung's draws under the noise that is
    asked for; rung_costs[s, k, j] that of the draw of rung k under rung j, zero for j = 0. The
    result is to be added to ``log_no_errors``, and is nan if no draw is possible under the target.
    Few effective draws (1 / sum of squared weights) tell that the rungs hardly see it.
    """
    n_sweeps, n_rungs = target.shape
    if rung_costs[..., 0].any():
        raise ValueError("the first rung must be the prior")
    counts = RungCounts.of([n_sweeps] * n_rungs, np.arange(target.size), target.size)
    weights = weigh_draws(counts, rung_costs.transpose(1, 0, 2).reshape(target.size, n_rungs))
    value, error = weights.log_mean(target.T.ravel())
    if not np.isfinite(value):
        return value, error, 0.0
    weight = np.exp(np.minimum(weights.log_weight - target.T.ravel() - value, 0.0))
    return value, error, float(1.0 / (weight @ weight))


def place_rungs(etas: Array, errors: Array | IntArray, step: float = 1.2) -> Array:
    """Rungs, 6 to 40, at equal thermodynamic length from those of a pilot run.

    Length is the integral of sd(e) d eta: neighbours at distance d = ``step`` differ by so many
    standard deviations and swap with probability erfc(d/2), 0.4 at 1.2. The standard deviation
    is interpolated in logarithms, and scaled on each interval, by two at most, so that the
    integral of the variance is the fall of the mean.

    ``etas`` (K,) rise from 0, or are powers of a likelihood; ``errors`` (n_sweeps, K) are the
    errors of the draws of each rung, or their costs.
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


# Evidence of a model in a few milliseconds: expectation propagation over its labels.
#
# **Target.** p(labels | model) = E[prod_i t_i(f_i)], f ~ N(0, L L' + s I), labels multiplied in,
# averaged over unknown rates: t_i is P(label | f_i > 0) on the right side, P(label | f_i <= 0)
# on the other. What is not in L (the nugget, and the parts of the Gram matrix too small to matter)
# is independent for every row and integrated out with t_i: a + b Phi(f_i / sqrt(s)).
#
# **One sweep** [3]_, [4]_, all rows at once.
#
# 1. The Gaussian with the sites: P = I + L' T L, marginals of f from its factor.
# 2. Take each site out of its marginal, match the moments of the rest times t_i, and move the site
#    towards that. Sites of labels that look wrong have negative precisions: where P is not positive
#    definite those are halved.
#
# Rates move to the mode of their posterior, as in EM, while the sites settle. Over the log odds of
# 2 q the evidence is integrated by Laplace's method, its Hessian from differences of the gradient,
# for which sites need not move: log Z is stationary in them.
#
# **How good.** Beside long tempered runs mostly within half a nat where there is a nugget, and
# within two where there is none and the rank is low. Without a nugget and at low rates the sites
# may run away: smaller steps hold most of them; what is not at rest, or above 0, says nothing.
# From one rate to a rate for each class it may be a long way, on which log Z rises with each sweep:
# steps stay large, and sweeps do not end, as long as it does.
#
# References
# ----------
# .. [3] Minka (2001), Expectation propagation for approximate Bayesian inference, UAI.
# .. [4] Rasmussen & Williams (2006), Gaussian Processes for Machine Learning, section 3.6.

_SQRT_2PI = math.sqrt(2.0 * math.pi)
# Sweeps from which on sites move by a share of the way, and the share; how many there are, those
# on which log Z rises while rates are learned counted only by the last number.
_DAMPING = ((40, 0.1), (24, 0.25), (12, 0.5), (0, 0.8))
_FEWEST_SWEEPS, _MOST_SWEEPS, _MOST_LEARNING = 2, 80, 400
# Changes of the log evidence, in nats, below which sites are at rest: on the way to the mode of the
# rates, at it, and for differences of the gradient.
_NEARLY, _AT_REST, _FINE = 0.1, 0.03, 0.03
# What rows have besides L is first taken to be larger by so much, of a mean variance of one or two:
# where L has few columns sites fall to zero otherwise, a fixed point that has learned nothing.
_SOFTER = (0.4, 0.05)
# The rate that the search begins at, and the least and the largest that it may find.
_FIRST_RATE, _RATES = 0.1, (1e-4, 0.45)
# Step in the log odds of 2 q; the least curvature there.
_STEP, _FLATTEST = 0.3, 0.05
# A precision is taken to be above this share of the prior's.
_SMALLEST = 1e-10
# Variance of a row that is zero: in `Spectrum.design` it has a direction of its own, too.
_NO_VARIANCE = 1e-12


@dataclass(frozen=True)
class Sites:
    """Gaussian factors exp(shift f - precision f^2 / 2) in the place of the labels, (n,) each."""

    precision: Array
    shift: Array


@dataclass(frozen=True)
class Approximation:
    """Log evidence (nats) by expectation propagation, at the known rates or those at the mode.

    Unless ``is_settled``, whether the sites came to rest at a probability, at most 1, it says
    nothing.
    """

    log_evidence: float
    is_settled: bool
    sites: Sites
    rates: Array


def approximate_evidence(
    L: Array, variance: Array, noise: LabelNoise, start: Approximation | None = None
) -> Approximation:
    """Approximate the log probability of the labels.

    ``L`` (n, r) holds the rows of the feature space, labels multiplied in, ``variance`` (n,)
    what each row has besides, independent of the others. The noise is one rate or one for each of
    two classes, known or learned, or a known rate above 0 for each row. ``start`` is that of a
    similar model, to begin at.
    """
    labels = _Labels(L, variance, noise)
    mode = labels.mode(start)
    if noise.prior is None:
        value, rates = mode.log_z, noise.rates
        assert rates is not None
    else:
        value, rates = labels.integrated(mode), 0.5 * expit(mode.log_odds)
    return Approximation(value, mode.is_settled and value <= 0.0, mode.sites, rates)


@dataclass(frozen=True)
class _Swept:
    """Sites after some sweeps, with what the last of them saw."""

    sites: Sites
    log_odds: Array  # of 2 q
    log_z: float
    gradient: Array  # of log_z in the log odds
    is_settled: bool


@dataclass(frozen=True)
class _Gaussian:
    """What sites say: g of mean root' centre and covariance root' root; f; and log det P."""

    sites: Sites
    root: Array  # (r, r), of which the lower triangle counts
    centre: Array  # (r,)
    mean: Array  # (n,) of f
    variance: Array  # (n,) of f
    log_det: float


@dataclass(frozen=True)
class _Labels:
    """The arguments of `approximate_evidence`."""

    L: Array
    variance: Array
    noise: LabelNoise

    def mode(self, start: Approximation | None = None) -> _Swept:
        """Sites at rest, at the known rates or where the learned ones are most probable."""
        n, is_learning = len(self.L), self.noise.prior is not None
        sites = start.sites if start is not None else Sites(np.zeros(n), np.zeros(n))
        n_rates = 2 if self.noise.is_by_class else 1
        rates = np.full(n_rates, _FIRST_RATE) if start is None else np.resize(start.rates, n_rates)
        if not is_learning:
            assert self.noise.rates is not None
            rates = self.noise.rates
        log_odds = logit(2.0 * rates)
        for more in _SOFTER if start is None else ():
            if self.variance.mean() < 0.9 * more:
                soft = replace(self, variance=self.variance + more)
                swept = soft.settle(sites, log_odds, _NEARLY, is_learning=is_learning)
                sites, log_odds = swept.sites, swept.log_odds
        if is_learning:
            near = self.settle(sites, log_odds, _NEARLY, is_learning=True)
            sites, log_odds = near.sites, near.log_odds
        return self.settle(sites, log_odds, _AT_REST)

    def settle(
        self, sites: Sites, log_odds: Array, tolerance: float, *, is_learning: bool = False
    ) -> _Swept:
        """Sweep until log Z is at rest; where rates are being learned they follow the errors."""
        before, swept, n_counted = np.inf, None, 0
        for k in range(_MOST_LEARNING if is_learning else _MOST_SWEEPS):
            share = next(share for first, share in _DAMPING if n_counted >= first)
            swept, wrong = self._sweep(sites, log_odds, share)
            n_counted += not (is_learning and before < swept.log_z < 0.0)
            sites, change, before = swept.sites, abs(swept.log_z - before), swept.log_z
            is_at_rest = k + 1 >= _FEWEST_SWEEPS and change < tolerance
            if is_at_rest or n_counted == _MOST_SWEEPS:
                break
            if is_learning:
                log_odds = self._likely_rates(wrong)
        assert swept is not None
        return replace(swept, log_odds=log_odds, is_settled=bool(change < tolerance))

    def integrated(self, mode: _Swept) -> float:
        """Log evidence over the rates by Laplace's method about a point near their mode."""
        n_rates = len(mode.log_odds)
        gradient = mode.gradient + self._prior_gradient(mode.log_odds)
        hessian = np.empty((n_rates, n_rates))
        for k in range(n_rates):
            shifted = mode.log_odds + _STEP * (np.arange(n_rates) == k)
            there = self.settle(mode.sites, shifted, _FINE).gradient
            hessian[k] = (there + self._prior_gradient(shifted) - gradient) / _STEP
        curvature, axes = np.linalg.eigh(-0.5 * (hessian + hessian.T))
        curvature = np.maximum(curvature, _FLATTEST)
        ahead = np.minimum(0.5 * (axes.T @ gradient) ** 2 / curvature, 1.0).sum()
        width = 0.5 * np.log(2.0 * math.pi / curvature).sum()
        return float(mode.log_z + self._log_prior(mode.log_odds) + ahead + width)

    def _sweep(self, sites: Sites, log_odds: Array, share: float) -> tuple[_Swept, Array]:
        """One sweep; also the probabilities that labels are wrong."""
        return self._matched(self._gaussian(sites), log_odds, share)

    def _matched(self, at: _Gaussian, log_odds: Array, share: float) -> tuple[_Swept, Array]:
        """Step 2, and the same probabilities."""
        sites, marginal, mean = at.sites, at.variance, at.mean
        rates = 0.5 * expit(log_odds)
        own, other = self.noise.rates_of_rows(rates)
        cavity = np.maximum(1.0 / marginal - sites.precision, _SMALLEST / marginal)
        m = (mean / marginal - sites.shift) / cavity
        sd = np.sqrt(1.0 / cavity + self.variance)
        z = m / sd
        right = ndtr(z)
        total = other + (1.0 - own - other) * right  # of the tilted law
        slope = (1.0 - own - other) * np.exp(-0.5 * z * z) / (_SQRT_2PI * sd * total)
        bend = slope * (slope + z / sd)
        left = np.maximum(1.0 - bend / cavity, 1e-3)
        precision, shift = bend / left, (slope + m * bend) / left
        log_z = float(
            np.log(total).sum() + 0.5 * sites.shift @ mean - 0.5 * at.log_det
            + 0.5 * (m * m * cavity - mean * mean / marginal - np.log(cavity * marginal)).sum()
        )  # fmt: skip
        wrong = other * (1.0 - right) / total
        moved = Sites(
            sites.precision + share * (precision - sites.precision),
            sites.shift + share * (shift - sites.shift),
        )
        by_rate = self._by_rate((1.0 - right) / total, -right / total)
        gradient = rates * (1.0 - 2.0 * rates) * by_rate
        return _Swept(moved, log_odds, log_z, gradient, is_settled=False), wrong

    def normal(self, sites: Sites, log_odds: Array) -> NormalLaw:
        """The law of classifiers that sites at rest say, and P(wrong) of each label."""
        at = self._gaussian(sites)
        _, p_wrong = self._matched(at, log_odds, 0.0)
        return NormalLaw(at.centre, np.tril(at.root), at.mean, np.sqrt(at.variance), p_wrong)

    def log_posterior(self, swept: _Swept) -> tuple[float, float]:
        """Log density of the rates at which sites have come to rest, and its slope along both."""
        value = swept.log_z + self._log_prior(swept.log_odds)
        return value, float((swept.gradient + self._prior_gradient(swept.log_odds)).sum())

    def _gaussian(self, sites: Sites) -> _Gaussian:
        """Step 1, of sites as they may be."""
        while True:
            # Of a matrix and itself a product is half the work.
            rooted = self.L * np.sqrt(np.maximum(sites.precision, 0.0))[:, np.newaxis]
            P = rooted.T @ rooted
            below = np.flatnonzero(sites.precision < 0.0)
            if len(below):
                rooted = self.L[below] * np.sqrt(-sites.precision[below])[:, np.newaxis]
                P -= rooted.T @ rooted
            P.flat[:: len(P) + 1] += 1.0
            try:
                C = factorise(P.T)
                break
            except NumericalError:
                low = np.minimum(sites.precision, 0.0)
                is_tiny = low.min() > -1e-3
                sites = replace(sites, precision=sites.precision - (1.0 if is_tiny else 0.5) * low)
        log_det = 2.0 * float(np.log(C.diagonal()).sum())
        invert_triangle(C)
        A = multiply_lower(C, self.L.T)
        centre = A @ sites.shift
        variance = np.maximum(np.einsum("ij,ij->j", A, A), _NO_VARIANCE)
        return _Gaussian(sites, C, centre, A.T @ centre, variance, log_det)

    def _by_rate(self, of_wrong: Array, of_right: Array) -> Array:
        """Sums over rows: a wrong label is due to the rate of the other class."""
        if not self.noise.is_by_class:
            return np.array([(of_wrong + of_right).sum()])
        group = self.noise.group
        of_other, of_own = np.bincount(1 - group, of_wrong, 2), np.bincount(group, of_right, 2)
        return np.asarray(of_other + of_own, dtype=np.float64)

    def _likely_rates(self, wrong: Array) -> Array:
        """Log odds of 2 q by the labels that are expected to be wrong."""
        assert self.noise.prior is not None
        a, b = self.noise.prior
        n_wrong = self._by_rate(wrong, np.zeros_like(wrong))
        n = self._by_rate(wrong, 1.0 - wrong)
        return np.asarray(logit(2.0 * np.clip((n_wrong + a) / (n + a + b), *_RATES)))

    def _log_prior(self, log_odds: Array) -> float:
        """Log density of the log odds of 2 q, of q from its Beta law below a half."""
        assert self.noise.prior is not None
        (a, b), q = self.noise.prior, 0.5 * expit(log_odds)
        whole = log_incomplete_beta(np.array([a]), np.array([b]), 0.5)[0]
        log_density = a * np.log(q) + (b - 1.0) * np.log1p(-q) + np.log1p(-2.0 * q) - whole
        return float(log_density.sum())

    def _prior_gradient(self, log_odds: Array) -> Array:
        assert self.noise.prior is not None
        (a, b), q = self.noise.prior, 0.5 * expit(log_odds)
        return np.asarray((a - (b - 1.0) * q / (1.0 - q)) * (1.0 - 2.0 * q) - 2.0 * q)


# The posterior that the approximation is of: normal laws of classifiers, one for each of some
# values of a rate that is learned, and weights.
#
# Where many labels look wrong a rate is known well, and its mode is enough. Else values a posterior
# standard deviation apart in the log odds of 2 q, from the mode on as far as they have some weight;
# of two rates both move together. What tells a rate from the draws' errors does the rest.

# Standard deviation of the log odds below which the mode is enough; values on either side of it, at
# most; nats behind the mode beyond which they have no weight.
_KNOWN_RATE, _MOST_NODES, _NO_WEIGHT = 0.1, 8, 5.0
# Numbers of L, of which there are three matrices at once, at most.
LARGEST_PROPAGATED = 2**27
NOT_AT_REST = (
    "expectation propagation did not come to rest with these labels; sampler='auto' takes chains"
)


@dataclass(frozen=True)
class NormalLaw:
    """g = root' (centre + z), z ~ N(0, I), at known rates, and what it says of the labels.

    ``root`` (r, r) and ``centre`` (r,); mean and standard deviation of f = L g and ``p_wrong``, the
    probability that the label is wrong, of each row, (n,) each. Of a label that looks wrong the law
    of f has two parts, of which the normal one keeps mean and variance: the share of f <= 0 in it
    is not that probability.
    """

    centre: Array
    root: Array
    mean: Array
    sd: Array
    p_wrong: Array

    def draw(
        self, rng: np.random.Generator, L: Array, nugget: float, n: int
    ) -> tuple[Array, Array, BoolArray]:
        """Draw g (n, r), all of f (n, n_rows), and which labels are wrong: the lowest, by p_wrong.

        The noise of rows, of variance ``nugget``, is drawn on the side that the label is said to be
        on.
        """
        G = (self.centre + rng.standard_normal((n, len(self.centre)))) @ self.root
        F = G @ L.T
        if nugget == 0.0:
            return G, F, self.mean + self.sd * ndtri(self.p_wrong) >= F
        own = math.sqrt(nugget)
        highest = self.mean + np.sqrt(self.sd**2 + nugget) * ndtri(self.p_wrong)
        is_wrong = highest - own * rng.standard_normal(F.shape) >= F
        side = np.where(is_wrong, -1.0, 1.0)
        below = np.maximum(ndtr(side * F / own), np.finfo(float).tiny)
        return G, F - side * own * ndtri(rng.random(F.shape) * below), is_wrong


def approximate_posterior(
    L: Array, variance: Array, noise: LabelNoise
) -> tuple[Array, tuple[NormalLaw, ...]]:
    """Weights (k,) and laws of classifiers by expectation propagation.

    The arguments are those of `approximate_evidence`. A `NumericalError` where sites do not rest.
    """
    labels = _Labels(L, variance, noise)
    swept = labels.mode()
    log_odds = swept.log_odds
    if not (swept.is_settled and swept.log_z <= 0.0):
        raise NumericalError(NOT_AT_REST)
    if noise.prior is None:
        return np.ones(1), (labels.normal(swept.sites, log_odds),)
    value, slope = labels.log_posterior(swept)
    there = labels.settle(swept.sites, log_odds + _STEP, _FINE)
    width = max((slope - labels.log_posterior(there)[1]) / _STEP, _FLATTEST) ** -0.5
    nodes = [(value, swept)]
    for step in (width, -width) if width >= _KNOWN_RATE else ():
        sites = swept.sites
        for k in range(1, _MOST_NODES + 1):
            if not _RATES[0] < 0.5 * expit(log_odds + k * step).min() < _RATES[1]:
                break
            other = labels.settle(sites, log_odds + k * step, _AT_REST)
            sites, found = other.sites, labels.log_posterior(other)[0]
            if not other.is_settled or found < value - _NO_WEIGHT:
                break
            nodes.append((found, other))
    values = np.array([found for found, _ in nodes])
    weights = np.exp(values - values.max())
    laws = (labels.normal(one.sites, one.log_odds) for _, one in nodes)
    return weights / weights.sum(), tuple(laws)
