"""Bayesian kernel machines by Monte Carlo: honest uncertainty from kernel methods.

Public names are loaded when they are first used, so that ``import mercer`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.gp.estimator import GPClassifier as GPClassifier
    from mercer.models import load as load
    from mercer.spectral.estimator import BaNKRegressor as BaNKRegressor
    from mercer.sphere.estimator import KernelGibbsClassifier as KernelGibbsClassifier

__all__ = ["BaNKRegressor", "GPClassifier", "KernelGibbsClassifier", "load"]

_HOMES = {
    "BaNKRegressor": "mercer.spectral.estimator",
    "GPClassifier": "mercer.gp.estimator",
    "KernelGibbsClassifier": "mercer.sphere.estimator",
    "load": "mercer.models",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in ("plot", "data", "baselines"):
        return importlib.import_module(f"mercer.{name}")
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "plot", "data", "baselines"])
