"""Cells of long scenarios: kept as they are measured, not measured twice, in any number of jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
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


def test_no_cell_is_begun_when_time_is_up(folder: Path) -> None:
    from reproduce.cells import measured

    def measure(k: int) -> list[dict[str, Any]]:
        return [{"k": k}]

    cells = [(1,), (2,)]
    assert measured("toy-v1", cells, measure, seconds=0.0) == []
    measured("toy-v1", cells[1:], measure)
    assert measured("toy-v1", cells, measure, seconds=0.0) == [{"k": 2}]


def test_prediction_sets_of_right_probabilities_hold_their_level(folder: Path) -> None:
    """Exactly, on average over classes drawn by these probabilities, ties included."""
    from reproduce.scenarios.coverage_v1 import LEVELS, _classes

    class Fixed:
        def __init__(self, p: list[float]) -> None:
            self.p = np.array([p])

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return self.p

    for p in ([0.5, 0.5], [0.9, 0.1], [0.995, 0.005], [0.2, 0.8]):
        told = [_classes(Fixed(p), np.zeros((1, 1)), np.array([c])) for c in (0, 1)]
        for level in LEVELS:
            inside = sum(q * row[f"inside_{level}"] for q, row in zip(p, told, strict=True))
            assert inside == pytest.approx(level / 100.0, abs=1e-4)


def test_coverage_of_one_set_a_cell(folder: Path) -> None:
    from reproduce.scenarios.coverage_v1 import AIRFOIL, airfoil_means, rows_of, summary
    from reproduce.tables import _airfoil, _coverage

    names = ("GPRegressor", "SequentialKernelClassifier")
    rows = rows_of(names, 1, seconds=None, sizes=(15,), inputs=(1,))
    assert len(rows) == 2 * 4
    metrics = json.loads(json.dumps(summary(rows)))
    assert metrics["n_missed"] == 0  # of one set nothing can be said
    assert all(0.0 <= cell["inside_90"] <= 100.0 for cell in metrics["cells"])
    assert len(_coverage(metrics)) == 2 + 2 + 2
    own = [{**rows[0], "how": how, "split": k} for how in AIRFOIL for k in range(2)]
    metrics = json.loads(json.dumps({"airfoil": airfoil_means(own)}))
    assert len(_airfoil(metrics)) == 2 + len(AIRFOIL)
