"""Counts on the command line: fit, scores, predictions, what is no count."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

COUNTS = (
    "--model", "spectral", "--set", "noise=negative_binomial", "--set", "n_frequencies=8",
    "--set", "n_draws=20", "--set", "n_warmup=10", "--set", "n_chains=1",
)  # fmt: skip


def write_counts(path: Path, *, bad: int | None = None) -> None:
    """Sixty rows of counts with a mean around 20; one of them may be -3."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (60, 2))
    y = rng.poisson(20.0 * np.exp(np.sin(2.0 * X[:, 0])))
    y[0] = 0
    if bad is not None:
        y[bad] = -3
    lines = [f"{a!r},{b!r},{k}" for (a, b), k in zip(X.tolist(), y.tolist(), strict=True)]
    path.write_text("\n".join(["a,b,sold", *lines]) + "\n")


def test_counts_are_fitted_scored_and_predicted(run, tmp_path: Path) -> None:
    table, out, found = (tmp_path / name for name in ("t.csv", "m.mercer", "p.csv"))
    write_counts(table)
    report = tmp_path / "r.html"
    outputs = ("--out", out, "--report", report)
    code, said, err = run("fit", table, "--target", "sold", "--cv", "3", *COUNTS, *outputs)
    assert code == 0, err
    assert "if they count something" in said
    assert "negative binomial law" in report.read_text()
    code, _, err = run("predict", out, table, "--out", found)
    assert code == 0
    assert "share inside 90 % intervals" in err
    with found.open() as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 60
    ends = np.array([[float(row["lower_90"]), float(row["upper_90"])] for row in rows])
    np.testing.assert_array_equal(ends, np.rint(ends))
    assert np.all(ends >= 0.0)


def test_what_is_no_count_is_named_by_its_row_in_the_file(run, tmp_path: Path) -> None:
    """Also in folds, which have positions of their own."""
    table = tmp_path / "t.csv"
    write_counts(table, bad=40)
    for how in (("--cv", "3"), ("--test-size", "0.25")):
        code, _, err = run("fit", table, "--target", "sold", *how, *COUNTS)
        assert code == 3
        assert "t.csv: row 41: the target is -3" in err
