"""SMC-11: the evidence where the prior of the number of centres is cut, and grows with the rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.basis.model import SetPrior
from support import basis_mutants
from support.basis_enumeration import log_set_prior
from support.basis_runs import MORE_RUNS, N_RUNS, excess

CASES = ["poisson, cut", "negative binomial, cut"]


@pytest.mark.parametrize("name", CASES)
def test_smc_11(name: str) -> None:
    """k_max = 2, six rows. False alarm 1e-6 each; detects 25 % and 10 %."""
    evidence, cells = excess(name, N_RUNS)
    assert evidence < 1.0
    assert cells < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_smc_11_with_more_runs(name: str) -> None:
    """False alarm 1e-6 each; detects 5 %."""
    assert max(excess(name, MORE_RUNS, seed=1)) < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_smc_11_sees_a_prior_that_is_not_normalised(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Z_{t-1} / Z_t left out: 13 (Poisson) and 2.1 (negative binomial) in place of 1."""
    basis_mutants.forget_the_constant(monkeypatch)
    assert max(excess(name, 100)) > 1.5


@pytest.mark.parametrize("kind", ["poisson", "negative_binomial"])
@pytest.mark.parametrize(("largest", "expected"), [(1, 0.5), (3, 20.0), (50, 2.0)])
def test_smc_11_prior_of_sets(kind: str, largest: int, expected: float) -> None:
    """Sizes by the library's densities; all sets together have probability 1."""
    sets = SetPrior(kind, expected, largest)
    for r in range(8):
        own = sets.log_size(r)
        each = log_set_prior(kind, expected, largest, r)
        sizes = np.array([mask.bit_count() for mask in range(1 << r)])
        np.testing.assert_allclose(own[np.minimum(sizes, largest + 1)], each, rtol=1e-12)
        np.testing.assert_allclose(np.exp(each).sum(), 1.0, rtol=1e-12)
        assert own.shape == (largest + 2,)
        assert np.all(own[min(r, largest) + 1 :] == -np.inf)
