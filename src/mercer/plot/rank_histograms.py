"""Rank plot: whether every chain visits high and low values of a quantity equally often."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import binom, rankdata

from mercer.plot.scalars import Scalar, choose
from mercer.plot.style import CHAIN_COLOURS, FONT_SIZE, PALETTE, dress, mark, new_figure, plain
from mercer.posterior.draws import Draws

__all__ = ["ranks"]


def ranks(draws: Draws, names: Sequence[str] | None = None, *, fig: Figure | None = None) -> Figure:
    """Draw a histogram of each chain's ranks among all draws, one row a quantity.

    Where the chains agree, every chain's line is level, up to chance: inside the grey band lie
    98 % of the steps of chains that agree and whose draws are independent. Draws that resemble
    their neighbours leave the band somewhat more often; a slope, or a chain that keeps to one
    side, means that the chains have not met.

    Parameters
    ----------
    draws : Draws
    names : sequence of str, optional
        Variables or single entries; the monitored ones if None. At most 12 scalars are shown.
    fig : Figure, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Figure

    Raises
    ------
    UsageError
        If a name is unknown.
    """
    shown = choose(draws, names)
    fig = new_figure(fig, 6.2, 0.6 + 0.95 * len(shown))
    panels = fig.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    n_draws = shown[0].values.shape[1]
    n_bins = int(np.clip(n_draws // 12, 2, 15))
    for row, (ax, scalar) in enumerate(zip(panels, shown, strict=True)):
        dress(ax, grid="x")
        ax.set_title(
            plain(scalar.name), loc="left", fontsize=FONT_SIZE, color=PALETTE["ink"], pad=3
        )
        _draw_panel(ax, scalar, n_bins, row)
    panels[-1].set_xlim(-0.01, 1.01)
    panels[-1].set_xticks([0, 0.25, 0.5, 0.75, 1], ["lowest", "", "middle", "", "highest"])
    for place, side in ((0, "left"), (-1, "right")):
        panels[-1].get_xticklabels()[place].set_horizontalalignment(side)
    panels[-1].set_xlabel("rank among all draws", labelpad=6)
    return fig


def _draw_panel(ax: Axes, scalar: Scalar, n_bins: int, row: int) -> None:
    """Draw one quantity: the band of chance, then each chain's count per bin over its mean."""
    n_draws = scalar.values.shape[1]
    expected = n_draws / n_bins
    low, high = binom.ppf([0.01, 0.99], n_draws, 1 / n_bins) / expected
    ax.axhspan(low, high, color=PALETTE["band"], alpha=0.55, linewidth=0)
    ax.set_yticks([1.0], [""])
    if np.ptp(scalar.values) == 0:
        mark(ax.axhline(1.0, color=PALETTE["muted"], linewidth=1.0), f"{row}-constant")
        ax.annotate("constant: nothing to rank", (0.5, 1.02), ha="center", color=PALETTE["muted"])
        ax.set_ylim(0, 2.1)
        return
    edges = np.linspace(0, 1, n_bins + 1)
    for chain, counts in enumerate(_rank_counts(scalar.values, edges)):
        colour = CHAIN_COLOURS[chain % len(CHAIN_COLOURS)]
        line = ax.stairs(counts / expected, edges, baseline=None, color=colour, linewidth=1.3)
        line.set_alpha(0.9)
        mark(line, f"{row}-{chain}")
    top = max(2.0, ax.dataLim.y1)
    ax.set_ylim(0, 1.05 * top)


def _rank_counts(values: NDArray[np.float64], edges: NDArray[np.float64]) -> list[NDArray[np.int_]]:
    """Return each chain's counts per bin of the relative rank (r - 1/2) / N among all N draws."""
    relative = (rankdata(values).reshape(values.shape) - 0.5) / values.size
    return [np.histogram(chain, bins=edges)[0] for chain in relative]
