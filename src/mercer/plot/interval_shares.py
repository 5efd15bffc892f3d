"""Nominal against observed coverage of intervals."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from mercer.plot.style import PALETTE, dress, mark, new_axes
from mercer.posterior.interval_coverage import IntervalCoverage

__all__ = ["interval_coverage"]


def interval_coverage(curve: IntervalCoverage, *, ax: Axes | None = None) -> Axes:
    """Draw the share of rows inside intervals against the probability that they claim.

    On the diagonal the intervals are right; below it they are too narrow, above it too wide. The
    grey band is what chance does to right ones.

    Parameters
    ----------
    curve : IntervalCoverage
        From `mercer.posterior.interval_coverage.interval_coverage`.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes
    """
    ax = new_axes(ax, 5.4, 5.0)
    dress(ax)
    band = ax.fill_between(
        curve.level, curve.lower, curve.upper, color=PALETTE["band"], linewidth=0, zorder=1
    )
    mark(band, "chance")
    ax.plot([0, 1], [0, 1], color=PALETTE["muted"], linewidth=1.1, dashes=(4, 3), zorder=2)
    (line,) = ax.plot(
        curve.level,
        curve.observed,
        "-o",
        color=PALETTE["series-1"],
        linewidth=1.6,
        markersize=4.5,
        markeredgecolor=PALETTE["paper"],
        markeredgewidth=0.8,
        zorder=3,
    )
    mark(line, "coverage")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([0, 0.25, 0.5, 0.75, 1])
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    ax.set_xlabel("probability inside, as predicted", labelpad=8)
    ax.set_ylabel("rows inside", labelpad=8)
    return ax
