"""Error-coverage curve: how the error falls as the least certain rows are left undecided."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_axes
from mercer.posterior.coverage import COVERAGES, ErrorCoverage

__all__ = ["error_coverage"]


def error_coverage(curve: ErrorCoverage, *, ax: Axes | None = None) -> Axes:
    """Draw the error among the most certain rows against their share of all rows.

    A model that knows when it is unsure has a curve that falls to the left; a level one says that
    its certainty tells nothing of its errors. At the left end few rows are left, and chance rules.

    Parameters
    ----------
    curve : ErrorCoverage
        From `mercer.posterior.coverage.error_coverage_curve`.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes
    """
    ax = new_axes(ax, 5.4, 3.6)
    dress(ax)
    (line,) = ax.plot(curve.coverage, curve.error, color=PALETTE["series-1"], linewidth=1.8)
    mark(line, "curve")
    at = np.array([curve.n_decided(share) for share in COVERAGES]) - 1
    (points,) = ax.plot(
        curve.coverage[at],
        curve.error[at],
        "o",
        color=PALETTE["series-1"],
        markersize=6.5,
        markeredgecolor=PALETTE["paper"],
        markeredgewidth=1.0,
        zorder=3,
    )
    mark(points, "points")
    top = max(1.25 * float(curve.error[at].max()), 0.02)
    ax.set(xlim=(0.0, 1.03), ylim=(-0.14 * top, top))
    for share, k in zip(COVERAGES, at, strict=True):
        is_last = share == 1.0  # above the curve there, else below it
        ax.annotate(
            f"{100 * curve.error[k]:.1f} %",
            (curve.coverage[k], curve.error[k]),
            xytext=(4, 7) if is_last else (3, -6),
            textcoords="offset points",
            ha="right" if is_last else "left",
            va="bottom" if is_last else "top",
            color=PALETTE["ink"],
            fontsize=FONT_SIZE - 1,
        )
    ax.xaxis.set_ticks([0, 0.25, 0.5, 0.75, 1])
    ax.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    for axis, digits in ((ax.xaxis, 0), (ax.yaxis, 1 if top < 0.04 else 0)):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=digits, symbol=" %"))
    ax.set_xlabel("rows that are decided, the most certain first", labelpad=8)
    ax.set_ylabel("error among them", labelpad=8)
    return ax
