"""Compiled moves of all classes together: arrays and scalars in and out. Twins: ``tests/twins``.

Points are those of `mercer.sphere.several.compiled`: a row [f_c; x_c] for each class. The *lead* of
a row over a class c other than its label y is f_y - f_c; the row is right where all its leads are
positive. Leads come in C - 1 slots of n: slot s is of class s below the label, of s + 1 from there.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.likelihoods.label_noise import IMPOSSIBLE
from mercer.numerics.compilation import compiled
from mercer.sphere.compiled import TINY, _maximum, _orient

__all__ = ["joint_move", "trajectory"]

# Times that the bracket shrinks before the elliptical slice gives up and stays.
_MAX_TRIALS = 200
_FAST = {"reassoc", "contract", "arcp", "nsz", "nnan"}


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


@compiled(nogil=True)
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


@compiled(nogil=True, error_model="numpy")
def trajectory(
    gram, rows, products, labels, point, velocity, group, step, row_cost, duration, max_events
):
    """Follow one trajectory of the Gaussian lift, over walls where leads change sign.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        rows rows'.
    rows : ndarray of shape (n, r)
        f_c = rows x_c.
    products : ndarray of shape (C, C - 1, C - 1, n), int8
        `SeveralModel.wall_products`.
    point, velocity : ndarray of shape (C, n + r)
        [f; x] and its velocity; overwritten. At the end x is that of the end, and f has no meaning.
    duration : float
        Time of flight; a quarter of a period is pi/2.
    max_events : int
        A trajectory with more is given up.

    Returns
    -------
    n_events, n_reflections, is_whole : int, int, bool
        Where ``is_whole`` is False the point is of no use and the trajectory must be rejected.
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


@compiled(nogil=True)
def _renew(rng, point, velocity, n):
    """Draw anew what the labels say nothing of: the mean over classes, and the length of the rest.

    The mean is N(0, I / C) and comes from the velocity; what is left of that is a velocity of the
    contrasts. Their squared length is chi-square with (C - 1) r degrees of freedom. Returns the
    new mean, which is to be added to the contrasts in ``point``.
    """
    n_classes, m = point.shape
    mean, new_mean = np.zeros(m), np.zeros(m)
    for c in range(n_classes):
        mean += point[c]
        new_mean += velocity[c]
    mean /= n_classes
    new_mean /= n_classes
    squared = 0.0
    for c in range(n_classes):
        point[c] -= mean
        velocity[c] -= new_mean
        squared += np.dot(point[c, n:], point[c, n:])
    new_squared = 2.0 * rng.standard_gamma(0.5 * (n_classes - 1) * (m - n))
    point *= math.sqrt(new_squared / squared)
    return new_mean


@compiled(nogil=True)
def _keep_smaller(a, b, cosine, sine, least):
    for i in range(least.shape[0]):
        lead = cosine * a[i] + sine * b[i]
        least[i] = lead if lead < least[i] else least[i]


@compiled(nogil=True)
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


@compiled(nogil=True)
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


@compiled(nogil=True)
def joint_move(rng, point, velocity, labels, group, step, row_cost):
    """Turn all classes together on an ellipse: elliptical slice sampling (Murray et al. 2010).

    Parameters
    ----------
    point, velocity : ndarray of shape (C, n + r)
        [f; x], and [H' z; z] with z ~ N(0, I); both overwritten.

    Returns
    -------
    int
        Angles tried.
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
        point[c] += mean
    return n_trials
