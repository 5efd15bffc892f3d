"""What the estimators of GP models share: arguments, what draws say, parts of model files.

What the estimators of GP models share: the arguments of their sampler, what draws say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UsageError
from mercer.estimation.base import KernelEstimator
from mercer.estimation.model_file import (
    Common,
    ModelParts,
    check_constant,
    common_parts,
    json_params,
    require,
    restore_common,
)
from mercer.estimation.run import CommonArguments, check_choice, check_count, check_positive
from mercer.estimation.standardize import METHODS, TargetScale
from mercer.gp.fitting import GPSettings
from mercer.gp.gaussian import NOISE_FLOOR, function_draws
from mercer.gp.hyperparameters import (
    LARGEST_LOG,
    PriorChoice,
    check_prior,
    input_weights,
    named_parameters,
    plain_prior,
    shapes_of_parameters,
)
from mercer.kernels.base import Kernel
from mercer.kernels.names import as_kernel, name_of_kernel
from mercer.posterior.diagnostics import Diagnostics
from mercer.posterior.draws import Draws
from mercer.posterior.schema import TARGET, ListOf, Number, check_arrays, draws_of
from mercer.posterior.schema import Array as Rule
from mercer.random import stream

__all__ = [
    "GPEstimator",
    "check_draws",
    "parts_of",
    "restore",
    "restore_evidence",
    "restore_rows",
    "stratified_rows",
]


# A fitted GP as parts of a model file, and what is checked of those that come back.

Array = NDArray[np.float64]

_LARGEST = 1e100  # standardised values are within this: their squares are finite
_ROWS = {
    "X": Rule(("n", "d"), least=-_LARGEST, most=_LARGEST),
    "y": Rule(("n",), least=-_LARGEST, most=_LARGEST),
}


def parts_of(model: Any, X: Array, y: Array) -> ModelParts:
    """Split a fitted estimator, with its standardised rows and targets, into parts."""
    values, arrays = common_parts(model)
    if model._evidence is not None:
        values["log_evidence"] = list(model._evidence)
    params = json_params(model.get_params())
    params |= {"kernel": name_of_kernel(model.kernel_), "prior": plain_prior(model.prior)}
    return ModelParts(params, values, arrays | {"X": X, "y": y})


def restore_rows(parts: ModelParts) -> tuple[Common, Array, Array]:
    """Put together what all GP models have: what is common, standardised rows, targets."""
    common = restore_common(parts)
    check_arrays(parts.arrays, _ROWS, {"d": len(common.feature_labels)})
    X, y = parts.arrays["X"], parts.arrays["y"]
    require(len(X) > 0, "X")
    check_constant(common.standardizer, X)
    return common, X, y


def restore_evidence(parts: ModelParts) -> tuple[float, float] | None:
    """Return log evidence and standard error that a file holds, as they were fitted."""
    given = parts.fields.get("log_evidence")
    if given is None:
        return None
    ListOf(Number(), size="two").check(given, "log_evidence", {"two": 2})
    return float(given[0]), float(given[1])


def check_draws(
    draws: Draws, shapes: Mapping[str, tuple[int, ...]], log_parameters: tuple[str, ...]
) -> None:
    """Raise ValueError unless these are all, finite, of their shapes, log parameters in range."""
    require(set(draws.variables) <= {*shapes, "latent"}, "names of draws")
    own = {name: shape for name, shape in shapes.items() if name in log_parameters}
    arrays = {f"draws/{name}": values for name, values in draws.variables.items()}
    check_arrays(arrays, draws_of(shapes) | draws_of(own, -LARGEST_LOG, LARGEST_LOG), {})


# A fitted GP regressor back from the parts of a model file.


def restore(parts: ModelParts, kernel: Kernel) -> tuple[Common, Array, Array, TargetScale, float]:
    """Put a regressor together again.

    Returns
    -------
    common : Common
    X, y : ndarray
        Standardised rows and targets.
    target : TargetScale
    intercept_variance : float
        0 in files of versions that had no intercept.

    Raises
    ------
    ValueError, KeyError, TypeError
        If something is missing or does not fit; the reader of the file names it.
    """
    common, X, y = restore_rows(parts)
    n, d = X.shape
    TARGET.check(parts.fields, "fields", {})
    centre, scale = parts.fields["target_centre"], parts.fields["target_scale"]
    require(bool((np.abs(y) <= 1.01 * math.sqrt(n)).all()), "targets")  # they are standardised
    intercept = float(parts.fields.get("intercept_variance", 0.0))
    require(0.0 <= intercept <= 1.0, "variance of the intercept")
    log_parameters = {**shapes_of_parameters(kernel, d), "log_noise_variance": ()}
    shapes = {**log_parameters, "log_density": (), "log_evidence": (), "dual_coef": (n,)}
    check_draws(common.draws, shapes, tuple(log_parameters))
    # |a| = |C^-1 y| is at most |y| over the floor of the noise: so no prediction overflows.
    functions = function_draws(common.draws, X, kernel, intercept)
    signal = np.array([kernel.diagonal(theta, X).mean() for theta in functions.theta])
    largest = (np.abs(functions.dual_coef).max(axis=1) * (1.0 + signal)).max()
    require(bool(largest <= 1.01 * np.linalg.norm(y) / NOISE_FLOOR), "draws of dual_coef")
    return common, X, y, TargetScale(centre, scale), intercept


_INFERENCES = ("importance", "hmc", "nuts", "metropolis", "map")
MOST_ROWS = 5000
_MOST_SAMPLED = 2000  # "auto": beyond it, chains take hours


class GPEstimator(KernelEstimator):
    """Base of `GPClassifier` and `GPRegressor`."""

    kernel: Any
    inference: str
    prior: PriorChoice
    n_leapfrog: int | None
    step_size: float | None
    max_rows: int | str
    standardize: str | bool
    checkpoint: str | Path | None

    def _check_sampler(self) -> CommonArguments:
        """Check the arguments that all GP estimators have."""
        check_choice("inference", self.inference, _INFERENCES)
        check_prior(self.prior)
        self._limit_of_rows()
        check_choice("standardize", self.standardize, METHODS)
        if (self.n_leapfrog is None) != (self.step_size is None):
            raise UsageError("n_leapfrog and step_size are given together or not at all")
        if self.n_leapfrog is not None:
            check_choice("inference (with n_leapfrog)", self.inference, ("hmc",))
            check_count("n_leapfrog", self.n_leapfrog, 1)
            check_positive("step_size", self.step_size)
        # The maximum is found in no time: there is no state to save.
        checkpoint = None if self.inference == "map" else self.checkpoint
        return self._common(checkpoint)

    def _limit_of_rows(self) -> int:
        """Return how many rows are fitted at most.

        Raises
        ------
        UsageError
            If `max_rows` is neither "auto" nor a number from 10 to 5000.
        """
        given: object = self.max_rows
        if given == "auto":
            return MOST_ROWS if self.inference == "map" else _MOST_SAMPLED
        if isinstance(given, str):
            raise UsageError(f'max_rows must be "auto" or a number; got {given!r}')
        limit = check_count("max_rows", given, 10)
        if limit > MOST_ROWS:
            raise UsageError(
                f"max_rows must be at most {MOST_ROWS}: matrices of n x n numbers take hours "
                f"beyond; got {given!r}"
            )
        return limit

    def _chosen_rows(
        self, y: NDArray[np.float64], limit: int, entropy: int, *, is_classes: bool
    ) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """Choose the rows that are fitted, at random where there are more than ``limit``.

        Returns the rows, ascending, and what is to be said of it.
        """
        if len(y) <= limit:
            return np.arange(len(y)), ()
        rows = stratified_rows(y, limit, stream(entropy, "rows", 1), is_classes=is_classes)
        return rows, (_note_of_choice(len(y), limit, is_classes=is_classes),)

    def _set_kernel(self, n_inputs: int) -> None:
        self.kernel_ = as_kernel(self.kernel, n_inputs)

    def _settings(self) -> GPSettings:
        prior, kernel = plain_prior(self.prior), name_of_kernel(self.kernel_)
        return GPSettings(self.inference, prior, self.n_leapfrog, self.step_size, kernel)

    def _set_posterior(
        self,
        X: NDArray[np.float64],
        draws: Draws,
        diagnostics: Diagnostics,
        notes: tuple[str, ...],
        evidence: tuple[float, float] | None,
    ) -> None:
        """Set what is learned of the hyperparameters on standardised rows X (n, d)."""
        self._evidence = evidence
        if evidence is not None:
            self.log_evidence_, self.log_evidence_se_ = evidence
        self._X = X
        self.posterior_ = draws
        self.diagnostics_ = diagnostics
        self.notes_ = notes
        name = input_weights(self.kernel_)
        if name is None:
            return
        d = X.shape[1]
        # Several classes have weights of their own: their average says how much an input matters.
        weights = np.exp(draws.flat(name)).reshape(draws.n_total, -1, d)
        self.relevance_ = weights.mean(axis=1)
        prior = self._settings().prior_of(d).interval(0.9)
        lower, upper = (named_parameters(self.kernel_, d, end)[name][0] for end in prior)
        self.prior_weight_interval_ = (float(np.exp(lower)), float(np.exp(upper)))


def stratified_rows(
    y: NDArray[np.float64], limit: int, rng: np.random.Generator, *, is_classes: bool
) -> NDArray[np.int64]:
    """Choose ``limit`` of more rows at random, stratified by their target.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Targets: numbers, or codes of classes.
    limit : int
        Less than n.
    rng : numpy.random.Generator
    is_classes : bool
        Each class keeps its share of the rows, to the next whole number, and one row at least.
        Otherwise one row is taken from each of ``limit`` strata between quantiles of the target.

    Returns
    -------
    ndarray of shape (limit,), int
        In ascending order.

    Raises
    ------
    UsageError
        There are more classes than half of ``limit``.
    """
    order = rng.permutation(len(y))
    if not is_classes:
        order = order[np.argsort(y[order], kind="stable")]
        strata = np.array_split(order, limit)
        return np.sort(np.array([rng.choice(stratum) for stratum in strata]))
    classes, code, counts = np.unique(y[order], return_inverse=True, return_counts=True)
    if len(classes) > limit // 2:
        raise UsageError(f"max_rows={limit} is too few for {len(classes)} classes: take twice")
    share = limit * counts / len(y)
    taken = np.maximum(np.floor(share), 1.0).astype(np.int64)
    while taken.sum() < limit:
        taken[np.argmax(share - taken)] += 1
    while taken.sum() > limit:
        taken[np.argmax(np.where(taken > 1, taken - share, -np.inf))] -= 1
    return np.sort(np.concatenate([order[code == k][: taken[k]] for k in range(len(classes))]))


def _note_of_choice(n_rows: int, limit: int, *, is_classes: bool) -> str:
    """Say that rows were chosen, what takes more of them, and which models take all."""
    how = "class" if is_classes else "the target"
    more = f"max_rows={min(n_rows, MOST_ROWS)} takes more; " if limit < MOST_ROWS else ""
    others = (
        "BaNKClassifier and SequentialKernelClassifier (spectral and basis on the command line) "
        "take all rows, and so does KernelGibbsClassifier (sphere), above 5000 rows with rank=512"
        if is_classes
        else "BaNKRegressor and SequentialKernelRegressor (spectral and basis on the command "
        "line) take all rows"
    )
    return (
        f"fitted to {limit} of {n_rows} rows, a random choice stratified by {how}; {more}{others}"
    )
