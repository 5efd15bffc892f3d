"""Moves without gradients: random-walk Metropolis of a position, slice sampling of one number.

Random-walk Metropolis is what gradients are to be measured against.

**Target.** Any log density on R^p (`mercer.sampling.sampler`); gradients, if any, are not used.

**One step.** ``n_moves`` times: propose theta + eps z, z ~ N(0, M^-1), and accept it with
probability min(1, ratio of the densities).

**Cost.** ``n_moves`` evaluations a step: as many as a trajectory of so many leapfrog steps.

References
----------
.. [1] R. M. Neal, Slice sampling, Annals of Statistics 31 (2003): steps out, and shrinks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.errors import NumericalError
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


_WIDTH = 1.0  # of the first slice, on the logarithm
_MOST_STEPS_OUT = 20


def slice_step(
    rng: np.random.Generator, density: Callable[[float], float], value: float, nowhere: str
) -> float:
    """Take one slice step on the logarithm of a value; leaves the density invariant.

    A `NumericalError` with the words ``nowhere`` where the density there is 0, from which no slice
    leads.
    """
    x = math.log(value)
    level = density(x) + math.log(rng.random())
    if not math.isfinite(level):
        raise NumericalError(nowhere)
    low = x - _WIDTH * rng.random()
    high = low + _WIDTH
    # Steps out are shared between the ends at random, as the detailed balance of a limit asks.
    n_low = int(rng.integers(_MOST_STEPS_OUT))
    n_high = _MOST_STEPS_OUT - 1 - n_low
    while n_low > 0 and density(low) > level:
        low, n_low = low - _WIDTH, n_low - 1
    while n_high > 0 and density(high) > level:
        high, n_high = high + _WIDTH, n_high - 1
    while True:
        proposal = low + (high - low) * rng.random()
        if density(proposal) > level:
            return math.exp(proposal)
        low, high = (proposal, high) if proposal < x else (low, proposal)
