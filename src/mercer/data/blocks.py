"""Cutting a stream of rows into blocks of equal length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

__all__ = ["regroup"]

Array = NDArray[np.float64]


def regroup(
    pieces: Iterable[Array], rows_per_block: int, n_rows: int, *, is_reused: bool = False
) -> Iterator[Array]:
    """Cut rows that come in pieces of any length into blocks.

    Parameters
    ----------
    pieces : iterable of ndarray of shape (k, n_columns)
        `n_rows` rows in all; a piece may be overwritten once the next one is asked for.
    rows_per_block : int
        Rows in a block; the last block has what is left.
    n_rows : int
        How many rows will come.
    is_reused : bool
        Yield the same memory again and again.

    Yields
    ------
    ndarray of shape (rows_per_block, n_columns)
        In C order.
    """
    left = n_rows
    n_filled = 0
    block = np.empty((0, 0))
    for piece in pieces:
        position = 0
        while position < len(piece):
            if n_filled == 0:
                size = min(rows_per_block, left)
                if not is_reused or len(block) < size:
                    block = np.empty((size, piece.shape[1]))
                block = block[:size]
            n = min(len(block) - n_filled, len(piece) - position)
            block[n_filled : n_filled + n] = piece[position : position + n]
            n_filled += n
            position += n
            if n_filled == len(block):
                yield block
                left -= n_filled
                n_filled = 0
