"""Plots of fitted models: one function each, Matplotlib loaded when the first is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.plot.chains import particles, ranks, trace
    from mercer.plot.functions import (
        boundaries,
        centres,
        effects,
        pair_effect,
        predicted_band,
        repeats,
    )
    from mercer.plot.held_out import (
        error_coverage,
        importance,
        interval_coverage,
        pit,
        predictions,
        prequential,
        reliability,
        residuals,
    )
    from mercer.plot.kernel import learned_kernel, relevance, spectral_density
    from mercer.plot.labels import evidence_curve, label_errors, laplace_distance, target_errors

__all__ = [
    "boundaries",
    "centres",
    "effects",
    "error_coverage",
    "evidence_curve",
    "importance",
    "interval_coverage",
    "label_errors",
    "laplace_distance",
    "learned_kernel",
    "pair_effect",
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
    "target_errors",
    "trace",
]

# Files are not named like their functions: an imported submodule would shadow the function.
_HOMES = {
    "boundaries": "functions",
    "centres": "functions",
    "effects": "functions",
    "error_coverage": "held_out",
    "evidence_curve": "labels",
    "importance": "held_out",
    "interval_coverage": "held_out",
    "label_errors": "labels",
    "laplace_distance": "labels",
    "learned_kernel": "kernel",
    "pair_effect": "functions",
    "particles": "chains",
    "pit": "held_out",
    "predicted_band": "functions",
    "predictions": "held_out",
    "prequential": "held_out",
    "ranks": "chains",
    "relevance": "kernel",
    "reliability": "held_out",
    "repeats": "functions",
    "residuals": "held_out",
    "spectral_density": "kernel",
    "target_errors": "labels",
    "trace": "chains",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
