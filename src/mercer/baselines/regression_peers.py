"""The regressors that mercer's models are compared with, by name.

Each has ``predictive``. Those that predict a number only are given the spread of their residuals
on rows they have not seen (`mercer.baselines.residual_spread`). All but the trees standardise the
inputs; SVR the target too.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mercer.baselines.peers import Peer, scaled

__all__ = ["REGRESSION_PEERS"]


def _dummy(seed: int, n_rows: int, n_smallest: int) -> Any:
    from sklearn.dummy import DummyRegressor

    return _with_spread(DummyRegressor(strategy="mean"), seed)


def _ridge(seed: int, n_rows: int, n_smallest: int) -> Any:
    from sklearn.linear_model import RidgeCV

    return _with_spread(scaled(RidgeCV(alphas=np.logspace(-3, 4, 15))), seed)


def _svr(seed: int, n_rows: int, n_smallest: int) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVR

    return _with_spread(
        TransformedTargetRegressor(scaled(SVR(C=10.0)), transformer=StandardScaler()), seed
    )


def _neighbours(seed: int, n_rows: int, n_smallest: int) -> Any:
    from sklearn.neighbors import KNeighborsRegressor

    # Of the rows a fifth is left out to see the residuals.
    n_neighbours = min(5, max(1, 4 * n_rows // 5))
    regressor = KNeighborsRegressor(n_neighbours, weights="distance", n_jobs=1)
    return _with_spread(scaled(regressor), seed)


def _forest(seed: int, n_rows: int, n_smallest: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return _with_spread(
        RandomForestRegressor(300, oob_score=True, random_state=seed, n_jobs=1), seed
    )


def _boosting(seed: int, n_rows: int, n_smallest: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return _with_spread(HistGradientBoostingRegressor(random_state=seed), seed)


def _process(seed: int, n_rows: int, n_smallest: int) -> Any:
    from mercer.baselines.ard_process import ArdProcess

    return ArdProcess()


def _sinks(seed: int, n_rows: int, n_smallest: int) -> Any:
    from mercer.baselines.rks import RKSRegressor

    return _with_spread(RKSRegressor(random_state=seed), seed)


def _bank(seed: int, n_rows: int, n_smallest: int) -> Any:
    from mercer.baselines.mkl import MKLRegressor

    return _with_spread(MKLRegressor(random_state=seed), seed)


def _a_la_carte(seed: int, n_rows: int, n_smallest: int) -> Any:
    from mercer.baselines.a_la_carte import AlaCarteRegressor

    return _with_spread(AlaCarteRegressor(random_state=seed), seed)


def _optimised(seed: int, n_rows: int, n_smallest: int) -> Any:
    from mercer.baselines.rfo import RFORegressor

    return _with_spread(RFORegressor(random_state=seed), seed)


def _with_spread(regressor: Any, seed: int) -> Any:
    from mercer.baselines.residual_spread import ResidualSpread

    return ResidualSpread(regressor, seed)


#: A regressor that predicts a number only joins by one line and a function like those above.
REGRESSION_PEERS: Final = (
    Peer("dummy", "mean only", _dummy, is_brief=True),
    Peer("ridge", "ridge regression", _ridge, is_brief=True),
    Peer("svr", "SVR", _svr, is_brief=False),
    Peer("neighbours", "k nearest neighbours", _neighbours, is_brief=False),
    Peer("forest", "random forest", _forest, is_brief=False),
    Peer("boosting", "gradient boosting", _boosting, is_brief=True),
    Peer("rks", "random kitchen sinks", _sinks, is_brief=False),
    Peer("mkl", "bank of kernels", _bank, is_brief=False),
    Peer("a-la-carte", "A la Carte", _a_la_carte, is_brief=False),
    Peer("rfo", "optimised frequencies", _optimised, is_brief=False),
    Peer("gp-ml", "GP, max. likelihood", _process, is_brief=False, most_rows=1000),
)
