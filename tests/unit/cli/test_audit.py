from __future__ import annotations

import csv
import io
import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from mercer.cli.options import TableOptions

from .conftest import SPHERE, TINY, WRONG, write_csv


def words_of(data: Path, *more: object) -> list[object]:
    return ["audit", data, "--target", "sick", *SPHERE, *more]


def test_a_row_with_an_input_far_from_all_others_is_told(run, tmp_path: Path) -> None:
    """What its label should be nobody knows, and it may be no more than the input that is wrong."""
    rng = np.random.default_rng(0)
    heights = np.where(np.arange(40) == 11, 57.0, rng.normal(170.0, 8.0, 40).round())
    rows = [f"{h},{rng.normal()},{int(h > 170.0)}" for h in heights]
    data = tmp_path / "d.csv"
    data.write_text("\n".join(["height,other,sick", *rows]))
    code, said, err = run("inspect", data, "--target", "sick")
    assert code == 0, err
    assert "far off   'height' of row 12 is 57, of all others 15" in said
    assert "'other'" not in said


def test_an_audit_says_what_it_finds_and_writes_all_rows(
    run, suspects: Path, tmp_path: Path
) -> None:
    out, report = tmp_path / "a.csv", tmp_path / "a.html"
    code, said, err = run(*words_of(suspects, "--id", "patient", "--out", out, "--report", report))
    assert code == 0, err
    for label in ("data ", "task ", "model ", "seed ", "fitted ", "noise ", "list ", "written "):
        assert f"\n{label}" in f"\n{said}"
    assert "(learned; 90 % interval" in said
    assert "noise by evidence: " in said
    assert "list      2 rows of 40" in said
    assert "row  patient  recorded  suggested  P(wrong)  listed" in said
    assert "warning   too short to judge" in err
    assert "\x1b" not in said + err
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert list(rows[0]) == [
        "row", "patient", "label", "p_wrong", "suggested", "p_suggested", "is_listed"
    ]  # fmt: skip
    assert {int(row["row"]) for row in rows[:2]} == {i + 1 for i in WRONG}
    assert {row["patient"] for row in rows[:2]} == {f"p{i:03}" for i in WRONG}
    assert [row["is_listed"] for row in rows] == ["True"] * 2 + ["False"] * 38
    p = [float(row["p_wrong"]) for row in rows]
    assert p == sorted(p, reverse=True)
    assert all({row["label"], row["suggested"]} == {"no", "yes"} for row in rows)
    assert [row["p_suggested"] for row in rows] == [row["p_wrong"] for row in rows]
    html = report.read_text()
    assert "Labels that are probably wrong" in html
    assert "mercer audit" in html
    for step in ("review", "fit"):
        assert f"\nnext      mercer {step} {suspects} --target" in said
        assert f"mercer {step} {suspects} --target" in html
    longer = next(line for line in said.splitlines() if line.startswith("next      mercer audit"))
    assert "n_draws=" in longer
    assert f"--out {tmp_path / 'a-2.csv'}" in longer
    assert "p007" not in html  # names of rows stay out of a report


def test_json_is_all_there_is_on_standard_output(run, suspects: Path) -> None:
    code, said, _ = run(*words_of(suspects, "--id", "patient", "--fdr", "0.5", "--json"))
    assert code == 0
    found = json.loads(said)
    assert found["fdr"] == 0.5
    assert sum(row["is_listed"] for row in found["rows"]) == found["n_listed"] >= 2
    listed = [1 - row["p_wrong"] for row in found["rows"][: found["n_listed"]]]
    assert sum(listed) / len(listed) == pytest.approx(found["expected_fdr"])
    assert found["expected_fdr"] <= 0.5
    assert found["noise_rate"]["is_learned"]
    rates = found["noise_rate"].get("by_class", {"all": found["noise_rate"]})
    assert set(rates) in ({"no", "yes"}, {"all"})
    assert all(rate["lower"] <= rate["mean"] <= rate["upper"] for rate in rates.values())
    assert found["compared"]["columns"][0] == "kernel"
    assert found["rows"][0]["patient"] in {f"p{i:03}" for i in WRONG}


def test_inputs_are_standardised_unless_it_is_set_otherwise(run, suspects: Path) -> None:
    scales = []
    for more in ((), ("--set", "standardize=false")):
        _, said, _ = run(*words_of(suspects, "--drop", "patient", "--json", *more))
        found = json.loads(said)["compared"]
        scales.append(found["rows"][0][found["columns"].index("lengthscale")])
    assert scales[0] < 0.8 * scales[1]


def test_rates_given_by_class_or_with_a_prior(run, suspects: Path) -> None:
    words = words_of(suspects, "--drop", "patient")
    code, said, _ = run(*words, "--set", "noise_rate=0.1")
    assert code == 0
    assert "noise     10.0 % of the labels are wrong (given)" in said
    more = ("--set", "noise_rate=learn per class", "--set", "noise_prior=1,9")
    code, said, _ = run(*words, *more)
    assert code == 0
    assert "% of those that are 'no' (learned; 90 % interval" in said


def test_rows_keep_their_numbers_when_others_are_dropped(run, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    lines = [f"{'' if i in (0, 4) else 5 * (i % 2) + i / 100},{'xy'[i % 2]}" for i in range(24)]
    lines[9] = f"{5 * (9 % 2) + 0.09},x"
    path.write_text("a,sick\n" + "\n".join(lines) + "\n")
    out = tmp_path / "a.csv"
    code, _, err = run(*words_of(path, "--missing", "drop", "--out", out))
    assert code == 0, err
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert rows[0]["row"] == "10"
    assert sorted(int(row["row"]) for row in rows) == [i + 1 for i in range(24) if i not in (0, 4)]


def test_several_classes(run, tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    code, said, err = run("audit", "iris", "--target", "target", *SPHERE, "--out", out)
    assert code == 0, err
    assert "P(suggested)" in said
    first = json.loads(out.read_text())[0]
    assert first["suggested"] != first["label"]
    assert first["p_suggested"] <= first["p_wrong"] + 1e-12


def test_a_run_that_is_repeated_goes_on_from_its_checkpoint(
    run, suspects: Path, tmp_path: Path
) -> None:
    words = words_of(suspects, "--drop", "patient", "--checkpoint", tmp_path / "state", "--json")
    first = json.loads(run(*words)[1])
    second = json.loads(run(*words)[1])
    assert first["rows"] == second["rows"]
    code, _, err = run(*words, "--seed", "1")
    assert code == 4
    assert "seed" in err


def test_conflicts_are_said(run, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,sick\n1,x\n2,y\n3,x\n2,x\n9,y\n8,y\n")
    code, said, _ = run(*words_of(path))
    assert code == 0
    assert "2 rows have the inputs of a row with another label, such as rows 2 and 4" in said


def test_a_table_with_the_suggested_labels(run, suspects: Path, tmp_path: Path) -> None:
    data, fixed = tmp_path / "d.csv", tmp_path / "f.csv"
    lines = suspects.read_text().splitlines()
    lines[3] = lines[3].replace("p002,", "p002,x y;,", 1)
    lines = [line.replace(",", f",0{k},", 1) if k != 3 else line for k, line in enumerate(lines)]
    text = "\n".join(lines).replace("patient,00", "patient,code") + "\n"
    data.write_text(text, newline="\r\n")
    before = data.read_bytes()
    words = words_of(data, "--drop", "patient,code", "--fixed", fixed)
    code, said, err = run(*words, "--json")
    assert code == 0, err
    assert data.read_bytes() == before
    assert fixed.read_bytes().count(b"\r\n") == before.count(b"\r\n") == len(lines)
    told = json.loads(said)
    assert (told["fixed"], told["n_listed"]) == (str(fixed), 2)
    after = list(csv.reader(io.StringIO(fixed.read_text())))
    assert after[0] == ["patient", "code", "a", "b", "sick", "recorded", "p_wrong", "is_changed"]
    table = list(csv.reader(io.StringIO(text)))
    p_wrong = {row["row"]: row["p_wrong"] for row in told["rows"]}
    for k, (old, new) in enumerate(zip(table[1:], after[1:], strict=True)):
        other = {"no": "yes", "yes": "no"}[old[-1]] if k in WRONG else old[-1]
        assert new[:6] == [*old[:-1], other, old[-1]]
        assert new[6:] == [str(p_wrong[k + 1]), str(k in WRONG)]
    code, said, _ = run(*words)
    line = next(line for line in said.splitlines() if line.startswith("fixed "))
    assert "2 labels replaced" in line
    assert "--drop recorded,p_wrong,is_changed" in line
    assert f"--fixed {tmp_path / 'f-2.csv'}" in said


def test_a_table_with_expected_numbers(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    size = rng.uniform(1.0, 5.0, 40)
    price = np.round(1000.0 + 40.0 * size + rng.normal(0.0, 3.0, 40), 1)
    price[7] = 10.0 * price[7]
    path, fixed = tmp_path / "p.csv", tmp_path / "f.csv"
    comma = [f"{a:.4f};${b:,}".replace(".", ",", 1) for a, b in zip(size, price, strict=True)]
    gap = ["3,5;"]
    path.write_text("\n".join(["size;price", *comma, *gap]) + "\n")
    words = ["audit", path, "--target", "price", "--missing", "drop", "--set", "kernel=rbf"]
    short = ["--set", "n_draws=150", "--set", "n_chains=2"]
    code, said, err = run(*words, *short, "--fixed", fixed, "--json")
    assert code == 0, err
    first = json.loads(said)["rows"][0]
    rows = list(csv.DictReader(io.StringIO(fixed.read_text())))
    assert [k for k, row in enumerate(rows) if row["is_changed"] == "True"] == [7]
    assert rows[7]["recorded"] == f"${price[7]:,}"
    assert float(rows[7]["price"].replace("$", "").replace(",", "")) == first["expected"]
    assert rows[8]["size"] == f"{size[8]:.4f}".rstrip("0")
    assert list(rows[40].values()) == ["3.5", "", "", "", "False"]
    from mercer.cli.tables import read_training

    again = read_training(str(fixed), TableOptions("price", "auto", (), None, None, "drop"))
    assert again.labels[7] == first["expected"]  # read as it was written


TWO = "a,b,sick\n1,2,x\n2,1,y\n3,5,x\n1,2,y\n"
BAD = {
    "unknown-column": (TWO, ["--drop", "c"], 3, "'c'"),
    "unknown-id": (TWO, ["--id", "name"], 3, "'name'"),
    "id-like-a-result": ("row,sick\n1,x\n2,y\n", ["--id", "row"], 2, "rename it"),
    "no-target": ("a,b\n1,2\n", [], 3, "'sick'"),
    "one-class": ("a,sick\n1,x\n2,x\n", [], 3, "'x'"),
    "one-row": ("a,sick\n1,x\n", [], 3, "only one class"),
    "two-numbers": ("a,sick\n1,0.5\n2,1.5\n3,0.5\n", [], 2, "--task classification audits"),
    "numbers-by-sphere": ("a,sick\n1,0.5\n2,1.5\n3,2.5\n", [], 2, "GPRegressor has no such"),
    "rate-above-half": (TWO, ["--set", "noise_rate=0.7"], 2, "[0, 0.5]; got 0.7"),
    "rate-below-0": (TWO, ["--set", "noise_rate=-0.1"], 2, "[0, 0.5]; got -0.1"),
    "rate-in-words": (TWO, ["--set", "noise_rate=lern"], 2, "'learn per class'"),
    "prior": (TWO, ["--set", "noise_prior=0,1"], 2, "two numbers above 0"),
    "prior-of-three": (TWO, ["--set", "noise_prior=1,1,1"], 2, "two numbers above 0"),
    "conflict": (TWO, ["--set", "noise_rate=0"], 3, "rows 1 and 4 have equal inputs"),
    "fdr": (TWO, ["--fdr", "1.5"], 2, "--fdr"),
    "suffix": (TWO, ["--out", "a.xlsx"], 2, ".parquet"),
    "group": (TWO, ["--group", "b"], 2, "--group"),
    "fixed": (TWO.replace("b", "recorded"), ["--fixed", "a.csv", "--out", "a.json"], 2, "rename"),
    "itself": (TWO, ["--fixed", "d.csv"], 2, "name another file"),
    "fixed-suffix": (TWO, ["--fixed", "a.xlsx"], 2, ".parquet"),
    "strict": (TWO, ["--strict"], 5, "too short to judge"),
}  # fmt: skip


@pytest.mark.parametrize("row", BAD)
def test_bad_input_is_one_line_and_nothing_is_written(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str
) -> None:
    text, more, expected, words = BAD[row]
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "d.csv"
    path.write_text(text)
    out = [] if "--out" in more else ["--out", "a.csv"]
    code, _, err = run(*words_of(path, *out, "--report", "a.html", *more))
    assert (code, err.count("\n")) == (expected, 1), err
    assert words in err
    assert not list(tmp_path.glob("a.*"))


def test_certain_labels_that_conflict_are_told_what_to_do(run, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(TWO)
    for command in (["audit"], ["fit", "--model", "sphere"]):
        code, _, err = run(
            *command, path, "--target", "sick", "--set", "noise_rate=0.0", "--jobs", "1"
        )
        assert code == 3
        assert "use noise_rate > 0" in err
        assert "'x' and 'y'" in err


def test_wrong_numbers_are_listed_with_what_is_expected(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    size = rng.uniform(1.0, 5.0, 40)
    price = np.round(100.0 + 40.0 * size + rng.normal(0.0, 3.0, 40), 1)
    price[[7, 20]] = [10.0 * price[7], price[20] - 60.0]
    path, out, report = tmp_path / "p.csv", tmp_path / "a.csv", tmp_path / "a.html"
    rows = zip([f"h{i:02}" for i in range(40)], size, price, strict=True)
    path.write_text("house,size,price\n" + "".join(f"{a},{b:.4f},{c}\n" for a, b, c in rows))
    words = ["audit", path, "--target", "price", "--id", "house", "--set", "kernel=rbf"]
    short = ["--set", "n_draws=150", "--set", "n_chains=2"]
    code, said, err = run(*words, *short, "--out", out, "--report", report)
    assert code == 0, err
    assert "of the values are wrong (learned; 90 % interval" in said
    assert "row  house  recorded  expected" in said
    found = list(csv.DictReader(io.StringIO(out.read_text())))
    assert list(found[0]) == [
        "row", "house", "value", "p_wrong", "expected", "expected_std", "is_listed"
    ]  # fmt: skip
    assert {row["house"] for row in found[:2]} == {"h07", "h20"}
    for row in found[:2]:
        right = 100.0 + 40.0 * size[int(row["house"][1:])]
        assert abs(float(row["expected"]) - right) < 4.0 * float(row["expected_std"])
    html = report.read_text()
    assert "Values that are probably wrong" in html
    assert "Audit of values" in html
    code, said, _ = run(*words, *short, "--json")
    assert code == 0
    told = json.loads(said)
    assert 0.0 < told["noise_rate"]["lower"] < told["noise_rate"]["mean"] < 0.3
    assert told["rows"][0]["value"] == float(found[0]["value"])


@pytest.mark.parametrize("is_factor", [True, False])
def test_logarithms_are_audited_where_noise_is_a_factor(
    run, tmp_path: Path, is_factor: bool
) -> None:
    """Also where a tenth of the values have their point a place off."""
    rng = np.random.default_rng(3)
    size = rng.uniform(0.0, 3.0, 120)
    noise = rng.standard_normal(120)
    price = np.exp(1.0 + size + 0.3 * noise) if is_factor else 40.0 + 10.0 * np.sin(size) + noise
    price[:9] *= np.tile([10.0, 0.1, 10.0], 3)
    path = tmp_path / "p.csv"
    lines = zip(size, price, strict=True)
    path.write_text("size,price\n" + "".join(f"{a:.4f},{b:.4f}\n" for a, b in lines))
    words = ["audit", path, "--target", "price", "--set", "n_draws=40", "--set", "n_warmup=20"]
    words += ["--set", "n_chains=2", "--set", "kernel=rbf"]
    code, said, err = run(*words)
    assert code == 0, err
    assert ("audited   logarithms: noise is a factor, by" in said) == is_factor
    noise = "contaminated" + "_lognormal" * is_factor
    assert f"--model gp --set noise={noise} --set" in said
    code, told, _ = run(*words, "--json")
    assert {row["row"] for row in json.loads(told)["rows"][:9]} == set(range(1, 10))
    code, said, _ = run(*words, "--set", "noise=contaminated")
    assert code == 0
    assert "audited   logarithms" not in said


def test_where_errors_look_like_a_long_tail_logarithms_are_proposed(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    size = rng.uniform(0.0, 3.0, 90)
    price = np.exp(1.0 + size + 1.2 * rng.standard_normal(90))
    path = tmp_path / "p.csv"
    lines = zip(size, price, strict=True)
    path.write_text("size,price\n" + "".join(f"{a:.4f},{b:.4f}\n" for a, b in lines))
    words = ["audit", path, "--target", "price", "--set", "n_draws=40", "--set", "n_warmup=20"]
    words += ["--set", "n_chains=2", "--set", "kernel=rbf"]
    code, said, err = run(*words, "--set", "noise=contaminated")
    assert code == 0, err
    assert "an audit of the logarithms would tell" in said
    proposed = next(line for line in said.splitlines() if "noise=contaminated_lognormal" in line)
    code, said, err = run(*shlex.split(proposed.partition("mercer ")[2]))
    assert code == 0, err
    assert "logarithms" not in said
    assert "mercer fit" in said
    assert "--set noise=contaminated_lognormal" in said


@pytest.mark.slow  # a thousand rows
def test_above_a_thousand_rows_a_learned_kernel_lists_wrong_numbers(run, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    size = rng.uniform(1.0, 5.0, 1100)
    price = np.round(100.0 + 40.0 * np.sin(size) + rng.normal(0.0, 3.0, 1100), 1)
    price[[7, 20]] = [10.0 * price[7], price[20] - 60.0]
    path = tmp_path / "p.csv"
    lines = zip(size, price, strict=True)
    path.write_text("size,price\n" + "".join(f"{a:.4f},{b}\n" for a, b in lines))
    words = ["audit", path, "--target", "price"]
    short = ["--set", "n_draws=20", "--set", "n_warmup=20", "--set", "n_chains=1"]
    few = ["--set", "n_draws=5", "--set", "n_warmup=5", "--set", "n_chains=1"]
    code, said, err = run(*words, *few, "--set", "n_frequencies=8")
    assert code == 0, err
    assert "spectral" in said
    assert "the one that audits above 1000 rows" in said
    assert "--model spectral --set noise=contaminated" in said
    code, said, _ = run(*words, *short, "--set", "n_frequencies=16", "--json")
    assert code == 0
    told = json.loads(said)
    assert told["model"] == "spectral"
    assert {row["row"] for row in told["rows"][:2]} == {8, 21}
    assert told["rows"][0]["p_wrong"] > 0.99
    model = tmp_path / "m.mercer"
    fit = ["fit", path, "--target", "price", "--model", "spectral", "--set", "noise=contaminated"]
    code, said, err = run(*fit, *few, "--set", "n_frequencies=8", "--test", path, "--out", model)
    assert code == 0, err
    assert "holds the targets of the training rows" in said
    assert "holds training rows: their targets only" in run("inspect", model)[1]
    # So it is of labels, where predictions need no row.
    labels = [
        "fit",
        write_csv(tmp_path / "labels.csv"),
        "--target",
        "label",
        "--model",
        "sphere",
        *TINY,
    ]
    line = ["--set", "kernel=linear", "--test-size", "0.3", "--out", model]
    code, said, err = run(*labels, *line)
    assert code == 0, err
    assert "holds the targets of the training rows" in said
    assert "holds training rows: their targets only" in run("inspect", model)[1]
    code, _, err = run(*words, "--model", "basis")
    assert code != 0
    assert "--model basis does not audit regression: gp or spectral does" in err
