"""Random-walk Metropolis: what gradients are to be measured against.

**Target.** Any log density on R^p (`mercer.sampling.sampler`); gradients, if any, are not used.

**One step.** ``n_moves`` times: propose theta + eps z, z ~ N(0, M^-1), and accept it with
probability min(1, ratio of the densities).

**Cost.** ``n_moves`` evaluations a step: as many as a trajectory of so many leapfrog steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer.sampling.hmc import PointSampler, PointState
from mercer.sampling.signals import check_stop


@dataclass(frozen=True)
class MetropolisInfo:
    """What a diagnostician needs to know of one step."""

    acceptance_rate: float
    is_accepted: bool
    is_divergent: bool
    step_size: float


@dataclass(frozen=True)
class Metropolis(PointSampler[MetropolisInfo]):
    """Random-walk Metropolis on a target; a move of size 1 has the inverse mass as covariance."""

    n_moves: int = 10  # proposals a step

    def step(
        self, rng: np.random.Generator, state: PointState
    ) -> tuple[PointState, MetropolisInfo]:
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
        return PointState(point), info
