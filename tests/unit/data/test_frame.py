from __future__ import annotations

import numpy as np
import pytest

from mercer.data.frame import Column, Frame
from mercer.errors import DataError


def make_frame() -> Frame:
    numbers = Column("glu", np.array([1.0, np.nan, 3.0]), "number")
    texts = Column("city", np.array(["a", None, "b"], dtype=object), "text")
    return Frame.from_columns([numbers, texts], "memory")


def test_missing_cells() -> None:
    frame = make_frame()
    for column in frame.columns:
        assert column.is_missing.tolist() == [False, True, False]


def test_take_remembers_the_rows() -> None:
    taken = make_frame().take(np.array([2, 0]))
    assert taken.n_rows == 2
    assert taken.column("city").values.tolist() == ["b", "a"]
    assert taken.place(0, "glu") == "memory, row 3, column 'glu'"
    assert taken.origin.row[0] == 3


def test_without_leaves_out() -> None:
    assert make_frame().without(["glu"]).names == ("city",)


def test_d5_unknown_column_names_the_nearest() -> None:
    with pytest.raises(DataError, match=r"memory: there is no column 'gluc'; did you mean 'glu'\?"):
        make_frame().column("gluc")
    with pytest.raises(DataError, match=r"'zzz'; the columns are 'glu', 'city'$"):
        make_frame().without(["zzz"])
    with pytest.raises(DataError, match=r"are 'glu:city' alone: a comma, .* separates cells$"):
        Frame.of_header(["glu:city"], "memory").column("y")


def test_d5_duplicate_names() -> None:
    column = make_frame().columns[0]
    with pytest.raises(DataError, match=r"'glu' is there twice \(columns 1 and 2\); rename"):
        Frame.from_columns([column, column], "memory")
