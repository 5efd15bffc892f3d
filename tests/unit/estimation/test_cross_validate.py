from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from mercer.estimation.cross_validate import Contender, Fold, cross_validate, maker_of

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
