"""The no-U-turn sampler: multinomial trajectories that stop when they begin to turn back.

**Target.** Any differentiable log density on R^p (`mercer.sampling.sampler`).

**One step** (Hoffman & Gelman 2014; multinomial form of Betancourt 2017)

1. p ~ N(0, M).
2. Double the trajectory in a random direction, until its ends, or those of one of its halves,
   begin to approach each other, a divergence is met, or ``max_depth`` is reached.
3. A point is drawn along the trajectory in proportion to exp(-H), within a new half by uniform
   progressive sampling, between halves with a bias towards the new one.

**Symbols**: rho, the sum of the momenta of a trajectory -> ``momentum_sum``.

**Cost.** 2^depth - 1 gradients a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.hmc import (
    MAX_ENERGY_ERROR,
    Mass,
    PointSampler,
    PointState,
    leapfrog,
    log_joint,
)
from mercer.sampling.sampler import Point

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NUTSInfo:
    """What a diagnostician needs to know of one trajectory."""

    acceptance_rate: float
    is_divergent: bool
    n_leapfrog: int
    depth: int
    energy: float
    step_size: float


@dataclass(frozen=True)
class _End:
    """One end of a trajectory."""

    point: Point
    p: Array


@dataclass(frozen=True)
class _Tree:
    """A stretch of trajectory: its ends in the order of time, and the point drawn from it."""

    first: _End
    last: _End
    drawn: Point
    drawn_log_joint: float
    log_weight: float  # log sum of exp(change of log joint) over its points
    momentum_sum: Array
    acceptance_sum: float
    n_leapfrog: int
    is_divergent: bool
    is_turning: bool

    @property
    def is_over(self) -> bool:
        return self.is_divergent or self.is_turning


@dataclass(frozen=True)
class NUTS(PointSampler[NUTSInfo]):
    """The no-U-turn sampler on a target."""

    max_depth: int = 8

    def step(self, rng: np.random.Generator, state: PointState) -> tuple[PointState, NUTSInfo]:
        """Grow one trajectory and draw the next state from it."""
        mass = self.tuning.mass
        p = mass.draw_momentum(rng)  # step 1
        origin = log_joint(state.point, p, mass)
        # The starting point is no leapfrog step: it counts for nothing in the acceptance rate.
        tree = _leaf(_End(state.point, p), origin, origin)
        tree = replace(tree, acceptance_sum=0.0, n_leapfrog=0)
        depth = 0
        while depth < self.max_depth and not tree.is_over:  # step 2
            forward = bool(rng.random() < 0.5)
            edge = tree.last if forward else tree.first
            new = self._build(rng, edge, forward, depth, origin)
            tree = _join(rng, tree, new, forward, mass, is_biased=True)  # step 3
            depth += 1
        info = NUTSInfo(
            acceptance_rate=tree.acceptance_sum / max(1, tree.n_leapfrog),
            is_divergent=tree.is_divergent,
            n_leapfrog=tree.n_leapfrog,
            depth=depth,
            energy=-tree.drawn_log_joint,
            step_size=self.tuning.step_size,
        )
        return PointState(tree.drawn), info

    def _build(
        self, rng: np.random.Generator, edge: _End, forward: bool, depth: int, origin: float
    ) -> _Tree:
        """Build a stretch of 2^depth points that goes on from ``edge``."""
        if depth == 0:
            step_size = self.tuning.step_size if forward else -self.tuning.step_size
            end = _End(*leapfrog(self.target, edge.point, edge.p, step_size, self.tuning.mass))
            return _leaf(end, log_joint(end.point, end.p, self.tuning.mass), origin)
        tree = self._build(rng, edge, forward, depth - 1, origin)
        if tree.is_over:
            return tree
        edge = tree.last if forward else tree.first
        new = self._build(rng, edge, forward, depth - 1, origin)
        return _join(rng, tree, new, forward, self.tuning.mass, is_biased=False)


def _leaf(end: _End, value: float, origin: float) -> _Tree:
    change = value - origin
    if not change > -MAX_ENERGY_ERROR:
        change, is_divergent = -math.inf, True
    else:
        is_divergent = False
    acceptance = math.exp(min(0.0, change))
    return _Tree(
        end, end, end.point, value, change, end.p, acceptance, 1, is_divergent, is_turning=False
    )


def _join(
    rng: np.random.Generator, old: _Tree, new: _Tree, forward: bool, mass: Mass, *, is_biased: bool
) -> _Tree:
    """Join two neighbouring stretches; the new one is drawn from only if it did not end early."""
    log_weight = float(np.logaddexp(old.log_weight, new.log_weight))
    log_odds = new.log_weight - (old.log_weight if is_biased else log_weight)
    take_new = not new.is_over and math.log(rng.random()) < log_odds
    drawn = new if take_new else old
    first, last = (old, new) if forward else (new, old)
    momentum_sum = old.momentum_sum + new.momentum_sum
    is_turning = (
        new.is_turning
        or _is_turning(mass, first.first.p, last.last.p, momentum_sum)
        or _is_turning(mass, first.first.p, last.first.p, first.momentum_sum + last.first.p)
        or _is_turning(mass, first.last.p, last.last.p, last.momentum_sum + first.last.p)
    )
    return _Tree(
        first=first.first,
        last=last.last,
        drawn=drawn.drawn,
        drawn_log_joint=drawn.drawn_log_joint,
        log_weight=log_weight,
        momentum_sum=momentum_sum,
        acceptance_sum=old.acceptance_sum + new.acceptance_sum,
        n_leapfrog=old.n_leapfrog + new.n_leapfrog,
        is_divergent=old.is_divergent or new.is_divergent,
        is_turning=is_turning,
    )


def _is_turning(mass: Mass, p_first: Array, p_last: Array, momentum_sum: Array) -> bool:
    velocity = mass.velocity(momentum_sum)
    return bool(p_first @ velocity <= 0.0 or p_last @ velocity <= 0.0)
