"""BNK-12: trajectories before the sweeps of classes leave the joint law as it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mercer.sampling import split_hmc
from mercer.spectral.classes import trajectory
from mercer.spectral.classes.chain import ClassChain
from mercer.spectral.classes.joint import JointSampler
from mercer.spectral.classes.model import LogisticModel
from mercer.spectral.classes.state import ClassState
from mercer.spectral.mixture import coordinates
from support.spectral_class_joint import CASES, distances, limit

N_RUNS, N_LEAPFROG = 1000, 4


def travel(sampler: ClassChain, rng: np.random.Generator, state: ClassState) -> ClassState:
    """Trajectories alone: nothing else hides what is wrong with them."""
    return sampler.travel(rng, state)[0]


@pytest.mark.parametrize("case", CASES)
def test_bnk_12_trajectories_alone(case: str) -> None:
    """False alarm 1e-6 over all distances; detects 0.2."""
    found = distances(case, N_RUNS, 4, step=travel, n_leapfrog=N_LEAPFROG)
    assert max(found.values()) < limit(N_RUNS), found


@pytest.mark.parametrize("case", CASES)
def test_bnk_12_trajectories_and_sweeps(case: str) -> None:
    """False alarm 1e-6 over all distances; detects 0.25."""
    found = distances(case, 600, 3, n_leapfrog=N_LEAPFROG)
    assert max(found.values()) < limit(600), found


def test_bnk_12_trajectories_and_joint_moves() -> None:
    """False alarm 1e-6 over all distances; detects 0.25."""
    case = "three classes, full, pcn"
    found = distances(case, 600, 3, kind=JointSampler, n_leapfrog=N_LEAPFROG)
    assert max(found.values()) < limit(600), found


def forget_the_jacobian(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logarithms move, the density is that of the variances."""
    density = coordinates._Diagonal.log_density

    def mutant(self, theta):
        value, gradient = density(self, theta)
        n = self.n_components * self.variances.shape[1]
        gradient[-n:] -= 1.0
        return value - float(theta[-n:].sum()), gradient

    monkeypatch.setattr(coordinates._Diagonal, "log_density", mutant)


def take_every_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that do not run away."""

    def mutant(value, theta, p):
        return 0.0 if np.abs(theta).max() < 5.0 else -np.inf

    monkeypatch.setattr(split_hmc, "_log_joint", mutant)


def scale_the_coefficients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Coefficients by precisions a half above those of the prior."""
    precisions = LogisticModel.prior_precisions
    monkeypatch.setattr(LogisticModel, "prior_precisions", lambda *args: 1.5 * precisions(*args))


def few_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The likelihood of one row in four."""
    gradient = trajectory.likelihood_gradient

    def mutant(rows, W, coef):
        return gradient(type(rows)(rows.X[::4], rows.y[::4], rows.has_linear_part), W, coef)

    monkeypatch.setattr(trajectory, "likelihood_gradient", mutant)


MUTANTS = [forget_the_jacobian, take_every_end, scale_the_coefficients, few_of_the_rows]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_bnk_12_sees_wrong_trajectories(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    found = distances("two classes, prior", 1000, 15, step=travel, n_leapfrog=N_LEAPFROG)
    assert max(found.values()) > 1.2 * limit(1000), found
