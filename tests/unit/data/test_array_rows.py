from __future__ import annotations

import numpy as np
import pytest

import mercer.data
from mercer.errors import DataError

ROWS = np.arange(12.0).reshape(6, 2)


@pytest.mark.parametrize(
    "array",
    [
        ROWS.astype(np.float32),
        ROWS.astype(np.int16),
        ROWS.astype(">f8"),
        ROWS.astype(np.longdouble),
        np.asfortranarray(ROWS),
        np.repeat(ROWS, 2, axis=0)[::2],
        np.ascontiguousarray(ROWS[::-1, ::-1])[::-1, ::-1],
        np.broadcast_to(ROWS[0], (6, 2)) + ROWS - ROWS[0],
        np.ma.masked_array(ROWS, mask=False),
    ],
    ids=["single", "whole", "big-endian", "long", "fortran", "strided", "reversed", "broadcast",
         "masked"],
)  # fmt: skip
def test_d14_numbers_of_any_type_and_layout(array: np.ndarray) -> None:
    source = mercer.data.open(array)
    np.testing.assert_array_equal(np.vstack(list(source.blocks(4))), ROWS)
    np.testing.assert_array_equal(source.take(np.array([0, 5])), ROWS[[0, 5]])
    assert source.digest() == mercer.data.open(ROWS).digest()


def test_booleans_are_0_and_1() -> None:
    source = mercer.data.open(np.array([[True, False]]))
    assert source.take(np.array([0])).tolist() == [[1.0, 0.0]]


def test_a_read_only_array_is_not_copied() -> None:
    array = ROWS.copy()
    array.flags.writeable = False
    source = mercer.data.open(array)
    assert source.array is array  # type: ignore[attr-defined]
    next(source.blocks(2))[:] = 0.0  # the block belongs to the caller
    np.testing.assert_array_equal(array, ROWS)


def test_d3_masked_cells_are_missing() -> None:
    array = np.ma.masked_array(ROWS, mask=False)
    array[3, 1] = np.ma.masked
    with pytest.raises(DataError, match="array, row 4, column 'x1': missing value"):
        list(mercer.data.open(array).blocks(2))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (ROWS.astype(complex), "holds complex128, not real numbers"),
        (ROWS.astype(object), "holds object"),
        (ROWS.astype(str), "holds <U32"),
        (ROWS.astype("datetime64[s]"), "holds datetime64"),
        (np.zeros(3, [("a", "f8")]), "not real numbers"),
        (ROWS[0], r"has 1 dimension\(s\)"),
        (np.zeros((2, 2, 2)), r"has 3 dimension\(s\)"),
    ],
)
def test_d4_what_is_no_table_of_numbers(array: np.ndarray, words: str) -> None:
    with pytest.raises(DataError, match=words):
        mercer.data.open(array)
