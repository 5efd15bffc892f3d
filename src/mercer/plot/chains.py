"""Plots of draws: traces, ranks, particles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from scipy.stats import binom

from mercer.errors import UsageError
from mercer.plot.of_models import of_model
from mercer.plot.style import (
    CHAIN_COLOURS,
    FONT_SIZE,
    PALETTE,
    Grid,
    dress,
    mark,
    name_shares,
    new_figure,
    plain,
)
from mercer.posterior.draws import Draws

__all__ = ["particles", "ranks", "trace"]


MOST_SCALARS: Final = 12


@dataclass(frozen=True)
class Scalar:
    """One number per draw, such as "log_density" or "log_weight[glu]"."""

    name: str
    values: NDArray[np.float64]  # (n_chains, n_draws)


def choose(draws: Draws, names: Sequence[str] | None) -> tuple[Scalar, ...]:
    """Return the named scalars, at most 12 of them; the monitored variables if ``names`` is None.

    A name is a variable ("log_weight", which stands for all of its entries) or an entry
    ("log_weight[glu]").
    """
    if names is None:
        names = draws.monitored
    names = [names] if isinstance(names, str) else names
    single = {entry: name for name in draws.variables for entry in draws.entry_names(name)}
    chosen: list[str] = []
    for name in names:
        if name in draws.variables:
            chosen.extend(draws.entry_names(name))
        elif name in single:
            chosen.append(name)
        else:
            raise UsageError(f"no variable {name!r} among the draws: {', '.join(draws.variables)}")
    if not chosen:
        raise UsageError("nothing to show: no variable is named, and none is monitored")
    return tuple(_scalar(draws, entry, single[entry]) for entry in chosen[:MOST_SCALARS])


def _scalar(draws: Draws, entry: str, variable: str) -> Scalar:
    position = draws.entry_names(variable).index(entry)
    values = draws.variables[variable].reshape(draws.n_chains, draws.n_draws, -1)
    return Scalar(entry, np.asarray(values[:, :, position], dtype=np.float64))


# Trace plot: every chain's path through each quantity, one row a quantity.

_MOST_POINTS: Final = 300


@of_model
def trace(draws: Draws, names: Sequence[str] | None = None, *, fig: Figure | None = None) -> Figure:
    """Draw the chains of each quantity, one row a quantity and one colour a chain.

    Chains that have found the posterior lie on top of each other and wander around one level.

    Parameters
    ----------
    draws : Draws
        ``posterior_``, or the fitted estimator.
    names : sequence of str, optional
        Variables or single entries; the monitored ones if None. At most 12 scalars are shown.

    Returns
    -------
    Figure
        Chains longer than 300 draws show every k-th draw, and the axis says so.

    Raises
    ------
    UsageError
        If a name is unknown, or the draws have weights and so are no chains.
    """
    fig, shown, panels = _panels(draws, names, fig, "y")
    n_draws = shown[0].values.shape[1]
    stride = -(-n_draws // _MOST_POINTS)
    at = np.arange(0, n_draws, stride)
    for row, (ax, scalar) in enumerate(zip(panels, shown, strict=True)):
        for chain, values in enumerate(scalar.values):
            colour = CHAIN_COLOURS[chain % len(CHAIN_COLOURS)]
            (line,) = ax.plot(at + 1, values[at], color=colour, linewidth=0.8, alpha=0.85)
            mark(line, f"{row}-{chain}")
        ax.yaxis.set_major_locator(MaxNLocator(3))
        ax.margins(x=0.01)
    panels[-1].xaxis.set_major_locator(MaxNLocator(5, integer=True))
    note = f" (one in {stride} shown)" if stride > 1 else ""
    panels[-1].set_xlabel(f"draw{note}", labelpad=6)
    return fig


# Rank plot: whether every chain visits high and low values of a quantity equally often.


def _panels(
    draws: Draws, names: Sequence[str] | None, fig: Figure | None, grid: Grid
) -> tuple[Figure, tuple[Scalar, ...], NDArray[Any]]:
    """Choose scalars, and make dressed axes one below the other with their names."""
    if draws.log_weights is not None:
        raise UsageError("draws with weights are no chains: particles draws what they say")
    shown = choose(draws, names)
    fig = new_figure(fig, 6.2, 0.6 + 0.95 * len(shown))
    panels = fig.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for ax, scalar in zip(panels, shown, strict=True):
        dress(ax, grid=grid)
        ax.set_title(
            plain(scalar.name), loc="left", fontsize=FONT_SIZE, color=PALETTE["ink"], pad=3
        )
    return fig, shown, panels


@of_model
def ranks(draws: Draws, names: Sequence[str] | None = None, *, fig: Figure | None = None) -> Figure:
    """Draw a histogram of each chain's ranks among all draws, one row a quantity.

    Where the chains agree, every chain's line is level, up to chance: inside the grey band lie
    98 % of the steps of chains that agree and whose draws are independent. Draws that resemble
    their neighbours leave the band somewhat more often; a slope, or a chain that keeps to one
    side, means that the chains have not met.

    Parameters
    ----------
    draws : Draws
        ``posterior_``, or the fitted estimator.
    names : sequence of str, optional
        Variables or single entries; the monitored ones if None. At most 12 scalars are shown.

    Raises
    ------
    UsageError
        If a name is unknown, or the draws have weights and so are no chains.
    """
    fig, shown, panels = _panels(draws, names, fig, "x")
    n_draws = shown[0].values.shape[1]
    n_bins = int(np.clip(n_draws // 12, 2, 15))
    for row, (ax, scalar) in enumerate(zip(panels, shown, strict=True)):
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


def _rank_counts(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each chain's counts per bin of the relative rank among all draws, (n_chains, n_bins).

    Equal draws, as of a count, share their ranks evenly: each is spread over all of these.
    """
    levels, at = np.unique(values, return_inverse=True)
    counts = [np.bincount(chain, minlength=len(levels)) for chain in at.reshape(values.shape)]
    below = np.pad(np.cumsum(counts, axis=1), ((0, 0), (1, 0)))
    ends = below.sum(axis=0) / values.size
    return np.diff([np.interp(edges, ends, chain) for chain in below])


# Weighted particles: how probable each value of a quantity is.

_MOST_VALUES: Final = 12  # that get a bar each, unless they are whole numbers
_BARS: Final = 24
_LONGEST_TITLE: Final = 19  # characters of a line above a panel


@of_model
def particles(
    draws: Draws, names: Sequence[str] | None = None, *, fig: Figure | None = None
) -> Figure:
    """Draw the posterior of some quantities from draws with weights, a panel each.

    Parameters
    ----------
    draws : Draws
        ``posterior_``, or the fitted estimator; without weights all count alike.
    names : sequence of str, optional
        Variables of the draws; those that are monitored by default.

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
    head, mark_of_entry, entry = name.partition("[")
    title = plain(head, _LONGEST_TITLE)
    if mark_of_entry:  # of an input, whose name may be long
        title += "\n" + plain(f"[{entry}", _LONGEST_TITLE)
    ax.set_title(title, loc="left", fontsize=FONT_SIZE, color=PALETTE["ink"], pad=4)
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
    name_shares(ax.yaxis)


def _edges(distinct: NDArray[np.float64], is_whole: bool) -> NDArray[np.float64]:
    """Ends of the bars, of equal widths; around whole numbers if these are some."""
    low, high = float(distinct[0]), float(distinct[-1])
    if is_whole:
        width = max(1, -(-int(high - low + 1) // _BARS))
        return np.asarray(np.arange(low - 0.5, high + width + 0.5, width))
    return np.asarray(np.linspace(low, high, _BARS + 1))
