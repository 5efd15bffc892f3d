"""KGS-16: many rows of four inputs, one of them zero, with labels that contradict each other."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods import label_noise
from mercer.likelihoods.label_noise import LabelNoise
from mercer.sphere.fitting import make_chains
from mercer.sphere.sampler import signed_rows
from mercer.sphere.space import FeatureSpace, FiniteFeatures
from mercer.sphere.tempering import Tempering, measure_noise
from support.sphere_cases import orthant_probability, patterns
from support.statistics import largest_z, pairs_first, tiers, z_limit

INPUTS = np.array([[1.5, 0.2, 0.3], [-0.3, 1.0, 0.4], [0.5, 0.6, -0.8], [0.0, 0.0, 0.0]])
EACH, ONES = 60, (31, 30, 29, 31)  # rows of each input, and how many of them have the label 1
INTO = np.repeat(np.arange(4), EACH)
LABELS = np.concatenate([np.arange(EACH) < count for count in ONES]).astype(np.int64)
N = len(LABELS)
# Also a row that lies farther out, and one on the other side.
X = INPUTS[INTO]
X[[7, 80]] *= [[3.0], [-0.5]]
LABELS[80] = 1 - LABELS[80]
KINDS = {
    "fixed": label_noise.fixed_rate(0.2, N),
    "per class": label_noise.class_rates(np.array([0.2, 0.21]), LABELS),
    "per row": label_noise.row_rates(np.where(np.arange(N) % 2 == 0, 0.15, 0.3)),
    "learned": label_noise.learned_rate((1.0, 3.0), N),
    "learned per class": label_noise.learned_class_rates((1.0, 3.0), LABELS),
}
SAMPLERS = ("auto", "hmc", "lines", "great_circle", "tempered")
N_BATCHES = 20


def exact(noise: LabelNoise) -> tuple[np.ndarray, float]:
    """Share of the wrong rows (n,), and the log evidence: patterns; zero is on either side."""
    sides = patterns(4)
    signs = np.where(sides[:, :3], 1.0, -1.0)
    lengths = np.linalg.norm(INPUTS[:3], axis=1)
    R = INPUTS[:3] @ INPUTS[:3].T / np.outer(lengths, lengths)
    prior = 0.5 * orthant_probability(R * signs[:, :, None] * signs[:, None, :])
    side = sides[:, INTO]
    side[:, 80] = ~side[:, 80]
    is_wrong = side != (LABELS == 1)
    log_joint = np.log(prior) + noise.log_no_errors - noise.cost(is_wrong)
    total = float(np.logaddexp.reduce(log_joint))
    return np.exp(log_joint - total) @ is_wrong, total


def chain(noise: LabelNoise, sampler: str, n_steps: int) -> np.ndarray:
    """Wrong rows after each step, (n_steps, n)."""
    space = FeatureSpace(FiniteFeatures(None, 1.0, 0.0), X)
    chains = make_chains(space, LABELS, noise, sampler, np.arange(3), 50)
    rng = np.random.default_rng(3)
    state, seen = chains.sampler.init(rng), []
    for _ in range(n_steps):
        state, _ = chains.sampler.step(rng, state)
        seen.append(chains.sampler.record(state)["is_wrong"])
    return np.array(seen)


def largest(noise: LabelNoise, sampler: str, n_steps: int) -> float:
    """Largest |t| over four rows, one of each input."""
    rows = [0, 100, 170, 200]
    return largest_z(
        1.0 * chain(noise, sampler, n_steps)[:, rows], exact(noise)[0][rows], N_BATCHES
    )


@pytest.mark.parametrize("count", tiers(3000, 20_000))
@pytest.mark.parametrize(
    ("kind", "sampler"),
    pairs_first({kind: kind for kind in KINDS}, {name: name for name in SAMPLERS}),
)
def test_kgs_16_wrong_rows(kind: str, sampler: str, count: int) -> None:
    """False alarm 1e-6 over kinds and samplers."""
    limit = z_limit(N_BATCHES, 4 * len(KINDS) * len(SAMPLERS))
    assert largest(KINDS[kind], sampler, count) < limit


@pytest.mark.parametrize("kind", KINDS)
def test_kgs_16_wrong_are_the_rows_behind_their_wall(kind: str) -> None:
    """Copies agree in every draw."""
    is_one = chain(KINDS[kind], "auto", 200) != (LABELS == 0)
    is_one[:, 80] = ~is_one[:, 80]
    for wall in range(4):
        own = is_one[:, wall == INTO]
        np.testing.assert_array_equal(own, np.broadcast_to(own[:, :1], own.shape))


@pytest.mark.parametrize("kind", KINDS)
def test_kgs_16_evidence(kind: str) -> None:
    """False alarm 1e-6 over the kinds."""
    noise, L = KINDS[kind], signed_rows(FiniteFeatures(None, 1.0, 0.0)(X), LABELS)
    seen = [
        measure_noise(np.random.default_rng(s), L, noise, Tempering(24, 100)) for s in range(20)
    ]
    values = np.array(seen)[:, :1]
    assert largest_z(values, np.array([exact(noise)[1]]), 20) < z_limit(20, len(KINDS))


def test_kgs_16_sees_contradictions_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """All copies of a row have its label."""
    merge = LabelNoise.merged
    monkeypatch.setattr(
        LabelNoise,
        "merged",
        lambda noise, into, is_opposite: merge(noise, into, is_opposite & False),
    )
    limit = z_limit(N_BATCHES, 4 * len(KINDS) * len(SAMPLERS))
    assert largest(KINDS["learned"], "auto", 3000) > 2.0 * limit
