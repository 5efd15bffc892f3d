from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import mercer.data
from mercer.data.source import ArrayRows, FileRows
from mercer.errors import DataError

ROWS = np.random.default_rng(5).standard_normal((50, 4))


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mercer.data.source.CHUNK_CELLS", 30)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.npy"


def whole(source: mercer.data.RowSource) -> np.ndarray:
    return np.vstack(list(source.blocks(7)))


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<f2", "<i8", "|u1", "|b1"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_d14_files_of_any_type_and_layout(path: Path, dtype: str, order: str) -> None:
    rows = np.array(np.abs(100 * ROWS), dtype=dtype, order=order)  # type: ignore[call-overload]
    np.save(path, rows)
    source = mercer.data.open(path)
    np.testing.assert_array_equal(whole(source), rows.astype(np.float64))
    picked = source.select(["x3", "x1"])
    np.testing.assert_array_equal(whole(picked), rows[:, [3, 1]].astype(np.float64))


def test_the_second_version_of_the_format(path: Path) -> None:
    with open(path, "wb") as file:
        np.lib.format.write_array(file, ROWS, version=(2, 0))
    np.testing.assert_array_equal(whole(mercer.data.open(path)), ROWS)


VIEWS = {
    "all": lambda rows: rows,
    "rows": lambda rows: rows[5:44],
    "every third row": lambda rows: rows[1::3],
    "columns": lambda rows: rows[:, 1:3],
    "every other column": lambda rows: rows[:, ::2],
    "one column": lambda rows: rows[:, 2:3],
    "turned": lambda rows: rows.T,
    "view of a view": lambda rows: rows[3:][:, 1:][::2],
    "plain array": np.asarray,
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_views_of_memory_maps_are_read_from_the_file(path: Path, view: str, order: str) -> None:
    np.save(path, np.array(ROWS, order=order))  # type: ignore[call-overload]
    array = VIEWS[view](np.load(path, mmap_mode="r"))
    source = mercer.data.open(array)
    assert isinstance(source, FileRows)
    np.testing.assert_array_equal(whole(source), array)
    rows = np.array([0, 2, len(array) - 1])
    np.testing.assert_array_equal(source.take(rows), array[rows])


def test_a_raw_memory_map_with_an_offset(path: Path) -> None:
    path.write_bytes(b"123" + ROWS.tobytes())
    array = np.memmap(path, np.float64, "r", offset=3, shape=(50, 4))
    source = mercer.data.open(array[2:])
    assert isinstance(source, FileRows)
    np.testing.assert_array_equal(whole(source), ROWS[2:])


def test_what_was_written_through_a_memory_map_is_read(path: Path) -> None:
    np.save(path, np.zeros((50, 4)))
    array = np.load(path, mmap_mode="r+")
    array[:] = ROWS
    np.testing.assert_array_equal(whole(mercer.data.open(array)), ROWS)


@pytest.mark.parametrize("kind", ["backwards", "copy on write", "copy", "broadcast"])
def test_what_does_not_lie_in_a_file_like_this_stays_an_array(path: Path, kind: str) -> None:
    np.save(path, ROWS)
    array = np.load(path, mmap_mode="c" if kind == "copy on write" else "r")
    if kind == "backwards":
        array = array[::-1]
    elif kind == "copy on write":
        array[0, 0] = 1.0
    elif kind == "copy":
        array = array + 1.0
    else:
        array = np.broadcast_to(array[:1], (50, 4))
    source = mercer.data.open(array)
    assert isinstance(source, ArrayRows)
    np.testing.assert_array_equal(whole(source), array)


@pytest.mark.parametrize("size", [3, 9, 50, 200, -8])
def test_d15_a_file_that_is_cut_short(path: Path, size: int) -> None:
    np.save(path, ROWS)
    os.truncate(path, size if size > 0 else path.stat().st_size + size)
    with pytest.raises(DataError) as caught:
        mercer.data.open(path, cache=path.parent / "cache")  # three bytes could be text
    assert list(path.parent.glob("cache/*")) == []
    assert "rows.npy" in str(caught.value)
    assert str(caught.value).isprintable()


def test_f5_a_header_that_claims_too_much(path: Path) -> None:
    with open(path, "wb") as file:
        claim = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 10**6)}
        np.lib.format.write_array_header_1_0(file, claim)
    with pytest.raises(DataError, match="ends in the middle"):
        mercer.data.open(path)


def test_f3_objects_are_not_unpickled(path: Path) -> None:
    np.save(path, np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="holds object, not real numbers"):
        mercer.data.open(path)


def test_other_versions_of_the_format(path: Path) -> None:
    np.save(path, ROWS)
    path.write_bytes(path.read_bytes().replace(b"NUMPY\x01", b"NUMPY\x09"))
    with pytest.raises(DataError, match=r"cannot be decoded as a \.npy file"):
        mercer.data.open(path)


def test_d4_one_dimension(path: Path) -> None:
    np.save(path, ROWS[0])
    with pytest.raises(DataError, match=r"rows.npy: has 1 dimension"):
        mercer.data.open(path)


def test_d3_gaps_name_the_file(path: Path) -> None:
    rows = ROWS.copy()
    rows[40, 2] = np.nan
    np.save(path, rows)
    with pytest.raises(DataError, match=r"rows.npy, row 41, column 'x2': missing value"):
        whole(mercer.data.open(path))


def test_a_map_whose_file_is_gone_or_another_stays_an_array(path: Path) -> None:
    np.save(path, ROWS)
    array = np.load(path, mmap_mode="r")
    path.rename(path.with_name("old.npy"))
    np.save(path, ROWS[::-1])
    assert isinstance(mercer.data.open(array), ArrayRows)
    path.unlink()
    source = mercer.data.open(array)
    assert isinstance(source, ArrayRows)
    np.testing.assert_array_equal(whole(source), ROWS)


def test_d3_a_mask_over_a_memory_map(path: Path) -> None:
    np.save(path, ROWS)
    array = np.ma.masked_array(np.load(path, mmap_mode="r"), mask=ROWS[3, 1] == ROWS)
    with pytest.raises(DataError, match="row 4, column 'x1': missing value"):
        whole(mercer.data.open(array))
