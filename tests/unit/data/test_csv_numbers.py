from __future__ import annotations

import numpy as np
import pytest

from mercer.data.csv_cache import NumberColumn
from mercer.data.frame import MISSING


def add(blocks: list[list[str]], *, has_decimal_comma: bool = False):  # type: ignore[no-untyped-def]
    column = NumberColumn(MISSING)
    numbers = [column.add(cells, has_decimal_comma=has_decimal_comma) for cells in blocks]
    return np.concatenate(numbers).tolist(), column.stray


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([["1", " 2.5"], ["-3e2 "]], [1.0, 2.5, -300.0]),
        ([["true", "False"], ["TRUE"]], [1.0, 0.0, 1.0]),
        ([[], ["1"], []], [1.0]),
        ([["inf", "1e999"]], [np.inf, np.inf]),
    ],
)
def test_numbers_and_booleans(blocks: list[list[str]], expected: list[float]) -> None:
    assert add(blocks) == (expected, None)


@pytest.mark.parametrize("blocks", [[["", "?"], ["true", "NA"]], [["", "?"], ["1", "NA"]]])
def test_missing_cells_do_not_decide_what_a_column_is(blocks: list[list[str]]) -> None:
    numbers, stray = add(blocks)
    np.testing.assert_array_equal(numbers, [np.nan, np.nan, 1.0, np.nan])
    assert stray is None


def test_decimal_commas() -> None:
    assert add([["1,5", "2"]], has_decimal_comma=True) == ([1.5, 2.0], None)
    assert add([["1,5", "2"]])[1] == (0, "'1,5' is not a number")


@pytest.mark.parametrize(
    ("blocks", "stray"),
    [
        ([["1", "x"], ["2"]], (1, "'x' is not a number")),
        ([["1", "2"], ["3", " true "]], (1, "'true' is not a number")),
        ([["true"], ["", "1"]], (1, "'1' is not true or false")),
        ([["true", "1"]], (0, "'true' is not a number")),
        ([["", "2024-01-31"]], (1, "'2024-01-31' is not a number")),
        ([["1_000"]], (0, "'1_000' is not a number")),
        ([["\x1b"]], (0, "'\\x1b' is not a number")),
    ],
)
def test_the_first_cell_that_is_none(blocks: list[list[str]], stray: tuple[int, str]) -> None:
    numbers, found = add(blocks)
    assert found == stray
    assert len(numbers) == sum(map(len, blocks))
    assert np.isnan(numbers[-1])
