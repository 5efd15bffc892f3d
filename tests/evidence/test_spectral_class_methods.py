from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from reproduce.papers import spectral_class_methods
from reproduce.papers.spectral_class_folds import ClassFold
from reproduce.papers.spectral_class_methods import CLASS_METHODS, _staged_losses, _trees

RNG = np.random.default_rng(9)
X = RNG.standard_normal((200, 2)) * [1.0, 30.0]
Y = (np.sin(2.0 * X[:, 0]) + 0.2 * RNG.standard_normal(200) > 0).astype(np.int64)
FOLD = ClassFold(X[:150], Y[:150], X[150:], Y[150:])
RUN = {method.key: method.run for method in CLASS_METHODS}


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(limits=1):
        yield


@pytest.mark.parametrize("key", ["rks", "mkl", "rfo", "bank-paper", "boosting", "svc", "logistic"])
def test_each_beats_the_class_shares(key: str) -> None:
    proba = RUN[key](FOLD, True, 1)
    assert proba.shape == (50,)
    shares = log_loss(FOLD.y_test, np.full(50, FOLD.y.mean()))
    assert log_loss(FOLD.y_test, proba) < shares
    np.testing.assert_array_equal(proba, RUN[key](FOLD, True, 1))


def test_staged_losses_are_those_of_ensembles_of_each_size() -> None:
    losses = _staged_losses(FOLD.X, FOLD.y, 5, 0.1, 15)
    total = 0.0
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    for train, test in folds.split(FOLD.X, FOLD.y):
        trees = _trees(4, 0.1, 15).fit(FOLD.X[train], FOLD.y[train])
        total += log_loss(FOLD.y[test], trees.predict_proba(FOLD.X[test]), normalize=False)
    assert losses[3] == pytest.approx(total, rel=1e-12)


def test_settings_are_chosen_on_a_subset_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(X, y, *rest):
        seen.append(len(X))
        return _staged_losses(X, y, *rest)

    monkeypatch.setattr(spectral_class_methods, "_staged_losses", spy)
    monkeypatch.setattr(spectral_class_methods, "_SELECTION_ROWS", 70)
    RUN["boosting"](FOLD, True, None)
    assert seen == [70]
