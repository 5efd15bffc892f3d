"""BNK-12: trajectories before the sweeps of classes leave the joint law as it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from mercer.sampling import hmc as split_hmc
from mercer.spectral import trajectory
from mercer.spectral import trajectory as coordinates
from mercer.spectral.class_model import ClassState, LogisticModel
from mercer.spectral.class_sampler import ClassChain, JointSampler
from support.spectral_class_joint import CASES, distances, limit, make
from support.statistics import few_first, tiers

N_LEAPFROG = 4
PRIOR, FULL = "two classes, prior", "three classes, full, pcn"
LEARNED, GLOBAL = "two classes, learned scale", "two classes, half global"


class Travel:
    """Trajectories alone: nothing else hides what is wrong with them."""

    def __init__(self) -> None:
        self.has_moved: list[bool] = []

    def __call__(
        self, sampler: ClassChain, rng: np.random.Generator, state: ClassState
    ) -> ClassState:
        new, _ = sampler.before_sweep(rng, state)
        self.has_moved.append(new is not state)
        return new


@pytest.mark.parametrize("n", tiers(150, 1000))
@pytest.mark.parametrize("case", few_first(CASES, LEARNED))
def test_bnk_12_trajectories_alone(case: str, n: int) -> None:
    """False alarm 1e-6 over all distances; detects 0.5 (1000 runs: 0.2).

    Ends are both taken and refused.
    """
    travel = Travel()
    found = distances(case, n, 4, step=travel, n_leapfrog=N_LEAPFROG)
    assert max(found.values()) < limit(n), found
    assert 0.4 < np.mean(travel.has_moved) < 0.97


@pytest.mark.parametrize("n", tiers(150, 600))
@pytest.mark.parametrize("case", few_first(CASES, GLOBAL))
def test_bnk_12_trajectories_and_sweeps(case: str, n: int) -> None:
    """False alarm 1e-6 over all distances; detects 0.5 (600 runs: 0.25)."""
    found = distances(case, n, 3, n_leapfrog=N_LEAPFROG)
    assert max(found.values()) < limit(n), found


@pytest.mark.parametrize("n", tiers(150, 600))
def test_bnk_12_trajectories_and_joint_moves(n: int) -> None:
    """False alarm 1e-6 over all distances; detects 0.5 (600 runs: 0.25)."""
    found = distances(FULL, n, 3, kind=JointSampler, n_leapfrog=N_LEAPFROG)
    assert max(found.values()) < limit(n), found


def forget_the_jacobian(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logarithms move, the density is that of the variances."""
    at = coordinates._Diagonal.at

    def mutant(self, theta):
        W, value, pull = at(self, theta)
        n = self.n_components * self.variances.shape[1]
        is_logarithm = np.arange(len(theta)) >= len(theta) - n
        return W, value - float(theta[-n:].sum()), lambda g: pull(g) - is_logarithm

    monkeypatch.setattr(coordinates._Diagonal, "at", mutant)


def take_every_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that do not run away, at twice the step."""

    def mutant(value, theta, p):
        return 0.0 if np.abs(theta).max() < 5.0 else -np.inf

    monkeypatch.setattr(split_hmc, "_log_joint", mutant)
    monkeypatch.setattr(
        trajectory, "travel", lambda *args: split_hmc.travel(*args[:4], 2.0 * args[4], args[5])
    )


def scale_the_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coefficients by precisions a half above those of the prior."""
    precisions = LogisticModel.prior_precisions
    monkeypatch.setattr(LogisticModel, "prior_precisions", lambda *args: 1.5 * precisions(*args))


def few_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The likelihood of one row in four."""
    gradient = trajectory.likelihood_gradient

    def mutant(rows, W, coef, law):
        return gradient(type(rows)(rows.X[::4], rows.y[::4], rows.has_linear_part), W, coef, law)

    monkeypatch.setattr(trajectory, "likelihood_gradient", mutant)


def forget_the_learned_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chart of the scale that the base measure starts with."""
    chart_of, first = trajectory.coordinates_of, make(LEARNED).mixture.base.scale

    def mutant(base, state):
        return chart_of(base.with_scale(first), dataclasses.replace(state, scale=first))

    monkeypatch.setattr(trajectory, "coordinates_of", mutant)


# With as many runs, and steps of each, as it needs to be seen.
MUTANTS = [
    (scale_the_coefficients, PRIOR, 200, 4),  # 1.6 times the limit
    (scale_the_coefficients, FULL, 200, 15),
    (forget_the_jacobian, PRIOR, 200, 15),
    (take_every_end, PRIOR, 500, 15),
    (few_of_the_rows, PRIOR, 500, 15),
    (forget_the_learned_scale, LEARNED, 500, 15),
]


@pytest.mark.parametrize(("mutant", "case", "n", "n_steps"), MUTANTS)
def test_bnk_12_sees_wrong_trajectories(
    mutant: Callable[[pytest.MonkeyPatch], None],
    case: str,
    n: int,
    n_steps: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutant(monkeypatch)
    found = distances(case, n, n_steps, step=Travel(), n_leapfrog=N_LEAPFROG)
    assert max(found.values()) > 1.2 * limit(n), found
