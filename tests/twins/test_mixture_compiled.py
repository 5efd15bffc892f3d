"""The compiled loops of the mixture against NumPy, with the same random numbers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from mercer.spectral import loops as compiled
from mercer.spectral.base_measure import DiagonalBase


def plain_seat(first, uniforms, log_densities, log_new, assignment, signs, counts):
    """One frequency after the other: all weights in a row, new components in front."""
    n_signs, n_frequencies, n_slots = log_densities.shape
    for j in range(first, n_frequencies):
        counts[assignment[j]] -= 1
        with np.errstate(divide="ignore"):
            known = np.where(counts > 0, log_densities[:, j] + np.log(counts), -np.inf)
        logs = np.concatenate([np.full(n_signs, log_new[j]), known.ravel()])
        weights = np.exp(logs - logs.max())
        total = np.cumsum(weights)
        place = int(np.searchsorted(total, uniforms[j] * total[-1], side="right"))
        if place < n_signs:
            signs[j], assignment[j] = (1.0, -1.0)[place], int(np.flatnonzero(counts == 0)[0])
            counts[assignment[j]] = 1
            return j
        sign, assignment[j] = divmod(place - n_signs, n_slots)
        signs[j] = (1.0, -1.0)[sign]
        counts[assignment[j]] += 1
    return n_frequencies


def run(loop, n_signs: int, n: int, seed: int, log_new_mean: float) -> list[np.ndarray]:
    """All births of a pass, each followed by new densities of its slot, and what is left."""
    rng = np.random.default_rng(seed)
    n_slots = n + 1
    log_densities = 3.0 * rng.standard_normal((n_signs, n, n_slots)) - 400.0
    log_new = log_new_mean + rng.standard_normal(n) - 400.0
    uniforms = rng.random(n)
    assignment = rng.integers(0, max(n // 3, 1), n)
    counts = np.bincount(assignment, minlength=n_slots)
    log_densities[..., counts == 0] = np.nan  # never looked at
    signs, births, first = np.ones(n), [], 0
    while first < n:
        opened = loop(first, uniforms, log_densities, log_new, assignment, signs, counts)
        births.append(opened)
        first = opened + 1
        if first < n:
            fresh = 3.0 * rng.standard_normal((n_signs, n - first)) - 400.0
            log_densities[:, first:, assignment[opened]] = fresh
    return [np.array(births), assignment, signs, counts]


@pytest.mark.parametrize("log_new_mean", [-30.0, 0.0, 8.0])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
@pytest.mark.parametrize("n_signs", [1, 2])
def test_seat(n_signs: int, n: int, log_new_mean: float) -> None:
    for seed in range(5):
        mine = run(compiled.seat, n_signs, n, seed, log_new_mean)
        plain = run(plain_seat, n_signs, n, seed, log_new_mean)
        for a, b in zip(mine, plain, strict=True):
            np.testing.assert_array_equal(a, b)
        assert mine[3].sum() == n
        np.testing.assert_array_equal(mine[3], np.bincount(mine[1], minlength=n + 1))


def test_the_cases_open_components_and_turn_signs() -> None:
    births, _, signs, _ = run(compiled.seat, 2, 60, 0, 8.0)
    assert 5 < len(births) < 60
    assert 10 < (signs < 0.0).sum() < 50
    assert len(run(compiled.seat, 1, 60, 0, -30.0)[0]) == 1


def test_the_last_uniform_number_and_the_first() -> None:
    """Also where all but one weight are 0, and where the densities differ by 1e300."""
    for u in (0.0, np.nextafter(1.0, 0.0)):
        assignment, counts, signs = np.array([0, 1]), np.array([1, 1, 0]), np.ones(2)
        table = np.array([[[0.0, -1e300, np.nan], [0.0, -1e300, np.nan]]])
        opened = compiled.seat(
            0, np.full(2, u), table, np.full(2, -1e300), assignment, signs, counts
        )
        # The first leaves slot 0 empty: it stands between slot 1 and a new component, level.
        assert opened == (0 if u == 0.0 else 2)
        np.testing.assert_array_equal(assignment, [0, 1] if u == 0.0 else [1, 1])


@pytest.mark.parametrize(("n", "K", "d"), [(1, 1, 1), (7, 3, 2), (40, 5, 10)])
def test_normal_log_densities(n: int, K: int, d: int) -> None:
    rng = np.random.default_rng(n + K + d)
    W, means = rng.standard_normal((n, d)), 3.0 * rng.standard_normal((K, d))
    variances, out = 10.0 ** rng.uniform(-6.0, 3.0, (K, d)), np.empty((n, K))
    compiled.normal_log_densities(W, means, variances, out)
    plain = norm.logpdf(W[:, np.newaxis], means, np.sqrt(variances)).sum(axis=2)
    np.testing.assert_allclose(out, plain, rtol=1e-12)


def test_a_component_far_narrower_than_its_mean() -> None:
    out = np.empty((1, 1))
    given = np.array([[1e8 + 3e-3]]), np.array([[1e8]]), np.array([[1e-6]])
    compiled.normal_log_densities(*given, out)
    np.testing.assert_allclose(out, norm.logpdf(3.0) + np.log(1e3), rtol=1e-4)


@pytest.mark.parametrize("d", [1, 10])
def test_log_densities_around(d: int) -> None:
    """The component is that of `draw_components` from the same stream, which goes on alike."""
    data = np.random.default_rng(d)
    base = DiagonalBase(data.gamma(2.0, 1.0, d), 0.3, 3.7)
    w, W = data.standard_normal(d), data.standard_normal((9, d))
    mine, plain = np.random.default_rng(1), np.random.default_rng(1)
    found = base.log_densities_around(mine, w, W)
    alone = base.draw_components(plain, w[np.newaxis], np.zeros(1, dtype=np.int64), 1)
    np.testing.assert_allclose(found, alone.log_densities(W)[:, 0], rtol=1e-12)
    assert mine.random() == plain.random()
