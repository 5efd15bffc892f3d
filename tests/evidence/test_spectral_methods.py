"""The methods beside BaNK in the tables of its paper, for numbers and for classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from reproduce.papers import spectral_class_methods, spectral_methods
from reproduce.papers.spectral_class_folds import ClassFold
from reproduce.papers.spectral_class_methods import CLASS_METHODS, _staged_losses, _trees
from reproduce.papers.spectral_folds import Fold
from reproduce.papers.spectral_methods import METHODS, _staged_errors

# ------------------------------------------------------------------------------------------ methods

RNG = np.random.default_rng(8)
X = RNG.standard_normal((160, 2)) * [1.0, 30.0]
F = np.sin(2.0 * X[:, 0])
Y = F + 0.3 * RNG.standard_normal(160)
FOLD = Fold(X[:120], Y[:120], X[120:], Y[120:])
RUN = {method.key: method.run for method in METHODS}

# Of the process: a weight that is at its bound.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(limits=1):
        yield


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "key", ["rks", "mkl", "alac", "bank-normal", "bank-paper", "boosting", "gp", "ridge"]
)
def test_each_beats_its_mean_or_is_linear(key: str) -> None:
    mean = RUN[key](FOLD, True, 1).mean
    assert mean.shape == (40,)
    error = np.mean((mean - FOLD.y_test) ** 2) / FOLD.y_test.var()
    assert error < (1.2 if key == "ridge" else 0.6)
    np.testing.assert_array_equal(mean, RUN[key](FOLD, True, 1).mean)


def test_the_process_has_intervals() -> None:
    found = RUN["gp"](FOLD, True, 1)
    inside = (found.lower <= FOLD.y_test) & (FOLD.y_test <= found.upper)
    assert 0.75 <= inside.mean() <= 1.0


@pytest.mark.parametrize("raw_is_better", [True, False])
def test_random_features_take_the_better_inputs(raw_is_better: bool) -> None:
    class Fake:
        def __init__(self, *, standardize, random_state, n_features):
            self.is_raw = standardize is False

        def fit(self, X, y):
            self.cv_errors_ = np.array([[2.0, 1.0 if self.is_raw == raw_is_better else 1.5]])
            return self

        def predict(self, X):
            return np.full(len(X), float(self.is_raw))

    found = spectral_methods._random_features(Fake)(FOLD, True, None).mean
    np.testing.assert_array_equal(found, float(raw_is_better))


def test_staged_errors_are_those_of_ensembles_of_each_size() -> None:
    errors = _staged_errors(FOLD.X, FOLD.y, 6, 0.1, 15)
    assert errors.shape == (6,)
    squares = 0.0
    for train, test in KFold(3, shuffle=True, random_state=0).split(FOLD.X):
        trees = HistGradientBoostingRegressor(
            learning_rate=0.1, max_leaf_nodes=15, max_iter=4, early_stopping=False, random_state=0
        ).fit(FOLD.X[train], FOLD.y[train])
        squares += ((trees.predict(FOLD.X[test]) - FOLD.y[test]) ** 2).sum()
    assert errors[3] == pytest.approx(squares / 120, rel=1e-12)


def test_boosting_chooses_on_a_subset_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(X, y, *rest):
        seen.append(len(X))
        return _staged_errors(X, y, *rest)

    monkeypatch.setattr(spectral_methods, "_staged_errors", spy)
    monkeypatch.setattr(spectral_methods, "_SELECTION_ROWS", 70)
    RUN["boosting"](FOLD, True, None)
    assert seen == [70]


# ------------------------------------------------------------------------------------ class methods

CLASS_RNG = np.random.default_rng(9)
CLASS_X = CLASS_RNG.standard_normal((200, 2)) * [1.0, 30.0]
CLASS_Y = (np.sin(2.0 * CLASS_X[:, 0]) + 0.2 * CLASS_RNG.standard_normal(200) > 0).astype(np.int64)
CLASS_FOLD = ClassFold(CLASS_X[:150], CLASS_Y[:150], CLASS_X[150:], CLASS_Y[150:])
CLASS_RUN = {method.key: method.run for method in CLASS_METHODS}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("key", ["rks", "mkl", "rfo", "bank-paper", "boosting", "svc", "logistic"])
def test_each_beats_the_class_shares(key: str) -> None:
    proba = CLASS_RUN[key](CLASS_FOLD, True, 1)
    assert proba.shape == (50,)
    shares = log_loss(CLASS_FOLD.y_test, np.full(50, CLASS_FOLD.y.mean()))
    assert log_loss(CLASS_FOLD.y_test, proba) < shares
    np.testing.assert_array_equal(proba, CLASS_RUN[key](CLASS_FOLD, True, 1))


def test_staged_losses_are_those_of_ensembles_of_each_size() -> None:
    losses = _staged_losses(CLASS_FOLD.X, CLASS_FOLD.y, 5, 0.1, 15)
    total = 0.0
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    for train, test in folds.split(CLASS_FOLD.X, CLASS_FOLD.y):
        trees = _trees(4, 0.1, 15).fit(CLASS_FOLD.X[train], CLASS_FOLD.y[train])
        total += log_loss(
            CLASS_FOLD.y[test], trees.predict_proba(CLASS_FOLD.X[test]), normalize=False
        )
    assert losses[3] == pytest.approx(total, rel=1e-12)


def test_settings_are_chosen_on_a_subset_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(X, y, *rest):
        seen.append(len(X))
        return _staged_losses(X, y, *rest)

    monkeypatch.setattr(spectral_class_methods, "_staged_losses", spy)
    monkeypatch.setattr(spectral_class_methods, "_SELECTION_ROWS", 70)
    CLASS_RUN["boosting"](CLASS_FOLD, True, None)
    assert seen == [70]
