"""Conjugate gradients against Cholesky factors, and what is made of the seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer.gp.laplace import fit_laplace
from reproduce.papers import gp_claims
from reproduce.papers.gp_claims import CG, CHOLESKY, STARTS, find_mode, problem
from reproduce.papers.reproduction import Settings, write_reproduction

N = 60


@pytest.mark.parametrize("solve", [gp_claims.solve_by_factor, gp_claims.solve_by_cg])
@pytest.mark.parametrize("is_warm", [False, True])
def test_both_find_the_mode(solve, is_warm: bool) -> None:
    before, K, y = problem(N)
    start = find_mode(before, y, gp_claims.solve_by_factor) if is_warm else None
    found = find_mode(K, y, solve, start)
    np.testing.assert_allclose(found.f, fit_laplace(K, y).f, atol=1e-6)
    assert np.abs(K @ found.a - found.f).max() == 0.0


def test_conjugate_gradients_begin_where_they_are_told() -> None:
    _, K, y = problem(N)
    root, rhs = np.full(N, 0.5), y - 0.5
    cold, n_cold = gp_claims.solve_by_cg(K, root, rhs, np.zeros(N))
    np.testing.assert_allclose(cold, gp_claims.solve_by_factor(K, root, rhs, rhs)[0], atol=1e-6)
    again, n_warm = gp_claims.solve_by_cg(K, root, rhs, cold)
    assert n_warm == 1 < n_cold
    np.testing.assert_array_equal(again, cold)


@pytest.mark.parametrize(("seconds", "verdict"), [(1.0, "holds"), (1.1, "fails")])
def test_an_order_of_magnitude_is_ten_times(seconds: float, verdict: str) -> None:
    row = {CHOLESKY: {"seconds": [9.0, 10.0, 99.0]}, CG: {"seconds": [seconds] * 3}}
    small = {start: {**row} for start in STARTS}
    slow = {start: {**row, CG: {"seconds": [10.0]}} for start in STARTS}
    claims = gp_claims._claims({200: small, 500: slow}, Settings())
    assert [claim.verdict for claim in claims] == [verdict] * 2
    assert claims[0].ours.endswith("n = 500: 1.0 times")


def test_a_quick_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gp_claims, "_QUICK_SIZES", (40, 60))
    outcome = gp_claims.reproduce(Settings(is_quick=True))
    assert len(outcome.measured) == 2 * (3 + 2)
    assert [claim.verdict for claim in outcome.claims] == ["not judged"] * 2
    paths = write_reproduction(outcome, tmp_path)
    assert "| 40 | from the last mode | conjugate gradients |" in paths[1].read_text()
    assert paths[2].read_bytes().startswith(b"\x89PNG")
