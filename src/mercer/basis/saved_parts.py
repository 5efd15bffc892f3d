"""What the files of all streams share, whatever their targets."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.row_learner import RowLearner
from mercer.estimation.saved import check_standardizer, is_finite, require
from mercer.estimation.standardize import Standardizer
from mercer.random import entropy_of

__all__ = ["Arrays", "common_values", "numbers_of", "restored_learner", "restored_standardizer"]

Arrays = dict[str, NDArray[Any]]


def common_values(model: Any) -> dict[str, Any]:
    """Return what JSON holds of every stream."""
    learner: RowLearner[Any, Any] = model._learner
    learner.check_whole()
    return {
        "labels_of_inputs": list(learner.names),
        "has_feature_names": hasattr(model, "feature_names_in_"),
        "notes": list(model.notes_),
        "entropy": str(learner.entropy),
        "n_scored": learner.n_scored,
        "sum_log_density": learner.sum_log_density,
        "told": sorted(learner.told),
        "is_waiting": learner.running is None,
    }


def restored_learner(model: Any, values: dict[str, Any], common: Any) -> Any:
    """Return the learner of a new model, and give the model its columns; filters are not there yet.

    Raises
    ------
    ValueError, KeyError, TypeError
        If something is missing or does not fit.
    """
    names = tuple(str(name) for name in values["labels_of_inputs"])
    model.n_features_in_ = len(names)
    if values["has_feature_names"]:
        model.feature_names_in_ = np.array(names, dtype=object)
    model._names_of_columns = names
    learner: RowLearner[Any, Any] = model._new_learner(common)
    learner.entropy = entropy_of(int(values["entropy"]))
    learner.n_scored = int(values["n_scored"])
    learner.sum_log_density = float(values["sum_log_density"])
    require(learner.n_scored >= 0 and bool(np.isfinite(learner.sum_log_density)), "scores")
    learner.told = {str(name) for name in values["told"]}
    return learner


def restored_standardizer(arrays: Arrays, d: int) -> Standardizer:
    """Return how d inputs are standardised."""
    columns = {f.name: arrays[f"standardizer/{f.name}"] for f in fields(Standardizer)}
    standardizer = Standardizer(**columns)
    check_standardizer(standardizer, d)
    return standardizer


def numbers_of(
    arrays: Arrays, name: str, ndim: int, width: int | None = None
) -> NDArray[np.float64]:
    """Return an array of finite numbers, of so many dimensions and columns."""
    values = arrays[name]
    is_right = values.dtype == np.float64 and values.ndim == ndim and is_finite(values)
    require(is_right and (width is None or values.shape[-1] == width), name)
    return values
