from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
from scipy import stats

from mercer.errors import UsageError
from mercer.sampling.checkpoint import pack, unpack
from mercer.spectral.base_measure import (
    DiagonalBase,
    DiagonalComponents,
    FullBase,
    FullComponents,
    ScalePrior,
)
from mercer.spectral.mixture import ConcentrationPrior, Mixture
from support.mixture_cases import BASES, frequencies
from support.statistics import z_limit

M = 30


def make(case: str) -> tuple[Mixture, np.ndarray]:
    base = BASES[case]
    mixture = Mixture(base, 2.0, ConcentrationPrior(1.0, 1.0), ScalePrior(1.0, base.scale))
    return mixture, frequencies(M, base.n_inputs)


def chain(mixture: Mixture, W: np.ndarray, seed: int, n_steps: int = 20):
    rng = np.random.default_rng(seed)
    state = mixture.init(rng, W, np.arange(M) % 3)
    for _ in range(n_steps):
        state, signs = mixture.step(rng, state, W)
        W = signs[:, np.newaxis] * W
    return state, W


def bits(value) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in pack(value, "state").items()}


@pytest.mark.parametrize("case", BASES)
def test_same_seed_same_draws(case: str) -> None:
    mixture, W = make(case)
    first, second, third = (chain(mixture, W, seed) for seed in (0, 0, 1))
    assert bits(first[0]) == bits(second[0])
    assert bits(first[0]) != bits(third[0])


@pytest.mark.parametrize("case", BASES)
def test_nothing_that_is_passed_in_changes(case: str) -> None:
    """Read-only arrays, as of a memory map, will do."""
    mixture, W = make(case)
    state, W = chain(mixture, W, 0)
    before = copy.deepcopy(state)
    for array in (W, *_arrays(state)):
        array.flags.writeable = False
    rng = np.random.default_rng(1)
    after, signs = mixture.step(rng, state, W)
    mixture.draw_noise(rng, state)
    mixture.density(state, W)
    mixture.kernel(state, W)
    mixture.marginal_density(state, W[:, 0], 0)
    mixture.init(rng, W, state.assignment)
    assert bits(before) == bits(state)
    assert bits(after) != bits(state)
    assert set(np.unique(signs)) <= {-1.0, 1.0}


def _arrays(state):
    parts = dataclasses.asdict(state)
    yield from (parts["assignment"], parts["scale"])
    yield from (getattr(state.components, f.name) for f in dataclasses.fields(state.components))


@pytest.mark.parametrize("case", BASES)
def test_each_component_has_members(case: str) -> None:
    mixture, W = make(case)
    rng = np.random.default_rng(2)
    state = mixture.init(rng, W, np.array([7, -2, 7, 40, 5] * 6))
    assert state.n_components == 4
    for _ in range(30):
        assert state.assignment.dtype == np.int64
        assert (state.counts > 0).all()
        assert len(state.counts) == state.n_components == len(state.means)
        state, _ = mixture.step(rng, state, W)


@pytest.mark.parametrize("case", BASES)
def test_a_state_goes_to_a_file_and_back(case: str) -> None:
    """Its number of components need not be the template's."""
    mixture, W = make(case)
    state, _ = chain(mixture, W, 0)
    template = mixture.init(np.random.default_rng(0), W, np.arange(M))
    assert template.n_components != state.n_components
    back = unpack(template, pack(state, "state"), "state")
    assert bits(back) == bits(state)
    after = [mixture.step(np.random.default_rng(3), start, W)[0] for start in (state, back)]
    assert bits(after[0]) == bits(after[1])


def covariances_of(components) -> np.ndarray:
    """Shape (K, d, d)."""
    if isinstance(components, FullComponents):
        return components.covariances
    return components.variances[:, :, np.newaxis] * np.eye(components.variances.shape[1])


@pytest.mark.parametrize("case", BASES)
def test_log_density_and_centre(case: str) -> None:
    mixture, W = make(case)
    state, W = chain(mixture, W, 0)
    means, covariances = state.means, covariances_of(state.components)
    by_scipy = sum(
        stats.multivariate_normal.logpdf(w, means[k], covariances[k])
        for w, k in zip(W, state.assignment, strict=True)
    )
    own = state.components.log_densities(W)[np.arange(len(W)), state.assignment]
    assert own.sum() == pytest.approx(by_scipy, rel=1e-10)
    np.testing.assert_array_equal(mixture.centre(state), means[state.assignment])


def noise_z(case: str) -> float:
    """Largest z of the products of two inputs' noise against the covariances."""
    mixture, W = make(case)
    state, _ = chain(mixture, W, 0)
    rng = np.random.default_rng(4)
    noise = np.array([mixture.draw_noise(rng, state) for _ in range(4000)])
    assert noise.shape == (4000, *W.shape)
    products = np.einsum("nmi,nmj->nmij", noise, noise)
    error = products.mean(axis=0) - covariances_of(state.components)[state.assignment]
    return float((np.abs(error) / (products.std(axis=0) / np.sqrt(4000))).max())


# False alarm 1e-6 over the four cases, at most 300 products; detects 13 standard errors.
NOISE_LIMIT = z_limit(4000, 300)


@pytest.mark.parametrize("case", BASES)
def test_noise(case: str) -> None:
    assert noise_z(case) < NOISE_LIMIT


def test_noise_by_the_wrong_factor_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: the upper factor in place of the lower, variances in place of deviations."""
    draw = FullComponents.draw_noise
    monkeypatch.setattr(
        FullComponents,
        "draw_noise",
        lambda self, *rest: draw(
            FullComponents(self.means, self.factors.transpose(0, 2, 1)), *rest
        ),
    )
    monkeypatch.setattr(DiagonalComponents, "stds", property(lambda self: self.variances))
    assert noise_z("full, 2 inputs") > 2.0 * NOISE_LIMIT
    assert noise_z("diagonal, 2 inputs") > 2.0 * NOISE_LIMIT


def test_what_is_fixed_stays() -> None:
    base = BASES["diagonal, 2 inputs"]
    W = frequencies(M, 2)
    state, turned = chain(Mixture(base, 1.7, is_symmetric=False), W, 0)
    assert state.concentration == 1.7
    np.testing.assert_array_equal(state.scale, base.scale)
    np.testing.assert_array_equal(turned, W)


def test_mirrored_groups_become_one() -> None:
    """Frequencies about m and -m: signs bring them together."""
    rng = np.random.default_rng(0)
    side = np.where(np.arange(60) % 2, 1.0, -1.0)[:, np.newaxis]
    W = side * (4.0 + 0.1 * rng.standard_normal((60, 2)))
    mixture = Mixture(DiagonalBase(np.full(2, 0.02)), 0.1)
    state = mixture.init(rng, W, side[:, 0])
    assert state.n_components == 2
    for _ in range(50):
        state, signs = mixture.step(rng, state, W)
        W = signs[:, np.newaxis] * W
    assert len(set(np.sign(W[:, 0]))) == state.n_components == 1


def test_a_single_frequency_and_many_components() -> None:
    mixture = Mixture(DiagonalBase(np.ones(1)), 1e4)
    rng = np.random.default_rng(0)
    state = mixture.init(rng, np.zeros((1, 1)), np.zeros(1))
    state, _ = mixture.step(rng, state, np.zeros((1, 1)))
    assert state.n_components == 1
    W = rng.standard_normal((100, 1))
    state = mixture.init(rng, W, np.zeros(100))
    state, _ = mixture.step(rng, state, W)
    assert state.n_components > 80


BAD = {
    "concentration": lambda: Mixture(BASES["full, 1 input"], 0.0),
    "shape of the prior of the concentration": lambda: ConcentrationPrior(0.0, 1.0),
    "rate of the prior of the concentration": lambda: ConcentrationPrior(1.0, -1.0),
    "shape of the prior of the scale": lambda: ScalePrior(np.nan, np.ones(1)),
    "mean of the prior of the scale": lambda: ScalePrior(1.0, np.array([1.0, np.inf])),
    "scale must be": lambda: DiagonalBase(np.array([1.0, 0.0])),
    "kappa0": lambda: DiagonalBase(np.ones(2), 0.0),
    "nu0": lambda: DiagonalBase(np.ones(2), 0.1, -1.0),
    "nu0 must be over 2": lambda: DiagonalBase.from_std(np.ones(2), 0.1, 2.0),
    "plus 2, 4": lambda: FullBase(np.eye(2), 0.1, 3.5),
    "psi": lambda: FullBase(np.array([[1.0, 2.0], [2.0, 1.0]]), 0.1, 5.0),
    r"shape \(1,\)": lambda: Mixture(
        DiagonalBase(np.ones(2)), scale_prior=ScalePrior(1.0, np.ones(1))
    ),
    "frequencies of shape": lambda: Mixture(DiagonalBase(np.ones(2))).init(
        np.random.default_rng(0), np.ones((3, 1)), np.zeros(3)
    ),
}


@pytest.mark.parametrize("message", BAD)
def test_refusals(message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BAD[message]()


def test_sizes_of_bases() -> None:
    """Covariances have the mean that was asked for: checked through the scale matrices."""
    std = np.array([0.5, 2.0])
    np.testing.assert_allclose(DiagonalBase.from_std(std, nu0=5.0).scale, 3.0 * std**2)
    np.testing.assert_allclose(FullBase.from_std(std).psi, np.diag(std**2))
    np.testing.assert_allclose(FullBase.from_std(std, nu0=7.0).psi, 4.0 * np.diag(std**2))
    assert FullBase.from_std(std).nu0 == 4.0
