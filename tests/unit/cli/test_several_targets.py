"""Several targets of one model: fit, predict, inspect, and refusals."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer.cli import out_of_core, tables
from mercer.cli.terminal import evaluation_json
from mercer.data.tables import read_frame
from mercer.errors import ModelFileError
from mercer.estimation import model_file
from mercer.models import read_model
from mercer.posterior.container import read_container, write_container
from support.field_edits import edits_of

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


@pytest.fixture(scope="module")
def quick_start() -> None:
    """Folds in other processes have the start as it is."""


def fit(sensors: Path, *more: object) -> list[object]:
    drop = ["--drop", "kind", "--drop", "up,down"]
    return ["fit", sensors, "--target", "north,east", *drop, *OWN, *more]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("how", [("--cv", 2), ("--test-size", 0.25, "--no-refit")])
def test_fit_and_predict(run, sensors: Path, tmp_path: Path, how: tuple) -> None:
    out = tmp_path / "m.mercer"
    code, said, _ = run(*fit(sensors, *how, "--out", out))
    assert code == 0
    assert "north, east: one kernel" in said
    assert said.count("mercer spectral") == said.count("verdict") == 2
    assert "as asked" not in said.replace("the fit as asked", "")
    assert "the one that learns several targets" in said
    model = mercer.load(out)
    assert model.output_names_ == ("north", "east")
    code, said, noted = run("predict", out, sensors)
    assert code == 0
    assert "'north'" not in noted
    assert "north: 60 rows: RMSE" in noted
    assert "east: 60 rows: RMSE" in noted
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
    n_held = 60 if how[0] == "--cv" else 15
    assert all(f"{name}: {n_held} rows: RMSE" in said for name in ("north", "east"))
    code, said, _ = run("inspect", out, "--json")
    assert list(json.loads(said)["outputs"]) == ["north", "east"]
    code, _, noted = run("predict", out, sensors, "--json")
    assert code == 0


@pytest.mark.parametrize("how", [["--no-refit"], []])
def test_a_quick_setting_first(run, sensors: Path, how: list) -> None:
    words = fit(sensors, "--test-size", 0.25, *how)
    words[words.index("n_draws=10")] = "n_draws=12"  # the quickest has 10
    code, said, _ = run(*words)
    assert code == 0
    assert re.findall(r"at first +(\w+): ", said) == ["north", "east"]


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
        ("north,kind", [], "'kind': 'a' is not a number; several targets are numbers: leave this "),
        ("north,east", ["--model", "gp"], "spectral learns several"),
        ("north,east", ["--task", "classification"], "several targets are numbers"),
        ("north,east", ["--drop", "east"], "--drop 'east' is the target"),
        ("north,east", ["--id", "east"], "cannot be --id"),
        ("north,east", ["--set", "noise=student_t"], "several outputs have normal noise"),
    ],
)
def test_what_is_refused(run, sensors: Path, target: str, more: list, words: str) -> None:
    code, _, said = run("fit", sensors, "--target", target, *OWN, *more)
    assert code == 2 or code == 3
    assert words in said


def with_gaps(sensors: Path, path: Path) -> Path:
    """Row 5 without its north, row 9 without its east."""
    lines = sensors.read_text().splitlines()
    for row, column in ((5, 1), (9, 2)):
        cells = lines[row].split(",")
        cells[column] = ""
        lines[row] = ",".join(cells)
    path.write_text("\n".join(lines) + "\n")
    return path


def test_rows_that_lack_a_target_are_left_out(run, sensors: Path, tmp_path: Path) -> None:
    path, out = with_gaps(sensors, tmp_path / "gaps.csv"), tmp_path / "m.mercer"
    code, _, said = run(*fit(path))
    assert code != 0
    assert "the target is missing" in said
    how = ("--missing", "impute", "--test", path, "--out", out)
    code, said, _ = run(*fit(path, *how))
    assert code == 0
    assert "2 of 60 rows lack a target and were dropped" in said
    assert "2 of 60 rows have no target and are not scored" in said
    assert "58 rows of" in said
    code, _, noted = run("predict", out, path)
    assert code == 0
    assert "north: 1 of 60 rows have no target and are not scored" in noted
    assert "east: 59 rows: RMSE" in noted


def test_the_table_is_read_once(run, sensors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []

    def read(name: str, **given: object) -> object:
        names.append(name)
        return read_frame(name, **given)

    monkeypatch.setattr(tables, "read_frame", read)
    assert run(*fit(sensors, "--test-size", 0.25))[0] == 0
    assert names == [str(sensors)]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(sensors.read_bytes())))
    code, said, _ = run(*fit(Path("-"), "--test-size", 0.25))
    assert code == 0
    assert "standard input: 60 rows" in said


def test_each_target_as_it_is_written(run, tmp_path: Path) -> None:
    """Of the second a decimal comma and thousands: as in training, so where it is scored."""
    path, out = tmp_path / "prices.csv", tmp_path / "m.mercer"
    rng = np.random.default_rng(0)
    rows = [
        (x, f"{x + 0.1 * e:.3f}", f"$1,{500 + 20 * x + e:.1f}") for x, e in rng.normal(size=(40, 2))
    ]
    path.write_text("x,a,b\n" + "".join(f'{x:.4f},{a},"{b}"\n' for x, a, b in rows))
    words = ["fit", path, "--target", "a,b", *OWN, "--test", path, "--out", out]
    assert run(*words)[0] == 0
    code, _, noted = run("predict", out, path)
    assert code == 0
    assert "a: 40 rows: RMSE" in noted
    assert "b: 40 rows: RMSE" in noted


def test_block_by_block(run, sensors: Path, tmp_path: Path, monkeypatch) -> None:
    """The predictions are the same bits, and each target is scored."""
    out = tmp_path / "m.mercer"
    assert run(*fit(sensors, "--test-size", 0.25, "--out", out))[0] == 0
    _, whole, _ = run("predict", out, sensors)
    monkeypatch.setattr(out_of_core, "LARGE_BYTES", 0)
    code, said, noted = run("predict", out, sensors)
    assert (code, said) == (0, whole)
    assert "north: 60 rows: RMSE" in noted
    assert "east: 60 rows: RMSE" in noted


def test_a_checkpoint_knows_all_targets(run, sensors: Path, tmp_path: Path) -> None:
    words = ["--test-size", 0.25, "--checkpoint", tmp_path / "state"]
    assert run(*fit(sensors, *words))[0] == 0
    other = tmp_path / "sensors.csv"
    other.write_text(sensors.read_text().replace(",a,", ",a,", 1))
    lines = sensors.read_text().splitlines()
    cells = lines[1].split(",")
    lines[1] = ",".join([*cells[:2], "7", *cells[3:]])
    other.write_text("\n".join(lines) + "\n")
    code, _, said = run(*fit(other, *words))
    assert code != 0
    assert "begun with other data" in said


def sections(page: Path) -> list[str]:
    text = page.read_text()
    assert len(keys := re.findall(r'<section id="([^"]+)"', text)) == len(set(keys))
    return re.findall(r"<h2[^>]*>(.*?)</h2>", text)


def test_one_report_with_a_part_for_each(run, sensors: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "m.mercer", tmp_path / "r.html"
    assert run(*fit(sensors, "--cv", 2, "--out", out, "--report", page))[0] == 0
    titles = sections(page)
    ends = ("Scores on rows it had not seen", "What decides?", "How do inputs act?")
    each = [f"{name}: {end}" for name in ("north", "east") for end in ends]
    assert [title for title in titles if title in each] == each
    assert titles.count("The kernel that was learned") == titles.count("Diagnostics") == 1
    text = page.read_text()
    assert "north: Root mean squared error" in text
    assert "east: The noise has a standard deviation of" in text
    code, said, _ = run("report", out, "--out", page)
    assert code == 0
    assert "as stored in the model: 2-fold" in said
    assert "east: Scores on rows it had not seen" in sections(page)
    code, said, _ = run("report", out, sensors, "--out", page)
    assert code == 0
    assert "east: 60 rows: RMSE" in said
    assert each[0] in sections(page)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("command", [["query", "-n", 2], ["explain", "--row", 1]])
def test_commands_of_one_target(run, sensors: Path, tmp_path: Path, command: list) -> None:
    out = tmp_path / "m.mercer"
    assert run(*fit(sensors, "--test-size", 0.25, "--out", out))[0] == 0
    name, *more = command
    code, _, said = run(name, out, sensors, *more)
    assert code == 2
    assert "which target; the model learned 'north', 'east'" in said
    code, _, said = run(name, out, sensors, *more, "--target", "west")
    assert code == 2
    assert "no target 'west'" in said
    code, said, noted = run(name, out, sensors, *more, "--target", "east", "--json")
    assert code == 0
    assert "'north'" not in noted
    model, found = mercer.load(out).output("east"), json.loads(said)
    t = np.loadtxt(sensors, delimiter=",", skiprows=1, usecols=0)[:, np.newaxis]
    if name == "explain":
        assert found["rows"][0]["prediction"] == pytest.approx(model.predict(t[:1])[0])
    else:
        assert [each["row"] for each in found["queries"]] == (model.query(t, 2) + 1).tolist()


@pytest.mark.parametrize("command", ["compare", "audit"])
def test_commands_that_learn_one_target(run, sensors: Path, command: str) -> None:
    code, _, said = run(command, sensors, "--target", "north,east")
    assert code == 2
    assert "several targets are for mercer fit" in said


def test_a_file_whose_targets_are_others(run, sensors: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    assert run(*fit(sensors, "--test-size", 0.25, "--out", out))[0] == 0
    manifest, arrays = read_container(out)
    parts = manifest["table"]["outputs"]
    for bad in (parts[::-1], parts[:1], [{**parts[0], "written": 3}, parts[1]], [{}, {}]):
        table = {**manifest["table"], "outputs": bad}
        write_container(tmp_path / "bad.mercer", {**manifest, "table": table}, arrays)
        code, _, said = run("inspect", tmp_path / "bad.mercer")
        assert code == 4, said
        assert "inconsistent" in said


def test_edited_files_are_refused_or_predict(
    run, sensors: Path, tmp_path: Path, monkeypatch
) -> None:
    """As `tests/contracts/test_model_file_fields.py` has it, of every 41st edit."""
    out = tmp_path / "m.mercer"
    assert run(*fit(sensors, "--test-size", 0.25, "--out", out))[0] == 0
    edits, n_refused = list(edits_of(*read_container(out)))[::41], 0
    for name, manifest, arrays in edits:
        copies = {each: values.copy() for each, values in arrays.items()}
        monkeypatch.setattr(model_file, "read_container", lambda _, it=(manifest, copies): it)
        try:
            saved = read_model("edited.mercer")
        except ModelFileError:
            n_refused += 1
            continue
        for one in saved.outputs:
            law = one.estimator.predictive(np.zeros((2, 1)))
            assert np.isfinite(law.mean).all(), name
            assert (law.std > 0.0).all(), name
            assert (one.table is None) == (name == "table: null")
            if one.table is not None and one.table.evaluation is not None:
                json.dumps(evaluation_json(one.table.evaluation), allow_nan=False)
    assert n_refused > 0.5 * len(edits)


@pytest.mark.slow  # of one target: `estimation/test_cross_validate.py`
def test_folds_in_two_processes(run, sensors: Path) -> None:
    words = [each if each != "1" else "2" for each in fit(sensors, "--cv", 2, "--json")]
    found = [json.loads(run(*asked)[1]) for asked in (fit(sensors, "--cv", 2, "--json"), words)]
    one, two = ([each["entries"][0]["scores"] for each in f["outputs"].values()] for f in found)
    assert one == two


def test_a_table_says_what_each_input_tells_of_each_target(run, sensors: Path) -> None:
    words = ("inspect", sensors, "--target", "north,east", "--drop", "up,down")
    code, said, _ = run(*words)
    assert code == 0
    for name in ("north", "east"):
        assert f"tells {name}" in said
        assert f"{name}: The target" in said
    code, said, _ = run(*words, "--json")
    assert code == 0
    found = json.loads(said)["outputs"]
    for name in ("north", "east"):
        code, said, _ = run(
            "inspect", sensors, "--target", name, "--json", "--drop", "up,down",
            "--drop", {"north": "east", "east": "north"}[name],
        )  # fmt: skip
        assert found[name]["inputs"] == json.loads(said)["inputs"]
        assert found[name]["leaks"] == json.loads(said)["leaks"]


def test_what_to_run_next_is_about_one_target(run, sensors: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "m.mercer", tmp_path / "r.html"
    code, said, _ = run(*fit(sensors, "--cv", 2, "--out", out, "--report", report))
    assert code == 0
    for one, other in (("north", "east"), ("east", "north")):
        own = f"--target {one} --drop kind --drop up,down --drop {other}"
        assert re.search(rf"next +mercer compare \S+ {own} ", said)
        page = report.read_text()
        assert re.search(rf"mercer query \S+ POOL.csv -n 10 --target {one}<", page)
        assert re.search(rf"mercer explain \S+ \S+ --row \d+ --target {one}<", page)
    code, _, _ = run("report", out, sensors, "--out", report)
    assert code == 0
    assert "-n 10 --target east<" in report.read_text()
