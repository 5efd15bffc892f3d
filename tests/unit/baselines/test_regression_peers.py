"""The regression baselines: each gives laws of rows, the spread is that of rows it has not seen."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from mercer.baselines import a_la_carte, random_features, rfo
from mercer.baselines import peers as residual_spread
from mercer.baselines.peers import REGRESSION_PEERS, ArdProcess, ResidualSpread, peers_of
from mercer.errors import DataError
from mercer.posterior.evaluation import hold
from support.statistics import pairs_first

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = 100.0 + 20.0 * X[:, 0] + 5.0 * np.sin(3 * X[:, 1]) + 2.0 * RNG.normal(size=90)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few features, one thread: what is tested here does not depend on them."""
    for module, name in (
        (random_features, "RKSRegressor"),
        (random_features, "MKLRegressor"),
        (rfo, "RFORegressor"),
    ):
        monkeypatch.setattr(module, name, partial(getattr(module, name), n_features=36))
    small = partial(a_la_carte.AlaCarteRegressor, components=(2,), frequencies_each=(6,))
    monkeypatch.setattr(a_la_carte, "AlaCarteRegressor", small)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.one_in(3)
@pytest.mark.parametrize("peer", REGRESSION_PEERS, ids=lambda peer: peer.name)
def test_each_gives_laws_and_the_same_for_the_same_seed(peer) -> None:
    make = pickle.loads(pickle.dumps(peer.make))
    laws = []
    for _ in range(2):
        model = make(7, 60, 60).fit(X[:60], Y[:60])
        laws.append(model.predictive(X[60:]))
    np.testing.assert_array_equal(laws[0].mean, laws[1].mean)
    np.testing.assert_array_equal(laws[0].std, laws[1].std)
    np.testing.assert_array_equal(laws[0].mean, model.predict(X[60:]))
    scores = hold(laws[0], Y[60:], float(Y[:60].var())).scores()
    assert scores.standardized_mse < (2.0 if peer.name == "dummy" else 0.6)
    assert scores.coverage_90 >= 0.6


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("peer", "n"),
    pairs_first({peer.name: peer for peer in REGRESSION_PEERS}, {"two": 2, "three": 3, "six": 6}),
)
def test_few_rows_are_enough(peer, n: int) -> None:
    law = peer.make(0, n, n).fit(X[:n], Y[:n]).predictive(X)
    assert np.isfinite(law.log_density(Y)).all()


def test_names_are_different_and_only_some_are_shown_by_fit() -> None:
    names = {peer.name for peer in REGRESSION_PEERS}
    assert len(names) == len({peer.label for peer in REGRESSION_PEERS}) == len(REGRESSION_PEERS)
    assert {p.name for p in REGRESSION_PEERS if p.is_brief} == {"dummy", "ridge", "boosting"}
    assert peers_of("regression") == REGRESSION_PEERS
    assert {peer.name for peer in peers_of("classification")} >= {"svc", "logistic"}


def test_the_spread_is_that_of_rows_left_out() -> None:
    """A tree that learns its rows by heart has no residuals on them; by that it must not go."""
    noise = 3.0 * np.random.default_rng(1).normal(size=400)
    model = ResidualSpread(DecisionTreeRegressor(random_state=0)).fit(np.zeros((400, 1)), noise)
    assert 2.5 < model.std_ < 3.5
    rows = np.random.default_rng(2).normal(size=(400, 2))
    model = ResidualSpread(DecisionTreeRegressor(random_state=0)).fit(rows, noise)
    assert np.abs(model.predict(rows) - noise).max() < 1e-9
    assert model.std_ > 3.0


def test_many_rows_leave_out_one_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residual_spread, "ENOUGH", 15)
    model = ResidualSpread(LinearRegression(), seed=3).fit(X, Y)
    train, test = next(KFold(5, shuffle=True, random_state=3).split(X))
    left_out = Y[test] - LinearRegression().fit(X[train], Y[train]).predict(X[test])
    assert model.std_ == pytest.approx(np.sqrt(np.mean(left_out**2)))


def test_the_spread_of_one_that_cross_validates_is_that_of_its_folds() -> None:
    model = ResidualSpread(random_features.RKSRegressor(random_state=0)).fit(X, Y)
    assert model.std_ == np.sqrt(model.regressor_.cv_errors_.min()) * Y.std()
    assert 0.5 < model.std_ / np.std(Y - model.predict(X)) < 20


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", [RandomForestRegressor, BaggingRegressor])
def test_a_forest_of_few_trees_is_judged_by_folds(kind) -> None:
    """Of a row in every bootstrap sample it says 0: 1000 off."""
    y = 1000.0 + X[:, 0]
    few = ResidualSpread(kind(n_estimators=10, oob_score=True, random_state=0)).fit(X, y)
    assert (few.regressor_.oob_prediction_ == 0.0).any()
    assert few.std_ == ResidualSpread(kind(n_estimators=10, random_state=0)).fit(X, y).std_ < 1.0
    many = ResidualSpread(kind(n_estimators=100, oob_score=True, random_state=0)).fit(X, y)
    left_out = y - many.regressor_.oob_prediction_
    assert many.std_ == np.sqrt(np.mean(np.square(left_out))) < 1.0


def test_without_residuals_the_spread_is_a_millionth_of_the_targets() -> None:
    line = ResidualSpread(LinearRegression()).fit(X, X[:, 0])
    assert line.std_ == 1e-6 * X[:, 0].std()
    constant = ResidualSpread(DummyRegressor()).fit(X, np.ones(90))
    assert constant.predictive(X[:1]).std[0] > 0


def test_one_row_has_no_residuals() -> None:
    with pytest.raises(DataError, match="1 sample"):
        ResidualSpread(DummyRegressor()).fit(X[:1], Y[:1])


def test_the_process_finds_the_inputs_that_matter() -> None:
    model = ArdProcess().fit(X, np.sin(2.0 * X[:, 0]))
    scales = model.process_.kernel_.k1.k2.length_scale
    assert min(scales[1:]) > 3 * scales[0]
