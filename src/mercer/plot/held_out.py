"""Plots of held-out rows: calibration, coverage, residuals, scores as rows come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from mercer.errors import UsageError
from mercer.plot.of_models import of_model
from mercer.plot.style import (
    FONT_SIZE,
    PALETTE,
    legend_above,
    mark,
    name_axes,
    name_shares,
    new_axes,
    note,
    plain,
)
from mercer.posterior.scores import (
    COVERAGES,
    ErrorCoverage,
    Gains,
    IntervalCoverage,
    PitHistogram,
    ReliabilityCurve,
)

__all__ = [
    "error_coverage",
    "gains",
    "importance",
    "interval_coverage",
    "pit",
    "predictions",
    "prequential",
    "reliability",
    "residuals",
]

_FAR: Final = 0.3  # shares that all lie nearer to an end are drawn larger
_QUARTERS: Final = (0, 0.25, 0.5, 0.75, 1)
_AT_DATA: Final = {"xycoords": "data", "color": PALETTE["ink"], "fontsize": FONT_SIZE - 1}


def _few_ticks() -> MaxNLocator:
    """Place so few ticks that numbers of six digits do not touch."""
    return MaxNLocator(5, steps=[1, 2, 5, 10])


@of_model
def error_coverage(curve: ErrorCoverage, *, ax: Axes | None = None) -> Axes:
    """Draw the error among the most certain rows against their share of all rows.

    A model that knows when it is unsure has a curve that falls to the left; a level one says that
    its certainty tells nothing of its errors. At the left end few rows are left, and chance rules.

    Parameters
    ----------
    curve : ErrorCoverage
        From `mercer.posterior.scores.error_coverage_curve`; or a fitted classifier, with rows X and
        their labels y after it.
    """
    ax = new_axes(ax, 5.4, 3.6)
    (line,) = ax.plot(curve.coverage, curve.error, color=PALETTE["series-1"], linewidth=1.8)
    mark(line, "curve")
    at = np.array([curve.n_decided(share) for share in COVERAGES]) - 1
    (points,) = ax.plot(
        curve.coverage[at], curve.error[at], "o", color=PALETTE["series-1"], **_dots(6.5)
    )
    mark(points, "points")
    top = max(1.25 * float(curve.error[at.min() :].max()), 0.02)
    ax.set(xlim=(0.0, 1.03), ylim=(-0.14 * top, top))
    for share, k in zip(COVERAGES, at, strict=True):
        is_last = share == 1.0  # above the curve there, else below it
        if share == 0.9 and 0.0 < curve.error[k] - curve.error[-1] < 0.25 * top:
            continue  # it would lie on the last one
        side = {"ha": "right", "va": "bottom"} if is_last else {"ha": "left", "va": "top"}
        place, by = (curve.coverage[k], curve.error[k]), (4, 7) if is_last else (3, -6)
        note(ax, f"{100 * curve.error[k]:.1f} %", place, by, **side, **_AT_DATA)
    beyond = np.flatnonzero(curve.error > top)
    if len(beyond):  # few rows, the surest of all, are wrong
        where = curve.coverage[beyond[-1]]
        (edge,) = ax.plot(where, top, "^", color=PALETTE["series-1"], markersize=7, clip_on=False)
        mark(edge, "beyond")
        words = f"to {100 * curve.error.max():.0f} %"
        note(ax, words, (where, top), (0, 6), ha="center", va="baseline", **_AT_DATA)
    ax.xaxis.set_ticks(_QUARTERS)
    ax.yaxis.set_major_locator(_few_ticks())
    name_shares(ax.xaxis)
    name_shares(ax.yaxis, 1 if top < 0.04 else 0)
    name_axes(ax, "rows that are decided, the most certain first", "error among them")
    return ax


@of_model
def gains(curve: Gains, *, ax: Axes | None = None) -> Axes:
    """Draw which share of a class is found among the rows where it is most likely.

    The grey line is what looking at rows by chance finds, the band what the probabilities say
    themselves, in nine cases of ten: where the curve leaves it they are wrong at that end.

    Parameters
    ----------
    curve : Gains
        From `mercer.posterior.scores.gains_curve`; or a fitted classifier, with rows X and their
        labels y after it: of the class that has the fewest of them.
    """
    total = float(curve.found[-1])
    if total == 0.0:
        raise UsageError("no row is of the class")
    ax = new_axes(ax, 5.4, 3.6)
    share, half = curve.share, float(ndtri(0.95)) * curve.spread
    low, high = (np.clip((curve.expected + s * half) / total, 0.0, 1.0) for s in (-1.0, 1.0))
    band = ax.fill_between(share, low, high, color=PALETTE["band"], linewidth=0, zorder=1)
    mark(band, "expected")
    (chance,) = ax.plot(share, share, color=PALETTE["muted"], linewidth=1.1, zorder=2)
    mark(chance, "chance")
    (line,) = ax.plot(share, curve.found / total, color=PALETTE["series-1"], linewidth=1.8)
    mark(line, "curve")
    ax.set_xscale("log")
    ax.set(xlim=(min(share[0], 0.5), 1.0), ylim=(0.0, 1.03))
    name_shares(ax.xaxis, 0 if share[0] >= 0.01 else 1)
    name_shares(ax.yaxis)
    name_axes(ax, "rows that are looked at, the most likely first", "of the class, found")
    return ax


# What decides: how much worse rows are predicted with one input of another row.

_MOST_INPUTS: Final = 15


@of_model
def importance(
    increase: ArrayLike,
    error: ArrayLike,
    names: Sequence[str],
    *,
    repeats: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw by how much the log score rises where an input is replaced, the greatest on top.

    Parameters
    ----------
    increase, error : array_like of shape (d,)
        Mean over rows in nats a row, and its standard error; bars reach two of them to each side.
    names : sequence of d str
        The three are measured where a fitted estimator is given, with rows X and their targets y.
    repeats : array_like of shape (R, d), optional
        Means of single repeats, drawn as small points.

    Returns
    -------
    Axes
        Of more than 15 inputs the 15 with the greatest increase.
    """
    values, errors = np.asarray(increase, dtype=np.float64), np.asarray(error, dtype=np.float64)
    if values.shape != (len(names),) or errors.shape != values.shape or not len(names):
        raise UsageError(f"increases of shape {values.shape} do not fit {len(names)} names")
    order = np.argsort(-values, kind="stable")[:_MOST_INPUTS]
    ax = new_axes(ax, 6.2, 1.2 + 0.38 * len(order), grid="x")
    rows = np.arange(len(order))
    half = np.where(np.isfinite(errors), 2.0 * errors, 0.0)[order]
    blue = PALETTE["series-1"]
    ax.axvline(0.0, color=PALETTE["muted"], linewidth=1.1, zorder=1)
    bars = ax.hlines(rows, values[order] - half, values[order] + half, color=blue, linewidth=1.6)
    mark(bars, "intervals")
    if repeats is not None:
        each = np.asarray(repeats, dtype=np.float64)[:, order]
        heights = np.broadcast_to(rows, each.shape)
        ax.plot(each.ravel(), heights.ravel(), "o", color=PALETTE["series-6"], markersize=3)
    (points,) = ax.plot(
        values[order], rows, "o", color=blue, markersize=7, markeredgecolor=PALETTE["paper"]
    )
    mark(points, "points")
    ax.set(ylim=(len(order) - 0.4, -0.6), yticks=rows)
    ax.set_yticklabels([plain(names[j]) for j in order], color=PALETTE["ink"])
    ax.xaxis.set_major_locator(_few_ticks())
    ax.set_xlabel("log score lost without the input, nats a row", labelpad=8, loc="right")
    return ax


# Reliability diagram: how often things happened that the model called so and so probable.


@of_model
def reliability(
    curve: ReliabilityCurve, *, probabilities: ArrayLike | None = None, ax: Axes | None = None
) -> Axes:
    """Draw observed frequency against predicted probability, with 90 % intervals.

    Points on the diagonal are calibrated predictions; a bar that crosses it is no evidence of
    the contrary. Of two classes the second may come or not, of several the most probable.

    Parameters
    ----------
    curve : ReliabilityCurve
        The bins, from `mercer.posterior.scores.reliability_curve`; or a fitted classifier (any of
        scikit-learn's kind), with rows X and their labels y after it.
    probabilities : array_like of shape (n,), optional
        The predicted probabilities themselves: adds their histogram above the diagram.

    Returns
    -------
    Axes
        The axes of the diagram.
    """
    ax = new_axes(ax, 5.4, 5.4)
    line = _draw_diagonal(ax, zorder=1)
    lengths = np.stack([curve.observed - curve.lower, curve.upper - curve.observed])
    bars = ax.errorbar(
        curve.mean_predicted, curve.observed, yerr=np.maximum(lengths, 0.0), fmt="o",
        color=PALETTE["series-1"], elinewidth=1.6, **_dots(6.5),
    )  # fmt: skip
    points, _, intervals = bars.lines
    mark(points, "points")
    mark(intervals[0], "intervals")
    ends = _part_of_shares(curve)
    if ends != (0.0, 1.0):
        margin = 0.03 * (ends[1] - ends[0])
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(_few_ticks())
            name_shares(axis, 0 if ends[1] - ends[0] > 0.08 else 1)
        limits = ends[0] - margin, ends[1] + margin
        ax.set(xlim=limits, ylim=limits)
    ax.set_aspect("equal", adjustable="box")
    name_axes(ax, "predicted probability", "observed frequency")
    ax.legend(
        [line], ["calibrated"], loc="best", frameon=False, fontsize=FONT_SIZE - 1.5,
        labelcolor=PALETTE["muted"],
    )  # fmt: skip
    if probabilities is not None:
        _histogram(ax, np.asarray(probabilities), ends)
    return ax


def _part_of_shares(curve: ReliabilityCurve) -> tuple[float, float]:
    """Return the ends of both axes: all shares, or where a class is rare the end they lie at."""
    lowest = float(min(curve.lower.min(), curve.mean_predicted.min()))
    highest = float(max(curve.upper.max(), curve.mean_predicted.max()))
    if highest < _FAR:
        return 0.0, highest
    return (lowest, 1.0) if lowest > 1.0 - _FAR else (0.0, 1.0)


def _draw_diagonal(ax: Axes, zorder: int) -> Line2D:
    """Draw the line on which shares are what they should be, from 0 to 100 % on both axes."""
    (line,) = ax.plot(
        [0, 1], [0, 1], color=PALETTE["muted"], linewidth=1.1, dashes=(4, 3), zorder=zorder
    )
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(_QUARTERS)
        name_shares(axis)
    return line


def _dots(size: float) -> dict[str, Any]:
    """Say how dots look that lie above all else."""
    edge = {"markeredgecolor": PALETTE["paper"], "markeredgewidth": 1.0 if size > 5.0 else 0.8}
    return {"markersize": size, "zorder": 3, **edge}


def _histogram(ax: Axes, probabilities: NDArray[Any], ends: tuple[float, float]) -> None:
    """Draw how many rows got which probability, in a strip above the diagram.

    Those beyond the ends are counted in words.
    """
    strip = ax.inset_axes((0, 1.03, 1, 0.13), sharex=ax)
    strip.set_axis_off()
    counts, edges = np.histogram(probabilities, bins=20, range=ends)
    bars = strip.bar(
        edges[:-1], counts, width=0.042 * (ends[1] - ends[0]), align="edge",
        color=PALETTE["muted"], alpha=0.6, linewidth=0,
    )  # fmt: skip
    for i, bar in enumerate(bars):
        mark(bar, f"count-{i}")
    strip.set_ylim(0, counts.max() * 1.05)
    n_beyond = probabilities.size - int(counts.sum())
    words = f"{probabilities.size} rows" + (f", {n_beyond} of them beyond" if n_beyond else "")
    strip.text(
        1.0, 1.02, words, transform=strip.transAxes, ha="right", va="bottom",
        color=PALETTE["muted"], fontsize=FONT_SIZE - 1.5,
    )  # fmt: skip


# Nominal against observed coverage of intervals.


@of_model
def interval_coverage(curve: IntervalCoverage, *, ax: Axes | None = None) -> Axes:
    """Draw the share of rows inside intervals against the probability that they claim.

    On the diagonal the intervals are right; below it they are too narrow, above it too wide. The
    grey band is what chance does to right ones.

    Parameters
    ----------
    curve : IntervalCoverage
        From `mercer.posterior.scores.interval_coverage`; or a fitted regressor, with
        rows X and their targets y after it.
    """
    ax = new_axes(ax, 5.4, 5.0)
    band = ax.fill_between(
        curve.level, curve.lower, curve.upper, color=PALETTE["band"], linewidth=0, zorder=1
    )
    mark(band, "chance")
    _draw_diagonal(ax, zorder=2)
    blue = PALETTE["series-1"]
    (line,) = ax.plot(curve.level, curve.observed, "-o", color=blue, linewidth=1.6, **_dots(4.5))
    mark(line, "coverage")
    name_axes(ax, "probability inside, as predicted", "rows inside")
    return ax


# Histogram of the probability integral transform: level where predictive laws are right.


@of_model
def pit(histogram: PitHistogram, *, ax: Axes | None = None) -> Axes:
    """Draw how many observations lie how far up in their predictive law.

    Level bars are what right laws give. A valley in the middle says that the laws are too narrow, a
    hill that they are too wide, a slope that predictions are too low or too high.

    Parameters
    ----------
    histogram : PitHistogram
        From `mercer.posterior.scores.pit_histogram`; or a fitted regressor, with rows X
        and their targets y after it.
    """
    ax = new_axes(ax, 5.4, 3.6, grid="y")
    edges, share = histogram.edges, histogram.share
    band = ax.axhspan(histogram.lower, histogram.upper, color=PALETTE["band"], linewidth=0)
    mark(band, "chance")
    bars = ax.bar(
        edges[:-1], share, width=0.9 * (edges[1:] - edges[:-1]), align="edge",
        color=PALETTE["series-1"], alpha=0.75, linewidth=0, zorder=2,
    )  # fmt: skip
    for i, bar in enumerate(bars):
        mark(bar, f"bar-{i}")
    level = 1.0 / len(share)
    ax.axhline(level, color=PALETTE["muted"], linewidth=1.1, dashes=(4, 3), zorder=3)
    ax.set(xlim=(-0.02, 1.02), ylim=(0.0, 1.15 * max(float(share.max()), histogram.upper)))
    ax.xaxis.set_ticks(_QUARTERS)
    ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    name_shares(ax.yaxis)
    name_axes(ax, "probability that was given to smaller values", "rows")
    note(ax, "dashed: right laws; shaded: chance")
    return ax


# Predicted against observed numbers, each row with its interval.


@of_model
def predictions(
    y: ArrayLike, mean: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, ax: Axes | None = None
) -> Axes:
    """Draw the observed value of each row against the predicted one, with its interval.

    Points on the diagonal are predicted exactly. A bar that its point lies outside of is drawn in
    another colour: of 90 % intervals one in ten should be.

    Parameters
    ----------
    y : array_like of shape (n,)
        Observed.
    mean : array_like of shape (n,)
        Predicted.
    lower, upper : array_like of shape (n,)
        Ends of the interval of each row. In place of the four: a fitted regressor, rows X and their
        targets y.
    """
    ax = new_axes(ax, 5.4, 5.0)
    values, x, low, high = (np.asarray(each, dtype=float) for each in (y, mean, lower, upper))
    is_inside = (low <= values) & (values <= high)
    ends = [min(x.min(), values.min()), max(x.max(), values.max())]
    ax.plot(ends, ends, color=PALETTE["muted"], linewidth=1.1, dashes=(4, 3), zorder=1)
    kinds = (("inside", is_inside, "series-1"), ("outside", ~is_inside, "series-2"))
    for name, chosen, colour in kinds:
        if not chosen.any():
            continue
        bars = ax.vlines(
            x[chosen], low[chosen], high[chosen], color=PALETTE[colour], linewidth=0.7, alpha=0.3
        )
        mark(bars, f"intervals-{name}")
        (points,) = ax.plot(
            x[chosen], values[chosen], "o", color=PALETTE[colour], markersize=3.0, linewidth=0
        )
        points.set_markeredgewidth(0.0)
        mark(points, f"points-{name}")
    ax.xaxis.set_major_locator(_few_ticks())
    name_axes(ax, "predicted", "observed")
    colour = PALETTE["series-2"] if not is_inside.all() else PALETTE["muted"]
    note(
        ax, f"outside: {np.count_nonzero(~is_inside)} of {len(values)}", (0.0, 1.0), (4, -4),
        ha="left", va="top", color=colour, fontsize=FONT_SIZE - 1,
    )  # fmt: skip
    return ax


# Residuals against predictions, with their mean in groups of rows.

_FEWEST, _MOST_GROUPS = 10, 12  # rows in a group; groups


@of_model
def residuals(y: ArrayLike, mean: ArrayLike, *, n_shown: int = 500, ax: Axes | None = None) -> Axes:
    """Draw observed minus predicted values against the predicted ones.

    The line is the mean residual of neighbouring predictions, with two standard errors: away from
    zero, the model is off in one direction there.

    Parameters
    ----------
    y, mean : array_like of shape (n,)
        Observed and predicted. In place of both: a fitted regressor, rows X and their targets y.
    n_shown : int, default 500
        Points drawn at most, spread evenly over the rows; the line is of all rows.
    """
    ax = new_axes(ax, 5.4, 3.8)
    x = np.asarray(mean, dtype=float)
    r = np.asarray(y, dtype=float) - x
    shown = np.unique(np.linspace(0, len(x) - 1, min(n_shown, len(x))).astype(int))
    ax.axhline(0.0, color=PALETTE["muted"], linewidth=1.1, dashes=(4, 3), zorder=1)
    (points,) = ax.plot(x[shown], r[shown], "o", color=PALETTE["series-1"], markersize=3.0)
    points.set(alpha=0.5, markeredgewidth=0.0)
    mark(points, "points")
    n_groups = min(_MOST_GROUPS, len(x) // _FEWEST)
    if n_groups > 1:
        _draw_means(ax, x, r, n_groups)
    ax.xaxis.set_major_locator(_few_ticks())
    name_axes(ax, "predicted", "observed − predicted")
    return ax


def _draw_means(ax: Axes, x: NDArray[np.float64], r: NDArray[np.float64], n_groups: int) -> None:
    groups = np.array_split(np.argsort(x, kind="stable"), n_groups)
    centres = np.array([x[group].mean() for group in groups])
    means = np.array([r[group].mean() for group in groups])
    errors = np.array([2.0 * r[group].std(ddof=1) / len(group) ** 0.5 for group in groups])
    red = PALETTE["series-2"]
    bars = ax.errorbar(
        centres, means, yerr=errors, fmt="-o", color=red, linewidth=1.4, **_dots(4.5)
    )
    line, _, intervals = bars.lines
    mark(line, "means")
    mark(intervals[0], "errors")


# How well each row was predicted before it was learned, along the stream.

_SETTLING: Final = 20  # the first one in so many rows may leave the picture


@of_model
def prequential(
    log_density: ArrayLike, window: int | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the prequential score: mean predictive log density of the rows so far, and lately.

    A line that rises says that rows help; where the last rows fall below all so far, the stream
    has changed.

    Parameters
    ----------
    log_density : array_like of shape (n,)
        Log density of each row, predicted before it was learned, in nats: ``log_predictive_``, or
        that of ``prequential``. NaN is left out. Or a fitted estimator that learned row by row.
    window : int, optional
        Rows in "lately"; a twentieth of them by default, and no fewer than 10.

    Raises
    ------
    UsageError
        If there is no row, or the window is not positive.
    """
    densities = np.asarray(log_density, dtype=np.float64)
    if densities.ndim != 1 or not np.isfinite(densities).any() or np.isinf(densities).any():
        raise UsageError("log_density must be numbers of shape (n,)")
    if window is not None and window < 1:
        raise UsageError(f"window must be at least 1, got {window!r}")
    rows = np.flatnonzero(~np.isnan(densities)) + 1
    values = densities[rows - 1]
    width = min(len(values), window or max(10, len(values) // 20))
    sums = np.concatenate([[0.0], np.cumsum(values)])
    so_far = sums[1:] / np.arange(1, len(values) + 1)
    lately = (sums[width:] - sums[:-width]) / width
    ax = new_axes(ax, 6.2, 3.6)
    pale = PALETTE["series-5"]
    (line,) = ax.plot(rows[width - 1 :], lately, color=pale, linewidth=1.2, label=f"last {width}")
    mark(line, "lately")
    blue = PALETTE["series-1"]
    (line,) = ax.plot(rows, so_far, color=blue, linewidth=1.8, label="all rows so far", zorder=3)
    mark(line, "so-far")
    seen = np.concatenate([lately, so_far[len(so_far) // _SETTLING :]])
    margin = 0.06 * np.ptp(seen) + 1e-3
    ax.set(xlim=(0.0, rows[-1] + 1.0), ylim=(seen.min() - margin, seen.max() + margin))
    name_axes(ax, "row", "log predictive density, nats")
    legend_above(ax, 2)
    return ax
