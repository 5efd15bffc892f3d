"""Bad data and bad arguments: a ValueError that names the trouble (D1 to D4, D13, D14)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from mercer.errors import UsageError
from mercer.gp.estimator import GPClassifier
from mercer.gp.model import HyperparameterPosterior
from support.gp_cases import problem

TINY = {"n_draws": 20, "n_warmup": 10, "n_chains": 1, "random_state": 0, "progress": False}
_X, _Y = problem(20, 2)


def fit(X=_X, y=_Y, **arguments) -> GPClassifier:
    return GPClassifier(**{**TINY, **arguments}).fit(X, y)


def with_value(value: float) -> np.ndarray:
    X = _X.copy()
    X[3, 1] = value
    return X


DATA = [
    pytest.param(np.empty((0, 2)), np.empty(0), "0 sample", id="D1 no rows"),
    pytest.param(np.empty((20, 0)), _Y, "0 feature", id="D1 no columns"),
    pytest.param(_X[:1], _Y[:1], r"1 sample|one class", id="D1 one row"),
    pytest.param(_X, np.full(20, 7), r"one class only: .*7", id="D2 one class"),
    pytest.param(_X, np.full(20, "ham"), r"one class only: .*'ham'", id="D2 one class, text"),
    pytest.param(_X, np.arange(20) % 3, "Only binary classification", id="three classes"),
    pytest.param(with_value(np.nan), _Y, "NaN", id="D3 NaN"),
    pytest.param(with_value(np.inf), _Y, "infinity", id="D3 inf"),
    pytest.param(_X, np.where(_Y == 1.0, np.nan, _Y), "NaN", id="D3 NaN target"),
    pytest.param(_X + 1j, _Y, "Complex data not supported", id="D4 complex"),
    pytest.param(np.full((20, 2), "a"), _Y, "could not convert string", id="D4 text"),
    pytest.param(_X, _X[:, 0], "Unknown label type: continuous", id="D4 continuous target"),
    pytest.param(_X[:, 0], _Y, "Expected 2D array", id="one-dimensional"),
    pytest.param(_X, _Y[:5], "inconsistent numbers of samples", id="lengths"),
    pytest.param(_X, None, "requires y to be passed", id="no target"),
]


@pytest.mark.parametrize(("X", "y", "message"), DATA)
def test_bad_data(X, y, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(X, y)


def test_d4_ragged_rows() -> None:
    with pytest.raises(ValueError, match=r"inhomogeneous|setting an array element"):
        fit([[1.0, 2.0], [3.0]], [0, 1])


@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_d14_sparse(make) -> None:
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        fit(make(_X))
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        fit(inference="map").predict_proba(make(_X))


def test_d6_wrong_number_of_columns() -> None:
    with pytest.raises(ValueError, match="X has 1 features, but GPClassifier is expecting 2"):
        fit(inference="map").predict(_X[:, :1])


ARGUMENTS = [
    ("n_draws", (0, -1, 2.5, "9", None, True), "at least 1"),
    ("n_warmup", (-1, 1.0, None), "at least 0"),
    ("n_chains", (0, 1.5), "at least 1"),
    ("thin", (0, -3, "1"), "at least 1"),
    ("max_seconds", (0, -1.0, np.nan, np.inf, "1"), "above 0"),
    ("inference", ("HMC", "gibbs", None, 1), "'hmc', 'nuts', 'map'"),
    ("prior", ("Paper", None), "'wide', 'paper'"),
    ("predictive_mean", ("mean", None), "'corrected', 'mode'"),
    ("standardize", ("z", True, None, 0), "'auto', 'std'"),
    ("progress", ("yes", None, 3), "'auto', True, False"),
    ("random_state", (-1, 1.5, "a"), "non-negative integer"),
]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, value, message) for name, values, message in ARGUMENTS for value in values],
)
def test_d13_bad_argument(name: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s){name}.*{message}"):
        fit(**{name: value})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_leapfrog": 5}, "n_leapfrog and step_size"),
        ({"step_size": 0.1}, "n_leapfrog and step_size"),
        ({"n_leapfrog": 0, "step_size": 0.1}, "n_leapfrog must be"),
        ({"n_leapfrog": 5, "step_size": 0.0}, "step_size must be"),
        ({"n_leapfrog": 5, "step_size": 0.1, "inference": "nuts"}, "inference .with n_leapfrog"),
    ],
)
def test_d13_bad_combination(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(**arguments)


def test_arguments_are_checked_at_fit_and_kept_as_they_are() -> None:
    model = GPClassifier(n_draws=-5)
    assert model.n_draws == -5
    with pytest.raises(UsageError):
        model.fit(_X, _Y)
    assert not hasattr(model, "classes_")


def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="n_draw"):
        GPClassifier(n_draw=5)
    with pytest.raises(TypeError):
        GPClassifier("hmc")


def interrupt(self: object, theta: np.ndarray) -> None:
    """Ctrl-C while the maximum is sought."""
    raise KeyboardInterrupt


def test_a_refit_that_fails_leaves_no_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either the first fit is still whole, or the estimator is not fitted any more."""
    model = fit(inference="map")
    expected = model.predict_proba(_X)
    monkeypatch.setattr(HyperparameterPosterior, "evaluate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(5.0 - 3.0 * _X, np.where(_Y == 1.0, "a", "b"))
    try:
        seen, classes = model.predict_proba(_X), model.classes_
    except NotFittedError:
        return
    np.testing.assert_array_equal(seen, expected)
    np.testing.assert_array_equal(classes, [0.0, 1.0])
