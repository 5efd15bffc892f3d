from __future__ import annotations

import json
from pathlib import Path

from .conftest import TINY


def test_a_model_is_described(run, model: Path) -> None:
    code, out, err = run("inspect", model)
    assert code == 0
    for words in ("GPClassifier(", "n_draws=20", "target 'label'", "ill, well", "2: a, b"):
        assert words in out
    assert "training rows" in out
    assert "Pareto k-hat" in out
    assert not err


def test_json(run, model: Path) -> None:
    code, out, _ = run("inspect", model, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["holds_training_rows"] is True
    assert found["n_draws"] == 20
    assert "checkpoint" not in found["params"]


def test_checkpoints_are_recognised(run, table: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    words = ["--target", "label", "--test-size", "0.25", *TINY, "--checkpoint", state]
    assert run("fit", table, *words)[0] == 0
    (evaluations,) = (state / "fit").glob("*/importance.mercer")
    code, out, _ = run("inspect", evaluations)
    assert code == 0
    assert "evaluations of importance sampling" in out
    words = ["--target", "label", "--test-size", "0.25", *TINY, "--set", "inference=hmc"]
    state = tmp_path / "chains"
    assert run("fit", table, *words, "--checkpoint", state)[0] == 0
    (chain,) = (state / "fit").glob("*/chain-0.mercer")
    code, out, _ = run("inspect", chain)
    assert code == 0
    assert "state of one chain" in out
    assert "steps     30" in out
    code, out, _ = run("inspect", chain.with_name("run.mercer"), "--json")
    assert code == 0
    assert json.loads(out)["kind"].startswith("checkpoint")


def test_a_table_is_described_before_anything_is_learned(run, table: Path, tmp_path: Path) -> None:
    lines = table.read_text().splitlines()
    copy = tmp_path / "copy.csv"
    copy.write_text("\n".join([f"{lines[0]},same", *(f"{x},{x.split(',')[2]}" for x in lines[1:])]))
    code, out, err = run("inspect", copy, "--target", "label", "--drop", "b")
    assert code == 0
    assert "text with 2 classes" in out
    assert "100 %" in out
    assert "\\xa0" not in out
    assert "“same” alone gives 100" in err
    code, out, _ = run("inspect", copy, "--target", "label", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["leaks"] == ["same"]
    assert [each["name"] for each in found["inputs"]] == ["a", "b", "same"]


def test_large_numbers_are_shown_as_a_terminal_shows_them(run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,label\n" + "".join(f"{k / 7:.4f},{'ab'[k % 2]}\n" for k in range(1200)))
    code, out, _ = run("inspect", path, "--target", "label")
    assert code == 0
    assert " 1 200 " in out
    assert "\\u" not in out


def test_numbers_too_near_or_too_far_apart_for_bins_are_described(run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{10**20 + 9000 * k},{(-1) ** k}e308,{'ab'[k % 2]}\n" for k in range(12)]
    path.write_text("near,far,label\n" + "".join(rows))
    code, out, err = run("inspect", path, "--target", "label")
    assert code == 0, err
    assert "1.00e+20 to 1.00e+20" in out
    assert "-1.00e+308 to 1.00e+308, median 0" in out


def test_a_target_that_names_the_rows_is_told(run, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,name\n" + "".join(f"{i % 7},P{i}\n" for i in range(60)))
    code, out, _ = run("inspect", path, "--target", "name")
    assert code == 0
    assert "target 'name' differs in every row, as names do" in out
    code, _, err = run("fit", path, "--target", "name")
    assert code == 3
    assert "is it a name of the rows?" in err


def test_columns_are_listed_without_a_target(run, table: Path) -> None:
    code, out, _ = run("inspect", table)
    assert code == 0
    assert "label   text" in out
    assert "--target COLUMN" in out
    found = json.loads(run("inspect", table, "--json")[1])
    assert found["columns"][2] == {"column": "label", "kind": "text"}


def test_text_that_is_numbers_or_dates_is_said(run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('when,paid,town,odd\n13.01.2024,"1,234.50 €",Ulm,2 %\n14.01.2024,5 €,,n.d.\n')
    code, out, err = run("inspect", path)
    assert code == 0, err
    kinds = {line.split()[0]: line for line in out.splitlines() if line}
    assert "dates (day/month/year)" in kinds["when"]
    assert "text read as numbers ('€1,234.5' is 1234.5)" in kinds["paid"]
    assert kinds["town"].split()[1:] == kinds["odd"].replace("-", "1").split()[1:] == ["text", "1"]


def test_gaps_of_a_table_are_counted_where_fit_refuses_them(
    run, table: Path, tmp_path: Path
) -> None:
    lines = table.read_text().splitlines()
    lines[1] = "," + lines[1].split(",", 1)[1]
    gaps = tmp_path / "gaps.csv"
    gaps.write_text("\n".join(lines))
    assert run("fit", gaps, "--target", "label", *TINY)[0] != 0
    code, out, err = run("inspect", gaps, "--target", "label")
    assert code == 0
    assert "1 of 2 inputs" in out
    assert "--missing impute" in err
    assert (
        "--missing impute" not in run("inspect", gaps, "--target", "label", "--missing", "drop")[2]
    )


def test_numbers_with_leading_zeros_may_be_codes(run, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    lines = "".join(f"0{k % 4}067,{k / 8},{'no' if k % 3 else 'yes'}\n" for k in range(60))
    path.write_text("plz,size,y\n" + lines)
    words = "column 'plz': some of its numbers begin with a 0"
    out = run("inspect", path, "--target", "y")[1]
    assert words in out
    assert "column 'size'" not in out
    as_levels = run("inspect", path, "--target", "y", "--categories", "plz")[1]
    assert "begin with a 0" not in as_levels
    assert "00067" in as_levels


def test_a_column_of_names_is_told_once(run, tmp_path: Path) -> None:
    """Not also that its frequencies are its code, and constant."""
    path = tmp_path / "d.csv"
    lines = "".join(f"{k % 7},P{k},{2**62 + k},{'no' if k % 3 else 'yes'}\n" for k in range(60))
    path.write_text("a,who,c,y\n" + lines)
    code, out, err = run("inspect", path, "--target", "y")
    assert code == 0
    assert "column 'who' looks like names of rows" in out
    assert "constant, so without effect: 'c' (of such long numbers 15 digits count" in out + err
    assert out.count("'who'") == 2  # of which one is in the advice
    assert "(frequency)" not in out + err
    path.write_text("who,y\n" + "".join(f"P{k},{'no' if k % 3 else 'yes'}\n" for k in range(60)))
    _, out, err = run("inspect", path, "--target", "y")
    assert "all inputs are constant ('who (frequency)')" in out + err
