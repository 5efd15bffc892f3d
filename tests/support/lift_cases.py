"""Moves over the Gaussian lift in plain NumPy, mistaken ones, and exact checks of what they keep.

A `Move` is made for signed rows L, row i wrong where L_i g <= 0, and their noise; it takes a
generator and g to the next g.
"""

from __future__ import annotations

import types
from collections.abc import Callable

import numpy as np
from scipy import stats

from mercer.likelihoods.label_noise import LabelNoise, fixed_rate
from mercer.sphere import loops as compiled
from mercer.sphere.sampler import SphereModel, SphereSampler, first_moves, make_start
from mercer.sphere.tempering import TemperedSampler
from support.sphere_cases import (
    Arcs,
    exact_draws,
    on_the_circle,
    pattern_number,
    pattern_posterior,
    powered,
)
from support.statistics import FALSE_ALARM, dkw_distance, dkw_limit

Array = np.ndarray
Step = Callable[[np.random.Generator, Array], Array]
Move = Callable[[Array, LabelNoise], Step]


def mutated(loop, **replacements) -> types.FunctionType:
    """A compiled loop as Python code, in which other functions stand for some that it calls."""
    plain = loop.py_func
    names = {**plain.__globals__, **replacements}
    return types.FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__)


def errors_of(noise: LabelNoise, f: Array) -> Array:
    """Wrong rows by group, as an array of its own."""
    return noise.errors_by_group(f <= 0.0).copy()


def tempered(move: Move, power: float) -> Move:
    """A move at another rate of label noise: the likelihood to a power."""
    return lambda L, noise: move(L, powered(noise, power))


# --- samplers ------------------------------------------------------------------------------------


def record(f: Array, g: Array) -> dict[str, Array]:
    """A recorder of both parts of a point."""
    return {"f": f.copy(), "g": g.copy()}


def make_sphere(model: SphereModel, *names: str) -> SphereSampler:
    """A chain of the named moves."""
    return SphereSampler(model, first_moves(names, model), make_start(model), record)


def make_tempered(
    L: Array, noise: LabelNoise | None = None, powers=(0.0, 0.4, 1.0), names=("hmc", "lines")
) -> TemperedSampler:
    """A ladder of the same moves on every rung; rate 0.1 if no noise is given."""
    model = SphereModel(L, noise or fixed_rate(0.1, len(L)))
    return TemperedSampler(model, powers, first_moves(names, model), make_start(model), record)


# --- trajectories --------------------------------------------------------------------------------


def trajectory(
    duration: float, fly=compiled.reflect_and_refract, max_events: int = 100_000, *, cut=False
) -> Move:
    """A trajectory with a fresh velocity; with ``cut`` one with too many events ends at the last.

    Otherwise such a trajectory is rejected.
    """

    def move(L: Array, noise: LabelNoise) -> Step:
        model, n = SphereModel(L, noise), len(L)

        def step(rng: np.random.Generator, g: Array) -> Array:
            point, w = model.point(g), rng.standard_normal(len(g))
            velocity = np.concatenate([L @ w, w])
            errors = errors_of(noise, point[:n])
            _, _, is_whole = fly(
                model.table, point, velocity, noise.jumps, errors, noise.total, noise.row_cost,
                duration, max_events,
            )  # fmt: skip
            return point[n:] if is_whole or cut else g

        return step

    return move


def _always_reflects(speed, squared_norm, cost):
    return -speed, -2.0 * speed / squared_norm


def _always_passes(speed, squared_norm, cost):
    return speed, 0.0


def _pays_half(speed, squared_norm, cost):
    return compiled._speed_behind(speed, squared_norm, 0.5 * cost)


def _pays_nothing(speed, squared_norm, cost):
    """Reflects where it should; where it should pass it keeps its speed."""
    new_speed, change = compiled._speed_behind(speed, squared_norm, cost)
    return (speed, 0.0) if new_speed < 0.0 else (new_speed, change)


def _in_the_order_of_rows(ratios, signs, largest):
    return compiled._first_at_least(ratios, np.ones_like(signs), largest)


def flying(**replacements) -> types.FunctionType:
    """`reflect_and_refract` with some parts of its flight replaced."""
    flight = mutated(compiled.fly_over_walls, **replacements)
    return mutated(compiled.reflect_and_refract, fly_over_walls=flight)


FLIGHTS = {
    "always reflects": flying(_speed_behind=_always_reflects),
    "always passes": flying(_speed_behind=_always_passes),
    "pays half": flying(_speed_behind=_pays_half),
    "pays nothing": flying(_speed_behind=_pays_nothing),
}
ties_in_the_order_of_rows = flying(_first_at_least=_in_the_order_of_rows)


# --- line moves ----------------------------------------------------------------------------------


def line(direction: Array, width: float = 3.0, walk=compiled.window_line_move) -> Move:
    """A line move along one direction."""

    def move(L: Array, noise: LabelNoise) -> Step:
        model, n = SphereModel(L, noise), len(L)
        along, times, rows = np.append(L @ direction, direction), np.empty(n), np.empty(n, np.int64)

        def step(rng: np.random.Generator, g: Array) -> Array:
            point = model.point(g)
            errors = errors_of(noise, point[:n])
            walk(
                rng, point, along, noise.jumps, errors, noise.total, noise.row_cost, width, times,
                rows, 1.0,
            )  # fmt: skip
            return point[n:]

        return step

    return move


class _Centred:
    """A generator whose first uniform number is 1/2: the point is in the middle of its window."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.is_first = rng, True

    def random(self) -> float:
        value = 0.5 if self.is_first else self.rng.random()
        self.is_first = False
        return value


_plain_walk = mutated(
    compiled.window_line_move,
    truncated_normal=lambda rng, lower, upper: compiled.truncated_normal(rng.rng, lower, upper),
)


def _centred_walk(rng, *arguments) -> int:
    return _plain_walk(_Centred(rng), *arguments)


def walking(**replacements) -> types.FunctionType:
    """`window_line_move` with some of its parts replaced."""
    return mutated(compiled.window_line_move, **replacements)


WALKS = {
    "point in the middle of its window": _centred_walk,
    "mass ignored": walking(_segment_mass=lambda lower, upper, centre: 1.0),
    "length for mass": walking(_segment_mass=lambda lower, upper, centre: upper - lower),
    "uniform in the segment": walking(truncated_normal=lambda rng, a, b: rng.uniform(a, b)),
}


# --- two other exact moves -----------------------------------------------------------------------


def elliptical_slice(L: Array, noise: LabelNoise) -> Step:
    """Murray, Adams & MacKay (2010): a level under the likelihood, then an ellipse that shrinks."""

    def step(rng: np.random.Generator, g: Array) -> Array:
        level = noise.cost(L @ g <= 0.0) + rng.exponential()
        other = rng.standard_normal(len(g))
        angle = rng.uniform(0.0, 2.0 * np.pi)
        low, high = angle - 2.0 * np.pi, angle
        while True:
            new = g * np.cos(angle) + other * np.sin(angle)
            if noise.cost(L @ new <= 0.0) <= level:
                return new
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = rng.uniform(low, high)

    return step


def augmentation(L: Array, noise: LabelNoise) -> Step:
    """Free the rows that are wrong; hold those that are right with probability 1 - q/(1 - q).

    A move at rate 0 over the rows that are held follows: here a slice. For known rates.
    """
    held = -np.expm1(-noise.step[noise.group, 0] - noise.row_cost)

    def step(rng: np.random.Generator, g: Array) -> Array:
        rows = L[(L @ g > 0.0) & (rng.random(len(L)) < held)]
        return elliptical_slice(rows, fixed_rate(0.0, len(rows)))(rng, g)

    return step


# --- what a move must keep -----------------------------------------------------------------------


def cells_excess(move: Move, L: Array, noise: LabelNoise, count: int, n_tests: int = 1) -> float:
    """Chi-square of the sign patterns after one move from exact starts, in units of its limit."""
    rng, step = np.random.default_rng(41), move(L, noise)
    ends = np.array([step(rng, g) for g in exact_draws(rng, L, noise, count)])
    seen = np.bincount(pattern_number(ends @ L.T), minlength=2 ** len(L))
    return chi_square_excess(seen, count * pattern_posterior(L @ L.T, noise)[0], n_tests)


def chi_square_excess(seen: Array, expected: Array, n_tests: int = 1) -> float:
    """Chi-square over its limit with false alarm 1e-6 for ``n_tests``; cells under 20 are pooled.

    Infinite if an impossible cell was seen.
    """
    if seen[expected < 1e-6].any():
        return np.inf
    is_large = expected >= 20.0
    if expected[~is_large].sum() >= 20.0:
        seen = np.append(seen[is_large], seen[~is_large].sum())
        expected = np.append(expected[is_large], expected[~is_large].sum())
    else:
        seen, expected = seen[is_large], expected[is_large]
    value = ((seen - expected) ** 2 / expected).sum()
    return float(value / stats.chi2.isf(FALSE_ALARM / n_tests, len(seen) - 1))


def plane_excess(move: Move, L: Array, noise: LabelNoise, count: int, n_tests: int = 1) -> float:
    """DKW distances of the angle and of the length of g after one move from exact starts.

    The larger one, in units of the limit. L of shape (n, 2): the angle is uniform on arcs, the
    length independent of it, |g|^2 / 2 exponential.
    """
    rng, step, arcs = np.random.default_rng(42), move(L, noise), Arcs.of(L, noise)
    length = np.sqrt(rng.chisquare(2, count))
    starts = length[:, None] * on_the_circle(arcs.draw(rng, count))
    ends = np.array([step(rng, g) for g in starts])
    angle = dkw_distance(arcs.turned(np.arctan2(ends[:, 1], ends[:, 0])), arcs.cdf)
    squared = dkw_distance((ends**2).sum(axis=1), stats.chi2(2).cdf)
    return max(angle, squared) / dkw_limit(count, 2 * n_tests)
