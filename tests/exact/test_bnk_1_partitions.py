"""BNK-1: the Chinese restaurant process against all partitions, also after global proposals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import special, stats

from mercer.spectral.mixture import Mixture, draw_partition
from mercer.spectral.sampler import Proposals, ProposalTuning, propose_all
from support import mixture_cases as partition
from support.mixture_cases import (
    BASES,
    canonical,
    expected_components,
    log_partition_probability,
    partitions,
    seating_log_probability,
)
from support.spectral_joint import _one_frequency
from support.statistics import few_first, tiers

BELL = {1: 1, 2: 2, 3: 5, 4: 15, 5: 52, 6: 203, 7: 877, 8: 4140}


def probabilities(n: int, concentration: float) -> np.ndarray:
    return np.exp([log_partition_probability(np.bincount(z), concentration) for z in partitions(n)])


@pytest.mark.parametrize("concentration", [1e-3, 0.7, 2.0, 300.0])
@pytest.mark.parametrize("n", BELL)
def test_bnk_1_probabilities(n: int, concentration: float) -> None:
    p = probabilities(n, concentration)
    by_seating = np.exp([seating_log_probability(z, concentration) for z in partitions(n)])
    assert len(p) == BELL[n]
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(p, by_seating, atol=1e-12, rtol=0.0)
    n_parts = np.array([max(z) + 1 for z in partitions(n)])
    assert expected_components(n, concentration) == pytest.approx(n_parts @ p, abs=1e-11)


def test_bnk_1_sees_another_factorial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: m! in place of (m - 1)!."""
    gammaln = partition.gammaln
    monkeypatch.setattr(partition, "gammaln", lambda x: gammaln(x + 1.0 if np.ndim(x) else x))
    assert abs(probabilities(5, 0.7).sum() - 1.0) > 0.1


def chi_square(n: int, concentration: float, count: int = 20_000) -> float:
    """Upper tail of drawn partitions against their probabilities."""
    rng = np.random.default_rng(11)
    return tail(n, [canonical(draw_partition(rng, n, concentration)) for _ in range(count)])


def tail(n: int, drawn: list[tuple[int, ...]]) -> float:
    """Upper tail of chi-square of partitions of n against their probabilities."""
    index, count = {z: i for i, z in enumerate(partitions(n))}, len(drawn)
    seen = np.bincount([index[z] for z in drawn], minlength=len(index))
    expected = count * probabilities(n, 1.7)
    assert expected.min() >= 20.0
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(index) - 1))


def test_bnk_1_drawn_partitions() -> None:
    """All 15 partitions of four; false alarm 1e-6."""
    assert chi_square(4, 1.7) > 1e-6


def test_bnk_1_sees_another_concentration() -> None:
    """Mutant: a tenth more; the same for drawn partitions that forget the newest."""
    assert chi_square(4, 1.1 * 1.7) < 1e-6


def after_global_proposals(base: str, share: float, count: int = 6_000, n_anew: int = 0) -> float:
    """Smallest tail of partitions, frequencies and what they are in their components.

    From draws of the prior, three times in a row, each of four proposals is accepted by the toss of
    a coin; or some frequencies are drawn anew together, once. The prior stays as it is.
    """
    mixture, rng = Mixture(BASES[base], 1.7), np.random.default_rng(12)
    tuning, drawn, values = ProposalTuning(0.5, global_share=share), [], []
    for _ in range(count):
        state, W = mixture.draw_prior(rng, 4)
        if n_anew > 0:
            state, W, _ = mixture.propose_anew(rng, state, W, n_anew)
        for _ in range(0 if n_anew else 3):
            proposed = propose_all(rng, mixture, state, W, tuning)
            state, W = proposed.decided(state, W, rng.random(4) < 0.5)
        drawn.append(canonical(state.assignment))
        k = state.assignment[2]
        own = (W[2, 0] - state.means[k, 0]) / state.components.stds[k, 0]
        values.append((special.ndtr(own), _one_frequency(mixture.base, W[2, 0])))
    tails = [stats.kstest(each, "uniform").pvalue for each in np.array(values).T]
    return float(min(tail(4, drawn), *tails))


GLOBAL = [
    ("diagonal, 1 input", 1.0),
    pytest.param("full, 2 inputs", 0.5, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("count", tiers(3_000, 6_000))
@pytest.mark.parametrize(("base", "share"), GLOBAL)
def test_bnk_1_global_proposals_keep_the_prior(base: str, share: float, count: int) -> None:
    """False alarm 6e-6 over both cases; detects partitions a fourteenth more or less probable.

    Of 6000 draws a twentieth.
    """
    assert after_global_proposals(base, share, count) > 1e-6


def offer_no_new_component(monkeypatch: pytest.MonkeyPatch) -> None:
    """Global proposals come from the components that there are."""
    draw = Mixture.draw_pairs

    def drawn(self, rng, state, n):
        return draw(self, rng, dataclasses.replace(state, concentration=1e-9), n)

    monkeypatch.setattr(Mixture, "draw_pairs", drawn)


def forget_the_component(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frequency that moved to another component is still said to belong to its old one."""
    decided = Proposals.decided

    def stay(self, state, frequencies, is_accepted):
        return state, decided(self, state, frequencies, is_accepted)[1]

    monkeypatch.setattr(Proposals, "decided", stay)


class FixedWeights:
    """A generator whose Dirichlet draws are their mean."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def __getattr__(self, name: str):
        return getattr(self._rng, name)

    def dirichlet(self, alpha: np.ndarray) -> np.ndarray:
        return np.asarray(alpha / alpha.sum())


def keep_the_weights_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of components are their shares, and not drawn."""
    draw = Mixture.draw_pairs
    monkeypatch.setattr(
        Mixture, "draw_pairs", lambda self, rng, *rest: draw(self, FixedWeights(rng), *rest)
    )


@pytest.mark.parametrize(
    "mutant", [offer_no_new_component, forget_the_component, keep_the_weights_fixed]
)
def test_bnk_1_global_proposals_see(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert after_global_proposals("diagonal, 1 input", 1.0) < 1e-12


@pytest.mark.parametrize("n_anew", few_first((2, 4), 2))
def test_bnk_1_many_anew_keep_the_prior(n_anew: int) -> None:
    """False alarm 6e-6 over both numbers; detects partitions a fourteenth more or less probable."""
    assert after_global_proposals("diagonal, 1 input", 0.0, 3_000, n_anew) > 1e-6


def test_bnk_1_many_anew_see_no_new_component(monkeypatch: pytest.MonkeyPatch) -> None:
    offer_no_new_component(monkeypatch)
    assert after_global_proposals("diagonal, 1 input", 0.0, 3_000, n_anew=2) < 1e-6
