"""The drawings of a report: each plot of `mercer.plot` at the size that fits the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.plot import (
    boundaries,
    centres,
    effects,
    error_coverage,
    evidence_curve,
    importance,
    interval_coverage,
    label_errors,
    laplace_distance,
    learned_kernel,
    pair_effect,
    particles,
    pit,
    predicted_band,
    predictions,
    prequential,
    ranks,
    relevance,
    reliability,
    residuals,
    spectral_density,
    target_errors,
    trace,
)
from mercer.plot.style import bare_figure, to_svg
from mercer.posterior.draws import Draws
from mercer.posterior.evaluation import HeldTargets
from mercer.posterior.scores import ErrorCoverage, IntervalCoverage, PitHistogram, ReliabilityCurve

if TYPE_CHECKING:
    from mercer.estimation.inspection import Effects, Importance, PairEffect
    from mercer.posterior.labels import TargetAudit
    from mercer.sphere.evidence import EvidenceCurve

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


def importance_svg(found: Importance) -> str:
    """Draw how much worse rows are predicted without each input."""
    fig = bare_figure(_WIDTH, 1.0 + 0.34 * min(len(found.names), 15))
    errors, names = found.log_score_error, found.names
    importance(found.log_score, errors, names, repeats=found.repeats, ax=fig.subplots())
    return to_svg(fig)


def effects_svg(found: Effects) -> str:
    """Draw how single inputs act."""
    fig = bare_figure(_WIDTH, 0.5 + 1.55 * -(-len(found.curves) // 2))
    return to_svg(effects(found, fig=fig))


def pair_effect_svg(found: PairEffect) -> str:
    """Draw how two inputs act together."""
    fig = bare_figure(_WIDTH, 3.9)
    pair_effect(found, ax=fig.subplots())
    return to_svg(fig)


def evidence_svg(curve: EvidenceCurve, noise_rate: float | None) -> str:
    """Draw the evidence of noise rates."""
    fig = bare_figure(_WIDTH, 3.6)
    evidence_curve(curve, noise_rate=noise_rate, ax=fig.subplots())
    return to_svg(fig)


def label_errors_svg(p_wrong: ArrayLike, fdr: float, noun: str = "label") -> str:
    """Draw the probabilities that labels or values are wrong."""
    fig = bare_figure(_WIDTH, 3.4)
    label_errors(p_wrong, fdr=fdr, noun=noun, ax=fig.subplots())
    return to_svg(fig)


def target_errors_svg(audit: TargetAudit, shown: NDArray[np.int64]) -> str:
    """Draw some rows of an audit, recorded against expected."""
    fig = bare_figure(_WIDTH, 4.6)
    given = (audit.recorded, audit.expected, audit.expected_std, audit.is_listed)
    target_errors(*(each[shown] for each in given), ax=fig.subplots())
    return to_svg(fig)


def boundaries_svg(model: Any, X: ArrayLike, y: ArrayLike, ringed: ArrayLike) -> str:
    """Draw sampled decision boundaries over the rows."""
    fig = bare_figure(_WIDTH, 4.8)
    boundaries(model, X, y, ringed=ringed, ax=fig.subplots())
    return to_svg(fig)


def predictions_svg(rows: HeldTargets, shown: NDArray[np.int64]) -> str:
    """Draw some rows, observed against predicted, with their intervals."""
    fig = bare_figure(_WIDTH, 4.6)
    ends = rows.lower[shown], rows.upper[shown]
    predictions(rows.y[shown], rows.mean[shown], *ends, ax=fig.subplots())
    return to_svg(fig)


def residuals_svg(rows: HeldTargets, n_shown: int) -> str:
    """Draw residuals against predictions."""
    fig = bare_figure(_WIDTH, 3.6)
    residuals(rows.y, rows.mean, n_shown=n_shown, ax=fig.subplots())
    return to_svg(fig)


def pit_svg(histogram: PitHistogram) -> str:
    """Draw where observations lie in their predictive laws."""
    fig = bare_figure(_WIDTH, 4.4)
    pit(histogram, ax=fig.subplots())
    return to_svg(fig)


def interval_coverage_svg(curve: IntervalCoverage) -> str:
    """Draw nominal against observed coverage."""
    fig = bare_figure(_WIDTH, 4.4)
    interval_coverage(curve, ax=fig.subplots())
    return to_svg(fig)


def relevance_svg(
    weights: ArrayLike, names: Sequence[str], prior_interval: tuple[float, float] | None
) -> str:
    """Draw the weights of the inputs."""
    fig = bare_figure(_WIDTH, 1.1 + 0.36 * min(len(names), 30))
    relevance(weights, names, prior_interval=prior_interval, ax=fig.subplots())
    return to_svg(fig)


def laplace_distance_svg(rows_per_region: ArrayLike, differences: ArrayLike) -> str:
    """Draw Laplace's error against the rows per region."""
    fig = bare_figure(_WIDTH, 3.6)
    laplace_distance(rows_per_region, differences, ax=fig.subplots())
    return to_svg(fig)


def kernel_svg(model: Any, n_panels: int) -> str:
    """Draw the learned kernel along so many inputs; two panels in a row if they are four."""
    n_rows = -(-n_panels // (2 if n_panels == 4 else 3))
    fig = bare_figure(_WIDTH, 3.6 if n_panels == 1 else 0.5 + 1.6 * n_rows)
    return to_svg(learned_kernel(model, fig=fig))


def predicted_band_svg(model: Any, X: ArrayLike) -> str:
    """Draw predictions along the only input."""
    fig = bare_figure(_WIDTH, 3.6)
    predicted_band(model, X, ax=fig.subplots())
    return to_svg(fig)


def spectral_density_svg(model: Any, column: int) -> str:
    """Draw the density of the frequencies of one input."""
    fig = bare_figure(_WIDTH, 3.6)
    spectral_density(model, column, ax=fig.subplots())
    return to_svg(fig)


def centres_svg(model: Any, n_centres: int) -> str:
    """Draw the centres of a sum of few kernels, in one or two inputs."""
    fig = bare_figure(_WIDTH, 3.6 if len(model.feature_labels_) == 1 else 4.4)
    centres(model, n_centres, ax=fig.subplots())
    return to_svg(fig)


def prequential_svg(log_density: ArrayLike) -> str:
    """Draw how well rows were predicted, along the stream."""
    fig = bare_figure(_WIDTH, 3.4)
    prequential(log_density, ax=fig.subplots())
    return to_svg(fig)


def particles_svg(draws: Draws, names: Sequence[str]) -> str:
    """Draw the posterior of the named scalars as the weights have it."""
    fig = bare_figure(_WIDTH, 0.4 + 1.9 * -(-len(names) // 3))
    return to_svg(particles(draws, names, fig=fig))


def trace_svg(draws: Draws, names: Sequence[str]) -> str:
    """Draw the chains of the named scalars."""
    fig = bare_figure(_WIDTH, 0.6 + 0.85 * len(names))
    return to_svg(trace(draws, names, fig=fig))


def ranks_svg(draws: Draws, names: Sequence[str]) -> str:
    """Draw the ranks of the named scalars."""
    fig = bare_figure(_WIDTH, 0.6 + 0.85 * len(names))
    return to_svg(ranks(draws, names, fig=fig))
