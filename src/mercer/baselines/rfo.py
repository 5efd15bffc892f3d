"""`RFOClassifier` and `RFORegressor`: frequencies optimised together with the coefficients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer.baselines.base import (
    FrequencyMixture,
    FunctionClassifier,
    FunctionRegressor,
    InputEstimator,
    checked_grid,
    class_loss,
    class_targets,
    draw_mixture,
    groups_of,
    some_rows,
    typical_distance,
)
from mercer.baselines.paths import (
    Deadline,
    Loss,
    Minimum,
    blocks_of,
    features_of,
    fitted_values,
    minimise,
    split_rows,
    squared,
)
from mercer.errors import UsageError
from mercer.estimation.run import check_choice, check_count, check_positive
from mercer.random import entropy_of, stream

__all__ = ["RFOClassifier", "RFORegressor"]


# The objective of random frequency optimisation, section 4.3 of Oliva et al.
#
#     sum_i loss(f(x_i), y_i) + penalty / 2 (|b|^2 + |b_0|^2)
#     f(x) = b_0 + F^(-1/2) sum_k nu_k^2 sum_j (b_kj^cos cos(omega_kj'x) + b_kj^sin
#     sin(omega_kj'x))
#
# over b_0, b, nu and the parameters of the frequencies (`mercer.baselines.base`). The
# paper has no F^(-1/2), which nu takes up, and the logistic loss; others are put in its place
# here, with several functions f where there are several classes. One evaluation costs O(n F (d +
# q)).

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FrequencyObjective:
    """The objective on given rows.

    The vector of parameters holds the coefficients (1 + 2 F, q) row by row, the intercepts first,
    then nu (K,), then those of the mixture.
    """

    mixture: FrequencyMixture
    Z: Array  # (n, d), standardised
    targets: Array  # (n, q)
    loss: Loss  # one of the losses in `mercer.baselines.paths`
    penalty: float

    def start(self, distance: float) -> Array:
        """Return coefficients 0, nu 1, and the start of the mixture."""
        n_coef = (1 + 2 * self.mixture.n_frequencies) * self.targets.shape[1]
        ones = np.ones(self.mixture.n_components)
        return np.concatenate([np.zeros(n_coef), ones, self.mixture.start(distance)])

    def functions(self, theta: Array) -> tuple[Array, Array]:
        """Return the functions f as `fitted_values` takes them: frequencies, and coefficients.

        Coefficients (1 + 2 F, q), the intercepts first, are those of features over the root of F,
        nu included.
        """
        b, nu, spectral = self._parts(theta)
        coef = b.copy()
        coef[1:] *= self._weights(nu)
        return self.mixture.frequencies(spectral), coef

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the objective and its gradient."""
        b, nu, spectral = self._parts(theta)
        (W, coef), weights = self.functions(theta), self._weights(nu)
        value = 0.5 * self.penalty * float(np.vdot(b, b))
        moments, of_frequencies = np.zeros_like(b), np.zeros_like(W)
        for rows in blocks_of(len(self.Z), len(b)):
            value += self._add(W, coef, rows, moments, of_frequencies)
        of_b = moments.copy()
        of_b[1:] *= weights
        of_b += self.penalty * b
        by_component = (b[1:] * moments[1:]).reshape(self.mixture.n_components, -1).sum(axis=1)
        of_nu = 2.0 * nu * by_component
        of_spectral = self.mixture.pull_back(spectral, of_frequencies)
        return value, np.concatenate([of_b.ravel(), of_nu, of_spectral])

    def _add(
        self, W: Array, coef: Array, rows: slice, moments: Array, of_frequencies: Array
    ) -> float:
        """Add a block of rows to sums of features times residuals, and to d/d omega."""
        Z = self.Z[rows]
        Phi = features_of(W, Z)
        value, residuals = self.loss(coef[0] + Phi.T @ coef[1:], self.targets[rows])
        moments[0] += residuals.sum(axis=0)
        moments[1:] += Phi @ residuals
        cosines, sines = Phi[0::2], Phi[1::2]
        of_phase = (coef[2::2] @ residuals.T) * cosines - (coef[1::2] @ residuals.T) * sines
        of_frequencies += of_phase @ Z
        return value

    def _weights(self, nu: Array) -> Array:
        """nu_k^2 of each feature: shape (2 F, 1)."""
        n_each = 2 * self.mixture.n_frequencies // self.mixture.n_components
        return np.repeat(nu**2, n_each)[:, np.newaxis]

    def _parts(self, theta: Array) -> tuple[Array, Array, Array]:
        q, K = self.targets.shape[1], self.mixture.n_components
        end = (1 + 2 * self.mixture.n_frequencies) * q
        return theta[:end].reshape(-1, q), theta[end : end + K], theta[end + K :]


# Optimised frequencies: settings by cross-validation, then all rows, within a limit of time.


def _stages(
    objective: FrequencyObjective, distance: float, steps: Sequence[int], deadline: Deadline
) -> Iterator[Minimum]:
    """Go down, and stop after so many steps each time; steps are counted from the start."""
    theta, n_done = objective.start(distance), 0
    for n_steps in steps:
        found = minimise(objective, theta, n_steps - n_done, deadline)
        theta, n_done = found.theta, n_steps
        yield found


def checked_counts(name: str, values: Sequence[int]) -> tuple[int, ...]:
    """Return whole numbers above 0, at least one, each once and in rising order."""
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
        raise UsageError(f"{name} must be a sequence of numbers; got {values!r}")
    return tuple(sorted({check_count(f"each of {name}", value, 1) for value in values}))


class _Tried(NamedTuple):
    """Numbers of components, penalties and numbers of steps, each rising; folds, and rows."""

    components: tuple[int, ...]
    penalties: tuple[float, ...]
    steps: tuple[int, ...]
    n_folds: int
    n_rows: int


@dataclass(kw_only=True, eq=False, repr=False)
class _FrequencyOptimizer(InputEstimator):
    """Arguments of both, and the search.

    Parameters
    ----------
    n_features : int, default=768
        Even, and in equal shares: a cosine and a sine for each frequency.
    components : sequence of int, default=(1, 4)
        Numbers of components of the mixture that are tried.
    penalties : sequence of float
        Penalties of the squared coefficients that are tried; by default 0.01, 1 and 100.
    steps : sequence of int, default=(5, 20, 100)
        Numbers of L-BFGS steps that are tried.
    spread : {"full", "diagonal"}, default="full"
        Whether a component has a matrix M_k, as in the paper, or a scale for each input.
    n_folds : int, default=3
        Number of cross-validation folds; the score is the log loss, of numbers the squared error.
    selection_rows : int, default=1000
        Rows that components, penalty and steps are chosen on, at most.
    max_seconds : float or None, default=None
        Stop after a whole step once so much time has passed, half of it for cross-validation;
        ``notes_`` says so, and the result is then not the same each time.

    Attributes
    ----------
    n_components_, penalty_, n_steps_ : int, float, int
        What was chosen.
    cv_errors_ : ndarray of shape (n_numbers of components, n_penalties, n_numbers of steps)
        Of the rows held out: log losses, in nats a row, or mean squared errors, of the standardised
        target.
    frequencies_ : ndarray of shape (F, d)
        Optimised; in radians per unit of the standardised inputs.
    notes_ : tuple of str
        What else a user should know of this fit, a line each.
    """

    n_features: int = 768
    components: Sequence[int] = (1, 4)
    penalties: Sequence[float] = (1e-2, 1.0, 100.0)
    steps: Sequence[int] = (5, 20, 100)
    spread: str = "full"
    n_folds: int = 3
    selection_rows: int = 1000
    standardize: str | bool = "auto"
    random_state: object = None
    max_seconds: float | None = None

    def _tried(self) -> _Tried:
        """Check all arguments."""
        n_folds, n_rows = self._checked()
        check_choice("spread", self.spread, ("full", "diagonal"))
        if self.max_seconds is not None:
            check_positive("max_seconds", self.max_seconds)
        components = checked_counts("components", self.components)
        least = 2 * components[-1]
        if least > self.n_features:
            raise UsageError(
                f"n_features must be at least {least}, two for each component; "
                f"got {self.n_features}"
            )
        penalties = checked_grid("penalties", self.penalties)
        return _Tried(components, penalties, checked_counts("steps", self.steps), n_folds, n_rows)

    _losses_in_error = 1.0

    def _problem(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Loss]:
        """Check and learn what the inputs are: standardised rows, targets (n, q), and the loss."""
        raise NotImplementedError

    def _learn(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None) -> None:
        tried = self._tried()
        Z, targets, loss = self._problem(X, y)
        entropy = entropy_of(self.random_state)
        half = None if self.max_seconds is None else 0.5 * self.max_seconds
        soon, late = Deadline.after(half), Deadline.after(self.max_seconds)
        some = some_rows(stream(entropy, "rows"), len(Z), tried.n_rows)
        distance = typical_distance(stream(entropy, "scales"), Z[some], "euclidean")
        seed = int(stream(entropy, "folds").integers(2**31))
        folds = split_rows(len(some), tried.n_folds, seed, groups_of(groups, len(Z), some))

        def objective(i: int, k: int, rows: Any) -> FrequencyObjective:
            K = tried.components[i]  # with the same draws for all folds
            size = K, self.n_features // 2 // K, Z.shape[1]
            mixture = draw_mixture(stream(entropy, "start", i), *size, self.spread == "full")
            return FrequencyObjective(mixture, Z[rows], targets[rows], loss, tried.penalties[k])

        errors = np.zeros((len(tried.components), len(tried.penalties), len(tried.steps)))
        for i, k, (train, test) in product(range(errors.shape[0]), range(errors.shape[1]), folds):
            part, held_out = objective(i, k, some[train]), some[test]
            for m, minimum in enumerate(_stages(part, distance, tried.steps, soon)):
                f = fitted_values(*part.functions(minimum.theta), Z[held_out])
                errors[i, k, m] += loss(f, targets[held_out])[0]
        self.cv_errors_ = errors / len(some) * self._losses_in_error
        i, k, m = map(int, np.unravel_index(int(np.argmin(errors)), errors.shape))
        self.n_components_, self.penalty_ = tried.components[i], tried.penalties[k]
        self.n_steps_ = tried.steps[m]
        whole = objective(i, k, slice(None))
        *_, minimum = _stages(whole, distance, tried.steps[: m + 1], late)
        self.frequencies_, coef = whole.functions(minimum.theta)
        self.intercept_, self.coef_ = coef[0], coef[1:]
        cut = "stopped by max_seconds before the last step of L-BFGS on all rows"
        self.notes_ = (cut,) if minimum.is_cut_short else ()


class RFOClassifier(FunctionClassifier, _FrequencyOptimizer):
    """Logistic regression on Fourier features whose frequencies are optimised with it.

    Frequencies are M_k w_kj + mu_k, with unit draws w_kj that are made once; M_k, mu_k, a weight
    nu_k of each component and the coefficients go down the penalised logistic loss together:
    random frequency optimisation. Components, penalty and the number
    of steps are chosen by cross-validation on the training rows. Several classes: softmax.

    Attributes
    ----------
    coef_ : ndarray of shape (2 F, q)
        Coefficients of the cosine and the sine of each frequency in turn, over the root of F, times
        nu_k^2; q is 1 for two classes, C for more.
    intercept_ : ndarray of shape (q,)
        Penalised like the coefficients, as printed.

    See Also
    --------
    AlaCarteRegressor : frequencies by the likelihood of a GP.

    Notes
    -----
    Minimises the objective in section 4.3 of [1]_ by L-BFGS. The features have a factor F^(-1/2)
    that the paper's do not; nu takes it up. The paper does not say where it starts; here every
    component is around 0, with length scales of half to twice the typical distance of two rows.
    The weights nu_k are not penalised and take up what the penalty keeps from the coefficients, so
    that the number of steps is chosen too. A step costs O(n F d).

    References
    ----------
    .. [1] J. B. Oliva et al., Bayesian nonparametric kernel-learning, AISTATS (2016).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(80, noise=0.2, random_state=0)
    >>> model = RFOClassifier(n_features=24, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def _problem(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Loss]:
        rows, index = self._checked_classes(X, y)
        self._learn_inputs(rows)
        Z, n_classes = self.standardizer_.transform(rows), len(self.classes_)
        return Z, class_targets(index, n_classes), class_loss(n_classes)


class RFORegressor(FunctionRegressor, _FrequencyOptimizer):
    """Ridge regression on Fourier features whose frequencies are optimised with it.

    As `RFOClassifier`, with half the squared residuals of the standardised target in place of the
    logistic loss.

    Attributes
    ----------
    coef_ : ndarray of shape (2 F, 1)
        Coefficients of the cosine and the sine of each frequency in turn, over the root of F, times
        nu_k^2.
    intercept_ : ndarray of shape (1,)
        Constant term, in units of the standardised target; penalised like the coefficients.

    See Also
    --------
    AlaCarteRegressor : frequencies by the likelihood of a GP.

    Notes
    -----
    The objective of section 4.3 of [1]_ with another loss; the paper has it for classes only.

    References
    ----------
    .. [1] J. B. Oliva et al., Bayesian nonparametric kernel-learning, AISTATS (2016).

    Examples
    --------
    >>> X = np.linspace(-3, 3, 60)[:, np.newaxis]
    >>> model = RFORegressor(n_features=24, random_state=0).fit(X, np.sin(2 * X[:, 0]))
    >>> bool(abs(model.predict([[0.5]])[0] - np.sin(1.0)) < 0.05)
    True
    """

    _losses_in_error = 2.0  # half the squared error

    def _problem(self, X: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Loss]:
        rows, u = self._checked_numbers(X, y)
        return self.standardizer_.transform(rows), u[:, np.newaxis], squared
