"""A stream of classes in the middle of it as parts of a model file and back.

Arrays that do not fit each other are refused: a compiled loop would read beyond their ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.basis.class_filter import (
    MOST_SCALE,
    Approximation,
    ClassFilter,
    ClassState,
    StickBreaking,
    StickState,
)
from mercer.basis.class_learner import ClassLearner, ClassRunning, check_size
from mercer.basis.saved import (
    Arrays,
    check_sets,
    common_values,
    numbers_of,
    restored_learner,
)
from mercer.estimation.model_file import (
    ModelParts,
    decode_labels,
    encode_labels,
    is_finite,
    json_params,
    require,
    restore_standardizer,
)
from mercer.estimation.run import CommonArguments
from mercer.random import generator_from_json, generator_to_json
from mercer.sampling.checkpoint import pack, unpack

# Standardised numbers are below this.
_LARGEST = 1e100


def check_sticks(state: StickState, template: StickState, sticks: StickBreaking) -> None:
    """Refuse a state from a file unless rows can be predicted and learned from it.

    It has the types and dimensions of the template, the state of the same filters before the
    first row.
    """
    counts = [each.n_seen for each in state.states]  # each learns rows of those before it
    require(counts == sorted(counts, reverse=True), "n_seen")
    for each, like, filter_ in zip(state.states, template.states, sticks.filters, strict=True):
        _check_rows(each, like, filter_)
        _check_particles(each, like, filter_)


def _check_rows(state: ClassState, like: ClassState, filter_: ClassFilter) -> None:
    rows, B = state.rows, len(state.rows.sign)
    L, C, _ = like.rows.design.shape
    R, d = like.centres.shape
    shapes = {
        "rows/X": (rows.X, (B, d)),
        "rows/sign": (rows.sign, (B,)),
        "rows/design": (rows.design, (L, C, B)),
        "centres": (state.centres, (R, d)),
        "waiting": (state.waiting, (R, d)),
        "is_waiting": (state.is_waiting, (R,)),
    }
    for name, (array, shape) in shapes.items():
        is_small = bool((np.abs(array) < _LARGEST).all())
        require(array.shape == shape and is_small, name)
    _check_approximation(state.approximation, like.approximation, B)
    n = state.n_seen
    require(n >= 0 and 0 < B <= filter_.schedule.n_buffered, "rows")
    require(n <= B or filter_.schedule.n_buffered == B, "rows")
    require(bool((np.abs(rows.sign[: state.n_held]) == 1.0).all()), "rows/sign")
    r, slots = state.n_candidates, np.flatnonzero(state.is_waiting)
    new = slots[slots >= r]
    require(0 <= r <= R and new.tolist() == list(range(r, r + len(new))), "is_waiting")
    require(r + len(new) == min(n, R), "n_candidates")
    totals = np.array([state.log_evidence, state.evidence_variance])
    require(is_finite(totals), "log_evidence")


def _check_approximation(mine: Approximation, like: Approximation, n_ring: int) -> None:
    require(mine.gram.shape == like.gram.shape and is_finite(mine.gram), "approximation/gram")
    require(mine.moment.shape == like.moment.shape and is_finite(mine.moment), "moment")
    require(mine.anchor.shape == (n_ring,) and is_finite(mine.anchor), "approximation/anchor")
    is_known = 0 <= mine.level < len(mine.gram) and abs(mine.log_scale) <= MOST_SCALE
    require(is_known, "approximation/level")


def _check_particles(state: ClassState, like: ClassState, filter_: ClassFilter) -> None:
    particles, m = state.particles, filter_.prior.n_mean
    for name, mine, theirs in zip(particles._fields, particles, like.particles, strict=True):
        require(mine.shape == theirs.shape and is_finite(mine), f"particles/{name}")
    check_sets(particles, m, state.n_candidates, filter_.grid.n_levels)
    require(1 <= state.n_ancestors <= len(particles.size), "n_ancestors")
    scale = particles.scale
    require(bool(((scale >= 1e-6) & (scale <= 1e6)).all()), "particles/scale")
    require(bool((np.abs(particles.beta) < _LARGEST).all()), "particles/beta")


# A stream of classes in the middle of it as parts of a model file and back, to the last bit.
#
# The file holds the buffered rows, standardised, and rows held back as they came.

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
    arrays["lengthscales"] = first.grid.lengthscales
    arrays |= pack(running.state, "state")
    arrays["X"] = arrays.pop(_ROWS)
    return ModelParts(params, values, arrays)


def restore(parts: ModelParts, model: Any, common: CommonArguments) -> None:
    """Put the parts together again, into a new classifier; an error if something does not fit."""
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
    for name, each in template.filters.items():
        own = f"state/filters/{name}"
        if f"{own}/approximation/gram" not in arrays:  # a file of before: renewed as rows come
            anchor = np.zeros(len(arrays[f"{own}/rows/sign"]))
            arrays |= pack(each.approximation._replace(anchor=anchor), f"{own}/approximation")
    of_state = {name for name in arrays if name.startswith("state/")}
    require(of_state == set(pack(template, "state")), "state")
    state = sticks.copied(unpack(template, arrays, "state"))
    check_sticks(state, template, sticks)
    require(state.n_seen == learner.n_scored, "n_scored")
    return ClassRunning(standardizer, sticks, state, generator_from_json(values["rng"]))
