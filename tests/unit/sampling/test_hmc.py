from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from mercer.sampling import hmc as hmc_module
from mercer.sampling.hmc import HMC, leapfrog, log_joint
from support.targets import Skewed, make_hmc, run


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
