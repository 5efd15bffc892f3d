from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from mercer.models import read_model

from .conftest import write_csv


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_csv(tmp_path_factory.mktemp("explain") / "wide.csv", extra=True)


def test_contributions_are_shown_and_written(run, model: Path, wide: Path, tmp_path: Path) -> None:
    out = tmp_path / "e.csv"
    code, said, err = run("explain", model, wide, "--row", 3, "--row", 8, "--out", out)
    assert code == 0
    assert "does not use: 'name'" in err
    assert "row       row 3" in said
    assert "probability of 'well'" in said
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [row["row"] for row in rows] == ["3", "3", "8", "8"]
    first = {row["input"]: row for row in rows[:2]}
    frame = list(csv.DictReader(wide.read_text().splitlines()))
    assert float(first["a"]["value"]) == float(frame[2]["a"])
    assert float(first["a"]["lower_90"]) <= float(first["a"]["contribution"])


def test_json_adds_up_and_a_row_is_found_by_its_id(run, model: Path, wide: Path) -> None:
    words = ["--id", "name", "--row", "p004", "--label", "ill", "--json"]
    code, said, _ = run("explain", model, wide, *words)
    assert code == 0
    (row,) = json.loads(said)["rows"]
    assert (row["row"], row["class"]) == ("5", "ill")
    assert {each["name"] for each in row["contributions"]} == {"p004"}
    total = sum(each["contribution"] for each in row["contributions"])
    assert total == pytest.approx(row["prediction"] - row["mean_prediction"], abs=1e-9)
    frame = list(csv.DictReader(wide.read_text().splitlines()))
    X = [[float(frame[4]["a"]), float(frame[4]["b"])]]
    proba = read_model(model).estimator.predict_proba(X)
    assert row["prediction"] == pytest.approx(proba[0, 0])


def test_the_same_as_from_python(run, model: Path, table: Path) -> None:
    _, said, _ = run("explain", model, table, "--row", 1, "--json")
    frame = list(csv.DictReader(table.read_text().splitlines()))
    X = np.array([[float(row["a"]), float(row["b"])] for row in frame])
    found = read_model(model).estimator.explain(X[:1], background=X[1:])
    (row,) = json.loads(said)["rows"]
    own = dict(zip(found.names, found.contributions[0], strict=True))
    for each in row["contributions"]:
        assert each["contribution"] == pytest.approx(own[each["input"]], abs=1e-12)


def test_a_row_is_explained_alike_beside_others(run, model: Path, table: Path) -> None:
    _, said, _ = run("explain", model, table, "--row", 4, "--json")
    alone = json.loads(said)["rows"]
    _, said, _ = run("explain", model, table, "--row", 9, "--row", 4, "--row", 4, "--json")
    assert json.loads(said)["rows"][1:] == alone * 2


def test_of_few_rows_the_centre_of_training_is_the_background(
    run, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "one.csv"
    path.write_text("a,b\n2.5,0.3\n")
    code, said, _ = run("explain", model, path, "--row", 1)
    assert code == 0
    assert "the centre of the training rows has" in said


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--row", "61"], "there is no row '61'; rows that can be used go from 1 to 60\n"),
        (
            ["--row", "p004"],
            "there is no row 'p004'; rows that can be used go from 1 to 60; with --id ",
        ),
        (["--row", "p00x", "--id", "name"], "did you mean 'p0"),
        (["--row", "0.3", "--id", "same"], "names 60 rows"),
        (["--row", "1", "--label", "dead"], "the classes are ill, well"),
        (["--row", "1", "--id", "value"], "rename it"),
        ([], "Missing option '--row'"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    run, model: Path, wide: Path, tmp_path: Path, words: list[str], hint: str
) -> None:
    path = tmp_path / "d.csv"
    lines = wide.read_text().splitlines()
    rows = [f"{line},0.3,{i}" for i, line in enumerate(lines[1:])]
    path.write_text("\n".join([f"{lines[0]},same,value", *rows]))
    code, _, err = run("explain", model, path, *words)
    assert code == 2
    assert hint in err


def test_a_missing_column_is_named(run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,bb\n1,2\n")
    code, _, err = run("explain", model, path, "--row", "1")
    assert code == 3
    assert "'b'" in err


def test_rows_of_several_files_are_named_by_file(run, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for name, seed in (("a.csv", 1), ("b.csv", 2)):
        write_csv(folder / name, n=8, seed=seed)
    code, _, err = run("explain", model, folder, "--row", "3")
    assert code == 2
    assert "FILE:NUMBER" in err
    known = err[err.index("from ") + 5 :].split(" to ")[0] if "from " in err else ""
    name = known.rpartition(":")[0] or f"{folder}/a.csv"
    code, said, err = run("explain", model, folder, "--row", f"{name}:3")
    assert (code, err) == (0, "")
    assert "row 3" in said


def test_rows_of_a_table_with_an_index_are_found_by_entry_and_by_number(
    run, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "indexed.csv"
    lines = [f"k{i},{i / 7:.3f},{i % 3}" for i in range(20)]
    path.write_text(",a,b\n" + "\n".join(lines) + "\n")
    _, named, err = run("explain", model, path, "--row", "k4", "--json")
    code, numbered, _ = run("explain", model, path, "--row", "5", "--json")
    assert code == 0, err
    assert json.loads(named) == json.loads(numbered)


def test_a_number_is_a_row_before_it_is_an_entry_of_the_index(
    run, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "indexed.csv"
    lines = [f"{i},{i / 7:.3f},{i % 3}" for i in range(20)]
    path.write_text(",a,b\n" + "\n".join(lines) + "\n")
    for words in (["--row", "5"], ["--id", "Unnamed: 0", "--row", "4"], ["--row", "0"]):
        code, said, err = run("explain", model, path, *words, "--json")
        assert code == 0, err
        assert json.loads(said)["rows"][0]["row"] == ("1" if "0" in words else "5")
        is_open = words == ["--row", "5"]
        assert ("with --id 'Unnamed: 0' it is the row of that name" in err) == is_open
