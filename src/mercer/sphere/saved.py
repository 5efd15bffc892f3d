"""A fitted kernel Gibbs classifier as parts of a model file and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.data.row_names import RowNames
from mercer.errors import UsageError
from mercer.estimation.model_file import (
    Common,
    ModelParts,
    common_parts,
    json_params,
    require,
    restore_common,
    table_from_dict,
)
from mercer.features.maps import FourierMap, NystroemMap
from mercer.kernels.base import Kernel
from mercer.kernels.names import kernel_named, name_of_kernel
from mercer.posterior.draws import Table, finite_or_none
from mercer.posterior.schema import Array as Rule
from mercer.posterior.schema import (
    Cells,
    Choice,
    Fields,
    Flag,
    ListOf,
    Maybe,
    Number,
    Text,
    Whole,
    check_arrays,
)
from mercer.sphere.fitting import COMPARED, mean_rates
from mercer.sphere.prediction import PosteriorSample
from mercer.sphere.selection import Candidate
from mercer.sphere.space import (
    Covariance,
    FeatureSpace,
    FiniteFeatures,
    KernelSpace,
    Space,
    precomputed,
    spectrum_of,
)
from mercer.sphere.tempering import EvidenceCurve

Array = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]

_LARGEST_LOG = 300.0  # of a parameter of a kernel: squares of its exponential are finite
_CURVE = ("noise_rates", "log_evidence", "standard_error")


_CURVE_ARRAYS = {
    "curve/noise_rates": Rule(("n_rates",), least=0.0, most=1.0),
    "curve/log_evidence": Rule(("n_rates",)),
    "curve/standard_error": Rule(("n_rates",), least=0.0),
}
_LABELS = {
    "recorded": Rule(("n",), "int", 0, below="C"),
    "label_proba": Rule(("n", "C"), least=0.0, most=1.0, sums_to_one=True),
}
_DRAW = ("n_chains", "n_draws")
_DRAWS = {
    "draws/model": Rule(_DRAW, "int", 0, below="n_models"),
    "draws/coefficients": Rule((*_DRAW, "1+", "...")),
    "draws/length": Rule(_DRAW, least=0.0, is_open=True),
    "draws/noise_rate": Rule((*_DRAW, "..."), least=0.0, most=1.0),
    "draws/confusion": Rule(
        (*_DRAW, "C", "C"), least=0.0, most=1.0, sums_to_one=True, is_optional=True
    ),
}
_POSITIVE, _NOT_NEGATIVE = Number(0.0, 1e100, is_open=True), Number(0.0, 1e100)
_MODEL = Fields(
    {
        "kernel": Text(),
        "lengthscale": Maybe(_POSITIVE),
        "nugget": _NOT_NEGATIVE,
        "scale": _POSITIVE,
        "constant": _NOT_NEGATIVE,
        "kind": Choice(("kernel", "linear", "nystroem", "fourier")),
        "n_inputs": Whole(1),
        "has_residual": Flag(),
    },
    optional=frozenset({"n_inputs", "has_residual"}),
)
_FIELDS = Fields(
    {
        "models": ListOf(_MODEL, least=1),
        "compared": Cells(COMPARED, 7),
        "evidence": ListOf(Maybe(Number()), size=2),
    },
    is_closed=False,
)


@dataclass(frozen=True)
class Restored:
    """What a model file says of a fitted classifier."""

    params: dict[str, Any]
    common: Common
    sample: PosteriorSample
    fitted: dict[str, Any]


def parts_of(model: Any) -> ModelParts:
    """Split a fitted classifier into parts; a `UsageError` where its kernel is a callable."""
    values, arrays = common_parts(model)
    params = json_params(model.get_params(deep=False))
    if isinstance(model.kernel, Kernel):
        params["kernel"] = name_of_kernel(model.kernel)
    elif not isinstance(model.kernel, str):
        raise UsageError("a model with a callable for its kernel cannot be written to a file")
    params["noise_prior"] = [float(value) for value in model.noise_prior]
    params["noise_rate"] = _plain_rate(model, arrays)
    sample: PosteriorSample = model._sample
    values["models"] = [_model_fields(one, k, arrays) for k, one in enumerate(sample.models)]
    compared = model.compared_
    rows = tuple(tuple(_known(cell) for cell in row) for row in compared.rows)
    values["compared"] = Table(compared.columns, rows).to_dict()
    arrays["label_proba"] = model.label_proba_
    arrays["recorded"] = np.searchsorted(model.classes_, model.recorded_).astype(np.int64)
    values["rows"], numbers = model.row_names_.to_parts()
    arrays |= numbers
    values["evidence"] = [_known(model.log_evidence_), _known(model.log_evidence_se_)]
    if model.evidence_curve_ is not None:
        arrays |= {f"curve/{name}": getattr(model.evidence_curve_, name) for name in _CURVE}
    return ModelParts(params, values, arrays)


def _known(value: Any) -> Any:
    """None for a number that is not finite: a standard error of rungs that share no draws."""
    return finite_or_none(value) if isinstance(value, float) else value


def _plain_rate(model: Any, arrays: Arrays) -> Any:
    """A noise rate as JSON can hold it: pairs for a dict, an array of its own for rows."""
    rate = model.noise_rate
    if isinstance(rate, Mapping):
        return [float(rate[label]) for label in model.classes_.tolist()]
    if isinstance(rate, str | int | float | np.number):
        return rate.item() if isinstance(rate, np.number) else rate
    arrays["row_rates"] = np.asarray(rate, dtype=np.float64)
    return None


def _model_fields(one: Candidate, k: int, arrays: Arrays) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "kernel": one.kernel, "lengthscale": one.lengthscale, "nugget": one.nugget,
    }  # fmt: skip
    space = one.space
    if isinstance(space, KernelSpace):
        covariance = space.covariance
        arrays["X"] = space.X
        arrays[f"model{k}/theta"] = covariance.theta
        return {
            **fields, "kind": "kernel", "scale": covariance.scale, "constant": covariance.constant,
        }  # fmt: skip
    assert isinstance(space, FeatureSpace)
    finite = space.features
    assert isinstance(finite, FiniteFeatures)
    fields |= {"scale": finite.scale, "constant": finite.constant, "n_inputs": space.X.shape[1]}
    if finite.map is None:
        return {**fields, "kind": "linear"}
    if finite.has_residual:
        fields["has_residual"] = True
    is_nystroem = isinstance(finite.map, NystroemMap)
    for name, values in finite.map.to_arrays().items():
        # Landmarks are rows of the training data: under the name that says so.
        own = "X" if name == "landmarks" and k == 0 else f"model{k}/{name}"
        arrays[own] = values
    return {**fields, "kind": "nystroem" if is_nystroem else "fourier"}


def restore(parts: ModelParts) -> Restored:
    """Put the parts together again; an error where something is missing or does not fit."""
    common, arrays = restore_common(parts), parts.arrays
    _FIELDS.check(parts.fields, "fields", {})
    draws, params = common.draws, dict(parts.params)
    models = tuple(
        _restore_model(fields, k, arrays, len(common.feature_labels))
        for k, fields in enumerate(parts.fields["models"])
    )
    sample = PosteriorSample.of(models, draws)
    _check_sample(sample, arrays, len(common.classes))
    params["noise_prior"] = tuple(params["noise_prior"])
    if isinstance(params["noise_rate"], list):
        rates = [float(rate) for rate in params["noise_rate"]]
        params["noise_rate"] = dict(zip(common.classes.tolist(), rates, strict=True))
    elif params["noise_rate"] is None:
        params["noise_rate"] = arrays["row_rates"]
    return Restored(params, common, sample, _fitted(parts, sample, common))


def _fitted(parts: ModelParts, sample: PosteriorSample, common: Common) -> dict[str, Any]:
    curve = None
    if "curve/noise_rates" in parts.arrays:
        check_arrays(parts.arrays, _CURVE_ARRAYS, {})
        curve = EvidenceCurve(*(parts.arrays[f"curve/{name}"] for name in _CURVE))
    evidence, error = parts.fields["evidence"]
    return {
        **_labels(parts.arrays, common.classes),
        "row_names_": RowNames.from_parts(
            parts.fields.get("rows"), parts.arrays, len(parts.arrays["recorded"])
        ),
        "evidence_curve_": curve,
        "log_evidence_": evidence,
        "log_evidence_se_": error,
        "compared_": table_from_dict(parts.fields["compared"]),
        "noise_rate_": mean_rates(sample.rates, common.classes),
        "bayes_point_": sample.bayes_point,
    }


def _labels(arrays: Arrays, classes: NDArray[Any]) -> dict[str, Any]:
    check_arrays(arrays, _LABELS, {"C": len(classes)})
    recorded, p = arrays["recorded"], arrays["label_proba"]
    return {
        "recorded_": classes[recorded],
        "label_proba_": p,
        "label_error_proba_": 1.0 - p[np.arange(len(recorded)), recorded],
    }


def _restore_model(fields: Any, k: int, arrays: Arrays, n_inputs: int) -> Candidate:
    kernel, nugget, lengthscale = fields["kernel"], fields["nugget"], fields["lengthscale"]
    scale, constant = float(fields["scale"]), float(fields["constant"])
    space: Space
    if fields["kind"] == "kernel":
        X, theta = arrays["X"], arrays[f"model{k}/theta"]
        check_arrays(arrays, {"X": Rule(("n", n_inputs))}, {})
        known = None if kernel == "precomputed" else kernel_named(kernel)
        if known is not None:
            require(theta.shape == (known.n_parameters(n_inputs),), "parameters of a kernel")
            is_right = theta.dtype == np.float64 and bool((np.abs(theta) <= _LARGEST_LOG).all())
            require(is_right, "parameters of a kernel")
        else:
            precomputed(X)  # checks that it is a Gram matrix
            spectrum_of(X)
        space = KernelSpace(Covariance(known, theta, scale, constant), X, nugget)
        return Candidate(kernel, lengthscale, nugget, space)
    mapped: Any = None
    own = {name.partition("/")[2]: values for name, values in arrays.items()
           if name.startswith(f"model{k}/")}  # fmt: skip
    if fields["kind"] == "nystroem":
        own.setdefault("landmarks", arrays["X"])
        mapped = NystroemMap.from_arrays(kernel_named(kernel), own)
    elif fields["kind"] == "fourier":
        mapped = FourierMap.from_arrays(own)
    elif fields["kind"] != "linear":
        raise ValueError(f"unknown kind of model {str(fields['kind'])[:40]!r}")
    require(mapped is None or mapped.n_inputs == n_inputs, "features")
    features = FiniteFeatures(mapped, scale, constant, fields.get("has_residual", False))
    space = FeatureSpace(features, np.empty((0, n_inputs)), nugget)
    return Candidate(kernel, lengthscale, nugget, space)


def _check_sample(sample: PosteriorSample, arrays: Arrays, n_classes: int) -> None:
    require(sample.n_classes == n_classes, "classes")
    sizes = {"C": n_classes, "n_models": len(sample.models)}
    check_arrays(arrays, _DRAWS, sizes)
    if "draws/confusion" not in arrays:
        require(sample.rates.shape[1:] in {(1,), (n_classes,)}, "draws of noise_rate")
    for one in sample.models:
        n_needed, n_there = _n_coefficients(one.space), sample.coefficients.shape[-1]
        is_kernel = isinstance(one.space, KernelSpace)
        is_right = n_there == n_needed if is_kernel else n_there >= n_needed
        require(n_needed > 0 and is_right, "draws of coefficients")


def _n_coefficients(space: Space) -> int:
    if isinstance(space, KernelSpace):
        return len(space.X)
    assert isinstance(space, FeatureSpace)
    assert isinstance(space.features, FiniteFeatures)
    finite = space.features
    n_features = finite(np.zeros((1, space.X.shape[1]))).shape[1]
    # Linear classifiers of old files have no coefficient for rows that are zero.
    return int(n_features - (finite.map is None and finite.constant == 0.0))
