"""The two tasks: what folds learn, which targets can be scored, what is kept of the answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mercer.estimation import tasks
from mercer.estimation.cross_validate import Contender, Fold, Result, cross_validate, maker_of
from mercer.estimation.tasks import CLASSIFICATION, REGRESSION, TASKS, task_of
from mercer.posterior.evaluation import RegressionEvaluation
from support.fake_regression import held_rows
from support.ridge_model.estimator import RidgeRegressor
from support.statistics import few_first

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 2))
Y = 3.0 * X[:, 0] + 0.5 * RNG.normal(size=60)
FOLDS = [Fold(X[:30], Y[:30], X[30:], Y[30:]), Fold(X[30:], Y[30:], X[:30], Y[:30])]


def contender(name: str = "ridge") -> Contender:
    return Contender(name, False, maker_of(RidgeRegressor(random_state=0)))


def test_targets_are_positions_of_classes_or_numbers() -> None:
    classes, y = CLASSIFICATION.encode(np.array(["b", "a", "b"], dtype=object))
    assert (classes, y.tolist()) == (("a", "b"), [1, 0, 1])
    assert CLASSIFICATION.n_smallest(y) == 1
    assert math.isnan(CLASSIFICATION.variance(y))
    classes, y = REGRESSION.encode(np.array([2, 1, 4]))
    assert (classes, y.tolist(), y.dtype) == ((), [2.0, 1.0, 4.0], np.float64)
    assert REGRESSION.n_smallest(y) == 3
    assert REGRESSION.variance(y) == pytest.approx(np.var([2, 1, 4]))


def test_only_labels_can_be_unknown() -> None:
    rows, y = CLASSIFICATION.known(np.array(["b", "c", "a"], dtype=object), ("a", "b"))
    assert (rows.tolist(), y.tolist()) == ([0, 2], [1, 0])
    rows, y = REGRESSION.known(np.array([5.0, 7.0]), ())
    assert (rows.tolist(), y.tolist()) == ([0, 1], [5.0, 7.0])


@pytest.mark.parametrize("n_jobs", few_first([1, 2], 1))
def test_regressors_are_scored_on_folds(n_jobs: int) -> None:
    (result,) = cross_validate([contender()], FOLDS, n_jobs=n_jobs, task=REGRESSION)
    assert not result.problem
    assert result.pooled.n_rows == 60
    assert 0.4 < result.pooled.rmse < 0.7
    assert result.pooled.standardized_mse == pytest.approx(
        result.pooled.mse / np.mean([fold.y_train.var() for fold in FOLDS])
    )
    mean, error = result.mean_and_error("rmse")
    folds = [math.sqrt(part.squared_errors.mean()) for part in result.parts]
    assert mean == pytest.approx(np.mean(folds))
    assert error == pytest.approx(np.std(folds, ddof=1) / math.sqrt(2))


def test_blocks_of_rows_give_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    model = RidgeRegressor(random_state=0).fit(X, Y)
    whole = REGRESSION.answer(model, X, Y, 1.0)
    monkeypatch.setattr(tasks, "BLOCK", 7)
    parts = REGRESSION.answer(model, X, Y, 1.0)
    for name, column in vars(whole).items():
        np.testing.assert_allclose(getattr(parts, name), column, rtol=1e-9)


def test_gaps_between_models_are_paired() -> None:
    ours = tuple(held_rows(n_rows=50, seed=seed) for seed in range(3))
    theirs = tuple(held_rows(n_rows=50, seed=seed, shift=0.2) for seed in range(3))
    results = [
        Result("ours", False, ours, 1.0, REGRESSION),
        Result("theirs", True, theirs, 1.0, REGRESSION),
    ]
    evaluation = REGRESSION.evaluate("3 folds", (), results)
    assert isinstance(evaluation, RegressionEvaluation)
    assert len(evaluation.rows.y) == 150
    pairs = zip(ours, theirs, strict=True)
    gaps = np.concatenate([b.squared_errors - a.squared_errors for a, b in pairs])
    assert evaluation.entries[1].gap_error == pytest.approx(gaps.std(ddof=1) / math.sqrt(150))
    assert evaluation.entries[0].gap_error is None


def test_a_task_is_known_by_its_name_and_by_its_models() -> None:
    assert TASKS == {"classification": CLASSIFICATION, "regression": REGRESSION}
    assert task_of(RidgeRegressor()) is REGRESSION
    assert task_of(object()) is CLASSIFICATION
