# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled moves of all classes together: arrays and scalars in and out. Twins: ``tests/twins``.

A point is a row [f_c; x_c] for each class. The *lead* of
a row over a class c other than its label y is f_y - f_c; the row is right where all its leads are
positive. Leads come in C - 1 slots of n: slot s is of class s below the label, of s + 1 from there.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from mercer.likelihoods.label_noise import IMPOSSIBLE
from mercer.numerics.compilation import compiled
from mercer.sphere.loops import _FAST, _SQRT2, _SQRT_2PI, TINY, _maximum, _orient, truncated_normal

# Times that the bracket shrinks before the elliptical slice gives up and stays.
_MAX_TRIALS = 200


@compiled(nogil=True)
def _turn(a, b, cosine, sine, out):
    for i in range(a.shape[0]):
        out[i] = cosine * a[i] + sine * b[i]


@compiled(nogil=True)
def _leads(f, labels, out):
    """Write f_y less f_c into ``out`` (C - 1, n), for the classes c other than the label y."""
    for i in range(labels.shape[0]):
        label = labels[i]
        own = f[label, i]
        for s in range(out.shape[0]):
            out[s, i] = own - f[s if s < label else s + 1, i]


@compiled(nogil=True)
def _set_off(f, v, signs, ratios, largest, n_behind, group, errors, step, row_cost):
    """Orient the leads; count for each row those that are negative, and errors by group."""
    for i in range(group.shape[0]):
        if step[group[i], 0] + row_cost[i] >= IMPOSSIBLE:
            for s in range(f.shape[0]):
                f[s, i] = max(f[s, i], TINY)  # what is below was put there by rounding
    for s in range(f.shape[0]):
        largest[s] = _orient(f[s], v[s], signs[s], ratios[s])
        for i in range(group.shape[0]):
            n_behind[i] += signs[s, i] < 0.0
    for i in range(group.shape[0]):
        errors[group[i]] += n_behind[i] > 0


@compiled(nogil=True, fastmath=_FAST, error_model="numpy")
def _fly(f, v, signs, row, products, c, s, change, ratios):
    """Rotate (f, v) to the wall and change the velocities; return the largest new ratio."""
    largest = -1e300
    for i in range(f.shape[0]):
        new = _maximum(c * f[i] + s * v[i], TINY)
        speed = c * v[i] - s * f[i] + change * signs[i] * row[i] * products[i]
        f[i] = new
        v[i] = speed
        x = -speed / new
        ratios[i] = x
        largest = _maximum(largest, x)
    return largest


@compiled(nogil=True)
def _fly_all(f, v, signs, row, products, c, s, change, ratios, largest, slot, j):
    """`_fly` for all leads but the one at its wall: that of row j in ``slot``."""
    for k in range(f.shape[0]):
        if k != slot:
            largest[k] = _fly(f[k], v[k], signs[k], row, products[k], c, s, change, ratios[k])
            continue
        largest[k] = max(
            _fly(f[k, :j], v[k, :j], signs[k, :j], row[:j], products[k, :j], c, s, change,
                 ratios[k, :j]),
            _fly(f[k, j + 1 :], v[k, j + 1 :], signs[k, j + 1 :], row[j + 1 :],
                 products[k, j + 1 :], c, s, change, ratios[k, j + 1 :]),
        )  # fmt: skip


@compiled(allocates=True, nogil=True)
def _next_wall(ratios, signs, largest):
    """Slot and row of the wall that is met next.

    Of walls met at once those come first where leads turn positive: so two rows with the same
    inputs and different labels cancel, from either side.
    """
    n_slots, n = ratios.shape
    nearest, slot, row = largest.max(), 0, 2 * n
    for s in range(n_slots):
        if largest[s] == nearest:
            found = _first_at_wall(ratios[s], signs[s], nearest)
            if found < row:
                slot, row = s, found
    return slot, row % n, nearest


@compiled(nogil=True)
def _first_at_wall(ratios, signs, nearest):
    """Smallest index with the ratio, n more where the lead is positive: vectorised."""
    n = ratios.shape[0]
    first = 2 * n
    for i in range(n):
        index = i if signs[i] < 0.0 else n + i
        first = min(first, index if ratios[i] >= nearest else 2 * n)
    return first


@compiled(nogil=True, error_model="numpy")
def _meet(speed, squared_norm, is_ahead, n_behind, cost_up, cost_down):
    """What happens to a lead at its wall: its new speed, whether it passes, the change of errors.

    A lead that turns negative costs an error only if no other of its row is negative; one that
    turns positive takes the error away only if it was the last. A row of zeros is always at its
    walls, and is sent away.
    """
    if squared_norm == 0.0:
        return 1.0, False, 0
    energy, error = speed * speed / squared_norm, 0
    if is_ahead and n_behind == 0:
        energy -= 2.0 * cost_up
        error = 1
        if energy <= 0.0:
            return -speed, False, 0
    elif not is_ahead and n_behind == 1:
        energy += 2.0 * cost_down
        error = -1
    return -math.sqrt(energy * squared_norm), True, error


@compiled(nogil=True)
def _kick(x, w, row, ahead, behind, c, s, change):
    """Change the velocities of two classes at an angle of which c and s are cosine and sine.

    (x, w) stand where the trajectory began, so that nothing else moves: x cos t + w sin t is the
    position at angle t, and its derivative the velocity.
    """
    for k in range(row.shape[0]):
        x[ahead, k] -= s * change * row[k]
        w[ahead, k] += c * change * row[k]
        x[behind, k] += s * change * row[k]
        w[behind, k] -= c * change * row[k]


@compiled(allocates=True, nogil=True, error_model="numpy")
def trajectory(
    gram, rows, products, labels, point, velocity, group, step, row_cost, duration, max_events
):
    """Follow one trajectory of the Gaussian lift, over walls where leads change sign.

    ``rows`` (n, r) has f_c = rows x_c and ``gram`` = rows rows'; ``products`` is
    `SeveralModel.wall_products`. ``point`` and ``velocity`` (C, n + r), [f; x] and its
    velocity, are overwritten: at the end x is that of the end, and f has no meaning. A quarter
    of a period is pi/2.

    Returns (n_events, n_reflections, is_whole): a trajectory with more than ``max_events`` is
    not whole; the point is then of no use and it must be rejected.
    """
    n, n_slots = labels.shape[0], products.shape[1]
    f, v = np.empty((n_slots, n)), np.empty((n_slots, n))
    signs, ratios, largest = np.empty((n_slots, n)), np.empty((n_slots, n)), np.empty(n_slots)
    n_behind, errors = np.zeros(n, np.int64), np.zeros(step.shape[0], np.int64)
    x, w = point[:, n:], velocity[:, n:]
    _leads(point, labels, f)
    _leads(velocity, labels, v)
    _set_off(f, v, signs, ratios, largest, n_behind, group, errors, step, row_cost)
    elapsed, n_events, n_reflections = 0.0, 0, 0
    while True:
        slot, j, cotangent = _next_wall(ratios, signs, largest)
        time = math.atan2(1.0, cotangent)
        if elapsed + time >= duration:
            break
        if n_events == max_events:
            return n_events, n_reflections, False
        n_events += 1
        elapsed += time
        s = 1.0 / math.sqrt(1.0 + cotangent * cotangent)
        c = cotangent * s
        speed = c * v[slot, j] - s * f[slot, j]  # negative: towards the wall
        squared_norm, k, sign = 2.0 * gram[j, j], group[j], signs[slot, j]
        new_speed, passes, error = _meet(
            speed, squared_norm, sign > 0.0, n_behind[j], step[k, errors[k]] + row_cost[j],
            step[k, max(errors[k] - 1, 0)] + row_cost[j],
        )  # fmt: skip
        change = (new_speed - speed) / squared_norm * sign if squared_norm > 0.0 else 0.0
        label = labels[j]
        other = slot if slot < label else slot + 1
        _fly_all(
            f, v, signs, gram[j], products[label, slot], c, s, change, ratios, largest, slot, j
        )
        _kick(x, w, rows[j], label, other, math.cos(elapsed), math.sin(elapsed), change)
        if passes:
            errors[k] += error
            n_behind[j] += 1 if sign > 0.0 else -1
            signs[slot, j] = -sign
            new_speed = -new_speed
        else:
            n_reflections += 1
        f[slot, j], v[slot, j] = TINY, new_speed  # away from the wall
        ratios[slot, j] = -new_speed / TINY
    for c in range(x.shape[0]):
        _turn(x[c], w[c], math.cos(duration), math.sin(duration), x[c])
    return n_events, n_reflections, True


@compiled(allocates=True, nogil=True)
def _renew(rng, point, velocity, n):
    """Draw anew what the labels say nothing of: the mean over classes, and the length of the rest.

    The mean is N(0, I / C) and comes from the velocity; what is left of that is a velocity of the
    contrasts. Their squared length is chi-square with (C - 1) r degrees of freedom. Returns the
    new mean, which is to be added to the contrasts in ``point``.
    """
    n_classes, m = point.shape
    mean, new_mean = np.zeros(m), np.zeros(m)
    for c in range(n_classes):
        for i in range(m):
            mean[i] += point[c, i]
            new_mean[i] += velocity[c, i]
    mean /= n_classes
    new_mean /= n_classes
    squared = 0.0
    for c in range(n_classes):
        for i in range(m):
            point[c, i] -= mean[i]
            velocity[c, i] -= new_mean[i]
        squared += np.dot(point[c, n:], point[c, n:])
    new_squared = 2.0 * rng.standard_gamma(0.5 * (n_classes - 1) * (m - n))
    point *= math.sqrt(new_squared / squared)
    return new_mean


@compiled(nogil=True)
def _keep_smaller(a, b, cosine, sine, least):
    for i in range(least.shape[0]):
        lead = cosine * a[i] + sine * b[i]
        least[i] = lead if lead < least[i] else least[i]


@compiled(allocates=True, nogil=True)
def _errors_at(leads, turns, cosine, sine, group, row_cost, errors, least):
    """Count errors by group at a turned point; return the sum of their ``row_cost``."""
    least[:] = np.inf
    for c in range(leads.shape[0]):
        _keep_smaller(leads[c], turns[c], cosine, sine, least)
    errors[:], total = 0, 0.0
    for i in range(least.shape[0]):
        if least[i] <= 0.0:
            errors[group[i]] += 1
            total += row_cost[i]
    return total


@compiled(allocates=True, nogil=True)
def _penalties_at(leads, turns, cosine, sine, labels, penalty, least, slot):
    """Sum of penalty[c, y] over rows at a turned point, c the class that the row is said to be."""
    least[:] = np.inf
    for s in range(leads.shape[0]):
        for i in range(least.shape[0]):
            lead = cosine * leads[s, i] + sine * turns[s, i]
            if lead < least[i]:
                least[i], slot[i] = lead, s
    total = 0.0
    for i in range(least.shape[0]):
        label = labels[i]
        other = slot[i] if slot[i] < label else slot[i] + 1
        total += penalty[label if least[i] > 0.0 else other, label]
    return total


@compiled(nogil=True)
def _change_of_cost(step, old, new):
    """Cost of the new errors by group, against that of the old."""
    change = 0.0
    for g in range(old.shape[0]):
        for e in range(old[g], new[g]):
            change += step[g, e]
        for e in range(new[g], old[g]):
            change -= step[g, e]
    return change


@compiled(allocates=True, nogil=True)
def joint_move(rng, point, velocity, labels, group, step, row_cost):
    """Turn all classes together on an ellipse: elliptical slice sampling (Murray et al. 2010).

    ``point`` and ``velocity`` (C, n + r), [f; x] and [H' z; z] with z ~ N(0, I), are
    overwritten. Returns the number of angles tried.
    """
    n = labels.shape[0]
    mean = _renew(rng, point, velocity, n)
    leads, turns = np.empty((point.shape[0] - 1, n)), np.empty((point.shape[0] - 1, n))
    _leads(point, labels, leads)
    _leads(velocity, labels, turns)
    errors, new, least = (
        np.zeros(step.shape[0], np.int64),
        np.zeros(step.shape[0], np.int64),
        np.empty(n),
    )
    slot = np.zeros(n, np.int64)
    if step.ndim == 3:
        total = _penalties_at(leads, turns, 1.0, 0.0, labels, step[0], least, slot)
    else:
        total = _errors_at(leads, turns, 1.0, 0.0, group, row_cost, errors, least)
    limit = rng.standard_exponential()  # the cost may rise by this: the slice is drawn
    angle = 2.0 * math.pi * rng.random()
    low, high, n_trials = angle - 2.0 * math.pi, angle, 1
    while True:
        cosine, sine = math.cos(angle), math.sin(angle)
        if step.ndim == 3:
            rise = _penalties_at(leads, turns, cosine, sine, labels, step[0], least, slot) - total
        else:
            other = _errors_at(leads, turns, cosine, sine, group, row_cost, new, least)
            rise = _change_of_cost(step, errors, new) + other - total
        if rise <= limit:
            break
        if n_trials == _MAX_TRIALS:
            cosine, sine = 1.0, 0.0
            break
        if angle < 0.0:
            low = angle
        else:
            high = angle
        angle = low + (high - low) * rng.random()
        n_trials += 1
    for c in range(point.shape[0]):
        _turn(point[c], velocity[c], cosine, sine, point[c])
        for i in range(len(mean)):
            point[c, i] += mean[i]
    return n_trials


# Compiled line moves of several classes: arrays and scalars in and out. Twins: ``tests/twins``.
#
# A point has one row [f_c; x_c] for each class: latent values f_c = H' x_c at n data rows, and r
# coordinates x_c ~ N(0, I) along orthonormal directions, H = directions' L'. A data row with label
# y is right if f_y is larger than all others there: a tie is an error. Costs of errors are those
# of `mercer.likelihoods.label_noise.LabelNoise`; a ``step`` of three axes, (1, C, C), has instead
# in step[0, c, y] the cost of a row labelled y that class c wins, and ``row_cost`` does not count.

# Segments with less than this of width times (1 + distance from 0) take their mass from a midpoint
# expansion: its relative error is below 1e-10 there, and a difference of tails would cancel.
_NARROW = 0.02
# From here on tails of a normal come from the continued fraction, of this depth: error below 1e-15.
_FAR, _DEPTH = 12.0, 12
# More breakpoints than this are put into buckets before they are sorted by insertion.
_FEW = 24


@compiled(allocates=True, nogil=True)
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


@compiled(allocates=True, nogil=True)
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

    The coordinate ``x`` is N(0, 1) a priori, and h (n,) the change of f_c for each unit of it.
    The window of this ``width`` lies so that x is uniform in it: that makes the move exact.
    ``gap`` and ``side`` (n,) come from `rivals`; the gap and ``errors``, the wrong rows by
    group, are brought up to date. Scratch: ``floats`` (3, n + 1), ``rows`` (n,) int64, and
    ``marks`` (8 ceil(n / 8),) uint8, 0 beyond row n. Returns x and the number of breakpoints.
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


@compiled(allocates=True, nogil=True)
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


@compiled(allocates=True, nogil=True)
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

    ``point`` (C, n + r), [f; x], is moved in place. ``velocities`` and ``turns`` (n_cycles or
    0, C, n + r) are [H' z; z] with z ~ N(0, I), of the trajectories and of the slices, which
    are left out where there are none; overwritten. ``durations`` (n_cycles,) are those of the
    trajectories; one with more than ``max_events`` is rejected. ``rows`` (n, r) has f_c = rows
    x_c, H is its transpose; ``gram`` and ``products`` are those of `trajectory`. Each class is
    moved along ``n_lines`` directions a cycle, drawn anew each time, with windows of ``widths``
    (r,).

    Returns the numbers of whole trajectories, events, reflections, breakpoints and angles
    tried.
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
                    f = np.dot(end[:, n:].copy(), H)
                    for c in range(n_classes):
                        for i in range(end.shape[1]):
                            point[c, i] = f[c, i] if i < n else end[c, i]
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


@compiled(allocates=True, nogil=True)
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
                for j in range(L.shape[1]):
                    g[labels[i], j] += L[i, j]
                    g[best, j] -= L[i, j]
        if is_right:
            return True
    return False


# The density of the largest of several normal variables is smooth: the trapezoid rule of this step
# errs by 2e-9 for ten of them, by 2e-6 for fifty. Nodes are so far from the largest mean, and means
# so far below it have no share.
_STEP, _RANGE, _FARTHEST = 0.5, 7.5, 16.0
_N_NODES = int(2.0 * _RANGE / _STEP) + 1
# Phi and phi at places, from which Taylor's series errs by 3e-9 of them up to 8: rows are so many
# to a step, columns a step apart.
_PARTS = 16
_GRID = np.add.outer(
    np.arange(_PARTS) * (_STEP / _PARTS), np.arange(_N_NODES + _FARTHEST / _STEP) * _STEP - _RANGE
)
_TABLE = np.stack([_GRID, ndtr(_GRID), np.exp(-0.5 * _GRID**2) / _SQRT_2PI])


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def _fill_normal(gap, below, density):
    """Write Phi and phi of the nodes above a mean that is ``gap`` below the largest."""
    whole, t = int(_PARTS / _STEP * _FARTHEST) - 1, 0.0
    if gap < _FARTHEST - _STEP:
        whole = int(gap * (_PARTS / _STEP) + 0.5)
        t = gap - whole * (_STEP / _PARTS)
    table = _TABLE[:, whole % _PARTS, whole // _PARTS :]
    for j in range(_N_NODES):
        x, phi = table[0, j], table[2, j]
        h2 = x * x - 1.0  # Hermite's polynomials
        h3 = x * (h2 - 2.0)
        h4 = x * h3 - 3.0 * h2
        h5 = x * h4 - 4.0 * h3
        rest = t / 6.0 * (h2 - t / 4.0 * (h3 - t / 5.0 * (h4 - t / 6.0 * h5)))
        below[j] = table[1, j] + phi * t * (1.0 + t * (rest - 0.5 * x))
        rest = t / 2.0 * (h2 - t / 3.0 * (h3 - t / 4.0 * (h4 - t / 5.0 * h5)))
        density[j] = phi * (1.0 + t * (rest - x))


@compiled(allocates=True, nogil=True, error_model="numpy", fastmath=_FAST)
def largest_of_normals(z, p):
    """Write P(z_c + e_c is the largest), e ~ N(0, I), for z of shape (k, C, m), into ``p``."""
    n_draws, n_classes, n_rows = z.shape
    below, density = np.empty((n_classes, _N_NODES)), np.empty((n_classes, _N_NODES))
    all_below = np.empty(_N_NODES)
    for k in range(n_draws):
        for i in range(n_rows):
            top, total = -np.inf, 0.0
            for c in range(n_classes):
                top = max(top, z[k, c, i])
            all_below[:] = 1.0
            for c in range(n_classes):
                _fill_normal(top - z[k, c, i], below[c], density[c])
                for j in range(_N_NODES):
                    all_below[j] *= below[c, j]
            for c in range(n_classes):
                share = 0.0
                for j in range(_N_NODES):
                    share += density[c, j] * all_below[j] / below[c, j]
                p[k, c, i] = share
                total += share
            for c in range(n_classes):
                p[k, c, i] /= total
