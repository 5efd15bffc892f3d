"""Tables of Python (pandas, Polars, PyArrow) as matrices, encoded as the command line does it."""

from __future__ import annotations

import functools
import math
import numbers
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, time
from decimal import Decimal
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_array, check_is_fitted

from mercer.data.encoding import (
    FILL_IN,
    LEAVE_OUT,
    MAX_LEVELS,
    REFIT,
    Encoder,
    Missing,
    check_categories,
    fit_encoder,
)
from mercer.data.formats import Dates
from mercer.data.frame import (
    MISSING,
    Column,
    ColumnBuilder,
    Frame,
    Origin,
    column_of_texts,
    null_words,
)
from mercer.data.source import RowSource
from mercer.errors import DataError, DataWarning, UsageError, warn_user
from mercer.estimation.base import filled, is_dask, refuse_times

_MISSING = ("error", "impute", "indicator", "posterior")


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns, which are called by ``X[name]``."""
    return hasattr(X, "columns") or hasattr(X, "column_names")


def needs_encoding(frame: Frame) -> bool:
    """Whether not all columns are numbers, or cells are missing."""
    return any(c.kind not in ("number", "boolean") or c.is_missing.any() for c in frame.columns)


def frame_of(
    X: Any, name: str = "X", texts: Collection[str] = (), *, null_values: frozenset[str] = MISSING
) -> Frame:
    """Read a frame of pandas, Polars or PyArrow, or the columns x0, x1, ... of an array.

    Rows are counted from 0 in messages. Strings in the columns ``texts`` stay what they are. A
    frame of mercer's own is returned as it is.
    """
    if isinstance(X, Frame):
        return X
    X = filled(X)
    if is_frame(X):
        names = [str(each) for each in getattr(X, "column_names", None) or X.columns]
        given = [X[each] for each in getattr(X, "column_names", None) or X.columns]
    else:
        given_as = X if hasattr(X, "dtype") else np.array(X, dtype=object)
        array = check_array(given_as, dtype=None, ensure_all_finite=False)
        names, given = [f"x{k}" for k in range(array.shape[1])], list(array.T)
    columns = tuple(
        _column_of(each, values, is_text=each in texts, null_values=null_values)
        for each, values in zip(names, given, strict=True)
    )
    n_rows = len(columns[0].values) if columns else 0
    if n_rows == 0:
        raise DataError(f"{name}: no row or no column, found 0 sample(s)")
    nothing = np.zeros(n_rows, dtype=np.int64)
    origin = Origin((name,), nothing.astype(np.int32), np.arange(n_rows, dtype=np.int64), nothing)
    return Frame(columns, name, origin)


def _column_of(name: str, values: Any, *, is_text: bool, null_values: frozenset[str]) -> Column:
    """Say what the cells of a column are, as it is said of a file; ``is_text`` is of strings."""
    if type(values).__module__.startswith("pyarrow"):
        from mercer.data.arrow import as_column

        return as_column(name, values, is_text=False)
    dtype: Any = getattr(values, "dtype", None)
    is_category = hasattr(dtype, "categories")
    if getattr(dtype, "time_zone", None):  # of Polars, whose arrays have none
        values = np.array(values.to_list(), dtype=object)
    array = np.asarray(values)
    if array.ndim > 1:  # structs, or arrays of one length
        return Column(name, np.full(len(array), str(dtype), dtype=object), "other")
    if array.dtype.kind in "biuf" and not is_category:
        kind = "boolean" if array.dtype.kind == "b" else "number"
        return Column(name, array.astype(np.float64), kind)  # type: ignore[arg-type]
    if array.dtype.kind == "M":
        known = array[~np.isnat(array)]
        units = [f"datetime64[{unit}]" for unit in ("D", "s", "us")]
        fitting = [unit for unit in units[:2] if (known == known.astype(unit)).all()]
        texts = np.datetime_as_string(array.astype([*fitting, units[2]][0]))
        present = [None if text == "NaT" else str(text) for text in texts]
        return column_of_texts(name, present, is_text=False)
    if array.dtype.kind == "m":  # those of nanoseconds would be whole numbers
        array = array.astype("m8[us]")
    cells = [None if _is_missing(cell) else cell for cell in array.tolist()]
    cells = [bool(cell) if isinstance(cell, np.bool_) else cell for cell in cells]
    column = _column_of_objects(name, cells, null_values, is_category=is_category, is_text=is_text)
    order = tuple(map(str, dtype.categories)) if getattr(dtype, "ordered", False) else ()
    return replace(column, order=order)


def _column_of_objects(
    name: str,
    cells: Sequence[Any],
    null_values: frozenset[str],
    *,
    is_category: bool,
    is_text: bool,
) -> Column:
    """Make a column of Python objects; None is a missing one."""
    present = [cell for cell in cells if cell is not None]
    if all(isinstance(cell, bool) for cell in present) and not is_category:
        return Column(name, _as_floats(cells), "boolean" if present else "number")
    if all(isinstance(cell, (numbers.Real, Decimal)) for cell in present) and not is_category:
        return Column(name, _as_floats(cells), "number")
    plain = (str, numbers.Real, Decimal, date, time)
    if not all(isinstance(cell, plain) for cell in present):
        kinds = np.empty(len(cells), dtype=object)
        kinds[:] = [None if cell is None else type(cell).__name__ for cell in cells]
        return Column(name, kinds, "other")
    texts = ["" if cell is None else _as_text(cell) for cell in cells]
    if is_category:  # a frame says itself what is missing: "None" is a level like others
        return column_of_texts(name, [text.strip() or None for text in texts], is_text=True)
    builder = ColumnBuilder(
        name, is_text=is_text, is_held=False, has_decimal_comma=False, null_values=null_values
    )
    builder.add(texts)
    return builder.finish()


@contextmanager
def _python_words() -> Iterator[None]:
    """Say what to do about a table of Python, where no command takes options."""
    try:
        yield
    except DataError as error:
        words = str(error).replace(LEAVE_OUT, "leave the column out").replace(REFIT, FILL_IN)
        option, word = "--null-values '.*?'", "'(.*?)'"
        words = re.sub(
            f"{option}( {option})*",
            lambda found: f"mercer.TableEncoder(null_values={re.findall(word, found[0])})",
            words,
        )
        words = words.replace("--categories", "mercer.TableEncoder(categories=[..])")
        words = re.sub(r"--dates (\w+)", r'mercer.TableEncoder(dates="\1")', words)
        words = words.replace("missing value (", "missing value, NaN or None (")
        words = re.sub(r"^(X, row \d+)", r"\1 (a position, the first is 0)", words)
        fill_in = (
            'give the estimator encode=mercer.TableEncoder(missing="impute"), or "indicator", or '
            "drop the rows"
        )
        raise DataError(words.replace(FILL_IN, fill_in)) from None


def _is_missing(cell: Any) -> bool:
    """Whether a cell is None, NaN, NaT or NA of pandas."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, (float, Decimal)) and cell != cell


def _as_floats(cells: Sequence[Any]) -> NDArray[np.float64]:
    return np.array([np.nan if cell is None else _as_float(cell) for cell in cells])


def _as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # an integer
        return math.inf if cell > 0 else -math.inf


def _as_text(cell: Any) -> str:
    return cell.isoformat() if isinstance(cell, date) else str(cell)


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a table with text, dates and missing values into a matrix of numbers.

    What `mercer fit` does to a file: numbers and true/false pass; text becomes a column a level
    (one for two levels; above 50 levels the frequency of the level); dates become year, month, day
    of week, hour and days since the first, as far as they vary; text such as "$1,234.50", "12 %",
    "70 kg" or "13:45" (hours) becomes numbers where it can be read in one way only.

    Parameters
    ----------
    missing : {"error", "impute", "indicator", "posterior"}, default="error"
        A missing value is an error; or the median (of text and true/false the commonest value)
        takes its place; with "indicator", one more column says where, for each column with gaps.
        "posterior" does so of text, true/false and dates, and leaves NaN in numbers, for
        ``BaNKRegressor(missing="posterior")``, which draws them along with the function.
    dates : {"auto", "dayfirst", "monthfirst"}, default="auto"
        What dates such as 03/04/2024 begin with, where the column itself does not tell.
    null_values : iterable of str, optional
        Strings that stand for a missing value, beside an empty one: by default NA, N/A, n/a, NaN,
        nan, NULL, null, ? and None. With ``()`` each of these words is a level like others.
    categories : sequence of str, default=()
        Columns whose values are levels, be they numbers or text, and an input each, 2000 at most:
        codes such as those of shops, and what a kernel such as ``categorical[patient]`` tells
        apart.

    Attributes
    ----------
    encoding_ : Encoder
        The code of each column.
    notes_ : tuple of str
        What may surprise, one line each.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Names of the columns of a frame.

    Raises
    ------
    DataError
        A cell is missing, infinite, or of the wrong kind; says row (from 0) and column.

    Warns
    -----
    DataWarning
        In `transform`, of text that was not in `fit`: one more level, (1 - sqrt(1 + K)) / K in K
        columns, as far from the others as they are from one another.

    Examples
    --------
    >>> from mercer import TableEncoder
    >>> rows = [["red", 1.5, "$10"], ["blue", None, "$20"], ["red", 2.5, "$1,500"]]
    >>> encoder = TableEncoder(missing="indicator").fit(rows)
    >>> encoder.get_feature_names_out().tolist()
    ['x0=red', 'x1', 'x1 (missing)', 'x2']
    >>> encoder.transform(rows).tolist()
    [[1.0, 1.5, 0.0, 10.0], [0.0, 2.0, 1.0, 20.0], [1.0, 2.5, 0.0, 1500.0]]
    """

    def __init__(
        self,
        missing: Missing = "error",
        dates: Dates = "auto",
        null_values: Iterable[str] | None = None,
        categories: Sequence[str] = (),
    ) -> None:
        self.missing = missing
        self.dates = dates
        self.null_values = null_values
        self.categories = categories

    @classmethod
    def of(cls, encoding: Encoder) -> TableEncoder:
        """Make a fitted encoder of an encoding, such as that of a model file."""
        missing: Missing = "error" if encoding.missing == "drop" else encoding.missing
        words = encoding.null_values
        given = None if words == MISSING else tuple(sorted(words))
        many = [c for c in encoding.codes if c.kind == "levels" and len(c.levels) > MAX_LEVELS]
        return cls(missing, null_values=given, categories=tuple(c.name for c in many))._take(
            Encoder(encoding.codes, missing, null_values=words)
        )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn levels, dates and what takes the place of gaps.

        Parameters
        ----------
        X : frame, or array of shape (n, d)
        y : ignored
        """
        if self.missing not in _MISSING:
            raise UsageError(
                f"missing must be one of {', '.join(_MISSING)}, and is {self.missing!r}; rows are "
                "dropped before"
            )
        if self.dates not in ("auto", "dayfirst", "monthfirst"):
            raise UsageError(f"dates must be auto, dayfirst or monthfirst, not {self.dates!r}")
        words, categories = null_words(self.null_values), check_categories(self.categories)
        with _python_words():
            frame = frame_of(X, texts=categories, null_values=words)
            found = fit_encoder(
                frame, missing=self.missing, dates=self.dates, categories=categories
            )
        self._take(replace(found, null_values=words))
        if not is_frame(X):
            del self.feature_names_in_
        return self

    def _take(self, encoding: Encoder) -> Self:
        self.encoding_ = encoding
        self.notes_ = encoding.notes
        self.n_features_in_ = len(encoding.codes)
        self.feature_names_in_ = np.array(encoding.input_names, dtype=object)
        return self

    def name_inputs(self, model: Any) -> None:
        """Tell a model, in scikit-learn's words, which columns it was given: those of the table."""
        model.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):  # it learned from a frame
            model.feature_names_in_ = self.feature_names_in_

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Encode rows; columns of a frame are found by their names, in any order.

        Parameters
        ----------
        X : frame, or array of shape (n, d)

        Returns
        -------
        ndarray of shape (n, number of ``get_feature_names_out()``)
        """
        check_is_fitted(self)
        known = self.encoding_
        frame = frame_of(X, texts=known.texts(), null_values=known.null_values)
        if not is_frame(X) and len(frame.columns) != self.n_features_in_:
            raise DataError(
                f"X has {len(frame.columns)} features, but TableEncoder is expecting "
                f"{self.n_features_in_} features as input"
            )
        with _python_words():
            encoded = known.transform(frame)
        for note in encoded.notes:
            if "was not in training" in note:
                warn_user(note, DataWarning)
        return encoded.X

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Name the columns of the matrix.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the columns where `fit` had an array, x0, x1, ... by default; of a frame they
            must be its own.
        """
        check_is_fitted(self)
        names = [str(name) for name in _check_feature_names_in(self, input_features)]
        pairs = zip(self.encoding_.codes, names, strict=True)
        codes = tuple(replace(code, name=name) for code, name in pairs)
        return np.array(replace(self.encoding_, codes=codes).feature_names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags


def given_rows(model: Any, X: Any, y: Any) -> RowSource | None:
    """Rows on a disk or a cluster that a model is to learn, the target last; None: it has arrays.

    Sets the number and names of columns as scikit-learn does, and classes that are text.
    """
    if is_dask(X):
        from mercer.data.dask_collections import open_collection

        if y is None:
            raise DataError("fit requires y, the targets or the name of their column; got None")
        target = X[y] if np.ndim(y) == 0 and y in getattr(X, "columns", ()) else y
        refuse_times(target, "y")
        encode = getattr(model, "encode", None)
        encoder = TableEncoder() if isinstance(encode, str) else encode
        with _python_words():
            read = functools.partial(
                frame_of, null_values=null_words(getattr(encoder, "null_values", None))
            )
            source: RowSource = open_collection(X, y, read=read, encode=encoder)
        rows = _target_last(model, source, source.names[-1])
        if not hasattr(X, "columns"):
            del model.feature_names_in_
        kind = getattr(getattr(target, "dtype", None), "kind", "")
        if kind == "b" and hasattr(model, "predict_proba"):
            model.classes_ = np.array([False, True])
        return rows
    return _target_last(model, X, y) if isinstance(X, RowSource) else None


def _target_last(model: Any, source: RowSource, target: Any) -> RowSource:
    if not isinstance(target, str):
        raise UsageError(f"with rows on a disk, y is the name of the target column; got {target!r}")
    inputs = [name for name in source.names if name != target]
    rows = source.select([*inputs, target])
    if not inputs or rows.n_rows < 2:
        raise DataError(f"{source.name}: an input and two rows are needed")
    if foreign := [name for name in inputs if name in rows.labels]:
        raise DataError(f"{source.name}: was opened for the target {foreign[0]!r}, not {target!r}")
    if target in rows.labels:
        labels = rows.labels[target]
        if not hasattr(model, "predict_proba"):
            raise DataError(f"{source.name}: the target {target!r} is text; it needs a classifier")
        if len(labels) < 2:
            raise DataError(f"the target holds one class only: {labels[0]!r}; two are needed")
        model.classes_ = np.array(labels)
    elif rows.kinds.get(target) == "boolean" and hasattr(model, "predict_proba"):
        model.classes_ = np.array([False, True])
    model.n_features_in_ = len(inputs)
    model.feature_names_in_ = np.array(inputs, dtype=object)
    encoding = rows.encoding
    if encoding and not encoding.is_plain and not hasattr(model, "encode"):
        raise UsageError(
            f"{type(model).__name__} learns from columns of numbers: open the rows without encode"
        )
    if encoding and hasattr(model, "encode") and encoding.feature_names == tuple(inputs):
        model.encoder_ = TableEncoder.of(encoding)
        model.encoder_.name_inputs(model)
    return rows.verified()
