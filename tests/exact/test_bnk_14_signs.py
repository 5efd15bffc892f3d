"""BNK-14: assignments and signs, frequencies given up to sign, against all of them."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.spectral import mixture as gibbs
from mercer.spectral.mixture import Mixture
from support.mixture_cases import BASES, CONCENTRATION, canonical, frequencies, signed_posterior
from support.statistics import few_first, largest_z, tiers, z_limit

N_BATCHES, M = 50, 3
CASES = ["diagonal, 2 inputs", "full, 2 inputs"]
LIMIT = z_limit(N_BATCHES, 2 * 40)  # 5 partitions times 8 signs


def signs_z(case: str, n_sweeps: int) -> float:
    """Largest z over the cells (Z, signs) that are seen thirty times on average."""
    base = BASES[case]
    W = frequencies(M, base.n_inputs, seed=3)
    posterior = signed_posterior(base, W, CONCENTRATION)
    cells = {
        key: i for i, key in enumerate(key for key, p in posterior.items() if p > 30 / n_sweeps)
    }
    mixture, rng = Mixture(base, CONCENTRATION), np.random.default_rng(7)
    state, total = mixture.init(rng, W, np.zeros(M)), np.ones(M)
    seen = np.zeros((n_sweeps, len(cells)))
    for i in range(n_sweeps):
        state, signs = mixture.step(rng, state, total[:, np.newaxis] * W)
        total *= signs
        cell = cells.get((canonical(state.assignment), tuple(total.astype(int))))
        if cell is not None:
            seen[i, cell] = 1.0
    return largest_z(seen, np.array([posterior[key] for key in cells]), N_BATCHES)


@pytest.mark.parametrize("n_sweeps", tiers(1_500, 6_000))
@pytest.mark.parametrize("case", few_first(CASES, "full, 2 inputs"))
def test_bnk_14_assignments_and_signs(case: str, n_sweeps: int) -> None:
    """False alarm 1e-6 over all cells; detects 7 standard errors."""
    assert signs_z(case, n_sweeps) < LIMIT


def forget_the_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Assignments are drawn with signs, which are then ignored."""
    reseat = gibbs.reseat

    def without(rng, base, components, assignment, concentration, W, is_symmetric):
        Z, signs = reseat(rng, base, components, assignment, concentration, W, is_symmetric)
        return Z, np.ones_like(signs)

    monkeypatch.setattr(gibbs, "reseat", without)


def turn_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the signs that were drawn are turned round, at random."""
    reseat = gibbs.reseat

    def at_random(rng, *rest):
        Z, signs = reseat(rng, *rest)
        return Z, signs * np.where(rng.random(len(signs)) < 0.5, 1.0, -1.0)

    monkeypatch.setattr(gibbs, "reseat", at_random)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("mutant", [forget_the_signs, turn_at_random])
def test_bnk_14_sees(mutant, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert signs_z(case, 2_500) > 1.5 * LIMIT
