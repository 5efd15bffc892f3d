from __future__ import annotations

import numpy as np
import pytest

from mercer.features import products
from mercer.spectral.class_model import CLASSES, log_likelihood
from mercer.spectral.rows import MemoryRows, of_blocks, weighted_products
from support.spectral_cases import plain_design
from support.spectral_class_cases import plain_log_likelihood, problem


@pytest.mark.parametrize("has_linear_part", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("at_once", [7, 1024])
def test_weighted_products(
    n_classes: int, has_linear_part: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against plain sums over the rows of each function, however the rows come."""
    monkeypatch.setattr(products, "_ROWS_AT_ONCE", at_once)
    X, codes = problem(30, 2, n_classes)
    rng = np.random.default_rng(1)
    W, proposed = rng.standard_normal((2, 5, 2))
    coef = rng.standard_normal((n_classes - 1, 10 + 3 * has_linear_part))
    rows = MemoryRows(X, codes, has_linear_part)
    found = weighted_products(
        rows,
        proposed,
        W,
        coef,
        lambda _: lambda f, kappa: (1.0 / (1.0 + f**2), kappa * (2.0 + f)),
        CLASSES.tasks,
    )
    F, new = plain_design(W, X, has_linear_part), plain_design(proposed, X, False)
    for k, one in enumerate(found):
        is_in = codes >= k
        f, kappa = F[is_in] @ coef[k], (codes[is_in] == k) - 0.5
        weights = 1.0 / (1.0 + f**2)
        given = np.column_stack([F[is_in], kappa * (2.0 + f) / weights])
        np.testing.assert_allclose(one.gram, (given.T * weights) @ given, atol=1e-10)
        np.testing.assert_allclose(
            one.among, (new[is_in].T * weights) @ new[is_in], rtol=1e-10, atol=1e-12
        )
        np.testing.assert_allclose(one.across, (new[is_in].T * weights) @ given, atol=1e-11)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_log_likelihood(n_classes: int) -> None:
    X, codes = problem(40, 2, n_classes)
    rng = np.random.default_rng(2)
    W, coef = rng.standard_normal((6, 2)), rng.standard_normal((n_classes - 1, 15))
    f = coef @ plain_design(W, X, True).T
    found = log_likelihood(MemoryRows(X, codes, True), W, coef)
    assert found == pytest.approx(plain_log_likelihood(f, codes), rel=1e-12)


def test_functions_far_out_overflow_nothing() -> None:
    X, codes = problem(20, 2)
    rows, W, coef = MemoryRows(X, codes, True), np.ones((2, 2)), np.full((1, 7), 1e4)
    rng = np.random.default_rng(0)
    (one,) = weighted_products(rows, W, W, coef, of_blocks(rng, CLASSES.weigher), CLASSES.tasks)
    assert all(np.isfinite(each).all() for each in (one.gram, one.among, one.across))
    assert np.isfinite(log_likelihood(rows, W, coef))


def test_a_function_without_rows_has_no_products() -> None:
    """Where a subset of the rows holds none of the last classes."""
    X, codes = problem(20, 2)
    rows, W = MemoryRows(X, 0.0 * codes, False), np.ones((2, 2))
    weigh = of_blocks(np.random.default_rng(0), CLASSES.weigher)
    found = weighted_products(rows, W, W, np.zeros((2, 4)), weigh, CLASSES.tasks)
    np.testing.assert_array_equal(found[1].gram, 0.0)
    assert found[0].gram[0, 0] > 0.0
