"""A stream in the middle of it as parts of a model file and back, to the last bit.

The file holds the buffered rows, standardised, and rows held back as they came.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.basis.learner import Learner, Running
from mercer.basis.levels.relevance import Scalings
from mercer.basis.saved_parts import (
    Arrays,
    common_values,
    numbers_of,
    restored_learner,
)
from mercer.basis.saved_state import check_bank
from mercer.basis.scales import Scales
from mercer.estimation.model_file import ModelParts, json_params
from mercer.estimation.run import CommonArguments
from mercer.estimation.saved import require, restore_standardizer
from mercer.estimation.target_scale import TargetScale
from mercer.posterior.schema import TARGET
from mercer.random import generator_from_json, generator_to_json
from mercer.sampling.codec import pack, unpack

__all__ = ["parts_of", "restore"]


def parts_of(model: Any) -> ModelParts:
    """Split a regressor that has begun to learn into parts."""
    learner: Learner = model._learner
    values = common_values(model)
    d = len(learner.names)
    arrays: Arrays = {
        "log_predictive": np.array(model._last_densities, dtype=np.float64),
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
    }
    arrays |= {f"standardizer/{n}": v for n, v in vars(running.scales.standardizer).items()}
    levels = running.bank.filters[0].levels
    arrays |= {"lengthscales": levels.lengthscales, "scalings": levels.scalings}
    if levels.log_prior is not None:
        values["n_shaping"] = levels.n_shaping
        arrays["log_prior_of_scalings"] = levels.log_prior
    arrays |= pack(running.state, "state")
    arrays["X"] = arrays.pop("state/filters/0/rows/X")
    return ModelParts(json_params(model._params_when_begun), values, arrays)


def restore(parts: ModelParts, model: Any, common: CommonArguments) -> None:
    """Put the parts together again, into a new regressor.

    Raises
    ------
    ValueError, KeyError, TypeError
        If something is missing or does not fit; the reader of the file names it.
    """
    values, arrays = parts.fields, dict(parts.arrays)
    learner: Learner = restored_learner(model, values, common)
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
        log_prior = numbers_of(arrays, "log_prior_of_scalings", 1)
        n_shaping = int(values["n_shaping"])
    require(len(log_prior) == len(scalings) and n_shaping >= 0, "log_prior_of_scalings")
    levels = learner.settings.levels_of(lengthscales, Scalings(scalings, log_prior, n_shaping))
    bank = learner.settings.bank(levels, learner.entropy)
    arrays["state/filters/0/rows/X"] = arrays["X"]
    template = bank.init(np.random.default_rng(0))
    state = bank.copied(unpack(template, arrays, "state"))
    check_bank(state, template, bank.filters, learner.settings)
    scales = Scales(standardizer, target)
    learner.running = Running(scales, bank, state, generator_from_json(values["rng"]))
