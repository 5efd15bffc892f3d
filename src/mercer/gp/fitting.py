"""From a posterior of hyperparameters and settings to its draws; for classifiers, from the data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.errors import NumericalError
from mercer.gp.compilation import compile_loops
from mercer.gp.hyperparameters import (
    NO_EVIDENCE,
    HyperparameterTarget,
    default_prior,
    paper_prior,
)
from mercer.gp.model import HyperparameterPosterior
from mercer.gp.sampler import Maximum, Record, Recorder, find_maximum, make_sampler, paper_hmc
from mercer.kernels.squared_exponential import SquaredExponentialARD
from mercer.numerics.normal_prior import NormalPrior
from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.sampling.adaptation import HamiltonianAdaptation
from mercer.sampling.driver import Labels, RunOptions, Sampled, load_finished, sample
from mercer.sampling.progress import tell

__all__ = ["FittedGP", "GPSettings", "fit_gp", "fit_posterior", "monitored_rows"]

Array = NDArray[np.float64]

_MONITORED_ROWS = 20
_MONITORED = ("log_signal_variance", "log_weight", "latent")


@dataclass(frozen=True)
class GPSettings:
    """What is fitted and by which sampler; see `mercer.GPClassifier`."""

    inference: str
    prior: str
    n_leapfrog: int | None
    step_size: float | None

    def as_options(self, estimator: str) -> dict[str, Any]:
        """Return the options that the draws depend on, as JSON can hold them."""
        return {"estimator": estimator, **asdict(self)}

    def prior_of(self, n_inputs: int) -> NormalPrior:
        """Return the prior of the log parameters of the kernel."""
        return paper_prior(n_inputs) if self.prior == "paper" else default_prior(n_inputs)


@dataclass(frozen=True)
class FittedGP:
    """What a fit leaves behind."""

    draws: Draws
    diagnostics: Diagnostics
    notes: tuple[str, ...]


def fit_gp(
    X: Array, y: Array, settings: GPSettings, options: RunOptions, names: tuple[str, ...]
) -> FittedGP:
    """Draw hyperparameters of a classifier for standardised inputs (n, d), targets in {0, 1}."""
    n, d = X.shape
    model = HyperparameterPosterior(X, y, SquaredExponentialARD(), settings.prior_of(d))
    recorder = Recorder(y, monitored_rows(options, n))
    labels = Labels({"log_weight": names}, _MONITORED)
    return fit_posterior(model, recorder, settings, options, labels)


def monitored_rows(options: RunOptions, n: int) -> NDArray[np.int64]:
    """Draw the rows, 20 at most, whose latent values are monitored: sorted positions."""
    rows = stream(options.entropy, "rows").choice(n, min(n, _MONITORED_ROWS), replace=False)
    return np.sort(rows)


def fit_posterior(
    model: HyperparameterTarget,
    recorder: Record,
    settings: GPSettings,
    options: RunOptions,
    labels: Labels,
) -> FittedGP:
    """Draw the hyperparameters of a GP from their posterior, or find its maximum.

    Raises
    ------
    NumericalError
        If the evidence cannot be computed where the chains are.
    SamplingStoppedError
        After Ctrl-C or SIGTERM, once checkpoints are written.
    """
    compile_loops(lambda line: tell(line, options.progress))
    finished = load_finished(options, labels=labels)
    if finished is not None:
        return _diagnosed(finished)
    if settings.n_leapfrog is not None and settings.step_size is not None:
        sampler = paper_hmc(
            model, recorder, n_leapfrog=settings.n_leapfrog, step_size=settings.step_size
        )
        return _diagnosed(sample(sampler, options, labels=labels))
    is_map = settings.inference == "map"
    with threadpool_limits(limits=1, user_api="blas"):
        maximum = find_maximum(model, with_covariance=not is_map, deadline=options.deadline)
    if is_map:
        return _fitted_maximum(maximum, recorder, labels)
    tuned = make_sampler(settings.inference, model, maximum, recorder)
    adaptation = HamiltonianAdaptation(options.n_warmup)
    return _diagnosed(sample(tuned, options, adaptation=adaptation, labels=labels))


def _diagnosed(sampled: Sampled) -> FittedGP:
    if not np.isfinite(sampled.draws.flat("log_density")).all():
        raise NumericalError(NO_EVIDENCE)
    return FittedGP(sampled.draws, diagnose(sampled.draws), sampled.notes)


def _fitted_maximum(maximum: Maximum, recorder: Record, labels: Labels) -> FittedGP:
    """Wrap the maximum as one draw; whether it converged is all that there is to diagnose."""
    variables = {
        name: np.asarray(value)[np.newaxis, np.newaxis]
        for name, value in recorder(maximum.point).items()
    }
    draws = Draws(variables, {}, labels.labels, ())
    warnings = () if maximum.is_converged else ("the search for the maximum did not converge",)
    diagnostics = Diagnostics(diagnose(draws).table, None, 0, (), warnings)
    return FittedGP(draws, diagnostics, ("inference='map': one point, no posterior spread",))
