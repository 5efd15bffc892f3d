"""Decision boundaries of sampled classifiers over the data, for two inputs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from mercer.errors import UsageError
from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_axes, plain

__all__ = ["boundaries"]

_GRID: Final = 60  # points along each axis
_BLOCK: Final = 400  # points at a time: every draw is evaluated there
_MARKERS: Final = (("o", "series-1"), ("s", "series-2"))


def boundaries(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    ringed: ArrayLike | None = None,
    n_classifiers: int = 50,
    ax: Axes | None = None,
) -> Axes:
    """Draw where sampled classifiers change their mind, over the rows that they learned from.

    Where the lines bundle, the data decide; where they fan out, they do not.

    Parameters
    ----------
    model : KernelGibbsClassifier
        Fitted on two inputs and two classes.
    X : array_like of shape (n, 2)
        Rows to draw, in the units of the inputs.
    y : array_like of shape (n,)
        Their labels.
    ringed : array_like of shape (n,), bool, optional
        Rows to ring: those whose label is wrong more likely than not, say.
    n_classifiers : int, default=50
        How many of the draws, evenly spaced.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes

    Raises
    ------
    UsageError
        If there are not two inputs and two classes, or rows and labels do not fit together.
    """
    rows, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    if rows.ndim != 2 or rows.shape[1] != 2 or model.n_features_in_ != 2:
        raise UsageError(f"boundaries are drawn over two inputs, not {rows.shape[-1]}")
    if len(model.classes_) != 2:
        raise UsageError(f"boundaries are drawn between two classes, not {len(model.classes_)}")
    if labels.shape != rows.shape[:1]:
        raise UsageError(f"labels of shape {labels.shape} do not fit {len(rows)} rows")
    ax = new_axes(ax, 5.4, 4.8)
    dress(ax)
    axes = [_margin(column) for column in rows.T]
    values = _on_grid(model, axes, n_classifiers)
    for j, f in enumerate(values):
        if f.min() < 0.0 < f.max():
            lines = ax.contour(
                *axes, f, levels=[0.0], colors=PALETTE["muted"], linewidths=0.6, alpha=0.45
            )
            mark(lines, f"boundary-{j}")
    for c, (shape, colour) in enumerate(_MARKERS):
        mine = labels == model.classes_[c]
        (dots,) = ax.plot(
            *rows[mine].T, shape, color=PALETTE[colour], markersize=5.0, linestyle="none",
            markeredgecolor=PALETTE["paper"], markeredgewidth=0.7, zorder=3,
            label=plain(str(model.classes_[c])),
        )  # fmt: skip
        mark(dots, f"class-{c}")
    if ringed is not None:
        (rings,) = ax.plot(
            *rows[np.asarray(ringed, dtype=bool)].T, "o", color=PALETTE["ink"], fillstyle="none",
            markersize=11.0, markeredgewidth=1.4, zorder=4, label="label suspected",
        )  # fmt: skip
        mark(rings, "ringed")
    ax.set(xlim=axes[0][[0, -1]], ylim=axes[1][[0, -1]])
    ax.set_xlabel(plain(model.feature_labels_[0]), labelpad=8)
    ax.set_ylabel(plain(model.feature_labels_[1]), labelpad=8)
    ax.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False, borderaxespad=0.2,
        fontsize=FONT_SIZE - 1, labelcolor=PALETTE["ink"], handletextpad=0.2, columnspacing=1.0,
    )  # fmt: skip
    return ax


def _margin(column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points from a little below the smallest to a little above the largest value."""
    spread = float(np.ptp(column)) or 1.0
    return np.linspace(column.min() - 0.06 * spread, column.max() + 0.06 * spread, _GRID)


def _on_grid(model: Any, axes: list[NDArray[np.float64]], n: int) -> NDArray[np.float64]:
    """Latent values of some draws on the grid: shape (at most n, _GRID, _GRID)."""
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    total = model.posterior_.n_total
    picked = np.unique(np.linspace(0, total - 1, n).round().astype(int))
    blocks = [
        model.margin_draws(grid[begin : begin + _BLOCK])[picked]
        for begin in range(0, len(grid), _BLOCK)
    ]
    return np.concatenate(blocks, axis=1).reshape(-1, _GRID, _GRID)
