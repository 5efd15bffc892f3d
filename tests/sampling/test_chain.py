"""One chain: a stop asked for through the board ends it after the step in hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mercer.random import stream
from mercer.sampling.driver import Chain, ChainPlan, run_chain
from mercer.sampling.progress import Board
from mercer.sampling.signals import StopSignals
from support.runs import ENTROPY, open_folder
from support.toy_sampler import AtCall, ToyAdaptation, ToySampler


def one_chain(board: Board, folder: Path | None = None, before_step=None) -> Chain:
    rngs = stream(ENTROPY, "start"), stream(ENTROPY, "chain")
    file = None if folder is None else open_folder(folder).chain(0)
    sampler = ToySampler(before_step=before_step)
    plan = ChainPlan(0, 20, 15, 2, None)
    return run_chain(sampler, ToyAdaptation(), plan, rngs, board, StopSignals(board), file)


@pytest.mark.parametrize("count", [1, 12, 20, 21, 22, 23, 49, 50])
def test_a_stop_by_the_board(tmp_path: Path, count: int) -> None:
    whole = one_chain(Board.in_memory(1))
    board = Board.in_memory(1)
    part = one_chain(board, tmp_path, AtCall(count, board.request_stop))
    assert part.n_done == count == board.n_done[0]
    resumed_board = Board.in_memory(1)
    resumed = one_chain(resumed_board, tmp_path)
    assert resumed.n_done == whole.n_done == 50 == resumed_board.n_done[0]
    for seen, expected in zip(resumed.result(), whole.result(), strict=True):
        assert list(seen) == list(expected)
        for name, values in expected.items():
            np.testing.assert_array_equal(seen[name], values)
            assert seen[name].dtype == values.dtype
    assert resumed.rng.bit_generator.state == whole.rng.bit_generator.state
    assert resumed.sampler.tuning == whole.sampler.tuning


def test_a_plan_counts_its_steps() -> None:
    assert ChainPlan(0, 20, 15, 2, None).n_steps == 50
    assert ChainPlan(0, 0, 15, 1, None).n_steps == 15


def test_a_deadline_in_the_past_leaves_one_step_and_its_draw() -> None:
    board = Board.in_memory(1)
    rngs = stream(ENTROPY, "start"), stream(ENTROPY, "chain")
    plan = ChainPlan(0, 5, 5, 1, 0.0)
    chain = run_chain(ToySampler(), None, plan, rngs, board, StopSignals(board), None)
    assert chain.n_done == 1
    assert len(chain.result()[0]["x"]) == 1
