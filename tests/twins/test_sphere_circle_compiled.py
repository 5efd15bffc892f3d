"""Compiled loops of the great-circle step against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mercer.likelihoods.label_noise import LabelNoise, fixed_rate
from mercer.sphere import great_circle as compiled
from support.circle_cases import extended, tangent_of
from support.sphere_cases import noises, noisy_rows

SIZES = (1, 2, 3, 7, 8, 33, 64, 65, 130, 1000)
HALF_PI = 0.5 * math.pi


def found_angles(f, h, share: float, scale: float):
    tangent, angles = np.empty(len(f)), np.empty(len(f))
    n_null = compiled.crossing_angles(f, h, share, scale, tangent, angles)
    return n_null, tangent, angles


@pytest.mark.parametrize("n", SIZES)
def test_crossing_angles(n: int) -> None:
    """Full relative accuracy, over many orders of magnitude."""
    rng = np.random.default_rng(n)
    f, h = rng.standard_normal((2, n)) * 10.0 ** rng.uniform(-9.0, 9.0, (2, n))
    n_null, tangent, angles = found_angles(f, h, 0.3, 0.8)
    np.testing.assert_allclose(tangent, 0.8 * (h - 0.3 * f), rtol=1e-7)
    np.testing.assert_allclose(angles, -np.arctan(f / tangent), rtol=1e-15)
    assert n_null == 0


def test_arctangent_on_a_grid() -> None:
    """Over both reductions and the signs: at most four units in the last place."""
    tangents = np.append(np.geomspace(1e-12, 1e12, 40_001), [1.0, math.tan(math.pi / 8.0)])
    for sign in (1.0, -1.0):
        _, _, angles = found_angles(-sign * tangents, np.ones_like(tangents), 0.0, 1.0)
        np.testing.assert_allclose(angles, sign * np.arctan(tangents), rtol=4.0 * 2.3e-16)


def test_crossing_angles_at_the_ends() -> None:
    """f = 0: at the point. Along f itself: at the ends, and no sign of zero matters."""
    f = np.array([0.0, -0.0, 0.0, 2.0, -2.0, 2.0, 0.0, -0.0, 1e-300, 1.0])
    h = np.array([1.0, 1.0, -1.0, 0.0, 0.0, -0.0, 0.0, 0.0, 1.0, 1e-300])
    n_null, tangent, angles = found_angles(f, h, 0.0, 1.0)
    assert n_null == 2
    np.testing.assert_array_equal(tangent, h)
    np.testing.assert_allclose(
        angles,
        [0.0, 0.0, 0.0, HALF_PI, -HALF_PI, HALF_PI, compiled.NO_CROSSING, compiled.NO_CROSSING,
         -1e-300, -HALF_PI],
        rtol=1e-15,
    )  # fmt: skip


def angles_of(kind: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    angles = rng.uniform(-HALF_PI, HALF_PI, n)
    if kind == "near 0":
        return angles * 1e-12
    if kind == "cluster":
        return 0.7 + 1e-10 * angles
    if kind == "few values":
        return np.round(2.0 * angles) / 2.0
    if kind == "ends":
        return np.sign(angles) * HALF_PI
    if kind == "some null":
        return np.where(rng.random(n) < 0.3, compiled.NO_CROSSING, angles)
    return angles


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "kind", ["uniform", "near 0", "cluster", "few values", "ends", "some null"]
)
def test_order_angles(kind: str, n: int) -> None:
    """Also where all fall into one cell of the grid, so that the insertion gives up."""
    angles = angles_of(kind, n)
    order, ordered = np.empty(n, np.int32), np.empty(n)
    compiled.order_angles(angles, order, ordered)
    np.testing.assert_array_equal(ordered, np.sort(angles))
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    np.testing.assert_array_equal(angles[order], ordered)


def test_the_radix_order_is_stable_and_nearly_sorted() -> None:
    angles = angles_of("uniform", 5000)
    cells, order = np.empty(5000, np.int32), np.empty(5000, np.int32)
    compiled._grid_cells(angles, cells)
    assert 0 <= cells.min() <= cells.max() < 2**22
    compiled._order_by_cell(cells, order)
    np.testing.assert_array_equal(order, np.argsort(cells, kind="stable"))
    assert np.diff(angles[order]).min() > -4e-6


def circle(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A point and a direction; every fifth row is zero."""
    L = noisy_rows(n, 4, seed=seed)
    L[4::5] = 0.0
    return tuple(extended(L, np.random.default_rng(seed + 50).standard_normal((2, 4))))


def plain_arcs(point: np.ndarray, direction: np.ndarray, n: int, noise: LabelNoise):
    """Crossings in the half turn, then (2, n_live + 1) masses and errors, row by row."""
    v = tangent_of(point, direction, n)
    live = (point[:n] != 0.0) | (direction[:n] != 0.0)
    ordered = np.sort(-np.arctan(point[:n][live] / v[:n][live]))
    edges = np.concatenate([[-HALF_PI], ordered, [HALF_PI]])
    middle = 0.5 * (edges[1:] + edges[:-1])
    middle = np.stack([middle, middle + np.pi])
    f = np.cos(middle)[..., None] * point[:n] + np.sin(middle)[..., None] * v[:n]
    cost = noise.cost(f <= 0.0)
    return ordered, np.diff(edges) * np.exp(cost.min() - cost), (f <= 0.0).sum(axis=-1)


KINDS = [*noises(7), "certain", "useless"]


def noise_of(kind: str, n: int) -> LabelNoise:
    extremes = {"certain": fixed_rate(0.0, n), "useless": fixed_rate(0.5, n)}
    return (noises(n) | extremes)[kind]


@pytest.mark.parametrize("n", [1, 2, 7, 33, 130])
@pytest.mark.parametrize("kind", KINDS)
def test_circle_arcs(kind: str, n: int) -> None:
    noise = noise_of(kind, n)
    for seed in range(4):
        point, direction = circle(n, seed)
        ordered, masses, errors = plain_arcs(point, direction, n, noise)
        m = len(ordered)
        out = np.full(n, np.nan), np.full((2, n + 1), np.nan), np.empty((2, n + 1), np.int64)
        for is_common in {noise.is_common, False}:  # the general walk holds for a common rate too
            n_live, share, scale = compiled.circle_arcs(
                point, direction, n, noise.jumps, noise.total, noise.row_cost, is_common, *out
            )
            assert n_live == m
            np.testing.assert_allclose(out[0][:m], ordered, rtol=1e-12)
            np.testing.assert_array_equal(out[2][:, : m + 1], errors)
            np.testing.assert_allclose(out[1][:, : m + 1], masses, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(
                scale * (direction - share * point), tangent_of(point, direction, n), rtol=1e-12
            )


def test_cross() -> None:
    """There and back: the cost of the errors that are made or undone, and those that cannot be."""
    total = np.array([[0.0, 1.0, 3.0, 7.0], [0.0, 1e6, 2e6, 2e6]])[..., np.newaxis]
    errors = np.array([1, 0])
    jumps = np.array([[1, 0], [0, 1], [2, 0]])
    assert compiled._cross(0, 0, jumps, 0.5, total, errors) == (2.5, 0)
    np.testing.assert_array_equal(errors, [2, 0])
    assert compiled._cross(0, 1, jumps, 0.5, total, errors) == (-2.5, 0)
    assert compiled._cross(2, 0, jumps, 0.0, total, errors) == (6.0, 0)
    np.testing.assert_array_equal(errors, [3, 0])
    assert compiled._cross(1, 0, jumps, 0.5, total, errors) == (0.5, 1)
    assert compiled._cross(1, 1, jumps, 0.5, total, errors) == (-0.5, -1)
    assert compiled._cross(0, 1, jumps, 1e6, total, errors) == (-4.0, -1)
    np.testing.assert_array_equal(errors, [2, 0])


def test_draw_arc() -> None:
    """A uniform number chooses by the masses, half turns interleaved; never an empty arc."""
    masses = np.array([[1.0, 0.0, 3.0, 0.0], [0.0, 2.0, 2.0, 0.0]])
    uniforms = (np.arange(800) + 0.5) / 800.0
    drawn = [compiled._draw_arc(masses, 3, u) for u in uniforms]
    expected = np.repeat([0, 11, 2, 12], [100, 200, 300, 200])  # 10 half + arc, in order
    np.testing.assert_array_equal([10 * half + k for half, k in drawn], expected)
    assert compiled._draw_arc(masses, 3, 0.0) == (0, 0)
    assert compiled._draw_arc(masses, 3, np.nextafter(1.0, 0.0)) == (1, 2)
    assert compiled._draw_arc(masses[:, ::-1], 3, 0.0) == (0, 1)
    assert compiled._draw_arc(masses[::-1], 3, np.nextafter(1.0, 0.0)) == (1, 2)
    lonely = np.array([[0.0, 0.1 + 0.2, 0.0], [0.0, 0.0, 0.0]])
    assert compiled._draw_arc(lonely, 2, 1.0) == (0, 1)  # as if u * total were rounded up


def plain_move(point, direction, n: int, noise: LabelNoise, uniforms):
    """One step with the same two uniform numbers."""
    ordered, masses, errors = plain_arcs(point, direction, n, noise)
    interleaved = masses.T.ravel()
    index = np.searchsorted(np.cumsum(interleaved), uniforms[0] * interleaved.sum(), side="right")
    k, half = divmod(int(index), 2)
    edges = np.concatenate([[-HALF_PI], ordered, [HALF_PI]])
    t = edges[k] + uniforms[1] * (edges[k + 1] - edges[k]) + half * np.pi
    end = np.cos(t) * point + np.sin(t) * tangent_of(point, direction, n)
    return end, errors[half, k], max(1, 2 * len(ordered))


@pytest.mark.parametrize("n", [1, 2, 7, 130])
@pytest.mark.parametrize("kind", KINDS)
def test_great_circle_moves(kind: str, n: int) -> None:
    noise, rng = noise_of(kind, n), np.random.default_rng(n)
    for seed in range(4):
        point, _ = circle(n, seed)
        L = noisy_rows(n, 4, seed=seed)
        L[4::5] = 0.0
        directions, uniforms = extended(L, rng.standard_normal((5, 4))), rng.random((5, 2))
        expected = [(point, 0, 0)]
        for direction, pair in zip(directions, uniforms, strict=True):
            expected.append(plain_move(expected[-1][0], direction, n, noise, pair))
        n_errors, n_arcs = np.empty(5, np.int64), np.empty(5, np.int64)
        compiled.walk_great_circles(
            point, directions, n, noise.jumps, noise.total, noise.row_cost, noise.is_common,
            uniforms, n_errors, n_arcs,
        )  # fmt: skip
        np.testing.assert_allclose(point, expected[-1][0], rtol=1e-8, atol=1e-10)
        np.testing.assert_array_equal(n_errors, [e for _, e, _ in expected[1:]])
        np.testing.assert_array_equal(n_arcs, [a for _, _, a in expected[1:]])


def test_reductions() -> None:
    g, z = np.random.default_rng(9).standard_normal((2, 37))
    np.testing.assert_allclose(compiled._dots(g, z), (g @ g, g @ z), rtol=1e-13)
    assert compiled._squared_distance(z, g, 0.4) == pytest.approx(((z - 0.4 * g) ** 2).sum())
