from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest

from mercer.sampling.progress import Board
from support.toy_sampler import ToyInfo, ToyTuning


@pytest.fixture(params=["memory", "file"])
def board(request: pytest.FixtureRequest, tmp_path: Path) -> Board:
    return Board.in_memory(2) if request.param == "memory" else Board.shared(2, tmp_path)


def test_reports(board: Board) -> None:
    assert math.isnan(board.acceptance_rate)
    board.report(0, 1, ToyInfo(0.4, False, 1))
    board.report(0, 2, ToyInfo(0.8, True, 1))
    board.report(1, 1, ToyInfo(0.5, True, 1))
    assert board.n_done.tolist() == [2, 1]
    assert board.n_divergent == 2
    assert board.acceptance_rate == pytest.approx((0.95 * 0.4 + 0.05 * 0.8 + 0.5) / 2.0)


def test_stopping_is_no_report(board: Board) -> None:
    assert not board.is_stopping
    board.request_stop()
    assert board.is_stopping
    assert board.n_done.tolist() == [0, 0]
    assert board.n_divergent == 0


def test_resume(board: Board) -> None:
    board.resume(1, 17)
    assert board.n_done.tolist() == [0, 17]


def test_a_copy_of_a_shared_board_is_the_same_board(tmp_path: Path) -> None:
    board = Board.shared(2, tmp_path)
    other = pickle.loads(pickle.dumps(board))
    board.request_stop()
    other.resume(0, 3)
    assert other.is_stopping
    assert board.n_done.tolist() == [3, 0]


def test_a_board_in_memory_pickles() -> None:
    assert pickle.loads(pickle.dumps(Board.in_memory(3))).cells.shape == (4, 4)


def test_an_info_without_acceptance(board: Board) -> None:
    board.report(0, 1, ToyTuning(1.0))
    assert np.isnan(board.acceptance_rate)
    assert board.n_divergent == 0
