"""`RFOClassifier` and `RFORegressor`: frequencies optimised together with the coefficients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

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
    Folds,
    Loss,
    Minimum,
    blocks_of,
    fitted_values,
    minimise,
    split_rows,
    squared,
)
from mercer.errors import UsageError
from mercer.estimation.run import check_choice, check_count, check_positive, whole
from mercer.features.products import fill_features
from mercer.random import entropy_of, stream

__all__ = [
    "Found",
    "FrequencyObjective",
    "FrequencySearch",
    "Functions",
    "RFOClassifier",
    "RFORegressor",
    "checked_components",
    "checked_counts",
]


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
class Functions:
    """Linear functions of features, as `mercer.baselines.paths.fitted_values` takes them."""

    frequencies: Array  # (F, d)
    coef: Array  # (1 + 2 F, q), intercepts first; of features over the root of F, nu included


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

    def functions(self, theta: Array) -> Functions:
        """Return the functions f."""
        b, nu, spectral = self._parts(theta)
        coef = b.copy()
        coef[1:] *= self._weights(nu)
        return Functions(self.mixture.frequencies(spectral), coef)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the objective and its gradient."""
        b, nu, spectral = self._parts(theta)
        functions, weights = self.functions(theta), self._weights(nu)
        value = 0.5 * self.penalty * float(np.vdot(b, b))
        moments, of_frequencies = np.zeros_like(b), np.zeros_like(functions.frequencies)
        for rows in blocks_of(len(self.Z), len(b)):
            value += self._add(functions, rows, moments, of_frequencies)
        of_b = moments.copy()
        of_b[1:] *= weights
        of_b += self.penalty * b
        by_component = (b[1:] * moments[1:]).reshape(self.mixture.n_components, -1).sum(axis=1)
        of_nu = 2.0 * nu * by_component
        of_spectral = self.mixture.pull_back(spectral, of_frequencies)
        return value, np.concatenate([of_b.ravel(), of_nu, of_spectral])

    def _add(
        self, functions: Functions, rows: slice, moments: Array, of_frequencies: Array
    ) -> float:
        """Add a block of rows to sums of features times residuals, and to d/d omega."""
        Z, coef = self.Z[rows], functions.coef
        Phi = np.empty((2 * len(functions.frequencies), len(Z)))
        fill_features(functions.frequencies, Z, Phi)
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


@dataclass(frozen=True, eq=False)
class Found:
    """What a search ends with."""

    #: (numbers of components, penalties, numbers of steps), losses of the rows held out, a row
    errors: Array
    n_components: int
    penalty: float
    n_steps: int
    functions: Functions
    minimum: Minimum  # where the last descent, on all rows, ended


@dataclass(frozen=True)
class FrequencySearch:
    """Settings of the search."""

    n_frequencies: int
    components: tuple[int, ...]  # numbers of components that are tried
    penalties: tuple[float, ...]  # in rising order
    is_full: bool
    steps: tuple[int, ...]  # numbers of L-BFGS steps, in rising order
    n_folds: int
    n_selection_rows: int
    max_seconds: float | None  # half of it at most for cross-validation

    def run(
        self, entropy: int, Z: Array, targets: Array, loss: Loss, groups: ArrayLike | None = None
    ) -> Found:
        """Choose by cross-validation, and optimise on all rows."""
        half = None if self.max_seconds is None else 0.5 * self.max_seconds
        soon, late = Deadline.after(half), Deadline.after(self.max_seconds)
        some = some_rows(stream(entropy, "rows"), len(Z), self.n_selection_rows)
        distance = typical_distance(stream(entropy, "scales"), Z[some], "euclidean")
        seed = int(stream(entropy, "folds").integers(2**31))
        folds = split_rows(len(some), self.n_folds, seed, groups_of(groups, len(Z), some))
        errors = self._errors(entropy, Z[some], targets[some], loss, distance, folds, soon)
        i, k, m = np.unravel_index(int(np.argmin(errors)), errors.shape)
        mixture = self._mixture(entropy, int(i), Z.shape[1])
        objective = FrequencyObjective(mixture, Z, targets, loss, self.penalties[k])
        *_, minimum = _stages(objective, distance, self.steps[: m + 1], late)
        return Found(
            errors, self.components[i], self.penalties[k], self.steps[m],
            objective.functions(minimum.theta), minimum,
        )  # fmt: skip

    def _errors(
        self, entropy: int, Z: Array, targets: Array, loss: Loss, distance: float, folds: Folds,
        deadline: Deadline,
    ) -> Array:  # fmt: skip
        """Losses of the rows held out, a row."""
        errors = np.zeros((len(self.components), len(self.penalties), len(self.steps)))
        for i, k, (train, test) in product(
            range(len(self.components)), range(len(self.penalties)), folds
        ):
            mixture = self._mixture(entropy, i, Z.shape[1])
            objective = FrequencyObjective(
                mixture, Z[train], targets[train], loss, self.penalties[k]
            )
            for m, minimum in enumerate(_stages(objective, distance, self.steps, deadline)):
                functions = objective.functions(minimum.theta)
                f = fitted_values(functions.frequencies, functions.coef, Z[test])
                errors[i, k, m] += loss(f, targets[test])[0]
        return errors / len(Z)

    def _mixture(self, entropy: int, i: int, d: int) -> FrequencyMixture:
        """Return the mixture of the i-th number of components: the same draws for all folds."""
        n_components = self.components[i]
        n_each = self.n_frequencies // n_components
        return draw_mixture(stream(entropy, "start", i), n_components, n_each, d, self.is_full)


def _stages(
    objective: FrequencyObjective, distance: float, steps: Sequence[int], deadline: Deadline
) -> Iterator[Minimum]:
    """Go down, and stop after so many steps each time; steps are counted from the start."""
    theta, n_done = objective.start(distance), 0
    for n_steps in steps:
        found = minimise(objective, theta, n_steps - n_done, deadline)
        theta, n_done = found.theta, n_steps
        yield found


def checked_components(components: Sequence[int], n_features: int) -> tuple[int, ...]:
    """Return numbers of components in rising order, or raise `UsageError`."""
    found = checked_counts("components", components)
    if 2 * found[-1] > n_features:
        raise UsageError(
            f"n_features must be at least {2 * found[-1]}, two for each component; got {n_features}"
        )
    return found


def checked_counts(name: str, values: Sequence[int]) -> tuple[int, ...]:
    """Return whole numbers above 0, at least one, each once and in rising order."""
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) == 0:
        raise UsageError(f"{name} must be a sequence of numbers; got {values!r}")
    return tuple(sorted({check_count(f"each of {name}", value, 1) for value in values}))


COMPONENTS = (1, 4)
RFO_PENALTIES = (1e-2, 1.0, 100.0)
STEPS = (5, 20, 100)


class _FrequencyOptimizer(InputEstimator):
    """Arguments of both, and what is kept of a search."""

    def __init__(
        self,
        *,
        n_features: int = 768,
        components: Sequence[int] = COMPONENTS,
        penalties: Sequence[float] = RFO_PENALTIES,
        steps: Sequence[int] = STEPS,
        spread: str = "full",
        n_folds: int = 3,
        selection_rows: int = 1000,
        standardize: str | bool = "auto",
        random_state: object = None,
        max_seconds: float | None = None,
    ) -> None:
        self.n_features = n_features
        self.components = components
        self.penalties = penalties
        self.steps = steps
        self.spread = spread
        self.n_folds = n_folds
        self.selection_rows = selection_rows
        self.standardize = standardize
        self.random_state = random_state
        self.max_seconds = max_seconds

    def _search(self) -> FrequencySearch:
        """Check all arguments."""
        n_folds, n_kept = self._checked()
        check_choice("spread", self.spread, ("full", "diagonal"))
        if self.max_seconds is not None:
            check_positive("max_seconds", self.max_seconds)
        return FrequencySearch(
            self.n_features // 2,
            checked_components(self.components, self.n_features),
            checked_grid("penalties", self.penalties),
            self.spread == "full",
            checked_counts("steps", self.steps),
            n_folds,
            n_kept,
            self.max_seconds,
        )

    def _keep(self, found: Found) -> None:
        self.cv_errors_ = found.errors
        self.n_components_, self.penalty_ = found.n_components, found.penalty
        self.n_steps_ = found.n_steps
        self.frequencies_ = found.functions.frequencies
        self.intercept_, self.coef_ = found.functions.coef[0], found.functions.coef[1:]
        cut = "stopped by max_seconds before the last step of L-BFGS on all rows"
        self.notes_ = (cut,) if found.minimum.is_cut_short else ()


class RFOClassifier(FunctionClassifier, _FrequencyOptimizer):
    """Logistic regression on Fourier features whose frequencies are optimised with it.

    Frequencies are M_k w_kj + mu_k, with unit draws w_kj that are made once; M_k, mu_k, a weight
    nu_k of each component and the coefficients go down the penalised logistic loss together:
    random frequency optimisation. Components, penalty and the number
    of steps are chosen by cross-validation on the training rows. Several classes: softmax.

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
        Number of cross-validation folds; the score is the log loss.
    selection_rows : int, default=1000
        Rows that components, penalty and steps are chosen on, at most.
    standardize : {"auto", "std", "robust", "yeo-johnson", "arcsinh", False}, default="auto"
        How each input column is scaled; learned on the training rows.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws, the folds and the subset of rows.
    max_seconds : float or None, default=None
        Stop after a whole step once so much time has passed, half of it for cross-validation;
        ``notes_`` says so, and the result is then not the same each time.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Class labels, sorted.
    n_components_, penalty_, n_steps_ : int, float, int
        What was chosen.
    cv_errors_ : ndarray of shape (n_numbers of components, n_penalties, n_numbers of steps)
        Log losses of the rows held out, in nats a row.
    frequencies_ : ndarray of shape (F, d)
        Optimised; in radians per unit of the standardised inputs.
    coef_ : ndarray of shape (2 F, q)
        Coefficients of the cosine and the sine of each frequency in turn, over the root of F, times
        nu_k^2; q is 1 for two classes, C for more.
    intercept_ : ndarray of shape (q,)
        Penalised like the coefficients, as printed.
    notes_ : tuple of str
        What else a user should know of this fit, a line each.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    UsageError
        At ``fit``, if an argument is out of its range. It is a ValueError.

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

    @whole
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> RFOClassifier:
        """Choose components and penalty, and optimise on all rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Labels of two or more classes.
        groups : array-like of shape (n,), optional
            Rows with the same entry are held out together where settings are chosen.

        Returns
        -------
        self
        """
        self._forget()
        search = self._search()
        rows, index = self._checked_classes(X, y)
        self._learn_inputs(rows)
        Z, n_classes = self.standardizer_.transform(rows), len(self.classes_)
        entropy, targets = entropy_of(self.random_state), class_targets(index, n_classes)
        self._keep(search.run(entropy, Z, targets, class_loss(n_classes), groups))
        return self


class RFORegressor(FunctionRegressor, _FrequencyOptimizer):
    """Ridge regression on Fourier features whose frequencies are optimised with it.

    As `RFOClassifier`, with half the squared residuals of the standardised target in place of the
    logistic loss.

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
        Number of cross-validation folds; the score is the squared error.
    selection_rows : int, default=1000
        Rows that components, penalty and steps are chosen on, at most.
    standardize : {"auto", "std", "robust", "yeo-johnson", "arcsinh", False}, default="auto"
        How each input column is scaled; learned on the training rows.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws, the folds and the subset of rows.
    max_seconds : float or None, default=None
        Stop after a whole step once so much time has passed, half of it for cross-validation;
        ``notes_`` says so, and the result is then not the same each time.

    Attributes
    ----------
    n_components_, penalty_, n_steps_ : int, float, int
        What was chosen.
    cv_errors_ : ndarray of shape (n_numbers of components, n_penalties, n_numbers of steps)
        Mean squared errors of the rows held out, of the standardised target.
    frequencies_ : ndarray of shape (F, d)
        Optimised; in radians per unit of the standardised inputs.
    coef_ : ndarray of shape (2 F, q)
        Coefficients of the cosine and the sine of each frequency in turn, over the root of F, times
        nu_k^2; q is 1.
    intercept_ : ndarray of shape (q,)
        Constant term, in units of the standardised target; penalised like the coefficients.
    notes_ : tuple of str
        What else a user should know of this fit, a line each.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    UsageError
        At ``fit``, if an argument is out of its range. It is a ValueError.

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

    @whole
    def fit(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None) -> RFORegressor:
        """Choose components and penalty, and optimise on all rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
        groups : array-like of shape (n,), optional
            Rows with the same entry are held out together where settings are chosen.

        Returns
        -------
        self
        """
        self._forget()
        search = self._search()
        rows, u = self._checked_numbers(X, y)
        Z = self.standardizer_.transform(rows)
        found = search.run(entropy_of(self.random_state), Z, u[:, np.newaxis], squared, groups)
        self._keep(found)
        # The loss is half the squared error.
        self.cv_errors_ = 2.0 * found.errors
        return self
