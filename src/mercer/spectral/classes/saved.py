"""A fitted BaNK classifier as parts of a model file and back. No training row is in it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from mercer.estimation.model_file import ModelParts, json_params
from mercer.estimation.saved import common_parts, is_finite, require, restore_common
from mercer.posterior.draws import Draws
from mercer.spectral.classes.predict import ClassDraws, class_draws
from mercer.spectral.classes.results import ClassResult
from mercer.spectral.classes.settings import MOST_CLASSES
from mercer.spectral.saved_spectrum import check_numbers, check_scales, check_spectra
from mercer.spectral.start import Scales

__all__ = ["parts_of", "restore"]

_DRAWS = (
    "log_likelihood",
    "concentration",
    "base_scale",
    "frequencies",
    "coef_mean",
    "coef_deviation",
)
# Of a function at any row: far from where a sum of coefficients overflows.
_LARGEST_COEF = 1e100


def parts_of(model: Any) -> ModelParts:
    """Split a fitted classifier into parts."""
    values, arrays = common_parts(model)
    values["n_training_rows"] = model.n_training_rows_
    arrays["start_scales"] = model.start_scales_
    arrays["class_order"] = model._order
    if len(model._functions.mean) < model.posterior_.n_total:
        # Coefficients from all rows, of a few draws; else they are those of the draws.
        arrays |= {f"functions/{name}": each for name, each in vars(model._functions).items()}
    return ModelParts(json_params(model.get_params()), values, arrays)


def restore(parts: ModelParts, model: Any) -> ClassResult:
    """Put the parts together again, and give ``model`` what scikit-learn's checks had set.

    Raises
    ------
    ValueError, KeyError, TypeError
        If something is missing or does not fit; the reader of the file names it.
    """
    common = restore_common(parts)
    d, C = len(common.feature_labels), len(common.classes)
    require(C <= MOST_CLASSES, "classes")
    order = parts.arrays["class_order"]
    is_order = order.dtype == np.int64 and order.shape == (C,)
    require(is_order and np.array_equal(np.sort(order), np.arange(C)), "class_order")
    scales = check_scales(parts, d)
    n_rows = parts.fields["n_training_rows"]
    settings = model._class_settings(n_rows, C)
    n_scales = d if settings.spectral.base_measure == "diagonal" else 1
    check_numbers(common.draws, _DRAWS)
    m = check_spectra(common.draws, d, n_scales)
    n_coef = 2 * m + (d + 1 if settings.spectral.linear_part else 0)
    _check_coefficients(common.draws, C - 1, n_coef)
    common.put_into(model)
    return ClassResult(
        classes=common.classes,
        order=order,
        feature_labels=common.feature_labels,
        standardizer=common.standardizer,
        n_rows=n_rows,
        start_scales=scales,
        draws=common.draws,
        diagnostics=common.diagnostics,
        notes=common.notes,
        mixture=settings.mixture(Scales(scales, 1.0)),
        functions=_functions(parts, common.draws),
    )


def _check_coefficients(draws: Draws, n_sticks: int, n_coef: int) -> None:
    mean, deviation = draws.variables["coef_mean"], draws.variables["coef_deviation"]
    require(mean.shape[2:] == (n_sticks, n_coef), "draws of coef_mean")
    is_right = deviation.ndim == 5 and deviation.shape[3] > 0
    is_right = is_right and deviation.shape[2::2] == (n_sticks, n_coef)
    require(is_right, "draws of coef_deviation")
    require(draws.variables["log_likelihood"].ndim == 2, "draws of log_likelihood")
    for name in ("coef_mean", "coef_deviation"):
        is_small = bool((np.abs(draws.variables[name]) <= _LARGEST_COEF).all())
        require(is_small, f"draws of {name}")


def _functions(parts: ModelParts, draws: Draws) -> ClassDraws:
    own = class_draws(draws)
    names = [f.name for f in fields(ClassDraws)]
    if f"functions/{names[0]}" not in parts.arrays:
        return own
    stored = ClassDraws(**{name: parts.arrays[f"functions/{name}"] for name in names})
    n = len(stored.mean)
    for name in names:
        mine, theirs = getattr(stored, name), getattr(own, name)
        is_right = mine.dtype == np.float64 and mine.ndim == theirs.ndim and len(mine) == n > 0
        is_right = is_right and is_finite(mine) and bool((np.abs(mine) <= _LARGEST_COEF).all())
        is_right = is_right and mine.shape[1] == theirs.shape[1]
        require(is_right and mine.shape[-1] == theirs.shape[-1], f"functions/{name}")
    require(stored.deviations.shape[2] > 0, "functions/deviations")
    return stored
