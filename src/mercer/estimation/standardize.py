"""Column-wise standardisation of inputs, learned on the training rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize, minimize_scalar
from scipy.spatial.distance import pdist, squareform

from mercer.errors import DataError, MercerWarning, warn_user
from mercer.numerics.cholesky import (
    factorise,
    invert_factored,
    one_blas_thread,
    solve_positive,
)

METHODS = ("auto", "std", "common", "robust", "yeo-johnson", "arcsinh", False)
_WARPS = ("yeo-johnson", "arcsinh")

_CLIP = 10.0  # of the robust columns, in units of the interquartile range
_ARTEFACTS = 10.0  # "auto": standard deviation above so many interquartile ranges
# Beyond this, raw values leave no digits to the hyperparameters.
_LARGEST_RAW = 1e15
# Columns of a larger absolute skewness are worth a warp.
_SKEWED = 1.0
# Standardised values are kept within this: a covariance is 0 long before, and squares are finite.
_LARGEST = 1e100
_NO_POWER = float(np.finfo(float).eps)  # of a warp: it is a logarithm
_PLAIN, _ROBUST, _YEO_JOHNSON, _ARCSINH = 0, 1, 2, 3

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Standardizer:
    """x -> g((x - centre) / scale) per column, with g by ``kind``; constant columns become 0.

    All fields have shape (d,).
    """

    kind: NDArray[np.int64]  # 0 plain, 1 clipped at 10, 2 Yeo-Johnson, 3 inverse hyperbolic sine
    centre: Array  # in units of the input
    scale: Array  # in units of the input; 0 for a constant column
    shape: Array  # Yeo-Johnson's parameter of the scaled column, 1 elsewhere
    after_centre: Array  # mean of g on the training rows, for kinds 2 and 3
    after_scale: Array  # standard deviation of g on the training rows, for kinds 2 and 3

    def transform(self, X: Array) -> Array:
        """Standardise rows of shape (m, d); the result is finite for finite rows."""
        with np.errstate(over="ignore"):
            Z = self._transform(X)
        return np.ascontiguousarray(np.minimum(np.maximum(Z, -_LARGEST), _LARGEST))

    @property
    def units(self) -> Array:
        """Length of a standardised unit in units of each input, shape (d,); 1 if constant.

        For a warped column, the scale at the column's centre.
        """
        return np.where(self.scale == 0.0, 1.0, self.scale * self.after_scale)

    def is_skewed(self, X: Array) -> NDArray[np.bool_]:
        """Which columns of the training rows of more than two values are skewed, above 1: (d,)."""
        deviations = X - X.mean(axis=0)
        Z = deviations / np.where(self.scale == 0.0, 1.0, _std(deviations))
        return np.asarray((np.abs(np.mean(Z**3, axis=0)) > _SKEWED) & _has_more_than_two(X))

    def warped(
        self, X: Array, warp: object, which: NDArray[np.bool_], knee: float = 1.0
    ) -> Standardizer:
        """Warp the columns ``which`` (d,) of more than two values, as rows X (n, d) tell.

        "arcsinh" is that of values less their median, over ``knee`` interquartile ranges (standard
        deviations of a column whose interquartile range is 0): so far from the median it turns from
        a line to a logarithm.
        """
        which = which & _has_more_than_two(X)
        deviations = X - X.mean(axis=0)
        centre, scale = X.mean(axis=0), _std(deviations)
        if warp == "arcsinh":
            median, iqr = _quartiles(X)
            centre, scale = median, knee * np.where(iqr > 0.0, iqr, scale)
        kind = _ARCSINH if warp == "arcsinh" else _YEO_JOHNSON
        first = replace(
            self,
            kind=np.where(which, kind, self.kind),
            centre=np.where(which, centre, self.centre),
            scale=np.where(which, scale, self.scale),
        )
        return _with_second_stage(first, X) if which.any() else first

    def with_one_scale(self) -> Standardizer:
        """Divide all columns by the root mean of their squared scales."""
        largest = float(self.scale.max(initial=0.0))
        shares = self.scale[self.scale > 0.0] / (largest or 1.0)
        scale = largest * math.sqrt(np.mean(shares**2)) if len(shares) else 0.0
        return replace(self, scale=np.where(self.scale > 0.0, scale, 0.0))

    @property
    def has_one_scale(self) -> bool:
        """Whether several columns that are not constant are divided by the same number."""
        scales = self.scale[self.scale > 0.0]
        return len(scales) > 1 and bool(np.ptp(scales) == 0.0)

    @property
    def is_clipped(self) -> NDArray[np.bool_]:
        """Which columns are scaled by quartiles and clipped, shape (d,)."""
        return np.asarray(self.kind == _ROBUST)

    @property
    def is_warped(self) -> NDArray[np.bool_]:
        """Which columns are bent, not only moved and scaled, shape (d,)."""
        return np.asarray((self.kind == _YEO_JOHNSON) | (self.kind == _ARCSINH))

    def inverse(self, Z: Array) -> Array:
        """Return rows (m, d) in the units of the inputs; what was clipped stays so."""
        X = Z * self.after_scale + self.after_centre
        arcsinh, warped = self.kind == _ARCSINH, self.kind == _YEO_JOHNSON
        X[:, arcsinh] = np.sinh(X[:, arcsinh])
        if warped.any():
            X[:, warped] = _unwarped(X[:, warped], self.shape[warped])
        return np.asarray(X * self.scale + self.centre)

    @property
    def _is_plain(self) -> bool:
        is_linear = not self.kind.any() and not self.after_centre.any()
        return is_linear and bool((self.after_scale == 1.0).all())

    def _transform(self, X: Array) -> Array:
        is_constant = self.scale == 0.0
        Z = (X - self.centre) / np.where(is_constant, 1.0, self.scale)
        if self._is_plain:  # what follows changes nothing, and takes longer than a row's learning
            Z[:, is_constant] = 0.0
            return np.asarray(Z)
        robust, warped, arcsinh = (self.kind == k for k in (_ROBUST, _YEO_JOHNSON, _ARCSINH))
        Z[:, robust] = np.clip(Z[:, robust], -_CLIP, _CLIP)
        Z[:, arcsinh] = np.arcsinh(Z[:, arcsinh])
        if warped.any():
            Z[:, warped] = _warped(Z[:, warped], self.shape[warped])
        Z = (np.clip(Z, -_LARGEST, _LARGEST) - self.after_centre) / self.after_scale
        Z[:, is_constant] = 0.0
        return Z


def fit_standardizer(X: Array, method: object, names: tuple[str, ...]) -> Standardizer:
    """Learn a standardisation, one of `METHODS`, of finite inputs (n, d).

    A `MercerWarning` names the columns that are constant.
    """
    return fit_in_parts([X], method, names)


def fit_in_parts(parts: Iterable[Array], method: object, names: tuple[str, ...]) -> Standardizer:
    """Learn it from some columns after others, two at least: one has sums in another order."""
    learned, first = [], 0
    for X in parts:
        learned.append(_learned(X, method, names[first : first + X.shape[1]]))
        first += X.shape[1]
    names_of = [each.name for each in fields(Standardizer)]
    columns = (np.concatenate([getattr(one, name) for one in learned]) for name in names_of)
    found = Standardizer(*columns)
    if method == "common":
        found = found.with_one_scale()
    _warn_constant(found.scale == 0.0, names, found.centre)
    return found


def _learned(X: Array, method: object, names: tuple[str, ...]) -> Standardizer:
    d = X.shape[1]
    if method is False:
        return _unchanged(X, names)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = X.mean(axis=0)
        std = _std(X - mean)
    too_large = ~(np.isfinite(mean) & np.isfinite(std))
    _check_range(too_large, names)
    is_constant = np.ptp(X, axis=0) == 0.0
    median, iqr = _quartiles(X)
    is_robust = _robust_columns(method, std, iqr) & _has_more_than_two(X)
    kind = np.where(is_robust, _ROBUST, _PLAIN)
    centre = np.where(is_robust, median, mean)
    scale = np.where(is_constant, 0.0, np.where(is_robust, iqr, std))
    plain = Standardizer(kind, centre, scale, np.ones(d), np.zeros(d), np.ones(d))
    return plain.warped(X, method, np.full(d, True)) if method in _WARPS else plain


# One scale for all columns, or one for each.
#
# Columns of one unit (pixels, wavelengths, sensors) say with their spread how much they matter: of
# those that hardly move standardisation makes as much as of all others. Where a model has no
# weights of the inputs, or a table so many that they cannot be learned, targets decide: by the
# evidence of Gaussian process regression with one length scale (classes as 0 and 1), the highest
# over a few lengths and noises, the function's variance at its maximum. It must be higher by
# `_WORTH` nats a row. Of skewed columns they decide likewise whether these, or all, are warped.

MANY_COLUMNS, SEVERAL_COLUMNS = 16, 2  # at least, of models with weights and of those without
_APART = 2.0  # of scales that are more alike nothing is asked
_UNLIKE = 1000.0  # nor where one is beyond so many middle ones: they have no unit in common
_FEWEST_ROWS, _MOST_ROWS, _WORTH = 20, 400, 0.05
_LENGTHS, _NOISES = (0.5, 1.0, 2.0, 4.0, 8.0), (1e-3, 1e-2, 1e-1, 1.0)
_TAME = 3.0  # standard deviations that targets are cut at
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_MOST_WARPED = 300  # columns: the parameter of each takes two or three milliseconds

ONE_SCALE = "all columns have one scale, by evidence: their spreads tell how much they matter"
NOT_CLIPPED = "columns with values far out are not clipped, by evidence: these tell something, too"
SKEWED_WARPED = "skewed columns are warped (Yeo-Johnson), by evidence: far out a step counts less"
ALL_WARPED = "columns are warped (Yeo-Johnson), by evidence: far out a step counts less"


def rows_that_decide(n_rows: int, most: int = _MOST_ROWS) -> NDArray[np.int64]:
    """Positions of rows all over a table, ascending; steps of the golden section meet no period."""
    if n_rows <= most:
        return np.arange(n_rows)
    shares = np.arange(most) * _GOLDEN % 1.0
    return np.unique((shares * n_rows).astype(np.int64))


def fit_scales(
    X: Array,
    method: object,
    names: tuple[str, ...],
    targets: Array,
    fewest: int | None,
    *,
    may_warp: bool = True,
) -> tuple[Standardizer, tuple[str, ...]]:
    """Learn a standardisation, "auto" given targets, numbers (n,) or (n, q), with a note on these.

    Of fewer columns than ``fewest`` they are not asked for one scale, nor anything if that is None.
    """
    found = fit_standardizer(X, method, names)
    if method != "auto" or fewest is None:
        return found, ()
    return with_scales_by_evidence(found, X, targets, fewest, may_warp=may_warp)


def with_scales_by_evidence(
    found: Standardizer,
    X: Array,
    targets: Array,
    fewest: int = MANY_COLUMNS,
    *,
    may_warp: bool = True,
) -> tuple[Standardizer, tuple[str, ...]]:
    """Give all columns one scale, clip none, or warp skewed ones or all, by evidence.

    It is that of targets (n,) or (n, q) given X (n, d). A note says which; no warp is tried unless
    it ``may_warp``.
    """
    X, T = _that_decide(X, targets)
    plain = fit_quietly(X, "std")
    scales, is_clipped = np.sort(plain.scale[plain.scale > 0.0]), found.is_clipped
    are_apart = len(scales) >= fewest and bool(scales[0] < scales[-1] / _APART)
    are_apart = are_apart and bool(scales[-1] / _UNLIKE < scales[(len(scales) - 1) // 2])
    may_warp = may_warp and X.shape[1] <= _MOST_WARPED
    is_skewed = plain.is_skewed(X) if may_warp else np.zeros(X.shape[1], bool)
    is_asked = are_apart or bool((is_clipped | is_skewed).any())
    if not is_asked or len(X) < _FEWEST_ROWS or T.shape[1] == 0:
        return found, ()
    centre = np.where(is_clipped, plain.centre, found.centre)
    scale = np.where(is_clipped, plain.scale, found.scale)
    plain = replace(found, kind=np.full_like(found.kind, _PLAIN), centre=centre, scale=scale)
    others = {ONE_SCALE: plain.with_one_scale()} if are_apart else {}
    others |= {NOT_CLIPPED: plain} if is_clipped.any() else {}
    if is_skewed.any():
        warped = plain.warped(X, "yeo-johnson", np.full(X.shape[1], True))
        every = is_skewed | ~is_clipped  # what is far out on both sides stays clipped
        others |= {
            SKEWED_WARPED: _mixed(warped, found, is_skewed),
            ALL_WARPED: _mixed(warped, found, every),
        }
    evidence = {how: _evidence(each.transform(X), T)[0] for how, each in others.items()}
    best = max(evidence, key=lambda how: evidence[how])
    if evidence[best] - _evidence(found.transform(X), T)[0] <= _WORTH * len(X):
        return found, ()
    return others[best], (best,)


def _that_decide(X: Array, targets: Array, most: int = _MOST_ROWS) -> tuple[Array, Array]:
    """Rows (m, d) that are asked, and their standardised targets (m, q) that are not constant."""
    rows = rows_that_decide(len(X), most)
    T = (targets if targets.ndim > 1 else targets[:, np.newaxis])[rows].astype(np.float64)
    T = T[:, np.ptp(T, axis=0) > 0.0]
    T = T - T.mean(axis=0)
    return np.asarray(X[rows], dtype=np.float64), np.clip(T / _std(T), -_TAME, _TAME)


def _mixed(one: Standardizer, other: Standardizer, which: NDArray[np.bool_]) -> Standardizer:
    """Columns ``which`` (d,) as the one standardises them, the rest as the other."""
    pairs = ((getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    return Standardizer(*(np.where(which, *pair) for pair in pairs))


def indicators(codes: NDArray[Any]) -> Array:
    """Classes (n,) as numbers (n, C - 1): 1 for the class of a row, none for the first."""
    return np.asarray(np.equal.outer(codes, np.unique(codes)[1:]), dtype=np.float64)


def fit_quietly(X: Array, method: object, names: tuple[str, ...] = ()) -> Standardizer:
    """Learn a standardisation of columns that a user is warned of elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MercerWarning)
        return fit_in_parts([X], method, names or ("",) * X.shape[1])


def _evidence(Z: Array, T: Array) -> tuple[float, float, float]:
    """Highest log evidence of standardised targets (n, q) given rows Z (n, d), up to a constant.

    With the length scale and the noise at which it is.
    """
    n, q = T.shape
    distances = pdist(Z, "sqeuclidean")
    typical, best = float(np.median(distances)) or 1.0, (-math.inf, 1.0, 1.0)
    squares = squareform(distances)
    for length in _LENGTHS:
        K = np.exp(-0.5 / (length**2 * typical) * squares) + 1.0
        for noise in _NOISES:
            L = np.linalg.cholesky(K + noise * np.eye(n))
            size = np.square(solve_triangular(L, T, lower=True)).sum() / (n * q)
            value = -q * float(np.log(L.diagonal()).sum() + 0.5 * n * np.log(size))
            best = max(best, (value, length * math.sqrt(typical), noise))
    return best


# Weights of the inputs, for models that have one length scale.
#
# The same evidence at its maximum over a length scale of each input, whose logarithms are a priori
# normal around a common one. How far they spread, if at all, is told by rows left out: each step
# must lower the squared error by a hundredth, and by more than a standard error (as in choosing a
# tree by Breiman et al. 1984). The evidence itself cannot tell: at its maximum over many weights it
# rises with the spread, and of new rows less is known.

_SPREADS, _FOLDS, _LEAST_GAIN = (0.3, 0.6), 3, 0.01
_MANY_ROWS, _MOST_OF_MANY = 1000, 800  # of those fits take so long that this is little
_MOST_WEIGHED, _MOST_STEPS, _NEARLY = 300, 25, 1e-4
_NOISE_LIMITS, _WEIGHT_LIMITS = (0.02, 30.0), (-12.0, 6.0)  # of weights the logarithm
_HARDLY = 0.1  # of the largest weight
WEIGHED = "inputs are weighed by how much the target depends on them, by rows left out: "


def rows_that_weigh(n_rows: int) -> NDArray[np.int64]:
    """Positions of the rows of a table that `weigh_inputs` is given."""
    return rows_that_decide(n_rows, _MOST_OF_MANY if n_rows > _MANY_ROWS else _MOST_ROWS)


def weigh_inputs(
    found: Standardizer, X: Array, targets: Array, names: tuple[str, ...]
) -> tuple[Standardizer, tuple[str, ...]]:
    """Multiply standardised columns by weights, where targets (n,) or (n, q) of rows X (n, d) gain.

    All these rows are looked at: `rows_that_weigh`. The root mean square of the weights is 1. A
    note says which inputs count.
    """
    X, T = _that_decide(X, targets, len(X))
    is_varied = found.scale > 0.0
    d = int(is_varied.sum())
    if len(X) < _FEWEST_ROWS or not 2 <= d <= _MOST_WEIGHED or T.shape[1] == 0:
        return found, ()
    Z = found.transform(X)[:, is_varied]
    with one_blas_thread():
        spread = _spread_of_weights(Z, T)
        if spread == 0.0:
            return found, ()
        weights, _ = _Weighing(Z, T).climb(spread)
    after_scale = found.after_scale.copy()
    after_scale[is_varied] *= math.sqrt(np.mean(weights**2)) / weights
    share, number = weights / weights.max(), np.flatnonzero(is_varied)
    most = ", ".join(f"{names[number[k]]!r} {share[k]:.2g}" for k in np.argsort(-share)[:5])
    n_idle = int((share < _HARDLY).sum())
    idle = f"; {n_idle} of {d} hardly count" if n_idle else ""
    return replace(found, after_scale=after_scale), (WEIGHED + most + idle,)


def _spread_of_weights(Z: Array, T: Array) -> float:
    """How far weights of inputs are apart, as rows left out tell, or 0."""
    fold = (np.arange(len(Z)) * _GOLDEN % 1.0 * _FOLDS).astype(np.int64)
    errors = {spread: np.empty(len(Z)) for spread in (0.0, *_SPREADS)}
    for k in range(_FOLDS):
        seen, left_out = fold != k, fold == k
        weighing = _Weighing(Z[seen], T[seen])
        for spread, each in errors.items():
            expected = weighing.predict(Z[left_out], *weighing.climb(spread))
            each[left_out] = np.square(T[left_out] - expected).sum(axis=1)
    taken = 0.0
    for spread in _SPREADS:
        gain = errors[taken] - errors[spread]
        least = max(gain.std() / math.sqrt(len(gain)), _LEAST_GAIN * errors[taken].mean())
        taken = spread if gain.mean() > least else taken
    return taken


def _exponential(A: Array, B: Array) -> Array:
    """exp(-|a - b|^2 / 2) of rows (n, d) and (m, d)."""
    squares = [0.5 * np.einsum("ij,ij->i", each, each) for each in (A, B)]
    return np.asarray(np.exp(np.minimum(A @ B.T - np.add.outer(*squares), 0.0)))


class _Weighing:
    """Regression of standardised targets T (n, q) on rows Z (n, d) with a weight of each input."""

    def __init__(self, Z: Array, T: Array) -> None:
        self._Z, self._T, self._squares = Z, T, Z * Z
        _, length, noise = _evidence(Z, T)
        self._start = -math.log(length), math.log(max(noise, _NOISE_LIMITS[0]))

    def climb(self, spread: float) -> tuple[Array, float]:
        """Weights (d,) and noise, a share of the variance, of the highest posterior density."""
        d = self._Z.shape[1]
        level, noise = self._start
        start = np.concatenate([np.zeros(d), [level, noise]])
        logs = tuple(np.log(_NOISE_LIMITS))
        bounds = [(None, None)] * d + [_WEIGHT_LIMITS, logs]
        options = {"maxiter": _MOST_STEPS, "ftol": _NEARLY}
        found = minimize(
            self._loss, start, spread, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        return self._weights(found.x, spread), math.exp(found.x[-1])

    def predict(self, Z: Array, weights: Array, noise: float) -> Array:
        """Expected targets of rows Z (m, d), shape (m, q)."""
        C = _exponential(self._Z * weights, self._Z * weights) + 1.0
        C.flat[:: len(C) + 1] += noise
        across = _exponential(Z * weights, self._Z * weights) + 1.0
        return np.asarray(across @ solve_positive(C, self._T))

    @staticmethod
    def _weights(x: Array, spread: float) -> Array:
        return np.asarray(np.exp(np.clip(x[-2] + spread * x[:-2], *_WEIGHT_LIMITS)))

    def _loss(self, x: Array, spread: float) -> tuple[float, Array]:
        """Negative log posterior density and its gradient, up to a constant."""
        (n, q), noise = self._T.shape, math.exp(x[-1])
        weights = self._weights(x, spread)
        K = _exponential(self._Z * weights, self._Z * weights)
        C = np.asfortranarray(K + 1.0)
        C.flat[:: n + 1] += noise
        L = factorise(C)
        half_log_det = float(np.log(L.diagonal()).sum())
        inverse = np.tril(invert_factored(L))
        inverse += np.tril(inverse, -1).T
        solved = inverse @ self._T
        size = float((self._T * solved).sum()) / (n * q)
        value = -q * (half_log_det + 0.5 * n * math.log(size))
        slope = solved @ solved.T / size - q * inverse  # twice that in C
        M = slope * K
        own = self._squares.T @ M.sum(axis=0) - (self._Z * (M @ self._Z)).sum(axis=0)
        by_log_weight = -np.square(weights) * own
        gradient = np.concatenate([
            spread * by_log_weight - x[:-2],
            [by_log_weight.sum(), 0.5 * noise * float(np.trace(slope))],
        ])  # fmt: skip
        return 0.5 * float(x[:-2] @ x[:-2]) - value, -gradient


def _unchanged(X: Array, names: tuple[str, ...]) -> Standardizer:
    """Keep all columns as they are but constant ones; no copy of X is made."""
    lowest, highest = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    _check_range(np.maximum(np.abs(lowest), np.abs(highest)) > _LARGEST_RAW, names)
    return replace(identity(len(lowest)), scale=np.where(lowest == highest, 0.0, 1.0))


def identity(n_columns: int) -> Standardizer:
    """Keep every column as it is."""
    zeros, ones = np.zeros(n_columns), np.ones(n_columns)
    return Standardizer(np.full(n_columns, _PLAIN), zeros, ones, ones, zeros, ones)


def _warped(Z: Array, shape: Array | float) -> Array:
    """Warp columns (n, k) by Yeo-Johnson with shapes (k,): all at once, as streams come by rows."""
    power, logs = np.where(Z >= 0.0, shape, 2.0 - shape), np.log1p(np.abs(Z))
    is_log = np.abs(power) < _NO_POWER
    lengths = np.expm1(power * logs) / np.where(is_log, 1.0, power)
    return np.asarray(np.where(Z >= 0.0, 1.0, -1.0) * np.where(is_log, logs, lengths))


def _unwarped(Z: Array, shape: Array) -> Array:
    """Invert Yeo-Johnson's warp."""
    power, lengths = np.where(Z >= 0.0, shape, 2.0 - shape), np.abs(Z)
    is_log = np.abs(power) < _NO_POWER
    logs = np.log1p(power * lengths) / np.where(is_log, 1.0, power)
    return np.asarray(np.where(Z >= 0.0, 1.0, -1.0) * np.expm1(np.where(is_log, lengths, logs)))


def _robust_columns(method: object, std: Array, iqr: Array) -> NDArray[np.bool_]:
    if method == "robust":
        return np.asarray(iqr > 0.0)
    if method == "auto":
        return np.asarray((iqr > 0.0) & (std > _ARTEFACTS * iqr))
    return np.zeros(len(std), dtype=bool)


def _with_second_stage(first: Standardizer, X: Array) -> Standardizer:
    """Learn the warp's parameter on the scaled columns, and centre and scale what it gives."""
    d, is_warped = X.shape[1], first.is_warped
    Z = (X - first.centre) / np.where(first.scale == 0.0, 1.0, first.scale)
    shape = np.ones(d)
    for j in np.flatnonzero(first.kind == _YEO_JOHNSON):
        shape[j] = _likeliest_shape(Z[:, j])
    warped = replace(first, shape=shape, after_centre=np.zeros(d), after_scale=np.ones(d))
    G = warped.transform(X)
    std = np.where(is_warped, G.std(axis=0), 1.0)
    centre = np.where(is_warped, G.mean(axis=0), 0.0)
    return replace(warped, after_centre=centre, after_scale=np.where(std > 0, std, 1.0))


def _likeliest_shape(z: Array) -> float:
    """Yeo-Johnson's parameter, within 5, by which values z (n,) are most likely normal."""
    slope = float((np.sign(z) * np.log1p(np.abs(z))).sum())

    def cost(shape: float) -> float:
        std = float(_warped(z, shape).std())
        return len(z) * math.log(max(std, 1e-300)) - (shape - 1.0) * slope

    return float(minimize_scalar(cost, bounds=(-5.0, 5.0), options={"xatol": 1e-9}).x)


def _has_more_than_two(X: Array) -> NDArray[np.bool_]:
    """Which columns have more than two values: of two, a warp moves only what is between them."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(((low < X) & (high > X)).any(axis=0))


def _quartiles(X: Array) -> tuple[Array, Array]:
    """Median and interquartile range of each column."""
    lower, median, upper = np.quantile(X, (0.25, 0.5, 0.75), axis=0)
    return median, upper - lower


def _std(deviations: Array) -> Array:
    """Standard deviation of centred columns whose squares may underflow or overflow."""
    largest = np.abs(deviations).max(axis=0)
    unit = np.where(largest > 0.0, largest, 1.0)
    return np.asarray(largest * (deviations / unit).std(axis=0))


def _check_range(too_large: NDArray[np.bool_], names: tuple[str, ...]) -> None:
    if too_large.any():
        name = names[int(np.argmax(too_large))]
        raise DataError(f"column {name!r}: its values are too large to compute with; rescale it")


def _warn_constant(is_constant: NDArray[np.bool_], names: tuple[str, ...], values: Array) -> None:
    if not is_constant.any():
        return
    if is_constant.all():
        message = "all columns are constant: the prediction is the same for every row"
    else:
        listed = ", ".join(repr(names[j]) for j in np.flatnonzero(is_constant)[:5])
        message = f"constant columns say nothing and are ignored: {listed}"
    if any(np.abs(values[is_constant]) > 2.0**53):
        message += " (of such long numbers 15 digits count)"
    warn_user(message, MercerWarning)


# Centre and scale of a regressor's targets, learned on the training rows.

_NORMAL_IQR = 1.349  # interquartile range of the standard normal law


@dataclass(frozen=True)
class TargetScale:
    """y -> (y - centre) / scale, in units of the target; what is farthest is cut.

    With ``is_log`` all this is of its natural logarithm.
    """

    centre: float  # or (q,), of several outputs
    scale: float
    farthest: float = math.inf  # in scales
    is_log: bool = False

    def transform(self, y: Array) -> Array:
        """Standardise targets."""
        z = ((np.log(y) if self.is_log else y) - self.centre) / self.scale
        return z if self.farthest == math.inf else np.clip(z, -self.farthest, self.farthest)


def scale_target(
    y: Array,
    *,
    is_robust: bool = False,
    farthest: float = math.inf,
    n_others: int = 0,
    is_log: bool = False,
) -> TargetScale:
    """Learn mean and standard deviation of finite targets, with a warning if all are the same.

    Of several outputs (n, q) those of each. Robust: median and interquartile range, as that of a
    normal law, unless that is 0. Standardised targets are cut at ``farthest``. ``n_others`` rows
    have targets that are not looked at. A `DataError` if targets are too large to compute with.
    With ``is_log`` all this is of the logarithm of targets above 0.
    """
    if is_log:
        how: dict[str, Any] = {"is_robust": is_robust, "farthest": farthest}
        return replace(scale_target(np.log(y), n_others=n_others, **how), is_log=True)
    if y.ndim > 1:
        each = [scale_target(column, n_others=n_others) for column in y.T]
        of_each: Any = np.array([(one.centre, one.scale) for one in each])
        return TargetScale(*of_each.T)
    if farthest < math.inf:
        found = scale_target(y, is_robust=is_robust, n_others=n_others)
        return replace(found, farthest=farthest)
    if is_robust:
        median, iqr = (float(each[0]) for each in _quartiles(y[:, np.newaxis]))
        if np.isfinite(iqr) and iqr > 0.0:
            scale_target(y)  # refuses what is too large
            return TargetScale(median, iqr / _NORMAL_IQR)
    if np.ptp(y) == 0.0:
        said = "the target is constant, and so is the prediction"
        if n_others > 0:
            said = f"the target is constant in the {len(y)} rows that its scale is learned from"
        warn_user(said, MercerWarning)
        return TargetScale(float(y[0]), 1.0)
    largest = float(np.abs(y).max())
    centre = float((y / largest).mean()) * largest
    deviations = y / largest - centre / largest
    scale = float(deviations.std()) * largest
    if not (np.isfinite(scale) and scale > 1e-150) or largest > 1e150:
        raise DataError("the target's values are too large or too small; rescale them")
    return TargetScale(centre, scale)


#: Of rows given the others, standardised: log density, mean and standard deviation of each target
#: (n,), and the variance of the noise.
LeftOut = tuple[Array, Array, Array, float]
