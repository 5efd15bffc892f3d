"""`mercer stream`: what is answered, what is learned, what is refused, and going on from a file."""

from __future__ import annotations

import gzip
import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import pytest

from mercer import models
from mercer.cli import stream as running
from mercer.cli.stream import LivePanel, Output
from mercer.cli.stream_model import Learner
from mercer.errors import StorageError
from mercer.posterior.container import read_container
from support.line_model.estimator import ENTRY, LineRegressor
from support.statistics import pairs_first
from support.streams import as_json_lines, json_lines, read_answers, write_rows, write_series

W = 20  # of the warm-up in these tests
COMMON = ["--target", "y", "--warmup", W]


@pytest.fixture(autouse=True)
def with_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model that learns row by row is the stand-in."""
    others = tuple(entry for entry in models.MODELS if entry.name != "basis")
    monkeypatch.setattr(models, "MODELS", (*others, ENTRY))


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.csv")


@pytest.fixture
def series(tmp_path: Path) -> Path:
    return write_series(tmp_path / "series.csv")


@pytest.fixture
def stream(run, tmp_path: Path) -> Callable[..., tuple[int, list[dict], str]]:
    """Run the command on a text or a file; returns code, answers, standard error."""

    def call(content: str | Path, *words: object) -> tuple[int, list[dict], str]:
        path = content
        if isinstance(content, str):
            path = tmp_path / "input"
            path.write_text(content)
        code, out, err = run("stream", path, *words)
        return code, read_answers(out), err

    return call


def part(path: Path, first: int, last: int) -> str:
    """The header and some rows of a file."""
    lines = path.read_text().splitlines(keepends=True)
    return lines[0] + "".join(lines[1 + first : 1 + last])


def matrix(rows: Path) -> tuple[np.ndarray, np.ndarray]:
    table = as_json_lines(rows)
    X = np.array([[row["a"], row["b"], row["kind"] == "red"] for row in table], dtype=float)
    return X, np.array([row["y"] for row in table])


def test_each_row_is_answered_before_it_is_learned(stream, rows: Path) -> None:
    code, answers, err = stream(rows, *COMMON, "--id", "name", "--interval", "0.8")
    assert code == 0, err
    X, y = matrix(rows)
    model = LineRegressor(random_state=0).partial_fit(X[:W], y[:W])
    expected = model.prequential(X[W:], y[W:], level=0.8)
    late = answers[W:]
    for name, values in (
        ("prediction", expected.mean),
        ("std", expected.std),
        ("lower", expected.lower),
        ("upper", expected.upper),
        ("log_score", -expected.log_density),
        ("n_centres", expected.n_centres),
    ):
        assert [answer[name] for answer in late] == values.tolist()
    assert late[-1]["mean_log_score"] == pytest.approx(-expected.log_density.mean(), abs=1e-12)
    assert [answer["row"] for answer in answers] == list(range(1, 121))
    assert [answer["id"] for answer in answers] == [f"r{i}" for i in range(120)]
    assert [answer["target"] for answer in answers] == y.tolist()


def test_the_first_rows_are_not_predicted_and_that_is_said_once(stream, rows: Path) -> None:
    _, answers, err = stream(rows, *COMMON, "--drop", "name")
    assert [answer["prediction"] is None for answer in answers] == [i < W for i in range(120)]
    assert answers[0] == {
        "row": 1, "prediction": None, "target": answers[0]["target"], "log_score": None,
        "mean_log_score": None, "n_centres": None,
    }  # fmt: skip
    _, asked, _ = stream(rows, *COMMON, "--drop", "name", "--task", "regression")
    assert asked == [{"std": None, **answer} for answer in answers]
    assert err.count("nothing is predicted until 20 rows") == 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("most", [1, 7])
def test_rows_taken_together_have_the_same_answers(
    stream, rows: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*COMMON, "--id", "name", "--interval", "0.9"]
    lines = rows.read_text().splitlines(keepends=True)
    lines.insert(60, "r1,1,2\n")
    lines.insert(70, "r2,1,2,green,\n")
    together = stream("".join(lines), *words)
    monkeypatch.setattr(running, "_MOST_ROWS", most)
    assert stream("".join(lines), *words) == together


def test_json_lines_give_the_answers_of_csv(stream, rows: Path) -> None:
    words = [*COMMON, "--id", "name"]
    as_csv = stream(rows, *words)
    assert stream(json_lines(as_json_lines(rows)), *words)[1] == as_csv[1]


def test_a_row_without_target_is_predicted_and_not_learned(stream, rows: Path) -> None:
    lines = rows.read_text().splitlines(keepends=True)
    _, plain, _ = stream(rows, *COMMON, "--drop", "name")
    for k, cell in ((5, ""), (60, "NA"), (61, "")):
        lines.insert(k, f"x,1,0.5,red,{cell}\n")
    code, answers, _ = stream("".join(lines), *COMMON, "--drop", "name")
    assert code == 0
    unknown = [answer for answer in answers if answer["target"] is None]
    assert [answer["row"] for answer in unknown] == [5, 60, 61]
    assert unknown[0]["prediction"] is None
    assert unknown[1]["prediction"] == unknown[2]["prediction"] != None  # noqa: E711
    assert unknown[1]["log_score"] is None
    known = [answer["prediction"] for answer in answers if answer["target"] is not None]
    assert known == [answer["prediction"] for answer in plain]


@pytest.mark.parametrize("is_json", [True, False])
def test_a_model_goes_on_with_the_column_that_names_rows(
    stream, run, rows: Path, tmp_path: Path, is_json: bool
) -> None:
    saved = tmp_path / "m.mercer"
    assert stream(part(rows, 0, 60), *COMMON, "--id", "name", "--save", saved)[0] == 0
    table = [{**row, "y": None} for row in as_json_lines(rows)[60:70]]
    late = {"name": "r61", "y": 0.5}
    text = json_lines([*table, late])
    if not is_json:
        cells = [[str(row.get(key) or "") for key in table[0]] for row in (*table, late)]
        text = "\n".join(",".join(each) for each in (list(table[0]), *cells))
    code, answers, err = stream(text, "--load", saved)
    assert code == 0, err
    assert [answer["id"] for answer in answers] == [*(f"r{i}" for i in range(60, 70)), "r61"]
    assert (answers[-1]["of_row"], answers[-1]["target"]) == (2, 0.5)
    nameless = json_lines([{k: v for k, v in row.items() if k != "name"} for row in table])
    assert "id" not in stream(nameless, "--load", saved)[1][0]
    new = tmp_path / "new.csv"
    new.write_text(part(rows, 0, 5))
    assert run("predict", saved, new)[1].startswith("name,prediction")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("names", [("name", "y"), ("id", "target")])
@pytest.mark.parametrize("n_together", [1, 1024])
def test_a_target_may_come_later(
    stream, rows: Path, names: tuple[str, str], n_together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running._Loop.__init__, "__defaults__", (n_together,))
    monkeypatch.setattr(running._Loop, "_adapt", lambda *_: None)
    table = as_json_lines(rows)
    X, y = matrix(rows)
    early, late = 3, 50  # in the warm-up, and after it
    kept = [{**row, "y": None} if i in (early, late) else row for i, row in enumerate(table)]
    kept.insert(10, {names[0]: f"r{early}", names[1]: y[early]})
    kept.insert(71, {names[0]: f"r{late}", names[1]: y[late]})
    kept.append({names[0]: f"r{late}", names[1]: 1.0})
    code, answers, err = stream(json_lines(kept), *COMMON, "--id", "name")
    assert code == 0
    assert answers[10] == {"row": 11, "id": "r3", "learned": True}
    said, learned = answers[51], answers[71]
    assert (learned["row"], learned["id"], learned["of_row"], learned["learned"]) == (
        *(72, "r50", 52, True),
    )
    # It is scored by what was predicted when the row came, before twenty others were learned.
    assert [learned[key] for key in ("prediction", "std", "n_centres")] == [
        said[key] for key in ("prediction", "std", "n_centres")
    ]
    assert (said["target"], said["log_score"], learned["target"]) == (None, None, y[late])
    before = [*range(early), *range(early + 1, 10), early, *range(10, late)]
    known = LineRegressor().partial_fit(X[before[:W]], y[before[:W]])
    known.prequential(X[before[W:]], y[before[W:]])
    assert learned["log_score"] == -known.predictive(X[[late]]).log_density(y[[late]])[0]
    scores = [answer["log_score"] for answer in answers if answer.get("log_score") is not None]
    assert answers[-2]["mean_log_score"] == pytest.approx(np.mean(scores), abs=1e-12)
    assert "no row 'r50' without a target" in answers[-1]["error"]
    assert "no row 'r50'" in err
    # The order of learning is the order in which targets came.
    order = [i for i in range(120) if i not in (early, late)]
    order.insert(9, early)
    order.insert(order.index(70), late)
    model = LineRegressor().partial_fit(X[order[:W]], y[order[:W]])
    expected = model.prequential(X[order[W:]], y[order[W:]])
    assert answers[-2]["prediction"] == expected.mean[-1]


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("n_together", [1, 1024])
def test_a_row_whose_inputs_are_all_missing_is_filled_in(
    stream, kind: str, n_together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the late target of a row of its name only where one waits."""
    monkeypatch.setattr(running._Loop.__init__, "__defaults__", (n_together,))
    monkeypatch.setattr(running._Loop, "_adapt", lambda *_: None)
    table: list[dict] = [{"name": f"r{i}", "z": i % 7, "y": i % 7 + 0.5} for i in range(50)]
    late = {"name": "r30", "y": 2.5}
    table[30] = {"name": "r30", "z": 2, "y": None}
    table[40:40] = [late, late, {"name": "late", "y": "x"}, {"name": "r99", "z": None, "y": 1}]
    table[5] = {"name": "r5", "y": 4.0}  # in the warm-up
    text = json_lines(table)
    if kind == "csv":
        cells = [[row["name"], row.get("z"), row["y"]] for row in table]
        text = "name,z,y\n" + "".join(
            ",".join("" if each is None else str(each) for each in row) + "\n" for row in cells
        )
    code, answers, err = stream(text, *COMMON, "--id", "name", "--missing", "impute")
    assert code == 0, err
    assert [a["row"] for a in answers if "error" in a] == [43]
    assert [a["row"] for a in answers if a.get("of_row")] == [41]
    assert [answers[k]["target"] for k in (5, 41, 43)] == [4.0, 2.5, 1.0]


def test_a_row_without_a_name_takes_no_target_away(stream) -> None:
    table = [{"id": f"r{i}", "z": i % 7, "y": i % 7 + 0.5} for i in range(30)]
    table += [{"id": "None", "z": 5, "y": None}, {"id": None, "z": 7, "y": 7}]
    _, answers, _ = stream(json_lines([*table, {"id": "None", "y": 5}]), *COMMON, "--id", "id")
    assert answers[-1]["of_row"] == 31


@pytest.mark.parametrize(("first", "mark"), [("sep=;", ";"), ('"sep=|"', "|"), ("SEP=,", ",")])
def test_the_line_that_tells_excel_the_separator(stream, rows: Path, first: str, mark: str) -> None:
    content = rows.read_text()
    expected = stream(content, *COMMON, "--drop", "name")[1]
    told = f"\ufeff{first}\r\n" + content.replace(",", mark)
    assert stream(told, *COMMON, "--drop", "name")[1] == expected


def test_text_that_was_not_there_before_is_none_of_the_levels(stream, rows: Path) -> None:
    content = rows.read_text() + "x,1,0.5,green,\nx,1,0.5,blue,\nx,1,0.5,grey,\n"
    _, answers, err = stream(content, *COMMON, "--drop", "name")
    green, blue, grey = (answer["prediction"] for answer in answers[-3:])
    assert green == grey  # neither was there, and blue was
    assert green != blue
    assert err.count("was not there") == 1
    assert "column 'kind': 'green'" in err


def test_a_column_that_names_the_rows_is_pointed_out(stream, rows: Path) -> None:
    _, _, err = stream(rows, *COMMON)
    assert "column 'name': another text in each of the first 20 rows" in err


def lagged(y: np.ndarray, n_lags: int, horizon: int) -> tuple[np.ndarray, np.ndarray]:
    first = n_lags + horizon - 1
    X = [y[t - horizon - n_lags + 1 : t - horizon + 1][::-1] for t in range(first, len(y))]
    return np.array(X), y[first:]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("n_lags", "horizon"), [(3, 1), (2, 4)])
def test_a_series_is_predicted_from_its_past(
    stream, series: Path, n_lags: int, horizon: int
) -> None:
    words = ["--lags", n_lags, "--horizon", horizon, "--interval", "0.9"]
    code, answers, err = stream(series, *COMMON, *words)
    assert code == 0, err
    y = np.array([answer["target"] for answer in answers])
    X, targets = lagged(y, n_lags, horizon)
    first = n_lags + horizon - 1  # the first row that can be learned
    model = LineRegressor().partial_fit(X[:W], targets[:W])
    laws = {}
    for t in range(first + W, len(y) + 1):  # after row t - 1
        laws[t - 1] = law = model.predictive(y[t - n_lags : t][::-1][np.newaxis])
        answer = answers[t - 1]
        ahead = answer["ahead"]
        assert ahead["row"] == answer["row"] + horizon
        assert ahead["prediction"] == law.mean[0]
        assert ahead["lower"] == law.interval(0.9)[0][0]
        if t < len(y):
            # What stands beside a target is what was said of it, so many rows before.
            known = laws[t - horizon].mean[0] if t - horizon in laws else None
            assert answers[t]["prediction"] == known
            score = -laws[t - horizon].log_density([y[t]])[0] if t - horizon in laws else None
            assert answers[t]["log_score"] == score
            model.partial_fit(X[[t - first]], targets[[t - first]])
    assert answers[first + W - 2]["ahead"]["prediction"] is None


def test_a_gap_in_a_series_is_not_learned_from(stream, series: Path) -> None:
    lines = series.read_text().splitlines(keepends=True)
    lines[80] = "NA\n"
    lines[90] = "x\n"
    code, answers, err = stream("".join(lines), *COMMON, "--lags", "2")
    assert code == 0
    assert [a["row"] for a in answers if "error" in a] == [90]
    said = [a for a in answers[W + 2 :] if "ahead" in a]
    unknown = [a["row"] for a in said if a["ahead"]["prediction"] is None]
    assert unknown == [80, 81, 91]
    unscored = [a["row"] for a in answers[W + 3 :] if a.get("log_score", 0) is None]
    assert unscored == [80, 81, 82, 91, 92]
    assert err.count("a target is missing") == 1


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_gap_in_a_series_is_filled_in_by_what_was_foretold(
    stream, series: Path, horizon: int
) -> None:
    """In the warm-up, before anything is foretold, by the last value."""
    lines = series.read_text().splitlines(keepends=True)
    lines[8] = lines[70] = lines[71] = "NA\n"
    lines[90] = "x\n"
    words = ["--lags", 2, "--horizon", horizon, "--missing", "impute"]
    code, answers, err = stream("".join(lines), *COMMON, *words)
    assert code == 0, err
    assert err.count("takes its place among the earlier values") == 1
    assert [a["row"] for a in answers if "ahead" not in a] == [90]

    said = [a for a in answers[W + horizon + 2 :] if "ahead" in a]
    assert all(a["ahead"]["prediction"] is not None for a in said)
    past = [a.get("target") for a in answers]
    past[7] = past[6]
    for k in (69, 70, 89):
        past[k] = answers[k - horizon]["ahead"]["prediction"]
    X, _ = lagged(np.array(past), 2, horizon)
    first = horizon + 1
    known = [t for t in range(first, len(past)) if t not in (7, 69, 70, 89, 89 + horizon)]
    X, y = X[np.array(known) - first], np.array(past)[known]
    model = LineRegressor().partial_fit(X[:W], y[:W])
    for x, value in zip(X[W:], y[W:], strict=True):
        model.predictive(x[np.newaxis])  # from the first one on the scales are known
        model.partial_fit(x[np.newaxis], [value])
    law = model.predictive(np.array(past[:-3:-1])[np.newaxis])
    assert answers[-1]["ahead"]["prediction"] == pytest.approx(law.mean[0], rel=1e-9)


def test_a_series_with_other_columns(stream, rows: Path) -> None:
    code, answers, err = stream(rows, *COMMON, "--lags", "2", "--drop", "name")
    assert code == 0, err
    assert answers[-1]["prediction"] is not None
    text = part(rows, 0, 60) + "r,1,,red,3\nr,1,z,red,3\n"
    code, answers, err = stream(text, *COMMON, "--lags", "2", "--drop", "name")
    assert [a["error"] for a in answers if "error" in a] == [
        "column 'b': missing value",
        "column 'b': 'z' is not a number; the model needs a number here",
    ]


@pytest.mark.parametrize("lags", [(), ("--lags", 2)], ids=["rows", "series"])
def test_gaps_are_filled_in_with_what_the_warm_up_says(
    run, stream, rows: Path, tmp_path: Path, lags: tuple
) -> None:
    """Twin: the same rows with the median, or the commonest word, written into them."""
    cells = [line.split(",") for line in rows.read_text().splitlines()]
    names, gaps = cells[0], {4: "a", 9: "kind", 70: "a", 80: "b", 90: "kind"}
    known = {
        name: [cells[n][names.index(name)] for n in range(1, W + 1) if gaps.get(n) != name]
        for name in ("a", "b", "kind")
    }
    kinds = known.pop("kind")
    fills = {name: repr(float(np.median(list(map(float, own))))) for name, own in known.items()}
    fills["kind"] = max(sorted(set(kinds)), key=kinds.count)
    empty, filled = ([list(row) for row in cells] for _ in range(2))
    for n, name in gaps.items():
        empty[n][names.index(name)] = "NA"
        filled[n][names.index(name)] = fills[name]
    texts = ["".join(",".join(row) + "\n" for row in each) for each in (empty, filled)]
    more, path = [*COMMON, *lags, "--drop", "name"], tmp_path / "gaps.mercer"
    code, answers, err = stream(texts[0], *more, "--missing", "impute", "--save", path)
    assert code == 0
    assert "bad row" not in err
    assert answers == stream(texts[1], *more)[1]
    # Whoever goes on from the file has its fills.
    _, later, err = stream(texts[0], "--load", path)
    assert "bad row" not in err
    assert later == stream(texts[1], "--load", path)[1]
    assert "has no effect" not in err
    _, _, err = stream(texts[0], "--load", path, "--warmup", W, "--seed", 1)
    assert err.count("has no effect on a model that is loaded") == 2
    _, told, err = stream(texts[0], *more)
    assert [a["row"] for a in told if "error" in a] == list(gaps)
    assert err.count("--missing impute") == 1
    code, _, err = stream(texts[0], "--load", path, "--missing", "impute")
    assert (code, "--missing has no effect" in err) == (2, True)


def test_a_key_that_is_not_there_is_a_gap_that_is_filled(
    stream, rows: Path, tmp_path: Path
) -> None:
    gaps, table = {4: "a", 30: "kind", 70: "b"}, as_json_lines(rows)
    nulls = [{**row, gaps[n]: None} if n in gaps else row for n, row in enumerate(table)]
    absent = [{k: v for k, v in row.items() if gaps.get(n) != k} for n, row in enumerate(table)]
    more, path = [*COMMON, "--id", "name", "--missing", "impute"], tmp_path / "gaps.mercer"
    _, answers, err = stream(json_lines(absent), *more, "--save", path)
    assert "bad row" not in err
    assert answers == stream(json_lines(nulls), *more)[1]
    later = stream(json_lines(absent), "--load", path, "--id", "name")[1]
    assert later == stream(json_lines(nulls), "--load", path, "--id", "name")[1]


@pytest.mark.parametrize("lags", [(), ("--lags", 2)], ids=["rows", "series"])
def test_a_column_without_a_value_in_the_warm_up_is_left_out(
    stream, rows: Path, tmp_path: Path, lags: tuple
) -> None:
    table, path = as_json_lines(rows), tmp_path / "gaps.mercer"
    late = [{**row, "z": None if n < 40 else 1.5} for n, row in enumerate(table)]
    more = [*COMMON, *lags, "--id", "name", "--missing", "impute"]
    code, answers, err = stream(json_lines(late), *more, "--save", path)
    assert (code, "bad row" in err) == (0, False)
    assert "columns without a value in the first 20 rows, left out: 'z'" in err
    assert answers == stream(json_lines(table), *more)[1]
    assert stream(json_lines(late), "--load", path, "--id", "name")[0] == 0


def test_an_indicator_says_where_gaps_of_the_warm_up_were(
    run, stream, rows: Path, tmp_path: Path
) -> None:
    lines = [line.split(",") for line in rows.read_text().splitlines()]
    lines[4][lines[0].index("a")] = lines[70][lines[0].index("b")] = ""
    text, path = "".join(",".join(line) + "\n" for line in lines), tmp_path / "gaps.mercer"
    common = [*COMMON, "--drop", "name", "--missing", "indicator", "--save", path]
    code, _, err = stream(text, *common)
    assert (code, "bad row" in err) == (0, False)
    assert "a (missing)" in (out := run("inspect", path)[1])
    assert "b (missing)" not in out


BAD = {
    "ragged": ("x,1,2\n", "has 3 cells, but the header has 5"),
    "too many": ("x,1,2,red,3,4\n", "has 6 cells"),
    "text": ("x,one,2,red,3\n", "column 'a': 'one' is not a number"),
    "missing": ("x,,2,red,3\n", "column 'a': missing value"),
    "nan": ("x,1,nan,red,3\n", "column 'b': missing value"),
    "infinite": ("x,1,-inf,red,3\n", "column 'b': infinite"),
    "overflow": ("x,1e999,2,red,3\n", "column 'a': infinite"),
    "huge": ("x,1e200,2,red,3\n", "column 'a': 1e+200 is too large"),
    "refused": ("x,1e120,2,red,3\n", "too large"),
    "target": ("x,1,2,red,high\n", "the target: 'high' is not a number"),
    "target infinite": ("x,1,2,red,inf\n", "the target: infinite"),
    "quotes": ('x,1,2,"red,3\n', "a quotation mark is not closed"),
    "NUL": ("x,1,2,r\0d,3\n", "NUL byte"),
    "long": ("x,1,2," + "r" * 2**21 + ",3\n", "longer than"),
    "control": ("x,\x1b[31m,2,red,3\n", "is not a number"),
}


@pytest.mark.parametrize(
    ("name", "at"), pairs_first({name: name for name in BAD}, {"early": 5, "late": 60})
)
def test_a_bad_row_is_said_and_skipped(stream, rows: Path, name: str, at: int) -> None:
    line, words = BAD[name]
    lines = rows.read_text().splitlines(keepends=True)
    words_of = [*COMMON, "--drop", "name"]
    _, plain, _ = stream(rows, *words_of)
    lines.insert(at, line)
    code, answers, err = stream("".join(lines), *words_of)
    assert code == 0
    assert len(answers) == 121
    said = [text for text in err.splitlines() if text.startswith("bad row")]
    assert len(said) == 1
    assert f"row {at} (line {at + 1})" in said[0]
    assert words in said[0]
    assert "\x1b" not in err
    # Only the warm-up shows that a column is of numbers: what is found then has had its place.
    if at == 60 or "error" in answers[at - 1]:
        assert words in answers[at - 1]["error"]
        assert answers[-1] == {**plain[-1], "row": 121}
    assert "1 bad" in err


def test_bytes_that_are_no_text_spoil_one_row(stream, rows: Path) -> None:
    content = rows.read_bytes().replace(b"r40,", b"r\xff40,")
    rows.write_bytes(content)
    code, answers, err = stream(rows, *COMMON, "--drop", "name")
    assert code == 0
    assert [a["row"] for a in answers if "error" in a] == [41]
    assert "row 41 (line 42): the line is not UTF-8 text" in err


BAD_JSON = {
    "cut": ('{"name": "x", "a": 1', "is not JSON"),
    "no object": ("[1, 2]", "no object"),
    "NaN": ('{"name": "x", "a": NaN, "b": 1, "kind": "red", "y": 1}', "NaN is no number"),
    "key": ('{"name": "x", "a": 1, "b": 1, "y": 1}', "there is no key 'kind'"),
    "null": ('{"name": "x", "a": null, "b": 1, "kind": "red", "y": 1}', "column 'a': missing"),
    "list": ('{"name": "x", "a": [1], "b": 1, "kind": "red", "y": 1}', "column 'a': neither"),
    "deep": ("[" * 100_000, "is nested too deeply"),
    "no target": ('{"name": "x", "y": null}', "no target"),
    "long name": (f'{{"name": "{"x" * 200}", "y": 1}}', "longer than 100"),
    "huge whole number": (f'{{"name": "x", "y": 1{"0" * 5000}}}', "limit"),
}


@pytest.mark.parametrize("name", BAD_JSON)
def test_a_bad_object_is_said_and_skipped(stream, rows: Path, name: str) -> None:
    line, words = BAD_JSON[name]
    text = json_lines(as_json_lines(rows)[:60]) + line + "\n"
    code, answers, err = stream(text, *COMMON, "--id", "name")
    assert code == 0
    assert len(answers) == 61
    assert words in answers[-1]["error"]
    assert f"row 61 (line 61)" in err  # noqa: F541


def test_keys_that_are_not_needed_are_said_once(stream, rows: Path) -> None:
    table = as_json_lines(rows)
    more = [{**row, "z": 1} if i > 30 else row for i, row in enumerate(table)]
    code, answers, err = stream(json_lines(more), *COMMON, "--id", "name")
    assert code == 0
    assert err.count("keys that the model does not use: 'z'") == 1
    assert answers == stream(json_lines(table), *COMMON, "--id", "name")[1]


def test_a_bad_row_can_end_the_stream(stream, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    lines = rows.read_text().splitlines(keepends=True)
    lines.insert(50, "x,1,2\n")
    words = [*COMMON, "--drop", "name", "--on-bad-row", "fail", "--save", out]
    code, answers, err = stream("".join(lines), *words)
    assert code == 3
    assert err.splitlines()[-1].startswith(f"mercer: {tmp_path / 'input'}, row 50 (line 51): has 3")
    assert f"{out} has learned the rows to row 49: --load {out} goes on" in " ".join(err.split())
    assert [a["row"] for a in answers] == list(range(1, 50))


SPOILT = {
    "plain-cell": (["--id", "name"], 70, {"a": "x"}),
    "plain-target": (["--id", "name"], 70, {"y": "x"}),
    "plain-too-large": (["--id", "name"], 70, {"a": "1e200"}),
    "series-target": (["--drop", "name", "--lags", "3"], 70, {"y": "x"}),
    "series-cell": (["--drop", "name,kind", "--lags", "2", "--horizon", "5"], 70, {"a": "x"}),
    "series-too-large": (["--drop", "name", "--lags", "3", "--horizon", "2"], 70, {"a": "1e999"}),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("is_alone", [False, True])
@pytest.mark.parametrize("name", SPOILT)
def test_a_bad_row_that_ends_the_stream_loses_none_before_it(
    stream, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_alone: bool
) -> None:
    """The file holds the rows before it, to the last bit, however many are taken together."""
    if is_alone:
        monkeypatch.setattr(running, "_MOST_ROWS", 1)
    words, n, cells = SPOILT[name]
    good, bad = tmp_path / "good", tmp_path / "bad"
    assert stream(part(rows, 0, n), *COMMON, *words, "--save", good)[0] == 0
    table = as_json_lines(rows)
    table[n] |= cells
    strict = [*COMMON, *words, "--on-bad-row", "fail", "--save", bad]
    code, answers, err = stream(json_lines(table), *strict)
    assert code == 3, err
    assert [a["row"] for a in answers] == list(range(1, n + 1))
    assert f"row {n + 1} (line {n + 1})" in err.splitlines()[-1]
    assert f"has learned the rows to row {n}:" in " ".join(err.split())
    assert arrays_of(bad) == arrays_of(good)


def test_a_bad_row_in_the_warm_up_loses_none_before_it(stream, rows: Path, tmp_path: Path) -> None:
    """Cells are read once the warm-up is over: the rows before the bad one are learned first."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    table = as_json_lines(rows)
    assert stream(json_lines(table[:12]), *COMMON, "--id", "name", "--save", good)[0] == 0
    table[12]["a"] = "x"
    words = [*COMMON, "--id", "name", "--on-bad-row", "fail", "--save", bad]
    code, _, err = stream(json_lines(table), *words)
    assert code == 3
    assert "has learned the rows to row 12:" in " ".join(err.split())
    assert read_container(bad)[0]["fields"]["n"] == read_container(good)[0]["fields"]["n"] == 12


@pytest.mark.parametrize("where", ["ahead", "write", "tick", "encode"])
def test_what_nobody_foresaw_loses_no_row(
    stream, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Whatever fails, after whichever row: the file goes on from there, bit for bit."""
    whole, broken, both = (tmp_path / name for name in ("whole", "broken", "both"))
    assert stream(rows, *COMMON, "--id", "name", "--save", whole)[0] == 0
    home = {
        "ahead": LineRegressor, "write": Output, "tick": LivePanel, "encode": Learner,
    }[where]  # fmt: skip
    method = "prequential" if where == "ahead" else where
    original, n_calls = getattr(home, method), []

    def fail_at_last(*args, **own):
        n_calls.append(1)
        if len(n_calls) == 9:
            raise RuntimeError("nobody foresaw this")
        return original(*args, **own)

    monkeypatch.setattr(running, "_MOST_ROWS", 7)
    with monkeypatch.context() as patch:
        patch.setattr(home, method, fail_at_last)
        code, _, err = stream(rows, *COMMON, "--id", "name", "--save", broken)
    assert (code, "internal error: RuntimeError: nobody foresaw this" in err) == (1, True), err
    n = int(re.search(r"has learned the rows to row (\d+):", " ".join(err.split())).group(1))
    assert W < n < 120
    code, _, err = stream(part(rows, n, 120), "--load", broken, "--id", "name", "--save", both)
    assert code == 0, err
    assert arrays_of(both) == arrays_of(whole)


def test_a_file_that_cannot_be_saved_hides_no_error(
    stream, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(running, "write_stream_model", fail)
    table = as_json_lines(rows)
    table[60]["a"] = "x"
    words = [*COMMON, "--id", "name", "--on-bad-row", "fail", "--save", tmp_path / "m"]
    code, _, err = stream(json_lines(table), *words)
    assert (code, "row 61" in err.splitlines()[-1]) == (3, True)
    assert "could not be saved: the disk is full" in " ".join(err.split())
    assert f"{tmp_path / 'm'} is as it was" in " ".join(err.split())


@pytest.mark.parametrize("text", ["0", "-1", "0.3", "5 m", "s", "0s", "nans", "1e999s", "rows"])
def test_what_is_no_interval_is_refused(stream, rows: Path, text: str) -> None:
    code, _, err = stream(rows, *COMMON, f"--save-every={text}")
    assert (code, err.count("\n")) == (2, 1)
    assert "such as 500" in err


REFUSED = {
    "D1-empty": ("", COMMON, 3, "is empty; a header"),
    "D1-blank": ("\n\n", COMMON, 3, "is empty; a header"),
    "D1-header-only": ("a,y\n", COMMON, 3, "no row of data"),
    "D1-no-inputs": ("y\n1\n", COMMON, 3, "--lags"),
    "D4-dates": (
        "d,y\n" + "01/02/2024,1.5\n" * 30,
        COMMON,
        3,
        "column 'd': '01/02/2024' may begin",
    ),
    "D5-twice": ("a,a,y\n1,2,3\n", COMMON, 3, "'a' is there twice"),
    "D5-no-target": ("a,yy\n1,2\n", COMMON, 3, "did you mean 'yy'"),
    "D5-unnamed": ("a,,y\n1,2,3\n", COMMON, 3, "column 2 has no name"),
    "no-header": ("1.5,2\n3,4\n", COMMON, 3, "holds numbers"),
    "array": ('[{"a": 1, "y": 2}]\n', COMMON, 3, "a JSON array"),
    "id": ("a,y\n1,2\n", [*COMMON, "--id", "b"], 3, "no column 'b'"),
    "drop": ("a,y\n1,2\n", [*COMMON, "--drop", "aa"], 3, "did you mean 'a'"),
    "drop-target": ("a,y\n1,2\n", [*COMMON, "--drop", "y"], 2, "is the target"),
    "id-target": ("a,y\n1,2\n", [*COMMON, "--id", "y"], 2, "--id"),
    "D16": ("\x1b[31ma,a\n1,2\n", COMMON, 3, "\\x1b[31ma"),
    "target": ("a,y\n1,2\n", [], 2, "--target"),
    "D13-level": ("a,y\n1,2\n", [*COMMON, "--interval", "1"], 2, "level"),
    "D13-set": ("a,y\n1,2\n", [*COMMON, "--set", "scale_row=3"], 2, "'scale_rows'"),
    "D13-range": ("a,y\n1,2\n", [*COMMON, "--set", "scale_rows=0"], 2, "scale_rows must be"),
    "model": ("a,y\n1,2\n", [*COMMON, "--model", "gp"], 2, "does not learn row by row"),
    "model-unknown": ("a,y\n1,2\n", [*COMMON, "--model", "bases"], 2, "did you mean 'basis'"),
    "horizon": ("a,y\n1,2\n", [*COMMON, "--horizon", "2"], 2, "--lags"),
    "no-fills": (
        "a,y\n1,2\n",
        [*COMMON[:2], "--warmup", "0", "--missing", "impute"],
        2,
        "--missing impute needs --warmup above 0",
    ),
    "no-scales": ("a,y\n1,2\n", [*COMMON[:2], "--warmup", "0"], 2, "input_scale"),
    "save": ("a,y\n1,2\n", [*COMMON, "--save", "/no/such/folder/m"], 6, "no folder"),
    "load": ("a,y\n1,2\n", [*COMMON, "--load", "/no/such/file"], 6, "/no/such/file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(stream, name: str) -> None:
    text, words, expected, said = REFUSED[name]
    code, _, err = stream(text, "--quiet", *words)
    assert (code, err.count("\n")) == (expected, 1), err
    assert said in err
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"a,y\n1,2\n", mtime=0)[:-9], "ends early"),
        (b"PAR1" + bytes(20), "Parquet"),
        ("a,y\n1,2\n".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04" + bytes(20), "spreadsheet or zip"),
        (b"a,\xff\xfey\n1,2\n", "not UTF-8"),
    ],
)
def test_d15_what_is_no_text_is_refused(stream, tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "f").write_bytes(content)
    code, answers, err = stream(tmp_path / "f", "--quiet", *COMMON)
    assert (code, answers, err.count("\n")) == (3, [], 1)
    assert said in err


def test_packed_files_and_encodings(stream, rows: Path, tmp_path: Path) -> None:
    expected = stream(rows, *COMMON)[1]
    packed = tmp_path / "rows.csv.gz"
    packed.write_bytes(gzip.compress(rows.read_bytes()))
    assert stream(packed, *COMMON)[1] == expected
    (tmp_path / "old").write_bytes(rows.read_bytes().replace(b"x", b"stra\xdfe"))
    assert stream(tmp_path / "old", *COMMON, "--encoding", "latin1")[1] == expected
    words = (*COMMON, "--quiet")
    code, _, err = stream(tmp_path / "old", *words, "--encoding", "utf-16")
    assert code == 2
    assert "line ends" in err


def test_spreadsheets_and_parquet_files_are_read_row_by_row(
    stream, rows: Path, tmp_path: Path
) -> None:
    """As CSV is, to the last digit, a cell without value too."""
    lines = rows.read_text().replace(",red,", ",,", 1)
    expected = stream(lines, *COMMON)[1]
    assert any("error" in answer for answer in expected)
    frame = pandas.read_csv(io.StringIO(lines))
    book, table = tmp_path / "book.xlsx", tmp_path / "rows.parquet"
    with pandas.ExcelWriter(book) as writer:
        pandas.DataFrame({"a": []}).to_excel(writer, sheet_name="other", index=False)
        frame.to_excel(writer, sheet_name="rows", index=False)
    frame.to_parquet(table)
    assert stream(Path(f"{book}:rows"), *COMMON)[1] == expected
    assert stream(table, *COMMON)[1] == expected
    for option in (("--encoding", "latin-1"), ("--format", "jsonl")):
        code, _, err = stream(table, "--quiet", *COMMON, *option)
        assert (code, f"{option[0]} is for text" in err) == (2, True)
    code, answers, err = stream(book, "--quiet", *COMMON)
    assert (code, answers) == (3, [])
    assert "no row of data" in err


def test_text_of_a_file_with_types_is_no_number(stream, rows: Path, tmp_path: Path) -> None:
    """As in `mercer fit`: 007 is a name."""
    frame = pandas.read_csv(rows)
    frame["code"] = np.array(["007", "010"])[np.arange(len(frame)) % 2]
    table, out = tmp_path / "rows.parquet", tmp_path / "m.mercer"
    frame.to_parquet(table)
    code, _, err = stream(table, *COMMON, "--drop", "name", "--save", out)
    assert code == 0, err
    assert "code=010" in models.read_model(out).estimator.feature_labels_


@pytest.mark.parametrize(
    ("step", "parts"), [("20min", ["day of week", "hour"]), ("1D", ["day of week"])]
)
def test_of_a_time_stamp_a_stream_learns_what_comes_again(
    stream, rows: Path, tmp_path: Path, step: str, parts: list[str]
) -> None:
    """Time that has passed is beyond all that was learned, in every new row."""
    frame, out = pandas.read_csv(rows), tmp_path / "m.mercer"
    frame["time"] = pandas.date_range("2024-03-04", periods=len(frame), freq=step).astype(str)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    code, _, err = stream(tmp_path / "rows.csv", *COMMON, "--drop", "name,kind", "--save", out)
    assert code == 0, err
    assert "how much time has passed is no input" in err
    labels = models.read_model(out).estimator.feature_labels_
    assert labels == ("a", "b", *(f"time ({part})" for part in parts))


def test_a_pipe_that_the_shell_has_opened_is_read(stream, rows: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, rows.read_bytes())
    os.close(writer)
    try:
        assert stream(Path(f"/dev/fd/{reader}"), *COMMON)[1] == stream(rows, *COMMON)[1]
    finally:
        os.close(reader)


def test_it_is_said_that_no_row_can_be_used(stream) -> None:
    text = "a,y\n" + "".join(f"{i},x\n" for i in range(80))
    _, _, err = stream(text, "--target", "y", "--lags", "2")
    assert re.search(r"none of the first \d+ rows could be used", err)


def test_d17_what_is_no_file_is_refused(run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for path, said in (("pipe", "pipe"), ("link", "link"), ("no", "no such"), (".", "folder")):
        code, out, err = run("stream", tmp_path / path, *COMMON, "--quiet")
        assert (code, out, err.count("\n")) == (6, "", 1)
        assert said in err


def test_byte_order_mark_and_crlf(stream, rows: Path) -> None:
    expected = stream(rows, *COMMON)[1]
    rows.write_bytes(b"\xef\xbb\xbf" + rows.read_bytes().replace(b"\r\n", b"\n"))
    assert stream(rows, *COMMON)[1] == expected
    rows.write_bytes(rows.read_bytes().replace(b"\n", b"\r\n"))
    assert stream(rows, *COMMON)[1] == expected


def test_the_format_can_be_said(stream, rows: Path) -> None:
    text = json_lines(as_json_lines(rows))
    assert stream(text, *COMMON, "--format", "jsonl")[1] == stream(text, *COMMON)[1]
    code, _, err = stream(text, *COMMON, "--format", "csv")
    assert code == 3
    assert "no column 'y'" in err


def test_without_a_warm_up_the_first_row_is_predicted(stream, rows: Path) -> None:
    scales = ["--set", "input_scale=1", "--set", "target_scale=1"]
    words = ["--target", "y", "--warmup", "0", *scales]
    code, answers, err = stream(rows, *words, "--drop", "name,kind")
    assert code == 0, err
    assert answers[0]["prediction"] == 0.0
    assert "nothing is predicted" not in err
    code, answers, err = stream(rows, *words, "--drop", "name")
    assert (code, answers) == (3, [])
    assert "column 'kind' holds text" in err


def test_quiet(stream, rows: Path) -> None:
    assert stream(rows, *COMMON, "--quiet")[2] == ""


def test_predict_and_inspect_read_the_file(run, stream, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    code, answers, err = stream(rows, *COMMON, "--drop", "name", "--save", out)
    assert f"saved     {out}" in err
    code, said, err = run("predict", out, rows)
    assert code == 0, err
    assert said.startswith("row,prediction,std,lower_90,upper_90\n")
    code, said, _ = run("inspect", out)
    assert "target 'y': 120 rows" in said
    assert "inputs    3: a, b, kind=red" in said
    del answers


def arrays_of(path: Path) -> dict[str, bytes]:
    return {name: values.tobytes() for name, values in read_container(path)[1].items()}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "words",
    [
        ["--id", "name"],
        ["--drop", "name", "--lags", "3"],
        ["--drop", "name,kind", "--lags", "2", "--horizon", "5"],
        ["--drop", "name,kind", "--lags", "2", "--horizon", "5", "--interval", "0.8"],
    ],
)
def test_going_on_from_a_file_is_as_if_it_had_never_stopped(
    stream, rows: Path, tmp_path: Path, words: list[str]
) -> None:
    whole, half, both = (tmp_path / name for name in ("whole", "half", "both"))
    _, expected, _ = stream(rows, *COMMON, *words, "--save", whole)
    assert stream(part(rows, 0, 70), *COMMON, *words, "--save", half)[0] == 0
    columns = [*words[:2], *words[6:]]  # without those of the series, which the file has
    code, answers, err = stream(part(rows, 70, 120), "--load", half, *columns, "--save", both)
    assert code == 0, err
    assert arrays_of(both) == arrays_of(whole)
    for a, b in zip(answers, expected[70:], strict=True):
        for each in (a, b):  # rows are counted anew, and the mean score is of this stream
            each.update(row=0, mean_log_score=0.0, ahead={**each.get("ahead", {}), "row": 0})
        assert a == b


def test_rows_without_target_are_remembered_in_the_file(stream, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    table = as_json_lines(rows)
    table[40]["y"] = None
    assert stream(json_lines(table[:60]), *COMMON, "--id", "name", "--save", out)[0] == 0
    text = json_lines([{"name": "r40", "y": 3.0}, {"name": "r41", "y": 3.0}])
    _, answers, _ = stream(text, "--load", out, "--id", "name")
    assert answers[0] == {"row": 1, "id": "r40", "learned": True}
    assert "no row 'r41'" in answers[1]["error"]


def test_a_loaded_model_finds_its_columns_by_name(stream, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    assert stream(rows, *COMMON, "--drop", "name", "--save", out)[0] == 0
    straight = "a,b,kind,y\n1,2,red,\n"
    other = "z,kind,b,a\n7,red,2,1\n"
    _, expected, _ = stream(straight, "--load", out)
    code, answers, err = stream(other, "--load", out)
    assert (code, answers) == (0, expected)
    assert "columns that the model does not use: 'z'" in err
    code, _, err = stream("a,bb,kind\n1,2,red\n", "--load", out)
    assert code == 3
    assert "column 'b' is missing, and the model needs it; did you mean 'bb'" in err
    for words, said in (
        (["--target", "z"], "--target z"),
        (["--lags", "2"], "--lags 2"),
        (["--set", "scale_rows=3"], "--set"),
    ):
        code, _, err = stream(straight, "--load", out, *words)
        assert (code, said in err) == (2, True), err


def test_a_model_that_does_not_learn_row_by_row_is_refused(stream, model: Path) -> None:
    code, _, err = stream("a,b,label\n1,2,3\n", "--load", model)
    assert code == 2
    assert "a model of gp, which `mercer stream` cannot go on with" in err


def test_rows_of_a_stream_that_ends_in_its_warm_up_are_learned(
    run, stream, rows: Path, tmp_path: Path
) -> None:
    out = tmp_path / "m.mercer"
    code, answers, err = stream(part(rows, 0, 12), *COMMON, "--drop", "name", "--save", out)
    assert code == 0
    assert all(answer["prediction"] is None for answer in answers)
    assert "12 read, 12 learned" in err
    assert "12 rows" in run("inspect", out)[1]


def test_semicolons_and_decimal_commas(stream, rows: Path) -> None:
    _, expected, _ = stream(rows, *COMMON, "--id", "name")
    text = rows.read_text().replace(",", ";").replace(".", ",")
    assert stream(text, *COMMON, "--id", "name")[1] == expected


def test_a_dash_is_standard_input(stream, run, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, answers, _ = stream(rows, *COMMON)
    with open(rows) as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        other, out, err = run("stream", "-", *COMMON)
    assert code == other == 0, err
    assert read_answers(out) == answers
