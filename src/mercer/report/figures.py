"""The drawings of a report: each plot of `mercer.plot` at the size that fits the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from mercer.plot import (
    boundaries,
    error_coverage,
    evidence_curve,
    label_errors,
    ranks,
    relevance,
    reliability,
    trace,
)
from mercer.plot.style import bare_figure, to_svg
from mercer.posterior.coverage import ErrorCoverage
from mercer.posterior.draws import Draws
from mercer.posterior.scores import ReliabilityCurve
from mercer.sphere.evidence import EvidenceCurve

__all__ = [
    "boundaries_svg",
    "coverage_svg",
    "evidence_svg",
    "label_errors_svg",
    "ranks_svg",
    "relevance_svg",
    "reliability_svg",
    "trace_svg",
]

# Inches, at 72 points each: 360 pixels, the width of a phone; the page enlarges them on a desk.
_WIDTH = 5.0


def reliability_svg(curve: ReliabilityCurve, probabilities: ArrayLike) -> str:
    """Draw a reliability diagram."""
    fig = bare_figure(_WIDTH, 5.35)
    reliability(curve, probabilities=probabilities, ax=fig.subplots())
    return to_svg(fig)


def coverage_svg(curve: ErrorCoverage) -> str:
    """Draw an error-coverage curve."""
    fig = bare_figure(_WIDTH, 3.6)
    error_coverage(curve, ax=fig.subplots())
    return to_svg(fig)


def evidence_svg(curve: EvidenceCurve, noise_rate: float | None) -> str:
    """Draw the evidence of noise rates."""
    fig = bare_figure(_WIDTH, 3.6)
    evidence_curve(curve, noise_rate=noise_rate, ax=fig.subplots())
    return to_svg(fig)


def label_errors_svg(p_wrong: ArrayLike, fdr: float) -> str:
    """Draw the probabilities that labels are wrong."""
    fig = bare_figure(_WIDTH, 3.4)
    label_errors(p_wrong, fdr=fdr, ax=fig.subplots())
    return to_svg(fig)


def boundaries_svg(model: Any, X: ArrayLike, y: ArrayLike, ringed: ArrayLike) -> str:
    """Draw sampled decision boundaries over the rows."""
    fig = bare_figure(_WIDTH, 4.8)
    boundaries(model, X, y, ringed=ringed, ax=fig.subplots())
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
