"""Fitted BaNK models as parts of a file and back. No training row is in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.model_file import (
    Common,
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


def parts_of(
    model: Any, values: dict[str, Any] | None = None, arrays: dict[str, NDArray[Any]] | None = None
) -> ModelParts:
    """Split a fitted model into parts, with the values and arrays that are its own."""
    common, columns = common_parts(model)
    common |= {**(values or {}), "n_training_rows": model.n_training_rows_}
    columns |= {"start_scales": model.start_scales_, **(arrays or {})}
    if len(model._functions.mean) < model.posterior_.n_total:
        # Coefficients from all rows, of a few draws; else they are those of the draws.
        columns |= {f"functions/{name}": each for name, each in vars(model._functions).items()}
    return ModelParts(json_params(model.get_params()), common, columns)


def _shared(
    parts: ModelParts, common: Common, scales: NDArray[np.float64], settings: Any, functions: Any
) -> dict[str, Any]:
    """Fields of `SpectralResult`."""
    return {
        "feature_labels": common.feature_labels,
        "standardizer": common.standardizer,
        "n_rows": parts.fields["n_training_rows"],
        "start_scales": scales,
        "draws": common.draws,
        "diagnostics": common.diagnostics,
        "notes": common.notes,
        "mixture": settings.mixture(Scales(scales, 1.0)),
        "functions": functions,
    }


def _stored(parts: ModelParts, own: Any) -> Any:
    """Coefficients from all rows where the file has them, checked against those of the draws."""
    names = [f.name for f in fields(own)]
    if f"functions/{names[0]}" not in parts.arrays:
        return None
    stored = type(own)(**{name: parts.arrays[f"functions/{name}"] for name in names})
    n = len(stored.mean)
    for name in names:
        mine, theirs = getattr(stored, name), getattr(own, name)
        is_right = mine.dtype == np.float64 and mine.ndim == theirs.ndim and len(mine) == n > 0
        require(is_right and is_finite(mine), f"functions/{name}")
    return stored


def restore(parts: ModelParts, model: Any) -> Result:
    """Put the parts together again, and give ``model`` what scikit-learn's checks had set."""
    common, values = restore_common(parts), parts.fields
    d = len(common.feature_labels)
    scales = check_scales(parts, d)
    TARGET.check(values, "fields", {})
    settings = model._settings(values["n_training_rows"])
    n_scales = d if settings.base_measure == "diagonal" else 1
    _check_draws(common.draws, d, d + 1 if settings.linear_part else 0, n_scales)
    common.put_into(model)
    functions = _functions(parts, common.draws)
    shared = _shared(parts, common, scales, settings, functions)
    centre, scale = values["target_centre"], values["target_scale"]
    return Result(**shared, target_centre=centre, target_scale=scale)


def _functions(parts: ModelParts, draws: Draws) -> FunctionDraws:
    own = function_draws(draws)
    stored: FunctionDraws | None = _stored(parts, own)
    if stored is None:
        return own
    for f in fields(FunctionDraws):
        mine, theirs = getattr(stored, f.name), getattr(own, f.name)
        require(mine.shape[1:][-1:] == theirs.shape[1:][-1:], f"functions/{f.name}")
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


def restore_classes(parts: ModelParts, model: Any) -> ClassResult:
    """Put the parts together again, and give ``model`` what scikit-learn's checks had set."""
    common = restore_common(parts)
    d, C = len(common.feature_labels), len(common.classes)
    require(C <= MOST_CLASSES, "classes")
    order = parts.arrays["class_order"]
    is_order = order.dtype == np.int64 and order.shape == (C,)
    require(is_order and np.array_equal(np.sort(order), np.arange(C)), "class_order")
    scales = check_scales(parts, d)
    settings = model._class_settings(parts.fields["n_training_rows"], C)
    n_scales = d if settings.spectral.base_measure == "diagonal" else 1
    check_numbers(common.draws, _CLASS_DRAWS)
    m = check_spectra(common.draws, d, n_scales)
    n_coef = 2 * m + (d + 1 if settings.spectral.linear_part else 0)
    _check_coefficients(common.draws, C - 1, n_coef)
    common.put_into(model)
    functions = _class_functions(parts, common.draws)
    shared = _shared(parts, common, scales, settings, functions)
    return ClassResult(**shared, classes=common.classes, order=order)


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
    stored: ClassDraws | None = _stored(parts, own)
    if stored is None:
        return own
    for f in fields(ClassDraws):
        mine, theirs = getattr(stored, f.name), getattr(own, f.name)
        is_right = bool((np.abs(mine) <= _LARGEST_COEF).all()) and mine.shape[1] == theirs.shape[1]
        require(is_right and mine.shape[-1] == theirs.shape[-1], f"functions/{f.name}")
    require(stored.deviations.shape[2] > 0, "functions/deviations")
    return stored
