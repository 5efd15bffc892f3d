from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mercer import GPRegressor
from mercer.models import read_model


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve rows from one cluster to the other; the columns in another order, and one more."""
    path = tmp_path_factory.mktemp("pool") / "pool.csv"
    rows = [f"q{i:02},0.{i},{5 * i / 11:.3f},blue" for i in range(12)]
    path.write_text("patient,b,a,colour\n" + "\n".join(rows) + "\n")
    return path


def test_rows_come_with_information_and_probabilities(
    run, sphere_model: Path, pool: Path, tmp_path: Path
) -> None:
    out = tmp_path / "q.csv"
    code, said, err = run("query", sphere_model, pool, "-n", 3, "--id", "patient", "--out", out)
    assert code == 0
    assert "pool      " in said
    assert "12 rows" in said
    assert "does not use: 'colour'" in err
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert list(rows[0]) == ["row", "patient", "information_bits", "proba_no", "proba_yes"]
    assert [f"q{int(row['row']) - 1:02}" for row in rows] == [row["patient"] for row in rows]
    estimator = read_model(sphere_model).estimator
    i = np.arange(12)
    X = np.column_stack([(5 * i / 11).round(3), [float(f"0.{k}") for k in i]])
    positions = [int(row["row"]) - 1 for row in rows]
    assert positions == estimator.query(X, 3).tolist()
    bits = estimator.information(X)
    assert [float(row["information_bits"]) for row in rows] == pytest.approx(bits[positions])
    assert positions[0] == bits.argmax()
    second = estimator.predict_proba(X)[positions, 1]
    assert [float(row["proba_yes"]) for row in rows] == pytest.approx(second)


def test_json(run, sphere_model: Path, pool: Path) -> None:
    code, said, _ = run("query", sphere_model, pool, "-n", 2, "--json")
    found = json.loads(said)
    assert code == 0
    assert found["n_pool"] == 12
    assert [list(row) for row in found["queries"]] == 2 * [
        ["row", "information_bits", "proba_no", "proba_yes"]
    ]


@pytest.mark.parametrize(("n_rows", "n_chosen"), [(3, 3), (12, 10)])
def test_ten_rows_or_all_of_fewer(
    run, sphere_model: Path, pool: Path, tmp_path: Path, n_rows: int, n_chosen: int
) -> None:
    some, out = tmp_path / "some.csv", tmp_path / "q.csv"
    some.write_text("\n".join(pool.read_text().splitlines()[: n_rows + 1]) + "\n")
    code, said, _ = run("query", sphere_model, some, "--out", out)
    assert code == 0
    assert f"q.csv, {n_chosen} rows" in said
    assert len(out.read_text().splitlines()) == n_chosen + 1


@pytest.mark.parametrize(
    ("words", "code", "hint"),
    [
        (["-n", "13"], 2, "the pool has 12 usable rows"),
        (["-n", "0"], 2, "-n"),
        (["--id", "proba_no"], 2, "rename it"),
        (["--id", "name"], 3, "'name'"),
        (["--out", "q.txt"], 2, ".parquet"),
    ],
)
def test_bad_options(
    run, sphere_model: Path, pool: Path, words: list[str], code: int, hint: str
) -> None:
    found, said, err = run("query", sphere_model, pool, *words)
    assert (found, said) == (code, "")
    assert err.splitlines()[-1].startswith("mercer")
    assert hint in err


def test_a_pool_without_a_column_that_is_needed(run, sphere_model: Path, tmp_path: Path) -> None:
    (tmp_path / "pool.csv").write_text("a,c\n1,2\n")
    code, _, err = run("query", sphere_model, tmp_path / "pool.csv", "-n", 1)
    assert code == 3
    assert "column 'b' is missing" in err


def test_a_model_of_another_method(run, model: Path, pool: Path) -> None:
    code, said, _ = run("query", model, pool, "-n", 2, "--json")
    found = json.loads(said)["queries"]
    assert code == 0
    assert [list(row)[:2] for row in found] == 2 * [["row", "information_bits"]]


def test_numbers(run, pool: Path, tmp_path: Path) -> None:
    """The first is where the function is least known: farthest from the rows that it knows."""
    a = np.linspace(0.0, 2.5, 12)
    frame = pd.DataFrame({"a": a, "b": np.cos(9.0 * a)})
    saved = tmp_path / "numbers.mercer"
    GPRegressor(inference="map", random_state=0).fit(frame, np.sin(3.0 * a)).save(saved)
    code, said, _ = run("query", saved, pool, "-n", 3, "--json")
    found = json.loads(said)["queries"]
    assert code == 0
    assert [list(row) for row in found] == 3 * [["row", "prediction", "std"]]
    assert found[0]["row"] == 12
    assert [row["std"] for row in found] == sorted((row["std"] for row in found), reverse=True)


def test_what_is_no_model_is_refused(run, pool: Path) -> None:
    assert run("query", pool, pool)[0] == 4
