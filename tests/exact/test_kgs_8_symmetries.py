"""KGS-8: what must not change: signs, scales, the order of rows, rows that are there twice."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import LabelNoise, class_rates, fixed_rate, row_rates
from mercer.sphere import tempering as ladder
from mercer.sphere.sampler import Moves, SphereModel
from mercer.sphere.space import spectrum_of
from mercer.sphere.tempering import Tempering, climb_errors
from support.lift_cases import cells_excess, trajectory
from support.sphere_cases import (
    noises,
    noisy_gram,
    noisy_rows,
    pattern_posterior,
    patterns,
    signed,
)
from support.statistics import few_first, z_limit

N, R = 12, 3
KINDS = noises(N)
NAMES = [("hmc",), ("lines",), ("great_circle",), ("hmc", "lines", "great_circle")]
each_cycle = pytest.mark.parametrize("names", NAMES, ids="+".join)


def problem(kind: str = "fixed") -> tuple[SphereModel, np.ndarray, np.ndarray, np.ndarray]:
    """A model that is right where it must be, a point, velocities of ten passes, directions."""
    rng, noise = np.random.default_rng(60), KINDS[kind]
    L, g = noisy_rows(N, R), rng.standard_normal(R)
    L[noise.row_cost >= 1e6] *= np.sign(L[noise.row_cost >= 1e6] @ g)[:, np.newaxis]
    return SphereModel(L, noise), g, rng.standard_normal((10, 3, R)), rng.standard_normal((2, R))


def passes(model: SphereModel, names, g, Z, D, seed: int = 61) -> np.ndarray:
    """[f; g] after each of ten passes with given velocities and directions."""
    rng, moves = np.random.default_rng(seed), Moves(names, 0.7, model.extended(D))
    point, seen = model.point(g), []
    for drawn in Z:
        ahead = model.extended(drawn[: moves.n_drawn])
        point, _ = moves.apply(rng, model, model.noise, point, ahead)
        seen.append(point)
    return np.array(seen)


@each_cycle
@pytest.mark.parametrize("kind", KINDS)
def test_kgs_8_labels_turned_round(names, kind: str) -> None:
    """y -> -y: the same chain with -g in the place of g, to the last bit."""
    model, g, Z, D = problem(kind)
    turned = SphereModel(-model.L, model.noise)
    seen, mirrored = passes(model, names, g, Z, D), passes(turned, names, -g, -Z, -D)
    np.testing.assert_array_equal(mirrored[:, :N], seen[:, :N])
    np.testing.assert_array_equal(mirrored[:, N:], -seen[:, N:])
    assert np.ptp(seen[:, N]) > 0.1


@each_cycle
def test_kgs_8_longer_rows(names) -> None:
    """G -> 4 G: the same draws; but for the distance 1e-12 of a row from its wall."""
    model, g, Z, D = problem()
    longer = passes(SphereModel(2.0 * model.L, model.noise), names, g, Z, D)
    expected = passes(model, names, g, Z, D)
    np.testing.assert_allclose(longer[:, :N], 2.0 * expected[:, :N], atol=1e-6)
    np.testing.assert_allclose(longer[:, N:], expected[:, N:], atol=1e-6)


@each_cycle
@pytest.mark.parametrize("kind", ["fixed", "per row", "learned"])
def test_kgs_8_order_of_rows(names, kind: str) -> None:
    model, g, Z, D = problem(kind)
    rows = np.random.default_rng(62).permutation(N)
    noise = KINDS[kind] if kind != "per row" else row_rates(KINDS[kind].rates[rows])
    permuted = passes(SphereModel(model.L[rows], noise), names, g, Z, D)
    expected = passes(model, names, g, Z, D)
    np.testing.assert_allclose(permuted[:, N:], expected[:, N:], atol=1e-6)
    np.testing.assert_allclose(permuted[:, :N], expected[:, rows], atol=1e-6)


@each_cycle
def test_kgs_8_a_rotation_of_the_feature_space(names) -> None:
    """Only G counts, not the root of it that is taken."""
    model, g, Z, D = problem()
    Q = np.linalg.qr(np.random.default_rng(63).standard_normal((R, R)))[0]
    turned = passes(SphereModel(model.L @ Q, model.noise), names, g @ Q, Z @ Q, D @ Q)
    expected = passes(model, names, g, Z, D)
    np.testing.assert_allclose(turned[:, N:], expected[:, N:] @ Q, atol=1e-6)


@each_cycle
def test_kgs_8_equal_rates_are_one_rate(names) -> None:
    """By class and by row, with the same numbers."""
    model, g, Z, D = problem()
    labels = np.arange(N) % 2
    for noise in (class_rates(np.array([0.2, 0.2]), labels), row_rates(np.full(N, 0.2))):
        same = passes(SphereModel(model.L, noise), names, g, Z, D)
        np.testing.assert_allclose(same, passes(model, names, g, Z, D), atol=1e-6)


def test_kgs_8_symmetries_see_a_label_and_a_rate() -> None:
    """What the comparisons above are worth: one label turned round, or a rate of .3."""
    model, g, Z, D = problem()
    expected = passes(model, ("hmc",), g, Z, D)
    L = model.L * np.where(np.arange(N) == 3, -1.0, 1.0)[:, np.newaxis]
    for mutant in (SphereModel(L, model.noise), SphereModel(model.L, fixed_rate(0.3, N))):
        seen = passes(mutant, ("hmc",), g, Z, D)
        assert np.abs(seen[:, N:] - expected[:, N:]).max() > 0.1


def test_kgs_8_rates_above_one_half_are_opposite_labels() -> None:
    """q -> 1 - q: the labels say the same of g as the opposite ones say of -g."""
    G = signed(*noisy_gram(4))
    e, p = patterns(4).sum(axis=1), pattern_posterior(G, fixed_rate(0.5, 4))[0]
    for q in (0.02, 0.3):
        above = p @ ((1.0 - q) ** e * q ** (4 - e))
        opposite = pattern_posterior(G, fixed_rate(q, 4))[0][::-1]  # errors of the other labels
        np.testing.assert_allclose(p * (1.0 - q) ** e * q ** (4 - e) / above, opposite, atol=1e-12)


def asymmetry(n_runs: int = 20) -> float:
    """Largest |t| of P(e errors) - P(n - e errors) over runs of a ladder, in units of its limit.

    The prior is the same for g and -g, so both are equal; few errors are seen on the last rungs,
    many on the first.
    """
    L = noisy_rows(6, 2, 0.1, seed=64)
    laws = [
        climb_errors(np.random.default_rng(s), L, Tempering(16, 100)).law() for s in range(n_runs)
    ]
    p = np.exp([law.log_prior for law in laws])
    difference = (p - p[:, ::-1])[:, :3]
    error = difference.std(axis=0, ddof=1) / np.sqrt(n_runs)
    return float((np.abs(difference.mean(axis=0)) / error).max() / z_limit(n_runs, 3))


def test_kgs_8_errors_of_opposite_labels() -> None:
    """False alarm 1e-6."""
    assert asymmetry() < 1.0


def test_kgs_8_opposite_labels_see_eta_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    law = ladder.error_law
    monkeypatch.setattr(ladder, "error_law", lambda errors, costs: law(errors, 0.5 * costs))
    assert asymmetry() > 2.0


# A Gram matrix of five rows and rank two: two rows are one, a third is the opposite of another.
SINGULAR = noisy_rows(5, 2, 0.1, seed=65)[[0, 1, 2, 2, 4]]
SINGULAR[4] = -0.5 * SINGULAR[1]


@pytest.mark.parametrize("kind", few_first(["fixed", "learned", "learned per class"], "learned"))
def test_kgs_8_singular_gram(kind: str) -> None:
    """Null directions are dropped: rank two, and the cells of the arcs. False alarm 1e-6."""
    L, noise = spectrum_of(SINGULAR @ SINGULAR.T).design().L, noises(5)[kind]
    assert L.shape == (5, 2)
    np.testing.assert_allclose(L @ L.T, SINGULAR @ SINGULAR.T, atol=1e-12)
    assert cells_excess(trajectory(1.3), SINGULAR, noise, 20_000, 6) < 1.0
    assert cells_excess(trajectory(1.3), L, noise, 20_000, 6) < 1.0


def doubled(noise: LabelNoise, row: int) -> LabelNoise:
    """Costs per row, that of one row twice."""
    rates = np.full(len(noise.group), 0.2)
    odds = (rates[row] / (1.0 - rates[row])) ** 2
    rates[row] = odds / (1.0 + odds)
    return row_rates(rates)


def test_kgs_8_a_row_that_is_there_twice() -> None:
    """It is one row whose errors cost twice as much; false alarm 1e-6."""
    L = noisy_rows(3, 2, seed=66)
    twice = L[[0, 1, 2, 2]]
    once = pattern_posterior(L @ L.T, doubled(fixed_rate(0.2, 3), 2))[0]
    both = pattern_posterior(twice @ twice.T, fixed_rate(0.2, 4))[0]
    np.testing.assert_allclose(both[[0, 1, 2, 3, 12, 13, 14, 15]], once, atol=1e-7)
    assert cells_excess(trajectory(1.3), twice, fixed_rate(0.2, 4), 20_000) < 1.0
    # Mutant: the copy is left out.
    other = pattern_posterior(L @ L.T, fixed_rate(0.2, 3))[0]
    assert np.abs(other - once).max() > 0.02
