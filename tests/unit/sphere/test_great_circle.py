"""The paper's step: what it keeps, what it refuses to touch, and the cases without a circle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from mercer.likelihoods.label_noise import LabelNoise, class_rates, fixed_rate, row_rates
from mercer.sphere.great_circle import great_circle_moves
from support.circle_cases import extended, great_circle_move
from support.sphere_cases import noises, noisy_rows, powered

N, R = 30, 6
KINDS = noises(N)


def problem(seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, one of them zero, a point and fifty directions."""
    rng = np.random.default_rng(seed)
    L = noisy_rows(N, R, seed=seed + 60)
    L[3] = 0.0
    return L, extended(L, rng.standard_normal(R)), extended(L, rng.standard_normal((50, R)))


def move(point: np.ndarray, directions: np.ndarray, noise: LabelNoise, seed: int = 2):
    return great_circle_moves(
        np.random.default_rng(seed), point, directions, len(noise.group), noise
    )


@pytest.mark.parametrize("kind", KINDS)
def test_keeps_the_length_the_input_and_f(kind: str) -> None:
    L, point, directions = problem()
    before = point.copy(), directions.copy()
    end, n_errors, n_arcs = move(point, directions, KINDS[kind])
    np.testing.assert_array_equal(point, before[0])
    np.testing.assert_array_equal(directions, before[1])
    assert np.linalg.norm(end[N:]) == pytest.approx(np.linalg.norm(point[N:]), rel=1e-12)
    np.testing.assert_allclose(end[:N], L @ end[N:], atol=1e-12)
    assert n_errors[-1] == np.count_nonzero(end[:N] <= 0.0)
    np.testing.assert_array_equal(n_arcs, 2 * (N - 1))


@pytest.mark.parametrize("r", [2, 3, 40])
def test_rounding_stays_small_over_a_block(r: int) -> None:
    """32 steps at most 1e-11; for r = 2 the error grows by a factor a step, 1e-6 over 512."""
    rng, L, noise = np.random.default_rng(8), noisy_rows(200, r), fixed_rate(0.2, 200)
    g = rng.standard_normal(r)
    for _ in range(40):
        directions = extended(L, rng.standard_normal((32, r)))
        end = great_circle_moves(rng, extended(L, g), directions, 200, noise)[0]
        g = end[200:]
        np.testing.assert_allclose(end[:200], L @ g, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_is_its_steps_one_by_one(kind: str) -> None:
    _, point, directions = problem()
    block, n_errors, n_arcs = move(point, directions, KINDS[kind])
    rng = np.random.default_rng(2)
    for k, direction in enumerate(directions):
        point, e, arcs = great_circle_move(rng, point, direction, N, KINDS[kind])
        assert (e, arcs) == (n_errors[k], n_arcs[k])
    np.testing.assert_array_equal(point, block)


def test_same_seed_same_point_and_another_seed_another() -> None:
    _, point, directions = problem()
    first, again, other = (move(point, directions, KINDS["fixed"], seed)[0] for seed in (2, 2, 3))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_longer_rows_change_nothing() -> None:
    """KGS-8: G -> 4 G, to the last bit."""
    L, point, directions = problem()
    end = move(point, directions, KINDS["per row"])[0]
    scale = np.append(np.full(N, 2.0), np.ones(R))
    longer = move(scale * point, scale * directions, KINDS["per row"])[0]
    np.testing.assert_array_equal(longer, scale * end)
    np.testing.assert_allclose(end[:N], L @ end[N:], atol=1e-12)


def test_only_the_tangent_of_the_direction_counts() -> None:
    _, point, directions = problem()
    end = move(point, directions[:1], KINDS["fixed"])[0]
    np.testing.assert_array_equal(move(point, 8.0 * directions[:1], KINDS["fixed"])[0], end)
    tilted = 8.0 * directions[:1] - 3.0 * point
    np.testing.assert_allclose(move(point, tilted, KINDS["fixed"])[0], end, atol=1e-12)


def test_order_of_the_rows_changes_nothing() -> None:
    """KGS-8: rows permuted, their costs with them."""
    _, point, directions = problem()
    rows = np.random.default_rng(4).permutation(N)
    columns = np.append(rows, np.arange(N, N + R))
    noise = KINDS["per row"]
    assert noise.rates is not None
    permuted = row_rates(noise.rates[rows])
    end = move(point, directions, noise)[0]
    moved = move(point[columns], np.ascontiguousarray(directions[:, columns]), permuted)[0]
    np.testing.assert_allclose(moved, end[columns], atol=1e-10)


def test_groups_and_rows_with_one_rate_are_the_common_rate() -> None:
    """Both walks draw the same point."""
    _, point, directions = problem()
    end, n_errors, _ = move(point, directions, fixed_rate(0.2, N))
    for noise in (
        class_rates(np.array([0.2, 0.2]), np.arange(N) % 2),
        row_rates(np.full(N, 0.2)),
    ):
        assert not noise.is_common
        same, e, _ = move(point, directions, noise)
        np.testing.assert_allclose(same, end, atol=1e-9)
        np.testing.assert_array_equal(e, n_errors)


@pytest.mark.parametrize("kind", ["common", "per row"])
def test_without_noise_it_stays_in_the_cone(kind: str) -> None:
    """Every row stays right over a thousand steps, with and without a common rate."""
    rng = np.random.default_rng(5)
    L, g = rng.standard_normal((N, R)), rng.standard_normal(R)
    L *= np.sign(L @ g)[:, None]
    noise = (
        fixed_rate(0.0, N) if kind == "common" else row_rates(np.where(np.arange(N) < 20, 0.0, 0.3))
    )
    must = slice(0, N if kind == "common" else 20)
    for _ in range(20):
        point = extended(L, g)
        end, n_errors, _ = great_circle_moves(
            rng, point, extended(L, rng.standard_normal((50, R))), N, noise
        )
        assert (end[must] > 0.0).all()
        assert not np.allclose(end[N:], g)
        g = end[N:]
        assert n_errors.any() == (kind == "per row")


def two_point_chi_square(noise: LabelNoise, used: LabelNoise) -> float:
    """Chi-square(1) of the sign after one step on the line, against the costs of g and -g."""
    rng, count = np.random.default_rng(6), 10_000
    point, direction = extended(LINE, np.array([[1.5], [0.7]]))
    ends = [great_circle_move(rng, point, direction, 5, used) for _ in range(count)]
    signs = np.array([end[5] / 1.5 for end, _, _ in ends])
    assert set(signs) == {-1.0, 1.0}
    for end, n_errors, n_arcs in ends[:20]:
        np.testing.assert_array_equal(end[:5], LINE[:, 0] * end[5])
        assert n_errors == np.count_nonzero(end[:5] <= 0.0)
        assert n_arcs == 2
    cost = noise.cost(np.array([[1.0], [-1.0]]) @ LINE.T <= 0.0)
    share = 1.0 / (1.0 + math.exp(cost[0] - cost[1]))
    seen = np.count_nonzero(signs > 0.0)
    return float((seen - count * share) ** 2 / (count * share * (1.0 - share)))


LINE = np.array([[1.0], [0.4], [-2.0], [0.0], [0.3]])
LINE_KINDS = noises(5)
LIMIT = stats.chi2.isf(1e-6 / len(LINE_KINDS), 1)


@pytest.mark.parametrize("kind", LINE_KINDS)
def test_one_dimension_has_two_points(kind: str) -> None:
    """Rank 1: no circle. A zero row is wrong at both, even at rate 0. False alarm 1e-6."""
    assert two_point_chi_square(LINE_KINDS[kind], LINE_KINDS[kind]) < LIMIT


@pytest.mark.parametrize("kind", LINE_KINDS)
def test_two_points_see_another_rate(kind: str) -> None:
    used = powered(LINE_KINDS[kind], 0.7)
    assert two_point_chi_square(LINE_KINDS[kind], used) > 2.0 * LIMIT


def test_a_direction_along_the_point_has_two_points() -> None:
    """No tangent: g or -g, and nothing that is not a number."""
    _, point, _ = problem()
    for seed in range(10):
        end = move(point, 2.0 * point[np.newaxis], KINDS["fixed"], seed)[0]
        np.testing.assert_array_equal(np.abs(end), np.abs(point))


def test_rows_that_are_all_zero() -> None:
    """Nothing crosses: the whole circle is one arc, uniform, and all rows are wrong on it."""
    rng = np.random.default_rng(7)
    point = np.append(np.zeros(4), [1.0, 0.0])
    angles = []
    for z in rng.standard_normal((2000, 2)):
        end, n_errors, n_arcs = great_circle_move(
            rng, point, np.append(np.zeros(4), z), 4, fixed_rate(0.2, 4)
        )
        assert (n_errors, n_arcs) == (4, 1)
        angles.append(math.atan2(end[5], end[4]))
    uniform = np.array(angles) / (2.0 * math.pi) + 0.5
    assert stats.kstest(uniform, "uniform").pvalue > 1e-6
