from __future__ import annotations

import pickle

import numpy as np
import pytest

from mercer.errors import NumericalError
from mercer.gp.hyperparameters import NormalPrior, Recorder
from mercer.gp.laplace import HyperparameterPosterior, SoftmaxDraws
from mercer.gp.softmax import fit_softmax
from support.softmax_cases import KERNEL, classes, posterior, targets

both_kinds = pytest.mark.parametrize("is_shared", [True, False])


def test_the_prior_must_be_of_one_kernels_parameters() -> None:
    X, y = classes(6, 2)
    with pytest.raises(ValueError, match="2 parameters for a kernel of 3"):
        HyperparameterPosterior(X, y, KERNEL, NormalPrior(np.zeros(2), np.ones(2)), 3)


@both_kinds
def test_prior_and_start_are_those_of_every_kernel(is_shared: bool) -> None:
    model = posterior(6, 2, is_shared=is_shared)
    times = 1 if is_shared else 3
    np.testing.assert_array_equal(model.prior.mean, np.tile([-1.0, -1.0, -1.0], times))
    np.testing.assert_array_equal(model.prior.std, np.tile([3.0, 3.0, 3.0], times))
    np.testing.assert_array_equal(model.starts[0], np.tile([0.0, -2.0, -2.0], times))
    assert np.isfinite(model.evaluate(model.starts[0]).log_density)


@both_kinds
@pytest.mark.parametrize("bad", [41.0, -41.0, np.inf, np.nan, 39.0])
def test_beyond_double_precision_there_is_no_density(bad: float, is_shared: bool) -> None:
    model = posterior(12, 2, is_shared=is_shared)
    theta = np.zeros(3 * model.n_kernels)
    theta[-3] = bad
    if bad == 39.0:
        theta[::3] = bad
    point = model.evaluate(theta)
    assert point.log_density == -np.inf
    np.testing.assert_array_equal(point.gradient, np.zeros_like(theta))
    assert {value.shape for value in point.extra.values()} == {(3, 12)}
    recorded = Recorder(model, np.arange(2))(point)
    np.testing.assert_array_equal(recorded["dual_correction"], 0.0)


def test_a_gram_matrix_that_is_not_finite_is_refused() -> None:
    with pytest.raises(NumericalError, match="not finite"):
        fit_softmax(np.full((1, 3, 3), np.inf), np.eye(3))


@both_kinds
def test_what_a_draw_keeps(is_shared: bool) -> None:
    model, rows = posterior(20, 2, is_shared=is_shared), np.array([3, 5, 11])
    point = model.evaluate(model.starts[0])
    recorded = Recorder(model, rows)(point)
    theta = point.position.reshape(model.n_kernels, 3)
    np.testing.assert_array_equal(recorded["log_signal_variance"].ravel(), theta[:, 0])
    np.testing.assert_array_equal(recorded["log_weight"], theta[:, 1:].ravel())
    assert recorded["log_density"] == point.log_density
    np.testing.assert_array_equal(recorded["latent"], point.extra["f"][:, rows])
    np.testing.assert_array_equal(recorded["dual_coef"], point.extra["a"])
    length = recorded["dual_correction"] / point.extra["q"]
    np.testing.assert_allclose(length, length[0, 0])
    assert 0.0 < length[0, 0] <= 1.0


def test_scratch_changes_no_bit_and_the_model_pickles() -> None:
    model = posterior(20, 2, is_shared=False)
    theta = model.starts[0]
    point = model.evaluate(theta)
    Y, K = targets(model.y, 3), model.grams(theta).copy()
    assert fit_softmax(K, Y).log_evidence == fit_softmax(K, np.asfortranarray(Y)).log_evidence
    again = pickle.loads(pickle.dumps(model)).evaluate(theta)
    assert again.log_density == point.log_density
    np.testing.assert_array_equal(again.gradient, point.gradient)


def test_memory_does_not_grow_with_rows() -> None:
    """The blocks that are yielded are never larger than one block."""
    model = posterior(10, 2, is_shared=True)
    point = model.evaluate(model.starts[0])
    theta, a = point.position[None, None], point.extra["a"][None]
    draws = SoftmaxDraws(model.X, KERNEL, theta, a, model.y.astype(int), a)
    Z = np.random.default_rng(0).standard_normal((700, 2))
    sizes = [covariance.shape for _, _, covariance in draws.moments(Z)]
    assert [size[0] for size in sizes] == [256, 256, 188]
