"""BaNK for classes on the command line: fitted, read, compared, reported."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from mercer import models
from support.streams import write_classes

LITTLE = (
    "--set", "n_frequencies=8", "--set", "n_draws=6", "--set", "n_warmup=4", "--drop", "name"
)  # fmt: skip


@pytest.fixture(scope="module", params=[2, 3])
def rows(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path_factory.mktemp("data")
    return write_classes(folder / "rows.csv", ["ash", "birch", "cedar"][: request.param])


@pytest.mark.one_in(2)
def test_the_way_from_a_file_to_a_report(run, rows: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "m.mercer", tmp_path / "r.html"
    code, said, err = run(
        "fit", rows, "--target", "kind", "--model", "spectral", "--cv", "2", *LITTLE,
        "--out", out, "--report", page, "--checkpoint", tmp_path / "kept",
    )  # fmt: skip
    assert code == 0, err
    model = models.load(out)
    assert type(model).__name__ == "BaNKClassifier"
    assert model.feature_labels_ == ("a", "b")
    assert "Classification with a learned kernel" in page.read_text()
    code, said, err = run("predict", out, rows)
    assert code == 0, err
    answers = list(csv.DictReader(io.StringIO(said)))
    names = [f"proba_{label}" for label in model.classes_]
    more = ["latent_mean", "latent_sd"] if len(names) == 2 else []
    assert list(answers[0]) == ["row", "prediction", *names, *more]
    assert all(sum(float(row[name]) for name in names) == pytest.approx(1.0) for row in answers)
    code, said, _ = run("inspect", out)
    assert code == 0
    assert "holds training rows: no" in said


@pytest.mark.one_in(2)
def test_compare_sets_it_beside_the_others(run, rows: Path) -> None:
    code, out, err = run(
        "compare", rows, "--target", "kind", "--models", "spectral,dummy", "--cv", "2", *LITTLE,
        "--json",
    )  # fmt: skip
    assert code == 0, err
    assert {row["name"] for row in json.loads(out)["models"]} == {
        "mercer spectral", "class shares only"
    }  # fmt: skip
