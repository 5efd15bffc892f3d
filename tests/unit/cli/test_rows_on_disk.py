"""`--engine disk` with a kernel Gibbs sampler: what the same table in memory gives, bit for bit."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

import mercer
import mercer.data
from mercer import BaNKClassifier, KernelGibbsClassifier
from mercer.sphere import screened, selection

N = 5200  # more than are read whole
RUN = {"n_draws": 6, "n_warmup": 10, "n_chains": 2, "rank": 6, "lengthscale": "median"}
SET = [word for name, value in RUN.items() for word in ("--set", f"{name}={value}")]

HELD_OUT = re.compile(r"([ab])\.csv, row (\d+)")

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def inputs() -> tuple[np.ndarray, np.ndarray]:
    """Two classes, a twentieth of the labels wrong."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((N, 2))
    return X, ((X[:, 0] + 0.5 * X[:, 1] > 0.0) ^ (rng.random(N) < 0.05)).astype(int)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Parquet file of numbers."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = inputs()
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), path)
    return path


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two CSV files, with text and gaps."""
    X, y = inputs()
    folder = tmp_path_factory.mktemp("texts")
    for name, rows in (("a", range(3000)), ("b", range(3000, N))):
        with open(folder / f"{name}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "side", "y"])
            for k in rows:
                side = "left" if X[k, 1] < 0.0 else "right"
                writer.writerow(["" if k % 70 == 0 else X[k, 0], side, ("no", "yes")[y[k]]])
    return folder


def fit(data: Path, *more: object) -> list[object]:
    return ["fit", data, "--target", "y", "--engine", "disk", "--model", "sphere", *SET, *more]


def test_a_saved_model_predicts_as_one_of_rows_in_memory(
    run, numbers: Path, tmp_path: Path
) -> None:
    out, report = tmp_path / "m.mercer", tmp_path / "m.html"
    code, said, err = run(*fit(numbers, "--seed", 4, "--out", out, "--report", report))
    assert code == 0, err
    assert f"{N} rows, 2 inputs, in place" in said
    assert "model     sphere (kernel Gibbs sampler" in said
    X, y = inputs()
    model = KernelGibbsClassifier(**RUN, random_state=4, progress=False).fit(X, y)
    saved = mercer.load(out)
    for name, values in model.posterior_.variables.items():
        if name in saved.posterior_.variables:
            np.testing.assert_array_equal(saved.posterior_.variables[name], values)
    np.testing.assert_array_equal(saved.label_error_proba_, model.label_error_proba_)
    assert saved.row_names_.short(int(np.argmax(model.label_error_proba_))).startswith("row ")
    assert saved.row_names_.number[[0, -1]].tolist() == [1, N]
    for command in ("predict", "query"):
        found = tmp_path / f"{command}.csv"
        code, _, err = run(command, out, numbers, "--out", found)
        assert code == 0, err
        rows = list(csv.DictReader(found.read_text().splitlines()))
        positions = [int(row["row"]) - 1 for row in rows]
        p = np.array([float(row["proba_1"]) for row in rows])
        np.testing.assert_allclose(p, model.predict_proba(X[positions])[:, 1], rtol=1e-9)
    code, _, err = run("report", out, "--out", tmp_path / "again.html")
    assert code == 0, err
    assert "Labels that are probably wrong" in report.read_text()


def test_rows_held_out_are_scored_and_named(run, texts: Path, tmp_path: Path) -> None:
    """The report shows them by file and row; the labels of the others alone are judged."""
    out, report = tmp_path / "m.mercer", tmp_path / "m.html"
    words = fit(texts, "--missing", "impute", "--test-size", 0.1, "--out", out, "--report", report)
    code, said, err = run(*words)
    assert code == 0, err
    assert f"scoring   {N // 10} of {N} rows held out; the saved model does not learn" in said
    assert all(f"{name}  " in said for name in ("mercer sphere", "gradient boosting"))
    names, page = mercer.load(out).row_names_.columns(), report.read_text()
    kept = set(zip(names["file"].tolist(), names["row"].tolist(), strict=True))
    assert len(kept) == N - N // 10
    listed = {(str(texts / f"{name}.csv"), int(row)) for name, row in HELD_OUT.findall(page)}
    assert "What the data are" in page
    assert "are described here" not in page  # all are
    assert len(listed - kept) > 30
    assert len(listed & kept) > 10


def test_rows_with_gaps_are_dropped_and_others_named(run, tmp_path: Path) -> None:
    """An audit and the model that it would save call rows as an audit in memory does."""
    X, y = inputs()
    lines = ["name,a,b,y"]
    for k in range(400):
        gap = k % 41 == 0
        lines.append(f"P{k:04d},{'' if gap else X[k, 0]},{X[k, 1]},{'' if k % 37 == 0 else y[k]}")
    table, found = tmp_path / "rows.csv", []
    table.write_text("\n".join([*lines, ""]))
    for k, engine in enumerate((["--set", "sampler=auto"], ["--engine", "disk"])):
        out = tmp_path / f"{k}.csv"
        words = ["audit", table, "--target", "y", "--missing", "drop", "--id", "name", *SET]
        code, _, err = run(*words, "--out", out, *engine)
        assert code == 0, err
        found.append(out.read_text())
    assert found[0] == found[1]
    assert found[1].startswith("row,name,label,p_wrong")
    assert len(found[1].splitlines()) == 400 - 10 - 11 + 1 + 1  # row 0 lacks both
    model = tmp_path / "m.mercer"
    words = fit(table, "--missing", "drop", "--id", "name", "--test-size", 0.2, "--out", model)
    code, said, err = run(*words)
    assert code == 0, err
    assert "20 of 400 rows have no target, or a missing value, and were dropped" in err
    assert re.search(r"scoring   7[456] of 380 rows held out", said)
    code, said, err = run("predict", model, table)
    assert (code, said.splitlines()[0].split(",")[0]) == (0, "name"), err


@pytest.mark.parametrize("words", [[], ["--drop", "Unnamed: 0"]])
def test_a_column_without_a_name_names_the_rows(run, tmp_path: Path, words: list[str]) -> None:
    X, y = inputs()
    table, out = tmp_path / "rows.csv", tmp_path / "audit.csv"
    cells = [f"P{k},{X[k, 0]},{X[k, 1]},{y[k]}" for k in range(200)]
    table.write_text("\n".join([",a,b,y", *cells, ""]))
    given = ["audit", table, "--target", "y", "--engine", "disk", *SET, *words, "--out", out]
    code, said, err = run(*given)
    assert code == 0, err
    assert ("the names of the rows, and no input" in said) == (not words)
    header, first, *_ = csv.reader(out.read_text().splitlines())
    assert header[:2] == (["row", "label"] if words else ["row", "Unnamed: 0"])
    assert words or first[1] == f"P{int(first[0]) - 1}"


def test_a_class_of_one_row_is_learned_and_no_row_to_score_on(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mercer.cli.out_of_core._MOST_SCORED", 30)
    table, few = tmp_path / "rows.csv", tmp_path / "few.csv"
    cells = [f"{k % 17},{'abc'[k % 2 if k != 555 else 2]}" for k in range(1000)]
    table.write_text("\n".join(["x,y", *cells, ""]))
    short = [f"--set={name}=4" for name in ("n_frequencies", "n_draws", "n_warmup")]
    words = ["--target", "y", "--engine", "disk", *short, "--test-size"]
    for seed in range(2):
        report = tmp_path / f"{seed}.html"
        code, said, err = run("fit", table, *words, 0.9, "--seed", seed, "--report", report)
        assert code == 0, err
        assert "Of 1 000 rows 6" in report.read_text().replace("\u202f", " ")
        assert "30 of 1000 rows held out (no more are with --engine)" in said
        assert "baselines learn from 3" in said
    few.write_text("\n".join(["x,y", *cells[:2], ""]))
    code, _, err = run("fit", few, *words, 0.5)
    assert (code, "2 rows are too few to hold some of them out" in err) == (3, True)


def test_an_audit_lists_what_that_of_the_table_in_memory_lists(
    run, texts: Path, tmp_path: Path
) -> None:
    """Also rows are called alike: by their files, and their numbers there."""
    found, proposed = [], []
    for k, engine in enumerate((["--set", "sampler=auto"], ["--engine", "disk"])):
        out = tmp_path / f"{k}.csv"
        words = ["audit", texts, "--target", "y", "--missing", "impute", *SET, "--out", out]
        code, said, err = run(*words, *engine)
        assert code == 0, err
        found.append(out.read_text())
        proposed.append([line for line in said.splitlines() if " mercer fit " in line])
    assert found[0] == found[1]
    assert found[1].startswith("file,row,label,p_wrong")
    assert all("--engine disk" in line for line in proposed[1])
    assert len(proposed[1]) == len(proposed[0]) == 1


def test_an_audit_of_many_rows_in_memory_takes_no_chains(
    run, numbers: Path, tmp_path: Path
) -> None:
    """And finds the labels that are wrong."""
    out, own = tmp_path / "found.csv", ["--set", "rank=40", "--set", "n_draws=20"]
    code, said, err = run("audit", numbers, "--target", "y", *own, "--out", out)
    assert code == 0, err
    assert "40 features in place of its kernel, expectation propagation in place of chains" in said
    assert "--set sampler=auto takes up to an hour" in err
    X, y = inputs()
    is_wrong = (X[:, 0] + 0.5 * X[:, 1] > 0.0) != y
    rows = list(csv.DictReader(out.read_text().splitlines()))
    first = [int(row["row"]) - 1 for row in rows[: is_wrong.sum()]]
    assert is_wrong[first].mean() > 0.9


@pytest.mark.parametrize("engine", [[], ["--engine", "disk"]])
def test_more_rows_than_a_matrix_has_get_features(
    run, numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: list[str]
) -> None:
    """512 of them, if no setting says otherwise; here fewer, to be quick."""
    assert selection.FEATURES_OF_MANY == 512
    monkeypatch.setattr(selection, "FEATURES_OF_MANY", 7)
    at = SET.index("rank=6")
    without = [*SET[: at - 1], *SET[at + 1 :]]
    for settings, rank in ((without, 7), (SET, 6), ([*without, "--set", "kernel=linear"], None)):
        command = ["fit", numbers, "--target", "y", "--model", "sphere", "--test-size", "0.01"]
        out = tmp_path / f"{rank}.mercer"
        kept = command[:-2] if engine else command
        code, said, err = run(*kept, *engine, *settings, "--out", out)
        assert code == 0, err
        assert mercer.load(out).rank == rank
        assert ("features in place of its kernel" in said) == (rank is not None)
        assert rank is None or f", {rank} features" in said


def test_a_run_that_ends_early_goes_on(
    run, numbers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted in the second chain; the same command takes fewer steps, to the same model."""
    kept = ("--checkpoint", tmp_path / "state", "--out", tmp_path / "m.mercer")
    step, seen = screened.ScreenedSampler.step, []

    def dies(self, rng, state):
        seen.append(state)
        if len(seen) == 24:
            raise KeyboardInterrupt
        return step(self, rng, state)

    with monkeypatch.context() as patch:
        patch.setattr(screened.ScreenedSampler, "step", dies)
        code, _, _ = run(*fit(numbers, *kept, "--jobs", 1))
    assert code != 0
    assert not (tmp_path / "m.mercer").exists()
    seen.clear()
    monkeypatch.setattr(
        screened.ScreenedSampler, "step", lambda *given: (seen.append(0), step(*given))[1]
    )
    code, said, err = run(*fit(numbers, *kept, "--jobs", 1))
    assert code == 0, err
    assert "going on from" in said
    assert len(seen) < 32
    whole = tmp_path / "whole.mercer"
    code, _, err = run(*fit(numbers, "--out", whole))
    assert code == 0, err
    one, two = mercer.load(whole), mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(two.label_proba_, one.label_proba_)
    for name, values in one.posterior_.variables.items():
        np.testing.assert_array_equal(two.posterior_.variables[name], values, err_msg=name)


def test_bank_learns_without_workers(run, numbers: Path, tmp_path: Path) -> None:
    settings = {"n_frequencies": 4, "n_draws": 4, "n_warmup": 4, "kernel_rows": 500}
    words = [word for pair in settings.items() for word in ("--set", "{}={}".format(*pair))]
    out = tmp_path / "m.mercer"
    command = ["fit", numbers, "--target", "y", "--engine", "disk", "--out", out, *words]
    code, said, err = run(*command)
    assert code == 0, err
    assert "model     spectral (BaNK" in said
    rows = mercer.data.open(numbers)
    model = BaNKClassifier(**settings, random_state=0, progress=False).fit(rows, "y")
    for name, values in model.posterior_.variables.items():
        np.testing.assert_array_equal(mercer.load(out).posterior_.variables[name], values)


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--set", "rank=none"], "5200 rows need matrices of"),
        (["--workers", 2], "--scheduler and --workers are of --engine dask"),
        (["--target", "b"], "model sphere is not for regression"),
        (["--test-size", 1.5], "--test-size must be between 0 and 1"),
        (["--cv", 3], "--cv: not with --engine, which leaves the rows in their files; use --test"),
        (["--encoding", "latin-1"], "in their files; save them as UTF-8, as iconv does"),
        (["--categories", "a"], "'a' has 5200 levels, and a category 2000 at most"),
        (["--time", "a"], "--time and --group say which rows --test-size holds out"),
        (["--set", "noise_rate=learn per class", "--model", "gp"], "needs all rows in memory"),
    ],
)
def test_what_cannot_be_learned_so_is_refused(
    run, numbers: Path, words: list[object], refusal: str
) -> None:
    code, _, err = run(*fit(numbers, *words))
    assert code in (2, 3)
    assert refusal in err


def test_several_classes_are_refused_with_the_way_out(run, tmp_path: Path) -> None:
    X, y = inputs()
    y[::3] = 2
    path = tmp_path / "rows.csv"
    np.savetxt(path, np.column_stack([X, y]), delimiter=",", header="a,b,y", comments="")
    code, _, err = run(*fit(path, "--checkpoint", tmp_path / "state"))
    assert code == 2
    assert "there are 3 classes; give arrays (a command without --engine)" in err
    assert not (tmp_path / "state").exists()  # nothing was begun


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--target", "b"], "an audit of numbers needs them in memory, without --engine"),
        (["--model", "spectral"], "sphere alone audits"),
        (["--fixed", "fixed.csv"], "--fixed: not with --engine"),
        (["--id", "y"], "the target cannot be --id"),
        (["--missing", "posterior"], "an audit does not draw missing inputs"),
        (["--categories", "y"], "category 'y' is no input: it is the target or left out"),
    ],
)
def test_an_audit_refuses_what_it_cannot(
    run, numbers: Path, words: list[object], refusal: str
) -> None:
    code, _, err = run("audit", numbers, "--target", "y", "--engine", "disk", *SET, *words)
    assert code == 2
    assert refusal in err


def by_columns(folder: Path, n: int = 400) -> Path:
    """Two CSV files with days and patients; of every 37th row neither these nor the target."""
    X, y = inputs()
    folder.mkdir()
    for name, rows in (("a", range(n // 2)), ("b", range(n // 2, n))):
        lines = ["day,patient,a,b,y"]
        for k in rows:
            day, label = f"{7 * k % 28 + 1}.{k % 5 + 1}.2024", ["no", "yes"][y[k]]
            own = ("", "", "") if k % 37 == 0 else (day, f"0{k * k % 41}", label)
            lines.append(f"{own[0]},{own[1]},{X[k, 0]},{X[k, 1]},{own[2]}")
        (folder / f"{name}.csv").write_text("\n".join([*lines, ""]))
    return folder


@pytest.mark.parametrize(
    "words",
    [["--time", "day", "--drop", "patient"], ["--group", "patient", "--drop", "day"]],
    ids=["time", "group"],
)
def test_the_same_rows_are_held_out_by_a_column_as_in_memory(
    run, tmp_path: Path, words: list[str]
) -> None:
    table, report, found = by_columns(tmp_path / "rows"), tmp_path / "m.html", []
    for engine in (["--no-refit"], ["--engine", "disk"]):
        given = ["fit", table, "--target", "y", "--model", "sphere", "--missing", "impute", *SET]
        out = tmp_path / f"{engine[-1]}.mercer"
        code, said, err = run(
            *given, *words, "--test-size", 0.2, *engine, "--out", out, "--report", report
        )
        assert code == 0, err
        saved = mercer.load(out)
        found.append((saved.row_names_.columns(), saved.feature_names_in_.tolist()))
    (memory, columns), (disk, own) = found
    assert columns == own
    for name in ("file", "row"):
        np.testing.assert_array_equal(memory[name], disk[name])
    is_time = words[0] == "--time"
    which = "rows, the latest by 'day', held out" if is_time else "rows in groups held out"
    assert f"scoring   {389 - len(disk['row'])} of 389 {which}" in said
    assert ("worth about" in report.read_text()) == (not is_time)


def test_more_rows_than_are_scored_are_held_out_by_groups(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group is not cut; and what cannot be split by is said before a model learns."""
    monkeypatch.setattr("mercer.cli.out_of_core._MOST_SCORED", 30)
    table, out = tmp_path / "rows.csv", tmp_path / "m.mercer"
    cells = [f"{k % 17},{k // 300},{'ab'[k % 2]},{'' if k == 7 else k},{k % 2}" for k in range(900)]
    table.write_text("\n".join(["x,g,y,t,s", *cells, ""]))
    words = fit(table, "--drop", "t,s", "--out", out)
    code, said, err = run(*words, "--group", "g", "--test-size", 0.5)
    assert code == 0, err
    assert "300 of 900 rows in groups held out (no more are with --engine), 30 of them" in said
    assert len(mercer.load(out).row_names_) == 600
    wrong = [
        (["--group", "g"], 2, "--time and --group say which rows --test-size holds out; add it"),
        (["--time", "x", "--group", "g", "--test-size", 0.5], 2, "exclude each other"),
        (["--group", "y", "--test-size", 0.5], 2, "the target cannot be --id, --group or"),
        (["--group", "h", "--test-size", 0.5], 3, "there is no column 'h'"),
        (["--time", "h", "--test-size", 0.5], 3, "there is no column 'h'"),
        (["--time", "y", "--test-size", 0.5], 2, "the target cannot be --id, --group or"),
        (["--time", "s", "--test-size", 0.5], 3, "class 'b' is not among the 450 earliest rows by"),
        (
            ["--time", "t", "--test-size", 0.5],
            3,
            "row 8, column 't': the time of the row is missing",
        ),
    ]
    for more, status, message in wrong:
        code, _, err = run(*words, *more)
        assert (code, message in err) == (status, True), err


@pytest.mark.parametrize("is_text", [False, True])
def test_rows_of_another_file_are_scored(run, tmp_path: Path, is_text: bool) -> None:
    """The model is that of all rows, and its scores are what its predictions have there."""
    X, y = inputs()
    paths = [tmp_path / "rows.csv", tmp_path / "test.csv"]
    for path, rows in zip(paths, (range(400), range(400, 700)), strict=True):
        label = [f"c{y[k]}" if is_text else y[k] for k in range(700)]
        cells = [f"{X[k, 0]},{'' if k == 470 else label[k]},{X[k, 1]}" for k in rows]
        path.write_text("\n".join(["a,y,b", *cells, ""]))
    table, test = paths
    out, report, whole = tmp_path / "m.mercer", tmp_path / "m.html", tmp_path / "whole.mercer"
    assert run(*fit(table, "--out", whole))[0] == 0
    code, said, err = run(*fit(table, "--test", test, "--out", out, "--report", report))
    assert code == 0, err
    assert f"scoring   the rows of {test}" in said
    assert "baselines learn from 400 of 400 rows" in said
    assert "What the data are" in report.read_text()
    assert "1 of 300 rows have no target and are not scored" in err
    new = np.delete(np.arange(400, 700), 70)
    p = mercer.load(out).predict_proba(X[new])
    np.testing.assert_array_equal(p, mercer.load(whole).predict_proba(X[new]))
    score = -np.log(p[np.arange(299), y[new]]).mean()
    found = re.search(r"mercer sphere +[.\d]+ +([.\d]+) ", said)
    assert float(found[1]) == pytest.approx(score, rel=2e-3), said
    code, _, err = run(*fit(table, "--test", tmp_path / "none.csv"))
    assert (code, "none.csv" in err, "there is no such file" in err) == (6, True, True)
    for name, message in (("y", "there is no column 'y'"), ("b", "there is no column 'b'")):
        lacks = tmp_path / "lacks.csv"
        lacks.write_text("a,b\n1,2\n" if name == "y" else "a,y\n1,1\n")
        code, _, err = run(*fit(table, "--test", lacks))
        assert (code, message in err) == (3, True), err
