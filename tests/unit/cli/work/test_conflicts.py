from __future__ import annotations

from pathlib import Path

import pytest

from mercer.cli.options import TableOptions
from mercer.cli.tables import TrainingTable, conflicting_rows, read_training, say_conflicts


def table_of(path: Path, *rows: str) -> TrainingTable:
    path.write_text("a,b,y\n" + "\n".join(rows) + "\n")
    return read_training(str(path), TableOptions("y", "auto", (), None, None, "drop"))


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (("1,2,x", "1,3,y", "2,2,x"), None),
        (("1,2,x", "1,2,x", "3,3,y"), None),
        (("9,9,y", "1,2,x", "1,2,x", "1,2,y"), (1, 3, 3)),
        (("1,2,x", "5,5,x", "5,5,z", "1,2,y", "0,0,y"), (1, 2, 4)),
    ],
)
def test_the_first_pair_is_found(tmp_path: Path, rows: tuple[str, ...], found: object) -> None:
    assert conflicting_rows(table_of(tmp_path / "d.csv", *rows)) == found


def test_rows_are_named_by_their_place_in_the_file(tmp_path: Path) -> None:
    table = table_of(tmp_path / "d.csv", ",2,x", "1,2,x", "3,,x", "1,2,y")
    assert "2 rows have" in say_conflicts(table)
    assert "rows 2 and 4" in say_conflicts(table)
    assert say_conflicts(table_of(tmp_path / "e.csv", "1,2,x", "2,2,y")) == ""
