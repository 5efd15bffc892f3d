from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from scipy.stats import norm

from mercer.gp import fitting
from mercer.gp.fitting import (
    GPSettings,
    RegressionSettings,
    fit_regression,
    make_sampler,
)
from mercer.gp.hyperparameters import Recorder, find_maximum
from mercer.sampling.driver import RunOptions
from support.process_fits import CHAIN, standardised

_OPTIONS = RunOptions(12, 8, 2, 1, 5, progress=False)
PAPER = GPSettings("hmc", "paper", 3, 0.1)


def test_draws_hold_what_predictions_need() -> None:
    X, y = standardised(35, 2)
    settings = RegressionSettings(CHAIN, None)
    draws = fit_regression(X, y, settings, _OPTIONS, ("x0", "x1")).draws
    shapes = {name: values.shape[2:] for name, values in draws.variables.items()}
    assert shapes == {
        "log_signal_variance": (), "log_weight": (2,), "log_noise_variance": (),
        "log_density": (), "log_evidence": (), "latent": (20,), "dual_coef": (35,),
    }  # fmt: skip
    assert draws.monitored == ("log_signal_variance", "log_weight", "log_noise_variance", "latent")
    model = settings.posterior(X, y)
    names = ("log_signal_variance", "log_weight", "log_noise_variance")
    theta = np.concatenate([np.atleast_1d(draws.variables[name][1, -1]) for name in names])
    point = model.evaluate(theta)
    assert draws.variables["log_density"][1, -1] == point.log_density
    np.testing.assert_array_equal(draws.variables["dual_coef"][1, -1], point.extra["dual_coef"])


def test_priors_and_starts() -> None:
    X, y = standardised(9, 3)
    wide = RegressionSettings(CHAIN, None).posterior(X, y)
    np.testing.assert_array_equal(wide.prior.mean, [1.0, *[-1.0 - np.log(3.0)] * 3, -3.0])
    np.testing.assert_array_equal(wide.prior.std, [3.0, 3.0, 3.0, 3.0, 3.0])
    np.testing.assert_array_equal(wide.starts[0], [0.0, *[-1.0 - np.log(3.0)] * 3, -2.0])
    paper = RegressionSettings(PAPER, None).posterior(X, y)
    np.testing.assert_array_equal(paper.prior.mean, np.full(5, -3.0))
    np.testing.assert_array_equal(paper.prior.std, np.full(5, 3.0))
    np.testing.assert_array_equal(paper.starts[0], [0.0, -2.0, -2.0, -2.0, -2.0])
    known = RegressionSettings(PAPER, -1.5).posterior(X, y)
    np.testing.assert_array_equal(known.starts[0], [0.0, -2.0, -2.0, -2.0])
    assert known.log_noise_variance == -1.5


def test_the_papers_chain_takes_its_steps() -> None:
    X, y = standardised(9, 2)
    settings = RegressionSettings(PAPER, None)
    fitted = fit_regression(X, y, settings, _OPTIONS, ("x0", "x1"))
    assert fitted.draws.variables["latent"].shape == (2, 12, 9)
    assert (fitted.draws.stats["n_leapfrog"] == 3).all()


def test_a_target_left_out_has_the_law_that_the_others_give_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the joint law of all but one, solved anew for each."""
    X, y = standardised(20, 2)
    settings = RegressionSettings(CHAIN, None)
    found, search = [], fitting.find_maximum
    monkeypatch.setattr(
        fitting, "find_maximum", lambda *a, **k: found.append(search(*a, **k)) or found[0]
    )
    logs, means, stds, noise = fitting.left_out(y, X, settings, None)
    theta = found[0].point.position
    C = settings.common.make_kernel().gram(theta[:-1], X) + settings.intercept_variance
    C += noise * np.eye(20)
    assert noise == pytest.approx(np.exp(theta[-1]), rel=1e-5)  # and a nugget
    for i in range(20):
        others = np.arange(20) != i
        weights = np.linalg.solve(C[np.ix_(others, others)], C[others, i])
        mean, variance = weights @ y[others], C[i, i] - weights @ C[others, i]
        assert means[i] == pytest.approx(mean, abs=1e-9)
        assert stds[i] == pytest.approx(np.sqrt(variance), rel=1e-9)
        assert logs[i] == pytest.approx(norm.logpdf(y[i], mean, np.sqrt(variance)), rel=1e-9)


def fast_waves() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.7, 1.7, (150, 1))
    return x, np.sqrt(2.0) * np.sin(28.0 * x[:, 0]) + 0.2 * rng.standard_normal(150)


def test_a_fast_function_is_not_taken_for_noise() -> None:
    """From a long length scale alone the search ends where all is noise."""
    model = RegressionSettings(CHAIN, None).posterior(*fast_waves())
    best = find_maximum(model, with_covariance=False).point
    assert best.position[-1] < -2.0
    from_the_first = find_maximum(model, with_covariance=False, starts=model.starts[:1])
    assert from_the_first.point.position[-1] > -0.5


@pytest.mark.parametrize(
    ("deadline", "n_tried", "is_curved"), [(-1.0, 1, False), (25.0, 2, False), (1e9, 4, True)]
)
def test_the_search_for_the_maximum_ends_with_the_time(
    monkeypatch: pytest.MonkeyPatch, deadline: float, n_tried: int, is_curved: bool
) -> None:
    """A clock that ticks whenever it is looked at: after each step and before each search."""
    model = RegressionSettings(CHAIN, None).posterior(*fast_waves())
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    maximum = find_maximum(model, with_covariance=True, deadline=deadline)
    start = model.evaluate(model.starts[0])
    assert maximum.point.log_density > start.log_density  # by a step at least
    assert (maximum.covariance is not None) == is_curved
    if is_curved:
        assert maximum.notes == ()
        return
    search, curvature = maximum.notes
    assert f"max_seconds: {n_tried} of 4 starts" in search
    assert "max_seconds left no time for the curvature" in curvature
    assert next(ticks) < max(deadline, 0.0) + 7
    recorder = Recorder(model, np.arange(3))
    sampler = make_sampler("hmc", model, maximum, recorder)
    first = sampler.init(np.random.default_rng(0)).point
    np.testing.assert_array_equal(first.position, maximum.point.position)


def test_a_hessian_is_given_up_when_it_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """All searches end in time; the Hessian is begun."""
    model = RegressionSettings(CHAIN, None).posterior(*standardised(12, 3))
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    find_maximum(model, with_covariance=False, deadline=1e9)
    deadline = next(ticks) + 2.0
    ticks = itertools.count()
    maximum = find_maximum(model, with_covariance=True, deadline=deadline)
    assert maximum.covariance is None
    (said,) = maximum.notes
    assert "curvature" in said
