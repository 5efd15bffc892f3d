"""Scores of class probabilities: worked examples, scikit-learn's numbers, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss

from mercer.errors import DataError
from mercer.posterior import scores


def random_case(n: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), size=n)
    return rng.integers(n_classes, size=n), proba


def test_worked_example() -> None:
    y, proba = [0, 1, 1, 0], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.25, 0.75]]
    found = scores.score_classification(y, proba)
    assert found.n_rows == 4
    assert found.error_rate == 0.5  # the tie goes to the first class
    assert found.log_score == pytest.approx((2 * np.log(4 / 3) + np.log(2) + np.log(4)) / 4)
    assert found.brier_score == pytest.approx((2 / 16 + 1 / 4 + 9 / 16) / 4)
    assert found.calibration_error == pytest.approx((0.25 + 0.5 + 2 * 0.25) / 4)
    assert found.to_dict()["n_rows"] == 4


@pytest.mark.parametrize("n_classes", [2, 4])
def test_agrees_with_scikit_learn(n_classes: int) -> None:
    y, proba = random_case(200, n_classes, 14)
    found = scores.score_classification(y, proba)
    assert found.log_score == pytest.approx(log_loss(y, proba, labels=range(n_classes)))
    if n_classes == 2:
        assert found.brier_score == pytest.approx(brier_score_loss(y, proba[:, 1]))
    else:
        assert found.brier_score == pytest.approx(np.sum((proba - np.eye(4)[y]) ** 2) / 200)


def test_certain_and_wrong_is_finite() -> None:
    assert scores.log_score([1], [[1.0, 0.0]]) == pytest.approx(-np.log(2.0**-52))


def test_booleans_are_classes() -> None:
    assert scores.error_rate([True, False], [[0.1, 0.9], [0.1, 0.9]]) == 0.5


def test_calibration_of_perfect_probabilities_is_small() -> None:
    """False alarm: the mean is 0.0098 (standard deviation 0.0025); 0.025 is 6 deviations away.

    Mutant caught: binning by the other class (0.5), half the rows flipped (0.25).
    """
    rng = np.random.default_rng(15)
    p = rng.random(10_000)
    y = (rng.random(10_000) < p).astype(int)
    assert scores.calibration_error(y, np.column_stack([1 - p, p])) < 0.025
    assert scores.calibration_error(y, np.column_stack([p, 1 - p])) > 0.4


def test_calibration_of_many_classes_judges_the_predicted_one() -> None:
    proba = np.tile([0.1, 0.7, 0.2], (10, 1))
    y = np.array([1] * 7 + [0, 2, 2])
    assert scores.calibration_error(y, proba) == pytest.approx(0.0, abs=1e-12)


def test_curve_bins_have_equal_counts() -> None:
    p = np.linspace(0.01, 0.99, 95)
    curve = scores.reliability_curve(np.zeros(95, int), p, n_bins=10)
    assert set(curve.n_rows.tolist()) == {9, 10}
    assert curve.n_rows.sum() == 95
    assert np.all(np.diff(curve.mean_predicted) > 0)


def test_ties_share_a_bin_and_row_order_does_not_matter() -> None:
    rng = np.random.default_rng(16)
    p = rng.choice([0.2, 0.5, 0.9], size=100)
    y = rng.integers(2, size=100)
    order = rng.permutation(100)
    first, second = scores.reliability_curve(y, p), scores.reliability_curve(y[order], p[order])
    assert len(first.n_rows) == 3
    np.testing.assert_allclose(first.mean_predicted, [0.2, 0.5, 0.9])
    np.testing.assert_array_equal(first.observed, second.observed)


def test_wilson_interval() -> None:
    curve = scores.reliability_curve([1] * 8 + [0] * 2, [0.5] * 10)
    # z = 1.6449: (0.8 + z^2/20 -+ z sqrt(0.016 + z^2/400)) / (1 + z^2/10)
    assert curve.lower[0] == pytest.approx(0.5407, abs=2e-4)
    assert curve.upper[0] == pytest.approx(0.9313, abs=2e-4)


def test_interval_at_the_ends() -> None:
    curve = scores.reliability_curve([0] * 20, [0.1] * 20)
    assert curve.lower[0] == 0.0
    assert 0 < curve.upper[0] < 0.2


@given(st.integers(1, 60), st.integers(1, 15), st.integers(0, 2**32 - 1))
def test_curve_invariants(n: int, n_bins: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), rng.integers(0, 4))
    y = rng.integers(2, size=n)
    curve = scores.reliability_curve(y, p, n_bins=n_bins)
    assert curve.n_rows.sum() == n
    assert len(curve.n_rows) <= n_bins
    assert np.sum(curve.observed * curve.n_rows) == pytest.approx(y.sum())
    assert np.sum(curve.mean_predicted * curve.n_rows) == pytest.approx(p.sum())
    assert np.all((curve.lower >= 0) & (curve.lower <= curve.observed + 1e-12))
    assert np.all((curve.upper <= 1) & (curve.upper >= curve.observed - 1e-12))


@pytest.mark.parametrize(
    ("y", "proba", "message"),
    [
        ([0, 1], [[0.5, 0.5]], "shapes"),
        ([[0]], [[0.5, 0.5]], "shapes"),
        ([0], [0.5], "shapes"),
        ([], np.zeros((0, 2)), "at least one row"),
        ([0], [[1.0]], "two classes"),
        ([2], [[0.5, 0.5]], "0 to 1"),
        ([-1], [[0.5, 0.5]], "0 to 1"),
        ([0.5], [[0.5, 0.5]], "0 to 1"),
        (["a"], [[0.5, 0.5]], "0 to 1"),
        ([0, 0], [[0.5, 0.5], [0.5, 0.6]], "row 1"),
        ([0], [[np.nan, 0.5]], "row 0"),
        ([0], [[-0.5, 1.5]], "row 0"),
    ],
)
def test_bad_input(y: object, proba: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        scores.score_classification(y, proba)  # type: ignore[arg-type]


def test_bad_curve_input() -> None:
    with pytest.raises(DataError, match="n_bins"):
        scores.reliability_curve([0], [0.5], n_bins=0)
    with pytest.raises(DataError, match="shape"):
        scores.reliability_curve([0], [[0.5, 0.5]])
