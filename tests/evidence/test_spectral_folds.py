from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer.data.named import list_named
from reproduce.papers import spectral_folds
from reproduce.papers.spectral_folds import SETS, fold_of, is_at_hand, n_folds, n_training_rows
from support.table_1 import write_sets


@pytest.fixture
def airfoil(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    write_sets(monkeypatch, tmp_path, 503, "airfoil")
    yield "airfoil"
    spectral_folds._arrays.cache_clear()


def test_every_set_is_a_known_one() -> None:
    known = {entry.name: entry for entry in list_named()}
    assert all(known[s.name].task == "regression" for s in SETS)
    assert [s.name for s in SETS if s.target is None] == ["cte", "music", "twitter"]


def test_published_figures_are_those_of_the_table() -> None:
    """Spot checks against the printed table: first and last column of some rows."""
    printed = {s.name: s.published for s in SETS}
    assert printed["concrete"]["RKS"] == (0.1313, 0.0189)
    assert printed["naval"]["BaNK"] == printed["naval_turbine"]["BaNK"] == (8.9e-6, 1.2e-6)
    assert printed["bike"]["AlaC"] == (0.0467, 0.0016)
    assert printed["twitter"] == {
        "RKS": (0.3837, 0.0397),
        "MKL": (0.4572, 0.0175),
        "AlaC": (0.2223, 0.0358),
        "BaNK": (0.0981, 0.0211),
    }


def test_folds_part_the_rows_and_standardise_by_the_training_rows(airfoil: str) -> None:
    folds = [fold_of(airfoil, index, False) for index in range(n_folds(False))]
    assert len(folds) == 5
    for fold in folds:
        assert len(fold.X) + len(fold.X_test) == 503
        assert (fold.y.mean(), fold.y.std()) == (pytest.approx(0.0, abs=1e-12), pytest.approx(1.0))
        assert not np.isclose(fold.y_test.mean(), 0.0, atol=1e-12)
    assert len(np.unique(np.vstack([fold.X_test for fold in folds]), axis=0)) == 503
    assert max(len(fold.X) for fold in folds) == n_training_rows(airfoil)


def test_a_quick_run_takes_some_rows(airfoil: str) -> None:
    fold = fold_of(airfoil, 0, True)
    assert len(fold.y) + len(fold.y_test) == 400
    assert len(fold.y) == 320
    np.testing.assert_array_equal(fold.X, fold_of(airfoil, 0, True).X)
    assert n_folds(True) == 2


def test_a_set_without_its_file_is_not_at_hand(airfoil: str) -> None:
    assert is_at_hand(airfoil)
    assert not is_at_hand("twitter")
