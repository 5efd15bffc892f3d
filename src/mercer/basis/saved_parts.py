"""What the files of all streams share, whatever their targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.row_learner import RowLearner
from mercer.estimation.saved import is_finite, require
from mercer.posterior.schema import LABELS, Fields, Flag, ListOf, Number, Text, Whole
from mercer.random import entropy_of

__all__ = ["Arrays", "common_values", "numbers_of", "restored_learner"]

Arrays = dict[str, NDArray[Any]]

_DIGITS = Text(is_digits=True)  # a whole number of any length
_STREAM = Fields(
    {
        "labels_of_inputs": ListOf(Text(), least=1),
        "has_feature_names": Flag(),
        "notes": ListOf(Text()),
        "entropy": _DIGITS,
        "n_scored": Whole(),
        "sum_log_density": Number(),
        "told": ListOf(Text(), is_set=True),
        "is_waiting": Flag(),
        "classes": LABELS,
        "n_buffered": Whole(1, 2**40),
        "rng": Fields(
            {
                "state": _DIGITS,
                "inc": _DIGITS,
                "has_uint32": Whole(0, 1),
                "uinteger": Whole(0, 2**32 - 1),
            }
        ),
    },
    optional=frozenset({"classes", "n_buffered", "rng"}),
    is_closed=False,
)


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
    _STREAM.check(values, "fields", {})
    names = tuple(values["labels_of_inputs"])
    model.n_features_in_ = len(names)
    if values["has_feature_names"]:
        model.feature_names_in_ = np.array(names, dtype=object)
    model._names_of_columns = names
    learner: RowLearner[Any, Any] = model._new_learner(common)
    learner.entropy = entropy_of(int(values["entropy"]))
    learner.n_scored = values["n_scored"]
    learner.sum_log_density = float(values["sum_log_density"])
    learner.told = set(values["told"])
    return learner


def numbers_of(
    arrays: Arrays, name: str, ndim: int, width: int | None = None
) -> NDArray[np.float64]:
    """Return an array of finite numbers, of so many dimensions and columns."""
    values = arrays[name]
    is_right = values.dtype == np.float64 and values.ndim == ndim and is_finite(values)
    require(is_right and (width is None or values.shape[-1] == width), name)
    return values
