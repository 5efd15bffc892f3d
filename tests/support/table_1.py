"""Table 1 of Oliva et al. in small: a stand-in for the slow method, synthetic data sets."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from mercer.data import named
from reproduce.papers import spectral_cells, spectral_folds, spectral_methods, spectral_table_1
from reproduce.papers.spectral_folds import Fold
from reproduce.papers.spectral_methods import METHODS, Prediction


def fake_bank(fold: Fold, is_quick: bool, n_jobs: int | None) -> Prediction:
    """A linear model with intervals."""
    mean, std = BayesianRidge().fit(fold.X, fold.y).predict(fold.X_test, return_std=True)
    return Prediction(mean, mean - 1.645 * std, mean + 1.645 * std)


def use_methods(monkeypatch: pytest.MonkeyPatch, *keys: str) -> None:
    """Run these methods only, the stand-in for BaNK."""
    chosen = tuple(
        replace(method, run=fake_bank) if method.key == "bank" else method
        for method in METHODS
        if method.key in keys
    )
    for module in (spectral_cells, spectral_table_1, spectral_methods):
        monkeypatch.setattr(module, "METHODS", chosen)


def write_sets(monkeypatch: pytest.MonkeyPatch, folder: Path, n: int, *names: str) -> None:
    """Synthetic files with the columns of the known data sets and n rows; no others at hand."""
    monkeypatch.setenv(named.VARIABLE, str(folder))
    spectral_folds._arrays.cache_clear()
    rng = np.random.default_rng(3)
    for name in names:
        facts = named._manifest()[name]
        monkeypatch.setitem(facts, "n", n)
        monkeypatch.setitem(facts, "sha256_uncompressed", None)
        X = rng.standard_normal((n, facts["d"]))
        y = 7.0 + 3.0 * X[:, 0] + rng.standard_normal(n)
        header = ",".join([*(f"x{j}" for j in range(facts["d"])), named.TARGET])
        rows = [",".join(f"{value:.6f}" for value in row) for row in np.column_stack([X, y])]
        text = "\n".join([header, *rows]) + "\n"
        path = folder / facts["file"]
        data = text.encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
