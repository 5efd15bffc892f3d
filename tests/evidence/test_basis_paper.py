"""The reproduction of sequential kernel regression: its parts at tiny sizes, and its rivals."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mercer.errors import StorageError
from reproduce.papers import (
    basis_boston,
    basis_claims,
    basis_figure_1,
    basis_fixed,
    basis_methods,
    basis_order,
    basis_rivals,
    basis_table_1,
    basis_table_2,
    basis_weight,
)
from reproduce.papers.basis_answer import Answer, Method, Problem
from reproduce.papers.basis_boston import boston_split
from reproduce.papers.basis_chain import learned, long_chains, paper_filter
from reproduce.papers.basis_figure_1 import gain_claim, sizes_of
from reproduce.papers.basis_methods import BOSTON_METHODS, SINC_METHODS, make_model, sequential
from reproduce.papers.basis_order import mean_distance
from reproduce.papers.basis_part import Part
from reproduce.papers.basis_rivals import gaussian_process, relevance_vectors, support_vectors
from reproduce.papers.basis_runs import Figures, column, figures_of, figures_table, run_methods
from reproduce.papers.basis_sinc import WIDTH, sinc, sinc_set
from reproduce.papers.reproduction import Claim, Settings, write_reproduction
from support.statistics import few_first
from support.table_1 import write_sets

# ------------------------------------------------------------------------------------------- claims


def test_parts_are_put_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def part(name: str) -> Part:
        claim = Claim(name, "yes", "yes", "holds")
        return Part((claim,), (lambda axes: axes.plot([0, 1]),), {name: np.ones(2)}, (name,))

    parts = tuple(lambda settings, name=name: part(name) for name in ("order", "fixed", "weight"))
    monkeypatch.setattr(basis_claims, "_PARTS", parts)
    monkeypatch.setattr(
        basis_claims, "gain_claim", lambda settings: Claim("gain", "yes", "yes", "holds")
    )
    outcome = basis_claims.reproduce(Settings())
    assert [claim.claim for claim in outcome.claims] == ["order", "gain", "fixed", "weight"]
    assert list(outcome.measured) == list(outcome.notes) == ["order", "fixed", "weight"]
    assert write_reproduction(outcome, tmp_path)[2].read_bytes().startswith(b"\x89PNG")


def test_the_parts_are_those_of_the_page() -> None:
    homes = [run.__module__ for run in basis_claims._PARTS]
    assert homes == [f"reproduce.papers.basis_{name}" for name in ("order", "fixed", "weight")]


# --------------------------------------------------------------------------------------------- sinc


def test_the_rows_are_those_of_section_4_1() -> None:
    data = sinc_set(3)
    np.testing.assert_allclose(np.sort(data.X[:, 0]), np.linspace(-10.0, 10.0, 50), atol=1e-14)
    assert not np.array_equal(data.X[:, 0], np.sort(data.X[:, 0]))
    assert data.X_test.shape == (1000, 1)
    x = data.X_test[:, 0]
    np.testing.assert_allclose(data.f_test, np.sin(x) / x, atol=1e-12)
    assert sinc(np.zeros(1))[0] == 1.0


def test_noise_is_a_tenth() -> None:
    """False alarm below 1e-6: 2500 and 50,000 draws."""
    sets = [sinc_set(seed) for seed in range(50)]
    errors = np.concatenate([data.y - sinc(data.X[:, 0]) for data in sets])
    assert errors.std() == pytest.approx(0.1, rel=0.08)
    fresh = np.concatenate([data.y_test - data.f_test for data in sets])
    assert fresh.std() == pytest.approx(0.1, rel=0.02)


def test_orders_are_of_the_same_rows() -> None:
    plain, first, again = sinc_set(4), sinc_set(4, order=1), sinc_set(4, order=1)
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, plain.X)
    for data in (plain, first):
        order = np.argsort(data.X[:, 0])
        np.testing.assert_array_equal(data.y[order], plain.y[np.argsort(plain.X[:, 0])])
    assert not np.array_equal(first.X, sinc_set(4, order=2).X)


# ------------------------------------------------------------------------------------------- boston


@pytest.fixture
def boston(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    write_sets(monkeypatch, tmp_path, 506, "boston")
    basis_boston._arrays.cache_clear()
    yield
    basis_boston._arrays.cache_clear()


@pytest.mark.usefixtures("boston")
def test_splits_are_of_300_and_206_rows() -> None:
    split = boston_split(0)
    assert split.X.shape == (300, 13)
    assert split.X_test.shape == (206, 13)
    np.testing.assert_allclose(split.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(split.X.std(axis=0), 1.0)
    assert split.f_test is None
    everything = np.sort(np.concatenate([split.y, split.y_test]))
    other = boston_split(1)
    np.testing.assert_array_equal(everything, np.sort(np.concatenate([other.y, other.y_test])))
    assert not np.array_equal(split.y, other.y)


def test_without_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    basis_boston._arrays.cache_clear()
    with pytest.raises(StorageError, match="MERCER_DATA"):
        boston_split(0)


# ------------------------------------------------------------------------------------------ methods

DATA = sinc_set(1)
FEW = Problem(DATA.X[:15], DATA.y[:15], DATA.X_test[::50], DATA.y_test[::50], DATA.f_test[::50])


@pytest.mark.parametrize("methods", [SINC_METHODS, BOSTON_METHODS])
def test_names_are_told_apart(methods: tuple) -> None:
    assert len({m.key for m in methods}) == len({m.name for m in methods}) == len(methods)


@pytest.mark.parametrize(
    "key", few_first(["default", "few", "paper", "printed"], "default", "few", "paper")
)
def test_mercer_answers(key: str) -> None:
    method = next(m for m in SINC_METHODS if m.key == key)
    found = method.run(FEW, 0, True)
    assert found.mean.shape == (20,)
    assert found.n_kernels > 0.0
    np.testing.assert_array_equal(found.mean, method.run(FEW, 0, True).mean)


def test_sequential_has_both_bands() -> None:
    found = sequential(make_model(is_paper=True, random_state=0, n_particles=20), FEW)
    assert np.all(found.of_target[0] < found.of_function[0])
    assert found.noise_std > 0.0


def test_boston_has_the_paper_s_settings() -> None:
    options = make_model(is_paper=True).get_params()
    assert options["lengthscale"] == pytest.approx(1.6 / math.sqrt(2.0))
    paper = next(m for m in BOSTON_METHODS if m.key == "paper")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    problem = Problem(X, X[:, 0], X[:5], X[:5, 0])
    model = make_model(
        is_paper=True, lengthscale=5.0 / math.sqrt(2.0), expected_centres=5.0, standardize="std",
        random_state=0, n_particles=40,
    ).fit(X, X[:, 0])  # fmt: skip
    np.testing.assert_array_equal(paper.run(problem, 0, True).mean, model.predict(X[:5]))


# ------------------------------------------------------------------------------------------- rivals

RNG = np.random.default_rng(1)
X = RNG.uniform(-3.0, 3.0, (40, 2))
F = 5.0 + 3.0 * np.sin(2.0 * X[:, 0])
Y = F + 0.3 * RNG.standard_normal(40)
PROBLEM = Problem(X[:30], Y[:30], X[30:], Y[30:])


class FakeRVR:
    """Says the kernel sum of all rows; knows the width 2 best."""

    def __init__(self, *, kernel: str, gamma: float, fit_intercept: bool) -> None:
        self.gamma, self.beta_, self.n_relevance_ = gamma, 4.0, 7

    def fit(self, X, z):
        self.is_good = abs(self.gamma - 0.25) < 1e-9
        self.table = {row.tobytes(): value for row, value in zip(X, z, strict=True)}
        return self

    def predict(self, X, return_std=False):
        mean = np.full(len(X), 0.0 if self.is_good else 9.0)
        return (mean, np.full(len(X), 1.3)) if return_std else mean


@pytest.fixture
def fake_rvm(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("fastrvm")
    module.RVR = FakeRVR
    monkeypatch.setitem(sys.modules, "fastrvm", module)


def test_support_vectors() -> None:
    found = support_vectors(PROBLEM, 2.0, is_quick=True)
    assert 1 <= found.n_kernels <= 30
    assert np.mean((found.mean - F[30:]) ** 2) < 0.5 * F.var()


@pytest.mark.parametrize("kind", ["isotropic", "ard", "fixed"])
def test_gaussian_process(kind: str) -> None:
    found = gaussian_process(PROBLEM, 2.0, kind=kind)
    assert np.mean((found.mean - F[30:]) ** 2) < 0.5 * F.var()
    inner, outer = found.of_function, found.of_target
    assert np.all((outer[0] < inner[0]) & (inner[0] < inner[1]) & (inner[1] < outer[1]))
    # Their squared half widths differ by that of the noise.
    half = [0.5 * (upper - lower) / 1.6448536 for lower, upper in (inner, outer)]
    np.testing.assert_allclose(half[1] ** 2 - half[0] ** 2, found.noise_std**2, rtol=1e-6)


@pytest.mark.usefixtures("fake_rvm")
def test_relevance_vectors_choose_their_width() -> None:
    centre, scale = PROBLEM.y.mean(), PROBLEM.y.std()
    for width, is_chosen, expected in ((2.0, False, 0.0), (4.0, False, 9.0), (2.8, True, 9.0),
                                       (2.0, True, 0.0)):  # fmt: skip
        found = relevance_vectors(PROBLEM, width, is_chosen=is_chosen, is_quick=True)
        np.testing.assert_allclose(found.mean, centre + scale * expected)
    assert found.n_kernels == 7.0
    assert found.noise_std == pytest.approx(0.5 * scale)
    np.testing.assert_allclose(np.diff(found.of_target, axis=0), 2 * 1.3 * scale * 1.6448536)
    np.testing.assert_allclose(np.diff(found.of_function, axis=0), 2 * 1.2 * scale * 1.6448536)


def test_without_its_package_it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = basis_methods.SINC_METHODS
    monkeypatch.setattr(basis_methods, "has_rvm", lambda: False)
    left = [method.key for method in basis_methods.runnable(methods)]
    assert left == [m.key for m in methods if m.key not in ("rvm", "rvm-chosen")]
    monkeypatch.setattr(basis_methods, "has_rvm", lambda: True)
    assert basis_methods.runnable(methods) == methods


def test_the_package_itself() -> None:
    if not basis_rivals.has_rvm():
        pytest.skip(basis_rivals.MISSING_RVM)
    data = sinc_set(0)
    found = relevance_vectors(data, 1.6, is_chosen=False)
    assert np.sqrt(np.mean((found.mean - data.f_test) ** 2)) < 0.12
    assert 2 <= found.n_kernels <= 15
    assert 0.05 < found.noise_std < 0.2


# --------------------------------------------------------------------------------------------- runs

ZEROS = np.zeros((4, 1))
CURVE = np.array([0.0, 1.0, 2.0, 3.0])
FOUR_ROWS = Problem(ZEROS, np.zeros(4), ZEROS, CURVE + 0.5, CURVE)


def test_the_error_is_that_of_the_curve_where_it_is_known() -> None:
    answer = Answer(
        CURVE + 1.0,
        3,
        0.2,
        (CURVE - 1.0, CURVE + np.array([0.5, -0.5, 0.5, 0.5])),
        (CURVE, CURVE + 0.4),
    )
    found = figures_of(answer, FOUR_ROWS)
    assert found == Figures(1.0, 3.0, 0.2, 0.75, 0.0)
    unknown = figures_of(answer, Problem(ZEROS, np.zeros(4), ZEROS, CURVE + 0.5))
    assert unknown.error == 0.25
    assert math.isnan(unknown.function_coverage)


def test_methods_are_run_once(tmp_path: Path) -> None:
    seeds: list[int] = []

    def run(problem: Problem, seed: int, is_quick: bool) -> Answer:
        seeds.append(seed)
        return Answer(problem.f_test + seed)

    settings = Settings(folder=tmp_path)
    first = run_methods("toy", [Method("shift", "shifted", run)], [FOUR_ROWS] * 3, settings)
    again = run_methods("toy", [Method("shift", "shifted", run)], [FOUR_ROWS] * 3, settings)
    assert seeds == [0, 1, 2]
    np.testing.assert_array_equal(column(first["shifted"], "error"), [0.0, 1.0, 4.0])
    np.testing.assert_array_equal(column(again["shifted"], "error"), [0.0, 1.0, 4.0])
    assert np.isnan(column(again["shifted"], "n_kernels")).all()


def test_table() -> None:
    rows = {"a": [Figures(1.0, 2.0, 0.1, 0.9, math.nan), Figures(3.0, 4.0, 0.3, 0.7, math.nan)]}
    errors = {"a": [("error", column(rows["a"], "error"))]}
    text = figures_table(rows, errors, ".2f", {"b": ("5", "6")})
    assert text.splitlines() == [
        "| method | error | kernels | noise | curve in 90 % | targets in 90 % |",
        "| --- | --- | --- | --- | --- | --- |",
        "| a | 2.00 ± 1 | 3.0 | 0.2 | 0.800 | - |",
        "| published: b | 5 | 6 | - | - | - |",
    ]


# -------------------------------------------------------------------------------------------- chain

# Long chains have the posterior of the filter. False alarm below 1e-6 by the stated margins.

CHAIN_DATA = sinc_set(0)
TWELVE = Problem(
    CHAIN_DATA.X[:12],
    CHAIN_DATA.y[:12],
    CHAIN_DATA.X_test[::100],
    CHAIN_DATA.y_test[::100],
    CHAIN_DATA.f_test[::100],
)


def test_chains_and_one_pass_agree() -> None:
    """On twelve rows a thousand particles are as good as exact: errors of a few thousandths."""
    chains = long_chains(TWELVE, WIDTH, 1.0, 0, 1200)
    run = learned(
        paper_filter(WIDTH, 1.0, n_particles=1000), TWELVE.X, TWELVE.y, np.random.default_rng(1)
    )
    np.testing.assert_allclose(chains.mean, run.mean(TWELVE.X_test), atol=0.04)
    W, sizes = np.exp(run.state.particles.log_weight), run.state.particles.size
    assert chains.n_kernels == pytest.approx(float(W @ sizes), abs=0.25)
    assert np.all(chains.of_target[0] < chains.of_function[0])
    assert np.all(chains.of_function[1] < chains.of_target[1])


def test_same_seed_same_chains() -> None:
    first, again = (long_chains(TWELVE, WIDTH, 1.0, 3, 40) for _ in range(2))
    np.testing.assert_array_equal(first.mean, again.mean)
    assert first.n_kernels == again.n_kernels


# -------------------------------------------------------------------------------------------- fixed


@pytest.mark.parametrize(("shift", "verdict"), [(0.005, "holds"), (0.02, "fails")])
def test_the_largest_change_is_judged(
    shift: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def method(key: str, name: str, options: dict) -> Method:
        error = 0.05 + (shift if "expected" in options else 0.0)
        return Method(key, name, lambda problem, seed, is_quick: Answer(problem.f_test + error))

    monkeypatch.setattr(basis_fixed, "_method", method)
    (claim,) = basis_fixed.part(Settings()).claims
    assert claim.verdict == verdict
    assert f"{100 * shift / 0.05:+.0f} %" in claim.ours


def test_variants_are_other_models() -> None:
    """Each option reaches the filter: no two predictions are the same."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (14, 1))
    problem = Problem(X, np.sin(X[:, 0]), X[:4], np.zeros(4))
    variants = {name: o for name, o in basis_fixed._variants().items() if name != "k_max = 10"}
    means = [
        basis_fixed._method("key", name, options).run(problem, 0, True).mean
        for name, options in variants.items()
    ]
    assert len({mean.tobytes() for mean in means}) == len(variants)


# -------------------------------------------------------------------------------------------- order


def test_mean_distance_is_over_pairs() -> None:
    curves = np.random.default_rng(0).standard_normal((5, 30))
    squares = [np.mean((curves[i] - curves[j]) ** 2) for i in range(5) for j in range(5) if i != j]
    assert mean_distance(curves) == pytest.approx(np.sqrt(np.mean(squares)))


@pytest.mark.parametrize(("extra", "verdict"), [(0.0, "holds"), (1.0, "fails")])
def test_orders_are_held_against_seeds(
    extra: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)

    def curves(kind: str, seed: int, n: int, *, is_ordered: bool) -> np.ndarray:
        return (1.0 + extra * is_ordered) * rng.standard_normal((n, 100))

    monkeypatch.setattr(basis_order, "_curves", curves)
    found = basis_order.part(Settings())
    assert [claim.verdict for claim in found.claims] == [verdict] * 2
    assert len(found.measured["paper's settings, orders"]) == 10


# ------------------------------------------------------------------------------------------- weight


def test_the_printed_weight_is_seen_to_be_biased() -> None:
    """100 runs: the ratio is 0.2 to 0.3, its error a twelfth or less of what is missing."""
    ratio, error, printed, exact = basis_weight.evidence_ratio(100)
    assert ratio + 5.0 * error < 0.8
    assert ratio > 0.05
    assert printed < exact - 0.1


@pytest.mark.parametrize(
    ("ratio", "error", "verdicts"),
    [(0.3, 0.09, ["fails", "fails"]), (1.01, 0.056, ["holds", "holds"])],
)
def test_claims_of_weights_are_judged(
    ratio: float, error: float, verdicts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(basis_weight, "evidence_ratio", lambda n: [ratio, 0.02, 1.0, 1.5])

    def rows(settings: Settings, keys: tuple[str, ...]) -> dict[str, list[Figures]]:
        return {
            method.name: [Figures(error**2, 4.0, 0.1, 0.9, 0.9)] * 3
            for method in (basis_weight._EXACT, basis_weight._PRINTED)
        }

    monkeypatch.setattr(basis_weight, "sinc_rows", rows)
    found = basis_weight.part(Settings())
    assert [claim.verdict for claim in found.claims] == verdicts
    assert basis_weight._PRINTED.key == "printed"


# ----------------------------------------------------------------------------------------- figure 1


def test_the_sizes_are_those_of_the_figure() -> None:
    assert sizes_of(Settings())[0] == 10
    assert sizes_of(Settings())[-1] == 1000
    assert 250 in sizes_of(Settings())


@pytest.mark.parametrize(("gain", "verdict"), [(0.0, "holds"), (0.002, "holds"), (0.01, "fails")])
def test_a_clear_gain_beyond_250_is_against_the_claim(
    gain: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = 1e-4 * np.random.default_rng(0).standard_normal(25)
    found = {250: np.full(25, 0.056), 1000: 0.056 - gain + noise}
    monkeypatch.setattr(basis_figure_1, "_errors", lambda kind, n, settings: found[n])
    assert gain_claim(Settings()).verdict == verdict


def test_a_quick_run_draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(basis_figure_1, "_QUICK_SIZES", (3, 6))
    lines: list[str] = []
    settings = Settings(is_quick=True, tell=lines.append, folder=tmp_path)
    outcome = basis_figure_1.reproduce(settings)
    assert len(lines) == 8
    assert {claim.verdict for claim in outcome.claims} == {"not judged"}
    assert outcome.tables[0].splitlines()[2].startswith("| 3 | 0.")
    paths = write_reproduction(outcome, tmp_path)
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert basis_figure_1.reproduce(settings).to_markdown() == outcome.to_markdown()
    assert len(lines) == 8


# ------------------------------------------------------------------------------------------ table 1

GOOD_1 = {
    "mercer, default": (0.043, 20.0, 0.1, 0.9),
    "mercer, 8 kernels": (0.043, 8.0, 0.1, 0.9),
    "paper's settings": (0.056, 4.4, 0.107, 0.8),
    "printed weights": (0.09, 2.6, 0.13, 0.6),
    "paper's model, long chains": (0.055, 4.4, 0.107, 0.8),
    "SVR": (0.052, 28.0, 0.1, 0.9),
    "RVM, the paper's width": (0.053, 7.0, 0.1, 0.9),
    "GP": (0.043, 50.0, 0.1, 0.9),
}


def verdicts_1(changed: dict[str, tuple] | None = None, left_out: str = "") -> list[str]:
    figures = {name: row for name, row in (GOOD_1 | (changed or {})).items() if name != left_out}
    rows = {
        name: [Figures(error**2, kernels, noise, coverage, 0.9)] * 2
        for name, (error, kernels, noise, coverage) in figures.items()
    }
    errors = {name: np.sqrt(column(row, "error")) for name, row in rows.items()}
    settings = Settings()
    claims = [
        *basis_table_1._paper_claims(rows, errors, settings),
        *basis_table_1._own_claims(rows, errors, settings),
    ]
    return [claim.verdict for claim in claims]


def test_claims_of_table_1_are_judged() -> None:
    assert verdicts_1() == ["holds"] * 8
    worse = {
        "paper's settings": (0.07, 7.5, 0.12, 0.8),
        "mercer, default": (0.05, 20.0, 0.1, 0.8),
        "mercer, 8 kernels": (0.05, 8.0, 0.1, 0.9),
    }
    assert verdicts_1(worse) == ["fails"] * 8
    assert verdicts_1(left_out="RVM, the paper's width")[3] == "not judged"


def fake_1(problem: Problem, seed: int, is_quick: bool) -> Answer:
    band = (problem.f_test - 0.1, problem.f_test + 0.1)
    return Answer(problem.f_test + 0.01 * (seed + 1), 5.0, 0.1, band, band)


def test_page_of_table_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    methods = tuple(replace(method, run=fake_1) for method in SINC_METHODS)
    monkeypatch.setattr(basis_table_1, "SINC_METHODS", methods)
    monkeypatch.setattr(basis_table_1, "has_rvm", lambda: False)
    outcome = basis_table_1.reproduce(Settings(is_quick=True, folder=tmp_path))
    np.testing.assert_allclose(outcome.measured["GP"], [0.01, 0.02])
    assert {claim.verdict for claim in outcome.claims} == {"not judged"}
    assert "fastrvm" in outcome.notes[0]
    paths = write_reproduction(outcome, tmp_path)
    assert "| published: sequential RVM | 0.0591 | 4.5 | 0.1136 | - | - |" in paths[1].read_text()
    assert "coverage of the curve" in paths[0].read_text()
    assert paths[2].read_bytes().startswith(b"\x89PNG")


# ------------------------------------------------------------------------------------------ table 2

GOOD_2 = {
    "mercer, default": (10.2, 46.0),
    "paper's settings": (13.9, 17.0),
    "SVR": (14.05, 210.0),
    "RVM, the paper's width": (14.2, 40.0),
    "GP": (11.8, 300.0),
    "GP, the paper's width": (11.9, 300.0),
    "GP, ARD": (9.6, 300.0),
}


def verdicts_2(changed: dict[str, tuple] | None = None, left_out: str = "") -> list[str]:
    figures = {name: row for name, row in (GOOD_2 | (changed or {})).items() if name != left_out}
    rows = {
        name: [Figures(error, kernels, 3.0, np.nan, 0.9)] * 2
        for name, (error, kernels) in figures.items()
    }
    errors = {name: column(row, "error") for name, row in rows.items()}
    settings = Settings()
    claims = [
        *basis_table_2._paper_claims(rows, errors, settings),
        *basis_table_2._own_claims(rows, errors, settings),
    ]
    return [claim.verdict for claim in claims]


def test_claims_of_table_2_are_judged() -> None:
    assert verdicts_2() == ["fails", *["holds"] * 7]
    worse = {"paper's settings": (16.0, 45.0), "mercer, default": (14.0, 48.0)}
    assert verdicts_2(worse) == [*["fails"] * 7, "holds"]
    found = verdicts_2(left_out="RVM, the paper's width")
    assert (found[2], found[4]) == ("not judged", "holds")


def fake_2(problem: Problem, seed: int, is_quick: bool) -> Answer:
    return Answer(problem.y_test + 2.0, 5.0, 3.0, None, (problem.y_test, problem.y_test))


def test_page_of_table_2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_sets(monkeypatch, tmp_path, 506, "boston")
    basis_boston._arrays.cache_clear()
    methods = tuple(replace(method, run=fake_2) for method in BOSTON_METHODS)
    monkeypatch.setattr(basis_table_2, "BOSTON_METHODS", methods)
    outcome = basis_table_2.reproduce(Settings(is_quick=True, folder=tmp_path))
    basis_boston._arrays.cache_clear()
    np.testing.assert_allclose(outcome.measured["GP"], 4.0)
    paths = write_reproduction(outcome, tmp_path)
    page = paths[1].read_text()
    assert "| GP | 4.00 ± 0 | 2.00 ± 0 | 5.0 | 3 | - | 1.000 |" in page
    assert "| published: sequential RVM | 7.18 | ? | 25.29 | - | - | - |" in page
    assert paths[2].read_bytes().startswith(b"\x89PNG")
