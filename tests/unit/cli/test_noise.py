"""Noise that depends on the inputs on the command line: fit, scores, predictions."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

NOISE = (
    "--model", "spectral", "--set", "noise=heteroscedastic", "--set", "n_frequencies=8",
    "--set", "n_draws=40", "--set", "n_warmup=40", "--set", "n_chains=1",
)  # fmt: skip


def test_noise_that_varies_is_fitted_scored_and_predicted(run, tmp_path: Path) -> None:
    """Intervals are wide where the noise is ten times as large."""
    table, out, found = (tmp_path / name for name in ("t.csv", "m.mercer", "p.csv"))
    rng, report = np.random.default_rng(0), tmp_path / "r.html"
    x = rng.uniform(-2.0, 2.0, 120)
    y = np.sin(2.0 * x) + np.where(x > 0.0, 1.0, 0.1) * rng.standard_normal(120)
    lines = [f"{a!r},{b!r}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    table.write_text("\n".join(["a,price", *lines]) + "\n")
    outputs = ("--out", out, "--report", report)
    code, _, err = run("fit", table, "--target", "price", "--cv", "2", *NOISE, *outputs)
    assert code == 0, err
    assert "it depends on the inputs" in report.read_text()
    code, _, err = run("predict", out, table, "--out", found)
    assert code == 0
    with found.open() as rows:
        width = [float(row["upper_90"]) - float(row["lower_90"]) for row in csv.DictReader(rows)]
    assert np.median(np.array(width)[x > 0.5]) > 3.0 * np.median(np.array(width)[x < -0.5])
