from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from mercer.gp.estimator import GPClassifier
from reproduce.papers.gp_cells import Figures, Method, Repeat, Split, column, run_method
from reproduce.papers.gp_part import Part, figures_table, log_score_notes, run_methods
from reproduce.papers.gp_rivals import linear_discriminant
from reproduce.papers.reproduction import Settings

X = np.zeros((3, 1))
Y = np.array([0, 1, 1])


class Says(BaseEstimator):
    """A classifier that gives the second class the probability it was given."""

    def __init__(self, proba: float = 0.8) -> None:
        self.proba = proba

    def fit(self, X: Any, y: Any) -> Says:
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.tile([1.0 - self.proba, self.proba], (len(X), 1))


def says(seed: int, is_quick: bool) -> Says:
    return Says(0.8 if seed == 0 else 0.4)


def two_chains(seed: int, is_quick: bool) -> GPClassifier:
    return GPClassifier(
        kernel="rbf",
        inference="hmc",
        n_chains=2,
        n_draws=8,
        n_warmup=4,
        random_state=seed,
        progress=False,
        standardize=False,
    )


CERTAIN = Method("says", "who says so", says)
FOLDS = [Split(X, Y, X, Y), Split(X, Y, X[:1], Y[:1])]


def test_folds_are_put_together(tmp_path: Path) -> None:
    lines: list[str] = []
    settings = Settings(n_jobs=1, tell=lines.append, folder=tmp_path)
    found = run_method("table", "data", CERTAIN, Repeat(FOLDS, 0), settings)
    assert found.error_rate == pytest.approx(2 / 4)
    assert found.log_score == pytest.approx(-(2 * np.log(0.8) + 2 * np.log(0.2)) / 4)
    assert math.isnan(found.rejected)
    assert found.n_at_a_time == 1
    assert lines == ["data, who says so, repeat 1"]
    assert (tmp_path / "table-parts" / "data-says-0.json").exists()


def test_a_cell_is_run_once(tmp_path: Path) -> None:
    lines: list[str] = []
    settings = Settings(n_jobs=1, tell=lines.append, folder=tmp_path)
    cells = [run_method("t", "d", CERTAIN, Repeat(FOLDS, 0), settings) for _ in range(2)]
    # A nan is no number, and not equal to itself.
    assert column(cells, "cpu_seconds").tolist() == [cells[0].cpu_seconds] * 2
    assert len(lines) == 1


@pytest.mark.slow
def test_folds_side_by_side_say_the_same() -> None:
    rng = np.random.default_rng(2)
    inputs = rng.standard_normal((40, 2))
    labels = (inputs[:, 0] + rng.standard_normal(40) > 0.0).astype(np.int64)
    halves = [np.arange(20), np.arange(20, 40)]
    folds = [Split(inputs[a], labels[a], inputs[b], labels[b]) for a, b in (halves, halves[::-1])]
    method = Method("lda", "LDA", linear_discriminant)
    alone, both = (
        run_method("t", "d", method, Repeat(folds, 1), Settings(n_jobs=n)) for n in (1, 2)
    )
    assert (alone.error_rate, alone.log_score) == (both.error_rate, both.log_score)
    assert (alone.n_at_a_time, both.n_at_a_time) == (1, 2)


def test_a_chain_says_how_often_it_stayed() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((20, 2))
    split = Split(inputs, (inputs[:, 0] > 0).astype(np.int64), inputs[:5], np.zeros(5, np.int64))
    method = Method("gp", "GP", two_chains)
    found = run_method("t", "d", method, Repeat([split], 0), Settings(n_jobs=1))
    assert 0.0 <= found.rejected < 0.9
    assert found.cpu_seconds > 0.0


def test_only_what_is_random_is_repeated_on_the_same_splits() -> None:
    random = Method("r", "random", says, is_random=True)
    slow = Method("s", "slow", says, is_in_quick=False)
    again = [Repeat(FOLDS, seed) for seed in (0, 1)]
    methods, settings = (CERTAIN, random, slow), Settings(n_jobs=1)
    rows = run_methods("t", "d", methods, again, settings)
    assert {name: len(cells) for name, cells in rows.items()} == {
        "who says so": 1, "random": 2, "slow": 1
    }  # fmt: skip
    others = [Repeat(list(FOLDS), seed) for seed in (0, 1)]
    assert len(run_methods("t", "d", methods, others, settings)["who says so"]) == 2
    quick = run_methods("t", "d", methods, again, Settings(is_quick=True, n_jobs=1))
    assert list(quick) == ["who says so", "random"]


def figures(error_rate: float, log_score: float) -> Figures:
    return Figures(error_rate, log_score, math.nan, 1.25, 3.0, 2)


def test_tables_hold_what_was_seen_and_what_was_published() -> None:
    rows = {
        "ours": [figures(66 / 332, 0.4), figures(68 / 332, 0.5)],
        "theirs": [figures(70 / 332, 0.6)],
    }
    part = Part("Pima", "test errors of 332", 332, rows, (), {"ours": 68.0}, {"MARS": 75.0})
    np.testing.assert_array_equal(part.errors["ours"], [66.0, 68.0])
    lines = figures_table(part, number=".2f", has_seconds=True).splitlines()
    assert lines[0] == (
        "| method | test errors of 332 | repeats | log score | CPU s a repeat | published |"
    )
    assert lines[2:] == [
        "| ours | 67.00 ± 1 | 2 | 0.450 ± 0.05 | 1.25 | 68 |",
        "| theirs | 70.00 | 1 | 0.600 | 1.25 | - |",
        "| MARS | not run | - | - | - | 75 |",
    ]
    assert log_score_notes(rows) == (
        "Log score of ours: 0.4500 +- 0.050.",
        "Log score of theirs: 0.6000.",
    )
