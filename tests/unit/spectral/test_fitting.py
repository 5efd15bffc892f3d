from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest

from mercer.posterior.diagnostics import Diagnostics
from mercer.sampling import driver
from mercer.spectral.fitting import _one_pass, _Task, fit_spectral, make_sampler
from mercer.spectral.model import Scales
from mercer.spectral.rows import MemoryRows
from mercer.spectral.settings import SpectralSettings
from support.runs import digest, options
from support.spectral_fits import tiny, waves


def settings(**own: Any) -> SpectralSettings:
    plan = {
        "n_frequencies": 6, "concentration": 2.0, "proposals": "pcn", "base_measure": "diagonal",
        "frequency_scale": "learn", "ridge_precision": "learn", "linear_part": True,
        "n_deviations": 2,
    }  # fmt: skip
    return SpectralSettings(**{**plan, **own})


def rows(n: int) -> MemoryRows:
    X, y = waves(n)
    return MemoryRows(X, (y - y.mean()) / y.std(), True)


RUN = {"n_draws": 5, "n_warmup": 4, "n_chains": 2}


def test_draws_and_what_is_monitored() -> None:
    fitted = fit_spectral(rows(50), settings(), options(**RUN))
    draws = fitted.draws
    assert (draws.n_chains, draws.n_draws) == (2, 5)
    assert draws.variables["kernel"].shape == (2, 5, 10)
    assert draws.variables["function"].shape == (2, 5, 20)
    monitored = {"log_evidence", "noise_std", "n_components", "kernel", "function"}
    assert set(draws.monitored) == monitored
    assert fitted.start.scales.shape == (3,)


def test_p1_same_entropy_same_bits() -> None:
    seen = [fit_spectral(rows(50), settings(), options(**RUN)) for _ in range(2)]
    assert digest(seen[0].draws) == digest(seen[1].draws)


class TestChainsAsLongAsDiagnosticsWant:
    """Where ``thin="auto"``; what diagnostics say is put in."""

    @pytest.fixture(autouse=True)
    def few_draws_are_enough_to_go_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(driver, "FEWEST_TO_GO_ON", 5)

    @staticmethod
    def fit(monkeypatch: pytest.MonkeyPatch, verdicts: list[bool], **rest: Any) -> Any:
        """Fit with what is said of longer chains, one verdict after the other."""
        left = iter(verdicts)
        monkeypatch.setattr(Diagnostics, "is_worth_longer", lambda *given: next(left))
        return fit_spectral(rows(50), settings(), options(**{**RUN, "most_times": 4, **rest}))

    @pytest.mark.parametrize(
        ("verdicts", "times"),
        [([False], 1), ([True, False], 2), ([True, True, False], 3), ([True, True, True], 4)],
    )
    def test_draws_are_those_of_thinned_chains(
        self, monkeypatch: pytest.MonkeyPatch, verdicts: list[bool], times: int
    ) -> None:
        fitted = self.fit(monkeypatch, verdicts)
        thinned = fit_spectral(rows(50), settings(), options(**RUN, thin=times))
        assert digest(fitted.draws) == digest(thinned.draws)
        assert fitted.diagnostics == thinned.diagnostics
        said = [f"chains became {times} times as long" in note for note in fitted.notes]
        assert said == [True] * (times > 1)

    @pytest.mark.parametrize("rest", [{"n_chains": 1}, {"n_draws": 4}, {"most_times": 1}])
    def test_short_looks_and_given_spacings_stay(
        self, monkeypatch: pytest.MonkeyPatch, rest: dict[str, int]
    ) -> None:
        fitted = self.fit(monkeypatch, [], **rest)
        assert digest(fitted.draws) == digest(
            fit_spectral(rows(50), settings(), options(**{**RUN, **rest})).draws
        )

    def test_out_of_time_the_shorter_chains_count(self, monkeypatch: pytest.MonkeyPatch) -> None:
        short = fit_spectral(rows(50), settings(), options(**RUN))

        def is_up(plan: driver.ChainPlan, _: Any, has_stepped: bool) -> bool:
            return has_stepped and plan.n_draws > 5

        monkeypatch.setattr(driver, "_is_time_up", is_up)
        fitted = self.fit(monkeypatch, [True])
        assert digest(fitted.draws) == digest(short.draws)
        assert fitted.notes[-1].startswith("chains were to go on")


@pytest.mark.parametrize("n", [2, 3, 9, 10, 11, 25])
def test_the_probe_fits_any_number_of_rows(n: int) -> None:
    own = rows(n)
    sampler = make_sampler(own, own.X, Scales(np.ones(3), 0.1), settings())
    assert sampler.probe.lags.shape == (10, 3)
    assert sampler.probe.rows.shape == (min(n, 20), 3)
    assert np.isfinite(sampler.probe.lags).all()
    assert np.abs(sampler.probe.lags).max() > 0.0


@pytest.mark.parametrize(("proposals", "step"), [("pcn", 0.5), ("prior", 1.0)])
def test_proposals(proposals: str, step: float) -> None:
    own = settings(proposals=proposals)
    sampler = make_sampler(rows(20), rows(20).X, Scales(np.ones(3), 0.1), own)
    assert sampler.tuning.step == step
    draws = fit_spectral(rows(50), own, options(**RUN)).draws
    is_tuned = draws.stats["step_size"][0, 0] != step
    assert is_tuned == (proposals == "pcn")


def test_a_scale_that_is_given_is_not_searched_for() -> None:
    fitted = fit_spectral(rows(30), settings(frequency_scale=2.0), options(**RUN))
    np.testing.assert_allclose(fitted.start.scales, 2.0 / np.sqrt(3.0))


def test_draws_from_all_rows_after_a_warm_up_on_few() -> None:
    """With many rows warm-up begins with few of them; what is kept knows all of them."""
    own = rows(13_000)
    fitted = fit_spectral(own, settings(), options(n_draws=10, n_warmup=40, n_chains=1))
    noise = fitted.draws.flat("noise_std")
    assert noise.std() < 0.05 * noise.mean()  # of 13 000 rows: 0.006
    assert noise.mean() * waves(13_000)[1].std() == pytest.approx(0.1, rel=0.5)


@pytest.mark.parametrize(("deadline", "n_looks"), [(-1.0, 1), (1.5, 3), (9.5, 4)])
def test_a_pass_over_all_rows_ends_with_the_time(
    monkeypatch: pytest.MonkeyPatch, deadline: float, n_looks: int
) -> None:
    """A clock that ticks before each of four blocks: sums of some of them are given to nobody."""
    X, y = waves(40)

    class Blocks(MemoryRows):
        def blocks(self):
            yield from zip(np.split(self.X, 4), np.split(self.y, 4), strict=True)

    task = _Task(np.ones((3, X.shape[1])), 1.0, 1.0, 0)
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    sums = _one_pass(Blocks(X, y, True), deadline, [task])
    assert (sums is None) == (deadline < 9.0)
    assert next(ticks) == n_looks


def test_a_fit_without_time_for_all_rows_says_so() -> None:
    X, y = waves(60)
    model = tiny(kernel_rows=25, full_draws=2, max_seconds=1e-9).fit(X, y)
    assert "before the pass over all rows was done" in model.notes_[-1]
    assert any("search for where chains start cut short" in note for note in model.notes_)
    assert np.isfinite(model.predict(X)).all()
