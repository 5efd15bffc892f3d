"""Evidence curve: how well each noise rate explains the labels."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from mercer.errors import UsageError
from mercer.plot.style import FONT_SIZE, PALETTE, dress, mark, new_axes
from mercer.sphere.evidence import EvidenceCurve

__all__ = ["evidence_curve"]

# Rates so many nats below the best are e^-30 times as probable: not shown, but for a neighbour.
_DEPTH: Final = 30.0


def evidence_curve(
    curve: EvidenceCurve, *, noise_rate: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the log evidence of noise rates, with a band of two standard errors.

    Parameters
    ----------
    curve : EvidenceCurve
        ``evidence_curve_`` of a `KernelGibbsClassifier`.
    noise_rate : float, optional
        Marked: the posterior mean of the rate.
    ax : Axes, optional
        Where to draw; a new figure otherwise.

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
    dress(ax)
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
    if noise_rate is not None:
        _mark_rate(ax, noise_rate)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    digits = 1 if q[shown][-1] - q[shown][0] < 0.05 else 0
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=digits, symbol=" %"))
    ax.set_xlabel("noise rate", labelpad=8)
    ax.set_ylabel("log evidence, nats", labelpad=8)
    return ax


def _mark_rate(ax: Axes, noise_rate: float) -> None:
    ink = PALETTE["series-2"]
    mark(ax.axvline(noise_rate, color=ink, linewidth=1.3, dashes=(4, 3), zorder=1), "rate")
    left, right = ax.get_xlim()
    is_left = noise_rate < 0.5 * (left + right)
    ax.annotate(
        f"posterior mean {100 * noise_rate:.1f} %",
        (noise_rate, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(5 if is_left else -5, -3),
        textcoords="offset points",
        ha="left" if is_left else "right",
        va="top",
        color=PALETTE["ink"],
        fontsize=FONT_SIZE - 1,
    )
