"""Plots of fitted models: one function each, Matplotlib loaded when the first is used.

Each draws into the axes ``ax``, or into the figure ``fig`` where it needs several, and returns what
it drew into: a new figure of its own, where none is given.
"""

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
_DRAWN_IN = {
    "chains": ("particles", "ranks", "trace"),
    "functions": ("boundaries", "centres", "effects", "pair_effect", "predicted_band", "repeats"),
    "held_out": (
        *("error_coverage", "importance", "interval_coverage", "pit", "predictions"),
        *("prequential", "reliability", "residuals"),
    ),
    "kernel": ("learned_kernel", "relevance", "spectral_density"),
    "labels": ("evidence_curve", "label_errors", "laplace_distance", "target_errors"),
}


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _DRAWN_IN.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
