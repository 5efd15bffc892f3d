"""Roots of many rows at once: smooth, flat and broken gaps."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.posterior.predictive import search_quantiles

ROOTS = np.array([-3.0, 0.0, 0.5, 4.0])


def search(gap_and_slope, **options) -> np.ndarray:
    ends = np.full(len(ROOTS), -10.0), np.full(len(ROOTS), 10.0)
    start = np.full(len(ROOTS), 9.0)
    found = search_quantiles(start, *ends, gap_and_slope, 1e-9, **options)
    assert (start == 9.0).all()  # arguments are left alone
    assert (ends[0] == -10.0).all()
    assert (ends[1] == 10.0).all()
    return found


def cube(x, rows):
    return (x - ROOTS[rows]) ** 3, 3.0 * (x - ROOTS[rows]) ** 2


def stairs(x, rows):
    return np.sign(x - ROOTS[rows]), np.zeros(len(x))


def endless(x, rows):
    with np.errstate(divide="ignore"):
        gap = np.log(np.where(x > ROOTS[rows], np.inf, 0.0))
    return gap, np.full(len(x), np.nan)


def misleading(x, rows):
    return x - ROOTS[rows], np.full(len(x), 1e9)


@pytest.mark.parametrize("is_patient", [False, True])
@pytest.mark.parametrize("gap_and_slope", [cube, stairs, endless, misleading])
def test_roots_are_found_whatever_newton_does(gap_and_slope, is_patient: bool) -> None:
    found = search(gap_and_slope, is_patient=is_patient)
    np.testing.assert_allclose(found, ROOTS, rtol=0.0, atol=4e-9)


def test_a_row_has_a_tolerance_of_its_own_and_found_rows_are_left_alone() -> None:
    asked: list[list[int]] = []

    def gap_and_slope(x, rows):
        asked.append(rows.tolist())
        return stairs(x, rows)

    tolerance = np.array([20.0, 1e-3, 1e-6, 1e-9])
    ends = np.full(4, -10.0), np.full(4, 10.0)
    found = search_quantiles(np.full(4, 9.0), *ends, gap_and_slope, tolerance)
    assert found[0] == 9.0
    assert (np.abs(found - ROOTS)[1:] < 4.0 * tolerance[1:]).all()
    assert asked[0] == [1, 2, 3]
    assert asked[-1] == [3]


def test_a_step_that_meets_the_root_before_a_halving_costs_nothing_with_patience() -> None:
    """Newton leads to the root to the last digit in the third step; the fourth is the middle."""

    def evaluations(is_patient: bool) -> int:
        count = 0

        def late(x, rows):
            nonlocal count
            count += 1
            slope = 1.2 if count < 3 else 1.0
            return x - ROOTS[rows], np.full(len(x), slope)

        search(late, is_patient=is_patient)
        return count

    assert evaluations(is_patient=True) <= 6
    assert evaluations(is_patient=False) > 20
