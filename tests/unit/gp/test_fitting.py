from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from mercer import GPRegressor
from mercer.gp import fitting
from mercer.gp.estimator import ClassTask
from mercer.gp.fitting import FittedGP, GPSettings
from mercer.gp.hyperparameters import kernel_prior
from mercer.gp.laplace import HyperparameterPosterior
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.sampling.driver import RunOptions
from support.gp_cases import problem

_OPTIONS = RunOptions(12, 8, 2, 1, 5, progress=False)
_NAMES = ("x0", "x1")


def fit_gp(X: np.ndarray, y: np.ndarray, settings: GPSettings) -> FittedGP:
    return ClassTask(X, y, ("0", "1"), is_shared=False).fit(settings, _OPTIONS, _NAMES)


def test_draws_hold_what_predictions_need() -> None:
    X, y = problem(35, 2)
    draws = fit_gp(X, y, GPSettings("hmc", "wide", None, None)).draws
    shapes = {name: values.shape[2:] for name, values in draws.variables.items()}
    assert shapes == {
        "log_signal_variance": (), "log_weight": (2,), "log_density": (), "latent": (20,),
        "dual_coef": (35,), "dual_correction": (35,),
    }  # fmt: skip
    assert (draws.n_chains, draws.n_draws) == (2, 12)
    assert draws.monitored == ("log_signal_variance", "log_weight", "latent")
    model = HyperparameterPosterior(X, y, SquaredExponentialARD(), kernel_prior(2))
    for chain in range(2):
        theta = np.r_[
            draws.variables["log_signal_variance"][chain, -1],
            draws.variables["log_weight"][chain, -1],
        ]
        point = model.evaluate(theta)
        assert draws.variables["log_density"][chain, -1] == point.log_density
        np.testing.assert_array_equal(draws.variables["dual_coef"][chain, -1], point.extra["a"])


def test_few_rows_are_all_monitored() -> None:
    X, y = problem(9, 2)
    settings = GPSettings("hmc", "paper", 3, 0.1)
    fitted = fit_gp(X, y, settings)
    assert fitted.draws.variables["latent"].shape == (2, 12, 9)
    assert (fitted.draws.stats["n_leapfrog"] == 3).all()


def test_map_is_one_point_without_spread() -> None:
    X, y = problem(20, 2)
    fitted = fit_gp(X, y, GPSettings("map", "wide", None, None))
    assert fitted.draws.n_total == 1
    assert fitted.draws.stats == {}
    assert fitted.diagnostics.acceptance_rate is None
    assert fitted.diagnostics.warnings == ()
    assert "no posterior spread" in fitted.notes[0]


def test_settings_name_the_prior() -> None:
    for name, expected in (("paper", kernel_prior(3, "paper")), ("wide", kernel_prior(3))):
        prior = GPSettings("hmc", name, None, None).prior_of(3)
        np.testing.assert_array_equal(prior.mean, expected.mean)
        np.testing.assert_array_equal(prior.std, expected.std)
    np.testing.assert_array_equal(kernel_prior(3).mean, [1.0] + [-1.0 - np.log(3.0)] * 3)
    np.testing.assert_array_equal(kernel_prior(3, "paper").std, np.full(4, 3.0))


def test_chains_end_once_predictions_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third of the draws; where that is too little, all, which begin with the same."""
    X, y = make_friedman1(60, 5, noise=1.0, random_state=0)

    def fitted(**more: Any) -> GPRegressor:
        settings = {"kernel": "isotropic(rbf)", "inference": "hmc", "n_draws": 360, "n_warmup": 60}
        prior = {"weight": (-1.0 - np.log(5.0), 2.0)}
        model = GPRegressor(**settings, prior=prior, random_state=0, progress=False, **more)
        return model.fit(X, y)

    short, again = (fitted(checkpoint=tmp_path) for _ in range(2))
    assert any("ended after 120 of 360 draws" in note for note in short.notes_)
    monkeypatch.setattr(fitting, "_ENOUGH", 0.0)
    whole = fitted()
    assert not any("ended after" in note for note in whole.notes_)
    name = "log_noise_variance"
    draws = short.posterior_.variables[name]
    assert draws.shape == (4, 120)
    np.testing.assert_array_equal(whole.posterior_.variables[name][:, :120], draws)
    assert whole.posterior_.variables[name].shape == (4, 360)
    np.testing.assert_array_equal(again.posterior_.variables[name], draws)
