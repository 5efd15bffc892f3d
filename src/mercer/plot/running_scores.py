"""How well each row was predicted before it was learned, along the stream."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from mercer.errors import UsageError
from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_axes

__all__ = ["prequential"]

_SETTLING: Final = 20  # the first one in so many rows may leave the picture


def prequential(
    log_density: ArrayLike, window: int | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the prequential score: mean predictive log density of the rows so far, and lately.

    A line that rises says that rows help; where the last rows fall below all so far, the stream
    has changed.

    Parameters
    ----------
    log_density : array_like of shape (n,)
        Of each row, predicted before it was learned, in nats: ``log_predictive_``, or that of
        ``prequential``. NaN is left out.
    window : int, optional
        Rows in "lately"; a twentieth of them by default, and no fewer than 10.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes

    Raises
    ------
    UsageError
        If there is no row, or the window is not positive.
    """
    densities = np.asarray(log_density, dtype=np.float64)
    if densities.ndim != 1 or not np.isfinite(densities).any() or np.isinf(densities).any():
        raise UsageError("log_density must be numbers of shape (n,)")
    if window is not None and window < 1:
        raise UsageError(f"window must be at least 1, got {window!r}")
    rows = np.flatnonzero(~np.isnan(densities)) + 1
    values = densities[rows - 1]
    width = min(len(values), window or max(10, len(values) // 20))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    so_far = sums[1:] / np.arange(1, len(values) + 1)
    lately = (sums[width:] - sums[:-width]) / width
    ax = new_axes(ax, 6.2, 3.6)
    dress(ax)
    pale = PALETTE["series-5"]
    (line,) = ax.plot(rows[width - 1 :], lately, color=pale, linewidth=1.2, label=f"last {width}")
    mark(line, "lately")
    blue = PALETTE["series-1"]
    (line,) = ax.plot(rows, so_far, color=blue, linewidth=1.8, label="all rows so far", zorder=3)
    mark(line, "so-far")
    seen = np.concatenate([lately, so_far[len(so_far) // _SETTLING :]])
    margin = 0.06 * np.ptp(seen) + 1e-3
    ax.set(xlim=(0.0, rows[-1] + 1.0), ylim=(seen.min() - margin, seen.max() + margin))
    ax.set_xlabel("row", labelpad=8)
    ax.set_ylabel("log predictive density, nats", labelpad=8)
    ax.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, borderaxespad=0.2,
        fontsize=FONT_SIZE - 1, labelcolor=PALETTE["ink"], handletextpad=0.5, columnspacing=1.2,
    )  # fmt: skip
    return ax
