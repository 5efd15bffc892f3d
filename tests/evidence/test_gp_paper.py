"""The reproduction of Gaussian process classification: cells, rivals and both tables."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning

from mercer.data import named
from mercer.gp.estimator import GPClassifier
from mercer.gp.laplace import fit_laplace
from mercer.posterior.scores import error_rate, log_score
from reproduce.papers import (
    gp_claims,
    gp_crabs,
    gp_mixtures,
    gp_part,
    gp_pima,
    gp_race,
    gp_rivals,
    gp_table_1,
    gp_table_2,
)
from reproduce.papers.gp_cells import Figures, Method, Repeat, Split, column, run_method
from reproduce.papers.gp_claims import CG, CHOLESKY, STARTS, find_mode, problem
from reproduce.papers.gp_glass import glass_repeats
from reproduce.papers.gp_methods import (
    AT_MAXIMUM,
    DEFAULT,
    LINEAR_DISCRIMINANT,
    LOGISTIC,
    METROPOLIS,
    PAPER,
)
from reproduce.papers.gp_mixtures import MixtureDiscriminant
from reproduce.papers.gp_networks import Networks
from reproduce.papers.gp_part import Part, figures_table, log_score_notes, run_methods
from reproduce.papers.gp_race import HMC, Lap, race, race_claims, race_table
from reproduce.papers.gp_race import METROPOLIS as WALK
from reproduce.papers.gp_rivals import linear_discriminant
from reproduce.papers.gp_table_2 import CORRECTED, FOREST, METHODS, NETWORK, SVC, TREE
from reproduce.papers.gp_table_2 import PAPER as PRINTED
from reproduce.papers.matrices import named_arrays
from reproduce.papers.reproduction import Claim, Reproduction, Settings, write_reproduction

# ------------------------------------------------------------------------------------------- claims

# Conjugate gradients against Cholesky factors, and what is made of the seconds.

N = 60


@pytest.mark.parametrize("solve", [gp_claims.solve_by_factor, gp_claims.solve_by_cg])
@pytest.mark.parametrize("is_warm", [False, True])
def test_both_find_the_mode(solve, is_warm: bool) -> None:
    before, K, y = problem(N)
    start = find_mode(before, y, gp_claims.solve_by_factor) if is_warm else None
    found = find_mode(K, y, solve, start)
    np.testing.assert_allclose(found.f, fit_laplace(K, y).f, atol=1e-6)
    assert np.abs(K @ found.a - found.f).max() == 0.0


def test_conjugate_gradients_begin_where_they_are_told() -> None:
    _, K, y = problem(N)
    root, rhs = np.full(N, 0.5), y - 0.5
    cold, n_cold = gp_claims.solve_by_cg(K, root, rhs, np.zeros(N))
    np.testing.assert_allclose(cold, gp_claims.solve_by_factor(K, root, rhs, rhs)[0], atol=1e-6)
    again, n_warm = gp_claims.solve_by_cg(K, root, rhs, cold)
    assert n_warm == 1 < n_cold
    np.testing.assert_array_equal(again, cold)


@pytest.mark.parametrize(("seconds", "verdict"), [(1.0, "holds"), (1.1, "fails")])
def test_an_order_of_magnitude_is_ten_times(seconds: float, verdict: str) -> None:
    row = {CHOLESKY: {"seconds": [9.0, 10.0, 99.0]}, CG: {"seconds": [seconds] * 3}}
    small = {start: {**row} for start in STARTS}
    slow = {start: {**row, CG: {"seconds": [10.0]}} for start in STARTS}
    claims = gp_claims._claims({200: small, 500: slow}, Settings())
    assert [claim.verdict for claim in claims] == [verdict] * 2
    assert claims[0].ours.endswith("n = 500: 1.0 times")


def test_a_quick_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gp_claims, "_QUICK_SIZES", (40, 60))
    outcome = gp_claims.reproduce(Settings(is_quick=True))
    assert len(outcome.measured) == 2 * (3 + 2)
    assert [claim.verdict for claim in outcome.claims] == ["not judged"] * 2
    paths = write_reproduction(outcome, tmp_path)
    assert "| 40 | from the last mode | conjugate gradients |" in paths[1].read_text()
    assert paths[2].read_bytes().startswith(b"\x89PNG")


# ------------------------------------------------------------------------------------------- papers

# The scenarios of Barber & Williams' tables with a stand-in for what they run.


@pytest.mark.parametrize("k", [1, 2])
def test_tables(k: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import importlib

    from reproduce import reproductions
    from reproduce.tables import _TABLES

    settings: list[Settings] = []

    def reproduce(name: str, given: Settings) -> Reproduction:
        settings.append(given)
        return Reproduction(
            name=name, title="", source="", command="", unit="%", published={},
            claims=(Claim("at most 23.3 %", "23.3 %", "22.5 %", "holds", "five shuffles"),),
            measured={"GP": np.array([22.0, 23.0])}, notes=("A note.",), tables=("| a |\n|---|",),
        )  # fmt: skip

    monkeypatch.setattr(reproductions, "reproduce", reproduce)
    monkeypatch.setenv("MERCER_BENCH_CACHE", str(tmp_path))
    module = importlib.import_module(f"reproduce.scenarios.gp_table_{k}_v1")
    metrics = json.loads(json.dumps(module.run()))
    assert settings[0].folder == tmp_path / f"gp-table-{k}-v1"
    assert not settings[0].is_quick
    assert metrics["errors"] == {"GP": [22.0, 23.0]}
    assert _TABLES[f"gp-table-{k}"][1](metrics) == [
        "| claim | paper | ours | verdict |",
        "|---|---|---|---|",
        "| at most 23.3 % | 23.3 % | 22.5 % | holds (five shuffles) |",
        "",
        "| a |",
        "|---|",
        "",
        "A note.",
    ]


# -------------------------------------------------------------------------------------------- cells

X = np.zeros((3, 1))
Y = np.array([0, 1, 1])


class Says(BaseEstimator):
    """A classifier that gives the second class the probability it was given."""

    def __init__(self, proba: float = 0.8) -> None:
        self.proba = proba

    def fit(self, X: Any, y: Any) -> Says:
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.tile([1.0 - self.proba, self.proba], (len(X), 1))


def says(seed: int, is_quick: bool) -> Says:
    return Says(0.8 if seed == 0 else 0.4)


def two_chains(seed: int, is_quick: bool) -> GPClassifier:
    return GPClassifier(
        kernel="rbf",
        inference="hmc",
        n_chains=2,
        n_draws=8,
        n_warmup=4,
        random_state=seed,
        progress=False,
        standardize=False,
    )


CERTAIN = Method("says", "who says so", says)
FOLDS = [Split(X, Y, X, Y), Split(X, Y, X[:1], Y[:1])]


def test_folds_are_put_together(tmp_path: Path) -> None:
    lines: list[str] = []
    settings = Settings(n_jobs=1, tell=lines.append, folder=tmp_path)
    found = run_method("table", "data", CERTAIN, Repeat(FOLDS, 0), settings)
    assert found.error_rate == pytest.approx(2 / 4)
    assert found.log_score == pytest.approx(-(2 * np.log(0.8) + 2 * np.log(0.2)) / 4)
    assert math.isnan(found.rejected)
    assert found.n_at_a_time == 1
    assert lines == ["data, who says so, repeat 1"]
    assert (tmp_path / "table-parts" / "data-says-0.json").exists()


def test_a_cell_is_run_once(tmp_path: Path) -> None:
    lines: list[str] = []
    settings = Settings(n_jobs=1, tell=lines.append, folder=tmp_path)
    cells = [run_method("t", "d", CERTAIN, Repeat(FOLDS, 0), settings) for _ in range(2)]
    # A nan is no number, and not equal to itself.
    assert column(cells, "cpu_seconds").tolist() == [cells[0].cpu_seconds] * 2
    assert len(lines) == 1


@pytest.mark.slow
def test_folds_side_by_side_say_the_same() -> None:
    rng = np.random.default_rng(2)
    inputs = rng.standard_normal((40, 2))
    labels = (inputs[:, 0] + rng.standard_normal(40) > 0.0).astype(np.int64)
    halves = [np.arange(20), np.arange(20, 40)]
    folds = [Split(inputs[a], labels[a], inputs[b], labels[b]) for a, b in (halves, halves[::-1])]
    method = Method("lda", "LDA", linear_discriminant)
    alone, both = (
        run_method("t", "d", method, Repeat(folds, 1), Settings(n_jobs=n)) for n in (1, 2)
    )
    assert (alone.error_rate, alone.log_score) == (both.error_rate, both.log_score)
    assert (alone.n_at_a_time, both.n_at_a_time) == (1, 2)


def test_a_chain_says_how_often_it_stayed() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((20, 2))
    split = Split(inputs, (inputs[:, 0] > 0).astype(np.int64), inputs[:5], np.zeros(5, np.int64))
    method = Method("gp", "GP", two_chains)
    found = run_method("t", "d", method, Repeat([split], 0), Settings(n_jobs=1))
    assert 0.0 <= found.rejected < 0.9
    assert found.cpu_seconds > 0.0


def test_only_what_is_random_is_repeated_on_the_same_splits() -> None:
    random = Method("r", "random", says, is_random=True)
    slow = Method("s", "slow", says, is_in_quick=False)
    again = [Repeat(FOLDS, seed) for seed in (0, 1)]
    methods, settings = (CERTAIN, random, slow), Settings(n_jobs=1)
    rows = run_methods("t", "d", methods, again, settings)
    assert {name: len(cells) for name, cells in rows.items()} == {
        "who says so": 1, "random": 2, "slow": 1
    }  # fmt: skip
    others = [Repeat(list(FOLDS), seed) for seed in (0, 1)]
    assert len(run_methods("t", "d", methods, others, settings)["who says so"]) == 2
    quick = run_methods("t", "d", methods, again, Settings(is_quick=True, n_jobs=1))
    assert list(quick) == ["who says so", "random"]


def figures(error_rate: float, log_score: float) -> Figures:
    return Figures(error_rate, log_score, math.nan, 1.25, 3.0, 2)


def test_tables_hold_what_was_seen_and_what_was_published() -> None:
    rows = {
        "ours": [figures(66 / 332, 0.4), figures(68 / 332, 0.5)],
        "theirs": [figures(70 / 332, 0.6)],
    }
    part = Part("Pima", "test errors of 332", 332, rows, (), {"ours": 68.0}, {"MARS": 75.0})
    np.testing.assert_array_equal(part.errors["ours"], [66.0, 68.0])
    lines = figures_table(part, number=".2f", has_seconds=True).splitlines()
    assert lines[0] == (
        "| method | test errors of 332 | repeats | log score | CPU s a repeat | published |"
    )
    assert lines[2:] == [
        "| ours | 67.00 ± 1 | 2 | 0.450 ± 0.05 | 1.25 | 68 |",
        "| theirs | 70.00 | 1 | 0.600 | 1.25 | - |",
        "| MARS | not run | - | - | - | 75 |",
    ]
    assert log_score_notes(rows) == (
        "Log score of ours: 0.4500 +- 0.050.",
        "Log score of theirs: 0.6000.",
    )


# ------------------------------------------------------------------------------------------- rivals

RIVALS = {
    "discriminant": gp_rivals.linear_discriminant,
    "logistic": gp_rivals.logistic_regression,
    "penalised": gp_rivals.penalised_logistic_regression,
    "network": partial(gp_rivals.likeliest_network, 2),
    "decayed": partial(gp_rivals.decayed_networks, 3),
    "mixture": gp_rivals.mixture_discriminant,
    "tree": gp_rivals.decision_tree,
    "forest": gp_rivals.random_forest,
    "svc": gp_rivals.calibrated_support_vectors,
}


def three_clouds(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes on a line, in inputs of unlike scales."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, 3)) + np.array([3.0, 0.0, 0.0]) * y[:, None]
    return X * np.array([1.0, 100.0, 0.01]), y


def two_islands(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A class that lies on both sides of the other: no single Gaussian tells them apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    side = np.where(rng.random(n) < 0.5, -4.0, 4.0)
    X = 0.7 * rng.standard_normal((n, 2))
    X[:, 0] += np.where(y == 1, side, 0.0)
    return X, y


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", list(RIVALS))
def test_rivals_learn_and_say_probabilities(name: str) -> None:
    X, y = three_clouds(90, 0)
    X_test, y_test = three_clouds(60, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RIVALS[name](0, True).fit(X, y)
    proba = model.predict_proba(X_test)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert error_rate(y_test, proba) < 0.25


def test_mixtures_see_islands_where_one_gaussian_does_not() -> None:
    X, y = two_islands(120, 0)
    X_test, y_test = two_islands(200, 1)
    scores = [
        log_score(y_test, MixtureDiscriminant(n_components=k).fit(X, y).predict_proba(X_test))
        for k in (2, 1)
    ]
    assert scores[0] < 0.1 < scores[1]


def test_one_gaussian_a_class_is_the_linear_discriminant() -> None:
    X, y = three_clouds(60, 2)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    # Its covariance divides by n as well.
    linear = LinearDiscriminantAnalysis(solver="lsqr").fit(Z, y)
    ours = MixtureDiscriminant(n_components=1).fit(Z, y)
    np.testing.assert_allclose(ours.predict_proba(Z), linear.predict_proba(Z), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(Z), linear.predict(Z))


def test_em_climbs(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = two_islands(100, 5)
    X = X + 3.0 * np.random.default_rng(0).standard_normal(X.shape)
    model = MixtureDiscriminant(n_components=2, n_starts=1).fit(X, y)
    likelihoods = []
    monkeypatch.setattr(gp_mixtures, "_N_STEPS", 1)
    shares = model._start(np.random.default_rng(1), y)
    np.testing.assert_array_equal(shares @ np.array([1, 1, 0, 0]), y == 0)
    for _ in range(30):
        likelihood, shares = model._climb(X, y, shares)
        likelihoods.append(likelihood)
    # The floor of the variances is no part of EM: hence the tolerance.
    assert np.all(np.diff(likelihoods) > -1e-3)
    assert likelihoods[-1] > likelihoods[0] + 0.1


def test_a_class_of_two_rows_has_one_gaussian() -> None:
    X, y = three_clouds(30, 3)
    X, y = np.vstack([X, X[:2] + 50.0]), np.append(y, [7, 7])
    model = MixtureDiscriminant().fit(X, y)
    assert model.owners_.tolist() == [0, 0, 1, 1, 2, 2, 3]
    assert model.predict(X[-1:]).tolist() == [7]


def test_the_likeliest_start_is_kept_or_all_are_averaged() -> None:
    X, y = two_islands(80, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        alone = [Networks(n_hidden=2, n_starts=1, random_state=k).fit(X, y) for k in range(4, 8)]
        best = Networks(n_hidden=2, n_starts=4, random_state=1).fit(X, y)
        mean = Networks(n_hidden=2, n_starts=4, random_state=1, is_averaged=True).fit(X, y)
    losses = [model.networks_[0].loss_ for model in alone]
    assert [network.loss_ for network in best.networks_] == [min(losses)]
    assert min(losses) < max(losses)
    averaged = np.mean([model.predict_proba(X) for model in alone], axis=0)
    np.testing.assert_allclose(mean.predict_proba(X), averaged)
    np.testing.assert_array_equal(mean.predict(X), averaged.argmax(axis=1))


@pytest.mark.parametrize("make", [gp_rivals.mars, partial(gp_rivals.projection_pursuit, 3)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_regressions_of_r_learn_and_say_probabilities(make, n_classes: int) -> None:
    if not gp_rivals.has_r():
        pytest.skip("there is no Rscript with the package earth")
    X, y = three_clouds(90, 0)
    X_test, y_test = three_clouds(60, 1)
    words = np.array(["a", "b", "c"])
    train, test = y < n_classes, y_test < n_classes
    model = make(0, True).fit(X[train], words[y[train]])
    proba = model.predict_proba(X_test[test])
    assert proba.shape == (test.sum(), n_classes)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert proba.min() > 0.0
    assert error_rate(y_test[test], proba) < 0.25
    assert np.mean(model.predict(X_test[test]) == words[y_test[test]]) > 0.75


def test_methods_of_r_are_left_out_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gp_rivals.shutil, "which", lambda name: None)
    gp_rivals.has_r.cache_clear()
    try:
        assert not gp_rivals.has_r()
        method = Method("mars", "MARS", gp_rivals.mars, needs_r=True)
        lines: list[str] = []
        assert run_methods("t", "d", [method], [], Settings(tell=lines.append)) == {}
        assert lines == ["MARS is left out: no Rscript with the package earth"]
    finally:
        gp_rivals.has_r.cache_clear()


# ------------------------------------------------------------------------------------------ table 1

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


def test_page_of_table_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


# ------------------------------------------------------------------------------------------ table 2

GOOD = {
    PRINTED: (0.224, 0.73),
    CORRECTED: (0.22, 0.58),
    NETWORK: (0.3, 0.8),
    TREE: (0.32, 3.0),
    FOREST: (0.2, 0.6),
    SVC: (0.31, 0.9),
}
COUNTS = {"Con": 13, "Head": 29, "Tabl": 9, "Veh": 17, "WinF": 70, "WinNF": 76}


@pytest.fixture
def glass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A synthetic file with the columns and the labels of the forensic glass."""
    monkeypatch.setenv(named.VARIABLE, str(tmp_path))
    facts = named._manifest()["fgl"]
    rng = np.random.default_rng(3)
    labels = np.repeat(list(COUNTS), list(COUNTS.values()))
    header = ",".join([*(f"x{j}" for j in range(facts["d"])), named.TARGET])
    rows = [
        ",".join([*(f"{value:.6f}" for value in rng.standard_normal(facts["d"])), label])
        for label in labels
    ]
    data = ("\n".join([header, *rows]) + "\n").encode()
    monkeypatch.setitem(facts, "sha256_uncompressed", hashlib.sha256(data).hexdigest())
    (tmp_path / facts["file"]).write_bytes(data)


def verdicts(changed: dict[str, tuple] | None = None, seconds: float = 30.0) -> list[str]:
    rows = {
        name: [Figures(error, score, math.nan, 13.0, seconds, 2)] * 2
        for name, (error, score) in (GOOD | (changed or {})).items()
    }
    part = Part("glass", "errors, %", 100.0, rows)
    claims = [
        *gp_table_2._paper_claims(part, Settings()),
        *gp_table_2._own_claims(rows, Settings()),
    ]
    return [claim.verdict for claim in claims]


def test_claims_are_judged() -> None:
    assert verdicts() == ["holds"] * 5
    assert verdicts({PRINTED: (0.25, 0.73), CORRECTED: (0.22, 0.61)}, 61.0) == [
        "fails", "holds", "fails", "fails", "fails"
    ]  # fmt: skip
    assert verdicts({NETWORK: (0.2, 0.55)}) == ["holds", "fails", "holds", "holds", "fails"]


@pytest.mark.usefixtures("glass")
def test_labels_that_are_words_are_numbered() -> None:
    X, y = named_arrays("fgl")
    assert X.shape == (214, 9)
    assert np.bincount(y).tolist() == list(COUNTS.values())


@pytest.mark.usefixtures("glass")
def test_folds_are_stratified_and_shuffled() -> None:
    repeats = glass_repeats(2, 10)
    for repeat in repeats:
        tested = np.concatenate([split.X_test[:, 0] for split in repeat.splits])
        assert len(np.unique(tested)) == 214
        for split in repeat.splits:
            assert len(split.y) + len(split.y_test) == 214
            counts = np.bincount(split.y_test, minlength=6)
            assert np.all(np.abs(counts - np.array(list(COUNTS.values())) / 10) <= 1.0)
            assert np.all(np.bincount(split.y, minlength=6) >= 8)
    first, second = (repeat.splits[0].X_test for repeat in repeats)
    assert first.shape != second.shape or not np.array_equal(first, second)


def frequencies(seed: int, is_quick: bool) -> Any:
    return DummyClassifier(strategy="prior")


@pytest.mark.usefixtures("glass")
def test_page_of_table_2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = tuple(replace(method, make=frequencies) for method in METHODS)
    monkeypatch.setattr(gp_table_2, "METHODS", chosen)
    monkeypatch.setattr(gp_part, "has_r", lambda: False)
    outcome = gp_table_2.reproduce(Settings(is_quick=True, n_jobs=1, folder=tmp_path))
    np.testing.assert_allclose(outcome.measured[PRINTED], 100.0 * (1.0 - 76 / 214))
    assert {claim.verdict for claim in outcome.claims} == {"not judged"}
    paths = write_reproduction(outcome, tmp_path)
    page = paths[1].read_text()
    assert "| MARS (degree 1) | not run | - | - | - | 32.2 |" in page
    assert f"| {PRINTED} | 64.5 | 1 | 1.5" in page
    assert paths[0].read_text().startswith('method,repeat,"errors, %",log score,CPU seconds\n')
    monkeypatch.setattr(gp_table_2, "_N_SHUFFLES", 2)
    monkeypatch.setattr(gp_table_2, "_N_FOLDS", 2)
    full = gp_table_2.reproduce(Settings(n_jobs=1))
    assert {name: len(errors) for name, errors in full.measured.items()} == {
        method.name: 2 for method in METHODS if not method.needs_r
    }
    monkeypatch.setattr(gp_part, "has_r", lambda: True)
    with_r = gp_table_2.reproduce(Settings(n_jobs=1))
    assert list(with_r.measured) == [method.name for method in METHODS]
    assert "not run" not in with_r.tables[0]
    assert with_r.tables[0].splitlines()[-2].endswith("| 32.2 |")


@pytest.mark.parametrize("method", METHODS, ids=[method.key for method in METHODS])
def test_methods_can_be_made(method: Any) -> None:
    model = method.make(3, True)
    assert hasattr(model, "fit")
    if method.key.startswith("map"):
        assert model.inference == "map"
