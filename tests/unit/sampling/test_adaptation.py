from __future__ import annotations

import math

import numpy as np
import pytest

from mercer.sampling import hmc
from mercer.sampling.hmc import DualAveraging, HamiltonianAdaptation, mass_windows
from support.targets import COVARIANCE, make_hmc, make_nuts
from support.toy_sampler import ToyInfo


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
