"""Error against coverage: worked examples, ties, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import DataError
from mercer.posterior.scores import error_coverage_curve


def proba(top: list[float]) -> np.ndarray:
    """Two classes, the first one the most probable."""
    return np.column_stack([top, 1.0 - np.array(top)])


def test_worked_example() -> None:
    curve = error_coverage_curve([0, 1, 0, 0], proba([0.7, 0.6, 0.9, 0.8]))
    np.testing.assert_allclose(curve.coverage, [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(curve.error, [0, 0, 0, 0.25])
    assert curve.area == 0.0625
    assert [curve.error_at(share) for share in (1.0, 0.9, 0.75, 0.5)] == [0.25, 0.25, 0.0, 0.0]
    assert [curve.n_decided(share) for share in (0.01, 0.5, 0.51, 1.0)] == [1, 2, 3, 4]


def test_order_of_equally_certain_rows_does_not_matter() -> None:
    top = [0.9, 0.7, 0.7, 0.7, 0.6]
    curves = [
        error_coverage_curve(y, proba(top)).error
        for y in ([0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 0, 0])
    ]
    np.testing.assert_array_equal(curves[0], curves[1])
    np.testing.assert_array_equal(curves[0], curves[2])
    np.testing.assert_allclose(curves[0], [0, 1 / 6, 2 / 9, 1 / 4, 1 / 5])


def test_equal_probabilities_give_a_level_curve() -> None:
    curve = error_coverage_curve([0, 1, 1, 0, 0], proba([0.8] * 5))
    np.testing.assert_allclose(curve.error, 0.4)
    assert curve.area == pytest.approx(0.4)


def test_several_classes_and_a_single_row() -> None:
    p = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]])
    curve = error_coverage_curve([0, 2, 0], p)
    np.testing.assert_allclose(curve.error, [0, 0, 1 / 3])
    assert error_coverage_curve([1], proba([0.9])).error_at(0.5) == 1.0


@pytest.mark.parametrize(
    ("y", "p"), [([], np.empty((0, 2))), ([2], [[0.5, 0.5]]), ([0], [[2, -1]])]
)
def test_what_is_no_classification_is_refused(y: list[int], p: object) -> None:
    with pytest.raises(DataError):
        error_coverage_curve(y, p)
