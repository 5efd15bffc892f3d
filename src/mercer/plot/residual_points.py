"""Residuals against predictions, with their mean in groups of rows."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from mercer.plot.style import PALETTE, dress, mark, new_axes

__all__ = ["residuals"]

_FEWEST, _MOST_GROUPS = 10, 12  # rows in a group; groups


def residuals(y: ArrayLike, mean: ArrayLike, *, n_shown: int = 500, ax: Axes | None = None) -> Axes:
    """Draw observed minus predicted values against the predicted ones.

    The line is the mean residual of neighbouring predictions, with two standard errors: away from
    zero, the model is off in one direction there.

    Parameters
    ----------
    y, mean : array_like of shape (n,)
        Observed and predicted.
    n_shown : int, default 500
        Points drawn at most, spread evenly over the rows; the line is of all rows.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes
    """
    ax = new_axes(ax, 5.4, 3.8)
    dress(ax)
    x = np.asarray(mean, dtype=float)
    r = np.asarray(y, dtype=float) - x
    shown = np.unique(np.linspace(0, len(x) - 1, min(n_shown, len(x))).astype(int))
    ax.axhline(0.0, color=PALETTE["muted"], linewidth=1.1, dashes=(4, 3), zorder=1)
    (points,) = ax.plot(x[shown], r[shown], "o", color=PALETTE["series-1"], markersize=3.0)
    points.set(alpha=0.5, markeredgewidth=0.0)
    mark(points, "points")
    n_groups = min(_MOST_GROUPS, len(x) // _FEWEST)
    if n_groups > 1:
        _draw_means(ax, x, r, n_groups)
    ax.set_xlabel("predicted", labelpad=8)
    ax.set_ylabel("observed − predicted", labelpad=8)
    return ax


def _draw_means(ax: Axes, x: NDArray[np.float64], r: NDArray[np.float64], n_groups: int) -> None:
    groups = np.array_split(np.argsort(x, kind="stable"), n_groups)
    centres = np.array([x[group].mean() for group in groups])
    means = np.array([r[group].mean() for group in groups])
    errors = np.array([2.0 * r[group].std(ddof=1) / len(group) ** 0.5 for group in groups])
    bars = ax.errorbar(
        centres,
        means,
        yerr=errors,
        fmt="-o",
        color=PALETTE["series-2"],
        linewidth=1.4,
        markersize=4.5,
        markeredgecolor=PALETTE["paper"],
        markeredgewidth=0.8,
        zorder=3,
    )
    line, _, intervals = bars.lines
    mark(line, "means")
    mark(intervals[0], "errors")
