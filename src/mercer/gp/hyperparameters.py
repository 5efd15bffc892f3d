"""What the hyperparameters of all GP models have in common: names, priors, range, maximum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, ndtri

from mercer.errors import NumericalError, UsageError
from mercer.kernels.base import Kernel, Parameter
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.sampling.sampler import Point
from mercer.sampling.signals import is_late, stop_when_late

# Log parameters of a kernel by name: from theta to the arrays that a draw keeps, and back.

Array = NDArray[np.float64]


def each_parameter(kernel: Kernel, n_inputs: int) -> Iterator[tuple[Parameter, slice]]:
    """Yield the parameters of a kernel with their places in theta."""
    places = kernel.slices(n_inputs)
    for parameter in kernel.parameters():
        yield parameter, places[parameter.name]


def named_parameters(kernel: Kernel, n_inputs: int, theta: Array) -> dict[str, Array]:
    """Split theta (.., p): a number has shape (..), one per input (.., d)."""
    return {
        parameter.name: theta[..., place] if parameter.per_input else theta[..., place.start]
        for parameter, place in each_parameter(kernel, n_inputs)
    }


def stacked_parameters(kernel: Kernel, values: Mapping[str, Array]) -> Array:
    """Put theta (.., p) together again: the inverse of `named_parameters`."""
    parts = [
        values[parameter.name] if parameter.per_input else values[parameter.name][..., np.newaxis]
        for parameter in kernel.parameters()
    ]
    return np.concatenate(parts, axis=-1)


def class_parameters(kernel: Kernel, n_inputs: int, theta: Array) -> dict[str, Array]:
    """Split theta (.., k, p) of k kernels: a number has shape (.., k), one per input (.., k d).

    Those of one kernel have the names and shapes that `named_parameters` gives them.
    """
    if theta.shape[-2] == 1:
        return named_parameters(kernel, n_inputs, theta[..., 0, :])
    return {
        name: values.reshape(*theta.shape[:-2], -1)
        for name, values in named_parameters(kernel, n_inputs, theta).items()
    }


def class_thetas(kernel: Kernel, n_kernels: int, values: Mapping[str, Array]) -> Array:
    """Put theta (S, k, p) of S draws together again: the inverse for arrays (S, ..)."""
    split = {
        each.name: values[each.name].reshape(
            len(values[each.name]), n_kernels, *[-1] * each.per_input
        )
        for each in kernel.parameters()
    }
    return stacked_parameters(kernel, split)


def shapes_of_parameters(
    kernel: Kernel, n_inputs: int, n_kernels: int = 1
) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter of one draw."""
    return {
        each.name: (n_kernels * each.size(n_inputs),) if each.per_input or n_kernels > 1 else ()
        for each in kernel.parameters()
    }


def parameter_labels(
    kernel: Kernel, names: tuple[str, ...], classes: tuple[str, ...] = ()
) -> dict[str, tuple[str, ...]]:
    """Name the entries of each parameter: "petal_length" or, by class, "setosa: petal_length"."""
    labels = {each.name: each.labels(names) for each in kernel.parameters() if each.per_input}
    if not classes:
        return labels
    return {
        each.name: tuple(f"{label}: {name}" for label in classes for name in labels[each.name])
        if each.per_input
        else classes
        for each in kernel.parameters()
    }


def input_weights(kernel: Kernel) -> str | None:
    """Return the name of the weights of all inputs, if the kernel has one such vector only."""
    names = [
        parameter.name
        for parameter in kernel.parameters()
        if parameter.kind == "weight" and parameter.per_input
    ]
    is_of_all = all(each.inputs is None for each in kernel.parameters() if each.name in names)
    return names[0] if len(names) == 1 and is_of_all else None


# Priors of the log parameters of any kernel, and where searches over them begin.

Moments = tuple[float, float]
PriorChoice = str | Mapping[str, Moments]

_PAPER: Moments = (-3.0, 3.0)  # of every log parameter: section 2.3 of the paper
_START_VARIANCE, _START_OTHERS = 0.0, -2.0
_ARD = SquaredExponentialARD()


def _wide(n_inputs: int) -> dict[str, Moments]:
    """Mean and standard deviation of log parameters, by kind, on standardised inputs.

    The variance is wide where data speak (separable classes want e^4 to e^7). Weights lie within a
    factor of 400 to either side, so that an input may say nothing; see `_OF_SEVERAL`. Above
    `MANY_INPUTS` they are smaller: of so many a few are large by chance, which sets all rows so
    far apart that none tells of another. Periods are about the spread of an input, frequencies
    about one wave in six of it.
    """
    of_many = 2.0 * float(np.log(max(n_inputs / MANY_INPUTS, 1.0)))
    return {
        "variance": (1.0, 3.0),
        "weight": (-1.0 - float(np.log(n_inputs)) - of_many, 3.0),
        "shape": (0.0, 2.0),
        "period": (0.0, 1.5),
        "frequency": (-1.0, 1.5),
        # Of the noise's standard deviation 90 % lie between a fiftieth and 2.6 of the target's.
        "noise": (-3.0, 3.0),
    }


#: Of more inputs weights are smaller before the data, and searched for from several starts.
MANY_INPUTS = 30
# Of more, four are expected to have the weights that they have where few decide: their own law puts
# these so far out that a small table cannot say otherwise.
_HUNDREDS = 300
_MEAN_OF_FEW, _STD_OF_FEW = -1.0 - float(np.log(4.0)), 2.0
# Standard deviation of the log weights of several classes, of which 75 to 100 rows say less.
_OF_SEVERAL = 2.0
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


@dataclass(frozen=True)
class NormalPrior:
    """Independent normals: ``mean`` and ``std`` of shape (p,).

    With ``share`` (p,), below 1, each is the mixture of its own normal and, with that weight,
    N(-1 - log 4, 2^2): the weight of an input if few decide.
    """

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    share: NDArray[np.float64] | None = None

    def log_density(self, theta: NDArray[np.float64]) -> float:
        """Log density without its constant: -1/2 sum ((theta - mean)/std)^2 of normals."""
        z = (theta - self.mean) / self.std
        own = float(-0.5 * (z @ z))
        if self.share is None:
            return own
        return own + float(np.sum(np.log1p(-self.share) + np.logaddexp(0.0, self._odds(theta))))

    def _odds(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log odds of the law of few against the own one, shape (p,)."""
        assert self.share is not None
        z, z_few = (theta - self.mean) / self.std, (theta - _MEAN_OF_FEW) / _STD_OF_FEW
        with np.errstate(divide="ignore"):
            prior_odds = np.log(self.share) - np.log1p(-self.share)
        return np.asarray(prior_odds + np.log(self.std / _STD_OF_FEW) + 0.5 * (z**2 - z_few**2))

    def may_be_of_few(self, theta: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether each of theta (p,) has that law, too, and is no small one by its own, (p,)."""
        assert self.share is not None
        return np.asarray((self.share > 0.0) & (theta > self.mean + self.std))

    def of_few(self, places: NDArray[np.int64]) -> NormalPrior:
        """Return the prior of some of the parameters, given that the weights are by that law."""
        assert self.share is not None
        few, own = self.share[places] > 0.0, self.at(places)
        std = np.where(few, _STD_OF_FEW, own.std)
        return NormalPrior(np.where(few, _MEAN_OF_FEW, own.mean), std)

    def at(self, places: slice | NDArray[np.int64]) -> NormalPrior:
        """Return the prior of some of the parameters."""
        share = None if self.share is None else self.share[places]
        return NormalPrior(self.mean[places], self.std[places], share)

    def tiled(self, times: int) -> NormalPrior:
        """Return the prior of as many kernels: theta (times p,)."""
        share = None if self.share is None else np.tile(self.share, times)
        return NormalPrior(np.tile(self.mean, times), np.tile(self.std, times), share)

    def with_one_more(self, mean: float, std: float) -> NormalPrior:
        """Return the prior with a normal of one more parameter, the last."""
        share = None if self.share is None else np.append(self.share, 0.0)
        return NormalPrior(np.append(self.mean, mean), np.append(self.std, std), share)

    @property
    def log_constant(self) -> float:
        """What is added to `log_density` for a density whose integral is one."""
        return float(-np.log(self.std).sum() - 0.5 * len(self.std) * np.log(2.0 * np.pi))

    def gradient(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gradient of the log density, shape (p,)."""
        own = (self.mean - theta) / self.std**2
        if self.share is None:
            return own
        few = (_MEAN_OF_FEW - theta) / _STD_OF_FEW**2
        return np.asarray(own + expit(self._odds(theta)) * (few - own))

    def interval(self, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Central interval of each one's own normal: lower and upper ends of shape (p,)."""
        half = float(ndtri(0.5 + 0.5 * level)) * self.std
        return self.mean - half, self.mean + half


def kernel_prior(
    n_inputs: int, choice: PriorChoice = "wide", kernel: Kernel = _ARD, *, is_several: bool = False
) -> NormalPrior:
    """Return the prior over theta (p,), by the kinds of its entries.

    The weights of a kernel that looks at some inputs only are those of a table with no others.
    ``is_several``: for the functions of several classes.
    """
    mean, std, share = np.zeros((3, kernel.n_parameters(n_inputs)))
    is_given = choice == "paper" or (not isinstance(choice, str) and "weight" in choice)
    for parameter, place in each_parameter(kernel, n_inputs):
        n_seen = parameter.n_seen(n_inputs)
        mean[place], std[place] = _moments(n_seen, choice, is_several=is_several)[parameter.kind]
        if parameter.kind == "weight" and parameter.size(n_inputs) > _HUNDREDS and not is_given:
            share[place] = _FEW_INPUTS[0] / n_seen
    return NormalPrior(mean, std, share if share.any() else None)


def noise_prior(n_inputs: int, choice: PriorChoice) -> Moments:
    """Return mean and standard deviation of the log variance of a regressor's noise."""
    return _moments(n_inputs, choice)["noise"]


def _moments(n_inputs: int, choice: PriorChoice, *, is_several: bool = False) -> dict[str, Moments]:
    if choice == "paper":
        return dict.fromkeys(_KINDS, _PAPER)
    moments = _wide(n_inputs)
    if is_several:
        moments["weight"] = (moments["weight"][0], _OF_SEVERAL)
    own = {} if isinstance(choice, str) else choice
    return moments | {kind: (float(mean), float(std)) for kind, (mean, std) in own.items()}


def paper_start(n_inputs: int, kernel: Kernel = _ARD) -> Array:
    """0 for log variances and -2 for all others: section 2.3 of the paper; see `_apart`."""
    return _start(n_inputs, kernel, np.full(kernel.n_parameters(n_inputs), _START_OTHERS))


def prior_start(n_inputs: int, kernel: Kernel, prior: NormalPrior) -> Array:
    """0 for log variances and the prior's mean for all others of the kernel; see `_apart`."""
    return _start(n_inputs, kernel, prior.mean[: kernel.n_parameters(n_inputs)].copy())


def _start(n_inputs: int, kernel: Kernel, start: Array) -> Array:
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
    begin one unit of the logarithm apart from term to term of the same inputs, around the common
    start.
    """
    shifts = np.zeros(kernel.n_parameters(n_inputs))
    parameters = [each for each in each_parameter(kernel, n_inputs) if each[0].kind != "variance"]
    for alike in {(parameter.kind, parameter.inputs) for parameter, _ in parameters}:
        places = [place for each, place in parameters if (each.kind, each.inputs) == alike]
        for i, place in enumerate(places):
            shifts[place] = i - 0.5 * (len(places) - 1)
    return shifts


# Where few of many inputs decide, weights that are all alike are a maximum of their own: one input
# by itself changes little of a distance over all. So searches also begin where few have all weight.
_FEW_INPUTS = (4, 16)


def starts_of_few(X: Array, targets: Array, kernel: Kernel, start: Array) -> tuple[Array, ...]:
    """Return starts at which the few inputs that go most with a target have nearly all weight.

    And one at which these and the pair whose product does.

    X (n, d); ``targets`` (k, T, n) are T for each of k kernels, whose parameters begin at ``start``
    (p,). A start has shape (k p,). There is none for a kernel without weights of many inputs.
    """
    d = X.shape[1]
    weights = [each for each in each_parameter(kernel, d) if each[0].kind == "weight"]
    weights = [each for each in weights if each[0].size(d) > MANY_INPUTS]
    if not weights:
        return ()
    related = np.array([_relation(X, own) for own in targets])
    with_pair = related.copy()
    for own, each in zip(targets, with_pair, strict=True):
        each[_best_pair(X, own, each)] = np.inf
    kinds = [*((related, most) for most in _FEW_INPUTS), (with_pair, _FEW_INPUTS[0] + 2)]
    found = [np.tile(start, (len(targets), 1)) for _ in kinds]
    for parameter, place in weights:
        groups = parameter.inputs or [(j,) for j in range(d)]
        for theta, (relation, most) in zip(found, kinds, strict=True):
            of_each = np.column_stack([relation[:, list(own)].max(axis=1) for own in groups])
            order = np.argsort(-of_each, axis=1, kind="stable")
            np.put_along_axis(theta[:, place], order[:, :most], -1.0 - np.log(most), axis=1)
    return tuple(theta.ravel() for theta in found)


_ALONE, _IDLE = 1.0, -5.0  # log weights of the input that a term looks at, and of all others
_MOST_TERMS = 3  # of a sum whose terms look at one input each


def starts_of_one(kernel: Kernel, n_inputs: int, start: Array) -> list[Array]:
    """Return starts at which one term of a sum looks at one input alone, for each of both.

    Where terms begin alike a climb gives to one what is the other's. ``start`` holds the parameters
    of the other terms, those of each of several classes, and what comes after them. There is none
    for a kernel without such a term, or with many inputs: those are for `starts_of_few`.
    """
    weights = [each for each in each_parameter(kernel, n_inputs) if each[0].kind == "weight"]
    p, found = kernel.n_parameters(n_inputs), list[Array]()
    for _, place in weights if 1 < len(weights) <= _MOST_TERMS else ():
        own = np.arange(place.start, place.stop)
        for j in own if 1 < len(own) <= MANY_INPUTS else ():
            found.append(start.copy())
            of_each = found[-1][: len(start) // p * p].reshape(-1, p)
            of_each[:, own], of_each[:, j] = _IDLE, _ALONE
    return found


def _relation(X: Array, targets: Array) -> Array:
    """Return the largest correlation, times a target's length, of inputs or their squares: (d,)."""
    Z = X - X.mean(axis=0)
    columns = np.hstack((Z, Z**2))
    columns -= columns.mean(axis=0)
    length = np.sqrt(np.square(columns).sum(axis=0))
    sizes = np.abs(targets @ columns).max(axis=0) / np.where(length > 0.0, length, 1.0)
    return np.asarray(sizes.reshape(2, -1).max(axis=0))


_MOST_PAIRED = 1000  # inputs, those that go most with a target


def _best_pair(X: Array, targets: Array, related: Array) -> list[int]:
    """The two inputs whose product has the largest correlation with a target.

    Neither need go with it alone: of such a pair nothing else tells a search.
    """
    chosen = np.argsort(-related, kind="stable")[:_MOST_PAIRED]
    Z = X[:, chosen] - X[:, chosen].mean(axis=0)
    squares = np.square(Z)
    length = np.sqrt(np.maximum(squares.T @ squares - np.square(Z.T @ Z) / len(Z), 1e-12))
    each = [np.abs((Z * (own - own.mean())[:, np.newaxis]).T @ Z) / length for own in targets]
    sizes = np.triu(np.max(each, axis=0), 1)
    return [int(chosen[k]) for k in np.unravel_index(np.argmax(sizes), sizes.shape)]


_MOST_ORDERS = 24  # those of four alike terms


def orders_of_alike(kernel: Kernel, n_inputs: int, n_parameters: int) -> NDArray[np.int64]:
    """Orders of theta, (g, p), that no data tell apart: terms of the kernel that are alike swapped.

    They form a group; of more than `_MOST_ORDERS` those of the first alike terms. Several classes
    have theirs each; what follows the kernel's parameters stays in its place.
    """
    orders, p = np.arange(n_parameters)[np.newaxis], kernel.n_parameters(n_inputs)
    for begin in range(0, n_parameters - p + 1, p):
        for parts in kernel.alike(n_inputs):
            for j in range(1, len(parts)):
                if len(orders) * (j + 1) > _MOST_ORDERS:
                    break
                swaps = np.tile(np.arange(n_parameters), (j + 1, 1))
                for i in range(j):
                    swaps[i, begin + parts[i]] = begin + parts[j]
                    swaps[i, begin + parts[j]] = begin + parts[i]
                orders = np.concatenate([orders[:, swap] for swap in swaps[::-1]])
    return orders


NO_EVIDENCE = "the evidence cannot be computed in double precision; standardise the inputs"

# A probability is kept this far from 0 and 1, so that a log score is finite.
SMALLEST_PROBA = 1e-12

# exp(40) is beyond any scale that data can tell apart, and within double precision.
LARGEST_LOG = 40.0


class HyperparameterTarget(Protocol):
    """The posterior of the log parameters of a GP, as searches and samplers see it."""

    @property
    def X(self) -> Array:  # noqa: N802 - as the attribute of all that have it
        """Standardised rows, shape (n, d)."""
        ...

    @property
    def kernel(self) -> Kernel:
        """Of the functions."""
        ...

    @property
    def prior(self) -> NormalPrior:
        """Of the log parameters, shape (p,)."""
        ...

    @property
    def starts(self) -> tuple[Array, ...]:
        """Where searches begin, each of shape (p,); the paper's chain begins at the first."""
        ...

    def evaluate(self, theta: Array, near: Array | None = None) -> Point:
        """Evaluate log density, gradient and what a draw records at theta of shape (p,).

        ``near`` are the latent values of a point nearby: where a mode is sought, it is from there,
        in half the time, and found to rounding as from anywhere else.
        """
        ...

    def values(
        self, point: Point, slopes: Array | None, rows: NDArray[np.int64]
    ) -> Callable[[Array], tuple[float, Mapping[str, Array]]]:
        """Return what evaluates the log density alone, in the region around a point.

        ``slopes``, (p, ...), are the derivatives of the latent values there, where they are known.
        Beside the log density it returns what a draw records: the latent values at ``rows``, dual
        coefficients. It can be pickled.
        """
        ...

    def parameters(self, positions: Array) -> dict[str, Array]:
        """Split positions (.., p) into named log parameters, arrays (.., ...)."""
        ...

    def predicted(self, draws: Mapping[str, Array]) -> Array:
        """Return what each draw predicts at training rows, (..., k): probabilities or means."""
        ...

    def recorded(self, point: Point, rows: NDArray[np.int64]) -> Mapping[str, Array]:
        """Return all that a draw keeps, the latent values at ``rows``."""
        ...


@dataclass(frozen=True)
class Recorder:
    """What a draw keeps; latent values at ``rows`` (k,) are monitored."""

    model: HyperparameterTarget
    rows: NDArray[np.int64]

    def __call__(self, point: Point) -> Mapping[str, Array]:
        """Return all that a draw keeps."""
        return self.model.recorded(point, self.rows)


def is_within_range(theta: Array) -> bool:
    """Whether all log parameters are numbers that double precision and data can tell apart."""
    return bool(np.all(np.abs(theta) < LARGEST_LOG))


def no_density(theta: Array, extra: Mapping[str, Array]) -> Point:
    """Return a point of no mass and no slope, where the evidence cannot be computed."""
    return Point(theta, -np.inf, np.zeros_like(theta), extra)


# The maximum of the posterior, which searches find, and the Gaussian that its curvature gives.

# Share of the time allowed that the search and the Hessian may take.
SEARCHING = 0.5
_TOLERANCE = 1e-9
MOST_CLIMBS = 8  # of a search, from the highest of its starts
_ROUGHLY = 1e-4  # of searches from several starts, before the best goes on
_NEARBY = 1.0  # in log parameters: modes are sought from the last one
_HESSIAN_STEP = 0.01  # of log parameters: to a few thousandths, gradients being known to 1e-7


@dataclass(frozen=True)
class Maximum:
    """The maximum of the posterior and the Gaussian that its curvature gives.

    ``covariance`` is None where none was asked for, or no time was left for it; ``notes`` say what
    time cut short. ``slopes`` are the derivatives of the latent values there, (p, ...). ``others``
    are where the other searches ended.
    """

    point: Point
    covariance: Array | None
    is_converged: bool
    notes: tuple[str, ...] = ()
    slopes: Array | None = None
    others: tuple[Point, ...] = ()

    def log_evidence(self, prior: NormalPrior) -> float:
        """Laplace's evidence, hyperparameters integrated out, where the curvature is known.

        The prior is a proper density, and Sigma the inverse of the negative Hessian at the maximum:
        log Z = log p(y, theta) + p/2 log 2 pi + 1/2 log|Sigma|. Else -inf.
        """
        if self.covariance is None:
            return -np.inf
        log_det = np.linalg.slogdet(self.covariance)[1]
        return float(self.point.log_density + 0.5 * log_det - np.log(prior.std).sum())


def find_maximum(
    model: HyperparameterTarget,
    *,
    with_covariance: bool = False,
    deadline: float | None = None,
    starts: Sequence[Array] = (),
    tolerance: float = _TOLERANCE,
    most: int = MOST_CLIMBS,
) -> Maximum:
    """Find the highest of the maxima next to the starts, and its Gaussian if wanted.

    The starts are the model's, unless others are given; of more than ``most`` the highest are
    climbed from, as far as time allows to tell. ``tolerance`` is that of the log density, relative
    to its size. After ``deadline``, in seconds of `time.monotonic`, the search under way
    ends with its step, no other is begun where one has found a finite evidence, and the Hessian is
    given up. A `NumericalError` if the evidence can be computed at none of the places where they
    end.
    """
    found: list[tuple[Point, bool]] = []
    starts = starts or model.starts
    if len(starts) > most:
        depths = [
            np.inf if is_late(deadline) else -model.evaluate(start).log_density for start in starts
        ]
        starts = [starts[k] for k in np.argsort(depths, kind="stable")[:most]]
    rough = max(tolerance, _ROUGHLY) if len(starts) > 1 else tolerance
    for start in starts:
        is_any = any(np.isfinite(end.log_density) for end, _ in found)
        if is_any and is_late(deadline):
            break
        found.append(_search(model, start, deadline, rough))
    ends = sorted(found, key=lambda end: -end[0].log_density)
    point, is_converged = ends[0]
    if rough > tolerance and np.isfinite(point.log_density) and not is_late(deadline):
        point, is_converged = _search(model, point.position, deadline, tolerance)
    if not np.isfinite(point.log_density):
        raise NumericalError(NO_EVIDENCE)
    is_whole = len(found) == len(starts) and all(converged for _, converged in found)
    cut = (
        f"search for the maximum cut short by max_seconds: {len(found)} of {len(starts)} starts "
        "were tried, the best point so far was taken"
    )
    notes = (cut,) if not is_whole and is_late(deadline) else ()
    maximum = Maximum(point, None, is_converged, notes, others=tuple(end for end, _ in ends[1:]))
    return with_curvature(model, maximum, deadline) if with_covariance else maximum


def with_curvature(
    model: HyperparameterTarget, maximum: Maximum, deadline: float | None = None
) -> Maximum:
    """Return a maximum with the Gaussian that its curvature gives, or a note that time was over."""
    curved = _curvature(model, maximum.point, deadline)
    if curved is None:
        return replace(maximum, notes=(*maximum.notes, _NO_CURVATURE))
    return replace(maximum, covariance=curved[0], slopes=curved[1])


_NO_CURVATURE = (
    "max_seconds left no time for the curvature at the maximum: chains start at the best point, "
    "with the widths of the prior"
)


# Of hundreds of inputs few have a weight by the law of few. Given which, the others' weights are
# so small that no function hangs on them, and the posterior is one of few parameters.


@dataclass(frozen=True)
class FewParameters:
    """The posterior of the log parameters at ``places`` (k,) of theta (p,), the others as there.

    Given that the weights among them are by the law of few. It is itself a `HyperparameterTarget`:
    positions have shape (k,), and draws all p parameters.
    """

    whole: HyperparameterTarget
    theta: Array
    places: NDArray[np.int64]

    @property
    def X(self) -> Array:  # noqa: N802 - as the attribute of all that have it
        """Standardised rows, shape (n, d)."""
        return self.whole.X

    @property
    def kernel(self) -> Kernel:
        """Of the functions."""
        return self.whole.kernel

    @cached_property
    def prior(self) -> NormalPrior:
        """Of the log parameters at the places, shape (k,)."""
        return self.whole.prior.of_few(self.places)

    @property
    def starts(self) -> tuple[Array, ...]:
        """Where the parameters are."""
        return (self.theta[self.places],)

    def all_of(self, positions: Array) -> Array:
        """Theta (.., p) of positions (.., k)."""
        theta = np.broadcast_to(self.theta, (*positions.shape[:-1], len(self.theta))).copy()
        theta[..., self.places] = positions
        return theta

    def evaluate(self, theta: Array, near: Array | None = None) -> Point:
        """Log density, gradient and what a draw records, as of the protocol."""
        everything, prior = self.all_of(theta), self.whole.prior
        point = self.whole.evaluate(everything, near)
        gradient = (point.gradient - prior.gradient(everything))[self.places]
        return replace(
            point,
            position=theta,
            log_density=point.log_density + self.less(everything),
            gradient=gradient + self.prior.gradient(theta),
        )

    def less(self, theta: Array) -> float:
        """By how much the own prior's log density at theta (p,) is above the whole one's."""
        return self.prior.log_density(theta[self.places]) - self.whole.prior.log_density(theta)

    def values(self, point: Point, slopes: Array | None, rows: NDArray[np.int64]) -> FewValues:
        """Return what evaluates the log density alone, in the region around ``point``."""
        if slopes is not None:
            own, slopes = slopes, np.zeros((len(self.theta), *slopes.shape[1:]))
            slopes[self.places] = own
        whole = replace(point, position=self.all_of(point.position))
        return FewValues(self, self.whole.values(whole, slopes, rows))

    def parameters(self, positions: Array) -> dict[str, Array]:
        """Split positions (.., k) into all named log parameters."""
        return self.whole.parameters(self.all_of(positions))

    def predicted(self, draws: Mapping[str, Array]) -> Array:
        """Return what each draw predicts at training rows."""
        return self.whole.predicted(draws)

    def recorded(self, point: Point, rows: NDArray[np.int64]) -> Mapping[str, Array]:
        """Return all that a draw keeps."""
        return self.whole.recorded(replace(point, position=self.all_of(point.position)), rows)


@dataclass(frozen=True)
class FewValues:
    """Values of the log density by ``whole`` where few of the parameters move."""

    few: FewParameters
    whole: Callable[[Array], tuple[float, Mapping[str, Array]]]

    def __call__(self, theta: Array) -> tuple[float, Mapping[str, Array]]:
        """Return the log density, and what a draw records, at positions (k,)."""
        everything = self.few.all_of(theta)
        log_density, recorded = self.whole(everything)
        return log_density + self.few.less(everything), recorded


_FAR = 10.0  # nats that a maximum is below the highest


def few_that_decide(
    model: HyperparameterTarget, maximum: Maximum, deadline: float | None = None
) -> tuple[FewParameters, Maximum] | None:
    """Keep the parameters that are no weights, and weights that may be by the law of few.

    They are at the highest maximum, or at another that is not far below. The highest over them
    comes with its curvature. None without that law.
    """
    if model.prior.share is None:
        return None
    point = maximum.point
    ends = [
        each for each in (point, *maximum.others) if each.log_density > point.log_density - _FAR
    ]
    is_kept = model.prior.share == 0.0
    for each in ends:
        is_kept |= model.prior.may_be_of_few(each.position)
    few = FewParameters(model, point.position, np.flatnonzero(is_kept))
    starts = tuple(each.position[is_kept] for each in ends)
    own = find_maximum(few, with_covariance=True, deadline=deadline, starts=starts)
    return few, replace(own, notes=(*maximum.notes, *own.notes))


def _search(
    model: HyperparameterTarget, start: Array, deadline: float | None, tolerance: float
) -> tuple[Point, bool]:
    """Climb from a start; where the climb ends, and whether it converged."""
    points: dict[bytes, Point] = {}

    def objective(theta: Array) -> tuple[float, Array]:
        last = next(iter(points.values()), None)
        is_near = last is not None and np.abs(theta - last.position).max() < _NEARBY
        point = model.evaluate(theta.copy(), last.extra["f"] if last and is_near else None)
        points.clear()
        points[theta.tobytes()] = point
        if not np.isfinite(point.log_density):
            return 1e10, np.zeros_like(theta)
        return -point.log_density, -point.gradient

    result = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=stop_when_late(deadline),
        options={"maxiter": 100, "ftol": tolerance},
    )
    return points.get(result.x.tobytes()) or model.evaluate(result.x), bool(result.success)


def _curvature(
    model: HyperparameterTarget, point: Point, deadline: float | None
) -> tuple[Array, Array] | None:
    """Inverse of the negative Hessian at the maximum, no wider than the prior in any direction.

    And the derivatives of the latent values. None once it is late.
    """
    p = len(point.position)
    hessian, slopes = np.empty((p, p)), np.empty((p, *point.extra["f"].shape))
    for k, shift in enumerate(_HESSIAN_STEP * np.eye(p)):
        if is_late(deadline):
            return None
        above = model.evaluate(point.position + shift, point.extra["f"])
        hessian[k] = (point.gradient - above.gradient) / _HESSIAN_STEP
        slopes[k] = (above.extra["f"] - point.extra["f"]) / _HESSIAN_STEP
    # In units of the prior's standard deviations the posterior is at least as narrow as the prior.
    unit = np.outer(model.prior.std, model.prior.std)
    eigenvalues, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T) * unit)
    inverse = (vectors / np.maximum(eigenvalues, 1.0)) @ vectors.T
    return np.asarray(inverse * unit), slopes
