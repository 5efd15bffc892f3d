"""Every row that an output names is the row of the user's file, whatever was split off before.

The file is shuffled, misses cells, has groups and names; two labels of it are wrong. Positions
among the rows that a model saw would name others: of those, every second has another label.
"""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

from mercer.cli.main import main
from mercer.errors import ModelFileError
from mercer.models import read_model
from mercer.posterior.container import read_container, write_container
from mercer.report import build_report
from support.audited import audited

from .conftest import SPHERE, TINY, write_csv

N = 60
HELD = ["--test-size", "0.25", "--no-refit"]


class Table:
    """The file as a user sees it: rows from 1."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open(path, newline="") as stream:
            self.rows = list(csv.DictReader(stream))
        self.wrong = {
            k + 1 for k, row in enumerate(self.rows) if row["id"] in ("n-7", "n-20", "n-33")
        }

    def label(self, row: int) -> str:
        return self.rows[row - 1]["sick"]

    def name(self, row: int) -> str:
        return self.rows[row - 1]["id"]


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory) -> Table:
    rng = np.random.default_rng(11)
    kind = np.arange(N) % 2
    a, b = 0.6 * rng.standard_normal(N) + 5.0 * kind, 0.6 * rng.standard_normal(N)
    sick = np.array(["no", "yes"])[kind]
    for k in (7, 20, 33):
        a[k], b[k], sick[k] = 5.0 * kind[k], 0.0, ("yes", "no")[kind[k]]
    path = tmp_path_factory.mktemp("rows") / "t.csv"
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "a", "b", "ward", "sick"])
        for place, k in enumerate(rng.permutation(N)):
            is_missing = place % 9 == 1 and k not in (7, 20, 33)
            first = "" if is_missing else f"{a[k]:.4f}"
            writer.writerow([f"n-{k}", first, f"{b[k]:.4f}", f"w{k // 3}", sick[k]])
    return Table(path)


def words_of(table: Table, *more: object) -> list[object]:
    return [table.path, "--target", "sick", "--missing", "drop", *SPHERE, *more]


def listed(html: str) -> list[dict[str, str]]:
    """Return the rows of the table of suspicious labels in a report."""
    section = html[html.index('id="labels"') :]
    body = section[section.index("<table") : section.index("</table>")]
    lines = re.findall(r"<tr.*?</tr>", body, flags=re.S)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, flags=re.S) for line in lines]
    texts = [[re.sub(r"<[^>]*>", "", cell).strip() for cell in line] for line in cells]
    return [dict(zip(texts[0], line, strict=True)) for line in texts[1:]]


def agrees(table: Table, rows: list[dict[str, str]], label: str) -> None:
    """Check each named row against the file, and that the wrong labels come first."""
    for row in rows:
        assert table.label(int(row["row"])) == row[label]
        if "id" in row:
            assert table.name(int(row["row"])) == row["id"]
    seen = [int(row["row"]) for row in rows]
    n_wrong = len(table.wrong & set(seen))
    assert n_wrong >= 1
    assert set(seen[:n_wrong]) <= table.wrong


SPLITS = {
    "held out": HELD,
    "groups": [*HELD, "--group", "ward"],
    "refitted": ["--cv", "2"],
    "all, named": [*HELD, "--id", "id"],
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
def test_reports_of_fit_and_of_the_saved_model(run, shuffled: Table, tmp_path, split) -> None:
    model, first, later = (tmp_path / name for name in ("m.mercer", "a.html", "b.html"))
    drop = [] if "--id" in split else ["--drop", "id"]
    drop += [] if "--group" in split else ["--drop", "ward"]
    files = ["--out", model, "--report", first]
    code, _, err = run("fit", *words_of(shuffled, *split, *drop, "--model", "sphere", *files))
    assert code == 0, err
    agrees(shuffled, listed(first.read_text()), "recorded")
    assert "Rows are those of " in first.read_text()
    for data in ([], [shuffled.path]):
        code, _, err = run("report", model, *data, "--out", later)
        assert code == 0, err
        assert listed(later.read_text()) == listed(first.read_text())
    assert "n-7" not in first.read_text()  # names of rows stay out of what is passed on
    assert b"n-7" not in model.read_bytes()
    rows = {
        int(name.removeprefix("margin[row ").removesuffix("]"))
        for name in read_model(model).estimator.diagnostics_.table.column("name")
        if str(name).startswith("margin")
    }
    assert rows
    assert rows <= set(read_model(model).estimator.row_names_.number.tolist())


def test_an_audit_in_every_form(run, shuffled: Table, tmp_path) -> None:
    out, report = tmp_path / "a.csv", tmp_path / "a.html"
    more = ["--id", "id", "--drop", "ward", "--out", out, "--report", report]
    code, said, err = run("audit", *words_of(shuffled, *more))
    assert code == 0, err
    agrees(shuffled, list(csv.DictReader(io.StringIO(out.read_text()))), "label")
    agrees(shuffled, listed(report.read_text()), "recorded")
    shown = re.findall(r"^\s*(\d+)\s+(n-\d+)\s+(no|yes)\s+(?:no|yes)\s", said, flags=re.M)
    assert len(shown) >= 3
    agrees(shuffled, [dict(zip(("row", "id", "x"), line, strict=True)) for line in shown], "x")
    code, said, _ = run("audit", *words_of(shuffled, "--id", "id", "--drop", "ward", "--json"))
    rows = json.loads(said)["rows"]
    agrees(shuffled, rows, "label")


def test_predictions_and_queries(run, shuffled: Table, tmp_path) -> None:
    model, out = tmp_path / "m.mercer", tmp_path / "p.csv"
    drop = ["--drop", "id,ward", "--model", "sphere", "--out", model]
    assert run("fit", *words_of(shuffled, *HELD, *drop))[0] == 0
    assert run("predict", model, shuffled.path, "--out", out)[0] == 0
    present = [k + 1 for k, row in enumerate(shuffled.rows) if row["a"]]
    predicted = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [int(row["row"]) for row in predicted] == present
    # The clusters are far apart: the class of a row is that of the cluster its inputs are in.
    for row in predicted:
        cell = float(shuffled.rows[int(row["row"]) - 1]["a"])
        assert row["prediction"] == ("yes" if cell > 2.5 else "no")
    code, said, _ = run("query", model, shuffled.path, "-n", "5", "--id", "id", "--out", out)
    assert code == 0
    for row in csv.DictReader(io.StringIO(out.read_text())):
        assert shuffled.name(int(row["row"])) == row["id"]
        assert re.search(rf"^\s*{row['row']}\s+{row['id']}\s", said, flags=re.M)


@pytest.mark.parametrize("command", [["fit", *HELD, "--model", "sphere"], ["audit"]])
def test_errors_about_rows_name_them(run, tmp_path, command) -> None:
    """Rows on one ray with different labels: under every classifier one of them is wrong."""
    path = tmp_path / "z.csv"
    lines = [f"{k % 2 * 2 - 1},{(k % 2 * 2 - 1) * (1 + k / 50)},{'ab'[k % 2]}" for k in range(40)]
    lines[2] = ",1,a"
    lines[31] = "-1,-1.3,b"
    path.write_text("x,z,label\n" + "\n".join(lines) + "\n")
    settings = ("kernel=linear", "fit_intercept=false", "noise_rate=0", "nugget=0")
    more = [word for each in (*settings, "standardize=false") for word in ("--set", each)]
    rest = ["--missing", "drop", *SPHERE, *more]
    for seed in (0, 1):  # which of them holds the row out is chance
        words = [command[0], path, "--target", "label", *command[1:], *rest]
        code, _, err = run(*words, "--seed", seed)
        if code == 3:
            assert re.search(r"z.csv: rows \d+ and 32 contradict each other", err)
            return
    raise AssertionError(err)


def test_files_of_a_folder_are_named_too(run, shuffled: Table, tmp_path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    head, *lines = shuffled.path.read_text().splitlines()
    for name, part in (("a.csv", lines[:25]), ("b.csv", lines[25:])):
        (folder / name).write_text("\n".join([head, *part]) + "\n")
    out, report = tmp_path / "a.csv", tmp_path / "a.html"
    words = words_of(shuffled, "--id", "id", "--drop", "ward", "--out", out, "--report", report)
    words[0] = folder
    code, _, err = run("audit", *words)
    assert code == 0, err
    offsets = {str(folder / "a.csv"): 0, str(folder / "b.csv"): 25}
    for rows, label in (
        (list(csv.DictReader(io.StringIO(out.read_text()))), "label"),
        (listed(report.read_text()), "recorded"),
    ):
        for row in rows:
            row["row"] = str(int(row["row"]) + offsets[row["file"]])
        agrees(shuffled, rows, label)


@pytest.mark.parametrize("id_column", [[], ["--id", "id"]], ids=["number", "name"])
def test_a_fold_of_compare_that_fails_on_rows_names_those_of_the_file(
    run, tmp_path: Path, id_column: list[str]
) -> None:
    """Ten pairs of equal inputs and different labels, which no rate of wrong labels forgives."""
    rng = np.random.default_rng(12)
    lines = [[f"n-{k}", f"{k // 2}", "1", ("no", "yes")[k % 2]] for k in range(20)]
    lines += [[f"n-{k}", "", f"{k}", ("no", "yes")[k % 2]] for k in range(20, 26)]
    rows = [lines[k] for k in rng.permutation(26)]
    path = tmp_path / "t.csv"
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows([["id", "a", "b", "sick"], *rows])
    code, out, err = run(
        "compare", path, "--target", "sick", "--missing", "drop", "--models", "sphere,dummy",
        "--cv", "2", "--json", "--set", "noise_rate=0", *(id_column or ["--drop", "id"]), *SPHERE,
    )  # fmt: skip
    assert code == 0, err
    (sphere,) = (each for each in json.loads(out)["models"] if each["name"] == "mercer sphere")
    words = sphere["problem"]
    assert words in err
    assert "positions" not in words
    found = re.fullmatch(r"failed: rows (\d+)(.*) and (\d+)(.*) contradict each other, .*", words)
    assert found is not None, words
    one, other = (rows[int(number) - 1] for number in found.group(1, 3))
    assert one[1] == other[1]
    assert one[3] != other[3]
    names = [f" ('{row[0]}')" if id_column else "" for row in (one, other)]
    assert list(found.group(2, 4)) == names


def test_in_python_rows_are_positions_and_old_files_say_what_they_do_not_know(tmp_path) -> None:
    model = audited()
    (table,) = build_report(model, evaluation=None, provenance=None).sections[4].tables
    assert "positions in X" in table.caption
    assert "the first is 0" in table.caption
    for row in table.rows:
        assert model.recorded_[int(row[0].text)] == row[1].text
    path = tmp_path / "m.mercer"
    model.save(path)
    manifest, arrays = read_container(path)
    del manifest["fields"]["rows"], arrays["rows/number"], arrays["rows/file"]
    write_container(path, manifest, arrays)
    old = build_report(read_model(path).estimator, evaluation=None, provenance=None)
    assert "does not record which rows" in old.sections[4].tables[0].caption


@pytest.mark.parametrize("edit", ["kind", "files", "length", "range"])
def test_names_of_rows_in_a_file_are_checked(tmp_path, edit) -> None:
    path = tmp_path / "m.mercer"
    audited().save(path)
    manifest, arrays = read_container(path)
    rows, arrays = manifest["fields"]["rows"], dict(arrays)
    if edit == "kind":
        rows["kind"] = "x"
    elif edit == "files":
        rows["files"] = [3]
    elif edit == "length":
        arrays["rows/number"] = arrays["rows/number"][:-1]
    else:
        arrays["rows/file"] = arrays["rows/file"] + 1
    write_container(path, manifest, arrays)
    with pytest.raises(ModelFileError, match="names of rows"):
        read_model(path)


def test_formulas_leave_as_they_came_unless_they_are_for_a_spreadsheet(run, tmp_path) -> None:
    path, model, out = (tmp_path / name for name in ("f.csv", "m.mercer", "o.csv"))
    lines = [f"=id{k},{5 * (k % 2) + k / 99},{('@no', '+yes')[k % 2]}" for k in range(30)]
    path.write_text("=name,a,sick\n" + "\n".join(lines) + "\n")
    words = [path, "--target", "sick", *SPHERE]
    fit = ["fit", *words, "--drop", "=name", "--model", "sphere", *HELD, "--out", model]
    assert run(*fit)[0] == 0
    commands = {
        "predict": ["predict", model, path, "--id", "=name"],
        "query": ["query", model, path, "-n", "4", "--id", "=name"],
        "audit": ["audit", *words, "--id", "=name"],
    }
    for name, command in commands.items():
        texts = []
        for more in ([], ["--for-spreadsheet"]):
            assert run(*command, "--out", out, *more)[0] == 0, name
            with open(out, newline="") as stream:
                texts.append(list(csv.reader(stream)))
        plain, safe = texts
        assert "=name" in plain[0]  # what a join needs
        begins = {cell[:1] for line in plain for cell in line}
        assert "=" in begins
        assert not {cell[:1] for line in safe for cell in line} & set("=+@\t\r")
        assert [[cell.removeprefix("'") for cell in line] for line in safe] == plain


@pytest.fixture(scope="module")
def knowing(tmp_path_factory) -> Path:
    """A model whose fit was told the column that names rows."""
    folder = tmp_path_factory.mktemp("knowing")
    table, out = write_csv(folder / "t.csv", extra=True), folder / "m.mercer"
    words = ["--target", "label", "--id", "name", "--test-size", "0.25", *TINY, "--out", str(out)]
    assert main(["fit", str(table), *words]) == 0
    return out


def test_a_model_knows_the_column_that_named_the_rows_of_its_fit(
    run, knowing: Path, tmp_path: Path, monkeypatch
) -> None:
    table = write_csv(tmp_path / "new.csv", n=12, seed=4, extra=True)
    code, out, err = run("predict", knowing, table)
    assert code == 0, err
    assert [line.split(",")[0] for line in out.splitlines()[:3]] == ["name", "p000", "p001"]
    assert "does not use" not in err
    code, out, err = run("query", knowing, table, "-n", 2, "--json")
    assert code == 0, err
    for row in json.loads(out)["queries"]:
        assert row["name"] == f"p{row['row'] - 1:03}"
    code, out, err = run("explain", knowing, table, "--row", "p004", "--row", 2, "--json")
    assert code == 0, err
    assert [row["row"] for row in json.loads(out)["rows"]] == ["5", "2"]
    whole = run("predict", knowing, table)[1]
    monkeypatch.setattr("mercer.cli.out_of_core.LARGE_BYTES", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run("predict", knowing, table)[1] == whole
    assert run("predict", knowing, table, "--id", "b")[1].startswith("b,prediction,")


def test_a_table_without_the_names_of_the_fit_is_predicted_by_numbers(
    run, knowing: Path, tmp_path: Path
) -> None:
    table = write_csv(tmp_path / "new.csv", n=12, seed=4)
    code, out, err = run("predict", knowing, table)
    assert code == 0, err
    assert out.startswith("row,prediction,")
    assert "column 'name', which named the rows of the fit, is not there; rows go by numbers" in err
    assert run("predict", knowing, table, "--id", "name")[0] == 3  # one that was asked for
    indexed = tmp_path / "indexed.csv"
    indexed.write_text(",a,b\nk0,0.5,1\nk1,0.25,2\n")
    code, out, err = run("predict", knowing, indexed)
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == ["k0", "k1"]
    assert "rows go by column 'Unnamed: 0'" in err


def test_a_name_of_the_fit_that_is_a_column_of_the_result_is_left(
    run, knowing: Path, tmp_path: Path
) -> None:
    manifest, arrays = read_container(knowing)
    manifest["table"]["id_column"] = "prediction"
    path, table = tmp_path / "m.mercer", tmp_path / "new.csv"
    write_container(path, manifest, arrays)
    table.write_text("a,b,prediction\n0.5,1,x\n0.25,2,y\n")
    code, out, err = run("predict", path, table)
    assert code == 0, err
    assert out.startswith("row,prediction,")
    assert "is also a column of the result; rows go by numbers" in err
