"""What the estimators of GP models share: arguments, what draws say, parts of model files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from mercer.errors import UsageError
from mercer.estimation.base import KernelEstimator, filled
from mercer.estimation.model_file import (
    Common,
    ModelParts,
    check_constant,
    common_parts,
    draws_from_parts,
    draws_to_parts,
    json_params,
    require,
    restore_common,
)
from mercer.estimation.run import check_choice, check_common, check_count, check_positive
from mercer.estimation.standardize import MANY_COLUMNS, METHODS, TargetScale
from mercer.gp.averaging import (
    AUTO,
    AveragedGP,
    Few,
    KernelFit,
    KernelTask,
    check_draws,
    choose_inducing,
    few_rows,
    fit_kernels,
    stratified_rows,
    words_of,
)
from mercer.gp.fitting import FittedGP, GPSettings
from mercer.gp.gaussian import (
    LARGEST,
    NOISE_FLOOR,
    NoiseOfRows,
    function_draws,
)
from mercer.gp.hyperparameters import (
    PriorChoice,
    check_prior,
    input_weights,
    named_parameters,
    plain_prior,
    shapes_of_parameters,
)
from mercer.kernels.base import Kernel
from mercer.kernels.columns import categories_of, distinct_rows
from mercer.kernels.names import as_kernel, kernel_named, name_of_kernel
from mercer.posterior.diagnostics import flat_weights
from mercer.posterior.draws import Draws
from mercer.posterior.schema import TARGET, Fields, ListOf, MapOf, Maybe, Number, Text, check_arrays
from mercer.posterior.schema import Array as Rule
from mercer.posterior.schema import Rule as SchemaRule
from mercer.random import stream
from mercer.sampling.driver import RunOptions
from mercer.sampling.signals import part_of_time

# A fitted GP as parts of a model file, and what is checked of those that come back.

Array = NDArray[np.float64]

_FEW = {
    "positions": Rule(("m",), "int", 0),
    "weights": Rule(("m",), least=0.0, most=1.0, is_open=True),
}
_ROWS = {
    "X": Rule(("n", "d"), least=-LARGEST, most=LARGEST),
    "y": Rule(("n",), least=-LARGEST, most=LARGEST),
}
_COUNTS = {"rows/counts": Rule(("classes", "n"), least=0.0, most=LARGEST)}


# Of several kernels: the first one's draws stand where those of a single one do.
_KERNEL: dict[str, SchemaRule] = {
    "kernel": Text(),
    "weight": Number(0.0, 1.0),
    "log_evidence": Maybe(Number()),
}
_KERNELS = ListOf(
    Fields({**_KERNEL, "labels": MapOf(ListOf(Text())), "monitored": ListOf(Text(), is_set=True)}),
    least=1,
)


def parts_of(model: Any, X: Array, y: Array) -> ModelParts:
    """Split a fitted estimator, with its standardised rows and targets, into parts.

    ``y`` (n,), or (C, n) how often each class was seen at each row.
    """
    values, arrays = common_parts(model)
    for i, each in enumerate(model._fits):
        if each.few is not None:
            arrays[f"few/{i}/positions"], arrays[f"few/{i}/weights"] = each.few
    if model._evidence is not None:
        values["log_evidence"] = list(model._evidence)
    arrays |= _rows_to_arrays(X, y)
    params = json_params(model.get_params(deep=False)) | {"prior": plain_prior(model.prior)}
    if model._sources != model.feature_labels_:
        values["sources_of_inputs"] = list(model._sources)
    if not model._is_auto:
        params |= {"kernel": model._name_of_argument()}
        return ModelParts(params, values, arrays)
    values["kernels"] = []
    for i, each in enumerate(model._fits):
        own, draws = draws_to_parts(each.fitted.draws)
        given = {"kernel": each.kernel, "weight": each.weight, "log_evidence": each.log_evidence}
        values["kernels"].append({**given, **own})
        if i > 0:
            arrays |= {f"kernels/{i}/{name}": array for name, array in draws.items()}
    return ModelParts(params, values, arrays)


def _rows_to_arrays(X: Array, y: Array) -> dict[str, Array]:
    if y.ndim == 1:
        return {"X": X, "y": y}
    # rows that are alike, or that have weights
    return {"X": X, "y": y.argmax(axis=0).astype(np.float64), "rows/counts": y}


def _restore_rows(arrays: Mapping[str, Array], d: int) -> tuple[Array, Array]:
    check_arrays(arrays, _ROWS, {"d": d})
    X, y = arrays["X"], arrays["y"]
    require(len(X) > 0, "X")
    if "rows/counts" in arrays:
        check_arrays(arrays, _COUNTS, {"n": len(X)})
        y = arrays["rows/counts"]
        require(bool((y.sum(axis=0) > 0.0).all()), "rows/counts")
    return X, y


def restore_rows(parts: ModelParts) -> tuple[Common, Array, Array, tuple[KernelFit, ...]]:
    """Put together what all GP models have.

    What is common, standardised rows, targets, the fit of each kernel.
    """
    common = restore_common(parts)
    X, y = _restore_rows(parts.arrays, len(common.feature_labels))
    check_constant(common.standardizer, X)
    fitted = FittedGP(common.draws, common.diagnostics, common.notes)
    name, d = parts.params["kernel"], X.shape[1]
    labels, sources = common.feature_labels, restore_sources(parts, d)
    if name != AUTO:
        bound = name_of_kernel(as_kernel(name, d, labels, sources))
        words = words_of(bound, labels, sources)
        fits = (KernelFit(bound, 1.0, None, fitted, words=words),)
        fits = (replace(fits[0], few=restore_few(parts, 0, common.draws)),)
        return common, X, y, fits
    kernels: Any = parts.fields.get("kernels")
    _KERNELS.check(kernels, "fields/kernels", {})
    weights = [each["weight"] for each in kernels]
    is_right = abs(sum(weights) - 1.0) < 1e-6 and weights == sorted(weights, reverse=True)
    require(is_right, "weights of kernels")
    several = []
    for i, each in enumerate(kernels):
        own = _below(f"kernels/{i}/", parts.arrays)
        draws = draws_from_parts(each, own) if i > 0 else common.draws
        fitted_one = replace(fitted, draws=draws)
        few = restore_few(parts, i, draws)
        given = (each["kernel"], each["weight"], each["log_evidence"])
        as_kernel(each["kernel"], d)  # of inputs that there are
        words = words_of(each["kernel"], labels, sources)
        several.append(KernelFit(*given, fitted_one, few, words))
    return common, X, y, tuple(several)


def _below(begin: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    return {k.removeprefix(begin): array for k, array in arrays.items() if k.startswith(begin)}


# Of a classifier whose functions are given more rows than taught the hyperparameters: these rows,
# and of each kernel the draws that predict.

_GIVEN = "given/"


def draws_given(variables: Mapping[str, Array], few: Draws) -> Draws:
    """Return draws (S, ..) that have the weights of these ``few``."""
    shape = (few.n_chains, few.n_draws)
    own = {name: values.reshape(*shape, *values.shape[1:]) for name, values in variables.items()}
    return Draws(own, {}, {}, (), few.log_weights)


def put_given(parts: ModelParts, X: Array, y: Array, draws: Sequence[Draws]) -> None:
    """Put into a file all rows, and of each kernel the draws given these."""
    given = _rows_to_arrays(X, y)
    for i, each in enumerate(draws):
        given |= {f"{i}/{name}": each.flat(name) for name in each.variables}
    parts.arrays.update({_GIVEN + name: array for name, array in given.items()})


def restore_given(
    parts: ModelParts, fits: Sequence[KernelFit], d: int
) -> tuple[Array, Array, list[Draws]] | None:
    """Return what `put_given` put into a file, None where it has not."""
    arrays = _below(_GIVEN, parts.arrays)
    if not arrays:
        return None
    X, y = _restore_rows(arrays, d)
    own = [_below(f"{i}/", arrays) for i in range(len(fits))]
    return X, y, [draws_given(each, fit.predicting) for each, fit in zip(own, fits, strict=True)]


def restore_sources(parts: ModelParts, d: int) -> tuple[str, ...]:
    """Return the columns of a table that the inputs come from; none where they are columns."""
    given: Any = parts.fields.get("sources_of_inputs", [])
    if given:
        ListOf(Text(), size="d").check(given, "fields/sources_of_inputs", {"d": d})
    return tuple(given)


def restore_few(parts: ModelParts, i: int, draws: Draws) -> Few | None:
    """Return which draws of kernel i predict, and their weights; None where all of them do."""
    given = {
        name: parts.arrays[f"few/{i}/{name}"] for name in _FEW if f"few/{i}/{name}" in parts.arrays
    }
    if not given:
        return None
    check_arrays(given, _FEW, {})
    positions, weights = given["positions"], given["weights"]
    is_right = len(positions) > 0 and bool((np.diff(positions) > 0).all())
    require(is_right and int(positions[-1]) < draws.n_total, "few/positions")
    require(abs(float(weights.sum()) - 1.0) < 1e-8, "few/weights")
    return positions, weights


def restore_evidence(parts: ModelParts) -> tuple[float, float] | None:
    """Return log evidence and standard error that a file holds, as they were fitted."""
    given = parts.fields.get("log_evidence")
    if given is None:
        return None
    ListOf(Number(), size="two").check(given, "log_evidence", {"two": 2})
    return float(given[0]), float(given[1])


# A fitted GP regressor back from the parts of a model file.


def restore(
    parts: ModelParts, *, is_contaminated: bool
) -> tuple[
    Common, Array, Array, NoiseOfRows | None, tuple[KernelFit, ...], TargetScale, float
]:  # fmt: skip
    """Put a regressor together again.

    Returns what is common, standardised rows and targets, how rows count, where that differs, the
    fit of each kernel, the target's scale, and the variance of the intercept, 0 in files of
    versions that had none. A ValueError, KeyError or TypeError where something is missing or does
    not fit; the reader of the file names it.
    """
    common, X, y, fits = restore_rows(parts)
    TARGET.check(parts.fields, "fields", {})
    centre, scale = parts.fields["target_centre"], parts.fields["target_scale"]
    noise = _restore_noise(parts.arrays, len(X))
    intercept = float(parts.fields.get("intercept_variance", 0.0))
    require(0.0 <= intercept <= 1.0, "variance of the intercept")
    for fit in fits:
        _check_function(fit, X, y, intercept, noise, is_contaminated=is_contaminated)
    return common, X, y, noise, fits, TargetScale(centre, scale), intercept


def _restore_noise(arrays: Mapping[str, Array], n: int) -> NoiseOfRows | None:
    names = ("rows/weights", "rows/variances")
    if not any(name in arrays for name in names):
        return None
    rules = {name: Rule((n,), least=0.0, most=LARGEST, is_open=True) for name in names}
    check_arrays(arrays, rules, {})
    return NoiseOfRows(*(arrays[name] for name in names))


def _check_function(
    fit: KernelFit,
    X: Array,
    y: Array,
    intercept: float,
    noise: NoiseOfRows | None,
    *,
    is_contaminated: bool,
) -> None:
    """Refuse draws of a file that cannot be of these rows."""
    n, d = X.shape
    kernel, draws = kernel_named(fit.kernel), fit.fitted.draws
    log_parameters = {**shapes_of_parameters(kernel, d), "log_noise_variance": ()}
    shapes = {**log_parameters, "log_density": (), "log_evidence": (), "dual_coef": (n,)}
    if is_contaminated:
        from mercer.likelihoods.label_noise import N_KINDS, SIZES  # which only such a file needs

        # Files of older versions have the rate alone, and one kind of right targets.
        has_shares = "log_shares" in draws.variables
        log_parameters, shapes = log_parameters | {"log_rate": ()}, shapes | {"log_rate": ()}
        shapes |= {"error_kind": (n,)} | ({"log_shares": (N_KINDS,)} if has_shares else {})
    check_draws(draws, shapes, tuple(log_parameters))
    if is_contaminated:
        n_kinds = N_KINDS if has_shares else len(SIZES) + 1
        is_known = np.isin(draws.flat("error_kind"), np.arange(n_kinds)).all()
        require(bool(is_known), "draws of error_kind")
        for name in ("log_rate", "log_shares")[: 1 + has_shares]:
            require(bool((draws.flat(name) < 0.0).all()), f"draws of {name}")
    # |a| = |C^-1 y| is at most |y| over the floor of the noise: so no prediction overflows.
    functions = function_draws(draws, X, kernel, intercept, noise)
    least = NOISE_FLOOR if noise is None else NOISE_FLOOR * float(noise.scales.min())
    signal = np.array([kernel.diagonal(theta, X).mean() for theta in functions.theta])
    largest = (np.abs(functions.dual_coef).max(axis=1) * (1.0 + signal)).max()
    require(bool(largest <= 1.01 * np.linalg.norm(y) / least), "draws of dual_coef")


_INFERENCES = ("importance", "hmc", "nuts", "metropolis", "map")
MOST_ROWS = 5000
# "auto": so many rows teach samplers the hyperparameters, given which functions are those of more.
# Of several classes or over so many parameters as many as take about as long as so many of two
# classes, a fit of C being so often C times one of two, but at least so many of each class.
_LEARNING, _LEARNING_OF_SEVERAL, _PARAMETERS = 1000, 1400, 20
_COST_OF_CLASS, _LEAST_OF_CLASS = 8.0 / 3.0, 10
_INDUCING = 2048  # "auto"
_TIME_OF_LEARNING = 0.6  # share of max_seconds, where functions are given more rows
#: What is said where they are not, with the reason.
ROWS_ALONE = "predictions are those of these rows alone: "
LATE = "max_seconds left no time for more"


@dataclass(kw_only=True, eq=False, repr=False)
class GPEstimator(KernelEstimator):
    """Base of `GPClassifier` and `GPRegressor`.

    Parameters
    ----------
    kernel : str or kernel, default="auto"
        Of the function. "auto": the data choose. RBF and Matern 5/2, with one weight for all
        inputs, with one per input, sums of both, and these with a linear part, are compared by
        their log scores on held-out rows, of a frame with text also sums and products with
        categories, of classes with a constant if that gains; predictions are a mixture over up to
        three, with the weights that have the highest log score (stacking). Else "rbf", "matern12",
        "matern32", "matern52", "rational_quadratic", "periodic", "linear", "polynomial",
        "constant", "spectral_mixture(4)", or sums and products of these, such as "rbf + linear";
        "isotropic(rbf)" has one length scale for all inputs, 'rbf[age, "mean radius"]' looks at
        these columns alone, and "categorical[city]" compares levels. Also a kernel of
        `mercer.kernels` or of scikit-learn, whose form is taken, not its values.
    inference : {"importance", "hmc", "nuts", "metropolis", "map"}, default="importance"
        "importance": adaptive importance sampling of the hyperparameters, from the maximum of their
        posterior and its curvature; draws have weights, and where these are not to be trusted "hmc"
        takes over, which ``notes_`` says. "hmc": trajectories of random length, step size and mass
        tuned in warm-up; "nuts": the no-U-turn sampler; "metropolis": a random walk of ten
        proposals a step; both tuned likewise; "map": the most probable hyperparameters only.
    n_leapfrog : int or None, default=None
        Steps of every trajectory, for "hmc". Given together with ``step_size`` it fixes the
        trajectories as in the paper, with unit mass and the paper's start: nothing is tuned.
    step_size : float or None, default=None
        Of a leapfrog step, on the log parameters; given together with ``n_leapfrog``.
    standardize : str or False, default="auto"
        Of inputs, learned on the training rows. "std": mean and standard deviation per column;
        "robust": median and interquartile range, clipped at 10; "common": means, and one scale for
        all columns, the root mean of their variances; the warps "yeo-johnson" and "arcsinh"; False.
        "auto": "std", and "robust" for columns whose standard deviation is over ten times the
        interquartile range. Where the evidence of the targets is .05 nats a row higher so, and
        ``prior`` is not given in numbers: "std" for these, too; or "common", of 16 columns or more
        (2, where a model has no weights of the inputs) whose scales differ by a factor of 2, such
        as pixels and wavelengths; or, with the kernel "auto" and an input of a skewness over 1,
        "yeo-johnson", of such inputs or of all; ``notes_`` says which. Constant columns become 0.
    n_draws : int, default=500
        Kept draws of each chain, at most. "hmc" and "nuts" end after a third of them, 100 at least,
        where no prediction has a Monte Carlo error over 0.01 (a probability, or standard deviations
        of the target) and nothing is to be warned of. "importance": ``n_draws`` times ``n_chains``
        weighted draws are kept at most; evaluations end when they are worth as many equal ones, or
        200 (of up to 150 rows as many as predictions need, 600 at most); where fewer than 1000 are
        kept as much smaller a part of these numbers, 50 at least.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, from its name or from scikit-learn's; with "auto" the one of most weight.
    kernel_weights_ : dict of str to float
        Of each kernel that predictions average over its weight, the largest first; with sum 1.
        With "auto" these are stacking weights, not probabilities of kernels.
    kernel_posteriors_ : dict of str to Draws
        Of each of them its draws; ``posterior_`` are those of the first.
    prior_weight_interval_ : tuple of float or None
        Central 90 % of the prior of a weight: what ``relevance_`` shows where data say nothing.
        None where all inputs have one scale: it is another for each input then.
    """

    kernel: Any = "auto"
    inference: str = "importance"
    prior: PriorChoice = "wide"
    n_leapfrog: int | None = None
    step_size: float | None = None
    max_rows: int | str = "auto"
    standardize: str | bool = "auto"
    encode: Any = "auto"
    n_draws: int = 500
    n_warmup: int = 150
    n_chains: int = 4
    thin: int = 1
    random_state: int | np.random.Generator | np.random.RandomState | None = None
    n_jobs: int | None = None
    progress: bool | str = "auto"
    checkpoint: str | Path | None = None
    max_seconds: float | None = None
    integration: str = field(default="laplace", init=False)  # an argument of the classifier
    n_inducing: int | str | None = field(default=None, init=False)  # of the regressor
    _of_paper: ClassVar[dict[str, Any]] = {
        "kernel": "rbf", "inference": "hmc", "prior": "paper", "n_leapfrog": 20, "step_size": 0.1,
        "standardize": "std", "n_draws": 133, "n_warmup": 67, "n_chains": 1,
    }  # fmt: skip

    @property
    def _is_contaminated(self) -> bool:
        """Whether some targets are wrong: of numbers with such noise."""
        return False

    @property
    def _checkpoint(self) -> Any:
        """The maximum is found in no time: there is no state to save."""
        return None if self.inference == "map" else self.checkpoint

    def _check_sampler(self) -> None:
        """Check the arguments that all GP estimators have."""
        check_choice("inference", self.inference, _INFERENCES)
        check_prior(self.prior)
        self._limit_of_rows()
        if self.n_inducing not in ("auto", None):
            if isinstance(self.n_inducing, str):
                raise UsageError(
                    f'n_inducing must be "auto", a number or None; got {self.n_inducing!r}'
                )
            if check_count("n_inducing", self.n_inducing, 10) > MOST_ROWS:
                raise UsageError(f"n_inducing must be at most {MOST_ROWS}; got {self.n_inducing!r}")
        check_choice("standardize", self.standardize, METHODS)
        if (self.n_leapfrog is None) != (self.step_size is None):
            raise UsageError("n_leapfrog and step_size are given together or not at all")
        if self.n_leapfrog is not None:
            choices = ("importance", "hmc")  # the first is the default: it takes the second
            check_choice("inference (with n_leapfrog)", self.inference, choices)
            check_count("n_leapfrog", self.n_leapfrog, 1)
            check_positive("step_size", self.step_size)
        check_common(self)

    def _limit_of_rows(self, n_classes: int = 2, cost: float = 1.0) -> int:
        """Return how many rows are fitted at most, where they cost so much; see `_cost_of_rows`.

        Raises
        ------
        UsageError
            If `max_rows` is neither "auto" nor a number from 10 to 5000.
        """
        given: object = self.max_rows
        if given == "auto":
            is_map = self.inference == "map" and not self._is_contaminated
            most = MOST_ROWS if is_map else _LEARNING
            alike = int((MOST_ROWS if is_map else _LEARNING_OF_SEVERAL) * cost ** (-1.0 / 3.0))
            return min(max(alike, _LEAST_OF_CLASS * n_classes), most)
        if isinstance(given, str):
            raise UsageError(f'max_rows must be "auto" or a number; got {given!r}')
        limit = check_count("max_rows", given, 10)
        if limit > MOST_ROWS:
            raise UsageError(
                f"max_rows must be at most {MOST_ROWS}: matrices of n x n numbers take hours "
                f"beyond; got {given!r}"
            )
        return limit

    def _cost_of_rows(self, n_classes: int = 2) -> float:
        """Return what a fit of the known inputs costs, over one of two classes and few inputs."""
        n_parameters = d = len(self.feature_labels_)
        if not self._is_auto:
            n_parameters = kernel_named(self._bound_kernel()).n_parameters(d)
        return _cost_of_classes(n_classes) * max(n_parameters / _PARAMETERS, 1.0)

    def _most_given(self, limit: int, n_classes: int) -> int:
        """Return how many rows functions are given at most: a factorisation a draw."""
        return max(int(MOST_ROWS * _cost_of_classes(n_classes) ** (-1.0 / 3.0)), limit)

    @staticmethod
    def _learning(options: RunOptions, given: NDArray[np.int64] | None) -> RunOptions:
        """Return options whose deadline leaves time to give functions more rows, if any are."""
        if given is None:
            return options
        return replace(options, deadline=part_of_time(options.deadline, _TIME_OF_LEARNING))

    @property
    def _wanted_inducing(self) -> int:
        """How many inducing points a regressor has at most; 0: none."""
        if self.n_inducing is None or self._is_contaminated:
            return 0
        return _INDUCING if self.n_inducing == "auto" else int(self.n_inducing)

    def _chosen_rows(
        self, y: NDArray[np.float64], limit: int, more: int, entropy: int, *, is_classes: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Choose the rows that are fitted, at random where there are more than ``limit``.

        Returns these, ascending, and up to ``more`` rows that functions are given too, or through
        which they are given all; None where these are no more.
        """
        n = len(y)
        if n <= limit:
            return np.arange(n), None
        if more > 0 and self.max_rows == "auto" and not is_classes:
            limit = min(limit, _LEARNING)  # of "map", too
        rows = stratified_rows(y, limit, stream(entropy, "rows", 1), is_classes=is_classes)
        if self.n_inducing == "auto" and more > 0:
            more = max(more, limit)
        if more <= (limit if is_classes else 0):
            return rows, None
        return rows, choose_inducing(n, rows, more, stream(entropy, "rows", 3))

    def _said_of_rows(
        self, n: int, rows: NDArray[np.int64], given: NDArray[np.int64] | None
    ) -> tuple[str, ...]:
        """Say which of n rows were chosen, and which models take all."""
        if len(rows) == n:
            return ()
        is_classes, with_errors = is_classifier(self), self._is_contaminated
        return (
            _note_of_choice(n, len(rows), given, is_classes=is_classes, with_errors=with_errors),
        )

    @property
    def _plots(self) -> tuple[str, ...]:
        has_weights, is_exact = hasattr(self, "relevance_"), self.integration == "exact"
        return ("relevance",) * has_weights + ("laplace_distance",) * is_exact

    @property
    def _is_auto(self) -> bool:
        """Whether the data choose the kernels."""
        return isinstance(self.kernel, str) and self.kernel == AUTO

    def _bound_kernel(self) -> str:
        """Return the kernel that was asked for, with positions where it names inputs; auto: rbf."""
        if self._is_auto:
            return "rbf"
        labels = self.feature_labels_
        return name_of_kernel(as_kernel(self.kernel, len(labels), labels, self._sources))

    def _name_of_argument(self) -> str:
        """Return the kernel that was asked for as a file holds it, with its names of inputs."""
        if isinstance(self.kernel, str):
            return name_of_kernel(kernel_named(self.kernel))
        if isinstance(self.kernel, Kernel):
            return name_of_kernel(self.kernel)
        return name_of_kernel(self.kernel_)

    def _identity_of_inputs(self) -> tuple[Array, ...]:
        """Return what names of inputs say beside the data, as digests take it; often nothing."""
        if self._is_auto:
            found = categories_of(self.feature_labels_, self._sources)
            said = repr(found) if found else ""
        else:
            bound = self._bound_kernel()
            said = bound if "[" in bound else ""
        return (np.frombuffer(said.encode(), dtype=np.uint8),) if said else ()

    @property
    def _fewest_columns(self) -> int | None:
        """Inputs that targets may give one scale: a given prior is of standard deviations."""
        return MANY_COLUMNS if isinstance(self.prior, str) else None

    def _settings(self, kernel: str) -> GPSettings:
        prior = plain_prior(self.prior)
        return GPSettings(self._inference(), prior, self.n_leapfrog, self.step_size, kernel)

    def _inference(self) -> str:
        """Return what is done: exact integration and fixed trajectories are for chains."""
        is_for_chains = self.n_leapfrog is not None or self.integration == "exact"
        return "hmc" if self.inference == "importance" and is_for_chains else self.inference

    def _at_maximum(self, kernel: str) -> GPSettings:
        """Return the settings of a fit to a fold, when kernels are compared."""
        own = self._settings(kernel)
        return replace(own, inference="map", n_leapfrog=None, step_size=None)

    def _fit_kernels(self, task: KernelTask, options: RunOptions) -> AveragedGP:
        """Fit the kernel that was asked for, or those that the data choose."""
        if not self._is_auto:
            name = self._bound_kernel()
            fitted = task.fit(name, options, None, 1.0)
            fit = KernelFit(name, 1.0, None, fitted, words=task.words(name))
            return AveragedGP((fit,), fitted.notes)
        n, rows = few_rows(len(task.y), is_classes=task.is_classes), None
        if n is not None:
            rng = stream(options.entropy, "rows", 2)
            rows = stratified_rows(task.y, n, rng, is_classes=task.is_classes)
        return fit_kernels(task, rows, options)

    def _set_posterior(
        self,
        X: NDArray[np.float64],
        fits: tuple[KernelFit, ...],
        evidence: tuple[float, float] | None,
        *,
        is_several: bool = False,
    ) -> None:
        """Set what is learned of the hyperparameters on standardised rows X (n, d)."""
        self._evidence = evidence
        self.log_evidence_: float | None = None if evidence is None else evidence[0]
        self.log_evidence_se_: float | None = None if evidence is None else evidence[1]
        self._X, self._fits = X, fits
        self.kernel_ = kernel_named(fits[0].kernel)
        self.kernel_weights_ = {each.name: each.weight for each in fits}
        self.kernel_posteriors_ = {each.name: each.fitted.draws for each in fits}
        self.posterior_ = fits[0].fitted.draws
        d = X.shape[1]
        relevance = _relevance_of(fits, d)
        if relevance is None:
            return
        self.relevance_ = relevance
        self.prior_weight_interval_: tuple[float, float] | None = None
        if self.standardize is not False and self.standardizer_.has_one_scale:
            spread = X.std(axis=0)  # a weight is that of a standard deviation of its own input
            spread = np.maximum(spread, spread[spread > 0.0].min())
            if np.ptp(spread) > 1e-6:
                self.relevance_ = relevance * spread**2
                return
        ends = self._settings("rbf").prior_of(d, is_several=is_several).interval(0.9)
        kernel = kernel_named("rbf")
        lower, upper = (named_parameters(kernel, d, end)["log_weight"][0] for end in ends)
        self.prior_weight_interval_ = (float(np.exp(lower)), float(np.exp(upper)))


# The weights of the inputs, of one kernel or averaged over several.

_RELEVANCE_DRAWS = 400  # of weighted draws, or of several kernels, at least


def _relevance_of(fits: tuple[KernelFit, ...], d: int) -> Array | None:
    """Draws of each input's weight (S, d), of the kernels that have one per input, if any has.

    Of several kernels draws are taken in proportion to their weights.
    """
    own = []
    for each in fits:
        kernel = kernel_named(each.kernel)
        name = input_weights(kernel)
        if name is not None:
            draws = each.fitted.draws
            drawn = draws.flat(name)
            # Several classes have weights of their own: their average says what an input matters.
            of_inputs = np.exp(drawn).reshape(len(drawn), -1, d).mean(axis=1)
            own.append((each.weight, of_inputs, flat_weights(draws)))
    return _in_proportion(own) if own else None


def _in_proportion(parts: list[tuple[float, Array, Array | None]]) -> Array:
    """Join arrays of draws (S_k, d), of each a part in proportion to its weight.

    Draws that have weights of their own are taken as often as these say.
    """
    (weight, drawn, own), total = parts[0], sum(weight for weight, _, _ in parts)
    if len(parts) == 1 and own is None:
        return drawn
    most = max(len(drawn) for _, drawn, _ in parts)
    most = most if len(parts) == 1 else max(most, _RELEVANCE_DRAWS)
    taken = []
    for weight, drawn, own in parts:
        count = max(round(most * weight / total), 1)
        share = np.full(len(drawn), 1.0 / len(drawn)) if own is None else own
        ends = np.minimum(np.cumsum(share) / share.sum(), 1.0)
        places = np.searchsorted(ends, (np.arange(count) + 0.5) / count)
        taken.append(drawn[np.minimum(places, len(drawn) - 1)])
    return np.concatenate(taken)


def _cost_of_classes(n_classes: int) -> float:
    """Return what a factorisation for so many classes costs, over one for two."""
    return _COST_OF_CLASS * n_classes if n_classes > 2 else 1.0


def _note_of_choice(
    n_rows: int,
    limit: int,
    given: NDArray[np.int64] | None,
    *,
    is_classes: bool,
    with_errors: bool,
) -> str:
    """Say that rows were chosen, what takes more of them, and which models take all."""
    how = "class" if is_classes else "the target"
    learned = (
        f"hyperparameters learned from {limit} of {n_rows} rows, a random choice stratified by "
        f"{how}; given them the function is that of "
    )
    if given is not None and not is_classes:
        return f"{learned}all rows, by {len(given)} inducing points"
    if given is not None and len(given) == n_rows:
        return f"{learned}all rows"
    more = f"max_rows={min(n_rows, MOST_ROWS)} takes more; " if limit < MOST_ROWS else ""
    others = (
        "BaNKClassifier and SequentialKernelClassifier (spectral and basis on the command line) "
        "take all rows, and so does KernelGibbsClassifier (sphere), above 5000 rows with rank=512"
        if is_classes
        else 'BaNKRegressor(noise="contaminated") (spectral on the command line) takes all rows'
        if with_errors
        else 'n_inducing="auto" lets all rows count; BaNKRegressor and SequentialKernelRegressor '
        "(spectral and basis on the command line) take all rows"
    )
    if given is not None:
        return f"{learned}{len(given)} of them; {others}"
    return (
        f"fitted to {limit} of {n_rows} rows, a random choice stratified by {how}; {more}{others}"
    )


# Weights of rows: how often each counts. Rows that are the same are one row that counts so often
# as they do together, so that a table with weights and one with repeated rows are one table.

MOST_COPIES = 50_000


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Return the weights of n rows, or raise `UsageError`; None where none are given."""
    if sample_weight is None:
        return None
    weights = np.asarray(filled(sample_weight))
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.shape != (n_rows,):
        raise UsageError(f"sample_weight has shape {weights.shape}; there are {n_rows} rows")
    if weights.dtype.kind not in "biuf":
        raise UsageError(f"sample_weight must hold numbers; got {weights.dtype}")
    weights = weights.astype(np.float64)
    if not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise UsageError("sample_weight must hold finite numbers that are not negative")
    if (weights > 0.0).sum() < 2:
        raise UsageError("sample_weight is zero for all rows but one at most; two are needed")
    return weights


def weighted_rows(
    rows: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Find the rows that differ, of n with all that is known of them as columns.

    Returns
    -------
    positions : ndarray of shape (m,)
        All, in their order, where each counts once; else those of the first of each, in an order
        that is that of what they hold.
    weights : ndarray of shape (m,) or None
        How often each counts; None: once.
    """
    kept = np.arange(len(rows)) if weights is None else np.flatnonzero(weights)
    first, which = distinct_rows(rows[kept])
    each = np.ones(len(kept)) if weights is None else weights[kept]
    if len(first) == len(kept) and (each == 1.0).all():
        return kept.astype(np.int64), None
    return kept[first].astype(np.int64), np.bincount(which, each).astype(np.float64)


def repeated_rows(
    X: Array, y: NDArray[Any], weights: Array | None
) -> tuple[Array, NDArray[Any], Array | None]:
    """Rows that count whole numbers of times as so many rows; of others those that count at all.

    Returns inputs, targets, and how often each counts; None: once.
    """
    if weights is None:
        return X, y, None
    is_whole = (weights == np.rint(weights)).all() and weights.sum() <= MOST_COPIES
    counts = weights.astype(np.int64) if is_whole else (weights > 0.0).astype(np.int64)
    left = None if is_whole else weights[weights > 0.0]
    return np.repeat(X, counts, axis=0), np.repeat(y, counts), left


def copies(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """How often rows stand in a table that shows their weights, for scales and quartiles.

    Whole numbers as they are, others and very large ones in proportion.
    """
    limit = max(len(weights), MOST_COPIES)
    if (weights == np.rint(weights)).all() and weights.sum() <= limit:
        return weights.astype(np.int64)
    ends = np.rint(np.cumsum(weights) * (limit / weights.sum())).astype(np.int64)
    return np.asarray(np.diff(ends, prepend=0))
