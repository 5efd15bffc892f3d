from __future__ import annotations

import os
from pathlib import Path

import pytest

from mercer.data.files import Stamp
from mercer.errors import DataError, StorageError


def test_a_file_that_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("text")
    monkeypatch.chdir(tmp_path)
    stamp = Stamp.of("a")
    monkeypatch.chdir("/")
    stamp.check()
    assert (stamp.name, stamp.path, stamp.size) == ("a", str(tmp_path / "a"), 4)


def test_a_file_that_changes(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b"
    path.write_text("text")
    stamp = Stamp.of(path)
    path.write_text("words")
    os.utime(path, ns=(0, stamp.mtime))
    with pytest.raises(DataError, match="changed while it was being read") as caught:
        stamp.check()
    assert str(caught.value).isprintable()
    path.write_text("text")
    os.utime(path, ns=(0, stamp.mtime + 1))
    with pytest.raises(DataError, match="changed while it was being read"):
        stamp.check()


def test_d17_a_file_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(StorageError, match="no such file"):
        Stamp.of(path)
    path.write_text("text")
    stamp = Stamp.of(path)
    path.unlink()
    with pytest.raises(StorageError, match="no such file"):
        stamp.check()
