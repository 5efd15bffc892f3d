"""Warm-up of Hamiltonian samplers: dual averaging of the step size, one or more masses from draws.

Step size: Nesterov's dual averaging (Hoffman & Gelman 2014, section 3.2) with their constants, but
drawn towards twice the first step size, not ten times: the start is good, and warm-up short.
Mass: estimated from the draws of successive windows, each twice as long as the last; after a
window the dual averaging starts anew, since the scale of the steps has changed.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.hmc import HamiltonianTuning, mass_from_draws
from mercer.sampling.sampler import Adaptation

_GAMMA, _T0, _KAPPA = 0.05, 10.0, 0.75  # Hoffman & Gelman's constants, names theirs
_MAX_STEP_SIZE = 2.0  # beyond it the leapfrog is unstable once the mass is whitened


@dataclass(frozen=True)
class DualAveraging:
    """Where the search for the step size stands."""

    log_step_size: float
    centre: float
    error_sum: float
    log_average: float
    count: int

    @classmethod
    def start(cls, step_size: float) -> DualAveraging:
        """Begin at a step size, with the search drawn towards twice it, at most the limit."""
        centre = math.log(min(2.0 * step_size, _MAX_STEP_SIZE))
        return cls(math.log(step_size), centre, 0.0, math.log(step_size), 0)

    def update(self, error: float) -> DualAveraging:
        """Take in one (wanted - seen) acceptance rate."""
        m = self.count + 1
        weight = 1.0 / (m + _T0)
        error_sum = (1.0 - weight) * self.error_sum + weight * error
        log_step = self.centre - math.sqrt(m) / _GAMMA * error_sum
        log_step = min(log_step, math.log(_MAX_STEP_SIZE))
        share = m**-_KAPPA
        average = share * log_step + (1.0 - share) * self.log_average
        return DualAveraging(log_step, self.centre, error_sum, average, m)


@dataclass(frozen=True)
class LearnedTuning:
    """What warm-up has learned so far."""

    n_seen: int
    search: DualAveraging
    window: NDArray[np.float64]  # positions of the window in hand, shape (k, p)


@dataclass(frozen=True)
class HamiltonianAdaptation(Adaptation):
    """Tune step size and mass of HMC or NUTS over ``n_warmup`` steps."""

    n_warmup: int
    target_acceptance: float = 0.75  # acceptance rate that the step size is to give

    def init(self, sampler: Any) -> LearnedTuning:
        """Begin the search at the sampler's own step size."""
        n = len(sampler.tuning.mass.covariance)
        search = DualAveraging.start(sampler.tuning.step_size)
        return LearnedTuning(0, search, np.empty((0, n)))

    def update(
        self, learned: LearnedTuning, sampler: Any, state: Any, info: Any
    ) -> tuple[LearnedTuning, Any]:
        """Move the step size; at the end of a window put the mass of its draws in place."""
        n_seen = learned.n_seen + 1
        search = learned.search.update(self.target_acceptance - info.acceptance_rate)
        first, ends = mass_windows(self.n_warmup)
        window = learned.window
        if first < n_seen <= max(ends, default=0):
            window = np.vstack([window, state.point.position])
        mass = sampler.tuning.mass
        if n_seen in ends:
            mass = mass_from_draws(window)
            window = window[:0]
            search = DualAveraging.start(math.exp(search.log_average))
        tuning = HamiltonianTuning(math.exp(search.log_step_size), mass)
        new_sampler = dataclasses.replace(sampler, tuning=tuning)
        return LearnedTuning(n_seen, search, window), new_sampler

    def finish(self, learned: LearnedTuning, sampler: Any) -> Any:
        """Take the average of the search as the step size."""
        step_size = math.exp(learned.search.log_average)
        tuning = HamiltonianTuning(step_size, sampler.tuning.mass)
        return dataclasses.replace(sampler, tuning=tuning)


def mass_windows(n_warmup: int) -> tuple[int, tuple[int, ...]]:
    """Step after which draws are collected, and the steps at which a mass is made of them.

    A sixth of the warm-up for the way in, a sixth at the end for the step size alone; between
    them windows of 40 draws and twice as many each time. A window that would leave less than its
    successor takes the rest. Under 60 steps the mass is left as it is.
    """
    if n_warmup < 60:
        return 0, ()
    first, last = n_warmup // 6, n_warmup - n_warmup // 6
    ends: list[int] = []
    begin, length = first, 40
    while begin < last:
        end = begin + length
        if end + 2 * length > last:
            end = last
        ends.append(end)
        begin, length = end, 2 * length
    return first, tuple(ends)
