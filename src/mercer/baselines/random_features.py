"""Random features of one kernel (`RKSRegressor`, `RKSClassifier`) or of several (`MKL...`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mercer.baselines.base import RandomFeatureClassifier, RandomFeatureRegressor

__all__ = ["MKLClassifier", "MKLRegressor", "RKSClassifier", "RKSRegressor"]


class RKSRegressor(RandomFeatureRegressor):
    """Ridge regression on random Fourier features of the RBF kernel: random kitchen sinks.

    Frequencies are drawn once, from N(0, I / s^2), and kept; the length scale s and the ridge
    penalty are chosen by cross-validation on the training rows. The intercept is not penalised.

    See Also
    --------
    MKLRegressor : features of several kernels at several scales.

    Notes
    -----
    Features by eqs. (2) and (3) of [1]_, regression as in its section 4.2. Normal equations are
    summed over blocks of rows: cost O(n m^2), memory O(m^2) beside the rows.

    References
    ----------
    .. [1] J. B. Oliva et al., Bayesian nonparametric kernel-learning, AISTATS (2016).
    .. [2] A. Rahimi and B. Recht, Random features for large-scale kernel machines, NIPS (2007).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 60)[:, np.newaxis]
    >>> model = RKSRegressor(n_features=100, random_state=0).fit(X, np.sin(2 * X[:, 0]))
    >>> bool(abs(model.predict([[0.5]])[0] - np.sin(1.0)) < 0.01)
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class MKLRegressor(RandomFeatureRegressor):
    """Ridge regression on the concatenated random features of several kernels.

    The sum of kernels K = sum_k alpha_k K_k of multiple kernel learning is that of the features of
    all kernels side by side, each scaled by the root of its weight; a linear model of the features
    side by side learns weights of its own. Frequencies are drawn once and kept; one factor of all
    length scales and the ridge penalty are chosen by cross-validation on the training rows.

    Parameters
    ----------
    kernels : sequence of str, default=("laplace", "rbf", "cauchy")
        "rbf": exp(-|t|^2 / (2 s^2)). "laplace": exp(-sum_l |t_l| / s). "cauchy":
        prod_l 1 / (1 + t_l^2 / s^2).
    scales : sequence of float, default=(0.5, 1.0, 2.0, 4.0)
        Length scales s of each kernel, in median distances of the standardised rows:
        Euclidean, or city-block for "laplace".

    See Also
    --------
    RKSRegressor : features of one kernel.

    Notes
    -----
    Implements eqs. (16) and (17) of [1]_. The paper does not say which scales its kernels have, nor
    which form the Laplace and Cauchy kernels of several inputs have; products over inputs are the
    forms whose frequencies have independent components.

    References
    ----------
    .. [1] J. B. Oliva et al., Bayesian nonparametric kernel-learning, AISTATS (2016).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 60)[:, np.newaxis]
    >>> model = MKLRegressor(n_features=120, random_state=0).fit(X, np.abs(X[:, 0]))
    >>> bool(abs(model.predict([[1.5]])[0] - 1.5) < 0.05)
    True
    """

    kernels: Sequence[str] = ("laplace", "rbf", "cauchy")
    scales: Sequence[float] = (0.5, 1.0, 2.0, 4.0)


class RKSClassifier(RandomFeatureClassifier):
    """Logistic regression on random Fourier features of the RBF kernel: random kitchen sinks.

    Frequencies are drawn once, from N(0, I / s^2), and kept; the length scale s and the ridge
    penalty are chosen by cross-validation on the training rows. Several classes: softmax.

    See Also
    --------
    RKSRegressor : the same for numbers.
    MKLClassifier : features of several kernels at several scales.

    Notes
    -----
    As in section 4.3 of [1]_. A step costs O(n m), memory is that of the rows.

    References
    ----------
    .. [1] J. B. Oliva et al., Bayesian nonparametric kernel-learning, AISTATS (2016).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(80, noise=0.2, random_state=0)
    >>> model = RKSClassifier(n_features=48, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """


@dataclass(kw_only=True, eq=False, repr=False)
class MKLClassifier(RandomFeatureClassifier):
    """Logistic regression on the concatenated random features of several kernels.

    Frequencies are drawn once and kept; one factor of all length scales and the ridge penalty are
    chosen by cross-validation on the training rows. Several classes: softmax.

    Parameters
    ----------
    kernels : sequence of str, default=("laplace", "rbf", "cauchy")
        "rbf": exp(-|t|^2 / (2 s^2)). "laplace": exp(-sum_l |t_l| / s). "cauchy":
        prod_l 1 / (1 + t_l^2 / s^2).
    scales : sequence of float, default=(0.5, 1.0, 2.0, 4.0)
        Length scales s of each kernel, in median distances of the standardised rows:
        Euclidean, or city-block for "laplace".

    See Also
    --------
    MKLRegressor : the same for numbers.
    RKSClassifier : features of one kernel.

    Notes
    -----
    Eqs. (16) and (17) of [1]_, with a logistic model as in its section 4.3.

    References
    ----------
    .. [1] J. B. Oliva et al., Bayesian nonparametric kernel-learning, AISTATS (2016).

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(80, noise=0.2, random_state=0)
    >>> model = MKLClassifier(n_features=48, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    kernels: Sequence[str] = ("laplace", "rbf", "cauchy")
    scales: Sequence[float] = (0.5, 1.0, 2.0, 4.0)
