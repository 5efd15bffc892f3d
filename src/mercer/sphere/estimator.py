"""`KernelGibbsClassifier`: the scikit-learn estimator of the method."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.data.csv_cache import cache_folder, in_folder
from mercer.data.source import RowSource
from mercer.errors import UsageError
from mercer.estimation.base import KernelEstimator, by_partition, encode_classes, is_dask
from mercer.estimation.model_file import ModelParts
from mercer.estimation.run import check_choice, check_common, check_count, fitting, run_options
from mercer.estimation.standardize import (
    METHODS,
    SEVERAL_COLUMNS,
    Standardizer,
    fit_in_parts,
    identity,
    indicators,
    rows_that_weigh,
    weigh_inputs,
    with_scales_by_evidence,
)
from mercer.estimation.tasks import classes_of_rows
from mercer.likelihoods.label_noise import (
    Confusion,
    LabelNoise,
    class_rates,
    confusion_of_rates,
    fixed_rate,
    learned_class_rates,
    learned_confusion,
    learned_rate,
    row_rates,
)
from mercer.numerics.cholesky import one_blas_thread
from mercer.posterior.draws import Table, finite_or_none
from mercer.posterior.labels import covariance_of_draws
from mercer.random import stream
from mercer.sampling.checkpoint import digest_arrays
from mercer.sphere.fitting import (
    LARGEST_WHOLE,
    FittedSphere,
    Problem,
    check_sampler,
    comparison_table,
    evidence_curve,
    fit_sphere,
    mean_rates,
    say_comparison,
)
from mercer.sphere.prediction import PosteriorSample, finite_log_score, recorded_probability, votes
from mercer.sphere.propagation import LARGEST_PROPAGATED
from mercer.sphere.sampler import MOVES
from mercer.sphere.saved import parts_of, restore
from mercer.sphere.selection import Candidate, check_arguments, make_candidates
from mercer.sphere.space import FeatureSpace, SpaceArguments, StoredInputs, extremes, some_columns
from mercer.sphere.tempering import EvidenceCurve

__all__ = [
    "LEARN",
    "LEARN_PER_CLASS",
    "KernelGibbsClassifier",
    "NoiseArgument",
    "SampleClassifier",
    "check_noise",
]


# From the argument ``noise_rate`` to what errors cost.

LEARN, LEARN_PER_CLASS = "learn", "learn per class"

# Candidates are compared at this rate where labels are certain: a run may see no classifier
# without any error.
_ALMOST_CERTAIN = 1e-4


@dataclass(frozen=True)
class NoiseArgument:
    """The argument with its prior, checked; what it means follows once the labels are known."""

    rate: Any
    prior: tuple[float, float]

    @property
    def is_learned(self) -> bool:
        """Whether rates are learned."""
        return isinstance(self.rate, str)

    def costs(self, labels: NDArray[np.int64], classes: NDArray[Any]) -> LabelNoise | Confusion:
        """Costs of errors for labels 0..C-1; a `UsageError` where rates do not fit them or rows."""
        n, n_classes = len(labels), len(classes)
        limit = (n_classes - 1) / n_classes
        if isinstance(self.rate, str):
            if self.rate == LEARN:
                return learned_rate(self.prior, n, n_classes)
            return self._by_class(labels, n_classes)
        if isinstance(self.rate, Mapping):
            rates = _rates_by_class(self.rate, classes, limit)
            if n_classes == 2:
                return class_rates(rates, labels)
            return Confusion(labels, confusion_of_rates(rates))
        rates = np.asarray(self.rate, dtype=np.float64)
        if rates.ndim == 2 and rates.shape[0] == rates.shape[1]:
            _check_matrix(rates, n_classes)
            if n_classes == 2:
                return class_rates(1.0 - rates.diagonal(), labels)
            return Confusion(labels, rates)
        _check_range(rates, limit)
        if rates.ndim == 0:
            return fixed_rate(float(rates), n, n_classes)
        if rates.shape != (n,):
            raise UsageError(
                f"noise_rate as an array needs one rate for each of the {n} rows; "
                f"got shape {rates.shape}"
            )
        return row_rates(rates, n_classes)

    def _by_class(self, labels: NDArray[np.int64], n_classes: int) -> LabelNoise | Confusion:
        """Costs with rates of each class, learned."""
        if n_classes == 2:
            return learned_class_rates(self.prior, labels, has_table=len(labels) <= LARGEST_WHOLE)
        return learned_confusion(self.prior, labels, n_classes)

    def for_comparison(
        self, costs: LabelNoise | Confusion, is_propagated: bool = False
    ) -> Callable[[NDArray[np.int64]], LabelNoise]:
        """Costs that models of two classes are compared under: those that were given, or one rate.

        One learned rate also where each of several classes is compared with the others and the
        rates that were given differ. Propagation compares several classes at one that is learned.
        """
        if not isinstance(self.rate, str | Mapping) and np.ndim(self.rate) == 0:
            rate = max(float(self.rate), _ALMOST_CERTAIN)
            return lambda rows: fixed_rate(min(rate, 0.5), len(rows))
        if isinstance(costs, LabelNoise) and costs.prior is None and costs.n_classes == 2:
            return lambda rows: costs.among(rows, _ALMOST_CERTAIN)
        n_classes = costs.n_classes if is_propagated and self.is_learned else 2
        return lambda rows: learned_rate(self.prior, len(rows), n_classes)


def check_noise(rate: Any, prior: Any) -> NoiseArgument:
    """Check what can be checked before the labels are known; a `UsageError` names the range."""
    try:
        a, b = (float(value) for value in prior)
    except (TypeError, ValueError):
        a = b = -1.0
    if not (0.0 < a < np.inf and 0.0 < b < np.inf):
        raise UsageError(f"noise_prior must be two numbers above 0, (a, b); got {prior!r}")
    if isinstance(rate, str):
        if rate not in (LEARN, LEARN_PER_CLASS):
            raise UsageError(
                f"noise_rate must be a number in [0, 0.5], {LEARN!r}, {LEARN_PER_CLASS!r}, a "
                f"dict of class and rate, one rate a row, or a matrix of classes; got {rate!r}"
            )
        return NoiseArgument(rate, (a, b))
    if not isinstance(rate, Mapping):
        try:
            values = np.asarray(rate, dtype=np.float64)
        except (TypeError, ValueError):
            raise UsageError(f"noise_rate must be a number in [0, 0.5]; got {rate!r}") from None
        _check_range(values, 1.0)
    return NoiseArgument(rate, (a, b))


def _check_range(rates: NDArray[np.float64], limit: float) -> None:
    is_right = (rates >= 0.0) & (rates <= limit)  # False for NaN
    if not is_right.all():
        wrong = rates[~is_right].ravel()[0] if rates.ndim else float(rates)
        shown = 0.5 if limit in (0.5, 1.0) else round(limit, 4)
        raise UsageError(f"noise_rate must be in [0, {shown}]; got {wrong}")


def _check_matrix(matrix: NDArray[np.float64], n_classes: int) -> None:
    """P(recorded y | class c): rows that sum to one, the diagonal largest."""
    if matrix.shape != (n_classes, n_classes):
        raise UsageError(
            f"noise_rate as a matrix needs a row and a column for each of the {n_classes} classes; "
            f"got shape {matrix.shape}"
        )
    is_law = (matrix >= 0.0).all() and np.allclose(matrix.sum(axis=1), 1.0, rtol=0.0, atol=1e-9)
    if not is_law or (matrix.diagonal() < matrix.max(axis=1)).any():
        raise UsageError(
            "noise_rate as a matrix has P(recorded as the column's class | class of the row): rows "
            "that sum to 1, the diagonal the largest entry of each"
        )


def _rates_by_class(
    rate: Mapping[Any, float], classes: NDArray[Any], limit: float
) -> NDArray[np.float64]:
    known = {label: float(value) for label, value in rate.items()}
    missing = [label for label in classes.tolist() if label not in known]
    extra = [label for label in known if label not in classes.tolist()]
    if missing or extra:
        raise UsageError(
            f"noise_rate names the classes {list(known)}, the target has {classes.tolist()}"
        )
    rates = np.array([known[label] for label in classes.tolist()])
    _check_range(rates, limit)
    return rates


# The prediction methods of the estimator, from a posterior sample of classifiers.

Array = NDArray[np.float64]


class SampleClassifier(ClassifierMixin, KernelEstimator):  # type: ignore[misc]
    """Base of `KernelGibbsClassifier`: all that needs the drawn classifiers only."""

    _sample: PosteriorSample

    @property
    def _plots(self) -> tuple[str, ...]:
        has_curve = self.evidence_curve_ is not None
        is_plane = len(self.feature_labels_) == 2 and len(self.classes_) == 2
        return ("label_errors",) + ("evidence_curve",) * has_curve + ("boundaries",) * is_plane

    @by_partition
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Class of each row of X, shape (m,), in the type of the labels.

        With decision="vote" that of most classifiers, eq. (4), ties by `clean_proba`; with
        "bayes_point" that of their mean, eq. (5).
        """
        check_is_fitted(self)
        Z = self._standardized(X)
        if self.decision == "bayes_point":
            values = self._sample.bayes_point_values(Z)
            chosen = (values > 0.0).astype(int) if values.ndim == 1 else values.argmax(axis=0)
        else:
            chosen = self._voted(Z, self._recorded(Z, is_clean=True))
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    @by_partition
    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the label as it would be recorded, noise included.

        Returns
        -------
        ndarray of shape (m, C)
            In the order of ``classes_``; never exactly 0 or 1.
        """
        check_is_fitted(self)
        return self._recorded(self._standardized(X))

    @by_partition
    def clean_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the true class, shape (m, C): those of the draws, averaged."""
        check_is_fitted(self)
        return self._clean(self._standardized(X))

    @by_partition
    def decision_function(self, X: ArrayLike) -> Array:
        """What `predict` is ordered by.

        Returns
        -------
        ndarray of shape (m,) for two classes, (m, C) for more
            decision="vote": log odds (log probabilities) of the true class, `clean_proba`, just
            beyond 0 (the largest other) where these are against the vote; "bayes_point": the value
            of the mean of the unit classifiers.
        """
        check_is_fitted(self)
        Z = self._standardized(X)
        if self.decision == "bayes_point":
            return np.asarray(self._sample.bayes_point_values(Z).T)
        p = self._recorded(Z, is_clean=True)
        values, winner = np.log(p), (np.arange(len(p)), self._voted(Z, p))
        others = values.copy()
        others[winner] = -np.inf
        values[winner] = np.maximum(values[winner], others.max(axis=1) + _BEYOND)
        return np.asarray(values[:, 1] - values[:, 0] if values.shape[1] == 2 else values)

    def margin_draws(self, X: ArrayLike) -> Array:
        """Latent values f of new rows for each drawn classifier: the committee.

        Returns
        -------
        ndarray of shape (n_draws in all, m), or (n_draws in all, C, m) for several classes
            Positive where the classifier chooses ``classes_[1]``. The part of f outside the span
            of the training rows, which no draw knows, is left out.
        """
        check_is_fitted(self)
        return self._sample.latent(self._standardized(X))[0]

    def vote_margin(self, X: ArrayLike) -> Array:
        """Share of votes of the winning class less that of the second, shape (m,), in [0, 1].

        Rows with a small margin are the ones to leave undecided, section 4.
        """
        check_is_fitted(self)
        counts = np.sort(self._votes(self._standardized(X)), axis=1)
        return np.asarray((counts[:, -1] - counts[:, -2]) / self.posterior_.n_total)

    def sample_proba(self, X: ArrayLike, n_samples: int = 100) -> Array:
        """P(true class) under some of the drawn classifiers, evenly spaced: a committee.

        Returns
        -------
        ndarray of shape (n_samples, m, C)
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples, 1)
        v = self._sample.class_probability(self._standardized(X))
        picked = np.linspace(0, len(v) - 1, n_samples).round().astype(int)
        return np.asarray(np.moveaxis(v[picked], 1, 2))

    def _function_draws(
        self, parts: Sequence[Array], n_draws: int, rng: np.random.Generator
    ) -> list[Array]:
        sample = self._sample
        chosen = rng.permutation(len(sample.model))[:n_draws]
        chosen = np.resize(chosen, n_draws)  # fewer draws than asked for come again
        few = replace(
            sample,
            model=sample.model[chosen],
            coefficients=sample.coefficients[chosen],
            length=sample.length[chosen],
            rates=sample.rates[chosen],
        )
        return [few.drawn_probability(Z, rng) for Z in parts]

    def _standardized(self, X: ArrayLike) -> Array:
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            return self._new_rows(X)
        return super()._standardized(X)

    def _votes(self, Z: Array) -> NDArray[np.int64]:
        sample = self._sample
        return np.concatenate([votes(sample.latent(Z[rows])[0]) for rows in sample.blocks(len(Z))])

    def _voted(self, Z: Array, p: Array) -> NDArray[np.int64]:
        """Position of the class with most votes; ties by probabilities p (m, C)."""
        return np.asarray(np.argmax(self._votes(Z) + 0.5 * p, axis=1))

    def _information(self, Z: Array) -> Array:
        sample = self._sample
        return np.concatenate([sample.information(Z[rows]) for rows in sample.blocks(len(Z))])

    def _covariance(self, Z: Array) -> Array:
        outside = self._sample.models[0].space.outside(Z)
        return np.asarray(covariance_of_draws(self._sample.latent(Z)[0]) + outside)

    def _clean(self, Z: Array) -> Array:
        sample = self._sample
        blocks = [sample.class_probability(Z[rows]).mean(axis=0) for rows in sample.blocks(len(Z))]
        return np.concatenate(blocks, axis=1).T

    def _recorded(self, Z: Array, *, is_clean: bool = False) -> Array:
        """Probabilities never 0 or 1 of the recorded class, or of the true one: (m, C)."""
        sample, blocks = self._sample, []
        for rows in sample.blocks(len(Z)):
            v = sample.class_probability(Z[rows])
            p = (v if is_clean else recorded_probability(v, sample.rates)).mean(axis=0)
            blocks.append(finite_log_score(p, v, has_noise=sample.has_noise and not is_clean))
        return np.concatenate(blocks, axis=1).T


# Lead of the voted class in the decision function, where probabilities are against it.
_BEYOND = 1e-9
_BLOCK_ROWS = 16384
# Decompositions of fewer rows are no faster on several threads, which spin meanwhile.
_ONE_THREAD = 1000


@dataclass(kw_only=True, eq=False, repr=False)
class KernelGibbsClassifier(SampleClassifier):
    """Kernel classifiers drawn from their posterior when some labels may be wrong.

    A classifier is a direction in the feature space of a kernel, a priori uniform. A recorded
    label is wrong with probability ``noise_rate``, wherever the row lies; overlap of the classes
    near the boundary is another matter, and the ``nugget`` takes it. Kernel, nugget and rate are
    learned by evidence unless they are given.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        "rbf", "matern12", "matern32", "matern52", "linear", "polynomial"; "auto" compares rbf,
        matern32 and linear by evidence; a sum such as "rbf + linear", whose parts have equal
        variances and one length scale; "precomputed" takes Gram matrices in the place of X (new
        rows have the variance of the training rows where those have the same, else none beyond
        them); a kernel of `mercer.kernels`; or a callable of two matrices of rows.
    lengthscale : {"learn", "median"} or float, default="learn"
        In units of the (standardised) inputs. "median": the median distance between rows;
        "learn": a quarter to four times it, averaged by evidence.
    noise_rate : float, {"learn", "learn per class"}, dict or array, default="learn"
        P(label is wrong), in [0, 0.5] (up to (C - 1)/C with C classes): known; learned; a dict of
        true class and P(it is recorded as another); a matrix (C, C) of P(recorded as the column's
        class | class of the row), its diagonal the largest of each row; or one rate for each row,
        0 for rows known to be right. "learn" averages over one rate and one for each of two
        classes by evidence (chains: up to 5000 rows), and ``notes_`` gives their shares of the
        draws; "learn per class" learns a rate for each, or the matrix of several classes.
    noise_prior : tuple of float, default=(1.0, 1.0)
        Beta prior (a, b) of a learned rate, cut off at the end of its range. Of a matrix: the
        Dirichlet prior of a row in which b goes to the diagonal and the others share a.
    nugget : "learn" or float, default="learn"
        Feature noise: variance added to the diagonal of the Gram matrix (of mean 1 without it and
        the intercept). "learn": 0, 0.1, 0.4, 1.5, averaged by evidence. Chains of finite features
        have none.
    rank : int or None, default=None
        Number of finite features in the place of the exact kernel, for many rows. With "nystroem"
        and ``sampler="propagation"`` what they lack of the kernel is noise of each row by itself.
    approximation : {"nystroem", "fourier"}, default="nystroem"
        The features that ``rank`` counts.
    decision : {"vote", "bayes_point"}, default="vote"
        How ``predict`` decides: by the majority of the drawn classifiers, or by their mean.
    sampler : {"auto", "hmc", "lines", "great_circle", "tempered", "propagation"}, default="auto"
        Moves of the chains: reflecting and refracting HMC, Gibbs moves along lines, the paper's
        great circles; "auto" takes a cycle that suits the rank; "tempered" adds rungs at higher
        noise that swap with the chain, for few rows and several modes. "propagation" takes
        independent draws from the normal law that expectation propagation finds: approximate, of
        rows in memory, seconds where chains take minutes (of several classes for many rows only,
        at one rate or one a row); ``label_error_proba_`` is then what it says itself.
    fit_intercept : bool, default=True
        Adds 1 to the kernel, whose mean variance is 1; not for a precomputed one.
    standardize : str or False, default="auto"
        As for `GPClassifier`. "auto" leaves a Gram matrix, and the rows that a callable kernel
        takes, as they are: its scales are in their units. It asks the targets for one scale, for
        warps, and for weights of the inputs, which ``notes_`` names, where kernel and length scale
        are given by names only.
    max_seconds : float or None, default=None
        Stop after a whole step once so much time has passed; ``notes_`` says so. Up to half of it
        goes into the comparison of models, which is cut short by then, and above 5000 rows one of
        them gives draws, after 60 steps of warm-up; not where there is a checkpoint, since a run
        that goes on must find the same models.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Class labels, sorted.
    posterior_ : Draws
        "coefficients" of the classifiers, "length", "is_wrong" (rows whose label the classifier
        contradicts), "n_errors", "noise_rate", "margin" (cosines, at up to 20 fixed rows),
        "log_likelihood" (nats), "model" (which of the averaged ones); of several classes with
        rates by class "confusion", P(recorded as the column's class | class of the row).
    label_error_proba_ : ndarray of shape (n,)
        P(the recorded label is wrong) of each training row.
    label_proba_ : ndarray of shape (n, C)
        P(class) of each training row, its recorded label taken into account.
    recorded_ : ndarray of shape (n,)
        Label of each training row, as it was given.
    noise_rate_ : float or dict
        Posterior mean of the rate; of each true class where rates are by class in some draws; the
        mean where they are by row.
    evidence_curve_ : EvidenceCurve or None
        Log evidence (nats) of noise rates for the best model: ``noise_rates``, ``log_evidence``,
        ``standard_error``. None for several classes, or without a comparison. Above 5000 rows, this
        and the evidence below are of 2000 of them.
    log_evidence_, log_evidence_se_ : float or None
        Of the best model, in nats, with its standard error, under the rates that were given (1e-4
        where they are less); averaged over one rate and one a class where both were compared, the
        latter a priori three times as likely.
    compared_ : Table
        The models that were compared, with evidence, share of the draws and posterior probability;
        without a standard error those that an approximation of the evidence was enough to drop.
        Draws are of models with 95 % of the probability; where those are more than six models,
        each with its noise, of six, such that shares are probabilities on average.
    bayes_point_ : ndarray of shape (n_models, ...)
        Coefficients of the mean classifier, one row for each model that gave draws.

    Raises
    ------
    DataError
        If the rows cannot be separated at rate 0, if a Gram matrix is indefinite, or if there are
        too many rows for an exact kernel. It is a ValueError.

    Notes
    -----
    Implements [1]_, with the corrections and the samplers of `mercer.sphere.sampler`. With a rate
    of q the labels say the same of w as the opposite labels at 1 - q say of -w: if more than half
    of the labels are wrong the opposite classifier is found, and nothing in the data can tell.

    References
    ----------
    .. [1] T. Graepel, R. Herbrich. The Kernel Gibbs Sampler. NIPS 13, 2001.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(60, noise=0.1, random_state=0)
    >>> y[7] = 1 - y[7]
    >>> model = KernelGibbsClassifier(n_draws=50, n_warmup=50, random_state=0).fit(X, y)
    >>> model.label_error_proba_.argmax()
    np.int64(7)
    """

    _after_draws = ("decision",)

    kernel: Any = "rbf"
    lengthscale: float | str = "learn"
    noise_rate: Any = "learn"
    noise_prior: tuple[float, float] = (1.0, 1.0)
    nugget: float | str = "learn"
    rank: int | None = None
    approximation: str = "nystroem"
    decision: str = "vote"
    sampler: str = "auto"
    fit_intercept: bool = True
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

    @classmethod
    def paper(cls) -> KernelGibbsClassifier:
        """Return an unfitted classifier with the settings of the paper, section 5.

        A linear kernel without intercept or nugget, the Bayes point of 100 draws by great
        circles, noise rate 0.05. Inputs as they are.
        """
        return cls(
            kernel="linear",
            noise_rate=0.05,
            nugget=0.0,
            decision="bayes_point",
            sampler="great_circle",
            fit_intercept=False,
            standardize=False,
            n_draws=100,
            n_chains=1,
        )

    @fitting()
    def fit(self, X: Any, y: Any) -> KernelGibbsClassifier:
        """Draw classifiers from their posterior.

        Parameters
        ----------
        X : array or frame of shape (n, d), RowSource, or Dask array or frame
            Inputs: finite numbers; a Gram matrix of shape (n, n) for kernel="precomputed". Of what
            `mercer.data.open` gives, and of Dask collections, up to 5000 rows are read; more, of
            two classes and with a ``rank`` or a linear kernel, become a file of features in the
            cache folder, or stay with the workers, which keep their features.
        y : array of shape (n,), or str
            Labels of two or more classes; with a RowSource or a frame, the name of their column.
        """
        started = time.monotonic()
        noise, space = self._check_arguments()
        self._forget()
        inputs: Array | RowSource
        if isinstance(X, RowSource) or is_dask(X):
            inputs, labels = self._stored_rows(X, y, space)
        else:
            inputs, labels = self._rows_in_memory(X, y)
        self.feature_labels_ = self._labels()
        are_many = isinstance(inputs, RowSource) and len(labels) > LARGEST_WHOLE
        with _scratch() if are_many else nullcontext() as folder:
            Xs, said = self._standardize(inputs, labels, space, folder)
            options = run_options(self, _digest(Xs, labels), started)
            problem, notes = self._problem(Xs, labels, noise, space, options.entropy)
            self._set_fitted(fit_sphere(problem, options), labels, (*said, *notes))
        self._warn_of_convergence()
        return self

    def _rows_in_memory(self, X: Any, y: Any) -> tuple[Array, NDArray[np.int64]]:
        """Check inputs and labels, and learn the classes."""
        # Many rows in single precision stay in it: they are never squared into a Gram matrix.
        shape = getattr(X, "shape", (0, 0))
        is_many = len(shape) == 2 and shape[0] > LARGEST_WHOLE
        dtype = [np.float64, np.float32] if is_many else np.float64
        X, y = self._training_data(X, y, dtype=dtype, ensure_min_samples=2)
        self.classes_, labels = encode_classes(np.asarray(y))
        return np.asarray(X), labels

    def _stored_rows(
        self, X: Any, y: Any, space: SpaceArguments
    ) -> tuple[RowSource, NDArray[np.int64]]:
        """Check rows on a disk or a cluster, the target last, and learn the classes."""
        from mercer.estimation.table_encoder import given_rows

        if space.is_precomputed:
            raise UsageError(
                "kernel='precomputed' takes a Gram matrix in memory, no rows of a disk"
            )
        rows = given_rows(self, X, y)
        assert rows is not None
        self.classes_, labels = classes_of_rows(self, rows)
        self._refuse_many(rows.n_rows, len(self.classes_))
        return rows, labels

    def _refuse_many(self, n: int, n_classes: int) -> None:
        """Refuse more rows on a disk than the kernel, or so many classes, can do with."""
        self._check_arguments()[1].refuse_many(n)
        if n > LARGEST_WHOLE and n_classes > 2:
            raise UsageError(
                f"{type(self).__name__} tells more than two classes of more than {LARGEST_WHOLE} "
                f"rows apart in memory only: there are {n_classes} classes; give arrays (a command "
                "without --engine), or learn from some of the rows"
            )

    def _standardize(
        self,
        X: Array | RowSource,
        labels: NDArray[np.int64],
        space: SpaceArguments,
        folder: Path | None,
    ) -> tuple[Array | StoredInputs, tuple[str, ...]]:
        """Learn the standardisation, apply it, of many rows on a disk as they are read, with notes.

        The kernel has no weights of the inputs: these are in it, and several may have one scale.
        """
        said: tuple[str, ...] = ()
        if isinstance(X, RowSource) and folder is None:
            X = X.take(np.arange(X.n_rows))[:, :-1].copy()
        method = False if self.standardize == "auto" and space.is_callable else self.standardize
        if space.is_precomputed:  # a constant column says something there
            self.standardizer_ = identity(len(self.feature_labels_))
        else:
            parts: Iterable[Array]
            if isinstance(X, RowSource):
                parts = [extremes(X)] if method is False else some_columns(X)
            else:
                parts = [X]
            self.standardizer_ = fit_in_parts(parts, method, self.feature_labels_)
            is_named = isinstance(self.kernel, str) and isinstance(self.lengthscale, str)
            if method == "auto" and is_named:  # a length scale that is given is in their units
                rows = rows_that_weigh(len(labels))
                some = X.take(rows)[:, :-1] if isinstance(X, RowSource) else X[rows]
                T, names = indicators(labels[rows]), self.feature_labels_
                self.standardizer_, said = with_scales_by_evidence(
                    self.standardizer_, some, T, SEVERAL_COLUMNS
                )
                if self.kernel != "linear":
                    self.standardizer_, weighed = weigh_inputs(self.standardizer_, some, T, names)
                    said += weighed
        if isinstance(X, RowSource):
            assert folder is not None
            return StoredInputs(X, self.standardizer_, folder), said
        is_unchanged = method is False and bool(self.standardizer_.scale.all())
        is_kept = space.is_precomputed or (len(X) > LARGEST_WHOLE and is_unchanged)
        return (X if is_kept else _transformed(self.standardizer_, X)), said

    def _problem(
        self,
        Xs: Array | StoredInputs,
        labels: NDArray[np.int64],
        noise: NoiseArgument,
        space: SpaceArguments,
        entropy: int,
    ) -> tuple[Problem, tuple[str, ...]]:
        """List candidates and costs of errors, and what a user should be told."""
        costs = noise.costs(labels, self.classes_)
        check_sampler(self.sampler, costs)
        if isinstance(Xs, StoredInputs) and space.is_propagated:
            raise UsageError(
                "sampler='propagation' takes rows in memory; give arrays (a command without "
                "--engine), or take 'auto'"
            )
        n_features = Xs.shape[1] if space.rank is None else space.rank
        if space.is_propagated and len(Xs) * n_features > LARGEST_PROPAGATED:
            raise UsageError(
                f"sampler='propagation' holds {len(Xs)} rows of {n_features} features in memory, "
                f"{LARGEST_PROPAGATED} numbers at most; use 'auto', or fewer rows or features"
            )
        with one_blas_thread() if len(Xs) < _ONE_THREAD else nullcontext():
            candidates, notes = make_candidates(space, Xs, stream(entropy, "rows", 2))
        are_few = len(Xs) <= LARGEST_WHOLE
        is_compared = len(candidates) > 1 or are_few
        noise_of = noise.for_comparison(costs, space.is_propagated) if is_compared else None
        by_class: LabelNoise | None = None
        if noise.is_learned and len(self.classes_) == 2 and (are_few or space.is_propagated):
            if isinstance(costs, LabelNoise) and costs.is_by_class:
                by_class = costs
            else:
                by_class = learned_class_rates(noise.prior, labels, has_table=are_few)
        self.row_names_ = self._row_names(len(Xs))
        known = self._nearby
        if np.shape(known) != (len(candidates), 2) or np.isnan(known).all():  # of other arguments
            known = None
        problem = Problem(
            candidates, labels, costs, noise_of, self.sampler, self.row_names_, by_class, known
        )
        return problem, notes

    @property
    def _leaves(self) -> str:  # of finite features there may be too many rows to compare
        return "" if self._check_arguments()[1].is_finite else "evidence"

    def _to_parts(self) -> ModelParts:
        return parts_of(self)

    @classmethod
    def _from_parts(cls, parts: ModelParts) -> KernelGibbsClassifier:
        restored = restore(parts)
        model = cls(**restored.params)
        model._check_arguments()
        restored.common.put_into(model)
        model._sample = restored.sample
        for name, value in restored.fitted.items():
            setattr(model, name, value)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    def _check_arguments(self) -> tuple[NoiseArgument, SpaceArguments]:
        space = SpaceArguments(
            self.kernel, self.lengthscale, self.nugget, self.rank, self.approximation,
            self.fit_intercept, self.sampler == "propagation",
        )  # fmt: skip
        check_arguments(space)
        check_choice("decision", self.decision, ("vote", "bayes_point"))
        check_choice("sampler", self.sampler, ("auto", "tempered", "propagation", *MOVES))
        check_choice("standardize", self.standardize, METHODS)
        noise = check_noise(self.noise_rate, self.noise_prior)
        check_common(self)
        return noise, space

    def _set_fitted(
        self, fitted: FittedSphere, labels: NDArray[np.int64], notes: tuple[str, ...]
    ) -> None:
        draws, self._left = fitted.draws, fitted.left
        self.posterior_, self.diagnostics_ = draws, fitted.diagnostics
        self._sample = PosteriorSample.of(tuple(map(_without_files, fitted.models)), draws)
        self.compared_: Table = comparison_table(fitted)
        self.notes_ = (*notes, *fitted.notes, *say_comparison(fitted))
        curve = evidence_curve(fitted)
        self.evidence_curve_: EvidenceCurve | None = curve
        best = fitted.compared[0] if fitted.compared and curve is not None else None
        self.log_evidence_ = None if best is None else best.log_evidence
        self.log_evidence_se_ = None if best is None else finite_or_none(best.standard_error)
        self.recorded_ = self.classes_[labels]
        self.label_proba_ = fitted.label_proba
        self.label_error_proba_ = 1.0 - fitted.label_proba[np.arange(len(labels)), labels]
        self.noise_rate_ = mean_rates(self._sample.rates, self.classes_)
        self.bayes_point_ = self._sample.bayes_point


def _digest(X: Array | StoredInputs, labels: NDArray[np.int64]) -> str:
    """What tells the training data from others."""
    return X.rows.digest() if isinstance(X, StoredInputs) else digest_arrays(X, labels)


def _transformed(standardizer: Standardizer, X: Array) -> Array:
    """Standardise rows block by block, so that many rows in single precision stay in it."""
    Z = np.empty_like(X)
    for begin in range(0, len(X), _BLOCK_ROWS):
        rows = slice(begin, begin + _BLOCK_ROWS)
        Z[rows] = standardizer.transform(X[rows])
    return Z


def _without_files(model: Candidate) -> Candidate:
    """A model that holds no rows on a disk: predictions need none."""
    space = model.space
    if isinstance(space, FeatureSpace) and isinstance(space.X, StoredInputs):
        space = replace(space, X=np.empty((0, space.X.shape[1])))
    return replace(model, space=space)


@contextmanager
def _scratch() -> Iterator[Path]:
    """Make a folder in the cache for the time of a fit; of a process that is killed it goes too."""
    from joblib.externals.loky.backend import resource_tracker

    with (
        in_folder(cache_folder()),
        TemporaryDirectory(prefix="fit-", dir=cache_folder(), ignore_cleanup_errors=True) as folder,
    ):
        resource_tracker.register(folder, "folder")
        try:
            yield Path(folder)
        finally:
            resource_tracker.unregister(folder, "folder")
