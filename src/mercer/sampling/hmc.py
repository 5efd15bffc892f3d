"""Hybrid (Hamiltonian) Monte Carlo: masses, the leapfrog, trajectories, warm-up.

Hybrid (Hamiltonian) Monte Carlo with a fixed or a jittered number of leapfrog steps.

**Target.** Any differentiable log density on R^p (`mercer.sampling.sampler`).

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

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mercer.errors import NumericalError
from mercer.sampling.sampler import Adaptation, InfoT, Point, Sampler, Target
from mercer.sampling.signals import check_stop

# The mass of Hamiltonian samplers, as an estimate of the covariance of the target.

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Mass:
    """Momentum p ~ N(0, M) with M^-1 = ``covariance`` = ``factor`` factor'."""

    covariance: Array
    factor: Array

    def draw_momentum(self, rng: np.random.Generator) -> Array:
        """Draw p ~ N(0, M): solve factor' p = z."""
        z = rng.standard_normal(len(self.covariance))
        return np.asarray(solve_triangular(self.factor, z, trans=1, lower=True))

    def velocity(self, p: Array) -> Array:
        """M^-1 p."""
        return np.asarray(self.covariance @ p)

    def kinetic_energy(self, p: Array) -> float:
        """p' M^-1 p / 2."""
        return float(0.5 * (p @ self.velocity(p)))


def unit_mass(n: int) -> Mass:
    """Mass one for every coordinate."""
    return Mass(np.eye(n), np.eye(n))


def mass_from_covariance(covariance: Array) -> Mass:
    """Mass whose inverse is the given positive definite covariance."""
    try:
        factor = np.ascontiguousarray(np.linalg.cholesky(covariance), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise NumericalError("the covariance of the mass is not positive definite") from error
    return Mass(np.ascontiguousarray(covariance), factor)


def mass_from_draws(draws: Array) -> Mass:
    """Mass from warm-up draws of shape (k, p), shrunk towards a diagonal.

    k/(k+5) of the sample covariance, of whose off-diagonal a further 5/(k+5) is dropped, plus
    5/(k+5) of 1e-3: weak enough to follow the draws, strong enough to stay positive definite.
    """
    k, p = draws.shape
    keep = k / (k + 5.0)
    sample = np.atleast_2d(np.cov(draws, rowvar=False))
    diagonal = np.diag(np.diag(sample))
    shrunk = keep * (keep * sample + (1.0 - keep) * diagonal)
    return mass_from_covariance(shrunk + 1e-3 * (1.0 - keep) * np.eye(p))


# The leapfrog step of Hamiltonian dynamics, shared by HMC and NUTS.

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


# The longest trajectory, whatever a collapsing step size asks for.
_MAX_LEAPFROG = 256
# Lengths vary by this share of ``path_length``.
_JITTER = 0.5


@dataclass(frozen=True)
class PointState:
    """The evaluated point at which the chain stands."""

    point: Point


@dataclass(frozen=True)
class PointSampler(Sampler[PointState, InfoT]):
    """Base of samplers whose state is a point and nothing else; a subclass says how to step."""

    target: Target
    start: Callable[[np.random.Generator], Array]  # draws the starting position (p,)
    recorder: Callable[[Point], Mapping[str, Array]]  # named arrays of one draw
    tuning: HamiltonianTuning

    def init(self, rng: np.random.Generator) -> PointState:
        """Draw a start and evaluate it."""
        return PointState(self.target.evaluate(self.start(rng)))

    def record(self, state: PointState) -> Mapping[str, Array]:
        """Return what the recorder makes of the point."""
        return self.recorder(state.point)


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
class HMC(PointSampler[HMCInfo]):
    """Hybrid Monte Carlo on a target."""

    n_leapfrog: int | None = None  # steps of every trajectory; None where `path_length` decides
    #: middle length of a trajectory, in units of mass-whitened positions
    path_length: float | None = 2.0

    def step(self, rng: np.random.Generator, state: PointState) -> tuple[PointState, HMCInfo]:
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
        return PointState(end), info

    def _draw_length(self, rng: np.random.Generator) -> int:
        if self.n_leapfrog is not None:
            return self.n_leapfrog
        assert self.path_length is not None
        middle = self.path_length / self.tuning.step_size
        shortest = max(1, round((1.0 - _JITTER) * middle))
        longest = max(shortest, round((1.0 + _JITTER) * middle))
        shortest, longest = (min(length, _MAX_LEAPFROG) for length in (shortest, longest))
        return int(rng.integers(shortest, longest + 1))


# Hybrid Monte Carlo beside a standard normal law: that part of the motion is a rotation.
#
# **Target** p(theta) ~ exp(phi(theta) - |theta|^2 / 2): a prior that has been made standard normal,
# and whatever else there is, phi. Coordinates have masses 1 / rate^2.
#
# **One trajectory** [1]_, in scaled momenta p ~ N(0, I)
#
# 1. p += eps / 2 rate grad phi.
# 2. (theta, p) rotate by the angle eps rate, each coordinate with its own momentum.
# 3. p += eps / 2 rate grad phi; all of it ``n_leapfrog`` times.
# 4. The end is accepted with probability min(1, exp(H(start) - H(end))); a path on which H changes
# by
#    more than 1000 is refused, from either end.
#
# The rotation is exact: coordinates of which phi says nothing move by themselves without error,
# however many there are. eps varies by a fifth from one trajectory to the next.
#
# **Cost.** ``n_leapfrog`` + 1 gradients of phi.
#
# References
# ----------
# .. [1] B. Shahbaba, S. Lan, W. O. Johnson and R. M. Neal, "Split Hamiltonian Monte Carlo",
#    Statistics and Computing 2014.

#: phi and its gradient at a position of shape (p,).
Potential = Callable[[Array], tuple[float, Array]]

_SPLIT_JITTER = 0.2


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
    eps = step_size * rng.uniform(1.0 - _SPLIT_JITTER, 1.0 + _SPLIT_JITTER)
    log_uniform = math.log(1.0 - rng.random())
    cosine, sine, half = np.cos(eps * rates), np.sin(eps * rates), 0.5 * eps * rates
    theta, (value, gradient) = position, potential(position)
    start = _log_joint(value, theta, p)
    change = lowest = highest = 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # what goes astray is refused
        for _ in range(n_leapfrog):
            check_stop()
            p = p + half * gradient
            theta, p = cosine * theta + sine * p, cosine * p - sine * theta
            value, gradient = potential(theta)
            p = p + half * gradient
            change = _log_joint(value, theta, p) - start
            lowest, highest = min(lowest, change), max(highest, change)
            if not (highest - lowest < MAX_ENERGY_ERROR and math.isfinite(change)):
                return Trajectory(position, False, 0.0)
    is_accepted = log_uniform < change
    end = theta if is_accepted else position
    return Trajectory(end, is_accepted, math.exp(min(0.0, change)))


def _log_joint(value: float, theta: Array, p: Array) -> float:
    return value - 0.5 * float(theta @ theta) - 0.5 * float(p @ p)


# Warm-up of Hamiltonian samplers: dual averaging of the step size, one or more masses from draws.

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
