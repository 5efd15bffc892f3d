from __future__ import annotations

import numpy as np
import pytest

from mercer.spectral.rows import MemoryRows
from mercer.spectral.trajectory import likelihood_gradient
from support.spectral_cases import plain_design
from support.spectral_class_cases import plain_log_likelihood, problem


def case(
    n: int, n_classes: int, has_linear_part: bool
) -> tuple[MemoryRows, np.ndarray, np.ndarray]:
    X, codes = problem(n, 3, n_classes)
    rng = np.random.default_rng(5)
    W = rng.standard_normal((4, 3))
    coef = rng.standard_normal((n_classes - 1, 8 + (4 if has_linear_part else 0)))
    return MemoryRows(X, codes, has_linear_part), W, coef


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("has_linear_part", [False, True])
@pytest.mark.parametrize("n", [4, 30, 600])
def test_against_differences(n: int, n_classes: int, has_linear_part: bool) -> None:
    """Five points, of step 1e-3; 600 rows are more than one block of the pass."""
    rows, W, coef = case(n, n_classes, has_linear_part)
    found = likelihood_gradient(rows, W, coef)

    def value(W: np.ndarray, coef: np.ndarray) -> float:
        return plain_log_likelihood(coef @ plain_design(W, rows.X, has_linear_part).T, rows.y)

    assert found.value == pytest.approx(value(W, coef), rel=1e-12)
    h = 1e-3
    for which, gradient in ((0, found.frequencies), (1, found.coef)):
        for place in np.ndindex(gradient.shape):
            values = []
            for k in (-2, -1, 1, 2):
                both = [W.copy(), coef.copy()]
                both[which][place] += k * h
                values.append(value(*both))
            difference = (values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * h)
            assert gradient[place] == pytest.approx(difference, rel=1e-6, abs=1e-8 * n)


def test_a_row_that_a_function_says_nothing_of_does_not_pull_it() -> None:
    """Of the first class only the first function speaks."""
    rows, W, coef = case(30, 3, True)
    first = MemoryRows(rows.X, np.zeros(30), True)
    found = likelihood_gradient(first, W, coef)
    assert (found.coef[1] == 0.0).all()
    assert (found.coef[0] != 0.0).all()


def test_large_functions() -> None:
    rows, W, coef = case(30, 2, True)
    found = likelihood_gradient(rows, W, 1e6 * coef)
    assert np.isfinite(found.value)
    assert np.isfinite(found.frequencies).all()
