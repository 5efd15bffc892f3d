"""Sequential kernel classification on the command line: fitted, read, compared, reported."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from mercer import models
from support.streams import write_classes

LITTLE = ("--set", "n_particles=12", "--set", "max_candidates=8", "--drop", "name")


@pytest.fixture(scope="module", params=[2, 3])
def rows(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path_factory.mktemp("data")
    return write_classes(folder / "rows.csv", ["ash", "birch", "cedar"][: request.param])


def test_the_way_from_a_file_to_a_report(run, rows: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "m.mercer", tmp_path / "r.html"
    code, said, err = run(
        "fit", rows, "--target", "kind", "--model", "basis", "--cv", "2", *LITTLE,
        "--out", out, "--report", page, "--checkpoint", tmp_path / "kept",
    )  # fmt: skip
    assert code == 0, err
    assert "12 weighted draws" in said
    assert "holds the standardised training rows" in said
    assert "chain" not in said
    model = models.load(out)
    assert type(model).__name__ == "SequentialKernelClassifier"
    assert model.feature_labels_ == ("a", "b")
    assert "One pass over the rows" in page.read_text()
    code, said, err = run("predict", out, rows)
    assert code == 0, err
    answers = list(csv.DictReader(io.StringIO(said)))
    names = [f"proba_{label}" for label in model.classes_]
    assert list(answers[0]) == ["row", "prediction", *names]
    assert all(sum(float(row[name]) for name in names) == pytest.approx(1.0) for row in answers)
    code, said, _ = run("inspect", out)
    assert code == 0
    assert "draws     12 weighted draws" in said
    assert "holds training rows: yes" in said


def test_compare_sets_it_beside_the_others(run, rows: Path) -> None:
    code, out, err = run(
        "compare", rows, "--target", "kind", "--models", "basis,dummy", "--cv", "2", *LITTLE,
        "--json",
    )  # fmt: skip
    assert code == 0, err
    assert {row["name"] for row in json.loads(out)["models"]} == {
        "mercer basis", "class shares only"
    }  # fmt: skip
