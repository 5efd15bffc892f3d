"""KGS-6: joint test: a uniform w, labels with noise, then steps that alternate with new labels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mercer.likelihoods.label_noise import fixed_rate
from support.circle_cases import (
    Step,
    extended,
    great_circle_move,
    iid_coefficients,
    isotropic,
    tempered,
)
from support.sphere_cases import noisy_gram
from support.statistics import largest_z, tiers, z_limit

N, RATE = 8, 0.15
N_BATCHES = 400


def joint_z(n_runs: int, step: Step = great_circle_move, directions=isotropic) -> float:
    """Largest |t| of E u_i^2 = 1/n and of the law of the errors, over independent runs of ten."""
    rng, noise = np.random.default_rng(14), fixed_rate(RATE, N)
    values, vectors = np.linalg.eigh(noisy_gram(N)[0])
    L = vectors * np.sqrt(values)  # u in the basis of eigenvectors, which is orthonormal
    g = rng.standard_normal((n_runs, N))
    squares, n_errors = np.empty((n_runs, N)), np.empty(n_runs)
    for k in range(n_runs):
        point = extended(L, g[k])
        for direction in extended(L, directions(rng, 10, L)):
            right = np.where(point[:N] > 0.0, 1.0, -1.0)
            y = np.append(np.where(rng.random(N) < RATE, -right, right), np.ones(N))
            point = y * step(rng, y * point, y * direction, N, noise)[0]
            n_errors[k] = np.count_nonzero(y[:N] * point[:N] <= 0.0)
        squares[k] = point[N:] ** 2 / (point[N:] @ point[N:])
    at_least = n_errors[:, None] >= np.arange(1, 5)
    truth = np.append(np.full(N, 1.0 / N), stats.binom.sf(np.arange(4), N, RATE))
    return largest_z(np.column_stack([squares, at_least]), truth, N_BATCHES)


@pytest.mark.parametrize("n_runs", tiers(4_000, 20_000))
def test_kgs_6_joint(n_runs: int) -> None:
    limit = z_limit(N_BATCHES, N + 4)
    assert limit < 5.7
    assert joint_z(n_runs) < limit


def test_kgs_6_sees_iid_coefficients() -> None:
    assert joint_z(2000, directions=iid_coefficients) > 2.0 * z_limit(N_BATCHES, N + 4)


@pytest.mark.parametrize("power", [0.5, 2.0])
def test_kgs_6_sees_another_rate(power: float) -> None:
    step = tempered(great_circle_move, power)
    assert joint_z(4000, step) > 2.0 * z_limit(N_BATCHES, N + 4)
