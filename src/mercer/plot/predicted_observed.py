"""Predicted against observed numbers, each row with its interval."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_axes

__all__ = ["predictions"]


def predictions(
    y: ArrayLike, mean: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, ax: Axes | None = None
) -> Axes:
    """Draw the observed value of each row against the predicted one, with its interval.

    Points on the diagonal are predicted exactly. A bar that its point lies outside of is drawn in
    another colour: of 90 % intervals one in ten should be.

    Parameters
    ----------
    y : array_like of shape (n,)
        Observed.
    mean : array_like of shape (n,)
        Predicted.
    lower, upper : array_like of shape (n,)
        Ends of the interval of each row.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes
    """
    ax = new_axes(ax, 5.4, 5.0)
    dress(ax)
    values, x, low, high = (np.asarray(each, dtype=float) for each in (y, mean, lower, upper))
    is_inside = (low <= values) & (values <= high)
    ends = [min(x.min(), values.min()), max(x.max(), values.max())]
    ax.plot(ends, ends, color=PALETTE["muted"], linewidth=1.1, dashes=(4, 3), zorder=1)
    kinds = (("inside", is_inside, "series-1"), ("outside", ~is_inside, "series-2"))
    for name, chosen, colour in kinds:
        if not chosen.any():
            continue
        bars = ax.vlines(
            x[chosen], low[chosen], high[chosen], color=PALETTE[colour], linewidth=0.7, alpha=0.3
        )
        mark(bars, f"intervals-{name}")
        (points,) = ax.plot(
            x[chosen], values[chosen], "o", color=PALETTE[colour], markersize=3.0, linewidth=0
        )
        points.set_markeredgewidth(0.0)
        mark(points, f"points-{name}")
    ax.set_xlabel("predicted", labelpad=8)
    ax.set_ylabel("observed", labelpad=8)
    ax.annotate(
        f"outside: {np.count_nonzero(~is_inside)} of {len(values)}",
        (0.0, 1.0),
        xycoords="axes fraction",
        xytext=(4, -4),
        textcoords="offset points",
        ha="left",
        va="top",
        color=PALETTE["series-2"] if not is_inside.all() else PALETTE["muted"],
        fontsize=FONT_SIZE - 1,
    )
    return ax
