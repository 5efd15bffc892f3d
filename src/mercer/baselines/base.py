"""Regressors and classifiers on random Fourier features: what RKS, MKL and RFO share.

A kernel of differences t = x - x', for a unit length scale, and how its frequencies are drawn:

    "rbf"       exp(-|t|^2 / 2)            omega_l ~ N(0, 1)
    "laplace"   prod_l exp(-|t_l|)         omega_l ~ Cauchy, density 1 / (pi (1 + omega^2))
    "cauchy"    prod_l 1 / (1 + t_l^2)     omega_l ~ Laplace, density exp(-|omega|) / 2

The last two are products over inputs. A length scale s takes t / s for t, and omega / s for omega.

Concatenating the features of several kernels with equal weights, eq. (17) of [1]_, is the feature
map of their pooled frequencies, so that several kernels are one matrix of frequencies. With F of
them

    phi(x) = F^(-1/2) [cos(omega_1'x), sin(omega_1'x), cos(omega_2'x), ..]

References
----------
.. [1] J. B. Oliva et al., Bayesian nonparametric kernel-learning, AISTATS (2016).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist
from scipy.special import expit
from scipy.special import softmax as softmax_of
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.baselines.paths import (
    Loss,
    NormalEquations,
    Selection,
    blocks_of,
    choose_by_log_loss,
    cross_validate,
    fit_weights,
    fitted_values,
    logistic,
    normal_equations,
    ridge,
    softmax,
)
from mercer.errors import DataError, NumericalError, UsageError
from mercer.estimation.base import by_partition, encode_classes, filled, is_dask
from mercer.estimation.run import AnyEstimator, check_choice, check_count, check_positive, whole
from mercer.estimation.splits import number_groups
from mercer.estimation.standardize import METHODS, Standardizer, fit_standardizer
from mercer.estimation.tasks import classes_of
from mercer.random import entropy_of, stream

if TYPE_CHECKING:
    from mercer.data.source import RowSource

# What the baselines share: forgetting earlier fits, names of columns, standardised inputs.

Array = NDArray[np.float64]


class InputEstimator(AnyEstimator):
    """Base of the baselines on Fourier features.

    Parameters
    ----------
    standardize : str or False, default="auto"
        How each input column is scaled, as for `GPRegressor`, but never by evidence.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws, the folds and the subsets of rows.

    Attributes
    ----------
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    UsageError
        At ``fit``, if an argument is out of its range. It is a ValueError.
    """

    n_features: int
    n_folds: int
    selection_rows: int
    standardize: str | bool
    standardizer_: Standardizer
    frequencies_: Array
    coef_: Array
    intercept_: Any

    @whole
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Choose settings by cross-validation on some rows, and learn from all.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Of features that are not optimised (RKS, MKL) also a Dask array or frame, or rows of
            `mercer.data.open`.
        y : array-like of shape (n,), or str
            Targets, or labels of two or more classes, at most 100 unless they are in memory; of
            rows that are opened, the name of their column.
        groups : array-like of shape (n,), optional
            Rows with the same entry are held out together where settings are chosen.

        Returns
        -------
        self

        Raises
        ------
        UsageError
            If an argument is out of its range.
        DataError
            If rows cannot be used.
        NumericalError
            If every penalty is so small that the equations are singular.
        """
        self._forget()
        self._learn(X, y, groups)
        return self

    def _learn(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> None:
        raise NotImplementedError

    def _checked(self) -> tuple[int, int]:
        """Check the arguments that all have; return folds, and rows that settings are chosen on."""
        check_count("n_features", self.n_features, 2)
        if self.n_features % 2:
            raise UsageError(f"n_features must be even: a cosine and a sine; got {self.n_features}")
        return self._checked_selection()

    def _checked_selection(self) -> tuple[int, int]:
        check_choice("standardize", self.standardize, METHODS)
        selection_rows = check_count("selection_rows", self.selection_rows, 2)
        return check_count("n_folds", self.n_folds, 2), selection_rows

    def _learn_inputs(self, X: Array) -> None:
        self.standardizer_ = fit_standardizer(X, self.standardize, self.feature_labels_)

    def _refuse_collection(self, X: Any) -> None:
        """Refuse rows on a disk or a cluster, which would silently be read into memory."""
        from mercer.data.source import RowSource

        if is_dask(X) or isinstance(X, RowSource):
            remedy = "give X.compute()" if is_dask(X) else "give an array"
            raise UsageError(
                f"{type(self).__name__} learns from rows in memory: {remedy}; "
                "BaNK, RKS and MKL, regressors and classifiers, learn where rows are"
            )

    @property
    def feature_labels_(self) -> tuple[str, ...]:
        """Names of the inputs."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return tuple(f"x{j}" for j in range(self.n_features_in_))
        return tuple(str(name) for name in names)

    def _new_rows(self, X: ArrayLike) -> Array:
        """Check rows that are to be predicted."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, filled(X), dtype=np.float64, order="C", reset=False))


def some_rows(rng: np.random.Generator, n: int, n_kept: int) -> NDArray[np.int64]:
    """All rows, or a random subset of them in their order."""
    return np.arange(n) if n <= n_kept else np.sort(rng.choice(n, n_kept, replace=False))


def groups_of(
    groups: ArrayLike | None, n: int, rows: NDArray[np.int64]
) -> NDArray[np.int64] | None:
    """Number the groups of some of n rows; None where there are none."""
    numbers = number_groups(groups)
    if numbers is not None and len(numbers) != n:
        raise UsageError(f"there are {n} rows, but {len(numbers)} entries of groups")
    return None if numbers is None else numbers[rows]


# Mean and spread of the numbers that a baseline predicts, for targets of any size.


@dataclass(frozen=True)
class TargetScale:
    """y = largest (mean + std u), with u of mean 0 and standard deviation 1."""

    largest: float
    mean: float
    std: float

    @classmethod
    def of(cls, y: Array) -> TargetScale:
        """Learn the scale; that of a constant target is 0, so that its prediction is exact."""
        largest = float(np.abs(y).max()) or 1.0
        u = y / largest
        if np.ptp(u) == 0.0:
            return cls(largest, float(u[0]), 0.0)
        return cls(largest, float(u.mean()), float(u.std()))

    def standardise(self, y: Array) -> Array:
        """From the user's units to u."""
        return np.asarray((y / self.largest - self.mean) / (self.std or 1.0))

    def restore(self, u: Array) -> Array:
        """Back to the user's units, kept finite."""
        with np.errstate(over="ignore"):
            y = self.largest * (self.mean + self.std * u)
        return np.nan_to_num(y)


# Classes as targets of functions, and functions as probabilities: two classes are told apart by one
# function, C classes by C of them.


def class_targets(index: NDArray[np.int64], n_classes: int) -> Array:
    """1 where a row is of the second of two classes (n, 1), or of the column's (n, C), else 0."""
    if n_classes == 2:
        return index[:, np.newaxis].astype(np.float64)
    return np.asarray(np.eye(n_classes)[index])


def class_loss(n_classes: int) -> Loss:
    """One of the losses in `mercer.baselines.paths`."""
    return logistic if n_classes == 2 else softmax


def probabilities(f: Array) -> Array:
    """Turn functions (m, q) into probabilities of the classes (m, C)."""
    if f.shape[1] == 1:
        second = expit(f)
        return np.hstack([1.0 - second, second])
    return np.asarray(softmax_of(f, axis=1))


# Pairs of so many rows at most give the typical distance.
_DISTANCE_ROWS = 1000

# Name of a kernel: the distribution of its frequencies, as `numpy.random.Generator` calls it, and
# the distance that its length scale is measured in.
KERNELS: Final = {
    "rbf": ("standard_normal", "euclidean"),
    "laplace": ("standard_cauchy", "cityblock"),
    "cauchy": ("laplace", "euclidean"),
}


def draw_frequencies(
    rng: np.random.Generator,
    Z: Array,
    kernels: Sequence[str],
    scales: Sequence[float],
    n_frequencies: int,
) -> Array:
    """Draw frequencies (F, d) of every kernel in ``kernels`` at every scale, in equal shares.

    They are in radians per unit of the standardised inputs. Scales are in typical distances of the
    kernel between rows Z (n, d): Euclidean, or city-block for "laplace". At least one frequency is
    drawn for each kernel and scale; what is left over goes to the first ones.
    """
    members = [(kernel, scale) for kernel in kernels for scale in scales]
    share, n_left = divmod(n_frequencies, len(members))
    distance = {kernel: typical_distance(rng, Z, KERNELS[kernel][1]) for kernel in kernels}
    parts = []
    for k, (kernel, scale) in enumerate(members):
        draw = getattr(rng, KERNELS[kernel][0])
        n = share + (k < n_left)
        parts.append(draw(size=(n, Z.shape[1])) / (scale * distance[kernel]))
    return np.vstack(parts)


def typical_distance(rng: np.random.Generator, Z: Array, metric: str) -> float:
    """Median distance of two rows that differ, among 1000 rows at most; 1 if all are equal."""
    if len(Z) > _DISTANCE_ROWS:
        Z = Z[rng.choice(len(Z), _DISTANCE_ROWS, replace=False)]
    distances = pdist(Z, metric)
    distances = distances[distances > 0.0]
    return float(np.median(distances)) if distances.size else 1.0


# Frequencies of a mixture of normals, as a function of its parameters, and gradients back to them.
#
# With unit draws w_kj ~ N(0, I) that are made once and kept, component k has the frequencies
#
#     omega_kj = M_k w_kj + mu_k
#
# with a matrix M_k of any kind, or diag(exp(s_k)) for a diagonal one. The vector of parameters
# holds all M_k (or s_k), row by row, then all mu_k.

# Length scales of the components at the start, in typical distances, from the first to the last.
_WIDEST, _NARROWEST = 2.0, 0.5


@dataclass(frozen=True, eq=False)
class FrequencyMixture:
    """Unit draws, and how parameters move them."""

    draws: Array  # (K, D, d)
    is_full: bool  # M_k is a full matrix

    @property
    def n_components(self) -> int:
        """K."""
        return len(self.draws)

    @property
    def n_frequencies(self) -> int:
        """F = K D."""
        return int(np.prod(self.draws.shape[:2]))

    def start(self, distance: float) -> Array:
        """Return parameters of components around 0, their length scales apart.

        Length scales are from half the typical ``distance`` of two rows to twice as much.
        """
        K, _, d = self.draws.shape
        lengths = distance * np.geomspace(_WIDEST, _NARROWEST, K) if K > 1 else np.array([distance])
        if self.is_full:
            spreads = (np.eye(d) / lengths[:, np.newaxis, np.newaxis]).ravel()
        else:
            spreads = np.repeat(-np.log(lengths), d)
        return np.append(spreads, np.zeros(K * d))

    def frequencies(self, theta: Array) -> Array:
        """Return omega, of shape (F, d), component after component."""
        K, _, d = self.draws.shape
        spreads, shifts = self._parts(theta)
        if self.is_full:
            moved = self.draws @ spreads.transpose(0, 2, 1)
        else:
            moved = self.draws * np.exp(spreads)[:, np.newaxis]
        return np.ascontiguousarray((moved + shifts.reshape(K, 1, d)).reshape(-1, d))

    def pull_back(self, theta: Array, gradient: Array) -> Array:
        """Return the gradient with respect to theta, given that with respect to omega (F, d)."""
        by_component = gradient.reshape(self.draws.shape)
        spreads, _ = self._parts(theta)
        if self.is_full:
            of_spreads = by_component.transpose(0, 2, 1) @ self.draws
        else:
            of_spreads = (by_component * self.draws).sum(axis=1) * np.exp(spreads)
        return np.append(of_spreads.ravel(), by_component.sum(axis=1).ravel())

    def _parts(self, theta: Array) -> tuple[Array, Array]:
        """Return M (K, d, d) or s (K, d), and mu (K, d)."""
        K, _, d = self.draws.shape
        n_shifts = K * d
        shape = (K, d, d) if self.is_full else (K, d)
        return theta[:-n_shifts].reshape(shape), theta[-n_shifts:].reshape(K, d)


def draw_mixture(
    rng: np.random.Generator, n_components: int, n_each: int, d: int, is_full: bool
) -> FrequencyMixture:
    """Draw the unit draws of so many components, with so many frequencies each."""
    return FrequencyMixture(rng.standard_normal((n_components, n_each, d)), is_full)


#: Length scales in median distances; the largest ones are all but linear.
FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
#: Noise variance over signal variance, from next to nothing to a hundred.
PENALTIES = (1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)


class FunctionRegressor(RegressorMixin, InputEstimator):  # type: ignore[misc]
    """Predictions of a function of Fourier features, in the units of the target."""

    @by_partition
    def predict(self, X: ArrayLike) -> Array:
        """Predict the target of rows of shape (m, d); shape (m,), in the units of the target."""
        checked = self._new_rows(X)
        coef = np.append(self.intercept_, self.coef_)
        u = np.empty(len(checked))
        for rows in blocks_of(len(checked), len(coef)):
            Z = self.standardizer_.transform(checked[rows])
            u[rows] = fitted_values(self.frequencies_, coef, Z)
        return self._target_scale_.restore(u)

    def _checked_arrays(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Check training rows in memory."""
        self._refuse_collection(X)
        checked = validate_data(
            self, filled(X), filled(y), dtype=np.float64, order="C", y_numeric=True,
            ensure_min_samples=2,
        )  # fmt: skip
        return checked[0], np.asarray(checked[1], np.float64)

    def _checked_numbers(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Check training rows and learn their scales; return inputs, and standardised targets."""
        rows, target = self._checked_arrays(X, y)
        self._learn_inputs(rows)
        self._target_scale_ = TargetScale.of(target)
        return rows, self._target_scale_.standardise(target)


class _Grid(NamedTuple):
    """Length scales and penalties that are tried, folds, and rows that they are tried on."""

    factors: tuple[float, ...]
    penalties: tuple[float, ...]
    n_folds: int
    n_kept: int


class RandomFeatureEstimator(InputEstimator):
    """Frequencies are drawn once; their length scale and the penalty are chosen on some rows."""

    length_factors: Sequence[float]
    penalties: Sequence[float]
    random_state: object
    kernels: Sequence[str] = ("rbf",)
    scales: Sequence[float] = (1.0,)

    def _draw(self, rng: np.random.Generator, Z: Array) -> Array:
        """Check kernels and their scales, and draw frequencies for standardised rows."""
        scales = checked_grid("scales", self.scales)
        if isinstance(self.kernels, str) or len(self.kernels) == 0:
            raise UsageError(f"kernels must be a sequence of names; got {self.kernels!r}")
        for kernel in self.kernels:
            check_choice("each of kernels", kernel, tuple(KERNELS))
        n_members = len(self.kernels) * len(scales)
        if self.n_features < 2 * n_members:
            raise UsageError(
                f"n_features must be at least {2 * n_members}, two for each kernel and scale; "
                f"got {self.n_features}"
            )
        return draw_frequencies(rng, Z, tuple(self.kernels), scales, self.n_features // 2)

    def _grid(self) -> _Grid:
        """Check the arguments of the choice."""
        factors = checked_grid("length_factors", self.length_factors)
        return _Grid(factors, checked_grid("penalties", self.penalties), *self._checked())

    def _select(
        self,
        grid: _Grid,
        entropy: int,
        Z: Array,
        targets: Array,
        choose: Callable[..., Selection],
        groups: NDArray[np.int64] | None,
    ) -> Selection:
        """Draw frequencies, and choose their length scale and the penalty on some of the rows."""
        W = self._draw(stream(entropy, "start"), Z)
        seed = int(stream(entropy, "folds").integers(2**31))
        chosen = choose(W, Z, targets, grid.factors, grid.penalties, grid.n_folds, seed, groups)
        self.cv_errors_, self.length_factor_ = chosen.errors, chosen.factor
        self.frequencies_ = W / chosen.factor
        return chosen


@dataclass(kw_only=True, eq=False, repr=False)
class RandomFeatureRegressor(FunctionRegressor, RandomFeatureEstimator):
    """Ridge regression on random Fourier features; a subclass says which frequencies are drawn.

    Parameters
    ----------
    n_features : int, default=768
        Even, and in equal shares: a cosine and a sine for each frequency.
    length_factors : sequence of float
        Length scales that are tried, in median distances of the standardised rows. Eight by
        default, from 1/8 to 16.
    penalties : sequence of float
        Ridge penalties that are tried, with phi(x)'phi(x) = 1 and a standardised target: noise
        variance over signal variance. Twelve by default, from 1e-12 to 100.
    n_folds : int, default=5
        Number of cross-validation folds.
    selection_rows : int, default=10000
        Rows that scales of inputs and target, length scale and penalty are learned from, at most;
        coefficients are from all rows.

    Attributes
    ----------
    length_factor_, penalty_ : float
        What was chosen; the penalty is the next larger one where all rows together make the
        equations singular.
    cv_errors_ : ndarray of shape (n_length_factors, n_penalties)
        Mean squared errors of the rows held out, of the standardised target; inf where singular.
    frequencies_ : ndarray of shape (n_features / 2, d)
        In radians per unit of the standardised inputs.
    coef_ : ndarray of shape (n_features,)
        Coefficients of the cosine and the sine of each frequency in turn, over the root of their
        number.
    intercept_ : float
        Constant term, in units of the standardised target.
    """

    n_features: int = 768
    length_factors: Sequence[float] = FACTORS
    penalties: Sequence[float] = PENALTIES
    n_folds: int = 5
    selection_rows: int = 10_000
    standardize: str | bool = "auto"
    random_state: object = None

    def _learn(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> None:
        grid = self._grid()
        source = self._source(X, y)
        entropy = entropy_of(self.random_state)
        rows = some_rows(stream(entropy, "rows"), source.n_rows, grid.n_kept)
        own, some = groups_of(groups, source.n_rows, rows), source.take(rows)
        self._learn_inputs(some[:, :-1])
        scale = TargetScale.of(some[:, -1])
        if scale.std == 0.0:  # of these rows; others may tell more
            scale = replace(scale, std=1.0)
        self._target_scale_ = scale
        Z, u = self.standardizer_.transform(some[:, :-1]), scale.standardise(some[:, -1])
        chosen = self._select(grid, entropy, Z, u, cross_validate, own)
        sums = functools.partial(_sum_equations, self.frequencies_, self.standardizer_, scale)
        allowed = [p for p in grid.penalties if p >= chosen.penalty]
        coef, self.penalty_ = solve_allowed(NormalEquations(*source.total(sums)), allowed)
        self.intercept_, self.coef_ = float(coef[0]), coef[1:]

    def _source(self, X: Any, y: Any) -> RowSource:
        """Check rows, wherever they are; the target is the last column."""
        from mercer.data.source import open_array
        from mercer.estimation.table_encoder import given_rows

        rows = given_rows(self, X, y)
        return open_array(np.column_stack(self._checked_arrays(X, y))) if rows is None else rows


def checked_grid(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Return numbers above 0, at least one, in rising order, or raise `UsageError`."""
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
        raise UsageError(f"{name} must be a sequence of numbers above 0; got {values!r}")
    return tuple(sorted(check_positive(f"each of {name}", value) for value in values))


def equations_of(W: Array, standardizer: Standardizer, X: Array, y: Array) -> NormalEquations:
    """Rows are standardised block by block."""
    blocks = blocks_of(len(X), 1 + 2 * len(W))
    return normal_equations(W, ((standardizer.transform(X[rows]), y[rows]) for rows in blocks))


def _sum_equations(
    W: Array, standardizer: Standardizer, scale: TargetScale, _: int, blocks: Iterable[Array]
) -> tuple[Array, Array]:
    """Sum the equations of blocks of rows, inputs and the target as they are given."""
    parts = ((standardizer.transform(b[:, :-1]), scale.standardise(b[:, -1])) for b in blocks)
    equations = normal_equations(W, parts)
    return equations.gram, equations.moments


def solve_allowed(equations: NormalEquations, penalties: Sequence[float]) -> tuple[Array, float]:
    """Solve for the smallest penalty that all rows allow: more rows bring more rounding."""
    for penalty in penalties:
        try:
            return ridge(equations, penalty), penalty
        except NumericalError:
            continue
    raise NumericalError("ridge regression is singular at every penalty; give larger ones")


# What the classifiers on random features share: ``fit`` and probabilities.

#: Length scales in median distances.
CLASS_FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
#: Classes of rows that are not in memory, and rows that scales of inputs are learned from, at most.
_MOST_CLASSES, _ROWS_OF_SCALES = 100, 200_000
#: One over the prior variance of the functions, in squared nats.
CLASS_PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


class FunctionClassifier(ClassifierMixin, InputEstimator):  # type: ignore[misc]
    """Probabilities and labels from functions of Fourier features.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Class labels, sorted.
    """

    classes_: NDArray[Any]

    @by_partition
    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, in the order of ``classes_``, of rows (m, d): (m, C)."""
        rows = self._new_rows(X)
        coef = np.vstack([self.intercept_, self.coef_])
        return probabilities(
            fitted_values(self.frequencies_, coef, self.standardizer_.transform(rows))
        )

    @by_partition
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of rows of shape (m, d); shape (m,)."""
        predicted = self.predict_proba(X)
        return np.asarray(self.classes_[predicted.argmax(axis=1)])

    def _checked_classes(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, NDArray[np.int64]]:
        """Check rows in memory and set the classes; return inputs, and positions among them."""
        self._refuse_collection(X)
        rows, labels = validate_data(
            self, filled(X), filled(y), dtype=np.float64, order="C", ensure_min_samples=2
        )
        self.classes_, index = encode_classes(np.asarray(labels))
        return np.asarray(rows), index


@dataclass(kw_only=True, eq=False, repr=False)
class RandomFeatureClassifier(FunctionClassifier, RandomFeatureEstimator):
    """Logistic regression on random Fourier features; a subclass says which are drawn.

    Parameters
    ----------
    n_features : int, default=768
        Even, and in equal shares: a cosine and a sine for each frequency.
    length_factors : sequence of float
        Length scales that are tried, in median distances of the standardised rows. Six by
        default, from 1/8 to 4.
    penalties : sequence of float
        Ridge penalties that are tried, with phi(x)'phi(x) = 1: one over the prior variance of the
        log odds. Six by default, from 1e-5 to 1.
    n_folds : int, default=5
        Number of cross-validation folds; the score is the log loss.
    selection_rows : int, default=2000
        Rows that length scale and penalty are chosen on, at most; coefficients are from all rows,
        scales of inputs from 200 000 at most.

    Attributes
    ----------
    length_factor_, penalty_ : float
        What was chosen.
    cv_errors_ : ndarray of shape (n_length_factors, n_penalties)
        Log losses of the rows held out, in nats a row.
    frequencies_ : ndarray of shape (n_features / 2, d)
        In radians per unit of the standardised inputs.
    coef_ : ndarray of shape (n_features, q)
        Coefficients of the cosine and the sine of each frequency in turn, over the root of their
        number; q is 1 for two classes, C for more.
    intercept_ : ndarray of shape (q,)
        Not penalised.
    n_iter_ : int
        Steps of L-BFGS, 500 at most.
    """

    n_features: int = 768
    length_factors: Sequence[float] = CLASS_FACTORS
    penalties: Sequence[float] = CLASS_PENALTIES
    n_folds: int = 5
    selection_rows: int = 2000
    standardize: str | bool = "auto"
    random_state: object = None

    def _learn(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> None:
        grid = self._grid()
        source, values = self._source(X, y)
        n_classes, entropy = len(values), entropy_of(self.random_state)
        loss = class_loss(n_classes)

        def some(index: int, most: int) -> NDArray[np.int64]:
            return some_rows(stream(entropy, "rows", index), source.n_rows, most)

        def choose(W: Array, Z: Array, targets: Array, *grid: Any) -> Selection:
            return choose_by_log_loss(W, Z, targets, loss, *grid)

        self._learn_inputs(source.take(some(1, _ROWS_OF_SCALES))[:, :-1])
        split = functools.partial(_split_classes, self.standardizer_, values)
        rows = some(0, grid.n_kept)
        Z, targets = split(source.take(rows))
        own = groups_of(groups, source.n_rows, rows)
        self.penalty_ = self._select(grid, entropy, Z, targets, choose, own).penalty
        n_functions = 1 if n_classes == 2 else n_classes
        coef, found = fit_weights(
            self.frequencies_, source, split, loss, n_functions, self.penalty_
        )
        self.n_iter_ = found.n_steps
        self.intercept_, self.coef_ = coef[0], coef[1:]

    def _source(self, X: Any, y: Any) -> tuple[RowSource, Array]:
        """Check rows, wherever they are; return them, the target last, and its sorted values."""
        from mercer.data.source import open_array
        from mercer.estimation.table_encoder import given_rows

        rows = given_rows(self, X, y)
        if rows is None:
            rows = open_array(np.column_stack(self._checked_classes(X, y)))
            return rows, np.arange(len(self.classes_), dtype=np.float64)
        values = np.array(list(rows.count(rows.names[-1], _MOST_CLASSES)))
        if len(values) > _MOST_CLASSES:
            raise DataError(f"{rows.name}: the target has more than {_MOST_CLASSES} classes")
        self.classes_ = classes_of(self, values)
        return rows, values


def _split_classes(standardizer: Standardizer, values: Array, rows: Array) -> tuple[Array, Array]:
    """Turn rows, the target last, into standardised inputs, and targets of the functions."""
    index = np.searchsorted(values, rows[:, -1])
    return standardizer.transform(rows[:, :-1]), class_targets(index, len(values))
