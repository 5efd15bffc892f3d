"""Quantiles of many laws at once, by a safeguarded Newton iteration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["search_quantiles"]

Array = NDArray[np.float64]
GapAndSlope = Callable[[Array, NDArray[np.intp]], tuple[Array, Array]]

# Every so many steps the bracket is halved, so that it shrinks whatever Newton does.
_HALVE_EVERY = 4
_HALVE_EVERY_PATIENT = 6
_MOST_STEPS = 400


def search_quantiles(
    start: Array,
    low: Array,
    high: Array,
    gap_and_slope: GapAndSlope,
    tolerance: float | Array,
    is_patient: bool = False,
) -> Array:
    """Return where each row's gap, which grows, passes through 0.

    Parameters
    ----------
    start : ndarray of shape (m,)
        First guesses, inside the brackets.
    low, high : ndarray of shape (m,)
        Brackets: the gap is not positive at ``low`` and not negative at ``high``.
    gap_and_slope : callable
        Takes points and the rows that they belong to; returns the gaps there, which may be
        infinite, and their derivatives. Where a derivative leads nowhere the bracket is halved.
    tolerance : float or ndarray of shape (m,)
        Half the length of a bracket at the end, in the units of ``low``.
    is_patient : bool, default False
        Lengthen all of Newton's steps, and halve the bracket more rarely.

    Returns
    -------
    ndarray of shape (m,)

    Notes
    -----
    Near the end Newton's step is lengthened by the tolerance, so that the bracket closes from both
    sides. A step from afar that meets the root to the last digit leaves the other side open; if
    the bracket is halved next, Newton cannot come back to that end, and halving finishes the row
    in about 20 evaluations in place of 5. ``is_patient`` avoids this. Rows that are found are not
    evaluated any more.
    """
    x, low, high = start.copy(), low.copy(), high.copy()
    near = np.broadcast_to(tolerance, x.shape)
    halve_every = _HALVE_EVERY_PATIENT if is_patient else _HALVE_EVERY
    active = np.flatnonzero(high - low > 2.0 * near)
    for step in range(1, _MOST_STEPS):
        if not len(active):
            break
        here = x[active]
        gap, slope = gap_and_slope(here, active)
        low[active] = np.where(gap < 0.0, here, low[active])
        high[active] = np.where(gap < 0.0, high[active], here)
        if step % halve_every == 0:
            x[active] = 0.5 * (low[active] + high[active])
        else:
            least = np.inf if is_patient else near[active]
            move = _newton_move(gap, slope, near[active], least)
            x[active] = _inside(here + move, low[active], high[active])
        active = active[high[active] - low[active] > 2.0 * near[active]]
    return x


def _newton_move(gap: Array, slope: Array, near: Array, least: float | Array) -> Array:
    """Return Newton's steps, those shorter than ``least`` lengthened."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        move = -gap / slope
    return np.where(np.abs(move) < least, move + np.copysign(near, -gap), move)


def _inside(proposed: Array, low: Array, high: Array) -> Array:
    """Return the points proposed, or the middle of the bracket where they are outside."""
    is_inside = (proposed > low) & (proposed < high)
    return np.where(is_inside, proposed, 0.5 * (low + high))
