from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from reproduce.papers.basis_answer import Answer, Method, Problem
from reproduce.papers.basis_runs import Figures, column, figures_of, figures_table, run_methods
from reproduce.papers.reproduction import Settings

ZEROS = np.zeros((4, 1))
F = np.array([0.0, 1.0, 2.0, 3.0])
PROBLEM = Problem(ZEROS, np.zeros(4), ZEROS, F + 0.5, F)


def test_the_error_is_that_of_the_curve_where_it_is_known() -> None:
    answer = Answer(F + 1.0, 3, 0.2, (F - 1.0, F + np.array([0.5, -0.5, 0.5, 0.5])), (F, F + 0.4))
    found = figures_of(answer, PROBLEM)
    assert found == Figures(1.0, 3.0, 0.2, 0.75, 0.0)
    unknown = figures_of(answer, Problem(ZEROS, np.zeros(4), ZEROS, F + 0.5))
    assert unknown.error == 0.25
    assert math.isnan(unknown.function_coverage)


def test_methods_are_run_once(tmp_path: Path) -> None:
    seeds: list[int] = []

    def run(problem: Problem, seed: int, is_quick: bool) -> Answer:
        seeds.append(seed)
        return Answer(problem.f_test + seed)

    settings = Settings(folder=tmp_path)
    first = run_methods("toy", [Method("shift", "shifted", run)], [PROBLEM] * 3, settings)
    again = run_methods("toy", [Method("shift", "shifted", run)], [PROBLEM] * 3, settings)
    assert seeds == [0, 1, 2]
    np.testing.assert_array_equal(column(first["shifted"], "error"), [0.0, 1.0, 4.0])
    np.testing.assert_array_equal(column(again["shifted"], "error"), [0.0, 1.0, 4.0])
    assert np.isnan(column(again["shifted"], "n_kernels")).all()


def test_table() -> None:
    rows = {"a": [Figures(1.0, 2.0, 0.1, 0.9, math.nan), Figures(3.0, 4.0, 0.3, 0.7, math.nan)]}
    errors = {"a": [("error", column(rows["a"], "error"))]}
    text = figures_table(rows, errors, ".2f", {"b": ("5", "6")})
    assert text.splitlines() == [
        "| method | error | kernels | noise | curve in 90 % | targets in 90 % |",
        "| --- | --- | --- | --- | --- | --- |",
        "| a | 2.00 ± 1 | 3.0 | 0.2 | 0.800 | - |",
        "| published: b | 5 | 6 | - | - | - |",
    ]
