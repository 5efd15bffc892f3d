"""The table that summaries and diagnostics return."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.posterior.draws import Table, finite_or_none


def test_prints_aligned_text() -> None:
    table = Table(("name", "mean", "n"), (("a", 1.23456, 10), ("longer", -0.5, None)))
    assert str(table).split("\n") == [
        "name     mean   n",
        "a       1.235  10",
        "longer   -0.5   -",
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.000123456, "0.0001235"),
        (12345.6, "12346"),
        (1e9, "1e+09"),
        (-2.0, "-2"),
        (True, "True"),
        (None, "-"),
    ],
)
def test_numbers_have_four_digits(value: float, text: str) -> None:
    assert str(Table(("x",), ((value,),))).split("\n")[1].strip() == text


def test_empty_table_prints_its_head() -> None:
    assert str(Table(("name", "rhat"), ())) == "name  rhat"


def test_numpy_scalars_become_plain() -> None:
    table = Table(("a", "b", "c"), ((np.float64(0.5), np.int64(3), np.bool_(True)),))
    assert json.loads(json.dumps(table.to_dict())) == {
        "columns": ["a", "b", "c"],
        "rows": [[0.5, 3, True]],
    }


def test_lists_become_tuples() -> None:
    table = Table(["a"], [[1], [2]])  # type: ignore[arg-type, list-item]
    assert table == Table(("a",), ((1,), (2,)))
    assert table.column("a") == (1, 2)


def test_html_is_escaped() -> None:
    text = Table(("<b>",), (("<script>\x1b",),))._repr_html_()
    assert "<script>" not in text
    assert "&lt;b&gt;" in text
    assert "\x1b" not in text


def test_control_characters_are_escaped() -> None:
    text = str(Table(("a\x1b[2J",), (("x\ny",),)))
    assert "\x1b" not in text
    assert text.split("\n")[1] == r"x\ny"


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (("a", "a"), ()),
        (("a",), ((1, 2),)),
        (("a",), ((object(),),)),
        (("a",), ((np.zeros(2),),)),
    ],
)
def test_refuses_what_does_not_fit(columns: tuple[str, ...], rows: tuple) -> None:
    with pytest.raises(UsageError):
        Table(columns, rows)


def test_unknown_column_is_named() -> None:
    with pytest.raises(UsageError, match="'rat'; there are name, rhat"):
        Table(("name", "rhat"), ()).column("rat")


def test_finite_or_none() -> None:
    assert finite_or_none(np.float64(1.5)) == 1.5
    assert finite_or_none(float("nan")) is None
    assert finite_or_none(float("-inf")) is None
