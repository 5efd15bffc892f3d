"""Numbers instead of classes, end to end: fit, predict, inspect, report, compare, and refusals."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mercer import BaNKClassifier, BaNKRegressor, models
from mercer.cli import fitting
from mercer.cli.main import main
from mercer.cli.options import TableOptions
from mercer.cli.tables import read_training
from mercer.report import build
from mercer.spectral.settings import expected_seconds
from support.ridge_model.estimator import ENTRY

from .conftest import TINY

N = 80


def write_numbers(path: Path, *, n: int = N, seed: int = 4, offset: float = 0.0) -> Path:
    """Write a straight line in two inputs with noise of standard deviation 3, and names of rows."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.uniform(-1, 1, size=n)
    price = offset + 100.0 + 20.0 * a - 8.0 * b + 3.0 * rng.normal(size=n)
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["house", "a", "b", "price"])
        for i in range(n):
            writer.writerow([f"h{i:03}", f"{a[i]:.5f}", f"{b[i]:.5f}", f"{price[i]:.5f}"])
    return path


@pytest.fixture(autouse=True)
def with_a_regressor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one model does regression, whichever the table has."""
    others = tuple(entry for entry in models.MODELS if entry.task == "classification")
    monkeypatch.setattr(models, "MODELS", (*others, ENTRY))
    method = build._Method("Straight lines", "noise_std: of the noise.", _describe, _no_sections)
    monkeypatch.setitem(build._METHODS, "RidgeRegressor", method)


def _describe(estimator) -> tuple[str, ...]:
    return ("A straight line.",)


def _no_sections(estimator, audit) -> tuple:
    return ()


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_numbers(tmp_path_factory.mktemp("data") / "houses.csv")


COMMON = ["--target", "price", "--drop", "house", *TINY]


@pytest.fixture
def saved(houses: Path, tmp_path: Path) -> Path:
    out = tmp_path / "m.mercer"
    assert main(["fit", str(houses), *COMMON, "--test-size", "0.25", "--out", str(out)]) == 0
    return out


def test_fit_says_and_scores_what_it_does(run, houses: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    code, said, err = run("fit", houses, *COMMON, "--cv", "4", "--out", out)
    assert code == 0, err
    assert "task      target 'price': numbers with a fraction, so regression" in said
    assert "model     ridge-draws, straight lines, for tests (auto)" in said
    assert "4-fold cross-validation" in said
    for name in ("mercer ridge-draws", "mean only", "ridge regression", "gradient boosting"):
        assert name in said
    assert "RMSE" in said
    assert "In squared error the model is" in said
    evaluation = models.read_model(out).table.evaluation
    assert len(evaluation.rows.y) == N
    assert 2.0 < evaluation.entries[0].scores.rmse < 4.0
    assert 0.8 < evaluation.entries[0].scores.coverage_90 <= 1.0
    assert [entry.is_baseline for entry in evaluation.entries] == [False, True, True, True]
    assert evaluation.entries[0].gap_error is None
    assert all(entry.gap_error >= 0 for entry in evaluation.entries[1:])


def test_fit_as_json(run, houses: Path) -> None:
    code, said, _ = run("fit", houses, *COMMON, "--test-size", "0.3", "--no-refit", "--json")
    assert code == 0
    result = json.loads(said)
    assert (result["task"], result["classes"]) == ("regression", [])
    scores = result["evaluation"]["entries"][0]["scores"]
    assert scores["n_rows"] == 24
    assert scores["rmse"] ** 2 == pytest.approx(scores["mse"])
    assert 0 < scores["standardized_mse"] < 0.1


def test_predictions_have_a_spread_and_an_interval(run, saved: Path, houses: Path) -> None:
    code, said, err = run("predict", saved, houses, "--id", "house")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(said)))
    assert list(rows[0]) == ["house", "prediction", "std", "lower_90", "upper_90"]
    assert len(rows) == N
    assert rows[0]["house"] == "h000"
    assert err.startswith(f"scores    {N} rows: RMSE 3.")
    assert "MSE/variance 0.0" in err
    assert "share inside 90 % intervals 0.9" in err
    for row in rows:
        assert float(row["lower_90"]) < float(row["prediction"]) < float(row["upper_90"])
        assert 2.0 < float(row["std"]) < 5.0


def test_scores_are_given_only_where_the_target_is_there(
    run, saved: Path, houses: Path, tmp_path: Path
) -> None:
    text = houses.read_text().splitlines()
    bare, holes = tmp_path / "bare.csv", tmp_path / "holes.csv"
    bare.write_text("\n".join(line.rpartition(",")[0] for line in text))
    holes.write_text("\n".join([*text[:5], text[5].rpartition(",")[0] + ",", *text[6:]]))
    _, whole, _ = run("predict", saved, houses)
    code, said, err = run("predict", saved, bare)
    assert (code, err) == (0, "note      columns that the model does not use: 'house'\n")
    assert said == whole
    code, said, err = run("predict", saved, holes)
    assert code == 0
    assert said == whole
    assert "1 of 80 rows have no target and are not scored" in err
    assert "79 rows: RMSE" in err


def test_blocks_give_the_same_predictions(
    run, saved: Path, houses: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mercer.cli import prediction as answers

    _, whole, said = run("predict", saved, houses, "--json")
    monkeypatch.setattr(answers, "BLOCK", 7)
    _, parts, also = run("predict", saved, houses, "--json")
    assert said == also
    first, second = (json.loads(each)["predictions"] for each in (whole, parts))
    assert len(first) == len(second)
    for a, b in zip(first, second, strict=True):
        assert list(a.values()) == pytest.approx(list(b.values()), rel=1e-12)


def test_other_units_give_the_same_scores_up_to_them(run, tmp_path: Path, houses: Path) -> None:
    moved = write_numbers(tmp_path / "moved.csv", offset=1e6)
    first, second = (
        json.loads(run("fit", path, *COMMON, "--test-size", "0.3", "--json")[1])
        for path in (houses, moved)
    )
    a, b = (each["evaluation"]["entries"][1]["scores"] for each in (first, second))
    for name in a:
        assert a[name] == pytest.approx(b[name], rel=1e-6), name


def test_reports_of_the_fit_and_of_new_rows(run, saved: Path, houses: Path, tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"{i}.html" for i in range(3))
    code, _, err = run("fit", houses, *COMMON, "--cv", "3", "--report", first)
    assert code == 0, err
    code, said, err = run("report", saved, "--out", second)
    assert code == 0, err
    assert "as stored in the model: 25 % of the rows held out" in said
    code, said, err = run("report", saved, houses, "--out", third)
    assert code == 0, err
    assert f"{N} rows: RMSE" in said
    for path in (first, second, third):
        html = path.read_text()
        assert "In squared error the model is" in html or "No baseline was run" in html
        assert "Can the intervals be trusted?" in html
        # Two of predictions, two of intervals, the chain; with rows what decides, how, a pair.
        assert html.count("<figure>") == (5 if path is second else 8)
        assert ">Classes<" not in html
    assert "ridge regression" in first.read_text()


def test_inspect_says_what_is_inside(run, saved: Path) -> None:
    code, said, _ = run("inspect", saved)
    assert code == 0
    assert "task      regression" in said
    assert "scores    20 rows: RMSE" in said
    code, said, _ = run("inspect", saved, "--json")
    assert json.loads(said)["evaluation"]["entries"][0]["scores"]["coverage_90"] <= 1


def test_compare_on_the_same_folds(run, houses: Path) -> None:
    code, said, err = run("compare", houses, *COMMON, "--cv", "3", "--models",
                          "dummy,ridge,ridge-draws,neighbours")  # fmt: skip
    assert code == 0, err
    assert "RMSE ±" in said
    lines = said.splitlines()
    order = [line.split("  ")[0] for line in lines if line.startswith(("mean", "ridge r", "k n"))]
    assert order == ["ridge regression", "k nearest neighbours", "mean only"]
    assert "advice " in said


@pytest.mark.parametrize("metric", ["mse", "mae", "log_score", "standardized_mse",
                                    "calibration_error"])  # fmt: skip
def test_compare_by_another_metric(run, houses: Path, metric: str) -> None:
    code, said, err = run("compare", houses, *COMMON, "--cv", "2", "--models", "dummy,ridge-draws",
                          "--metric", metric, "--json")  # fmt: skip
    assert code == 0, err
    result = json.loads(said)
    assert result["metric"] == metric
    ours = next(model for model in result["models"] if not model["is_baseline"])
    assert ours[metric]["mean"] < result["models"][0][metric]["mean"] + 1.0
    assert set(ours) >= {"mse", "rmse", "standardized_mse", "mae", "log_score", "coverage_90",
                         "calibration_error", "seconds"}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["compare", "--metric", "brier_score"], 2, "--metric brier_score is not for regression"),
        (["compare", "--models", "sphere"], 2, "model sphere is not for regression"),
        (["compare", "--models", "logistic"], 2, "no model 'logistic'"),
        (["fit", "--model", "gp"], 2, "model gp is not for regression; --model ridge-draws is"),
        (["review"], 3, "is not a whole number, so no class"),
        (["fit", "--task", "classification"], 3, "is not a whole number"),
    ],
)
def test_what_is_not_for_numbers_is_refused(
    run, houses: Path, words: list[str], code: int, told: str
) -> None:
    command, *options = words
    found, _, err = run(command, houses, "--target", "price", "--drop", "house", *options)
    assert found == code
    assert told in err


def test_a_regressor_is_not_for_classes(run, table: Path) -> None:
    code, _, err = run("fit", table, "--target", "label", "--model", "ridge-draws")
    assert code == 2
    assert "model ridge-draws is not for classification" in err
    code, _, err = run("fit", table, "--target", "label", "--task", "regression")
    assert code == 3
    assert "needs a target of numbers" in err


def test_query(run, saved: Path, houses: Path) -> None:
    code, said, _ = run("query", saved, houses, "-n", 2, "--json")
    found = json.loads(said)["queries"]
    assert code == 0
    assert [list(row) for row in found] == 2 * [["row", "prediction", "std"]]


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (["5.5"] * 6, "the target is constant"),
        (["1.5", "", "2", "3", "4", "5"], "the target is missing"),
        (["1.5", "1e200", "2", "3", "4", "5"], "too large to compute with"),
        (["1.5", "nan", "2", "3", "4", "5"], "the target is missing"),
        (["1.5", "x", "2", "3", "4", "5"], "'x'"),
    ],
)
def test_targets_that_cannot_be_learned(run, tmp_path: Path, cells: list[str], told: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,price\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))
    code, _, err = run("fit", path, "--target", "price", "--task", "regression", *TINY)
    assert code == 3
    assert told in err


@pytest.mark.parametrize("missing", ["drop", "impute", "indicator"])
def test_rows_without_a_target_are_dropped_if_asked(tmp_path: Path, missing: str) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,price\n" + "".join(f"{i},{'' if i == 1 else i + 0.5}\n" for i in range(6)))
    found = read_training(str(path), TableOptions("price", "auto", (), None, None, missing))
    assert found.names.number.tolist() == [1, 3, 4, 5, 6]
    assert found.notes[0] == "1 of 6 rows have no target and were dropped"


def test_whole_numbers_are_classes_unless_asked(run, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,stars\n" + "".join(f"{i},{1 + i % 5}\n" for i in range(30)))
    words = ["--target", "stars", "--test-size", "0.3", *TINY]
    code, said, err = run("fit", path, *words, "--task", "regression")
    assert code == 0, err
    assert "target 'stars': regression, as asked" in said


def test_a_test_file_and_groups(run, houses: Path, tmp_path: Path) -> None:
    other = write_numbers(tmp_path / "other.csv", n=30, seed=9)
    code, said, err = run("fit", houses, *COMMON, "--test", other)
    assert code == 0, err
    assert "the 30 rows of" in said
    grouped = tmp_path / "grouped.csv"
    lines = houses.read_text().splitlines()
    grouped.write_text(
        "\n".join([lines[0] + ",g", *(f"{line},{i % 7}" for i, line in enumerate(lines[1:]))])
    )
    code, said, err = run("fit", grouped, *COMMON, "--group", "g", "--cv", "3")
    assert code == 0, err


def test_strict_refuses_what_warns(run, houses: Path) -> None:
    code, _, err = run("fit", houses, *COMMON, "--test-size", "0.3", "--strict")
    assert code == 5
    assert "too short to judge" in err


def test_a_large_table_leaves_the_process_out(run, tmp_path: Path) -> None:
    path = write_numbers(tmp_path / "large.csv", n=1001)
    code, _, err = run("compare", path, *COMMON, "--models", "gp-ml,dummy", "--cv", "2")
    assert code == 0
    assert "GP, max. likelihood is left out: it is for 1000 rows at most" in err
    code, _, err = run("compare", path, *COMMON, "--models", "gp-ml", "--cv", "2")
    assert code == 2
    assert "nothing to compare" in err


def test_hours_are_announced_before_they_are_spent() -> None:
    """A million rows: the estimate is that of the sweeps, and names what takes less."""
    entry, told = SimpleNamespace(name="spectral"), []
    session = SimpleNamespace(note=lambda label, words: told.append((label, words)))
    model = BaNKRegressor()
    fitting._warn_of_hours(entry, model, 1_000_000, 0, session)
    ((label, words),) = told
    seconds = 4 * 150 * 12.0 * 50_000 * 384**2 / 3.5e10
    assert label == "time"
    high, some = f"{2 * seconds / 60:.0f} min", "of CPU time, its kernel learned from 50000 rows"
    assert f"takes up to {high} (a tenth of it where few frequencies do) {some}" in words
    assert "kernel_rows=20000 takes 40% of that" in words
    assert "--set max_seconds=60 ends it in time" in words
    fitting._warn_of_hours(entry, model, 6000, 0, session)
    assert "kernel_rows" not in told.pop()[1]  # which would be all of them
    fitting._warn_of_hours(entry, BaNKRegressor(n_frequencies=384), 1_000_000, 0, session)
    assert f"takes about {seconds / 60:.0f} min to {high} {some}" in told.pop()[1]
    fitting._warn_of_hours(entry, model, 4000, 0, session)
    fitting._warn_of_hours(entry, model.set_params(max_seconds=60), 1_000_000, 0, session)
    assert len(told) == 1
    assert expected_seconds(BaNKClassifier(n_frequencies=100), 50_000, 2) == pytest.approx(
        4 * 125 * 32.0 * 50_000 * 100**2 / 3.5e10
    )
