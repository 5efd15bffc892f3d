"""A stream, of numbers or classes, in the middle of it as parts of a model file and back.

The file holds the buffered rows, standardised, and rows held back as they came.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.basis.class_filter import (
    MOST_SCALE,
    Approximation,
    ClassFilter,
    ClassState,
    StickBreaking,
    StickState,
)
from mercer.basis.class_loops import fill_log_likelihood
from mercer.basis.ensemble import EnsembleState
from mercer.basis.filter import AnyFilter, PrintedFilter, State, with_room, without_room
from mercer.basis.learner import (
    ClassLearner,
    ClassRunning,
    Learner,
    RowLearner,
    Running,
    check_size,
)
from mercer.basis.length_scales import Scalings
from mercer.basis.model import Particles
from mercer.basis.settings import FilterSettings, Scales
from mercer.estimation.model_file import (
    ModelParts,
    decode_labels,
    encode_labels,
    is_finite,
    json_params,
    require,
    restore_standardizer,
)
from mercer.estimation.standardize import TargetScale
from mercer.posterior.schema import LABELS, TARGET, Fields, Flag, ListOf, Number, Text, Whole
from mercer.random import entropy_of, generator_from_json, generator_to_json
from mercer.sampling.checkpoint import pack, unpack

# What the files of all streams share, whatever their targets.

Arrays = dict[str, NDArray[Any]]

# Standardised numbers are below 1e100, their products below the square of that.
_LARGEST, _LARGEST_FACTOR, _LARGEST_SUM = 1e100, 1e110, 1e210
_DIGITS = Text(is_digits=True)  # a whole number of any length
_STREAM = Fields(
    {
        "labels_of_inputs": ListOf(Text(), least=1),
        "has_feature_names": Flag(),
        "notes": ListOf(Text()),
        "entropy": _DIGITS,
        "n_scored": Whole(),
        "sum_log_density": Number(-_LARGEST_SUM, _LARGEST_SUM),
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


def restored_learner(model: Any, values: dict[str, Any]) -> Any:
    """Return the learner of a new model, still without filters, and give the model its columns."""
    _STREAM.check(values, "fields", {})
    names = tuple(values["labels_of_inputs"])
    model.n_features_in_ = len(names)
    if values["has_feature_names"]:
        model.feature_names_in_ = np.array(names, dtype=object)
    model._names_of_columns = names
    learner: RowLearner[Any, Any] = model._new_learner()
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


# What the state of a filter must be when it comes from a file.
#
# Arrays that do not fit each other are refused: a compiled loop would read beyond their ends. So
# are numbers that no stream leads to, where a prediction would not be finite.

_WEIGHT_TOLERANCE = 5e-9  # within what resampling takes for weights


def check_ensemble(
    state: EnsembleState,
    template: EnsembleState,
    filters: tuple[AnyFilter, ...],
    settings: FilterSettings,
) -> None:
    """Refuse a state from a file unless rows can be predicted and learned from it.

    It has the types and dimensions of the template, the state of the same filters before the
    first row.
    """
    surprises = state.surprises
    is_right = surprises.last.shape == template.surprises.last.shape
    require(is_right and bool(np.isin(surprises.last, (0, 1)).all()), "surprises/last")
    require(0 <= surprises.n_set_aside <= surprises.n_met, "surprises")
    require(state.scores.shape == template.scores.shape and is_finite(state.scores), "scores")
    for each, like, filter_ in zip(state.states, template.states, filters, strict=True):
        _check_shapes(each, like)
        _check_counts(each, settings.max_candidates)
        _check_particles(each, like.particles, filter_)


def _check_shapes(state: State, like: State) -> None:
    L, C = state.statistics.moment.shape
    m = like.statistics.moment.shape[1] - len(like.centres)
    R, n_ring, block = C - m, len(state.rows.y), like.pending.shape[0]
    A, d = like.rows.distances.shape[0], like.rows.X.shape[1]
    require(len(like.statistics.moment) == L and R >= 0, "statistics/moment")
    shapes: dict[str, tuple[NDArray[Any], tuple[int, ...]]] = {
        "gram": (state.statistics.gram, (L, C, C)),
        "moment": (state.statistics.moment, (L, C)),
        "centres": (state.centres, (R, d)),
        "rows/X": (state.rows.X, (n_ring, d)),
        "rows/y": (state.rows.y, (n_ring,)),
        "rows/distances": (state.rows.distances, (A, n_ring, R)),
        "rows/age": (state.rows.age, (n_ring,)),
        "pending": (state.pending, (block, L, C)),
        "pending_y": (state.pending_y, (block,)),
        "leaving": (state.leaving, (len(like.leaving), L, C)),
        "leaving_y": (state.leaving_y, like.leaving_y.shape),
    }
    if state.old.gram.shape[1]:
        shapes |= {
            "old/gram": (state.old.gram, (L, C, C)),
            "old/moment": (state.old.moment, (L, C)),
        }
    for name, (array, shape) in shapes.items():
        require(array.shape == shape and _is_at_most(array, _LARGEST_SUM), name)
    for y in (state.rows.y, state.pending_y, state.leaving_y):
        require(_is_at_most(y, _LARGEST), "rows/y")
    require(bool((state.rows.distances >= 0.0).all()), "rows/distances")


def _check_counts(state: State, most_candidates: int) -> None:
    sums, ages = state.statistics, state.rows.age
    require(0 <= state.n_pending <= len(state.pending_y), "n_pending")
    require(0 <= state.n_leaving <= len(state.leaving_y), "n_leaving")
    require(state.n_seen >= 0 and len(state.rows.y) > 0, "n_seen")
    require(sums.n_candidates == min(state.n_seen, most_candidates), "statistics/n_candidates")
    require(sums.n_candidates <= len(state.centres) <= most_candidates, "centres")
    require(bool(((ages >= 0) & (ages <= state.n_discounts)).all()), "rows/age")
    totals = np.array([sums.square, sums.n_rows, state.evidence_variance])
    require(is_finite(totals) and bool((totals >= 0.0).all()), "statistics")
    require(bool(np.isfinite(state.log_evidence)), "log_evidence")


def _check_particles(state: State, like: Particles, filter_: AnyFilter) -> None:
    particles, prior, m = state.particles, filter_.prior, filter_.prior.n_mean
    for name, mine, theirs in zip(particles._fields, particles, like, strict=True):
        require(mine.shape == theirs.shape and is_finite(mine), f"particles/{name}")
    require(_is_at_most(particles.factor, _LARGEST_FACTOR), "particles/factor")
    check_sets(particles, m, state.statistics.n_candidates, filter_.grid.n_levels)
    N, k_max = particles.members.shape
    is_kept = state.is_kept
    require(is_kept.shape == (filter_.grid.n_levels,), "is_kept")
    require(bool(is_kept[particles.level].all()), "is_kept")
    require(1 <= state.n_ancestors <= N, "n_ancestors")
    require(bool(((particles.scale > 0.0) & (particles.noise > 0.0)).all()), "particles/scale")
    require(bool((prior.noise_rate + 0.5 * particles.rss > 0.0).all()), "particles/rss")
    is_used = np.arange(m + k_max) < m + particles.size[:, np.newaxis]
    pivots = np.where(is_used, np.diagonal(particles.factor, axis1=1, axis2=2), 1.0)
    has_begun = state.n_seen > 0
    require(bool((pivots > 0.0).all()) or not has_begun, "particles/factor")


def _with_families(arrays: Arrays, name: str) -> None:
    if name in arrays and arrays[name].ndim == 1:  # a file of before: families are those of one
        arrays[name] = np.column_stack([arrays[name], np.arange(len(arrays[name]))])


def check_sets(particles: Any, n_mean: int, n_candidates: int, n_levels: int) -> None:
    """Refuse particles whose sets, levels, ancestors or weights are none; shapes are right."""
    N, k_max = particles.members.shape
    sizes, members, ancestors = particles.size, particles.members, particles.ancestor
    require(sizes.min() >= 0 and sizes.max() <= k_max, "particles/size")
    used = np.arange(k_max) < sizes[:, np.newaxis]
    is_column = (members >= n_mean) & (members < n_mean + n_candidates)
    # What is not used stands apart, so that a row with equal entries names a column twice.
    columns = np.sort(np.where(used, members, -1 - np.arange(k_max)), axis=1)
    is_set = bool((is_column | ~used).all() and (np.diff(columns, axis=1) > 0).all())
    require(is_set, "particles/members")
    is_level = (particles.level >= 0) & (particles.level < n_levels)
    require(bool(is_level.all()), "particles/level")
    require(bool(((ancestors >= 0) & (ancestors < N)).all()), "particles/ancestor")
    total = float(np.exp(np.minimum(particles.log_weight, 1.0)).sum())
    require(abs(total - 1.0) < _WEIGHT_TOLERANCE, "particles/log_weight")


def _is_at_most(values: NDArray[Any], largest: float) -> bool:
    """Whether all numbers are at most so large; NaN is not."""
    return bool((np.abs(values) <= largest).all())


# A file holds no array that waits for rows or candidates, nor sums that are not kept up to date.

_MOST_BYTES = 2**33  # of the arrays of a filter, once there is room again


def _packed(ensemble: EnsembleState, n_mean: int) -> Arrays:
    """Flatten the filters into arrays, and say for each how much room it had."""
    filters = {}
    for name, state in ensemble.filters.items():
        n = max(1, min(state.n_seen, len(state.rows.y)))
        filters[name] = without_room(state, n, state.statistics.n_candidates, n_mean)
    arrays = pack(replace(ensemble, filters=filters), "state")
    for name, state in ensemble.filters.items():
        gram = f"state/filters/{name}/statistics/gram"
        arrays[gram] = arrays[gram][state.is_kept]
        arrays[f"room/{name}"] = np.array([len(state.rows.y), len(state.centres)])
    return arrays


def _with_all_levels(arrays: Arrays, own: str) -> None:
    """Put the levels whose sums are not kept in their place; a file of before has them all."""
    is_kept, gram = arrays[f"{own}/is_kept"], arrays[f"{own}/statistics/gram"]
    is_mask = is_kept.dtype == np.bool_ and is_kept.ndim == 1 and gram.ndim == 3
    if is_mask and len(gram) == is_kept.sum() < len(is_kept):
        whole = np.zeros((len(is_kept), *gram.shape[1:]), gram.dtype)
        whole[is_kept] = gram
        arrays[f"{own}/statistics/gram"] = whole


def _with_room(state: State, room: NDArray[Any], filter_: AnyFilter, n_most: int) -> State:
    """Give a state the room that it had; ``n_most`` candidates have a place."""
    is_right = room.shape == (2,) and room.dtype == np.int64
    require(is_right and bool((room >= (len(state.rows.y), len(state.centres))).all()), "room")
    (n, r), L, m = room.tolist(), len(state.statistics.gram), filter_.prior.n_mean
    n_numbers = 2 * L * (m + r) ** 2 + len(state.rows.distances) * n * r
    is_bounded = n <= max(_n_buffered(filter_), 1) and r <= n_most
    require(is_bounded and 8 * n_numbers <= _MOST_BYTES, "room")
    return with_room(state, n, r, m)


def _n_buffered(filter_: AnyFilter) -> int:
    if isinstance(filter_, PrintedFilter):
        return filter_.n_buffered
    return filter_.schedule.n_buffered


def parts_of(model: Any) -> ModelParts:
    """Split a regressor that has begun to learn into parts."""
    learner: Learner = model._learner
    values = common_values(model)
    d = len(learner.names)
    arrays: Arrays = {
        "log_predictive": model._scores(),
        "held/X": np.array(learner.held_X, dtype=np.float64).reshape(-1, d),
        "held/y": np.array(learner.held_y, dtype=np.float64),
    }
    running = learner.running
    if running is None:
        arrays["X"] = arrays.pop("held/X")
        return ModelParts(json_params(model._params_when_begun), values, arrays)
    values |= {
        "target_centre": running.scales.target.centre,
        "target_scale": running.scales.target.scale,
        "rng": generator_to_json(running.rng),
        "n_buffered": _n_buffered(running.ensemble.filters[0]),
    }
    arrays |= {f"standardizer/{n}": v for n, v in vars(running.scales.standardizer).items()}
    grid = running.ensemble.filters[0].grid
    arrays |= {"lengthscales": grid.lengthscales, "scalings": grid.scalings}
    if grid.log_prior is not None:
        values["n_shaping"] = grid.n_shaping
        arrays["log_prior_of_scalings"] = grid.log_prior
    arrays |= _packed(running.state, running.ensemble.filters[0].prior.n_mean)
    arrays["X"] = arrays.pop("state/filters/0/rows/X")
    return ModelParts(json_params(model._params_when_begun), values, arrays)


def restore(parts: ModelParts, model: Any) -> None:
    """Put the parts together again, into a new regressor; an error where something does not fit."""
    values, arrays = parts.fields, dict(parts.arrays)
    learner: Learner = restored_learner(model, values)
    if values["is_waiting"]:
        learner.held_X = list(numbers_of(arrays, "X", 2, len(learner.names)))
        learner.held_y = numbers_of(arrays, "held/y", 1).tolist()
        n_held = len(learner.held_y)
        require(len(learner.held_X) == n_held < learner.scale_rows, "held rows")
        learner.check_size(np.array(learner.held_y))
    else:
        _restore_state(learner, values, arrays)
    model._put(learner, tuple(str(note) for note in values["notes"]))
    model._last_densities = numbers_of(arrays, "log_predictive", 1).tolist()


def _caught_up(filter_: AnyFilter, state: State) -> State:
    """Discount the sums of a file of before, where this was done once the next row came."""
    last = (state.n_seen - 1) % len(state.rows.y)
    if isinstance(filter_, PrintedFilter) or state.rows.age[last] < state.n_discounts:
        return state
    return filter_.discounted(state)


def _restore_state(learner: Learner, values: dict[str, Any], arrays: Arrays) -> None:
    d = len(learner.names)
    standardizer = restore_standardizer(arrays, {"d": d})
    TARGET.check(values, "fields", {})
    target = TargetScale(values["target_centre"], values["target_scale"])
    lengthscales = numbers_of(arrays, "lengthscales", 1)
    is_falling = bool((np.diff(lengthscales) <= 0.0).all() and len(lengthscales))
    require(is_falling and lengthscales[-1] > 1e-50 and lengthscales[0] < 1e150, "lengthscales")
    scalings = numbers_of(arrays, "scalings", 2, d)
    require(len(scalings) > 0 and bool((scalings > 0).all()), "scalings")
    log_prior, n_shaping = np.zeros(1), 0
    if len(scalings) > 1:
        # A file of the first release has none: its scalings were alike.
        log_prior, n_shaping = np.full(len(scalings), -np.log(len(scalings))), 1
    if "log_prior_of_scalings" in arrays:
        log_prior = numbers_of(arrays, "log_prior_of_scalings", 1)
        n_shaping = int(values["n_shaping"])
    require(len(log_prior) == len(scalings) and n_shaping >= 0, "log_prior_of_scalings")
    grid = learner.settings.grid_of(lengthscales, Scalings(scalings, log_prior, n_shaping))
    n_buffered = int(values.get("n_buffered", 0))
    ensemble = learner.settings.ensemble(grid, learner.entropy, n_buffered)
    arrays["state/filters/0/rows/X"] = arrays["X"]
    template = ensemble.init(np.random.default_rng(0))
    if "state/surprises/n_met" not in arrays:  # a file of the first release: none was met
        arrays |= pack(template.surprises, "state/surprises")
    for name, each in template.filters.items():
        arrays.setdefault(f"state/filters/{name}/is_kept", each.is_kept)  # a file of before
        _with_families(arrays, f"state/filters/{name}/particles/ancestor")
        _with_all_levels(arrays, f"state/filters/{name}")
    state = ensemble.copied(unpack(template, arrays, "state"))
    check_ensemble(state, template, ensemble.filters, learner.settings)
    filters = {}
    for (name, each), filter_ in zip(state.filters.items(), ensemble.filters, strict=True):
        room = arrays.get(f"room/{name}", np.array([len(each.rows.y), len(each.centres)]))
        each = _with_room(each, room, filter_, learner.settings.max_candidates)
        filters[name] = _caught_up(filter_, each)
    state = replace(state, filters=filters)
    scales = Scales(standardizer, target)
    learner.running = Running(scales, ensemble, state, generator_from_json(values["rng"]))


# A stream of classes in the middle of it as parts of a model file and back: the file holds the
# buffered rows, standardised, and rows held back as they came.


def check_sticks(state: StickState, template: StickState, sticks: StickBreaking) -> None:
    """Refuse a state from a file unless rows can be predicted and learned from it.

    It has the types and dimensions of the template, the state of the same filters before the
    first row.
    """
    counts = [each.n_seen for each in state.states]  # each learns rows of those before it
    require(counts == sorted(counts, reverse=True), "n_seen")
    for each, like, filter_ in zip(state.states, template.states, sticks.filters, strict=True):
        _check_rows(each, like, filter_)
        _check_class_particles(each, like, filter_)


def _check_rows(state: ClassState, like: ClassState, filter_: ClassFilter) -> None:
    rows, B = state.rows, len(state.rows.sign)
    L, C, _ = like.rows.design.shape
    R, d = like.centres.shape
    shapes = {
        "rows/X": (rows.X, (B, d)),
        "rows/sign": (rows.sign, (B,)),
        "rows/weight": (rows.weight, (B if filter_.retention < 1.0 else 0,)),
        "rows/design": (rows.design, (L, C, B)),
        "centres": (state.centres, (R, d)),
        "waiting": (state.waiting, (R, d)),
        "is_waiting": (state.is_waiting, (R,)),
    }
    for name, (array, shape) in shapes.items():
        is_small = bool((np.abs(array) < _LARGEST).all())
        require(array.shape == shape and is_small, name)
    _check_approximation(state.approximation, like.approximation, B, filter_.prior.n_mean)
    n = state.n_seen
    require(n >= 0 and 0 < B <= filter_.schedule.n_buffered, "rows")
    require(n <= B or filter_.schedule.n_buffered == B, "rows")
    require(bool((np.abs(rows.sign[: state.n_held]) == 1.0).all()), "rows/sign")
    require(bool(((rows.weight >= 0.0) & (rows.weight <= 1.0)).all()), "rows/weight")
    r, slots = state.n_candidates, np.flatnonzero(state.is_waiting)
    new = slots[slots >= r]
    require(0 <= r <= R and new.tolist() == list(range(r, r + len(new))), "is_waiting")
    require(r + len(new) == min(n, R), "n_candidates")
    totals = np.array([state.log_evidence, state.evidence_variance])
    require(is_finite(totals), "log_evidence")


def _check_approximation(mine: Approximation, like: Approximation, n_ring: int, m: int) -> None:
    for name in ("products", "moments"):
        array = getattr(mine, name)
        is_right = array.shape == getattr(like, name).shape and is_finite(array)
        require(is_right, f"approximation/{name}")
    pivots = np.diagonal(mine.products, axis1=1, axis2=2)[:, :m]
    require(bool((pivots > 0.0).all()), "approximation/products")
    require(mine.anchor.shape == (n_ring,) and is_finite(mine.anchor), "approximation/anchor")
    is_known = 0 <= mine.level < len(mine.moments) and abs(mine.log_scale) <= MOST_SCALE
    require(is_known, "approximation/level")


def _check_class_particles(state: ClassState, like: ClassState, filter_: ClassFilter) -> None:
    particles, m = state.particles, filter_.prior.n_mean
    for name, mine, theirs in zip(particles._fields, particles, like.particles, strict=True):
        require(mine.shape == theirs.shape and is_finite(mine), f"particles/{name}")
    check_sets(particles, m, state.n_candidates, filter_.grid.n_levels)
    require(1 <= state.n_ancestors <= len(particles.size), "n_ancestors")
    scale = particles.scale
    require(bool(((scale >= 1e-6) & (scale <= 1e6)).all()), "particles/scale")
    require(bool((np.abs(particles.beta) < _LARGEST).all()), "particles/beta")


_ROWS = "state/filters/0/rows/X"


def class_parts_of(model: Any) -> ModelParts:
    """Split a classifier that has begun to learn into parts."""
    learner: ClassLearner = model._learner
    values = {"classes": encode_labels(model.classes_), **common_values(model)}
    arrays: Arrays = {"log_predictive": model._scores()}
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


def restore_classes(parts: ModelParts, model: Any) -> None:
    """Put the parts together again, into a new classifier; an error if something does not fit."""
    values, arrays = parts.fields, dict(parts.arrays)
    model.classes_ = decode_labels(values["classes"])
    C = len(model.classes_)
    require(C > 1 and model.classes_.tolist() == np.unique(model.classes_).tolist(), "classes")
    learner: ClassLearner = restored_learner(model, values)
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
    template, lacking = sticks.init(np.random.default_rng(0)), list[str]()
    for name, each in template.filters.items():
        own = f"state/filters/{name}"
        if f"{own}/approximation/products" not in arrays:  # a file of before: renewed as rows come
            anchor = np.zeros(len(arrays[f"{own}/rows/sign"]))
            arrays |= pack(each.approximation._replace(anchor=anchor), f"{own}/approximation")
            for part in ("gram", "moment"):
                arrays.pop(f"{own}/approximation/{part}", None)
        if each.rows.weight.size == 0:  # nor does a file of before know of weights
            arrays.setdefault(f"{own}/rows/weight", np.zeros(0))
        arrays.pop(f"{own}/log_likelihood", None)
        _with_families(arrays, f"{own}/particles/ancestor")
        if f"{own}/particles/log_likelihood" not in arrays:
            arrays[f"{own}/particles/log_likelihood"] = np.zeros(len(each.particles.size))
            lacking.append(name)
    of_state = {name for name in arrays if name.startswith("state/")}
    require(of_state == set(pack(template, "state")), "state")
    state = sticks.copied(unpack(template, arrays, "state"))
    check_sticks(state, template, sticks)
    for name in lacking:
        each, m = state.filters[name], sticks.filters[0].prior.n_mean
        rows = each.rows
        fill_log_likelihood(rows.design, rows.labels, each.n_held, m, each.particles)
    require(state.n_seen == learner.n_scored, "n_scored")
    return ClassRunning(standardizer, sticks, state, generator_from_json(values["rng"]))
