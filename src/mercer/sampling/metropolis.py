"""Random-walk Metropolis: what gradients are to be measured against.

**Target.** Any log density on R^p (`mercer.sampling.sampler`); gradients, if any, are not used.

**One step.** ``n_moves`` times: propose theta + eps z, z ~ N(0, M^-1), and accept it with
probability min(1, ratio of the densities).

**Cost.** ``n_moves`` evaluations a step: as many as a trajectory of so many leapfrog steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.hmc import HamiltonianTuning
from mercer.sampling.sampler import Point, Sampler, Target
from mercer.sampling.signals import check_stop

__all__ = ["Metropolis", "MetropolisInfo", "MetropolisState"]


@dataclass(frozen=True)
class MetropolisState:
    """The evaluated point at which the chain stands."""

    point: Point


@dataclass(frozen=True)
class MetropolisInfo:
    """What a diagnostician needs to know of one step."""

    acceptance_rate: float
    is_accepted: bool
    is_divergent: bool
    step_size: float


@dataclass(frozen=True)
class Metropolis(Sampler[MetropolisState, MetropolisInfo]):
    """Random-walk Metropolis on a target."""

    target: Target
    start: Callable[[np.random.Generator], NDArray[np.float64]]  # draws the starting position (p,)
    recorder: Callable[[Point], Mapping[str, NDArray[np.float64]]]  # named arrays of one draw
    #: The step size, and the mass whose inverse is the covariance of a move of size 1.
    tuning: HamiltonianTuning
    n_moves: int = 10  # proposals a step

    def init(self, rng: np.random.Generator) -> MetropolisState:
        """Draw a start and evaluate it."""
        return MetropolisState(self.target.evaluate(self.start(rng)))

    def step(
        self, rng: np.random.Generator, state: MetropolisState
    ) -> tuple[MetropolisState, MetropolisInfo]:
        """Propose ``n_moves`` points one after the other."""
        point, total, is_accepted = state.point, 0.0, False
        for _ in range(self.n_moves):
            check_stop()
            z = rng.standard_normal(len(point.position))
            move = self.tuning.step_size * (self.tuning.mass.factor @ z)
            proposed = self.target.evaluate(point.position + move)
            change = proposed.log_density - point.log_density
            chance = 0.0 if math.isnan(change) else math.exp(min(0.0, change))
            total += chance
            if rng.random() < chance:
                point, is_accepted = proposed, True
        is_lost = not math.isfinite(point.log_density)  # no mass here, nor where it has looked
        info = MetropolisInfo(total / self.n_moves, is_accepted, is_lost, self.tuning.step_size)
        return MetropolisState(point), info

    def record(self, state: MetropolisState) -> Mapping[str, NDArray[np.float64]]:
        """Return what the recorder makes of the point."""
        return self.recorder(state.point)
