"""The paper's step: along a great circle of the sphere, drawn from its exact conditional.

**Target.** u = g / |g| uniform on the unit sphere of R^r times the likelihood of the labels,
eqs. (2) and (3) of [1]_; the length |g| is kept.

**One step**

1. Direction: z ~ N(0, I_r), drawn ahead with L z by one product for many steps, and projected on
   the tangent space: v = |g| (z - share g) / |z - share g|, share = z.g / g.g.
2. Crossings: row i changes sign on cos(t) f + sin(t) L v where tan t = -f_i / (L v)_i, and half a
   turn later. The n angles in (-pi/2, pi/2] are sorted.
3. Errors of every arc, walking the sorted list: a row that becomes right adds -1, wrong +1. In the
   other half turn every right row is wrong and the reverse; rows of L that are zero are always
   wrong. The weight of an arc is its length times its likelihood.
4. Draw the arc, then the angle, uniform in it.

**Symbols** (paper -> code): w -> g / |g|, <w, x_i> -> f_i / |g|, m -> n, 2m angles zeta -> n in
``ordered`` and their opposites, b -> ``masses``, e -> ``errors``.

**Deviations.** The paper prints half the *difference* of two angles for the place where errors
are counted (it must be half their sum), closes the list with zeta_1 (it must be zeta_1 + 2 pi), and
does not say how the direction is drawn (independent coefficients of the expansion would give
another target). The arcs that contain -pi/2 and pi/2 come in two pieces here, so that none wraps;
angles are exact to their last digits near the point, where the arcs of a concentrated posterior
lie. Costs are those of any `mercer.likelihoods.label_noise.LabelNoise`. In one dimension there is
no circle: the step draws between g and -g.

**Cost.** O(n + r): angles are sorted by a grid of four million cells. The rounding error of f
against L g is multiplied at each step by |cos t - c sin t|, t the angle of the step and c the
cotangent of that between z and g. For r = 2 this is cos t + |sin t| > 1 in the geometric mean, so f
must be computed anew from g every few dozen steps; above, the error stays small.

References
----------
.. [1] T. Graepel, R. Herbrich. The Kernel Gibbs Sampler. NIPS 13, 2001.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer.likelihoods.label_noise import LabelNoise
from mercer.sphere.circle import compiled

__all__ = ["great_circle_move", "great_circle_moves"]

Array = NDArray[np.float64]


def great_circle_move(
    rng: np.random.Generator, point: Array, direction: Array, n_rows: int, noise: LabelNoise
) -> tuple[Array, int, int]:
    """Take one step from a point that is left alone; exact, without rejection.

    Parameters
    ----------
    point : ndarray of shape (n + r,)
        [f; g], labels multiplied in: row i is wrong when f_i <= 0.
    direction : ndarray of shape (n + r,)
        [L z; z] with z ~ N(0, I), independent of the point.
    n_rows : int
    noise : LabelNoise
        Of the n rows. At rate 0 the point must have positive likelihood.

    Returns
    -------
    point : ndarray of shape (n + r,)
    n_errors : int
        Rows that are wrong there.
    n_arcs : int
        Arcs that the step chose from.
    """
    moved, n_errors, n_arcs = great_circle_moves(rng, point, direction[np.newaxis], n_rows, noise)
    return moved, int(n_errors[0]), int(n_arcs[0])


def great_circle_moves(
    rng: np.random.Generator, point: Array, directions: Array, n_rows: int, noise: LabelNoise
) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
    """Take one step along each of ``directions``, shape (b, n + r): b calls of the above in one.

    Returns the last point, and errors and arcs of each step.
    """
    end, n_steps = point.copy(), len(directions)
    n_errors, n_arcs = np.empty(n_steps, np.int64), np.empty(n_steps, np.int64)
    compiled.great_circle_moves(
        end, directions, n_rows, noise.group, noise.step, noise.row_cost, noise.is_common,
        rng.random((n_steps, 2)), n_errors, n_arcs,
    )  # fmt: skip
    return end, n_errors, n_arcs
