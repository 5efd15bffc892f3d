"""Finite features on one scale, with an intercept."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.features.maps import draw_fourier, fit_nystroem
from mercer.kernels.names import kernel_named
from mercer.sphere.estimator import KernelGibbsClassifier
from mercer.sphere.space import FiniteFeatures

X = np.random.default_rng(1).standard_normal((30, 2)) * [1.0, 40.0] + 3.0
RBF, THETA = kernel_named("rbf"), np.array([0.7, -1.0, -8.0])
MAPS = {
    "linear": None,
    "nystroem": fit_nystroem(np.random.default_rng(2), X, RBF, THETA, 7),
    "fourier": draw_fourier(np.random.default_rng(3), RBF, THETA, 2, 6),
}


@pytest.mark.parametrize("constant", [0.0, 1.0])
@pytest.mark.parametrize("name", MAPS)
def test_mean_squared_norm_is_one_and_the_constant(name: str, constant: float) -> None:
    features = FiniteFeatures.fitted(MAPS[name], X, constant)
    Phi = features(X)
    assert (Phi**2).sum(axis=1).mean() == pytest.approx(1.0 + constant)
    raw = X if MAPS[name] is None else MAPS[name].features(X)
    has_zero = MAPS[name] is None and constant == 0.0  # a feature of rows that are zero
    assert Phi.shape == (30, raw.shape[1] + (constant > 0.0) + has_zero)
    assert Phi.flags.c_contiguous
    np.testing.assert_allclose(Phi[:, : raw.shape[1]], raw / np.sqrt((raw**2).sum() / 30.0))
    if constant:
        np.testing.assert_array_equal(Phi[:, -1], 1.0)
    np.testing.assert_array_equal(features(X[4:6]), Phi[4:6])


def test_all_landmarks_give_the_scaled_kernel() -> None:
    landmarks = fit_nystroem(np.random.default_rng(4), X, RBF, THETA, 30)
    Phi = FiniteFeatures.fitted(landmarks, X, 1.0)(X)
    expected = RBF.gram(THETA, X) / np.exp(THETA[0]) + 1.0
    np.testing.assert_allclose(Phi @ Phi.T, expected, atol=1e-6)


def test_rows_of_zeros_keep_their_scale() -> None:
    features = FiniteFeatures.fitted(None, np.zeros((3, 2)), 1.0)
    np.testing.assert_array_equal(features(np.ones((1, 2))), [[1.0, 1.0, 1.0]])


@pytest.mark.parametrize("arguments", [{"kernel": "linear"}, {"kernel": "precomputed"}])
def test_rows_that_are_zero_are_no_errors_for_that(arguments) -> None:
    """Which class they have nobody knows: the label that most of them have is believed."""
    labels = np.where(X[:, 0] > 0.0, 1, 0)
    inputs, labels = np.vstack([X, np.zeros((10, 2))]), np.append(labels, [1] * 9 + [0])
    if arguments["kernel"] == "precomputed":
        inputs = inputs @ inputs.T
    model = KernelGibbsClassifier(
        **arguments, nugget=0.0, fit_intercept=False, standardize=False, n_draws=200, n_chains=1,
        random_state=0,
    ).fit(inputs, labels)  # fmt: skip
    p = model.label_error_proba_
    assert (p[30:39] < 0.2).all()
    assert p[39] > 0.5
