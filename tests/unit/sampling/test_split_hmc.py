from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mercer.sampling import hmc as split_hmc
from mercer.sampling.hmc import travel
from support.statistics import dkw_distance, dkw_limit

N, P = 4000, 2
# phi = -theta'A theta / 2 + b'theta: with the standard normal part, a normal law again.
A, B = np.array([[3.0, 1.2], [1.2, 0.8]]), np.array([0.7, -0.4])
PRECISION = A + np.eye(P)
MEAN, FACTOR = np.linalg.solve(PRECISION, B), np.linalg.cholesky(np.linalg.inv(PRECISION))
RATES = np.array([0.4, 0.9])
LIMIT = dkw_limit(N, 4 * P)


def quadratic(theta: np.ndarray) -> tuple[float, np.ndarray]:
    return float(-0.5 * theta @ A @ theta + B @ theta), B - A @ theta


def largest_distance(potential, step: float, n_leapfrog: int) -> float:
    """From exact draws of the target: both coordinates after a trajectory, against their law."""
    rng, ends = np.random.default_rng(17), []
    for _ in range(N):
        start = MEAN + FACTOR @ rng.standard_normal(P)
        ends.append(travel(rng, potential, start, RATES, step, n_leapfrog).position)
    z = np.linalg.solve(FACTOR, (np.array(ends) - MEAN).T)
    return max(dkw_distance(each, stats.norm.cdf) for each in z)


@pytest.mark.parametrize(("step", "n_leapfrog"), [(0.3, 1), (0.8, 5), (1.8, 3)])
def test_the_law_is_kept(step: float, n_leapfrog: int) -> None:
    """False alarm 1e-6 over all; detects 0.05. The largest step rejects a quarter and more."""
    assert largest_distance(quadratic, step, n_leapfrog) < LIMIT


def test_ends_that_are_always_taken_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_hmc, "_log_joint", lambda value, theta, p: 0.0)
    assert largest_distance(quadratic, 1.8, 3) > LIMIT


def test_a_potential_that_is_not_the_gradients_is_seen() -> None:
    """Twice the potential, in the decisions only: another law."""
    assert largest_distance(lambda t: (2.0 * quadratic(t)[0], quadratic(t)[1]), 0.8, 5) > LIMIT


def test_a_wrong_gradient_costs_acceptance_only() -> None:
    assert largest_distance(lambda t: (quadratic(t)[0], 1.3 * quadratic(t)[1]), 0.3, 3) < LIMIT


@pytest.mark.parametrize("step", [0.1, 1.0])
def test_without_a_potential_it_rotates_exactly(step: float) -> None:
    nothing = lambda theta: (0.0, np.zeros_like(theta))  # noqa: E731
    found = travel(np.random.default_rng(3), nothing, np.ones(50), np.full(50, 0.7), step, 40)
    assert found.is_accepted
    assert found.acceptance_rate == pytest.approx(1.0, abs=1e-12)
    rng = np.random.default_rng(3)
    p, eps = rng.standard_normal(50), step * rng.uniform(0.8, 1.2)
    expected = math.cos(40 * 0.7 * eps) + math.sin(40 * 0.7 * eps) * p
    np.testing.assert_allclose(found.position, expected, atol=1e-12)


def test_small_steps_are_accepted() -> None:
    rng = np.random.default_rng(4)
    rates = [
        travel(rng, quadratic, MEAN + FACTOR @ rng.standard_normal(P), RATES, 0.05, 10)
        for _ in range(200)
    ]
    assert min(each.acceptance_rate for each in rates) > 0.98


@pytest.mark.parametrize("bad", [np.nan, -np.inf, -1e4])
def test_a_trajectory_gone_astray_stays(bad: float) -> None:
    calls = iter([0.0, bad])
    position = np.ones(3)
    found = travel(
        np.random.default_rng(5),
        lambda theta: (next(calls), np.zeros(3)), position, np.ones(3), 0.5, 1,
    )  # fmt: skip
    assert not found.is_accepted
    assert found.position is position
    assert found.acceptance_rate == 0.0


def test_a_path_over_a_mountain_is_refused_from_either_end() -> None:
    """Also where the end is as probable as the start."""
    values = [0.0, -900.0, 200.0, 0.0]
    for path in (values, values[::-1]):
        calls = iter(path)
        found = travel(
            np.random.default_rng(5),
            lambda theta, calls=calls: (next(calls), np.zeros(3)), np.ones(3), np.ones(3), 0.5, 3,
        )  # fmt: skip
        assert not found.is_accepted


def test_nothing_is_said_of_what_goes_astray() -> None:
    """Warnings are errors here."""

    def steep(theta: np.ndarray) -> tuple[float, np.ndarray]:
        return -float(np.exp(50.0 * theta**2).sum()), -100.0 * theta * np.exp(50.0 * theta**2)

    found = travel(np.random.default_rng(6), steep, np.full(3, 0.1), np.ones(3), 1.0, 50)
    assert not found.is_accepted
