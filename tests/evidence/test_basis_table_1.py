from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reproduce.papers import basis_table_1
from reproduce.papers.basis_answer import Answer, Problem
from reproduce.papers.basis_methods import SINC_METHODS
from reproduce.papers.basis_runs import Figures, column
from reproduce.papers.reproduction import Settings, write_reproduction

GOOD = {
    "mercer, default": (0.043, 20.0, 0.1, 0.9),
    "mercer, 8 kernels": (0.043, 8.0, 0.1, 0.9),
    "paper's settings": (0.056, 4.4, 0.107, 0.8),
    "printed weights": (0.09, 2.6, 0.13, 0.6),
    "paper's model, long chains": (0.055, 4.4, 0.107, 0.8),
    "SVR": (0.052, 28.0, 0.1, 0.9),
    "RVM, the paper's width": (0.053, 7.0, 0.1, 0.9),
    "GP": (0.043, 50.0, 0.1, 0.9),
}


def verdicts(changed: dict[str, tuple] | None = None, left_out: str = "") -> list[str]:
    figures = {name: row for name, row in (GOOD | (changed or {})).items() if name != left_out}
    rows = {
        name: [Figures(error**2, kernels, noise, coverage, 0.9)] * 2
        for name, (error, kernels, noise, coverage) in figures.items()
    }
    errors = {name: np.sqrt(column(row, "error")) for name, row in rows.items()}
    settings = Settings()
    claims = [
        *basis_table_1._paper_claims(rows, errors, settings),
        *basis_table_1._own_claims(rows, errors, settings),
    ]
    return [claim.verdict for claim in claims]


def test_claims_are_judged() -> None:
    assert verdicts() == ["holds"] * 8
    worse = {
        "paper's settings": (0.07, 7.5, 0.12, 0.8),
        "mercer, default": (0.05, 20.0, 0.1, 0.8),
        "mercer, 8 kernels": (0.05, 8.0, 0.1, 0.9),
    }
    assert verdicts(worse) == ["fails"] * 8
    assert verdicts(left_out="RVM, the paper's width")[3] == "not judged"


def fake(problem: Problem, seed: int, is_quick: bool) -> Answer:
    band = (problem.f_test - 0.1, problem.f_test + 0.1)
    return Answer(problem.f_test + 0.01 * (seed + 1), 5.0, 0.1, band, band)


def test_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    methods = tuple(replace(method, run=fake) for method in SINC_METHODS)
    monkeypatch.setattr(basis_table_1, "SINC_METHODS", methods)
    monkeypatch.setattr(basis_table_1, "has_rvm", lambda: False)
    outcome = basis_table_1.reproduce(Settings(is_quick=True, folder=tmp_path))
    np.testing.assert_allclose(outcome.measured["GP"], [0.01, 0.02])
    assert {claim.verdict for claim in outcome.claims} == {"not judged"}
    assert "fastrvm" in outcome.notes[0]
    paths = write_reproduction(outcome, tmp_path)
    assert "| published: sequential RVM | 0.0591 | 4.5 | 0.1136 | - | - |" in paths[1].read_text()
    assert "coverage of the curve" in paths[0].read_text()
    assert paths[2].read_bytes().startswith(b"\x89PNG")
