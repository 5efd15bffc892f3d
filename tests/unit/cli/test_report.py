from __future__ import annotations

from pathlib import Path

from mercer import GPClassifier

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
