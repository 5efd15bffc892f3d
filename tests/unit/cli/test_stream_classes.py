"""`mercer stream` where the target is a class."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas
import pytest

from mercer.basis.classifier import SequentialKernelClassifier
from mercer.cli import stream as running
from mercer.cli import stream_model as learning
from mercer.posterior.container import read_container, write_container
from support.streams import as_json_lines, json_lines, read_answers, write_classes

W = 30  # of the warm-up in these tests
TINY = ["--set", "n_particles=12", "--set", "max_candidates=6", "--set", "n_buffered=40"]
COMMON = ["--target", "kind", "--warmup", W, "--id", "name", *TINY]
NUMBERS = COMMON[:-2]  # of which all are arguments of the regressor, too
LABELS = ["ash", "birch", "cedar"]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_classes(tmp_path / "rows.csv", LABELS)


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


def test_each_row_is_answered_before_it_is_learned(stream, rows: Path) -> None:
    code, answers, err = stream(rows, *COMMON)
    assert code == 0, err
    table = as_json_lines(rows)
    X, y = np.array([[row["a"], row["b"]] for row in table]), [row["kind"] for row in table]
    model = SequentialKernelClassifier(
        n_particles=12, max_candidates=6, n_buffered=40, random_state=0
    )
    model.partial_fit(X[:W], y[:W], LABELS).predict(X)
    expected = model.prequential(X[W:], y[W:])
    late = answers[W:]
    assert [list(answer["proba"].values()) for answer in late] == expected.proba.tolist()
    assert list(late[0]["proba"]) == LABELS
    assert [answer["prediction"] for answer in late] == expected.prediction.tolist()
    assert [answer["log_score"] for answer in late] == (-expected.log_density).tolist()
    assert [answer["n_centres"] for answer in late] == expected.n_centres.tolist()
    assert [answer["target"] for answer in answers] == y
    assert answers[0] == {
        "row": 1, "id": "r0", "prediction": None, "target": y[0], "log_score": None,
        "mean_log_score": None, "n_centres": None,
    }  # fmt: skip
    assert "target 'kind': text with 3 classes, so classification" in err
    assert "sequential Bayesian kernel classification" in err
    n_wrong = sum(answer["prediction"] != answer["target"] for answer in late)
    assert f"{100 * n_wrong / len(late):.1f} % wrong" in err


def test_a_stream_that_forgets(stream, rows: Path, tmp_path: Path) -> None:
    """It answers as the classifier does, and goes on from its file."""
    words = [*COMMON, "--set", "forgetting=0.9"]
    code, answers, err = stream(rows, *words)
    assert code == 0, err
    table = as_json_lines(rows)
    X, y = np.array([[row["a"], row["b"]] for row in table]), [row["kind"] for row in table]
    model = SequentialKernelClassifier(
        n_particles=12, max_candidates=6, n_buffered=40, forgetting=0.9, random_state=0
    )
    model.partial_fit(X[:W], y[:W], LABELS).predict(X)
    expected = model.prequential(X[W:], y[W:])
    assert [answer["log_score"] for answer in answers[W:]] == (-expected.log_density).tolist()
    out = tmp_path / "m.mercer"
    first = stream(part(rows, 0, 45), *words, "--save", out)[1]
    more = stream(part(rows, 45, len(y)), "--load", out, "--id", "name")[1]
    assert [a["log_score"] for a in (*first, *more)] == [a["log_score"] for a in answers]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("labels", "values", "reason"),
    [
        (["0", "1"], [0, 1], "2 distinct whole numbers, so classification"),
        (["3", "7.0"], [3, 7], "2 distinct whole numbers, so classification"),
        (["False", "True"], [False, True], "true or false, so classification"),
        (["007", "x"], ["007", "x"], "text with 2 classes, so classification"),
        (["007", "7"], ["007", "7"], "text with 2 classes, so classification"),
    ],
)
def test_classes_are_what_fit_takes_for_classes(
    stream, tmp_path: Path, labels: list[str], values: list, reason: str
) -> None:
    rows = write_classes(tmp_path / "rows.csv", labels)
    code, answers, err = stream(rows, *COMMON)
    assert code == 0, err
    assert reason in err
    for answer in answers[W:]:
        assert answer["target"] in values
        assert type(answer["prediction"]) is type(values[0])
    assert set(answers[-1]["proba"]) == {
        str(value).lower() if isinstance(value, bool) else str(value) for value in values
    }
    asked = stream(rows, *COMMON, "--task", "classification")
    assert asked[1] == answers
    assert "classification, as asked" in asked[2]


def test_whole_numbers_are_numbers_where_that_is_asked(stream, tmp_path: Path) -> None:
    rows = write_classes(tmp_path / "rows.csv", ["0", "1"])
    for more in (["--task", "regression"], ["--lags", "1"]):
        code, answers, err = stream(rows, *NUMBERS, *more)
        assert code == 0, err
        assert "std" in answers[-1]


def test_many_whole_numbers_or_a_fraction_are_numbers(stream, tmp_path: Path) -> None:
    for labels in ([str(k) for k in range(40)], ["0", "1", "0.5"]):
        rows = write_classes(tmp_path / "rows.csv", labels)
        _, answers, err = stream(rows, *NUMBERS)
        assert "so regression" in err
        assert "std" in answers[-1]


@pytest.mark.parametrize(
    ("values", "task"),
    [
        ([0, 1, 2] * 9, "classification"),
        ([1, 2, 3, 4] * 9, "classification"),
        ([2, 4] * 9, "classification"),
        ([0, 1, 2, 3, 1, 2, 3], "classification"),  # a rare class, but no rare tail
        ([0, 1, 2] * 9 + [3], "regression"),  # seen once: more may come
        ([0, 1, 2, 5] * 9, "regression"),
        ([746, 747, 748] * 9, "regression"),
    ],
)
def test_whole_numbers_are_classes_where_no_others_may_come(values: list[int], task: str) -> None:
    """Goals or prices of the first rows are not all that there are: the others were skipped."""
    undecided = learning.Undecided("goals", is_auto=True, make=lambda target: target)
    target = undecided.decide([str(v) for v in values], "rows.csv", has_decimal_comma=False)
    assert target.task == task
    if task == "regression":
        assert f"in the first {len(values)} rows, of which more may come" in target.reason
    asked = learning.Undecided("goals", is_auto=False, make=lambda target: target)
    cells = [str(v) for v in values]
    assert asked.decide(cells, "rows.csv", has_decimal_comma=False).task == "classification"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("most", [1, 7])
def test_rows_taken_together_have_the_same_answers(
    stream, rows: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = rows.read_text().splitlines(keepends=True)
    lines.insert(60, "x,1,2,oak\n")
    lines.insert(70, "y,1,2,\n")
    together = stream("".join(lines), *COMMON)
    monkeypatch.setattr(running, "_MOST_ROWS", most)
    assert stream("".join(lines), *COMMON) == together


def test_json_lines_give_the_answers_of_csv(stream, rows: Path) -> None:
    as_csv = stream(rows, *COMMON)
    assert stream(json_lines(as_json_lines(rows)), *COMMON)[1] == as_csv[1]


def test_a_class_that_was_not_there_is_a_bad_row(stream, rows: Path) -> None:
    lines = rows.read_text().splitlines(keepends=True)
    _, plain, _ = stream(rows, *COMMON)
    lines.insert(61, "x,1,2,oak\n")
    code, answers, err = stream("".join(lines), *COMMON)
    assert code == 0
    assert "'oak' is none of the classes that the model was begun with" in answers[60]["error"]
    assert "row 61 (line 62): the target: 'oak' is none of the classes" in err
    assert answers[-1] == {**plain[-1], "row": 91}
    assert "1 bad" in err


@pytest.mark.one_in(2)
@pytest.mark.parametrize("cell", ["", "NA"])
def test_a_row_without_class_is_predicted_and_not_learned(stream, rows: Path, cell: str) -> None:
    lines = rows.read_text().splitlines(keepends=True)
    _, plain, _ = stream(rows, *COMMON)
    lines.insert(60, f"x,1,0.5,{cell}\n")
    lines.insert(5, f"x,1,0.5,{cell}\n")
    code, answers, _ = stream("".join(lines), *COMMON)
    assert code == 0
    unknown = [answer for answer in answers if answer["target"] is None]
    assert [answer["prediction"] is None for answer in unknown] == [True, False]
    assert math.isclose(sum(unknown[1]["proba"].values()), 1.0)
    assert unknown[1]["log_score"] is None
    known = [answer["prediction"] for answer in answers if answer["target"] is not None]
    assert known == [answer["prediction"] for answer in plain]


def test_a_class_may_come_later(stream, rows: Path) -> None:
    table = as_json_lines(rows)
    late = [{**row, "kind": None} if i in (3, 50) else row for i, row in enumerate(table)]
    late.insert(10, {"name": "r3", "kind": table[3]["kind"]})
    late.insert(71, {"name": "r50", "kind": table[50]["kind"]})
    code, answers, _ = stream(json_lines(late), *COMMON)
    assert code == 0
    assert answers[10] == {"row": 11, "id": "r3", "learned": True}
    said, learned = answers[51], answers[71]
    assert (learned["of_row"], learned["target"], learned["proba"]) == (
        *(52, table[50]["kind"], said["proba"]),
    )
    assert learned["log_score"] == pytest.approx(-math.log(said["proba"][table[50]["kind"]]))


def test_classes_of_a_file_with_types_are_what_they_are(stream, rows: Path, tmp_path: Path) -> None:
    frame = pandas.read_csv(rows)
    frame["kind"] = np.array(["007", "010"])[np.arange(len(frame)) % 2]
    frame.to_parquet(tmp_path / "rows.parquet")
    code, answers, err = stream(tmp_path / "rows.parquet", *COMMON)
    assert code == 0, err
    assert answers[-1]["target"] == "010"
    assert list(answers[-1]["proba"]) == ["007", "010"]


def test_a_few_texts_among_numbers(stream, tmp_path: Path) -> None:
    """Beside few whole numbers they are a class, as `fit` has it; beside many they are mistakes."""
    for labels, is_class in ((["0", "1"], True), ([str(k) for k in range(40)], False)):
        rows = write_classes(tmp_path / "rows.csv", labels)
        lines = rows.read_text().splitlines(keepends=True)
        lines.insert(5, "x,1,2,one\n")
        code, answers, err = stream("".join(lines), *NUMBERS)
        assert code == 0
        said = "row 5 (line 6): the target: 'one' is not a number"
        assert (said in err) == (not is_class)
        assert ("proba" in answers[-1]) == is_class
        if is_class:
            assert list(answers[-1]["proba"]) == ["0", "1", "one"]


def arrays_of(path: Path) -> dict[str, bytes]:
    _, arrays = read_container(path)
    return {name: v.tobytes() for name, v in arrays.items()}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("words", [COMMON, [*NUMBERS[:-2], "--task", "regression"]])
def test_a_file_does_not_depend_on_how_many_rows_came_together(
    run, stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list
) -> None:
    rows = write_classes(tmp_path / "rows.csv", ["1", "2", "3"])
    one, several, report = (tmp_path / name for name in ("one", "several", "r.html"))
    monkeypatch.setattr(learning, "RECENT", 40)
    assert stream(rows, *words, "--save", several)[0] == 0
    monkeypatch.setattr(running, "_MOST_ROWS", 1)
    assert stream(rows, *words, "--save", one)[0] == 0
    assert arrays_of(one) == arrays_of(several)
    n = len(as_json_lines(rows))
    assert read_container(one)[1]["log_predictive"].shape == (40,)
    assert run("report", one, "--out", report)[0] == 0
    assert f"The last 40 of {n} rows: " in report.read_text()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("labels", [LABELS, ["0", "1"], ["false", "true"]], ids=["3", "2", "bool"])
def test_going_on_from_a_file_is_as_if_it_had_never_stopped(
    run, stream, tmp_path: Path, labels: list[str]
) -> None:
    rows = write_classes(tmp_path / "rows.csv", labels)
    whole, half, both = (tmp_path / name for name in ("whole", "half", "both"))
    _, expected, _ = stream(rows, *COMMON, "--save", whole)
    assert stream(part(rows, 0, 60), *COMMON, "--save", half)[0] == 0
    code, answers, err = stream(part(rows, 60, 90), "--load", half, "--id", "name", "--save", both)
    assert code == 0, err
    assert arrays_of(both) == arrays_of(whole)
    same = ("prediction", "proba", "target", "log_score", "n_centres")
    assert [[a[k] for k in same] for a in answers] == [[a[k] for k in same] for a in expected[60:]]
    assert "classes" in run("inspect", whole)[1]
    assert run("predict", whole, rows, "--out", tmp_path / "p.csv")[0] == 0


def test_a_model_that_was_fitted_goes_on_with_a_stream(run, stream, rows: Path, tmp_path) -> None:
    out = tmp_path / "m.mercer"
    words = ["--target", "kind", "--drop", "name", "--model", "basis", "--test-size", "0.25", *TINY]
    code, _, err = run("fit", rows, *words, "--jobs", "1", "--out", out)
    assert code == 0, err
    code, answers, err = stream(part(rows, 0, 5), "--load", out)
    assert code == 0, err
    assert all(answer["log_score"] > 0.0 for answer in answers)


def write_series(path: Path, labels: list[str]) -> tuple[Path, list[str], np.ndarray]:
    """A class that mostly follows the one before in turn, and a column that says nothing."""
    rng = np.random.default_rng(4)
    position, kinds, others = 0, [], rng.normal(size=90).round(3)
    for _ in others:
        position = (position + (rng.random() < 0.9)) % len(labels)
        kinds.append(labels[position])
    lines = [f"{other},{kind}\n" for other, kind in zip(others, kinds, strict=True)]
    path.write_text("other,kind\n" + "".join(lines))
    return path, kinds, others


SERIES = ["--target", "kind", "--warmup", W, "--task", "classification", "--lags", 2, *TINY]


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "labels", [["True", "False"], ["1", "2", "err"]], ids=["truth", "numbers and text"]
)
@pytest.mark.parametrize("n_warmup", [W, W + 1, W + 2])
def test_classes_of_any_kind_make_a_series(
    stream, tmp_path: Path, labels: list[str], n_warmup: int
) -> None:
    """They are read as text until the warm-up says what they are."""
    path, kinds, _ = write_series(tmp_path / "rows.csv", labels)
    code, answers, err = stream(path, *SERIES, "--warmup", n_warmup)
    assert code == 0, err
    assert not any("error" in answer for answer in answers)
    assert [str(answer["target"]) for answer in answers[40:]] == kinds[40:]
    assert set(answers[-1]["proba"]) == {k.lower() if "True" in labels else k for k in labels}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("labels", [LABELS, ["0", "1"]], ids=["3", "2"])
def test_a_series_of_classes_is_predicted_from_its_past(
    run, stream, tmp_path: Path, labels: list[str]
) -> None:
    """The inputs are the classes of two and three rows ago, as columns of text are encoded."""
    path, kinds, others = write_series(tmp_path / "rows.csv", labels)
    words = [*SERIES, "--horizon", 2, "--interval", "0.8"]
    out = tmp_path / "m.mercer"
    code, answers, err = stream(path, *words, "--save", out)
    assert code == 0, err
    y = np.array(kinds if len(labels) == 3 else [int(kind) for kind in kinds])
    shown = np.unique(y)[1:] if len(labels) == 2 else np.unique(y)
    X = np.array(  # what is known after row t
        [[*(y[t] == shown), *(y[t - 1] == shown), others[t]] for t in range(1, len(y))], dtype=float
    )
    first = 3  # the first row that can be learned
    model = SequentialKernelClassifier(
        n_particles=12, max_candidates=6, n_buffered=40, random_state=0
    )
    model.partial_fit(X[:W], y[first : first + W], np.unique(y)).predict(X)
    foretold = {}
    for t in range(first + W, len(y) + 1):  # after row t - 1
        said = model.prequential(X[[t - 2]], [None], level=0.8)
        foretold[t + 1] = dict(zip(labels, said.proba[0].tolist(), strict=True))
        answer = answers[t - 1]
        ahead = answer["ahead"]
        assert (answer["row"], ahead["row"]) == (t, t + 2)
        assert ahead["proba"] == foretold[t + 1]
        assert list(ahead["upper"].values()) == said.upper[0].tolist()
        if t < len(y):
            assert answers[t]["target"] == y[t]
            score = -math.log(foretold[t][str(y[t])]) if t in foretold else None
            assert answers[t]["log_score"] == score
            model.partial_fit(X[[t - first]], y[[t]])
    assert answers[first + W - 2]["ahead"]["prediction"] is None
    assert read_container(out)[0]["stream"]["past"] == [labels.index(k) for k in kinds[:-3:-1]]
    assert run("inspect", out)[0] == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("words", [["--task", "classification"], ["--set", "robust=true"]])
def test_what_was_foretold_is_in_the_file(stream, tmp_path: Path, words: list[str]) -> None:
    path, _, _ = write_series(tmp_path / "rows.csv", ["1", "2", "4"])
    given = [*SERIES[:4], "--lags", 2, *TINY[:4], *words, "--horizon", 4, "--interval", 0.8]
    half = tmp_path / "half"
    whole = stream(path, *given)[1]
    assert stream(part(path, 0, 60), *given, "--save", half)[0] == 0
    code, answers, err = stream(part(path, 60, 90), "--load", half, "--interval", 0.8)
    assert code == 0, err
    for a, b in zip(answers, whole[60:], strict=True):
        for each in (a, b):
            each.update(row=0, mean_log_score=0.0, ahead={**each["ahead"], "row": 0})
        assert a == b
    other = stream(part(path, 60, 90), "--load", half, "--interval", 0.9)[1]  # ends not in the file
    assert [a["log_score"] for a in other] == [a["log_score"] for a in answers]
    assert (other[0]["lower"] is None) == ("--task" in words)
    manifest, arrays = read_container(half)
    for bad in (np.zeros((3, 5)), np.zeros((3, 0)), np.full((3, 7), 1e-3)):
        write_container(half, manifest, {**arrays, "stream/foretold": bad})
        code, _, err = stream(part(path, 60, 90), "--load", half)
        assert (code, "inconsistent state of a stream" in err) == (4, True)


def test_a_gap_in_a_series_of_classes_is_not_learned_from(stream, tmp_path: Path) -> None:
    path, _, _ = write_series(tmp_path / "rows.csv", LABELS)
    lines = path.read_text().splitlines(keepends=True)
    lines[50] = "0.5,NA\n"
    lines[60] = "0.5,oak\n"
    code, answers, err = stream("".join(lines), *SERIES)
    assert code == 0, err
    assert [a["row"] for a in answers if "error" in a] == [60]
    ahead = [a for a in answers[W + 2 :] if "ahead" in a]
    assert [a["row"] for a in ahead if a["ahead"]["proba"] is None] == [50, 51, 61]
    unscored = [a["row"] for a in answers[W + 3 :] if a.get("log_score", 0) is None]
    assert unscored == [50, 51, 52, 61, 62]


def test_a_series_of_classes_goes_on_from_its_file(run, stream, tmp_path: Path) -> None:
    rows = write_series(tmp_path / "rows.csv", LABELS)[0]
    whole, half, both = (tmp_path / name for name in ("whole", "half", "both"))
    _, expected, _ = stream(rows, *SERIES, "--save", whole)
    assert stream(part(rows, 0, 60), *SERIES, "--save", half)[0] == 0
    code, answers, err = stream(part(rows, 60, 90), "--load", half, "--save", both)
    assert code == 0, err
    assert arrays_of(both) == arrays_of(whole)
    same = ("prediction", "proba", "target", "log_score", "n_centres")
    assert [[a[k] for k in same] for a in answers] == [[a[k] for k in same] for a in expected[60:]]
    code, _, err = run("predict", half, rows)
    assert (code, "an earlier value of a series" in err) == (3, True)
    manifest, arrays = read_container(half)
    for past in ([3.0, 0.0], [0.5, 0.0], [-1.0, 0.0]):
        manifest["stream"]["past"] = past
        write_container(half, manifest, arrays)
        code, _, err = stream(part(rows, 60, 90), "--load", half)
        assert (code, "inconsistent state of a stream" in err) == (4, True), err


def test_a_series_of_text_says_how_to_ask_for_classes(stream, tmp_path: Path) -> None:
    path, _, _ = write_series(tmp_path / "rows.csv", LABELS)
    words = ["--target", "kind", "--lags", 2]
    code, answers, err = stream(path, *words)
    assert code == 3 or all("error" in answer for answer in answers)
    assert "--task classification" in err


REFUSED = {
    "one class": (
        "a,kind\n" + "1,x\n" * 40,
        [],
        3,
        "has one class only, 'x', in the first 30 rows; wait for others with a longer --warmup\n",
    ),
    "warm-up": ("a,kind\n1,x\n", ["--task", "classification", "--warmup", "0"], 2, "--warmup 0"),
    "dates": ("a,kind\n" + "1,2024-01-01\n2,2024-01-02\n" * 20, [], 3, "neither numbers nor"),
    "fraction": ("a,kind\n1,1.5\n2,2\n", ["--task", "classification"], 3, "not a whole number"),
    "set": ("a,kind\n1,x\n", ["--set", "n_partikles=3"], 2, "n_particles"),
    "set of numbers": ("a,kind\n1,x\n2,y\n", ["--set", "robust=False"], 2, "robust"),
    "many": ("a,kind\n" + "".join(f"1,x{k}\n" for k in range(60)), ["--warmup", "60"], 3, "60 cl"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(stream, name: str) -> None:
    text, words, expected, said = REFUSED[name]
    common = ["--target", "kind", "--warmup", W, "--set", "n_particles=12"]
    code, _, err = stream(text, "--quiet", *common, *words)
    assert (code, err.count("\n")) == (expected, 1), err
    assert said in err


def test_probabilities_have_intervals(stream, rows: Path, tmp_path: Path) -> None:
    """Those of the estimator, of rows with and without a class; none in the warm-up."""
    out, table = tmp_path / "m.mercer", as_json_lines(rows)
    code, answers, err = stream(rows, *COMMON, "--interval", "0.8", "--save", out)
    assert code == 0, err
    X, y = np.array([[row["a"], row["b"]] for row in table]), [row["kind"] for row in table]
    model = SequentialKernelClassifier(
        n_particles=12, max_candidates=6, n_buffered=40, random_state=0
    )
    model.partial_fit(X[:W], y[:W], LABELS).predict(X)
    expected = model.prequential(X[W:], y[W:], level=0.8)
    for name, ends in (("lower", expected.lower), ("upper", expected.upper)):
        assert [list(answer[name].values()) for answer in answers[W:]] == ends.tolist()
        assert list(answers[-1][name]) == LABELS
    assert "lower" not in answers[0]
    line = json_lines([{"name": "new", "a": 0.3, "b": -0.2}])
    code, (answer,), err = stream(line, "--load", out, "--interval", "0.8", "--id", "name")
    assert code == 0, err
    for label in LABELS:
        assert 0.0 <= answer["lower"][label] <= answer["upper"][label] <= 1.0
    code, _, err = stream(rows, *COMMON, "--interval", "1.5")
    assert (code, "level" in err) == (2, True), err


def test_a_loaded_model_refuses_what_is_for_numbers(stream, rows: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.mercer"
    assert stream(rows, *COMMON, "--save", out)[0] == 0
    for words, said in (
        (["--task", "regression"], "was learned for classification"),
        (["--lags", "2"], "--lags 2"),
    ):
        code, _, err = stream(part(rows, 0, 5), "--load", out, "--id", "name", *words)
        assert (code, said in err) == (2, True), err


def test_a_row_that_was_set_aside_is_not_counted_as_learned(stream, tmp_path: Path) -> None:
    x = np.linspace(-2.0, 2.0, 80)
    cells = [f"{a:.3f},{a + 0.1 * np.sin(40.0 * a):.4f}" for a in x]
    cells[60] = f"{x[60]:.3f},900"
    text, path = "\n".join(["a,y", *cells, ""]), tmp_path / "line.mercer"
    words = ["--target", "y", "--warmup", 40, *TINY[:4], "--task", "regression", "--save", path]
    _, _, err = stream(text, *words)
    assert "80 read, 79 learned" in err
    assert "for their targets: 1;" in err
    _, _, err = stream("a,y\n0.5,0.5\n0.6,900\n", "--load", path)
    assert "2 read, 1 learned" in err
    assert "for their targets: 1;" in err
