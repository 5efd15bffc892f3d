"""The drawings of a report: each plot of `mercer.plot` at the size that fits the page."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from mercer.plot import ranks, relevance, reliability, trace
from mercer.plot.style import bare_figure, to_svg
from mercer.posterior.draws import Draws
from mercer.posterior.scores import ReliabilityCurve

__all__ = ["ranks_svg", "relevance_svg", "reliability_svg", "trace_svg"]

# Inches, at 72 points each: 360 pixels, the width of a phone; the page enlarges them on a desk.
_WIDTH = 5.0


def reliability_svg(curve: ReliabilityCurve, probabilities: ArrayLike) -> str:
    """Draw a reliability diagram."""
    fig = bare_figure(_WIDTH, 5.35)
    reliability(curve, probabilities=probabilities, ax=fig.subplots())
    return to_svg(fig)


def relevance_svg(
    weights: ArrayLike, names: Sequence[str], prior_interval: tuple[float, float] | None
) -> str:
    """Draw the weights of the inputs."""
    fig = bare_figure(_WIDTH, 1.1 + 0.36 * min(len(names), 30))
    relevance(weights, names, prior_interval=prior_interval, ax=fig.subplots())
    return to_svg(fig)


def trace_svg(draws: Draws, names: Sequence[str]) -> str:
    """Draw the chains of the named scalars."""
    fig = bare_figure(_WIDTH, 0.6 + 0.85 * len(names))
    return to_svg(trace(draws, names, fig=fig))


def ranks_svg(draws: Draws, names: Sequence[str]) -> str:
    """Draw the ranks of the named scalars."""
    fig = bare_figure(_WIDTH, 0.6 + 0.85 * len(names))
    return to_svg(ranks(draws, names, fig=fig))
