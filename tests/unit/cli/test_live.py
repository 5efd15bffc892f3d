"""What a terminal shows while scores and rows come."""

from __future__ import annotations

import io
import math
import re
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from mercer.cli.compare import LiveScores, advice, results_json
from mercer.cli.stream import Facts, LivePanel
from mercer.cli.stream_model import Prediction, Tally
from mercer.cli.terminal import Session, digits3, duration
from mercer.estimation.cross_validate import Result
from mercer.estimation.tasks import REGRESSION
from mercer.posterior.evaluation import HeldClasses
from mercer.sampling.progress import Board, ProgressBar, in_hand, waiting
from support.fake_regression import held_rows

# Live scores.


Y = tuple(np.arange(20) % 2 for _ in range(4))


def result(name: str, p: float, *, is_baseline: bool = True, seconds: float = 1.0) -> Result:
    rng = np.random.default_rng(0)
    probas = []
    for y in Y:
        right = np.clip(p + 0.02 * rng.standard_normal(len(y)), 0.01, 0.99)
        second = np.where(y == 1, right, 1 - right)
        probas.append(np.column_stack([1 - second, second]))
    parts = tuple(HeldClasses(y, proba) for y, proba in zip(Y, probas, strict=True))
    return Result(name, is_baseline, parts, seconds)


OURS = result("mercer gp", 0.7, is_baseline=False, seconds=30.0)
LOST = Result("mercer gp", False, (), math.nan, problem="out of time (60 s)")


def test_advice_names_the_better_one() -> None:
    assert advice([OURS, result("svc", 0.6)], "log_score", 60).startswith("Take mercer gp")
    assert advice([OURS, result("svc", 0.8)], "log_score", 60).startswith("Take svc")
    level = advice([OURS, result("svc", 0.7)], "log_score", 60)
    assert "level" in level
    assert "svc is 30 times as fast" in level
    quick = advice([OURS, result("svc", 0.7, seconds=300.0)], "log_score", 60)
    assert "mercer gp is 10 times as fast, and also says how sure it is" in quick
    same = advice([OURS, result("svc", 0.7, seconds=29.0)], "log_score", 60)
    assert "both take about as long" in same


def test_advice_when_something_is_missing() -> None:
    words = advice([LOST, result("svc", 0.6)], "log_score", 60)
    assert "svc has the lowest log score" in words
    assert "ran out of time" in words
    assert advice([LOST], "log_score", 60).startswith("No model")


def test_the_table_fills_as_models_finish() -> None:
    live = LiveScores(["svc", "mercer gp", "forest"], 4, "log_score")
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with live.shown(console):
        live.begin("svc")
        live.count("svc")
        live.add(OURS)
        live.add(Result("forest", True, (), math.nan, problem="failed: a long story"))
    plain = Console(file=io.StringIO(), width=80)
    plain.print(live.table())
    text = plain.file.getvalue()  # type: ignore[attr-defined]
    assert text.index("mercer gp") < text.index("svc 1/4")
    assert "forest: failed" in text
    assert max(map(len, text.splitlines())) <= 80


def test_json_has_all_scores_with_their_errors() -> None:
    fields = results_json([OURS, LOST], "log_score", "4 folds", "take it")
    first, second = fields["models"]
    assert first["brier_score"]["standard_error"] > 0
    assert first["calibration_error"]["standard_error"] is None
    assert second == {"name": "mercer gp", "is_baseline": False, "problem": "out of time (60 s)"}


def test_numbers_have_three_digits() -> None:
    assert [digits3(x) for x in (0.12345, 12.345, 1234.5, math.nan)] == [
        "0.123",
        "12.3",
        "1234",
        "-",
    ]
    assert [duration(x) for x in (0.123, 42.4, 1200.0, math.nan)] == ["0.12", "42", "20 min", "-"]


def number_result(
    name: str, noise: float, *, is_baseline: bool = True, spread: float = 1.0
) -> Result:
    how = {"noise": noise, "spread": spread}
    parts = tuple(held_rows(n_rows=30, **how, seed=seed) for seed in range(4))
    return Result(name, is_baseline, parts, 1.0, REGRESSION)


SPECTRAL = number_result("mercer spectral", 0.0, is_baseline=False)


def test_the_table_of_numbers_fits_a_terminal() -> None:
    live = LiveScores(["mercer spectral", "random kitchen sinks"], 4, "rmse", REGRESSION)
    for each in (number_result("random kitchen sinks", 1.0), SPECTRAL):
        live.add(each)
    plain = Console(file=io.StringIO(), width=80)
    plain.print(live.table(is_final=True))
    text = plain.file.getvalue()  # type: ignore[attr-defined]
    assert text.index("mercer spectral") < text.index("random kitchen sinks")
    assert "RMSE ±" in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("metric", [metric.name for metric in REGRESSION.metrics])
def test_advice_on_numbers_by_any_metric(metric: str) -> None:
    words = advice([SPECTRAL, number_result("forest", 3.0)], metric, 60)
    if metric in ("coverage_90", "calibration_error"):
        assert words
    else:
        assert words.startswith("Take mercer spectral: its ")


@pytest.mark.parametrize("noise", [0.0, 1.5])
def test_advice_on_numbers_says_who_knows_how_sure_it_is(noise: float) -> None:
    """Where another is as good or better in squared errors, but too sure."""
    ours = number_result("mercer spectral", noise, is_baseline=False)
    words = advice([ours, number_result("forest", 0.0, spread=0.2)], "rmse", 60)
    assert words.startswith("Take forest" if noise else "mercer spectral and forest are level")
    assert "How sure a prediction is, mercer spectral says best: its log score is below" in words
    words = advice([ours, number_result("forest", 0.0)], "rmse", 60)
    assert "How sure" not in words


def test_advice_begins_with_a_simple_baseline_that_is_level() -> None:
    """Whatever is better than both by chance; not where mercer's best is clearly better."""
    logistic = result("logistic regression", 0.7, seconds=0.1)
    words = advice([OURS, logistic, result("svc", 0.7)], "log_score", 60)
    assert words.startswith("mercer gp is only level with logistic regression, which is simpler")
    assert "logistic regression is 300 times as fast" in words
    words = advice([OURS, result("logistic regression", 0.6), result("svc", 0.7)], "log_score", 60)
    assert words.startswith("mercer gp and svc are level")


def test_advice_names_what_was_scored_at_a_quick_setting() -> None:
    quick = replace(OURS, setting="maximum", is_quick=True)
    assert "--seconds-per-model above 60 goes on" in advice([quick], "log_score", 60)
    assert "goes on" not in advice([OURS], "log_score", 60)


@pytest.mark.parametrize("metric", ["rmse", "standardized_mse"])
def test_a_score_that_no_model_has_is_no_column_unless_it_sorts_the_table(metric: str) -> None:
    parts = tuple(replace(part, variance=np.full(len(part.y), np.nan)) for part in SPECTRAL.parts)
    live = LiveScores(["mercer spectral"], len(parts), metric, REGRESSION)
    live.add(replace(SPECTRAL, parts=parts))
    headings = [str(column.header) for column in live.table().columns]
    assert ("MSE/var ±" in headings) == (metric == "standardized_mse")
    assert "MSE/var" not in headings


def test_off_a_terminal_each_result_has_a_line() -> None:
    said: list[str] = []
    live = LiveScores(["mercer gp"], 4, "log_score", tell=said.append)
    with live.shown(Console(file=io.StringIO())):
        live.count("mercer gp")
        live.add(replace(OURS, setting="maximum"))
    assert said == ["mercer gp: maximum, log score 0.354 ± 0.003, 30 s of CPU"]


def wait_for(session: Session, words: str) -> None:
    until = time.monotonic() + 30.0
    while words not in session.err.file.getvalue():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_long_work_has_a_line_now_and_then_off_a_terminal(monkeypatch) -> None:
    monkeypatch.setattr("mercer.cli.terminal._SILENCE", 0.01)
    live = LiveScores(["ridge", "mercer gp"], 4, "log_score")
    live.begin("mercer gp")
    live.count("mercer gp")
    session = Session(err=Console(file=io.StringIO()))
    with session.at_work(lambda: ""):
        wait_for(session, "at work   the first steps, ")
    with session.at_work(live.in_hand):
        wait_for(session, "at work   mercer gp: 1 of 4 folds, ")
    with session.progress() as bar:
        bar.update(bar.add_task("scoring", total=9, detail="ridge"), advance=2)
        wait_for(session, "at work   scoring 2 of 9 ridge, ")


def test_off_a_terminal_lines_say_how_far_a_fit_is(monkeypatch) -> None:
    monkeypatch.setattr("mercer.cli.terminal._SILENCE", 0.005)
    session, board = Session(err=Console(file=io.StringIO())), Board.in_memory(2)
    board.begin(40)
    with session.at_work("fitting"):
        with waiting("comparing 20 models by their evidence", False):
            wait_for(session, "at work   fitting: comparing 20 models by their evidence, ")
        with ProgressBar(board, 100, 40, is_shown=False, part="1/2"):
            board.report(0, 50, None)
            wait_for(session, "at work   fitting: sampling 1/2, 25% of the steps, ")
        assert in_hand() == ""


def test_after_a_while_lines_are_fewer(monkeypatch) -> None:
    monkeypatch.setattr("mercer.cli.terminal._SILENCE", 0.001)
    monkeypatch.setattr("mercer.cli.terminal._LATER", 0.1)
    session = Session(err=Console(file=io.StringIO()))
    with session.at_work("fitting"):
        time.sleep(0.9)
    times = re.findall(r"fitting, ([\d.]+) s so far", session.err.file.getvalue())
    assert times
    assert sum(float(t) > 0.15 for t in times) < 10


def test_pairs_of_folds_tell_apart_what_their_spread_hides() -> None:
    """The mutant, another order of the rows of one of them, must hide the difference."""
    near = number_result("forest", 0.5)
    assert advice([SPECTRAL, near], "rmse", 60).startswith("Take mercer spectral")
    mutant = Result("forest", True, tuple(reversed(near.parts)), 1.0, REGRESSION)
    assert "level" in advice([SPECTRAL, mutant], "rmse", 60)


def test_json_of_numbers_has_every_metric() -> None:
    fields = results_json([SPECTRAL], "rmse", "4 folds", "take it")["models"][0]
    assert fields["n_folds"] == 4
    assert fields["calibration_error"]["standard_error"] is None
    assert fields["mse"]["mean"] == pytest.approx(
        np.mean([part.scores().mse for part in SPECTRAL.parts])
    )


# Live stream.


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_it_is_drawn_four_times_a_second_at_most() -> None:
    clock, asked = Clock(), []
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    panel = LivePanel(console, is_shown=True, clock=clock)
    assert panel.seconds_left is None

    def facts() -> dict[str, str]:
        asked.append(clock.now)
        return {"rows": f"{len(asked)}", "bad rows": "0"}

    with panel.shown():
        for step in range(100):
            clock.now = step / 100
            panel.tick(facts)
        assert 0.0 < panel.seconds_left < 0.25
    assert asked == [0.0, 0.25, 0.5, 0.75]
    assert "bad rows" in console.file.getvalue()  # type: ignore[attr-defined]
    panel.tick(facts)
    assert len(asked) == 4


def test_where_it_is_not_shown_nothing_is_asked() -> None:
    console = Console(file=io.StringIO(), width=80)
    panel = LivePanel(console, is_shown=False)
    with panel.shown():
        panel.tick(lambda: {"rows": "1"})
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]


# Facts.


def facts_of(said: Prediction, **fields: float) -> dict[str, str]:
    tally = Tally()
    tally.n_rows = tally.n_learned = 3
    tally.add(said)
    model = SimpleNamespace(n_centres_=2.5, **fields)
    learner = SimpleNamespace(tally=tally, predictor=SimpleNamespace(model=model), is_ready=True)
    return Facts(learner, clock=lambda: 0.0)()


def test_of_numbers_noise_and_intervals_are_said() -> None:
    facts = facts_of(Prediction({}, -1.0, is_inside=True), noise_std_=0.25)
    assert facts["in interval"] == "100.0 %"
    assert facts["noise"] == "0.250"
    assert "wrong (last 1000)" not in facts


def test_of_classes_the_share_of_errors_is_said() -> None:
    facts = facts_of(Prediction({}, -1.0, is_right=False))
    assert facts["wrong (last 1000)"] == "100.0 %"
    assert facts["centres"] == "2.5"
    assert "noise" not in facts
