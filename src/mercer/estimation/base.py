"""What all estimators share: common arguments, names of columns, forgetting, saving."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone, is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from mercer.errors import ConvergenceWarning, DataError, UsageError, rows_without_names, warn_user
from mercer.estimation.model_file import FromFile, write_model
from mercer.estimation.run import AnyEstimator, check_count
from mercer.random import entropy_of, stream

if TYPE_CHECKING:  # a classifier needs no laws of numbers
    from mercer.data.encoding import Encoder
    from mercer.data.frame import Frame, Inputs
    from mercer.data.row_names import RowNames
    from mercer.estimation.inspection import Explanation


Method = TypeVar("Method", bound=Callable[..., Any])


def is_dask(data: Any) -> bool:
    """Whether data are a Dask array or frame; Dask is not loaded for that."""
    return type(data).__module__.partition(".")[0] in ("dask", "dask_expr")


def by_partition(method: Method) -> Method:
    """Let a method that answers each row for itself give a lazy array for a Dask collection."""

    @functools.wraps(method)
    def answer(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **kwargs)
        from mercer.data.dask_collections import each_partition

        check_is_fitted(self)
        call = functools.partial(_answer, method.__name__, args, kwargs)
        return each_partition(call, self, X, call(self, np.zeros((1, len(self.feature_labels_)))))

    return cast(Method, answer)


def _answer(name: str, args: Any, kwargs: Any, model: Any, rows: Any) -> Any:
    with rows_without_names() if isinstance(rows, np.ndarray) else nullcontext():
        return getattr(model, name)(rows, *args, **kwargs)


# Rows that stand for unknown inputs: fewer say too little of what these are otherwise.
_LEAST_BACKGROUND = 10

# Functions by which rows of a pool are compared, and how many of these are asked at a time.
_POOL_DRAWS, _POOL_ROWS = 1000, 256


class KernelEstimator(FromFile, AnyEstimator):
    """Base of the estimators; a subclass adds its arguments, ``fit`` and the parts of its file.

    Parameters
    ----------
    encode : "auto", TableEncoder or None, default="auto"
        How a frame with text or dates becomes numbers, in ``fit`` and in predictions: by
        `TableEncoder`, with its defaults or as given; ``encoder_`` holds what was learned. Missing
        values are refused unless one with ``missing`` is given, and numbers alone stay as they are
        unless any is. None: as scikit-learn, which refuses all but numbers.
    n_draws : int, default=500
        Kept draws of each chain.
    n_warmup : int, default=150
        Steps of each chain that tune the sampler and are dropped.
    n_chains : int, default=4
        Independent chains.
    thin : int, default=1
        One of so many steps is kept.
    random_state : int, Generator, RandomState or None, default=None
        An integer gives the same draws each time, for any ``n_jobs``.
    n_jobs : int or None, default=None
        Chains that run at a time; -1 for one a core. Where `joblib.parallel_config` names an
        engine, such as Dask, they run there.
    progress : bool or "auto", default="auto"
        A progress bar; "auto" shows it on a terminal or in a notebook.
    checkpoint : path or None, default=None
        Folder where the state is saved as the chains run. ``fit`` with the same data and options
        goes on from there, to the same draws, bit for bit.
    max_seconds : float or None, default=None
        Stop after a whole step once so much time has passed; ``notes_`` says so.

    Attributes
    ----------
    diagnostics_ : Diagnostics
        R-hat, effective sample sizes, acceptance, and warnings in words.
    feature_labels_ : tuple of str
        Names of the columns; x0, x1, ... where none were given.
    notes_ : tuple of str
        What else a user should know of this fit, a line each.
    encoder_ : TableEncoder
        Fitted, where a frame was encoded: inputs are then the columns that it makes.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    UsageError
        At ``fit``, if an argument is out of its range. It is a ValueError.
    """

    # Rows whose laws or features are in memory at a time.
    _rows_at_once: ClassVar[int] = 1024
    # Names for the columns of a matrix without any, set by whoever made it from a table.
    _names_of_columns: tuple[str, ...] | None = None
    # Names of the table's columns that these come from, likewise.
    _sources_of_columns: tuple[str, ...] | None = None
    # What names rows as encoded here whatever the encoding; the cells of the table, and how it is.
    _keys_of_rows: Mapping[bytes, bytes] = MappingProxyType({})
    _table_of_rows: tuple[Frame, Encoder] | None = None
    # Whether `fit` holds rows out, each time with an encoding of what is left.
    _encodes_folds: ClassVar[bool] = False
    # Arguments that only say what is done with the draws: another value is no other run.
    _after_draws: ClassVar[tuple[str, ...]] = ()
    _most_times: ClassVar[int] = 1  # as long as they are that chains may become, thin="auto"
    _names_of_rows: RowNames | None = None  # of those that `fit` gets
    # What a fit leaves for fits to nearly the same rows, such as folds, and what it got of another.
    _left: Any = None
    _nearby: Any = None

    @property
    def _leaves(self) -> str:
        """What its fit would leave for fits to nearly the same rows, such as "evidence"; or ""."""
        return ""

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, read again by `mercer.load`.

        The file holds the training rows where predictions need them; ``mercer inspect`` tells.
        """
        check_is_fitted(self)
        write_model(path, self)

    @property
    def _plots(self) -> tuple[str, ...]:
        """Plots of this method alone that fit this model, by their names in `mercer.plot`."""
        return ()

    @property
    def plot(self) -> Any:
        """The plots that fit this model: ``model.plot.relevance()``, ``dir(model.plot)``.

        Those of held-out rows take these: ``model.plot.reliability(X, y)``. Each returns
        Matplotlib's axes, or a figure where it has several panels; what it draws is said of the
        function of that name in `mercer.plot`.
        """
        return importlib.import_module("mercer.plot.of_models").ModelPlots(self)

    def explain(
        self,
        X: ArrayLike,
        background: ArrayLike | None = None,
        *,
        label: Any = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = 0,
    ) -> Explanation:
        """Say what each input contributes to the prediction of each row: Shapley values.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Rows to explain.
        background : array or frame of shape (b, d), optional
            Rows whose inputs take the place of unknown ones; of more than 24, so many at random.
            None: the rows of X where there are ten or more, else the centre of the training rows.
        label : class, optional
            The class whose probability is explained. None: of two the second, of several the most
            probable of each row.
        random_state : int, Generator, RandomState or None, default=0

        Returns
        -------
        Explanation
            ``contributions`` (n, d), of the columns of a frame that was encoded, which of each row
            add up to ``prediction - baseline``, their 90 % posterior intervals ``lower`` and
            ``upper``, their Monte Carlo ``errors``; ``table(row)`` prints.

        Raises
        ------
        UsageError
            If there is no such class, or the kernel is precomputed, so that there are no inputs.

        Notes
        -----
        How they are computed, and at what cost, is in `mercer.estimation.inspection`. Inputs that
        go together share what they say, partly at combinations that no row has.
        """
        from mercer.estimation.inspection import explain_rows

        check_is_fitted(self)
        if getattr(self, "kernel", None) == "precomputed":
            raise UsageError("with a precomputed kernel there are no inputs to explain")
        rows = self._new_rows(X)
        if background is not None:
            others = self._new_rows(background)
        else:
            others, _ = self._background(rows)
        entropy = entropy_of(random_state)
        return explain_rows(self, rows, others, self._inputs(), label=label, entropy=entropy)

    def _background(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
        """Rows that stand for unknown inputs: these or, if too few, the centre of training."""
        if len(rows) >= _LEAST_BACKGROUND:
            return rows, False
        return self.standardizer_.inverse(np.zeros((1, rows.shape[1]))), True

    def _inputs(self) -> Inputs:
        """The inputs as a person knows them: columns of a frame that was encoded, or of X."""
        from mercer.data.frame import Inputs

        if hasattr(self, "encoder_"):
            encoding: Encoder = self.encoder_.encoding_
            return encoding.inputs
        return Inputs.of_sizes(self.feature_labels_, [1] * self.n_features_in_)

    def report(self, path: str | Path, X_test: Any = None, y_test: Any = None) -> Path:
        """Write a report of the fitted model, one HTML file without a network; return its path.

        Parameters
        ----------
        path : path
        X_test : array or frame of shape (m, d), optional
            Rows that were not learned from: the report scores them, and says which inputs decide.
        y_test : array of shape (m,), optional
            Their targets.

        Raises
        ------
        UsageError
            If only one of the two is given, they do not fit, or no label is known.
        StorageError
            If the file cannot be written.
        """
        check_is_fitted(self)
        with rows_without_names():  # those of a frame are checked, and then an array
            importlib.import_module("mercer.report").save_report(self, path, X_test, y_test)
        return Path(path)

    @available_if(is_classifier)  # type: ignore[untyped-decorator]
    def information(self, X: ArrayLike) -> NDArray[np.float64]:
        """Bits that the label of each row is expected to say of the function, shape (m,).

        Those of noisy labels, as the rows have them: a row where classes overlap says little
        (Houlsby, Huszar, Ghahramani & Lengyel 2011).
        """
        check_is_fitted(self)
        return self._information(self._standardized(X))

    def query(self, X_pool: ArrayLike, n_queries: int = 1) -> NDArray[np.int64]:
        """Choose the rows to label next: those whose targets would say most of the function.

        Parameters
        ----------
        X_pool : array or frame of shape (m, d)
            Rows without targets.
        n_queries : int, default=1
            Up to m.

        Returns
        -------
        ndarray of shape (n_queries,), int64
            Positions in ``X_pool``, the most wanted first; no near duplicates of one another.

        Notes
        -----
        The first has the most information: of classes `information`, of numbers half log2(1 + v /
        s^2) bits, v the variance of the function and s^2 that of the noise, which varies from row
        to row where the model says so (of counts, both of the logarithm of their mean); each next
        one counts with what those before it leave open. `KernelGibbsClassifier` computes both from
        its draws, the others from a thousand.
        """
        from mercer.posterior.labels import choose_batch, short_list

        check_is_fitted(self)
        Z = self._standardized(X_pool)
        check_count("n_queries", n_queries, 1)
        if n_queries > len(Z):
            raise UsageError(f"n_queries must be at most the {len(Z)} rows; got {n_queries}")
        information = self._information(Z)
        listed = short_list(information, n_queries, Z)
        covariance = self._covariance(Z[listed])
        return listed[choose_batch(information[listed], covariance, n_queries)]

    def _information(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the target of each standardised row would say, shape (m,).

        Of classes in bits; of numbers the variance of the function over that of the noise, in any
        unit: what those before leave open of it, `choose_batch` knows.
        """
        from mercer.posterior.labels import information_of_draws

        blocks = (self._drawn(Z[a : a + _POOL_ROWS]) for a in range(0, len(Z), _POOL_ROWS))
        if is_classifier(self):
            return np.concatenate([information_of_draws(drawn) for drawn in blocks])
        return np.concatenate([drawn[:, 0].var(axis=0) for drawn in blocks])

    def _covariance(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Covariance of the function at standardised rows, (m, m)."""
        from mercer.posterior.labels import covariance_of_draws

        return covariance_of_draws(self._drawn(Z))

    def _drawn(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Draw what is asked of rows, (S, K, m): the same functions each time."""
        return self._function_draws([Z], _POOL_DRAWS, stream(0, "query"))[0]

    def _function_draws(
        self, parts: Sequence[NDArray[np.float64]], n_draws: int, rng: np.random.Generator
    ) -> list[NDArray[np.float64]]:
        """Draw what is predicted at parts of standardised rows, each (m, d): (n_draws, K, m).

        K = 1 number in units of the target, without the noise of a target, or the probabilities of
        the K classes. Values of one draw in one part belong to one function; parts may have
        functions of their own, with the same hyperparameters.
        """
        raise UsageError(f"{type(self).__name__} has no draws of functions")

    def _at_a_glance(self) -> Self:
        """Return the model as a report asks it thousands of times: by fewer draws if it has many.

        What it says differs from what the model predicts by less than a report can show.
        """
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "posterior_")

    @property
    def _checkpoint(self) -> Any:
        """Folder of the state of a run, if that is kept."""
        return self.checkpoint

    def _warn_of_convergence(self) -> None:
        """Issue one `ConvergenceWarning` if the diagnostics found something; last line of ``fit``.

        Diagnostics list the worst first; the warning points at the line that called ``fit``.
        """
        worst = self.diagnostics_.worst_warning
        if worst:
            warn_user(worst, ConvergenceWarning)

    def _labels(self) -> tuple[str, ...]:
        names = getattr(self, "feature_names_in_", self._names_of_columns)
        if hasattr(self, "encoder_"):
            names = self.encoder_.get_feature_names_out()
        if names is None:
            return tuple(f"x{j}" for j in range(self.n_features_in_))
        return tuple(str(name) for name in names)

    @property
    def _sources(self) -> tuple[str, ...]:
        """Of each input the column of the table that it comes from."""
        if hasattr(self, "encoder_"):
            sources: tuple[str, ...] = self.encoder_.encoding_.sources
            return sources
        known = self._sources_of_columns
        return known if known and len(known) == self.n_features_in_ else self._labels()

    def _row_names(self, n: int) -> RowNames:
        """Return what the n rows given to ``fit`` are called: in Python, their positions in X."""
        from mercer.data.row_names import RowNames

        names = self._names_of_rows
        return RowNames.positions(n) if names is None or len(names) != n else names

    def _keys(self, X: NDArray[np.float64]) -> tuple[bytes, ...]:
        """Return what fits to some of the rows X (n, d) know each of them by."""
        own = (row.tobytes() for row in X)
        return tuple(self._keys_of_rows.get(each, each) for each in own)

    def _training_data(self, X: Any, y: Any, **how: Any) -> tuple[Any, Any]:
        """Check inputs and targets as scikit-learn does, which reads them into memory."""
        remedy = "give X.compute(), or learn from it where it is with BaNKRegressor, BaNKClassifier"
        self._refuse_collection(X, remedy)
        X, y = filled(X), filled(y)
        X = self._learn_encoding(X) if how.get("reset", True) else self._encoded(X)
        refuse_missing(y)
        try:
            if how.get("y_numeric") and np.asarray(y).dtype.kind in "UO":
                np.asarray(y).astype(np.float64)
        except ValueError as error:
            classifier = type(self).__name__.replace("Regressor", "Classifier")
            raise DataError(f"the target is text ({error}), which {classifier} learns") from error
        try:
            checked: tuple[Any, Any] = self._checked_rows(X, y, order="C", **how)
        except ValueError as error:
            if "1d array" in str(error) and np.ndim(y) == 2:
                at_once = ", BaNKRegressor learns them at once" if how.get("y_numeric") else ""
                words = f"{error} sklearn.multioutput fits a model to each column{at_once}"
                raise DataError(words) from error
            is_not_finite = any(word in str(error) for word in ("NaN", "infinity"))
            where = name_not_finite(X) if is_not_finite else None
            if where is None:
                raise
            raise DataError(where) from error
        if hasattr(self, "encoder_"):
            self.encoder_.name_inputs(self)
        return checked

    def _checked_rows(self, X: Any, *y: Any, reset: bool = True, **how: Any) -> Any:
        """Check rows as scikit-learn does; what was encoded has columns that only it names."""
        if getattr(self, "missing", "error") == "posterior":
            how["ensure_all_finite"] = "allow-nan"
        if reset or not hasattr(self, "encoder_"):
            try:
                refuse_times(X, "X")
                return validate_data(self, X, *y, reset=reset, **how)
            except ValueError as error:
                if reset or not hasattr(X, "columns") or "NaN" in str(error):
                    raise
                words = "(in a pipeline, the last step takes pipeline[:-1].transform(X))"
                raise DataError(f"{str(error).strip()}\n{words}") from error
        checked = check_X_y(X, *y, **how) if y else check_array(X, **how)
        d, known = (checked[0] if y else checked).shape[1], len(self.encoder_.encoding_.sources)
        if d != known:
            raise DataError(
                f"X has {d} features, but {type(self).__name__} is expecting {known} features as "
                "input: give a frame, or rows as encoder_.transform encodes them"
            )
        return checked

    def _learn_encoding(self, X: Any) -> Any:
        """Encode the table that is learned from, if it is to be; else return it as it is."""
        from mercer.data.frame import null_words
        from mercer.estimation.table_encoder import TableEncoder, frame_of, is_frame, needs_encoding

        is_given = isinstance(self.encode, TableEncoder)
        if not is_given and self.encode not in ("auto", None):
            raise UsageError(f"encode must be 'auto', a TableEncoder or None; got {self.encode!r}")
        if self.encode is None or not (is_given or is_frame(X)):
            return X
        words = null_words(self.encode.null_values if is_given else None)
        table = frame_of(X, null_values=words) if is_frame(X) else X  # read once
        if not is_given and not needs_encoding(table):
            return X
        given = self.encode if is_given else TableEncoder(getattr(self, "missing", "error"))
        self.encoder_ = clone(given)
        encoded = self.encoder_.fit(table).transform(table)
        if self._encodes_folds:
            self._table_of_rows = frame_of(table, null_values=words), self.encoder_.encoding_
        return encoded

    def _encoded(self, X: Any) -> Any:
        """Encode new rows as those that were learned from; an array has its columns already."""
        if not hasattr(self, "encoder_"):
            return X
        if np.dtype(getattr(X, "dtype", float)).kind == "O":
            if not hasattr(self.encoder_, "feature_names_in_"):  # it learned from an array
                return self.encoder_.transform(X)
            names = ", ".join(map(repr, self.encoder_.encoding_.input_names))
            raise DataError(f"give a frame with the columns that were learned from: {names}")
        from mercer.estimation.table_encoder import is_frame

        return self.encoder_.transform(X) if is_frame(X) else X

    def _new_rows(self, X: ArrayLike) -> NDArray[np.float64]:
        """Check new rows, and encode those of a frame."""
        remedy = "predict, predict_proba, predict_interval and decision_function answer one lazily"
        self._refuse_collection(X, remedy)
        checked: NDArray[np.float64] = self._checked_rows(
            self._encoded(filled(X)), dtype=np.float64, order="C", reset=False
        )
        return checked

    def _refuse_collection(self, X: Any, remedy: str) -> None:
        """Refuse a Dask collection, which would silently be read into memory."""
        if is_dask(X):
            kind = f"a Dask {type(X).__name__}"
            raise UsageError(f"{type(self).__name__} takes rows in memory, not {kind}; {remedy}")

    def _blocks(self, Z: NDArray[np.float64]) -> Iterator[slice]:
        for begin in range(0, len(Z), self._rows_at_once):
            yield slice(begin, begin + self._rows_at_once)

    def _standardized(self, X: ArrayLike) -> NDArray[np.float64]:
        """Check new rows and standardise them as the training rows were."""
        return np.asarray(self.standardizer_.transform(self._new_rows(X)))


# What cannot be learned from, named by its place.


def filled(values: Any) -> Any:
    """Return an array with NaN in its masked cells; scikit-learn takes what these hide.

    A `DataError` where values are not there yet, as those of a LazyFrame.
    """
    if hasattr(values, "collect"):
        raise DataError(f"a {type(values).__name__} is not computed: give what .collect() returns")
    if not (isinstance(values, np.ma.MaskedArray) and values.mask.any()):
        return values
    return np.ma.filled(values.astype(float if values.dtype.kind in "biuf" else object), np.nan)


def name_not_finite(X: Any) -> str | None:
    """Say which value of a table is the first that is not finite, by row (its position) and column.

    None if all are finite, or this is no table of numbers.
    """
    try:
        array = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    is_bad = ~np.isfinite(array)
    if array.ndim != 2 or not is_bad.any():
        return None
    row, column = (int(i) for i in np.argwhere(is_bad)[0])
    what = "NaN" if np.isnan(array[row, column]) else "infinity"
    names = getattr(X, "columns", None)
    label = f"x{column}" if names is None else str(names[column])
    return f"Input X contains {what}: row {row} (a position, the first is 0), column {label!r}"


def refuse_times(values: Any, name: str) -> None:
    """Raise a `DataError` for dates and lengths of time, whose numbers depend on their unit."""
    found = getattr(values, "dtypes", getattr(values, "dtype", None))
    for dtype in found if isinstance(found, Iterable) else [found]:
        if getattr(dtype, "kind", "") in ("m", "M") or str(dtype).startswith(("Dur", "Date")):
            words = f"Input {name} holds {dtype}, whose numbers depend on the unit"
            raise DataError(f"{words}: turn it into numbers first")


def refuse_missing(y: Any) -> None:
    """Raise a `DataError` that names the first target that is None, NaN, infinite or a time."""
    refuse_times(y, "y")
    values = np.asarray(y)
    if values.ndim != 1 or values.dtype.kind not in "fO":
        return
    if values.dtype.kind == "f" and np.isfinite(values).all():
        return
    for row, value in enumerate(values.tolist()):
        what = "None" if value is None else ""
        if isinstance(value, float) and not math.isfinite(value):
            what = "NaN" if math.isnan(value) else "infinity"
        if type(value).__name__ in ("NAType", "NaTType"):
            what = "NaN"
        if what:
            raise DataError(f"Input y contains {what}: row {row} (a position, the first is 0)")


def encode_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes, sorted, and each row's position among them.

    A ValueError, in the words of scikit-learn, if y holds no labels, or one class only; a
    `DataError` if one is missing.
    """
    refuse_missing(y)
    if y.dtype.kind == "O" and 0 < sum(isinstance(label, str) for label in y) < len(y):
        raise DataError("Input y has labels that are text and others that are not: y.astype(str)")
    check_classification_targets(y)
    if y.dtype.kind not in "biufUO":
        raise ValueError(f"Labels of type {y.dtype} are not supported")
    classes, index = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"The target holds one class only: {classes.tolist()[0]!r}; two are needed"
        )
    return classes, index.astype(np.int64)


class LabelPredictions(ClassifierMixin, KernelEstimator):  # type: ignore[misc]
    """Base of classifiers: a subclass gives probabilities, and the label follows.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        Class labels, sorted.
    """

    classes_: NDArray[Any]

    @by_partition
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes, averaged over draws.

        Returns
        -------
        ndarray of shape (m, C)
            In the order of ``classes_``; never exactly 0 or 1.
        """
        check_is_fitted(self)
        return self._proba(self._standardized(X))

    def _proba(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        raise NotImplementedError

    @by_partition
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Most probable class of each row of X, shape (m,), in the type of the labels."""
        check_is_fitted(self)
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])
