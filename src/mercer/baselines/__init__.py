"""What mercer is compared with; the estimators are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mercer.baselines.a_la_carte import AlaCarteRegressor as AlaCarteRegressor
    from mercer.baselines.random_features import MKLClassifier as MKLClassifier
    from mercer.baselines.random_features import MKLRegressor as MKLRegressor
    from mercer.baselines.random_features import RKSClassifier as RKSClassifier
    from mercer.baselines.random_features import RKSRegressor as RKSRegressor
    from mercer.baselines.rfo import RFOClassifier as RFOClassifier
    from mercer.baselines.rfo import RFORegressor as RFORegressor

_HOMES = {
    "AlaCarteRegressor": "a_la_carte",
    "MKLClassifier": "random_features",
    "MKLRegressor": "random_features",
    "RFOClassifier": "rfo",
    "RFORegressor": "rfo",
    "RKSClassifier": "random_features",
    "RKSRegressor": "random_features",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
