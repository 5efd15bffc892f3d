"""The data sets of Oliva et al., Table 2, and the five folds that all methods share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from mercer.data.named import TARGET, load_named
from reproduce.papers.spectral_folds import N_FOLDS

__all__ = ["CLASS_SETS", "ClassFold", "ClassSet", "class_fold_of", "class_rows"]

Array = NDArray[np.float64]
Classes = NDArray[np.int64]

# Rows of a quick run, and the only set that it runs on.
_QUICK_ROWS = 300


@dataclass(frozen=True)
class ClassSet:
    """A row of the table.

    Attributes
    ----------
    name : str
        Of the data set, as `mercer datasets` lists it.
    printed : str
        What the paper calls it.
    published : mapping of column to (mean, standard error)
        Shares of wrong predictions in the paper.
    target : float or None
        What BaNK's error is to stay within.
    """

    name: str
    printed: str
    published: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    target: float | None = None


def _set(name: str, printed: str, figures: str, target: float | None = None) -> ClassSet:
    """Figures: mean and standard error of RKS, MKL, RFO and BaNK, as printed."""
    values = [float(figure) for figure in figures.split()]
    pairs = zip(values[::2], values[1::2], strict=True)
    published = dict(zip(("RKS", "MKL", "RFO", "BaNK"), pairs, strict=True))
    return ClassSet(name, printed, published, target)


CLASS_SETS = (
    _set("pima", "pima", ".332 .0201 .4455 .0533 .2592 .0214 .263 .0111", 0.228),
    _set("diabetic", "diabetic", ".3312 .0083 .3051 .0004 .4263 .0007 .279 .0022", 0.245),
    _set("eeg", "eeg", ".0706 .0019 .0544 .0021 .2411 .1123 .0686 .0012", 0.0196),
    _set("shuttle", "space", ".0022 .0004 .0015 .0001 .0018 .00007 .0009 .0001", 0.0002),
    _set("susy", "susy", ".2009 .0002 .201 .0001 .2089 .00026 .2005 .0001"),
    _set("skin", "skin", ".1135 .113 .2737 .105 .0043 .001 .0004 .0001"),
)


@dataclass(frozen=True, eq=False)
class ClassFold:
    """Training and test rows.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,), int
        1 for class 1, 0 for the rest.
    X_test : ndarray of shape (m, d)
    y_test : ndarray of shape (m,), int
    """

    X: Array
    y: Classes
    X_test: Array
    y_test: Classes


def class_fold_of(name: str, index: int, is_quick: bool) -> ClassFold:
    """Return a fold of a data set; a quick run's is a fold of a subset of the rows.

    Raises
    ------
    StorageError
        If the data set is not at hand.
    """
    X, y = class_rows(name)
    if is_quick and len(y) > _QUICK_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(len(y), _QUICK_ROWS, replace=False))
        X, y = X[rows], y[rows]
    train, test = list(KFold(N_FOLDS, shuffle=True, random_state=0).split(X))[index]
    return ClassFold(X[train], y[train], X[test], y[test])


@lru_cache(maxsize=1)
def class_rows(name: str) -> tuple[Array, Classes]:
    """Inputs and classes of the data set that is being worked on: class 1, and the rest."""
    frame = load_named(name)
    inputs = [column.values for column in frame.columns if column.name != TARGET]
    X = np.column_stack(inputs).astype(np.float64)
    return X, (frame.column(TARGET).values.astype(np.float64) == 1.0).astype(np.int64)
