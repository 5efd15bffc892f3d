from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from mercer import baselines
from mercer.baselines.paths import NormalEquations, cross_validate
from mercer.baselines.peers import CalibratedSVC, PenalisedRegression
from mercer.errors import NumericalError, UsageError

RNG = np.random.default_rng(21)
W = RNG.standard_normal((15, 2))
Z = RNG.standard_normal((80, 2))
Y = np.sin(2.0 * Z[:, 0]) + 0.2 * RNG.standard_normal(80)
FACTORS, PENALTIES = (0.3, 1.0, 4.0), (1e-3, 0.1, 10.0)


def by_hand() -> np.ndarray:
    errors = np.zeros((len(FACTORS), len(PENALTIES)))
    for i, factor in enumerate(FACTORS):
        phase = Z @ (W / factor).T
        F = np.hstack([np.cos(phase), np.sin(phase)]) / np.sqrt(15)
        for k, penalty in enumerate(PENALTIES):
            for train, test in KFold(4, shuffle=True, random_state=7).split(Z):
                model = Ridge(alpha=penalty, solver="svd").fit(F[train], Y[train])
                errors[i, k] += ((model.predict(F[test]) - Y[test]) ** 2).sum() / len(Y)
    return errors


def test_errors_are_those_of_refitting_each_fold() -> None:
    chosen = cross_validate(W, Z, Y, FACTORS, PENALTIES, 4, 7)
    expected = by_hand()
    np.testing.assert_allclose(chosen.errors, expected, rtol=1e-8)
    i, k = np.unravel_index(np.argmin(expected), expected.shape)
    assert (chosen.factor, chosen.penalty) == (FACTORS[i], PENALTIES[k])


def test_sees_a_fold_that_is_not_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: the products of all rows train every fold."""
    monkeypatch.setattr(NormalEquations, "__sub__", lambda self, other: self)
    chosen = cross_validate(W, Z, Y, FACTORS, PENALTIES, 4, 7)
    assert np.abs(chosen.errors / by_hand() - 1.0).max() > 0.1


def test_singular_penalties_are_never_chosen() -> None:
    twice = np.vstack([W] * 2)
    chosen = cross_validate(twice, Z, Y, (1.0,), (1e-300, 0.1), 4, 7)
    assert np.isinf(chosen.errors[0, 0])
    assert chosen.penalty == 0.1
    with pytest.raises(NumericalError, match="larger"):
        cross_validate(twice, Z, Y, (1.0,), (1e-300,), 4, 7)


def test_two_rows_make_two_folds() -> None:
    chosen = cross_validate(W, Z[:2], Y[:2], (1.0,), (1.0,), 5, 0)
    assert chosen.errors[0, 0] == pytest.approx((Y[0] - Y[1]) ** 2)


def test_scores_are_calibrated_by_whole_groups() -> None:
    """Labels are chance, one a group: of new groups they tell nothing, and those seen all."""
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(40), 5)
    X = rng.standard_normal((40, 2))[groups] + 0.01 * rng.standard_normal((200, 2))
    y = rng.permutation(np.arange(40) % 2)[groups]
    new = rng.standard_normal((200, 2))
    alone, whole = (CalibratedSVC().fit(X, y, each).predict_proba(new) for each in (None, groups))
    assert np.abs(alone - 0.5).mean() > 2.0 * np.abs(whole - 0.5).mean()
    for each in (np.zeros(200), y):  # groups that cannot be left out
        again = CalibratedSVC().fit(X, y, each.astype(np.int64)).predict_proba(new)
        np.testing.assert_array_equal(again, alone)


def test_the_penalty_of_ridge_regression_is_chosen_by_whole_groups() -> None:
    """Inputs that name the group: a row that is left out is told by the others of its group."""
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(30), 5)
    X = np.eye(30)[groups] + 0.01 * rng.standard_normal((150, 30))
    y = rng.standard_normal(30)[groups] + 0.1 * rng.standard_normal(150)
    found = [
        PenalisedRegression().fit(X, y, each).model_[-1].alpha_
        for each in (None, np.zeros(150), groups)
    ]
    assert found[0] == found[1]
    assert found[2] > 100.0 * found[0]


SMALL = {"n_features": 32, "random_state": 0, "n_folds": 4}
EACH = [
    baselines.RKSRegressor(**SMALL),
    baselines.MKLRegressor(**SMALL),
    baselines.RFORegressor(**SMALL, components=(1,)),
    baselines.AlaCarteRegressor(
        components=(1,), frequencies_each=(16,), max_iter=10, random_state=0
    ),
    baselines.RKSClassifier(**SMALL),
    baselines.MKLClassifier(**SMALL),
    baselines.RFOClassifier(**SMALL, components=(1,)),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("model", EACH, ids=lambda model: type(model).__name__)
def test_settings_are_chosen_by_whole_groups(model: BaseEstimator) -> None:
    """Targets are noise that the rows of a group share: what is seen of one tells the others."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(24), 5)
    X = rng.standard_normal((24, 2))[groups] + 0.01 * rng.standard_normal((120, 2))
    y = rng.standard_normal(24)[groups] + 0.1 * rng.standard_normal(120)
    y = (y > np.median(y)).astype(int) if hasattr(model, "predict_proba") else y
    alone, whole = (clone(model).fit(X, y, groups=each) for each in (None, groups))
    assert 2.0 * alone.cv_errors_.min() < whole.cv_errors_.min()
    one = clone(model).fit(X, y, groups=np.zeros(120))  # nothing to hold out: rows are
    np.testing.assert_array_equal(one.cv_errors_, alone.cv_errors_)
    with pytest.raises(UsageError, match="120 rows, but 3 entries of groups"):
        clone(model).fit(X, y, groups=[1, 2, 3])
