from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

import pytest

from mercer.sampling.driver import RunOptions
from mercer.spectral.class_fitting import ClassSettings, held
from mercer.spectral.class_model import ClassTuning
from mercer.spectral.class_sampler import ClassAdaptation, TrajectoryInfo
from mercer.spectral.classifier import BaNKClassifier
from mercer.spectral.sampler import SpectralInfo
from mercer.spectral.settings import settings_of
from support.spectral_class_cases import make_classes, problem


def warmed_up(wanted: ClassTuning, n: int = 80, **own: Any) -> Any:
    """A sampler after warm-up; acceptance falls with the steps, as targeted at ``wanted``."""
    sampler = make_classes(*problem(5, 2), n_leapfrog=own.pop("n_leapfrog", 3))
    adaptation = ClassAdaptation(own.pop("has_steps", True))
    learned = adaptation.init(sampler)
    for _ in range(n):
        now = sampler.tuning
        info = TrajectoryInfo(
            math.exp(math.log(0.3) * now.step / wanted.step), now.step, 0.0, 0.0,
            math.exp(math.log(0.8) * now.trajectory / wanted.trajectory), now.trajectory,
        )  # fmt: skip
        learned, sampler = adaptation.update(learned, sampler, None, info)
    return adaptation.finish(learned, sampler)


@pytest.mark.parametrize(("step", "trajectory"), [(0.2, 0.05), (0.7, 0.6)])
def test_both_steps_are_found(step: float, trajectory: float) -> None:
    tuning = warmed_up(ClassTuning(step, trajectory=trajectory)).tuning
    assert tuning.step == pytest.approx(step, rel=0.15)
    assert tuning.trajectory == pytest.approx(trajectory, rel=0.25)


def test_proposals_from_the_prior_have_no_step_to_find() -> None:
    before = make_classes(*problem(5, 2)).tuning
    tuning = warmed_up(ClassTuning(0.2, trajectory=0.3), has_steps=False).tuning
    assert tuning.step == pytest.approx(before.step, rel=1e-12)
    assert tuning.trajectory == pytest.approx(0.3, rel=0.25)


def test_without_trajectories_there_is_nothing_to_find() -> None:
    before = make_classes(*problem(5, 2)).tuning
    tuning = warmed_up(ClassTuning(0.2, trajectory=0.3), n_leapfrog=0).tuning
    assert tuning.trajectory == pytest.approx(before.trajectory, rel=1e-12)


@pytest.mark.parametrize(("acceptance", "n_anew"), [(1.0, 4), (0.5, 4), (0.1, 3)])
def test_many_are_proposed_anew_where_few_are_refused(acceptance: float, n_anew: int) -> None:
    """About as many of four as leave three refusals; none where no component moves."""
    for carries in (False, True):
        sampler, adaptation = make_classes(*problem(5, 2), carries=carries), ClassAdaptation(True)
        learned = adaptation.init(sampler)
        for _ in range(6):
            info = SpectralInfo(0.3, sampler.tuning.step, 0.0, acceptance)
            learned, sampler = adaptation.update(learned, sampler, None, info)
            assert sampler.tuning.n_anew == 0
        assert adaptation.finish(learned, sampler).tuning.n_anew == (n_anew if carries else 0)


def test_nothing_else_of_the_sampler_changes() -> None:
    sampler = make_classes(*problem(5, 2))
    new = ClassAdaptation(True).with_tuning(sampler, ClassTuning(0.1))
    for field in dataclasses.fields(sampler):
        if field.name != "tuning":
            assert getattr(new, field.name) is getattr(sampler, field.name)


def held_of(accepted: float, m: int, n_auto: int, monkeypatch: Any, **own: Any) -> ClassSettings:
    """Settings after a look at a sampler whose proposals are accepted so often in the end."""
    shares = iter([0.0] * 30 + [accepted] * 10)
    sampler = make_classes(*problem(5, 2), n_frequencies=m)

    def step(self: Any, rng: Any, state: Any) -> tuple[Any, SpectralInfo]:
        assert self.n_leapfrog == 0
        return state, SpectralInfo(0.3, 1.0, 0.0, next(shares))

    monkeypatch.setattr(type(sampler), "step", step)
    options = RunOptions(n_draws=1, n_warmup=0, n_chains=1, thin=1, entropy=1, **own)
    settings = ClassSettings(settings_of(BaNKClassifier(n_frequencies=m), 400), 1, n_leapfrog=20)
    return held(settings, sampler, options, n_auto)


@pytest.mark.parametrize(
    ("accepted", "n_auto", "n", "carries"),
    [(0.9, 160, 32, True), (0.75, 160, 75, True), (0.6, 160, 100, False), (0.9, 0, 100, True)],
)
def test_rows_that_hold_few_frequencies_have_few(
    accepted: float, n_auto: int, n: int, carries: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three times as many as are refused; a number that is given stays."""
    found = held_of(accepted, 100, n_auto, monkeypatch)
    assert (found.spectral.n_frequencies, found.carries) == (n, carries)
    assert found.n_leapfrog == 20
    without = dataclasses.replace(found, n_leapfrog=0)
    assert without.n_sweeps == (2 if carries and n_auto > 0 else 1)


def test_without_time_to_look_all_frequencies_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    found = held_of(0.9, 100, 160, monkeypatch, deadline=time.monotonic() - 1.0)
    assert (found.spectral.n_frequencies, found.carries) == (100, False)
