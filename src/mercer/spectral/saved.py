"""Fitted BaNK models as parts of a file and back. No training row is in it.

A fitted BaNK regressor as parts of a model file and back. No training row is in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.model_file import (
    ModelParts,
    common_parts,
    is_finite,
    json_params,
    require,
    restore_common,
)
from mercer.posterior.draws import Draws
from mercer.posterior.schema import TARGET, Array, Fields, Whole, check_arrays
from mercer.spectral.class_fitting import MOST_CLASSES, ClassDraws, ClassResult, class_draws
from mercer.spectral.fitting import Result
from mercer.spectral.model import Scales
from mercer.spectral.prediction import FunctionDraws, function_draws

__all__ = [
    "check_numbers",
    "check_scales",
    "check_spectra",
    "class_parts_of",
    "parts_of",
    "restore",
    "restore_classes",
]


# What the files of both estimators hold of spectra, checked when they are read.

_LARGEST_FREQUENCY = 1e50  # radians per standardised unit
_FIELDS = Fields({"n_training_rows": Whole(1)}, is_closed=False)
_START = {"start_scales": Array(("d",), least=0.0, most=_LARGEST_FREQUENCY, is_open=True)}


def check_scales(parts: ModelParts, d: int) -> NDArray[np.float64]:
    """Return the scales of the start, shape (d,)."""
    _FIELDS.check(parts.fields, "fields", {})
    check_arrays(parts.arrays, _START, {"d": d})
    return np.asarray(parts.arrays["start_scales"])


def check_numbers(draws: Draws, names: Iterable[str]) -> None:
    """Raise ValueError unless there are finite draws of all these."""
    missing = [name for name in (*names, "assignment") if name not in draws.variables]
    require(not missing, f"draws of {', '.join(missing)}")
    for name in names:
        values = draws.variables[name]
        require(values.dtype == np.float64 and is_finite(values), f"draws of {name}")


def check_spectra(draws: Draws, d: int, n_scales: int) -> int:
    """Check frequencies of d inputs and their mixtures; return how many frequencies there are."""
    W, Z = draws.variables["frequencies"], draws.variables["assignment"]
    require(W.ndim == 4 and W.shape[2] > 0 and W.shape[3] == d, "draws of frequencies")
    require(bool((np.abs(W) <= _LARGEST_FREQUENCY).all()), "draws of frequencies")
    m = int(W.shape[2])
    for name in ("concentration", "base_scale"):
        require(bool((draws.variables[name] > 0.0).all()), f"draws of {name}")
    require(draws.variables["concentration"].ndim == 2, "draws of concentration")
    require(draws.variables["base_scale"].shape[2:] == (n_scales,), "draws of base_scale")
    is_right = Z.dtype == np.int64 and Z.shape[2:] == (m,) and Z.min() >= 0 and Z.max() < m
    require(bool(is_right), "draws of assignment")
    return m


_DRAWS = (
    "log_evidence",
    "noise_std",
    "concentration",
    "base_scale",
    "frequencies",
    "coef_mean",
    "coef_deviation",
)


def parts_of(model: Any) -> ModelParts:
    """Split a fitted regressor into parts."""
    values, arrays = common_parts(model)
    values |= {
        "target_centre": model.target_centre_,
        "target_scale": model.target_scale_,
        "n_training_rows": model.n_training_rows_,
    }
    arrays["start_scales"] = model.start_scales_
    if len(model._functions.mean) < model.posterior_.n_total:
        # Coefficients from all rows, of a few draws; else they are those of the draws.
        arrays |= {f"functions/{name}": each for name, each in vars(model._functions).items()}
    return ModelParts(json_params(model.get_params()), values, arrays)


def restore(parts: ModelParts, model: Any) -> Result:
    """Put the parts together again, and give ``model`` what scikit-learn's checks had set.

    Raises
    ------
    ValueError, KeyError, TypeError
        If something is missing or does not fit; the reader of the file names it.
    """
    common, values = restore_common(parts), parts.fields
    d = len(common.feature_labels)
    scales = check_scales(parts, d)
    TARGET.check(values, "fields", {})
    n_rows = values["n_training_rows"]
    centre, scale = values["target_centre"], values["target_scale"]
    settings = model._settings(n_rows)
    n_scales = d if settings.base_measure == "diagonal" else 1
    _check_draws(common.draws, d, d + 1 if settings.linear_part else 0, n_scales)
    common.put_into(model)
    return Result(
        feature_labels=common.feature_labels,
        standardizer=common.standardizer,
        target_centre=centre,
        target_scale=scale,
        n_rows=n_rows,
        start_scales=scales,
        draws=common.draws,
        diagnostics=common.diagnostics,
        notes=common.notes,
        mixture=settings.mixture(Scales(scales, 1.0)),
        functions=_functions(parts, common.draws),
    )


def _functions(parts: ModelParts, draws: Draws) -> FunctionDraws:
    own = function_draws(draws)
    names = [f.name for f in fields(FunctionDraws)]
    if f"functions/{names[0]}" not in parts.arrays:
        return own
    stored = FunctionDraws(**{name: parts.arrays[f"functions/{name}"] for name in names})
    n = len(stored.mean)
    for name in names:
        mine, theirs = getattr(stored, name), getattr(own, name)
        is_right = mine.dtype == np.float64 and mine.ndim == theirs.ndim and len(mine) == n > 0
        ends = () if mine.ndim == 1 else (mine.shape[-1],)
        require(is_right and is_finite(mine), f"functions/{name}")
        require(ends == (() if theirs.ndim == 1 else (theirs.shape[-1],)), f"functions/{name}")
    require(stored.frequencies.shape[1] == own.frequencies.shape[1], "functions/frequencies")
    require(stored.deviations.shape[1] > 0, "functions/deviations")
    require(bool((stored.noise_std > 0.0).all()), "functions/noise_std")
    return stored


def _check_draws(draws: Draws, d: int, p: int, n_scales: int) -> None:
    check_numbers(draws, _DRAWS)
    m = check_spectra(draws, d, n_scales)
    n_coef = 2 * m + p
    require(draws.variables["coef_mean"].shape[2:] == (n_coef,), "draws of coef_mean")
    deviation = draws.variables["coef_deviation"]
    is_right = deviation.ndim == 4 and deviation.shape[2] > 0 and deviation.shape[3] == n_coef
    require(is_right, "draws of coef_deviation")
    require(bool((draws.variables["noise_std"] > 0.0).all()), "draws of noise_std")
    for name in ("log_evidence", "noise_std"):
        require(draws.variables[name].ndim == 2, f"draws of {name}")


# A fitted BaNK classifier as parts of a model file and back. No training row is in it.

_CLASS_DRAWS = (
    "log_likelihood",
    "concentration",
    "base_scale",
    "frequencies",
    "coef_mean",
    "coef_deviation",
)
# Of a function at any row: far from where a sum of coefficients overflows.
_LARGEST_COEF = 1e100


def class_parts_of(model: Any) -> ModelParts:
    """Split a fitted classifier into parts."""
    values, arrays = common_parts(model)
    values["n_training_rows"] = model.n_training_rows_
    arrays["start_scales"] = model.start_scales_
    arrays["class_order"] = model._order
    if len(model._functions.mean) < model.posterior_.n_total:
        # Coefficients from all rows, of a few draws; else they are those of the draws.
        arrays |= {f"functions/{name}": each for name, each in vars(model._functions).items()}
    return ModelParts(json_params(model.get_params()), values, arrays)


def restore_classes(parts: ModelParts, model: Any) -> ClassResult:
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
    check_numbers(common.draws, _CLASS_DRAWS)
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
        functions=_class_functions(parts, common.draws),
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


def _class_functions(parts: ModelParts, draws: Draws) -> ClassDraws:
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
