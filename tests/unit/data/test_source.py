from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

import mercer.data
from mercer.data import source as source_module
from mercer.data.source import ArrayRows, Part, open_array
from mercer.errors import DataError


@seed(4)
@settings(max_examples=150)
@given(data=st.data(), n=st.integers(1, 60), d=st.integers(1, 4), is_verified=st.booleans())
def test_any_partition(data: st.DataObject, n: int, d: int, is_verified: bool) -> None:
    """The blocks depend on the number of rows and on those of a block, on nothing else."""
    rows = np.arange(float(n * d)).reshape(n, d)
    rows_per_block = data.draw(st.integers(1, 70))
    n_blocks = -(-n // rows_per_block)
    first = data.draw(st.integers(0, n_blocks))
    last = data.draw(st.integers(first, n_blocks))
    taken = sorted(data.draw(st.lists(st.integers(0, n - 1), max_size=9)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mercer.data.source.CHUNK_CELLS", data.draw(st.integers(1, 50)))
        patch.setattr(source_module, "CHECK_CELLS", data.draw(st.integers(1, 50)))
        source = open_array(rows)
        source = source.verified() if is_verified else source
        blocks = list(source.blocks(rows_per_block, first=first, last=last))
        np.testing.assert_array_equal(source.take(np.array(taken, dtype=int)), rows[taken])
    assert source.n_blocks(rows_per_block) == n_blocks
    assert len(blocks) == last - first
    for k, block in enumerate(blocks, start=first):
        expected = rows[k * rows_per_block : (k + 1) * rows_per_block]
        np.testing.assert_array_equal(block, expected)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.nan, "missing value; fill it in, remove the row or, of an input, use --missing impute"),
        (np.inf, "infinite, or too large for a float64; correct it"),
        (-np.inf, "infinite"),
    ],
)
@pytest.mark.parametrize("is_single", [False, True])
def test_d3_gaps_have_a_place(value: float, reason: str, is_single: bool) -> None:
    rows = np.zeros((50, 3), np.float32 if is_single else np.float64)
    rows[41:43, 1:] = value
    source = mercer.data.open(rows)
    expected = rf"array, row 42, column 'x1': {reason}"
    with pytest.raises(DataError, match=expected):
        list(source.blocks(7))
    with pytest.raises(DataError, match=expected):
        source.verified()
    with pytest.raises(DataError, match=expected):
        source.digest()
    assert len(list(source.select(["x0"]).blocks(7))) == 8
    assert len(list(source.blocks(41, first=0, last=1))) == 1


def test_d8_sums_that_overflow_are_no_gaps() -> None:
    rows = np.full((50, 2), 1e308)
    rows[3] *= -1
    np.testing.assert_array_equal(np.vstack(list(mercer.data.open(rows).blocks(9))), rows)


def test_d1_no_rows_and_no_columns() -> None:
    with pytest.raises(DataError, match=r"array: there is no row of data"):
        mercer.data.open(np.empty((0, 3)))
    with pytest.raises(DataError, match=r"no column is left"):
        mercer.data.open(np.empty((3, 0)))


def refusing() -> ArrayRows:
    return ArrayRows(
        name="table",
        names=("a", "b"),
        parts=(Part("table", 2),),
        refusals={"b": "table: column 'b' is text"},
        array=np.ones((2, 2)),
        columns=(0, 1),
    )


def test_columns_that_are_not_numbers_may_be_left_out() -> None:
    source = refusing()
    for use in (
        lambda: source.blocks(1),
        lambda: source.take(np.array([0])),
        source.digest,
        source.verified,
        lambda: source.select(["b"]),
        lambda: source.without(["a"]),
    ):
        with pytest.raises(DataError, match="column 'b' is text"):
            use()
    assert source.without(["b"]).take(np.array([1])).tolist() == [[1.0]]


def test_names_are_printable() -> None:
    source = ArrayRows(
        name="a\x1b[31m",
        names=("b\n",),
        parts=(Part("a\x1b[31m", 1),),
        array=np.array([[np.nan]]),
        columns=(0,),
    )
    with pytest.raises(DataError) as caught:
        list(source.blocks(1))
    assert str(caught.value).isprintable()
    with pytest.raises(DataError) as caught:
        source.select(["\x1b"])
    assert str(caught.value).isprintable()
