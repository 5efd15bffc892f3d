"""Rows chosen by what they tell: against brute force, and through the estimators."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GPClassifier, GPRegressor
from mercer.gp import choosing
from mercer.gp.informative import informative_rows
from mercer.kernels.squared_exponential import SquaredExponentialARD

KERNEL, THETA = SquaredExponentialARD(), np.array([0.5, 0.3, -1.0])


def total_variance(K: np.ndarray, precision: np.ndarray, rows: list[int]) -> float:
    """Weighted variance left at all rows once some are seen, by dense algebra."""
    C = K[np.ix_(rows, rows)] + np.diag(1.0 / precision[rows])
    left = np.diag(K) - np.einsum("ij,ji->i", K[:, rows], np.linalg.solve(C, K[rows]))
    return float(precision @ left)


def test_each_row_is_the_best_that_is_left() -> None:
    rng = np.random.default_rng(0)
    X, precision = rng.standard_normal((30, 2)), rng.uniform(0.1, 3.0, 30)
    K = KERNEL.gram(THETA, X)
    rows = [4, 17]
    chosen = informative_rows(KERNEL, THETA, X, precision, np.array(rows), 6, rng)
    for row in chosen:  # 28 candidates at most: all are compared
        open_rows = [i for i in range(30) if i not in rows]
        best = min(open_rows, key=lambda i: total_variance(K, precision, [*rows, i]))
        assert row == best
        rows.append(int(row))


def many(n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def test_chosen_rows_predict_a_function_better_than_random_ones() -> None:
    X, y = many()
    truth = np.sin(2.0 * X[:, 0])
    chosen = GPRegressor(inference="map", max_rows=40, random_state=0).fit(X, y)
    random = GPRegressor(inference="map").fit(X[:40], y[:40])
    error, other = (np.sqrt(np.mean((m.predict(X) - truth) ** 2)) for m in (chosen, random))
    assert error < other
    assert chosen.notes_[0].startswith("fitted to 40 of 900 rows")


@pytest.mark.parametrize("shared", [False, True])
def test_every_class_is_among_the_chosen(shared: bool) -> None:
    X, f = many(400)
    y = np.where(f > 0.0, "high", "low")
    y[7] = "rare"
    model = GPClassifier(inference="map", max_rows=20, shared_kernel=shared, random_state=0)
    model.fit(X, y)
    np.testing.assert_array_equal(model.classes_, ["high", "low", "rare"])
    assert model.predict_proba(X).shape == (400, 3)
    assert model._task_.codes.size == 20
    assert set(model._task_.codes) == {0.0, 1.0, 2.0}


def test_two_classes_and_the_same_rows_each_time() -> None:
    X, f = many(300)
    y = f > 0.0
    models = [
        GPClassifier(inference="map", max_rows=30, random_state=3).fit(X, y) for _ in range(2)
    ]
    np.testing.assert_array_equal(models[0]._X, models[1]._X)
    assert np.mean(models[0].predict(X) == y) > 0.85


def test_more_classes_than_first_rows() -> None:
    with pytest.raises(ValueError, match="max_rows"):
        choosing.choose_rows(
            np.zeros((50, 2)), KERNEL, 10, np.random.default_rng(0), lambda rows, X: [],
            np.arange(50.0),
        )  # fmt: skip
