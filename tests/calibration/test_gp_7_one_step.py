"""GP-7: one HMC step from exact draws leaves the posterior of the hyperparameters unchanged.

20 000 independent starts by rejection, one trajectory each; the two marginals are compared with
the grid's by the limit of Dvoretzky, Kiefer and Wolfowitz: false alarm 1e-6 in all, any
difference of twice the limit (0.04) is found. Rejection itself is checked on the starts.
"""

from __future__ import annotations

import numpy as np
import pytest

from mercer.gp.laplace import HyperparameterPosterior
from mercer.sampling.hmc import HMC, HamiltonianTuning, PointState, unit_mass
from mercer.sampling.nuts import NUTS
from support.gp_cases import posterior
from support.grid import Grid
from support.mutants import accept_everything
from support.statistics import dkw_distance, dkw_limit
from support.targets import At, record_position

pytestmark = pytest.mark.slow

_COUNT = 20_000
_TUNING = HamiltonianTuning(2.5, unit_mass(2))
_START = At((-2.0, -2.0))


@pytest.fixture(scope="module")
def model() -> HyperparameterPosterior:
    return posterior(14, 1)


@pytest.fixture(scope="module")
def grid(model: HyperparameterPosterior) -> Grid:
    return Grid.of(model, 161, 5.6)


@pytest.fixture(scope="module")
def starts(model: HyperparameterPosterior, grid: Grid) -> np.ndarray:
    draws, largest_ratio = grid.draw(np.random.default_rng(70), model, _COUNT)
    assert largest_ratio < 1.0
    return draws


def distance(grid: Grid, draws: np.ndarray) -> float:
    return max(dkw_distance(draws[:, k], grid.cdf(k)) for k in (0, 1))


def after_one_step(model: HyperparameterPosterior, starts: np.ndarray, kind: str) -> np.ndarray:
    rng = np.random.default_rng(71)
    if kind == "hmc":
        sampler = HMC(model, _START, record_position, _TUNING, n_leapfrog=3, path_length=None)
    else:
        sampler = NUTS(model, _START, record_position, _TUNING)
    ends = np.empty_like(starts)
    for k, theta in enumerate(starts):
        state, _ = sampler.step(rng, PointState(model.evaluate(theta)))
        ends[k] = state.point.position
    return ends


def test_gp_7_exact_draws(grid: Grid, starts: np.ndarray) -> None:
    assert distance(grid, starts) < dkw_limit(_COUNT, 2)


@pytest.mark.parametrize("kind", ["hmc", "nuts"])
def test_gp_7_one_step(
    model: HyperparameterPosterior, grid: Grid, starts: np.ndarray, kind: str
) -> None:
    assert distance(grid, after_one_step(model, starts, kind)) < dkw_limit(_COUNT, 2)


def test_gp_7_one_step_sees_a_missing_accept_step(
    model: HyperparameterPosterior,
    grid: Grid,
    starts: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accept_everything(monkeypatch)
    assert distance(grid, after_one_step(model, starts, "hmc")) > dkw_limit(_COUNT, 2)
