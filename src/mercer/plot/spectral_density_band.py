"""Spectral density of one input: how much of each frequency the learned function has."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from mercer.plot.learned_kernel_lags import position
from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_axes, plain

__all__ = ["spectral_density"]

_POINTS: Final = 241
_SHOWN: Final = 0.99  # of the drawn frequencies
_FEWEST_PERIODS: Final = 2  # that have room on the axis of periods, or there is none
_ROUND: Final = (1, 1.2, 1.5, 2, 3, 4, 5, 6, 8)
_ROOM: Final = 0.14  # between two of them, as a share of the axis


def spectral_density(model: Any, column: int | str = 0, *, ax: Axes | None = None) -> Axes:
    """Draw the density of the frequencies of one input, with its 90 % band.

    A density that is highest at 0 is that of slow changes; a hill away from it, of something that
    comes back at the period above it.

    Parameters
    ----------
    model : BaNKRegressor
        Fitted.
    column : int or str, default=0
        Position or name of the input.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes
        From frequency 0 to one that 99 % of the drawn ones lie below, in radians per unit of the
        input. Negative frequencies have the density of positive ones. Periods are on top, but for
        a warped input, which has none in its own units.

    Raises
    ------
    UsageError
        If there is no such input.
    """
    j = position(model, column)
    ax = new_axes(ax, 5.4, 3.6)
    dress(ax)
    drawn = np.abs(model.posterior_.flat("frequencies")[:, :, j]) / model.standardizer_.units[j]
    end = float(np.quantile(drawn, _SHOWN)) or 1.0
    frequencies = np.linspace(0.0, end, _POINTS)
    mean, lower, upper = model.marginal_spectral_density(frequencies, j)
    blue = PALETTE["series-1"]
    band = ax.fill_between(frequencies, lower, upper, color=blue, alpha=0.25, linewidth=0)
    mark(band, "band")
    (line,) = ax.plot(frequencies, mean, color=blue, linewidth=1.6)
    mark(line, "density")
    ax.set(xlim=(0.0, end), ylim=(0.0, 1.05 * float(upper.max())))
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    ax.set_xlabel(f"frequency of {plain(model.feature_labels_[j])}, radians per unit", labelpad=8)
    ax.set_ylabel("density", labelpad=8)
    periods = _nice_periods(end)
    if len(periods) >= _FEWEST_PERIODS and not model.standardizer_.is_warped[j]:
        _draw_periods(ax, periods)
    return ax


def _nice_periods(end: float) -> list[float]:
    """Return round periods, the shortest first, with room between them on the axis."""
    decade = math.floor(math.log10(2.0 * math.pi / end))
    chosen: list[float] = []
    last = math.inf
    for power in range(decade, decade + 3):
        for factor in _ROUND:
            period = float(f"{factor}e{power}")
            place = 2.0 * math.pi / period / end
            if place <= 1.0 and last - place >= _ROOM and place >= _ROOM / 2:
                chosen.append(period)
                last = place
    return chosen


def _draw_periods(ax: Axes, periods: list[float]) -> None:
    top = ax.secondary_xaxis("top")
    top.set_gid("periods")
    top.spines["top"].set_visible(False)
    top.set_xticks(2.0 * math.pi / np.array(periods), [f"{period:g}" for period in periods])
    top.tick_params(length=3, color=PALETTE["muted"], labelsize=FONT_SIZE - 0.5, pad=3)
    top.tick_params(labelcolor=PALETTE["muted"])
    top.set_xlabel("period", labelpad=6, color=PALETTE["ink"], fontsize=FONT_SIZE)
