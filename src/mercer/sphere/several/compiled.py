"""Compiled line moves of several classes: arrays and scalars in and out. Twins: ``tests/twins``.

A point has one row [f_c; x_c] for each class: latent values f_c = H' x_c at n data rows, and r
coordinates x_c ~ N(0, I) along orthonormal directions, H = directions' L'. A data row with label y
is right if f_y is larger than all others there: a tie is an error. Costs of errors are those of
`mercer.likelihoods.label_noise.LabelNoise`; a ``step`` of three axes, (1, C, C), has instead in
step[0, c, y] the cost of a row labelled y that class c wins, and ``row_cost`` does not count.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.likelihoods.label_noise import IMPOSSIBLE
from mercer.numerics.compilation import compiled
from mercer.sphere.compiled import truncated_normal
from mercer.sphere.several.joint.compiled import joint_move, trajectory

__all__ = ["cycles", "line_move", "perceptron", "rivals", "sweep_class"]

_SQRT2 = math.sqrt(2.0)
_SQRT_2PI = math.sqrt(2.0 * math.pi)
# Segments with less than this of width times (1 + distance from 0) take their mass from a midpoint
# expansion: its relative error is below 1e-10 there, and a difference of tails would cancel.
_NARROW = 0.02
# From here on tails of a normal come from the continued fraction, of this depth: error below 1e-15.
_FAR, _DEPTH = 12.0, 12
# More breakpoints than this are put into buckets before they are sorted by insertion.
_FEW = 24


@compiled(nogil=True)
def rivals(point, labels, c, gap, side):
    """Compare class c with the best of the others at every row.

    Writes f_c less that best into ``gap``, and into ``side`` what it is for the row that class c
    wins: +1 right and otherwise wrong (the row's label is c), -1 wrong and otherwise right (the
    label is the rival), 0 wrong in either case.
    """
    n = labels.shape[0]
    best, rival = np.full(n, -np.inf), np.zeros(n, np.int64)
    for other in range(point.shape[0]):
        if other == c:
            continue
        f = point[other]
        for i in range(n):
            is_best = f[i] > best[i]
            best[i] = f[i] if is_best else best[i]
            rival[i] = other if is_best else rival[i]
    f = point[c]
    for i in range(n):
        gap[i] = f[i] - best[i]
        side[i] = 1 if labels[i] == c else (-1 if labels[i] == rival[i] else 0)


@compiled(nogil=True)
def _count_errors(gap, side, group, errors):
    """Count the rows that `rivals` found wrong by group."""
    errors[:] = 0
    for i in range(gap.shape[0]):
        if side[i] == 0 or (gap[i] <= 0.0 if side[i] > 0 else gap[i] >= 0.0):
            errors[group[i]] += 1


@compiled(nogil=True)
def _price(point, labels, c, penalty, side, cost):
    """Replace ``side`` by whether a row is cheaper once class c wins it, at its change of cost."""
    for i in range(labels.shape[0]):
        best, rival = -np.inf, 0
        for other in range(point.shape[0]):
            if other != c and point[other, i] > best:
                best, rival = point[other, i], other
        own, its = penalty[c, labels[i]], penalty[rival, labels[i]]
        cost[i] = abs(own - its)
        if (own >= IMPOSSIBLE) != (its >= IMPOSSIBLE):
            cost[i] = IMPOSSIBLE
        side[i] = 1 if own < its else (-1 if own > its else 0)


@compiled(nogil=True)
def _mark(gap, h, low, high, marks):
    """Mark the rows whose gap changes sign between two shifts along h: vectorised."""
    for i in range(gap.shape[0]):
        marks[i] = (gap[i] + low * h[i]) * (gap[i] + high * h[i]) < 0.0


@compiled(nogil=True)
def _shift(gap, h, amount):
    for i in range(gap.shape[0]):
        gap[i] += amount * h[i]


@compiled(nogil=True)
def _collect(marks, x, low, high, gap, h, side, group, step, row_cost, errors, keys, rows):
    """Gather the breakpoints of marked rows, unsorted; cut the window where none may be passed.

    No segment beyond a breakpoint whose error is impossible has any weight, since a row has one
    breakpoint only: so the window ends there.
    """
    words, m = marks.view(np.uint64), 0
    for w in range(words.shape[0]):
        if words[w] == 0:
            continue
        for i in range(8 * w, min(8 * w + 8, gap.shape[0])):
            if marks[i] == 0 or side[i] == 0:
                continue
            b = x - gap[i] / h[i]
            is_win = (h[i] > 0.0) == (b > x)  # class c wins the row beyond b
            is_error_beyond = is_win != (side[i] > 0)
            if is_error_beyond and step[group[i], errors[group[i]]] + row_cost[i] >= IMPOSSIBLE:
                if b > x:
                    high = min(high, b)
                else:
                    low = max(low, b)
            else:
                keys[m], rows[m] = b, i
                m += 1
    return m, low, high


@compiled(nogil=True)
def _to_buckets(keys, rows, low, high):
    """Put breakpoints into m buckets of equal width: then each is near its place."""
    m = keys.shape[0]
    scale, ends = m / (high - low), np.zeros(m + 1, np.int64)
    bucket, old_keys, old_rows = np.empty(m, np.int64), keys.copy(), rows.copy()
    for j in range(m):
        bucket[j] = min(max(int((keys[j] - low) * scale), 0), m - 1)
        ends[bucket[j] + 1] += 1
    for k in range(m):
        ends[k + 1] += ends[k]
    for j in range(m):
        place = ends[bucket[j]]
        ends[bucket[j]] += 1
        keys[place], rows[place] = old_keys[j], old_rows[j]


@compiled(nogil=True)
def _sort_inside(keys, rows, m, low, high):
    """Sort the first m breakpoints, drop those outside (low, high), return how many are left."""
    kept = 0
    for j in range(m):
        if low < keys[j] < high:
            keys[kept], rows[kept] = keys[j], rows[j]
            kept += 1
    if kept > _FEW:
        _to_buckets(keys[:kept], rows[:kept], low, high)
    for j in range(1, kept):
        key, row, k = keys[j], rows[j], j - 1
        while k >= 0 and keys[k] > key:
            keys[k + 1], rows[k + 1] = keys[k], rows[k]
            k -= 1
        keys[k + 1], rows[k + 1] = key, row
    return kept


@compiled(nogil=True)
def _cross(i, is_upward, h, side, group, step, row_cost, errors):
    """Pass the breakpoint of row i; bring ``errors`` up to date and return the change of cost."""
    g = group[i]
    if ((h[i] > 0.0) == is_upward) == (side[i] > 0):  # the row becomes right
        errors[g] -= 1
        return -(step[g, errors[g]] + row_cost[i])
    errors[g] += 1
    return step[g, errors[g] - 1] + row_cost[i]


@compiled(nogil=True)
def _walk(rows, m, here, h, side, group, step, row_cost, errors, costs):
    """Cost of each of the m + 1 segments, against segment ``here``; return the smallest.

    Leaves ``errors`` as they are in the last segment.
    """
    cost = 0.0
    for j in range(here - 1, -1, -1):
        cost += _cross(rows[j], False, h, side, group, step, row_cost, errors)
    costs[0], smallest = cost, cost
    for j in range(m):
        cost += _cross(rows[j], True, h, side, group, step, row_cost, errors)
        costs[j + 1] = cost
        smallest = min(smallest, cost)
    return smallest


@compiled(nogil=True, error_model="numpy")
def _tail(z, base):
    """Mass of N(0, 1) above z, over exp(-base)."""
    if z < _FAR:
        return 0.5 * math.erfc(z / _SQRT2) * math.exp(base)
    fraction = z
    for k in range(_DEPTH, 0, -1):
        fraction = z + k / fraction
    return math.exp(base - 0.5 * z * z) / (_SQRT_2PI * fraction)


@compiled(nogil=True, error_model="numpy")
def _choose(rng, keys, m, low, high, costs, smallest, totals):
    """Choose a segment in proportion to its mass under N(0, 1) and exp(-cost)."""
    sign = 1.0 if low + high >= 0.0 else -1.0  # so that tails are those of the side with less mass
    nearest = 0.0 if low * high < 0.0 else min(abs(low), abs(high))
    base, total = 0.5 * nearest * nearest, 0.0
    begin, begin_tail = low, -1.0
    for j in range(m + 1):
        end = high if j == m else keys[j]
        end_tail, width, middle = -1.0, end - begin, 0.5 * (begin + end)
        if width * (1.0 + abs(middle)) < _NARROW:
            bend = 1.0 + (middle * middle - 1.0) * width * width / 24.0
            mass = math.exp(base - 0.5 * middle * middle) * width * bend / _SQRT_2PI
        else:
            end_tail = _tail(sign * end, base)
            if begin_tail < 0.0:
                begin_tail = _tail(sign * begin, base)
            mass = sign * (begin_tail - end_tail)
        total += mass * math.exp(smallest - costs[j])
        totals[j] = total
        begin, begin_tail = end, end_tail
    wanted, chosen = rng.random() * total, 0
    while chosen < m and totals[chosen] <= wanted:
        chosen += 1
    return chosen


@compiled(nogil=True, error_model="numpy")
def line_move(rng, x, width, gap, h, side, group, step, row_cost, errors, floats, rows, marks):
    """Draw a coordinate of class c from its exact conditional, restricted to a window around it.

    Parameters
    ----------
    x : float
        The coordinate; N(0, 1) a priori.
    width : float
        Of the window. It lies so that x is uniform in it: that makes the move exact.
    gap, side : ndarray of shape (n,)
        From `rivals`; the gap is brought up to date.
    h : ndarray of shape (n,)
        Change of f_c for each unit of the coordinate.
    errors : ndarray of shape (n_groups,), int64
        Wrong rows by group; brought up to date.
    floats, rows, marks : ndarray of shapes (3, n + 1), (n,) int64, (8 ceil(n / 8),) uint8
        Scratch; ``marks`` is 0 beyond row n.

    Returns
    -------
    x, n_breakpoints : float, int
    """
    keys, costs, totals = floats[0], floats[1], floats[2]
    low = x - width * rng.random()
    high = low + width
    _mark(gap, h, low - x, high - x, marks)
    m, low, high = _collect(
        marks, x, low, high, gap, h, side, group, step, row_cost, errors, keys, rows
    )
    m = _sort_inside(keys, rows, m, low, high)
    here = 0
    while here < m and keys[here] < x:
        here += 1
    smallest = _walk(rows, m, here, h, side, group, step, row_cost, errors, costs)
    chosen = _choose(rng, keys, m, low, high, costs, smallest, totals)
    begin = low if chosen == 0 else keys[chosen - 1]
    end = high if chosen == m else keys[chosen]
    new = truncated_normal(rng, begin, end)
    for j in range(m - 1, chosen - 1, -1):
        _cross(rows[j], False, h, side, group, step, row_cost, errors)
    _shift(gap, h, new - x)
    return new, m


@compiled(nogil=True)
def sweep_class(rng, point, c, order, H, widths, labels, group, step, row_cost, errors, scratch):
    """Move class c along all directions in the given order; return the breakpoints in windows.

    The other classes stay, so that their best is found once for the sweep.
    """
    n = labels.shape[0]
    gap, side, floats, rows, marks = scratch
    rivals(point, labels, c, gap, side)
    if step.ndim == 3:
        costs, of_rows = np.zeros((1, n + 1)), np.empty(n)
        _price(point, labels, c, step[0], side, of_rows)
    else:
        costs, of_rows = step, row_cost
    _count_errors(gap, side, group, errors)
    f, x, n_breakpoints = point[c, :n], point[c, n:], 0
    for i in range(n):
        f[i] -= gap[i]  # the best of the others
    for k in order:
        x[k], m = line_move(
            rng, x[k], widths[k], gap, H[k], side, group, costs, of_rows, errors, floats, rows,
            marks,
        )  # fmt: skip
        n_breakpoints += m
    for i in range(n):
        f[i] += gap[i]
    return n_breakpoints


@compiled(nogil=True)
def _shuffle(rng, order):
    for k in range(order.shape[0] - 1, 0, -1):
        other = int(rng.random() * (k + 1))
        order[k], order[other] = order[other], order[k]


@compiled(nogil=True)
def cycles(
    rng,
    point,
    velocities,
    turns,
    durations,
    max_events,
    gram,
    products,
    rows,
    H,
    widths,
    n_lines,
    labels,
    group,
    step,
    row_cost,
):
    """Take cycles of moves: a trajectory, line moves of every class, an elliptical slice.

    Parameters
    ----------
    point : ndarray of shape (C, n + r)
        [f; x]; moved in place.
    velocities, turns : ndarray of shape (n_cycles or 0, C, n + r)
        [H' z; z] with z ~ N(0, I), of the trajectories and of the slices, which are left out where
        there are none; overwritten.
    durations : ndarray of shape (n_cycles,)
        Of the trajectories.
    max_events : int
        A trajectory with more is rejected.
    gram, products : ndarray of shapes (n, n), (C, C - 1, C - 1, n)
        See `mercer.sphere.several.joint.compiled.trajectory`.
    rows, H : ndarray of shapes (n, r), (r, n)
        f_c = rows x_c, and its transpose.
    widths : ndarray of shape (r,)
        Of the windows of the line moves.
    n_lines : int
        Directions, drawn anew each time, along which each class is moved in a cycle.
    labels, group : ndarray of shape (n,), int64
    step, row_cost : ndarray
        Costs of `LabelNoise`.

    Returns
    -------
    n_whole, n_events, n_reflections, n_breakpoints, n_trials : int
    """
    n, n_classes = labels.shape[0], point.shape[0]
    errors = np.zeros(step.shape[0], np.int64)
    scratch = (
        np.empty(n), np.empty(n, np.int64), np.empty((3, n + 1)), np.empty(n, np.int64),
        np.zeros(8 * ((n + 7) // 8), np.uint8),
    )  # fmt: skip
    classes, order, counts = np.arange(n_classes), np.arange(H.shape[0]), np.zeros(5, np.int64)
    for b in range(durations.shape[0]):
        if step.ndim == 2:  # noqa: SIM102 - the inner lines do not compile for three axes
            if velocities.shape[0] > 0:
                end = point.copy()
                n_events, n_reflections, is_whole = trajectory(
                    gram, rows, products, labels, end, velocities[b], group, step, row_cost,
                    durations[b], max_events,
                )  # fmt: skip
                counts[0] += is_whole
                counts[1] += n_events
                counts[2] += n_reflections
                if is_whole:
                    x = end[:, n:].copy()
                    point[:, :n], point[:, n:] = np.dot(x, H), x
        if n_lines > 0:
            _shuffle(rng, classes)
            for c in classes:
                _shuffle(rng, order)
                counts[3] += sweep_class(
                    rng, point, c, order[:n_lines], H, widths, labels, group, step, row_cost,
                    errors, scratch,
                )  # fmt: skip
        if turns.shape[0] > 0:
            counts[4] += joint_move(rng, point, turns[b], labels, group, step, row_cost)
    return counts


@compiled(nogil=True)
def perceptron(L, labels, g, n_epochs):
    """Correct g (C, r) at each wrong row in turn; return whether an epoch had none wrong."""
    for _ in range(n_epochs):
        is_right = True
        for i in range(L.shape[0]):
            f = np.dot(g, L[i])
            own = f[labels[i]]
            f[labels[i]] = -np.inf
            best = np.argmax(f)
            if own <= f[best]:
                is_right = False
                g[labels[i]] += L[i]
                g[best] -= L[i]
        if is_right:
            return True
    return False
