"""Density, its projections, its Fourier transform and the table of components."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from mercer.spectral.base_measure import DiagonalBase, DiagonalComponents, FullBase, FullComponents
from mercer.spectral.mixture import Mixture, MixtureState, mixture_weights

Z = np.array([0, 1, 1, 2, 1, 0])
CASES = ["diagonal, 1", "full, 1", "diagonal, 2", "full, 2"]


def case(name: str) -> tuple[Mixture, MixtureState]:
    d = int(name[-1])
    means = np.array([[0.3, 0.2], [1.5, -1.0], [-2.0, 0.1]])[:, :d]
    if name.startswith("diagonal"):
        base = DiagonalBase(np.array([0.5, 0.2])[:d], 0.4, 3.0)
        variances = np.array([[0.4, 0.2], [0.1, 0.5], [0.3, 0.9]])[:, :d]
        components = DiagonalComponents(means, variances)
    else:
        base = FullBase(np.array([[0.5, 0.2], [0.2, 0.4]])[:d, :d], 0.4, 5.0, np.array([0.7]))
        L = np.array([[[0.6, 0.0], [0.3, 0.4]], [[0.3, 0.0], [-0.4, 0.6]], [[0.5, 0], [0.1, 0.9]]])
        components = FullComponents(means, L[:, :d, :d])
    mixture = Mixture(base)
    return mixture, MixtureState(Z, components, base.scale, 2.5)


@pytest.mark.parametrize("name", CASES[:2])
def test_density_integrates_to_one(name: str) -> None:
    mixture, state = case(name)
    half = quad(lambda w: mixture.density(state, np.array([[w]]))[0], 0.0, np.inf)[0]
    assert 2.0 * half == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_density_is_even_and_its_logarithm_is_its_logarithm(name: str) -> None:
    mixture, state = case(name)
    W = np.random.default_rng(0).standard_normal((20, int(name[-1])))
    density = mixture.density(state, W)
    np.testing.assert_allclose(mixture.density(state, -W), density, rtol=1e-13)
    np.testing.assert_allclose(np.log(density), mixture.log_spectral_density(state, W), atol=1e-12)
    if W.shape[1] == 1:
        np.testing.assert_allclose(mixture.marginal_density(state, W[:, 0], 0), density, rtol=1e-12)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("j", [0, 1])
@pytest.mark.parametrize("name", CASES[2:])
def test_marginal_density_is_the_projection(name: str, j: int) -> None:
    mixture, state = case(name)
    values = np.array([-1.3, 0.0, 0.4, 2.5])

    def density(other: float, value: float) -> float:
        w = np.array([[value, other]]) if j == 0 else np.array([[other, value]])
        return mixture.density(state, w)[0]

    projected = [
        sum(
            quad(density, *ends, args=(v,), epsabs=1e-10)[0] for ends in ((-np.inf, 0), (0, np.inf))
        )
        for v in values
    ]
    np.testing.assert_allclose(mixture.marginal_density(state, values, j), projected, atol=1e-8)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("lag", [0.0, 0.4, 1.7])
@pytest.mark.parametrize("name", CASES)
def test_kernel_is_the_transform_of_the_density(name: str, lag: float) -> None:
    """Along each axis, by the marginal density."""
    mixture, state = case(name)
    for j in range(mixture.base.n_inputs):
        lags = np.zeros((1, mixture.base.n_inputs))
        lags[0, j] = lag

        def density(w: float, j: int = j) -> float:
            return mixture.marginal_density(state, np.array([w]), j)[0]

        how = {"weight": "cos", "wvar": lag, "limlst": 200} if lag else {}
        half = quad(density, 0.0, np.inf, **how)[0]
        assert mixture.kernel(state, lags)[0] == pytest.approx(2.0 * half, abs=1e-7)


@pytest.mark.parametrize("name", CASES[2:])
def test_kernel_off_the_axes(name: str) -> None:
    """cos(w't) averaged over 20 000 frequencies; false alarm 1e-6 at 5.6 standard errors."""
    mixture, state = case(name)
    rng = np.random.default_rng(1)
    k = rng.choice(4, 20_000, p=mixture_weights(state))
    n_new = int((k == 3).sum())
    nobody = np.empty((0, 2)), np.empty(0, dtype=np.int64)
    new = mixture.base.draw_components(rng, *nobody, n_new)
    own = np.arange(n_new)
    W = np.concatenate(
        [
            state.means[k[k < 3]] + state.components.draw_noise(rng, k[k < 3]),
            new.means + new.draw_noise(rng, own),
        ]
    )
    lags = np.array([[0.5, -0.3], [1.0, 1.5], [-0.2, 2.0]])
    waves = np.cos(W @ lags.T)
    z = (waves.mean(axis=0) - mixture.kernel(state, lags)) / (waves.std(axis=0) / np.sqrt(len(W)))
    assert np.abs(z).max() < 5.6
    # Mutant: the lags with their second input turned round.
    turned = mixture.kernel(state, lags * np.array([1.0, -1.0]))
    assert (np.abs(waves.mean(axis=0) - turned) * np.sqrt(len(W))).max() > 11.2


@pytest.mark.parametrize("name", CASES)
def test_table(name: str) -> None:
    mixture, state = case(name)
    table = mixture.table(state)
    np.testing.assert_allclose(table.weights, [3 / 6, 2 / 6, 1 / 6])
    order = [1, 0, 2]
    np.testing.assert_array_equal(table.means, state.means[order])
    np.testing.assert_array_equal(table.stds, state.components.stds[order])
    if isinstance(state.components, FullComponents):
        variances = state.components.covariances.diagonal(axis1=1, axis2=2)
        np.testing.assert_allclose(state.components.stds**2, variances)
    else:
        np.testing.assert_allclose(state.components.stds**2, state.components.variances)


def test_four_hundred_inputs() -> None:
    """The density leaves the range of numbers, its logarithm and the kernel do not."""
    d, rng = 400, np.random.default_rng(0)
    for size in (1e-3, 1e3):
        mixture = Mixture(DiagonalBase.from_std(np.full(d, size)))
        W = size * rng.standard_normal((30, d))
        state = mixture.init(rng, W, np.zeros(30))
        for _ in range(3):
            state, signs = mixture.step(rng, state, W)
            W = signs[:, np.newaxis] * W
        assert np.isfinite(mixture.log_spectral_density(state, W)).all()
        assert np.isfinite(mixture.density(state, W)).all()
        assert np.isfinite(mixture.kernel(state, W)).all()
        assert np.isfinite(state.components.log_densities(W)).all()
        assert mixture.kernel(state, np.zeros((1, d)))[0] == pytest.approx(1.0, abs=1e-14)
