from __future__ import annotations

import os
from pathlib import Path

import pytest

from mercer.data import files
from mercer.data.tables import read_frame
from mercer.errors import DataError, StorageError


def test_d17_missing(tmp_path: Path) -> None:
    (tmp_path / "patients.csv").touch()
    with pytest.raises(StorageError, match=r"no such file or folder; did you mean 'patients.csv'"):
        files.check_path(tmp_path / "patient.csv")
    with pytest.raises(StorageError, match=r"no such file or folder$"):
        read_frame(tmp_path / "none.csv")


def test_an_address_is_refused_with_what_to_do() -> None:
    words = r"^https://example.com/x.csv: an address is not read; .* curl -L ADDRESS \| mercer"
    with pytest.raises(StorageError, match=words):
        read_frame(Path("https://example.com/x.csv"))


def test_d17_dangling_link(tmp_path: Path) -> None:
    link = tmp_path / "data.csv"
    link.symlink_to(tmp_path / "gone.csv")
    with pytest.raises(StorageError, match="the link leads to nothing"):
        read_frame(link)


def test_d17_link_to_itself(tmp_path: Path) -> None:
    link = tmp_path / "data.csv"
    link.symlink_to(link)
    with pytest.raises(StorageError, match="cannot be read"):
        read_frame(link)


def test_d17_pipe_does_not_hang(tmp_path: Path) -> None:
    pipe = tmp_path / "data.csv"
    os.mkfifo(pipe)
    with pytest.raises(StorageError, match="is a named pipe; save the data to a file first"):
        read_frame(pipe)


def test_d17_device() -> None:
    with pytest.raises(StorageError, match="is a device or socket"):
        read_frame("/dev/zero")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_d17_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a\n1\n")
    path.chmod(0)
    with pytest.raises(StorageError, match="permission denied"):
        read_frame(path)


def test_d17_refused_while_reading(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    with (
        pytest.raises(StorageError, match=r"data.csv: cannot be read \(permission denied\)"),
        files.reading(path),
    ):
        raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("name", ["a\0b.csv", "a/" * 3000 + "b.csv", "x" * 5000 + ".csv"])
def test_d17_impossible_names(name: str) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        read_frame(name)


def test_d12_size_is_checked_with_an_estimate() -> None:
    with pytest.raises(DataError, match=r"100000 rows and more of 10000 columns .* 7\.5 GiB"):
        files.check_size(Path("data.csv"), 100_000, 10_000)
