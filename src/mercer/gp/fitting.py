"""From a posterior of hyperparameters and settings to its draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.errors import NumericalError
from mercer.gp.hyperparameters import NO_EVIDENCE, HyperparameterTarget
from mercer.gp.priors import PriorChoice, kernel_prior
from mercer.gp.sampler import Maximum, Record, find_maximum, make_sampler, paper_hmc
from mercer.kernels.base import Kernel
from mercer.kernels.names import kernel_named
from mercer.numerics.normal_prior import NormalPrior
from mercer.posterior.diagnostics import Diagnostics, diagnose
from mercer.posterior.draws import Draws
from mercer.random import stream
from mercer.sampling.adaptation import HamiltonianAdaptation
from mercer.sampling.driver import Labels, RunOptions, Sampled, load_finished, sample
from mercer.sampling.sampler import Adaptation, Sampler

__all__ = [
    "FittedGP",
    "GPSettings",
    "fit_posterior",
    "kernel_labels",
    "monitored_rows",
]

Array = NDArray[np.float64]

Refinement = Callable[[Any, HamiltonianAdaptation], tuple[Sampler[Any, Any], Adaptation]]

_MONITORED_ROWS = 20
_ACCEPTANCE = {"hmc": 0.75, "nuts": 0.75, "metropolis": 0.3}  # wanted of warm-up


@dataclass(frozen=True)
class GPSettings:
    """What is fitted and by which sampler; see `mercer.GPClassifier`.

    Attributes
    ----------
    inference : str
    prior : str or mapping
    n_leapfrog : int or None
    step_size : float or None
    kernel : str
        The expression that names it.
    """

    inference: str
    prior: PriorChoice
    n_leapfrog: int | None
    step_size: float | None
    kernel: str = "rbf"

    def make_kernel(self) -> Kernel:
        """Return the kernel."""
        return kernel_named(self.kernel)

    def prior_of(self, n_inputs: int) -> NormalPrior:
        """Return the prior of the log parameters of the kernel."""
        return kernel_prior(n_inputs, self.prior, self.make_kernel())


@dataclass(frozen=True)
class FittedGP:
    """What a fit leaves behind."""

    draws: Draws
    diagnostics: Diagnostics
    notes: tuple[str, ...]


def kernel_labels(kernel: Kernel, names: tuple[str, ...], *further: str) -> Labels:
    """Name the inputs of each parameter, and monitor these, ``further`` and the latent values."""
    parameters = kernel.parameters()
    labels = {parameter.name: names for parameter in parameters if parameter.per_input}
    return Labels(labels, (*(parameter.name for parameter in parameters), *further, "latent"))


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
    refine: Refinement | None = None,
) -> FittedGP:
    """Draw the hyperparameters of a GP from their posterior, or find its maximum.

    ``refine``, where given, turns the sampler and its adaptation into those that are run.

    Raises
    ------
    NumericalError
        If the evidence cannot be computed where the chains are.
    SamplingStoppedError
        After Ctrl-C or SIGTERM, once checkpoints are written.
    """
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
    adaptation = HamiltonianAdaptation(options.n_warmup, _ACCEPTANCE[settings.inference])
    if refine is not None:
        refined, refined_adaptation = refine(tuned, adaptation)
        return _diagnosed(sample(refined, options, adaptation=refined_adaptation, labels=labels))
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
