"""Plots of fitted models: one function each, Matplotlib loaded when the first is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.plot.error_coverage_curve import error_coverage
    from mercer.plot.input_relevance import relevance
    from mercer.plot.interval_shares import interval_coverage
    from mercer.plot.kernel_centres import centres
    from mercer.plot.laplace_distances import laplace_distance
    from mercer.plot.learned_kernel_lags import learned_kernel
    from mercer.plot.noise_evidence import evidence_curve
    from mercer.plot.particle_bars import particles
    from mercer.plot.pit_bars import pit
    from mercer.plot.predicted_observed import predictions
    from mercer.plot.prediction_curve import predicted_band
    from mercer.plot.rank_histograms import ranks
    from mercer.plot.reliability_diagram import reliability
    from mercer.plot.repeated_runs import repeats
    from mercer.plot.residual_points import residuals
    from mercer.plot.running_scores import prequential
    from mercer.plot.sampled_boundaries import boundaries
    from mercer.plot.spectral_density_band import spectral_density
    from mercer.plot.suspect_labels import label_errors
    from mercer.plot.trace_lines import trace

__all__ = [
    "boundaries",
    "centres",
    "error_coverage",
    "evidence_curve",
    "interval_coverage",
    "label_errors",
    "laplace_distance",
    "learned_kernel",
    "particles",
    "pit",
    "predicted_band",
    "predictions",
    "prequential",
    "ranks",
    "relevance",
    "reliability",
    "repeats",
    "residuals",
    "spectral_density",
    "trace",
]

# Files are not named like their functions: an imported submodule would shadow the function.
_HOMES = {
    "boundaries": "sampled_boundaries",
    "centres": "kernel_centres",
    "error_coverage": "error_coverage_curve",
    "evidence_curve": "noise_evidence",
    "interval_coverage": "interval_shares",
    "label_errors": "suspect_labels",
    "laplace_distance": "laplace_distances",
    "learned_kernel": "learned_kernel_lags",
    "particles": "particle_bars",
    "pit": "pit_bars",
    "predicted_band": "prediction_curve",
    "predictions": "predicted_observed",
    "prequential": "running_scores",
    "ranks": "rank_histograms",
    "relevance": "input_relevance",
    "reliability": "reliability_diagram",
    "repeats": "repeated_runs",
    "residuals": "residual_points",
    "spectral_density": "spectral_density_band",
    "trace": "trace_lines",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
