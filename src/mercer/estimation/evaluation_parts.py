"""Evaluations as parts of a model file: JSON values and arrays, and back again with checks."""

from __future__ import annotations

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
from mercer.posterior.schema import (
    CLASS_EVALUATION,
    EVALUATION_CLASSES,
    EVALUATION_NUMBERS,
    NUMBER_EVALUATION,
    Sizes,
    check_arrays,
)
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
    """Put an evaluation together again, once it is what `mercer.posterior.schema` says.

    Raises
    ------
    ValueError
        If something is missing or does not fit: it names the field.
    """
    sizes: Sizes = {}
    if isinstance(values, dict) and values.get("kind") == "regression":
        EVALUATION_NUMBERS.check(values, "evaluation", sizes)
        check_arrays(arrays, NUMBER_EVALUATION, sizes)
        rows = HeldTargets(**{name: arrays[f"evaluation/{name}"] for name in _COLUMNS})
        if np.any(rows.lower > rows.upper):
            raise ValueError("evaluation/lower is above evaluation/upper")
        entries = tuple(
            RegressionModelScore(
                **{"gap_error": None, **each, "scores": RegressionScores(**each["scores"])}
            )
            for each in values["entries"]
        )
        return RegressionEvaluation(values["how"], rows, entries)
    EVALUATION_CLASSES.check(values, "evaluation", sizes)
    check_arrays(arrays, CLASS_EVALUATION, sizes)
    return Evaluation(
        how=values["how"],
        classes=tuple(values["classes"]),
        y_index=arrays["evaluation/y_index"],
        proba=arrays["evaluation/proba"],
        entries=tuple(
            ModelScore(**{**each, "scores": Scores(**each["scores"])}) for each in values["entries"]
        ),
    )
