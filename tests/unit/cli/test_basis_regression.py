"""Sequential kernel regression on the command line: fitted, read, compared, reported."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

from mercer import SequentialKernelRegressor, models

from .test_gp_regression import write_curve

LITTLE = ("--set", "n_particles=12", "--set", "max_centres=6", "--set", "expected_centres=3")


@pytest.fixture(scope="module")
def curve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_curve(tmp_path_factory.mktemp("data") / "curve.csv")


def test_the_way_from_a_file_to_a_report(run, curve: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "m.mercer", tmp_path / "r.html"
    code, said, err = run(
        "fit", curve, "--target", "y", "--model", "basis", "--cv", "2", *LITTLE,
        "--out", out, "--report", page, "--checkpoint", tmp_path / "kept",
    )  # fmt: skip
    assert code == 0, err
    assert "12 weighted draws" in said
    assert "holds the standardised training rows" in said
    assert "no warnings: ESS" in said
    assert "chain" not in said
    model = models.load(out)
    assert type(model).__name__ == "SequentialKernelRegressor"
    assert model.feature_labels_ == ("a", "b")
    assert "One pass over the rows" in page.read_text()
    code, said, err = run("predict", out, curve)
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(said)))
    assert all(float(row["lower_90"]) < float(row["upper_90"]) for row in rows)
    code, said, _ = run("inspect", out)
    assert code == 0
    assert "draws     12 weighted draws" in said
    assert "holds training rows: yes" in said


def test_the_quick_fit_looks_at_as_many_rows_as_it_says(run, tmp_path: Path, monkeypatch) -> None:
    seen, fit = [], SequentialKernelRegressor.fit
    monkeypatch.setattr(
        SequentialKernelRegressor,
        "fit",
        lambda self, X, y: (seen.append(len(X)), fit(self, X, y))[1],
    )
    x = np.linspace(0.0, 1.0, 1000)
    rows = "\n".join(f"{a},{np.sin(9.0 * a) + 0.1 * np.cos(1e4 * a)}" for a in x)
    (tmp_path / "curve.csv").write_text(f"x,y\n{rows}\n")
    words = ["--target", "y", "--model", "basis", "--test-size", "0.1", "--no-refit", *LITTLE]
    code, said, err = run("fit", tmp_path / "curve.csv", *words)
    assert code == 0, err
    assert "at a quick setting (12 particles, 500 rows)" in said
    assert seen == [500, 900]


def test_lists_of_settings_come_back(run, curve: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    code, _, err = run(
        "fit", curve, "--target", "y", "--model", "basis", "--test-size", "0.3", *LITTLE,
        "--set", "forgetting=1,0.95", "--out", out,
    )  # fmt: skip
    assert code == 0, err
    assert list(models.load(out).forgetting) == [1, 0.95]


def test_compare_sets_it_beside_the_others(run, curve: Path) -> None:
    code, out, err = run(
        "compare", curve, "--target", "y", "--models", "basis,dummy", "--cv", "2", *LITTLE, "--json"
    )
    assert code == 0, err
    assert {row["name"] for row in json.loads(out)["models"]} == {"mercer basis", "mean only"}


def test_a_setting_of_others_is_refused(run, curve: Path) -> None:
    code, _, err = run(
        "fit", curve, "--target", "y", "--model", "basis", "--set", "n_draws=5", "--seed", "1"
    )
    assert code == 2
    assert "SequentialKernelRegressor has no such argument; it is one of --model gp" in err


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("step", "n_lags"),
    [
        ("trend", 24),
        ("walk", 3),
        pytest.param("trend", 3, marks=pytest.mark.slow),
        pytest.param("walk", 24, marks=pytest.mark.slow),
    ],
)
def test_a_series_that_drifts_is_followed(run, tmp_path: Path, step: str, n_lags: int) -> None:
    """Beyond the lags met so far all kernels are 0: the mean goes on, and intervals hold."""
    rng, path = np.random.default_rng(1), tmp_path / "series.csv"
    noise = rng.standard_normal(300)
    y = 0.05 * np.arange(300) + 0.1 * noise if step == "trend" else np.cumsum(noise)
    path.write_text("y\n" + "".join(f"{value:.6f}\n" for value in y))
    code, out, err = run(
        "stream", path, "--target", "y", "--lags", n_lags, "--interval", "0.9",
        "--set", "n_particles=30",
    )  # fmt: skip
    assert code == 0, err
    said = [json.loads(line) for line in out.splitlines()][100:]
    assert np.mean([each["lower"] <= each["target"] <= each["upper"] for each in said]) > 0.8
    errors = [each["prediction"] - each["target"] for each in said]
    assert np.std(errors) < 1.2 * np.std(np.diff(y[99:]))
