"""What mercer is compared with; the estimators are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.baselines.a_la_carte import AlaCarteRegressor
    from mercer.baselines.random_features import (
        MKLClassifier,
        MKLRegressor,
        RKSClassifier,
        RKSRegressor,
    )
    from mercer.baselines.rfo import RFOClassifier, RFORegressor

__all__ = [
    "AlaCarteRegressor",
    "MKLClassifier",
    "MKLRegressor",
    "RFOClassifier",
    "RFORegressor",
    "RKSClassifier",
    "RKSRegressor",
]

_HOMES = {"AlaCarteRegressor": "a_la_carte", "RFOClassifier": "rfo", "RFORegressor": "rfo"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'random_features')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
