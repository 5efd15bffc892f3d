"""Priors of the log parameters of any kernel, and where searches over them begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UsageError
from mercer.gp.parameters import each_parameter
from mercer.kernels.base import Kernel
from mercer.kernels.squared_exponential import SquaredExponentialARD
from mercer.numerics.normal_prior import NormalPrior

__all__ = [
    "PriorChoice",
    "check_prior",
    "kernel_prior",
    "noise_prior",
    "paper_start",
    "places_of_weights",
    "plain_prior",
    "prior_start",
]

Array = NDArray[np.float64]
Moments = tuple[float, float]
PriorChoice = str | Mapping[str, Moments]

_PAPER: Moments = (-3.0, 3.0)  # of every log parameter: section 2.3 of the paper
_START_VARIANCE, _START_OTHERS = 0.0, -2.0
_ARD = SquaredExponentialARD()


def _wide(n_inputs: int) -> dict[str, Moments]:
    """Mean and standard deviation of log parameters, by kind, on standardised inputs.

    The variance is wide where data speak (separable classes want e^4 to e^7); the weight of an
    input that says nothing is of a size that does not slow a chain down. Periods are about the
    spread of an input, frequencies about one wave in six of it.
    """
    return {
        "variance": (1.0, 3.0),
        "weight": (-1.0 - float(np.log(n_inputs)), 2.0),
        "shape": (0.0, 2.0),
        "period": (0.0, 1.5),
        "frequency": (-1.0, 1.5),
        # Of the noise's standard deviation 90 % lie between a fiftieth and 2.6 of the target's.
        "noise": (-3.0, 3.0),
    }


_KINDS = tuple(_wide(1))
# Of moments of logarithms: beyond, exponentials overflow.
_LARGEST = 100.0


def check_prior(prior: Any) -> None:
    """Refuse what is neither a name nor a mapping of kinds to means and standard deviations.

    Raises
    ------
    UsageError
        Saying what a prior may be.
    """
    if isinstance(prior, str) and prior in ("wide", "paper"):
        return
    if not isinstance(prior, Mapping):
        raise UsageError(
            'prior must be "wide", "paper" or a mapping such as {"weight": (-2.0, 3.0)}, mean and '
            f"standard deviation of a logarithm; got {prior!r}"
        )
    for kind, moments in prior.items():
        if kind not in _KINDS:
            raise UsageError(f"prior: no parameter is a {kind!r}; there is: {', '.join(_KINDS)}")
        if not _is_moments(moments):
            raise UsageError(
                f"prior: {kind!r} must have a finite mean and a positive standard deviation of its "
                f"logarithm, both below {_LARGEST:g} in size; got {moments!r}"
            )


def plain_prior(prior: PriorChoice) -> PriorChoice:
    """Return the same prior in plain text and numbers, as JSON can hold it."""
    if isinstance(prior, str):
        return str(prior)
    return {str(kind): (float(mean), float(std)) for kind, (mean, std) in prior.items()}


def _is_moments(moments: Any) -> bool:
    try:
        mean, std = (float(value) for value in moments)
    except (TypeError, ValueError):
        return False
    return abs(mean) < _LARGEST and 0.0 < std < _LARGEST


def kernel_prior(n_inputs: int, choice: PriorChoice = "wide", kernel: Kernel = _ARD) -> NormalPrior:
    """Return independent normals over theta (p,), by the kinds of its entries."""
    moments = _moments(n_inputs, choice)
    mean, std = np.empty((2, kernel.n_parameters(n_inputs)))
    for parameter, place in each_parameter(kernel, n_inputs):
        mean[place], std[place] = moments[parameter.kind]
    return NormalPrior(mean, std)


def noise_prior(n_inputs: int, choice: PriorChoice) -> Moments:
    """Return mean and standard deviation of the log variance of a regressor's noise."""
    return _moments(n_inputs, choice)["noise"]


def _moments(n_inputs: int, choice: PriorChoice) -> dict[str, Moments]:
    if choice == "paper":
        return dict.fromkeys(_KINDS, _PAPER)
    own = {} if isinstance(choice, str) else choice
    return {
        kind: (float(own[kind][0]), float(own[kind][1])) if kind in own else usual
        for kind, usual in _wide(n_inputs).items()
    }


def paper_start(n_inputs: int, kernel: Kernel = _ARD) -> Array:
    """0 for log variances and -2 for all others: section 2.3 of the paper; see `_apart`."""
    start = np.full(kernel.n_parameters(n_inputs), _START_OTHERS)
    for parameter, place in each_parameter(kernel, n_inputs):
        if parameter.kind == "variance":
            start[place] = _START_VARIANCE
    return start + _apart(n_inputs, kernel)


def prior_start(n_inputs: int, kernel: Kernel, prior: NormalPrior) -> Array:
    """0 for log variances and the prior's mean for all others; see `_apart`."""
    start = prior.mean.copy()
    for parameter, place in each_parameter(kernel, n_inputs):
        if parameter.kind == "variance":
            start[place] = _START_VARIANCE
    return start + _apart(n_inputs, kernel)


def places_of_weights(kernel: Kernel, n_inputs: int) -> Array:
    """1.0 where theta (p,) is a weight of an input, else 0.0."""
    places = np.zeros(kernel.n_parameters(n_inputs))
    for parameter, place in each_parameter(kernel, n_inputs):
        places[place] = float(parameter.kind == "weight")
    return places


def _apart(n_inputs: int, kernel: Kernel) -> Array:
    """Shifts of a start (p,), 0 unless terms of the kernel are alike.

    Such terms would stay alike on their way up: parameters of one kind, other than variances,
    begin one unit of the logarithm apart from term to term, around the common start.
    """
    shifts = np.zeros(kernel.n_parameters(n_inputs))
    parameters = [each for each in each_parameter(kernel, n_inputs) if each[0].kind != "variance"]
    for kind in {parameter.kind for parameter, _ in parameters}:
        places = [place for parameter, place in parameters if parameter.kind == kind]
        for i, place in enumerate(places):
            shifts[place] = i - 0.5 * (len(places) - 1)
    return shifts
