"""The methods of the two tables of Vermaak, Godsill & Doucet."""

from __future__ import annotations

import math
from typing import Any

from reproduce.papers.basis_answer import LEVEL, Answer, Method, Problem
from reproduce.papers.basis_chain import long_chains
from reproduce.papers.basis_rivals import (
    gaussian_process,
    has_rvm,
    relevance_vectors,
    support_vectors,
)
from reproduce.papers.basis_sinc import WIDTH

__all__ = [
    "BOSTON_METHODS",
    "BOSTON_WIDTH",
    "FEW",
    "SINC_METHODS",
    "make_model",
    "runnable",
    "sequential",
]

#: w of exp(-r^2 / w^2) on standardised inputs.
BOSTON_WIDTH = 5.0
#: Kernels that the posterior mean is projected on.
FEW = 8
_N_SWEEPS, _QUICK_SWEEPS = 4000, 200
# What stands for a model in a quick run of the larger table.
_QUICK_PARTICLES = 40


def make_model(*, is_paper: bool, **options: Any) -> Any:
    """Return a `SequentialKernelRegressor` with defaults or the paper's settings, then options."""
    from mercer.basis.estimator import SequentialKernelRegressor

    model = SequentialKernelRegressor.paper() if is_paper else SequentialKernelRegressor()
    return model.set_params(progress=False, **options)


def sequential(model: Any, problem: Problem) -> Answer:
    """Fit a model and ask it."""
    model.fit(problem.X, problem.y)
    return Answer(
        model.predict(problem.X_test),
        model.n_centres_,
        model.noise_std_,
        model.latent_interval(problem.X_test, LEVEL),
        model.predict_interval(problem.X_test, LEVEL),
    )


def runnable(methods: tuple[Method, ...]) -> tuple[Method, ...]:
    """Leave out the relevance vector machine where its package is missing."""
    return tuple(method for method in methods if has_rvm() or not method.key.startswith("rvm"))


def _mercer(key: str, name: str, *, is_paper: bool = False, **options: Any) -> Method:
    """One pass; a quick run has few particles."""

    def run(problem: Problem, seed: int, is_quick: bool) -> Answer:
        size = {"n_particles": _QUICK_PARTICLES} if is_quick else {}
        model = make_model(is_paper=is_paper, random_state=seed, **options, **size)
        return sequential(model, problem)

    return Method(key, name, run)


def _few(problem: Problem, seed: int, is_quick: bool) -> Answer:
    model = make_model(is_paper=False, random_state=seed).fit(problem.X, problem.y)
    return Answer(model.summarise(FEW).predict(problem.X_test), FEW)


def _chains(problem: Problem, seed: int, is_quick: bool) -> Answer:
    n_sweeps = _QUICK_SWEEPS if is_quick else _N_SWEEPS
    return long_chains(problem, WIDTH, 1.0, seed, n_sweeps)


def _rivals(width: float) -> tuple[Method, ...]:
    return (
        Method("svr", "SVR", lambda p, s, q: support_vectors(p, width, is_quick=q)),
        Method(
            "rvm",
            "RVM, the paper's width",
            lambda p, s, q: relevance_vectors(p, width, is_chosen=False),
        ),
        Method(
            "rvm-chosen",
            "RVM, width chosen",
            lambda p, s, q: relevance_vectors(p, width, is_chosen=True, is_quick=q),
        ),
        Method("gp", "GP", lambda p, s, q: gaussian_process(p, width)),
    )


SINC_METHODS = (
    _mercer("default", "mercer, default"),
    Method("few", f"mercer, {FEW} kernels", _few),
    _mercer("paper", "paper's settings", is_paper=True),
    _mercer("printed", "printed weights", is_paper=True, weighting="printed"),
    Method("chains", "paper's model, long chains", _chains),
    *_rivals(WIDTH),
)

_ITS_WIDTH: dict[str, Any] = {"lengthscale": BOSTON_WIDTH / math.sqrt(2.0), "standardize": "std"}

BOSTON_METHODS = (
    _mercer("default", "mercer, default"),
    _mercer("alike", "mercer, inputs alike", input_scalings=1),
    _mercer(
        "wide",
        "mercer, lambda 20, width 5",
        centres_prior="poisson",
        expected_centres=20.0,
        input_scalings=1,
        **_ITS_WIDTH,
    ),
    _mercer("paper", "paper's settings", is_paper=True, expected_centres=5.0, **_ITS_WIDTH),
    *_rivals(BOSTON_WIDTH),
    Method(
        "gp-fixed",
        "GP, the paper's width",
        lambda p, s, q: gaussian_process(p, BOSTON_WIDTH, kind="fixed"),
    ),
    Method(
        "gp-ard",
        "GP, ARD",
        lambda p, s, q: gaussian_process(p, BOSTON_WIDTH, kind="isotropic" if q else "ard"),
    ),
)
