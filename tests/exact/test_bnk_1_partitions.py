"""BNK-1: the Chinese restaurant process against all partitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from mercer.spectral.mixture import draw_partition
from support import mixture_cases as partition
from support.mixture_cases import (
    canonical,
    expected_components,
    log_partition_probability,
    partitions,
    seating_log_probability,
)

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
    index = {z: i for i, z in enumerate(partitions(n))}
    drawn = [index[canonical(draw_partition(rng, n, concentration))] for _ in range(count)]
    seen = np.bincount(drawn, minlength=len(index))
    expected = count * probabilities(n, 1.7)
    assert expected.min() >= 20.0
    return float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(index) - 1))


def test_bnk_1_drawn_partitions() -> None:
    """All 15 partitions of four; false alarm 1e-6."""
    assert chi_square(4, 1.7) > 1e-6


def test_bnk_1_sees_another_concentration() -> None:
    """Mutant: a tenth more; the same for drawn partitions that forget the newest."""
    assert chi_square(4, 1.1 * 1.7) < 1e-6
