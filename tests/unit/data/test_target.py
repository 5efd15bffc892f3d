from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer.data.frame import Frame
from mercer.data.tables import read_frame
from mercer.data.target import read_target
from mercer.errors import DataError, UsageError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.csv"


def table(path: Path, *cells: object) -> Frame:
    path.write_text("x,y\n" + "".join(f"0,{cell}\n" for cell in cells))
    return read_frame(path)


@pytest.mark.parametrize(
    ("cells", "task", "dtype", "reason"),
    [
        (["a", "b", "a"], "classification", object, "text with 2 classes, so classification"),
        (["true", "false"], "classification", np.bool_, "true or false, so classification"),
        ([1, 2, 2.0], "classification", np.int64, "2 distinct whole numbers, so classification"),
        (range(11), "regression", np.float64, "more than 10 distinct whole numbers, so"),
        ([1, 2.5], "regression", np.float64, "numbers with a fraction, so regression"),
    ],
)
def test_d7_task_and_labels(
    path: Path, cells: list[object], task: str, dtype: type, reason: str
) -> None:
    target = read_target(table(path, *cells), "y")
    assert target.task == task
    assert target.values.dtype == dtype
    assert target.reason.startswith(f"target 'y': {reason}")
    assert len(target.values) == len(cells)


def test_task_as_asked(path: Path) -> None:
    frame = table(path, *range(11))
    assert read_target(frame, "y", "classification").values.dtype == np.int64
    frame = table(path, "true", "false")
    assert read_target(frame, "y", "regression").values.tolist() == [1.0, 0.0]
    with pytest.raises(UsageError, match="task must be"):
        read_target(frame, "y", "ranking")  # type: ignore[arg-type]


def test_d5_no_such_target(path: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'Y'; did you mean 'y'\?"):
        read_target(table(path, 1, 2), "Y")


def test_whole_numbers_with_leading_zeros_are_codes(path: Path) -> None:
    table(path, *("1", "2") * 70_000, "01")  # more than a block is read at once
    column = read_frame(path, target="y").column("y")
    assert sorted(set(column.values)) == ["01", "1", "2"]
    target = read_target(table(path, "01", "1", "2"), "y")
    assert target.values.dtype == np.int64  # in rows that are scored by a model of numbers
    table(path, *(f"{i:03}" for i in range(120)))
    target = read_target(read_frame(path, target="y"), "y")
    assert (target.task, target.values[7]) == ("classification", "007")
    assert read_frame(path).column("y").kind == "number"
    assert read_frame(table(path, "0", "0.5", "-0").source, target="y").column("y").kind == "number"


@pytest.mark.parametrize("cell", ["a", 1, "true"])
def test_d2_one_class(path: Path, cell: object) -> None:
    frame = table(path, cell, cell)
    with pytest.raises(DataError, match=r"data.csv: target 'y' has only one class, '\w+'; "):
        read_target(frame, "y")
    assert len(read_target(frame, "y", allow_one_class=True).values) == 2


def test_d3_missing_and_infinite(path: Path) -> None:
    with pytest.raises(DataError, match=r"row 2 \(line 3\), column 'y': the target is missing"):
        read_target(table(path, 1, "", 2), "y")
    with pytest.raises(DataError, match=r"row 3 \(line 4\), column 'y': the target is infinite"):
        read_target(table(path, 1, 2, "inf"), "y")


def test_a_word_that_is_read_as_missing_is_named(path: Path) -> None:
    table(path, "None", "mild", "", "NA")
    words = r"3 of 4 rows\); .*; 'NA', 'None' in it are read as missing: where that is a class"
    with pytest.raises(DataError, match=words):
        read_target(read_frame(path, target="y"), "y")


def test_d4_a_target_without_any_value(path: Path) -> None:
    words = "target 'y' has no value at all; choose another column; 'NA' in it is read as missing"
    table(path, "", "NA", "")
    with pytest.raises(DataError, match=words):
        read_target(read_frame(path, target="y"), "y")


def test_d4_dates_and_text(path: Path) -> None:
    with pytest.raises(DataError, match="neither numbers nor text"):
        read_target(table(path, "2024-01-31"), "y")
    with pytest.raises(DataError, match="'a' is not a number; regression needs"):
        read_target(table(path, "a", "b"), "y", "regression")
    with pytest.raises(DataError, match=r"row 2 .*: 1\.5 is not a whole number, so no class"):
        read_target(table(path, 1, 1.5), "y", "classification")


def test_d4_a_stray_text_among_numbers(path: Path) -> None:
    match = r"row 13 \(line 14\), column 'y': 'x' is not a number, but 12 other cells"
    with pytest.raises(DataError, match=match):
        read_target(table(path, *range(12), "x"), "y")
    assert read_target(table(path, 1, 2, 1, "x"), "y").task == "classification"
    with pytest.raises(DataError, match="'x' is not a number"):
        read_target(table(path, 1, 2, 1, "x"), "y", "regression")


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([2.5, 2.5, 2.5], "the target is constant, 2.5 in every row"),
        ([1, 2.5, 1e200], "too large to compute with"),
        ([1, 2.5, -1e200], "row 3.*too large to compute with"),
        ([0, 1e-200, 2e-200], "differ by 2e-200 at most"),
        ([1, "", 2.5], "the target is missing"),
        ([1, "inf", 2.5], "infinite, or too large"),
        ([1, "x", 2.5], "'x'"),
    ],
)
def test_d8_numbers_that_cannot_be_learned(path: Path, cells: list[object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_target(table(path, *cells), "y", "regression")


def test_rows_that_are_only_scored_may_be_all_the_same(path: Path) -> None:
    frame = table(path, 2.5, 2.5)
    assert read_target(frame, "y", "regression", allow_one_class=True).values.tolist() == [2.5, 2.5]
    with pytest.raises(DataError, match="too large"):
        read_target(table(path, 1e200), "y", "regression", allow_one_class=True)


PRICES = ['"$1,234.50"', '"$2"', '"($3.25)"']


def test_money_is_a_number(path: Path) -> None:
    target = read_target(table(path, *PRICES), "y")
    assert target.values.tolist() == [1234.5, 2.0, -3.25]
    assert target.reason == (
        "target 'y': numbers with a fraction, so regression (text read as numbers ('$1,234.5' is "
        "1234.5, '($1,234.5)' is -1234.5))"
    )
    new = read_target(table(path, "$7"), "y", allow_one_class=True, written=target.written)
    assert new.values.tolist() == [7.0]
    with pytest.raises(DataError, match=r"row 1 \(line 2\), column 'y': '€7' is not a number"):
        read_target(table(path, "€7"), "y", allow_one_class=True, written=target.written)


def test_classes_stay_as_they_are_written(path: Path) -> None:
    for task in ("auto", "classification"):
        assert read_target(table(path, "10%", "20%"), "y", task).values.tolist() == ["10%", "20%"]
    values = read_target(table(path, *PRICES), "y", "classification").values
    assert values.tolist() == ["$1,234.50", "$2", "($3.25)"]
    assert read_target(table(path, "10%", "20%"), "y", "regression").values.tolist() == [10, 20]
    mixed = table(path, *[f"{k}%" for k in range(20)], "n.d.")
    with pytest.raises(DataError, match=r"row 21 .*'n.d.' is not a number, but '0%' and most"):
        read_target(mixed, "y")


def test_labels_of_new_rows_are_of_the_kind_that_was_learned(path: Path) -> None:
    def found(classes: list[object], *cells: object) -> list[object]:
        frame = table(path, *cells)
        known = {"allow_one_class": True, "classes": classes}
        return read_target(frame, "y", "classification", **known).values.tolist()  # type: ignore[arg-type]

    assert found(["0", "1", "unknown"], 0, 1, 1) == ["0", "1", "1"]
    assert found([0, 1], 0, "oops", 1, "x") == [0, "oops", 1, "x"]
    assert found([False, True], "True", "maybe") == [True, "maybe"]
    many = [*map(str, range(11)), *"abcdefghijkl"]
    assert found(many, *many[:12]) == many[:12]
