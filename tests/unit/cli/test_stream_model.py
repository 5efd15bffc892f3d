"""Cells, labels, scores and state of a stream."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer import models
from mercer.cli.stream import closing_words
from mercer.cli.stream_model import (
    Coder,
    Labels,
    Numbers,
    Prediction,
    Reporter,
    Tally,
    Undecided,
    encoding_notes,
    learn_encoder,
    read_number,
    refuse_text,
)
from mercer.cli.stream_plan import (
    MOST,
    Remembered,
    StreamOptions,
    StreamState,
    plan_stream,
    read_state,
    write_stream_model,
)
from mercer.cli.stream_rows import Line, Parser, Row, Wanted
from mercer.data.encoding import ColumnCode, Encoder, fit_encoder
from mercer.data.frame import Frame, column_of_texts
from mercer.data.tables import read_frame
from mercer.errors import DataError, ModelFileError
from mercer.estimation.model_file import TableModel
from mercer.posterior.container import read_container, write_container
from mercer.posterior.evaluation import Provenance
from mercer.posterior.predictive import StudentMixture
from support.class_fits import bits, little, make_rows
from support.line_model.estimator import ENTRY, LineRegressor

# Cells.


def rows_of(*cells: tuple[str, ...]) -> list[Row]:
    return [Row(k, k + 1, each) for k, each in enumerate(cells, start=1)]


def parser_of(*names: str, comma: bool = False, told: list[str] | None = None) -> Parser:
    """A parser of rows with these inputs."""
    wanted = Wanted("a pipe", "y", None, (), None, is_series=False)
    header = (";" if comma else ",").join([*names, "y"])
    return Parser(wanted, ([] if told is None else told).append, Line(1, header))


def coder(codes, names, *, comma: bool = False, told: list[str] | None = None) -> Coder:
    said = [] if told is None else told
    reporter = Reporter(
        lambda _, words: said.append(words), "a pipe", is_fatal=False, tally=Tally()
    )
    missing = "impute" if any(code.fill is not None for code in codes) else "error"
    return Coder(Encoder(tuple(codes), missing), parser_of(*names, comma=comma), reporter)


def test_decimal_commas_are_read_cell_by_cell() -> None:
    code = ColumnCode("a", "number")
    X, problems = coder([code], ["a"], comma=True).encode(rows_of(("1,5",), ("2.5",), ("3",)))
    assert (X.ravel().tolist(), problems) == ([1.5, 2.5, 3.0], {})
    with pytest.raises(ValueError, match="'1,5' is not a number"):
        read_number("1,5", has_decimal_comma=False)


@pytest.mark.parametrize("cell", ["nan", "NAN", "inf", "1e400", "1_000", "one", "1e151"])
def test_numbers_that_are_none(cell: str) -> None:
    with pytest.raises(ValueError):
        read_number(cell, has_decimal_comma=False)


def test_rows_are_encoded_as_tables_are() -> None:
    cells = [("1", "red", "true"), ("2", "blue", "false"), ("3", "grey", "true")]
    encoder = learn_encoder(parser_of("a", "k", "f"), rows_of(*cells), "a pipe")
    names = encoder.input_names
    X, _ = coder(encoder.codes, names).encode(rows_of(*cells))
    columns = [
        column_of_texts(n, c, is_text=False)
        for n, c in zip(names, zip(*cells, strict=True), strict=True)
    ]
    numbers = type(columns[0])("a", np.array([1.0, 2.0, 3.0]), "number")
    frame = Frame.from_columns([numbers, *columns[1:]], "a table")
    np.testing.assert_array_equal(X, encoder.transform(frame).X)


def test_columns_may_stand_elsewhere_and_fills_are_used() -> None:
    codes = [ColumnCode("a", "number", fill=2.5), ColumnCode("f", "boolean", fill=1.0)]
    X, problems = coder(codes, ["f", "z", "a"]).encode(rows_of(("0", "x", "NA"), ("", "x", "1")))
    assert (X.tolist(), problems) == ([[2.5, 0.0], [1.0, 1.0]], {})


def test_each_row_has_its_own_problem() -> None:
    codes = [
        ColumnCode("a", "number"),
        ColumnCode("f", "boolean"),
        ColumnCode("k", "levels", ("blue", "red")),
    ]
    told: list[str] = []
    rows = rows_of(("1", "maybe", "red"), ("", "x", "red"), ("1", "1", ""), ("1", "0", "green"))
    X, problems = coder(codes, ["a", "f", "k"], told=told).encode(rows)
    assert problems == {
        0: "column 'f': 'maybe' is neither true nor false; the model needs true or false (1 or 0) "
        "here",
        1: "column 'a': missing value",
        2: "column 'k': missing value",
    }
    assert np.isfinite(X).all()
    assert len(told) == 2
    assert "--missing impute" in told[0]


def test_no_rows_have_no_problems() -> None:
    X, problems = coder([ColumnCode("a", "number")], ["a"]).encode([])
    assert (X.shape, problems) == ((0, 1), {})


def test_most_cells_say_what_a_column_is() -> None:
    rows = rows_of(*[(str(k), f"t{k}") for k in range(10)], ("x", "t"), ("inf", "t"))
    encoder = learn_encoder(parser_of("a", "k"), rows, "a pipe")
    assert [code.kind for code in encoder.codes] == ["number", "levels"]
    _, problems = coder(encoder.codes, ["a", "k"]).encode(rows)
    assert list(problems) == [10, 11]
    assert "'x' is not a number" in problems[10]


def test_dates_and_money_are_those_of_tables(tmp_path: Path) -> None:
    """But for the time that passes. What is written in another way spoils its own row only."""
    cells = [("31/12/2023", "5%", "$1,000.50"), ("01/02/2024", "7.5%", "($3)")]
    rows = rows_of(*cells, ("03/02/2024", "8%", "$2"))
    names = ("day", "rate", "price")
    encoder = learn_encoder(parser_of(*names), rows, "a pipe")
    lines = [",".join(f'"{cell}"' for cell in row.cells) for row in rows]
    (tmp_path / "t.csv").write_text("\n".join([",".join(names), *lines]))
    frame = read_frame(tmp_path / "t.csv")
    whole = fit_encoder(frame)
    assert "days" in whole.codes[0].parts
    whole = replace(whole, codes=(replace(whole.codes[0], parts=("weekday",)), *whole.codes[1:]))
    assert whole == encoder
    own = coder(encoder.codes, names)
    X, problems = own.encode(rows)
    assert not problems
    np.testing.assert_array_equal(X, whole.transform(frame).X)
    strange = rows_of(
        ("12/31/2024", "5%", "$1"), ("", "5%", "$1"), ("2024-01-01", "5%", "1"), *cells
    )
    X, problems = own.encode(strange)
    assert list(problems) == [0, 1, 2]
    assert "column 'day': '12/31/2024' is not a date (day/month/year)" in problems[0]
    assert problems[1] == "column 'day': missing value"
    assert "column 'price': '1' is not a number written as '$1,234.5'" in problems[2]
    np.testing.assert_array_equal(X[3:], whole.transform(frame).X[:2])
    with pytest.raises(DataError, match="--warmup above 0"):
        refuse_text(encoder, "a pipe")


def test_no_usable_row_and_dates_are_refused() -> None:
    with pytest.raises(DataError, match="none of the first 6 rows"):
        learn_encoder(
            parser_of("a", "b", "c"),
            rows_of(*[("x", "1", "1"), ("1", "x", "1"), ("1", "1", "x")] * 2),
            "a pipe",
        )
    with pytest.raises(DataError, match="column 'd': '01/02/2024' may begin"):
        learn_encoder(parser_of("d"), rows_of(("01/02/2024",)), "a pipe")


def test_what_is_said_of_text() -> None:
    rows = rows_of(*[(f"t{k}",) for k in range(12)])
    encoder = learn_encoder(parser_of("k"), rows, "a pipe")
    known = "column 'k': 12 levels of text, an input each"
    assert encoding_notes(encoder, 13) == [known]
    assert "another text in each" in encoding_notes(encoder, 12)[1]
    with pytest.raises(DataError, match="--warmup above 0"):
        refuse_text(encoder, "a pipe")


def test_a_first_column_without_a_name_names_the_rows() -> None:
    wanted = Wanted("a pipe", "y", None, (), None, is_series=False)
    told: list[str] = []
    rows = Parser(wanted, told.append, Line(1, ",a,y"))
    assert (rows.inputs, len(told)) == (("a",), 1)
    assert "column 'Unnamed: 0', which has no name: the names of the rows" in told
    assert [row.id for row in rows.rows([Line(2, "p1,5,1"), Line(3, "p2,6,0")])] == ["p1", "p2"]
    needed = dataclasses.replace(wanted, needed=("Unnamed: 0", "a"))
    assert Parser(needed, told.append, Line(1, ",a,y")).inputs == ("Unnamed: 0", "a")
    dropped = dataclasses.replace(wanted, drop=("Unnamed: 0",))
    assert Parser(dropped, told.append, Line(1, ",a,y")).inputs == ("a",)
    with pytest.raises(DataError, match="column 2 has no name"):
        Parser(wanted, told.append, Line(1, "a,,y"))
    commas = Parser(wanted, told.append, Line(1, "a,y,"))
    read, odd = commas.rows([Line(2, "5,1,"), Line(3, "5,1,2")])
    assert (read.cells, read.target) == (("5",), "1")
    assert odd.problem == "has 3 cells, but the header has 2: column 3 has no name"


# Labels.


TEXTS = np.array(["ash", "birch"], dtype=object)


@pytest.mark.parametrize(
    ("classes", "cells", "values"),
    [
        (TEXTS, [" ash", "birch "], ["ash", "birch"]),
        (np.array([False, True]), ["TRUE", "0"], [True, False]),
        (np.array([3, 7]), ["3.0", " 7"], [3, 7]),
        (np.array([-1.0, 1.0]), ["1", "-1"], [1.0, -1.0]),
    ],
)
def test_cells_become_labels_of_the_type_of_the_classes(classes, cells, values) -> None:
    labels = Labels(None, classes)
    seen = [labels.target(cell, has_decimal_comma=False) for cell in cells]
    assert seen == values
    assert [type(each) for each in seen] == [type(each) for each in values]
    with pytest.raises(ValueError, match="'5' is none of the classes"):
        labels.target("5", has_decimal_comma=False)


def test_text_where_classes_are_numbers() -> None:
    with pytest.raises(ValueError, match="'x' is not a number"):
        Labels(None, np.array([3, 7])).target("x", has_decimal_comma=False)
    assert Labels(None, np.array([3, 7])).target("7,0", has_decimal_comma=True) == 7


def test_rows_are_predicted_then_learned() -> None:
    X, y = make_rows(40)
    labels, model = Labels(little(), TEXTS), little()
    labels.learn(X[:20], list(y[:20]))
    labels.model.predict(X[:1])
    said = labels.ahead(X[20:], [None if k == 3 else each for k, each in enumerate(y[20:])])
    known = np.arange(40) != 23
    model.partial_fit(X[:20], y[:20]).predict(X)
    model.partial_fit(X[20:][known[20:]], y[20:][known[20:]])
    assert bits(labels.model) == bits(model)
    assert said[3].score is said[3].is_right is None
    assert said[3].fields["prediction"] in TEXTS
    for k, each in enumerate(said):
        proba = each.fields["proba"]
        assert list(proba) == ["ash", "birch"]
        assert each.fields["prediction"] == max(proba, key=proba.get)
        if k != 3:
            assert each.score == pytest.approx(-np.log(proba[y[20 + k]]))
            assert each.is_right == (each.fields["prediction"] == y[20 + k])


def test_names_of_truth_values_are_those_of_json() -> None:
    labels = Labels(little(), np.array([False, True]))
    X, y = make_rows(30)
    labels.learn(X, [bool(each == "ash") for each in y])
    (said,) = labels.ahead(X[:1], [None])
    assert list(said.fields["proba"]) == ["false", "true"]
    assert said.fields["prediction"] in (False, True)
    assert labels.unknown == {"prediction": None, "proba": None}


# Undecided.


def decide(*cells: str, is_auto: bool = True) -> tuple[str, list[Any]]:
    """The task, and the targets that are of its kind."""
    undecided = Undecided("y", is_auto=is_auto, make=lambda target: target)
    target = undecided.decide(cells, "rows", has_decimal_comma=False)
    return target.task, target.values.tolist()


@pytest.mark.parametrize(
    ("cells", "task", "targets"),
    [
        ("ab", "classification", ["a", "b"]),
        (["true", "False", " true"], "classification", [True, False, True]),
        ("0110", "classification", [0, 1, 1, 0]),
        (["01", "x"], "classification", ["01", "x"]),
        (["0", "1", "x"], "classification", ["0", "1", "x"]),
        (["0", "0.5"], "regression", [0.0, 0.5]),
        ([str(k) for k in range(11)], "regression", [float(k) for k in range(11)]),
        (["1.5"], "regression", [1.5]),
    ],
)
def test_the_first_rows_say_what_targets_are(cells, task: str, targets: list) -> None:
    assert decide(*cells) == (task, targets)


def test_a_text_among_numbers_is_a_mistake() -> None:
    assert decide("0.5", "1", "x", "inf", "2") == ("regression", [0.5, 1.0, 2.0])


def test_asked_for_classes_all_are() -> None:
    assert decide(*map(str, range(20)), is_auto=False) == ("classification", list(range(20)))
    assert decide("1.5", "x", "2", is_auto=False)[1] == ["1.5", "x", "2"]
    with pytest.raises(DataError, match="not a whole number"):
        decide("1.5", "2", is_auto=False)


@pytest.mark.parametrize("cells", ["aaa", "11", ["true"]])
def test_one_class_is_none(cells) -> None:
    with pytest.raises(DataError, match=r"one class only, .* longer --warmup"):
        decide(*cells)


@pytest.mark.parametrize(
    ("cell", "shown"), [(" 7 ", 7), ("0.5", 0.5), ("1e3", 1000), ("x ", "x"), ("inf", "inf")]
)
def test_what_is_shown_meanwhile(cell: str, shown: object) -> None:
    undecided = Undecided("y", is_auto=True, make=lambda target: target)
    seen = undecided.target(cell, has_decimal_comma=False)
    assert (seen, type(seen)) == (shown, type(shown))


# Tally.


def test_the_last_thousand_are_apart_from_all() -> None:
    tally = Tally()
    assert (tally.mean_score, tally.recent_score, tally.recent_coverage) == (None, None, None)
    for k in range(2000):
        tally.add(Prediction({}, float(k >= 1000), k >= 1500))
        tally.add(Prediction({}))
    assert (tally.mean_score, tally.recent_score, tally.recent_coverage) == (0.5, 1.0, 0.5)


def test_what_is_said_at_the_end() -> None:
    tally = Tally()
    tally.n_rows, tally.n_learned = 3, 2
    assert closing_words(tally) == "3 read, 2 learned"
    tally.n_bad = 1
    tally.add(Prediction({}, 1.25))
    words = "3 read, 2 learned, 1 bad; mean log score 1.25 nats a row (lower is better)"
    assert closing_words(tally) == words


def test_classes_are_counted_that_were_wrong() -> None:
    tally = Tally()
    assert tally.error_rate is tally.recent_error_rate is None
    for k in range(2000):
        tally.add(Prediction({}, 1.0, is_right=k >= 1500))
    assert (tally.error_rate, tally.recent_error_rate) == (0.75, 0.5)
    words = "mean log score 1.00 nats a row (lower is better), 75.0 % wrong"
    assert closing_words(tally).endswith(words)


# Remembered.


def test_the_oldest_is_forgotten() -> None:
    rows: Remembered[int] = Remembered()
    for k in range(MOST + 2):
        rows.add(k, k)
    assert len(rows) == MOST
    assert [rows.take(k) for k in (0, 1, 2)] == [None, None, 2]


def test_a_name_that_comes_again_is_the_latest() -> None:
    rows: Remembered[str] = Remembered()
    for name, row in (("a", "1"), ("b", "2"), ("a", "3"), (None, "4")):
        rows.add(name, row)
    assert list(rows.items()) == [("b", "2"), ("a", "3")]


# State.


X = np.array([[0.0, 1.0], [2.0, 0.5], [1.0, 1.0]])
LAW = Numbers(None, None).kept(
    Prediction({"n_centres": 2.0}, law=StudentMixture(X[:1], X[2], np.array([0.5, 0.5]), np.inf))
)
STATE = StreamState(2, 2, (1.0, None), (X[2], X[0]), (("r1", X[1]), ("7", X[2])), (LAW,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    codes = tuple(ColumnCode(name, "number") for name in ("y[t-2]", "y[t-3]"))
    made = Provenance("a pipe", "y", 3, 2, ("y[t-2]", "y[t-3]"), (), "mercer", 5, 1.0, "", ())
    table = TableModel(Encoder(codes, "error"), "y", None, made)
    write_stream_model(tmp_path / "m", LineRegressor().partial_fit(X, X[:, 0]), table, STATE)
    return tmp_path / "m"


def test_what_was_written_is_read(path: Path) -> None:
    state = read_state(path)
    assert (state.n_lags, state.horizon, state.past) == (2, 2, (1.0, None))
    np.testing.assert_array_equal(state.waiting, X[[2, 0]])
    np.testing.assert_array_equal(state.foretold[0], LAW)
    assert [name for name, _ in state.later] == ["r1", "7"]
    np.testing.assert_array_equal(state.later[1][1], X[2])


def test_a_model_of_no_stream_has_no_state(tmp_path: Path) -> None:
    LineRegressor().partial_fit(X, X[:, 0]).save(tmp_path / "m")
    state = read_state(tmp_path / "m")
    assert (state.n_lags, state.horizon, state.waiting, state.later) == (0, 1, (), ())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_lags", -1), ("n_lags", 1.5), ("n_lags", None), ("horizon", "2"), ("past", [1, 2, 3]),
        ("past", ["x"]), ("past", None), ("is_waiting", [True, False]), ("is_waiting", [1, 0]),
        ("names", [1, 2]), ("names", ["r1"]), ("is_waiting", ["a"]), ("is_foretold", [1, 0]),
        ("is_foretold", [True, True]), ("is_foretold", []),
    ],
)  # fmt: skip
def test_f8_what_does_not_fit_together_is_refused(path: Path, name: str, value) -> None:
    manifest, arrays = read_container(path)
    manifest["stream"][name] = value
    write_container(path, manifest, arrays)
    with pytest.raises(ModelFileError, match="inconsistent state of a stream"):
        read_state(path)


def test_f8_rows_that_are_not_the_models_are_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = tuple(entry for entry in models.MODELS if entry.name != "basis")
    monkeypatch.setattr(models, "MODELS", (*others, ENTRY))
    options = StreamOptions(
        None,
        "auto",
        "auto",
        path,
        None,
        60.0,
        None,
        None,
        50,
        None,
        (),
        None,
        (),
        0,
        None,
        False,
        "auto",
    )
    plan = plan_stream(options, lambda *_: None)
    assert (plan.target, plan.n_lags, plan.horizon, plan.seed, plan.columns) == ("y", 2, 2, 5, ())
    manifest, arrays = read_container(path)
    arrays["stream/rows"] = np.zeros((4, 3))
    write_container(path, manifest, arrays)
    with pytest.raises(ModelFileError, match="its inputs are not the model's"):
        plan_stream(options, lambda *_: None)
