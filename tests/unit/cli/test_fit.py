from __future__ import annotations

import html
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer.baselines.peers import PEERS
from mercer.estimation.inspection import Look, plan_look
from mercer.estimation.splits import holdout
from mercer.models import read_model
from mercer.random import stream

from .conftest import TINY, write_csv

CHAINS = [
    *TINY,
    "--set",
    "inference=hmc",
    "--set",
    "kernel=rbf",
]  # too short to judge: importance sampling is not


def test_fit_writes_model_and_report_and_says_what_it_does(
    run, table: Path, tmp_path: Path
) -> None:
    out, report = tmp_path / "m.mercer", tmp_path / "r.html"
    words = [
        "fit",
        table,
        "--target",
        "label",
        "--cv",
        "3",
        *CHAINS,
        "--out",
        out,
        "--report",
        report,
    ]
    code, said, err = run(*words)
    assert code == 0
    for label in (
        "data ",
        "task ",
        "model ",
        "scoring ",
        "seed ",
        "verdict ",
        "fitted ",
        "report ",
    ):
        assert f"\n{label}" in f"\n{said}"
    assert "60 rows, 2 inputs" in said
    assert "3-fold cross-validation" in said
    for name in ("mercer gp", "class shares only", "logistic regression", "calibrated SVC"):
        assert name in said
    assert err.count("warning   ") == 1
    assert "warning   too short to judge" in err
    assert "ConvergenceWarning" not in err
    assert "\x1b" not in said + err
    saved = read_model(out)
    assert saved.table is not None
    made, evaluation = saved.table.provenance, saved.table.evaluation
    assert made.command.startswith(f"mercer fit {table} --target label")
    assert (made.n_rows, made.seed, made.input_names) == (60, 0, ("a", "b"))
    assert saved.estimator.feature_labels_ == ("a", "b")
    assert evaluation is not None
    assert len(evaluation.y_index) == 60
    assert [entry.is_baseline for entry in evaluation.entries] == [False] + 4 * [True]
    html = report.read_text()
    assert "log_weight[a]" in html
    assert "logistic regression" in html


def test_without_outputs_nothing_is_written_and_it_says_so(
    run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said, _ = run("fit", table, "--target", "label", "--test-size", "0.3", *TINY)
    assert code == 0
    assert "--out model.mercer" in said
    assert not list(tmp_path.iterdir())


def test_a_baseline_whose_time_grows_with_the_square_of_rows_is_left_out(
    run, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = tuple(replace(peer, most_rows=50 if peer.name == "svc" else None) for peer in PEERS)
    monkeypatch.setattr("mercer.cli.fit.peers_of", lambda task: few)
    code, said, err = run("fit", table, "--target", "label", "--cv", "3", *CHAINS)
    assert code == 0
    assert "baseline  calibrated SVC is left out: it is for 50 rows at most" in said + err
    assert "\ncalibrated SVC" not in said
    assert "logistic regression" in said


def test_json_is_all_there_is_on_standard_output(run, table: Path) -> None:
    code, said, _ = run("fit", table, "--target", "label", "--test-size", "0.3", "--json", *TINY)
    assert code == 0
    result = json.loads(said)
    assert result["classes"] == ["ill", "well"]
    assert result["evaluation"]["entries"][0]["scores"]["n_rows"] == 18
    assert result["provenance"]["versions"]["mercer"]


def test_strict_writes_nothing(run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    code, _, err = run(
        "fit", table, "--target", "label", "--test-size", "0.3", *CHAINS, "--strict", "--out", out
    )
    assert code == 5
    assert "too short to judge" in err
    assert not out.exists()


def test_a_test_file_scores_the_model_that_is_saved(run, table: Path, tmp_path: Path) -> None:
    test = write_csv(tmp_path / "test.csv", n=40, seed=9, extra=True)
    out = tmp_path / "m.mercer"
    code, said, _ = run("fit", table, "--target", "label", "--test", test, *TINY, "--out", out)
    assert code == 0
    assert "the 40 rows of" in said
    saved = read_model(out)
    assert saved.table is not None
    assert saved.table.evaluation is not None
    _, predicted, _ = run("predict", out, test)
    second = [float(line.split(",")[3]) for line in predicted.splitlines()[1:]]
    np.testing.assert_array_equal(second, saved.table.evaluation.proba[:, 1])


def test_no_refit_keeps_the_training_part(run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    words = ["fit", table, "--target", "label", "--test-size", "0.25", *TINY, "--out", out]
    assert run(*words, "--no-refit")[0] == 0
    saved = read_model(out)
    assert saved.table is not None
    assert saved.table.provenance.n_rows == 45


def test_no_refit_learns_nothing_of_the_rows_that_it_scores(run, tmp_path: Path) -> None:
    """Not even how cells become numbers: their levels, and what fills gaps."""
    rng = np.random.default_rng(2)
    a, y = rng.normal(size=60), np.arange(60) % 2
    _, test = holdout(y, 0.25, stream(0, "folds"))
    models = []
    for held_out in ("Bonn", "Rom"):
        city = np.where(np.isin(np.arange(60), test), held_out, np.array(["Bonn", "Kiel"])[y])
        lines = [f"{'' if i == 9 else a[i]},{city[i]},{'uv'[y[i]]}" for i in range(60)]
        (tmp_path / "t.csv").write_text("\n".join(["a,city,y", *lines]))
        out = tmp_path / f"{held_out}.mercer"
        words = ["--target", "y", "--missing", "impute", "--test-size", "0.25", "--no-refit"]
        code, said, err = run("fit", tmp_path / "t.csv", *words, *TINY, "--out", out)
        assert code == 0, err
        models.append(read_model(out))
    first, second = (model.table.encoder for model in models)
    assert first == second
    assert second.feature_names == ("a", "city=Kiel")
    assert "city=Rom" not in str(models[1].estimator.feature_labels_)
    rows = rng.normal(size=(5, 2))
    said = [model.estimator.predict_proba(rows) for model in models]
    np.testing.assert_array_equal(*said)


@pytest.mark.parametrize("n_inputs", [40, 41])
def test_of_many_inputs_the_model_says_which_a_report_measures(
    n_inputs: int, run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is fitted before it is scored then; else inputs that tell nothing alone are left out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, n_inputs)).round(3)
    names = [f"x{j}" for j in range(n_inputs)]
    rows = [",".join(map(str, [*own, "uv"[int(own[0] > 0.0)]])) for own in X.tolist()]
    table = tmp_path / "wide.csv"
    table.write_text("\n".join([",".join([*names, "y"]), *rows]) + "\n")
    asked = list[bool]()

    def spy(*given: Any, model: Any = None, **how: Any) -> Look:
        asked.append(model is not None)
        return plan_look(*given, model=model, **how)

    monkeypatch.setattr("mercer.cli.fit.plan_look", spy)
    words = ["--set", "inference=map", "--set", "kernel=rbf", "--test-size", "0.25"]
    code, _, err = run("fit", table, "--target", "y", *words, "--report", tmp_path / "r.html")
    assert code == 0, err
    assert asked == [n_inputs > 40]


def test_a_report_of_folds_of_which_one_lacks_a_level(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    city = [*np.array(["Bonn", "Kiel", "Ulm"])[np.arange(39) % 3], "Rom"]
    lines = [f"{city[i]},{rng.normal():.3f},{rng.normal():.3f}" for i in range(40)]
    (tmp_path / "t.csv").write_text("\n".join(["city,a,y", *lines]))
    words = ["--target", "y", "--cv", "2", *TINY, "--report", tmp_path / "r.html"]
    code, _, err = run("fit", tmp_path / "t.csv", *words)
    assert code == 0, err
    assert "What decides" in (tmp_path / "r.html").read_text()


def test_columns_are_encoded_dropped_and_filled(run, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    rng = np.random.default_rng(1)
    rows = [
        f"{i},{rng.normal():.3f},{'' if i == 3 else 'uvw'[i % 3]},2020-01-03,{i // 4},{i % 2}"
        for i in range(40)
    ]
    path.write_text("id,a,colour,day,clinic,sick\n" + "\n".join(rows) + "\n")
    out = tmp_path / "m.mercer"
    options = ["--drop", "day", "--id", "id", "--group", "clinic", "--missing", "impute"]
    code, said, err = run(
        "fit", path, "--target", "sick", *options, "--cv", "2", *TINY, "--out", out
    )
    assert code == 0, err
    assert "4 inputs from 2 columns" in said
    assert "1 of 40 rows have a missing value" in said
    saved = read_model(out)
    assert saved.estimator.feature_labels_ == ("a", "colour=u", "colour=v", "colour=w")
    assert saved.estimator.classes_.tolist() == [0, 1]


@pytest.mark.slow  # five processes; the estimators' own is in `contracts`
def test_the_same_command_gives_the_same_draws_for_any_number_of_jobs(
    table: Path, tmp_path: Path
) -> None:
    """In a process of its own: one that has compiled other loops itself may round otherwise."""
    digests = []
    for jobs in ("1", "2"):
        out = tmp_path / f"{jobs}.mercer"
        words = ["--set", "n_draws=10", "--set", "n_warmup=5", "--set", "n_chains=2"]
        words += ["--test-size", "0.25"]
        command = [sys.executable, "-m", "mercer.cli.main", "fit", str(table), "--target", "label"]
        subprocess.run([*command, *words, "--jobs", jobs, "--out", str(out)], check=True)
        saved = read_model(out)
        assert saved.table is not None
        assert saved.table.evaluation is not None
        digests.append(
            (
                saved.estimator.posterior_.flat("log_weight").tobytes(),
                saved.table.evaluation.proba.tobytes(),
                saved.manifest["params"],
            )
        )
    assert digests[0] == digests[1]


def test_r6_a_checkpoint_of_another_command_is_refused(run, table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "state"
    words = ["--target", "label", "--test-size", "0.25", *TINY, "--checkpoint", folder]
    assert run("fit", table, *words)[0] == 0
    code, said, _ = run("fit", table, *words)
    assert code == 0
    assert "going on from" in said
    code, _, err = run("fit", table, *words, "--seed", "1")
    assert code == 4
    assert "seed 0, and this is 1" in err
    other = write_csv(tmp_path / "other.csv", seed=4)
    code, _, err = run("fit", other, *words)
    assert code == 4
    assert "other data" in err
    code, _, err = run("fit", table, *words, "--set", "n_draws=21")
    assert code == 4
    assert "settings" in err
    run_file = folder / "run.json"
    run_file.write_text(json.dumps({**json.loads(run_file.read_text()), "mercer": "0.0.1"}))
    code, _, err = run("fit", table, *words)
    assert code == 4
    assert "mercer 0.0.1" in err
    run_file.write_text("{")
    assert run("fit", table, *words)[0] == 4


def test_numbers_and_dates_as_people_write_them(run, tmp_path: Path) -> None:
    """From `df.to_csv()` of dates, percent and money to predictions that join with it."""
    rng = np.random.default_rng(5)
    days = np.datetime64("2024-01-01") + np.arange(60)
    rate, price = rng.uniform(0.0, 30.0, 60).round(1), rng.normal(1000.0, 900.0, 60).round(2)
    sales = 100.0 * rate + price

    def money(value: float) -> str:
        return f'"(${-value:,.2f})"' if value < 0 else f'"${value:,.2f}"'

    rows = [
        f"p{k:03},{days[k].item():%d/%m/%Y},{rate[k]}%,{money(price[k])},{money(sales[k])}"
        for k in range(60)
    ]
    header = ",day,rate,price,sales"
    table, new = tmp_path / "shop.csv", tmp_path / "new.csv"
    table.write_text("\n".join([header, *rows[:50]]) + "\n")
    new.write_text("\n".join([header, *rows[31:35]]) + "\n")  # no day above 12
    model, out = tmp_path / "m.mercer", tmp_path / "p.csv"
    report = tmp_path / "r.html"
    code, said, err = run(
        "fit", table, "--target", "sales", "--test-size", "0.2", "--out", model,
        "--report", report, *TINY,
    )  # fmt: skip
    assert code == 0, err
    notes = [
        "column 'Unnamed: 0', which has no name: the names of the rows, and no input",
        "column 'day': dates (day/month/year), as month, day of week (Monday is 1), days since "
        "2024-01-01",
        "column 'rate': percent, read as numbers ('12.5%' is 12.5)",
        "column 'price': text read as numbers ('$1,234.5' is 1234.5, '($1,234.5)' is -1234.5)",
    ]
    _, inspected, _ = run("inspect", model)
    for words in (said, inspected, html.unescape(report.read_text())):
        for note in notes:
            assert note in words
    code, _, err = run("predict", model, new, "--out", out)
    assert code == 0, err
    lines = out.read_text().splitlines()
    assert lines[0].startswith("Unnamed: 0,")
    assert [line.split(",")[0] for line in lines[1:]] == ["p031", "p032", "p033", "p034"]
    means = [float(line.split(",")[1]) for line in lines[1:]]
    assert np.sqrt(np.mean((means - sales[31:35]) ** 2)) < 0.3 * sales.std()
    assert "scores" in err
    new.write_text(header + "\n" + rows[31].replace("%", "") + "\n")
    code, _, err = run("predict", model, new)
    assert code == 3
    assert "new.csv, row 1 (line 2), column 'rate': " in err


@pytest.mark.parametrize(
    ("how", "words"),
    [(("--cv", "2"), "2 of 2 scored fits"), (("--test-size", "0.25"), "the scored fit")],
)
def test_scored_fits_cut_short_are_said(
    run, table: Path, tmp_path: Path, how: tuple[str, str], words: str
) -> None:
    report, model, later = (tmp_path / name for name in ("r.html", "m.mercer", "later.html"))
    options = [*CHAINS, *how, "--set", "max_seconds=1e-6", "--report", report, "--out", model]
    code, _, err = run("fit", table, "--target", "label", *options)
    assert code == 0
    said_so = f"max_seconds cut {words} short"
    assert f"warning   {said_so}" in err
    cut = "warning   stopped by max_seconds during warm-up"
    assert cut in err
    assert cut in run("inspect", model)[1]
    page = html.unescape(report.read_text())
    assert f"; {said_so})" in page
    assert run("report", model, table, "--out", later)[0] == 0  # the file has no max_seconds
    for each in (page, html.unescape(later.read_text())):
        assert "--set max_seconds=4e-06" in each[each.index("four times as long") :]
