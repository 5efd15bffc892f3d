"""What every sampler promises; a new one joins by one line in ``SAMPLERS``."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from mercer.gp.fitting import make_sampler, paper_hmc
from mercer.gp.hyperparameters import Recorder, find_maximum
from mercer.likelihoods.label_noise import learned_rate
from mercer.sampling.checkpoint import pack, unpack
from mercer.sampling.hmc import HamiltonianTuning
from mercer.sampling.nuts import NUTS
from mercer.sampling.sampler import Sampler
from mercer.spectral.base_measure import ScalePrior
from mercer.spectral.class_sampler import JointSampler
from mercer.spectral.mixture import ConcentrationPrior
from mercer.sphere.sampler import SphereModel
from support.basis_batches import make_batches
from support.class_batches import make_class_batches
from support.exact_runs import exact_sampler
from support.gp_cases import posterior
from support.lift_cases import make_sphere, make_tempered
from support.process_fits import process_posterior
from support.several_cases import make_model, make_several
from support.spectral_cases import make_spectral
from support.spectral_cases import problem as regression_problem
from support.spectral_class_cases import make_classes
from support.spectral_class_cases import problem as class_problem
from support.sphere_cases import noisy_rows
from support.targets import At, make_hmc, make_metropolis, make_nuts, uneven_mass
from support.toy_sampler import ToySampler


def gp_sampler(inference: str, *, is_regression: bool = False) -> Sampler[Any, Any]:
    model = process_posterior(12, 2) if is_regression else posterior(12, 2)
    recorder = Recorder(model, np.arange(5))
    if inference == "paper":
        return paper_hmc(model, recorder, n_leapfrog=5, step_size=0.1)
    return make_sampler(inference, model, find_maximum(model, with_covariance=True), recorder)


def sphere_sampler(*names: str) -> Sampler[Any, Any]:
    return make_sphere(SphereModel(noisy_rows(12, 3), learned_rate((1.0, 3.0), 12)), *names)


def spectral_sampler(**own: Any) -> Sampler[Any, Any]:
    """With all that a mixture can learn."""
    return with_all_learned(make_spectral(*regression_problem(12, 2), **own))


def with_all_learned(sampler: Any) -> Sampler[Any, Any]:
    learned = {
        "concentration_prior": ConcentrationPrior(1.0, 1.0),
        "scale_prior": ScalePrior(1.0, sampler.mixture.base.scale),
    }
    mixture = dataclasses.replace(sampler.mixture, **learned)
    learner: Sampler[Any, Any] = dataclasses.replace(sampler, mixture=mixture)
    return learner


ON_TARGETS = [  # those with fields ``target``, ``start`` and ``tuning``
    pytest.param(lambda: make_hmc(0.4), id="hmc, jittered"),
    pytest.param(lambda: make_hmc(0.4, 3, uneven_mass()), id="hmc, fixed"),
    pytest.param(lambda: make_nuts(0.4), id="nuts"),
    pytest.param(lambda: make_metropolis(0.9), id="metropolis"),
    pytest.param(lambda: gp_sampler("hmc"), id="gp hmc"),
    pytest.param(lambda: gp_sampler("nuts"), id="gp nuts"),
    pytest.param(lambda: gp_sampler("paper"), id="gp paper"),
    pytest.param(lambda: gp_sampler("metropolis"), id="gp metropolis"),
    pytest.param(lambda: gp_sampler("hmc", is_regression=True), id="gp regression hmc"),
    pytest.param(lambda: gp_sampler("nuts", is_regression=True), id="gp regression nuts"),
    pytest.param(lambda: gp_sampler("paper", is_regression=True), id="gp regression paper"),
]
SAMPLERS = [
    pytest.param(ToySampler, id="toy"),
    *ON_TARGETS,
    pytest.param(exact_sampler, id="gp exact hmc"),
    pytest.param(lambda: exact_sampler("nuts", n_inner=2), id="gp exact nuts"),
    pytest.param(lambda: sphere_sampler("hmc", "lines"), id="sphere"),
    pytest.param(lambda: sphere_sampler("great_circle"), id="sphere great circle"),
    pytest.param(lambda: make_tempered(noisy_rows(12, 3)), id="sphere tempered"),
    pytest.param(lambda: make_several(make_model(12, 3, 3)), id="sphere several"),
    pytest.param(lambda: spectral_sampler(has_linear_part=True, step=0.5), id="spectral"),
    pytest.param(lambda: spectral_sampler(has_linear_part=False, step=1.0), id="spectral, prior"),
    pytest.param(
        lambda: with_all_learned(make_classes(*class_problem(12, 2))), id="spectral, classes"
    ),
    pytest.param(
        lambda: with_all_learned(make_classes(*class_problem(12, 2, 3), n_classes=3, step=1.0)),
        id="spectral, three classes, prior",
    ),
    pytest.param(
        lambda: with_all_learned(
            make_classes(*class_problem(12, 2, 3), n_classes=3, kind=JointSampler)
        ),
        id="spectral, three classes, joint",
    ),
    pytest.param(make_batches, id="basis"),
    pytest.param(lambda: make_batches(variances="sampled"), id="basis, sampled"),
    pytest.param(lambda: make_batches(forgetting=(1.0, 0.9)), id="basis, two filters"),
    pytest.param(make_class_batches, id="basis, classes"),
    pytest.param(lambda: make_class_batches(n_classes=3), id="basis, three classes"),
]

every_sampler = pytest.mark.parametrize("make", SAMPLERS)


def leaves(value: Any) -> dict[str, bytes]:
    """Every array and number of a state, with type, shape and bytes."""
    return {
        name: array.dtype.str.encode() + str(array.shape).encode() + array.tobytes()
        for name, array in pack(value, "").items()
    }


def go(sampler: Sampler[Any, Any], state: Any, rng: np.random.Generator, count: int):
    for _ in range(count):
        state, info = sampler.step(rng, state)
    return state, info


@pytest.mark.one_in(3)
@every_sampler
def test_same_seed_same_draws(make) -> None:
    ends = []
    for _ in range(2):
        sampler, rng = make(), np.random.default_rng(3)
        ends.append(leaves(go(sampler, sampler.init(rng), rng, 5)[0]))
    assert ends[0] == ends[1]
    rng = np.random.default_rng(4)
    sampler = make()
    assert leaves(go(sampler, sampler.init(rng), rng, 5)[0]) != ends[0]


@every_sampler
def test_step_leaves_its_input_alone(make) -> None:
    sampler, rng = make(), np.random.default_rng(3)
    state = sampler.init(rng)
    state_before, sampler_before = copy.deepcopy(state), pickle.dumps(sampler)
    for _ in range(5):
        new, _ = sampler.step(rng, state)
        sampler.record(new)
    assert leaves(state) == leaves(state_before)
    assert pickle.dumps(sampler) == sampler_before


@every_sampler
def test_states_do_not_share_what_they_could_change(make) -> None:
    """Writing into the arrays of a new state leaves the old one alone, unless it stayed."""
    sampler, rng = make(), np.random.default_rng(3)
    old = sampler.init(rng)
    new = old
    while leaves(new) == leaves(old):
        new, _ = sampler.step(rng, old)
    before = leaves(old)
    for array in pack(new, "").values():
        if array.ndim:
            array[...] = 0
    assert leaves(old) == before


@every_sampler
def test_step_is_a_function_of_state_and_generator(make) -> None:
    """Nothing is kept between steps: another chain in between changes nothing."""
    sampler = make()
    state = sampler.init(np.random.default_rng(3))
    first = leaves(sampler.step(np.random.default_rng(5), state)[0])
    go(sampler, sampler.init(np.random.default_rng(8)), np.random.default_rng(8), 4)
    assert leaves(sampler.step(np.random.default_rng(5), state)[0]) == first


@every_sampler
def test_pickles(make) -> None:
    sampler, rng = make(), np.random.default_rng(3)
    state, info = go(sampler, sampler.init(rng), rng, 2)
    copied, copied_state, copied_rng = pickle.loads(pickle.dumps((sampler, state, rng)))
    assert pickle.loads(pickle.dumps(info)) == info
    expected = leaves(go(sampler, state, rng, 3)[0])
    assert leaves(go(copied, copied_state, copied_rng, 3)[0]) == expected


@every_sampler
def test_frozen_dataclasses(make) -> None:
    sampler, rng = make(), np.random.default_rng(3)
    for value in (sampler, *sampler.step(rng, sampler.init(rng))):
        assert dataclasses.is_dataclass(value)
        name = dataclasses.fields(value)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, None)


@every_sampler
def test_info_holds_one_number_a_field(make) -> None:
    sampler, rng = make(), np.random.default_rng(3)
    _, info = sampler.step(rng, sampler.init(rng))
    values = dataclasses.asdict(info)
    assert all(isinstance(value, (bool, int, float)) for value in values.values())
    assert 0.0 <= values.get("acceptance_rate", 0.5) <= 1.0


@pytest.mark.one_in(3)
@every_sampler
def test_resumes_bit_for_bit(make) -> None:
    """A state that went through arrays and back, and a generator restored, go on alike."""
    sampler, rng = make(), np.random.default_rng(3)
    state, _ = go(sampler, sampler.init(rng), rng, 3)
    numbers = rng.bit_generator.state
    expected = leaves(go(sampler, state, rng, 4)[0])
    template = sampler.init(np.random.default_rng(99))
    arrays = {name: array.copy() for name, array in pack(state, "s").items()}
    rng = np.random.default_rng()
    rng.bit_generator.state = numbers
    assert leaves(go(make(), unpack(template, arrays, "s"), rng, 4)[0]) == expected


@every_sampler
def test_record_gives_arrays_of_the_same_shapes(make) -> None:
    sampler, rng = make(), np.random.default_rng(3)
    state = sampler.init(rng)
    first = sampler.record(state)
    second = sampler.record(go(sampler, state, rng, 3)[0])
    assert {k: np.shape(v) for k, v in first.items()} == {k: np.shape(v) for k, v in second.items()}
    assert list(first) == list(second)


@pytest.mark.parametrize("make", ON_TARGETS)
def test_where_the_target_has_no_mass_nothing_is_accepted(make) -> None:
    """A target that is -inf all around: the chain stays, and says that it diverged."""
    stuck = dataclasses.replace(
        make(),
        start=At((41.0,) * 3),
        tuning=HamiltonianTuning(0.5, uneven_mass()),
        target=posterior(12, 2),
    )
    rng = np.random.default_rng(3)
    state = stuck.init(rng)
    end, info = go(stuck, state, rng, 3)
    assert leaves(end) == leaves(state)
    assert info.is_divergent
    assert info.acceptance_rate == 0.0
    assert isinstance(stuck, NUTS) or not info.is_accepted
