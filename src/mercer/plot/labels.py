"""Plots of labels: evidence of noise rates, suspicious labels, errors of Laplace's posterior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from mercer.errors import UsageError
from mercer.plot.of_models import of_model
from mercer.plot.style import (
    FONT_SIZE,
    PALETTE,
    mark,
    name_axes,
    name_shares,
    new_axes,
    note,
    plain,
)
from mercer.posterior.labels import longest_list

if TYPE_CHECKING:
    from mercer.sphere.tempering import EvidenceCurve

__all__ = ["evidence_curve", "label_errors", "laplace_distance", "target_errors"]


# Rates so many nats below the best are e^-30 times as probable: not shown, but for a neighbour.
_DEPTH: Final = 30.0


@of_model
def evidence_curve(
    curve: EvidenceCurve,
    *,
    noise_rate: float | Mapping[Any, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the log evidence of noise rates, with a band of two standard errors.

    Parameters
    ----------
    curve : EvidenceCurve
        ``evidence_curve_`` of a `KernelGibbsClassifier`; or the classifier itself, fitted.
    noise_rate : float or dict, optional
        Marked: ``noise_rate_``, the posterior mean of the rate, or of that of each class.

    Returns
    -------
    Axes
        The axes; rates whose log evidence is more than 30 nats below the best are left out.

    Raises
    ------
    UsageError
        If the curve has no point.
    """
    q, log_evidence, error = curve.noise_rates, curve.log_evidence, curve.standard_error
    if not len(q):
        raise UsageError("there is no noise rate whose evidence is known")
    ax = new_axes(ax, 5.4, 3.6)
    near = np.flatnonzero(log_evidence >= log_evidence.max() - _DEPTH)
    shown = slice(max(int(near[0]) - 1, 0), int(near[-1]) + 2)
    blue = PALETTE["series-1"]
    low, high = log_evidence - 2.0 * error, log_evidence + 2.0 * error
    band = ax.fill_between(q[shown], low[shown], high[shown], color=blue, alpha=0.25, linewidth=0)
    mark(band, "band")
    (line,) = ax.plot(q[shown], log_evidence[shown], "o-", color=blue, markersize=3, linewidth=1.4)
    mark(line, "curve")
    bottom = float(log_evidence[near].min())
    top = float(high[near].max())
    spare = 0.08 * max(top - bottom, 1.0)
    ax.set_ylim(bottom - spare, top + 2.5 * spare)
    if isinstance(noise_rate, Mapping):
        for level, (label, rate) in enumerate(noise_rate.items()):
            _mark_rate(ax, rate, f" of {plain(str(label))}", level)
    elif noise_rate is not None:
        _mark_rate(ax, noise_rate)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    digits = 1 if q[shown][-1] - q[shown][0] < 0.05 else 0
    name_shares(ax.xaxis, digits)
    name_axes(ax, "noise rate", "log evidence, nats")
    return ax


def _mark_rate(ax: Axes, noise_rate: float, whose: str = "", level: int = 0) -> None:
    ink = PALETTE["series-2"]
    mark(
        ax.axvline(noise_rate, color=ink, linewidth=1.3, dashes=(4, 3), zorder=1),
        f"rate{level or ''}",
    )
    left, right = ax.get_xlim()
    is_left = noise_rate < 0.5 * (left + right)
    note(
        ax, f"posterior mean{whose} {100 * noise_rate:.1f} %", (noise_rate, 1.0),
        (5 if is_left else -5, -3 - 1.4 * FONT_SIZE * level), xycoords=("data", "axes fraction"),
        ha="left" if is_left else "right", va="top", color=PALETTE["ink"], fontsize=FONT_SIZE - 1,
    )  # fmt: skip


# Labels most likely wrong: the probability of each row, sorted, and the list to check.

_FEWEST_ROWS: Final = 40


@of_model
def label_errors(
    p_wrong: ArrayLike, *, fdr: float = 0.1, noun: str = "label", ax: Axes | None = None
) -> Axes:
    """Draw the probability that each row's label is wrong, the largest first.

    Parameters
    ----------
    p_wrong : array_like of shape (n,)
        ``label_error_proba_`` of a `KernelGibbsClassifier`, in any order; or the classifier itself,
        fitted.
    fdr : float, default=0.1
        The longest list with at most this expected share of right labels is shaded.
    noun : str, default="label"
        What is wrong, as the axis calls it.

    Returns
    -------
    Axes
        The axes; of many rows those of the list and as many more, at least 40.

    Raises
    ------
    UsageError
        If there is no row, or a number is no probability.
    """
    p = -np.sort(-np.asarray(p_wrong, dtype=np.float64), axis=None)
    if not len(p) or not ((p >= 0.0) & (p <= 1.0)).all():
        raise UsageError("p_wrong must hold probabilities, at least one")
    n_listed = longest_list(p, fdr)
    n_shown = min(len(p), max(_FEWEST_ROWS, 2 * n_listed))
    ax = new_axes(ax, 5.4, 3.4, grid="y")
    if n_listed:
        band = ax.axvspan(0.5, n_listed + 0.5, color=PALETTE["band"], alpha=0.55, linewidth=0)
        mark(band, "list")
    at = np.arange(1, n_shown + 1)
    (dots,) = ax.plot(
        at, p[:n_shown], "o", color=PALETTE["series-1"], markersize=4.5 if n_shown < 80 else 3.0,
        markeredgewidth=0.0,
    )  # fmt: skip
    mark(dots, "rows")
    rows = "row" if n_listed == 1 else "rows"
    note(ax, f"list: {n_listed} {rows} at {100 * fdr:g} % expected false")
    ax.set(xlim=(0.0, n_shown + 1.0), ylim=(-0.03, 1.03))
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    name_shares(ax.yaxis)
    of_all = f" — first {n_shown} of {len(p)}" if n_shown < len(p) else ""
    name_axes(ax, f"rows, the most suspicious first{of_all}", f"P({noun} is wrong)")
    return ax


@of_model
def target_errors(
    recorded: ArrayLike,
    expected: ArrayLike,
    std: ArrayLike,
    is_listed: ArrayLike,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw recorded values against what the other rows would have in their place.

    Parameters
    ----------
    recorded, expected, std : array_like of shape (n,)
        Values as they stand, means and standard deviations of right ones, in units of the target.
    is_listed : array_like of shape (n,), bool
        Which values are probably wrong: drawn in another colour, with two standard deviations. In
        place of all: a `GPRegressor` fitted with ``noise="contaminated"``, of which those with a
        probability over one half are marked. Values farther from all that is expected than this
        spans are drawn as diamonds at the edge.

    Raises
    ------
    UsageError
        If the arguments do not fit together, or are not finite.
    """
    y, mean, spread = (np.asarray(each, dtype=np.float64) for each in (recorded, expected, std))
    listed = np.asarray(is_listed, dtype=bool)
    shapes = {each.shape for each in (y, mean, spread, listed)}
    if len(shapes) > 1 or y.ndim != 1 or not len(y):
        raise UsageError("recorded, expected, std and is_listed must have one length, (n,)")
    if not all(np.isfinite(each).all() for each in (y, mean, spread)):
        raise UsageError("recorded, expected and std must be finite")
    ax = new_axes(ax, 5.4, 4.6, grid="both")
    room = float(np.ptp(mean)) or float(spread.max()) or 1.0
    lowest, highest = mean.min() - room, mean.max() + room
    y, is_far = np.clip(y, lowest, highest), (y < lowest) | (y > highest)
    ends = [max(y.min(), mean.min()), min(y.max(), mean.max())]
    ax.plot(ends, ends, color=PALETTE["muted"], linewidth=1.0)
    (dots,) = ax.plot(
        mean[~listed], y[~listed], "o", color=PALETTE["series-1"], markersize=3.0, alpha=0.6,
        markeredgewidth=0.0,
    )  # fmt: skip
    mark(dots, "rows")
    marked = ax.errorbar(
        mean[listed], y[listed], xerr=2.0 * spread[listed], fmt="o", color=PALETTE["series-2"],
        markersize=5.0, linewidth=1.0,
    )  # fmt: skip
    mark(marked[0], "listed")
    if is_far.any():
        (edge,) = ax.plot(
            mean[is_far], y[is_far], "D", color=PALETTE["series-2"], markersize=6.5, clip_on=False
        )
        mark(edge, "far")
    beyond = f" — {is_far.sum()} beyond the edges" if is_far.any() else ""
    name_axes(ax, "expected of the other rows", f"recorded{beyond}")
    return ax


# How far Laplace's approximation is from the exact posterior, against rows per region.

_BINS = 6
_FEWEST = 5  # rows for a median
_FLOOR = 1e-5  # smaller differences are drawn here


@of_model
def laplace_distance(
    rows_per_region: ArrayLike, differences: ArrayLike, *, ax: Axes | None = None
) -> Axes:
    """Draw the difference of the two probabilities of each row against the rows in its region.

    The more rows there are within a length scale, the closer the posterior of the function is to
    normal, and Laplace's approximation to the truth.

    Parameters
    ----------
    rows_per_region : array_like of shape (m,)
        Rows within about a length scale of each row; positive.
    differences : array_like of shape (m,)
        Exact less Laplace's probability. In place of both: a classifier fitted with
        ``integration="exact"``, and rows X.

    Returns
    -------
    Axes
        A point a row; a line through the medians of groups of rows.

    Raises
    ------
    UsageError
        If the two do not fit together, or are not finite.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (rows_per_region, differences))
    if x.ndim != 1 or x.shape != y.shape or len(x) == 0:
        raise UsageError(f"rows per region of shape {x.shape} do not fit differences of {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (x > 0.0).all()):
        raise UsageError("rows per region must be positive, and both finite")
    heights = np.maximum(np.abs(y), _FLOOR)
    ax = new_axes(ax, 5.4, 3.6)
    (points,) = ax.plot(x, heights, ".", color=PALETTE["series-1"], alpha=0.45, markersize=6)
    mark(points, "rows")
    groups = np.array_split(np.argsort(x), max(1, min(_BINS, len(x) // _FEWEST)))
    (line,) = ax.plot(
        [np.median(x[group]) for group in groups],
        [np.median(heights[group]) for group in groups],
        "o-",
        color=PALETTE["ink"],
        linewidth=1.6,
        markersize=4.5,
    )
    mark(line, "medians")
    ax.set_xscale("log")
    ax.set_yscale("log")
    name_axes(ax, "training rows within a length scale", "difference of the probabilities")
    return ax
