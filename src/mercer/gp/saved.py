"""A fitted GP classifier as parts of a model file and back.

What comes from a file is checked here, so that a bad file fails when it is read and not at a
prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.model_file import (
    ModelParts,
    decode_labels,
    diagnostics_from_dict,
    draws_from_parts,
    draws_to_parts,
    encode_labels,
    json_params,
)
from mercer.estimation.standardize import Standardizer
from mercer.gp.model import LARGEST_LOG
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws

__all__ = ["Restored", "parts_of", "restore"]


@dataclass(frozen=True)
class Restored:
    """What a model file says of a fitted classifier; standardised rows X, targets y in {0, 1}."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    classes: NDArray[Any]
    feature_labels: tuple[str, ...]
    has_feature_names: bool
    standardizer: Standardizer
    draws: Draws
    diagnostics: Diagnostics
    notes: tuple[str, ...]


def parts_of(model: Any, X: NDArray[np.float64], y: NDArray[np.float64]) -> ModelParts:
    """Split a fitted classifier, with its standardised rows and targets, into parts."""
    values, arrays = draws_to_parts(model.posterior_)
    values |= {
        "classes": encode_labels(model.classes_),
        "diagnostics": model.diagnostics_.to_dict(),
        "notes": list(model.notes_),
        "labels_of_inputs": list(model.feature_labels_),
        "has_feature_names": hasattr(model, "feature_names_in_"),
    }
    arrays |= {"X": X, "y": y}
    for name, column in vars(model.standardizer_).items():
        arrays[f"standardizer/{name}"] = column
    return ModelParts(json_params(model.get_params()), values, arrays)


def restore(parts: ModelParts) -> Restored:
    """Put the parts together again.

    Raises
    ------
    ValueError, KeyError, TypeError
        If something is missing or does not fit; the reader of the file names it.
    """
    values, arrays = parts.fields, parts.arrays
    columns = {f.name: arrays[f"standardizer/{f.name}"] for f in fields(Standardizer)}
    restored = Restored(
        X=arrays["X"],
        y=arrays["y"],
        classes=decode_labels(values["classes"]),
        feature_labels=tuple(str(name) for name in values["labels_of_inputs"]),
        has_feature_names=bool(values["has_feature_names"]),
        standardizer=Standardizer(**columns),
        draws=draws_from_parts(values, arrays),
        diagnostics=diagnostics_from_dict(values["diagnostics"]),
        notes=tuple(str(note) for note in values["notes"]),
    )
    _check(restored)
    return restored


def _check(restored: Restored) -> None:
    """Raise ValueError unless shapes, types and ranges fit together."""
    X, y, classes = restored.X, restored.y, restored.classes
    standardizer, draws = restored.standardizer, restored.draws
    _require(X.ndim == 2 and X.size > 0 and X.dtype == np.float64, "rows")
    n, d = X.shape
    _require(len(restored.feature_labels) == d, "names of columns")
    _require(y.shape == (n,) and y.dtype == np.float64, "targets")
    _require(bool(np.isin(y, (0.0, 1.0)).all()) and bool(np.isfinite(X).all()), "values of rows")
    _require(classes.shape == (2,) and classes[0] != classes[1], "classes")
    for name, values in vars(standardizer).items():
        is_number = values.dtype == (np.int64 if name == "kind" else np.float64)
        _require(is_number and values.shape == (d,) and _is_finite(values), f"standardizer/{name}")
    _require(bool((standardizer.after_scale > 0.0).all()), "standardizer/after_scale")
    _require(bool(((standardizer.kind >= 0) & (standardizer.kind <= 3)).all()), "standardizer/kind")
    shapes = {
        "log_signal_variance": (),
        "log_weight": (d,),
        "log_density": (),
        "dual_coef": (n,),
        "dual_correction": (n,),
    }
    for name, shape in shapes.items():
        values = draws.variables.get(name)
        if values is None:
            raise ValueError(f"no draws of {name}")
        is_right = values.shape[2:] == shape and values.dtype == np.float64
        _require(is_right and _is_finite(values), f"draws of {name}")
    for name in ("log_signal_variance", "log_weight"):
        _require(bool((np.abs(draws.variables[name]) <= LARGEST_LOG).all()), f"draws of {name}")
    _require(bool((np.abs(y - draws.flat("dual_coef")) <= 1.0).all()), "draws of dual_coef")


def _is_finite(values: NDArray[Any]) -> bool:
    return bool(np.isfinite(values).all())


def _require(is_right: bool, what: str) -> None:
    if not is_right:
        raise ValueError(f"{what} are not of the right shape, type or range")
