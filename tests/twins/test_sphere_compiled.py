"""Compiled loops over the Gaussian lift against NumPy, with the same random stream."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_ndtr, ndtr

from mercer.likelihoods.label_noise import LabelNoise, fixed_rate
from mercer.sphere import loops as compiled
from mercer.sphere.sampler import SphereModel
from support.lift_cases import errors_of
from support.sphere_cases import noises, noisy_rows, powered

SIZES = (1, 2, 3, 7, 33, 70)
KINDS = [*noises(7), "certain", "useless"]


def noise_of(kind: str, n: int) -> LabelNoise:
    extremes = {"certain": fixed_rate(0.0, n), "useless": fixed_rate(0.5, n)}
    return (noises(n) | extremes)[kind]


def problem(n: int, r: int, kind: str, seed: int) -> tuple[SphereModel, np.ndarray]:
    """Rows and a point that is right where it must be."""
    noise, rng = noise_of(kind, n), np.random.default_rng(seed)
    L, g = noisy_rows(n, r, seed=seed + 70), rng.standard_normal(r)
    must_be_right = noise.must_be_right
    L[must_be_right & (L @ g <= 0.0)] *= -1.0
    return SphereModel(L, noise), g


# --- trajectories --------------------------------------------------------------------------------


def cost_of_one(noise: LabelNoise, f: np.ndarray, j: int) -> float:
    """Cost of the point with row j wrong less that with row j right."""
    both = np.array([f <= 0.0, f <= 0.0])
    both[:, j] = [True, False]
    return float(noise.cost(both) @ [1.0, -1.0])


def plain_flight(model: SphereModel, g, w, is_wrong, duration: float):
    """Reflection and refraction, walls found by their angle; f and its velocity from g and w."""
    L, is_wrong, left, n_events, n_reflections = model.L, is_wrong.copy(), duration, 0, 0
    norm = (L**2).sum(axis=1)
    last = -1
    while True:
        f, v = L @ g, L @ w
        wall = np.mod(np.arctan2(-f, v), np.pi)  # f cos t + v sin t = 0
        if last >= 0:
            wall[last] = np.pi
        wall[norm == 0.0] = np.inf
        j = int(np.argmin(wall))
        t = min(wall[j], left)
        g, w = g * math.cos(t) + w * math.sin(t), w * math.cos(t) - g * math.sin(t)
        if wall[j] >= left:
            return g, w, is_wrong, n_events, n_reflections
        left, last, n_events = left - t, j, n_events + 1
        signed = np.where(is_wrong, -1.0, 1.0)
        cost = cost_of_one(model.noise, signed, j) * (-1.0 if is_wrong[j] else 1.0)
        speed = L[j] @ w / math.sqrt(norm[j])
        if speed**2 > 2.0 * cost:
            new = math.copysign(math.sqrt(speed**2 - 2.0 * cost), speed)
            is_wrong[j] = not is_wrong[j]
        else:
            new, n_reflections = -speed, n_reflections + 1
        w = w + (new - speed) * L[j] / math.sqrt(norm[j])


def flight(model: SphereModel, g, w, duration: float, max_events: int = 10_000):
    """The compiled one, from copies; also the errors that it kept count of."""
    point, velocity = model.point(g), model.extended(w[np.newaxis])[0]
    noise, n = model.noise, model.n_rows
    errors = errors_of(noise, point[:n])
    done = compiled.reflect_and_refract(
        model.table, point, velocity, noise.jumps, errors, noise.total, noise.row_cost, duration,
        max_events,
    )  # fmt: skip
    return point, velocity, errors, done


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_reflect_and_refract(kind: str, n: int) -> None:
    r, duration = (2, 0.5) if n > 10 else (4, 1.8)  # rounding errors grow from wall to wall
    for seed in range(6):
        model, g = problem(n, r, kind, seed)
        w = np.random.default_rng(seed + 20).standard_normal(r)
        end, v, is_wrong, *counts = plain_flight(model, g, w, model.L @ g <= 0.0, duration)
        point, velocity, errors, done = flight(model, g, w, duration)
        assert done == (*counts, True)
        np.testing.assert_allclose(point, np.append(model.L @ end, end), atol=1e-7)
        np.testing.assert_allclose(velocity, np.append(model.L @ v, v), atol=1e-7)
        np.testing.assert_array_equal(point[:n] <= 0.0, is_wrong)
        np.testing.assert_array_equal(errors, model.noise.errors_by_group(is_wrong))


@pytest.mark.parametrize("kind", KINDS)
def test_reflect_and_refract_there_and_back(kind: str) -> None:
    """With the velocity turned round it comes back, and the energy is kept."""
    model, g = problem(20, 3, kind, 3)
    w = np.random.default_rng(5).standard_normal(3)
    point, velocity, _, done = flight(model, g, w, 1.1)
    back, _, errors_back, done_back = flight(model, point[20:], -velocity[20:], 1.1)
    assert done == done_back
    np.testing.assert_allclose(back[20:], g, atol=1e-8)
    np.testing.assert_array_equal(errors_back, errors_of(model.noise, model.L @ g))
    before = 0.5 * (g @ g + w @ w) + model.noise.cost(model.L @ g <= 0.0)
    end, v = point[20:], velocity[20:]
    after = 0.5 * (end @ end + v @ v) + model.noise.cost(point[:20] <= 0.0)
    assert after == pytest.approx(before, rel=1e-9)


def test_reflect_and_refract_gives_up() -> None:
    model, g = problem(33, 2, "certain", 1)
    w = np.random.default_rng(2).standard_normal(2)
    n_events = flight(model, g, w, 1.5)[3][0]
    assert n_events > 3
    assert flight(model, g, w, 1.5, n_events)[3][2]
    assert flight(model, g, w, 1.5, n_events - 1)[3][::2] == (n_events - 1, False)


@pytest.mark.parametrize("kind", KINDS)
def test_trajectories(kind: str) -> None:
    """Three in one call: each from the end of the one before."""
    n, r, rng = 12, 3, np.random.default_rng(6)
    model, g = problem(n, r, kind, 4)
    noise, point, durations = model.noise, model.point(g), np.array([0.9, 0.2, 1.3])
    velocities, counts = model.extended(rng.standard_normal((3, r))), np.zeros(3, np.int64)
    compiled.trajectories(
        model.table, point, velocities, durations, noise.jumps, noise.total, noise.row_cost, 1.0,
        10_000, counts,
    )  # fmt: skip
    totals = np.zeros(2, np.int64)
    for velocity, duration in zip(velocities, durations, strict=True):
        end, _, _, done = flight(model, g, velocity[n:], duration)
        g, totals = end[n:], totals + done[:2]
    np.testing.assert_allclose(point, end, atol=1e-8)
    np.testing.assert_array_equal(counts, [*totals, 0])


def test_trajectories_at_a_power() -> None:
    """Of the likelihood: as with tempered costs; and one with too many events stays in place."""
    model, g = problem(12, 3, "learned", 4)
    velocities = model.extended(np.random.default_rng(6).standard_normal((2, 3)))

    def end(noise: LabelNoise, power: float, max_events: int = 1000) -> tuple[np.ndarray, list]:
        point, counts = model.point(g), np.zeros(3, np.int64)
        compiled.trajectories(
            model.table, point, velocities, np.array([0.7, 1.2]), noise.jumps, noise.total,
            noise.row_cost, power, max_events, counts,
        )  # fmt: skip
        return point, counts.tolist()

    one, counts = end(model.noise, 0.4)
    two, same = end(powered(model.noise, 0.4), 1.0)
    np.testing.assert_allclose(one, two, atol=1e-9)
    assert counts == same
    stayed, counts = end(model.noise, 1.0, 0)
    np.testing.assert_array_equal(stayed, model.point(g))
    assert counts == [0, 0, 2]


def test_reflect_and_refract_rows_that_are_zero() -> None:
    """They are wrong at the start and the end, and change nothing between."""
    model, g = problem(12, 3, "fixed", 2)
    L = np.insert(model.L, [0, 5, 12], 0.0, axis=0)
    longer = SphereModel(L, fixed_rate(0.2, 15))
    w = np.random.default_rng(2).standard_normal(3)
    point, _, errors, done = flight(longer, g, w, 3.0)
    plain, _, fewer, _ = flight(model, g, w, 3.0)
    assert done[2]
    np.testing.assert_allclose(point[15:], plain[12:], atol=1e-9)
    np.testing.assert_array_equal(point[[0, 6, 14]], 0.0)
    np.testing.assert_array_equal(errors, fewer + 3)
    np.testing.assert_array_equal(np.isfinite(point), True)


def test_orient_and_fly() -> None:
    rng = np.random.default_rng(3)
    f, v, row = rng.standard_normal((3, 37))
    f[4] = 0.0
    signs, ratios, oriented, speeds = np.empty(37), np.empty(37), f.copy(), v.copy()
    largest = compiled._orient(oriented, speeds, signs, ratios)
    np.testing.assert_array_equal(signs, np.where(f > 0.0, 1.0, -1.0))
    np.testing.assert_array_equal(oriented, np.maximum(np.abs(f), compiled.TINY))
    np.testing.assert_array_equal(speeds, signs * v)
    np.testing.assert_allclose(ratios, -speeds / oriented, rtol=1e-14)
    assert largest == ratios.max()
    c, s = math.cos(0.01), math.sin(0.01)
    new, new_speeds = oriented.copy(), speeds.copy()
    largest = compiled._fly(new, new_speeds, signs, row[np.newaxis], 0, c, s, 0.3, ratios)
    np.testing.assert_allclose(new, np.maximum(c * oriented + s * speeds, compiled.TINY), rtol=1e-9)
    expected = c * speeds - s * oriented + 0.3 * signs * row
    np.testing.assert_allclose(new_speeds, expected, rtol=1e-9, atol=1e-14)
    assert largest == ratios.max()


def test_first_at_least() -> None:
    """The first of the largest; a wrong row before a right one."""
    ratios, signs = np.array([1.0, 5.0, 5.0, 5.0, 2.0]), np.ones(5)
    assert compiled._first_at_least(ratios, signs, 5.0) == 1
    signs[[0, 2, 3]] = -1.0
    assert compiled._first_at_least(ratios, signs, 5.0) == 2
    assert compiled._first_at_least(ratios, -signs, 5.0) == 1
    assert compiled._first_at_least(ratios[:1], signs[:1], 1.0) == 0


def test_speed_behind() -> None:
    """Of a row with |L_j| = 2 that comes at 6: energy 9, in units of the row."""
    assert compiled._speed_behind(-6.0, 4.0, 4.0) == (-2.0, 1.0)
    assert compiled._speed_behind(-6.0, 4.0, 5.0) == (6.0, 3.0)
    assert compiled._speed_behind(-6.0, 4.0, -8.0) == (-10.0, -1.0)
    assert compiled._speed_behind(-6.0, 4.0, 1e6) == (6.0, 3.0)
    assert compiled._speed_behind(-1e-12, 0.0, 1.0) == (0.0, 0.0)


def test_maximum() -> None:
    from numba import njit

    loop = njit(lambda a, b: compiled._maximum(a, b))
    assert loop(2.0, -3.0) == loop(-3.0, 2.0) == 2.0


def test_count_errors() -> None:
    """The second row stands for two of one group and takes one from the other."""
    f = np.array([1.0, 0.0, -1.0, -0.0, 2.0])
    jumps = np.array([[1, 0], [2, -1], [0, 1], [0, 1], [1, 0], [0, 3]])
    errors = np.array([9, 9])
    compiled.count_errors(f, jumps, errors)
    np.testing.assert_array_equal(errors, [2, 4])


# --- truncated normals and masses ----------------------------------------------------------------


def plain_truncated_normal(rng, lower: float, upper: float) -> float:
    """The same proposals in the same order, in the words of the paper."""
    if upper < 0.0:
        return -plain_truncated_normal(rng, -upper, -lower)
    if upper - lower > 2.0 and lower <= 0.0:  # the normal itself
        while not lower <= (x := rng.standard_normal()) <= upper:
            pass
        return x
    is_tail = lower > 0.0 and (upper - lower > 2.0 or (upper - lower) * lower >= 2.0)
    rate = 0.5 * (lower + math.sqrt(lower**2 + 4.0))
    while True:
        u = rng.random()
        if is_tail:  # an exponential from the lower end on
            x = lower - math.log(1.0 - u) / rate
            log_accept = -0.5 * (x - rate) ** 2
            if x >= upper:
                continue
        else:
            x = lower + (upper - lower) * u
            log_accept = 0.5 * (max(lower, 0.0) ** 2 - x * x)
        if math.log(1.0 - rng.random()) < log_accept:
            return x


INTERVALS = [
    (-1.0, 2.0), (-0.3, 0.2), (0.0, 5.0), (0.01, 90.0), (1e-9, 1e6), (0.5, 1.0), (3.0, 3.1),
    (4.0, 50.0), (35.0, 80.0), (-2.0, -1.9), (-50.0, -7.0), (-6.0, 0.0), (0.0, 0.0), (-9.0, 9.0),
    (30.0, 30.001), (8.0, 9.0),
]  # fmt: skip


@pytest.mark.parametrize("ends", INTERVALS, ids=str)
def test_truncated_normal(ends: tuple[float, float]) -> None:
    one, two = np.random.default_rng(4), np.random.default_rng(4)
    for _ in range(200):
        x = compiled.truncated_normal(one, *ends)
        assert x == pytest.approx(plain_truncated_normal(two, *ends), rel=1e-14)
        assert ends[0] <= x <= ends[1]


def log_mass(lower: float, upper: float) -> float:
    """Log of the mass between two numbers, by the integral where differences lose their digits."""
    if lower >= 0.0:
        return log_mass(-upper, -lower)
    if upper - lower < 1.0:
        peak = min(upper, 0.0)
        inside = quad(lambda t: math.exp(-0.5 * (t - peak) * (t + peak)), lower, upper,
                      epsabs=0.0, epsrel=1e-12)[0]  # fmt: skip
        return math.log(inside) - 0.5 * peak**2 - 0.5 * math.log(2.0 * math.pi)
    log_upper = float(log_ndtr(upper))
    return log_upper + math.log1p(-math.exp(float(log_ndtr(lower)) - log_upper))


@pytest.mark.parametrize("width", [1e-9, 1e-4, 0.01, 0.049, 0.051, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("lower", [-33.0, -8.0, -1.0, -0.02, 0.0, 0.3, 2.0, 12.0, 29.9, 36.0])
def test_segment_mass(lower: float, width: float) -> None:
    """Within 3e-8, over all of its branches."""
    centre = lower + 0.5 * min(width, 1.0)
    mass = compiled._segment_mass(lower, lower + width, centre)
    expected = log_mass(lower, lower + width) + 0.5 * centre**2
    assert math.log(mass) == pytest.approx(expected, abs=3e-8)


def test_tail() -> None:
    for z in (-3.0, 0.0, 5.0, 29.9, 30.1, 80.0):
        expected = float(log_ndtr(-z)) + 0.5 * z * z
        if z > 0.0:
            assert math.log(compiled._tail(z, z)) == pytest.approx(expected, abs=3e-8)
        else:
            assert compiled._tail(z, 0.0) == pytest.approx(ndtr(-z), rel=1e-14)


# --- line moves ----------------------------------------------------------------------------------


def plain_line_move(rng, model: SphereModel, g, d, width: float):
    """The conditional on the window, segment by segment from scratch."""
    L, noise = model.L, model.noise
    sd = 1.0 / np.linalg.norm(d)
    mean = -(g @ d) * sd**2
    lower = -width * rng.random()
    with np.errstate(divide="ignore", invalid="ignore"):
        times = -(L @ g) / (L @ d)
    times = np.sort(times[(times > lower) & (times < lower + width)])
    edges = np.concatenate([[lower], times, [lower + width]])
    middle = 0.5 * (edges[1:] + edges[:-1])
    cost = noise.cost((g + middle[:, None] * d) @ L.T <= 0.0)
    z = (edges - mean) / sd
    log_masses = np.array([log_mass(a, b) for a, b in itertools.pairwise(z)]) - cost
    cumulative = np.cumsum(np.exp(log_masses - log_masses.max()))
    k = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
    time = mean + sd * plain_truncated_normal(rng, z[k], z[k + 1])
    end = g + time * d
    is_wrong = (g + middle[k] * d) @ L.T <= 0.0
    return end, len(times), noise.errors_by_group(is_wrong)


@pytest.mark.parametrize("n", [*SIZES, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_line_moves(kind: str, n: int) -> None:
    """Three directions, each time in another order; windows narrow and wide."""
    for seed, width in ((0, 3.0), (1, 0.3), (2, 30.0)):
        model, g = problem(n, 3, kind, seed)
        model.L[n // 2] = 0.0 if kind in ("fixed", "learned per class") else model.L[n // 2]
        D = np.random.default_rng(seed + 30).standard_normal((3, 3))
        order = np.random.default_rng(seed).permutation(3)
        one, two = np.random.default_rng(seed + 40), np.random.default_rng(seed + 40)
        point, directions, n_crossings = model.point(g), model.extended(D), 0
        noise = model.noise
        errors = errors_of(noise, point[:n])
        for k in order:
            g, n_own, expected = plain_line_move(two, model, g, D[k], width)
            n_crossings += n_own
        seen = compiled.line_moves(
            one, point, directions, order, noise.jumps, errors, noise.total, noise.row_cost, width,
            1.0,
        )  # fmt: skip
        assert seen == n_crossings
        np.testing.assert_array_equal(errors, expected)
        np.testing.assert_allclose(point, np.append(model.L @ g, g), atol=1e-6)
        np.testing.assert_array_equal(errors, errors_of(noise, point[:n]))


def test_a_row_at_its_wall_is_wrong() -> None:
    """f = 0 at the point: it is among the errors, whichever side it comes from."""
    noise = fixed_rate(0.2, 3)
    for direction in (1.0, -1.0):
        point = np.array([0.0, 0.0, 1.0, 0.0, 1.0])
        along = direction * np.array([1.0, -1.0, 0.0, 1.0, 0.0])
        errors, rng = np.array([2]), np.random.default_rng(1)
        compiled.window_line_move(
            rng, point, along, noise.jumps, errors, noise.total, noise.row_cost, 3.0,
            np.empty(3), np.empty(3, np.int64), 1.0,
        )  # fmt: skip
        assert errors[0] == np.count_nonzero(point[:3] <= 0.0) == 1


@pytest.mark.parametrize("n", [1, 5, 63, 64, 65, 200])
def test_find_and_sort_crossings(n: int) -> None:
    """Also more than the insertion sorts, and blocks without a crossing."""
    rng = np.random.default_rng(n)
    f, h = rng.standard_normal((2, n))
    f[64:128] = 5.0
    times, rows = np.empty(n), np.empty(n, np.int64)
    m = compiled._find_crossings(f, h, -1.0, 1.0, times, rows)
    expected = np.flatnonzero((f - h) * (f + h) < 0.0)
    assert m == len(expected) == compiled._count_crossings(f, h, -1.0, 1.0)
    np.testing.assert_array_equal(rows[:m], expected)
    np.testing.assert_array_equal(times[:m], -f[expected] / h[expected])
    compiled._sort_crossings(times[:m], rows[:m])
    order = np.argsort(-f[expected] / h[expected])
    np.testing.assert_array_equal(rows[:m], expected[order])
    np.testing.assert_array_equal(times[:m], np.sort(times[:m]))


def test_cross() -> None:
    """There and back: the cost of the errors that are made or undone."""
    total = np.array([[0.0, 1.0, 3.0, 7.0], [0.0, 1e6, 2e6, 2e6]])[..., np.newaxis]
    errors = np.array([1, 0])
    jumps, row_cost = np.array([[1, 0], [0, 1], [2, 0]]), np.array([0.5, 0.0, 0.25])
    assert compiled._cross(0, False, jumps, row_cost, total, errors, 1.0) == 2.5
    np.testing.assert_array_equal(errors, [2, 0])
    assert compiled._cross(0, True, jumps, row_cost, total, errors, 0.2) == -0.5
    assert compiled._cross(2, False, jumps, row_cost, total, errors, 1.0) == 6.25
    np.testing.assert_array_equal(errors, [3, 0])
    assert compiled._cross(1, False, jumps, row_cost, total, errors, 0.2) == 1e6  # never can be
    np.testing.assert_array_equal(errors, [3, 1])
    assert compiled._cross(1, True, jumps, row_cost, total, errors, 0.2) == -1e6
