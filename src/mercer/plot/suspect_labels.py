"""Labels most likely wrong: the probability of each row, sorted, and the list to check."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike

from mercer.errors import UsageError
from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_axes
from mercer.posterior.label_errors import longest_list

__all__ = ["label_errors"]

_FEWEST_ROWS: Final = 40


def label_errors(p_wrong: ArrayLike, *, fdr: float = 0.1, ax: Axes | None = None) -> Axes:
    """Draw the probability that each row's label is wrong, the largest first.

    Parameters
    ----------
    p_wrong : array_like of shape (n,)
        ``label_error_proba_`` of a `KernelGibbsClassifier`, in any order.
    fdr : float, default=0.1
        The longest list with at most this expected share of right labels is shaded.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

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
    ax = new_axes(ax, 5.4, 3.4)
    dress(ax, grid="y")
    if n_listed:
        band = ax.axvspan(0.5, n_listed + 0.5, color=PALETTE["band"], alpha=0.55, linewidth=0)
        mark(band, "list")
    at = np.arange(1, n_shown + 1)
    (dots,) = ax.plot(
        at, p[:n_shown], "o", color=PALETTE["series-1"], markersize=4.5 if n_shown < 80 else 3.0,
        markeredgewidth=0.0,
    )  # fmt: skip
    mark(dots, "rows")
    noun = "row" if n_listed == 1 else "rows"
    ax.annotate(
        f"list: {n_listed} {noun} at {100 * fdr:g} % expected false",
        (1.0, 1.0),
        xycoords="axes fraction",
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=PALETTE["muted"],
        fontsize=FONT_SIZE - 1.5,
    )
    ax.set(xlim=(0.0, n_shown + 1.0), ylim=(-0.03, 1.03))
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    note = f" — first {n_shown} of {len(p)}" if n_shown < len(p) else ""
    ax.set_xlabel(f"rows, the most suspicious first{note}", labelpad=8)
    ax.set_ylabel("P(label is wrong)", labelpad=8)
    return ax
