"""Bayesian kernel machines by Monte Carlo: honest uncertainty from kernel methods.

Public names are loaded when they are first used, so that ``import mercer`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.basis.classifier import SequentialKernelClassifier as SequentialKernelClassifier
    from mercer.basis.estimator import SequentialKernelRegressor as SequentialKernelRegressor
    from mercer.errors import ConvergenceWarning as ConvergenceWarning
    from mercer.estimation.table_encoder import TableEncoder as TableEncoder
    from mercer.gp.estimator import GPClassifier as GPClassifier
    from mercer.gp.regressor import GPRegressor as GPRegressor
    from mercer.models import load as load
    from mercer.spectral.classifier import BaNKClassifier as BaNKClassifier
    from mercer.spectral.estimator import BaNKRegressor as BaNKRegressor
    from mercer.sphere.estimator import KernelGibbsClassifier as KernelGibbsClassifier
    from mercer.stacking.estimator import MercerClassifier as MercerClassifier
    from mercer.stacking.estimator import MercerRegressor as MercerRegressor

_PARTS = ("baselines", "data", "plot")

_HOMES = {
    "BaNKClassifier": "mercer.spectral.classifier",
    "BaNKRegressor": "mercer.spectral.estimator",
    "ConvergenceWarning": "mercer.errors",
    "GPClassifier": "mercer.gp.estimator",
    "GPRegressor": "mercer.gp.regressor",
    "KernelGibbsClassifier": "mercer.sphere.estimator",
    "MercerClassifier": "mercer.stacking.estimator",
    "MercerRegressor": "mercer.stacking.estimator",
    "SequentialKernelClassifier": "mercer.basis.classifier",
    "SequentialKernelRegressor": "mercer.basis.estimator",
    "TableEncoder": "mercer.estimation.table_encoder",
    "load": "mercer.models",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _PARTS:
        return importlib.import_module(f"mercer.{name}")
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("mercer")
    raise AttributeError(f"module 'mercer' has no attribute {name!r}")


def __dir__() -> list[str]:
    hidden = {"Any", "TYPE_CHECKING", "annotations", "importlib"}
    return sorted({*globals(), *__all__, *_PARTS} - hidden)
