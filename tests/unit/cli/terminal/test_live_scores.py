from __future__ import annotations

import io
import math

import numpy as np
from rich.console import Console

from mercer.cli.terminal.live_scores import LiveScores, advice, results_json
from mercer.cli.terminal.score_table import digits3, duration
from mercer.estimation.cross_validate import Result

Y = tuple(np.arange(20) % 2 for _ in range(4))


def result(name: str, p: float, *, is_baseline: bool = True, seconds: float = 1.0) -> Result:
    rng = np.random.default_rng(0)
    probas = []
    for y in Y:
        right = np.clip(p + 0.02 * rng.standard_normal(len(y)), 0.01, 0.99)
        second = np.where(y == 1, right, 1 - right)
        probas.append(np.column_stack([1 - second, second]))
    return Result(name, is_baseline, tuple(probas), Y, seconds)


OURS = result("mercer gp", 0.7, is_baseline=False, seconds=30.0)
LOST = Result("mercer gp", False, (), (), math.nan, "out of time (60 s)")


def test_advice_names_the_better_one() -> None:
    assert advice([OURS, result("svc", 0.6)], "log_score", 60).startswith("Take mercer gp")
    assert advice([OURS, result("svc", 0.8)], "log_score", 60).startswith("Take svc")
    level = advice([OURS, result("svc", 0.7)], "log_score", 60)
    assert "level" in level
    assert "svc is 30 times as fast" in level


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
        live.add(Result("forest", True, (), (), math.nan, "failed: a long story"))
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
