"""Learned kernel: how alike the function is at two rows, by how far apart they are."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mercer.errors import UsageError
from mercer.estimation.options import nearest_hint
from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_figure, plain
from mercer.spectral.inputs import input_scales

__all__ = ["learned_kernel", "position"]

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
    fig : Figure, optional
        Where to draw; a new figure otherwise.

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
    d = model.n_features_in_
    note = f" — {len(shown)} of {d}, the fastest first" if len(shown) < d else ""
    fig.supxlabel(
        f"difference in the input, the others equal{note}", fontsize=FONT_SIZE, color=PALETTE["ink"]
    )
    fig.supylabel("kernel", fontsize=FONT_SIZE, color=PALETTE["ink"])
    return fig


def position(model: Any, column: int | str) -> int:
    """Return the position of an input that is given by position or name.

    Raises
    ------
    UsageError
        If there is none, naming the nearest.
    """
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
    mean, lower, upper = model.kernel(lags[:, np.newaxis] * np.eye(model.n_features_in_)[j])
    blue = PALETTE["series-1"]
    ax.axhline(0.0, color=PALETTE["muted"], linewidth=1.1, dashes=(4, 3), zorder=1)
    mark(ax.fill_between(lags, lower, upper, color=blue, alpha=0.25, linewidth=0), f"band-{j}")
    (line,) = ax.plot(lags, mean, color=blue, linewidth=1.6)
    mark(line, f"kernel-{j}")
    ax.set_xlim(0.0, end)
    return float(lower.min())
