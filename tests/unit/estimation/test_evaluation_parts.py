"""Evaluations in model files: there and back, files of the first format, parts that do not fit."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest

from mercer.posterior.evaluation import (
    Evaluation,
    RegressionEvaluation,
    evaluation_from,
    evaluation_parts,
)
from support.fake_estimator import fake_evaluation
from support.fake_regression import fake_regression


def test_numbers_come_back_as_they_were() -> None:
    evaluation = fake_regression()
    values, arrays = evaluation_parts(evaluation)
    again = evaluation_from(json.loads(json.dumps(values)), arrays)
    assert isinstance(again, RegressionEvaluation)
    assert (again.how, again.entries) == (evaluation.how, evaluation.entries)
    for field in fields(evaluation.rows):
        np.testing.assert_array_equal(
            getattr(again.rows, field.name), getattr(evaluation.rows, field.name)
        )


def test_classes_have_the_shape_that_files_of_0_1_have() -> None:
    evaluation = fake_evaluation()
    values, arrays = evaluation_parts(evaluation)
    assert list(values) == ["how", "classes", "entries"]
    assert set(arrays) == {"evaluation/y_index", "evaluation/proba"}
    again = evaluation_from(json.loads(json.dumps(values)), arrays)
    assert isinstance(again, Evaluation)
    assert (again.how, again.classes, again.entries) == (
        evaluation.how, evaluation.classes, evaluation.entries
    )  # fmt: skip


def spoil(name: str, values: np.ndarray):
    def change(fields: dict, arrays: dict) -> None:
        arrays[f"evaluation/{name}"] = values

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda fields, arrays: arrays.pop("evaluation/std"),
        lambda fields, arrays: fields.update(kind="ranking"),
        lambda fields, arrays: fields.pop("how"),
        lambda fields, arrays: fields["entries"].clear(),
        lambda fields, arrays: fields["entries"][0].pop("scores"),
        lambda fields, arrays: fields["entries"][1].update(log_score_gap_error=-1.0),
        lambda fields, arrays: fields["entries"][1].update(gap_error=float("inf")),
        lambda fields, arrays: fields["entries"][0]["scores"].update(other=1.0),
        lambda fields, arrays: fields["entries"][0]["scores"].update(rmse="large"),
        spoil("mean", np.zeros(3)),
        spoil("mean", np.zeros((400, 1))),
        spoil("mean", np.full(400, np.nan)),
        spoil("mean", np.zeros(400, dtype=np.float32)),
        spoil("std", np.zeros(400)),
        spoil("pit", np.full(400, 1.5)),
        spoil("upper", np.full(400, -1e6)),
        spoil("y", np.zeros(0)),
    ],
)
def test_f8_parts_that_do_not_fit_are_refused(change) -> None:
    values, arrays = evaluation_parts(fake_regression())
    change(values, arrays)
    with pytest.raises((KeyError, TypeError, ValueError)):
        evaluation_from(values, arrays)


def test_the_first_files_hold_no_errors_of_gaps() -> None:
    values, arrays = evaluation_parts(fake_regression())
    for entry in values["entries"]:
        entry.pop("gap_error"), entry.pop("log_score_gap_error")
    read = evaluation_from(values, arrays)
    assert [entry.gap_error for entry in read.entries] == [None] * len(read.entries)


def test_a_variance_that_is_not_known_is_no_fault() -> None:
    values, arrays = evaluation_parts(fake_regression())
    arrays["evaluation/variance"] = np.full(400, np.nan)
    assert evaluation_from(values, arrays).rows.scores().standardized_mse is None
