from __future__ import annotations

import numpy as np

from support.targets import Skewed, make_nuts


def infos(sampler, count: int, seed: int = 2):
    rng = np.random.default_rng(seed)
    state, seen = sampler.init(rng), []
    for _ in range(count):
        new, info = sampler.step(rng, state)
        seen.append((state, new, info))
        state = new
    return seen


def test_depth_is_bounded_and_counts_agree() -> None:
    for *_, info in infos(make_nuts(0.05, max_depth=4), 30):
        assert 1 <= info.depth <= 4
        assert info.n_leapfrog <= 2**info.depth - 1


def test_smaller_steps_make_deeper_trees() -> None:
    means = [
        np.mean([info.depth for *_, info in infos(make_nuts(step), 100)])
        for step in (0.8, 0.2, 0.05)
    ]
    assert means == sorted(means)


def test_a_trajectory_is_about_half_a_period() -> None:
    """It stops when it turns: its length in time hardly depends on the step size."""
    times = [
        np.mean([info.n_leapfrog * step for *_, info in infos(make_nuts(step), 200)])
        for step in (0.2, 0.1, 0.05)
    ]
    assert max(times) < 2.0 * min(times)
    assert 1.0 < times[-1] < 15.0


def test_a_huge_step_diverges_and_stays() -> None:
    for state, new, info in infos(make_nuts(60.0), 10):
        assert info.is_divergent
        assert info.acceptance_rate < 1e-6
        np.testing.assert_array_equal(new.point.position, state.point.position)
        assert np.isfinite(info.energy)


def test_the_drawn_point_is_where_it_says_and_gives_its_energy() -> None:
    for _, new, info in infos(make_nuts(0.3), 20):
        again = Skewed().evaluate(new.point.position)
        assert again.log_density == new.point.log_density
        np.testing.assert_array_equal(again.gradient, new.point.gradient)
        assert info.energy >= -new.point.log_density


def test_the_target_is_evaluated_once_a_leapfrog_step(monkeypatch) -> None:
    calls = []
    evaluate = Skewed.evaluate
    monkeypatch.setattr(
        Skewed, "evaluate", lambda self, theta: calls.append(1) or evaluate(self, theta)
    )
    seen = infos(make_nuts(0.3), 20)
    assert len(calls) == 1 + sum(info.n_leapfrog for *_, info in seen)
