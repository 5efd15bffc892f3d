"""Histogram of the probability integral transform: level where predictive laws are right."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_axes
from mercer.posterior.interval_coverage import PitHistogram

__all__ = ["pit"]


def pit(histogram: PitHistogram, *, ax: Axes | None = None) -> Axes:
    """Draw how many observations lie how far up in their predictive law.

    Level bars are what right laws give. A valley in the middle says that the laws are too narrow, a
    hill that they are too wide, a slope that predictions are too low or too high.

    Parameters
    ----------
    histogram : PitHistogram
        From `mercer.posterior.interval_coverage.pit_histogram`.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes
    """
    ax = new_axes(ax, 5.4, 3.6)
    dress(ax, grid="y")
    edges, share = histogram.edges, histogram.share
    band = ax.axhspan(histogram.lower, histogram.upper, color=PALETTE["band"], linewidth=0)
    mark(band, "chance")
    bars = ax.bar(
        edges[:-1],
        share,
        width=0.9 * (edges[1:] - edges[:-1]),
        align="edge",
        color=PALETTE["series-1"],
        alpha=0.75,
        linewidth=0,
        zorder=2,
    )
    for i, bar in enumerate(bars):
        mark(bar, f"bar-{i}")
    level = 1.0 / len(share)
    ax.axhline(level, color=PALETTE["muted"], linewidth=1.1, dashes=(4, 3), zorder=3)
    ax.set(xlim=(-0.02, 1.02), ylim=(0.0, 1.15 * max(float(share.max()), histogram.upper)))
    ax.xaxis.set_ticks([0, 0.25, 0.5, 0.75, 1])
    ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    ax.set_xlabel("probability that was given to smaller values", labelpad=8)
    ax.set_ylabel("rows", labelpad=8)
    ax.annotate(
        "right laws",
        (1.0, level),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=PALETTE["ink"],
        fontsize=FONT_SIZE - 1.5,
        zorder=4,
    )
    return ax
