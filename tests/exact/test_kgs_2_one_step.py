"""KGS-2: exact starts, one great-circle step, the cells of three rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from mercer.likelihoods.label_noise import LabelNoise, fixed_rate, learned_rate
from support.circle_cases import (
    Step,
    extended,
    great_circle_move,
    iid_coefficients,
    isotropic,
    mistaken,
    tempered,
)
from support.sphere_cases import exact_draws, noises, pattern_number, pattern_posterior
from support.statistics import FALSE_ALARM, tiers

# Signed rows of different lengths, none orthogonal: no symmetry hides an error.
L = np.array([[2.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.3, 0.2, 0.5]])
KINDS = noises(3)


def chi_square(
    noise: LabelNoise,
    count: int,
    step: Step = great_circle_move,
    directions=isotropic,
    n_tests: int = 1,
) -> tuple[float, float]:
    """Chi-square of the eight cells after one step from exact starts, and its limit."""
    rng = np.random.default_rng(11)
    points = extended(L, exact_draws(rng, L, noise, count))
    ahead = extended(L, directions(rng, count, L))
    ends = [step(rng, p, d, 3, noise)[0][:3] for p, d in zip(points, ahead, strict=True)]
    seen = np.bincount(pattern_number(np.array(ends)), minlength=8)
    expected = count * pattern_posterior(L @ L.T, noise)[0]
    is_possible = expected > 0.0
    assert expected[is_possible].min() > 20.0
    if seen[~is_possible].any():
        return np.inf, 0.0
    value = ((seen - expected)[is_possible] ** 2 / expected[is_possible]).sum()
    return float(value), float(stats.chi2.isf(FALSE_ALARM / n_tests, is_possible.sum() - 1))


@pytest.mark.parametrize("count", tiers(50_000, 200_000))
def test_kgs_2_one_step(count: int) -> None:
    value, limit = chi_square(fixed_rate(0.2, 3), count)
    assert limit == pytest.approx(40.5, abs=0.1)
    assert value < limit


@pytest.mark.parametrize("count", tiers(20_000, 50_000))
@pytest.mark.parametrize("kind", KINDS)
def test_kgs_2_all_kinds_of_noise(kind: str, count: int) -> None:
    """Row 3 of "per row" has rate 0 in `noises`, and cells where it is wrong stay empty."""
    value, limit = chi_square(KINDS[kind], count, n_tests=len(KINDS))
    assert value < limit


@pytest.mark.parametrize("mistake", ["difference", "no wrap"])
def test_kgs_2_sees_what_was_printed(mistake: str) -> None:
    value, limit = chi_square(fixed_rate(0.2, 3), 10_000, mistaken(mistake))
    assert value > 2.0 * limit


def test_kgs_2_sees_iid_coefficients() -> None:
    """K2: 4029 in a prototype of 200 000."""
    value, limit = chi_square(fixed_rate(0.2, 3), 20_000, directions=iid_coefficients)
    assert value > 2.0 * limit


@pytest.mark.parametrize("kind", KINDS)
def test_kgs_2_sees_another_rate(kind: str) -> None:
    value, limit = chi_square(KINDS[kind], 20_000, tempered(great_circle_move, 0.7))
    assert value > 2.0 * limit


def _of_the_recorded_class(noise: LabelNoise) -> LabelNoise:
    """Learned rates tied to the recorded class: the costs of two groups add up."""
    step = np.zeros_like(noise.step)
    for k, size in enumerate(noise.sizes):
        cost = learned_rate((1.0, 3.0), int(size)).total[0, :, 0]
        step += cost[:, np.newaxis] if k == 0 else cost
    return replace(noise, step=step)


def _without_row_costs(noise: LabelNoise) -> LabelNoise:
    return replace(noise, row_cost=np.zeros_like(noise.row_cost))


@pytest.mark.parametrize(
    ("kind", "change"),
    [("per class", _without_row_costs), ("learned per class", _of_the_recorded_class),
     ("per row", _without_row_costs)],
)  # fmt: skip
def test_kgs_2_sees_rates_mixed_up(kind: str, change) -> None:
    def step(rng, point, direction, n_rows, noise):
        return great_circle_move(rng, point, direction, n_rows, change(noise))

    value, limit = chi_square(KINDS[kind], 20_000, step)
    assert value > 2.0 * limit
