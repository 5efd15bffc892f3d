"""What `mercer reproduce` runs, keeps, compares, writes and says; the fits are in the slow tier."""

from __future__ import annotations

import csv
import importlib
import json
import math
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from mercer.errors import UsageError
from reproduce.papers import kept as home
from reproduce.papers import names
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.mcnemar import mcnemar
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

# ------------------------------------------------------------------------------------- reproduction

# What `mercer reproduce` writes and says, without fitting; the fits are in the slow tier.

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


# --------------------------------------------------------------------------------------------- kept


class Counted:
    """A run that says how often it ran."""

    n = 0

    def __call__(self) -> dict[str, float]:
        self.n += 1
        return {"run": float(self.n), "none": math.nan}


def test_a_part_is_run_once(tmp_path: Path) -> None:
    run = Counted()
    for _ in range(3):
        assert kept(tmp_path / "new", "part", {"seed": 1}, run)["run"] == 1.0
    assert math.isnan(kept(tmp_path / "new", "part", {"seed": 1}, run)["none"])
    assert kept(tmp_path / "new", "part", {"seed": 2}, run)["run"] == 2.0
    assert kept(tmp_path / "new", "other", {"seed": 2}, run)["run"] == 3.0


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"\xff", b"1", b'{"of": 1, "found": {}}', b'{"of": {"seed": 1}}'],
)
def test_a_damaged_file_is_run_again(tmp_path: Path, content: bytes) -> None:
    run = Counted()
    kept(tmp_path, "part", {"seed": 1}, run)
    (tmp_path / "part.json").write_bytes(content)
    assert kept(tmp_path, "part", {"seed": 1}, run)["run"] == 2.0
    assert kept(tmp_path, "part", {"seed": 1}, run)["run"] == 2.0


def test_another_version_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Counted()
    kept(tmp_path, "part", {}, run)
    monkeypatch.setattr(home, "mercer_version", lambda: "99")
    assert kept(tmp_path, "part", {}, run)["run"] == 2.0


def test_nothing_is_kept_without_a_folder() -> None:
    run = Counted()
    assert parts_folder(Settings(), "x") is None
    assert [kept(None, "part", {}, run)["run"] for _ in range(2)] == [1.0, 2.0]


def test_quick_parts_lie_apart(tmp_path: Path) -> None:
    quick = parts_folder(Settings(is_quick=True, folder=tmp_path), "x")
    assert (quick, parts_folder(Settings(folder=tmp_path), "x")) == (
        tmp_path / "x-quick-parts",
        tmp_path / "x-parts",
    )


# ------------------------------------------------------------------------------------------ mcnemar


def wrong(only_first: int, only_second: int) -> tuple[np.ndarray, np.ndarray]:
    """Which rows each has wrong, beside five that both have."""
    first = np.array([True] * only_first + [False] * only_second + [True] * 5 + [False] * 9)
    second = np.array([False] * only_first + [True] * only_second + [True] * 5 + [False] * 9)
    return first, second


@pytest.mark.parametrize("pair", [(9, 1), (1, 9), (3, 4), (20, 30)])
def test_is_the_exact_value_with_what_was_seen_counted_half(pair: tuple[int, int]) -> None:
    n = sum(pair)
    exact = binomtest(min(pair), n).pvalue
    seen = binomtest(min(pair), n, alternative="less").pvalue
    seen -= binomtest(min(pair) - 1, n, alternative="less").pvalue
    assert mcnemar(*wrong(*pair)) == pytest.approx(exact - seen, rel=1e-12)


def test_a_tie_and_no_difference() -> None:
    assert mcnemar(*wrong(2, 2)) == pytest.approx(1.0 - 0.5 * 6 / 16)
    assert mcnemar(*wrong(0, 0)) == 1.0


def test_is_known_to_be_right_under_its_hypothesis() -> None:
    """Shares below 5 %, by enumeration of the law: about 5 % at n = 60, never above 5.5."""
    n = 60
    law = np.array([binomtest(k, n).pvalue for k in range(n + 1)])
    assert law.max() == pytest.approx(1.0)
    from scipy.stats import binom

    rejected = [mcnemar(*wrong(k, n - k)) < 0.05 for k in range(n + 1)]
    share = binom.pmf(np.arange(n + 1), n, 0.5)[rejected].sum()
    assert 0.03 < share < 0.055


# -------------------------------------------------------------------------------------------- cells

# Cells of long scenarios: kept as they are measured, not measured twice, in any number of jobs.


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("MERCER_BENCH_CACHE", str(tmp_path))
    return tmp_path


def test_a_stopped_run_keeps_what_it_has_measured_and_goes_on(folder: Path) -> None:
    from reproduce.cells import measured

    calls: list[int] = []

    def measure(k: int, *, limit: int) -> list[dict[str, Any]]:
        if k >= limit:
            raise KeyError(k)
        calls.append(k)
        return [{"k": k}, {"k": -k}]

    cells = [(3,), (1,), (7,), (1,)]
    with pytest.raises(KeyError):
        measured("toy-v1", cells, lambda k: measure(k, limit=5))
    lines = [json.loads(line) for line in (folder / "toy-v1.jsonl").read_text().splitlines()]
    assert [line["cell"] for line in lines] == [[3], [1]]
    rows = measured("toy-v1", cells, lambda k: measure(k, limit=9))
    assert calls == [3, 1, 7]
    assert [row["k"] for row in rows] == [3, -3, 1, -1, 7, -7, 1, -1]


def test_two_cells_at_a_time_give_the_same_rows(folder: Path) -> None:
    from reproduce.cells import measured

    cells = [(k,) for k in range(5)]
    rows = measured("toy-v2", cells, lambda k: [{"k": k}], n_jobs=2)
    assert rows == [{"k": k} for k in range(5)]
    assert len((folder / "toy-v2.jsonl").read_text().splitlines()) == 5


def test_no_cell_is_begun_when_time_is_up(folder: Path) -> None:
    from reproduce.cells import measured

    def measure(k: int) -> list[dict[str, Any]]:
        return [{"k": k}]

    cells = [(1,), (2,)]
    assert measured("toy-v1", cells, measure, seconds=0.0) == []
    measured("toy-v1", cells[1:], measure)
    assert measured("toy-v1", cells, measure, seconds=0.0) == [{"k": 2}]


def test_prediction_sets_of_right_probabilities_hold_their_level(folder: Path) -> None:
    """Exactly, on average over classes drawn by these probabilities, ties included."""
    from reproduce.scenarios.coverage_v1 import LEVELS, _classes

    class Fixed:
        def __init__(self, p: list[float]) -> None:
            self.p = np.array([p])

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return self.p

    for p in ([0.5, 0.5], [0.9, 0.1], [0.995, 0.005], [0.2, 0.8]):
        told = [_classes(Fixed(p), np.zeros((1, 1)), np.array([c])) for c in (0, 1)]
        for level in LEVELS:
            inside = sum(q * row[f"inside_{level}"] for q, row in zip(p, told, strict=True))
            assert inside == pytest.approx(level / 100.0, abs=1e-4)


@pytest.mark.slow
def test_coverage_of_one_set_a_cell(folder: Path) -> None:
    from reproduce.scenarios.coverage_v1 import AIRFOIL, airfoil_means, rows_of, summary
    from reproduce.tables import _airfoil, _coverage

    names = ("GPRegressor", "SequentialKernelClassifier")
    rows = rows_of(names, 1, seconds=None, sizes=(15,), inputs=(1,))
    assert len(rows) == 2 * 4
    metrics = json.loads(json.dumps(summary(rows)))
    assert metrics["n_missed"] == 0  # of one set nothing can be said
    assert all(0.0 <= cell["inside_90"] <= 100.0 for cell in metrics["cells"])
    assert len(_coverage(metrics)) == 2 + 2 + 2
    own = [{**rows[0], "how": how, "split": k} for how in AIRFOIL for k in range(2)]
    metrics = json.loads(json.dumps({"airfoil": airfoil_means(own)}))
    assert len(_airfoil(metrics)) == 2 + len(AIRFOIL)


def test_bands_of_one_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapley values of a sum are its parts less their means; one set of two estimators."""
    from reproduce.scenarios import bands_v1 as scenario
    from reproduce.tables import _TABLES

    rng = np.random.default_rng(0)
    background, x = rng.standard_normal((7, 3)), rng.standard_normal(3)
    found = scenario.shapley(lambda rows: np.sin(rows).sum(axis=1), x, background)
    np.testing.assert_allclose(found, np.sin(x) - np.sin(background).mean(axis=0), atol=1e-12)
    product = scenario.shapley(lambda rows: rows[:, 0] * rows[:, 1], x, np.zeros((1, 3)))
    np.testing.assert_allclose(product, [0.5 * x[0] * x[1]] * 2 + [0.0], atol=1e-12)
    monkeypatch.setattr(scenario, "N_ROWS", 12)
    monkeypatch.setattr(scenario, "N_LEVEL_ROWS", 30)
    functions = scenario.function_cell("SequentialKernelRegressor", 0)
    levels = scenario.level_cell("SequentialKernelRegressor", 4, 0)
    metrics = json.loads(json.dumps(scenario.summary(functions, levels)))
    assert 0.0 <= metrics["functions"][0]["contributions"] <= 100.0
    for name in ("bands", "bands-levels"):
        assert len(_TABLES[name][1](metrics)) == 2 + 1


def test_few_inputs_of_many_in_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    from reproduce.scenarios import gp_wide_v1 as scenario
    from reproduce.tables import _TABLES

    monkeypatch.setattr(scenario, "N_NEW", 50)
    own, quick = scenario._model, {"default": "maximum", "forest": "boosting"}
    monkeypatch.setattr(scenario, "_model", lambda name, *more: own(quick.get(name, name), *more))
    rows = [row for task in scenario.TASKS for row in scenario.cell(task, "chance", 24, 31, 0)]
    metrics = json.loads(json.dumps(scenario.summary(rows)))
    assert 0.5 < metrics["rows"][0]["default"] < 1.0
    assert 0.5 < metrics["rows"][1]["default_inside_90"] <= 1.0
    assert len(_TABLES["gp-wide"][1](metrics)) == 2 + 2
