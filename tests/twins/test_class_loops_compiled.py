"""Compiled loops of the filter of two classes against NumPy, with the same random stream."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.special import log_expit

from mercer.basis.class_filter import ClassParticles, ClassPrior, Labels
from mercer.basis.class_loops import (
    _fill_white,
    _log_likelihood,
    admit,
    eliminate_mean,
    fill_latent,
    fill_log_likelihood,
    move_particles,
    retire,
    weigh_row,
)
from mercer.basis.model import SetPrior
from support.class_twins import Approximated, plain_admit, plain_move, plain_retire

N, N_ROWS, L, R, K_MAX = 12, 15, 3, 7, 3


def problem(seed: int, m: int, n_candidates: int) -> tuple[np.ndarray, ClassPrior, ClassParticles]:
    """A design with spare columns and rows, and particles on the first candidates."""
    rng = np.random.default_rng(seed)
    design = rng.random((L, m + R, N_ROWS + 4))
    design[:, 0] = 1.0
    sizes = rng.integers(0, min(K_MAX, n_candidates) + 1, N)
    members = np.array([m + rng.permutation(n_candidates)[:K_MAX] for _ in range(N)])
    weights = rng.random(N)
    particles = ClassParticles(
        sizes,
        members,
        rng.integers(0, L, N),
        0.5 + rng.random(N),
        rng.standard_normal((N, m + K_MAX)),
        np.log(weights / weights.sum()),
        np.zeros(N),
        np.arange(N),
    )
    return design, ClassPrior(2.0, 3.0, 0.3, 0.7, m), particles


def assert_same(a: ClassParticles, b: ClassParticles, m: int) -> None:
    assert a.size.tolist() == b.size.tolist()
    assert a.level.tolist() == b.level.tolist()
    np.testing.assert_allclose(a.scale, b.scale, rtol=1e-9)
    np.testing.assert_allclose(a.log_weight, b.log_weight, atol=1e-10)
    for i, k in enumerate(a.size):
        assert a.members[i, :k].tolist() == b.members[i, :k].tolist()
        np.testing.assert_allclose(a.beta[i, : m + k], b.beta[i, : m + k], atol=1e-9)


def approximated(seed: int, m: int) -> tuple[tuple, Approximated, ClassPrior, ClassParticles]:
    """Arguments of the loops by approximation, their twin's model, and particles."""
    design, prior, particles = problem(seed, m, 5)
    rng = np.random.default_rng(seed + 50)
    sign, omega = rng.choice([-1.0, 1.0], N_ROWS + 4), 0.05 + 0.2 * rng.random(N_ROWS)
    moment = design[:, :, :N_ROWS] @ (0.5 * sign[:N_ROWS] + 0.1 * omega)
    near = Approximated(prior, design, sign, omega, moment, N_ROWS)
    products, moments = near.gram.copy(), moment.copy()
    for level in range(L):
        eliminate_mean(prior, products[level], moments[level], m + R)
    labels = Labels(sign, np.zeros(0))
    fill_log_likelihood(design, labels, N_ROWS, m, particles)
    sums = (design, labels, products, moments, N_ROWS, prior)
    return sums, near, prior, particles


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_moves(seed: int, m: int) -> None:
    sums, near, prior, mine = approximated(seed, m)
    theirs = copy.deepcopy(mine)
    log_size = SetPrior("poisson", 2.0, K_MAX).log_size(5)
    rngs = [np.random.default_rng(seed + 100) for _ in range(2)]
    for _ in range(3):
        move_particles(rngs[0], *sums, log_size, L, 5, 2, mine, 0, N)
        plain_move(rngs[1], near, prior, log_size, L, 5, 2, theirs)
    assert_same(mine, theirs, m)


@pytest.mark.parametrize("seed", range(4))
def test_candidates(seed: int) -> None:
    sums, near, prior, mine = approximated(seed, 2)
    theirs, sets = copy.deepcopy(mine), SetPrior("negative_binomial", 3.0, K_MAX)
    rngs = [np.random.default_rng(seed) for _ in range(2)]
    log_sizes, new = np.array([sets.log_size(r) for r in (5, 6, 7)]), 2 + np.array([5, 6])
    gain = admit(rngs[0], *sums, log_sizes, new, mine)
    plain = plain_admit(rngs[1], near, prior, log_sizes, new, theirs)
    assert gain == pytest.approx(plain, abs=1e-10)
    assert_same(mine, theirs, 2)
    log_sizes, old = np.array([sets.log_size(r) for r in (7, 6, 5)]), 2 + np.array([6, 1])
    gain = retire(*sums, log_sizes, old, mine)
    plain = plain_retire(near, prior, log_sizes, old, theirs)
    assert gain == pytest.approx(plain, abs=1e-10)
    assert_same(mine, theirs, 2)


def test_rows() -> None:
    design, _, particles = problem(9, 2, 5)
    rows, f = np.ascontiguousarray(design[:, :, 3]), np.empty(N)
    fill_latent(rows, 2, particles, f)
    log_weight = particles.log_weight.copy()
    gain = weigh_row(f, -1.0, 1.0, particles)
    for i, k in enumerate(particles.size):
        columns = [0, 1, *particles.members[i, :k]]
        assert f[i] == pytest.approx(particles.beta[i, : 2 + k] @ rows[particles.level[i], columns])
    expected = np.logaddexp.reduce(log_weight + log_expit(-f))
    assert gain == pytest.approx(expected, abs=1e-12)
    assert weigh_row(f, -1.0, -1.0, particles) == pytest.approx(-gain, abs=1e-12)
    np.testing.assert_allclose(particles.log_weight, log_weight, atol=1e-12)
    np.testing.assert_allclose(particles.log_likelihood, 0.0, atol=1e-12)


def test_a_latent_value_far_out_is_weighed() -> None:
    particles = problem(9, 2, 5)[2]
    particles.log_weight[:] = -np.log(N)
    far = np.where(np.arange(N) == 0, 1e5, -1e5)
    assert weigh_row(far, 1.0, 1.0, particles) == pytest.approx(-np.log(N))
    assert particles.log_weight.tolist() == [0.0] + [-1e5] * (N - 1)


def test_a_log_likelihood_is_that_of_scipy() -> None:
    """By powers from a table: rows far out, and more of them than are multiplied at once."""
    rng = np.random.default_rng(3)
    f = np.concatenate([rng.standard_normal(2000) * 10.0, [0.0, 1e-9, 39.99, 40.1, 1e5]])
    sign = rng.choice([-1.0, 1.0], len(f))
    for n in (1, 511, 512, 513, len(f)):
        found = _log_likelihood(Labels(sign, np.zeros(0)), n, f)
        assert found == pytest.approx(log_expit(sign * f)[:n].sum(), rel=1e-14)


def test_a_product_does_not_depend_on_where_its_arrays_lie() -> None:
    """A sum that is added up in memory is taken in another order where its neighbours may be it."""
    rng, P, p = np.random.default_rng(0), 53, 49
    U, beta, room, found = rng.normal(size=(P, P)), rng.normal(size=P), np.empty(4000), set()
    for gap in range(40):
        z = room[:p]
        there = room[p + gap : p + gap + P * P].reshape(P, P)
        there[:] = U
        _fill_white(there, p, beta, z)
        found.add(z.tobytes())
    assert len(found) == 1
    np.testing.assert_allclose(z, np.triu(U)[:p, :p] @ beta[:p], atol=1e-12)
