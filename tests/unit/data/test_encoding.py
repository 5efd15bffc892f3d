from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mercer.data.encoding import Encoder, fit_encoder
from mercer.data.frame import Frame
from mercer.data.tables import read_frame
from mercer.errors import DataError, ModelFileError, UsageError

TRAIN = "age,city,smoker,sex\n30,Ulm,true,m\n40,Bonn,false,f\n50,Kiel,true,m\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new.csv"


def read(path: Path, text: str) -> Frame:
    path.write_text(text)
    return read_frame(path)


def test_a_table_becomes_a_matrix(path: Path) -> None:
    encoder = fit_encoder(read(path, TRAIN))
    assert encoder.input_names == ("age", "city", "smoker", "sex")
    assert encoder.feature_names == (
        "age",
        "city=Bonn",
        "city=Kiel",
        "city=Ulm",
        "smoker",
        "sex=m",
    )
    encoded = encoder.transform(read_frame(path))
    np.testing.assert_array_equal(
        encoded.X, [[30, 0, 0, 1, 1, 1], [40, 1, 0, 0, 0, 0], [50, 0, 1, 0, 1, 1]]
    )
    assert encoded.rows.tolist() == [0, 1, 2]
    assert (encoded.ignored, encoded.notes, encoder.notes) == ((), (), ())


def test_d6_columns_are_matched_by_name(path: Path) -> None:
    encoder = fit_encoder(read(path, TRAIN))
    encoded = encoder.transform(read(path, "sex,extra,smoker,city,age\nm,1,0,Ulm,30\n"))
    np.testing.assert_array_equal(encoded.X, [[30, 0, 0, 1, 0, 1]])
    assert encoded.ignored == ("extra",)


def test_d6_a_missing_column_is_named(path: Path) -> None:
    encoder = fit_encoder(read(path, TRAIN))
    frame = read(path, "Age,city,smoker,sex\n30,Ulm,true,m\n")
    with pytest.raises(DataError, match=r"column 'age' is missing, .*; did you mean 'Age'\?"):
        encoder.transform(frame)


def test_levels_that_were_not_in_training(path: Path) -> None:
    encoder = fit_encoder(read(path, TRAIN))
    encoded = encoder.transform(read(path, "age,city,smoker,sex\n1,Rom,true,x\n2,Rom,true,f\n"))
    np.testing.assert_array_equal(encoded.X[:, 1:4], -1.0 / 3.0)
    known = np.eye(3)  # as far from each of three levels as these are from one another
    np.testing.assert_allclose(np.linalg.norm(encoded.X[0, 1:4] - known, axis=1), np.sqrt(2.0))
    assert encoded.notes == (
        "column 'city': 2 rows hold a level that was not in training ('Rom'), encoded as one "
        "more level: predictions may be too sure",
        "column 'sex': 1 row holds a level that was not in training ('x'), encoded as halfway "
        "between the two, 'f' and 'm': predictions may be too sure",
    )
    np.testing.assert_array_equal(encoded.X[:, -1], [0.5, 0.0])
    assert encoder.sources == ("age", *["city"] * 3, "smoker", "sex")


def test_text_that_looks_like_numbers_later(path: Path) -> None:
    encoder = fit_encoder(read(path, "a\n1\nx\n2\ny\n"))
    np.testing.assert_array_equal(encoder.transform(read(path, "a\n2\n")).X, [[0, 1, 0, 0]])


def test_many_levels_are_said(path: Path) -> None:
    text = "a\n" + "".join(f"v{i}\n" for i in range(60))
    encoder = fit_encoder(read(path, text))
    assert encoder.notes == (
        "column 'a': 60 levels of text (more than 50), encoded by their frequency in training",
    )
    assert "encoded as frequency 0:" in encoder.transform(read(path, "a\nzz\n")).notes[0]


def test_d3_a_missing_value_is_an_error(path: Path) -> None:
    frame = read(path, "a,b\n1,2\n3,\n,\n")
    match = r"new.csv, row 2 \(line 3\), column 'b': missing value \(2 of 3 rows .*--missing impute"
    with pytest.raises(DataError, match=match):
        fit_encoder(frame)
    encoder = fit_encoder(read(path, "a,b\n1,2\n"))
    with pytest.raises(DataError, match=match.replace("--missing", "fit the model with --missing")):
        encoder.transform(frame)


def test_rows_with_a_missing_value_are_dropped(path: Path) -> None:
    frame = read(path, "a,b\n1,x\n3,\n,y\n4,z\n")
    encoder = fit_encoder(frame, missing="drop")
    assert encoder.feature_names == ("a", "b=z")
    encoded = encoder.transform(frame)
    assert encoded.rows.tolist() == [0, 3]
    np.testing.assert_array_equal(encoded.X, [[1, 0], [4, 1]])
    assert encoded.notes == ("2 of 4 rows have a missing value and were dropped",)
    with pytest.raises(DataError, match=r"every row has a missing value \(in 'b'\)"):
        encoder.transform(read(path, "a,b\n1,\n2,\n"))


def test_missing_values_are_filled_from_training(path: Path) -> None:
    encoder = fit_encoder(
        read(path, "a,b,c\n1,x,true\n3,,true\n,y,\n9,y,false\n"), missing="impute"
    )
    encoded = encoder.transform(read(path, "a,b,c\n,,\n5,x,false\n"))
    np.testing.assert_array_equal(encoded.X, [[3, 1, 1], [5, 0, 0]])
    assert encoded.rows.tolist() == [0, 1]
    assert encoded.notes[0].startswith("1 of 2 rows have a missing value; the median")


@pytest.mark.parametrize("missing", ["error", "drop", "impute", "indicator"])
def test_a_column_without_any_value(path: Path, missing: str) -> None:
    """Before, "error" and "drop" advised to fill it in, which was refused then."""
    with pytest.raises(DataError, match="column 'b' has no value at all; leave the column out"):
        fit_encoder(read(path, "a,b\n1,\n2,\n"), missing=missing)


@pytest.mark.parametrize("cell", ["inf", "-inf", "1e999", "Infinity"])
def test_d3_infinite(path: Path, cell: str) -> None:
    encoder = fit_encoder(read(path, "a,b\n1,2\n"))
    frame = read(path, f"a,b\n1,2\n3,{cell}\n")
    for encode in (fit_encoder, encoder.transform):
        with pytest.raises(DataError, match=r"row 2 \(line 3\), column 'b': infinite"):
            encode(frame)


SHOP = """day,seen,rate,price,n
31/12/2023,2024-01-01T06:00,12.3%,"$1,234.50","1,000"
01/01/2024,2024-01-02T18:30,4%,$3.10,999
08/02/2024,2024-01-02T00:00,0.5%,($7),"12,000"
"""


def test_d4_dates_and_numbers_as_people_write_them(path: Path) -> None:
    encoder = fit_encoder(read(path, SHOP))
    assert encoder.feature_names == (
        "day (year)",
        "day (month)",
        "day (day of week)",
        "day (days since 2023-12-31)",
        "seen (day of week)",
        "seen (hour)",
        "seen (days since 2024-01-01)",
        "rate",
        "price",
        "n",
    )
    X = encoder.transform(read_frame(path)).X
    np.testing.assert_allclose(
        X,
        [
            [2023, 12, 7, 0, 1, 6, 0.25, 12.3, 1234.5, 1000],
            [2024, 1, 1, 1, 2, 18.5, 1 + 18.5 / 24, 4, 3.1, 999],
            [2024, 2, 4, 39, 2, 0, 1, 0.5, -7, 12000],
        ],
    )
    assert encoder.notes == (
        "column 'day': dates (day/month/year), as year, month, day of week (Monday is 1), days "
        "since 2023-12-31",
        "column 'seen': dates (ISO 8601), as day of week (Monday is 1), hour, days since "
        "2024-01-01",
        "column 'rate': percent, read as numbers ('12.5%' is 12.5)",
        "column 'price': text read as numbers ('$1,234.5' is 1234.5, '($1,234.5)' is -1234.5)",
        "column 'n': text read as numbers ('1,234.5' is 1234.5)",
    )
    assert Encoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder


def test_new_tables_are_read_by_the_format_of_training(path: Path) -> None:
    """Where a single row does not say what is the day; and what does not fit is refused."""
    encoder = fit_encoder(read(path, SHOP))
    path.write_text("day,seen,rate,price,n\n02/03/2024,2024-01-01,1%,$5,7\n")
    frame = read_frame(path, as_written=encoder.texts())
    assert encoder.transform(frame).X[0, :4].tolist() == [2024, 3, 6, 62]
    good = {"day": "02/03/2024", "seen": "2024-01-01", "rate": "1%", "price": "$5", "n": "7"}
    for name, cell, words in [
        ("day", "12/31/2024", r"is not a date \(day/month/year\)"),
        ("rate", "0.5", "percent written as '12.5%'"),
        ("price", "€5", r"is not a number written as '\$1,234.5'"),
        ("n", "1.000,5", "is not a number written as '1,234.5'"),
    ]:
        cells = good | {name: cell}
        quoted = ",".join(f'"{each}"' for each in cells.values())
        path.write_text("day,seen,rate,price,n\n" + quoted + "\n")
        for written in ((), encoder.texts()):
            frame = read_frame(path, as_written=written)
            with pytest.raises(DataError, match=rf"row 1 \(line 2\), column '{name}': .*{words}"):
                encoder.transform(frame)


def test_european_numbers_are_never_read_as_english_ones(path: Path) -> None:
    encoder = fit_encoder(read(path, 'a\n"1.234,5"\n"7,25"\n'))
    path.write_text("a\n1.234\n")
    assert encoder.transform(read_frame(path, as_written=["a"])).X.tolist() == [[1234.0]]
    with pytest.raises(DataError, match=r"the model needs a number written as '1.234,5' here"):
        encoder.transform(read_frame(path))


def test_missing_dates_and_numbers(path: Path) -> None:
    text = "day,p\n2024-01-01,5%\n,7%\n2024-01-05,\n2024-01-03,9%\n"
    encoder = fit_encoder(read(path, text), missing="impute")
    X = encoder.transform(read_frame(path)).X
    np.testing.assert_array_equal(X, [[1, 0, 5], [3, 2, 7], [5, 4, 7], [3, 2, 9]])
    with pytest.raises(DataError, match=r"row 2 \(line 3\), column 'day': missing value"):
        fit_encoder(read_frame(path))


def test_part_of_a_table_is_read_as_the_whole(path: Path) -> None:
    frame = read(path, SHOP)
    whole = fit_encoder(frame)
    part = frame.take(np.array([1, 2]))  # no day above 12 in it
    assert fit_encoder(part, like=whole).codes[0].written == whole.codes[0].written
    with pytest.raises(DataError, match=r"row 2 .*column 'day': '01/01/2024' may begin with"):
        fit_encoder(part)
    assert fit_encoder(part, dates="monthfirst").codes[0].written != whole.codes[0].written


def test_d4_a_stray_text_among_numbers(path: Path) -> None:
    frame = read(path, "a\n1\n2\nx\n4\n")
    match = r"row 3 \(line 4\), column 'a': 'x' is not a number, but 3 other cells"
    with pytest.raises(DataError, match=match + r".*; name the column in --categories"):
        fit_encoder(frame)
    assert fit_encoder(frame, categories=["a"]).codes[0].levels == ("1", "2", "4", "x")
    encoder = fit_encoder(read(path, "a\n1\n2\n"))
    with pytest.raises(DataError, match=match.replace("--missing", "fit the model with --missing")):
        encoder.transform(frame)


def test_d4_text_where_the_model_needs_numbers(path: Path) -> None:
    encoder = fit_encoder(read(path, "a,b\n1,true\n2,false\n"))
    with pytest.raises(DataError, match=r"row 2 .*'a': 'x' is not a number; the model needs"):
        encoder.transform(read(path, "a,b\n,true\nx,true\n"))
    with pytest.raises(DataError, match=r"row 1 .*'b': the model needs true or false"):
        encoder.transform(read(path, "a,b\n1,2\n"))


def test_d16_names_in_messages_are_printable(path: Path) -> None:
    with pytest.raises(DataError) as caught:
        fit_encoder(read(path, "a\x1b[31m,b\n,1\n2,3\n"))
    assert str(caught.value).isprintable()


def test_d13_missing_is_one_of_four(path: Path) -> None:
    with pytest.raises(UsageError, match="missing must be one of error, drop, impute, indicator"):
        fit_encoder(read(path, "a\n1\n"), missing="ignore")  # type: ignore[arg-type]


def test_d1_no_column_left(path: Path) -> None:
    with pytest.raises(DataError, match="no column left"):
        fit_encoder(read(path, "a\n1\n").without(["a"]))


def test_written_and_read(path: Path) -> None:
    encoder = fit_encoder(read(path, TRAIN), missing="impute")
    assert Encoder.from_dict(json.loads(json.dumps(encoder.to_dict()))) == encoder


@pytest.mark.parametrize(
    "change",
    [{"missing": "maybe"}, {"missing": []}, {"codes": []}, {"codes": {}}, {"codes": [1]}, {"x": 1}],
)
def test_f8_fields_that_do_not_fit(path: Path, change: dict[str, object]) -> None:
    fields = fit_encoder(read(path, TRAIN)).to_dict()
    with pytest.raises(ModelFileError, match="inconsistent"):
        Encoder.from_dict(fields | change)
    with pytest.raises(ModelFileError, match="there twice"):
        Encoder.from_dict(fields | {"codes": fields["codes"] * 2})


def test_a_cell_is_read_alike_whatever_the_other_rows_are(path: Path) -> None:
    encoder = fit_encoder(read(path, "zip,flag\n01234,True\n00501,False\nAB1,Unknown\nCD2,True\n"))
    X = encoder.transform(read_frame(path)).X
    path.write_text("zip,flag\n01234,True\n00501,False\n")
    encoded = encoder.transform(read_frame(path, as_written=encoder.texts()))
    np.testing.assert_array_equal(encoded.X, X[:2])
    assert encoded.notes == ()


def test_a_level_that_another_program_spells_in_its_way(path: Path) -> None:
    encoder = fit_encoder(read(path, "n,flag\n1,True\n02,False\nx,Unknown\ny,True\n"))
    path.write_text("n,flag\n1.0,TRUE\n2,true\nx,False\n")
    encoded = encoder.transform(read_frame(path, as_written=encoder.texts()))
    c = 0.25 * (1.0 - np.sqrt(5.0))  # 2 is none of four levels
    np.testing.assert_array_equal(encoded.X, [[0, 1, 0, 0, 0, 1, 0], [c, c, c, c, 0, 1, 0],
                                              [0, 0, 1, 0, 1, 0, 0]])  # fmt: skip
    assert encoded.unseen == {"n": ("2",), "flag": ()}
    both = fit_encoder(read(path, "flag\ntrue\nTRUE\nx\n"))
    path.write_text("flag\nTrue\n")
    encoded = both.transform(read_frame(path, as_written=both.texts()))
    assert encoded.unseen == {"flag": ("True",)}


def test_numbers_of_a_column_of_strings(tmp_path: Path, path: Path) -> None:
    """Parquet with numerals, where the model knows them as numbers of a text file."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    encoder = fit_encoder(read(path, "n,flag\n0,true\n1.5,false\n2,true\n"))
    table = pa.table({"n": ["2", " 1.5", "0"], "flag": ["true", "False", "true"]})
    parquet.write_table(table, tmp_path / "t.parquet")
    found = encoder.transform(read_frame(tmp_path / "t.parquet")).X
    assert found.tolist() == [[2.0, 1.0], [1.5, 0.0], [0.0, 1.0]]
    parquet.write_table(pa.table({"n": ["2", "two"], "flag": [True] * 2}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="row 2, column 'n': 'two' is not a number; the model"):
        encoder.transform(read_frame(tmp_path / "t.parquet"))
