"""What the files of all estimators hold: classes, names of columns, standardisation, draws.

What comes from a file is checked here, so that a bad file fails when it is read and not at a
prediction.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from mercer.posterior.schema import COMMON, STANDARDIZER, Sizes, check_arrays

__all__ = [
    "Common",
    "check_constant",
    "common_parts",
    "is_finite",
    "require",
    "restore_common",
    "restore_standardizer",
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
    sizes: Sizes = {}
    COMMON.check(values, "fields", sizes)
    standardizer = restore_standardizer(arrays, sizes)
    common = Common(
        known_classes=decode_labels(values["classes"]) if "classes" in values else None,
        feature_labels=tuple(values["labels_of_inputs"]),
        has_feature_names=values["has_feature_names"],
        standardizer=standardizer,
        draws=draws_from_parts(values, arrays),
        diagnostics=diagnostics_from_dict(values["diagnostics"]),
        notes=tuple(values["notes"]),
    )
    if common.known_classes is not None:
        _check_classes(common.known_classes)
    return common


def _check_classes(classes: NDArray[Any]) -> None:
    is_right = classes.ndim == 1 and len(classes) > 1 and len(set(classes.tolist())) == len(classes)
    require(is_right, "classes")


def restore_standardizer(arrays: Mapping[str, NDArray[Any]], sizes: Sizes) -> Standardizer:
    """Put the standardiser of d inputs together again; d may be known already."""
    check_arrays(arrays, STANDARDIZER, sizes)
    columns = {f.name: arrays[f"standardizer/{f.name}"] for f in fields(Standardizer)}
    standardizer = Standardizer(**columns)
    is_constant = standardizer.scale == 0.0
    require(bool((standardizer.kind[is_constant] == 0).all()), "standardizer/scale")
    return standardizer


def check_constant(standardizer: Standardizer, X: NDArray[np.float64]) -> None:
    """Refuse a column that the standardiser makes constant and the stored rows X do not have so."""
    require(not bool(X[:, standardizer.scale == 0.0].any()), "standardizer/scale")


def is_finite(values: NDArray[Any]) -> bool:
    """Whether all numbers are finite."""
    return bool(np.isfinite(values).all())


def require(is_right: bool, what: str) -> None:
    """Raise ValueError unless a part of a file is what it must be."""
    if not is_right:
        raise ValueError(f"{what} are not of the right shape, type or range")
