"""SMC-3, SMC-4: the estimated evidence is unbiased, and so is that of every level and set."""

from __future__ import annotations

import pytest

from mercer.basis import model
from support import basis_mutants
from support.basis_runs import MORE_RUNS, N_RUNS, excess

CASES = ["integrated", "sampled", "linear part, two scalings", "scalings shaped by rows", "blocks"]


@pytest.mark.parametrize("name", CASES)
def test_smc_3_and_4(name: str) -> None:
    """False alarm 1e-6 for the evidence and 1e-6 over the cells; detects 17 % (blocks 50 %)."""
    evidence, cells = excess(name, N_RUNS)
    assert evidence < 1.0
    assert cells < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_smc_3_and_4_with_more_runs(name: str) -> None:
    """False alarm 1e-6 each; detects 3 % (3000 runs)."""
    evidence, cells = excess(name, MORE_RUNS, seed=1)
    assert evidence < 1.0
    assert cells < 1.0


@pytest.mark.parametrize("mutant", ["printed_weight", "stale_target", "weigh_nothing"])
def test_smc_3_sees(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """E[Zhat] / Z is 0.04 without the ways back, and 1.5 with stale targets."""
    getattr(basis_mutants, mutant)(monkeypatch)
    # With the default's wide priors six rows weigh particles too evenly to tell.
    monkeypatch.setattr(model, "_NOISE", (1.25, 0.0625))
    monkeypatch.setattr(model, "_SCALE", (0.5, 0.5))
    assert max(excess("integrated", 100)) > 1.5
