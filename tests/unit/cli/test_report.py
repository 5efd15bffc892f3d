from __future__ import annotations

import html
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mercer import GPClassifier
from mercer.cli.commands import cli

from .conftest import write_csv


def test_with_the_stored_scores(run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    code, said, _ = run("report", model, "--out", out)
    assert code == 0
    assert "25 % of the rows held out" in said
    assert "logistic regression" in out.read_text()


def test_with_rows_that_hold_the_target(run, model: Path, tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "new.csv", n=30, seed=8)
    out = tmp_path / "r.html"
    code, said, _ = run("report", model, rows, "--out", out)
    assert code == 0
    assert "30 rows" in said
    assert "held out if" in said
    assert "new.csv" in out.read_text()


def test_rows_without_the_target_are_refused(run, model: Path, tmp_path: Path) -> None:
    rows = tmp_path / "new.csv"
    rows.write_text("a,b\n1,2\n")
    code, _, err = run("report", model, rows, "--out", tmp_path / "r.html")
    assert code == 3
    assert "'label'" in err
    assert not (tmp_path / "r.html").exists()


def test_a_page_is_not_called_a_text(run, model: Path, tmp_path: Path) -> None:
    for words in (["report", model], ["fit", "iris", "--target", "target"]):
        option = "--out" if words[0] == "report" else "--report"
        code, _, err = run(*words, option, tmp_path / "page.txt")
        assert code == 2
        assert f"{option} writes HTML; name a file such as page.html" in err
    assert not (tmp_path / "page.txt").exists()


def test_a_model_saved_from_python(run, tmp_path: Path) -> None:
    X = [[0.0], [1.0], [0.2], [1.2], [0.1], [1.5]]
    model = GPClassifier(kernel="rbf", n_draws=5, n_warmup=2, n_chains=1, random_state=0).fit(
        X, [0, 1] * 3
    )
    model.save(tmp_path / "m.mercer")
    code, said, _ = run("report", tmp_path / "m.mercer", "--out", tmp_path / "r.html")
    assert code == 0
    assert "none are stored" in said
    rows = tmp_path / "rows.csv"
    rows.write_text("x0\n0.5\n")
    code, said, _ = run("predict", tmp_path / "m.mercer", rows)
    assert code == 0
    assert said.count("\n") == 2


def leaky(path: Path) -> Path:
    """Fifty rows: a number that is the target, one that goes with another, levels, gaps, dates."""
    rng = np.random.default_rng(2)
    y, a = np.arange(50) % 2, rng.normal(size=50)
    lines = ["a,twice,result,colour,day,label"]
    for i in range(50):
        colour = "" if i == 7 else ("red", "blue", "green")[i % 3]
        day = f"2024-{1 + i % 12:02}-{1 + i % 28:02}"
        label = "no" if i == 4 else ("no", "yes")[y[i]]
        lines.append(
            f"{a[i] + y[i]:.3f},{2 * (a[i] + y[i]):.2f},{y[i] + 0.001 * i},{colour},{day},{label}"
        )
    path.write_text("\n".join(lines))
    return path


def test_the_page_answers_what_a_reader_asks(run, tmp_path: Path) -> None:
    data, out = leaky(tmp_path / "leaky.csv"), tmp_path / "r.html"
    words = ["--target", "label", "--missing", "impute", "--cv", "2", "--set", "inference=map"]
    model = tmp_path / "m.mercer"
    code, said, err = run(
        "fit", data, *words, "--set", "kernel=rbf", "--out", model, "--report", out
    )
    assert code == 0, err
    told = [line for line in said.splitlines() if line.startswith("leak")]
    assert len(told) == 1
    assert "'result' alone gives" in told[0]
    assert told[0].endswith("If not: --drop result")
    page = html.unescape(out.read_text())
    for key in ("errors", "importance", "effects", "data", "next"):
        assert f'<section id="{key}"' in page
    assert "“result” alone gives" in page
    assert "--drop result" in page
    assert "“a” and “twice” (1.00)" in page
    assert "1 of 5 inputs has missing values, “colour”: " in page
    assert "2024-01-01 to" in page
    assert f"mercer explain {model} {data} --row " in page
    code, _, _ = run("report", model, data, "--out", out)
    assert code == 0
    again = html.unescape(out.read_text())
    for key in ("errors", "importance", "effects", "data", "next"):
        assert f'<section id="{key}"' in again
    code, _, _ = run("report", model, "--out", out)
    assert code == 0
    bare = html.unescape(out.read_text())
    assert '<section id="errors"' in bare
    assert '<section id="importance"' not in bare
    assert "lists them by name" in bare


def test_a_page_that_fails_does_not_lose_the_model(
    run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("mercer.cli.fit.effects_of", fail)
    out, page = tmp_path / "m.mercer", tmp_path / "r.html"
    tiny = ["--set", "inference=map", "--set", "kernel=rbf", "--cv", "2"]
    code, said, err = run("fit", table, "--target", "label", *tiny, "--out", out, "--report", page)
    assert code != 0
    assert out.exists(), said + err
    assert not page.exists()


def test_the_worst_row_of_a_test_file_is_explained_there(run, tmp_path: Path) -> None:
    data, test = write_csv(tmp_path / "a.csv", n=40), write_csv(tmp_path / "b.csv", n=12, seed=9)
    out, model = tmp_path / "r.html", tmp_path / "m.mercer"
    tiny = ["--set", "inference=map", "--set", "kernel=rbf"]
    words = ["--target", "label", "--test", test, *tiny, "--out", model, "--report", out]
    code, _, err = run("fit", data, *words)
    assert code == 0, err
    assert f"mercer explain {model} {test} --row " in html.unescape(out.read_text())


@pytest.mark.slow  # proposed commands run in test_outputs
def test_a_longer_run_is_proposed_so_that_it_runs(run, tmp_path: Path) -> None:
    data, out = leaky(tmp_path / "leaky.csv"), tmp_path / "r.html"
    tiny = ["--set", "n_draws=8", "--set=n_warmup=10", "--set", "n_chains=2", "--set", "kernel=rbf"]
    options = ["--target", "label", "--missing", "impute", "--cv", "2", "--set", "inference=hmc"]
    files = [f"--checkpoint={tmp_path / 'ck'}", "--out", tmp_path / "m.mercer", "--report", out]
    code, _, _ = run("fit", data, *options, *tiny, *files)
    assert code == 0
    page = html.unescape(out.read_text())
    longer = page[page.index("four times as long") :]
    longer = shlex.split(longer[longer.index("<code>") + 6 : longer.index("</code>")])
    leak = page[page.index("without the one that gives all") :]
    leak = shlex.split(leak[leak.index("<code>") + 6 : leak.index("</code>")])
    for words in (leak, longer):
        before = out.read_text()
        code, _, err = run(*words[1:])
        assert code == 0, err
        assert out.read_text() == before
        assert words[words.index("--report") + 1] == str(tmp_path / "r-2.html")
        assert (tmp_path / "m-2.mercer").exists()
    assert "n_draws=32" in longer
    assert "n_draws=8" not in longer


@pytest.mark.parametrize(("power", "noise"), [(0.0, False), (2.0, True)])
def test_noise_that_varies_is_proposed_where_it_does(
    run, tmp_path: Path, power: float, noise: bool
) -> None:
    """Normal errors of one size, and of a size that grows with the target."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0.0, 2.0, 150)
    y = 2.0 * x + 0.2 * np.exp(power * (x - 1.0)) * rng.standard_normal(150)
    data, out = tmp_path / "scatter.csv", tmp_path / "r.html"
    pd.DataFrame({"dose": x, "response": y}).to_csv(data, index=False)
    tiny = ["--set", "inference=map", "--set", "kernel=rbf", "--cv", "5"]
    added = ["--set", "noise=normal", "--report", out]
    code, said, err = run("fit", data, "--target", "response", *tiny, *added)
    assert code == 0, err
    assert "process regression, hyperparameters at their maximum (auto)" in said
    assert "at first" not in said
    page = html.unescape(out.read_text())
    words = "Targets scatter more where predictions are high: to let the noise vary"
    assert (words in page) == noise
    assert ("--model spectral --set noise=heteroscedastic" in page) == noise


def test_wild_targets_are_proposed_to_be_audited_first(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(0.0, 2.0, 150)
    y = 2.0 * x + 0.2 * np.exp(2.0 * (x - 1.0)) * rng.standard_normal(150)
    y[[3, 30]] = 90.0, -60.0
    data, out = tmp_path / "wild.csv", tmp_path / "r.html"
    pd.DataFrame({"dose": x, "response": y}).to_csv(data, index=False)
    tiny = ["--set", "inference=map", "--set", "kernel=rbf", "--cv", "5"]
    code, said, err = run("fit", data, "--target", "response", *tiny, "--report", out)
    assert code == 0, err
    audit = f"mercer audit {data} --target response"
    assert audit in said.split("mercer compare")[0]
    page = html.unescape(out.read_text())
    page = page[page.index('<section id="next"') :]
    assert audit in page.split("noise=heteroscedastic")[0]


def test_of_counts_that_scatter_more_their_own_law_is_proposed(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-2.0, 2.0, 200)
    data, out = tmp_path / "counts.csv", tmp_path / "r.html"
    pd.DataFrame({"dose": x, "cases": rng.poisson(np.exp(x))}).to_csv(data, index=False)
    tiny = ["--task", "regression", "--set", "inference=map", "--set", "kernel=rbf", "--cv", "5"]
    code, _, err = run("fit", data, "--target", "cases", *tiny, "--report", out)
    assert code == 0, err
    page = html.unescape(out.read_text())
    assert "Targets scatter more where predictions are high" in page
    assert "--model spectral --set noise=negative_binomial" in page
    assert "noise=heteroscedastic" not in page


def test_the_commands_proposed_are_ones_that_can_be_typed(run, tmp_path: Path) -> None:
    data, out = leaky(tmp_path / "leaky.csv"), tmp_path / "r.html"
    model = tmp_path / "m.mercer"
    tiny = ["--set", "n_draws=20", "--set", "n_warmup=10", "--set", "n_chains=1"]
    tiny += ["--set", "lengthscale=median", "--set", "nugget=0"]
    options = ["--target", "label", "--drop", "result", "--missing", "impute", "--cv", "2"]
    code, _, _ = run(
        "fit", data, *options, "--model", "sphere", *tiny, "--out", model, "--report", out
    )
    assert code == 0
    page = html.unescape(out.read_text())
    section = page[page.index('<section id="next"') :]
    section = section[: section.index("</section>")]
    commands = [each.split("</code>")[0] for each in section.split("<code>")[1:]]
    names = [each.split()[1] for each in commands]
    assert "query" in names
    assert "explain" in names
    for command in commands:
        known = cli.commands[command.split()[1]]
        known.make_context(command.split()[1], shlex.split(command)[2:])  # raises if it is wrong
    explain = next(each for each in commands if each.split()[1] == "explain")
    assert run(*shlex.split(explain)[1:])[0] == 0
