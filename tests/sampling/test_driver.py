"""The driver with a toy sampler: what is run, kept and told."""

from __future__ import annotations

import dataclasses
import functools
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy.special import digamma, polygamma

from mercer.errors import ClusterError
from mercer.random import stream
from mercer.sampling.driver import Labels, SamplingStoppedError, run_to_end, sample, sample_longer
from support.runs import ENTROPY, digest, open_folder, options
from support.statistics import largest_z, z_limit
from support.toy_sampler import (
    SHAPE,
    AtCall,
    Killed,
    Pause,
    ToyAdaptation,
    ToyInfo,
    ToySampler,
    ToyTuning,
)


@dataclasses.dataclass(frozen=True)
class StartsOnce(ToySampler):
    """Counts the starts of chains."""

    starts: list[int] = dataclasses.field(default_factory=lambda: [0])

    def init(self, rng):
        self.starts[0] += 1
        return super().init(rng)


def by_hand(n_steps: int, n_warmup: int, chain: int, adaptation: ToyAdaptation | None = None):
    """Positions and infos of one chain: a loop over ``step`` and nothing else."""
    sampler = ToySampler()
    rng = stream(ENTROPY, "chain", chain)
    state = sampler.init(stream(ENTROPY, "start", chain))
    learned = None if adaptation is None else adaptation.init(sampler)
    states, infos = [], []
    for k in range(n_steps):
        state, info = sampler.step(rng, state)
        states.append(state)
        infos.append(info)
        if adaptation is not None and k < n_warmup:
            learned, sampler = adaptation.update(learned, sampler, state, info)
            if k == n_warmup - 1:
                sampler = adaptation.finish(learned, sampler)
    return states, infos


@pytest.mark.parametrize(
    ("n_draws", "n_warmup", "thin"), [(7, 0, 1), (7, 5, 1), (4, 3, 3), (1, 0, 2)]
)
def test_counts_thinning_and_warmup(n_draws: int, n_warmup: int, thin: int) -> None:
    draws = sample(ToySampler(), options(n_draws, n_warmup, 2, thin)).draws
    assert (draws.n_chains, draws.n_draws) == (2, n_draws)
    for chain in range(2):
        states, infos = by_hand(n_warmup + n_draws * thin, n_warmup, chain)
        kept = slice(n_warmup + thin - 1, None, thin)
        np.testing.assert_array_equal(draws.variables["x"][chain], [s.x for s in states[kept]])
        np.testing.assert_array_equal(
            draws.variables["path"][chain], [s.path for s in states[kept]]
        )
        np.testing.assert_array_equal(
            draws.stats["acceptance_rate"][chain], [i.acceptance_rate for i in infos[kept]]
        )


def test_adaptation_runs_in_warmup_only() -> None:
    adaptation = ToyAdaptation()
    draws = sample(ToySampler(), options(20, 15), adaptation=adaptation).draws
    for chain in range(2):
        states, _ = by_hand(35, 15, chain, adaptation)
        np.testing.assert_array_equal(draws.variables["x"][chain], [s.x for s in states[15:]])


def test_without_warmup_nothing_is_adapted() -> None:
    adapted = sample(ToySampler(), options(20, 0), adaptation=ToyAdaptation()).draws
    plain = sample(ToySampler(), options(20, 0)).draws
    assert digest(adapted) == digest(plain)


def test_statistics_are_the_fields_of_info_with_their_types() -> None:
    draws = sample(ToySampler(), options(5, 0)).draws
    assert set(draws.stats) == {f.name for f in dataclasses.fields(ToyInfo)}
    kinds = {name: values.dtype.kind for name, values in draws.stats.items()}
    assert kinds == {"acceptance_rate": "f", "is_divergent": "b", "n_proposals": "i"}


def test_same_seed_same_draws_for_any_number_of_jobs() -> None:
    one, two, three = (
        sample(ToySampler(), options(30, 10, 3, n_jobs=n), adaptation=ToyAdaptation()).draws
        for n in (1, 2, None)
    )
    assert digest(one) == digest(two) == digest(three)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_chains_that_go_on_are_those_of_a_longer_run(
    n_jobs: int, has_checkpoint: bool, tmp_path: Path
) -> None:
    how = {"adaptation": ToyAdaptation()}
    expected = [
        digest(sample(ToySampler(), options(n, 10, 3, 2), **how).draws) for n in (5, 10, 40)
    ]
    for _ in range(1 + has_checkpoint):  # and resumed, where it has ended long ago
        run = open_folder(tmp_path) if has_checkpoint else None
        given = options(5, 10, 3, 2, n_jobs=n_jobs, run=run)
        runs = sample_longer(ToySampler(), given, (5, 10, 40), **how)
        assert [digest(each.draws) for each in runs] == expected


def test_chains_that_go_on_do_not_start_again() -> None:
    sampler = StartsOnce()
    for _ in sample_longer(sampler, options(5, 3, 2), (5, 10, 20), adaptation=ToyAdaptation()):
        assert sampler.starts == [2]


def test_chains_and_seeds_differ() -> None:
    first = sample(ToySampler(), options(10, 0, 2)).draws.variables["x"]
    other = sample(
        ToySampler(), dataclasses.replace(options(10, 0, 2), entropy=ENTROPY + 1)
    ).draws.variables["x"]
    assert len(np.unique(np.concatenate([first.ravel(), other.ravel()])[::1])) > 20
    assert not np.isin(first[0], first[1]).any()
    assert not np.isin(first, other).any()


def test_a_chain_does_not_depend_on_how_many_there_are() -> None:
    two = sample(ToySampler(), options(10, 5, 2)).draws.variables["x"]
    three = sample(ToySampler(), options(10, 5, 3)).draws.variables["x"]
    np.testing.assert_array_equal(two, three[:2])


def law_error(width: float) -> float:
    """Largest |t| of three moments over one long chain of the driver, 50 batches."""
    x = sample(ToySampler(ToyTuning(width)), options(20_000, 100, 1)).draws.flat("x")
    mean = digamma(SHAPE)
    truth = np.array([mean, polygamma(1, SHAPE) + mean**2, SHAPE])
    return largest_z(np.column_stack([x, x * x, np.exp(x)]), truth, 50)


def test_the_law_of_the_draws() -> None:
    """False alarm 1e-6 in all."""
    assert law_error(4.0) < z_limit(50, 3)


def test_the_law_sees_a_driver_that_keeps_moves_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: a rejected proposal is no draw."""
    step = ToySampler.step

    def until_it_moves(self, rng, state):
        while True:
            new, info = step(self, rng, state)
            if new.n_moves > state.n_moves:
                return new, info

    monkeypatch.setattr(ToySampler, "step", until_it_moves)
    assert law_error(4.0) > z_limit(50, 3)


def test_labels_reach_the_draws() -> None:
    labels = Labels({"path": ("a", "b", "c")}, ("x",))
    draws = sample(ToySampler(), options(5, 0), labels=labels).draws
    assert draws.labels == {"path": ("a", "b", "c")}
    assert draws.monitored == ("x",)


def test_no_notes_where_nothing_happened() -> None:
    assert sample(ToySampler(), options(5, 0)).notes == ()


@pytest.mark.filterwarnings("ignore:Loky-backed")
def test_below_threads_of_joblib_chains_run_in_those() -> None:
    run = delayed(lambda: digest(sample(ToySampler(), options(n_jobs=2)).draws))
    assert set(Parallel(2, backend="threading")([run(), run()])) == {
        digest(sample(ToySampler(), options()).draws)
    }


def test_r7_a_process_that_is_killed_changes_no_bit(tmp_path: Path) -> None:
    """One that always is, as where memory is short, ends the run, and one process goes on."""
    given = {"n_chains": 3, "n_jobs": 2}
    expected = digest(sample(ToySampler(), options(**given | {"n_jobs": 1})).draws)
    once = ToySampler(before_step=Killed(tmp_path / "once", is_once=True))
    assert digest(sample(once, options(**given)).draws) == expected
    always = ToySampler(before_step=Killed(tmp_path / "always"))
    with pytest.raises(
        ClusterError, match=r"was killed.*memory.*--jobs.*by the same call"
    ) as found:
        sample(always, options(**given, run=open_folder(tmp_path)))
    assert found.value.exit_code == 6
    resumed = sample(ToySampler(), options(**given | {"n_jobs": 1}, run=open_folder(tmp_path)))
    assert digest(resumed.draws) == expected


class Clock:
    """A clock that goes on by so many seconds when it is looked at, or when it is set."""

    def __init__(self, tick: float = 0.0) -> None:
        self.now, self.tick = 0.0, tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


def test_max_seconds_gives_a_shorter_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each chain looks at the clock before a step, and has half of the time."""
    monkeypatch.setattr(time, "monotonic", Clock(0.01))
    sampled = sample(ToySampler(), options(5000, 5, 2, seconds=0.6))
    n_draws = sampled.draws.n_draws
    assert 20 < n_draws < 30
    assert len(sampled.notes) == 1
    assert f"{n_draws} of 5000 draws" in sampled.notes[0]
    whole = sample(ToySampler(), options(n_draws, 5, 2)).draws
    assert digest(sampled.draws) == digest(whole)


def test_max_seconds_in_other_processes() -> None:
    """However late they start: each chain takes a step at least, and has no time for all."""
    slow = ToySampler(before_step=Pause(0.002))
    sampled = sample(slow, options(5000, 0, 2, seconds=2.0, n_jobs=2))
    n_draws = sampled.draws.n_draws
    assert sampled.notes == (f"stopped by max_seconds: {n_draws} of 5000 draws kept in each chain",)
    assert digest(sampled.draws) == digest(sample(ToySampler(), options(n_draws, 0, 2)).draws)


def test_max_seconds_in_warmup_leaves_a_draw_and_says_so() -> None:
    slow = ToySampler(before_step=Pause(0.01))
    sampled = sample(slow, options(10, 500, 2, seconds=0.1))
    assert (sampled.draws.n_chains, sampled.draws.n_draws) == (2, 1)
    assert len(sampled.notes) == 1
    assert "during warm-up" in sampled.notes[0]


def test_max_seconds_leaves_out_chains_that_did_not_warm_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first chain ends in time; the second is late from its start and takes one step."""
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    late = AtCall(16, lambda: setattr(clock, "now", 0.5))
    sampled = sample(ToySampler(before_step=late), options(5, 10, 2, seconds=0.4))
    assert (sampled.draws.n_chains, sampled.draws.n_draws) == (1, 5)
    assert sampled.notes == ("1 chain left out: out of time during warm-up",)


def test_max_seconds_never_ends_without_a_draw() -> None:
    sampled = sample(ToySampler(), options(10, 5, 2, seconds=1e-9))
    assert sampled.draws.n_total == 2


def test_an_error_of_the_sampler_is_not_hidden() -> None:
    def fail(state: object) -> None:
        raise ArithmeticError("broken sampler")

    with pytest.raises(ArithmeticError, match="broken sampler"):
        sample(ToySampler(before_step=fail), options(10, 0, 1))


def test_to_the_end_only_the_last_state_is_kept() -> None:
    end = run_to_end(ToySampler(), options(7, 0, 1))
    states, _ = by_hand(7, 0, 0)
    assert end.state.x == states[-1].x
    assert end.notes == ()
    rng = stream(ENTROPY, "chain", 0)
    state = ToySampler().init(stream(ENTROPY, "start", 0))
    for _ in range(7):
        state, _ = ToySampler().step(rng, state)
    assert end.rng.bit_generator.state == rng.bit_generator.state


def test_to_the_end_after_stops(tmp_path) -> None:
    """Also from the file of a run that is over: the same state, the same generator."""
    whole = run_to_end(ToySampler(), options(40, 0, 1))
    stopped = ToySampler(before_step=AtCall(15, functools.partial(signal.raise_signal, 15)))
    with pytest.raises(SamplingStoppedError):
        run_to_end(stopped, options(40, 0, 1, run=open_folder(tmp_path)))
    for _ in range(2):
        end = run_to_end(ToySampler(), options(40, 0, 1, run=open_folder(tmp_path)))
        assert end.state.x == whole.state.x
        assert end.rng.bit_generator.state == whole.rng.bit_generator.state
        assert "resumed from" in end.notes[0]


def test_to_the_end_out_of_time() -> None:
    end = run_to_end(ToySampler(before_step=Pause(0.01)), options(1000, 0, 1, seconds=0.05))
    assert end.state.n_moves < 1000
