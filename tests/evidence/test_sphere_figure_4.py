from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import nnls

from mercer.sphere.sampler import signed_rows
from reproduce.papers import sphere_figure_4
from reproduce.papers.reproduction import Settings, write_reproduction
from reproduce.papers.sphere_figure_4 import _comparison, soft_margin
from reproduce.papers.sphere_problems import sphere_rows


@pytest.mark.parametrize("penalty", [0.01, 0.1, 100.0])
def test_soft_margin_is_the_hard_margin_with_a_penalty_on_the_diagonal(penalty: float) -> None:
    """The nearest point to 0 of the hull of the rows [y x, sqrt(lambda) e_i]."""
    rng = np.random.default_rng(1)
    X, labels = sphere_rows(rng, 40, 0.1)
    S = signed_rows(X, labels)
    A = np.vstack([S.T, np.sqrt(penalty) * np.eye(40), np.ones(40)])
    a, _ = nnls(A, np.append(np.zeros(43), 1.0))
    X_test, _ = sphere_rows(rng, 20, 0.0)
    expected, values = X_test @ (S.T @ a), soft_margin(X, labels, X_test, penalty)
    assert values / np.linalg.norm(values) == pytest.approx(
        expected / np.linalg.norm(expected), abs=1e-5
    )


@pytest.mark.parametrize(
    ("gap", "verdict"), [(-1.0, "holds"), (-0.01, "not judged"), (0.5, "fails")]
)
def test_the_least_favourable_penalty_decides(gap: float, verdict: str) -> None:
    noise = np.array([-0.1, 0.1, 0.2, -0.2])
    theirs = np.column_stack([7.0 + noise, 6.0 - noise])
    bayes = theirs + np.array([-3.0, gap]) + noise[:, np.newaxis]
    claim = _comparison("words", bayes, theirs, "yes")
    assert claim.verdict == verdict
    assert f"difference at most {gap:+.2f}" in claim.ours


def test_one_column_is_paired_with_every_penalty() -> None:
    theirs = np.array([[6.0, 7.0], [7.0, 8.0]])
    assert _comparison("words", np.array([[5.0], [6.1]]), theirs, "yes").verdict == "holds"


def test_spread_over_rates_is_judged() -> None:
    flat = np.full((3, 10), 5.7)
    spread = flat + np.linspace(0.0, 0.4, 10)
    verdicts = []
    for bayes in (flat, spread):
        wide = np.full((3, 6), 6.1)
        errors = sphere_figure_4._Errors(bayes, flat, flat, wide, bayes[:, :1], wide)
        verdicts.append(sphere_figure_4._claims(errors)[3].verdict)
    assert verdicts == ["holds", "fails"]


def test_drawn_classifiers_have_rows_of_both_classes() -> None:
    errors = [sphere_figure_4._drawn_errors(repeat) for repeat in range(2)]
    assert [len(part) for part in errors[0]] == [1, len(sphere_figure_4._PENALTIES)]
    assert not np.array_equal(errors[0][1], errors[1][1])


def test_run_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three levels and short chains."""
    monkeypatch.setattr(sphere_figure_4, "_LEVELS", np.array([0.02, 0.05, 0.1]))
    monkeypatch.setattr(sphere_figure_4, "_N_DRAWS", 20)
    outcome = sphere_figure_4.reproduce(Settings(is_quick=True))
    assert len(outcome.claims) == 6
    assert len(outcome.measured["Bayes point, q = 0.05"]) == 40
    assert 4.0 < outcome.measured["Bayes point, q = 0.05"].mean() < 8.0
    assert write_reproduction(outcome, tmp_path)[2].read_bytes().startswith(b"\x89PNG")
