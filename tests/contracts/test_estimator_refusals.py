"""Bad data and bad arguments: a ValueError that names the trouble (D1 to D4, D13, D14)."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse

from mercer.basis.classifier import SequentialKernelClassifier
from mercer.basis.learner import BatchSampler
from mercer.errors import DataError, UsageError
from mercer.gp.estimator import GPClassifier
from mercer.gp.laplace import HyperparameterPosterior
from mercer.spectral.class_sampler import ClassSampler
from mercer.spectral.classifier import BaNKClassifier
from mercer.sphere.estimator import KernelGibbsClassifier
from mercer.sphere.sampler import SphereSampler
from support import class_fits
from support.gp_cases import problem

TINY = {"n_draws": 20, "n_warmup": 10, "n_chains": 1, "random_state": 0, "progress": False}
_X, _Y = problem(20, 2)


QUICK = {
    GPClassifier: {"inference": "map"},
    KernelGibbsClassifier: {"lengthscale": 1.0, "nugget": 0.0},
    BaNKClassifier: {"n_frequencies": 6},
    SequentialKernelClassifier: {},
}

each_kind = pytest.mark.parametrize("kind", QUICK)


def fit(kind: type, X=_X, y=_Y, **arguments):
    tiny = class_fits.TINY if kind is SequentialKernelClassifier else TINY
    return kind(**{**tiny, **arguments}).fit(X, y)


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
    pytest.param(with_value(np.nan), _Y, "NaN", id="D3 NaN"),
    pytest.param(with_value(np.inf), _Y, "infinity", id="D3 inf"),
    pytest.param(_X, np.where(_Y == 1.0, np.nan, _Y), "NaN", id="D3 NaN target"),
    pytest.param(
        np.ma.masked_array(_X, np.isnan(with_value(np.nan))), _Y, "row 3 .*'x1'", id="D3 masked"
    ),
    pytest.param(_X, np.ma.masked_array(_Y, _Y == 1.0), "NaN", id="D3 masked target"),
    pytest.param(_X + 1j, _Y, "Complex data not supported", id="D4 complex"),
    pytest.param(np.full((20, 2), "a"), _Y, "could not convert string", id="D4 text"),
    pytest.param(_X, _X[:, 0], "Unknown label type: continuous", id="D4 continuous target"),
    pytest.param(_X, np.array(["ill", 0] * 10, dtype=object), "text and others", id="D4 mixed"),
    pytest.param(_X[:, 0], _Y, "Expected 2D array", id="one-dimensional"),
    pytest.param(_X, _Y[:5], "inconsistent numbers of samples", id="lengths"),
    pytest.param(_X, None, "requires y to be passed", id="no target"),
]


@each_kind
@pytest.mark.parametrize(("X", "y", "message"), DATA)
def test_bad_data(kind: type, X, y, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(kind, X, y)


@each_kind
def test_d4_ragged_rows(kind: type) -> None:
    with pytest.raises(ValueError, match=r"inhomogeneous|setting an array element"):
        fit(kind, [[1.0, 2.0], [3.0]], [0, 1])


@pytest.mark.one_in(3)
@each_kind
@pytest.mark.parametrize("make", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_d14_sparse(kind: type, make) -> None:
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        fit(kind, make(_X))
    with pytest.raises(TypeError, match=r"[Ss]parse data was passed"):
        fit(kind, **QUICK[kind]).predict_proba(make(_X))


@pytest.mark.one_in(2)
@each_kind
def test_d6_wrong_number_of_columns(kind: type) -> None:
    with pytest.raises(ValueError, match=f"X has 1 features, but {kind.__name__} is expecting 2"):
        fit(kind, **QUICK[kind]).predict(_X[:, :1])


OF_CHAINS = [
    ("n_draws", (0, -1, 2.5, "9", None, True), "at least 1"),
    ("n_warmup", (-1, 1.0, None), "at least 0"),
    ("n_chains", (0, 1.5), "at least 1"),
    ("thin", (0, -3, "1", "long"), "at least 1"),
]
COMMON_ARGUMENTS = [
    ("max_seconds", (0, -1.0, np.nan, np.inf, "1"), "above 0"),
    ("standardize", ("z", True, None, 0), "'auto', 'std'"),
    ("progress", ("yes", None, 3), "'auto', True, False"),
    ("random_state", (-1, 1.5, "a"), "non-negative integer"),
]
ARGUMENTS = {
    GPClassifier: [
        *OF_CHAINS,
        ("inference", ("HMC", "gibbs", None, 1), "'importance', 'hmc', 'nuts', 'metropolis'"),
        ("prior", ("Paper", None, {"weight": 1}, {"wieght": (0, 1)}), "mapping|no parameter|mean"),
        ("max_rows", (0, 9, 5001, 2.5, "all", None), "at least 10|at most 5000|a number"),
        ("shared_kernel", ("yes", None, 1), "'auto', False, True"),
        ("predictive_mean", ("mean", None), "'corrected', 'mode'"),
    ],
    KernelGibbsClassifier: [
        *OF_CHAINS,
        ("kernel", ("gauss", "RBF"), "'auto'.*'rbf'"),
        ("kernel", (None, 3), "a name, a kernel or a callable"),
        ("lengthscale", ("auto", None, 0.0, -1.0, np.nan, np.inf, True), "'learn', 'median'"),
        ("nugget", ("median", None, -0.1, np.nan, np.inf), "'learn' or a number of at least 0"),
        ("noise_rate", (-0.1, 0.51, np.nan, 2.0, np.full(20, 0.7)), r"in \[0, 0\.5\]"),
        ("noise_rate", ("auto", None, [["a"]]), r"in \[0, 0\.5\]"),
        ("noise_rate", (np.full(19, 0.1), np.full((20, 1), 0.1)), "each of the 20 rows"),
        ("noise_rate", ({0.0: 0.1}, {0.0: 0.1, 1.0: 0.1, 2.0: 0.1}), "names the classes"),
        ("noise_rate", ({0.0: 0.1, 1.0: 0.9},), r"in \[0, 0\.5\]"),
        ("noise_prior", (1.0, (1.0,), (0.0, 1.0), (1.0, np.inf), "ab", None), "two numbers above"),
        ("rank", (0, -1, 2.5, "9", True), "at least 1"),
        ("approximation", ("nystrom", None), "'nystroem', 'fourier'"),
        ("decision", ("majority", None), "'vote', 'bayes_point'"),
        ("sampler", ("HMC", "gibbs", None), "'auto'.*'hmc', 'lines', 'great_circle'"),
        ("fit_intercept", ("yes", None), "True, False"),
    ],
    BaNKClassifier: [
        *OF_CHAINS,
        ("ordered", (1, None, [], ["a"], "a"), "true or two labels or more"),
        ("ordered", (["a", "b", "c"], "a,b,c"), ""),
        ("n_frequencies", (0, -1, 2.5, "many", None, True), "at least 1"),
        ("concentration", (0.0, -1.0, np.nan, np.inf, "auto", None, True), ""),
        ("concentration", (1e-7, 1e7), "must lie between"),
        ("sampler", ("gibbs", None), "'polya-gamma', 'joint'"),
        ("proposals", ("gibbs", None), "'pcn', 'prior'"),
        ("base_measure", ("round", None), "'diagonal', 'full'"),
        ("frequency_scale", (0.0, -1.0, np.nan, "median", None), ""),
        ("ridge_precision", (0.0, -1.0, np.nan, "auto", None), ""),
        ("linear_part", ("yes", None), "True, False"),
        ("kernel_rows", (0, 1, 2.5, "all"), "at least 2"),
        ("full_draws", (0, 2.5, None), "at least 1"),
    ],
    SequentialKernelClassifier: [
        ("kernel", ("ball", "RBF", None, 3), "'rbf'"),
        (
            "lengthscale",
            ("auto", None, 0.0, -1.0, np.nan, True, (1.0, -1.0), ()),
            "'learn', 'median'",
        ),
        ("n_particles", (1, 0, 2.5, "9", None, True), "at least 2"),
        ("expected_centres", (0.0, -1.0, np.nan, np.inf, "1", None), "above 0"),
        ("max_centres", (0, 2.5, None), "at least 1"),
        ("max_candidates", (0, 2.5, "9"), "at least 1"),
        ("centres_prior", ("uniform", None), "'negative_binomial', 'poisson'"),
        ("linear_part", ("yes", None), "True, False"),
        ("linear_part", (0, -1), "a whole number of at least 1"),
        ("n_buffered", (0, 2.5, None), "at least 1"),
        ("resampling", ("residual", None), "'systematic'"),
        ("scale_rows", (0, 2.5, None), "at least 1"),
        ("input_scale", (0.0, -1.0, np.nan, "1", (1.0, 0.0), (1.0, 2.0, 3.0)), ""),
    ],
}


@pytest.mark.parametrize(
    ("kind", "name", "values", "message"),
    [
        pytest.param(kind, *each, id=f"{kind.__name__}-{each[0]}{i}")
        for kind, own in ARGUMENTS.items()
        for i, each in enumerate(COMMON_ARGUMENTS + own)
    ],
)
def test_d13_bad_argument(kind: type, name: str, values: tuple, message: str) -> None:
    for value in values:
        said = "nothing"
        try:
            fit(kind, **{name: value})
        except ValueError as error:
            said = str(error)
        assert re.search(rf"(?s){name}.*{message}", said), f"{name}={value!r}: {said}"


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
        fit(GPClassifier, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": 5, "nugget": 0.3}, "rank and a nugget exclude each other"),
        ({"rank": 5, "kernel": "auto"}, "rank needs a kernel"),
        ({"rank": 5, "kernel": lambda X, Z: X @ Z.T}, "rank needs a kernel"),
        ({"rank": 5, "kernel": "precomputed"}, "rank needs a kernel"),
        ({"sampler": "great_circle", "y": np.arange(20) % 3}, "for two classes"),
    ],
)
def test_d13_bad_combination_sphere(arguments: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fit(KernelGibbsClassifier, **{"lengthscale": 1.0, **arguments})


def precomputed(G: np.ndarray) -> KernelGibbsClassifier:
    return fit(KernelGibbsClassifier, G, kernel="precomputed", nugget=0.0)


def test_a_gram_matrix_that_is_none() -> None:
    G = np.exp(-0.5 * ((_X[:, np.newaxis] - _X) ** 2).sum(axis=-1))
    with pytest.raises(ValueError, match="square"):
        precomputed(G[:, :19])
    with pytest.raises(DataError, match="symmetric"):
        precomputed(G + np.tri(20))
    with pytest.raises(DataError, match=r"indefinite: its smallest eigenvalue is -"):
        precomputed(G - 0.9 * np.eye(20))
    with pytest.raises(DataError, match="mean diagonal"):
        precomputed(G - np.eye(20))
    with pytest.raises(ValueError, match="X has 19 features"):
        precomputed(G).predict(G[:, :19])


def test_d10_conflicting_rows_at_rate_0() -> None:
    X, y = _X.copy(), _Y.copy()
    X[13], y[4], y[13] = X[4], 0.0, 1.0
    with pytest.raises(DataError, match=r"rows 4 and 13 .*use noise_rate > 0"):
        fit(KernelGibbsClassifier, X, y, noise_rate=0.0, lengthscale=1.0, nugget=0.0)
    with pytest.raises(DataError, match=r"no classifier separates .*use noise_rate > 0"):
        fit(KernelGibbsClassifier, y=np.arange(20) % 2, noise_rate=0.0, kernel="linear")


def test_a_kernel_that_returns_another_shape() -> None:
    with pytest.raises(DataError, match="takes two matrices of rows"):
        fit(KernelGibbsClassifier, kernel=lambda X, Z: 1.0, nugget=0.0)
    with pytest.raises(DataError, match="mean variance"):
        fit(KernelGibbsClassifier, kernel=lambda X, Z: -np.eye(len(X)), nugget=0.0)


@each_kind
def test_arguments_are_checked_at_fit_and_kept_as_they_are(kind: type) -> None:
    name = "n_particles" if kind is SequentialKernelClassifier else "n_draws"
    model = kind(**{name: -5})
    assert getattr(model, name) == -5
    with pytest.raises(UsageError):
        model.fit(_X, _Y)
    assert not hasattr(model, "classes_")


@each_kind
def test_unknown_arguments_are_refused(kind: type) -> None:
    with pytest.raises(TypeError, match="n_drew"):
        kind(n_drew=5)
    with pytest.raises(TypeError):
        kind("hmc")


def interrupt(self: object, *arguments: object) -> None:
    """Ctrl-C while the maximum is sought, or the chains begin."""
    raise KeyboardInterrupt


@pytest.mark.one_in(2)
@each_kind
def test_a_refit_that_fails_leaves_the_first_fit(kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole, as scikit-learn's estimators do: whether it is refused or stopped half way."""
    model = fit(kind, **QUICK[kind])
    expected = model.predict_proba(_X)
    monkeypatch.setattr(HyperparameterPosterior, "evaluate", interrupt)
    monkeypatch.setattr(SphereSampler, "init", interrupt)
    monkeypatch.setattr(BatchSampler, "init", interrupt)
    monkeypatch.setattr(ClassSampler, "init", interrupt)
    labels = np.where(_Y == 1.0, "a", "b")
    with pytest.raises(KeyboardInterrupt):
        model.fit(5.0 - 3.0 * _X, labels)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((20, 5), np.nan), labels)
    np.testing.assert_array_equal(model.predict_proba(_X), expected)
    np.testing.assert_array_equal(model.classes_, [0.0, 1.0])
    never = kind(**QUICK[kind])
    with pytest.raises(ValueError, match="NaN"):
        never.fit(np.full((20, 5), np.nan), labels)
    assert not [name for name in vars(never) if name.endswith("_")]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", [each for each in QUICK if each is not GPClassifier])
def test_weights_of_rows_are_refused_where_there_is_no_place(kind: type) -> None:
    """None is no weight; other estimators say which take them, and no `TypeError` escapes."""
    tiny = class_fits.TINY if kind is SequentialKernelClassifier else TINY
    model = kind(**{**tiny, **QUICK[kind]})
    with pytest.raises(UsageError, match=f"{kind.__name__} takes no sample_weight; GPClassifier"):
        model.fit(_X, _Y, sample_weight=np.ones(20))
    with pytest.raises(TypeError, match="weights"):
        model.fit(_X, _Y, weights=np.ones(20))
    assert model.fit(_X, _Y, sample_weight=None) is model
