"""Noise that is not alike everywhere on the command line: fit, scores, predictions."""

from __future__ import annotations

import csv
import html
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

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


@pytest.mark.parametrize("df", [1e6, 2.2])
@pytest.mark.parametrize("noise", ["auto", "heteroscedastic"])
def test_the_mean_alone_is_proposed_where_its_errors_are_behind(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noise: str, df: float
) -> None:
    """Of noise that varies, or has heavy tails (2.2), if it was not asked for."""
    from mercer.cli import saving

    rng, table = np.random.default_rng(0), tmp_path / "t.csv"
    x = rng.uniform(-2.0, 2.0, 200)
    std = np.where((x > 0.0) | (df < 3.0), 1.0, 0.1)
    y = x + std * rng.standard_t(df, 200)
    pd.DataFrame({"x": x, "y": y}).to_csv(table, index=False)
    own = [f"noise={noise}" if word.startswith("noise=") else word for word in NOISE]
    monkeypatch.setattr(saving, "standing", lambda evaluation: ("behind", None))
    split = ("--test-size", "0.3", "--no-refit", "--report", tmp_path / "r.html")
    code, said, err = run("fit", table, "--target", "y", *split, *own)
    assert code == 0, err
    for text in (said, html.unescape((tmp_path / "r.html").read_text())):
        words = "with far targets, count less here: for the least squared error alone"
        assert (words in text) == ("--set noise=normal" in text) == (noise == "auto")


def prices(path: Path, *, power: float) -> Path:
    """Prices with noise in proportion to them (1), or alike everywhere (0)."""
    rng = np.random.default_rng(3)
    size = rng.uniform(0.0, 2.0, 200)
    mean, noise = 10.0 * np.exp(size), 0.25 * rng.standard_normal(200)
    price = np.where(power, mean * np.exp(noise), mean + 10.0 * noise)
    pd.DataFrame({"size": size, "price": price}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_it_is_proposed_where_noise_is_a_factor(run, tmp_path: Path, power: float) -> None:
    data, out = prices(tmp_path / "prices.csv", power=power), tmp_path / "r.html"
    tiny = ["--set", "inference=map", "--set", "kernel=rbf", "--cv", "5"]
    added = ["--set", "noise=normal", "--report", out]
    code, said, err = run("fit", data, "--target", "price", *tiny, *added)
    assert code == 0, err
    page = html.unescape(out.read_text())
    for text in (said, page):
        assert ("--set noise=lognormal" in text) == bool(power)
    if not power:
        return
    assert said.index("noise=lognormal") < said.index("mercer compare")
    code, said, err = run("fit", data, "--target", "price", *tiny, "--report", out)
    assert code == 0, err
    assert "noise is a factor: targets left out are likelier so" in said
    assert "Targets scatter more" not in said
    given = ["--set", "noise=lognormal", "--out", tmp_path / "m.mercer", "--report", out]
    code, said, err = run("fit", data, "--target", "price", *tiny, *given)
    assert code == 0, err
    assert "Targets scatter more" not in said
    code, _, err = run("predict", tmp_path / "m.mercer", data, "--out", tmp_path / "p.csv")
    assert code == 0, err
    assert (pd.read_csv(tmp_path / "p.csv")["lower_90"] > 0.0).all()


@pytest.mark.parametrize("df", [2.2, 1e6])
def test_heavy_tails_are_proposed_where_targets_are_far_off(run, tmp_path: Path, df: float) -> None:
    """To a model with normal noise; one that has such tails is as it should be."""
    data, out, rng = tmp_path / "t.csv", tmp_path / "r.html", np.random.default_rng(5)
    x = rng.uniform(-2.0, 2.0, 200)
    y = np.sin(2.0 * x) + 0.1 * rng.standard_t(df, 200)
    pd.DataFrame({"x": x, "y": y}).to_csv(data, index=False)
    tiny = ["--set", "inference=map", "--set", "kernel=rbf", "--cv", "5", "--report", out]
    code, said, err = run("fit", data, "--target", "y", *tiny)
    assert code == 0, err
    for text in (said, html.unescape(out.read_text())):
        assert ("--set noise=student_t" in text) == (df < 3.0)
    if df > 3.0:
        return
    code, said, err = run(
        "fit", data, "--target", "y", "--model", "spectral", *NOISE[4:], "--cv", "3"
    )
    assert code == 0, err
    assert "noise has heavy tails: targets left out are likelier so" in said
    assert "farther off than expected" not in said


@pytest.mark.parametrize("model", ["gp", "spectral"])
def test_a_target_that_is_not_above_0_is_refused(run, tmp_path: Path, model: str) -> None:
    data = tmp_path / "prices.csv"
    data.write_text("size,price\n" + "".join(f"{k},{k}\n" for k in range(1, 60)) + "7,-3.5\n")
    given = ("--target", "price", "--model", model, "--set", "noise=lognormal", "--cv", "2")
    code, _, err = run("fit", data, *given)
    assert code == 3
    assert re.search(r"(row 60: the target is|a target of) -3\.5", err)
    assert "noise='lognormal' is for numbers above 0" in err


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_a_comparison_proposes_it_too(run, tmp_path: Path, power: float) -> None:
    """Unless the best has chosen it."""
    data = prices(tmp_path / "prices.csv", power=power)
    tiny = ["--set", "inference=map", "--set", "kernel=rbf", "--cv", "5"]
    code, said, err = run("compare", data, "--target", "price", "--models", "gp,ridge", *tiny)
    assert code == 0, err
    assert "--models gp,spectral" not in said
    code, said, err = run("compare", data, "--target", "price", "--models", "basis", "--cv", "5")
    assert code == 0, err
    assert ("--models gp,spectral" in said) == bool(power)
    if power:
        again = shlex.split(said[said.rindex("next") + 4 :].strip())
        assert again[1:3] == ["compare", str(data)]
        assert again[-1] == "noise=lognormal"
        code, said, err = run(*again[1:], "--models", "gp")
        assert code == 0, err
        assert "Targets scatter more" not in said
