"""``checkpoint`` and ``n_jobs`` of an estimator: the same draws, bit for bit."""

from __future__ import annotations

import functools
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import RegressorMixin

from mercer.atomic import locked
from mercer.basis.classifier import SequentialKernelClassifier
from mercer.errors import ModelFileError, StorageError, UsageError
from mercer.estimation import run as estimation_run
from mercer.gp.estimator import GPClassifier
from mercer.gp.gaussian import RegressionPosterior
from mercer.gp.laplace import HyperparameterPosterior
from mercer.gp.regressor import GPRegressor
from mercer.sampling.driver import SamplingStoppedError
from mercer.spectral.class_sampler import ClassSampler, JointSampler
from mercer.spectral.classifier import BaNKClassifier
from mercer.spectral.estimator import BaNKRegressor
from mercer.spectral.sampler import SpectralSampler
from mercer.sphere.estimator import KernelGibbsClassifier
from mercer.sphere.sampler import SphereSampler
from support import class_fits
from support.gp_cases import problem
from support.runs import digest
from support.toy_sampler import AtCall

_X, _Y = problem(15, 2)


PLAN = {"n_draws": 4, "n_warmup": 3, "n_chains": 2, "random_state": 0, "progress": False}
LONG = {"n_draws": 15, "n_warmup": 65}  # past a window of the mass
LONGER = {"n_draws": 8, "n_warmup": 20}


def gp(folder: Path | None = None, **arguments) -> GPClassifier:
    return GPClassifier(checkpoint=folder, **{**PLAN, "kernel": "rbf", **arguments})


def process(folder: Path | None = None, **arguments) -> GPRegressor:
    return GPRegressor(checkpoint=folder, **{**PLAN, "kernel": "rbf", **arguments})


def sphere(folder: Path | None = None, **arguments) -> KernelGibbsClassifier:
    plan = {**PLAN, "lengthscale": "median", "nugget": 0.0}
    return KernelGibbsClassifier(checkpoint=folder, **{**plan, **arguments})


def spectral(folder: Path | None = None, **arguments) -> BaNKRegressor:
    return BaNKRegressor(checkpoint=folder, **{**PLAN, "n_frequencies": 6, **arguments})


def spectral_classes(folder: Path | None = None, **arguments) -> BaNKClassifier:
    return BaNKClassifier(checkpoint=folder, **{**PLAN, "n_frequencies": 6, **arguments})


def classes(folder: Path | None = None, **arguments) -> SequentialKernelClassifier:
    return class_fits.tiny(checkpoint=folder, **arguments)


each_model = pytest.mark.parametrize(
    "model", [gp, process, sphere, spectral, spectral_classes, classes]
)


def predictions(model) -> np.ndarray:
    """Probabilities, or means and standard deviations."""
    if isinstance(model, RegressorMixin):
        return np.stack(model.predict(_X, return_std=True))
    return model.predict_proba(_X)


@pytest.fixture(scope="module")
def finish_in(tmp_path_factory: pytest.TempPathFactory):
    """Put the finished run of a model into a folder: it is run once."""
    folders: dict[Callable, Path] = {}

    def put(folder: Path, model: Callable) -> None:
        if model not in folders:
            folders[model] = tmp_path_factory.mktemp("run")
            model(folders[model]).fit(_X, _Y)
        shutil.copytree(folders[model], folder, dirs_exist_ok=True)

    return put


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch):
    """Do something at one of the evaluations, or steps, from now on."""
    posteriors = (HyperparameterPosterior, RegressionPosterior)
    evaluations = {kind: kind.evaluate for kind in posteriors}
    steps = {
        kind: kind.step for kind in (SphereSampler, SpectralSampler, ClassSampler, JointSampler)
    }

    def start(count: int, action) -> AtCall:
        counter = AtCall(count, action)
        for kind, evaluate in evaluations.items():

            def watched(self, theta, near=None, evaluate=evaluate):
                counter(None)
                return evaluate(self, theta, near)

            monkeypatch.setattr(kind, "evaluate", watched)
        for kind, step in steps.items():

            def watched_step(self, rng, state, step=step):
                counter(None)
                return step(self, rng, state)

            monkeypatch.setattr(kind, "step", watched_step)
        return counter

    return start


SLOW = pytest.mark.slow
RUNS = [
    (gp, {"inference": "hmc", **LONG}),
    (gp, {"inference": "nuts", **LONG}),
    (process, {"inference": "hmc", **LONG}),
    # The second tier has what differs from another here in one part of the model alone.
    pytest.param(process, {"inference": "nuts", "kernel": "matern32", **LONG}, marks=SLOW),
    (sphere, LONG),
    (sphere, {"sampler": "lines", **LONGER}),
    (sphere, {"sampler": "great_circle", **LONGER}),
    # Two models that are averaged, one chain after the other.
    (sphere, {"nugget": "learn", "lengthscale": 0.5, **LONGER, "n_draws": 30}),
    (spectral, LONGER),
    (
        spectral,
        {"proposals": "prior", "base_measure": "full", "concentration": "learn", **LONGER},
    ),
    (spectral_classes, LONGER),
    (spectral_classes, {"sampler": "joint", **LONGER}),
    (spectral_classes, {"ordered": True, **LONGER}),
    pytest.param(
        spectral_classes,
        {"proposals": "prior", "base_measure": "full", "concentration": "learn", **LONGER},
        marks=SLOW,
    ),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("model", "arguments"), RUNS)
def test_p2_stopped_and_resumed(model, arguments: dict, tmp_path: Path, watch) -> None:
    counter = watch(-1, None)
    undisturbed = model(**arguments).fit(_X, _Y)
    for share in (0.2, 0.3, 0.3):
        watch(int(share * counter.seen), functools.partial(signal.raise_signal, signal.SIGTERM))
        with pytest.raises(SamplingStoppedError):
            model(tmp_path, **arguments).fit(_X, _Y)
    watch(-1, None)
    resumed = model(tmp_path, **arguments).fit(_X, _Y)
    assert digest(resumed.posterior_) == digest(undisturbed.posterior_)
    np.testing.assert_array_equal(predictions(resumed), predictions(undisturbed))
    assert "resumed" in resumed.notes_[0]
    assert str(resumed.posterior_.summary()) == str(undisturbed.posterior_.summary())


CUT = [
    (gp, {}),
    (gp, {"integration": "exact"}),
    (process, {}),
    (sphere, {"nugget": "learn"}),
    (spectral, {}),
    (spectral_classes, {}),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("model", "arguments"), CUT)
def test_time_does_not_change_what_a_resumed_run_computes(
    model, arguments: dict, tmp_path: Path
) -> None:
    """Neither how long the first run had, nor the one that goes on from it."""
    undisturbed = model(**arguments).fit(_X, _Y)
    for _ in range(2):
        cut = model(tmp_path, max_seconds=1e-9, **arguments).fit(_X, _Y)
        assert any("max_seconds" in note for note in cut.notes_)
    resumed = model(tmp_path, **arguments).fit(_X, _Y)
    assert digest(resumed.posterior_) == digest(undisturbed.posterior_)
    np.testing.assert_array_equal(predictions(resumed), predictions(undisturbed))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", [gp, process, sphere, spectral, spectral_classes])
def test_p1_same_draws_for_any_number_of_jobs(model) -> None:
    one, two = (model(n_jobs=n).fit(_X, _Y) for n in (1, 2))
    assert digest(one.posterior_) == digest(two.posterior_)


@pytest.mark.one_in(3)
@each_model
def test_another_seed_gives_other_draws(model) -> None:
    one, two = (model(random_state=seed).fit(_X, _Y) for seed in (0, 1))
    assert digest(one.posterior_) != digest(two.posterior_)


@pytest.mark.one_in(3)
@each_model
def test_without_a_seed_a_run_still_resumes(model, tmp_path: Path) -> None:
    first = model(tmp_path, random_state=None).fit(_X, _Y)
    again = model(tmp_path, random_state=None).fit(_X, _Y)
    assert digest(first.posterior_) == digest(again.posterior_)


COMMON = [{"n_draws": 5}, {"n_warmup": 4}, {"thin": 2}, {"random_state": 3}, {"n_chains": 1}]
CHANGES = {
    gp: [*COMMON, {"prior": "paper"}, {"inference": "nuts"}],
    process: [
        *COMMON, {"prior": "paper"}, {"inference": "nuts"}, {"kernel": "matern52"},
        {"noise_std": 0.2},
    ],
    sphere: [
        *COMMON, {"kernel": "matern32"}, {"lengthscale": 1.0}, {"nugget": 0.1},
        {"noise_rate": 0.1}, {"noise_rate": "learn per class"}, {"noise_prior": (1.0, 5.0)},
        {"rank": 4}, {"rank": 4, "approximation": "fourier"}, {"sampler": "lines"},
        {"fit_intercept": False}, {"standardize": "std"},
    ],
    spectral: [
        *COMMON, {"n_frequencies": 7}, {"concentration": 1.0}, {"concentration": "learn"},
        {"proposals": "prior"}, {"base_measure": "full"}, {"frequency_scale": 1.0},
        {"ridge_precision": 0.5}, {"linear_part": False}, {"standardize": "std"},
    ],
    spectral_classes: [
        *COMMON, {"n_frequencies": 7}, {"concentration": 1.0}, {"concentration": "learn"},
        {"sampler": "joint"}, {"ordered": True},
        {"proposals": "prior"}, {"base_measure": "full"}, {"frequency_scale": 1.0},
        {"ridge_precision": 0.5}, {"linear_part": False}, {"standardize": "std"},
    ],
    classes: [
        {"random_state": 3}, {"kernel": "matern32"}, {"lengthscale": 1.0}, {"n_particles": 29},
        {"expected_centres": 2.0}, {"max_centres": 7}, {"max_candidates": 5},
        {"centres_prior": "poisson"}, {"linear_part": False}, {"resampling": "multinomial"},
        {"standardize": "std"}, {"input_scale": 2.0},
    ],
}  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", CHANGES)
def test_r6_other_options_are_another_run(model, tmp_path: Path, finish_in) -> None:
    """A folder may hold several runs: one with other options begins anew, and finds its own."""
    finish_in(tmp_path, model)
    for change in CHANGES[model]:
        other = model(tmp_path, max_seconds=1e-9, **change)  # whether it resumes is soon said
        assert not is_resumed(other.fit(_X, _Y)), change
    assert is_resumed(model(tmp_path).fit(_X, _Y))  # the first is still there


@pytest.mark.one_in(3)
@each_model
def test_r6_another_run_is_not_disturbed(model, tmp_path: Path, finish_in) -> None:
    finish_in(tmp_path, model)
    other = model(tmp_path, random_state=3).fit(_X, _Y)
    undisturbed = model(random_state=3).fit(_X, _Y)
    assert other.notes_ == undisturbed.notes_
    assert digest(other.posterior_) == digest(undisturbed.posterior_)


def test_r6_other_rates_are_another_run(tmp_path: Path) -> None:
    """Also where only one number among many differs."""
    rates = np.full(15, 0.1)
    sphere(tmp_path, noise_rate=rates).fit(_X, _Y)
    rates = np.append(rates[:14], 0.2)
    assert sphere(tmp_path, noise_rate=rates).fit(_X, _Y).notes_ == ()
    assert sphere(tmp_path, noise_rate={0.0: 0.1, 1.0: 0.1}).fit(_X, _Y).notes_ == ()
    assert sphere(tmp_path, noise_rate={1.0: 0.2, 0.0: 0.1}).fit(_X, _Y).notes_ == ()
    assert "finished run" in sphere(tmp_path, noise_rate=rates).fit(_X, _Y).notes_[0]


def is_resumed(model) -> bool:
    return any("finished run" in note or "resumed" in note for note in model.notes_)


def linear(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b.T


def quadratic(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a @ b.T + 1.0) ** 2


def test_two_kernels_of_one_name_do_not_share_their_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They did while a callable was known by its repr."""
    kernel = sphere(tmp_path, kernel=linear).fit(_X, _Y).get_params()["kernel"]
    monkeypatch.setattr(kernel, "__code__", quadratic.__code__)
    assert not is_resumed(sphere(tmp_path, kernel=linear).fit(_X, _Y))
    with pytest.raises(UsageError, match="a lambda"):
        sphere(tmp_path, kernel=lambda a, b: a @ b.T).fit(_X, _Y)


def test_decision_is_no_option_of_the_run(tmp_path: Path) -> None:
    """It only says how to predict from the draws."""
    sphere(tmp_path).fit(_X, _Y)
    assert "finished run" in sphere(tmp_path, decision="bayes_point").fit(_X, _Y).notes_[0]


def test_what_is_done_with_the_draws_is_no_option_of_the_run(tmp_path: Path) -> None:
    spectral(tmp_path).fit(_X, _Y)
    assert "finished run" in spectral(tmp_path, full_draws=2).fit(_X, _Y).notes_[0]


@each_model
def test_r6_other_data_are_another_run(model, tmp_path: Path, finish_in) -> None:
    finish_in(tmp_path, model)
    assert not is_resumed(model(tmp_path).fit(_X, 1.0 - _Y))


@each_model
def test_r6_another_version_is_refused(model, tmp_path: Path, finish_in, monkeypatch) -> None:
    finish_in(tmp_path, model)
    monkeypatch.setattr(estimation_run, "mercer_version", lambda: "99.0")
    with pytest.raises(ModelFileError, match=r"this is 99\.0"):
        model(tmp_path).fit(_X, _Y)


@pytest.mark.one_in(3)
@each_model
def test_r5_a_run_in_hand_is_refused_and_its_owner_named(model, tmp_path: Path, finish_in) -> None:
    """Two fits into one folder get in each other's way only where they are the same run."""
    finish_in(tmp_path, model)
    (run,) = (path.parent for path in tmp_path.glob("*/run.mercer"))
    with locked(run):
        with pytest.raises(StorageError, match=f"in use by process {os.getpid()} "):
            model(tmp_path).fit(_X, _Y)
        model(tmp_path).fit(_X, 1.0 - _Y)
    model(tmp_path).fit(_X, _Y)
