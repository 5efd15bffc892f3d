"""Predictions along one input: the mean, the interval of new observations, the data."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from mercer.errors import UsageError
from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_axes, plain

__all__ = ["predicted_band"]

_POINTS: Final = 301
_LEVEL: Final = 0.9


def predicted_band(
    model: Any, X: ArrayLike, y: ArrayLike | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw a regression on one input: posterior mean, 90 % interval of new observations, data.

    Nine of ten new observations should fall into the band; where it widens, the model has seen
    nothing like it.

    Parameters
    ----------
    model : regressor
        Fitted on one input; with ``predict`` and ``predict_interval``.
    X : array_like of shape (n, 1) or (n,)
        The curve goes from the smallest to the largest of these inputs.
    y : array_like of shape (n,), optional
        Observed targets, drawn as dots; those that are NaN are not.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes

    Raises
    ------
    UsageError
        If the model has several inputs, or inputs and targets do not fit together.
    """
    if model.n_features_in_ != 1:
        raise UsageError(
            f"predictions are drawn along one input, and the model has {model.n_features_in_}"
        )
    x = np.asarray(X, dtype=np.float64)
    x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x
    if x.ndim != 1 or not len(x) or not np.isfinite(x).all():
        raise UsageError(f"inputs must be finite, of shape (n, 1) or (n,); got {np.shape(X)}")
    ax = new_axes(ax, 6.2, 3.8)
    dress(ax)
    grid = np.linspace(x.min(), x.max(), _POINTS)
    with warnings.catch_warnings():  # a model of a frame misses the name of its column
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        mean = model.predict(grid[:, np.newaxis])
        lower, upper = model.predict_interval(grid[:, np.newaxis], _LEVEL)
    blue = PALETTE["series-1"]
    band = ax.fill_between(grid, lower, upper, color=blue, alpha=0.2, linewidth=0, label="90 %")
    mark(band, "interval")
    (line,) = ax.plot(grid, mean, color=blue, linewidth=1.8, label="mean", zorder=3)
    mark(line, "mean")
    if y is not None:
        _draw_data(ax, x, np.asarray(y, dtype=np.float64))
    ax.set_xlabel(plain(model.feature_labels_[0]), labelpad=8)
    ax.set_ylabel("target", labelpad=8)
    ax.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False, borderaxespad=0.2,
        fontsize=FONT_SIZE - 1, labelcolor=PALETTE["ink"], handletextpad=0.5, columnspacing=1.2,
    )  # fmt: skip
    return ax


def _draw_data(ax: Axes, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
    if y.shape != x.shape:
        raise UsageError(f"targets of shape {y.shape} do not fit {len(x)} inputs")
    (dots,) = ax.plot(
        x, y, "o", color=PALETTE["ink"], markersize=3.0 if len(x) < 300 else 2.0, linestyle="none",
        markeredgewidth=0.0, alpha=0.6, label="observed", zorder=2,
    )  # fmt: skip
    mark(dots, "data")
