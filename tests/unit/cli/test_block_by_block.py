"""`predict` of tables that are not read whole: the same files, in little memory, or nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mercer.models
from mercer import BaNKRegressor, GPClassifier
from mercer.cli import out_of_core as streaming
from mercer.data.encoding import fit_encoder
from mercer.data.tables import read_frame
from mercer.estimation.model_file import TableModel, write_model
from mercer.posterior.evaluation import Provenance
from support.forked import Forked
from support.row_cases import write_parquet

N = 2500  # two and a half blocks of a regressor
NAMES = ("a", "b", "price", "extra")
FROM = Provenance("t.csv", "price", N, 2, ("a", "b"), (), "mercer fit", 0, 1.0, "2026-01-01", ())


def make_rows(n: int = N) -> np.ndarray:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, n))
    price = 100.0 + 20.0 * np.sin(a) - 8.0 * b + 3.0 * rng.normal(size=n)
    return np.column_stack([a, b, price, rng.normal(size=n)]).round(4)


ROWS = make_rows()


def write_table(path: Path, rows: np.ndarray = ROWS, names=NAMES) -> Path:
    """Write the rows beside names that are no numbers: 00000, 00001, ..."""
    with open(path, "w") as stream:
        stream.write(",".join(("house", *names)) + "\n")
        for k, row in enumerate(rows.tolist()):
            stream.write(",".join((f"{k:05}", *map(repr, row))) + "\n")
    return path


def save_model(path: Path, estimator, target: str, variance: float | None) -> Path:
    table = write_table(path.with_suffix(".csv"), ROWS[:10])
    encoder = fit_encoder(read_frame(table).without(["house", "price", "extra"]))
    write_model(path, estimator, TableModel(encoder, target, None, FROM, variance))
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = {"n_frequencies": 4, "n_draws": 2, "n_warmup": 2, "n_chains": 1}
    estimator = BaNKRegressor(**settings, random_state=0).fit(ROWS[:200, :2], ROWS[:200, 2])
    path = tmp_path_factory.mktemp("model") / "m.mercer"
    return save_model(path, estimator, "price", float(ROWS[:200, 2].var()))


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models of the same classes as words and as whole numbers."""
    folder = tmp_path_factory.mktemp("classifiers")
    is_dear = ROWS[:60, 2] > 100.0
    labels = {"words": np.where(is_dear, "dear", "cheap"), "numbers": is_dear.astype(int)}
    return {
        kind: save_model(
            folder / f"{kind}.mercer",
            GPClassifier(kernel="rbf", n_draws=4, n_warmup=4, n_chains=1, random_state=0).fit(
                ROWS[:60, :2], y
            ),
            "price",
            None,
        )
        for kind, y in labels.items()
    }


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Every table is large."""
    monkeypatch.setattr(streaming, "LARGE_BYTES", 0)


def is_streamed(err: str) -> bool:
    return "block by block" in err


def test_the_same_csv_and_the_same_scores(run, model: Path, tmp_path: Path, monkeypatch) -> None:
    table = write_table(tmp_path / "t.csv")
    words = ("predict", model, table, "--id", "house", "--out")
    code, _, whole = run(*words, tmp_path / "whole.csv")
    assert code == 0
    assert not is_streamed(whole)
    monkeypatch.setattr(streaming, "LARGE_BYTES", 0)
    code, out, err = run(*words, tmp_path / "blocks.csv")
    assert (code, out) == (0, "")
    assert (tmp_path / "blocks.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert "\n00001," in (tmp_path / "blocks.csv").read_text()
    scores = re.search(r"scores .*", whole)[0].partition(", calibration")[0]
    assert "MSE/variance" in scores
    assert re.search(r"scores .*", err)[0].partition(";")[0] == scores
    assert is_streamed(err)
    assert "does not use: 'extra'" in err
    assert f"blocks.csv, {N} rows" in err


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "folder"])
def test_the_same_parquet_from_any_files(
    run,
    model: Path,
    tmp_path: Path,
    monkeypatch,
    name: str,
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / name
    if name == "folder":
        path.mkdir()
        write_parquet(path / "b.parquet", ROWS[1300:, ::-1], NAMES[::-1])
        write_parquet(path / "a.parquet", ROWS[:1300], NAMES)
    elif name == "t.parquet":
        write_parquet(path, ROWS, NAMES)
    else:
        write_table(path)
    words = ("predict", model, path, "--id", "extra", "--out")
    assert run(*words, tmp_path / "whole.parquet")[0] == 0
    monkeypatch.setattr(streaming, "LARGE_BYTES", 0)
    code, _, err = run(*words, tmp_path / "blocks.parquet")
    assert code == 0
    assert is_streamed(err)
    whole, blocks = (parquet.read_table(tmp_path / f"{k}.parquet") for k in ("whole", "blocks"))
    assert whole.equals(blocks)
    assert whole.column_names == ["extra", "prediction", "std", "lower_90", "upper_90"]


def test_standard_output_is_the_same(run, model: Path, tmp_path: Path, monkeypatch) -> None:
    table = write_table(tmp_path / "t.csv")
    _, whole, _ = run("predict", model, table)
    monkeypatch.setattr(streaming, "LARGE_BYTES", 0)
    code, blocks, err = run("predict", model, table)
    assert (code, blocks) == (0, whole)
    assert is_streamed(err)


@pytest.mark.parametrize("kind", ["words", "numbers"])
def test_classes(run, classifiers, tmp_path: Path, monkeypatch, kind: str) -> None:
    is_dear = ROWS[:, 2] > 100.0
    labels = np.where(is_dear, "dear", "cheap") if kind == "words" else is_dear.astype(int)
    labels = labels.astype(object)
    labels[70] = "odd" if kind == "words" else 7
    path = tmp_path / "t.csv"
    lines = (f"{a!r},{y},{b!r}" for (a, b), y in zip(ROWS[:, :2].tolist(), labels, strict=True))
    path.write_text("\n".join(["a,price,b", *lines]))
    words = ("predict", classifiers[kind], path, "--out")
    code, _, whole = run(*words, tmp_path / "whole.csv")
    assert code == 0
    monkeypatch.setattr(streaming, "LARGE_BYTES", 0)
    code, _, blocks = run(*words, tmp_path / "blocks.csv")
    assert code == 0
    assert (tmp_path / "whole.csv").read_bytes() == (tmp_path / "blocks.csv").read_bytes()
    scores = re.search(r"scores .*", whole)[0].partition(", calibration")[0]
    assert re.search(r"scores .*", blocks)[0].partition(";")[0] == scores
    assert f"scores    {N - 1} rows: error" in blocks
    assert "it seems to have learned from this table" in blocks
    assert f"1 of {N} rows have a label that was not in training ('{labels[70]}" in blocks


def test_text_and_gaps(run, tmp_path: Path, monkeypatch) -> None:
    """Encoded rows go through the cache; a level that training had not is said, and counted."""
    city = np.where(ROWS[:, 3] > 0.0, "Rome", "Oslo").astype(object)
    frame = pd.DataFrame({"a": ROWS[:, 0], "city": city, "price": ROWS[:, 2]})
    frame.loc[::50, "a"] = np.nan
    frame.iloc[:400].to_csv(tmp_path / "learned.csv", index=False)
    frame.loc[[600, 2000], "city"] = "Lima"
    frame.to_csv(tmp_path / "new.csv", index=False)
    settings = [f"--set={name}" for name in ("n_frequencies=4", "n_draws=2", "n_warmup=2")]
    given = ("--target", "price", "--model", "spectral", "--missing", "indicator", "--no-refit")
    given = (*given, "--test-size", "0.2", *settings)
    out = tmp_path / "m.mercer"
    assert run("fit", tmp_path / "learned.csv", *given, "--out", out)[0] == 0
    words = ("predict", out, tmp_path / "new.csv", "--out")
    _, _, whole = run(*words, tmp_path / "whole.csv")
    assert not is_streamed(whole)
    monkeypatch.setattr(streaming, "LARGE_BYTES", 0)
    code, _, err = run(*words, tmp_path / "blocks.csv")
    assert code == 0
    assert is_streamed(err)
    assert (tmp_path / "blocks.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert "'city': 2 rows hold a level that was not in training ('Lima')" in err


def test_numerals_in_a_column_of_strings(run, model: Path, tmp_path: Path, monkeypatch) -> None:
    frame = pd.DataFrame({"a": ROWS[:50, 0], "b": [str(cell) for cell in ROWS[:50, 1]]})
    frame.to_parquet(tmp_path / "t.parquet")
    words = ("predict", model, tmp_path / "t.parquet")
    _, whole, _ = run(*words)
    monkeypatch.setattr(streaming, "LARGE_BYTES", 0)
    code, blocks, err = run(*words)
    assert (code, blocks) == (0, whole), err
    frame.assign(b="many").to_parquet(tmp_path / "t.parquet")
    code, _, err = run(*words)
    assert code == 3
    assert "row 1, column 'b': 'many' is not a number; the model needs a number here" in err


def test_npy_of_a_model_from_python(run, tmp_path: Path) -> None:
    settings = {"n_frequencies": 4, "n_draws": 2, "n_warmup": 2, "n_chains": 1}
    estimator = BaNKRegressor(**settings, random_state=0).fit(ROWS[:200, :2], ROWS[:200, 2])
    estimator.save(tmp_path / "m.mercer")
    np.save(tmp_path / "t.npy", np.column_stack([ROWS[:, :2], np.arange(N)]))
    code, out, err = run("predict", tmp_path / "m.mercer", tmp_path / "t.npy", "--id", "x2")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line.split(",")[0] for line in lines] == ["x2", *map(str, range(N))]
    law = estimator.predictive(ROWS[1000:2000, :2])
    means = [float(line.split(",")[1]) for line in lines[1001:2001]]
    np.testing.assert_array_equal(means, law.mean)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("out", ["p.csv", "p.parquet", None])
@pytest.mark.parametrize(("cell", "words"), [("", "missing value"), ("inf", "infinite")])
def test_a_bad_cell_is_named_and_nothing_is_written(
    run,
    model: Path,
    tmp_path: Path,
    out: str | None,
    cell: str,
    words: str,
) -> None:
    table = write_table(tmp_path / "t.csv")
    lines = table.read_text().splitlines()
    cells = lines[2222].split(",")
    table.write_text("\n".join([*lines[:2222], ",".join([*cells[:2], cell, *cells[3:]])]))
    to = [] if out is None else ["--out", tmp_path / out]
    code, said, err = run("predict", model, table, *to)
    assert (code, said) == (3, "")
    assert f"t.csv, row 2222, column 'b': {words}" in err
    assert {path.name for path in tmp_path.iterdir()} == {"t.csv", "cache"}


@pytest.mark.usefixtures("always")
def test_a_column_that_is_missing_or_words(run, model: Path, tmp_path: Path) -> None:
    table = write_table(tmp_path / "t.csv", ROWS[:5], ("a", "bb", "price", "extra"))
    code, out, err = run("predict", model, table)
    assert (code, out) == (3, "")
    assert "t.csv: column 'b' is missing, and the model needs it; did you mean 'bb'?" in err
    (tmp_path / "w.csv").write_text("a,b\n1,2\n3,many\n")
    code, out, err = run("predict", model, tmp_path / "w.csv")
    assert (code, out) == (3, "")
    assert "row 2 (line 3), column 'b': 'many' is not a number; the model needs numbers" in err
    assert run("predict", model, table, "--id", "prediction")[0] == 2
    (tmp_path / "w.csv").write_text("a,b\n1,2\n")
    code, _, err = run("predict", model, tmp_path / "w.csv", "--id", "hous")
    assert code == 3
    assert "there is no column 'hous'" in err


@pytest.mark.parametrize("kind", ["numbers", "words", "whole numbers"])
def test_rows_without_a_target_are_not_scored(
    run, model: Path, classifiers, tmp_path: Path, monkeypatch, kind: str
) -> None:
    """All others are, and the scores of a file read whole are those block by block."""
    own = model if kind == "numbers" else classifiers[kind.removeprefix("whole ")]
    values = ROWS[:, 2].round(3).astype(object) if kind == "numbers" else ROWS[:, 2] > 100.0
    if kind != "numbers":
        values = np.where(values, *(("dear", "cheap") if kind == "words" else (1, 0))).astype(
            object
        )
    values[[70, 2222]] = None
    frame = pd.DataFrame({"a": ROWS[:, 0], "b": ROWS[:, 1], "price": values})
    frame.to_csv(tmp_path / "t.csv", index=False)
    said = []
    for large in (10**9, 0):
        monkeypatch.setattr(streaming, "LARGE_BYTES", large)
        code, _, err = run("predict", own, tmp_path / "t.csv", "--out", tmp_path / "p.csv")
        assert code == 0
        assert f"2 of {N} rows have no target and are not scored" in err
        said.append(re.search(rf"{N - 2} rows: .*", err)[0].split(", calibration")[0])
    assert said[0][:30] == said[1][:30]


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("cell", ["dear", "1e200"])
def test_a_bad_target_ends_the_scoring_only(
    run,
    model: Path,
    tmp_path: Path,
    cell: str,
) -> None:
    table = write_table(tmp_path / "t.csv")
    lines = table.read_text().splitlines()
    cells = lines[2222].split(",")
    lines[2222] = ",".join([*cells[:3], cell, *cells[4:]])
    table.write_text("\n".join(lines))
    code, out, err = run("predict", model, table)
    assert code == 0
    assert out.count("\n") == N + 1
    assert "scores" not in err
    assert re.search(r"not scored: .*t.csv, row 2222\b.*column 'price'", err)


def test_what_is_read_whole(model: Path, tmp_path: Path, monkeypatch) -> None:
    """Small tables, known data sets, other formats, and models that leave out rows."""
    saved = mercer.models.read_model(model)
    table = str(write_table(tmp_path / "t.csv"))
    assert streaming.open_stream(saved, table, None, None) is None
    monkeypatch.setattr(streaming, "LARGE_BYTES", 0)
    assert streaming.open_stream(saved, table, Path("p.parquet"), None) is not None
    assert streaming.open_stream(saved, table, Path("p.json"), None) is None
    assert streaming.open_stream(saved, "iris", None, None) is None
    feather = pytest.importorskip("pyarrow.feather")
    import pyarrow as pa

    feather.write_feather(pa.table({"a": [1.0], "b": [2.0]}), str(tmp_path / "t.feather"))
    assert streaming.open_stream(saved, str(tmp_path / "t.feather"), None, None) is None
    (tmp_path / "gaps.csv").write_text("a,b\n1,2\n2,\n")
    filled = fit_encoder(read_frame(tmp_path / "gaps.csv"), missing="drop")
    assert saved.table is not None
    other = TableModel(filled, "price", None, FROM)
    changed = mercer.models.SavedModel(saved.estimator, other, saved.manifest)
    assert streaming.open_stream(changed, table, None, None) is None


@pytest.mark.usefixtures("always")
def test_a_file_that_changes_is_refused(
    run,
    model: Path,
    tmp_path: Path,
    monkeypatch,
) -> None:
    table = write_table(tmp_path / "t.csv")
    numbers = BaNKRegressor.predictive

    def touch(self, X):
        os.utime(table, ns=(1, 1))
        return numbers(self, X)

    monkeypatch.setattr(BaNKRegressor, "predictive", touch)
    code, _, err = run("predict", model, table, "--out", tmp_path / "p.csv")
    assert code == 3
    assert "changed while it was being read" in err
    assert not (tmp_path / "p.csv").exists()


def test_ctrl_c_leaves_nothing(model: Path, tmp_path: Path) -> None:
    rows = np.tile(ROWS, (200, 1))
    np.save(tmp_path / "t.npy", rows)
    saved = mercer.models.read_model(model).estimator
    del saved.encoder_, saved.feature_names_in_  # as fitted to an array
    saved.save(tmp_path / "m.mercer")
    (tmp_path / "to").mkdir()
    words = ["predict", tmp_path / "m.mercer", tmp_path / "t.npy"]
    words += ["--out", tmp_path / "to" / "p.csv"]
    process = Forked(["mercer", *map(str, words)], text=True, start_new_session=True)
    try:
        deadline = time.monotonic() + 600
        while not list((tmp_path / "to").glob(".mercer-*")):
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert list((tmp_path / "to").iterdir()) == []


PEAK = """
import re, sys
from pathlib import Path
from mercer.cli.main import main
from mercer.cli import out_of_core as streaming
from mercer.posterior.predictive import StudentMixture

def peak():  # in MB; that of getrusage starts at the peak of the parent
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1e3

def interval(law, level):  # the exact ends take most of the time, and no memory that stays
    return law.mean - 1.6 * law.std, law.mean + 1.6 * law.std

StudentMixture.interval = interval
streaming.LARGE_BYTES = int(sys.argv[4])
small, large, out = sys.argv[1:4]
assert main(["predict", "m.mercer", small, "--out", out]) == 0
start = peak()
assert main(["predict", "m.mercer", large, "--out", out]) == 0
print(peak() - start)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory(tmp_path: Path) -> None:
    """A million rows, file to file; the mutant is reading the table whole."""
    pytest.importorskip("pyarrow")
    rows = np.random.default_rng(5).standard_normal((1_000_000, 5))
    names = ("x0", "x1", "x2", "x3", "x4")
    settings = {"n_frequencies": 4, "n_draws": 2, "n_warmup": 2, "n_chains": 1}
    estimator = BaNKRegressor(**settings, random_state=0).fit(rows[:200], rows[:200].sum(axis=1))
    estimator.save(tmp_path / "m.mercer")
    write_parquet(tmp_path / "small.parquet", rows[:2000], names)
    write_parquet(tmp_path / "large.parquet", rows, names, row_group_size=len(rows))

    def grown(limit: int) -> float:
        done = subprocess.run(
            [sys.executable, "-c", PEAK, "small.parquet", "large.parquet", "p.csv", str(limit)],
            capture_output=True, text=True, check=True, timeout=300, cwd=tmp_path,
        )  # fmt: skip
        return float(done.stdout)

    assert grown(0) < 50.0
    with open(tmp_path / "p.csv") as stream:
        assert sum(1 for _ in stream) == len(rows) + 1
    assert grown(10**12) > 100.0
