"""Parallel tempering over the noise level: rungs between the prior and the posterior, with swaps.

**Target.** Rung k has the density N(g; 0, I) exp(-b_k cost), b_0 = 0 < .. < b_K = 1: the product
over rungs. The last rung has the posterior; the first, where no label is certain, is the prior.

**One step**

1. Rung 0 is drawn anew from the prior; every other rung takes a pass of the moves at its costs.
2. Neighbours, even and odd pairs in turn, swap with probability
   min(1, exp((b_{k+1} - b_k) (cost_{k+1} - cost_k))).

**Deviations.** Not in the paper: it cures a posterior of several modes, and the errors seen at the
rungs give the evidence at every noise level (`mercer.sphere.evidence`).

**Cost.** A pass of the moves for each rung, and one product for all their velocities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mercer.errors import MercerError
from mercer.likelihoods.label_noise import LabelNoise, Walls, fixed_rate
from mercer.sampling.sampler import Sampler
from mercer.sampling.signals import is_late
from mercer.sphere.evidence import ErrorLaw, error_law, log_evidence_of, place_rungs
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
