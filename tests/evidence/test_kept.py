from __future__ import annotations

import math
from pathlib import Path

import pytest

from reproduce.papers import kept as home
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.reproduction import Settings


class Counted:
    """A run that says how often it ran."""

    n = 0

    def __call__(self) -> dict[str, float]:
        self.n += 1
        return {"run": float(self.n), "none": math.nan}


def test_a_part_is_run_once(tmp_path: Path) -> None:
    run = Counted()
    for _ in range(3):
        assert kept(tmp_path / "new", "part", {"seed": 1}, run)["run"] == 1.0
    assert math.isnan(kept(tmp_path / "new", "part", {"seed": 1}, run)["none"])
    assert kept(tmp_path / "new", "part", {"seed": 2}, run)["run"] == 2.0
    assert kept(tmp_path / "new", "other", {"seed": 2}, run)["run"] == 3.0


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"\xff", b"1", b'{"of": 1, "found": {}}', b'{"of": {"seed": 1}}'],
)
def test_a_damaged_file_is_run_again(tmp_path: Path, content: bytes) -> None:
    run = Counted()
    kept(tmp_path, "part", {"seed": 1}, run)
    (tmp_path / "part.json").write_bytes(content)
    assert kept(tmp_path, "part", {"seed": 1}, run)["run"] == 2.0
    assert kept(tmp_path, "part", {"seed": 1}, run)["run"] == 2.0


def test_another_version_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Counted()
    kept(tmp_path, "part", {}, run)
    monkeypatch.setattr(home, "mercer_version", lambda: "99")
    assert kept(tmp_path, "part", {}, run)["run"] == 2.0


def test_nothing_is_kept_without_a_folder() -> None:
    run = Counted()
    assert parts_folder(Settings(), "x") is None
    assert [kept(None, "part", {}, run)["run"] for _ in range(2)] == [1.0, 2.0]


def test_quick_parts_lie_apart(tmp_path: Path) -> None:
    quick = parts_folder(Settings(is_quick=True, folder=tmp_path), "x")
    assert (quick, parts_folder(Settings(folder=tmp_path), "x")) == (
        tmp_path / "x-quick-parts",
        tmp_path / "x-parts",
    )
