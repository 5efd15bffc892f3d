from __future__ import annotations

import numpy as np
import pytest

from reproduce.papers import sphere_seconds
from reproduce.papers.sphere_problems import split_of
from reproduce.papers.sphere_seconds import _CIRCLE, _HMC


@pytest.fixture(scope="module")
def methods() -> dict[str, sphere_seconds._Method]:
    split = split_of("plane", 0, 60, 40, 0.1)
    return {**sphere_seconds._exact(split), **sphere_seconds._low_rank(split)}


def test_every_method_votes_at_the_test_rows(methods) -> None:
    assert len(methods) == 5
    for method in methods.values():
        times, votes = sphere_seconds._run(method, np.random.default_rng(1), n_steps=3)
        assert votes.shape == (3, 40)
        assert (np.diff([method.set_up, *times]) >= 0.0).all()


def test_a_chain_stops_when_its_time_is_over(methods) -> None:
    times, votes = sphere_seconds._run(methods[_HMC], np.random.default_rng(1), seconds=0.05)
    assert len(times) == len(votes)
    assert times[-1] >= 0.05
    assert (times[:-1] < 0.05).all()


def test_before_the_first_draw_the_answer_is_a_half(methods) -> None:
    exact = np.linspace(0.0, 1.0, 40)
    never = sphere_seconds._distances(
        methods[_HMC], np.random.default_rng(1), np.array([-1.0, 0.0]), exact
    )
    assert never == pytest.approx(np.sqrt(np.mean((exact - 0.5) ** 2)))


@pytest.mark.parametrize(("low_rank", "trade"), [(0.2, "holds"), (0.001, "fails")])
def test_verdicts(low_rank: float, trade: str) -> None:
    times = np.array([0.1, 1.0])
    distances = {
        _CIRCLE: np.array([[0.5, 0.3], [0.5, 0.2]]),
        _HMC: np.array([[0.5, 0.01], [0.4, 0.02]]),
        f"{_HMC}, 100 landmarks": np.array([[0.3, low_rank], [0.3, low_rank]]),
    }
    nearer, traded = sphere_seconds._claims(distances, times)
    assert (nearer.verdict, traded.verdict) == ("holds", trade)
    distances[_HMC][0, 1] = 0.25  # one chain further than one of the great circles
    assert sphere_seconds._claims(distances, times)[0].verdict == "fails"
