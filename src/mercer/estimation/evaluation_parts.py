"""Evaluations as parts of a model file: JSON values and arrays, and back again with checks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.evaluation import (
    AnyEvaluation,
    Evaluation,
    ModelScore,
    RegressionEvaluation,
    RegressionModelScore,
)
from mercer.posterior.held_out import HeldTargets
from mercer.posterior.regression_scores import RegressionScores
from mercer.posterior.scores import Scores

__all__ = ["evaluation_from", "evaluation_parts"]

Arrays = dict[str, NDArray[Any]]

_COLUMNS = tuple(field.name for field in fields(HeldTargets))


def evaluation_parts(evaluation: AnyEvaluation) -> tuple[dict[str, Any], Arrays]:
    """Split an evaluation into JSON values and arrays."""
    values: dict[str, Any] = {"how": evaluation.how}
    entries = {"entries": [asdict(entry) for entry in evaluation.entries]}
    if isinstance(evaluation, RegressionEvaluation):
        columns = {f"evaluation/{name}": getattr(evaluation.rows, name) for name in _COLUMNS}
        return {**values, "kind": "regression", **entries}, columns
    arrays: Arrays = {
        "evaluation/y_index": evaluation.y_index,
        "evaluation/proba": evaluation.proba,
    }
    return {**values, "classes": list(evaluation.classes), **entries}, arrays


def evaluation_from(values: Mapping[str, Any], arrays: Mapping[str, Any]) -> AnyEvaluation:
    """Put an evaluation together again.

    Raises
    ------
    KeyError, TypeError, ValueError
        If something is missing or does not fit; the reader of the file names it.
    """
    kind = values.get("kind", "classification")  # which files of mercer 0.1.0 do not say
    if kind == "regression":
        return _regression_from(values, arrays)
    if kind != "classification":
        raise ValueError(f"an evaluation of kind {str(kind)[:40]!r}")
    return Evaluation(
        how=str(values["how"]),
        classes=tuple(str(name) for name in values["classes"]),
        y_index=arrays["evaluation/y_index"],
        proba=arrays["evaluation/proba"],
        entries=tuple(
            ModelScore(scores=Scores(**entry["scores"]), **_common(entry), **_gap_errors(entry))
            for entry in values["entries"]
        ),
    )


def _regression_from(values: Mapping[str, Any], arrays: Mapping[str, Any]) -> RegressionEvaluation:
    rows = HeldTargets(**{name: arrays[f"evaluation/{name}"] for name in _COLUMNS})
    _check(rows)
    entries = []
    for entry in values["entries"]:
        entries.append(
            RegressionModelScore(
                scores=_scores_from(entry["scores"]),
                **_common(entry),
                **_gap_errors({**entry, "gap_error": entry["gap_error"]}),
            )
        )
    if not entries:
        raise ValueError("an evaluation without scores")
    return RegressionEvaluation(str(values["how"]), rows, tuple(entries))


def _scores_from(values: Mapping[str, Any]) -> RegressionScores:
    numbers = {name: None if value is None else float(value) for name, value in values.items()}
    return RegressionScores(**{**numbers, "n_rows": int(values["n_rows"])})  # type: ignore[arg-type]


def _common(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": str(entry["name"]),
        "is_baseline": bool(entry["is_baseline"]),
        "seconds": float(entry["seconds"]),
    }


def _gap_errors(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Read standard errors of differences; older files lack those of classes and log scores."""
    found: dict[str, Any] = {}
    for name in ("gap_error", "log_score_gap_error"):
        error = entry.get(name)
        found[name] = None if error is None else float(error)
        if error is not None and not 0.0 <= found[name] < math.inf:
            raise ValueError(f"{name} is no standard error")
    return found


def _check(rows: HeldTargets) -> None:
    """Refuse columns of other lengths or types, or with numbers that no prediction gives."""
    n = len(rows.y)
    for name in _COLUMNS:
        column = getattr(rows, name)
        is_column = column.dtype == np.float64 and column.shape == (n,) and n > 0
        # A variance that is not known is nan.
        if not is_column or (name != "variance" and not np.isfinite(column).all()):
            raise ValueError(f"evaluation/{name} is no column of {n} finite numbers")
    is_right = np.all(rows.std > 0) and np.all((rows.pit >= 0) & (rows.pit <= 1))
    if not is_right or np.any(rows.lower > rows.upper):
        raise ValueError("an evaluation whose intervals are no intervals")
