"""Plots of kernels: the learned kernel, its spectral density, the relevance of inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import ArrayLike

from mercer.errors import UsageError
from mercer.estimation.run import nearest_hint
from mercer.plot.of_models import of_model
from mercer.plot.style import (
    FONT_SIZE,
    PALETTE,
    dress,
    mark,
    name_axes,
    new_axes,
    new_figure,
    note,
    plain,
)
from mercer.posterior.draws import are_drawn
from mercer.spectral.prediction import input_scales

__all__ = ["learned_kernel", "position", "relevance", "spectral_density"]


_MOST_INPUTS: Final = 9
_POINTS: Final = 81
_LETTERS: Final = {2: 26, 3: 16}  # that fit above one of so many panels in a row


def learned_kernel(
    model: Any,
    column: int | str | None = None,
    *,
    longest_lag: float | None = None,
    fig: Figure | None = None,
) -> Figure:
    """Draw the kernel against the lag of one input, the others being equal, with its 90 % band.

    Where the kernel is near 1 the function is all but the same at both rows; near the line at 0,
    its value at one says nothing of that at the other; below, they tend to opposite sides. A
    kernel that rises again has found something that comes back.

    Parameters
    ----------
    model : BaNKRegressor
        Fitted.
    column : int or str, optional
        Position or name of the input; of several inputs those along which the kernel falls fastest
        over one standard deviation, at most 9.
    longest_lag : float, optional
        Where the axis of lags ends, in units of the input. By default three standard deviations,
        or four of the shortest periods if that is less.

    Returns
    -------
    Figure
        A panel for each input.

    Raises
    ------
    UsageError
        If there is no such input, or the longest lag is not positive and finite.
    """
    if longest_lag is not None and not 0.0 < longest_lag < np.inf:
        raise UsageError(f"longest_lag must be positive and finite, got {longest_lag!r}")
    _refuse_others(model)
    scales = input_scales(model)
    shown = (position(model, column),) if column is not None else scales.order[:_MOST_INPUTS]
    shown = shown or (0,)  # all inputs are constant: the kernel is 1 wherever it is looked at
    n_columns = 2 if len(shown) == 4 else min(3, len(shown))
    n_rows = -(-len(shown) // n_columns)
    size = (5.4, 3.6) if len(shown) == 1 else (1.2 + 2.0 * n_columns, 0.5 + 1.75 * n_rows)
    fig = new_figure(fig, *size)
    panels = fig.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
    ends = scales.longest_lags * model.standardizer_.units
    lowest = [
        _draw_panel(ax, model, j, float(ends[j]) if longest_lag is None else longest_lag)
        for ax, j in zip(panels, shown, strict=False)
    ]
    panels[0].set_ylim(min(-0.1, 1.08 * min(lowest)), 1.05)
    for ax in panels[len(shown) :]:
        ax.remove()
    names = [model.feature_labels_[j] for j in shown]
    if len(shown) == 1:
        panels[0].set_xlabel(f"difference in {plain(names[0])}", labelpad=8)
        panels[0].set_ylabel("kernel", labelpad=8)
        return fig
    for ax, name in zip(panels, names, strict=False):
        ax.xaxis.set_major_locator(MaxNLocator(3))
        title = plain(name, _LETTERS[n_columns])
        ax.set_title(title, loc="left", fontsize=FONT_SIZE, color=PALETTE["ink"], pad=3)
    d = len(model.feature_labels_)
    of_all = f" — {len(shown)} of {d}, the fastest first" if len(shown) < d else ""
    fig.supxlabel(
        f"difference in the input, the others equal{of_all}",
        fontsize=FONT_SIZE,
        color=PALETTE["ink"],
    )
    fig.supylabel("kernel", fontsize=FONT_SIZE, color=PALETTE["ink"])
    return fig


def _refuse_others(model: Any) -> None:
    if not hasattr(model, "marginal_spectral_density"):
        raise UsageError(f"this plot is of what BaNK learns, not of a {type(model).__name__}")


def position(model: Any, column: int | str) -> int:
    """Return the position of an input that is given by position or name."""
    names = list(model.feature_labels_)
    if isinstance(column, str):
        if column not in names:
            raise UsageError(f"no input {column!r}{nearest_hint(column, names)}")
        return names.index(column)
    if not 0 <= column < len(names):
        raise UsageError(f"no input {column}: there are {len(names)}, counted from 0")
    return int(column)


def _draw_panel(ax: Axes, model: Any, j: int, end: float) -> float:
    """Draw one input; return the lowest point of its band."""
    dress(ax)
    lags = np.linspace(0.0, end, _POINTS)
    mean, lower, upper = model.kernel(lags[:, np.newaxis] * np.eye(len(model.feature_labels_))[j])
    blue = PALETTE["series-1"]
    ax.axhline(0.0, color=PALETTE["muted"], linewidth=1.1, dashes=(4, 3), zorder=1)
    mark(ax.fill_between(lags, lower, upper, color=blue, alpha=0.25, linewidth=0), f"band-{j}")
    (line,) = ax.plot(lags, mean, color=blue, linewidth=1.6)
    mark(line, f"kernel-{j}")
    ax.set_xlim(0.0, end)
    return float(lower.min())


# Spectral density of one input: how much of each frequency the learned function has.

_SPECTRUM_POINTS: Final = 241
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
    _refuse_others(model)
    j = position(model, column)
    ax = new_axes(ax, 5.4, 3.6)
    drawn = np.abs(model.posterior_.flat("frequencies")[:, :, j]) / model.standardizer_.units[j]
    end = float(np.quantile(drawn, _SHOWN)) or 1.0
    frequencies = np.linspace(0.0, end, _SPECTRUM_POINTS)
    mean, lower, upper = model.marginal_spectral_density(frequencies, j)
    blue = PALETTE["series-1"]
    band = ax.fill_between(frequencies, lower, upper, color=blue, alpha=0.25, linewidth=0)
    mark(band, "band")
    (line,) = ax.plot(frequencies, mean, color=blue, linewidth=1.6)
    mark(line, "density")
    ax.set(xlim=(0.0, end), ylim=(0.0, 1.05 * float(upper.max())))
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.yaxis.set_major_locator(MaxNLocator(5))
    name_axes(ax, f"frequency of {plain(model.feature_labels_[j])}, radians per unit", "density")
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


# Relevance of each input: the posterior of its weight, beside what the prior alone says.

_MOST_RELEVANT_INPUTS: Final = 30


@of_model
def relevance(
    weights: ArrayLike,
    names: Sequence[str],
    *,
    prior_interval: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw median, 50 % and 90 % interval of each input's weight, the greatest on top.

    The weight is the inverse squared lengthscale of the standardised input: a prediction changes
    fast along an input of great weight, and slowly, if at all, along one of small weight.

    Parameters
    ----------
    weights : array_like of shape (n_total, d)
        Positive posterior draws.
    names : sequence of d str
        Names of the inputs. A fitted Gaussian process alone, in place of both, has all of them.
    prior_interval : (low, high), optional
        Shaded in grey: the 90 % interval of the prior.

    Returns
    -------
    Axes
        The axes; of more than 30 inputs the 30 with the greatest median, and no weight that was
        not drawn, as of hundreds of inputs only those of few are.

    Raises
    ------
    UsageError
        If weights and names do not fit together, or a weight is not positive and finite.
    """
    W = np.asarray(weights, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] == 0 or W.shape[1] != len(names) or not len(names):
        raise UsageError(f"weights of shape {W.shape} do not fit {len(names)} names of inputs")
    if not (np.isfinite(W).all() and (W > 0).all()):
        raise UsageError("weights must be positive and finite")
    order = np.argsort(-np.median(W, axis=0), kind="stable")
    order = order[are_drawn(W)[order]][:_MOST_RELEVANT_INPUTS]
    ax = new_axes(ax, 6.2, 1.2 + 0.38 * len(order), grid="x")
    q05, q25, q50, q75, q95 = np.quantile(W[:, order], [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    rows = np.arange(len(order))
    blue = PALETTE["series-1"]
    mark(ax.hlines(rows, q05, q95, color=blue, linewidth=1.6, zorder=2), "interval-90")
    mark(ax.hlines(rows, q25, q75, color=blue, linewidth=6.0, zorder=3), "interval-50")
    (medians,) = ax.plot(
        q50, rows, "o", color=PALETTE["paper"], markeredgecolor=blue, markersize=7, zorder=4
    )
    medians.set_markeredgewidth(1.8)
    mark(medians, "medians")
    ax.set_xscale("log")
    ax.set(ylim=(len(order) - 0.4, -0.6), yticks=rows)
    ax.set_yticklabels([plain(names[i]) for i in order], color=PALETTE["ink"])
    if prior_interval is not None:
        ax.axvspan(*prior_interval, color=PALETTE["band"], alpha=0.55, linewidth=0, zorder=0)
        note(ax, "grey: 90 % of the prior")
    _label_powers(ax)
    of_all = f" — {len(order)} greatest of {len(names)}" if len(order) < len(names) else ""
    ax.set_xlabel(f"weight of the input (log scale){of_all}", labelpad=8)
    return ax


def _label_powers(ax: Axes) -> None:
    """Write 0.01, 0.1, 1, 10 (beyond that 10⁻⁵): no mathematics, which would need its own font.

    At least two powers of ten are shown, so that the axis never goes without labels.
    """
    low, high = np.log10(ax.get_xlim())
    spare = max(0.0, 2.0 - (high - low)) / 2
    ax.set_xlim(10 ** (low - spare), 10 ** (high + spare))
    ax.xaxis.set_major_locator(LogLocator(base=10.0, numticks=7))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _power(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _power(value: float) -> str:
    exponent = round(float(np.log10(value)))
    if -3 <= exponent <= 4:
        return f"{value:g}"
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
