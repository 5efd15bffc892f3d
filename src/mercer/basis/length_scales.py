"""The length scales, and scalings of the inputs, that particles choose among."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.spatial.distance import cdist, pdist, squareform

from mercer.basis.model import Array, Integers
from mercer.errors import NumericalError
from mercer.kernels.stationary import SquaredExponentialARD
from mercer.numerics.cholesky import factorise, invert_factored
from mercer.numerics.compilation import compiled

#: Kernels of the distance, in the order of the compiled loop's numbers.
KINDS = ("rbf", "matern12", "matern32", "matern52")
# From twice the median distance down to a 32nd of it, each square half of the one before.
_N_WIDTHS = 13
_WIDEST = 2.0
# No shorter than the distance from a row to the nearest other, but for so many: a kernel that sees
# its own centre only explains that row's noise, and says nothing of new rows.
_FEWEST_WIDTHS = 3
_MOST_ROWS = 500
# In scales: of two rows further out, the sums of squares would leave nothing of other columns' (1e8
# is enough), and no posterior.
_FURTHEST = 1e5
_ROOTS = {"matern12": 1.0, "matern32": math.sqrt(3.0), "matern52": math.sqrt(5.0)}


@dataclass(frozen=True, eq=False)
class LengthScaleGrid:
    """A scalings of the inputs times W length scales: level a W + j.

    The prior probability of each scaling, in nats, counts once all rows that shaped them are
    learned, and need not sum to 1; None: all alike, which do.
    """

    lengthscales: Array  # (W,), in standardised units; falling
    scalings: Array  # (A, d), factors of the inputs
    kind: str  # one of `KINDS`
    linear_part: bool | int | str  # whether the mean holds the inputs too; see `n_linear`
    log_prior: Array | None = None  # (A,)
    n_shaping: int = 0  # first rows that shaped the scalings
    is_cut: bool = False  # whether a deadline ended the search for the scalings
    is_halving: bool = field(init=False)  # squares of length scales halve each time

    def __post_init__(self) -> None:
        squares = self.lengthscales**2
        ratios = squares[1:] / squares[:-1]
        is_halving = self.kind == "rbf" and bool(np.all(np.abs(ratios - 0.5) < 1e-12))
        object.__setattr__(self, "is_halving", is_halving)

    @property
    def n_widths(self) -> int:
        """Number W of length scales."""
        return len(self.lengthscales)

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return len(self.scalings) * self.n_widths

    @property
    def n_mean(self) -> int:
        """Columns of the mean."""
        return 1 + n_linear(self.linear_part, self.scalings.shape[1])

    def log_prior_after(self, n_rows: int) -> Array:
        """Prior probability of each scaling (A,) after so many rows, in nats.

        It begins with all alike, and comes to ``log_prior`` in equal steps on the log scale: one
        for each row that shaped the scalings.
        """
        even = np.full(len(self.scalings), -math.log(len(self.scalings)))
        if self.log_prior is None:
            return even
        share = min(n_rows / self.n_shaping, 1.0) if self.n_shaping else 1.0
        return (1.0 - share) * even + share * self.log_prior

    def distances(self, x: Array, Z: Array, n: int) -> Array:
        """Squared distances of one input x (d,) to the first n rows of Z: shape (A, n)."""
        out = np.empty((len(self.scalings), n))
        squared_distances(x, Z, n, self.scalings, out)
        return out

    def all_distances(self, X: Array, Z: Array) -> Array:
        """Squared distances of rows X (m, d) to rows Z (r, d): shape (A, m, r)."""
        return np.stack([cdist(X * s, Z * s, "sqeuclidean") for s in self.scalings])

    def fill_row(self, x: Array, distances: Array, n: int, rows: Array) -> None:
        """Write the row of the design of one input x (d,) at each level, in ``rows`` (L, C).

        ``distances`` (A, n) are those to the n candidates, squared; the first ``n_mean +
        n`` columns are written.
        """
        rows[:, 0] = 1.0
        if self.linear_part:
            rows[:, 1 : self.n_mean] = _within(x[: self.n_mean - 1])
        self._fill(distances, n, self.n_mean, rows)

    def fill_kernel(self, distances: Array, n: int, rows: Array) -> None:
        """Write the kernel of n squared distances (A, n) at each level, into rows (L, n)."""
        self._fill(distances, n, 0, rows)

    def _fill(self, distances: Array, n: int, first: int, rows: Array) -> None:
        kernel_levels(
            distances, n, self.lengthscales, KINDS.index(self.kind), self.is_halving, first, rows
        )

    def kernel(self, distances: Array, level: int) -> Array:
        """Kernel of squared distances (A, ...) at one level: shape (...)."""
        width = float(self.lengthscales[level % self.n_widths])
        return _kernel(distances[level // self.n_widths], width, self.kind)

    def near(self, levels: Integers) -> NDArray[np.bool_]:
        """Which levels (L,) are among these, or may be proposed from one of them.

        These are the next length scales, and the same for another scaling of the inputs.
        """
        is_near = np.zeros((len(self.scalings), self.n_widths), np.bool_)
        widths = levels % self.n_widths
        is_near[:, widths] = True
        for shift in (-1, 1):
            other = widths + shift
            is_inside = (other >= 0) & (other < self.n_widths)
            is_near[levels[is_inside] // self.n_widths, other[is_inside]] = True
        return is_near.ravel()

    def cross_sums(self, distances: Array, features: Array, is_kept: NDArray[np.bool_]) -> Array:
        """Sums over rows of a feature times the kernel to each candidate, (L, r), at some levels.

        ``distances`` (A, n, r) are squared, of the rows to the candidates; ``features`` is
        (L, n). At levels that are not kept the sums are arbitrary.
        """
        sums = np.zeros((self.n_levels, distances.shape[2]))
        W = self.n_widths
        for a in range(len(distances)):
            kept = a * W + np.flatnonzero(is_kept[a * W : (a + 1) * W])
            if not len(kept):
                continue
            if self.is_halving:
                own = slice(int(kept[0]), int(kept[-1]) + 1)
                K = self.kernel(distances, own.start)
                sums_of_squarings(K, features[own], sums[own])
                continue
            for level in kept.tolist():
                sums[level] = features[level] @ self.kernel(distances, level)
        return sums

    def design(self, X: Array, Z: Array, level: int) -> Array:
        """Design of rows X (m, d) with candidates Z (r, d) at one level: shape (m, p + r)."""
        scaling = self.scalings[level // self.n_widths]
        distances = cdist(X * scaling, Z * scaling, "sqeuclidean")
        width = float(self.lengthscales[level % self.n_widths])
        return np.concatenate([self.mean(X), _kernel(distances, width, self.kind)], axis=1)

    def functions(
        self, parts: Sequence[Array], Z: Array, coef: Array, levels: Integers
    ) -> list[Array]:
        """Values at parts of rows (m, d) of functions with coefficients (n, p + r): (n, m) each.

        ``levels`` (n,) are those of the functions, Z (r, d) their candidates.
        """
        found = []
        for X in parts:
            values = np.empty((len(coef), len(X)))
            for level in np.unique(levels):
                is_of = levels == level
                values[is_of] = coef[is_of] @ self.design(X, Z, int(level)).T
            found.append(values)
        return found

    def row(self, x: Array, Z: Array, n: int, level: int) -> Array:
        """Design of one input x (d,) with the first n candidates of Z: `design`, compiled."""
        scaling, width = divmod(level, self.n_widths)
        distances, row = np.empty((1, n)), np.empty((1, self.n_mean + n))
        squared_distances(x, Z, n, self.scalings[scaling : scaling + 1], distances)
        row[0, 0] = 1.0
        if self.linear_part:
            row[0, 1 : self.n_mean] = _within(x[: self.n_mean - 1])
        lengthscale = self.lengthscales[width : width + 1]
        kernel_levels(distances, n, lengthscale, KINDS.index(self.kind), False, self.n_mean, row)
        return row

    def only(self, level: int) -> LengthScaleGrid:
        """Return that one level."""
        return LengthScaleGrid(
            self.lengthscales[[level % self.n_widths]],
            self.scalings[[level // self.n_widths]],
            self.kind,
            self.linear_part,
        )

    def mean(self, X: Array) -> Array:
        """Columns of the mean: a constant, then the inputs where there is a linear part."""
        return np.concatenate([np.ones((len(X), 1)), _within(X[:, : self.n_mean - 1])], axis=1)


#: Inputs that the mean is linear in by default: of more each row would take a tenth of a second.
MOST_LINEAR = 256


def n_linear(linear_part: bool | int | str, d: int) -> int:
    """Return how many of d inputs the mean is linear in: "auto" all, if they are not too many."""
    if linear_part == "auto":
        return d if d <= MOST_LINEAR else 0
    is_flag = isinstance(linear_part, (bool, np.bool_))
    return d * int(linear_part) if is_flag else min(int(linear_part), d)


def _within(X: Array) -> Array:
    """Return inputs as the mean has them: beyond `_FURTHEST` it is constant."""
    return np.asarray(np.minimum(np.maximum(X, -_FURTHEST), _FURTHEST))


def _kernel(distances: Array, lengthscale: float, kind: str) -> Array:
    """Kernel of squared distances."""
    if kind == "rbf":
        return np.asarray(np.exp(distances * (-0.5 / (lengthscale * lengthscale))))
    r = np.sqrt(distances) * (_ROOTS[kind] / lengthscale)
    polynomial = {"matern12": 1.0, "matern32": 1.0 + r, "matern52": 1.0 + r + r * r / 3.0}[kind]
    return np.asarray(polynomial * np.exp(-r))


def chosen_lengthscales(
    choice: str | tuple[float, ...], Z: Array, scalings: Array | None = None
) -> Array:
    """Return the length scales (W,) to choose among, falling, for standardised rows Z (n, d).

    ``scalings`` (A, d) are factors of the inputs to choose among too.
    """
    if choice == "learn":
        return widths_around(Z, scalings)
    if choice == "median":
        return np.array([_median_distance(Z)])
    return -np.sort(-np.array(choice, dtype=np.float64))


def n_lengthscales(choice: str | tuple[float, ...]) -> int:
    """Return how many these are at most."""
    return {"learn": _N_WIDTHS, "median": 1}.get(str(choice)) or len(choice)


def widths_around(X: Array, scalings: Array | None = None) -> Array:
    """Length scales around the median distance between rows of X (n, d), falling: shape (W,).

    From twice that (over the root of 2: in exp(-r^2 / w^2) it is w) down to a 32nd, 13; of
    these, but for three, those that are not below the median distance from a row to the nearest
    other, in the scaling (A, d) where that is least.
    """
    widest = _WIDEST * _median_distance(X) / math.sqrt(2.0)
    widths = np.asarray(widest * 2.0 ** (-0.5 * np.arange(_N_WIDTHS)))
    factors = np.ones((1, X.shape[1])) if scalings is None else scalings
    nearest = min(_nearest_distance(X * factor) for factor in factors)
    return widths[: max(_FEWEST_WIDTHS, int(np.sum(widths >= nearest)))]


def _median_distance(X: Array) -> float:
    """Median distance between different rows; 1 where there are none."""
    distances = pdist(X[:_MOST_ROWS])
    positive = distances[distances > 0.0]
    return float(np.median(positive)) if len(positive) else 1.0


def _nearest_distance(X: Array) -> float:
    """Median distance from a row to the nearest different one; 0 where there are none."""
    distances = squareform(pdist(X[:_MOST_ROWS]))
    distances[distances == 0.0] = math.inf
    nearest = distances.min(axis=1, initial=math.inf)
    finite = nearest[np.isfinite(nearest)]
    return float(np.median(finite)) if len(finite) else 0.0


# Scalings of the inputs to choose among: all alike, and some that a Gaussian process finds likely.
#
# **Prior.** Half of it lies on all inputs alike. The other half is spread over the logarithms of
# the inputs' factors, independent standard normals about their mean: the common factor is that of
# the length scale, which particles carry besides.
#
# **Proposals.** No scaling drawn from that prior would be near the right one. So they are drawn
# near what the first rows say: from q, the normal approximation (Laplace's) of their posterior
# under a Gaussian process with a weight for each input. The prior probability of such a draw is its
# density under the prior over that under q, one over the number of draws (importance sampling).
# What the choice took from the targets is thereby given back: the evidence is unbiased for the
# prior above, whatever q is. The probabilities have mean sum 1, not sum 1.
#
# **By steps.** Particles begin with all scalings equally probable, and these probabilities come to
# their place in equal steps on the log scale, one for each row that shaped q: at once, they would
# leave no particle where the posterior is in the end. What a step costs is charged to the score of
# its row: all that the choice took from the targets is given back in the sum of the scores.

# Log weights and log variances are normal around their start, with this standard deviation. A
# factor of an input is the root of its weight.
_SPREAD = 2.0
_FIRST_NOISE = 0.1
_MOST_RELEVANCE_ROWS = 300
_MOST_STEPS = 60
# With more inputs the curvature is not computed: proposals are then as wide as the prior.
_MOST_CURVED = 64
_DIFFERENCE = 1e-4
_ALIKE = 0.5


class Scalings(NamedTuple):
    """Scalings of the inputs that particles choose among, (A, d), and their prior probabilities."""

    factors: Array  # of the inputs' length scales; the first are all ones
    log_prior: Array  # (A,), in nats; see above for their sum
    n_rows: int  # rows that shaped them
    is_cut: bool = False  # whether a deadline ended the search; probabilities make up for that too


def all_alike(d: int) -> Scalings:
    """Return the one scaling of d inputs that leaves them as they are."""
    return Scalings(np.ones((1, d)), np.zeros(1), 0)


def relevance_scalings(
    rng: np.random.Generator,
    Z: Array,
    y: Array,
    n_scalings: int,
    is_late: Callable[[], bool] = lambda: False,
) -> Scalings:
    """Draw scalings near what the first rows say, with prior probabilities that make up for it.

    Rows Z (n, d), at most 300 of which are used, and targets (n,) are standardised. With one
    scaling or one input all are alike. Once ``is_late`` the search ends with its step, and
    proposals are as wide as the prior where there was no time for the curvature.
    """
    d = Z.shape[1]
    if n_scalings == 1 or d == 1 or len(Z) < 3:
        return all_alike(d)
    Z, y = Z[:_MOST_RELEVANCE_ROWS], y[:_MOST_RELEVANCE_ROWS]
    centre, root, is_cut = _proposal(Z, y, is_late)
    n_draws = n_scalings - 1
    draws = rng.standard_normal((n_draws, d - 1))
    # In coordinates of the directions along which the mean of the log factors stays.
    away = centre + draws @ root.T
    log_prior = -0.5 * np.einsum("ai,ai->a", away, away)
    log_proposal = -0.5 * np.einsum("ai,ai->a", draws, draws)
    log_proposal -= math.log(abs(np.linalg.det(root)))
    weights = math.log((1.0 - _ALIKE) / n_draws) + log_prior - log_proposal
    factors = np.exp(away @ _directions(d).T)
    typical = np.median(pdist(Z))
    for factor in factors:
        distance = np.median(pdist(Z * factor))
        factor *= typical / distance if distance > 0.0 else 1.0
    return Scalings(
        np.concatenate([np.ones((1, d)), factors]),
        np.concatenate([[math.log(_ALIKE)], weights]),
        len(Z),
        is_cut,
    )


def _directions(d: int) -> Array:
    """Orthonormal directions with mean 0: shape (d, d - 1)."""
    basis = np.concatenate([np.ones((d, 1)), np.eye(d)[:, 1:]], axis=1)
    return np.asarray(np.linalg.qr(basis)[0][:, 1:])


def _proposal(Z: Array, y: Array, is_late: Callable[[], bool]) -> tuple[Array, Array, bool]:
    """Centre (d - 1,) and root of the covariance (d - 1, d - 1) of q, in these directions.

    And whether the search for them was cut short.
    """
    n, d = Z.shape
    kernel = SquaredExponentialARD()
    start = np.array([math.log(_FIRST_NOISE), 0.0, *np.full(d, -math.log(d))])

    def loss(theta: Array) -> tuple[float, Array]:
        noise = math.exp(theta[0])
        K = kernel.gram(theta[1:], Z)
        try:
            L = factorise(np.asfortranarray(K + noise * np.eye(n)))
        except NumericalError:
            return 1e10, np.zeros_like(theta)
        log_det = 2.0 * float(np.log(L.diagonal()).sum())
        inverse = np.tril(invert_factored(L))
        inverse += np.tril(inverse, -1).T
        alpha = inverse @ y
        A = 0.5 * (np.outer(alpha, alpha) - inverse)
        gradient = np.concatenate([[noise * np.trace(A)], kernel.gradient(theta[1:], Z, K, A)])
        away = (theta - start) / _SPREAD
        value = 0.5 * (float(y @ alpha) + log_det + float(away @ away))
        return value, away / _SPREAD - gradient

    def stop(intermediate_result: object) -> None:
        if is_late():
            raise StopIteration

    bounds = [(math.log(1e-6), math.log(10.0)), (-8.0, 8.0), *[(-16.0, 8.0)] * d]
    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        callback=stop,
        options={"maxiter": _MOST_STEPS},
    )
    best, Q = np.asarray(found.x), _directions(d)
    centre = Q.T @ (0.5 * best[2:])
    if d > _MOST_CURVED:
        is_cut = is_late() and not found.success and found.nit < _MOST_STEPS
        return centre, np.eye(d - 1), is_cut
    gradient, rows = loss(best)[1], []
    for shift in _DIFFERENCE * np.eye(d + 2):
        if is_late():
            return centre, np.eye(d - 1), True
        rows.append((loss(best + shift)[1] - gradient) / _DIFFERENCE)
    hessian = np.array(rows)
    # Where the rows say little, or the maximum was not reached: never wider than the prior.
    values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
    scaled = vectors[2:] / np.sqrt(np.maximum(values, _SPREAD**-2))
    half = 0.5 * Q.T @ scaled
    return centre, np.linalg.cholesky(half @ half.T), False


# Compiled loops: kernels of distances at several length scales.

_FAST = {"contract", "reassoc", "nsz"}


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def squared_distances(x: Array, Z: Array, n: int, scalings: Array, distances: Array) -> None:
    """Write the squared distances of x to the first n rows of Z for each scaling: (A, n)."""
    for a in range(len(scalings)):
        for c in range(n):
            total = 0.0
            for j in range(len(x)):
                e = (x[j] - Z[c, j]) * scalings[a, j]
                total += e * e
            distances[a, c] = total


@compiled(nogil=True, error_model="numpy")
def _kernel_value(distance: float, lengthscale: float, kind: int) -> float:
    """Value at a squared distance; kinds are those of `mercer.basis.length_scales.KINDS`."""
    if kind == 0:
        return math.exp(-0.5 * distance / (lengthscale * lengthscale))
    r = math.sqrt(distance) / lengthscale
    if kind == 1:
        return math.exp(-r)
    if kind == 2:
        r *= math.sqrt(3.0)
        return (1.0 + r) * math.exp(-r)
    r *= math.sqrt(5.0)
    return (1.0 + r + r * r / 3.0) * math.exp(-r)


@compiled(nogil=True, error_model="numpy")
def kernel_levels(
    distances: Array,
    n: int,
    lengthscales: Array,
    kind: int,
    is_halving: bool,
    first: int,
    rows: Array,
) -> None:
    """Write the kernel of n squared distances for each of A scalings and W falling length scales.

    They go into ``rows`` (A W, first + n) from column ``first`` on. With ``is_halving`` the
    squares of the length scales are each half of the one before: then each value of the squared
    exponential is the square of the one before, and only the first is an exponential.
    """
    n_widths = len(lengthscales)
    for a in range(len(distances)):
        top = a * n_widths
        for c in range(n):
            rows[top, first + c] = _kernel_value(distances[a, c], lengthscales[0], kind)
        for j in range(1, n_widths):
            if is_halving:
                for c in range(n):
                    value = rows[top + j - 1, first + c]
                    rows[top + j, first + c] = value * value
            else:
                for c in range(n):
                    rows[top + j, first + c] = _kernel_value(distances[a, c], lengthscales[j], kind)


@compiled(nogil=True, error_model="numpy", fastmath=_FAST)
def sums_of_squarings(K: Array, features: Array, sums: Array) -> None:
    """Add features'K, then those of K squared element by element, and so on: one pass over K.

    K (n, r) is the kernel at the widest length scale, and used up; ``features`` (W, n) are what
    each power is multiplied with; ``sums`` is (W, r).
    """
    for s in range(len(K)):
        row = K[s]
        for j in range(len(features)):
            feature, out = features[j, s], sums[j]
            for c in range(len(row)):
                value = row[c]
                out[c] += feature * value
                row[c] = value * value
