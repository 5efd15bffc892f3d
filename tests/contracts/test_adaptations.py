"""What every adaptation promises; a new one joins by one line in ``ADAPTATIONS``."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sampling.checkpoint import pack, unpack
from mercer.sampling.hmc import HamiltonianAdaptation
from mercer.sampling.sampler import Adaptation, Sampler
from mercer.spectral.rows import MemoryRows
from mercer.spectral.sampler import StepAdaptation
from mercer.sphere.sampler import SphereAdaptation, SphereModel
from support.lift_cases import make_sphere
from support.spectral_cases import make_spectral, problem
from support.sphere_cases import noisy_rows
from support.targets import make_hmc, make_nuts
from support.toy_sampler import ToyAdaptation, ToySampler


def sphere_sampler() -> Sampler[Any, Any]:
    return make_sphere(SphereModel(noisy_rows(30, 2), fixed_rate(0.1, 30)), "hmc", "lines")


def spectral_sampler(n_few: int = 0) -> Sampler[Any, Any]:
    """With parts of the rows that warm-up looks at first."""
    sampler = make_spectral(*problem(40, 2))
    few = [MemoryRows(*problem(n, 2), True) for n in (5, 10, 20)[:n_few]]
    return dataclasses.replace(sampler, few=tuple(few))


ADAPTATIONS = [
    pytest.param(ToyAdaptation(), ToySampler, id="toy"),
    pytest.param(HamiltonianAdaptation(80), lambda: make_hmc(0.3), id="hmc"),
    pytest.param(HamiltonianAdaptation(80), lambda: make_nuts(0.3), id="nuts"),
    pytest.param(HamiltonianAdaptation(10), lambda: make_hmc(0.3), id="hmc, short"),
    pytest.param(SphereAdaptation(80), sphere_sampler, id="sphere"),
    pytest.param(StepAdaptation(), spectral_sampler, id="spectral"),
    pytest.param(StepAdaptation((15, 30, 45)), lambda: spectral_sampler(3), id="spectral, few"),
]

pytestmark = pytest.mark.parametrize(("adaptation", "make"), ADAPTATIONS)


def warm_up(adaptation: Adaptation, sampler: Sampler[Any, Any], count: int = 80, stop_at: int = -1):
    """Warm up; with ``stop_at``, pass all through arrays and back after that step."""
    rng = np.random.default_rng(5)
    state, learned = sampler.init(rng), adaptation.init(sampler)
    template, fresh = copy.deepcopy(learned), sampler
    for k in range(count):
        state, info = sampler.step(rng, state)
        learned, sampler = adaptation.update(learned, sampler, state, info)
        if k == stop_at:
            tuning = pack(adaptation.tuning(sampler), "t")
            learned = unpack(template, pack(learned, "l"), "l")
            empty = adaptation.tuning(fresh)
            sampler = adaptation.with_tuning(fresh, unpack(empty, tuning, "t"))
    return learned, adaptation.finish(learned, sampler)


def packed(value: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in pack(value, "").items()}


def test_nothing_is_changed_in_place(adaptation: Adaptation, make) -> None:
    sampler, rng = make(), np.random.default_rng(5)
    learned = adaptation.init(sampler)
    state, info = sampler.step(rng, sampler.init(rng))
    before = pickle.dumps((adaptation, learned, sampler, state, info))
    adaptation.update(learned, sampler, state, info)
    adaptation.finish(learned, sampler)
    assert pickle.dumps((adaptation, learned, sampler, state, info)) == before


def test_learned_and_tuning_are_frozen_dataclasses(adaptation: Adaptation, make) -> None:
    assert dataclasses.is_dataclass(adaptation)
    for value in (adaptation.init(make()), adaptation.tuning(make())):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, dataclasses.fields(value)[0].name, None)


def test_with_tuning_is_the_inverse_of_tuning(adaptation: Adaptation, make) -> None:
    _, warm = warm_up(adaptation, make())
    cold = make()
    moved = adaptation.with_tuning(cold, adaptation.tuning(warm))
    assert packed(adaptation.tuning(moved)) == packed(adaptation.tuning(warm))
    assert packed(adaptation.tuning(cold)) != packed(adaptation.tuning(warm))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("stop_at", [0, 20, 60, 78])
def test_resumes_bit_for_bit(adaptation: Adaptation, make, stop_at: int) -> None:
    learned, warm = warm_up(adaptation, make())
    again, resumed = warm_up(adaptation, make(), stop_at=stop_at)
    assert packed(again) == packed(learned)
    assert packed(adaptation.tuning(resumed)) == packed(adaptation.tuning(warm))
