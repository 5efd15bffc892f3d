"""The scenarios of BaNK at tiny sizes, so that they cannot rot, and what they stand on."""

from __future__ import annotations

import functools
import json
import subprocess
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.spectral_cases import make_spectral, problem


def lines_of(name: str, metrics: Any) -> list[str]:
    """The lines of a table; the metrics are as a record holds them."""
    from reproduce.spectral_tables import SPECTRAL_TABLES

    return SPECTRAL_TABLES[name][1](json.loads(json.dumps(metrics)))


def test_sweep() -> None:
    from reproduce.scenarios.spectral_sweep_v1 import TARGETS, measured

    metrics = measured(600, 26, n_warmup=2, n_rounds=1)
    assert metrics["sweep_to_limit"] > 0 < metrics["sweep_to_paper"]
    assert set(metrics["shares"]) == {
        "products", "accept loop", "ridge", "coefficients", "mixture"
    }  # fmt: skip
    assert len(lines_of("spectral-sweep", {"targets": TARGETS, **metrics})) == 5
    assert len(lines_of("spectral-shares", metrics)) == 3


@pytest.mark.slow
def test_linear() -> None:
    from reproduce.scenarios.spectral_linear_v1 import rows_of, summary

    (row,) = rows_of({100_300: 1}, 4)
    assert row["n"] == 100_300
    assert 0.02 < row["peak_gib"] < 2.0
    rows = [row | {"n": n, "sweep_seconds": 1.0 + n / 100} for n in (100, 1000, 10_000, 100_000)]
    metrics = summary(rows)
    assert 0.8 < metrics["exponent"] < metrics["exponent_without_the_smallest"] < 1.0
    assert "power" in lines_of("spectral-linear", metrics)[-1]


def test_classes() -> None:
    from reproduce.scenarios.spectral_classes_v1 import ess_row, sweep_row

    ess = [
        ess_row(60, sampler, n, 5, 5, 20) for sampler in ("polya-gamma", "joint") for n in (0, 2)
    ]
    assert all(row["smallest_ess_per_second"] > 0.0 for row in ess)
    assert all(row["smallest_kernel_ess_per_second"] > 0.0 for row in ess)
    sweeps = [sweep_row(60, 5, n_warmup=2, n_rounds=1)]
    assert set(sweeps[0]["ms"]) == {"polya-gamma", "joint", "regression"}
    assert len(lines_of("spectral-classes", {"ess": ess})) == 6
    assert len(lines_of("spectral-class-sweeps", {"sweeps": sweeps})) == 3


def test_features() -> None:
    from reproduce.scenarios.spectral_features_v1 import measured

    metrics = measured(1500, 8, n_rounds=1)
    assert metrics["n_features"] == 16
    assert len(lines_of("spectral-features", metrics)) == 5


def tiny_large() -> Any:
    from reproduce.large_rows import LargeSizes

    return LargeSizes(
        n_rows=5000, rows_in_file=2000, n_test=500, kernel_rows=600, full_draws=2,
        n_frequencies=12, n_draws=6, n_warmup=10, tree_rows=3000, n_trees=10,
    )  # fmt: skip


@pytest.mark.slow
def test_large(tmp_path: Path) -> None:
    from reproduce.scenarios.spectral_large_v1 import METHODS, rows_of

    rows = rows_of(tuple(METHODS), tiny_large(), tmp_path)
    assert [row["n_rows"] for row in rows] == [5000, 5000, 3000]
    assert all(row["standardized_mse_of_function"] < row["standardized_mse"] < 0.9 for row in rows)
    assert all(0.02 < row["peak_gib"] < 4.0 for row in rows)
    assert len(lines_of("spectral-large", {"rows": rows})) == 5


@pytest.mark.slow
def test_million() -> None:
    from reproduce.scenarios.spectral_million_v1 import METHODS, rows_of

    small = {"n_frequencies": 12, "kernel_rows": 600, "n_draws": 6, "n_warmup": 4, "n_chains": 1}
    methods = {**METHODS, "mercer": (1, small), "features": (1, 24), "trees": (1, 20)}
    rows = rows_of(methods, 21_000, 500)
    assert all(row["log_score_of_the_law"] < row["log_score"] < np.log(2.0) for row in rows)
    assert all(0.02 < row["peak_gib"] < 4.0 for row in rows)
    assert len(lines_of("spectral-million", {"rows": rows})) == 5


def test_rows_and_peers_of_large(tmp_path: Path) -> None:
    from reproduce.large_rows import fit_features, fit_trees, write_rows

    sizes = tiny_large()
    write_rows(tmp_path, sizes)
    files = sorted((tmp_path / "rows").iterdir())
    written = [file.stat().st_mtime_ns for file in files]
    write_rows(tmp_path, sizes)
    assert [file.stat().st_mtime_ns for file in files] == written
    assert len(files) == 3
    for fit, n in ((fit_features, 5000), (fit_trees, 3000)):
        result = fit(str(tmp_path), list(astuple(sizes)))
        assert result["n_rows"] == n
        assert 0.0 < result["standardized_mse_of_function"] < 0.9


def test_a_folder_in_the_cache_outlives_a_run_that_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reproduce.scenarios.spectral_large_v1 import _fitting, _folder

    monkeypatch.setenv("MERCER_BENCH_CACHE", str(tmp_path))

    def stopped() -> None:
        with _folder() as folder:
            (folder / "rows").mkdir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    with _folder() as folder:
        assert (folder / "rows").exists()
        assert _fitting(folder, 10) == 10
        assert _fitting(folder, 10**15) % 1_000_000 == 0
    assert list(tmp_path.iterdir()) == []


def test_minutes_of_earlier_attempts_count(tmp_path: Path) -> None:
    from reproduce.scenarios.spectral_large_v1 import _Attempts

    path = tmp_path / "attempts.json"
    path.write_text(json.dumps({"minutes": 12.0, "gib": 3.0}))
    attempts = _Attempts(path)
    attempts(1.0)
    again = _Attempts(path)
    assert again.minutes >= attempts.minutes == 12.0
    assert again.gib == 3.0


def small_peers(*families: str) -> list[dict[str, Any]]:
    from reproduce.scenarios.spectral_peers_v1 import Sizes, rows_of, summary

    sizes = Sizes(
        budgets=(0.2, 0.5), n_frequencies=12, n_inducing=10, n_features=(20,), n_trees=(None, 20),
        n_rows=200, sweep_seconds=0.05,
    )  # fmt: skip
    metrics = summary(rows_of(("BaNK", *families), ("arm_v1",), sizes))
    rows = metrics["rows"]
    assert set(metrics["ratios_to_best"]["arm_v1"]) == set(families)
    assert len(lines_of("spectral-peers", metrics)) == 2 + len(rows)
    return rows


def test_peers() -> None:
    rows = small_peers("RKS", "gradient boosting")
    assert [row["family"] for row in rows].count("BaNK") == 2
    assert all(0.0 < row["standardized_mse"] < 3.0 for row in rows)


def test_peers_of_gpytorch() -> None:
    pytest.importorskip("gpytorch", reason="the extra bench is not installed")
    rows = small_peers("GPyTorch RFF", "GPyTorch SVGP")
    assert len(rows) == 2 + 4 + 4


# ------------------------------------------------------------------------ what scenarios stand on


def check_decisions(scheme: Any, has_linear_part: bool) -> None:
    """Decisions and log ratios of one sweep, one frequency at a time and by halving."""
    from mercer.spectral.sampler import decide, join, propose

    sampler = make_spectral(
        *problem(300, 2), has_linear_part=has_linear_part, n_frequencies=17, step=1.0
    )
    state, rng = sampler.init(np.random.default_rng(1)), np.random.default_rng(5)
    W, one_by_one = state.frequencies, scheme(sampler, state)
    proposed = propose(rng, sampler.mixture, state.mixture, W, sampler.tuning)
    log_uniform = np.log(rng.random(len(W)))
    products = sampler.rows.products(proposed, W)
    precisions = sampler.model.linear_precisions(state.linear_precision)
    joint = join(state.gram, products, state.ridge, precisions)
    want = decide(joint, log_uniform, sampler.model.posterior_shape, sampler.model.noise_rate)
    assert 2 < want.is_accepted.sum() < 15
    for j in range(len(W)):
        is_accepted, log_ratio = one_by_one.visit(j, proposed[j], log_uniform[j])
        assert abs(log_ratio - want.log_ratio[j]) < 1e-8
        assert is_accepted == want.is_accepted[j]


@pytest.mark.parametrize("has_linear_part", [True, False])
def test_one_at_a_time_decides_as_a_sweep_does(has_linear_part: bool) -> None:
    from reproduce.one_at_a_time import OneAtATime

    check_decisions(OneAtATime, has_linear_part)


def test_a_scheme_that_forgets_what_it_accepted_is_caught() -> None:
    from reproduce.one_at_a_time import OneAtATime

    class Forgetful(OneAtATime):
        def visit(self, j: int, proposed: Any, log_uniform: float) -> tuple[bool, float]:
            kept = self._inverse.copy(order="F")
            result = super().visit(j, proposed, log_uniform)
            self._inverse = kept
            return result

    with pytest.raises((AssertionError, ValueError)):  # another ratio, or the logarithm of none
        check_decisions(Forgetful, True)


def test_parts_of_a_workload_are_other_rows() -> None:
    from reproduce.workloads import friedman_rows_v1

    X, y, f = friedman_rows_v1(4000, 3)
    np.testing.assert_array_equal(X, friedman_rows_v1(4000, 3)[0])
    assert not np.isin(X[:, 0], friedman_rows_v1(4000, 4)[0][:, 0]).all()
    assert 0.9 < np.std(y - f) < 1.1


def test_the_arm_is_as_long_as_its_links() -> None:
    from reproduce.workloads import arm_v1

    angles, distance = arm_v1(1000)
    noise, reach = 0.05, float(np.linspace(0.45, 0.1, 8).sum()) + 0.1 * 3**0.5
    assert np.abs(angles).max() <= np.pi
    assert -6.0 * noise < distance.min() < distance.max() < reach + 6.0 * noise


def test_a_fresh_process_is_measured_without_its_parent() -> None:
    from reproduce.fresh import in_fresh_process

    ballast = np.ones(2**25)  # a quarter of a GiB
    told: list[float] = []
    result = in_fresh_process("builtins", "dict", [["a", 1]], watch=told.append)
    assert result["a"] == 1
    assert 0.001 < result["peak_gib"] < 0.2 < ballast.nbytes / 2**30
    assert told


def test_a_fresh_process_that_fails_is_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    from reproduce.fresh import in_fresh_process

    with pytest.raises(subprocess.CalledProcessError):
        in_fresh_process("builtins", "int", "no number")
    assert "no number" in capfd.readouterr().err


def test_counts_beside_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    from reproduce.scenarios import spectral_counts_v1 as scenario

    monkeypatch.setattr(scenario, "N_NEW", 40)
    X, y = scenario.table_of("few", 100, 0)
    assert X.shape == (100, 6)
    assert np.array_equal(y, np.floor(y))
    given = X[:60], y[:60], X[60:], y[60:], 0
    own = {"n_draws": 10, "n_warmup": 10, "n_chains": 1}
    model = scenario._model
    monkeypatch.setattr(scenario, "_model", lambda *names: model(*names).set_params(**own))
    rows = [
        {"data": "few", "n_rows": 60, "seed": 0, "method": method, "cpu_seconds": 1.0, **score()}
        for method, score in scenario._methods(*given)
    ]
    assert len(rows) == 2 + 4
    assert all(0.2 < row["log_score"] < 3.0 for row in rows)
    metrics = scenario.summary(rows)
    assert len(lines_of("spectral-counts", metrics)) == 2 + 6


@pytest.mark.slow
def test_noise_beside_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    from reproduce.scenarios import spectral_noise_v2 as scenario

    monkeypatch.setattr(scenario, "N_NEW", 40)
    own = {"n_draws": 10, "n_warmup": 10, "n_chains": 1, "n_frequencies": 24}
    model = scenario._model
    monkeypatch.setattr(scenario, "_model", lambda *names: model(*names).set_params(**own))
    rows = scenario._cell("absolute", 60, 0) + scenario._cell("diabetes", 60, 0)
    assert len(rows) == 6 + 7
    for row in rows:
        assert 0.0 <= row["worst_third"] <= row["coverage_90"] <= 1.0
        assert row["interval_score"] >= row["width_90"] > 0.0
        assert (row["log_score"] is None) == (row["method"] == scenario.QUANTILES)
    metrics = scenario.summary(rows)
    assert len(lines_of("spectral-noise", metrics)) == 2 + 13
    assert all(each["chosen"] for each in metrics["cells"])


def test_missing_inputs_beside_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    from reproduce.scenarios import spectral_missing_v1 as scenario

    monkeypatch.setattr(scenario, "N_NEW", 40)
    own = {"n_draws": 10, "n_warmup": 10, "n_chains": 1, "n_frequencies": 24}
    short = functools.partial(scenario.BaNKRegressor, **own)
    monkeypatch.setattr(scenario, "BaNKRegressor", short)
    shares = np.isnan(scenario.table_of("hidden", 90, 0)[0]).mean(axis=0)
    assert ((shares > 0.1) & (shares < 0.3)).all()
    rows = scenario._cell("together", 60, 0)
    assert [row["method"] for row in rows] == list(scenario.METHODS)
    for row in rows:
        assert 0.3 < row["coverage_gaps"] <= 1.0
        assert 0.0 < row["rmse"] < 2.0
    assert len(lines_of("spectral-missing", scenario.summary(rows))) == 2 + 4
    short = functools.partial(scenario.BaNKClassifier, **own)
    monkeypatch.setattr(scenario, "BaNKClassifier", short)
    rows = scenario._class_cell("apart", 60, 0)
    assert all(0.0 <= row["errors"] < 0.7 for row in rows)
    metrics = {"classes": scenario.summary(rows, scenario.CLASS_KEYS)["cells"]}
    assert len(lines_of("spectral-missing-classes", metrics)) == 2 + 4


def test_ordered_classes_beside_those_without_an_order() -> None:
    from reproduce.scenarios import spectral_ordered_v1 as scenario

    X, y = scenario.table_of("diabetes_progression", 0)
    assert X.shape == (442, 10)
    assert np.bincount(y).min() > 80
    proba = np.array([[0.4, 0.6, 0.0, 0.0, 0.0], [0.0, 0.1, 0.1, 0.1, 0.7]])
    found = scenario.scores_of(proba, np.array([1, 4]))
    np.testing.assert_allclose(found[1], [0.16, 0.01 + 0.04 + 0.09])
    np.testing.assert_array_equal(found[2], [0.0, 0.0])
    short = {"n_frequencies": 6, "n_draws": 8, "n_warmup": 4, "n_chains": 1}
    rows = scenario._cell("diabetes_progression", 0, **short)
    assert all(row["log_score"] < 1.6 for row in rows)
    metrics = scenario.summary(rows)
    assert len(lines_of("spectral-ordered", metrics)) == 2 + 2


@pytest.mark.slow
def test_series_beside_a_spectral_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    from reproduce.scenarios import spectral_series_v1 as scenario

    t = np.arange(60.0)
    values = np.sin(2.0 * np.pi * t / 6.0) + 0.1 * np.random.default_rng(0).normal(size=60)
    monkeypatch.setattr(scenario, "series", lambda name: (t[:, np.newaxis], values))
    learned, _, held, y = scenario.split("co2", "forecast", 0)
    assert learned.max() < held.min()
    assert len(y) == 12
    gaps = [scenario.split("co2", "gaps", seed)[2] for seed in (0, 1)]
    assert not np.array_equal(*gaps)
    assert gaps[0].min() < 40.0
    rows = scenario.scored("co2", "gaps", scenario.BANK, 0)
    assert rows[0]["error"] < 0.5
    assert 0.5 < rows[0]["inside"] <= 1.0
    monkeypatch.setattr(scenario, "_mixture", lambda *_: (None, None, 6.0))
    (period,) = scenario._periods("periods", "co2")
    assert period["bank"]["lower"] < 6.0 < period["bank"]["upper"]
    metrics = {"rows": scenario._means(rows), "periods": [period]}
    assert len(lines_of("spectral-series", metrics)) == 2 + 1
    assert "with probability" in lines_of("spectral-series-periods", metrics)[-1]


def test_likelihoods_of_starts_choose_the_spectral_mixture() -> None:
    pytest.importorskip("gpytorch")
    from reproduce.gpytorch_peers import spectral_mixture_process

    t = np.arange(60.0)[:, np.newaxis]
    y = np.sin(2.0 * np.pi * t[:, 0] / 6.0)
    mean, std, period = spectral_mixture_process(
        t[:50], y[:50], t[50:], n_components=3, n_starts=2, n_steps=150, rate=0.1, seed=0
    )
    assert np.abs(mean - y[50:]).max() < 0.3
    assert np.all(std > 0.0)
    assert abs(period - 6.0) < 0.5


@pytest.mark.slow
def test_dask_sums() -> None:
    pytest.importorskip("distributed")
    from reproduce.scenarios.dask_sums_v1 import TARGETS, measured

    metrics = measured(40_000, 4, n_rounds=1)
    assert metrics["is_same_to_the_bit"]
    assert set(metrics["seconds"]) == {"no cluster", "1 workers", "2 workers"}
    assert "target 1.7" in lines_of("dask-sums", {"targets": TARGETS, **metrics})[-1]
