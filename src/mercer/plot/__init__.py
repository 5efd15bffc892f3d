"""Plots of fitted models: one function each, Matplotlib loaded when the first is used.

Each draws into the axes ``ax``, or into the figure ``fig`` where it needs several, and returns what
it drew into: a new figure of its own, where none is given.
"""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.plot.chains import particles as particles
    from mercer.plot.chains import ranks as ranks
    from mercer.plot.chains import trace as trace
    from mercer.plot.functions import boundaries as boundaries
    from mercer.plot.functions import centres as centres
    from mercer.plot.functions import effects as effects
    from mercer.plot.functions import pair_effect as pair_effect
    from mercer.plot.functions import predicted_band as predicted_band
    from mercer.plot.functions import repeats as repeats
    from mercer.plot.held_out import error_coverage as error_coverage
    from mercer.plot.held_out import gains as gains
    from mercer.plot.held_out import importance as importance
    from mercer.plot.held_out import interval_coverage as interval_coverage
    from mercer.plot.held_out import pit as pit
    from mercer.plot.held_out import predictions as predictions
    from mercer.plot.held_out import prequential as prequential
    from mercer.plot.held_out import reliability as reliability
    from mercer.plot.held_out import residuals as residuals
    from mercer.plot.kernel import learned_kernel as learned_kernel
    from mercer.plot.kernel import relevance as relevance
    from mercer.plot.kernel import spectral_density as spectral_density
    from mercer.plot.labels import evidence_curve as evidence_curve
    from mercer.plot.labels import label_errors as label_errors
    from mercer.plot.labels import laplace_distance as laplace_distance
    from mercer.plot.labels import target_errors as target_errors

# Files are not named like their functions: an imported submodule would shadow the function.
_DRAWN_IN = {
    "chains": ("particles", "ranks", "trace"),
    "functions": ("boundaries", "centres", "effects", "pair_effect", "predicted_band", "repeats"),
    "held_out": (
        *("error_coverage", "gains", "importance", "interval_coverage", "pit", "predictions"),
        *("prequential", "reliability", "residuals"),
    ),
    "kernel": ("learned_kernel", "relevance", "spectral_density"),
    "labels": ("evidence_curve", "label_errors", "laplace_distance", "target_errors"),
}

__all__ = [*chain(*_DRAWN_IN.values())]


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _DRAWN_IN.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
