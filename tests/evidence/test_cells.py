"""Cells of long scenarios: kept as they are measured, not measured twice, in any number of jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("MERCER_BENCH_CACHE", str(tmp_path))
    return tmp_path


def test_a_stopped_run_keeps_what_it_has_measured_and_goes_on(folder: Path) -> None:
    from reproduce.cells import measured

    calls: list[int] = []

    def measure(k: int, *, limit: int) -> list[dict[str, Any]]:
        if k >= limit:
            raise KeyError(k)
        calls.append(k)
        return [{"k": k}, {"k": -k}]

    cells = [(3,), (1,), (7,), (1,)]
    with pytest.raises(KeyError):
        measured("toy-v1", cells, lambda k: measure(k, limit=5))
    lines = [json.loads(line) for line in (folder / "toy-v1.jsonl").read_text().splitlines()]
    assert [line["cell"] for line in lines] == [[3], [1]]
    rows = measured("toy-v1", cells, lambda k: measure(k, limit=9))
    assert calls == [3, 1, 7]
    assert [row["k"] for row in rows] == [3, -3, 1, -1, 7, -7, 1, -1]


def test_two_cells_at_a_time_give_the_same_rows(folder: Path) -> None:
    from reproduce.cells import measured

    cells = [(k,) for k in range(5)]
    rows = measured("toy-v2", cells, lambda k: [{"k": k}], n_jobs=2)
    assert rows == [{"k": k} for k in range(5)]
    assert len((folder / "toy-v2.jsonl").read_text().splitlines()) == 5
