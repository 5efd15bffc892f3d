from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import cho_solve
from scipy.stats import t

from mercer.errors import NumericalError
from mercer.spectral.estimator import BaNKRegressor
from mercer.spectral.mixture import Start
from mercer.spectral.model import (
    N_FREQUENCIES,
    GammaPrior,
    RegressionModel,
    Scales,
    coefficients,
    design,
    left_out,
)
from mercer.spectral.settings import BOUNDS, EvidenceOfScales, find_scales, find_waves
from support.spectral_cases import marginal_law, plain_design, problem


@pytest.fixture(scope="module")
def quick_start() -> None:
    """The start as it is."""


PRIOR = GammaPrior(1.0, 1e-3)
FIRST = Scales(np.full(3, 3.0**-0.5), 0.02)


def model(n: int, n_linear: int) -> RegressionModel:
    return RegressionModel(n, n_linear, 1.0, 1e-4, PRIOR, GammaPrior(1.0, 1e-2))


def evidence(n: int, m: int, has_linear_part: bool) -> EvidenceOfScales:
    X, y = problem(n, 3)
    W = np.random.default_rng(1).standard_normal((m, 3))
    return EvidenceOfScales(X, y, W, model(n, 4 if has_linear_part else 0), 1.3)


@pytest.mark.parametrize("has_linear_part", [False, True])
@pytest.mark.parametrize(("n", "m"), [(40, 5), (12, 20)])
def test_gradient_against_differences(n: int, m: int, has_linear_part: bool) -> None:
    """Five points, of step 1e-3: error of the order of 1e-12 times a fifth derivative."""
    function = evidence(n, m, has_linear_part)
    for theta in (np.zeros(4), np.array([0.4, -0.7, 0.1, -2.0])):
        _, gradient = function.value_and_gradient(theta)
        h = 1e-3
        for i, step in enumerate(h * np.eye(4)):
            values = [function.value_and_gradient(theta + k * step)[0] for k in (-2, -1, 1, 2)]
            difference = (values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * h)
            assert gradient[i] == pytest.approx(difference, rel=1e-7, abs=1e-6)


def test_several_outputs_add_their_gradients() -> None:
    """Value and gradient of two outputs are the sums of those of each."""
    X, y = problem(40, 3)
    Y = np.column_stack([y, y**2 - 1.0])
    W, theta = evidence(40, 5, True).frequencies, np.array([0.4, -0.7, 0.1, -2.0])
    both = EvidenceOfScales(X, Y, W, replace(model(40, 4), n_outputs=2), 1.3)
    each = [EvidenceOfScales(X, one, W, model(40, 4), 1.3) for one in Y.T]
    value, gradient = both.value_and_gradient(theta)
    values, gradients = zip(*(one.value_and_gradient(theta) for one in each), strict=True)
    assert value == pytest.approx(sum(values), rel=1e-10)
    np.testing.assert_allclose(gradient, np.sum(gradients, axis=0), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("has_linear_part", [False, True])
def test_value_is_the_evidence(has_linear_part: bool) -> None:
    function = evidence(15, 4, has_linear_part)
    theta = np.array([0.4, -0.7, 0.1, -2.0])
    W = function.frequencies * np.exp(theta[:3])
    precisions = function.model.prior_precisions(8, math.exp(-2.0), 1.3)
    law = marginal_law(function.model, plain_design(W, function.X, has_linear_part), precisions)
    expected = law.logpdf(function.y)
    assert function.value_and_gradient(theta)[0] == pytest.approx(expected, rel=1e-10)


def find(X: np.ndarray, y: np.ndarray, first: Scales = FIRST, **how: int) -> Scales:
    return find_scales(np.random.default_rng(0), X, y, model(len(y), 4), first, 1.0, **how)


def test_inputs_that_matter_get_larger_scales() -> None:
    X = np.random.default_rng(4).standard_normal((300, 3))
    found = find(X, np.sin(4.0 * X[:, 0]) + 0.2 * X[:, 1])
    assert found.scales[0] > 2.0 * found.scales[2]
    assert found.scales[0] > FIRST.scales[0]


def test_the_bound_is_kept() -> None:
    """Also by the fastest wave and by pure noise."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 3))
    for y in (np.sin(30.0 * X[:, 0]), rng.standard_normal(200), 0.1 * X[:, 0]):
        ratio = find(X, y).scales / FIRST.scales
        assert (ratio <= BOUNDS[1] * (1.0 + 1e-12)).all()
        assert (ratio >= BOUNDS[0] * (1.0 - 1e-12)).all()


def test_the_evidence_rises_and_is_that_of_the_result() -> None:
    X, y = problem(150, 3)
    found = find(X, y)
    assert found.log_evidence > find(X, y, most_steps=0).log_evidence
    W0 = np.random.default_rng(0).standard_normal((128, 3)) * FIRST.scales
    function = EvidenceOfScales(X, y, W0, model(150, 4), 1.0)
    theta = np.append(np.log(found.scales / FIRST.scales), np.log(found.ridge))
    value, _ = function.value_and_gradient(theta)
    assert found.log_evidence == pytest.approx(value, abs=1e-8)


def test_same_generator_same_result() -> None:
    X, y = problem(60, 3)
    first, second = find(X, y), find(X, y)
    np.testing.assert_array_equal(first.scales, second.scales)
    assert (first.ridge, first.log_evidence) == (second.ridge, second.log_evidence)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_few_rows(n: int) -> None:
    X, y = problem(n, 3)
    found = find(X, y)
    assert np.isfinite([*found.scales, found.ridge, found.log_evidence]).all()


def test_constant_inputs_and_targets() -> None:
    found = find(np.zeros((30, 3)), np.zeros(30))
    assert np.isfinite([*found.scales, found.ridge]).all()
    np.testing.assert_allclose(found.scales, FIRST.scales, rtol=1e-6)


def test_a_search_that_meets_singular_matrices_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all is singular, the first scales stay."""

    def fail(self, theta):
        raise NumericalError("singular")

    monkeypatch.setattr(EvidenceOfScales, "value_and_gradient", fail)
    X, y = problem(20, 3)
    found = find(X, y)
    np.testing.assert_array_equal(found.scales, FIRST.scales)
    assert found.ridge == pytest.approx(FIRST.ridge)


@pytest.mark.parametrize(("deadline", "n_looks"), [(-1.0, 2), (3.5, 6)])
def test_the_search_ends_with_the_time(
    monkeypatch: pytest.MonkeyPatch, deadline: float, n_looks: int
) -> None:
    """A clock that ticks after every step, of which there is one at least."""
    X = np.random.default_rng(4).standard_normal((300, 3))
    y = np.sin(4.0 * X[:, 0]) + 0.2 * X[:, 1]
    whole = find(X, y)
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    rng = np.random.default_rng(0)
    cut = find_scales(rng, X, y, model(len(y), 4), FIRST, 1.0, deadline=deadline)
    assert next(ticks) == n_looks
    assert cut.is_cut
    assert not whole.is_cut
    assert (cut.scales != FIRST.scales).all()
    assert cut.log_evidence < whole.log_evidence


def test_waves_are_found_one_after_the_other() -> None:
    """Two along the second input, fast ones; noise shows none (false alarm 1e-3 a seed)."""
    rng = np.random.default_rng(8)
    X, noise = rng.standard_normal((300, 2)), 0.5 * rng.standard_normal(300)
    found = Scales(np.full(2, 0.7), 0.1)
    assert find_waves(rng, X, noise, model(300, 3), found) == ()
    y = np.sin(40.0 * X[:, 1]) + 0.5 * np.cos(25.0 * X[:, 1]) + noise
    first, second = find_waves(rng, X, y, model(300, 3), found)[:2]
    np.testing.assert_allclose([first[1], second[1]], [40.0, 25.0], atol=0.3)
    assert first[0] == second[0] == 0.0


def test_a_target_left_out_has_the_law_that_the_others_give_it() -> None:
    """The regression of all but one, solved anew for each."""
    (X, y), found = problem(15, 3), Scales(np.array([0.7, 0.5, 0.3]), 0.3)
    logs, means, stds, noise = left_out(np.random.default_rng(1), X, y, model(15, 4), found)
    W = np.random.default_rng(1).standard_normal((N_FREQUENCIES, 3)) * found.scales
    F = np.vstack([design(W, X, True), y])
    fewer, whole = replace(model(15, 4), n_rows=14), model(15, 4)
    precisions = whole.prior_precisions(len(F) - 5, 0.3, 1.0)
    assert noise == coefficients(whole, F @ F.T, precisions).rate / whole.posterior_shape
    for i in range(15):
        others, x = np.delete(F, i, axis=1), F[:-1, i]
        law = coefficients(fewer, others @ others.T, precisions)
        spread = 1.0 + x @ cho_solve((law.factor, True), x)
        scale = np.sqrt(law.rate / fewer.posterior_shape * spread)
        assert means[i] == pytest.approx(law.mean @ x, abs=1e-9)
        assert stds[i] == pytest.approx(scale, rel=1e-9)
        expected = t(2.0 * fewer.posterior_shape, law.mean @ x, scale).logpdf(y[i])
        assert logs[i] == pytest.approx(expected, rel=1e-9)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("period", [3.7, 6.0, 12.0])
def test_few_rows_of_a_wave_are_learned(period: float) -> None:
    """Slow features alone ask for a ridge that shrinks the wave, and chains lost it."""
    rng = np.random.default_rng(0)
    t, rows = np.arange(60.0)[:, np.newaxis], np.sort(rng.permutation(60)[:48])
    f = np.sin(2.0 * np.pi * t[:, 0] / period)
    y = f + 0.1 * rng.standard_normal(60)
    short = {"n_draws": 20, "n_warmup": 20, "n_chains": 2, "progress": False}
    model = BaNKRegressor(random_state=0, **short).fit(t[rows], y[rows])
    assert np.sqrt(np.mean(np.square(model.predict(t) - f))) < 0.15  # 0.5 to 0.8
    ((_, middle, *_, probability),) = model.periods().rows
    assert abs(middle - period) < 0.02 * period
    assert probability > 0.9


def test_inputs_of_few_values_have_no_waves() -> None:
    rng = np.random.default_rng(8)
    X = np.column_stack([np.ones(50), rng.integers(0, 4, 50)])
    found = Scales(np.ones(2), 0.1)
    assert find_waves(rng, X, rng.standard_normal(50), model(50, 3), found) == ()


def test_a_sixteenth_of_the_frequencies_start_at_each_wave() -> None:
    waves = (np.array([30.0, 0.0]), np.array([0.0, 20.0]))
    own = Start(np.ones(2), (0.5, 1.0), 1.0, 1.0, waves)
    W, Z = own.frequencies(np.random.default_rng(1), 48)
    np.testing.assert_array_equal(np.bincount(Z), [24, 18, 3, 3])
    np.testing.assert_allclose(W[Z == 2], np.tile(waves[0], (3, 1)), rtol=0.05)
    np.testing.assert_allclose(W[Z == 3], np.tile(waves[1], (3, 1)), rtol=0.05)
    assert own.frequencies(np.random.default_rng(1), 1)[1].tolist() == [0]  # there is no room
