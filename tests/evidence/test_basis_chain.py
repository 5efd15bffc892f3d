"""Long chains have the posterior of the filter. False alarm below 1e-6 by the stated margins."""

from __future__ import annotations

import numpy as np
import pytest

from reproduce.papers.basis_answer import Problem
from reproduce.papers.basis_chain import learned, long_chains, paper_filter
from reproduce.papers.basis_sinc import WIDTH, sinc_set

DATA = sinc_set(0)
FEW = Problem(DATA.X[:12], DATA.y[:12], DATA.X_test[::100], DATA.y_test[::100], DATA.f_test[::100])


def test_chains_and_one_pass_agree() -> None:
    """On twelve rows a thousand particles are as good as exact: errors of a few thousandths."""
    chains = long_chains(FEW, WIDTH, 1.0, 0, 1200)
    run = learned(
        paper_filter(WIDTH, 1.0, n_particles=1000), FEW.X, FEW.y, np.random.default_rng(1)
    )
    np.testing.assert_allclose(chains.mean, run.mean(FEW.X_test), atol=0.04)
    W, sizes = np.exp(run.state.particles.log_weight), run.state.particles.size
    assert chains.n_kernels == pytest.approx(float(W @ sizes), abs=0.25)
    assert np.all(chains.of_target[0] < chains.of_function[0])
    assert np.all(chains.of_function[1] < chains.of_target[1])


def test_same_seed_same_chains() -> None:
    first, again = (long_chains(FEW, WIDTH, 1.0, 3, 40) for _ in range(2))
    np.testing.assert_array_equal(first.mean, again.mean)
    assert first.n_kernels == again.n_kernels
