"""BNK-2: which frequencies share a component, frequencies given, against all partitions."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.spectral.base_measure import DiagonalBase, FullBase
from mercer.spectral.mixture import Mixture
from support.mixture_cases import BASES, CONCENTRATION, canonical, frequencies, partition_posterior
from support.statistics import largest_z, tiers, z_limit

N_BATCHES = 50
LIMIT = z_limit(N_BATCHES, 4 * 60)  # 240 cells in all: 7.1


def cells_z(case: str, n: int, n_sweeps: int) -> float:
    """Largest z over the partitions that are seen a hundred times on average."""
    base = BASES[case]
    W = frequencies(n, base.n_inputs)
    posterior = partition_posterior(base, W, CONCENTRATION)
    cells = {z: i for i, z in enumerate(z for z, p in posterior.items() if p > 100 / n_sweeps)}
    assert len(cells) <= 60
    mixture = Mixture(base, CONCENTRATION, is_symmetric=False)
    rng = np.random.default_rng(5)
    state = mixture.init(rng, W, np.zeros(n))
    seen = np.zeros((n_sweeps, len(cells)))
    for i in range(n_sweeps):
        state, signs = mixture.step(rng, state, W)
        assert (signs == 1.0).all()
        cell = cells.get(canonical(state.assignment))
        if cell is not None:
            seen[i, cell] = 1.0
    return largest_z(seen, np.array([posterior[z] for z in cells]), N_BATCHES)


@pytest.mark.parametrize("n_sweeps", tiers(3_000, 20_000))
@pytest.mark.parametrize(
    ("case", "n"),
    [
        ("diagonal, 1 input", 5),
        pytest.param("full, 1 input", 6, marks=pytest.mark.slow),
        pytest.param("diagonal, 2 inputs", 6, marks=pytest.mark.slow),
        pytest.param("full, 2 inputs", 5, marks=pytest.mark.slow),
    ],
)
def test_bnk_2_partitions(case: str, n: int, n_sweeps: int) -> None:
    """False alarm 1e-6 over all cells of the four cases; detects 7 standard errors."""
    assert cells_z(case, n, n_sweeps) < LIMIT


@pytest.mark.parametrize(
    "case", ["diagonal, 1 input", pytest.param("full, 2 inputs", marks=pytest.mark.slow)]
)
def test_bnk_2_sees_new_components_from_the_prior(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutant: the parameters of a new component are drawn as if it had no member."""

    def from_prior(self, rng, w, W):
        nobody = np.empty((0, len(w))), np.empty(0, dtype=np.int64)
        return self.draw_components(rng, *nobody, 1).log_densities(W)[:, 0]

    for kind in (DiagonalBase, FullBase):
        monkeypatch.setattr(kind, "log_densities_around", from_prior)
    assert cells_z(case, 5, 6_000) > 1.2 * LIMIT
