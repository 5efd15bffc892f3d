from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from mercer.gp.exact import ExactAdaptation
from mercer.random import stream
from mercer.sampling.checkpoint import pack, unpack
from mercer.sampling.driver import Chain, ChainPlan, run_chain
from mercer.sampling.hmc import HamiltonianAdaptation
from mercer.sampling.progress import Board
from mercer.sampling.signals import StopSignals
from support.exact_runs import exact_sampler
from support.runs import ENTROPY, open_folder


def warm(n_warmup: int):
    """Sampler, state and what is learned after each step of a warm-up."""
    sampler, adaptation = exact_sampler(), ExactAdaptation(HamiltonianAdaptation(n_warmup))
    rng = np.random.default_rng(2)
    state, learned = sampler.init(rng), adaptation.init(sampler)
    for _ in range(n_warmup):
        state, info = sampler.step(rng, state)
        learned, sampler = adaptation.update(learned, sampler, state, info)
        yield adaptation, learned, sampler, state


@cache
def long_warmup() -> list:
    return list(warm(90))


def test_three_parts() -> None:
    parts = [(s.correction.is_estimated, s.correction.is_exact) for _, _, s, _ in long_warmup()]
    assert parts == [(False, False)] * 44 + [(True, False)] * 30 + [(True, True)] * 16


def test_a_warmup_that_time_ends_has_a_function_to_record() -> None:
    """In its first half nothing is estimated: the driver keeps one draw of it all the same."""
    _, _, sampler, state = long_warmup()[9]
    assert not np.isfinite(state.estimate.log_evidence)
    recorded = sampler.record(state)
    assert all(np.isfinite(values).all() for values in recorded.values())
    assert recorded["exact_coef"].any()


def test_what_is_learned() -> None:
    adaptation, learned, sampler, _ = long_warmup()[-1]
    assert len(learned.theta) == len(learned.errors) > 15
    assert np.isfinite(learned.errors).all()
    assert len(np.unique(learned.theta, axis=0)) == len(learned.theta)
    finished = adaptation.finish(learned, sampler)
    assert finished.correction is sampler.correction
    assert finished.inner.tuning.step_size != sampler.inner.tuning.step_size


def test_a_short_warmup_is_exact_all_along() -> None:
    for _, learned, sampler, _ in warm(20):
        assert sampler.correction.is_exact
        assert not sampler.correction.slope.any()
        assert len(learned.theta) == 0


def test_tuning_and_what_is_learned_go_through_arrays() -> None:
    steps = long_warmup()
    template_adaptation, template_learned, template, _ = steps[0]
    adaptation, learned, sampler, _ = steps[-1]
    arrays = pack(learned, "learned") | pack(adaptation.tuning(sampler), "tuning")
    tuning = unpack(template_adaptation.tuning(template), arrays, "tuning")
    restored = adaptation.with_tuning(template, tuning)
    assert restored.correction.is_exact is True
    np.testing.assert_array_equal(restored.correction.slope, sampler.correction.slope)
    assert restored.inner.tuning.step_size == sampler.inner.tuning.step_size
    again = unpack(template_learned, arrays, "learned")
    np.testing.assert_array_equal(again.theta, learned.theta)
    np.testing.assert_array_equal(again.errors, learned.errors)


class _StopAfter(Board):
    """A board that asks to stop after so many steps."""

    def report(self, chain, n_done, info) -> None:
        """Note the step, and ask."""
        super().report(chain, n_done, info)
        if n_done == self.count:
            self.request_stop()


def one_chain(board: Board, folder: Path | None) -> Chain:
    rngs = stream(ENTROPY, "start"), stream(ENTROPY, "chain")
    file = None if folder is None else open_folder(folder).chain(0)
    plan = ChainPlan(0, 60, 15, 1, None)
    adaptation = ExactAdaptation(HamiltonianAdaptation(60))
    return run_chain(exact_sampler(), adaptation, plan, rngs, board, StopSignals(board), file)


@cache
def whole_chain() -> Chain:
    return one_chain(Board.in_memory(1), None)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("count", [1, 35, 50, 66])  # in each part of the warm-up, and after it
def test_a_run_that_was_stopped_goes_on_bit_for_bit(tmp_path: Path, count: int) -> None:
    board = _StopAfter.in_memory(1)
    object.__setattr__(board, "count", count)
    assert one_chain(board, tmp_path).n_done == count
    resumed = one_chain(Board.in_memory(1), tmp_path)
    for seen, expected in zip(resumed.result(), whole_chain().result(), strict=True):
        assert list(seen) == list(expected)
        for name, values in expected.items():
            np.testing.assert_array_equal(seen[name], values)
            assert seen[name].dtype == values.dtype
