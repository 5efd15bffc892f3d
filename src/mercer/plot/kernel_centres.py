"""Where the kernels stand of which the posterior mean can be put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes

from mercer.basis.summarise import SparseSummary
from mercer.errors import UsageError
from mercer.plot.learned_kernel_lags import position
from mercer.plot.prediction_curve import predicted_band
from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_axes, plain

__all__ = ["centres"]

_LARGEST_AREA: Final = 260.0  # of a circle, in square points
_SMALLEST_AREA: Final = 12.0


def centres(
    model: Any,
    n_centres: int = 10,
    columns: Sequence[int | str] | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the centres of a sum of few kernels that is near the posterior mean.

    Along one input: predictions, the sum, and its centres on it. In two: the inputs that may be
    centres, and circles around those that are, the larger the further the kernel lifts (blue) or
    lowers (vermilion) the sum.

    Parameters
    ----------
    model : SequentialKernelRegressor
        Fitted.
    n_centres : int, default=10
        Of the sum; see ``summarise``. Less where there are fewer rows.
    columns : pair of int or str, optional
        The inputs to draw, by position or name, where there are more than two.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

    Returns
    -------
    Axes

    Raises
    ------
    UsageError
        If there are more than two inputs and no pair is given, or no such input.
    """
    summary: SparseSummary = model.summarise(min(n_centres, len(model.candidates_)))
    if model.n_features_in_ == 1:
        return _on_the_curve(model, summary, ax)
    if columns is None and model.n_features_in_ != 2:
        raise UsageError(
            f"centres are drawn in two inputs, and the model has {model.n_features_in_}: name two "
            "as columns"
        )
    chosen = (0, 1) if columns is None else tuple(position(model, c) for c in columns)
    if len(chosen) != 2 or chosen[0] == chosen[1]:
        raise UsageError(f"columns must be two inputs; got {columns!r}")
    return _in_the_plane(model, summary, chosen, ax)


def _on_the_curve(model: Any, summary: SparseSummary, ax: Axes | None) -> Axes:
    ends = model.candidates_[:, 0]
    ax = predicted_band(model, ends, ax=ax)
    x = np.linspace(ends.min(), ends.max(), 301)[:, np.newaxis]
    colour, n = PALETTE["series-2"], len(summary.coef)
    label = f"{n} kernel{'s' * (n != 1)}"
    (line,) = ax.plot(x, summary.predict(x), "--", color=colour, linewidth=1.4, zorder=4)
    mark(line, "sum")
    (dots,) = ax.plot(
        summary.centres[:, 0], summary.predict(summary.centres), "o", color=colour, markersize=5.0,
        label=label, zorder=5,
    )  # fmt: skip
    mark(dots, "centres")
    ax.legend(
        loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False, borderaxespad=0.2,
        fontsize=FONT_SIZE - 1, labelcolor=PALETTE["ink"], handletextpad=0.5, columnspacing=1.2,
    )  # fmt: skip
    return ax


def _in_the_plane(
    model: Any, summary: SparseSummary, columns: tuple[int, ...], ax: Axes | None
) -> Axes:
    ax = new_axes(ax, 5.4, 4.6)
    dress(ax)
    i, j = columns
    rows = model.candidates_
    (dots,) = ax.plot(
        rows[:, i], rows[:, j], ".", color=PALETTE["muted"], markersize=3.0, alpha=0.5, zorder=1
    )
    mark(dots, "candidates")
    sizes = np.abs(summary.coef)
    areas = _SMALLEST_AREA + (_LARGEST_AREA - _SMALLEST_AREA) * sizes / sizes.max(initial=1e-300)
    colours = np.where(summary.coef > 0.0, PALETTE["series-1"], PALETTE["series-2"])
    circles = ax.scatter(
        summary.centres[:, i], summary.centres[:, j], s=areas, color=colours.tolist(), alpha=0.75,
        linewidths=0.0, zorder=2,
    )  # fmt: skip
    mark(circles, "centres")
    ax.set_xlabel(plain(model.feature_labels_[i]), labelpad=8)
    ax.set_ylabel(plain(model.feature_labels_[j]), labelpad=8)
    return ax
