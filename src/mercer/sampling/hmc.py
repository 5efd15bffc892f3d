"""Hybrid (Hamiltonian) Monte Carlo with a fixed or a jittered number of leapfrog steps.

**Target.** Any differentiable log density on R^p (`mercer.sampling.target`).

**One step** (Barber & Williams, section 2.3; Duane et al.)

1. p ~ N(0, M), the Gibbs step of the momentum.
2. L leapfrog steps of size eps.
3. Accept the end with probability min(1, exp(H(start) - H(end))), else stay.

**Symbols** (paper -> code): L -> n_leapfrog, eps -> step_size, H -> minus ``log_joint``.

**Deviations.** With ``path_length`` set, L eps is uniform between half and one and a half times
it, drawn anew for every trajectory: this breaks the periods of a Gaussian target. Its unit is the
posterior's standard deviation once the mass is adapted. A quarter period, pi/2, would make the
ends of a perfectly whitened Gaussian independent; 2 leaves room for tails wider than the mass.

**Cost.** L gradients a step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.leapfrog import MAX_ENERGY_ERROR, HamiltonianTuning, leapfrog, log_joint
from mercer.sampling.sampler import Sampler
from mercer.sampling.target import Point, Target

__all__ = ["HMC", "HMCInfo", "HMCState"]

# The longest trajectory, whatever a collapsing step size asks for.
_MAX_LEAPFROG = 256
# Lengths vary by this share of ``path_length``.
_JITTER = 0.5


@dataclass(frozen=True)
class HMCState:
    """The evaluated point at which the chain stands."""

    point: Point


@dataclass(frozen=True)
class HMCInfo:
    """What a diagnostician needs to know of one trajectory."""

    acceptance_rate: float
    is_accepted: bool
    is_divergent: bool
    n_leapfrog: int
    energy: float
    step_size: float


@dataclass(frozen=True)
class HMC(Sampler[HMCState, HMCInfo]):
    """Hybrid Monte Carlo on a target.

    Attributes
    ----------
    target : Target
    start : callable
        Draws the starting position, shape (p,), from a generator.
    recorder : callable
        Turns an evaluated point into the named arrays of one draw.
    tuning : HamiltonianTuning
    n_leapfrog : int or None
        Steps of every trajectory; None where ``path_length`` decides.
    path_length : float or None
        Middle length of a trajectory, in units of mass-whitened positions.
    """

    target: Target
    start: Callable[[np.random.Generator], NDArray[np.float64]]
    recorder: Callable[[Point], Mapping[str, NDArray[np.float64]]]
    tuning: HamiltonianTuning
    n_leapfrog: int | None = None
    path_length: float | None = 2.0

    def init(self, rng: np.random.Generator) -> HMCState:
        """Draw a start and evaluate it."""
        return HMCState(self.target.evaluate(self.start(rng)))

    def step(self, rng: np.random.Generator, state: HMCState) -> tuple[HMCState, HMCInfo]:
        """Take one trajectory and accept or reject its end."""
        mass, step_size = self.tuning.mass, self.tuning.step_size
        p = mass.draw_momentum(rng)  # step 1
        n_leapfrog = self._draw_length(rng)
        log_joint_0 = log_joint(state.point, p, mass)
        point, is_divergent = state.point, False
        for _ in range(n_leapfrog):  # step 2
            point, p = leapfrog(self.target, point, p, step_size, mass)
            change = log_joint(point, p, mass) - log_joint_0
            if not change > -MAX_ENERGY_ERROR:
                is_divergent = True
                break
        acceptance_rate = 0.0 if is_divergent else math.exp(min(0.0, change))
        is_accepted = bool(rng.random() < acceptance_rate)  # step 3
        end = point if is_accepted else state.point
        energy = -(log_joint_0 + change) if is_accepted else -log_joint_0
        info = HMCInfo(acceptance_rate, is_accepted, is_divergent, n_leapfrog, energy, step_size)
        return HMCState(end), info

    def record(self, state: HMCState) -> Mapping[str, NDArray[np.float64]]:
        """Return what the recorder makes of the point."""
        return self.recorder(state.point)

    def _draw_length(self, rng: np.random.Generator) -> int:
        if self.n_leapfrog is not None:
            return self.n_leapfrog
        assert self.path_length is not None
        middle = self.path_length / self.tuning.step_size
        shortest = max(1, round((1.0 - _JITTER) * middle))
        longest = max(shortest, round((1.0 + _JITTER) * middle))
        shortest, longest = (min(length, _MAX_LEAPFROG) for length in (shortest, longest))
        return int(rng.integers(shortest, longest + 1))
