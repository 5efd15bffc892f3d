"""`RFOClassifier` and `RFORegressor`: frequencies optimised together with the coefficients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mercer.baselines.classifier import FunctionClassifier
from mercer.baselines.frequency_search import (
    Found,
    FrequencySearch,
    checked_components,
    checked_counts,
)
from mercer.baselines.inputs import InputEstimator
from mercer.baselines.losses import squared
from mercer.baselines.regressor import FunctionRegressor, checked_grid
from mercer.estimation.options import check_choice, check_positive
from mercer.random import entropy_of

__all__ = ["RFOClassifier", "RFORegressor"]


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
        Of the squared coefficients; those that are tried. 0.01, 1 and 100 by default.
    steps : sequence of int, default=(5, 20, 100)
        Of L-BFGS; numbers of them that are tried.
    spread : {"full", "diagonal"}, default="full"
        Whether a component has a matrix M_k, as in the paper, or a scale for each input.
    n_folds : int, default=3
        Of the cross-validation, by log loss.
    selection_rows : int, default=1000
        Rows that components, penalty and steps are chosen on, at most.
    standardize : {"auto", "std", "robust", "yeo-johnson", "arcsinh", False}, default="auto"
        Of the inputs, per column, learned on the training rows.
    random_state : int, Generator, RandomState or None, default=None
        Of draws, folds and the subset of rows.
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
        Of the cosine and the sine of each frequency in turn, over the root of F, times nu_k^2;
        q is 1 for two classes, C for more.
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

    def fit(self, X: ArrayLike, y: ArrayLike) -> RFOClassifier:
        """Choose components and penalty, and optimise on all rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            Labels of two or more classes.

        Returns
        -------
        self
        """
        self._forget()
        search = self._search()
        rows, classes = self._checked_classes(X, y)
        Z = self.standardizer_.transform(rows)
        entropy = entropy_of(self.random_state)
        self._keep(search.run(entropy, Z, classes.targets, classes.loss))
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
        Of the squared coefficients; those that are tried. 0.01, 1 and 100 by default.
    steps : sequence of int, default=(5, 20, 100)
        Of L-BFGS; numbers of them that are tried.
    spread : {"full", "diagonal"}, default="full"
        Whether a component has a matrix M_k, as in the paper, or a scale for each input.
    n_folds : int, default=3
        Of the cross-validation, by squared error.
    selection_rows : int, default=1000
        Rows that components, penalty and steps are chosen on, at most.
    standardize : {"auto", "std", "robust", "yeo-johnson", "arcsinh", False}, default="auto"
        Of the inputs, per column, learned on the training rows.
    random_state : int, Generator, RandomState or None, default=None
        Of draws, folds and the subset of rows.
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
        Of the cosine and the sine of each frequency in turn, over the root of F, times nu_k^2;
        q is 1.
    intercept_ : ndarray of shape (q,)
        Of the standardised target; penalised like the coefficients.
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

    def fit(self, X: ArrayLike, y: ArrayLike) -> RFORegressor:
        """Choose components and penalty, and optimise on all rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)

        Returns
        -------
        self
        """
        self._forget()
        search = self._search()
        rows, u = self._checked_numbers(X, y)
        Z = self.standardizer_.transform(rows)
        found = search.run(entropy_of(self.random_state), Z, u[:, np.newaxis], squared)
        self._keep(found)
        # The loss is half the squared error.
        self.cv_errors_ = 2.0 * found.errors
        return self
