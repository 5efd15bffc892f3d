from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer.errors import StorageError
from reproduce.papers import spectral_folds, spectral_table_1
from reproduce.papers.reproduction import Settings, write_reproduction
from reproduce.papers.spectral_cells import Cell
from reproduce.papers.spectral_folds import SETS
from reproduce.papers.spectral_table_1 import marked
from support.table_1 import use_methods, write_sets

CONCRETE = SETS[0]


def cells(*errors: float) -> list[Cell]:
    return [Cell(error, 0.9, 1.0, 80, 20, 8) for error in errors]


def row(bank=(0.06, 0.05, 0.07), boosting=(0.07, 0.06, 0.075), rks=(0.2, 0.21, 0.2), mkl=None):
    return {
        "RKS": cells(*rks),
        "MKL": cells(*(mkl or rks)),
        "BaNK": cells(*bank),
        "gradient boosting": cells(*boosting),
    }


def test_the_lowest_has_the_asterisk_and_what_is_level_is_bold() -> None:
    errors = {
        "lowest": np.array([0.1, 0.2, 0.3]),
        "level": np.array([0.1, 0.3, 0.29]),
        "same": np.array([0.1, 0.2, 0.3]),
        "worse": np.array([0.21, 0.3, 0.41]),
        "worse by the same": np.array([0.2, 0.3, 0.4]),
    }
    texts = marked(errors)
    assert texts["lowest"] == "**0.2 ± 0.058\\***"
    assert texts["level"].startswith("**0.23 ±")
    assert texts["same"].startswith("**0.2 ±")
    assert "*" not in texts["worse"]
    assert "*" not in texts["worse by the same"]


def verdicts(found: dict, is_quick: bool = False) -> list[str]:
    claims = spectral_table_1._claims([CONCRETE], {"concrete": found}, is_quick)
    return [claim.verdict for claim in claims[:3]]


def test_claims_are_judged() -> None:
    assert verdicts(row()) == ["holds", "holds", "holds"]
    assert verdicts(row(bank=(0.1, 0.11, 0.12))) == ["holds", "fails", "fails"]
    assert verdicts(row(), is_quick=True) == ["not judged"] * 3


def test_within_one_standard_error_of_boosting_is_no_worse() -> None:
    boosting = (0.055, 0.052, 0.069)
    differences = np.array([0.06, 0.05, 0.07]) - boosting
    assert 0.0 < differences.mean() <= differences.std(ddof=1) / np.sqrt(3)
    assert verdicts(row(boosting=boosting))[2] == "holds"
    assert verdicts(row(boosting=(0.055, 0.046, 0.065)))[2] == "fails"


def test_one_lost_set_is_nearly_all() -> None:
    won, lost = row(), row(rks=(0.01, 0.012, 0.013))
    claim = spectral_table_1._paper_claim(SETS[:2], {"concrete": lost, "airfoil": won})
    assert (claim.verdict, claim.ours) == (
        "holds",
        "1 of 2; worse on concrete (RKS), concrete (MKL)",
    )
    claim = spectral_table_1._paper_claim(SETS[:2], {"concrete": lost, "airfoil": lost})
    assert claim.verdict == "fails"


def test_a_row_of_every_set_and_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Synthetic sets with as many columns as the real ones, also those to be put in place."""
    use_methods(monkeypatch, "rks", "mkl", "bank", "boosting", "ridge")
    write_sets(monkeypatch, tmp_path, 40, "airfoil", "cte", "music", "twitter")
    lines: list[str] = []
    settings = Settings(is_quick=True, n_jobs=1, tell=lines.append, folder=tmp_path / "out")
    outcome = spectral_table_1.reproduce(settings)
    assert len(lines) == 4 * 5 * 2
    assert len(outcome.measured) == 4 * 5
    again = spectral_table_1.reproduce(settings)
    assert len(lines) == 4 * 5 * 2
    assert again.to_markdown() == outcome.to_markdown()
    absent = outcome.claims[-1]
    assert absent.claim == "the same on concrete, naval, naval_turbine, bike, toms"
    paths = write_reproduction(outcome, tmp_path / "out")
    page = paths[1].read_text()
    assert "| cte | 40 | 384 |" in page
    assert "| 0.0981 |" in page
    header, first = paths[0].read_text().splitlines()[:2]
    assert header.split(",")[2:] == [
        '"mean squared error',
        ' standardised target"',
        "coverage of 90 % intervals",
        "seconds",
    ]
    assert first.startswith("airfoil: RKS,0,")
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    spectral_folds._arrays.cache_clear()


def test_without_any_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    with pytest.raises(StorageError, match="MERCER_DATA"):
        spectral_table_1.reproduce(Settings())
