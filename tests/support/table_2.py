"""Table 2 of Oliva et al. in small: a stand-in for the slow methods, synthetic data sets."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mercer.data import named
from reproduce.papers import spectral_class_cells, spectral_class_folds, spectral_table_2
from reproduce.papers.spectral_class_folds import ClassFold
from reproduce.papers.spectral_class_methods import CLASS_METHODS


def stand_in(fold: ClassFold, is_quick: bool, n_jobs: int | None) -> np.ndarray:
    """A linear model."""
    return LogisticRegression().fit(fold.X, fold.y).predict_proba(fold.X_test)[:, 1]


def use_stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the stand-in for every method."""
    chosen = tuple(replace(method, run=stand_in) for method in CLASS_METHODS)
    for module in (spectral_class_cells, spectral_table_2):
        monkeypatch.setattr(module, "CLASS_METHODS", chosen)


def write_class_sets(
    monkeypatch: pytest.MonkeyPatch, folder: Path, n: int, *names: str, other: float = 2.0
) -> None:
    """Synthetic files with the columns of the known data sets and n rows; no others at hand."""
    monkeypatch.setenv(named.VARIABLE, str(folder))
    spectral_class_folds.class_rows.cache_clear()
    rng = np.random.default_rng(6)
    for name in names:
        facts = named._manifest()[name]
        monkeypatch.setitem(facts, "n", n)
        monkeypatch.setitem(facts, "sha256_uncompressed", None)
        X = rng.standard_normal((n, facts["d"]))
        y = np.where(2.0 * X[:, 0] + rng.standard_normal(n) > 0.0, 1.0, other)
        header = ",".join([*(f"x{j}" for j in range(facts["d"])), named.TARGET])
        rows = [",".join(f"{value:.6f}" for value in row) for row in np.column_stack([X, y])]
        data = ("\n".join([header, *rows]) + "\n").encode()
        path = folder / facts["file"]
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
