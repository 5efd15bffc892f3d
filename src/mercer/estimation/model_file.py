"""Fitted models as files: what an estimator must give, and what the command line adds.

The manifest holds numbers, texts and lists only; names of classes are looked up in a closed table
(`mercer.models`), never imported from the file.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mercer.errors import ModelFileError, UsageError
from mercer.estimation.standardize import Standardizer
from mercer.posterior.container import mercer_version, read_container, write_container
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws, Table
from mercer.posterior.schema import (
    COMMON,
    LARGEST,
    STANDARDIZER,
    Anything,
    Fields,
    ListOf,
    Maybe,
    Number,
    Sizes,
    Text,
    check_arrays,
)

if TYPE_CHECKING:  # what a table adds to a model is loaded where there is one
    from mercer.data.encoding import Encoder
    from mercer.posterior.evaluation import AnyEvaluation, Provenance

Arrays = dict[str, NDArray[Any]]


_FORMAT = 1
_LABELS = (str, bool, int, float)
_TEXT, _NUMBER = re.compile(r"[<>]U\d+"), re.compile(r"[<>|](b1|[iu][1248]|f[248])")
# How a fit is run is no part of a model: a file is the same for any of these.
_RUN_PARAMS = ("checkpoint", "max_seconds", "n_jobs", "progress")


_TABLE_FIELDS = Fields(
    {
        "target": Text(),
        "target_variance": Maybe(Number(0.0, math.inf, is_open=True)),
        "outputs": ListOf(Fields({"target": Text(), "written": Anything()}, is_closed=False)),
        "id_column": Maybe(Text()),
    },
    optional=frozenset({"target_variance", "outputs", "id_column"}),
    is_closed=False,
)


@dataclass(frozen=True)
class ModelParts:
    """A fitted estimator as constructor arguments, JSON values and arrays."""

    params: dict[str, Any]
    fields: dict[str, Any]
    arrays: Arrays

    @property
    def holds_rows(self) -> bool:
        """Whether it holds training rows, or a model that it is made of does."""
        of_members = (name for name in self.arrays if name.startswith("members/"))
        return "X" in self.arrays or any(name.endswith("/X") for name in of_members)

    @property
    def holds_targets(self) -> bool:
        """Whether it holds targets of training rows, or a model that it is made of does."""
        return any(name.split("/")[-1] in ("y", "recorded") for name in self.arrays)


class Savable(Protocol):
    """An estimator that can be written to a file."""

    def _to_parts(self) -> ModelParts: ...


class FromFile:
    """An estimator that is made of its arguments in a file, and of what `_restore` puts in."""

    @classmethod
    def _from_parts(cls, parts: ModelParts) -> Any:
        model: Any = cls(**cls._arguments(parts))
        model._check_arguments()
        model._restore(parts)
        return model

    @staticmethod
    def _arguments(parts: ModelParts) -> Mapping[str, Any]:
        return parts.params


@dataclass(frozen=True)
class TableModel:
    """What the command line keeps beside the estimator: how a table becomes its inputs."""

    encoder: Encoder
    target: str
    evaluation: AnyEvaluation | None
    provenance: Provenance
    target_variance: float | None = None  # of a regressor's training rows; divisor: their number
    outputs: tuple[TableModel, ...] = ()  # of each of several targets; scores are theirs
    id_column: str | None = None  # the column that was said to name the rows


@dataclass(frozen=True)
class Extra:
    """What else somebody keeps in a model file, under a name of its own; `read_parts` gives it."""

    name: str
    fields: dict[str, Any]
    arrays: Arrays


def write_model(
    path: str | os.PathLike[str],
    estimator: Savable,
    table: TableModel | None = None,
    extra: Extra | None = None,
) -> None:
    """Write a fitted estimator, and what the command line knows of its table, to one file."""
    parts = estimator._to_parts()
    manifest: dict[str, Any] = {
        "kind": "model",
        "format": _FORMAT,
        "mercer": mercer_version(),
        "estimator": type(estimator).__name__,
        "holds_training_rows": parts.holds_rows,
        "params": parts.params,
        "fields": parts.fields,
        "table": None,
    }
    arrays = dict(parts.arrays)
    if table is not None:
        manifest["table"] = {
            "encoder": table.encoder.to_dict(),
            "target": table.target,
            "id_column": table.id_column,
            "provenance": asdict(table.provenance),
        }
        manifest["table"] |= _target_parts(table, arrays)
        if table.outputs:
            manifest["table"]["outputs"] = [
                {
                    **_target_parts(each, arrays, f"outputs/{k}/"),
                    "written": None if (own := each.encoder.target) is None else own.to_dict(),
                }
                for k, each in enumerate(table.outputs)
            ]
    elif hasattr(estimator, "encoder_"):
        manifest["encoder"] = estimator.encoder_.encoding_.to_dict()
    if extra is not None:
        manifest[extra.name] = extra.fields
        arrays |= {f"{extra.name}/{name}": values for name, values in extra.arrays.items()}
    write_container(path, manifest, arrays)


def _target_parts(table: TableModel, arrays: Arrays, prefix: str = "") -> dict[str, Any]:
    """Return what is kept of a target as JSON values; put its held-out rows among the arrays."""
    values: dict[str, Any] = {"target": table.target, "evaluation": None}
    if table.evaluation is not None:
        from mercer.posterior.evaluation import evaluation_parts

        values["evaluation"], columns = evaluation_parts(table.evaluation)
        arrays |= {prefix + name: column for name, column in columns.items()}
    if table.target_variance is not None:
        values["target_variance"] = table.target_variance
    return values


def read_parts(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Read manifest and arrays of a model file, of this format or an older one."""
    manifest, arrays = read_container(path)
    if manifest.get("kind") != "model":
        raise ModelFileError(f"{path}: a mercer file, but not a model")
    if not isinstance(manifest.get("format"), int) or manifest["format"] > _FORMAT:
        raise ModelFileError(
            f"{path}: needs mercer >= {manifest.get('mercer')}, this is {mercer_version()}"
        )
    for key in ("params", "fields"):
        if not isinstance(manifest.get(key), dict):
            raise ModelFileError(f"{path}: inconsistent, no {key} in it")
    return manifest, arrays


def table_model_from(manifest: Mapping[str, Any], arrays: Arrays) -> TableModel | None:
    """Rebuild what `write_model` stored beside the estimator, or None if there was nothing."""
    table = manifest.get("table")
    if table is None:
        return None
    from mercer.data.encoding import Encoder
    from mercer.posterior.evaluation import evaluation_from, provenance_from

    def of_target(values: Any, encoder: Any, made: Provenance, columns: Arrays) -> TableModel:
        scores = values["evaluation"]
        return TableModel(
            encoder=Encoder.from_dict(encoder),
            target=values["target"],
            evaluation=None if scores is None else evaluation_from(scores, columns),
            provenance=made,
            target_variance=values.get("target_variance"),
            id_column=table.get("id_column"),
        )

    try:
        _TABLE_FIELDS.check(table, "table", {})
        coded, made = table["encoder"], provenance_from(table["provenance"])
        outputs = []
        for k, each in enumerate(table.get("outputs", ())):
            _TABLE_FIELDS.check(each, f"table/outputs[{k}]", {})
            own = {name.removeprefix(f"outputs/{k}/"): rows for name, rows in arrays.items()}
            its = replace(made, target=each["target"])
            outputs.append(of_target(each, {**coded, "target": each["written"]}, its, own))
        return replace(of_target(table, coded, made, arrays), outputs=tuple(outputs))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"inconsistent model file: {error}") from error


def encoding_from(manifest: Mapping[str, Any]) -> Encoder | None:
    """Rebuild how a frame becomes the inputs of a model that was saved from Python, if it does."""
    if manifest.get("encoder") is None:
        return None
    from mercer.data.encoding import Encoder

    return Encoder.from_dict(manifest["encoder"])


def encode_labels(classes: NDArray[Any]) -> dict[str, Any]:
    """Turn class labels into JSON with their type: strings, booleans, integers or floats."""
    kind = "object" if classes.dtype == object else classes.dtype.str
    is_plain = kind == "object" or _TEXT.fullmatch(kind) or _NUMBER.fullmatch(kind)
    if not is_plain or not all(isinstance(value, _LABELS) for value in classes.tolist()):
        raise UsageError(f"labels of type {classes.dtype} cannot be written to a file")
    return {"dtype": kind, "values": classes.tolist()}


def decode_labels(fields: Mapping[str, Any]) -> NDArray[Any]:
    """Rebuild class labels in their original type."""
    dtype, values = str(fields["dtype"]), fields["values"]
    if not isinstance(values, list) or not all(isinstance(v, _LABELS) for v in values):
        raise ModelFileError("inconsistent model file: its labels are no labels")
    if dtype == "object":
        return np.array(values, dtype=object)
    if _TEXT.fullmatch(dtype):
        return np.array([str(value) for value in values])
    if not _NUMBER.fullmatch(dtype):
        raise ModelFileError(f"inconsistent model file: labels of type {dtype[:20]!r}")
    return np.array(values, dtype=np.dtype(dtype))


def json_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the arguments that JSON can hold, without those of the run; others become None."""
    return {name: _plain(v) for name, v in params.items() if name not in _RUN_PARAMS}


def _plain(value: Any) -> Any:
    """Return a number or text, or a list of them, as plain Python has it; else None."""
    if hasattr(value, "tolist"):  # of NumPy, or an index of pandas
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        plain = [_plain(each) for each in value]
        return [each if isinstance(each, (int, float, str)) else None for each in plain]
    return value if isinstance(value, (str, bool, int, float, type(None))) else None


def draws_to_parts(draws: Draws) -> tuple[dict[str, Any], Arrays]:
    """Split draws into JSON values and arrays."""
    arrays: Arrays = {f"draws/{name}": np.asarray(v) for name, v in draws.variables.items()}
    arrays |= {f"stats/{name}": np.asarray(v) for name, v in draws.stats.items()}
    if draws.log_weights is not None:
        arrays["log_weights"] = draws.log_weights
    labels = {name: list(entries) for name, entries in draws.labels.items()}
    values = {"labels": labels, "monitored": list(draws.monitored)}
    return values | ({"segments": list(draws.segments)} if draws.segments else {}), arrays


def draws_from_parts(fields: Mapping[str, Any], arrays: Arrays) -> Draws:
    """Put draws together again."""
    named: dict[str, Arrays] = {"draws": {}, "stats": {}}
    for name, values in arrays.items():
        kind, _, rest = name.partition("/")
        if kind in named and rest:
            # In double precision: the limit is beyond what a narrower float holds.
            if values.dtype.kind == "f" and not (np.abs(values) <= np.float64(LARGEST)).all():
                raise ValueError(f"{name} holds a number that is out of its range")
            named[kind][rest] = values
    labels = {str(name): tuple(entries) for name, entries in fields["labels"].items()}
    monitored = tuple(fields["monitored"])
    weights, segments = arrays.get("log_weights"), tuple(fields.get("segments", ()))
    return Draws(named["draws"], named["stats"], labels, monitored, weights, segments)


def diagnostics_from_dict(values: Mapping[str, Any]) -> Diagnostics:
    """Rebuild what `Diagnostics.to_dict` gave and `schema.DIAGNOSTICS` describes."""
    lists = {"bfmi": tuple(values["bfmi"]), "warnings": tuple(values["warnings"])}
    known: dict[str, Any] = {each.name: values.get(each.name) for each in fields(Diagnostics)}
    return Diagnostics(**{**known, **lists, "table": table_from_dict(values["table"])})


def table_from_dict(fields: Mapping[str, Any]) -> Table:
    """Rebuild what `Table.to_dict` gave and `schema.Cells` describes."""
    return Table(tuple(fields["columns"]), tuple(tuple(row) for row in fields["rows"]))


# What the files of all estimators hold: classes, names of columns, standardisation, draws.
#
# What comes from a file is checked here, so that a bad file fails when it is read and not at a
# prediction.


@dataclass(frozen=True)
class Common:
    """The parts of a fitted estimator that all methods have; a regressor knows no classes."""

    known_classes: NDArray[Any] | None
    feature_labels: tuple[str, ...]
    has_feature_names: bool
    standardizer: Standardizer
    draws: Draws
    diagnostics: Diagnostics
    notes: tuple[str, ...]

    @property
    def classes(self) -> NDArray[Any]:
        """Labels of a classifier's classes; a ValueError if there are none."""
        if self.known_classes is None:
            raise ValueError("a classifier needs classes")
        return self.known_classes

    def put_into(self, model: Any) -> None:
        """Set the fitted attributes that they are."""
        if self.known_classes is not None:
            model.classes_ = self.known_classes
        model.feature_labels_ = self.feature_labels
        model.n_features_in_ = len(self.feature_labels)
        if self.has_feature_names:
            model.feature_names_in_ = np.array(self.feature_labels, dtype=object)
        model.standardizer_ = self.standardizer
        model.posterior_ = self.draws
        model.diagnostics_ = self.diagnostics
        model.notes_ = self.notes


def common_parts(model: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Split what all fitted estimators have into JSON values and arrays."""
    values, arrays = draws_to_parts(model.posterior_)
    values |= {
        "diagnostics": model.diagnostics_.to_dict(),
        "notes": list(model.notes_),
        "labels_of_inputs": list(model.feature_labels_),
        "has_feature_names": hasattr(model, "feature_names_in_") and not hasattr(model, "encoder_"),
    }
    if hasattr(model, "classes_"):
        values["classes"] = encode_labels(model.classes_)
    for name, column in vars(model.standardizer_).items():
        arrays[f"standardizer/{name}"] = column
    return values, arrays


def restore_common(parts: ModelParts) -> Common:
    """Put the parts together again.

    A ValueError, KeyError or TypeError where something is missing or does not fit; the reader of
    the file names it.
    """
    values, arrays = parts.fields, parts.arrays
    sizes: Sizes = {}
    COMMON.check(values, "fields", sizes)
    standardizer = restore_standardizer(arrays, sizes)
    common = Common(
        known_classes=decode_labels(values["classes"]) if "classes" in values else None,
        feature_labels=tuple(values["labels_of_inputs"]),
        has_feature_names=values["has_feature_names"],
        standardizer=standardizer,
        draws=draws_from_parts(values, arrays),
        diagnostics=diagnostics_from_dict(values["diagnostics"]),
        notes=tuple(values["notes"]),
    )
    if (known := common.known_classes) is not None:
        is_right = known.ndim == 1 and len(known) > 1 and len(set(known.tolist())) == len(known)
        require(is_right, "classes")
    return common


def restore_standardizer(arrays: Mapping[str, NDArray[Any]], sizes: Sizes) -> Standardizer:
    """Put the standardiser of d inputs together again; d may be known already."""
    check_arrays(arrays, STANDARDIZER, sizes)
    columns = {f.name: arrays[f"standardizer/{f.name}"] for f in fields(Standardizer)}
    standardizer = Standardizer(**columns)
    is_constant = standardizer.scale == 0.0
    require(bool((standardizer.kind[is_constant] == 0).all()), "standardizer/scale")
    return standardizer


def check_constant(standardizer: Standardizer, X: NDArray[np.float64]) -> None:
    """Refuse a column that the standardiser makes constant and the stored rows X do not have so."""
    require(not bool(X[:, standardizer.scale == 0.0].any()), "standardizer/scale")


def is_finite(values: NDArray[Any]) -> bool:
    """Whether all numbers are finite."""
    return bool(np.isfinite(values).all())


def require(is_right: bool, what: str) -> None:
    """Raise ValueError unless a part of a file is what it must be."""
    if not is_right:
        raise ValueError(f"{what} are not of the right shape, type or range")
