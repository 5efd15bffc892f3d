"""From data and settings to the draws of a GP classifier."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.errors import NumericalError
from mercer.gp.compilation import compile_loops
from mercer.gp.model import NO_EVIDENCE, HyperparameterPosterior, default_prior, paper_prior
from mercer.gp.sampler import Maximum, Recorder, find_maximum, make_sampler, paper_hmc
from mercer.kernels.squared_exponential import SquaredExponentialARD
from mercer.numerics.normal_prior import NormalPrior
from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.sampling.adaptation import HamiltonianAdaptation
from mercer.sampling.driver import Labels, RunOptions, Sampled, load_finished, sample
from mercer.sampling.progress import tell

__all__ = ["FittedGP", "GPSettings", "fit_gp"]

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

    def as_options(self) -> dict[str, Any]:
        """Return the options that the draws depend on, as JSON can hold them."""
        return {"estimator": "GPClassifier", **asdict(self)}

    def prior_of(self, n_inputs: int) -> NormalPrior:
        """Return the prior of the log parameters."""
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
    """Draw hyperparameters for standardised inputs (n, d) and targets in {0, 1}."""
    compile_loops(lambda line: tell(line, options.progress))
    n, d = X.shape
    model = HyperparameterPosterior(X, y, SquaredExponentialARD(), settings.prior_of(d))
    rows = stream(options.entropy, "rows").choice(n, min(n, _MONITORED_ROWS), replace=False)
    recorder = Recorder(y, np.sort(rows))
    labels = Labels({"log_weight": names}, _MONITORED)
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
    return _diagnosed(_sample(settings, model, maximum, recorder, options, labels))


def _sample(
    settings: GPSettings,
    model: HyperparameterPosterior,
    maximum: Maximum,
    recorder: Recorder,
    options: RunOptions,
    labels: Labels,
) -> Sampled:
    sampler = make_sampler(settings.inference, model, maximum, recorder)
    adaptation = HamiltonianAdaptation(options.n_warmup)
    return sample(sampler, options, adaptation=adaptation, labels=labels)


def _diagnosed(sampled: Sampled) -> FittedGP:
    if not np.isfinite(sampled.draws.flat("log_density")).all():
        raise NumericalError(NO_EVIDENCE)
    return FittedGP(sampled.draws, diagnose(sampled.draws), sampled.notes)


def _fitted_maximum(maximum: Maximum, recorder: Recorder, labels: Labels) -> FittedGP:
    """Wrap the maximum as one draw; whether it converged is all that there is to diagnose."""
    variables = {
        name: np.asarray(value)[np.newaxis, np.newaxis]
        for name, value in recorder(maximum.point).items()
    }
    draws = Draws(variables, {}, labels.labels, ())
    warnings = () if maximum.is_converged else ("the search for the maximum did not converge",)
    diagnostics = Diagnostics(diagnose(draws).table, None, 0, (), warnings)
    return FittedGP(draws, diagnostics, ("inference='map': one point, no posterior spread",))
