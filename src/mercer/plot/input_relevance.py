"""Relevance of each input: the posterior of its weight, beside what the prior alone says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import ArrayLike

from mercer.errors import UsageError
from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_axes, plain

__all__ = ["relevance"]

_MOST_INPUTS: Final = 30


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
        Names of the inputs.
    prior_interval : (low, high), optional
        Shaded in grey: the 90 % interval of the prior.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes
        The axes; of more than 30 inputs the 30 with the greatest median.

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
    order = np.argsort(-np.median(W, axis=0), kind="stable")[:_MOST_INPUTS]
    ax = new_axes(ax, 6.2, 1.2 + 0.38 * len(order))
    dress(ax, grid="x")
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
        _shade_prior(ax, prior_interval)
    _label_powers(ax)
    note = f" — {_MOST_INPUTS} greatest of {len(names)}" if len(names) > _MOST_INPUTS else ""
    ax.set_xlabel(f"weight of the input (log scale){note}", labelpad=8)
    return ax


def _shade_prior(ax: Axes, prior_interval: tuple[float, float]) -> None:
    low, high = prior_interval
    ax.axvspan(low, high, color=PALETTE["band"], alpha=0.55, linewidth=0, zorder=0)
    ax.annotate(
        "grey: 90 % of the prior",
        (1.0, 1.0),
        xycoords="axes fraction",
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=PALETTE["muted"],
        fontsize=FONT_SIZE - 1.5,
    )


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
