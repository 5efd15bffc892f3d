"""Reliability diagram: how often things happened that the model called so and so probable."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import ArrayLike

from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_axes
from mercer.posterior.scores import ReliabilityCurve

__all__ = ["reliability"]


def reliability(
    curve: ReliabilityCurve, *, probabilities: ArrayLike | None = None, ax: Axes | None = None
) -> Axes:
    """Draw observed frequency against predicted probability, with 90 % intervals.

    Points on the diagonal are calibrated predictions; a bar that crosses it is no evidence of
    the contrary.

    Parameters
    ----------
    curve : ReliabilityCurve
        The bins, from `mercer.posterior.scores.reliability_curve`.
    probabilities : array_like of shape (n,), optional
        The predicted probabilities themselves: adds their histogram above the diagram.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes
        The axes of the diagram.
    """
    ax = new_axes(ax, 5.4, 5.4)
    dress(ax)
    ax.plot([0, 1], [0, 1], color=PALETTE["muted"], linewidth=1.1, dashes=(4, 3), zorder=1)
    lengths = np.stack([curve.observed - curve.lower, curve.upper - curve.observed])
    bars = ax.errorbar(
        curve.mean_predicted,
        curve.observed,
        yerr=np.maximum(lengths, 0.0),
        fmt="o",
        color=PALETTE["series-1"],
        markersize=6.5,
        markeredgecolor=PALETTE["paper"],
        markeredgewidth=1.0,
        elinewidth=1.6,
        zorder=3,
    )
    points, _, intervals = bars.lines
    mark(points, "points")
    mark(intervals[0], "intervals")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.set_aspect("equal", adjustable="box")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([0, 0.25, 0.5, 0.75, 1])
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    ax.set_xlabel("predicted probability", labelpad=8)
    ax.set_ylabel("observed frequency", labelpad=8)
    ax.annotate(
        "calibrated",
        (0.9, 0.9),
        xytext=(0, -5),
        textcoords="offset points",
        rotation=45,
        rotation_mode="anchor",
        ha="center",
        va="top",
        color=PALETTE["muted"],
        fontsize=FONT_SIZE - 1.5,
    )
    if probabilities is not None:
        _histogram(ax, probabilities)
    return ax


def _histogram(ax: Axes, probabilities: ArrayLike) -> None:
    """Draw how many rows got which probability, in a strip above the diagram."""
    strip = ax.inset_axes((0, 1.03, 1, 0.13), sharex=ax)
    strip.set_axis_off()
    counts, edges = np.histogram(np.asarray(probabilities), bins=20, range=(0.0, 1.0))
    bars = strip.bar(
        edges[:-1],
        counts,
        width=0.042,
        align="edge",
        color=PALETTE["muted"],
        alpha=0.6,
        linewidth=0,
    )
    for i, bar in enumerate(bars):
        mark(bar, f"count-{i}")
    strip.set_ylim(0, counts.max() * 1.05)
    strip.text(
        1.0,
        0.98,
        f"{counts.sum()} rows",
        transform=strip.transAxes,
        ha="right",
        va="top",
        color=PALETTE["muted"],
        fontsize=FONT_SIZE - 1.5,
    )
