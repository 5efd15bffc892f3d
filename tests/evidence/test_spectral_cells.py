from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mercer.errors import StorageError
from reproduce.papers import spectral_cells, spectral_folds
from reproduce.papers.reproduction import Settings
from reproduce.papers.spectral_cells import CellKey, run_cell, work
from reproduce.papers.spectral_folds import Fold
from reproduce.papers.spectral_methods import Prediction
from support.table_1 import use_methods, write_sets

KEY = CellKey("airfoil", "bank", 1)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    use_methods(monkeypatch, "bank", "gp", "ridge")
    write_sets(monkeypatch, tmp_path, 120, "airfoil")
    yield
    spectral_folds._arrays.cache_clear()


def settings_in(folder: Path | None, lines: list[str]) -> Settings:
    return Settings(is_quick=True, n_jobs=1, tell=lines.append, folder=folder)


def test_work_goes_fold_by_fold_and_leaves_out_what_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = work(Settings(is_quick=True))
    assert [(key.method, key.fold) for key in keys] == [
        (method, fold) for fold in (0, 1) for method in ("bank", "gp", "ridge")
    ]
    assert {key.name for key in keys} == {"airfoil"}
    short = tuple(replace(m, largest=95 if m.key == "gp" else None) for m in spectral_cells.METHODS)
    monkeypatch.setattr(spectral_cells, "METHODS", short)
    keys = work(Settings())
    assert [(key.method, key.fold) for key in keys] == [
        (method, fold) for fold in range(5) for method in ("bank", "ridge")
    ]


def test_a_cell_is_run_once(tmp_path: Path) -> None:
    lines: list[str] = []
    settings = settings_in(tmp_path / "out", lines)
    first = run_cell(KEY, settings)
    assert lines == ["airfoil, BaNK, fold 2"]
    assert run_cell(KEY, settings) == first
    assert len(lines) == 1
    assert (first.n_train, first.n_test, first.n_inputs) == (96, 24, 5)
    assert 0.0 < first.mse < 0.5
    assert 0.7 <= first.coverage <= 1.0


def test_methods_without_intervals_have_no_coverage(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, [])
    key = CellKey("airfoil", "ridge", 0)
    for cell in (run_cell(key, settings), run_cell(key, settings)):
        assert math.isnan(cell.coverage)


def test_nothing_is_kept_without_a_folder() -> None:
    lines: list[str] = []
    for _ in range(2):
        run_cell(KEY, settings_in(None, lines))
    assert len(lines) == 2


def test_coverage_counts_the_rows_inside() -> None:
    zeros = np.zeros(4)
    fold = Fold(np.zeros((1, 1)), zeros[:1], np.zeros((4, 1)), np.array([0.0, 1.0, -1.0, 2.0]))
    assert spectral_cells._coverage(Prediction(zeros, zeros - 1.0, zeros + 1.0), fold) == 0.75


def test_without_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA")
    assert work(Settings()) == []
    with pytest.raises(StorageError, match="MERCER_DATA"):
        run_cell(CellKey("concrete", "ridge", 0), Settings())
