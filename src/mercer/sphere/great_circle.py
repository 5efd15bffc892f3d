# mypy: allow-untyped-defs, allow-untyped-calls
"""The paper's sampler: Gibbs steps along great circles, its loops and its step.

Compiled loops of the great-circle step: arrays and scalars in and out. Twins: ``tests/twins``.

A point is [f; g] with f = L g, labels multiplied in: row i is wrong when f_i <= 0. Angles are
measured from the point: its circle is cos(t) f + sin(t) v, the tangent v as long as the point.
Every row that is not zero crosses once in the half turn (-pi/2, pi/2], where tan t = -f_i / v_i,
and back half a turn later: one sorted list serves both halves.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import IMPOSSIBLE, LabelNoise
from mercer.numerics.compilation import compiled
from mercer.sphere.loops import change_of_cost

_HALF_PI = 0.5 * math.pi
_FAST = {"reassoc", "contract", "nsz"}
# A row of L that is zero never crosses: beyond the half turn, so that it comes last.
NO_CROSSING = 2.0
# Twice the polynomial p(s) of degree 10 with arctan(z) = z p(z^2) for z <= tan(pi/8): from the
# Taylor series, interpolated at Chebyshev nodes in s; relative error 4e-17 before rounding.
_P = (
    2.0, -0.6666666666665688, 0.39999999997710217, -0.2857142836195286, 0.22222212360911567,
    -0.1818154614962832, 0.1537990699282704, -0.13280467862460546, 0.11376698459567461,
    -0.08696104441466046, 0.04227074636462389,
)  # fmt: skip
# Angles are sorted by 2 x 11 bits of a grid, then by insertion.
_BITS = 11
_CELLS = 1 << _BITS
_FEW = 64
# Moves a row that the insertion may take, before a sort that does not mind clusters takes over.
_PATIENCE = 8
# A likelihood of exp of minus this is taken for 0: below it is not a normal number, and slow.
_UNDERFLOW = 708.0


@compiled(nogil=True, fastmath=_FAST)
def _dots(g, z):
    gg, gz = 0.0, 0.0
    for i in range(g.shape[0]):
        gg += g[i] * g[i]
        gz += g[i] * z[i]
    return gg, gz


@compiled(nogil=True, fastmath=_FAST)
def _squared_distance(z, g, share):
    total = 0.0
    for i in range(z.shape[0]):
        total += (z[i] - share * g[i]) * (z[i] - share * g[i])
    return total


@compiled(nogil=True, fastmath=_FAST, error_model="numpy")
def crossing_angles(f, h, share, scale, tangent, angles):
    """Angles in [-pi/2, pi/2] where rows cross the circle, and how many rows never do.

    ``tangent`` is overwritten by v = scale (h - share f) and ``angles`` by -arctan(f / v):
    arctan(z) = 2 arctan(z / (1 + sqrt(1 + z^2))) and a polynomial, so that the loop is vectorised.
    """
    p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10 = _P
    n_null = 0
    for i in range(f.shape[0]):
        v = scale * (h[i] - share * f[i])
        tangent[i] = v
        x, y = abs(f[i]), abs(v)
        low, high = (x, y) if x < y else (y, x)
        z = low / (high + math.sqrt(high * high + low * low))
        s = z * z
        s2 = s * s
        s4 = s2 * s2
        angle = z * (
            (p0 + p1 * s) + (p2 + p3 * s) * s2
            + ((p4 + p5 * s) + (p6 + p7 * s) * s2 + ((p8 + p9 * s) + p10 * s2) * s4) * s4
        )  # fmt: skip
        angle = angle if x < y else _HALF_PI - angle
        angle = angle if (f[i] > 0.0) != (v > 0.0) else -angle
        n_null += high == 0.0
        angles[i] = angle if high > 0.0 else NO_CROSSING
    return n_null


@compiled(nogil=True)
def _grid_cells(angles, cells):
    scale = (_CELLS * _CELLS - 1) / (NO_CROSSING + _HALF_PI)
    for i in range(angles.shape[0]):
        cells[i] = np.int32((angles[i] + _HALF_PI) * scale)


@compiled(allocates=True, nogil=True)
def _order_by_cell(cells, order):
    """Stable order of the rows by cell: two passes, over its two halves of eleven bits."""
    first = np.empty_like(cells)
    low, high = np.zeros(_CELLS, np.int32), np.zeros(_CELLS, np.int32)
    for cell in cells:
        low[cell & (_CELLS - 1)] += 1
        high[cell >> _BITS] += 1
    n_low, n_high = 0, 0
    for b in range(_CELLS):
        low[b], n_low = n_low, n_low + low[b]
        high[b], n_high = n_high, n_high + high[b]
    for i in range(cells.shape[0]):
        b = cells[i] & (_CELLS - 1)
        first[low[b]] = i
        low[b] += 1
    for i in first:
        b = cells[i] >> _BITS
        order[high[b]] = i
        high[b] += 1


@compiled(allocates=True, nogil=True)
def order_angles(angles, order, ordered):
    """Write the rows in the order of their angles, int32, and the ordered angles.

    Angles lie in [-pi/2, pi/2] or are `NO_CROSSING`.
    """
    n = angles.shape[0]
    if n <= _FEW:
        for i in range(n):
            order[i] = i
    else:
        cells = np.empty(n, np.int32)
        _grid_cells(angles, cells)
        _order_by_cell(cells, order)
    for k in range(n):
        ordered[k] = angles[order[k]]
    n_moves, most = 0, n * (_FEW if n <= _FEW else _PATIENCE)
    for k in range(1, n):
        angle, row, b = ordered[k], order[k], k
        while b > 0 and ordered[b - 1] > angle:
            ordered[b], order[b] = ordered[b - 1], order[b - 1]
            b -= 1
        ordered[b], order[b] = angle, row
        n_moves += k - b
        if n_moves > most:
            sorted_rows = np.argsort(angles)
            for i in range(n):
                order[i] = sorted_rows[i]
                ordered[i] = angles[order[i]]
            return


@compiled(allocates=True, nogil=True)
def common_masses(ordered, order, tangent, n_live, total, masses, errors):
    """Length times likelihood of all arcs, where only the number of errors counts.

    ``ordered``, ``order`` and ``tangent`` (n,) come from `order_angles` and `crossing_angles`;
    the first ``n_live`` rows cross, the others are always wrong; total[e] is the cost in nats of
    e errors. Overwritten: masses[h, k] (2, n + 1) of the arc after k crossings in
    half turn h, which begins at -pi/2 or pi/2, up to a factor (the likeliest arc has likelihood
    1), and ``errors`` (2, n + 1), the wrong rows on the arcs.
    """
    both = 2 * order.shape[0] - n_live  # wrong rows of a point and of its opposite
    e = order.shape[0] - n_live
    for i in range(order.shape[0]):
        e += tangent[i] > 0.0
    fewest, most = both, 0
    before = -_HALF_PI
    for k in range(n_live + 1):
        after = ordered[k] if k < n_live else _HALF_PI
        errors[0, k], errors[1, k] = e, both - e
        masses[0, k] = after - before
        if after > before:
            fewest, most = min(fewest, e), max(most, e)
        before = after
        if k < n_live:
            e += -1 if tangent[order[k]] > 0.0 else 1
    fewest, most = min(fewest, both - most), max(most, both - fewest)
    likelihood = np.zeros(both + 1)
    for e in range(fewest, most + 1):
        if total[e] - total[fewest] > _UNDERFLOW:
            break
        likelihood[e] = math.exp(total[fewest] - total[e])
    for k in range(n_live + 1):
        length, e = masses[0, k], errors[0, k]
        masses[0, k], masses[1, k] = length * likelihood[e], length * likelihood[both - e]


@compiled(nogil=True)
def _cross(i, is_upward, jumps, row_cost, total, errors):
    """Cost of row i that crosses, and how many more errors that cannot be.

    Without branches: which way a row crosses cannot be predicted.
    """
    sign = 1 - 2 * is_upward
    cost = sign * change_of_cost(total, errors, jumps, i, sign)
    n_impossible = np.int64(cost >= IMPOSSIBLE) + np.int64(row_cost >= IMPOSSIBLE)
    cost = (cost if cost < IMPOSSIBLE else 0.0) + (row_cost if row_cost < IMPOSSIBLE else 0.0)
    return sign * cost, sign * n_impossible


@compiled(allocates=True, nogil=True)
def arc_masses(ordered, order, tangent, n_live, jumps, total, row_cost, masses, errors):
    """Length times likelihood of all arcs at any costs of `LabelNoise`; as `common_masses`.

    Errors that cannot be are counted and not added, so that rounding does not see them.
    """
    n, n_arcs = order.shape[0], n_live + 1
    by_group = jumps[n].copy()
    for i in range(n):
        by_group += jumps[i] * (tangent[i] > 0.0)
    for k in range(n_live, n):
        by_group += jumps[order[k]]
    costs, impossible = np.empty((2, n_arcs)), np.empty((2, n_arcs), np.int64)
    cost, n_impossible, e = 0.0, 0, by_group.sum()
    least, fewest = np.inf, 2 * n + 1
    for half in range(2):
        before = -_HALF_PI
        for k in range(n_arcs):
            after = ordered[k] if k < n_live else _HALF_PI
            masses[half, k] = after - before
            costs[half, k], impossible[half, k], errors[half, k] = cost, n_impossible, e
            is_first = n_impossible < fewest or (n_impossible == fewest and cost < least)
            if after > before and is_first:
                least, fewest = cost, n_impossible
            before = after
            if k < n_live:
                i = order[k]
                is_upward = np.int64((tangent[i] > 0.0) == (half == 0))
                more, more_impossible = _cross(i, is_upward, jumps, row_cost[i], total, by_group)
                cost += more
                n_impossible += more_impossible
                e = by_group.sum()
    for half in range(2):
        for k in range(n_arcs):
            above = costs[half, k] - least
            is_possible = impossible[half, k] == fewest and above < _UNDERFLOW
            masses[half, k] *= math.exp(-above) if is_possible else 0.0


@compiled(nogil=True)
def _draw_arc(masses, n_live, uniform):
    """Draw a half turn and an arc in it with probability proportional to the masses."""
    total = 0.0
    for k in range(n_live + 1):
        total += masses[0, k] + masses[1, k]
    left = uniform * total
    half, arc = 0, 0
    for k in range(n_live + 1):
        mass = masses[0, k] + masses[1, k]
        if mass > 0.0:  # so that rounding cannot choose an impossible arc
            arc, half = k, 0 if left < masses[0, k] or masses[1, k] == 0.0 else 1
            if left < mass:
                break
        left -= mass
    return half, arc


@compiled(nogil=True, fastmath=_FAST)
def _combine(point, direction, a, b):
    for i in range(point.shape[0]):
        point[i] = a * point[i] + b * direction[i]


@compiled(allocates=True, nogil=True, error_model="numpy")
def circle_arcs(
    point, direction, n_rows, jumps, total, row_cost, is_common, ordered, masses, errors
):
    """Find the arcs of the circle through a point, in a direction, and their masses.

    ``point`` and ``direction`` are [f; g] and [L z; z], (n + r,): z is projected on the tangent
    space and scaled to the length of g. Overwritten: ``ordered`` (n,), the crossings in the
    half turn, and ``masses`` and ``errors`` of `common_masses`.

    Returned are the number of rows that cross, and the share and scale of the tangent, scale
    (direction - share point). The scale is 0 where there is no circle: then only the arcs
    masses[:, 0], for the point and its opposite, count.
    """
    n = n_rows
    f, g, h, z = point[:n], point[n:], direction[:n], direction[n:]
    angles, tangent, order = np.empty(n), np.empty(n), np.empty(n, np.int32)
    gg, gz = _dots(g, z)
    share, scale = gz / gg, 0.0
    squared_length = _squared_distance(z, g, share)
    if g.shape[0] > 1 and squared_length > 0.0:
        scale = math.sqrt(gg / squared_length)
        n_live = n - crossing_angles(f, h, share, scale, tangent, angles)
    else:  # the tangent is -f, and all rows cross at the end
        n_live = n - crossing_angles(f, f, 2.0, 1.0, tangent, angles)
        angles[angles < NO_CROSSING] = _HALF_PI
    order_angles(angles, order, ordered)
    if is_common:
        common_masses(ordered, order, tangent, n_live, total.ravel(), masses, errors)
    else:
        arc_masses(ordered, order, tangent, n_live, jumps, total, row_cost, masses, errors)
    return n_live, share, scale


@compiled(allocates=True, nogil=True, error_model="numpy")
def walk_great_circles(
    point, directions, n_rows, jumps, total, row_cost, is_common, uniforms, n_errors, n_arcs
):
    """Take one exact step of the great circle along each direction.

    ``point`` (n + r,), [f; g], is moved in place. ``directions`` (b, n + r) are [L z; z] with z
    ~ N(0, I), drawn ahead; ``uniforms`` (b, 2) on [0, 1) choose the arc and the angle in it.
    Overwritten: the wrong rows after each step and the arcs or points that it chose from, (b,).
    """
    ordered = np.empty(n_rows)
    masses, errors = np.empty((2, n_rows + 1)), np.empty((2, n_rows + 1), np.int64)
    for b in range(directions.shape[0]):
        n_live, share, scale = circle_arcs(
            point, directions[b], n_rows, jumps, total, row_cost, is_common, ordered, masses, errors
        )
        half, k = _draw_arc(masses, n_live, uniforms[b, 0])
        sign = 1.0 - 2.0 * half
        n_errors[b], n_arcs[b] = errors[half, k], 2
        if scale == 0.0:
            _combine(point, point, sign, 0.0)
            continue
        n_arcs[b] = max(1, 2 * n_live)
        begin = ordered[k - 1] if k > 0 else -_HALF_PI
        end = ordered[k] if k < n_live else _HALF_PI
        angle = begin + uniforms[b, 1] * (end - begin)
        s = sign * scale * math.sin(angle)
        _combine(point, directions[b], sign * math.cos(angle) - s * share, s)


# The paper's step: along a great circle of the sphere, drawn from its exact conditional.
#
# **Target.** u = g / |g| uniform on the unit sphere of R^r times the likelihood of the labels,
# eqs. (2) and (3) of [1]_; the length |g| is kept.
#
# **One step**
#
# 1. Direction: z ~ N(0, I_r), drawn ahead with L z by one product for many steps, and projected on
#    the tangent space: v = |g| (z - share g) / |z - share g|, share = z.g / g.g.
# 2. Crossings: row i changes sign on cos(t) f + sin(t) L v where tan t = -f_i / (L v)_i, and half a
#    turn later. The n angles in (-pi/2, pi/2] are sorted.
# 3. Errors of every arc, walking the sorted list: a row that becomes right adds -1, wrong +1. In
#    the other half turn every right row is wrong and the reverse; rows of L that are zero are
#    always wrong. The weight of an arc is its length times its likelihood.
# 4. Draw the arc, then the angle, uniform in it.
#
# **Symbols** (paper -> code): w -> g / |g|, <w, x_i> -> f_i / |g|, m -> n, 2m angles zeta -> n in
# ``ordered`` and their opposites, b -> ``masses``, e -> ``errors``.
#
# **Deviations.** The paper prints half the *difference* of two angles for the place where errors
# are counted (it must be half their sum), closes the list with zeta_1 (it must be zeta_1 + 2 pi),
# and does not say how the direction is drawn (independent coefficients of the expansion would give
# another target). The arcs that contain -pi/2 and pi/2 come in two pieces here, so that none wraps;
# angles are exact to their last digits near the point, where the arcs of a concentrated posterior
# lie. Costs are those of any `mercer.likelihoods.label_noise.LabelNoise`. In one dimension there is
# no circle: the step draws between g and -g.
#
# **Cost.** O(n + r): angles are sorted by a grid of four million cells. The rounding error of f
# against L g is multiplied at each step by |cos t - c sin t|, t the angle of the step and c the
# cotangent of that between z and g. For r = 2 this is cos t + |sin t| > 1 in the geometric mean, so
# f must be computed anew from g every few dozen steps; above, the error stays small.
#
# References
# ----------
# .. [1] T. Graepel, R. Herbrich. The Kernel Gibbs Sampler. NIPS 13, 2001.

Array = NDArray[np.float64]


def great_circle_moves(
    rng: np.random.Generator, point: Array, directions: Array, n_rows: int, noise: LabelNoise
) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
    """Take an exact step along each of ``directions``, shape (b, n + r), [L z; z] with z ~ N(0, I).

    ``point``, which is left alone, is [f; g], labels multiplied in (row i is wrong when f_i <= 0).
    At rate 0 it must have positive likelihood. Returns the last point, its errors and the arcs that
    were chosen from, of each step.
    """
    end, n_steps = point.copy(), len(directions)
    n_errors, n_arcs = np.empty(n_steps, np.int64), np.empty(n_steps, np.int64)
    walk_great_circles(
        end, directions, n_rows, noise.jumps, noise.total, noise.row_cost, noise.is_common,
        rng.random((n_steps, 2)), n_errors, n_arcs,
    )  # fmt: skip
    return end, n_errors, n_arcs
