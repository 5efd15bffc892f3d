from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import yeojohnson

from mercer.errors import DataError, MercerWarning
from mercer.estimation.standardize import METHODS, fit_standardizer, identity

NAMES = ("a", "b", "c")


def inputs(n: int = 200) -> np.ndarray:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n, 3)) * [1.0, 50.0, 0.01] + [0.0, 1000.0, -3.0]
    X[:, 1] = np.exp(0.02 * (X[:, 1] - 1000.0))
    return X


@pytest.mark.parametrize("method", ["auto", "std", "yeo-johnson", "arcsinh"])
def test_training_columns_have_mean_0_and_deviation_1(method: str) -> None:
    X = inputs()
    Z = fit_standardizer(X, method, NAMES).transform(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(Z.std(axis=0), 1.0, rtol=1e-9)


def test_new_rows_use_what_training_rows_gave() -> None:
    X = inputs()
    scaled = fit_standardizer(X, "std", NAMES).transform(X[:1] + X.std(axis=0))
    expected = (X[:1] - X.mean(axis=0)) / X.std(axis=0) + 1.0
    np.testing.assert_allclose(scaled, expected, rtol=1e-12)


def test_false_changes_nothing() -> None:
    X = inputs()
    np.testing.assert_array_equal(fit_standardizer(X, False, NAMES).transform(X), X)


def test_robust_is_clipped_and_ignores_artefacts() -> None:
    X = inputs()
    X[0, 0] = 1e6
    Z = fit_standardizer(X, "robust", NAMES).transform(X)
    assert Z[0, 0] == 10.0
    np.testing.assert_allclose(np.median(Z, axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.subtract(*np.quantile(Z, (0.75, 0.25), axis=0)), 1.0)


def test_auto_is_robust_only_where_artefacts_rule() -> None:
    X = inputs()
    X[0, 0] = 1e6
    np.testing.assert_array_equal(fit_standardizer(X, "auto", NAMES).kind, [1, 0, 0])


@pytest.mark.parametrize("method", ["robust", "yeo-johnson", "arcsinh"])
def test_of_two_values_what_is_between_and_beyond_stays_on_a_line(method: str) -> None:
    """A warp of a rare level took what a new one is encoded as to 10^5 and beyond."""
    rare = np.zeros((50, 1))
    rare[: 20 if method == "robust" else 4] = 1.0
    scales = fit_standardizer(rare, method, ("city=Rome",))
    at = scales.transform(np.array([[-0.5], [0.0], [0.5], [1.0]]))[:, 0]
    np.testing.assert_allclose(np.diff(at), 0.5 / rare.std())
    assert not scales.is_skewed(rare).any()


def test_yeo_johnson_straightens_a_skewed_column() -> None:
    X = inputs()
    skewness = [
        abs((fit_standardizer(X, method, NAMES).transform(X)[:, 1] ** 3).mean())
        for method in ("std", "yeo-johnson")
    ]
    assert skewness[1] < 0.3 < skewness[0]


@pytest.mark.parametrize("method", METHODS)
def test_constant_columns_become_0_with_a_warning(method: object) -> None:
    X = inputs()
    X[:, 1] = 1e8
    with pytest.warns(MercerWarning, match="ignored: 'b'"):
        standardizer = fit_standardizer(X, method, NAMES)
    Z = standardizer.transform(X + 1.0)
    np.testing.assert_array_equal(Z[:, 1], 0.0)
    assert np.isfinite(Z).all()
    assert np.ptp(Z[:, 0]) > 0.0


def test_long_numbers_are_constant_in_the_digits_kept() -> None:
    X = inputs()
    X[:, 1] = np.arange(len(X)) + 2**62
    with pytest.warns(MercerWarning, match="'b' .of such long numbers 15 digits count"):
        fit_standardizer(X, "std", NAMES)


@pytest.mark.parametrize("method", METHODS)
def test_input_is_left_alone(method: object) -> None:
    X = inputs()
    before = X.copy()
    fit_standardizer(X, method, NAMES).transform(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("method", METHODS)
def test_d8_too_large_names_the_column(method: object) -> None:
    X = inputs()
    X[:, 2] = np.copysign(1.7e308, X[:, 2] - X[:, 2].mean())
    with pytest.raises(DataError, match="column 'c'"):
        fit_standardizer(X, method, NAMES)


@pytest.mark.parametrize("method", [each for each in METHODS if each not in ("common", False)])
def test_d8_large_values_are_the_rescaled_problem(method: object) -> None:
    X = inputs()
    large = X * [1.0, 1.0, 2.0**800]
    np.testing.assert_allclose(
        fit_standardizer(large, method, NAMES).transform(large),
        fit_standardizer(X, method, NAMES).transform(X),
        rtol=1e-9,
        atol=1e-9,
    )


def test_d8_large_values_need_standardisation() -> None:
    X = inputs()
    X[:, 2] *= 1e250
    with pytest.raises(DataError, match="column 'c'"):
        fit_standardizer(X, False, NAMES)


@pytest.mark.parametrize("method", ["auto", "std", "robust"])
def test_d8_tiny_values_are_no_constants(method: str) -> None:
    X = inputs()
    tiny = X * [1.0, 1.0, 1e-250]
    message = ""
    try:
        Z = fit_standardizer(tiny, method, NAMES).transform(tiny)
    except DataError as error:
        message = str(error)
    if message:
        assert "column 'c'" in message
    else:
        np.testing.assert_allclose(Z, fit_standardizer(X, method, NAMES).transform(X), atol=1e-6)


def test_same_bits_for_any_memory_order() -> None:
    X = inputs()
    Z = [fit_standardizer(V, "std", NAMES).transform(V) for V in (X, np.asfortranarray(X))]
    np.testing.assert_allclose(Z[0], Z[1], rtol=0, atol=1e-12)
    assert Z[1].flags.c_contiguous


@pytest.mark.parametrize("method", ["auto", "std", "robust", "yeo-johnson", "arcsinh", False])
def test_inverse(method: object) -> None:
    """Back in the units of the inputs, but for values that were clipped."""
    X = np.random.default_rng(3).gamma(2.0, 1.0, (60, 3)) * [1.0, 1e5, 1e-4] + [0.0, 1e6, 0.0]
    standardizer = fit_standardizer(X, method, NAMES)
    Z = standardizer.transform(X)
    before = Z.copy()
    np.testing.assert_allclose(standardizer.inverse(Z), X, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(Z, before)


@pytest.mark.parametrize("shape", [-1.0, 0.0, 0.7, 1.0, 2.0, 3.5])
def test_the_inverse_of_the_warp(shape: float) -> None:
    """At each shape, the two with a logarithm included, on both sides of 0."""
    x = np.linspace(-3.0, 3.0, 21)
    standardizer = dataclasses.replace(
        fit_standardizer(x[:, np.newaxis] ** 3, "yeo-johnson", ("a",)), shape=np.array([shape])
    )
    X = standardizer.scale * x[:, np.newaxis] + standardizer.centre
    np.testing.assert_allclose(standardizer.inverse(standardizer.transform(X)), X, atol=1e-9)


def test_the_warp_is_that_of_scipy() -> None:
    """Of columns of several shapes at once."""
    shape = np.array([-1.0, 0.0, 0.7, 1.0, 2.0, 3.5])
    X = np.random.default_rng(4).standard_normal((40, len(shape)))
    X[0] = 0.0
    warped = fit_standardizer(np.exp(X), "yeo-johnson", tuple("abcdef"))
    own = dataclasses.replace(identity(len(shape)), kind=warped.kind, shape=shape)
    expected = [yeojohnson(column, lmbda=s) for column, s in zip(X.T, shape, strict=True)]
    np.testing.assert_allclose(own.transform(X).T, expected, rtol=1e-14)


def test_the_inverse_of_a_constant_column_is_the_constant() -> None:
    X = inputs()
    X[:, 1] = 7.0
    with pytest.warns(MercerWarning):
        standardizer = fit_standardizer(X, "std", NAMES)
    np.testing.assert_array_equal(standardizer.inverse(standardizer.transform(X))[:, 1], 7.0)
