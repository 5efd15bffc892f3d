"""Kernels of chosen inputs and of categories: what they compute, how they are written and bound."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.errors import UsageError
from mercer.estimation.standardize import fit_standardizer
from mercer.kernels import columns as module
from mercer.kernels.base import Isotropic, Kernel, Sum, shared_name
from mercer.kernels.columns import Categorical, OnColumns, bind, has_columns, in_names, on_columns
from mercer.kernels.linear import Linear
from mercer.kernels.names import LEAVES, as_kernel, kernel_named, read_kernel, write_kernel
from mercer.kernels.stationary import SpectralMixture, SquaredExponentialARD
from support.kernel_cases import gradient_error, plain_covariances

RBF = SquaredExponentialARD()
LABELS = ("age", "city=Bonn", "city=Oslo", "city=Rome", "city (missing)", "sex=m", "mean radius")
SOURCES = ("age", *["city"] * 4, "sex", "mean radius")
D = len(LABELS)


def rows(n: int, seed: int = 0) -> np.ndarray:
    """Rows of a table with these inputs, standardised as an estimator does it; one city unseen."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    X[:, 1:6] = 0.0
    city = rng.integers(4, size=n)
    X[np.flatnonzero(city < 3), 1 + city[city < 3]] = 1.0
    X[city == 0, 4] = rng.integers(2, size=int((city == 0).sum()))
    X[:, 5] = rng.choice([0.0, 1.0, 0.5], n)
    return (X - 0.3) / 1.7


def theta_of(kernel: Kernel, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.5, 0.5, kernel.n_parameters(D))


def test_distinct_rows_are_found_again() -> None:
    """The second time from memory, where rows are few, and never of rows that were changed."""
    for n in (50, module._MOST_REMEMBERED):
        X = np.random.default_rng(2).integers(3, size=(n, 2)) * 1.0
        for _ in range(2):
            first, which = module.distinct_rows(X)
            np.testing.assert_array_equal(X[first][which], X)
            assert len(first) == len(np.unique(X, axis=0)) == 9
            X[X == 0.0] = 7.0
    with pytest.raises(ValueError, match="read-only"):
        which[0] = 1


@pytest.mark.parametrize("name", [*LEAVES, "isotropic(rbf)", "polynomial(3)"])
def test_a_kernel_of_chosen_inputs_is_that_of_the_other_columns_left_out(name: str) -> None:
    kernel, chosen = kernel_named(name), [6, 0, 2]
    part, X, Z = on_columns(kernel, chosen), rows(30), rows(9, 2)
    theta = np.random.default_rng(3).uniform(-1.0, 1.0, kernel.n_parameters(3))
    assert part.n_parameters(D) == len(theta)
    K = part.gram(theta, X)
    np.testing.assert_array_equal(K, kernel.gram(theta, X.take(chosen, axis=1)))
    np.testing.assert_array_equal(
        part.cross_gram(theta, Z, X),
        kernel.cross_gram(theta, Z.take(chosen, axis=1), X.take(chosen, axis=1)),
    )
    np.testing.assert_array_equal(
        part.diagonal(theta, X), kernel.diagonal(theta, X.take(chosen, axis=1))
    )
    assert gradient_error(part, theta, X, np.cos(K)) < 1e-7


def by_hand(weights: dict[str, float], *, is_each_level: bool = False):
    """Covariances of city and sex with unit variance: the definition, level by level."""

    def level(x: np.ndarray) -> str:
        on = np.flatnonzero(x[1:4] > 0.0)
        return f"{['Bonn', 'Oslo', 'Rome'][on[0]] if len(on) else 'unseen'}"

    def formula(x: np.ndarray, z: np.ndarray) -> float:
        total = 0.0
        if not is_each_level:
            total += weights["city"] * bool((x[1:5] != z[1:5]).any())
            return math.exp(-total - weights["sex"] * (x[5] != z[5]))
        if level(x) != level(z):
            total += 0.5 * (weights[level(x)] + weights[level(z)])
        total += 0.5 * weights["missing"] * (x[4] != z[4]) + 0.5 * weights["sex"] * (x[5] != z[5])
        return math.exp(-total)

    return formula


@pytest.mark.parametrize("text", ["categorical[city]", "levels[city]"])
@pytest.mark.parametrize("standardize", ["std", "robust", False])
def test_an_unseen_level_may_have_one_negative_number_in_all_its_columns(
    text: str, standardize: str | bool
) -> None:
    kernel = as_kernel(text, D, LABELS, SOURCES)
    theta = np.log([0.8, 0.7, 0.3, 1.6, 0.9][: kernel.n_parameters(D)])
    plain = np.zeros((40, D))
    plain[np.arange(40), 1 + np.arange(40) % 3] = 1.0
    plain[:6, 1:4] = 0.0
    coded = plain.copy()
    coded[:6, 1:4] = -1.0 / 3.0
    scales = fit_standardizer(plain[6:, 1:4], standardize, ("a", "b", "c"))
    for X in (plain, coded):
        X[:, 1:4] = scales.transform(X[:, 1:4])
    expected = kernel.gram(theta, plain)
    np.testing.assert_allclose(kernel.gram(theta, coded), expected, rtol=1e-14)
    cross = kernel.cross_gram(theta, coded[:9], plain[6:])
    np.testing.assert_allclose(cross, expected[:9, 6:], rtol=1e-14)


def test_by_input_rows_are_compared_category_by_category() -> None:
    kernel, X = as_kernel("categorical[city, sex]", D, LABELS, SOURCES), rows(60)
    theta = np.log([1.0, 0.7, 1.9])
    expected = plain_covariances(by_hand({"city": 0.7, "sex": 1.9}), X, X)
    np.testing.assert_allclose(kernel.gram(theta, X), expected, rtol=1e-14)
    np.testing.assert_allclose(kernel.cross_gram(theta, X[:7], X), expected[:7], rtol=1e-14)


def test_by_level_an_unseen_one_has_the_mean_of_the_weights() -> None:
    kernel, X = as_kernel("levels[city, sex]", D, LABELS, SOURCES), rows(60)
    own = {"Bonn": 0.2, "Oslo": 0.6, "Rome": 2.5, "missing": 0.4, "sex": 0.9}
    theta = np.log([1.0, *own.values()])
    own["unseen"] = (0.2 + 0.6 + 2.5) / 3.0
    expected = plain_covariances(by_hand(own, is_each_level=True), X, X)
    K = kernel.gram(theta, X)
    np.testing.assert_allclose(K, expected, rtol=1e-14)
    assert np.linalg.eigvalsh(K).min() > -1e-13


@pytest.mark.parametrize("text", ["categorical[city]", "levels[city]", "isotropic(levels)[city]"])
def test_an_unseen_level_is_one_more_level_with_the_variance_of_all(text: str) -> None:
    kernel = as_kernel(text, D, LABELS, SOURCES)
    theta = np.full(kernel.n_parameters(D), np.log(0.8))
    X = np.zeros((4, D))
    X[[0, 1, 2], [1, 2, 3]] = 1.0  # three cities, and a row with none of them
    expected = 0.8 * (np.full((4, 4), math.exp(-0.8)) + (1.0 - math.exp(-0.8)) * np.eye(4))
    np.testing.assert_allclose(kernel.gram(theta, X), expected, rtol=1e-14)


def test_a_mutant_that_takes_an_unseen_level_for_halfway_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without(self: Categorical, U: np.ndarray, V: np.ndarray):
        for j in range(U.shape[1]):
            yield 0.5 * (U[:, j, np.newaxis] != V[:, j])

    monkeypatch.setattr(module.Categorical, "_steps", without)
    with pytest.raises(AssertionError):
        test_by_level_an_unseen_one_has_the_mean_of_the_weights()


TEXTS = [
    "rbf[age] + categorical[city]",
    "rbf[age, 'mean radius']*categorical[city, sex] + linear",
    "levels[city]*matern32[age] + periodic[6]",
    "isotropic(rbf)[age, city] + isotropic(levels)[city]*isotropic(categorical)[sex, city]",
    "spectral_mixture(2)[age] + spectral_mixture(1)[age] + spectral_mixture(3)",
    "categorical[1:4] + rbf[1:4]",
]


@pytest.mark.parametrize("text", TEXTS)
def test_sums_and_products_of_chosen_inputs(text: str) -> None:
    kernel, X = as_kernel(text, D, LABELS, SOURCES), rows(25)
    theta = theta_of(kernel)
    K = kernel.gram(theta, X)
    np.testing.assert_allclose(K, K.T, rtol=1e-13)
    assert np.linalg.eigvalsh(K).min() > -1e-12
    assert gradient_error(kernel, theta, X, np.cos(K)) < 1e-7
    np.testing.assert_allclose(kernel.diagonal(theta, X), K.diagonal(), rtol=1e-13)
    assert has_columns(kernel)
    same = pickle.loads(pickle.dumps(kernel))
    assert (same, hash(same)) == (kernel, hash(kernel))


@pytest.mark.parametrize("text", TEXTS)
def test_names_lead_to_positions_and_back(text: str) -> None:
    kernel = as_kernel(text, D, LABELS, SOURCES)
    assert as_kernel(write_kernel(kernel), D) == kernel
    assert as_kernel(in_names(kernel, LABELS, SOURCES), D, LABELS, SOURCES) == kernel
    assert bind(kernel, LABELS, SOURCES) == kernel


def test_what_names_stand_for() -> None:
    def bound(text: str) -> str:
        return write_kernel(as_kernel(text, D, LABELS, SOURCES))

    assert bound("rbf[city]") == "rbf[1:5]"
    assert bound("categorical[city]") == "categorical[1:5]"
    assert bound("levels[city]") == "levels[1:4, 4]"
    assert bound('rbf["city=Oslo"] + linear[sex]') == "rbf[2] + linear[5]"
    assert bound("(rbf + linear*periodic)[age]") == "rbf[0] + linear[0]*periodic[0]"
    assert bound("isotropic(rbf[age, sex])") == "isotropic(rbf)[0, 5]"
    assert write_kernel(as_kernel("rbf[x2]", 3)) == "rbf[2]"
    assert in_names(as_kernel("rbf[city, age]", D, LABELS, SOURCES), LABELS, SOURCES) == (
        "rbf[city, age]"
    )
    assert in_names(RBF + Linear(), LABELS, SOURCES) == "rbf + linear"


def test_a_number_with_gaps_is_told_from_where_it_is_missing() -> None:
    """So that a kernel of it alone means the same column where other columns come and go."""
    labels, sources = ("city=Bonn", "x", "x (missing)"), ("city", "x", "x")
    alone = as_kernel("rbf[1]", 3)
    assert in_names(alone, labels, sources) == 'rbf["x (value)"]'
    assert as_kernel('rbf["x (value)"]', 2, labels[1:], sources[1:]) == as_kernel("rbf[0]", 2)


def test_parameters_know_their_inputs() -> None:
    kernel = as_kernel("rbf[sex, age]*categorical[city] + levels[city]", D, LABELS, SOURCES)
    labels = {each.name: each.labels(LABELS) for each in kernel.parameters() if each.per_input}
    assert labels == {
        "log_weight_1": ("sex=m", "age"),
        "log_weight_2": ("city",),
        "log_weight_3": LABELS[1:5],
    }
    assert RBF.parameters()[1].labels(LABELS) == LABELS
    assert shared_name(["a=b=1", "a=b=2"]) == "a"
    assert shared_name(["age", "bmi"]) == "age, bmi"


_NAME = st.one_of(
    st.sampled_from(["age", "mean radius", "rbf", "class", "3", 'a"b', "it's", "ﬁ", "\\", "Ω", ""]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
_COLUMN = st.one_of(_NAME, st.integers(0, 99), st.tuples(st.integers(100, 120), st.integers(1, 9)))
_COLUMNS = st.lists(
    _COLUMN, min_size=1, max_size=4, unique_by=lambda x: type(x) if type(x) is tuple else x
)
_LEAF = st.sampled_from(
    [*LEAVES.values(), Isotropic(RBF), Isotropic(Categorical()), SpectralMixture(2)]
)


@settings(max_examples=200)
@given(st.lists(st.tuples(_LEAF, _COLUMNS), min_size=1, max_size=4))
def test_any_choice_of_inputs_is_written_and_read(recipe: list) -> None:
    parts = [
        on_columns(
            leaf,
            [range(each[0], sum(each)) if isinstance(each, tuple) else each for each in chosen],
        )
        for leaf, chosen in recipe
    ]
    kernel = parts[0] if len(parts) == 1 else Sum(tuple(parts))
    assert read_kernel(write_kernel(kernel)) == kernel


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rbf[agee]", "no input 'agee': did you mean 'age'\\? there is: age, city, sex"),
        ("rbf[zzzz] + linear", "no input 'zzzz': there is: age"),
        ("rbf[7]", "no input at position 7: there are 7, counted from 0"),
        ("categorical[2:9]", "no input at position 8"),
        ("rbf[city, 2]", "the input 2 is chosen twice"),
        ("rbf[sex, 'sex=m']", "the input 5 is chosen twice"),
    ],
)
def test_inputs_that_are_not_there_are_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        as_kernel(text, D, LABELS, SOURCES)


def test_a_category_that_is_a_frequency_is_refused() -> None:
    labels, sources = ("age", "zip (frequency)"), ("age", "zip")
    assert write_kernel(as_kernel("rbf[zip]", 2, labels, sources)) == "rbf[1]"
    with pytest.raises(UsageError, match="'zip' has so many levels that its input is their"):
        as_kernel("categorical[zip]", 2, labels, sources)


def test_names_are_not_known_before_the_inputs() -> None:
    kernel = kernel_named("rbf[age] + linear")
    with pytest.raises(UsageError, match="no input 'age': inputs have no names here"):
        kernel.parameters()


@pytest.mark.parametrize(
    "columns", [[], [True], [1.0], [None], [-1], [range(3, 3)], [range(4, 0, -1)]]
)
def test_what_is_no_input_is_refused(columns: list) -> None:
    with pytest.raises(UsageError, match=r"input"):
        on_columns(RBF, columns)


def test_inputs_are_chosen_once_and_for_one_kernel() -> None:
    with pytest.raises(UsageError, match="chosen already"):
        on_columns(on_columns(RBF, [0]), [1])
    with pytest.raises(UsageError, match="for one kernel"):
        OnColumns(RBF + Linear(), (0,))
