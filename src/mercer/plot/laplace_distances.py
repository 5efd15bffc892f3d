"""How far Laplace's approximation is from the exact posterior, against rows per region."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from mercer.errors import UsageError
from mercer.plot.style import PALETTE, dress, mark, new_axes

__all__ = ["laplace_distance"]

_BINS = 6
_FEWEST = 5  # rows for a median
_FLOOR = 1e-5  # smaller differences are drawn here


def laplace_distance(
    rows_per_region: ArrayLike, differences: ArrayLike, *, ax: Axes | None = None
) -> Axes:
    """Draw the difference of the two probabilities of each row against the rows in its region.

    The more rows there are within a length scale, the closer the posterior of the function is to
    normal, and Laplace's approximation to the truth.

    Parameters
    ----------
    rows_per_region : array_like of shape (m,)
        Rows within about a length scale of each row; positive.
    differences : array_like of shape (m,)
        Exact less Laplace's probability.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes
        A point a row; a line through the medians of groups of rows.

    Raises
    ------
    UsageError
        If the two do not fit together, or are not finite.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (rows_per_region, differences))
    if x.ndim != 1 or x.shape != y.shape or len(x) == 0:
        raise UsageError(f"rows per region of shape {x.shape} do not fit differences of {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (x > 0.0).all()):
        raise UsageError("rows per region must be positive, and both finite")
    heights = np.maximum(np.abs(y), _FLOOR)
    ax = new_axes(ax, 5.4, 3.6)
    dress(ax)
    (points,) = ax.plot(x, heights, ".", color=PALETTE["series-1"], alpha=0.45, markersize=6)
    mark(points, "rows")
    groups = np.array_split(np.argsort(x), max(1, min(_BINS, len(x) // _FEWEST)))
    (line,) = ax.plot(
        [np.median(x[group]) for group in groups],
        [np.median(heights[group]) for group in groups],
        "o-",
        color=PALETTE["ink"],
        linewidth=1.6,
        markersize=4.5,
    )
    mark(line, "medians")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("training rows within a length scale", labelpad=8)
    ax.set_ylabel("difference of the probabilities", labelpad=8)
    return ax
