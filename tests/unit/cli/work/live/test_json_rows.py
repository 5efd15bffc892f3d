from __future__ import annotations

import pytest

from mercer.cli.stream_rows import Line, Parser, Row, Wanted
from mercer.errors import DataError


def parser(told: list[str] | None = None, **own) -> Parser:
    fields = {"id_column": "id", "drop": (), "needed": None, "is_series": False}
    tell = ([] if told is None else told).append
    return Parser(Wanted("a pipe", "y", **{**fields, **own}), tell)


def read(rows: Parser, *texts: str) -> list[Row]:
    return rows.rows([Line(k, text) for k, text in enumerate(texts, start=1)])


def test_values_become_cells() -> None:
    (row,) = read(parser(), '{"id": 7, "a": 0.1, "b": true, "c": "red", "d": 1e-7, "y": -3}')
    assert row == Row(1, 1, ("0.1", "true", "red", "1e-07"), "-3", 7)


def test_the_first_object_with_an_input_says_what_there_is() -> None:
    rows = parser()
    first, late, absent, missing = read(
        rows, '{"id": 1, "y": 2}', '{"id": 1, "a": 2, "y": null}', '{"a": 3, "id": 2}', '{"id": 3}'
    )
    assert (first.is_late, late.is_late) == (True, False)
    assert absent == Row(3, 3, ("3",), None, 2)
    assert missing.problem == "there is no key 'a'"
    with pytest.raises(DataError, match="no column 'id'"):
        read(parser(), '{"a": 2, "y": 3}')


def test_literal_names_of_a_late_target() -> None:
    rows = parser()
    _, late = read(rows, '{"id": 1, "a": 2, "y": null}', '{"id": 1, "target": 2}')
    assert late == Row(2, 2, (), "2", 1, True)
    rows = parser(id_column=None)
    row, other = read(rows, '{"id": 1, "a": 2, "target": 2}', '{"id": 1, "target": 2}')
    assert (row.is_late, other.problem) == (False, "there is no key 'a'")


def test_other_keys_are_told_once() -> None:
    told: list[str] = []
    rows = parser(told, drop=("k",))
    read(
        rows,
        '{"id": 1, "a": 2, "k": 1}',
        '{"id": 1, "a": 2, "z": 1, "k": 2}',
        '{"id": 1, "a": 2, "z": 1}',
    )
    assert told == ["keys that the model does not use: 'z'"]


def test_a_series_needs_no_other_key() -> None:
    rows = parser(is_series=True)
    assert read(rows, '{"id": 1, "y": 2}') == [Row(1, 1, (), "2", 1)]
