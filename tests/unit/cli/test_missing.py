"""``--missing posterior``: gaps among the inputs are drawn along."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

SHORT = [word for pair in ("n_draws=8", "n_warmup=8", "n_chains=1", "n_frequencies=12")
         for word in ("--set", pair)]  # fmt: skip


@pytest.fixture
def gaps(tmp_path: Path) -> Path:
    """A table of two numbers, a third of each missing, a word and two targets."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 2))
    path = tmp_path / "gaps.csv"
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["a", "b", "word", "y", "label"])
        for a, b in rows.round(3).tolist():
            cells = [cell if rng.random() > 0.3 else "" for cell in (a, b, "up" if b > 0 else "")]
            writer.writerow([*cells, round(a + b * b, 3), "yes" if a > 0 else "no"])
    return path


def test_fit_and_predict_with_gaps(run, gaps: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "m.mercer", tmp_path / "r.html"
    code, said, _ = run(
        "fit", gaps, "--target", "y", "--drop", "label", "--missing", "posterior", *SHORT,
        "--test-size", "0.3", "--out", out, "--report", report,
    )  # fmt: skip
    assert code == 0
    assert "auto: the one that draws missing inputs" in said
    assert "numbers are averaged over what may stand there" in said
    assert "ridge regression" in said
    assert "gradient boosting" in said
    assert "not scored" not in said
    assert "What decides" in report.read_text()
    predictions = tmp_path / "p.csv"
    code, _, _ = run("predict", out, gaps, "--out", predictions)
    assert code == 0
    with open(predictions) as stream:
        found = [float(row["std"]) for row in csv.DictReader(stream)]
    assert len(found) == 60
    assert np.isfinite(found).all()


def test_compare_fills_gaps_for_those_that_do_not_draw_them(run, gaps: Path) -> None:
    code, said, err = run(
        "compare", gaps, "--target", "y", "--drop", "label", "--missing", "posterior",
        "--models", "spectral,gp,neighbours", *SHORT, "--set", "inference=map", "--cv", "2",
    )  # fmt: skip
    assert code == 0
    assert "spectral alone draws missing inputs" in err
    assert all(name in said for name in ("mercer spectral", "mercer gp", "nearest"))
    assert "not scored" not in said


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--target", "label", "--model", "gp"], "gp does not draw missing inputs; spectral does"),
        (["--target", "y", "--model", "gp"], "gp does not draw missing inputs; spectral does"),
        (["--target", "y", "--engine", "disk"], "--missing posterior: not with --engine"),
        (["--target", "y", "--set", "missing=posterior"], "use --missing"),
        (["--target", "y", "--set", "noise=student_t"], "normal noise"),
    ],
)
def test_refused(run, gaps: Path, words: list[str], expected: str) -> None:
    code, said, err = run("fit", gaps, "--missing", "posterior", *words)
    assert code == 2
    assert expected in said + err


def test_classes_with_gaps(run, gaps: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "m.mercer", tmp_path / "r.html"
    code, said, _ = run(
        "fit", gaps, "--target", "label", "--drop", "y", "--missing", "posterior", *SHORT,
        "--test-size", "0.3", "--out", out, "--report", report,
    )  # fmt: skip
    assert code == 0
    assert "auto: the one that draws missing inputs" in said
    assert "What decides" in report.read_text()
    code, said, _ = run("predict", out, gaps, "--json")
    assert code == 0
    assert said.count("probability") + said.count("yes") > 60
    code, said, err = run("audit", gaps, "--target", "label", "--missing", "posterior")
    assert code == 2
    assert "an audit does not draw missing inputs" in said + err
