"""SMC-15: sums that forget, and the evidence of what is left."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.basis.model import Schedule
from support import basis_mutants
from support.basis_cases import make_filter, plain_design, plain_statistics, problem
from support.basis_runs import MORE_RUNS, N_RUNS, excess
from support.basis_sums import sums_of

CASES = ["forgetting", "forgetting, all else"]


@pytest.mark.parametrize("name", CASES)
def test_smc_15(name: str) -> None:
    """Against quadrature over the weighted sums. False alarm 1e-6 each; detects 13 %."""
    evidence, cells = excess(name, N_RUNS)
    assert evidence < 1.0
    assert cells < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_smc_15_with_more_runs(name: str) -> None:
    """False alarm 1e-6 each; detects 2.5 %."""
    assert max(excess(name, MORE_RUNS, seed=1)) < 1.0


@pytest.mark.parametrize("name", CASES)
def test_smc_15_sees_weights_that_stay(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio of targets left out: 0.2 in place of 1."""
    basis_mutants.forget_the_discount(monkeypatch)
    assert max(excess(name, 100)) > 1.5


@pytest.mark.parametrize("variances", ["integrated", "sampled"])
@pytest.mark.parametrize("retention", [0.7, 0.9])
@pytest.mark.parametrize(("n_eager", "block"), [(64, 8), (4, 4), (0, 2), (6, 3)])
def test_smc_15_sums(n_eager: int, block: int, retention: float, variances: str) -> None:
    """After every row the sums are the direct weighted ones, to 1e-10."""
    schedule = Schedule(n_eager=n_eager, block=block, n_redraws=1, n_changes=1)
    filter_ = make_filter(
        retention=retention, schedule=schedule, variances=variances, n_particles=5
    )
    X, y = problem(13)
    rng = np.random.default_rng(0)
    state = filter_.init(rng)
    for t in range(len(X)):
        state, _ = filter_.learn(rng, state, X[t], float(y[t]))
        expected = plain_statistics(plain_design(filter_, X[: t + 1]), y[: t + 1])
        found, C = sums_of(state), expected.gram.shape[1]
        np.testing.assert_allclose(found.gram[:, :C, :C], expected.gram, atol=1e-10)
        np.testing.assert_allclose(found.moment[:, :C], expected.moment, atol=1e-10)
        np.testing.assert_allclose(found.square, expected.square, rtol=1e-10)
        np.testing.assert_allclose(found.n_rows, expected.n_rows, rtol=1e-12)
        assert found.n_candidates == t + 1
