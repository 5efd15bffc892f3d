"""Feature spaces: rows of the training data, and latent values of new rows."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.features.maps import nystroem_map
from mercer.kernels.names import kernel_named
from mercer.sphere import space as module
from mercer.sphere.space import (
    FeatureSpace,
    FiniteFeatures,
    KernelSpace,
    fit_covariance,
    precomputed,
)

X = np.random.default_rng(1).standard_normal((10, 2))
Z = np.random.default_rng(2).standard_normal((6, 2))
RBF = fit_covariance(kernel_named("rbf"), 1.0, X, 1.0)
LINEAR = FeatureSpace(FiniteFeatures.fitted(None, X, 1.0), X)


def draws(space, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
    design = space.design()
    g = np.random.default_rng(3).standard_normal((count, design.L.shape[1]))
    return g @ design.L.T, space.coefficients(design, g)


@pytest.mark.parametrize("nugget", [0.0, 0.3])
def test_training_rows_of_a_kernel(nugget: float) -> None:
    """f = (G + nugget I) alpha; at a training row a new f has the nugget anew."""
    space = KernelSpace(RBF, X, nugget)
    f, alpha = draws(space)
    G = RBF.gram(X)
    np.testing.assert_allclose(alpha @ (G + nugget * np.eye(10)), f, atol=1e-7)
    mean, spread = space.latent(X, alpha)
    np.testing.assert_allclose(mean, alpha @ G, atol=1e-9)
    if nugget == 0.0:
        np.testing.assert_allclose(mean, f, atol=1e-7)
        np.testing.assert_allclose(spread, 0.0, atol=1e-4)
    else:
        assert (spread > np.sqrt(nugget)).all()


@pytest.mark.parametrize("nugget", [0.0, 0.3])
def test_new_rows_of_a_kernel_are_regression(nugget: float) -> None:
    """Mean and variance of a Gaussian process given its values at the training rows."""
    space = KernelSpace(RBF, X, nugget)
    f, alpha = draws(space)
    G, k = RBF.gram(X) + nugget * np.eye(10), RBF.cross(Z, X)
    mean, spread = space.latent(Z, alpha)
    np.testing.assert_allclose(mean, np.linalg.solve(G, f.T).T @ k.T, atol=1e-6)
    C = RBF.gram(Z) - k @ np.linalg.solve(G, k.T)
    np.testing.assert_allclose(spread**2, C.diagonal() + nugget, atol=1e-6)
    np.testing.assert_allclose(space.outside(Z), C, atol=1e-6)


def test_finite_features() -> None:
    f, g = draws(LINEAR)
    np.testing.assert_allclose(g @ LINEAR.features(X).T, f)
    mean, spread = LINEAR.latent(Z, g)
    np.testing.assert_allclose(mean, g @ LINEAR.features(Z).T)
    np.testing.assert_array_equal(spread, 0.0)
    np.testing.assert_array_equal(LINEAR.outside(Z), np.zeros((6, 6)))
    longer = np.pad(g, [(0, 0), (0, 4)], constant_values=7.0)
    np.testing.assert_array_equal(LINEAR.latent(Z, longer)[0], mean)


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_what_features_lack_of_their_kernel(constant: float) -> None:
    """Their products and it are the kernel, of mean variance 1; at a landmark nothing lacks."""
    kernel, theta = kernel_named("linear + rbf"), np.array([-1.0, 0.5, 0.0, 1.0, 0.3])
    mapped = nystroem_map(kernel, theta, X[:3])
    space = FeatureSpace(FiniteFeatures.fitted(mapped, X, constant, has_residual=True), X, 0.2)
    K = kernel.gram(theta, X)
    K = K / K.diagonal().mean() + constant
    L, variance = space.smooth_rows()
    np.testing.assert_allclose(L @ L.T + space.outside(X), K, atol=1e-9)
    np.testing.assert_allclose((L * L).sum(axis=1) + variance, K.diagonal() + 0.2, atol=1e-9)
    np.testing.assert_allclose(variance[:3], 0.2, atol=1e-9)
    assert variance[3:].max() > 0.5
    few = space.among(np.array([4, 0]))
    np.testing.assert_array_equal(few.smooth_rows()[1], variance[[4, 0]])
    mean, spread = space.latent(X, np.eye(L.shape[1]))
    np.testing.assert_allclose(mean.T, L, atol=1e-9)
    np.testing.assert_allclose(spread**2, variance, atol=1e-9)
    chains = FeatureSpace(FiniteFeatures.fitted(mapped, X, constant), X)
    np.testing.assert_array_equal(chains.smooth_rows()[1], 0.0)
    np.testing.assert_array_equal(chains.outside(X), 0.0)


@pytest.mark.parametrize("nugget", [0.0, 0.3])
def test_precomputed(nugget: float) -> None:
    """The same from products alone: of new rows with the variance of the others, if it is one."""
    G = RBF.gram(X)
    covariance = precomputed(G)
    space, expected = KernelSpace(covariance, G, nugget), KernelSpace(RBF, X, nugget * 2.0)
    np.testing.assert_allclose(2.0 * space.design().L ** 2, expected.design().L ** 2, atol=1e-9)
    f, alpha = draws(space)
    mean, spread = space.latent(RBF.cross(Z, X), alpha)
    np.testing.assert_allclose(mean, alpha @ RBF.cross(Z, X).T / 2.0)
    np.testing.assert_allclose(2.0 * spread**2, expected.latent(Z, alpha)[1] ** 2, atol=1e-9)
    uneven = G + np.diag(np.linspace(0.0, 0.1, 10))
    space = KernelSpace(precomputed(uneven), uneven, nugget)
    np.testing.assert_allclose(space.latent(RBF.cross(Z, X), alpha)[1], np.sqrt(nugget))
    np.testing.assert_array_equal(space.outside(RBF.cross(Z, X)), np.zeros((6, 6)))
    assert f.shape == (5, 10)


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for space in (KernelSpace(RBF, X, 0.3), LINEAR):
        _, coefficients = draws(space)
        whole = space.latent(Z, coefficients)
        monkeypatch.setattr(module, "_BLOCK_NUMBERS", 25)
        for seen, expected in zip(space.latent(Z, coefficients), whole, strict=True):
            np.testing.assert_allclose(seen, expected, rtol=1e-12, atol=1e-12)
        monkeypatch.undo()


def test_nuggets_share_a_decomposition() -> None:
    space = KernelSpace(RBF, X, 0.0)
    other = space.with_nugget(0.4)
    assert other.nugget == 0.4
    assert other.spectrum is space.spectrum
    L = other.design().L
    np.testing.assert_allclose(L @ L.T, RBF.gram(X) + 0.4 * np.eye(10), atol=1e-9)


@pytest.mark.parametrize(
    "space",
    [KernelSpace(RBF, X, 0.3), LINEAR, KernelSpace(precomputed(RBF.gram(X)), RBF.gram(X), 0.1)],
    ids=["kernel", "finite", "precomputed"],
)
def test_some_rows_and_single_precision(space, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, L = np.array([1, 4, 7, 8]), space.design().L
    some = space.among(rows).design().L
    np.testing.assert_allclose(some @ some.T, (L @ L.T)[np.ix_(rows, rows)], atol=1e-9)
    monkeypatch.setattr(module, "_BLOCK_ROWS", 3)
    (blocks,) = space.each(lambda first, blocks: list(blocks))
    assert [len(block) for block in blocks] == [3, 3, 3, 1]
    single = np.concatenate(blocks)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, L.astype(np.float32))
