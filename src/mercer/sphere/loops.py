# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of two classes: line moves, trajectories that reflect and refract.

Arrays and scalars in and out. Twins in NumPy: ``tests/twins``.
A point is [f; g] with f = L g, labels multiplied in: row i is wrong when f_i <= 0. ``total`` is the
cost of the errors of each group, ``jumps`` what a row that becomes wrong adds to these: both of
`mercer.likelihoods.label_noise.LabelNoise`.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from mercer.likelihoods.label_noise import IMPOSSIBLE
from mercer.numerics.compilation import compiled

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
# Speed over distance of a row that meets no wall for the next arccot(-10), nearly half a turn.
_FLEEING = 10.0
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
def _add(errors, jumps, i, times):
    for k in range(errors.shape[0]):
        errors[k] += times * jumps[i, k]


@compiled(nogil=True)
def count_errors(f, jumps, errors):
    """Write the errors by group where the rows with f <= 0 are wrong into ``errors``."""
    errors[:] = 0
    _add(errors, jumps, f.shape[0], 1)
    for i in range(f.shape[0]):
        if f[i] <= 0.0:
            _add(errors, jumps, i, 1)


@compiled(nogil=True)
def _cost_of_counts(total, errors):
    if total.shape[2] > 1:
        return total[0, errors[0], errors[1]]
    cost = 0.0
    for k in range(total.shape[0]):
        cost += total[k, errors[k], 0]
    return cost


@compiled(nogil=True)
def change_of_cost(total, errors, jumps, i, times):
    """Add the jump of row i to the errors, times 1 or -1; return what that adds to their cost."""
    before = _cost_of_counts(total, errors)
    _add(errors, jumps, i, times)
    return _cost_of_counts(total, errors) - before


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
def _fly(f, v, signs, table, j, c, s, change, ratios):
    """Rotate (f, v) to the wall of row j, change the velocities; return the largest new ratio."""
    largest = -1e300
    for i in range(f.shape[0]):
        new = _maximum(c * f[i] + s * v[i], TINY)
        speed = c * v[i] - s * f[i] + change * signs[i] * table[j, i]
        f[i] = new
        v[i] = speed
        x = -speed / new
        ratios[i] = x
        largest = _maximum(largest, x)
    return largest


@compiled(nogil=True, fastmath=_FAST, error_model="numpy")
def _combine(x, y, a, b):
    """Write a x + b y into x."""
    for i in range(x.shape[0]):
        x[i] = a * x[i] + b * y[i]


@compiled(nogil=True)
def _add_rows(x, L, weights):
    """Add the rows of L by their weights."""
    for j in range(L.shape[0]):
        if weights[j] != 0.0:
            _combine(x, L[j], 1.0, weights[j])


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


@compiled(nogil=True)
def _tempered(cost, power):
    """Cost under a power of the likelihood; what cannot be, or no longer is, stays impossible."""
    return power * cost if abs(cost) < 0.5 * IMPOSSIBLE else cost


@compiled(allocates=True, nogil=True, error_model="numpy")
def fly_over_walls(
    table, f, v, jumps, errors, total, row_cost, power, duration, max_events, pushes, turns
):
    """Follow f and its velocity v along a trajectory, over walls where rows become right or wrong.

    ``table`` is that of `SphereModel`; f and v (n,) are overwritten by those of the end,
    ``pushes`` and ``turns`` (n,) by what the walls add to the end of g and of its velocity, in
    units of the rows of L: a push D along row j, so much time before the end, adds D sin(time)
    and D cos(time). All else, and what is returned, is as for `reflect_and_refract`.
    """
    n = f.shape[0]
    signs, ratios = np.empty(n), np.empty(n)
    pushes[:], turns[:] = 0.0, 0.0
    n_events, n_reflections = 0, 0
    c_left, s_left = math.cos(duration), math.sin(duration)  # of the time that is left
    largest = _orient(f, v, signs, ratios)
    while largest * s_left > c_left and s_left > 0.0:  # the next wall comes before the end
        if n_events == max_events:
            return n_events, n_reflections, False
        j = _first_at_least(ratios, signs, largest)
        s = 1.0 / math.sqrt(1.0 + largest * largest)
        c = largest * s
        c_left, s_left = c_left * c + s_left * s, s_left * c - c_left * s
        n_events += 1
        speed = c * v[j] - s * f[j]  # negative: towards the wall
        sign = signs[j]
        turn = 1 if sign > 0.0 else -1
        cost = change_of_cost(total, errors, jumps, j, turn) + sign * row_cost[j]
        new_speed, change = _speed_behind(speed, table[j, j], _tempered(cost, power))
        pushes[j] += change * sign * s_left
        turns[j] += change * sign * c_left
        # Row j is set right below; till then it is one that flees its wall and is not pushed.
        f[j], v[j], signs[j] = c - _FLEEING * s, s + _FLEEING * c, 0.0
        # The table goes whole: a view of its row would be counted, by an atomic addition.
        largest = _fly(f, v, signs, table, j, c, s, change * sign, ratios)
        if new_speed < 0.0:  # it passes
            sign = -sign
        else:
            _add(errors, jumps, j, -turn)
            n_reflections += 1
        signs[j], f[j], v[j] = sign, TINY, abs(new_speed)  # away from the wall
        ratios[j] = -v[j] / TINY
    _fly(f, v, signs, table, 0, c_left, s_left, 0.0, ratios)
    for i in range(n):
        f[i] *= signs[i] * (table[i, i] > 0.0)
        v[i] *= signs[i]
    return n_events, n_reflections, True


@compiled(allocates=True, nogil=True, error_model="numpy")
def reflect_and_refract(
    table, point, velocity, jumps, errors, total, row_cost, duration, max_events
):
    """Follow one trajectory of the Gaussian lift, over walls where rows become right or wrong.

    Row j of ``table`` (n, n + r) is [L L_j; L_j]. ``point`` and ``velocity``, [f; g] and [L w;
    w], are overwritten by those of the end, and so is ``errors``, the wrong rows by group.
    ``duration`` is up to 3; a quarter of a period is pi/2. Rows that are zero have no wall:
    they are wrong everywhere.

    Returns (n_events, n_reflections, is_whole): a trajectory with more than ``max_events`` is
    not whole; the arrays are then of no use and it must be rejected.
    """
    n = table.shape[0]
    pushes, turns = np.empty(n), np.empty(n)
    n_events, n_reflections, is_whole = fly_over_walls(
        table, point[:n], velocity[:n], jumps, errors, total, row_cost, 1.0, duration, max_events,
        pushes, turns,
    )  # fmt: skip
    g, w, c, s = point[n:], velocity[n:], math.cos(duration), math.sin(duration)
    before = g.copy()
    _combine(g, w, c, s)
    _combine(w, before, c, -s)
    _add_rows(g, table[:, n:], pushes)
    _add_rows(w, table[:, n:], turns)
    return n_events, n_reflections, is_whole


@compiled(allocates=True, nogil=True, error_model="numpy")
def trajectories(
    table, point, velocities, durations, jumps, total, row_cost, power, max_events, counts
):
    """Follow trajectories as `reflect_and_refract` does, each from the end of the one before.

    ``point`` is moved in place; a trajectory that is given up leaves it where it was.
    ``velocities`` (m, n + r) are [L z; z] with z ~ N(0, I), drawn ahead; ``power`` is that of
    the likelihood. ``counts`` (3,) is raised by the events, the reflections and the
    trajectories given up.
    """
    n = table.shape[0]
    f, g, v = point[:n], point[n:], np.empty(n)
    before, pushes, turns, all_pushes = np.empty(n), np.empty(n), np.empty(n), np.zeros(n)
    errors = np.empty(jumps.shape[1], np.int64)
    for k in range(velocities.shape[0]):
        for i in range(n):
            before[i], v[i] = f[i], velocities[k, i]
        count_errors(f, jumps, errors)
        n_events, n_reflections, is_whole = fly_over_walls(
            table, f, v, jumps, errors, total, row_cost, power, durations[k], max_events, pushes,
            turns,
        )  # fmt: skip
        counts[0] += n_events
        counts[1] += n_reflections
        if is_whole:
            c = math.cos(durations[k])
            _combine(g, velocities[k, n:], c, math.sin(durations[k]))
            _combine(all_pushes, pushes, c, 1.0)
        else:
            for i in range(n):
                f[i] = before[i]
            counts[2] += 1
    _add_rows(g, table[:, n:], all_pushes)  # once for all of them


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


@compiled(allocates=True, nogil=True)
def _sort_crossings(times, rows):
    """Sort both by time: insertion for the few that there are nearly always."""
    n = times.shape[0]
    if n > 48:
        order = np.argsort(times)
        old_times, old_rows = times.copy(), rows.copy()
        for a in range(n):
            times[a], rows[a] = old_times[order[a]], old_rows[order[a]]
        return
    for a in range(1, n):
        time, row, b = times[a], rows[a], a - 1
        while b >= 0 and times[b] > time:
            times[b + 1], rows[b + 1] = times[b], rows[b]
            b -= 1
        times[b + 1], rows[b + 1] = time, row


@compiled(nogil=True)
def _cross(i, is_upward, jumps, row_cost, total, errors, power):
    """Change of cost when row i crosses; ``errors`` is brought up to date."""
    turn = -1 if is_upward else 1
    return _tempered(change_of_cost(total, errors, jumps, i, turn) + turn * row_cost[i], power)


@compiled(allocates=True, nogil=True, error_model="numpy")
def window_line_move(
    rng, point, direction, jumps, errors, total, row_cost, width, times, rows, power
):
    """Move along a line by its exact conditional, restricted to a window around the point.

    ``point`` and ``direction``, [f; g] and [L d; d]: the point is moved in place, and
    ``errors``, the wrong rows by group, brought up to date. The window, ``width`` lengths of d,
    lies so that the point is uniform in it: that makes the move exact. ``times`` and ``rows``
    (n,) are scratch, float64 and int64; ``power`` is that of the likelihood. Returns the rows
    that change sign in the window.
    """
    n = row_cost.shape[0]
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
            is_upward = h[rows[a]] < 0.0
            cost += _cross(rows[a], is_upward, jumps, row_cost, total, errors, power)
    at_left, costs, smallest = errors.copy(), np.empty(m + 1), cost
    costs[0] = cost
    for a in range(m):
        is_upward = h[rows[a]] > 0.0
        cost += _cross(rows[a], is_upward, jumps, row_cost, total, errors, power)
        costs[a + 1] = cost
        smallest = min(smallest, cost)
    mass, masses = 0.0, np.empty(m + 1)
    centre = (0.5 * (lower + upper) - mean) / sd
    for a in range(m + 1):
        begin = lower if a == 0 else times[a - 1]
        end = upper if a == m else times[a]
        own = _segment_mass((begin - mean) / sd, (end - mean) / sd, centre)
        mass += own * math.exp(smallest - costs[a])
        masses[a] = mass
    wanted, chosen = rng.random() * mass, 0
    while chosen < m and masses[chosen] <= wanted:
        chosen += 1
    begin = lower if chosen == 0 else times[chosen - 1]
    end = upper if chosen == m else times[chosen]
    time = mean + sd * truncated_normal(rng, (begin - mean) / sd, (end - mean) / sd)
    for k in range(len(errors)):
        errors[k] = at_left[k]
    for a in range(chosen):
        is_upward = h[rows[a]] > 0.0
        _cross(rows[a], is_upward, jumps, row_cost, total, errors, power)
    for i in range(point.shape[0]):
        point[i] += time * direction[i]
    return m


@compiled(allocates=True, nogil=True)
def line_moves(rng, point, directions, order, jumps, errors, total, row_cost, width, power):
    """Take `window_line_move` along the rows of ``directions`` in the given order; count signs."""
    n = row_cost.shape[0]
    times, rows, n_crossings = np.empty(n), np.empty(n, np.int64), 0
    for k in order:
        n_crossings += window_line_move(
            rng, point, directions[k], jumps, errors, total, row_cost, width, times, rows, power
        )
    return n_crossings


@compiled(nogil=True)
def _cost(f, jumps, errors, total, row_cost):
    """Cost in nats of the wrong rows."""
    count_errors(f, jumps, errors)
    cost = _cost_of_counts(total, errors)
    for i in range(f.shape[0]):
        if f[i] <= 0.0:
            cost += row_cost[i]
    return cost


@compiled(nogil=True, error_model="numpy")
def swap_neighbours(rng, points, costs, powers, first):
    """Let points of neighbouring powers, from ``first`` on, swap; return the mean probability."""
    total, n_pairs = 0.0, 0
    for k in range(first, points.shape[0] - 1, 2):
        gap = (powers[k + 1] - powers[k]) * (costs[k + 1] - costs[k])
        probability = math.exp(min(0.0, gap))
        total += probability
        n_pairs += 1
        if rng.random() < probability:
            for i in range(points.shape[1]):
                points[k, i], points[k + 1, i] = points[k + 1, i], points[k, i]
    return total / n_pairs if n_pairs > 0 else 1.0


@compiled(allocates=True, nogil=True, error_model="numpy")
def tempered_sweeps(
    rng, table, points, powers, is_prior_first, velocities, durations, directions, orders, width,
    jumps, total, row_cost, max_events, n_before, is_wrong, swaps, counts,
):  # fmt: skip
    """Take sweeps over chains at several powers of the likelihood, neighbours swapping after each.

    ``points`` (K, n + r), [f; g] at each of the ascending ``powers``, are moved in place; with
    ``is_prior_first`` the first chain, at power 0, is drawn anew from the prior. In each of S
    sweeps a chain follows m trajectories, ``velocities`` (S, K, max(m, 1), n + r) and
    ``durations`` (S, K, m), then moves along lines: ``directions`` (d, n + r) in ``orders`` (S,
    K, d) with windows of ``width``; d may be 0. ``n_before`` counts the sweeps before these:
    even and odd pairs swap in turn. Overwritten: ``is_wrong`` (S, K, n) after each sweep, and
    ``swaps`` (S,), the mean probability of a swap.
    """
    n_chains, n = points.shape[0], table.shape[0]
    costs = np.empty(n_chains)
    errors = np.empty(jumps.shape[1], np.int64)
    for t in range(velocities.shape[0]):
        for k in range(n_chains):
            if k == 0 and is_prior_first:
                for i in range(points.shape[1]):
                    points[0, i] = velocities[t, 0, 0, i]
            else:
                trajectories(
                    table, points[k], velocities[t, k, : durations.shape[2]], durations[t, k],
                    jumps, total, row_cost, powers[k], max_events, counts,
                )  # fmt: skip
                count_errors(points[k, :n], jumps, errors)
                line_moves(
                    rng, points[k], directions, orders[t, k], jumps, errors, total, row_cost, width,
                    powers[k],
                )  # fmt: skip
            costs[k] = _cost(points[k, :n], jumps, errors, total, row_cost)
        swaps[t] = swap_neighbours(rng, points, costs, powers, (n_before + t) % 2)
        for k in range(n_chains):
            for i in range(n):
                is_wrong[t, k, i] = points[k, i] <= 0.0
