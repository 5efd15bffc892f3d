"""Frames of pandas, Polars and PyArrow: the matrix that the command line makes of the same file."""

from __future__ import annotations

import datetime
import re
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import mercer
from mercer import GPRegressor
from mercer.cli.main import main
from mercer.data.encoding import Encoder, fit_encoder
from mercer.data.tables import read_frame
from mercer.errors import DataError, DataWarning, ModelFileError, UsageError
from mercer.estimation.table_encoder import TableEncoder, frame_of
from mercer.posterior.container import read_container, write_container

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")

N = 60
RNG = np.random.default_rng(2)
QUIET: dict[str, Any] = {"random_state": 0}
CHAINS = {"n_draws": 4, "n_warmup": 4, "n_chains": 1, "progress": False, **QUIET}
PARTICLES = {"n_particles": 10, **QUIET}
CLASSIFIERS = [
    mercer.GPClassifier(kernel="rbf", inference="map", progress=False, **QUIET),
    mercer.KernelGibbsClassifier(**CHAINS),
    mercer.BaNKClassifier(n_frequencies=4, **CHAINS),
    mercer.SequentialKernelClassifier(**PARTICLES),
]
REGRESSORS = [
    mercer.GPRegressor(kernel="rbf", inference="map", progress=False, **QUIET),
    mercer.BaNKRegressor(n_frequencies=4, **CHAINS),
    mercer.SequentialKernelRegressor(**PARTICLES),
]


def table() -> Any:
    """A frame with columns of every kind, and a gap in two of them."""
    frame = pd.DataFrame({
        "age": RNG.integers(20, 80, N).astype(float),
        "city": RNG.choice(["Ulm", "Bonn", "Kiel"], N),
        "day": pd.date_range("2024-01-30", periods=N),
        "paid": [f"${value:,.2f}" for value in 3000.0 * RNG.random(N)],
        "smoker": RNG.random(N) > 0.5,
        "visits": RNG.integers(0, 7, N),
        "sex": pd.Categorical(RNG.choice(["m", "f"], N)),
    })  # fmt: skip
    frame.loc[3, "age"] = np.nan
    frame.loc[5, "city"] = None
    return frame


TABLE = table()
LABELS = np.where(TABLE.visits > 2, "many", "few")


@parametrize_with_checks([TableEncoder()])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("missing", ["impute", "indicator"])
def test_the_matrix_is_that_of_the_command_line(tmp_path: Path, missing: Any) -> None:
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    frame = read_frame(tmp_path / "t.csv")
    expected = fit_encoder(frame, missing=missing)
    found = TableEncoder(missing).fit(TABLE)
    assert tuple(found.get_feature_names_out()) == expected.feature_names
    np.testing.assert_array_equal(found.transform(TABLE), expected.transform(frame).X)
    has_indicators = [name for name in expected.feature_names if name.endswith("(missing)")]
    assert has_indicators == (["age (missing)", "city (missing)"] if missing == "indicator" else [])


def test_polars_and_pyarrow_are_as_pandas() -> None:
    encoder = TableEncoder("indicator").fit(TABLE)
    for other in (pl.from_pandas(TABLE), pa.Table.from_pandas(TABLE)):
        np.testing.assert_array_equal(encoder.transform(other), encoder.transform(TABLE))
        again = TableEncoder("indicator").fit(other)
        assert again.encoding_ == encoder.encoding_


def test_columns_are_found_by_name() -> None:
    encoder = TableEncoder("impute").fit(TABLE)
    shuffled = TABLE[list(TABLE.columns[::-1])].assign(more=1)
    np.testing.assert_array_equal(encoder.transform(shuffled), encoder.transform(TABLE))
    with pytest.raises(DataError, match="column 'city' is missing"):
        encoder.transform(TABLE.drop(columns="city"))


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1, 2.5, None], "number"),
        ([True, None, False], "boolean"),
        (["1", "2", "?"], "number"),
        (["a", 1, None], "text"),
        ([datetime.date(2024, 1, 1), None, datetime.date(2025, 1, 1)], "date"),
        ([datetime.datetime(2024, 1, 1, 5), None, datetime.datetime(2025, 1, 1)], "date"),
        ([["a"], ["b"], None], "other"),
        (pd.array([1, None, 3], dtype="Int64"), "number"),
        (pd.array([True, None, False], dtype="boolean"), "boolean"),
        (pd.Categorical([3, 1, None]), "text"),
        (pd.to_datetime(["2024-01-01 10:00", None, "2024-01-02 11:00"], utc=True), "date"),
    ],
)
def test_kinds_of_columns(cells: Any, kind: str) -> None:
    column = frame_of(pd.DataFrame({"x": cells})).columns[0]
    assert column.kind == kind
    assert column.is_missing.sum() == (kind != "other" or cells[-1] is None) * 1


def test_errors_speak_of_python() -> None:
    with pytest.raises(
        DataError, match=r"X, row 3 \(a position.*, column 'age': missing .*missing=\"impute\""
    ):
        TableEncoder().fit(TABLE)
    with pytest.raises(DataError, match="column 'x' is of type list; leave the column out,"):
        TableEncoder().fit(pd.DataFrame({"x": [[1], [2]]}))
    with pytest.raises(DataError, match=r'TableEncoder.dates="dayfirst". or .*"monthfirst"'):
        TableEncoder().fit(pd.DataFrame({"day": ["01/02/2024", "03/04/2024"]}))
    with pytest.raises(UsageError, match="rows are dropped before"):
        TableEncoder("drop").fit(TABLE)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="dayfirst"):
        TableEncoder(dates="day").fit(TABLE)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Reshape your data"):
        TableEncoder().fit(["a", "b"])


def test_a_level_that_was_not_there_is_warned_of() -> None:
    encoder = TableEncoder("impute").fit(TABLE)
    with pytest.warns(DataWarning, match="'Rom'.*one more level") as caught:
        X = encoder.transform(TABLE.assign(city="Rom"))
    assert caught[0].filename == __file__
    own = X[:, [name.startswith("city") for name in encoder.get_feature_names_out()]]
    assert len(np.unique(own)) == 1
    assert own[0, 0] < 0.0


def test_an_interval_at_a_level_that_was_not_there_is_as_wide_as_levels_differ() -> None:
    rng, effects = np.random.default_rng(1), np.array([-2.5, -1.0, 0.5, 1.5, 3.0])
    city, x = np.arange(80) % 5, rng.standard_normal(80)
    table = pd.DataFrame({"x": x, "city": [f"c{c}" for c in city]})
    y = effects[city] + np.sin(2.0 * x) + 0.2 * rng.standard_normal(80)
    model = mercer.BaNKRegressor(n_warmup=60, n_draws=40, n_chains=2, random_state=0).fit(table, y)
    with pytest.warns(DataWarning, match="one more level"):
        _, std = model.predict(table.assign(city="c9"), return_std=True)
    assert 0.6 * effects.std() < np.median(std) < 3.0 * effects.std()
    assert np.median(model.predict(table, return_std=True)[1]) < 0.4


def test_in_pipelines() -> None:
    model = make_pipeline(TableEncoder("impute"), clone(CLASSIFIERS[0])).fit(TABLE, LABELS)
    assert model.score(TABLE, LABELS) > 0.9
    some = ColumnTransformer([("table", TableEncoder(), ["visits", "sex"])])
    assert some.fit_transform(TABLE).shape == (N, 2)
    frame = TableEncoder("impute").set_output(transform="pandas").fit_transform(TABLE)
    assert "city=Ulm" in frame.columns


def test_a_word_for_a_missing_value_is_told_its_argument() -> None:
    prices = [["1,5 €"], ["k. A."], ["2,5 €"], ["-"], ["2 €"]]
    with pytest.raises(DataError, match=r"mercer.TableEncoder\(null_values=\['k. A.', '-'\]\)"):
        TableEncoder().fit(prices)
    with pytest.raises(DataError, match=r"TableEncoder\(null_values=\['none, yet'\]\)"):
        TableEncoder().fit([*prices[:1], ["none, yet"], *prices[2:3], *prices[4:]])
    encoder = TableEncoder("impute", null_values=["k. A.", "-"])
    assert encoder.fit_transform(prices).ravel().tolist() == [1.5, 2.0, 2.5, 2.0, 2.0]


@pytest.mark.filterwarnings("ignore:X has feature names")
def test_the_last_step_of_a_pipeline_says_what_it_takes(tmp_path: Path) -> None:
    pipe = make_pipeline(TableEncoder("impute"), clone(CLASSIFIERS[0])).fit(TABLE, LABELS)
    last = "(in a pipeline, the last step takes pipeline[:-1].transform(X))"
    for X, what in ((TABLE, "holds datetime"), (TABLE[["city"]], "could not convert string")):
        with pytest.raises(DataError, match=f"{what}.*\n{re.escape(last)}"):
            pipe[-1].predict(X)
        with pytest.raises(DataError, match=re.escape(last)):
            pipe[-1].report(tmp_path / "r.html", X, LABELS)
    assert len(pipe[-1].predict(pipe[:-1].transform(TABLE))) == N


def fitted(model: Any, X: Any = None, **given: Any) -> Any:
    y = TABLE.visits.to_numpy(float) if "Regressor" in type(model).__name__ else LABELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mercer.ConvergenceWarning)
        return clone(model).set_params(**given).fit(TABLE if X is None else X, y)


def predictions(model: Any, X: Any) -> Any:
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "model", [*CLASSIFIERS, *REGRESSORS], ids=lambda model: type(model).__name__
)
def test_every_model_takes_frames(model: Any, tmp_path: Path) -> None:
    encoder = TableEncoder("impute")
    found = fitted(model, encode=encoder)
    X = encoder.fit_transform(TABLE)
    by_hand = fitted(model, X)
    expected = predictions(by_hand, X)
    np.testing.assert_array_equal(predictions(found, TABLE), expected)
    np.testing.assert_array_equal(predictions(found, X), expected)
    assert tuple(found.feature_labels_) == found.encoder_.encoding_.feature_names
    found.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(predictions(again, TABLE), expected)
    assert fitted(again).encoder_.encoding_ == found.encoder_.encoding_


def test_a_model_of_a_command_predicts_a_frame(tmp_path: Path) -> None:
    """By the names of columns, the target and others may be there."""
    data, model = tmp_path / "t.csv", tmp_path / "m.mercer"
    TABLE.assign(label=LABELS).to_csv(data, index=False)
    words = ["--missing", "indicator", "--set", "inference=map", "--set", "kernel=rbf"]
    given = ["fit", str(data), "--target", "label", "--model", "gp", "--cv", "2", *words]
    assert main([*given, "--jobs", "1", "--out", str(model)]) == 0
    out = tmp_path / "p.csv"
    assert main(["predict", str(model), str(data), "--out", str(out)]) == 0
    found = mercer.load(model).predict_proba(TABLE.assign(label=LABELS))
    expected = pd.read_csv(out)[["proba_few", "proba_many"]].to_numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_model_of_python_predicts_a_file(tmp_path: Path) -> None:
    model = fitted(CLASSIFIERS[0], encode=TableEncoder("indicator"))
    model.save(tmp_path / "m.mercer")
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    out = tmp_path / "p.csv"
    assert (
        main(["predict", str(tmp_path / "m.mercer"), str(tmp_path / "t.csv"), "--out", str(out)])
        == 0
    )
    found = pd.read_csv(out)[["proba_few", "proba_many"]].to_numpy()
    np.testing.assert_allclose(found, model.predict_proba(TABLE), atol=1e-12)


def test_auto_takes_frames_without_gaps_and_leaves_numbers() -> None:
    whole = TABLE.dropna()
    model = clone(CLASSIFIERS[0]).fit(whole, LABELS[whole.index])
    assert "sex=m" in model.feature_labels_
    numbers = whole[["age", "visits"]]
    plain = clone(CLASSIFIERS[0]).fit(numbers, LABELS[whole.index])
    assert not hasattr(plain, "encoder_")
    assert list(plain.feature_names_in_) == ["age", "visits"]
    with pytest.raises(DataError, match=r"row 3 .*, column 'age'"):
        fitted(CLASSIFIERS[0])
    with pytest.raises(ValueError, match="Input X holds datetime64"):
        fitted(CLASSIFIERS[0], encode=None)
    with pytest.raises(UsageError, match="encode must be"):
        fitted(CLASSIFIERS[0], encode="yes")


def test_an_earlier_encoding_is_forgotten() -> None:
    model = fitted(CLASSIFIERS[0], encode=TableEncoder("impute"))
    model.set_params(encode="auto").fit(TABLE[["visits"]], LABELS)
    assert not hasattr(model, "encoder_")
    assert model.predict(TABLE[["visits"]]).shape == (N,)


def test_partial_fit_encodes_as_the_first_rows_taught() -> None:
    model = clone(REGRESSORS[2]).set_params(encode=TableEncoder("impute"), scale_rows=20)
    for rows in (slice(0, 30), slice(30, N)):
        model.partial_fit(TABLE[rows], TABLE.visits.to_numpy(float)[rows])
    assert model.encoder_.encoding_ == TableEncoder("impute").fit(TABLE[:30]).encoding_
    assert np.isfinite(model.predict(TABLE)).all()


def test_a_file_with_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.mercer"
    fitted(CLASSIFIERS[0], encode=TableEncoder("impute")).save(path)
    manifest, arrays = read_container(path)
    fewer = {**manifest["encoder"], "codes": manifest["encoder"]["codes"][1:]}
    for change in (3, {"codes": []}, fewer):
        write_container(path, {**manifest, "encoder": change}, arrays)
        with pytest.raises(ModelFileError):
            mercer.load(path)


def test_an_array_of_text_is_not_taken_for_encoded_rows() -> None:
    frame = pd.DataFrame({"a": np.arange(20.0), "city": ["u", "v"] * 10})
    model = mercer.GPRegressor(inference="map", progress=False).fit(frame, np.sin(np.arange(20.0)))
    with pytest.raises(DataError, match=r"give a frame with the columns .*: 'a', 'city'"):
        model.predict(frame.to_numpy())


def test_an_array_of_text_that_was_encoded_is_so_again() -> None:
    cells = pd.DataFrame({"a": np.arange(20.0), "city": ["u", "v"] * 10}).to_numpy()
    model = mercer.GPRegressor(inference="map", progress=False, encode=TableEncoder())
    assert model.fit(cells, np.sin(np.arange(20.0))).predict(cells).shape == (20,)
    assert (model.n_features_in_, hasattr(model, "feature_names_in_")) == (2, False)


def test_what_was_given_is_said_in_the_words_of_scikit_learn(tmp_path: Path) -> None:
    """Columns are those of the frame, not of the matrix, which is taken too, and nothing else."""
    model = fitted(CLASSIFIERS[0], encode=TableEncoder("impute"))
    model.save(tmp_path / "m.mercer")
    for each in (model, mercer.load(tmp_path / "m.mercer")):
        assert each.n_features_in_ == len(TABLE.columns)
        assert each.feature_names_in_.tolist() == TABLE.columns.tolist()
    X = model.encoder_.transform(TABLE)
    np.testing.assert_array_equal(model.predict(X), model.predict(TABLE))
    assert X.shape[1] != len(TABLE.columns)
    with pytest.raises(DataError, match=rf"expecting {X.shape[1]} features as input: give a frame"):
        model.predict(X[:, 1:])


def test_a_frame_is_explained() -> None:
    model = fitted(CLASSIFIERS[0], encode=TableEncoder("impute"))
    X = model.encoder_.transform(TABLE)
    found, expected = model.explain(TABLE[:2]), model.explain(X[:2])
    np.testing.assert_array_equal(found.contributions, expected.contributions)
    assert found.names == tuple(TABLE.columns)


@pytest.mark.parametrize(
    "cells",
    [
        ["01", "02", "x", "y"],
        ["True", "False", "Unknown"],
        [True, False, "Unknown"],
        ["1.234", "2.345,5", "12"],
        pd.Categorical([1.0, 2.0, 3.0]),
        pd.Categorical([True, False]),
    ],
)
def test_a_row_is_encoded_alike_whatever_the_other_rows_are(cells: Any) -> None:
    table = pd.DataFrame({"x": cells})
    encoder = TableEncoder().fit(table)
    X = encoder.transform(table)
    np.testing.assert_array_equal(encoder.transform(table.iloc[:2]), X[:2])
    for k in range(len(table)):
        np.testing.assert_array_equal(encoder.transform(table.iloc[[k]]), X[[k]])


def test_a_category_is_the_number_that_it_stands_for() -> None:
    encoder = TableEncoder().fit(pd.DataFrame({"x": pd.Categorical([1.0, 2.0, 3.0])}))
    for cells in ([1.0, 3.0], [1, 3], ["1", "3"], pd.Categorical([1, 3])):
        found = encoder.transform(pd.DataFrame({"x": cells}))
        np.testing.assert_array_equal(found, [[1, 0, 0], [0, 0, 1]])


def test_fractions_of_a_second_are_kept() -> None:
    when = pd.to_datetime(["2024-01-01 00:00:00.250", None, "2024-01-01 00:00:00.750"])
    table = pd.DataFrame({"t": when}).dropna()
    found = TableEncoder().fit(table).transform(table)
    np.testing.assert_allclose(np.ptp(found, axis=0).max() * 3600, 0.5, rtol=1e-5)
    np.testing.assert_array_equal(found, TableEncoder().fit(pl.from_pandas(table)).transform(table))
    whole = frame_of(pd.DataFrame({"t": when.floor("D")})).columns[0].values
    assert whole.tolist() == ["2024-01-01", None, "2024-01-01"]


def test_zones_of_polars_are_those_of_pandas() -> None:
    when = pd.date_range("2024-03-30 12:00", periods=4, freq="12h", tz="Europe/Berlin")
    table = pd.DataFrame({"t": when})
    other = pl.DataFrame({"t": when.tz_localize(None).to_pydatetime().tolist()}).with_columns(
        pl.col("t").dt.replace_time_zone("Europe/Berlin")
    )
    encoder = TableEncoder().fit(table)
    assert "in UTC" in encoder.notes_[0]
    assert TableEncoder().fit(other).encoding_ == encoder.encoding_
    np.testing.assert_array_equal(encoder.transform(other), encoder.transform(table))


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ([Decimal("1.5"), None, Decimal("2"), 3], [1.5, np.nan, 2.0, 3.0]),
        ([Decimal("NaN"), Decimal("2")], [np.nan, 2.0]),
        ([10**400, -(10**400), 1], [np.inf, -np.inf, 1.0]),
        ([np.True_, False, None], [1.0, 0.0, np.nan]),
    ],
)
def test_numbers_among_objects(cells: Any, values: list[float]) -> None:
    column = frame_of(pd.DataFrame({"x": pd.Series(cells, dtype=object)})).columns[0]
    np.testing.assert_array_equal(column.values, values)
    assert column.kind == ("boolean" if isinstance(cells[0], np.bool_) else "number")


def test_times_of_day_are_hours_wherever_they_stand(tmp_path: Path) -> None:
    times = [datetime.time(8, 30), datetime.time(0, 0, 36), None, datetime.time(23, 59, 60 - 1)]
    column = pa.array(times, pa.time64("us"))
    tables = {
        "pandas": pd.DataFrame({"t": times}),
        "polars": pl.DataFrame({"t": times}),
        "pyarrow": pa.table({"t": column}),
    }
    wanted = [[8.5], [0.01], [8.5], [24.0 - 1.0 / 3600.0]]
    for table in tables.values():
        encoder = TableEncoder(missing="impute").fit(table)
        assert any("times, read as hours ('13:45:00' is 13.75)" in note for note in encoder.notes_)
        np.testing.assert_allclose(encoder.transform(table), wanted, rtol=1e-12)
    pa.parquet.write_table(pa.table({"t": column, "y": [1, 2, 3, 4]}), tmp_path / "t.parquet")
    from_file = read_frame(tmp_path / "t.parquet").columns[0].values.tolist()
    assert from_file == ["08:30:00.000000", "00:00:36.000000", None, "23:59:59.000000"]


@pytest.mark.parametrize("unit", ["ns", "us", "s"])
def test_lengths_of_time_have_a_unit_and_are_refused(unit: str) -> None:
    """Those of nanoseconds were taken, and predicted for microseconds a thousandfold wrong."""
    h = np.arange(12.0)
    lengths = pd.DataFrame({"wait": pd.to_timedelta(h, unit="h").astype(f"m8[{unit}]")})
    model = mercer.GPRegressor(kernel="rbf", inference="map", progress=False, **QUIET)
    with pytest.raises(DataError, match=r"column 'wait' is of type timedelta; .* into numbers"):
        clone(model).fit(lengths, h)
    model.fit(pd.DataFrame({"wait": h}), h)
    for rows in (lengths, lengths.to_numpy(), pl.from_pandas(lengths)):
        with pytest.raises(DataError, match="whose numbers depend on the unit"):
            model.predict(rows)
    dates = pd.Series(pd.date_range("2020", periods=12).astype(f"M8[{unit}]"))
    for targets in (dates, dates - dates[0], pl.Series(dates)):
        with pytest.raises(DataError, match=r"Input y holds .*, whose numbers depend"):
            clone(model).fit(h[:, np.newaxis], targets)


@pytest.mark.parametrize("missing", ["error", "impute"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_category_may_be_called_none(missing: Any, kind: str) -> None:
    cells = ["None", "NA", "?", "yard"] * 3
    table = {
        "pandas": lambda: pd.DataFrame({"garage": pd.Categorical(cells)}),
        "polars": lambda: pl.DataFrame(
            {"garage": pl.Series(cells, dtype=pl.Enum(["NA", "None", "?", "yard"]))}
        ),
        "pyarrow": lambda: pa.table({"garage": pa.array(cells).dictionary_encode()}),
    }[kind]()
    encoder = TableEncoder(missing).fit(table)
    names = encoder.get_feature_names_out().tolist()
    assert names == [f"garage={level}" for level in ("?", "NA", "None", "yard")]
    np.testing.assert_array_equal(encoder.transform(table)[:2], [[0, 0, 1, 0], [0, 1, 0, 0]])
    gaps = pd.DataFrame({"garage": pd.Categorical(["None", None, ""])})
    assert frame_of(gaps).columns[0].is_missing.tolist() == [False, True, True]


def test_frames_of_polars_that_are_no_columns_of_cells() -> None:
    with pytest.raises(DataError, match="a LazyFrame is not computed"):
        mercer.GPRegressor().fit(pl.DataFrame({"x": [1.0, 2.0]}).lazy(), [1.0, 2.0])
    with pytest.raises(DataError, match="a LazyFrame is not computed"):
        TableEncoder().fit(pl.DataFrame({"x": [1.0, 2.0]}).lazy())
    for cells in ([{"a": 1}, {"a": 2}], pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2))):
        with pytest.raises(DataError, match=r"column 'x' is of type (Struct|Array)"):
            TableEncoder().fit(pl.DataFrame({"x": cells}))


def test_what_a_mask_hides_is_missing() -> None:
    hidden = np.ma.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], mask=[[1, 0], [0, 0], [0, 0]])
    found = TableEncoder("impute").fit_transform(hidden)
    np.testing.assert_array_equal(found, [[4.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with pytest.raises(DataError, match=r"row 0 .*'x0': missing value"):
        TableEncoder().fit(hidden)
    with pytest.raises(DataError, match=r"row 0 .*'x0': missing value"):
        TableEncoder().fit(hidden.data).transform(hidden)


def test_decimals_of_polars() -> None:
    table = pl.DataFrame({"x": pl.Series(["1.5", "2.5"]).cast(pl.Decimal(10, 2))})
    np.testing.assert_array_equal(TableEncoder().fit_transform(table), [[1.5], [2.5]])


def test_words_for_a_missing_value_are_what_the_user_says() -> None:
    pd = pytest.importorskip("pandas")
    cells = {"garage": ["None", "yard", "-", "None"] * 2, "n": ["1", "-9", "3", "4"] * 2}
    frame = pd.DataFrame(cells)
    encoder = TableEncoder("impute", null_values=("-", "-9")).fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["garage=yard", "n"]
    assert encoder.transform(frame)[:4].tolist() == [[0, 1], [1, 3], [0, 3], [0, 4]]
    again = TableEncoder.of(Encoder.from_dict(encoder.encoding_.to_dict()))
    assert again.transform(frame).tolist() == encoder.transform(frame).tolist()
    assert clone(again).null_values == ("", "-", "-9")
    model = mercer.GPClassifier(inference="map", encode=encoder)
    model.fit(frame, ["a", "b"] * 4)
    assert model.encoder_.get_feature_names_out().tolist() == ["garage=yard", "n"]
    with pytest.raises(DataError, match="missing value"):
        TableEncoder().fit(frame)


def test_a_pipeline_hands_names_on() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"colour": ["red", "blue", None, "red"], "size": [1.0, 2.0, 3.0, 4.0]})
    pipe = make_pipeline(SimpleImputer(strategy="most_frequent"), TableEncoder()).fit(frame)
    assert pipe.get_feature_names_out().tolist() == ["colour=red", "size"]
    shown = pipe.set_output(transform="pandas").fit_transform(frame.set_index([[7, 8, 9, 3]]))
    assert shown.columns.tolist() == ["colour=red", "size"]
    assert shown.index.tolist() == [7, 8, 9, 3]
    encoder = TableEncoder().fit(frame.dropna())
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        encoder.get_feature_names_out(["size", "colour"])
    with pytest.raises(ValueError, match="input_features should have length"):
        TableEncoder().fit([["red", 1], ["blue", 2]]).get_feature_names_out(["colour"])


def test_no_two_columns_are_called_the_same() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": ["b=c", "x", "y"], "a=b": ["c", "d", "e"]})
    names = TableEncoder().fit(frame).get_feature_names_out().tolist()
    assert names == ["a=b=c", "a=x", "a=y", "a=b=c (2)", "a=b=d", "a=b=e"]
    frame = pd.DataFrame({"a": [1.0, None, 2.0], "a (missing)": [0, 1, 0]})
    names = TableEncoder("indicator").fit(frame).get_feature_names_out().tolist()
    assert names == ["a", "a (missing)", "a (missing) (2)"]


# Categories that are named: an input for each level, however many there are.


def test_a_named_category_has_an_input_for_each_level() -> None:
    """Codes that are numbers are levels; without a name 60 levels of text are a frequency."""
    rows = pd.DataFrame({"shop": np.arange(120) % 60, "city": [f"c{k % 60}" for k in range(120)]})
    plain = TableEncoder().fit(rows)
    assert plain.get_feature_names_out().tolist() == ["shop", "city (frequency)"]
    encoder = TableEncoder(categories=["shop", "city"]).fit(rows)
    X = encoder.transform(rows)
    assert X.shape == (120, 120)
    assert (X.sum(axis=1) == 2.0).all()
    names = encoder.get_feature_names_out().tolist()
    assert {"shop=0", "shop=59", "city=c0", "city=c59"} <= set(names)
    some = rows.iloc[:20].astype({"shop": float})  # 3.0 is the shop 3
    np.testing.assert_array_equal(encoder.transform(some), X[:20])
    assert clone(encoder).fit(rows.iloc[:80]).transform(rows.iloc[:2]).shape == (2, 120)


def test_a_level_of_a_category_that_was_not_there_is_as_far_from_each() -> None:
    rows = pd.DataFrame({"shop": np.arange(120) % 60})
    encoder = TableEncoder(categories=["shop"]).fit(rows)
    with pytest.warns(DataWarning, match="was not in training"):
        unseen = encoder.transform(pd.DataFrame({"shop": [999]}))
    distances = np.square(encoder.transform(rows) - unseen).sum(axis=1)
    np.testing.assert_allclose(distances, 2.0, rtol=1e-12)


def test_a_category_goes_with_the_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.uniform(size=120), "shop": np.arange(120) % 60})
    y = rows.x + np.sin(rows.shop)
    model = GPRegressor(
        kernel="rbf[x] + categorical[shop]", inference="map", random_state=0,
        encode=TableEncoder(categories=["shop"]),
    ).fit(rows, y)  # fmt: skip
    model.save(tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
    assert loaded.encoder_.categories == ("shop",)
    _, known = loaded.predict(rows[:5], return_std=True)
    with pytest.warns(DataWarning, match="was not in training"):
        _, unknown = loaded.predict(rows[:5].assign(shop=999), return_std=True)
    assert (unknown > 1.5 * known).all()  # the spread of all shops


@pytest.mark.parametrize(
    ("categories", "words"),
    [
        (["shopp"], "did you mean 'shop'"),
        ("shop", "names of columns, not 'shop'"),
        ([0], "names of columns"),
        (["many"], "has 2001 levels, and a category 2000 at most"),
    ],
)
def test_what_is_no_category_is_refused(categories: Any, words: str) -> None:
    rows = pd.DataFrame({"shop": np.arange(2001) % 60, "many": np.arange(2001)})
    with pytest.raises((DataError, UsageError), match=words):
        TableEncoder(categories=categories).fit(rows)
