from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reproduce.papers import basis_boston, basis_table_2
from reproduce.papers.basis_answer import Answer, Problem
from reproduce.papers.basis_methods import BOSTON_METHODS
from reproduce.papers.basis_runs import Figures, column
from reproduce.papers.reproduction import Settings, write_reproduction
from support.table_1 import write_sets

GOOD = {
    "mercer, default": (10.2, 46.0),
    "paper's settings": (13.9, 17.0),
    "SVR": (14.05, 210.0),
    "RVM, the paper's width": (14.2, 40.0),
    "GP": (11.8, 300.0),
    "GP, the paper's width": (11.9, 300.0),
    "GP, ARD": (9.6, 300.0),
}


def verdicts(changed: dict[str, tuple] | None = None, left_out: str = "") -> list[str]:
    figures = {name: row for name, row in (GOOD | (changed or {})).items() if name != left_out}
    rows = {
        name: [Figures(error, kernels, 3.0, np.nan, 0.9)] * 2
        for name, (error, kernels) in figures.items()
    }
    errors = {name: column(row, "error") for name, row in rows.items()}
    settings = Settings()
    claims = [
        *basis_table_2._paper_claims(rows, errors, settings),
        *basis_table_2._own_claims(rows, errors, settings),
    ]
    return [claim.verdict for claim in claims]


def test_claims_are_judged() -> None:
    assert verdicts() == ["fails", *["holds"] * 7]
    worse = {"paper's settings": (16.0, 45.0), "mercer, default": (14.0, 48.0)}
    assert verdicts(worse) == [*["fails"] * 7, "holds"]
    found = verdicts(left_out="RVM, the paper's width")
    assert (found[2], found[4]) == ("not judged", "holds")


def fake(problem: Problem, seed: int, is_quick: bool) -> Answer:
    return Answer(problem.y_test + 2.0, 5.0, 3.0, None, (problem.y_test, problem.y_test))


def test_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_sets(monkeypatch, tmp_path, 506, "boston")
    basis_boston._arrays.cache_clear()
    methods = tuple(replace(method, run=fake) for method in BOSTON_METHODS)
    monkeypatch.setattr(basis_table_2, "BOSTON_METHODS", methods)
    outcome = basis_table_2.reproduce(Settings(is_quick=True, folder=tmp_path))
    basis_boston._arrays.cache_clear()
    np.testing.assert_allclose(outcome.measured["GP"], 4.0)
    paths = write_reproduction(outcome, tmp_path)
    page = paths[1].read_text()
    assert "| GP | 4.00 ± 0 | 2.00 ± 0 | 5.0 | 3 | - | 1.000 |" in page
    assert "| published: sequential RVM | 7.18 | ? | 25.29 | - | - | - |" in page
    assert paths[2].read_bytes().startswith(b"\x89PNG")
