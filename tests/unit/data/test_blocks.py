from __future__ import annotations

import numpy as np
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from mercer.data.source import regroup


@seed(3)
@settings(max_examples=200)
@given(
    lengths=st.lists(st.integers(0, 9), max_size=12),
    rows_per_block=st.integers(1, 40),
    is_reused=st.booleans(),
)
def test_blocks_of_pieces_of_any_length(
    lengths: list[int], rows_per_block: int, is_reused: bool
) -> None:
    rows = np.arange(2.0 * sum(lengths)).reshape(-1, 2)
    scratch = np.empty((9, 2))

    def pieces():  # type: ignore[no-untyped-def]
        position = 0
        for n in lengths:  # one piece overwrites the other
            scratch[:n] = rows[position : position + n]
            yield scratch[:n]
            position += n

    blocks = regroup(pieces(), rows_per_block, len(rows), is_reused=is_reused)
    found = [block.copy() for block in blocks] if is_reused else list(blocks)
    expected = [rows[k : k + rows_per_block] for k in range(0, len(rows), rows_per_block)]
    assert len(found) == len(expected)
    for block, part in zip(found, expected, strict=True):
        np.testing.assert_array_equal(block, part)


def test_memory_is_used_again() -> None:
    pieces = [np.ones((4, 2)), np.ones((3, 2))]
    first, second, last = regroup(pieces, 3, 7, is_reused=True)
    assert np.shares_memory(first, second)
    assert np.shares_memory(first, last)
    first, second, last = regroup(pieces, 3, 7)
    assert not np.shares_memory(first, second)
