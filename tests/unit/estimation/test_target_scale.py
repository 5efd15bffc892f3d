"""Centre and scale of targets, and which cannot be learned from."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from sklearn.base import clone

import mercer
from mercer.errors import DataError, MercerWarning
from mercer.estimation.base import name_not_finite
from mercer.estimation.standardize import scale_target

VALUES = np.random.default_rng(8).standard_normal(300)


@pytest.mark.parametrize("unit", [1.0, 1e-100, 1e100])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_target(unit: float, offset: float) -> None:
    y = unit * (VALUES + offset)
    target = scale_target(y)
    z = target.transform(y)
    assert abs(z.mean()) < 1e-6
    assert z.std() == pytest.approx(1.0, rel=1e-6)
    assert target.centre == pytest.approx(unit * (VALUES.mean() + offset), rel=1e-12)
    assert target.scale == pytest.approx(unit * VALUES.std(), rel=1e-6)


def test_a_constant_target() -> None:
    with pytest.warns(MercerWarning, match="the target is constant"):
        target = scale_target(np.full(10, 3.3))
    np.testing.assert_array_equal(target.transform(np.full(10, 3.3)), 0.0)


def test_a_target_that_is_constant_in_some_rows() -> None:
    with pytest.warns(MercerWarning, match="constant in the 10 rows that its scale is learned"):
        scale_target(np.full(10, 3.3), n_others=5)


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e160, 1e300])
def test_targets_that_cannot_be_computed_with(unit: float) -> None:
    with pytest.raises(DataError, match="target"):
        scale_target(unit * VALUES)


# Values that cannot be learned from, named by their place.

WHERE = " (a position, the first is 0)"
TABLES = {
    "first": ([[0.0, 1.0], [np.nan, np.inf]], f"NaN: row 1{WHERE}, column 'x0'"),
    "infinity": ([[0.0, -np.inf]], f"infinity: row 0{WHERE}, column 'x1'"),
    "names": (pandas.DataFrame({"a": [0.0], "b": [np.nan]}), f"NaN: row 0{WHERE}, column 'b'"),
    "finite": ([[0.0]], None),
    "text": ([["a"]], None),
    "ragged": ([[1.0], [1.0, np.nan]], None),
    "flat": ([np.nan], None),
}


@pytest.mark.parametrize(("X", "words"), TABLES.values(), ids=TABLES)
def test_inputs_that_are_not_finite_are_named(X, words: str | None) -> None:
    assert name_not_finite(X) == (None if words is None else f"Input X contains {words}")


TINY = {"random_state": 0, "progress": False}
CHAINS = {**TINY, "n_draws": 4, "n_warmup": 2, "n_chains": 1}
NUMBERS = [
    mercer.GPRegressor(**CHAINS),
    mercer.BaNKRegressor(**CHAINS),
    mercer.SequentialKernelRegressor(**TINY),
    mercer.MercerRegressor(models="boosting", **CHAINS),
]
CLASSES = [
    mercer.GPClassifier(**CHAINS),
    mercer.KernelGibbsClassifier(**CHAINS),
    mercer.BaNKClassifier(**CHAINS),
    mercer.SequentialKernelClassifier(**TINY),
    mercer.MercerClassifier(models="boosting", **CHAINS),
]
GAPS = [(np.nan, "NaN"), (np.inf, "infinity"), (None, "None"), (pandas.NA, "NaN")]


@pytest.mark.parametrize("model", [*NUMBERS, *CLASSES], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(("gap", "word"), GAPS, ids=str)
def test_every_estimator_names_the_target_that_is_missing(model, gap, word: str) -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    kinds = [np.arange(12.0)] if model in NUMBERS else [np.arange(12) % 2.0, list("abcdefabcdef")]
    for values in kinds:
        is_float = isinstance(gap, float) and values is kinds[0]
        y = np.array(values, dtype=float if is_float else object)
        y[7] = gap
        for call in ("fit", "partial_fit"):
            if hasattr(model, call):
                with pytest.raises(DataError) as caught:
                    getattr(clone(model), call)(X, y)
                assert str(caught.value) == f"Input y contains {word}: row 7{WHERE}"


def test_a_robust_scale_says_of_a_constant_target_once() -> None:
    with pytest.warns(MercerWarning, match="the target is constant") as warned:
        scale_target(np.full(10, 3.3), is_robust=True)
    assert len(warned) == 1
