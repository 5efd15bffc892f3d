"""From the arguments ``kernel``, ``lengthscale``, ``nugget`` and ``rank`` to models to compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import DataError, UsageError
from mercer.estimation.options import check_choice, check_count
from mercer.features.base import FeatureMap
from mercer.features.fourier import draw_fourier
from mercer.features.nystroem import fit_nystroem
from mercer.kernels.base import Kernel
from mercer.kernels.linear import Linear
from mercer.kernels.names import KERNELS, kernel_named, name_of_kernel
from mercer.sphere.covariance import (
    fit_covariance,
    kernel_parameters,
    median_distance,
    precomputed,
)
from mercer.sphere.finite import FiniteFeatures
from mercer.sphere.selection import Candidate
from mercer.sphere.space import FeatureSpace, KernelSpace

__all__ = ["PRECOMPUTED", "SpaceArguments", "make_candidates"]

Array = NDArray[np.float64]

AUTO, LEARN, MEDIAN, PRECOMPUTED = "auto", "learn", "median", "precomputed"
_AUTO_KERNELS = ("rbf", "matern32", "linear")
# Learned length scales, in median distances between rows.
_LENGTHSCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
# Learned nuggets, in units of the mean variance of a row.
_NUGGETS = (0.0, 0.1, 0.4, 1.5)
# With one matrix of n x n numbers for the Gram matrix and a few more for its decomposition.
_LARGEST_EXACT = 5000


@dataclass(frozen=True)
class SpaceArguments:
    """The arguments of the estimator that decide the feature space."""

    kernel: Any
    lengthscale: Any
    nugget: Any
    rank: int | None
    approximation: str
    fit_intercept: bool

    def check(self) -> None:
        """Raise `UsageError` for the first one that is out of its range."""
        _check_kernel(self.kernel)
        _check_scale("lengthscale", self.lengthscale, (LEARN, MEDIAN), 0.0, is_open=True)
        _check_scale("nugget", self.nugget, (LEARN,), 0.0, is_open=False)
        check_choice("approximation", self.approximation, ("nystroem", "fourier"))
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        if self.rank is not None:
            check_count("rank", self.rank, 1)
            if not self._is_finite_ready:
                raise UsageError("rank needs a kernel of mercer, by name or as an object")

    @property
    def is_precomputed(self) -> bool:
        """Whether Gram matrices take the place of inputs."""
        return isinstance(self.kernel, str) and self.kernel == PRECOMPUTED

    @property
    def is_callable(self) -> bool:
        """Whether the kernel is a function of the user's, with scales of its own."""
        return not isinstance(self.kernel, str | Kernel)

    @property
    def _is_finite_ready(self) -> bool:
        is_named = isinstance(self.kernel, str) and self.kernel not in (AUTO, PRECOMPUTED)
        return is_named or isinstance(self.kernel, Kernel)


def _check_kernel(value: Any) -> None:
    if isinstance(value, str):
        if not set(value) & set("+*("):
            return check_choice("kernel", value, (AUTO, PRECOMPUTED, *KERNELS))
        value = kernel_named(value)
    if isinstance(value, Kernel):
        is_variance = [each.kind for each in value.parameters()] == ["variance"]
        if not is_variance and not value.has_lengthscale:
            raise UsageError(
                f"kernel {name_of_kernel(value)!r} has more than a variance and length scales: its "
                "parameters would not be learned here; GPClassifier learns them"
            )
    elif not callable(value):
        raise UsageError(f"kernel must be a name, a kernel or a callable; got {value!r}")
    return None


def _check_scale(
    name: str, value: Any, words: tuple[str, ...], lowest: float, *, is_open: bool
) -> None:
    if isinstance(value, str) and value in words:
        return
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not is_number or not np.isfinite(value) or value < lowest or (is_open and value == lowest):
        listed = ", ".join(repr(word) for word in words)
        bound = "above 0" if is_open else "of at least 0"
        raise UsageError(f"{name} must be {listed} or a number {bound}; got {value!r}")


def make_candidates(
    arguments: SpaceArguments, X: Array, rng: np.random.Generator
) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    """List the models that the arguments leave open, and what a user should be told.

    Parameters
    ----------
    arguments : SpaceArguments
        Checked.
    X : ndarray of shape (n, d)
        Standardised rows, or a Gram matrix.
    rng : Generator
        Draws landmarks and frequencies, where there is a rank.

    Raises
    ------
    DataError
        If there are too many rows for an n x n matrix, with the remedy.
    """
    constant = 1.0 if arguments.fit_intercept and not arguments.is_precomputed else 0.0
    if arguments.rank is not None or _is_linear(arguments):
        return _finite(arguments, X, constant, rng)
    if len(X) > _LARGEST_EXACT:
        raise DataError(
            f"{len(X)} rows need matrices of {8e-9 * len(X) ** 2:.1f} GB each; set rank=512 (or "
            "another number of features), or kernel='linear'"
        )
    candidates: list[Candidate] = []
    for name, kernel in _kernels(arguments):
        for lengthscale in _lengthscales(arguments, kernel, X):
            if kernel is None:
                covariance = precomputed(X)
            else:
                covariance = fit_covariance(kernel, lengthscale, X, constant)
            space = KernelSpace(covariance, X, 0.0)
            for nugget in _nuggets(arguments):
                own = space.with_nugget(nugget)
                candidates.append(Candidate(name, lengthscale, nugget, own))
    return tuple(candidates), ()


def _is_linear(arguments: SpaceArguments) -> bool:
    """Whether the kernel has as many features as inputs, and no nugget makes it full."""
    is_linear = arguments.kernel == "linear" or isinstance(arguments.kernel, Linear)
    return is_linear and (arguments.nugget == LEARN or arguments.nugget == 0.0)


def _finite(
    arguments: SpaceArguments, X: Array, constant: float, rng: np.random.Generator
) -> tuple[tuple[Candidate, ...], tuple[str, ...]]:
    if arguments.nugget != LEARN and arguments.nugget != 0.0:
        raise UsageError("rank and a nugget exclude each other: a nugget makes every row a feature")
    notes = ("nugget 0: finite features have none",) if arguments.nugget == LEARN else ()
    if _is_linear(arguments):
        space = FeatureSpace(FiniteFeatures.fitted(None, X, constant), X)
        return (Candidate("linear", None, 0.0, space),), notes
    assert arguments.rank is not None
    ((name, kernel),) = _kernels(arguments)
    candidates = []
    for lengthscale in _lengthscales(arguments, kernel, X):
        theta = kernel_parameters(kernel, lengthscale, X.shape[1])
        mapped: FeatureMap
        if arguments.approximation == "fourier":
            mapped = draw_fourier(rng, kernel, theta, X.shape[1], max(arguments.rank // 2, 1))
        else:
            mapped = fit_nystroem(rng, X, kernel, theta, arguments.rank)
        space = FeatureSpace(FiniteFeatures.fitted(mapped, X, constant), X)
        candidates.append(Candidate(name, lengthscale, 0.0, space))
    return tuple(candidates), notes


def _kernels(arguments: SpaceArguments) -> list[tuple[str, Any]]:
    kernel = arguments.kernel
    if not isinstance(kernel, str):
        return [(_name(kernel), kernel)]
    if kernel == AUTO:
        return [(name, kernel_named(name)) for name in _AUTO_KERNELS]
    if kernel == PRECOMPUTED:
        return [(PRECOMPUTED, None)]
    return [(kernel, kernel_named(kernel))]


def _name(kernel: Kernel | Callable[..., Any]) -> str:
    if isinstance(kernel, Kernel):
        try:
            return name_of_kernel(kernel)
        except UsageError:
            return repr(kernel)
    return str(getattr(kernel, "__name__", type(kernel).__name__))


def _lengthscales(arguments: SpaceArguments, kernel: Any, X: Array) -> list[float | None]:
    if not isinstance(kernel, Kernel) or not kernel.has_lengthscale:
        return [None]
    if arguments.lengthscale == MEDIAN:
        return [median_distance(X)]
    if arguments.lengthscale == LEARN:
        return [factor * median_distance(X) for factor in _LENGTHSCALES]
    return [float(arguments.lengthscale)]


def _nuggets(arguments: SpaceArguments) -> tuple[float, ...]:
    return _NUGGETS if arguments.nugget == LEARN else (float(arguments.nugget),)
