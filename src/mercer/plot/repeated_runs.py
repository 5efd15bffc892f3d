"""Dots: one measured number for each method and repeat, with the published figure beside them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from mercer.plot.style import FONT_SIZE, PALETTE, dress, new_axes, plain

__all__ = ["repeats"]


def repeats(
    measured: Mapping[str, NDArray[np.float64]],
    *,
    published: Mapping[str, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw every repeat as a dot, the mean as a bar, and published figures as open diamonds.

    Parameters
    ----------
    measured : mapping of method to ndarray of shape (n_repeats,)
    published : mapping of method to float, optional
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes
    """
    ax = new_axes(ax, 7.0, 1.4 + 0.42 * len(measured))
    dress(ax, grid="x")
    for row, (method, values) in enumerate(measured.items()):
        offsets = np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else np.zeros(1)
        ax.plot(values, row + offsets, "o", markersize=4, alpha=0.45, color=PALETTE["series-1"])
        mean = float(np.mean(values))
        ax.plot([mean, mean], [row - 0.32, row + 0.32], color=PALETTE["ink"], linewidth=2)
        if published and method in published:
            ax.plot(
                published[method], row, "D", markersize=8, fillstyle="none",
                markeredgewidth=1.6, color=PALETTE["series-2"],
            )  # fmt: skip
    ax.set_yticks(range(len(measured)), [plain(method) for method in measured])
    ax.tick_params(axis="y", labelcolor=PALETTE["ink"])
    ax.invert_yaxis()
    ax.set_title(
        "dots: repeats; bar: their mean; diamond: published",
        fontsize=FONT_SIZE - 1, color=PALETTE["muted"], loc="left",
    )  # fmt: skip
    return ax
