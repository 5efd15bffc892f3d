"""GP-6: the leapfrog is reversible, of order two and preserves volume; E exp(-dH) = 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mercer.sampling.hmc import Mass, leapfrog, log_joint, mass_from_covariance
from mercer.sampling.sampler import Point, Target
from support.gp_cases import posterior
from support.statistics import largest_z, z_limit
from support.targets import Skewed, exact_draws, uneven_mass

Integrator = Callable[[Target, Point, np.ndarray, float, Mass], tuple[Point, np.ndarray]]

_THETA, _P = np.array([0.7, -1.1, 0.4]), np.array([0.4, -0.8, 1.1])


def euler(target: Target, point: Point, p: np.ndarray, step_size: float, mass: Mass):
    """Mutant: order one, neither reversible nor volume preserving."""
    new = target.evaluate(point.position + step_size * mass.velocity(p))
    return new, p + step_size * point.gradient


def stale(target: Target, point: Point, p: np.ndarray, step_size: float, mass: Mass):
    """Mutant: both half steps of the momentum with the gradient of the start."""
    p = p + 0.5 * step_size * point.gradient
    new = target.evaluate(point.position + step_size * mass.velocity(p))
    return new, p + 0.5 * step_size * point.gradient


def travel(integrator: Integrator, target: Target, theta, p, step_size: float, count: int):
    point = target.evaluate(theta)
    for _ in range(count):
        point, p = integrator(target, point, p, step_size, _mass())
    return point, p


def _mass() -> Mass:
    return mass_from_covariance(np.array([[1.5, 0.4, 0.0], [0.4, 0.8, 0.2], [0.0, 0.2, 1.2]]))


def return_error(integrator: Integrator, target: Target) -> float:
    """Distance from the start after twenty steps there and twenty back."""
    point, p = travel(integrator, target, _THETA, _P, 0.1, 20)
    back, p = travel(integrator, target, point.position, -p, 0.1, 20)
    return float(max(np.abs(back.position - _THETA).max(), np.abs(p + _P).max()))


def energy_order(integrator: Integrator, target: Target) -> float:
    """Slope of the log energy error in the log step size, for one length of trajectory."""
    counts = np.array([64, 128, 256, 512])
    start = log_joint(target.evaluate(_THETA), _P, _mass())
    errors = []
    for count in counts:
        point, p = travel(integrator, target, _THETA, _P, 1.3 / count, int(count))
        errors.append(abs(log_joint(point, p, _mass()) - start))
    return float(-np.polyfit(np.log(counts), np.log(errors), 1)[0])


def volume_error(integrator: Integrator, target: Target) -> float:
    """|det of the Jacobian of four steps - 1|, by central differences."""
    h, columns = 1e-5, []
    for k in range(6):
        ends = []
        for sign in (1.0, -1.0):
            state = np.concatenate([_THETA, _P])
            state[k] += sign * h
            point, p = travel(integrator, target, state[:3], state[3:], 0.3, 4)
            ends.append(np.concatenate([point.position, p]))
        columns.append((ends[0] - ends[1]) / (2.0 * h))
    return float(abs(abs(np.linalg.det(np.array(columns))) - 1.0))


def mean_exp_error(integrator: Integrator) -> float:
    """|t| of the mean of exp(-dH) against 1 over 5000 exact starts, four steps of 0.35."""
    rng, mass, target = np.random.default_rng(6), uneven_mass(), Skewed()
    values = np.empty(5000)
    for k, theta in enumerate(exact_draws(rng, len(values))):
        start = point = target.evaluate(theta)
        p0 = p = mass.draw_momentum(rng)
        for _ in range(4):
            point, p = integrator(target, point, p, 0.35, mass)
        values[k] = np.exp(log_joint(point, p, mass) - log_joint(start, p0, mass))
    return largest_z(values[:, None], np.ones(1), 100)


TARGETS = [pytest.param(posterior(20, 2), id="gp"), pytest.param(Skewed(), id="skewed")]


@pytest.mark.parametrize("target", TARGETS)
def test_gp_6_leapfrog_is_reversible(target: Target) -> None:
    assert return_error(leapfrog, target) < 1e-12


@pytest.mark.parametrize("target", TARGETS)
def test_gp_6_leapfrog_is_of_order_two(target: Target) -> None:
    assert energy_order(leapfrog, target) == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("target", TARGETS)
def test_gp_6_leapfrog_preserves_volume(target: Target) -> None:
    assert volume_error(leapfrog, target) < 1e-6


def test_gp_6_mean_of_exp_of_the_energy_error_is_one() -> None:
    assert mean_exp_error(leapfrog) < z_limit(100, 1)


@pytest.mark.parametrize("mutant", [euler, stale])
def test_gp_6_leapfrog_sees_mutants(mutant: Integrator) -> None:
    target = Skewed()
    assert return_error(mutant, target) > 1e-6
    assert energy_order(mutant, target) < 1.5
    assert volume_error(mutant, target) > 1e-3
    assert mean_exp_error(mutant) > z_limit(100, 1)
