"""Compiled line moves of several classes against NumPy, from the same stream."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr
from scipy.stats import chi2

from mercer.sphere import several_loops as compiled
from mercer.sphere.several import SeveralModel
from support.several_cases import loop_costs, make_model, n_groups, scratch, separable
from support.several_twins import case, plain_gap, plain_shuffle, plain_sweep

KINDS = ["fixed", "per row", "learned", "confusion"]
SIZES = (1, 2, 7, 8, 9, 40, 150)


def sweep(rng, point, c, order, widths, model: SeveralModel) -> tuple[int, np.ndarray]:
    errors = np.full(n_groups(model), -1)
    n_breakpoints = compiled.sweep_class(
        rng, point, c, order, np.ascontiguousarray(model.L.T), widths, model.labels,
        *loop_costs(model), errors, scratch(model.n_rows),
    )  # fmt: skip
    return n_breakpoints, errors


@pytest.mark.parametrize(("n_classes", "scale"), [(2, 1.0), (3, 5.0), (10, 3.0), (50, 1.0)])
def test_largest_of_normals(n_classes: int, scale: float) -> None:
    """The same trapezoid rule with SciPy's Phi: beside 1, and each share by itself."""
    z = scale * np.random.default_rng(5).standard_normal((4, n_classes, 30))
    z[0, 0] = z[0].max(axis=0)  # ties
    found = np.empty_like(z)
    compiled.largest_of_normals(z, found)
    x = np.arange(-7.5, 7.6, 0.5)[:, None, None, None] + z.max(axis=1, keepdims=True) - z
    density = np.exp(-0.5 * x**2) / ndtr(x) * ndtr(x).prod(axis=2, keepdims=True)
    shares = density.sum(axis=0)
    expected = shares / shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


def test_a_class_far_below_all_others_has_no_share() -> None:
    z = np.array([[[0.0], [-15.4], [-15.6], [-1e300]]])
    found = np.empty_like(z)
    compiled.largest_of_normals(z, found)
    np.testing.assert_allclose(found[0, :, 0], [1.0, 0.0, 0.0, 0.0], atol=1e-25)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("n", SIZES)
def test_rivals(n: int, n_classes: int) -> None:
    model, point = case(n, 4, n_classes, "fixed")
    gap, side = np.empty(n), np.empty(n, np.int64)
    for c in range(n_classes):
        compiled.rivals(point, model.labels, c, gap, side)
        f = point[:, :n].copy()
        np.testing.assert_array_equal(gap, plain_gap(f, c))
        f[c] = np.inf
        is_wrong_above = model.is_wrong(f)
        f[c] = -np.inf
        is_wrong_below = model.is_wrong(f)
        np.testing.assert_array_equal(side, is_wrong_below.astype(int) - is_wrong_above)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_sweep_of_a_class(n: int, kind: str) -> None:
    """Windows of all widths, so that few and many breakpoints are sorted."""
    r = 4
    widths = np.array([0.1, 1.0, 3.0, 12.0])
    for n_classes in (2, 3, 4):
        model, point = case(n, r, n_classes, kind, seed=n_classes)
        rng, twin_rng, twin = np.random.default_rng(1), np.random.default_rng(1), point.copy()
        for c in range(n_classes):
            order = np.random.default_rng(c).permutation(r)
            n_breakpoints, errors = sweep(rng, point, c, order, widths, model)
            assert n_breakpoints == plain_sweep(twin_rng, twin, c, order, widths, model)
            np.testing.assert_allclose(point, twin, rtol=1e-9, atol=1e-9)
            if kind != "confusion":
                is_wrong = model.is_wrong(point[:, :n])
                np.testing.assert_array_equal(errors, model.noise.errors_by_group(is_wrong))
        assert rng.random() == twin_rng.random()


def test_sweep_without_noise() -> None:
    model = separable(make_model(60, 4, 3))
    g = np.random.default_rng(51).standard_normal((3, 4))
    point = model.point(g)
    assert not model.is_wrong(point[:, :60]).any()
    rng, twin_rng, twin = np.random.default_rng(1), np.random.default_rng(1), point.copy()
    for c in (0, 1, 2, 1):
        n_breakpoints, errors = sweep(rng, point, c, np.arange(4), np.full(4, 2.0), model)
        plain_sweep(twin_rng, twin, c, np.arange(4), np.full(4, 2.0), model)
        np.testing.assert_allclose(point, twin, rtol=1e-9, atol=1e-9)
        assert errors == [0]
        assert n_breakpoints == 0


def test_a_row_that_is_wrong_against_all_odds_is_put_right() -> None:
    """Where rounding put a row that must be right on the wrong side, the next move mends it."""
    model = separable(make_model(30, 3, 3))
    g = np.random.default_rng(51).standard_normal((3, 3))
    point = model.point(g)
    c = int(model.labels[0])
    lead = plain_gap(point[:, :30], c)[0]
    point[c, :30] -= model.L[:, 0] * (lead / model.L[0, 0]) * (1.0 + 1e-13)
    assert model.is_wrong(point[:, :30])[0]
    _, errors = sweep(
        np.random.default_rng(2), point, c, np.array([0]), np.array([1.0, 1.0, 1.0]), model
    )
    assert not model.is_wrong(point[:, :30])[0]
    assert errors[0] == model.is_wrong(point[:, :30]).sum()


@pytest.mark.parametrize("far", [-45.0, -9.0, 0.0, 9.0, 31.0, 45.0])
def test_far_from_the_origin(far: float) -> None:
    """Coordinates in the far tail, where masses of segments would underflow."""
    model, point = case(40, 3, 3, "fixed")
    point[1, :40] += far * model.L[:, 0]
    point[1, 40] += far
    rng, twin_rng, twin = np.random.default_rng(1), np.random.default_rng(1), point.copy()
    point[1, 41:] = twin[1, 41:]
    for _ in range(20):
        start = point.copy()
        sweep(rng, point, 1, np.array([0]), np.full(3, 1.5), model)
        plain_sweep(twin_rng, twin, 1, np.array([0]), np.full(3, 1.5), model)
        np.testing.assert_allclose(point, twin, rtol=1e-8, atol=1e-8)
        point[:], twin[:] = start, start


@pytest.mark.parametrize("base", [0.0, 8.0, 50.0, 800.0])
def test_tail(base: float) -> None:
    z = np.sqrt(2.0 * base) + np.array([0.0, 1e-3, 0.5, 2.0, 11.9, 12.1, 30.0])
    found = [compiled._tail(value, base) for value in z]
    np.testing.assert_allclose(found, np.exp(log_ndtr(-z) + base), rtol=1e-11)


@pytest.mark.parametrize("m", [0, 1, 2, 24, 25, 90])
def test_sort_inside(m: int) -> None:
    rng = np.random.default_rng(m)
    for keys in (rng.random(m), rng.random(m) ** 30, np.repeat(0.3, m), np.arange(m) / 90.0):
        rows, sorted_keys = rng.permutation(m), keys.copy()
        sorted_rows = rows.copy()
        kept = compiled._sort_inside(sorted_keys, sorted_rows, m, 0.2, 0.8)
        inside = (keys > 0.2) & (keys < 0.8)
        assert kept == inside.sum()
        np.testing.assert_array_equal(sorted_keys[:kept], np.sort(keys[inside]))
        by_row = dict(zip(rows, keys, strict=True))
        np.testing.assert_array_equal([by_row[i] for i in sorted_rows[:kept]], sorted_keys[:kept])


def uneven(shuffle) -> float:
    """Chi-square of the six orders of three, over its limit at a false alarm of 1e-6."""
    rng, seen = np.random.default_rng(5), np.zeros(27)
    for _ in range(6000):
        order = np.arange(3)
        shuffle(rng, order)
        seen[order @ [9, 3, 1]] += 1
    counts = seen[[5, 7, 11, 15, 19, 21]]
    return float(((counts - 1000.0) ** 2 / 1000.0).sum() / chi2.isf(1e-6, 5))


def never_stay(rng: np.random.Generator, order: np.ndarray) -> None:
    """The mutant: each place takes what comes from another."""
    for k in range(len(order) - 1, 0, -1):
        other = int(rng.random() * k)
        order[[k, other]] = order[[other, k]]


def test_shuffle() -> None:
    rng, twin_rng, order, twin = *map(np.random.default_rng, (5, 5)), np.arange(9), np.arange(9)
    for _ in range(20):
        compiled._shuffle(rng, order)
        plain_shuffle(twin_rng, twin)
        np.testing.assert_array_equal(order, twin)
    assert uneven(compiled._shuffle) < 1.0
    assert uneven(never_stay) > 2.0


@pytest.mark.parametrize("n_epochs", [1, 3, 1000])
def test_perceptron(n_epochs: int) -> None:
    model = separable(make_model(50, 4, 3))
    g, twin = np.zeros((3, 4)), np.zeros((3, 4))
    is_done = compiled.perceptron(model.L, model.labels, g, n_epochs)
    is_twin_done = False
    for _ in range(n_epochs):
        if is_twin_done:
            break
        is_twin_done = True
        for row, label in zip(model.L, model.labels, strict=True):
            f = twin @ row
            others = np.where(np.arange(3) == label, -np.inf, f)
            if f[label] <= others.max():
                is_twin_done = False
                twin[label] += row
                twin[np.argmax(others)] -= row
    assert is_done == is_twin_done == (not model.is_wrong(g @ model.L.T).any())
    np.testing.assert_allclose(g, twin, rtol=1e-12)
