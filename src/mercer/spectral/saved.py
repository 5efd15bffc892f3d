"""Fitted BaNK models as parts of a file and back.

No training row is in it; of contaminated noise the training targets are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.estimation.model_file import (
    Common,
    ModelParts,
    common_parts,
    json_params,
    require,
    restore_common,
)
from mercer.likelihoods.label_noise import N_KINDS
from mercer.posterior.positive_laws import LOGNORMAL, STUDENT, VARYING, WITH_ERRORS
from mercer.posterior.schema import TARGET, Array, Fields, ListOf, Sizes, Text, Whole, check_arrays
from mercer.spectral.class_fitting import MOST_CLASSES, ClassDraws, ClassResult, class_draws
from mercer.spectral.fitting import Result
from mercer.spectral.model import COUNTS, MOST_LOG, Scales
from mercer.spectral.prediction import FunctionDraws, function_draws
from mercer.spectral.settings import SpectralSettings

Functions = TypeVar("Functions", FunctionDraws, ClassDraws)

# What files hold, beside what all models have. M frequencies of d inputs, with n_scales of their
# base; K functions of n_coef coefficients.

_LARGEST_FREQUENCY = 1e50  # radians per standardised unit
# Of a function at any row: far from where a sum of coefficients overflows.
_LARGEST_COEF = 1e100
_FREQUENCY = ("float", -_LARGEST_FREQUENCY, _LARGEST_FREQUENCY)
_COEF = ("float", -_LARGEST_COEF, _LARGEST_COEF)
_FIELDS = Fields({"n_training_rows": Whole(1)}, is_closed=False)
_DRAW = ("n_chains", "n_draws")
_SPECTRA = {
    "start_scales": Array(("d",), least=0.0, most=_LARGEST_FREQUENCY, is_open=True),
    "draws/frequencies": Array((*_DRAW, "M", "d"), *_FREQUENCY),
    "draws/assignment": Array((*_DRAW, "M"), "int", 0, below="M"),
    "draws/concentration": Array(_DRAW, least=0.0, is_open=True),
    "draws/base_scale": Array((*_DRAW, "n_scales"), least=0.0, is_open=True),
}
_NOISE_STD = {"draws/noise_std": Array(_DRAW, least=0.0, is_open=True)}
_LEAST_DISPERSION = 1e-30
_OF_ERRORS = {
    "draws/log_likelihood": Array(_DRAW),
    "draws/log_rate": Array(_DRAW, most=0.0),
    "draws/log_shares": Array((*_DRAW, N_KINDS), most=0.0, is_optional=True),
}
_OF_NOISE = {
    "normal": {"draws/log_evidence": Array(_DRAW)},
    LOGNORMAL: {"draws/log_evidence": Array(_DRAW)},
    **dict.fromkeys(WITH_ERRORS, _OF_ERRORS),
    STUDENT: {
        "draws/log_likelihood": Array(_DRAW),
        "draws/noise_df": Array(_DRAW, least=2.0, is_open=True),
    },
    VARYING: {
        "draws/log_likelihood": Array(_DRAW),
        "draws/noise_spread": Array(_DRAW, least=0.0, is_open=True),
        "draws/noise_frequencies": Array((*_DRAW, "Q", "d"), *_FREQUENCY),
        "draws/noise_range": Array((*_DRAW, 2), "float", -MOST_LOG, MOST_LOG, is_optional=True),
    },
    COUNTS: {
        "draws/log_likelihood": Array(_DRAW),
        "draws/dispersion": Array(_DRAW, least=_LEAST_DISPERSION, most=1.0 / _LEAST_DISPERSION),
    },
}
_NUMBERS = {
    "draws/coef_mean": Array((*_DRAW, "n_coef")),
    "draws/coef_deviation": Array((*_DRAW, "1+", "n_coef")),
}
# Where missing inputs were drawn, the law of the inputs, standardised.
_INPUTS = {
    "draws/input_mean": Array((*_DRAW, "d"), *_COEF),
    "draws/input_precision": Array((*_DRAW, "d", "d"), *_COEF),
}
_CLASSES = {
    "class_order": Array(("C",), "int", 0, below="C"),
    "draws/log_likelihood": Array(_DRAW),
    "draws/coef_mean": Array((*_DRAW, "K", "n_coef"), *_COEF),
    "draws/coef_deviation": Array((*_DRAW, "K", "1+", "n_coef"), *_COEF),
}
_THRESHOLDS = {"draws/thresholds": Array((*_DRAW, "T"), *_COEF)}
# Coefficients from all rows, of a few draws; else they are those of the draws.
_FEW_NUMBERS = {
    "functions/frequencies": Array(("1+", "M", "d"), *_FREQUENCY),
    "functions/mean": Array(("n_few", "n_coef")),
    "functions/deviations": Array(("n_few", "1+", "n_coef")),
    "functions/noise_std": Array(("n_few",), least=0.0, is_open=True),
}
_FEW_CLASSES = {
    "functions/frequencies": Array(("1+", "M", "d"), *_FREQUENCY),
    "functions/mean": Array(("n_few", "K", "n_coef"), *_COEF),
    "functions/deviations": Array(("n_few", "K", "1+", "n_coef"), *_COEF),
}


_FEW_THRESHOLDS = {"functions/thresholds": Array(("n_few", "T"), *_COEF)}


# Of several outputs an axis of q more.
_OUTPUTS = Fields({"outputs": ListOf(Text(), size="q", least=2)}, is_closed=False)
_TARGETS = dict.fromkeys(("target_centre", "target_scale"), Array(("q",)))


def _of_outputs(rules: Mapping[str, Array], after: int) -> dict[str, Array]:
    """Have an axis of outputs after the first axes, of draws."""
    axes = {name: (*rule.axes[:after], "q", *rule.axes[after:]) for name, rule in rules.items()}
    return {name: replace(rule, axes=axes[name]) for name, rule in rules.items()}


def parts_of(
    model: Any, values: dict[str, Any] | None = None, arrays: dict[str, NDArray[Any]] | None = None
) -> ModelParts:
    """Split a fitted model into parts, with the values and arrays that are its own."""
    common, columns = common_parts(model)
    common |= {**(values or {}), "n_training_rows": model.n_training_rows_}
    columns |= {"start_scales": model.start_scales_, **(arrays or {})}
    if not np.array_equal(model._functions.mean, model.posterior_.flat("coef_mean")):
        # Coefficients from all rows; else they are those of the draws.
        own = vars(model._functions).items()
        given = ((name, each) for name, each in own if isinstance(each, np.ndarray))
        columns |= {f"functions/{name}": each for name, each in given}
    return ModelParts(json_params(model.get_params(deep=False)), common, columns)


def _shared(parts: ModelParts, common: Common, settings: Any, functions: Any) -> dict[str, Any]:
    """Fields of `SpectralResult`."""
    scales = parts.arrays["start_scales"]
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


def _check_spectra(parts: ModelParts, sizes: Sizes, spectral: SpectralSettings, model: Any) -> None:
    """Check spectra and law of d inputs, and say how many coefficients a function has."""
    sizes["n_scales"] = sizes["d"] if spectral.base_measure == "diagonal" else 1
    check_arrays(parts.arrays, _SPECTRA, sizes)
    require(sizes["M"] > 0, "draws/frequencies")
    if model.missing == "posterior":
        check_arrays(parts.arrays, _INPUTS, sizes)
        precisions = parts.arrays["draws/input_precision"]
        require(bool((np.linalg.eigvalsh(precisions) > 0.0).all()), "draws/input_precision")
    sizes["n_coef"] = 2 * sizes["M"] + (sizes["d"] + 1 if spectral.linear_part else 0)


def _functions(
    parts: ModelParts, own: Functions, few: Mapping[str, Array], sizes: Sizes
) -> Functions:
    """Coefficients from all rows where the file has them; else those of the draws."""
    if "functions/frequencies" not in parts.arrays:
        return own
    sizes["n_few"] = len(parts.arrays["functions/frequencies"])
    check_arrays(parts.arrays, few, sizes)
    names = [f.name for f in fields(own) if f"functions/{f.name}" in few]
    arrays: dict[str, Any] = {name: parts.arrays[f"functions/{name}"] for name in names}
    return replace(own, **arrays)


def restore(parts: ModelParts, model: Any) -> Result:
    """Put the parts together again, and give ``model`` what scikit-learn's checks had set."""
    common, values = restore_common(parts), parts.fields
    _FIELDS.check(values, "fields", {})
    noise = model._noise_in(parts)
    settings = replace(model._settings(values["n_training_rows"]), noise=noise)
    sizes: Sizes = {"d": len(common.feature_labels)}
    _check_spectra(parts, sizes, settings, model)
    own, few = _NUMBERS | ({} if settings.noise == COUNTS else _NOISE_STD), _FEW_NUMBERS
    if "outputs" in values:
        require(settings.noise == "normal", "outputs")
        _OUTPUTS.check(values, "fields", sizes)
        check_arrays(parts.arrays, _TARGETS, sizes)
        targets = {name: parts.arrays[name] for name in _TARGETS}
        for pair in zip(*targets.values(), strict=True):
            TARGET.check(dict(zip(targets, map(float, pair), strict=True)), "fields", {})
        values = {**values, **targets}
        kept = {"functions/frequencies": few["functions/frequencies"]}
        own, few = _of_outputs(own, 2), _of_outputs(few, 1) | kept
    else:
        TARGET.check(values, "fields", {})
    check_arrays(parts.arrays, own | _OF_NOISE[settings.noise], sizes)
    if settings.noise == VARYING:
        coef = Array((*_DRAW, 2 * sizes["Q"] + 1), *_COEF)
        check_arrays(parts.arrays, {"draws/noise_coef": coef}, sizes)
        ends = parts.arrays.get("draws/noise_range", np.zeros(2))
        require(bool((ends[..., 0] <= ends[..., 1]).all()), "draws/noise_range")
    common.put_into(model)
    functions = _functions(parts, function_draws(common.draws), few, sizes)
    centre, scale = values["target_centre"], values["target_scale"]
    shared = _shared(parts, common, settings, functions)
    return Result(**shared, noise=noise, target_centre=centre, target_scale=scale)


def restore_classes(parts: ModelParts, model: Any) -> ClassResult:
    """Put the parts together again, and give ``model`` what scikit-learn's checks had set."""
    common = restore_common(parts)
    C = len(common.classes)
    require(C <= MOST_CLASSES, "classes")
    _FIELDS.check(parts.fields, "fields", {})
    settings = model._class_settings(parts.fields["n_training_rows"], C)
    d, is_ordered = len(common.feature_labels), model.ordered is not False
    sizes: Sizes = {"d": d, "C": C, "K": settings.n_sticks, "T": C - 1}
    _check_spectra(parts, sizes, settings.spectral, model)
    check_arrays(parts.arrays, _CLASSES | (_THRESHOLDS if is_ordered else {}), sizes)
    order = parts.arrays["class_order"]
    require(len(set(order.tolist())) == C, "class_order")
    common.put_into(model)
    few = _FEW_CLASSES | (_FEW_THRESHOLDS if is_ordered else {})
    functions = _functions(parts, class_draws(common.draws), few, sizes)
    shared = _shared(parts, common, settings, functions)
    return ClassResult(**shared, classes=common.classes, order=order)
