"""Plots of functions: prediction curves, effects of inputs, centres, boundaries, repeated runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from mercer.errors import UsageError, rows_without_names
from mercer.plot.kernel import position
from mercer.plot.of_models import of_model
from mercer.plot.style import (
    CHAIN_COLOURS,
    FONT_SIZE,
    PALETTE,
    dress,
    legend_above,
    mark,
    name_axes,
    new_axes,
    new_figure,
    plain,
)

if TYPE_CHECKING:
    from mercer.basis.prediction import SparseSummary
    from mercer.estimation.inspection import Effect, Effects, PairEffect

__all__ = ["boundaries", "centres", "effects", "pair_effect", "predicted_band", "repeats"]


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

    Raises
    ------
    UsageError
        If the model has several inputs, or inputs and targets do not fit together.
    """
    if len(model.feature_labels_) != 1:
        raise UsageError(
            f"predictions are drawn along one input, and the model has {len(model.feature_labels_)}"
        )
    with rows_without_names():
        x = np.asarray(X if np.ndim(X) == 1 else model._new_rows(X), dtype=np.float64)
    x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x
    if x.ndim != 1 or not len(x) or not np.isfinite(x).all():
        raise UsageError(f"inputs must be finite, of shape (n, 1) or (n,); got {np.shape(X)}")
    ax = new_axes(ax, 6.2, 3.8)
    grid = np.linspace(x.min(), x.max(), _POINTS)
    with rows_without_names():
        mean = model.predict(grid[:, np.newaxis])
        lower, upper = model.predict_interval(grid[:, np.newaxis], _LEVEL)
    blue = PALETTE["series-1"]
    band = ax.fill_between(grid, lower, upper, color=blue, alpha=0.2, linewidth=0, label="90 %")
    mark(band, "interval")
    (line,) = ax.plot(grid, mean, color=blue, linewidth=1.8, label="mean", zorder=3)
    mark(line, "mean")
    if y is not None:
        _draw_data(ax, x, np.asarray(y, dtype=np.float64))
    name_axes(ax, plain(model.feature_labels_[0]), "target")
    legend_above(ax, 3)
    return ax


def _draw_data(ax: Axes, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> None:
    if y.shape != x.shape:
        raise UsageError(f"targets of shape {y.shape} do not fit {len(x)} inputs")
    (dots,) = ax.plot(
        x, y, "o", color=PALETTE["ink"], markersize=3.0 if len(x) < 300 else 2.0, linestyle="none",
        markeredgewidth=0.0, alpha=0.6, label="observed", zorder=2,
    )  # fmt: skip
    mark(dots, "data")


# Where the kernels stand of which the posterior mean can be put together.

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
        Number of kernels in the sum; see ``summarise``. Less where there are fewer rows.
    columns : pair of int or str, optional
        The inputs to draw, by position or name, where there are more than two.

    Raises
    ------
    UsageError
        If there are more than two inputs and no pair is given, or no such input.
    """
    summary: SparseSummary = model.summarise(min(n_centres, len(model.candidates_)))
    if len(model.feature_labels_) == 1:
        return _on_the_curve(model, summary, ax)
    if columns is None and len(model.feature_labels_) != 2:
        n = len(model.feature_labels_)
        raise UsageError(
            f"centres are drawn in two inputs, and the model has {n}: name two as columns"
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
    legend_above(ax, 3)
    return ax


def _in_the_plane(
    model: Any, summary: SparseSummary, columns: tuple[int, ...], ax: Axes | None
) -> Axes:
    ax = new_axes(ax, 5.4, 4.6)
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
    name_axes(ax, plain(model.feature_labels_[i]), plain(model.feature_labels_[j]))
    return ax


# Decision boundaries of sampled classifiers over the data, for two inputs.

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

    Raises
    ------
    UsageError
        If there are not two inputs and two classes, or rows and labels do not fit together.
    """
    if len(model.feature_labels_) != 2:
        n = len(model.feature_labels_)
        raise UsageError(f"boundaries are drawn over two inputs, not {n}")
    if len(model.classes_) != 2:
        raise UsageError(f"boundaries are drawn between two classes, not {len(model.classes_)}")
    with rows_without_names():
        rows, labels = model._new_rows(X), np.asarray(y)
    if labels.shape != rows.shape[:1]:
        raise UsageError(f"labels of shape {labels.shape} do not fit {len(rows)} rows")
    if unknown := [label for label in labels.tolist() if label not in model.classes_.tolist()]:
        raise UsageError(f"there is no class {unknown[0]!r}: {model.classes_.tolist()}")
    ax = new_axes(ax, 5.4, 4.8)
    axes = [_margin(column) for column in rows.T]
    with rows_without_names():
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
    name_axes(ax, plain(model.feature_labels_[0]), plain(model.feature_labels_[1]))
    legend_above(ax, 3, handletextpad=0.2, columnspacing=1.0)
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


# Dots: one measured number for each method and repeat, with the published figure beside them.


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
    """
    ax = new_axes(ax, 7.0, 1.4 + 0.42 * len(measured), grid="x")
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


# How inputs act: curves of single inputs, a map of two.

_PER_ROW: Final = 2  # panels
_LEVEL_NAME: Final = 12
_ASLANT: Final = 5  # so many names of levels have room side by side
# None is of the palette, whose colours a page changes in the dark: a scale must stay whole.
_MAP_COLOURS: Final = ("#cf5a04", "#d9dfe7", "#0b6fae")


@of_model
def effects(found: Effects, *, fig: Figure | None = None) -> Figure:
    """Draw the mean prediction as single inputs are varied: a panel each.

    Of two classes it is the probability of the second, of several those of the five commonest.

    Parameters
    ----------
    found : Effects
        From `mercer.estimation.inspection.effects_of`; or a fitted estimator, with rows X after it,
        in which inputs are varied, and as ``columns=`` the inputs to draw, by name or position.
    """
    n_panels = len(found.curves)
    if n_panels == 0:
        raise UsageError("no input varies, so there is no curve to draw")
    n_rows = -(-n_panels // _PER_ROW)
    fig = new_figure(fig, 7.0, 0.4 + 1.9 * n_rows)
    axes = fig.subplots(n_rows, min(_PER_ROW, n_panels), sharey=True, squeeze=False).ravel()
    for panel, (ax, curve) in enumerate(zip(axes, found.curves, strict=False)):
        dress(ax)
        _draw_effect(ax, curve, found.outputs, f"curve-{panel}")
    for ax in axes[n_panels:]:
        ax.set_axis_off()
    fig.supylabel(_shown(found.outputs), fontsize=FONT_SIZE, color=PALETTE["muted"])
    if len(found.outputs) > 1:
        handles, labels = axes[0].get_legend_handles_labels()
        fig.legend(
            handles, labels, loc="outside upper right", ncols=3, frameon=False,
            fontsize=FONT_SIZE - 1, labelcolor=PALETTE["ink"],
        )  # fmt: skip
    return fig


def _shown(outputs: Sequence[str]) -> str:
    """Say what is predicted: a number, the probability of one class, or of several."""
    if not outputs:
        return "prediction"
    return "probability" if len(outputs) > 1 else f"probability of {plain(outputs[0])}"


def _draw_effect(ax: Axes, curve: Effect, outputs: Sequence[str], name_of_mark: str) -> None:
    at, values = curve.values.numbers, curve.values
    for k, mean in enumerate(curve.mean):
        colour = CHAIN_COLOURS[k % len(CHAIN_COLOURS)]
        name = plain(outputs[k], 16) if outputs else "mean"
        if len(curve.mean) == 1:
            for end in (curve.rows_lower[k], curve.rows_upper[k]):
                ax.plot(at, end, color=PALETTE["muted"], linewidth=0.9, dashes=(3, 3))
        if values.labels:
            lengths = np.stack([mean - curve.lower[k], curve.upper[k] - mean])
            shift = 0.12 * (k - 0.5 * (len(curve.mean) - 1))
            bars = ax.errorbar(at + shift, mean, yerr=lengths, fmt="o", color=colour, label=name)
            mark(bars.lines[0], f"{name_of_mark}-{k}")
            continue
        ax.fill_between(at, curve.lower[k], curve.upper[k], color=colour, alpha=0.22, linewidth=0)
        (line,) = ax.plot(at, mean, color=colour, linewidth=1.8, label=name)
        mark(line, f"{name_of_mark}-{k}")
    if values.labels:
        _name_levels(ax, at, values.labels)
        ax.set_xlim(-0.5, len(at) - 0.5)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    ax.set_xlabel(plain(values.name), labelpad=4)


def _name_levels(ax: Axes, at: NDArray[np.float64], labels: Sequence[str]) -> None:
    """Write levels under the axis: aslant, or upright where there are too many for that."""
    names = [plain(label, _LEVEL_NAME) for label in labels]
    ax.set_xticks(at, names, rotation=30 if len(names) <= _ASLANT else 90)
    for text in ax.get_xticklabels():
        text.set(horizontalalignment="right", rotation_mode="anchor")
        if len(names) > _ASLANT:
            text.set_verticalalignment("center")


@of_model
def pair_effect(found: PairEffect, *, ax: Axes | None = None) -> Axes:
    """Draw the mean prediction as two inputs are varied, as a map.

    Of two classes it is the probability of the second, of several that of the first of those that
    `effects` draws.

    Parameters
    ----------
    found : PairEffect
        Or a fitted estimator, with rows X after it, and as ``columns`` the inputs to choose from:
        the pair is drawn that acts together most.
    """
    ax = new_axes(ax, 5.4, 4.2)
    ax.grid(visible=False)
    first, second = found.first, found.second
    shade = LinearSegmentedColormap.from_list("mercer", _MAP_COLOURS)
    mesh = ax.pcolormesh(
        first.numbers, second.numbers, found.mean.T, cmap=shade, shading="nearest",
        linewidth=0.5, edgecolors="face",
    )  # fmt: skip
    mark(mesh, "map")
    if first.labels:
        _name_levels(ax, first.numbers, first.labels)
    if second.labels:
        ax.set_yticks(second.numbers, [plain(each, _LEVEL_NAME) for each in second.labels])
    name_axes(ax, plain(first.name), plain(second.name))
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label(_shown(found.outputs), labelpad=8)
    bar.ax.tick_params(length=0, labelsize=FONT_SIZE - 1, labelcolor=PALETTE["muted"])
    return ax
