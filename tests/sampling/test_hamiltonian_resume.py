"""HMC and NUTS with their adaptation, stopped in the middle of a trajectory: the same bits."""

from __future__ import annotations

import functools
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mercer.sampling.driver import Sampled, SamplingStoppedError, sample
from mercer.sampling.hmc import HMC, HamiltonianAdaptation, HamiltonianTuning
from mercer.sampling.nuts import NUTS
from mercer.sampling.sampler import Point
from support.runs import digest, open_folder, options
from support.targets import ExactStart, Skewed, record_position, uneven_mass
from support.toy_sampler import AtCall


@dataclass(frozen=True)
class Watched(Skewed):
    """The target, with something that happens at one of its evaluations."""

    before: AtCall

    def evaluate(self, theta: np.ndarray) -> Point:
        """Do it, then evaluate."""
        self.before(None)
        return super().evaluate(theta)


def run(kind: type, folder: Path | None, before: AtCall) -> Sampled:
    tuning = HamiltonianTuning(0.5, uneven_mass())
    sampler = kind(Watched(before), ExactStart(), record_position, tuning)
    plan = options(40, 100, 1, run=None if folder is None else open_folder(folder))
    return sample(sampler, plan, adaptation=HamiltonianAdaptation(100))


def nothing() -> None:
    """Do nothing."""


@pytest.mark.parametrize("kind", [HMC, NUTS])
def test_stopped_anywhere(kind: type, tmp_path: Path) -> None:
    """Four stops at evenly spread evaluations: before, in and after the window of the mass."""
    counter = AtCall(-1, nothing)
    undisturbed = digest(run(kind, None, counter).draws)
    for share in (0.05, 0.25, 0.3, 0.3):
        interrupt = functools.partial(signal.raise_signal, signal.SIGINT)
        with pytest.raises(SamplingStoppedError):
            run(kind, tmp_path, AtCall(int(share * counter.seen), interrupt))
    assert digest(run(kind, tmp_path, AtCall(-1, nothing)).draws) == undisturbed


@pytest.mark.parametrize("kind", [HMC, NUTS])
def test_same_seed_same_draws_for_two_jobs(kind: type) -> None:
    tuning = HamiltonianTuning(0.5, uneven_mass())
    sampler = kind(Skewed(), ExactStart(), record_position, tuning)
    tuner = HamiltonianAdaptation(70)
    digests = {
        digest(sample(sampler, options(20, 70, 2, n_jobs=n), adaptation=tuner).draws)
        for n in (1, 2)
    }
    assert len(digests) == 1
