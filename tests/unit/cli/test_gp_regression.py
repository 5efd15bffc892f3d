"""Gaussian process regression on the command line: chosen by itself, fitted, read, reported."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from mercer import GPRegressor, models
from mercer.cli.fitting import _warn_of_size

from .conftest import TINY


def write_curve(path: Path, *, n: int = 60) -> Path:
    """A wave along the first of two inputs, with noise of standard deviation 0.2."""
    rng = np.random.default_rng(2)
    a, b = rng.uniform(-2.0, 2.0, n), rng.uniform(-2.0, 2.0, n)
    y = 50.0 + np.sin(2.0 * a) + 0.2 * rng.normal(size=n)
    rows = [f"{a[i]:.5f},{b[i]:.5f},{y[i]:.5f}" for i in range(n)]
    path.write_text("\n".join(["a,b,y", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def curve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_curve(tmp_path_factory.mktemp("data") / "curve.csv")


def test_the_way_from_a_file_to_a_report(run, curve: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "m.mercer", tmp_path / "r.html"
    code, said, err = run(
        "fit", curve, "--target", "y", "--test-size", "0.25", *TINY, "--out", out, "--report", page
    )
    assert code == 0, err
    assert "model     gp, Gaussian process regression, averaged over hyperparameters (" in said
    assert "(auto)" in said
    assert "holds the standardised training rows" in said
    assert type(models.load(out)).__name__ == "GPRegressor"
    assert "Relevance of the inputs" in page.read_text()
    code, said, err = run("predict", out, curve)
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(said)))
    assert list(rows[0]) == ["row", "prediction", "std", "lower_90", "upper_90"]
    assert all(float(row["lower_90"]) < float(row["upper_90"]) for row in rows)
    assert "RMSE 0.1" in err or "RMSE 0.2" in err
    code, said, _ = run("inspect", out)
    assert code == 0
    assert "GPRegressor(" in said
    assert "holds training rows: yes" in said


def test_compare_sets_it_beside_the_others(run, curve: Path) -> None:
    code, out, err = run(
        "compare", curve, "--target", "y", "--models", "gp,dummy", "--cv", "2", *TINY, "--json"
    )
    assert code == 0, err
    names = [model["name"] for model in json.loads(out)["models"]]
    assert "mercer gp" in names


def test_above_5000_rows_auto_takes_another(run, tmp_path: Path) -> None:
    table = write_curve(tmp_path / "long.csv", n=5001)
    code, said, err = run(
        "fit", table, "--target", "y", "--test-size", "0.5", "--no-refit", *TINY,
        "--set", "n_frequencies=4",
    )  # fmt: skip
    assert code == 0, err
    assert "model     spectral" in said
    assert "auto: above 5000 rows gp takes too long" in said


def test_of_classes_rows_that_are_alike_count_once(run, tmp_path: Path) -> None:
    """Of numbers they do not: their targets differ."""
    rng = np.random.default_rng(0)
    cells = zip(*(rng.choice(list(each), 5200) for each in ("abc", "mf", "yn")), strict=True)
    lines = [",".join(row) for row in cells]
    table = tmp_path / "alike.csv"
    table.write_text("deck,sex,survived\n" + "\n".join(lines) + "\n")
    code, said, err = run("fit", table, "--target", "survived", "--test-size", "0.5", *TINY)
    assert code == 0, err
    assert "model     gp" in said
    assert "auto: 6 of 5200 rows differ in their inputs" in said


def test_d12_of_more_rows_than_it_is_for_some_are_chosen(run, tmp_path: Path) -> None:
    table = write_curve(tmp_path / "longer.csv", n=600)
    code, said, _ = run(
        "fit", table, "--target", "y", "--model", "gp", "--test-size", "0.1", "--no-refit",
        "--set", "max_rows=60", "--set", "n_inducing=None", *TINY,
    )  # fmt: skip
    assert code == 0
    assert "fitted to 60 of 540 rows" in said


@pytest.mark.parametrize(
    ("max_rows", "n", "is_warned"),
    [("auto", 10**5, False), (3000, 10**5, True), (3000, 1500, False), (500, 10**5, False)],
)
def test_it_is_said_where_the_rows_that_teach_take_long(
    max_rows: int | str, n: int, is_warned: bool
) -> None:
    session, entry = Mock(), models.choose_model("gp", "regression", 0, n)
    _warn_of_size(entry, GPRegressor(max_rows=max_rows), n, session)
    assert session.note.called == is_warned
    if is_warned:
        assert "3000 rows: the time of gp grows with their cube" in session.note.call_args.args[1]
