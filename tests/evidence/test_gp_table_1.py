from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reproduce.papers import gp_crabs, gp_pima, gp_race, gp_table_1
from reproduce.papers.gp_cells import Figures, Split
from reproduce.papers.gp_methods import (
    AT_MAXIMUM,
    DEFAULT,
    LINEAR_DISCRIMINANT,
    LOGISTIC,
    METROPOLIS,
    PAPER,
)
from reproduce.papers.gp_part import Part
from reproduce.papers.gp_race import HMC, Lap, race, race_claims, race_table
from reproduce.papers.gp_race import METROPOLIS as WALK
from reproduce.papers.reproduction import Settings, write_reproduction

FAST, SLOW = Lap(200.0, 2.0, 100.0), Lap(90.0, 3.0, 30.0)


def seen(errors: list[float], n: int, log_score: float, rejected: float) -> list[Figures]:
    return [Figures(each / n, log_score, rejected, 1.0, 1.0, 1) for each in errors]


def pima(errors: float, rejected: float, log_score: float) -> Part:
    rows = {
        PAPER: seen([errors] * 5, 332, 0.442, rejected),
        AT_MAXIMUM: seen([69.0], 332, 0.44, math.nan),
        DEFAULT: seen([66.0, 67.0], 332, log_score, 0.1),
    }
    return Part("Pima", "test errors of 332", 332, rows)


@pytest.mark.parametrize(
    ("part", "verdicts"),
    [
        (pima(68.0, 0.01, 0.439), ["holds"] * 4),
        (pima(69.0, 0.06, 0.441), ["fails", "holds", "fails", "fails"]),
    ],
)
def test_pima_claims_are_judged(part: Part, verdicts: list[str]) -> None:
    assert [claim.verdict for claim in gp_pima._claims(part)] == verdicts


ERRORS = {
    PAPER: np.array([5.0, 6.0, 7.0]),
    DEFAULT: np.array([6.0, 8.0, 8.0]),
    LOGISTIC: np.array([5.0, 7.0, 9.0]),
    LINEAR_DISCRIMINANT: np.array([5.0, 6.0, 7.0]),
    METROPOLIS: np.array([6.0, 6.0, 7.0]),
}


def test_crabs_claims_are_paired() -> None:
    unjudged, paper, default = gp_crabs._claims(ERRORS, 3)
    assert (unjudged.verdict, paper.verdict, default.verdict) == ("not judged", "holds", "fails")
    assert "difference -1.00 +- 0.58" in paper.ours


def test_claims_of_the_chains() -> None:
    few, similar = gp_crabs._sampler_claims(ERRORS, 0.02, Settings())
    assert (few.verdict, similar.verdict) == ("holds", "holds")
    assert "6.33 against 6.00, difference +0.33 +- 0.33" in similar.ours
    worse = {**ERRORS, METROPOLIS: ERRORS[PAPER] + 1.5}
    many, unlike = gp_crabs._sampler_claims(worse, 0.05, Settings())
    assert (many.verdict, unlike.verdict) == ("fails", "fails")
    assert gp_crabs._sampler_claims(worse, 0.0, Settings(is_quick=True))[1].verdict == "not judged"


def test_crabs_splits_are_forty_of_each() -> None:
    y = np.repeat([1, 0, 1, 0], 50)
    train, test = gp_crabs._rows(y, 3)
    assert np.bincount(y[train]).tolist() == [40, 40]
    assert sorted([*train, *test]) == list(range(200))


def test_the_race_is_judged() -> None:
    laps = {"crabs": {HMC: FAST, WALK: SLOW}, "Pima": {HMC: SLOW, WALK: FAST}}
    assert [claim.verdict for claim in race_claims(laps, Settings())] == ["holds", "fails"]
    (claim, _) = race_claims(laps, Settings(is_quick=True))
    assert claim.verdict == "not judged"
    assert "30.0 effective draws a second against 100.0" in claim.ours
    assert f"| crabs | {WALK} | 90 | 3 | 30.0 |" in race_table(laps)


def test_the_race_is_run_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((24, 2))
    y = (X[:, 0] + 0.5 * rng.standard_normal(24) > 0.0).astype(np.int64)
    lines: list[str] = []
    settings = Settings(is_quick=True, tell=lines.append, folder=tmp_path)
    splits = {"toy": Split(X, y, X, y)}
    first = race(splits, settings)
    assert race(splits, settings) == first
    assert lines == ["toy, HMC and Metropolis, seed 1"] * 2
    assert list(first["toy"]) == list(gp_race.CHAINS)
    for lap in first["toy"].values():
        assert lap.cpu_seconds > 0.0
        assert lap.ess_per_second == pytest.approx(lap.min_ess / lap.cpu_seconds)
        assert 0.0 < lap.min_ess < 1000.0


def test_the_median_is_of_each_figure() -> None:
    laps = [
        {"min_ess": size, "cpu_seconds": seconds}
        for size, seconds in ((10.0, 1.0), (30.0, 2.0), (20.0, 4.0))
    ]
    assert gp_race._median(laps) == Lap(20.0, 2.0, 10.0)


def test_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    part = pima(68.0, 0.01, 0.439)
    part = replace(part, published={PAPER: 68.0}, claims=gp_pima._claims(part))
    crabs = replace(part, title="crabs", unit="test errors of 120", scale=120)
    laps = {"crabs": {HMC: FAST, WALK: SLOW}}
    monkeypatch.setattr(gp_pima, "half", lambda settings: part)
    monkeypatch.setattr(gp_crabs, "half", lambda settings: crabs)
    monkeypatch.setattr(gp_crabs, "random_split", lambda seed: None)
    monkeypatch.setattr(gp_table_1, "race", lambda splits, settings: laps)
    outcome = gp_table_1.reproduce(Settings(is_quick=True))
    paths = write_reproduction(outcome, tmp_path)
    page = paths[1].read_text()
    assert "| Pima: fewer than 5 % of trajectories are rejected | < 5 % | 1.0 % at most |" in page
    assert f"| {PAPER} | 68.00 ± 0 | 5 | 0.442 ± 0 | 68 |" in page
    assert outcome.measured[f"crabs: {PAPER}"].shape == (5,)
    assert paths[2].read_bytes().startswith(b"\x89PNG")
