from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from mercer import GPClassifier
from mercer.estimation.cross_validate import (
    Contender,
    Fold,
    Setting,
    contender_of,
    cross_validate,
    maker_of,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(np.int64)
FOLDS = [Fold(X[:20], Y[:20], X[20:], Y[20:]), Fold(X[20:], Y[20:], X[:20], Y[:20])]


class Failing(DummyClassifier):
    def fit(self, X, y, sample_weight=None):
        raise ValueError("no good\nat all")


def contender(estimator: object) -> Contender:
    return Contender(type(estimator).__name__, True, maker_of(estimator))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_scores_do_not_depend_on_the_number_of_processes(n_jobs: int) -> None:
    folds_done: list[str] = []
    done: list[str] = []
    results = cross_validate(
        [contender(LogisticRegression()), contender(DummyClassifier())],
        FOLDS,
        n_jobs=n_jobs,
        on_fold=folds_done.append,
        on_result=lambda result: done.append(result.name),
    )
    assert [result.name for result in results] == ["LogisticRegression", "DummyClassifier"]
    assert sorted(folds_done) == 2 * ["DummyClassifier"] + 2 * ["LogisticRegression"]
    assert sorted(done) == ["DummyClassifier", "LogisticRegression"]
    expected = LogisticRegression().fit(X[:20], Y[:20]).predict_proba(X[20:])
    np.testing.assert_array_equal(results[0].parts[0].proba, expected)
    assert results[0].pooled.n_rows == 40
    mean, error = results[0].mean_and_error("error_rate")
    assert mean < 0.2
    assert error >= 0
    assert math.isnan(results[0].mean_and_error("calibration_error")[1])


def test_a_failure_is_told_and_the_others_go_on() -> None:
    failed, fine = cross_validate(
        [contender(Failing()), contender(DummyClassifier())], FOLDS, n_jobs=1
    )
    assert failed.problem == "failed: no good"
    assert isinstance(failed.error, ValueError)
    assert not fine.problem


@pytest.mark.parametrize("place", [0, 30])
def test_gaps_of_either_part_are_filled_for_a_model_that_takes_none(place: int) -> None:
    gaps = X.copy()
    gaps[place, 1] = np.nan
    folds = [Fold(gaps[:20], Y[:20], gaps[20:], Y[20:])]
    (result,) = cross_validate([contender(LogisticRegression())], folds, n_jobs=1)
    assert not result.problem
    filled, middle = X.copy(), np.median(np.delete(X[:20, 1], place if place < 20 else []))
    filled[place, 1] = middle
    if place < 20:  # training knows the column that says where
        filled = np.column_stack([filled, np.arange(40) == place])
    expected = LogisticRegression().fit(filled[:20], Y[:20]).predict_proba(filled[20:])
    np.testing.assert_allclose(result.parts[0].proba, expected)


def test_a_quicker_setting_stands_where_the_longer_one_fails() -> None:
    quick = Setting("quick", maker_of(DummyClassifier()), most_rows=10)
    told: list[str] = []
    (result,) = cross_validate(
        [Contender("it", False, maker_of(Failing()), "long", (quick,))],
        FOLDS,
        n_jobs=1,
        on_result=lambda each: told.append(each.setting),
    )
    assert (result.setting, result.is_quick, result.problem) == ("quick", True, "")
    assert isinstance(result.error, ValueError)
    assert told == ["quick"]


@pytest.mark.parametrize(
    ("n", "n_classes", "rungs"),
    [
        (700, 3, [None]),
        (1000, 3, [500]),
        (1000, 10, [150, 500]),
        (700, 10, [150]),
        (200, 10, [None]),
    ],
)
def test_of_many_classes_a_quick_setting_takes_more_rows_while_time_lasts(
    n: int, n_classes: int, rungs: list[int | None]
) -> None:
    y = np.arange(n) % n_classes
    fold = Fold(np.zeros((n, 1)), y, np.zeros((1, 1)), y[:1])
    own = contender_of("it", GPClassifier(), [{"inference": "map"}], (), [fold])
    assert [each.most_rows for each in own.sooner] == rungs


class Counting(DummyClassifier):
    def fit(self, X, y, sample_weight=None):
        self.counts_ = np.bincount(y)
        return super().fit(X, y)

    def predict_proba(self, X):
        return np.tile(self.counts_, (len(X), 1))


def test_of_many_rows_a_quick_setting_takes_some_of_each_class() -> None:
    y = (np.arange(40) % 10 == 0).astype(np.int64)
    quick = Setting("quick", maker_of(Counting()), most_rows=10)
    contender_ = Contender("it", False, maker_of(Failing()), "long", (quick,))
    (result,) = cross_validate([contender_], [Fold(X, y, X[:1], y[:1])], n_jobs=1)
    np.testing.assert_array_equal(result.parts[0].proba, [[9, 1]])
