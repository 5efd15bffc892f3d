from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy import stats

from mercer.errors import NumericalError
from mercer.sampling import hmc
from mercer.sampling import hmc as hmc_module
from mercer.sampling import hmc as split_hmc
from mercer.sampling.hmc import (
    HMC,
    DualAveraging,
    HamiltonianAdaptation,
    leapfrog,
    log_joint,
    mass_from_covariance,
    mass_from_draws,
    mass_windows,
    travel,
    unit_mass,
)
from support.statistics import dkw_distance, dkw_limit
from support.targets import COVARIANCE, Skewed, make_hmc, make_nuts, run, uneven_mass
from support.toy_sampler import ToyInfo


def infos(sampler, count: int, seed: int = 2):
    rng = np.random.default_rng(seed)
    state, seen = sampler.init(rng), []
    for _ in range(count):
        new, info = sampler.step(rng, state)
        seen.append((state, new, info))
        state = new
    return seen


def test_fixed_length_and_step_size() -> None:
    for *_, info in infos(make_hmc(0.3, n_leapfrog=7), 5):
        assert (info.n_leapfrog, info.step_size) == (7, 0.3)


def test_jittered_length_is_uniform() -> None:
    """From half to one and a half times 2/0.3 steps; chi2(7) < 43: false alarm 4e-7."""
    lengths = [info.n_leapfrog for *_, info in infos(make_hmc(0.3), 800)]
    counts = np.bincount(lengths, minlength=11)
    assert counts[:3].sum() == 0
    assert len(counts) == 11
    assert ((counts[3:] - 100.0) ** 2 / 100.0).sum() < 43.0


def test_a_collapsing_step_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hmc_module, "_MAX_LEAPFROG", 4)
    assert max(info.n_leapfrog for *_, info in infos(make_hmc(1e-9), 20)) <= 4


def test_rejected_means_the_same_state() -> None:
    for state, new, info in infos(make_hmc(1.2, n_leapfrog=3), 60):
        moved = not np.array_equal(new.point.position, state.point.position)
        assert moved == info.is_accepted


def test_a_huge_step_diverges_and_stays() -> None:
    for state, new, info in infos(make_hmc(60.0, n_leapfrog=3), 10):
        assert info.is_divergent
        assert info.acceptance_rate == 0.0
        assert new.point is state.point
        assert np.isfinite(info.energy)


def test_energy_is_that_of_the_state_kept() -> None:
    """With one tiny step the energy is the start's: -log density plus a chi-squared part."""
    for _, new, info in infos(make_hmc(1e-6, n_leapfrog=1), 20):
        assert info.energy >= -new.point.log_density


def energy_error(sampler, count: int = 60) -> float:
    """Largest error of the reported energy: that of the end if accepted, else of the start."""
    rng, again = np.random.default_rng(5), np.random.default_rng(5)
    state, largest, n_rejected = sampler.init(rng), 0.0, 0
    sampler.init(again)
    for _ in range(count):
        new, info = sampler.step(rng, state)
        point, p = state.point, sampler.tuning.mass.draw_momentum(again)
        again.random()
        if info.is_accepted:
            for _ in range(info.n_leapfrog):
                point, p = leapfrog(sampler.target, point, p, info.step_size, sampler.tuning.mass)
        n_rejected += not info.is_accepted
        largest = max(largest, abs(info.energy + log_joint(point, p, sampler.tuning.mass)))
        state = new
    assert 10 < n_rejected < count - 10
    return largest


class TellsOfRejectedEnds(HMC):
    """The mutant: the energy of the trajectory's end, whether it was accepted or not."""

    def step(self, rng, state):
        before = rng.bit_generator.state
        new, info = super().step(rng, state)
        rng.bit_generator.state, after = before, rng.bit_generator.state
        point, p = state.point, self.tuning.mass.draw_momentum(rng)
        rng.bit_generator.state = after
        for _ in range(info.n_leapfrog):
            point, p = leapfrog(self.target, point, p, info.step_size, self.tuning.mass)
        return new, replace(info, energy=-log_joint(point, p, self.tuning.mass))


def test_the_energy_of_a_rejected_trajectory_is_that_of_its_start() -> None:
    sampler = make_hmc(0.7, n_leapfrog=3)
    assert energy_error(sampler) == 0.0
    own = {field.name: getattr(sampler, field.name) for field in fields(sampler)}
    assert energy_error(TellsOfRejectedEnds(**own)) > 0.1


def test_states_carry_what_the_target_gave() -> None:
    for _, new, _ in infos(make_hmc(0.4), 10):
        again = Skewed().evaluate(new.point.position)
        assert again.log_density == new.point.log_density
        np.testing.assert_array_equal(again.gradient, new.point.gradient)


def test_log_joint() -> None:
    sampler = make_hmc(0.4)
    point = Skewed().evaluate(np.array([0.1, 0.2, 0.3]))
    p = np.array([1.0, -1.0, 0.5])
    assert log_joint(point, p, sampler.tuning.mass) == pytest.approx(point.log_density - 1.125)


def test_acceptance_rises_as_steps_shrink() -> None:
    rates = [run(make_hmc(step, 3), 300, 1)[1] for step in (1.2, 0.6, 0.1)]
    assert rates == sorted(rates)
    assert rates[-1] > 0.99


def test_momenta_have_the_inverse_covariance() -> None:
    """False alarm: 9 entries, each a mean of 20 000 with a limit of six standard errors."""
    mass, rng = uneven_mass(), np.random.default_rng(0)
    p = np.array([mass.draw_momentum(rng) for _ in range(20_000)])
    products = p[:, :, None] * p[:, None, :]
    error = products.mean(axis=0) - np.linalg.inv(mass.covariance)
    assert (np.abs(error) < 6.0 * products.std(axis=0) / np.sqrt(20_000)).all()


def test_velocity_and_energy() -> None:
    mass, p = uneven_mass(), np.array([0.3, -1.0, 2.0])
    np.testing.assert_allclose(mass.velocity(p), mass.covariance @ p)
    assert mass.kinetic_energy(p) == pytest.approx(0.5 * p @ mass.covariance @ p)
    h = 1e-6
    slope = [
        (mass.kinetic_energy(p + h * e) - mass.kinetic_energy(p - h * e)) / (2.0 * h)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(slope, mass.velocity(p), rtol=1e-8)


def test_factor() -> None:
    for mass in (uneven_mass(), unit_mass(3)):
        np.testing.assert_allclose(mass.factor @ mass.factor.T, mass.covariance)
    with pytest.raises(NumericalError):
        mass_from_covariance(-np.eye(2))


def test_many_draws_give_their_covariance() -> None:
    draws = np.random.default_rng(1).multivariate_normal(
        [5.0, -3.0], [[4.0, 1.5], [1.5, 1.0]], 5000
    )
    np.testing.assert_allclose(
        mass_from_draws(draws).covariance, np.cov(draws, rowvar=False), rtol=5e-3
    )


def test_shrinkage_by_its_formula() -> None:
    draws = np.random.default_rng(1).standard_normal((15, 3))
    sample = np.cov(draws, rowvar=False)
    expected = 0.75 * (0.75 * sample + 0.25 * np.diag(np.diag(sample))) + 0.25e-3 * np.eye(3)
    np.testing.assert_allclose(mass_from_draws(draws).covariance, expected)


@pytest.mark.parametrize("draws", [np.zeros((40, 3)), np.ones((2, 3)), np.arange(40.0)[:, None]])
def test_draws_that_hardly_move_give_a_positive_mass(draws: np.ndarray) -> None:
    mass = mass_from_draws(draws)
    assert mass.covariance.shape == (draws.shape[1],) * 2
    assert np.isfinite(mass.factor).all()


def rate(step_size: float) -> float:
    """An acceptance rate that falls with the step size; 0.8 at 0.3."""
    return math.exp(-step_size * math.log(1.25) / 0.3)


def found(first: float, n: int = 400) -> float:
    rng = np.random.default_rng(0)
    search = DualAveraging.start(first)
    for _ in range(n):
        seen = rate(math.exp(search.log_step_size)) + 0.1 * rng.standard_normal()
        search = search.update(0.8 - seen)
    return math.exp(search.log_average)


@pytest.mark.parametrize("first", [1e-3, 0.1, 0.5, 1.9])
def test_dual_averaging_finds_the_rate(first: float) -> None:
    assert rate(found(first)) == pytest.approx(0.8, abs=0.03)


def test_dual_averaging_sees_a_wrong_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    update = DualAveraging.update
    monkeypatch.setattr(DualAveraging, "update", lambda self, error: update(self, -error))
    assert abs(rate(found(0.1)) - 0.8) > 0.1


def test_dual_averaging_by_the_formula() -> None:
    """Hoffman & Gelman's eq. (6), drawn towards twice the start, written out for three errors."""
    errors, mu = [0.3, -0.1, 0.2], math.log(0.2)
    search, average = DualAveraging.start(0.1), 0.0
    for m, _ in enumerate(errors, start=1):
        h = 0.0
        for k, error in enumerate(errors[:m], start=1):
            h = (1.0 - 1.0 / (k + 10.0)) * h + error / (k + 10.0)
        x = mu - math.sqrt(m) / 0.05 * h
        average = m**-0.75 * min(x, math.log(2.0)) + (1.0 - m**-0.75) * average
        search = search.update(errors[m - 1])
        assert search.log_step_size == pytest.approx(min(x, math.log(2.0)))
        assert search.log_average == pytest.approx(average)


def test_the_step_size_is_bounded() -> None:
    search = DualAveraging.start(1.0)
    for _ in range(50):
        search = search.update(-0.2)
    assert math.exp(search.log_step_size) <= 2.0 + 1e-12


@pytest.mark.parametrize("n", [0, 1, 59])
def test_no_windows_in_a_short_warmup(n: int) -> None:
    assert mass_windows(n) == (0, ())


@pytest.mark.parametrize("n", [60, 61, 100, 250, 333, 500, 1000, 5000])
def test_windows(n: int) -> None:
    first, ends = mass_windows(n)
    assert first == n // 6
    assert ends[-1] == n - n // 6
    lengths = np.diff((first, *ends))
    assert lengths[0] >= 40
    assert (lengths[1:] >= 2 * lengths[:-1]).all()


def test_windows_of_a_long_warmup() -> None:
    assert mass_windows(1000) == (166, (206, 286, 446, 834))


def warm_up(make, n_warmup: int, seed: int = 4):
    sampler, rng = make(0.1), np.random.default_rng(seed)
    tuner = HamiltonianAdaptation(n_warmup)
    state, learned = sampler.init(rng), tuner.init(sampler)
    sizes = []
    for _ in range(n_warmup):
        state, info = sampler.step(rng, state)
        learned, sampler = tuner.update(learned, sampler, state, info)
        sizes.append(len(learned.window))
    return tuner.finish(learned, sampler), state, rng, sizes


@pytest.mark.parametrize("make", [make_hmc, make_nuts])
def test_warm_up_finds_rate_and_mass(make) -> None:
    sampler, state, rng, sizes = warm_up(make, 400)
    first, ends = mass_windows(400)
    assert sizes[first] == 1
    assert all(sizes[end - 1] == 0 for end in ends)
    seen = sampler.tuning.mass.covariance[:2, :2]
    np.testing.assert_allclose(seen, COVARIANCE, rtol=0.5)
    rates = []
    for _ in range(400):
        state, info = sampler.step(rng, state)
        rates.append(info.acceptance_rate)
    assert 0.7 < np.mean(rates) < 0.95  # 66 steps of search err on the side of small steps


def test_short_warm_up_keeps_the_mass() -> None:
    sampler, *_ = warm_up(make_hmc, 40)
    np.testing.assert_array_equal(sampler.tuning.mass.covariance, np.eye(3))
    assert sampler.tuning.step_size != 0.1


def test_finish_takes_the_average() -> None:
    sampler = make_hmc(0.1)
    tuner = HamiltonianAdaptation(40)
    state = sampler.init(np.random.default_rng(0))
    learned, moved = tuner.update(tuner.init(sampler), sampler, state, ToyInfo(0.2, False, 1))
    learned, moved = tuner.update(learned, moved, state, ToyInfo(0.9, False, 1))
    done = tuner.finish(learned, moved)
    assert done.tuning.step_size == pytest.approx(math.exp(learned.search.log_average))
    assert done.tuning.step_size != moved.tuning.step_size


def test_constants() -> None:
    assert (hmc._GAMMA, hmc._T0, hmc._KAPPA) == (0.05, 10.0, 0.75)


N, P = 4000, 2
# phi = -theta'A theta / 2 + b'theta: with the standard normal part, a normal law again.
A, B = np.array([[3.0, 1.2], [1.2, 0.8]]), np.array([0.7, -0.4])
PRECISION = A + np.eye(P)
MEAN, FACTOR = np.linalg.solve(PRECISION, B), np.linalg.cholesky(np.linalg.inv(PRECISION))
RATES = np.array([0.4, 0.9])
LIMIT = dkw_limit(N, 4 * P)


def quadratic(theta: np.ndarray) -> tuple[float, np.ndarray]:
    return float(-0.5 * theta @ A @ theta + B @ theta), B - A @ theta


def largest_distance(potential, step: float, n_leapfrog: int) -> float:
    """From exact draws of the target: both coordinates after a trajectory, against their law."""
    rng, ends = np.random.default_rng(17), []
    for _ in range(N):
        start = MEAN + FACTOR @ rng.standard_normal(P)
        ends.append(travel(rng, potential, start, RATES, step, n_leapfrog).position)
    z = np.linalg.solve(FACTOR, (np.array(ends) - MEAN).T)
    return max(dkw_distance(each, stats.norm.cdf) for each in z)


@pytest.mark.parametrize(("step", "n_leapfrog"), [(0.3, 1), (0.8, 5), (1.8, 3)])
def test_the_law_is_kept(step: float, n_leapfrog: int) -> None:
    """False alarm 1e-6 over all; detects 0.05. The largest step rejects a quarter and more."""
    assert largest_distance(quadratic, step, n_leapfrog) < LIMIT


def test_ends_that_are_always_taken_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_hmc, "_log_joint", lambda value, theta, p: 0.0)
    assert largest_distance(quadratic, 1.8, 3) > LIMIT


def test_a_potential_that_is_not_the_gradients_is_seen() -> None:
    """Twice the potential, in the decisions only: another law."""
    assert largest_distance(lambda t: (2.0 * quadratic(t)[0], quadratic(t)[1]), 0.8, 5) > LIMIT


def test_a_wrong_gradient_costs_acceptance_only() -> None:
    assert largest_distance(lambda t: (quadratic(t)[0], 1.3 * quadratic(t)[1]), 0.3, 3) < LIMIT


@pytest.mark.parametrize("step", [0.1, 1.0])
def test_without_a_potential_it_rotates_exactly(step: float) -> None:
    nothing = lambda theta: (0.0, np.zeros_like(theta))  # noqa: E731
    found = travel(np.random.default_rng(3), nothing, np.ones(50), np.full(50, 0.7), step, 40)
    assert found.is_accepted
    assert found.acceptance_rate == pytest.approx(1.0, abs=1e-12)
    rng = np.random.default_rng(3)
    p, eps = rng.standard_normal(50), step * rng.uniform(0.8, 1.2)
    expected = math.cos(40 * 0.7 * eps) + math.sin(40 * 0.7 * eps) * p
    np.testing.assert_allclose(found.position, expected, atol=1e-12)


def test_small_steps_are_accepted() -> None:
    rng = np.random.default_rng(4)
    rates = [
        travel(rng, quadratic, MEAN + FACTOR @ rng.standard_normal(P), RATES, 0.05, 10)
        for _ in range(200)
    ]
    assert min(each.acceptance_rate for each in rates) > 0.98


@pytest.mark.parametrize("bad", [np.nan, -np.inf, -1e4])
def test_a_trajectory_gone_astray_stays(bad: float) -> None:
    calls = iter([0.0, bad])
    position = np.ones(3)
    found = travel(
        np.random.default_rng(5),
        lambda theta: (next(calls), np.zeros(3)), position, np.ones(3), 0.5, 1,
    )  # fmt: skip
    assert not found.is_accepted
    assert found.position is position
    assert found.acceptance_rate == 0.0


def test_a_path_over_a_mountain_is_refused_from_either_end() -> None:
    """Also where the end is as probable as the start."""
    values = [0.0, -900.0, 200.0, 0.0]
    for path in (values, values[::-1]):
        calls = iter(path)
        found = travel(
            np.random.default_rng(5),
            lambda theta, calls=calls: (next(calls), np.zeros(3)), np.ones(3), np.ones(3), 0.5, 3,
        )  # fmt: skip
        assert not found.is_accepted


def test_nothing_is_said_of_what_goes_astray() -> None:
    """Warnings are errors here."""

    def steep(theta: np.ndarray) -> tuple[float, np.ndarray]:
        return -float(np.exp(50.0 * theta**2).sum()), -100.0 * theta * np.exp(50.0 * theta**2)

    found = travel(np.random.default_rng(6), steep, np.full(3, 0.1), np.ones(3), 1.0, 50)
    assert not found.is_accepted
