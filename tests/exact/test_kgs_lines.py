"""One line move from exact starts: cells of three rows, arcs in the plane, the place on a line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mercer.likelihoods.label_noise import fixed_rate, row_rates
from mercer.sphere import loops as compiled
from support.lift_cases import WALKS, Move, cells_excess, line, plane_excess, tempered
from support.sphere_cases import exact_draws, noises, noisy_rows
from support.statistics import dkw_distance, dkw_limit, few_first, tiers

FOUR = np.array([[2.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.3, 0.2, 0.5], [0.5, -0.9, 0.2]])
CELLS = {kind: (FOUR[:3], noise) for kind, noise in noises(3).items()} | {
    "certain": (FOUR, row_rates(np.array([0.0, 0.0, 0.0, 0.5])))
}
FIFTY = noisy_rows(50, 2, 0.3)
FIFTY[3::4] *= np.sign(FIFTY[3::4] @ [0.8, -0.6])[:, np.newaxis]
FIFTY[8] = 0.0
FIFTY[13], FIFTY[14] = FIFTY[12], -FIFTY[9]
ARCS = {kind: (FIFTY, noise) for kind, noise in noises(50).items()}
ALONG, ACROSS = np.array([0.4, -0.8, 0.7]), np.array([0.6, 0.4])
WIDTHS = [0.5, 3.0, 40.0]


@pytest.fixture(params=tiers(5_000, 20_000))
def count(request: pytest.FixtureRequest) -> int:
    """Of how many exact starts a test is."""
    return int(request.param)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", CELLS)
def test_kgs_lines_cells(kind: str, width: float, count: int) -> None:
    """Windows that hold a wall seldom, often, and all of the line. False alarm 1e-6 over all."""
    move = line(ALONG, width)
    assert cells_excess(move, *CELLS[kind], count, len(CELLS) * len(WIDTHS)) < 1.0


@pytest.mark.parametrize("kind", few_first(ARCS, "fixed", "learned per class"))
def test_kgs_lines_arcs(kind: str, count: int) -> None:
    """The law of the angle and of the length to 0.04 (20 000 starts: 0.02): twice that is seen."""
    assert plane_excess(line(ACROSS), *ARCS[kind], count, len(ARCS)) < 1.0


@pytest.mark.parametrize("mutant", ["mass ignored", "length for mass"])
def test_kgs_lines_cells_see(mutant: str) -> None:
    assert cells_excess(line(ALONG, 3.0, WALKS[mutant]), *CELLS["fixed"], 10_000) > 2.0


@pytest.mark.parametrize("kind", noises(3))
def test_kgs_lines_see_another_rate(kind: str) -> None:
    assert cells_excess(tempered(line(ALONG), 0.3), *CELLS[kind], 15_000) > 2.0


def coordinate_distance(move: Move, count: int, n_moves: int = 1) -> float:
    """DKW distance of (g . d) / |d| after moves, in units of its limit, one row at rate 0.

    The row is d itself: the coordinate is a normal cut off at 0. False alarm 1e-6.
    """
    rng, L, noise = np.random.default_rng(44), ALONG[np.newaxis], fixed_rate(0.0, 1)
    step = move(L, noise)
    ends = exact_draws(rng, L, noise, count)
    for _ in range(n_moves):
        ends = np.array([step(rng, g) for g in ends])
    coordinate = ends @ ALONG / np.linalg.norm(ALONG)
    return dkw_distance(coordinate, stats.halfnorm.cdf) / dkw_limit(count, len(WIDTHS))


@pytest.mark.parametrize("width", WIDTHS)
def test_kgs_lines_place_on_the_line(width: float, count: int) -> None:
    assert coordinate_distance(line(ALONG, width), count) < 1.0


@pytest.mark.parametrize("mutant", ["point in the middle of its window", "uniform in the segment"])
def test_kgs_lines_place_sees(mutant: str) -> None:
    """Eight moves in a window of one standard deviation: near the wall it reaches too far."""
    assert coordinate_distance(line(ALONG, 1.0), 5000, n_moves=8) < 1.0
    assert coordinate_distance(line(ALONG, 1.0, WALKS[mutant]), 5000, n_moves=8) > 2.0


def truncated_excess(draw, ends: tuple[float, float], count: int = 20_000) -> float:
    """DKW distance of a truncated normal, in units of its limit for all intervals."""
    rng = np.random.default_rng(45)
    x = np.array([draw(rng, *ends) for _ in range(count)])
    return dkw_distance(x, stats.truncnorm(*ends).cdf) / dkw_limit(count, len(INTERVALS))


INTERVALS = [
    (-1.0, 2.0), (-0.3, 0.2), (0.0, 5.0), (0.01, 90.0), (0.5, 1.0), (2.0, 2.8), (4.0, 50.0),
    (-2.0, -0.9), (-50.0, -7.0), (0.3, 4.0),
]  # fmt: skip


@pytest.mark.parametrize("ends", INTERVALS, ids=str)
def test_kgs_lines_truncated_normal(ends: tuple[float, float]) -> None:
    assert truncated_excess(compiled.truncated_normal, ends) < 1.0


def test_kgs_lines_truncated_normal_sees_a_uniform() -> None:
    assert truncated_excess(lambda rng, a, b: rng.uniform(a, b), (0.5, 1.0)) > 2.0
