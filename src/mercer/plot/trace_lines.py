"""Trace plot: every chain's path through each quantity, one row a quantity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mercer.plot.scalars import choose
from mercer.plot.style import CHAIN_COLOURS, FONT_SIZE, PALETTE, dress, mark, new_figure, plain
from mercer.posterior.draws import Draws

__all__ = ["trace"]

_MOST_POINTS: Final = 300


def trace(draws: Draws, names: Sequence[str] | None = None, *, fig: Figure | None = None) -> Figure:
    """Draw the chains of each quantity, one row a quantity and one colour a chain.

    Chains that have found the posterior lie on top of each other and wander around one level.

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
        Of chains longer than 300 draws every k-th draw is shown, and the axis says so.

    Raises
    ------
    UsageError
        If a name is unknown.
    """
    shown = choose(draws, names)
    fig = new_figure(fig, 6.2, 0.6 + 0.95 * len(shown))
    panels = fig.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    n_draws = shown[0].values.shape[1]
    stride = -(-n_draws // _MOST_POINTS)
    at = np.arange(0, n_draws, stride)
    for row, (ax, scalar) in enumerate(zip(panels, shown, strict=True)):
        dress(ax, grid="y")
        for chain, values in enumerate(scalar.values):
            colour = CHAIN_COLOURS[chain % len(CHAIN_COLOURS)]
            (line,) = ax.plot(at + 1, values[at], color=colour, linewidth=0.8, alpha=0.85)
            mark(line, f"{row}-{chain}")
        ax.set_title(
            plain(scalar.name), loc="left", fontsize=FONT_SIZE, color=PALETTE["ink"], pad=3
        )
        ax.yaxis.set_major_locator(MaxNLocator(3))
        ax.margins(x=0.01)
    panels[-1].xaxis.set_major_locator(MaxNLocator(5, integer=True))
    note = f" (one in {stride} shown)" if stride > 1 else ""
    panels[-1].set_xlabel(f"draw{note}", labelpad=6)
    return fig
