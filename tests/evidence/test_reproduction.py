"""What `mercer reproduce` writes and says, without fitting; the fits are in the slow tier."""

from __future__ import annotations

import csv
import importlib
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from mercer.errors import UsageError
from reproduce.papers import names
from reproduce.papers.names import NAMES, reproduce
from reproduce.papers.reproduction import (
    Claim,
    Reproduction,
    Settings,
    is_clearly_below_zero,
    judged,
    mean_and_error,
    write_reproduction,
)

TOY = Reproduction(
    name="toy-table-1",
    title="A toy",
    source="Nobody (1999), Table 1",
    command="mercer reproduce toy-table-1",
    claims=(Claim("fewer errors", "3", "2.50 +- 0.50", "holds", "two repeats"),),
    measured={"ours": np.array([2.0, 3.0]), "theirs": np.array([4.0])},
    unit="errors of 10",
    published={"ours": 3.0},
    notes=("A note.",),
)


def test_mean_and_error() -> None:
    assert mean_and_error(np.array([2.0, 3.0])) == pytest.approx((2.5, 0.5))
    assert mean_and_error(np.array([4.0])) == (4.0, 0.0)


def test_two_standard_errors_are_clear() -> None:
    assert is_clearly_below_zero(np.array([-3.0, -2.0]))
    assert not is_clearly_below_zero(np.array([-3.0, 0.5]))
    assert not is_clearly_below_zero(np.array([2.0, 3.0]))
    assert not is_clearly_below_zero(np.array([-3.0]))


@pytest.mark.parametrize(
    ("is_quick", "is_met", "verdict"),
    [(False, True, "holds"), (False, False, "fails"), (True, True, "not judged")],
)
def test_quick_runs_judge_nothing(is_quick: bool, is_met: bool, verdict: str) -> None:
    claim = judged(Settings(is_quick=is_quick), "words", "yes", "no", is_met, "note")
    assert claim.verdict == verdict
    assert (claim.note == "note") is not is_quick


@pytest.mark.parametrize("name", [entry.name for entry in NAMES])
@pytest.mark.parametrize("is_quick", [False, True])
def test_no_name_judges_anything_in_a_quick_run(
    name: str, is_quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a reproduction makes of its claims itself."""
    absent = Claim("the same elsewhere", "yes", "-", "not judged", "the files are not at hand")
    failed = replace(TOY.claims[0], verdict="fails")
    outcome = replace(TOY, claims=(*TOY.claims, failed, absent))
    homes = []

    def load(home: str) -> SimpleNamespace:
        homes.append(home)
        return SimpleNamespace(reproduce=lambda settings: outcome)

    monkeypatch.setattr(names, "importlib", SimpleNamespace(import_module=load))
    found = reproduce(name, Settings(is_quick=is_quick))
    assert homes == [entry.home for entry in NAMES if entry.name == name]
    verdicts = [claim.verdict for claim in found.claims]
    assert verdicts == (["not judged"] * 3 if is_quick else ["holds", "fails", "not judged"])
    assert found.claims[2] == absent
    assert found.measured == outcome.measured


def test_a_picture_of_its_own_takes_the_place_of_the_dots(tmp_path: Path) -> None:
    sizes = []

    def draw(figure) -> None:
        figure.set_size_inches(2.0, 1.0)
        sizes.append(figure.axes)

    path = write_reproduction(replace(TOY, draw=draw), tmp_path)[2]
    assert sizes == [[]]
    width, height = np.frombuffer(path.read_bytes()[16:24], ">u4")
    assert (width, height) == (300, 150)


def test_files_hold_every_repeat_and_claim(tmp_path: Path) -> None:
    paths = write_reproduction(TOY, tmp_path / "new")
    assert [path.name for path in paths] == [f"toy-table-1.{end}" for end in ("csv", "md", "png")]
    rows = list(csv.reader(paths[0].read_text().splitlines()))
    assert rows[0] == ["method", "repeat", "errors of 10"]
    assert rows[1:] == [["ours", "0", "2"], ["ours", "1", "3"], ["theirs", "0", "4"]]
    page = paths[1].read_text()
    assert "| fewer errors | 3 | 2.50 +- 0.50 | holds (two repeats) |" in page
    assert "| ours | 2.50 | 0.50 | 2 |" in page
    assert "| theirs | 4.00 | - | 1 |" in page
    assert paths[2].read_bytes().startswith(b"\x89PNG")


def test_a_misspelt_name_is_told_the_nearest() -> None:
    with pytest.raises(UsageError, match="gp-pima"):
        reproduce("gp-pina", Settings())


# Claims of the papers that do not hold; docs/papers says why.
REFUTED = {"at q = 0 the margin is a measure of the evidence: kernels of all length scales"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [entry.name for entry in NAMES])
def test_quick_reproductions_hold(name: str) -> None:
    """What modules would judge if asked, but comparisons with a rival on a handful of splits."""
    needs_data = name.startswith(
        ("gp-", "basis-table-2", "spectral-table-", "spectral-figure-4", "spectral-figure-5")
    )
    if needs_data and "MERCER_DATA" not in os.environ:
        pytest.skip("MERCER_DATA is not set")
    home = next(entry.home for entry in NAMES if entry.name == name)
    outcome = importlib.import_module(home).reproduce(Settings(is_quick=True))
    failed = {claim.claim for claim in outcome.claims if claim.verdict == "fails"}
    rivals = {claim.claim for claim in outcome.claims if "against" in claim.ours}
    assert failed - rivals == REFUTED & {claim.claim for claim in outcome.claims}
