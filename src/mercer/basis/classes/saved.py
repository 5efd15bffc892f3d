"""A stream of classes in the middle of it as parts of a model file and back, to the last bit.

The file holds the buffered rows, standardised, and rows held back as they came.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.basis.classes.learner import ClassLearner, ClassRunning, check_size
from mercer.basis.classes.saved_state import check_sticks
from mercer.basis.saved_parts import (
    Arrays,
    common_values,
    numbers_of,
    restored_learner,
)
from mercer.estimation.model_file import (
    ModelParts,
    decode_labels,
    encode_labels,
    json_params,
)
from mercer.estimation.run import CommonArguments
from mercer.estimation.saved import require, restore_standardizer
from mercer.random import generator_from_json, generator_to_json
from mercer.sampling.codec import pack, unpack

__all__ = ["parts_of", "restore"]

_ROWS = "state/filters/0/rows/X"


def parts_of(model: Any) -> ModelParts:
    """Split a classifier that has begun to learn into parts."""
    learner: ClassLearner = model._learner
    values = {"classes": encode_labels(model.classes_), **common_values(model)}
    arrays: Arrays = {"log_predictive": np.array(model._last_densities, dtype=np.float64)}
    params, running = json_params(model._params_when_begun), learner.running
    if running is None:
        arrays["X"] = np.array(learner.held_X, dtype=np.float64).reshape(-1, len(learner.names))
        arrays["held/y"] = np.array(learner.held_y, dtype=np.int64)
        return ModelParts(params, values, arrays)
    first = running.sticks.filters[0]
    values["n_buffered"] = first.schedule.n_buffered
    values["rng"] = generator_to_json(running.rng)
    arrays |= {f"standardizer/{n}": v for n, v in vars(running.standardizer).items()}
    arrays["lengthscales"] = first.levels.lengthscales
    arrays |= pack(running.state, "state")
    arrays["X"] = arrays.pop(_ROWS)
    return ModelParts(params, values, arrays)


def restore(parts: ModelParts, model: Any, common: CommonArguments) -> None:
    """Put the parts together again, into a new classifier.

    Raises
    ------
    ValueError, KeyError, TypeError
        If something is missing or does not fit; the reader of the file names it.
    """
    values, arrays = parts.fields, dict(parts.arrays)
    model.classes_ = decode_labels(values["classes"])
    C = len(model.classes_)
    require(C > 1 and model.classes_.tolist() == np.unique(model.classes_).tolist(), "classes")
    learner: ClassLearner = restored_learner(model, values, common)
    if values["is_waiting"]:
        X, labels = numbers_of(arrays, "X", 2, len(learner.names)), arrays["held/y"]
        check_size(X)
        is_class = labels.dtype == np.int64 and bool(((labels >= 0) & (labels < C)).all())
        is_class = is_class and labels.shape == (len(X),)
        require(is_class and len(labels) < learner.scale_rows, "held/y")
        learner.held_X, learner.held_y = list(X), labels.tolist()
    else:
        learner.running = _running(learner, values, arrays)
    model._put(learner, tuple(str(note) for note in values["notes"]))
    model._last_densities = numbers_of(arrays, "log_predictive", 1).tolist()


def _running(learner: ClassLearner, values: dict[str, Any], arrays: Arrays) -> ClassRunning:
    d = len(learner.names)
    standardizer = restore_standardizer(arrays, {"d": d})
    lengthscales, n_buffered = numbers_of(arrays, "lengthscales", 1), int(values["n_buffered"])
    is_falling = bool((np.diff(lengthscales) <= 0.0).all() and len(lengthscales))
    require(is_falling and lengthscales[-1] > 1e-50 and lengthscales[0] < 1e50, "lengthscales")
    require(0 < n_buffered < 2**40, "n_buffered")
    sticks = learner.settings.sticks(
        lengthscales, d, learner.n_classes, n_buffered, learner.entropy
    )
    arrays[_ROWS] = arrays["X"]
    template = sticks.init(np.random.default_rng(0))
    of_state = {name for name in arrays if name.startswith("state/")}
    require(of_state == set(pack(template, "state")), "state")
    state = sticks.copied(unpack(template, arrays, "state"))
    check_sticks(state, template, sticks)
    require(state.n_seen == learner.n_scored, "n_scored")
    return ClassRunning(standardizer, sticks, state, generator_from_json(values["rng"]))
