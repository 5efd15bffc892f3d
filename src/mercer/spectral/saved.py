"""A fitted BaNK regressor as parts of a model file and back. No training row is in it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from mercer.estimation.model_file import ModelParts, json_params
from mercer.estimation.saved import common_parts, is_finite, require, restore_common
from mercer.posterior.draws import Draws
from mercer.posterior.schema import TARGET
from mercer.spectral.predict import FunctionDraws, function_draws
from mercer.spectral.results import Result
from mercer.spectral.saved_spectrum import check_numbers, check_scales, check_spectra
from mercer.spectral.start import Scales

__all__ = ["parts_of", "restore"]

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
