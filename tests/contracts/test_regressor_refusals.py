"""Bad data and bad arguments of regressors: errors that name the trouble (D1 to D4, D13)."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.utils import get_tags

from mercer.errors import DataError, UsageError
from support.regressors import KERNEL_LEARNERS, PROCESSES, REGRESSORS, STREAMERS, WITH_CHAINS
from support.regressors import NEW_X as _Z
from support.regressors import TRAIN_X as _X
from support.regressors import TRAIN_Y as _Y


@pytest.fixture(scope="module", params=REGRESSORS)
def make(request: pytest.FixtureRequest):
    """Makes a regressor with tiny settings."""
    return REGRESSORS[request.param]


@pytest.fixture(params=KERNEL_LEARNERS)
def make_learner(request: pytest.FixtureRequest):
    """Makes one of those that learn a kernel, with chains."""
    return KERNEL_LEARNERS[request.param]


@pytest.fixture(params=WITH_CHAINS)
def make_chained(request: pytest.FixtureRequest):
    """Makes one of those with chains."""
    return WITH_CHAINS[request.param]


@pytest.fixture(params=PROCESSES)
def make_process(request: pytest.FixtureRequest):
    """Makes a Gaussian process."""
    return PROCESSES[request.param]


@pytest.fixture(params=STREAMERS)
def make_streamer(request: pytest.FixtureRequest):
    """Makes one of those that learn row after row."""
    return STREAMERS[request.param]


@pytest.fixture(scope="module")
def fitted(make):
    return make().fit(_X, _Y)


def with_value(value: float) -> np.ndarray:
    X = _X.copy()
    X[3, 1] = value
    return X


DATA = [
    pytest.param(np.empty((0, 2)), np.empty(0), "0 sample", id="D1 no rows"),
    pytest.param(np.empty((40, 0)), _Y, "0 feature", id="D1 no columns"),
    pytest.param(_X[:1], _Y[:1], "1 sample", id="D1 one row"),
    pytest.param(with_value(np.nan), _Y, "NaN", id="D3 NaN"),
    pytest.param(with_value(np.inf), _Y, "infinity", id="D3 inf"),
    pytest.param(_X, np.where(_Y > 0.0, np.nan, _Y), "NaN", id="D3 NaN target"),
    pytest.param(_X, np.where(_Y > 0.0, np.inf, _Y), "infinity", id="D3 inf target"),
    pytest.param(
        np.ma.masked_array(_X, np.isnan(with_value(np.nan))), _Y, "row 3 .*'x1'", id="D3 masked"
    ),
    pytest.param(_X, np.ma.masked_array(_Y, _Y > 0.0), "NaN", id="D3 masked target"),
    pytest.param(_X + 1j, _Y, "Complex data not supported", id="D4 complex"),
    pytest.param(_X, _Y + 1j, "Complex data not supported", id="D4 complex target"),
    pytest.param(np.full((40, 2), "a"), _Y, "could not convert string", id="D4 text"),
    pytest.param(_X, np.full(40, "a"), "the target is text.*'a'.*Classifier", id="D4 text target"),
    pytest.param(_X[:, 0], _Y, "Expected 2D array", id="one-dimensional"),
    pytest.param(_X, _Y[:5], "inconsistent numbers of samples", id="lengths"),
    pytest.param(_X, None, "requires y to be passed", id="no target"),
    pytest.param([[1.0, 2.0], [3.0]], [0, 1], "inhomogeneous|array element", id="D4 ragged"),
]


@pytest.mark.parametrize(("X", "y", "message"), DATA)
def test_bad_data(make, X, y, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make().fit(X, y)


def test_two_targets_are_learned_or_refused(make) -> None:
    model, two = make(), np.column_stack([_Y, _Y])
    if get_tags(model).target_tags.multi_output:
        assert model.fit(_X, two).predict(_Z).shape == (len(_Z), 2)
    else:
        with pytest.raises(DataError, match="BaNKRegressor learns them at once"):
            model.fit(_X, two)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_d14_sparse(make, fitted, kind) -> None:
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        make().fit(kind(_X), _Y)
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        fitted.predict(kind(_X))


def test_d6_wrong_number_of_columns(fitted) -> None:
    with pytest.raises(ValueError, match=r"X has 1 features, but \w+ is expecting 3"):
        fitted.predict(_X[:, :1])
    with pytest.raises(ValueError, match="0 sample"):
        fitted.predict(_X[:0])


ARGUMENTS = [
    ("max_seconds", (0, -1.0, np.nan, np.inf, "1"), "above 0"),
    ("standardize", ("z", True, None, 0), "'auto', 'std'"),
    ("progress", ("yes", None, 3), "'auto', True, False"),
    ("random_state", (-1, 1.5, "a"), "non-negative integer"),
    ("checkpoint", (3, True), "a path or None"),
]
OF_CHAINS = [
    ("n_draws", (0, -1, 2.5, "9", None, True), "at least 1"),
    ("n_warmup", (-1, 1.0, None), "at least 0"),
    ("n_chains", (0, 1.5), "at least 1"),
    ("thin", (0, -3, "1", "long"), "at least 1"),
    ("n_jobs", (0, 1.5, "2"), "whole number"),
]
OF_LEARNERS = [
    ("linear_part", ("yes", None), "True, False"),
    ("n_frequencies", (0, -1, 2.5, "many", None, True), "at least 1"),
    ("concentration", (0.0, -1.0, np.nan, np.inf, "auto", None, True), "above 0"),
    ("frequency_scale", (0.0, -1.0, np.nan, np.inf, "auto", None), "above 0"),
    ("ridge_precision", (0.0, -1.0, np.nan, np.inf, "auto", None), "above 0"),
    ("proposals", ("PCN", None, 1), "'pcn', 'prior'"),
    ("base_measure", ("Full", None), "'diagonal', 'full'"),
    ("kernel_rows", (1, 0, -5, 2.5, "all", True), "at least 2"),
    ("full_draws", (0, -1, 1.5, None), "at least 1"),
]
OF_PROCESSES = [
    ("kernel", ("gauss", "rbf -", None, 3), "kernel"),
    ("noise_std", (0.0, -1.0, np.nan, np.inf, "auto", None, True), "above 0"),
    ("noise_std", (1e-30, 1e30), "out of proportion"),
    ("inference", ("HMC", None, "mh"), "'importance', 'hmc', 'nuts', 'metropolis'"),
    ("max_rows", (0, 9, 5001, 2.5, "all", None), "at least 10|at most 5000|a number"),
    ("n_inducing", (0, 9, 5001, 2.5, "all", True), "at least 10|at most 5000|a number|whole"),
    ("prior", ("flat", None, {"noise": (0.0, 0.0)}), "mapping|no parameter|mean"),
]
OF_STREAMERS = [
    ("linear_part", ("yes", None), "True, False"),
    ("linear_part", (0, -1), "a whole number of at least 1"),
    ("kernel", ("gauss", None, 3), "'rbf', 'matern12'"),
    ("lengthscale", ("auto", None, 0.0, -1.0, np.nan, np.inf, (), (1.0, "a"), True), "'learn'"),
    ("n_particles", (1, 0, 2.5, "9", None), "at least 2"),
    ("expected_centres", (0.0, -1.0, np.nan, np.inf, "auto", None), "above 0"),
    ("max_centres", (0, -1, 2.5, None), "at least 1"),
    ("max_candidates", (0, -1, 2.5, "all"), "at least 1"),
    ("forgetting", (0.0, 0.4, 1.1, np.nan, "auto", None, (), (1.0, 2.0)), r"\[0.5, 1\]"),
    ("centres_prior", ("Poisson", None), "'negative_binomial', 'poisson'"),
    ("variances", ("fixed", None), "'integrated', 'sampled'"),
    ("resampling", ("residual", None), "'systematic', 'stratified'"),
    ("input_scalings", (0, -1, 2.5, "many", None), "at least 1"),
    ("move_fraction", (0.0, -1.0, 1.5, np.nan, "all", None), "1"),
    ("scale_rows", (0, -1, 2.5, None), "at least 1"),
    ("input_scale", (0.0, -1.0, np.nan, "a", (1.0, 0.0), [[1.0]], (1.0, 1.0)), "number"),
    ("target_scale", (0.0, -1.0, np.nan, "a", (0.0, 0.0), ("a", 1.0), (1.0, 2.0, 3.0)), "number"),
]


def each_of(arguments: list) -> pytest.MarkDecorator:
    ids = [f"{name}{i}" for i, (name, *_) in enumerate(arguments)]
    return pytest.mark.parametrize(("name", "values", "message"), arguments, ids=ids)


def assert_refused(make, name: str, values: tuple, message: str, call: str = "fit") -> None:
    """Every value is refused, with a message that names the argument."""
    for value in values:
        model = make(**{name: value})
        said = "nothing"
        try:
            getattr(model, call)(_X, _Y)
        except UsageError as error:
            said = str(error)
        assert re.search(rf"(?s){name}.*{message}", said), f"{name}={value!r}: {said}"
        assert not hasattr(model, "posterior_")


@each_of(ARGUMENTS)
def test_d13_bad_argument(make, name: str, values, message: str) -> None:
    assert_refused(make, name, values, message)


@each_of(OF_CHAINS)
def test_d13_bad_argument_of_chains(make_chained, name: str, values, message: str) -> None:
    assert_refused(make_chained, name, values, message)


@each_of(OF_PROCESSES)
def test_d13_bad_argument_of_a_process(make_process, name: str, values, message: str) -> None:
    assert_refused(make_process, name, values, message)


@pytest.mark.parametrize("own", [{"n_leapfrog": 3}, {"step_size": 0.1}])
def test_d13_trajectories_are_given_whole(own: dict) -> None:
    with pytest.raises(UsageError, match="together"):
        PROCESSES["gp"](**own).fit(_X, _Y)


@each_of(OF_LEARNERS)
def test_d13_bad_argument_of_a_learner(make_learner, name: str, values, message: str) -> None:
    assert_refused(make_learner, name, values, message)


@each_of(OF_STREAMERS)
@pytest.mark.parametrize("call", ["fit", "partial_fit", "prequential"])
def test_d13_bad_argument_of_a_streamer(
    make_streamer, call: str, name: str, values, message: str
) -> None:
    assert_refused(make_streamer, name, values, message, call)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, np.nan])
def test_bad_level(fitted, level: float) -> None:
    with pytest.raises(UsageError, match="level"):
        fitted.predict_interval(_Z, level)


@pytest.mark.parametrize("points", [np.ones(3), np.ones((4, 2)), np.full((1, 3), np.nan)])
def test_bad_lags_and_frequencies(make_learner, points: np.ndarray) -> None:
    fitted = make_learner().fit(_X, _Y)
    with pytest.raises(UsageError, match=r"lags must be finite numbers of shape \(n, 3\)"):
        fitted.kernel(points)
    with pytest.raises(UsageError, match=r"frequencies must be finite"):
        fitted.spectral_density(points)


def test_arguments_are_checked_at_fit_and_kept_as_they_are(make) -> None:
    model = make(max_seconds=-5)
    assert model.max_seconds == -5
    with pytest.raises(UsageError):
        model.fit(_X, _Y)
    assert not hasattr(model, "posterior_")


def test_unknown_arguments_are_refused(make) -> None:
    with pytest.raises(TypeError, match="n_draw"):
        make(n_draw=5)
    with pytest.raises(TypeError):
        type(make())("pcn")
