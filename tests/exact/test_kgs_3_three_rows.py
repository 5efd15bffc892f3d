"""KGS-3: a chain of 40 000 great-circle steps over three rows, against the eight cells."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate
from support.circle_cases import (
    Step,
    extended,
    great_circle_move,
    iid_coefficients,
    isotropic,
    mistaken,
    paper_step,
)
from support.sphere_cases import pattern_number, pattern_posterior
from support.statistics import largest_z, z_limit

L = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.5, 0.1, 0.86]])
NOISE = fixed_rate(0.15, 3)
N_BATCHES = 100


def chain_z(n_steps: int, step: Step = great_circle_move, directions=isotropic) -> float:
    """Largest |t| of the frequencies of the eight cells."""
    rng = np.random.default_rng(12)
    point, f = extended(L, np.ones(3)), np.empty((n_steps, 3))
    for k, direction in enumerate(extended(L, directions(rng, n_steps, L))):
        point = step(rng, point, direction, 3, NOISE)[0]
        f[k] = point[:3]
        if k % 32 == 31:
            point = extended(L, point[3:])
    is_in_cell = pattern_number(f)[:, None] == np.arange(8)
    return largest_z(is_in_cell.astype(float), pattern_posterior(L @ L.T, NOISE)[0], N_BATCHES)


def test_kgs_3_three_rows() -> None:
    limit = z_limit(N_BATCHES, 8)
    assert limit == pytest.approx(5.70, abs=0.01)
    assert chain_z(40_000) < limit


def test_kgs_3_holds_for_the_plain_step() -> None:
    """What the mutants below are made from is right without its mistake."""
    assert chain_z(10_000, paper_step) < z_limit(N_BATCHES, 8)


@pytest.mark.parametrize("mistake", ["difference", "no wrap"])
def test_kgs_3_sees_what_was_printed(mistake: str) -> None:
    assert chain_z(10_000, mistaken(mistake)) > 2.0 * z_limit(N_BATCHES, 8)


def test_kgs_3_sees_iid_coefficients() -> None:
    assert chain_z(40_000, directions=iid_coefficients) > 2.0 * z_limit(N_BATCHES, 8)
