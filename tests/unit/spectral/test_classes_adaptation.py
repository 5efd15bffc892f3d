from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from mercer.spectral.class_model import ClassTuning
from mercer.spectral.class_sampler import ClassAdaptation, TrajectoryInfo
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


def test_nothing_else_of_the_sampler_changes() -> None:
    sampler = make_classes(*problem(5, 2))
    new = ClassAdaptation(True).with_tuning(sampler, ClassTuning(0.1))
    for field in dataclasses.fields(sampler):
        if field.name != "tuning":
            assert getattr(new, field.name) is getattr(sampler, field.name)
