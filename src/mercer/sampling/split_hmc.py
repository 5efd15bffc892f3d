"""Hybrid Monte Carlo beside a standard normal law: that part of the motion is a rotation.

**Target** p(theta) ~ exp(phi(theta) - |theta|^2 / 2): a prior that has been made standard normal,
and whatever else there is, phi. Coordinates have masses 1 / rate^2.

**One trajectory** [1]_, in scaled momenta p ~ N(0, I)

1. p += eps / 2 rate grad phi.
2. (theta, p) rotate by the angle eps rate, each coordinate with its own momentum.
3. p += eps / 2 rate grad phi; all of it ``n_leapfrog`` times.
4. The end is accepted with probability min(1, exp(H(start) - H(end))); a path on which H changes by
   more than 1000 is refused, from either end.

The rotation is exact: coordinates of which phi says nothing move by themselves without error,
however many there are. eps varies by a fifth from one trajectory to the next.

**Cost.** ``n_leapfrog`` + 1 gradients of phi.

References
----------
.. [1] B. Shahbaba, S. Lan, W. O. Johnson and R. M. Neal, "Split Hamiltonian Monte Carlo",
   Statistics and Computing 2014.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.sampling.leapfrog import MAX_ENERGY_ERROR
from mercer.sampling.signals import check_stop

__all__ = ["Trajectory", "travel"]

Array = NDArray[np.float64]
#: phi and its gradient at a position of shape (p,).
Potential = Callable[[Array], tuple[float, Array]]

_JITTER = 0.2


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Where a trajectory left the chain, whether at its end, and how probable that was."""

    position: Array
    is_accepted: bool
    acceptance_rate: float


def travel(
    rng: np.random.Generator,
    potential: Potential,
    position: Array,
    rates: Array,
    step_size: float,
    n_leapfrog: int,
) -> Trajectory:
    """Take one trajectory from a position (p,); rates (p,) must not depend on the position."""
    p = rng.standard_normal(len(position))
    eps = step_size * rng.uniform(1.0 - _JITTER, 1.0 + _JITTER)
    log_uniform = math.log(1.0 - rng.random())
    cosine, sine = np.cos(eps * rates), np.sin(eps * rates)
    theta, (value, gradient) = position, potential(position)
    start = _log_joint(value, theta, p)
    change = lowest = highest = 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # what goes astray is refused
        for _ in range(n_leapfrog):
            check_stop()
            p = p + 0.5 * eps * rates * gradient
            theta, p = cosine * theta + sine * p, cosine * p - sine * theta
            value, gradient = potential(theta)
            p = p + 0.5 * eps * rates * gradient
            change = _log_joint(value, theta, p) - start
            lowest, highest = min(lowest, change), max(highest, change)
            if not (highest - lowest < MAX_ENERGY_ERROR and math.isfinite(change)):
                return Trajectory(position, False, 0.0)
    is_accepted = log_uniform < change
    end = theta if is_accepted else position
    return Trajectory(end, is_accepted, math.exp(min(0.0, change)))


def _log_joint(value: float, theta: Array, p: Array) -> float:
    return value - 0.5 * float(theta @ theta) - 0.5 * float(p @ p)
