"""Several targets of one model: fit, predict, inspect, and refusals."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import mercer

OWN = [
    *("--set", "n_frequencies=8", "--set", "n_draws=10", "--set", "n_warmup=10"),
    *("--set", "n_chains=1", "--jobs", "1"),
]


@pytest.fixture(scope="module")
def sensors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sensors") / "sensors.csv"
    rng = np.random.default_rng(1)
    t = rng.uniform(-3.0, 3.0, 60)
    north = 5.0 + np.sin(2.0 * t) + 0.1 * rng.standard_normal(60)
    east = 100.0 * np.cos(2.0 * t) + 10.0 * rng.standard_normal(60)
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["t", "north", "east", "kind", "up,down"])
        for i in range(60):
            cells = (t[i], north[i], east[i])
            writer.writerow([*(f"{v:.5f}" for v in cells), "ab"[i % 2], f"{north[i]:.5f}"])
    return path


def fit(sensors: Path, *more: object) -> list[object]:
    drop = ["--drop", "kind", "--drop", "up,down"]
    return ["fit", sensors, "--target", "north,east", *drop, *OWN, *more]


@pytest.mark.parametrize("how", [("--cv", 2), ("--test-size", 0.25, "--no-refit")])
def test_fit_and_predict(run, sensors: Path, tmp_path: Path, how: tuple) -> None:
    out = tmp_path / "m.mercer"
    code, said, _ = run(*fit(sensors, *how, "--out", out))
    assert code == 0
    assert "north, east: one kernel" in said
    assert said.count("mercer spectral") == said.count("verdict") == 2
    model = mercer.load(out)
    assert model.output_names_ == ("north", "east")
    code, said, noted = run("predict", out, sensors)
    assert code == 0
    assert "'north'" not in noted
    rows = list(csv.DictReader(io.StringIO(said)))
    names = ("prediction", "std", "lower_90", "upper_90")
    assert list(rows[0]) == ["row", *(f"{n}_{k}" for k in ("north", "east") for n in names)]
    mean = np.array([[float(row[f"prediction_{k}"]) for k in ("north", "east")] for row in rows])
    given = np.loadtxt(sensors, delimiter=",", skiprows=1, usecols=(0, 1, 2))
    np.testing.assert_allclose(mean, model.predict(given[:, :1]), rtol=1e-10)
    assert np.abs(mean - given[:, 1:]).mean(axis=0)[1] < 60.0
    code, said, _ = run("inspect", out)
    assert code == 0
    assert "target 'north,east'" in said


def test_scores_as_json(run, sensors: Path) -> None:
    code, said, _ = run(*fit(sensors, "--test-size", 0.25, "--json"))
    assert code == 0
    outputs = json.loads(said)["outputs"]
    assert list(outputs) == ["north", "east"]
    for each in outputs.values():
        model, *others = each["entries"]
        assert not model["is_baseline"]
        assert all(other["is_baseline"] for other in others)
        assert model["scores"]["rmse"] > 0.0


def test_a_column_with_a_comma_is_one_target(run, sensors: Path) -> None:
    drop = ["--drop", "kind", "--drop", "north", "--drop", "east"]
    words = ["fit", sensors, "--target", "up,down", *drop, *OWN, "--model", "spectral"]
    code, said, _ = run(*words, "--test-size", 0.25, "--json")
    assert code == 0
    assert "outputs" not in json.loads(said)


@pytest.mark.parametrize(
    ("target", "more", "words"),
    [
        ("north,north", [], "names a column twice"),
        ("north,west", [], "no column 'west'"),
        ("north,kind", [], "'kind'"),
        ("north,east", ["--model", "gp"], "--model spectral"),
        ("north,east", ["--task", "classification"], "several targets are numbers"),
        ("north,east", ["--report", "r.html"], "--report is of one target"),
        ("north,east", ["--set", "noise=student_t"], "several outputs have normal noise"),
    ],
)
def test_what_is_refused(run, sensors: Path, target: str, more: list, words: str) -> None:
    code, _, said = run("fit", sensors, "--target", target, *OWN, *more)
    assert code == 2 or code == 3
    assert words in said


def test_targets_missing_in_different_rows(run, sensors: Path, tmp_path: Path) -> None:
    lines = sensors.read_text().splitlines()
    cells = lines[5].split(",")
    lines[5] = ",".join([cells[0], "", *cells[2:]])
    path = tmp_path / "gaps.csv"
    path.write_text("\n".join(lines) + "\n")
    code, _, said = run(*fit(path, "--missing", "drop"))
    assert code != 0
    assert "are missing in different rows" in said


@pytest.mark.parametrize(
    "command", [["query"], ["explain", "--row", 1], ["report", "--out", "never.html"]]
)
def test_commands_of_one_target(run, sensors: Path, tmp_path: Path, command: list) -> None:
    out = tmp_path / "m.mercer"
    assert run(*fit(sensors, "--test-size", 0.25, "--out", out))[0] == 0
    name, *more = command
    code, _, said = run(name, out, sensors, *more)
    assert code != 0
    assert "a model of 2 outputs answers this of one of them" in said
