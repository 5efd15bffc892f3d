"""What the files of all estimators hold: classes, names of columns, standardisation, draws.

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
)
from mercer.estimation.standardize import Standardizer
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws

__all__ = [
    "Common",
    "check_standardizer",
    "common_parts",
    "is_finite",
    "require",
    "restore_common",
]


@dataclass(frozen=True)
class Common:
    """The parts of a fitted estimator that all methods have; a regressor knows no classes."""

    known_classes: NDArray[Any] | None
    feature_labels: tuple[str, ...]
    has_feature_names: bool
    standardizer: Standardizer
    draws: Draws
    diagnostics: Diagnostics
    notes: tuple[str, ...]

    @property
    def classes(self) -> NDArray[Any]:
        """Labels of a classifier's classes.

        Raises
        ------
        ValueError
            If there are none.
        """
        if self.known_classes is None:
            raise ValueError("a classifier needs classes")
        return self.known_classes

    def put_into(self, model: Any) -> None:
        """Set the fitted attributes that they are."""
        if self.known_classes is not None:
            model.classes_ = self.known_classes
        model.feature_labels_ = self.feature_labels
        model.n_features_in_ = len(self.feature_labels)
        if self.has_feature_names:
            model.feature_names_in_ = np.array(self.feature_labels, dtype=object)
        model.standardizer_ = self.standardizer
        model.posterior_ = self.draws
        model.diagnostics_ = self.diagnostics
        model.notes_ = self.notes


def common_parts(model: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Split what all fitted estimators have into JSON values and arrays."""
    values, arrays = draws_to_parts(model.posterior_)
    values |= {
        "diagnostics": model.diagnostics_.to_dict(),
        "notes": list(model.notes_),
        "labels_of_inputs": list(model.feature_labels_),
        "has_feature_names": hasattr(model, "feature_names_in_"),
    }
    if hasattr(model, "classes_"):
        values["classes"] = encode_labels(model.classes_)
    for name, column in vars(model.standardizer_).items():
        arrays[f"standardizer/{name}"] = column
    return values, arrays


def restore_common(parts: ModelParts) -> Common:
    """Put the parts together again.

    Raises
    ------
    ValueError, KeyError, TypeError
        If something is missing or does not fit; the reader of the file names it.
    """
    values, arrays = parts.fields, parts.arrays
    columns = {f.name: arrays[f"standardizer/{f.name}"] for f in fields(Standardizer)}
    common = Common(
        known_classes=decode_labels(values["classes"]) if "classes" in values else None,
        feature_labels=tuple(str(name) for name in values["labels_of_inputs"]),
        has_feature_names=bool(values["has_feature_names"]),
        standardizer=Standardizer(**columns),
        draws=draws_from_parts(values, arrays),
        diagnostics=diagnostics_from_dict(values["diagnostics"]),
        notes=tuple(str(note) for note in values["notes"]),
    )
    if common.known_classes is not None:
        _check_classes(common.known_classes)
    check_standardizer(common.standardizer, len(common.feature_labels))
    return common


def _check_classes(classes: NDArray[Any]) -> None:
    is_right = classes.ndim == 1 and len(classes) > 1 and len(set(classes.tolist())) == len(classes)
    require(is_right, "classes")


def check_standardizer(standardizer: Standardizer, d: int) -> None:
    """Raise ValueError unless a standardiser from a file is one of d columns."""
    for name, values in vars(standardizer).items():
        is_number = values.dtype == (np.int64 if name == "kind" else np.float64)
        require(is_number and values.shape == (d,) and is_finite(values), f"standardizer/{name}")
    require(bool((standardizer.after_scale > 0.0).all()), "standardizer/after_scale")
    require(bool(((standardizer.kind >= 0) & (standardizer.kind <= 3)).all()), "standardizer/kind")


def is_finite(values: NDArray[Any]) -> bool:
    """Whether all numbers are finite."""
    return bool(np.isfinite(values).all())


def require(is_right: bool, what: str) -> None:
    """Raise ValueError unless a part of a file is what it must be."""
    if not is_right:
        raise ValueError(f"{what} are not of the right shape, type or range")
