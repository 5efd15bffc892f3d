from __future__ import annotations

import numpy as np
import pytest

from mercer.data.frame import MISSING, ColumnBuilder, column_of_texts, parse_number, stray_text


def build(*blocks: list[str], is_text: bool = False, comma: bool = False) -> ColumnBuilder:
    builder = ColumnBuilder("x", is_text=is_text, is_held=False, has_decimal_comma=comma)
    for block in blocks:
        builder.add(block)
    return builder


def test_numbers_with_missing_cells() -> None:
    column = build([" 1", "2e3", *sorted(MISSING)], ["-.5"]).finish()
    assert column.kind == "number"
    np.testing.assert_array_equal(column.values, [1, 2000, *[np.nan] * len(MISSING), -0.5])


def test_text_is_stripped_and_missing_is_none() -> None:
    column = build([" a", "b ", "?", ""]).finish()
    assert (column.kind, column.values.tolist()) == ("text", ["a", "b", None, None])


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["true", "FALSE", None], "boolean"),
        (["yes", "no"], "text"),
        (["2024-01-31", "2024-02-01T10:00:00"], "date"),
        (["2024-01-31", "soon"], "text"),
        ([None, None], "text"),
    ],
)
def test_kind_of_texts(texts: list[str | None], kind: str) -> None:
    assert column_of_texts("x", texts, is_text=False).kind == kind


def test_text_on_demand() -> None:
    column = build(["007", "true"], is_text=True).finish()
    assert column.values.tolist() == ["007", "true"]
    assert column.kind == "text"


def test_text_after_a_block_of_numbers_needs_another_reading() -> None:
    assert build(["1", "2"], ["x"]).is_broken
    assert not build(["x"], ["1", "2"]).is_broken


def test_digits_with_underscores_are_text() -> None:
    assert parse_number("1_000") is None
    assert build(["1_000", "2"]).finish().kind == "text"


def test_decimal_comma_only_where_told() -> None:
    assert build(["1,5", "2"], comma=True).finish().values.tolist() == [1.5, 2.0]
    assert build(["1,5", "2"]).finish().kind == "text"
    assert build(["1,234.5", "2"], comma=True).finish().kind == "text"


def test_stray_text() -> None:
    found = stray_text(build(["1", "2", "x", "", "4", "y"]).finish())
    assert found is not None
    assert found[0] == 2
    assert found[1].startswith("'x' is not a number, but 3 other cells")
    assert stray_text(build(["1", "x"]).finish()) is None
    assert stray_text(build(["1", "2"], is_text=True).finish()) is None
