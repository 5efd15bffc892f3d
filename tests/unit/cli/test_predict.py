from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from mercer.data.row_writer import writing_rows

from .conftest import write_csv


def test_csv_to_standard_output_and_scores_beside(run, model: Path, table: Path) -> None:
    code, out, err = run("predict", model, table)
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 60
    assert list(rows[0]) == [
        "row", "prediction", "proba_ill", "proba_well", "latent_mean", "latent_sd"
    ]  # fmt: skip
    assert float(rows[0]["proba_ill"]) + float(rows[0]["proba_well"]) == pytest.approx(1.0)
    assert err.startswith("scores    60 rows: error")
    assert "it seems to have learned from this table (same name, as many rows)" in err


def test_columns_are_matched_by_name(run, model: Path, table: Path, tmp_path: Path) -> None:
    other = write_csv(tmp_path / "wide.csv", extra=True)
    _, plain, _ = run("predict", model, table)
    code, wide, err = run("predict", model, other, "--id", "name")
    assert code == 0
    assert [line.split(",")[1:] for line in plain.splitlines()] == [
        line.split(",")[1:] for line in wide.splitlines()
    ]
    assert wide.splitlines()[1].startswith("p000,")
    code, _, err = run("predict", model, other)
    assert "does not use: 'name'" in err


def test_an_id_that_is_named_like_a_prediction_is_refused(run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b,prediction\n1,2,x\n")
    code, out, err = run("predict", model, path, "--id", "prediction")
    assert (code, out) == (2, "")
    assert "rename it" in err


def test_d6_a_missing_column_is_named(run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,bb\n1,2\n")
    code, out, err = run("predict", model, path)
    assert (code, out) == (3, "")
    assert "column 'b' is missing" in err


def test_d7_labels_that_were_not_in_training_are_not_scored(
    run, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b,label\n1,2,well\n0,1,dead\n0,0,ill\n")
    code, out, err = run("predict", model, path)
    assert code == 0
    assert out.count("\n") == 4
    assert "1 of 3 rows have a label that was not in training ('dead')" in err
    assert "scores    2 rows" in err


@pytest.mark.parametrize("last", ["unknown", "Maybe"])
def test_labels_that_look_like_numbers_or_booleans_are_scored(
    run, tmp_path: Path, last: str
) -> None:
    """Some classes only, which could be numbers, or true and false, in the new file."""
    words = {"unknown": ("0", "1", "unknown"), "Maybe": ("True", "False", "Maybe")}[last]
    lines = [f"{k % 3}.{k},{words[k % 3]}" for k in range(30)]
    (tmp_path / "t.csv").write_text("\n".join(["a,y", *lines]))
    few = [line for line in lines if last not in line]
    (tmp_path / "new.csv").write_text("\n".join(["a,y", *few]))
    given = ("--model", "gp", "--set", "inference=map", "--set", "kernel=rbf", "--target", "y")
    out, new = tmp_path / "m.mercer", tmp_path / "new.csv"
    assert run("fit", tmp_path / "t.csv", *given, "--test", new, "--out", out)[0] == 0
    _, _, err = run("predict", out, new)
    assert "scores    20 rows" in err
    assert "not scored" not in err


def test_rows_without_a_target_are_predicted(run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,b\n1,2\n")
    code, out, err = run("predict", model, path)
    assert (code, err) == (0, "")
    assert out.count("\n") == 2


def test_files_by_suffix(run, model: Path, table: Path, tmp_path: Path) -> None:
    for suffix in ("csv", "json"):
        code, out, _ = run("predict", model, table, "--out", tmp_path / f"p.{suffix}")
        assert (code, out) == (0, "")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "p.csv").read_text())))
    found = json.loads((tmp_path / "p.json").read_text())
    assert [float(row["latent_mean"]) for row in rows] == [row["latent_mean"] for row in found]
    code, _, err = run("predict", model, table, "--out", tmp_path / "p.xlsx")
    assert code == 2
    assert ".parquet" in err


def test_parquet(run, model: Path, table: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert run("predict", model, table, "--out", tmp_path / "p.parquet")[0] == 0
    assert parquet.read_table(tmp_path / "p.parquet").num_rows == 60


def test_json(run, model: Path, table: Path) -> None:
    code, out, _ = run("predict", model, table, "--json")
    result = json.loads(out)
    assert code == 0
    assert len(result["predictions"]) == 60
    assert result["evaluation"]["entries"][0]["scores"]["n_rows"] == 60


def test_a_model_with_label_noise_says_more_than_the_recorded_label(
    run, sphere_model: Path, suspects: Path
) -> None:
    code, out, err = run("predict", sphere_model, suspects, "--id", "patient")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == [
        "patient", "prediction", "proba_no", "proba_yes", "clean_no", "clean_yes", "vote_margin"
    ]  # fmt: skip
    for row in rows:
        assert float(row["clean_no"]) + float(row["clean_yes"]) == pytest.approx(1.0)
        # Noise draws a probability towards a half.
        assert abs(float(row["proba_no"]) - 0.5) <= abs(float(row["clean_no"]) - 0.5) + 1e-9
        assert 0.0 <= float(row["vote_margin"]) <= 1.0
    assert err.startswith("scores    40 rows: error")


def test_a_prediction_does_not_depend_on_other_rows(run, tmp_path: Path, monkeypatch) -> None:
    """Codes that look like numbers in some files only; read whole, or block by block."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    codes = [("01234", "00501", "AB1", "CD2")[k % 4] for k in range(40)]
    lines = [f"{code},{k},{7 * (k % 4) + k % 3}.5" for k, code in enumerate(codes)]
    (tmp_path / "t.csv").write_text("\n".join(["code,k,y", *lines]))
    (tmp_path / "new.csv").write_text("\n".join(["code,k,y", *lines[:2]]))
    model, given = tmp_path / "m.mercer", ("--set", "inference=map", "--set", "kernel=rbf")
    words = ("--target", "y", "--drop", "k", "--model", "gp", "--test-size", "0.5", *given)
    assert run("fit", tmp_path / "t.csv", *words, "--out", model)[0] == 0

    def means(path: Path) -> list[float]:
        lines = list(csv.DictReader(io.StringIO(run("predict", model, path)[1])))
        return [float(line["prediction"]) for line in lines[:2]]

    expected = pytest.approx(means(tmp_path / "t.csv"), rel=1e-6)
    assert means(tmp_path / "new.csv") == expected
    monkeypatch.setattr("mercer.cli.out_of_core.LARGE_BYTES", 0)
    assert means(tmp_path / "new.csv") == expected


def test_a_class_that_csv_reads_as_missing_is_said(run, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    table = {"a": np.arange(20.0), "y": np.where(np.arange(20) < 10, "NA", "DE").astype(object)}
    with writing_rows(tmp_path / "t.parquet") as writer:
        writer.append(table)
    out, given = tmp_path / "m.mercer", ("--set", "inference=map", "--set", "kernel=rbf")
    words = ("--target", "y", "--model", "gp", "--cv", "2", *given)
    assert run("fit", tmp_path / "t.parquet", *words, "--out", out)[0] == 0
    for suffix, is_said in (("csv", True), ("parquet", False), ("json", False)):
        path = tmp_path / f"p.{suffix}"
        _, _, err = run("predict", out, tmp_path / "t.parquet", "--out", path)
        assert (
            "class 'NA' reads as missing in CSV without --null-values ''; .parq" in err
        ) == is_said
    assert "class 'NA'" in run("predict", out, tmp_path / "t.parquet")[2]


def test_words_for_a_missing_value(run, tmp_path: Path) -> None:
    """None is a class and NA a level where --null-values says so; the model remembers it."""
    kinds = [("EU", "some"), ("NA", "None")] * 20
    rows = [f"{land},{k % 2 + k / 50},{tax}" for k, (land, tax) in enumerate(kinds)]
    table, saved = tmp_path / "t.csv", tmp_path / "m.mercer"
    table.write_text("\n".join(["land,x,tax", *rows, "EU,-9,some"]))
    how = "--target", "tax", "--model", "gp", "--set", "inference=map", "--test-size", "0.25"
    words = "--null-values", "-9", "--missing", "impute"
    code, out, _ = run("fit", table, *how, *words, "--out", saved)
    assert code == 0
    assert "1 of 41 rows have a missing value" in out
    code, out, _ = run("predict", saved, table, "--json")
    assert {row["prediction"] for row in json.loads(out)["predictions"]} == {"None", "some"}
    code, _, err = run("fit", table, *how)
    assert code == 3
    assert "where that is a class or level, learn with --null-values ''" in err


def test_words_for_a_missing_value_one_by_one(run, tmp_path: Path) -> None:
    """All columns that cannot be read are told at once, and the option may be repeated."""
    rows = [f"{k + 0.5} €;{k}.01.2024;{'ab'[k % 2]}" for k in range(1, 31)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["price;day;y", *rows, "k.A.;1.02.2024;a", "2.5 €;-;b"]))
    how = "--target", "y", "--model", "gp", "--set", "inference=map", "--test-size", "0.25"
    how += "--out", tmp_path / "m.mercer"
    code, _, err = run("fit", table, *how)
    assert code == 3
    assert "column 'price': 'k.A.' is not a number" in err
    assert err.rstrip().endswith("nor can 'day' be read")
    told = json.loads(run("inspect", table, "--json")[1])["notes"]
    assert [words.partition(",")[0] for words in told] == [
        "column 'price': 'k.A.' is not a number", "column 'day': '-' is not a date",
    ]  # fmt: skip
    words = "--null-values", "k.A.", "--null-values", "-", "--missing", "impute"
    assert run("fit", table, *how, *words)[0] == 0


def test_words_that_predictions_read_as_missing_are_said(run, tmp_path: Path) -> None:
    words = "read as missing: where that is a class or level, learn with --null-values ''"
    table, new = tmp_path / "t.csv", tmp_path / "new.csv"
    rows = [f"{k % 2 + k / 50},{('some', 'more')[k % 2]},{('EU', 'AS')[k % 2]}" for k in range(40)]
    table.write_text("\n".join(["x,tax,land", *rows]))
    new.write_text("\n".join(["x,tax,land", *rows]).replace("more", "None").replace("AS", "NA"))
    how = "--target", "land", "--set", "inference=map", "--set", "kernel=rbf", "--cv", "2"
    for missing, code in (("impute", 0), ("error", 3)):
        saved = tmp_path / f"{missing}.mercer"
        assert run("fit", table, *how, "--missing", missing, "--out", saved)[0] == 0
        found, _, err = run("predict", saved, new)
        said = " ".join(err.split())
        assert found == code
        assert f"'None' in it is {words}" in said
        assert (f"not scored; 'NA' in it is {words}" in said) == (code == 0)
