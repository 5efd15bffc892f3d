from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from mercer.data import named
from reproduce.papers import gp_part, gp_table_2
from reproduce.papers.gp_cells import Figures
from reproduce.papers.gp_glass import glass_repeats
from reproduce.papers.gp_part import Part
from reproduce.papers.gp_table_2 import CORRECTED, FOREST, METHODS, NETWORK, PAPER, SVC, TREE
from reproduce.papers.matrices import named_arrays
from reproduce.papers.reproduction import Settings, write_reproduction

GOOD = {
    PAPER: (0.224, 0.73),
    CORRECTED: (0.22, 0.58),
    NETWORK: (0.3, 0.8),
    TREE: (0.32, 3.0),
    FOREST: (0.2, 0.6),
    SVC: (0.31, 0.9),
}
COUNTS = {"Con": 13, "Head": 29, "Tabl": 9, "Veh": 17, "WinF": 70, "WinNF": 76}


@pytest.fixture
def glass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A synthetic file with the columns and the labels of the forensic glass."""
    monkeypatch.setenv(named.VARIABLE, str(tmp_path))
    facts = named._manifest()["fgl"]
    rng = np.random.default_rng(3)
    labels = np.repeat(list(COUNTS), list(COUNTS.values()))
    header = ",".join([*(f"x{j}" for j in range(facts["d"])), named.TARGET])
    rows = [
        ",".join([*(f"{value:.6f}" for value in rng.standard_normal(facts["d"])), label])
        for label in labels
    ]
    data = ("\n".join([header, *rows]) + "\n").encode()
    monkeypatch.setitem(facts, "sha256_uncompressed", hashlib.sha256(data).hexdigest())
    (tmp_path / facts["file"]).write_bytes(data)


def verdicts(changed: dict[str, tuple] | None = None, seconds: float = 30.0) -> list[str]:
    rows = {
        name: [Figures(error, score, math.nan, 13.0, seconds, 2)] * 2
        for name, (error, score) in (GOOD | (changed or {})).items()
    }
    part = Part("glass", "errors, %", 100.0, rows)
    claims = [
        *gp_table_2._paper_claims(part, Settings()),
        *gp_table_2._own_claims(rows, Settings()),
    ]
    return [claim.verdict for claim in claims]


def test_claims_are_judged() -> None:
    assert verdicts() == ["holds"] * 5
    assert verdicts({PAPER: (0.25, 0.73), CORRECTED: (0.22, 0.61)}, 61.0) == [
        "fails", "holds", "fails", "fails", "fails"
    ]  # fmt: skip
    assert verdicts({NETWORK: (0.2, 0.55)}) == ["holds", "fails", "holds", "holds", "fails"]


@pytest.mark.usefixtures("glass")
def test_labels_that_are_words_are_numbered() -> None:
    X, y = named_arrays("fgl")
    assert X.shape == (214, 9)
    assert np.bincount(y).tolist() == list(COUNTS.values())


@pytest.mark.usefixtures("glass")
def test_folds_are_stratified_and_shuffled() -> None:
    repeats = glass_repeats(2, 10)
    for repeat in repeats:
        tested = np.concatenate([split.X_test[:, 0] for split in repeat.splits])
        assert len(np.unique(tested)) == 214
        for split in repeat.splits:
            assert len(split.y) + len(split.y_test) == 214
            counts = np.bincount(split.y_test, minlength=6)
            assert np.all(np.abs(counts - np.array(list(COUNTS.values())) / 10) <= 1.0)
            assert np.all(np.bincount(split.y, minlength=6) >= 8)
    first, second = (repeat.splits[0].X_test for repeat in repeats)
    assert first.shape != second.shape or not np.array_equal(first, second)


def frequencies(seed: int, is_quick: bool) -> Any:
    return DummyClassifier(strategy="prior")


@pytest.mark.usefixtures("glass")
def test_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = tuple(replace(method, make=frequencies) for method in METHODS)
    monkeypatch.setattr(gp_table_2, "METHODS", chosen)
    monkeypatch.setattr(gp_part, "has_r", lambda: False)
    outcome = gp_table_2.reproduce(Settings(is_quick=True, n_jobs=1, folder=tmp_path))
    np.testing.assert_allclose(outcome.measured[PAPER], 100.0 * (1.0 - 76 / 214))
    assert {claim.verdict for claim in outcome.claims} == {"not judged"}
    paths = write_reproduction(outcome, tmp_path)
    page = paths[1].read_text()
    assert "| MARS (degree 1) | not run | - | - | - | 32.2 |" in page
    assert f"| {PAPER} | 64.5 | 1 | 1.5" in page
    assert paths[0].read_text().startswith('method,repeat,"errors, %",log score,CPU seconds\n')
    monkeypatch.setattr(gp_table_2, "_N_SHUFFLES", 2)
    monkeypatch.setattr(gp_table_2, "_N_FOLDS", 2)
    full = gp_table_2.reproduce(Settings(n_jobs=1))
    assert {name: len(errors) for name, errors in full.measured.items()} == {
        method.name: 2 for method in METHODS if not method.needs_r
    }
    monkeypatch.setattr(gp_part, "has_r", lambda: True)
    with_r = gp_table_2.reproduce(Settings(n_jobs=1))
    assert list(with_r.measured) == [method.name for method in METHODS]
    assert "not run" not in with_r.tables[0]
    assert with_r.tables[0].splitlines()[-2].endswith("| 32.2 |")


@pytest.mark.parametrize("method", METHODS, ids=[method.key for method in METHODS])
def test_methods_can_be_made(method: Any) -> None:
    model = method.make(3, True)
    assert hasattr(model, "fit")
    if method.key.startswith("map"):
        assert model.inference == "map"
