"""BNK-20: simulation-based calibration of chains as a fit runs them, from their own start.

Kernel, spectrum, function and noise are drawn from the prior and targets given them; among the
draws of a chain that has seen the targets alone, the truth has a uniform rank (Talts, Betancourt,
Simpson, Vehtari & Gelman 2018). The joint tests (BNK-6, BNK-12) start where the truth is and see a
wrong step; here the start is that of `init`, so that a chain which does not arrive is seen, too.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from mercer.spectral import class_sampler
from mercer.spectral import sampler as spectral_sampler
from support import spectral_cases, spectral_class_cases
from support.mixture_cases import BASES
from support.spectral_cases import drawn_coef, make_spectral, plain_design
from support.spectral_class_cases import make_classes
from support.statistics import dkw_distance, dkw_limit

M, N, N_DRAWS, N_STATISTICS = 6, 25, 31, 8
# Base of the mixture, whether targets are classes, sweeps a draw: ranks among draws that hang
# together are too often the first or the last, by .13 at 5 sweeps of two inputs.
CASES = {
    "numbers, 1 input": ("diagonal, 1 input", False, 5),
    "numbers, 2 inputs": ("full, 2 inputs", False, 20),
    "classes, 1 input": ("diagonal, 1 input", True, 5),
    "classes, 2 inputs": ("full, 2 inputs", True, 10),
}


def make(case: str) -> Any:
    """The sampler of a case with all moves of a fit; its targets are still to be drawn."""
    name, is_class, _ = CASES[case]
    base = BASES[name]
    X = 1.5 * np.random.default_rng(42).standard_normal((N, base.n_inputs))
    common: dict[str, Any] = {"base": base, "n_frequencies": M, "global_share": 0.5}
    if is_class:
        return make_classes(X, np.zeros(N), n_leapfrog=5, carries=True, **common)
    return make_spectral(X, np.zeros(N), carries=True, **common)


def looked_at(sampler: Any, state: Any, is_class: bool) -> np.ndarray:
    """Kernel at three lags, spectrum, function at three places, and the noise (N_STATISTICS,)."""
    W, d = state.frequencies, state.frequencies.shape[1]
    lags = np.outer([0.3, 0.8, 2.0], np.ones(d)) / np.sqrt(d)
    kernel = np.cos(lags @ W.T).mean(axis=1)
    spread = np.log(np.linalg.norm(W, axis=1)).mean()
    places = np.vstack([sampler.rows.X[:2], np.full((1, d), 1.0)])
    coef = state.coef[0] if is_class else drawn_coef(state)
    function = plain_design(W, places, sampler.rows.has_linear_part) @ coef
    last = np.log(state.ridge[0]) if is_class else state.coef.noise_variance
    return np.array([*kernel, spread, *function, last])


def distances(case: str, n_sets: int, n_burn: int, thin: int, seed: int = 71) -> np.ndarray:
    """Largest difference of the distribution of ranks from uniform, by statistic."""
    rng, is_class = np.random.default_rng(seed), CASES[case][1]
    draw = (spectral_class_cases if is_class else spectral_cases).draw_joint
    ranks = np.empty((n_sets, N_STATISTICS))
    for k in range(n_sets):
        sampler, truth = draw(rng, make(case))
        state, drawn = sampler.init(rng), []
        for i in range(n_burn + N_DRAWS * thin):
            state, _ = sampler.step(rng, state)
            if i >= n_burn and (i - n_burn + 1) % thin == 0:
                drawn.append(looked_at(sampler, state, is_class))
        below = (np.array(drawn) < looked_at(sampler, truth, is_class)).sum(axis=0)
        ranks[k] = (below + rng.random(N_STATISTICS)) / (N_DRAWS + 1)
    return np.array([dkw_distance(u, lambda x: x) for u in ranks.T])


def limit(n_sets: int) -> float:
    """False alarm 1e-6 over all statistics of all cases."""
    return dkw_limit(n_sets, N_STATISTICS * len(CASES))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_bnk_20_ranks_of_the_truth_are_uniform(case: str) -> None:
    """False alarm 1e-6 over the 32 distances of 200 data sets; detects 0.4."""
    found = distances(case, 200, n_burn=100, thin=CASES[case][2])
    assert found.max() < limit(200), found


@pytest.mark.slow
@pytest.mark.parametrize("case", ["numbers, 2 inputs", "classes, 2 inputs"])
def test_bnk_20_sees_chains_that_stay_near_their_start(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No proposal is taken, and nothing else moves a frequency by much."""
    home, name = (
        (class_sampler, "decide_together") if CASES[case][1] else (spectral_sampler, "decide")
    )
    decide = getattr(home, name)
    monkeypatch.setattr(home, name, lambda joint, u, *rest: decide(joint, u + 1e9, *rest))
    still = {"carries": False} | ({"n_leapfrog": 0} if CASES[case][1] else {})
    plain = dataclasses.replace(make(case), **still)
    monkeypatch.setitem(globals(), "make", lambda _: plain)
    found = distances(case, 40, n_burn=4, thin=1)
    assert found[:4].max() > 1.2 * limit(200), found
