from __future__ import annotations

import numpy as np
import pytest

from mercer.numerics.sums import ROWS_PER_TERM
from mercer.spectral.rows import MemoryRows, RowsWithout
from support.spectral_cases import plain_design, problem

RNG = np.random.default_rng(1)
NEW, OLD = RNG.standard_normal((3, 2)), RNG.standard_normal((4, 2))


def rows(n: int, has_linear_part: bool) -> MemoryRows:
    return MemoryRows(*problem(n, 2), has_linear_part)


@pytest.mark.parametrize("has_linear_part", [False, True])
def test_products(has_linear_part: bool) -> None:
    own = rows(50, has_linear_part)
    assert own.n_linear == (3 if has_linear_part else 0)
    new = plain_design(NEW, own.X, False)
    given = np.column_stack([plain_design(OLD, own.X, has_linear_part), own.y])
    found = own.products(NEW, OLD)
    np.testing.assert_allclose(found.among, new.T @ new, atol=1e-13)
    np.testing.assert_allclose(found.across, new.T @ given, atol=1e-12)


@pytest.mark.parametrize("has_linear_part", [False, True])
@pytest.mark.parametrize("n", [1, 50, ROWS_PER_TERM + 3])
def test_gram(n: int, has_linear_part: bool) -> None:
    own = rows(n, has_linear_part)
    C = np.column_stack([plain_design(NEW, own.X, has_linear_part), own.y])
    found = own.gram(NEW)
    np.testing.assert_allclose(found, C.T @ C, rtol=1e-11, atol=1e-10)
    np.testing.assert_array_equal(found, found.T)
    given = C[:, 2 * len(NEW) :]
    np.testing.assert_allclose(given.T @ given, found[2 * len(NEW) :, 2 * len(NEW) :], rtol=1e-12)


def test_blocks_hold_every_row_once() -> None:
    own = rows(2 * ROWS_PER_TERM + 5, False)
    X, y = zip(*own.blocks(), strict=True)
    np.testing.assert_array_equal(np.concatenate(X), own.X)
    np.testing.assert_array_equal(np.concatenate(y), own.y)
    assert (own.n_rows, own.n_inputs) == (2 * ROWS_PER_TERM + 5, 2)


def test_take() -> None:
    own = rows(50, False)
    X, y = own.take(np.array([3, 17, 49]))
    np.testing.assert_array_equal(X, own.X[[3, 17, 49]])
    np.testing.assert_array_equal(y, own.y[[3, 17, 49]])


def test_read_only_rows() -> None:
    own = rows(50, True)
    expected = own.gram(NEW)
    own.X.flags.writeable = own.y.flags.writeable = False
    np.testing.assert_array_equal(own.gram(NEW), expected)


@pytest.mark.parametrize("gone", [[], [0], [0, 1, 5], [3, 4, 9], list(range(9))])
def test_rows_without_some(gone: list[int]) -> None:
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    left_out = np.array(gone, dtype=np.int64)
    rows = RowsWithout(MemoryRows(X, y, True), left_out)
    kept = np.delete(y, left_out)
    assert (rows.n_rows, rows.n_inputs, rows.n_linear) == (len(kept), 2, 3)
    np.testing.assert_array_equal(np.concatenate([part for _, part in rows.blocks()]), kept)
    for chosen in (np.arange(len(kept)), np.arange(0, len(kept), 2)):
        inputs, targets = rows.take(chosen)
        np.testing.assert_array_equal(targets, kept[chosen])
        np.testing.assert_array_equal(inputs[:, 0], 2.0 * kept[chosen])
