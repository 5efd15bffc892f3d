"""Targets with exact draws and moments: one correlated and Gaussian, one skewed, none a GP."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, polygamma

from mercer.sampling.hmc import HMC, HamiltonianTuning, Mass, mass_from_covariance, unit_mass
from mercer.sampling.metropolis import Metropolis
from mercer.sampling.nuts import NUTS
from mercer.sampling.sampler import Point

SHAPE = 0.8  # of the gamma variable whose logarithm is the third coordinate
COVARIANCE = np.array([[1.0, 1.2], [1.2, 2.25]])
PRECISION = np.linalg.inv(COVARIANCE)


@dataclass(frozen=True)
class Skewed:
    """(x0, x1) ~ N(0, COVARIANCE) and, independent, x2 = log of a Gamma(SHAPE, 1) variable."""

    def evaluate(self, theta: np.ndarray) -> Point:
        """Log density up to a constant and its gradient."""
        g = PRECISION @ theta[:2]
        e = np.exp(min(theta[2], 300.0))
        gradient = np.array([-g[0], -g[1], SHAPE - e])
        return Point(theta, float(-0.5 * (theta[:2] @ g) + SHAPE * theta[2] - e), gradient)


def exact_draws(rng: np.random.Generator, count: int) -> np.ndarray:
    """Independent draws of the target, shape (count, 3)."""
    normal = rng.standard_normal((count, 2)) @ np.linalg.cholesky(COVARIANCE).T
    # A Gamma(k) variable is a Gamma(k + 1) one times U^(1/k): no zeros to take the logarithm of.
    log_gamma = np.log(rng.gamma(SHAPE + 1.0, size=count)) + np.log(rng.random(count)) / SHAPE
    return np.column_stack([normal, log_gamma])


def moments(x: np.ndarray) -> np.ndarray:
    """Eight functions of draws (N, 3) whose expectations are known."""
    a, b, c = x.T
    return np.column_stack([a, b, c, a * a, b * b, a * b, np.exp(c), c * c])


def exact_moments() -> np.ndarray:
    """Their expectations."""
    mean, variance = digamma(SHAPE), polygamma(1, SHAPE)
    (va, cab), (_, vb) = COVARIANCE
    return np.array([0.0, 0.0, mean, va, vb, cab, SHAPE, variance + mean**2])


@dataclass(frozen=True)
class At:
    """Start at a position."""

    position: tuple[float, ...]

    def __call__(self, rng: np.random.Generator) -> np.ndarray:
        """Return it, whatever the generator."""
        return np.array(self.position)


@dataclass(frozen=True)
class ExactStart:
    """Start from an exact draw: the chain is in equilibrium from its first step."""

    def __call__(self, rng: np.random.Generator) -> np.ndarray:
        """Draw it."""
        return exact_draws(rng, 1)[0]


def record_position(point: Point) -> dict[str, np.ndarray]:
    """Record the position only."""
    return {"x": point.position, "log_density": np.asarray(point.log_density)}


def uneven_mass() -> Mass:
    """A mass that is neither one nor fitted to the target, with off-diagonal entries."""
    return mass_from_covariance(np.array([[2.0, 0.5, 0.0], [0.5, 0.7, 0.1], [0.0, 0.1, 1.5]]))


def make_hmc(step_size: float, n_leapfrog: int | None = None, mass: Mass | None = None) -> HMC:
    """HMC on the skewed target; jittered where ``n_leapfrog`` is None."""
    tuning = HamiltonianTuning(step_size, mass or unit_mass(3))
    return HMC(Skewed(), ExactStart(), record_position, tuning, n_leapfrog=n_leapfrog)


def make_nuts(step_size: float, mass: Mass | None = None, max_depth: int = 8) -> NUTS:
    """NUTS on the skewed target."""
    tuning = HamiltonianTuning(step_size, mass or unit_mass(3))
    return NUTS(Skewed(), ExactStart(), record_position, tuning, max_depth)


def make_metropolis(step_size: float, mass: Mass | None = None) -> Metropolis:
    """A random walk on the skewed target, three proposals a step."""
    tuning = HamiltonianTuning(step_size, mass or unit_mass(3))
    return Metropolis(Skewed(), ExactStart(), record_position, tuning, n_moves=3)


def run(sampler, n_steps: int, seed: int) -> tuple[np.ndarray, float]:
    """Positions of a chain, and its acceptance rate."""
    rng = np.random.default_rng(seed)
    state = sampler.init(rng)
    positions, acceptance = np.empty((n_steps, len(state.point.position))), 0.0
    for k in range(n_steps):
        state, info = sampler.step(rng, state)
        positions[k] = state.point.position
        acceptance += info.acceptance_rate / n_steps
    return positions, acceptance
