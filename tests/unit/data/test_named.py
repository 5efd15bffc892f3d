from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from mercer.data import named
from mercer.data.named import TARGET, is_named, list_named, load_named
from mercer.data.target import read_target
from mercer.errors import DataError, StorageError
from support.statistics import few_first

PAPERS = [entry.name for entry in list_named() if entry.name not in named.SHIPPED]
needs_data = pytest.mark.skipif("MERCER_DATA" not in os.environ, reason="MERCER_DATA is not set")


def check(name: str) -> None:
    facts = next(entry for entry in list_named() if entry.name == name)
    frame = load_named(name)
    assert (frame.n_rows, len(frame.names) - 1) == (facts.n, facts.d)
    assert frame.names[-1] == TARGET
    assert read_target(frame, TARGET).task == facts.task


@pytest.mark.parametrize("name", list(named.SHIPPED))
def test_shipped_sets_are_as_listed(name: str) -> None:
    check(name)


@needs_data
@pytest.mark.parametrize("name", few_first(PAPERS, *set(PAPERS).difference(["shuttle"])))
def test_sets_of_the_papers_are_as_listed(name: str) -> None:
    entry = next(entry for entry in list_named() if entry.name == name)
    if entry.where.startswith("not here"):
        pytest.skip(f"the file of {name} is not in MERCER_DATA")
    check(name)


def test_labels_are_text_where_there_are_names() -> None:
    assert set(load_named("breast_cancer").column(TARGET).values) == {"malignant", "benign"}
    assert load_named("digits").column(TARGET).kind == "number"


def test_the_list_is_complete() -> None:
    names = "crabs pima_tr pima_te fgl pima diabetic eeg shuttle boston concrete airfoil naval"
    rest = "naval_turbine bike toms cte music twitter susy skin"
    assert {*names.split(), *rest.split()} == set(PAPERS)
    assert all(entry.description for entry in list_named())
    assert is_named("crabs")
    assert not is_named("crab")


def test_without_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    with pytest.raises(StorageError, match=r"'pima': set the environment variable MERCER_DATA"):
        load_named("pima")
    where = {entry.name: entry.where for entry in list_named()}
    assert where["pima"] == "not here: set MERCER_DATA"
    assert where["iris"] == "scikit-learn"
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    with pytest.raises(
        StorageError, match=r"pima.csv is not in .*, the folder named by MERCER_DATA"
    ):
        load_named("pima")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pima", b"a,target\n1,2\n"),
        ("eeg", gzip.compress(b"a,target\n1,2\n", mtime=0)),
        ("eeg", b"no gzip"),
    ],
    ids=["plain", "gzip", "no-gzip"],
)
def test_another_file_of_that_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, content: bytes
) -> None:
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    (tmp_path / ("pima.csv" if name == "pima" else "eeg.csv.gz")).write_bytes(content)
    with pytest.raises(DataError, match=f"is not the known data set '{name}'"):
        load_named(name)


@pytest.mark.parametrize(
    ("content", "is_known"),
    [
        ("a,b,target\n1,2,3\n4,5,6\n", True),
        ("a,b,target\n1,2,3\n", False),
        ("a,target\n1,3\n4,6\n", False),
        ("a,target,b\n1,2,3\n4,5,6\n", False),
        ("a,b,target\n1,x,3\n4,y,6\n", False),
    ],
    ids=["right", "rows", "columns", "order", "text"],
)
def test_a_set_without_a_sum_is_known_by_its_shape(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str, is_known: bool
) -> None:
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    monkeypatch.setitem(named._manifest()["cte"], "n", 2)
    monkeypatch.setitem(named._manifest()["cte"], "d", 2)
    (tmp_path / "cte.csv.gz").write_bytes(gzip.compress(content.encode(), mtime=0))
    if is_known:
        assert load_named("cte").n_rows == 2
        return
    with pytest.raises(DataError, match=r"cte.csv.gz.*: is not .* 2 rows and 2 columns of numbers"):
        load_named("cte")


def test_a_pipe_of_that_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    os.mkfifo(tmp_path / "pima.csv")
    with pytest.raises(StorageError, match="named pipe"):
        load_named("pima")


def test_unknown_name() -> None:
    with pytest.raises(StorageError, match=r"no data set 'crab'; did you mean 'crabs'\?"):
        load_named("crab")


@needs_data
def test_values_are_those_of_numpy() -> None:
    frame = load_named("boston")
    path = Path(os.environ["MERCER_DATA"]) / "boston.csv"
    expected = np.loadtxt(path, delimiter=",", skiprows=1)
    np.testing.assert_array_equal(np.column_stack([c.values for c in frame.columns]), expected)
