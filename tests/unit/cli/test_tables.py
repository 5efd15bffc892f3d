"""Tables as commands read them: conflicts, hints, names, known tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mercer.cli.options import TableOptions
from mercer.cli.tables import (
    ScoringOptions,
    TrainingTable,
    conflicting_rows,
    cross_validation,
    known_rows,
    read_scored,
    read_training,
    say_conflicts,
    split_rows,
)
from mercer.cli.terminal import meanings
from mercer.data.encoding import fit_encoder
from mercer.data.tables import read_frame
from mercer.errors import DataError, UsageError
from mercer.estimation.inspection import Look, permuted_losses
from mercer.estimation.tasks import CLASSIFICATION, REGRESSION
from mercer.posterior.predictive import NormalMixture

# Conflicts.


def table_of(path: Path, *rows: str) -> TrainingTable:
    path.write_text("a,b,y\n" + "\n".join(rows) + "\n")
    return read_training(str(path), TableOptions("y", "auto", (), None, None, "drop"))


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (("1,2,x", "1,3,y", "2,2,x"), None),
        (("1,2,x", "1,2,x", "3,3,y"), None),
        (("9,9,y", "1,2,x", "1,2,x", "1,2,y"), (1, 3, 3)),
        (("1,2,x", "5,5,x", "5,5,z", "1,2,y", "0,0,y"), (1, 2, 4)),
    ],
)
def test_the_first_pair_is_found(tmp_path: Path, rows: tuple[str, ...], found: object) -> None:
    assert conflicting_rows(table_of(tmp_path / "d.csv", *rows)) == found


def test_rows_are_named_by_their_place_in_the_file(tmp_path: Path) -> None:
    table = table_of(tmp_path / "d.csv", ",2,x", "1,2,x", "3,,x", "1,2,y")
    assert "2 rows have" in say_conflicts(table)
    assert "rows 2 and 4" in say_conflicts(table)
    assert say_conflicts(table_of(tmp_path / "e.csv", "1,2,x", "2,2,y")) == ""


# Hints about columns, targets and numbers of rows that people trip over.


def test_what_rows_come_in_groups_of_is_said(tmp_path: Path) -> None:
    """And a group is an input where it is named as a category, and else none."""
    path = write(
        tmp_path / "d.csv",
        {"who": [f"p{k % 60}" for k in range(180)], "x": [*range(180)], "y": [*"ab"] * 90},
    )

    def read(**given: Any) -> TrainingTable:
        return read_training(path, replace(options(), **given))

    hint = "column 'who': 3 rows a level; where those of one are alike, --group 'who'"
    assert any(note.startswith(hint) for note in read().notes)
    grouped = read(group="who")
    assert not any(note.startswith(hint) for note in grouped.notes)
    assert grouped.encoder.feature_names == ("x",)
    named = read(categories=("who",))
    assert not any(note.startswith(hint) for note in named.notes)
    assert named.X.shape == (180, 61)
    both = read(categories=("who, x",), group="who")
    assert both.X.shape == (180, 240)
    assert len(set(both.groups)) == 60
    for given in ({"id_column": "who"}, {"drop": ("who",)}, {"categories": ("y",)}):
        with pytest.raises(UsageError, match="is no input: it is the target, --id or in --drop"):
            read(**{"categories": ("who",), **given})
    with pytest.raises(DataError, match="did you mean 'who'"):
        read(categories=("whoo",))


def test_rows_are_scored_forward_in_time(tmp_path: Path) -> None:
    days = [f"2024-{1 + k // 28:02d}-{1 + k % 28:02d}" for k in range(140)]
    path = write(tmp_path / "d.csv", {"day": days[::-1], "x": [*range(140)], "y": [*"ab"] * 70})
    hint = "column 'day': scores are of rows between others in time; --time 'day'"
    assert any(note.startswith(hint) for note in read_training(path, options()).notes)
    table = read_training(path, replace(options(), time="day"))
    assert not any(note.startswith(hint) for note in table.notes)
    assert "day (month)" in table.encoder.feature_names  # it is an input
    split = split_rows(table, "y", ScoringOptions(None, None, None, True), 0)
    assert split.how == "5 folds by 'day', each predicted by rows before it"
    whole = np.concatenate([fold.y_test for fold in split.folds])
    assert len(whole) + int(split.notes[-1].split()[1]) == 140
    for fold in split.folds:  # the later a row, the smaller its x
        assert fold.X_train[:, -1].min() > fold.X_test[:, -1].max()
    held = split_rows(table, "y", ScoringOptions(None, 0.2, None, True), 0)
    assert held.how == "20 % of the rows, the latest by 'day', held out"
    assert held.folds[0].X_test[:, -1].tolist() == [*range(28)]
    with pytest.raises(UsageError, match="--time and --test exclude each other"):
        split_rows(table, "y", ScoringOptions(path, None, None, True), 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"time": "x", "group": "day"}, "--time and --group exclude each other"),
        ({"time": "name"}, "column 'name' is text, and rows have an order in time by dates"),
        ({"time": "gap"}, "row 3 .*the time of the row is missing"),
        ({"time": "late"}, "there is no column 'late'"),
    ],
)
def test_what_is_no_time_is_refused(given: dict[str, str], words: str, tmp_path: Path) -> None:
    columns = {
        "day": [*range(40)], "x": [*range(40)], "name": [*"uv"] * 20,
        "gap": [1, 2, "", *range(37)], "y": [*"ab"] * 20,
    }  # fmt: skip
    path = write(tmp_path / "d.csv", columns)
    with pytest.raises((DataError, UsageError), match=words):
        read_training(path, replace(options(), missing="impute", **given))


@pytest.mark.parametrize(
    ("labels", "share", "words"),
    [
        ("a" * 30 + "ab" * 5, 0.25, "class 'b' is not"),
        ("ab" * 15 + "c" * 10, 0.25, "class 'c' is not"),
        ("a" * 20 + "ab" * 10, None, "only class 'a' is"),
    ],
)
def test_a_class_that_was_not_there_before_is_refused(
    labels: str, share: float | None, words: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "d.csv", {"t": [*range(40)], "y": [*labels]})
    table = read_training(path, replace(options(), time="t"))
    with pytest.raises(DataError, match=f"{words} among the .* earliest rows by 't'"):
        split_rows(table, "y", ScoringOptions(None, share, None, True), 0)


def options(*, id_column: str | None = None, task: str = "auto") -> TableOptions:
    return TableOptions("y", task, (), id_column, None, "error")


def write(path: Path, columns: dict[str, list[object]]) -> str:
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join(",".join(map(str, row)) for row in [tuple(columns), *rows]))
    return str(path)


N = 24
Y = {"y": ["r", "s"] * (N // 2)}


@pytest.mark.parametrize(
    ("name", "values", "is_hinted"),
    [
        ("patient_id", range(N), True),
        ("PatientID", range(N), True),
        ("Nr", range(100, 100 + N), True),
        ("id", [f"p{i}" for i in range(N)], True),
        ("name", [f"p{i}" for i in range(N)], True),  # every text differs
        ("id", [0, *range(N - 1)], False),  # not all differ
        ("id", np.arange(N) + 0.5, False),
        ("fluid", range(N), False),
        ("age", range(N), False),
        ("kind", ["u", "v"] * (N // 2), False),
    ],
)
def test_a_column_that_looks_like_names(tmp_path: Path, name, values, is_hinted: bool) -> None:
    data = write(tmp_path / "t.csv", {"a": [0.5, 1.5] * (N // 2), name: list(values)} | Y)
    notes = " ".join(read_training(data, options()).notes)
    assert (f"--id '{name}'" in notes) is is_hinted
    if is_hinted:
        assert f"--id '{name}'" not in " ".join(read_training(data, options(id_column=name)).notes)


def test_a_second_column_of_names_is_hinted_to_be_dropped(tmp_path: Path) -> None:
    data = write(tmp_path / "t.csv", {"id": range(N), "nr": range(N), "a": [1, 2] * 12} | Y)
    assert "--drop 'nr'" in " ".join(read_training(data, options(id_column="id")).notes)


@pytest.mark.parametrize(
    ("values", "is_hinted"),
    [(range(7), True), ([1, 2, 3], True), ([0, 1], False), ([1, 5, 9], False)],
)
def test_counts_may_be_numbers(tmp_path: Path, values, is_hinted: bool) -> None:
    y = [values[i % len(values)] for i in range(40)]
    data = write(tmp_path / "t.csv", {"a": np.arange(40) / 3, "y": y})
    table = read_training(data, options())
    assert table.task.name == "classification"
    assert ("--task regression" in table.reason) is is_hinted


@pytest.mark.parametrize(
    ("cells", "classes", "words"),
    [
        (["01", "1", "2"], ("01", "1", "2"), "codes with leading zeros, so classes"),
        (["01", "1", "A"], ("01", "1", "A"), ""),
        (["1", "1.0", "2"], (1, 2), "'1' and '1.0' are one class"),
        (["-0", "0", "1"], (0, 1), "'-0' and '0' are one class"),
        (["1", "2", "3"], (1, 2, 3), ""),
    ],
)
def test_classes_stay_as_they_are_written(tmp_path: Path, cells, classes, words: str) -> None:
    columns = {"a": np.arange(30) / 3, "y": cells * 10}
    table = read_training(write(tmp_path / "t.csv", columns), options())
    assert table.classes == classes
    said = [note for note in table.notes if note.startswith("target 'y'")]
    assert len(said) == bool(words)
    assert words in "".join(said)
    asked = options(task="regression")
    if "A" not in cells:
        numbers = read_training(write(tmp_path / "t.csv", columns), asked).y
        assert numbers.tolist() == [float(cell) for cell in cells * 10]


def test_levels_that_differ_only_in_case_are_named(tmp_path: Path) -> None:
    columns = {"a": ["u", "U", "v"] * 10, "b": ["1", "2", "3"] * 10, "y": ["yes", "Yes", "no"] * 10}
    notes = read_training(write(tmp_path / "t.csv", columns), options()).notes
    found = [note.split(",")[0] for note in notes if "only in case" in note]
    assert found == [
        "column 'y': 'Yes' and 'yes' differ only in case",
        "column 'a': 'U' and 'u' differ only in case",
    ]


@pytest.mark.parametrize("missing", ["error", "drop", "impute", "indicator"])
def test_columns_without_any_value_are_left_out(tmp_path: Path, missing: str) -> None:
    columns = {"a": [1, 2, 3], "b": [""] * 3, "c": ["NA"] * 3, "y": ["u", "v", "u"]}
    path = write(tmp_path / "t.csv", columns)
    given = replace(options(), missing=missing)
    table = read_training(path, given)
    assert "columns 'b' and 'c' have no value in any row: no input" in table.notes
    assert table.encoder.feature_names == ("a",)
    with pytest.raises(DataError, match="no column left to learn from"):
        read_training(path, replace(given, drop=("a",)))


def test_a_word_read_as_missing_is_named_where_its_rows_are_dropped(tmp_path: Path) -> None:
    table = table_of(tmp_path / "d.csv", "1,2,NA", "1,2,x", "3,1,x", "1,2,y")
    assert "were dropped; 'NA' in it is read as missing" in " ".join(table.notes)


@pytest.mark.parametrize(("n", "words"), [(10, "26 %"), (28, "10 %"), (30, None)])
def test_few_rows_are_said_to_be_too_few(tmp_path: Path, n: int, words: str | None) -> None:
    columns = {"a": np.arange(n) / 3, "y": ["r", "s"] * (n // 2)}
    table = read_training(write(tmp_path / "t.csv", columns), options())
    notes = " ".join(split_rows(table, "y", ScoringOptions(None, None, 2, True), 0).notes)
    assert ("too few to judge" in notes) is (words is not None)
    assert words is None or words in notes
    held_out = split_rows(table, "y", ScoringOptions(None, 0.5, None, True), 0).notes
    assert f"{n // 2} rows: too few to judge" in " ".join(held_out)


def test_words_of_diagnostics_are_explained() -> None:
    assert "1 where they agree" in meanings(["R-hat of x is 1.3"])
    assert "divergent trajectory is" in meanings(["3 of 9 draws came from divergent trajectories"])
    assert "docs/glossary.md" in meanings(["Pareto k-hat 0.9"])
    assert meanings(["no warnings, and no draws to judge"]) == ""


# Rows to score on: which ones, and what is said of the others.


def test_labels_that_were_not_in_training_are_left_out_and_named() -> None:
    known = known_rows(np.array(["b", "c", "a"], dtype=object), CLASSIFICATION, ("a", "b"))
    assert (known.positions.tolist(), known.y.tolist()) == ([0, 2], [1, 0])
    assert known.notes == (
        "1 of 3 rows have a label that was not in training ('c') and are not scored",
    )


def test_blocks_of_known_rows() -> None:
    known = known_rows(np.array(["x", "a", "b", "x", "a"], dtype=object), CLASSIFICATION, "ab")
    assert [part.tolist() for part in known.within(0, 2)] == [[1], [0]]
    assert [part.tolist() for part in known.within(2, 5)] == [[0, 2], [1, 0]]
    assert [part.tolist() for part in known.within(3, 4)] == [[], []]


def test_rows_are_read_with_their_targets(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text("a,y\n1,2.5\n2,3.5\n")
    frame = read_frame(path)
    encoder = fit_encoder(frame.without(["y"]))
    rows = read_scored(frame, "y", encoder, REGRESSION, ())
    assert (rows.X.tolist(), rows.y.tolist(), rows.notes) == ([[1.0], [2.0]], [2.5, 3.5], ())
    path.write_text("a,y\n1,2.5\n2,\n3,4.5\n")
    rows = read_scored(read_frame(path), "y", encoder, REGRESSION, ())
    assert (rows.X.tolist(), rows.y.tolist()) == ([[1.0], [3.0]], [2.5, 4.5])
    assert rows.notes == ("1 of 3 rows have no target and are not scored",)
    path.write_text("a,y\n1,\n")
    with pytest.raises(DataError, match="no row has a target; correct column 'y'"):
        read_scored(read_frame(path), "y", encoder, REGRESSION, ())
    path.write_text("a,y\n1,p\n2,q\n")
    with pytest.raises(DataError, match=r"no row has a label that the model knows \('r', 's'\)"):
        read_scored(read_frame(path), "y", encoder, CLASSIFICATION, ("r", "s"))


def test_one_row_is_too_few_to_learn_from(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,y\n1,2.5\n2,3.5\n")
    table = read_training(
        str(tmp_path / "d.csv"), TableOptions("y", "auto", (), None, None, "error")
    )
    few = r"d\.csv: of 2 rows one would be left to learn from; score on fewer, or add rows"
    with pytest.raises(DataError, match=few):
        cross_validation(table, 10, 0)
    with pytest.raises(DataError, match=few):
        split_rows(table, "y", ScoringOptions(None, 0.5, None, True), 0)


# What an encoding learns, it learns without the rows that are held out.


def gaps(folder: Path, *, last: float = 0.0) -> TrainingTable:
    """A table whose last three rows alone have a level, a year and most values of a column."""
    n = 30
    columns = {
        "a": ["", *range(1, n - 3), *[last] * 3],
        "city": [*["Bonn", "Kiel", "Ulm"] * 9, *["Rom"] * 3],
        "day": [*[f"2024-03-{1 + i:02}" for i in range(n - 3)], *["2025-03-01"] * 3],
        "rare": [*[""] * (n - 3), 1, 2, 3],
        "y": np.arange(n) * 0.5,
    }
    given = TableOptions("y", "auto", (), None, None, "indicator")
    return read_training(write(folder / "t.csv", columns), given)


def test_rows_that_are_held_out_do_not_say_how_cells_are_encoded(tmp_path: Path) -> None:
    train, test = np.arange(27), np.arange(27, 30)
    first, second = (gaps(tmp_path, last=x).fold(train, test) for x in (0.0, 1e6))
    np.testing.assert_array_equal(first.X_train, second.X_train)
    assert not any("Rom" in name or "year" in name for name in first.names)
    assert "city=Rom" in gaps(tmp_path).encoder.feature_names
    assert "rare" not in first.sources  # it has no value to learn from
    own = first.X_test[:, [j for j, name in enumerate(first.names) if name.startswith("city")]]
    np.testing.assert_array_equal(own, -1.0 / 3.0)  # none of the three that were seen
    # Rows are known for what they are in the whole table, where other fits know them.
    keys = [first.keys[row.tobytes()] for row in first.X_train]
    assert keys == [row.tobytes() for row in gaps(tmp_path).X[train]]


def test_inputs_that_a_fold_does_not_have_decide_nothing(tmp_path: Path) -> None:
    """Columns of a fold are found by their input: those of the whole table are others."""
    table = gaps(tmp_path)
    inputs = table.encoder.inputs
    assert inputs.names == ("a", "city", "day", "rare")

    class Last:
        """Predicts the last column, a part of the date."""

        def _at_a_glance(self):
            return self

        def predictive(self, X):
            return NormalMixture(X[:, -1:], np.array([1.0]))

    fold = table.fold(np.arange(27), np.arange(27, 30))
    assert fold.sources[-1] == "day"
    X = np.random.default_rng(0).normal(size=(9, len(fold.sources)))
    look = Look(inputs, 9, 0, entropy=1)
    found = permuted_losses(Last(), X, X[:, -1], look, sources=fold.sources)
    assert (np.abs(found.log_score).sum(axis=(0, 1)) > 0).tolist() == [False, False, True, False]


def test_words_of_an_input_that_are_read_as_missing_are_said(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    rows = [f"{('Bonn', 'None', 'Ulm')[k % 3]},NA,{k},{k / 7}" for k in range(30)]
    path.write_text("\n".join(["city,x,a,y", *rows, "Ulm,1,2,3.5"]))
    with pytest.raises(DataError, match=r"'None' in it is read as missing: .*--null-values ''"):
        read_training(str(path), TableOptions("y", "auto", ("x",), None, None, "error"))
    table = read_training(str(path), TableOptions("y", "auto", ("x",), None, None, "impute"))
    assert "column 'city': 'None' in it is read as missing: where that is" in " ".join(table.notes)
    kept = TableOptions("y", "auto", ("x",), None, None, "error", null_values="NA")
    assert "city=None" in read_training(str(path), kept).encoder.feature_names
