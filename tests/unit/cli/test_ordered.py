"""Classes with an order on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mercer

NAMES = np.array(["low", "mid", "high", "top"])


def test_an_order_on_the_command_line(run, tmp_path: Path) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "m.mercer"
    X = np.random.default_rng(0).standard_normal((90, 2))
    rank = np.digitize(X[:, 0], [-0.7, 0.0, 0.7])
    rows = zip(X.tolist(), NAMES[rank].tolist(), strict=True)
    table.write_text("\n".join(["a,b,grade", *(f"{a!r},{b!r},{k}" for (a, b), k in rows)]) + "\n")
    sets = ("n_frequencies=8", "n_draws=12", "n_warmup=8", "n_chains=1")
    given = [table, "--target", "grade", "--model", "spectral", "--out", out]
    given += [word for each in sets for word in ("--set", each)]
    code, _, err = run("fit", *given, "--cv", "2", "--set", "ordered=low,mid,high,top")
    assert code == 0, err
    assert mercer.load(out).class_order_.tolist() == NAMES.tolist()
    code, said, err = run("fit", *given, "--test-size", "0.3", "--set", "ordered=true")
    assert code == 0, err
    assert "classes from the lowest to the highest: high, low, mid, top (sorted)" in " ".join(
        said.split()
    )
    code, _, err = run("fit", *given, "--set", "ordered=low,mid,high")
    assert code == 2
    assert "ordered lacks top of the target" in err
