# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of two classes: line moves, trajectories that reflect and refract.

Compiled loops of two classes: arrays and scalars in and out. Twins in NumPy: ``tests/twins``.

A point is [f; g] with f = L g, labels multiplied in: row i is wrong when f_i <= 0. Costs of errors
are those of `mercer.likelihoods.label_noise.LabelNoise`.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from mercer.numerics.compilation import compiled

__all__ = [
    "TINY",
    "cost_of_error",
    "count_errors",
    "line_moves",
    "reflect_and_refract",
    "truncated_normal",
    "window_line_move",
]


# Distance from its wall that a row is given when it touches it.
TINY = 1e-12
_FAST = {"reassoc", "contract", "arcp", "nsz", "nnan"}
_SQRT2 = math.sqrt(2.0)
_SQRT_2PI = math.sqrt(2.0 * math.pi)
# Where the density changes by less than this share over a segment, in nats, its mass comes from a
# midpoint expansion: relative error 1e-8.
_NARROW = 0.05
# From here on the tail of a normal is taken from its asymptotic series: relative error 15/z^6.
_FAR = 30.0
# Rows looked at together for a change of sign.
_BLOCK = 64


@intrinsic
def _maximum(typing_context, a, b):
    """The larger of two floats by the instruction that LLVM vectorises in a reduction."""

    def generate(context, builder, signature, arguments):
        kind = arguments[0].type
        function = builder.module.declare_intrinsic(
            "llvm.maxnum", (kind,), ir.FunctionType(kind, (kind, kind))
        )
        return builder.call(function, arguments, fastmath=("nnan", "nsz", "ninf", "fast"))

    return a(a, a), generate


@compiled(nogil=True)
def count_errors(f, group, errors):
    """Count the rows with f <= 0 by group into ``errors``."""
    errors[:] = 0
    for i in range(f.shape[0]):
        if f[i] <= 0.0:
            errors[group[i]] += 1


@compiled(nogil=True)
def cost_of_error(step, k, errors):
    """Cost of one more error in group k: from `LabelNoise.step`, of two axes or of three."""
    if step.ndim == 2:
        return step[k, errors[k]]
    if k == 0:
        return step[0, errors[0] + 1, errors[1]] - step[0, errors[0], errors[1]]
    return step[0, errors[0], errors[1] + 1] - step[0, errors[0], errors[1]]


@compiled(nogil=True, fastmath=_FAST, error_model="numpy")
def _orient(f, v, signs, ratios):
    """Turn rows so that f > 0; return the largest -v/f: the cotangent of the time to a wall."""
    largest = -1e300
    for i in range(f.shape[0]):
        sign = 1.0 if f[i] > 0.0 else -1.0
        signs[i] = sign
        f[i] = _maximum(sign * f[i], TINY)
        v[i] *= sign
        x = -v[i] / f[i]
        ratios[i] = x
        largest = _maximum(largest, x)
    return largest


@compiled(nogil=True, fastmath=_FAST, error_model="numpy")
def _fly(f, v, signs, row, c, s, change, ratios):
    """Rotate (f, v) to the wall and change the velocities; return the largest new ratio."""
    largest = -1e300
    for i in range(f.shape[0]):
        new = _maximum(c * f[i] + s * v[i], TINY)
        speed = c * v[i] - s * f[i] + change * signs[i] * row[i]
        f[i] = new
        v[i] = speed
        x = -speed / new
        ratios[i] = x
        largest = _maximum(largest, x)
    return largest


@compiled(nogil=True, fastmath=_FAST, error_model="numpy")
def _rotate(g, w, row, c, s, change):
    for i in range(g.shape[0]):
        new = c * g[i] + s * w[i]
        w[i] = c * w[i] - s * g[i] + change * row[i]
        g[i] = new


@compiled(nogil=True)
def _first_at_least(ratios, signs, largest):
    """Index of the first ratio that is the largest: an integer reduction, so it is vectorised.

    Of rows with one wall, such as equal inputs with different labels, a wrong one comes first: the
    sum of their costs then decides from both sides. In the order of the rows it would be a wall
    from one side only, and the posterior another.
    """
    n = ratios.shape[0]
    first = n - 1
    for i in range(n):
        index = i if signs[i] > 0.0 else i - n
        first = min(first, index if ratios[i] >= largest else n)
    return first if first >= 0 else first + n


@compiled(nogil=True)
def _speed_behind(speed, squared_norm, cost):
    """Normal speed after a wall that costs so much to pass: negative through it, else back.

    Also the change of it, over the squared norm. A row that is zero has no wall.
    """
    if squared_norm == 0.0:
        return 0.0, 0.0
    energy = speed * speed / squared_norm - 2.0 * cost
    new_speed = -math.sqrt(energy * squared_norm) if energy > 0.0 else -speed
    return new_speed, (new_speed - speed) / squared_norm


@compiled(nogil=True, error_model="numpy")
def reflect_and_refract(
    table, point, velocity, group, errors, step, row_cost, duration, max_events
):
    """Follow one trajectory of the Gaussian lift, over walls where rows become right or wrong.

    Parameters
    ----------
    table : ndarray of shape (n, n + r)
        Row j is [L L_j; L_j].
    point, velocity : ndarray of shape (n + r,)
        [f; g] and its velocity [L w; w]; overwritten by those of the end.
    group : ndarray of shape (n,), int64
    errors : ndarray of shape (n_groups,), int64
        Wrong rows by group; overwritten.
    step, row_cost : ndarray
        Costs of `LabelNoise`.
    duration : float
        Time of flight; a quarter of a period is pi/2.
    max_events : int
        A trajectory with more is given up.

    Rows that are zero have no wall: they are wrong everywhere.

    Returns
    -------
    n_events, n_reflections, is_whole : int, int, bool
        Where ``is_whole`` is False the arrays are of no use and the trajectory must be rejected.
    """
    n = table.shape[0]
    f, v, g, w = point[:n], velocity[:n], point[n:], velocity[n:]
    signs, ratios = np.empty(n), np.empty(n)
    left, n_events, n_reflections = duration, 0, 0
    largest = _orient(f, v, signs, ratios)
    while True:
        time = math.atan2(1.0, largest)
        if time >= left:
            c, s = math.cos(left), math.sin(left)
            _fly(f, v, signs, table[0], c, s, 0.0, ratios)
            _rotate(g, w, table[0, n:], c, s, 0.0)
            break
        if n_events == max_events:
            return n_events, n_reflections, False
        j = _first_at_least(ratios, signs, largest)
        s = 1.0 / math.sqrt(1.0 + largest * largest)
        c = largest * s
        left -= time
        n_events += 1
        speed = c * v[j] - s * f[j]  # negative: towards the wall
        k, is_right = group[j], signs[j] > 0.0
        errors[k] -= not is_right
        cost = cost_of_error(step, k, errors) + row_cost[j]
        errors[k] += not is_right
        new_speed, change = _speed_behind(speed, table[j, j], cost if is_right else -cost)
        passes = new_speed < 0.0
        row, change = table[j], change * signs[j]
        largest = max(
            _fly(f[:j], v[:j], signs[:j], row[:j], c, s, change, ratios[:j]),
            _fly(f[j + 1 :], v[j + 1 :], signs[j + 1 :], row[j + 1 : n], c, s, change,
                 ratios[j + 1 :]),
        )  # fmt: skip
        _rotate(g, w, row[n:], c, s, change)
        if passes:
            errors[k] += 1 if is_right else -1
            signs[j] = -signs[j]
        else:
            n_reflections += 1
        f[j] = TINY
        v[j] = abs(new_speed)  # away from the wall
        ratios[j] = -v[j] / TINY
    for i in range(n):
        f[i] *= signs[i] * (table[i, i] > 0.0)
        v[i] *= signs[i]
    return n_events, n_reflections, True


@compiled(nogil=True, error_model="numpy")
def truncated_normal(rng, lower, upper):
    """Draw from N(0, 1) between two numbers, exactly, by rejection (Robert 1995)."""
    is_mirrored = upper < 0.0
    if is_mirrored:
        lower, upper = -upper, -lower
    width = upper - lower
    if lower > 0.0 and (width * lower >= 2.0 or width > 2.0):
        rate = 0.5 * (lower + math.sqrt(lower * lower + 4.0))
        while True:
            x = lower - math.log(1.0 - rng.random()) / rate
            if x < upper and math.log(1.0 - rng.random()) < -0.5 * (x - rate) ** 2:
                break
    elif width > 2.0:
        while True:
            x = rng.standard_normal()
            if lower <= x <= upper:
                break
    else:
        peak = max(lower, 0.0)
        while True:
            x = lower + width * rng.random()
            if math.log(1.0 - rng.random()) < 0.5 * (peak * peak - x * x):
                break
    return -x if is_mirrored else x


@compiled(nogil=True, error_model="numpy")
def _tail(z, centre):
    """Mass of N(0, 1) above z, times exp(centre^2 / 2) so that it does not vanish."""
    if z < _FAR:
        return 0.5 * math.erfc(z / _SQRT2) * math.exp(0.5 * centre * centre)
    series = 1.0 - 1.0 / (z * z) + 3.0 / z**4
    return math.exp(0.5 * (centre * centre - z * z)) * series / (z * _SQRT_2PI)


@compiled(nogil=True, error_model="numpy")
def _segment_mass(lower, upper, centre):
    """Mass of N(0, 1) between two numbers, times exp(centre^2 / 2)."""
    width, middle = upper - lower, 0.5 * (lower + upper)
    if width * (1.0 + abs(middle)) < _NARROW:
        bend = 1.0 + (middle * middle - 1.0) * width * width / 24.0
        return math.exp(0.5 * (centre * centre - middle * middle)) * width * bend / _SQRT_2PI
    if lower > 0.0:
        return _tail(lower, centre) - _tail(upper, centre)
    return _tail(-upper, centre) - _tail(-lower, centre)


@compiled(nogil=True, fastmath=_FAST)
def _count_crossings(f, h, lower, upper):
    n_crossings = 0
    for i in range(f.shape[0]):
        n_crossings += (f[i] + lower * h[i]) * (f[i] + upper * h[i]) < 0.0
    return n_crossings


@compiled(nogil=True, error_model="numpy")
def _find_crossings(f, h, lower, upper, times, rows):
    """Where rows change sign between two times, unsorted, as times and rows; return how many."""
    n, n_crossings = f.shape[0], 0
    for begin in range(0, n, _BLOCK):
        end = min(begin + _BLOCK, n)
        if _count_crossings(f[begin:end], h[begin:end], lower, upper) == 0:
            continue
        for i in range(begin, end):
            if (f[i] + lower * h[i]) * (f[i] + upper * h[i]) < 0.0:
                times[n_crossings] = -f[i] / h[i]
                rows[n_crossings] = i
                n_crossings += 1
    return n_crossings


@compiled(nogil=True)
def _sort_crossings(times, rows):
    """Sort both by time: insertion for the few that there are nearly always."""
    n = times.shape[0]
    if n > 48:
        order = np.argsort(times)
        times[:], rows[:] = times[order].copy(), rows[order].copy()
        return
    for a in range(1, n):
        time, row, b = times[a], rows[a], a - 1
        while b >= 0 and times[b] > time:
            times[b + 1], rows[b + 1] = times[b], rows[b]
            b -= 1
        times[b + 1], rows[b + 1] = time, row


@compiled(nogil=True)
def _cross(k, is_upward, row_cost, step, errors):
    """Change of cost when a row of group k crosses; ``errors`` is brought up to date."""
    if is_upward:
        errors[k] -= 1
        return -(cost_of_error(step, k, errors) + row_cost)
    cost = cost_of_error(step, k, errors) + row_cost
    errors[k] += 1
    return cost


@compiled(nogil=True, error_model="numpy")
def window_line_move(rng, point, direction, group, errors, step, row_cost, width, times, rows):
    """Move along a line by its exact conditional, restricted to a window around the point.

    Parameters
    ----------
    point, direction : ndarray of shape (n + r,)
        [f; g] and [L d; d]; the point is moved in place.
    errors : ndarray of shape (n_groups,), int64
        Wrong rows by group; brought up to date.
    width : float
        Of the window, in lengths of d. It lies so that the point is uniform in it: that makes
        the move exact.
    times, rows : ndarray of shape (n,)
        Scratch: float64 and int64.

    Returns
    -------
    int
        Rows that change sign in the window.
    """
    n = group.shape[0]
    f, h = point[:n], direction[:n]
    g, d = point[n:], direction[n:]
    sd = 1.0 / math.sqrt(d @ d)
    mean = -(g @ d) * sd * sd
    lower = -width * rng.random()
    upper = lower + width
    m = _find_crossings(f, h, lower, upper, times, rows)
    times, rows = times[:m], rows[:m]
    _sort_crossings(times, rows)
    cost = 0.0  # against that of the point
    for a in range(m - 1, -1, -1):  # back from the point to the left end
        # A row with f = 0 is wrong: one that falls there was right before the point.
        if times[a] < 0.0 or (times[a] == 0.0 and h[rows[a]] < 0.0):
            cost += _cross(group[rows[a]], h[rows[a]] < 0.0, row_cost[rows[a]], step, errors)
    at_left, costs, smallest = errors.copy(), np.empty(m + 1), cost
    costs[0] = cost
    for a in range(m):
        cost += _cross(group[rows[a]], h[rows[a]] > 0.0, row_cost[rows[a]], step, errors)
        costs[a + 1] = cost
        smallest = min(smallest, cost)
    total, masses = 0.0, np.empty(m + 1)
    centre = (0.5 * (lower + upper) - mean) / sd
    for a in range(m + 1):
        begin = lower if a == 0 else times[a - 1]
        end = upper if a == m else times[a]
        mass = _segment_mass((begin - mean) / sd, (end - mean) / sd, centre)
        total += mass * math.exp(smallest - costs[a])
        masses[a] = total
    wanted, chosen = rng.random() * total, 0
    while chosen < m and masses[chosen] <= wanted:
        chosen += 1
    begin = lower if chosen == 0 else times[chosen - 1]
    end = upper if chosen == m else times[chosen]
    time = mean + sd * truncated_normal(rng, (begin - mean) / sd, (end - mean) / sd)
    errors[:] = at_left
    for a in range(chosen):
        _cross(group[rows[a]], h[rows[a]] > 0.0, row_cost[rows[a]], step, errors)
    for i in range(point.shape[0]):
        point[i] += time * direction[i]
    return m


@compiled(nogil=True)
def line_moves(rng, point, directions, order, group, errors, step, row_cost, width):
    """Take `window_line_move` along the rows of ``directions`` in the given order; count signs."""
    n = group.shape[0]
    times, rows, n_crossings = np.empty(n), np.empty(n, np.int64), 0
    for k in order:
        n_crossings += window_line_move(
            rng, point, directions[k], group, errors, step, row_cost, width, times, rows
        )
    return n_crossings
