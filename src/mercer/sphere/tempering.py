"""Parallel tempering over the noise level: rungs between the prior and the posterior, with swaps.

**Target.** Rung k has the density N(g; 0, I) exp(-b_k cost), b_0 = 0 < .. < b_K = 1: the product
over rungs. The last rung has the posterior; the first, where no label is certain, is the prior.

**One step**

1. Rung 0 is drawn anew from the prior; every other rung takes a pass of the moves at its costs.
2. Neighbours, even and odd pairs in turn, swap with probability
   min(1, exp((b_{k+1} - b_k) (cost_{k+1} - cost_k))).

**Deviations.** Not in the paper: it cures a posterior of several modes, and the errors seen at the
rungs give the evidence at every noise level (below).

**Cost.** A pass of the moves for each rung, and one product for all their velocities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mercer.errors import MercerError
from mercer.likelihoods.label_noise import IMPOSSIBLE, LabelNoise, Walls, fixed_rate
from mercer.sampling.sampler import Sampler
from mercer.sampling.signals import is_late
from mercer.sphere.loops import tempered_sweeps
from mercer.sphere.sampler import (
    MAX_EVENTS_A_ROW,
    QUARTER,
    WINDOW,
    Moves,
    PriorStart,
    SphereModel,
    default_moves,
    first_moves,
    merged,
)

Array = NDArray[np.float64]

# Sweeps after which f = L g is computed anew.
_REFRESH = 32
# Passes that lead from the start of one rung to that of the next.
_FIRST_PASSES = 4


@dataclass(frozen=True)
class TemperedState:
    """A classifier on each rung: ``points`` (n_rungs, n + r) are [f; g], labels multiplied in.

    The number of steps taken says whether even or odd pairs swap next.
    """

    points: Array
    n_steps: int


@dataclass(frozen=True)
class TemperedInfo:
    """What a diagnostician needs to know of one sweep over the rungs."""

    acceptance_rate: float
    n_errors: int
    n_events: int


@dataclass(frozen=True)
class TemperedSampler(Sampler[TemperedState, TemperedInfo]):
    """Chains at several powers of the likelihood, ascending from 0, that swap places.

    Moves are trajectories, then line moves, of every rung but one that is the prior. ``start``
    and ``recorder`` are as for `SphereSampler`; the recorder sees the last rung.
    """

    model: SphereModel
    powers: tuple[float, ...]
    moves: Moves
    start: Callable[[np.random.Generator], Array]
    recorder: Callable[[Array, Array], Mapping[str, NDArray[np.generic]]]

    @cached_property
    def is_prior_free(self) -> bool:
        """Whether rung 0 is the prior: no label is certain."""
        return not self.model.noise.must_be_right.any()

    def init(self, rng: np.random.Generator) -> TemperedState:
        """Draw a start on the first rung; every other one begins where the last few passes led."""
        if "hmc" in self.moves.names:
            _ = self.model.table  # made once, here
        _ = self.is_prior_free, self.model.noise.jumps, self.model.noise.total
        point = self.model.point(self.start(rng))
        points = [point]
        for power in self.powers[1:]:
            end = points[-1][np.newaxis].copy()
            self._sweep(rng, end, np.array([power]), _FIRST_PASSES, 0, is_prior_first=False)
            points.append(end[0])
        return TemperedState(np.stack(points), 0)

    def step(
        self, rng: np.random.Generator, state: TemperedState
    ) -> tuple[TemperedState, TemperedInfo]:
        """Take one sweep over the rungs, then let neighbours swap."""
        state, is_wrong, acceptance_rate, n_events = self.sweeps(rng, state, 1)
        n_errors = int(np.count_nonzero(is_wrong[-1, -1]))
        return state, TemperedInfo(acceptance_rate, n_errors, n_events)

    def sweeps(
        self, rng: np.random.Generator, state: TemperedState, n_sweeps: int
    ) -> tuple[TemperedState, NDArray[np.bool_], float, int]:
        """Take several sweeps.

        With the state: wrong rows after each of them, (n_sweeps, n_rungs, n), the mean
        probability of a swap, and the number of events.
        """
        n, points = self.model.n_rows, state.points.copy()
        if state.n_steps % _REFRESH < n_sweeps:
            points = np.stack([self.model.point(point[n:]) for point in points])
        is_wrong, swaps, n_events = self._sweep(
            rng, points, np.array(self.powers), n_sweeps, state.n_steps,
            is_prior_first=self.is_prior_free,
        )  # fmt: skip
        state = TemperedState(points, state.n_steps + n_sweeps)
        return state, is_wrong, float(swaps.mean()), n_events

    def _sweep(
        self,
        rng: np.random.Generator,
        points: Array,
        powers: Array,
        n_sweeps: int,
        n_before: int,
        *,
        is_prior_first: bool,
    ) -> tuple[NDArray[np.bool_], Array, int]:
        """Sweep over points in place: wrong rows, swaps and events."""
        model, moves, noise, n_rungs = self.model, self.moves, self.model.noise, len(powers)
        n, n_drawn, n_lines = model.n_rows, moves.n_drawn, len(moves.directions)
        shape = (n_sweeps, n_rungs)
        Z = rng.standard_normal((n_sweeps * n_rungs * max(n_drawn, 1), model.rank))
        velocities = model.extended(Z).reshape(*shape, max(n_drawn, 1), -1)
        orders = rng.permuted(np.tile(np.arange(n_lines), (*shape, 1)), axis=-1)
        table = model.table if n_drawn else np.empty((n, n + model.rank))  # of no use without
        is_wrong, swaps = np.empty((*shape, n), np.bool_), np.empty(n_sweeps)
        counts = np.zeros(3, np.int64)
        tempered_sweeps(
            rng, table, points, powers, is_prior_first, velocities,
            moves.durations(rng, (*shape, n_drawn)), moves.directions, orders, WINDOW, noise.jumps,
            noise.total, noise.row_cost, MAX_EVENTS_A_ROW * n, n_before, is_wrong, swaps, counts,
        )  # fmt: skip
        return is_wrong, swaps, int(counts[0])

    def record(self, state: TemperedState) -> Mapping[str, NDArray[np.generic]]:
        """Return what the recorder makes of the last rung."""
        n = self.model.n_rows
        return self.recorder(state.points[-1, :n], state.points[-1, n:])


# One tempered run over noise levels, from the prior down to labels that are all but certain.
#
# It yields the law of the number of errors under the prior, and with it the evidence at every noise
# rate: E_W[L] of the paper's section 4. Where rates differ, the powers are of their likelihood.

# Cost of an error on the last rung, in nats: a noise rate of 1e-4.
_TOP = math.log(9999.0)
# Costs of the pilot, before rungs are placed by what it sees.
_PILOT = np.concatenate([[0.0], np.geomspace(0.02, _TOP, 11)])
# Powers of the pilot of another likelihood.
_PILOT_POWERS = np.concatenate([[0.0], np.geomspace(0.004, 1.0, 11)])
# Rows times sweeps between two looks at the clock.
_ROWS_A_LOOK = 2000
# Effective draws without which the draws of one noise say nothing of another.
_FEWEST_EFFECTIVE = 20.0
# Sweeps without which a run says nothing.
_FEWEST_SWEEPS = 10
# A learned rate so many nats less likely than the best is out of reach: rungs end there.
_OUT_OF_REACH = 100.0


class OutOfTimeError(MercerError):
    """The clock has run out before a run had enough sweeps to say anything."""


@dataclass(frozen=True)
class Tempering:
    """How long the tempered run is: sweeps of the pilot and of the run itself."""

    n_pilot: int = 24
    n_sweeps: int = 150


@dataclass(frozen=True)
class Climb:
    """A tempered run, which can be prolonged: generator and state as the last sweep left them.

    ``seen`` (n_sweeps, n_rungs, m) are the wrong walls after every sweep, those included that
    the run needs to settle: the first ``n_settling`` are left out. The sampler is of the walls of
    the rows, whose labels have the ``noise``.
    """

    noise: LabelNoise
    walls: Walls
    sampler: TemperedSampler
    rng: np.random.Generator
    state: TemperedState
    seen: NDArray[np.bool_]
    n_settling: int = 0

    @property
    def is_wrong(self) -> NDArray[np.bool_]:
        """Wrong rows after the sweeps that count."""
        seen, walls = self.seen[self.n_settling :], self.walls
        return seen if walls.are_rows else seen[..., walls.into] != (walls.scale < 0.0)

    def law(self) -> ErrorLaw:
        """Prior law of the number of errors: where rungs are at known common rates."""
        errors = np.count_nonzero(self.is_wrong, axis=2)
        costs = float(self.noise.step[0, 0]) * np.array(self.sampler.powers)
        law = error_law(errors, costs[:, np.newaxis] * np.arange(self.noise.sizes[0] + 1))
        is_whole = self.sampler.powers[-1] == 1.0
        return law if is_whole else replace(law, least_rate=float(expit(-costs[-1])))

    def log_evidence(self, noise: LabelNoise) -> tuple[float, float]:
        """Log evidence of noise of any kind by reweighting all draws, and its standard error.

        The error is inf where hardly any draw counts.
        """
        own = self.noise.cost(self.is_wrong)
        rungs = own[:, :, np.newaxis] * np.array(self.sampler.powers)
        value, error, n_effective = log_evidence_of(noise.cost(self.is_wrong), rungs)
        is_enough = noise is self.noise or n_effective >= _FEWEST_EFFECTIVE
        return value + noise.log_no_errors, error if is_enough else np.inf


def climb_errors(
    rng: np.random.Generator,
    L: Array,
    tempering: Tempering,
    deadline: float | None = None,
    prior: tuple[float, float] | None = None,
) -> Climb:
    """Start a run from the prior down to labels that are all but certain, multiplied into L (n, r).

    With the Beta ``prior`` of a rate that is learned it goes down to rates out of reach only: where
    many labels are wrong, the rungs below cost most and say nothing of the evidence.

    After the ``deadline`` (of `time.monotonic`) it ends with the sweeps that there are; an
    `OutOfTimeError` where those are too few.
    """
    noise = fixed_rate(1.0 / (1.0 + math.exp(_TOP)), len(L))
    return _climb(rng, SphereModel(L, noise), _PILOT / _TOP, tempering, deadline, prior)


def measure_noise(
    rng: np.random.Generator,
    L: Array,
    noise: LabelNoise,
    tempering: Tempering,
    deadline: float | None = None,
) -> tuple[float, float]:
    """Log evidence of noise of any kind, in nats, and its standard error; as `climb_errors`."""
    model = SphereModel(L, noise)
    return _climb(rng, model, _PILOT_POWERS, tempering, deadline).log_evidence(noise)


def _climb(
    rng: np.random.Generator,
    model: SphereModel,
    pilot: Array,
    tempering: Tempering,
    deadline: float | None,
    prior: tuple[float, float] | None = None,
) -> Climb:
    """Place rungs by a short run at the powers of the pilot, then sweep over them."""
    noise, (model, walls) = model.noise, merged(model)
    moves = first_moves(default_moves(model.rank), model)
    shortest = QUARTER if model.n_rows <= 20 * model.rank else 0.0
    moves = Moves(moves.names, max(moves.duration, shortest), moves.directions)
    start = PriorStart((model.rank,))

    def started(powers: Array) -> Climb:
        sampler = TemperedSampler(model, tuple(powers.tolist()), moves, start, keep_nothing)
        nothing = np.empty((0, len(powers), model.n_rows), np.bool_)
        return Climb(noise, walls, sampler, rng, sampler.init(rng), nothing)

    first = started(pilot)
    if prior is not None:
        is_wrong = first.state.points[:, : model.n_rows] <= 0.0
        errors = model.noise.errors_by_group(is_wrong)[:, 0]
        n_rungs = _n_within_reach(pilot * _TOP, errors, int(noise.sizes[0]), prior)
        if n_rungs < len(pilot):
            pilot = pilot[:n_rungs]
            first = started(pilot)
    first = _swept(first, tempering.n_pilot, deadline)
    if len(first.seen) < tempering.n_pilot:
        raise OutOfTimeError("no time for a pilot run")
    powers = place_rungs(pilot, model.noise.cost(first.seen[tempering.n_pilot // 3 :]))
    return prolong(started(powers), tempering.n_sweeps, deadline)


def _n_within_reach(
    etas: Array, errors: NDArray[np.int64], n: int, prior: tuple[float, float]
) -> int:
    """Rungs up to the first whose rate is out of reach, by the errors of one draw of each.

    The slope of the log evidence of a known rate q = 1/(1 + exp(eta)) is n q - errors.
    """
    rates, (a, b) = expit(-etas), prior
    slope = n * rates - errors
    rise = np.append(0.0, np.cumsum(0.5 * (slope[1:] + slope[:-1]) * np.diff(etas)))
    value = rise + (a - 1.0) * np.log(rates) + (b - 1.0) * np.log1p(-rates)
    is_out = np.maximum.accumulate(value) - value > _OUT_OF_REACH
    return int(np.argmax(is_out)) + 1 if is_out.any() else len(etas)


def prolong(climb: Climb, n_sweeps: int, deadline: float | None = None) -> Climb:
    """Sweep on until so many sweeps count: an eighth as many more, at least 5, to settle.

    An `OutOfTimeError` where the sweeps that there was time for are too few.
    """
    n_settling = max(n_sweeps // 8, 5)
    climb = _swept(climb, n_settling + n_sweeps, deadline)
    if len(climb.seen) < n_settling + _FEWEST_SWEEPS:
        raise OutOfTimeError("no time for a run over noise levels")
    return replace(climb, n_settling=n_settling)


def _swept(climb: Climb, n_sweeps: int, deadline: float | None) -> Climb:
    """With as many sweeps in all, or as many as time allows."""
    sampler, state, seen = climb.sampler, climb.state, [climb.seen]
    most = int(np.clip(_ROWS_A_LOOK // sampler.model.n_rows, 1, _REFRESH))
    n_left = n_sweeps - len(climb.seen)
    while n_left > 0 and not is_late(deadline):
        state, is_wrong, _, _ = sampler.sweeps(climb.rng, state, min(most, n_left))
        seen.append(is_wrong)
        n_left -= len(is_wrong)
    return replace(climb, state=state, seen=np.concatenate(seen))


def keep_nothing(f: Array, g: Array) -> Mapping[str, Array]:
    """Record nothing of a draw."""
    return {}


# Evidence of every noise rate from one tempered run.
#
# **Target.** With a common rate the likelihood depends on a classifier through its number of errors
# e only, so the evidence of any rate, known or integrated out, follows from the prior law of e:
#
#     p(labels | noise) = exp(log_no_errors) sum_e P(e) exp(-cost(e)).
#
# **Method.** P(e) from the errors of tempered chains, rung k with costs U_k(e). Where rates differ
# between rows or classes, the cost takes the place of e.
#
# **What cannot be known.** A number of errors that was never seen has P(e) = 0 here. So at q = 0,
# where one error is one too many, there is an estimate only if some draw had none: let the last
# rung reach eta = 9 or so. Without such a draw the value is nan, and `ErrorLaw.curve` leaves the
# rate out: "no classifier separates the rows" and "the run is too short" look the same from here.
#
# **Symbols.** eta_k, the cost of an error at rung k -> ``rung_costs[k] = eta_k * arange(n + 1)``.
#
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
