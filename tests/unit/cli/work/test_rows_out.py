"""Columns as CSV, JSON and Parquet."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer.cli import outputs as rows_out
from mercer.cli.outputs import appending_rows, check_format, for_spreadsheet, write_rows
from mercer.errors import UsageError

COLUMNS = {
    "name": np.array(["a,b", 'c"d', "e\nf", "g", "h"], dtype=object),
    "value": np.array([0.1, 1e-300, -2.0, 3.0, 4.0]),
    "is_listed": np.array([True, False, True, False, True]),
}


@pytest.mark.parametrize("block", [2, 5, 100])
def test_csv_is_the_same_in_any_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys, block: int
) -> None:
    monkeypatch.setattr(rows_out, "_BLOCK", block)
    path = tmp_path / "rows.csv"
    write_rows(path, COLUMNS)
    with open(path, newline="") as stream:
        header, *rows = list(csv.reader(stream))
    assert header == list(COLUMNS)
    assert [row[0] for row in rows] == COLUMNS["name"].tolist()
    assert [float(row[1]) for row in rows] == COLUMNS["value"].tolist()
    assert rows[0][2] == "True"
    write_rows(None, COLUMNS)
    assert capsys.readouterr().out == path.read_text()


def test_json_and_parquet_hold_the_same(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_rows(tmp_path / "rows.json", COLUMNS)
    write_rows(tmp_path / "rows.parquet", COLUMNS)
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert rows == parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert rows[2] == {"name": "e\nf", "value": -2.0, "is_listed": True}


def test_no_rows_leave_the_header(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.csv", {"a": np.zeros(0), "b": np.zeros(0)})
    assert (tmp_path / "rows.csv").read_text() == "a,b\n"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_blocks_on_standard_output(capsys, monkeypatch: pytest.MonkeyPatch, is_terminal) -> None:
    """As `write_rows` shows them; a label does not steer a terminal."""
    columns = {"label": np.array(["a", "\x1b[31m", "\u202e"], dtype=object), "x": np.arange(3.0)}
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    write_rows(None, columns)
    whole = capsys.readouterr().out
    with appending_rows(None) as writer:
        for rows in (slice(0, 2), slice(2, 3)):
            writer.append({name: values[rows] for name, values in columns.items()})
    assert capsys.readouterr().out == whole
    assert ("\x1b" in whole) is not is_terminal


def test_cells_that_a_spreadsheet_would_run_are_disarmed_and_numbers_stay() -> None:
    cells = ["=1+2", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1"]
    plain = ["b", "", None, "-5", "+1.5e3", "-.5", "a=b", "1-2"]
    columns = {
        "=x": np.array([*cells, *plain], dtype=object),
        "n": np.array([-1.5] * 15),
        "k": np.array(["-1", "=2"] + ["x"] * 13),
    }
    safe = for_spreadsheet(columns)
    assert list(safe) == ["'=x", "n", "k"]
    assert safe["'=x"].tolist() == [*(f"'{cell}" for cell in cells), *plain]
    assert safe["n"] is columns["n"]
    assert safe["k"].tolist()[:3] == ["-1", "'=2", "x"]


def test_only_csv_is_for_spreadsheets(tmp_path: Path) -> None:
    check_format(tmp_path / "a.csv", is_for_spreadsheet=True)
    for name in ("a.json", "a.parquet"):
        with pytest.raises(UsageError, match=r"--for-spreadsheet is for \.csv"):
            check_format(tmp_path / name, is_for_spreadsheet=True)
