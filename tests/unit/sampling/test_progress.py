from __future__ import annotations

import dataclasses
import io
import sys
from types import SimpleNamespace

import pytest

from mercer.sampling.progress import Board, ProgressBar, is_wanted, tell, waiting
from support.toy_sampler import ToyInfo


def test_auto_is_silent_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert not is_wanted("auto")
    assert is_wanted(True)
    assert not is_wanted(False)
    with pytest.raises(ValueError, match="progress"):
        is_wanted("yes")


def test_tell(capsys: pytest.CaptureFixture[str]) -> None:
    tell("hello", True)
    tell("nothing", False)
    assert capsys.readouterr().err == "hello\n"


def test_a_bar_goes_to_standard_error_only(capsys: pytest.CaptureFixture[str]) -> None:
    board = Board.in_memory(2)
    with ProgressBar(board, 30, 10, is_shown=True):
        board.report(0, 30, ToyInfo(0.75, True, 1))
        board.report(1, 30, ToyInfo(0.75, False, 1))
    seen = capsys.readouterr()
    assert seen.out == ""
    assert "60/60" in seen.err
    assert "1 divergent" in seen.err


def test_divergences_of_warm_up_are_not_those_that_diagnostics_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    board = Board.in_memory(1)
    board.begin(10)
    for step in (3, 10, 11):
        board.report(0, step, ToyInfo(0.75, True, 1))
    assert (board.n_divergent_in_warmup, board.n_divergent) == (2, 1)
    warming = Board.in_memory(1)
    warming.begin(10)
    with ProgressBar(warming, 30, 10, is_shown=True):
        warming.report(0, 5, ToyInfo(0.75, True, 1))
    assert "1 divergent in warm-up" in capsys.readouterr().err
    with ProgressBar(warming, 30, 10, is_shown=True):
        warming.report(0, 30, ToyInfo(0.75, False, 1))
    assert "divergent" not in capsys.readouterr().err.splitlines()[-1]


def test_a_hidden_bar_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar(Board.in_memory(1), 10, 5, is_shown=False):
        pass
    assert capsys.readouterr() == ("", "")


@dataclasses.dataclass
class WithoutAcceptance:
    log_density: float


def test_where_nothing_is_accepted_or_not_nothing_is_said_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    board = Board.in_memory(1)
    with ProgressBar(board, 30, 0, is_shown=True):
        board.report(0, 30, WithoutAcceptance(-1.0))
    seen = capsys.readouterr().err
    assert "30/30" in seen
    assert "acceptance" not in seen


def test_a_notebook_gets_one_line_that_is_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []
    handle = SimpleNamespace(update=lambda data, raw: seen.append(data))
    shown = SimpleNamespace(display=lambda data, raw, display_id: handle)
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=shown))
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    board = Board.in_memory(2)
    with ProgressBar(board, n_steps=5, n_warmup=0, is_shown=is_wanted("auto"), part="1/2"):
        board.report(0, 1, SimpleNamespace(acceptance_rate=0.5, is_divergent=False))
    assert seen[-1]["text/plain"].startswith("sampling 1/2 1/10, acceptance 0.50, ")
    assert seen[-1]["text/html"].startswith('<progress value="0.100" max="1">')
    with waiting("comparing <models>", "auto"):
        assert seen[-1]["text/plain"] == "comparing <models> ..."
    assert "<models>" not in seen[-1]["text/html"]
