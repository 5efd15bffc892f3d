"""The leapfrog step of Hamiltonian dynamics, shared by HMC and NUTS."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.mass import Mass
from mercer.sampling.signals import check_stop
from mercer.sampling.target import Point, Target

__all__ = ["MAX_ENERGY_ERROR", "HamiltonianTuning", "leapfrog", "log_joint"]

Array = NDArray[np.float64]

# A trajectory whose energy has gone astray by more than this has met a divergence.
MAX_ENERGY_ERROR = 1000.0


@dataclass(frozen=True)
class HamiltonianTuning:
    """What warm-up may change: the step size and the mass."""

    step_size: float
    mass: Mass


def leapfrog(
    target: Target, point: Point, p: Array, step_size: float, mass: Mass
) -> tuple[Point, Array]:
    """Half a step of the momentum, one of the position, half of the momentum; reversible."""
    check_stop()
    p = p + 0.5 * step_size * point.gradient
    new = target.evaluate(point.position + step_size * mass.velocity(p))
    return new, p + 0.5 * step_size * new.gradient


def log_joint(point: Point, p: Array, mass: Mass) -> float:
    """Log density of position and momentum: minus the total energy, nats."""
    return point.log_density - mass.kinetic_energy(p)
