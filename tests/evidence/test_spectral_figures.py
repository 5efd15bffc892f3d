"""The figures and claims of BaNK, at tiny sizes and with stand-ins for what takes long."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import multivariate_normal

from mercer.errors import StorageError
from mercer.plot.style import bare_figure
from reproduce.papers import (
    spectral_claims,
    spectral_class_folds,
    spectral_figure_3,
    spectral_figure_4,
    spectral_figure_4_classes,
    spectral_figure_5,
    spectral_folds,
)
from reproduce.papers.reproduction import Settings, write_reproduction
from reproduce.papers.spectral_claims import Curve, exceedance, fitted_slope
from reproduce.papers.spectral_figure_3 import _LAGS, _Outcome, _problem, true_kernel
from reproduce.papers.spectral_figure_4 import _Run, slope
from reproduce.papers.spectral_figure_4_classes import (
    ClassCurves,
    ClassRun,
    class_claims,
    class_curves,
)
from reproduce.papers.spectral_figure_5 import TIMED
from reproduce.papers.spectral_methods import PAPER_CHAIN
from reproduce.scenarios import spectral_figure_3_long_v1, spectral_paper_chain_v1
from support.statistics import largest_z, z_limit
from support.table_1 import write_sets
from support.table_2 import write_class_sets

# ------------------------------------------------------------------------------------------- claims

# How often the kernel of random frequencies is off, and the slope of its logarithm.

SIZES = (50, 60, 70, 80)


def curve_of(slope: float, *, d: int = 1, n_repeats: int = 4000) -> Curve:
    """Counts that fall as told."""
    counts = tuple(round(n_repeats * 0.4 * np.exp(slope * (size - 50))) for size in SIZES)
    return Curve(d, 0.3, SIZES, counts, n_repeats)


def test_the_slope_is_found_within_its_error() -> None:
    slope, error = fitted_slope(curve_of(-0.05))
    assert abs(slope + 0.05) < 1e-3 < error


def test_rare_and_common_events_are_left_out() -> None:
    curve = Curve(1, 0.3, (10, 20, 50, 60, 70, 90), (4000, 2500, 1600, 971, 589, 9), 4000)
    assert fitted_slope(curve)[0] == pytest.approx(-0.05, abs=1e-3)
    assert np.isnan(fitted_slope(Curve(1, 0.3, (10, 20), (3000, 1000), 4000))[0])


def test_probabilities_that_fall_too_slowly_are_seen() -> None:
    bound = curve_of(-0.05).bound
    assert bound == pytest.approx(-0.0075)
    for steepness, verdict in ((-0.05, "holds"), (bound, "fails"), (bound / 2.0, "fails")):
        claim = spectral_claims._claim(1, [curve_of(-0.05), curve_of(steepness)], Settings())
        assert claim.verdict == verdict


def test_errors_of_few_frequencies_are_counted() -> None:
    """Frequencies of 0 make the estimate 1 everywhere: exp(-2) is .8 below it, but not .9."""
    assert exceedance(np.zeros, 1, 0.8, 4, 10) == 10
    assert exceedance(np.zeros, 1, 0.9, 4, 10) == 0


def test_dependent_frequencies_are_seen() -> None:
    """Each frequency drawn 40 times over: the mutant; its probabilities hardly fall with M.

    False alarms: independent draws have a slope of -0.117 with a standard error of about 0.02, the
    bound is -0.0075, so that the first verdict is wrong for one seed in a thousand at most; that of
    the mutant, a slope of -0.003 with an error of 0.0005, is nine errors from it.
    """

    def verdict(n_copies: int) -> str:
        rng = np.random.default_rng(4)

        def draw(shape: tuple[int, int]) -> np.ndarray:
            return np.repeat(rng.standard_normal((shape[0] // n_copies, shape[1])), n_copies, 0)

        sizes = tuple(n_copies * k for k in (5, 9, 13, 17))
        counts = tuple(exceedance(draw, 1, 0.3, size, 400) for size in sizes)
        return spectral_claims._claim(1, [Curve(1, 0.3, sizes, counts, 400)], Settings()).verdict

    assert verdict(1) == "holds"
    assert verdict(40) == "fails"


def test_points_do_not_come_twice() -> None:
    for d in (1, 2, 5):
        D = spectral_claims.differences(d)
        assert D.shape[1] == d
        assert np.abs(D).max() <= 2.0
        assert len(np.unique(D, axis=0)) == len(D)


def test_a_quick_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spectral_claims, "_QUICK_REPEATS", 20)
    settings = Settings(is_quick=True, folder=tmp_path)
    outcome = spectral_claims.reproduce(settings)
    assert [claim.verdict for claim in outcome.claims] == ["not judged"] * 3
    assert spectral_claims.reproduce(settings).to_csv() == outcome.to_csv()
    paths = write_reproduction(outcome, tmp_path)
    assert paths[2].read_bytes().startswith(b"\x89PNG")


# ----------------------------------------------------------------------------------------- figure 3

# Figure 3: the problem is the paper's. False alarm 1e-6 for the moments of the frequencies.

T = np.array([0.3, 1.0, 2.7, 5.0])


def printed(t: np.ndarray) -> np.ndarray:
    """The kernel as section 4.1 has it."""
    return np.exp(-(t**2) / (2.0 * 2.0**2)) * (0.5 + 0.5 * np.cos(0.75 * np.pi * t))


def frequencies(n_problems: int) -> np.ndarray:
    return np.concatenate([_problem(seed).frequencies for seed in range(n_problems)])


def z_of(W: np.ndarray) -> float:
    """Largest |z| of mean cosines against the kernel."""
    return largest_z(np.cos(np.outer(W, T)), printed(T), 50)


def test_frequencies_are_those_of_the_kernel() -> None:
    assert z_of(frequencies(200)) < z_limit(50, len(T))


@pytest.mark.slow
def test_sees_a_spread_that_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: the variance 1/4 taken for a standard deviation."""
    monkeypatch.setattr(spectral_figure_3, "_SPREAD", 0.25)
    assert z_of(frequencies(200)) > z_limit(50, len(T))


def test_the_kernel_is_the_printed_one() -> None:
    np.testing.assert_allclose(true_kernel(_LAGS), printed(_LAGS), atol=1e-15)


def test_data_have_the_signal_and_the_noise_of_the_paper() -> None:
    """f has variance 1 given the input, e has variance 1: over many problems y has 2."""
    y = np.concatenate([_problem(seed).y for seed in range(60)])
    assert y.var() == pytest.approx(2.0, rel=0.15)
    problem = _problem(3)
    assert problem.X.shape == (1000, 1)
    assert problem.X.std() == pytest.approx(4.0, rel=0.1)
    np.testing.assert_array_equal(problem.y, _problem(3).y)


def outcome_of(shift: float, width: float) -> _Outcome:
    curve = true_kernel(_LAGS) + shift
    return _Outcome(curve, curve, curve, curve - width, curve + width)


def test_coverage_counts_lags() -> None:
    assert outcome_of(0.1, 0.2).coverage == 1.0
    assert outcome_of(0.2, 0.1).coverage == 0.0
    half = outcome_of(0.0, 0.1)
    half.mean[:], half.lower[:61], half.upper[:61] = 0.0, 2.0, 3.0
    assert half.coverage == pytest.approx(60 / 121)


@pytest.mark.parametrize(
    ("shift", "width", "verdicts"),
    [(0.05, 0.1, ["holds", "holds"]), (0.2, 0.1, ["fails", "fails"])],
)
def test_claims_of_figure_3_are_judged(shift: float, width: float, verdicts: list[str]) -> None:
    outcome = outcome_of(shift, width)
    error = spectral_figure_3._error(outcome.mean)
    assert error == pytest.approx(shift)
    names = ("BaNK", "true spectral density, 250 draws", "all known but the shares")
    errors = {name: np.full(2, error) for name in names}
    coverage = np.full(2, outcome.coverage)
    claims = spectral_figure_3._claims(errors, coverage, False)
    assert [claim.verdict for claim in claims] == verdicts
    quick = spectral_figure_3._claims(errors, coverage, True)
    assert [claim.verdict for claim in quick] == ["not judged"] * 2


def test_what_is_told_is_the_posterior_of_the_share() -> None:
    """Against scipy's density of the targets, share by share."""
    problem = _problem(5)
    rows = slice(0, 60)
    few = spectral_figure_3._Problem(problem.X[rows], problem.y[rows], problem.frequencies)
    lags = few.X - few.X.T
    shares = spectral_figure_3._SHARES
    laws = [
        multivariate_normal(cov=spectral_figure_3._mixture_kernel(lags, s) + np.eye(60))
        for s in shares
    ]
    weights = softmax([law.logpdf(few.y) for law in laws])
    expected = sum(
        w * spectral_figure_3._mixture_kernel(_LAGS, s)
        for w, s in zip(weights, shares, strict=True)
    )
    np.testing.assert_allclose(spectral_figure_3._told(few), expected, atol=1e-10)


class Fake3:
    """Knows the kernel."""

    def kernel(self, lags: np.ndarray):
        curve = true_kernel(lags[:, 0])
        return curve + 0.02, curve - 0.1, curve + 0.1


@pytest.mark.slow  # a quick run draws
def test_run_draws_figure_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(spectral_figure_3, "_fitted", lambda *arguments: Fake3())
    monkeypatch.setattr(spectral_figure_3, "_SHARES", np.array([0.3, 0.7]))
    settings = Settings(tell=lines.append, folder=tmp_path)
    outcome = spectral_figure_3.reproduce(settings)
    assert [claim.verdict for claim in outcome.claims] == ["holds", "holds"]
    np.testing.assert_allclose(outcome.measured["BaNK"], 0.02)
    assert outcome.beside["coverage"]["BaNK"].mean() == 1.0
    paths = write_reproduction(outcome, tmp_path)
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert spectral_figure_3.reproduce(settings).to_markdown() == outcome.to_markdown()
    assert len(lines) == 10


# ----------------------------------------------------------------------------------------- figure 4


def test_slope_of_a_power_law() -> None:
    sizes = np.array([24.0, 48.0, 96.0])
    assert slope(sizes, 3.0 * sizes**1.7) == pytest.approx(1.7)


def curve(sizes: tuple[int, ...], mse: list[float], power: float) -> dict[int, list[_Run]]:
    return {
        size: [_Run(error + shift, float(size) ** power) for shift in (0.0, 0.01)]
        for size, error in zip(sizes, mse, strict=True)
    }


@pytest.mark.parametrize(
    ("power_n", "power_m", "mse_n", "mse_m", "verdicts"),
    [
        (1.0, 2.0, [0.5, 0.4, 0.2], [0.5, 0.3, 0.25], ["holds"] * 4),
        (2.0, 1.0, [0.5, 0.4, 0.6], [0.5, 0.4, 0.2], ["fails"] * 4),
        (1.0, 2.0, [0.5, 0.6, 0.4], [0.3, 0.2, 0.35], ["holds", "holds", "holds", "fails"]),
    ],
)
def test_claims_of_figure_4_are_judged(power_n, power_m, mse_n, mse_m, verdicts: list[str]) -> None:
    by_rows = {"bike": curve((600, 1200, 2400), mse_n, power_n)}
    by_frequencies = {"bike": curve((24, 48, 96), mse_m, power_m)}
    claims = spectral_figure_4._claims(by_rows, by_frequencies, False)
    assert [claim.verdict for claim in claims] == verdicts
    quick = spectral_figure_4._claims(by_rows, by_frequencies, True)
    assert {claim.verdict for claim in quick} == {"not judged"}


class Fake4:
    """Remembers the rows and the size; predicts the mean."""

    seen: list[tuple[int, int, int]]

    def __init__(self, n_frequencies: int, n_sweeps: int, seed: int) -> None:
        self.size = n_frequencies

    def fit(self, X: np.ndarray, y: np.ndarray) -> Fake4:
        self.seen.append((len(X), self.size, int(1e6 * abs(X[0, 0]))))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.zeros(len(X))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    write_sets(monkeypatch, tmp_path, 400, *spectral_figure_4._SETS)
    monkeypatch.setattr(Fake4, "seen", [], raising=False)
    monkeypatch.setattr(spectral_figure_4, "_unfitted", Fake4)
    monkeypatch.setattr(spectral_figure_4, "_load_loops", lambda: None)
    yield
    spectral_folds._arrays.cache_clear()


def test_run_draws_figure_4(fake, tmp_path: Path) -> None:
    settings = Settings(is_quick=True, folder=tmp_path / "out")
    outcome = spectral_figure_4.reproduce(settings)
    # Three sizes of either kind on two sets; the largest is in both.
    assert len(Fake4.seen) == 2 * (3 + 3 - 1)
    assert {rows for rows, _, _ in Fake4.seen} == {80, 160, 320}
    # Subsets begin with the same row: they lie within each other.
    assert len({first for _, _, first in Fake4.seen}) == 2
    assert len(outcome.measured) == 12
    paths = write_reproduction(outcome, tmp_path / "out")
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert spectral_figure_4.reproduce(settings).to_csv() == outcome.to_csv()
    assert len(Fake4.seen) == 10


def test_sizes_of_the_model_of_figure_4_are_those_asked_for() -> None:
    model = spectral_figure_4._unfitted(24, 81, 5)
    assert (model.n_frequencies, model.n_draws, model.n_warmup) == (24, 40, 41)
    assert (model.n_chains, model.random_state) == (1, 5)


def test_figure_4_without_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    with pytest.raises(StorageError, match="MERCER_DATA"):
        spectral_figure_4.reproduce(Settings())


# --------------------------------------------------------------------------------- figure 4 classes


def curves(power_n: float, power_m: float, last_error: float) -> ClassCurves:
    errors = (0.3, 0.2, last_error)
    by_rows = zip((600, 1200, 2400), errors, strict=True)
    by_frequencies = zip((24, 48, 96), errors, strict=True)
    return ClassCurves(
        {"eeg": {n: ClassRun(e, float(n) ** power_n) for n, e in by_rows}},
        {"eeg": {m: ClassRun(e, float(m) ** power_m) for m, e in by_frequencies}},
    )


@pytest.mark.parametrize(
    ("case", "verdicts"),
    [
        ((1.0, 1.0, 0.1), ["holds"] * 3),
        ((1.0, 2.0, 0.1), ["holds", "fails", "holds"]),
        ((0.3, 1.0, 0.4), ["fails", "holds", "fails"]),
    ],
)
def test_claims_of_figure_4_for_classes_are_judged(
    case: tuple[float, float, float], verdicts: list[str]
) -> None:
    found = curves(*case)
    assert [claim.verdict for claim in class_claims(found, Settings())] == verdicts
    quick = class_claims(found, Settings(is_quick=True))
    assert {claim.verdict for claim in quick} == {"not judged"}


def test_figure_4_for_classes_without_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    found = class_curves(Settings())
    assert found.is_empty
    assert [claim.verdict for claim in class_claims(found, Settings())] == ["not judged"]


class FakeClasses:
    """Remembers the rows and the size; predicts class 1."""

    seen: list[tuple[int, int]]

    def __init__(self, n_frequencies: int, n_sweeps: int) -> None:
        self.size = n_frequencies

    def fit(self, X: np.ndarray, y: np.ndarray) -> FakeClasses:
        self.seen.append((len(X), self.size))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.ones(len(X))


def test_every_size_is_run_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_class_sets(monkeypatch, tmp_path, 300, "eeg", "shuttle")
    monkeypatch.setattr(FakeClasses, "seen", [], raising=False)
    monkeypatch.setattr(spectral_figure_4_classes, "_unfitted", FakeClasses)
    settings = Settings(is_quick=True, folder=tmp_path / "out")
    found = class_curves(settings)
    assert len(FakeClasses.seen) == 1 + 2 * (3 + 3 - 1)
    assert class_curves(settings) == found
    assert len(FakeClasses.seen) == 2 + 2 * (3 + 3 - 1)
    errors, seconds = found.flat()
    assert len(errors) == len(seconds) == 12
    figure = bare_figure(4.0, 3.0)
    for what in ("error", "seconds"):
        found.draw(figure.subplots(), "N", what)
    spectral_class_folds.class_rows.cache_clear()


def test_sizes_of_the_model_of_figure_4_for_classes_are_those_asked_for() -> None:
    model = spectral_figure_4_classes._unfitted(24, 41)
    assert (model.n_frequencies, model.n_draws, model.n_warmup) == (24, 20, 21)


# ----------------------------------------------------------------------------------------- figure 5


def verdicts(rows: dict, settings: Settings) -> list[str]:
    return [claim.verdict for claim in spectral_figure_5._claims(settings, rows)]


def test_claims_of_figure_5_are_judged() -> None:
    good = {"bike": {"RKS": 1.0, "MKL": 2.0, "AlaC": 20.0, "BaNK": 30.0}}
    bad = {"eeg": {"RKS": 1.0, "MKL": 90.0, "RFO": 2.0, "BaNK": 30.0}}
    assert verdicts(good, Settings()) == ["holds", "holds"]
    assert verdicts(bad, Settings()) == ["fails", "fails"]
    assert verdicts({**good, **bad}, Settings(is_quick=True)) == ["not judged"] * 2


def test_sizes_are_those_asked_for() -> None:
    for task, methods in TIMED.items():
        for timed in methods:
            model = timed.make(384, False)
            assert type(model).__name__.endswith(task)
            values = model.get_params()
            n = values.get("n_frequencies", values.get("n_features", 0) // 2)
            assert n == 384 or values["frequencies_each"] == (96,)


@pytest.mark.slow  # some of each in the first tier
def test_every_method_on_every_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_class_sets(monkeypatch, tmp_path, 70, "pima")
    write_sets(monkeypatch, tmp_path, 70, "airfoil")
    lines: list[str] = []
    settings = Settings(is_quick=True, tell=lines.append, folder=tmp_path / "out")
    outcome = spectral_figure_5.reproduce(settings)
    assert len(lines) == len(outcome.measured) == 10
    paths = write_reproduction(outcome, tmp_path / "out")
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert spectral_figure_5.reproduce(settings).to_csv() == outcome.to_csv()
    assert len(lines) == 10
    spectral_folds._arrays.cache_clear()
    spectral_class_folds.class_rows.cache_clear()


def test_without_any_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MERCER_DATA", raising=False)
    with pytest.raises(StorageError, match="MERCER_DATA"):
        spectral_figure_5.reproduce(Settings())


@pytest.mark.slow
def test_the_paper_chain_beside_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The scenario that runs both on the same folds."""
    write_class_sets(monkeypatch, tmp_path, 70, "pima")
    write_sets(monkeypatch, tmp_path, 70, "airfoil")
    folds = []
    for data in ("airfoil", "pima"):
        for key in spectral_paper_chain_v1.KEYS:
            for fold in range(2):
                folds += spectral_paper_chain_v1.fit_fold(data, fold, key, is_quick=True)
    rows = spectral_paper_chain_v1.means(folds)
    assert [(row["data"], row["method"], row["n_folds"]) for row in rows] == [
        (data, method, 2) for data in ("airfoil", "pima") for method in (PAPER_CHAIN, "BaNK")
    ]
    first, second = (each["error"] for each in folds[:2])
    assert rows[0]["error"] == pytest.approx((first + second) / 2)
    assert rows[0]["standard_error"] == pytest.approx(abs(first - second) / 2)
    assert all(each["cpu_seconds"] > 0.0 for each in folds)
    assert all(0.0 <= each["error"] <= 1.0 for each in folds if each["data"] == "pima")
    spectral_folds._arrays.cache_clear()
    spectral_class_folds.class_rows.cache_clear()


@pytest.mark.slow
def test_figure_3_by_longer_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scenario that sets them beside the default."""
    tiny = {"n_frequencies": 4, "n_draws": 6, "n_warmup": 3, "n_chains": 2}
    monkeypatch.setattr(spectral_figure_3_long_v1, "RUNS", {"default": tiny, "long": tiny})
    monkeypatch.setattr(spectral_figure_3_long_v1, "N_SETS", 2)
    found = spectral_figure_3_long_v1.run()
    errors = [row["error"] for row in found["each"] if row["run"] == "long"]
    assert errors == [row["error"] for row in found["each"] if row["run"] == "default"]
    row = found["rows"][1]
    assert row["error"] == pytest.approx(np.mean(errors))
    assert row["standard_error"] == pytest.approx(abs(errors[0] - errors[1]) / 2)
    assert row["largest error"] == max(errors) > 0.0
    assert row["rhat of kernel"] > 0.9
    assert 0.0 <= row["coverage"] <= 1.0
