"""Weighted particles: how probable each value of a quantity is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from mercer.plot.scalars import choose
from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_figure, plain
from mercer.posterior.draws import Draws

__all__ = ["particles"]

_MOST_VALUES: Final = 12  # that get a bar each, unless they are whole numbers
_BARS: Final = 24


def particles(
    draws: Draws, names: Sequence[str] | None = None, *, fig: Figure | None = None
) -> Figure:
    """Draw the posterior of some quantities from draws with weights, a panel each.

    Parameters
    ----------
    draws : Draws
        ``posterior_``; without weights all count alike.
    names : sequence of str, optional
        Variables of the draws; those that are monitored by default.
    fig : Figure, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Figure

    Raises
    ------
    UsageError
        If a name is unknown, or nothing is left to show.
    """
    shown = choose(draws, names)
    logs = np.zeros(draws.n_total) if draws.log_weights is None else draws.log_weights.ravel()
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    n_columns = min(3, len(shown))
    n_rows = -(-len(shown) // n_columns)
    fig = new_figure(fig, 1.2 + 2.0 * n_columns, 0.4 + 2.2 * n_rows)
    panels = fig.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax, scalar in zip(panels, shown, strict=False):
        _draw(ax, scalar.name, scalar.values.ravel(), weights)
    for ax in panels[len(shown) :]:
        ax.remove()
    return fig


def _draw(ax: Axes, name: str, values: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
    dress(ax, grid="y")
    ax.set_title(plain(name), loc="left", fontsize=FONT_SIZE, color=PALETTE["ink"], pad=4)
    distinct, which = np.unique(values, return_inverse=True)
    is_whole = bool(np.all(distinct == np.round(distinct)))
    if is_whole or len(distinct) > _MOST_VALUES:
        edges = _edges(distinct, is_whole)
        shares = np.histogram(values, edges, weights=weights)[0]
        places, widths = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
        ax.xaxis.set_major_locator(MaxNLocator(4 if is_whole else 3, integer=is_whole))
    else:
        shares = np.bincount(which, weights)
        places, widths = np.arange(len(distinct), dtype=np.float64), np.ones(len(distinct))
        ax.set_xticks(places[:: 1 + len(places) // 5])
        ax.set_xticklabels([f"{v:.2g}" for v in distinct[:: 1 + len(places) // 5]])
    bars = ax.bar(places, shares, 0.9 * widths, color=PALETTE["series-1"], alpha=0.75, linewidth=0)
    for i, bar in enumerate(bars):
        mark(bar, f"{name}-{i}")
    ax.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


def _edges(distinct: NDArray[np.float64], is_whole: bool) -> NDArray[np.float64]:
    """Ends of the bars, of equal widths; around whole numbers if these are some."""
    low, high = float(distinct[0]), float(distinct[-1])
    if is_whole:
        width = max(1, -(-int(high - low + 1) // _BARS))
        return np.asarray(np.arange(low - 0.5, high + width + 0.5, width))
    return np.asarray(np.linspace(low, high, _BARS + 1))
