"""Known data sets by name: scikit-learn's own, and the papers' in the folder MERCER_DATA."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mercer.data.csv_reader import read_csv
from mercer.data.files import check_path, nearest, printable, quoted, reading
from mercer.data.frame import Column, Frame
from mercer.errors import DataError, StorageError

#: The name of the target column of every known data set.
TARGET = "target"
VARIABLE = "MERCER_DATA"


@dataclass(frozen=True)
class NamedSet:
    """What is known of a data set that can be named instead of a file."""

    name: str
    task: Literal["classification", "regression"]  # what the target is for
    n: int  # rows
    d: int  # features
    where: str  # "scikit-learn", the path of the file, or what to do to have it
    description: str  # the target, in a few words


SHIPPED = {
    "breast_cancer": ("classification", 569, 30, "breast tumour: malignant or benign"),
    "diabetes_progression": ("regression", 442, 10, "progression of diabetes after one year"),
    "digits": ("classification", 1797, 64, "handwritten digit, 8 by 8 pixels"),
    "iris": ("classification", 150, 4, "species of iris"),
    "wine": ("classification", 178, 13, "cultivar of the wine"),
}


def is_named(name: str) -> bool:
    """Whether there is a known data set of that name."""
    return name in SHIPPED or name in _manifest()


def named_hint(name: str) -> str:
    """Say which data set is nearest to a name, or how to list them all."""
    return nearest(name, (*SHIPPED, *_manifest())) or "; `mercer datasets` lists the data sets"


def list_named() -> tuple[NamedSet, ...]:
    """List the known data sets: scikit-learn's first, then the papers'."""
    shipped = [
        NamedSet(name, task, n, d, "scikit-learn", description)  # type: ignore[arg-type]
        for name, (task, n, d, description) in SHIPPED.items()
    ]
    papers = []
    for name, facts in _manifest().items():
        path = _find(facts["file"])
        where = str(path) if path else f"not here: set {VARIABLE}"
        papers.append(NamedSet(name, facts["task"], facts["n"], facts["d"], where, facts["target"]))
    return (*shipped, *papers)


def load_named(name: str) -> Frame:
    """Load a known data set; its last column is the target, named "target".

    Parameters
    ----------
    name : str
        One of `list_named`.

    Returns
    -------
    Frame
        Classes are text where scikit-learn has names for them.

    Raises
    ------
    StorageError
        There is no such data set, or its file is not in the folder named by MERCER_DATA.
    DataError
        The file is not the one that is known: its SHA-256 differs or, of a set that has none
        (those that are to be put in place by hand), its columns or its number of rows.

    Examples
    --------
    >>> from mercer.data.named import load_named
    >>> load_named("breast_cancer").column("target").values[0]
    'malignant'
    """
    if name in SHIPPED:
        return _load_shipped(name)
    facts = _manifest().get(name)
    if facts is None:
        raise StorageError(f"there is no data set {quoted(name)}{named_hint(name)}")
    path = _find(facts["file"])
    if path is None:
        folder = os.environ.get(VARIABLE)
        raise StorageError(
            f"data set {quoted(name)}: {facts['file']} is not in {printable(folder)}, "
            f"the folder named by {VARIABLE}"
            if folder
            else f"data set {quoted(name)}: set the environment variable {VARIABLE} to the folder "
            f"that holds {facts['file']}"
        )
    if check_path(path):
        raise StorageError(f"{printable(str(path))}: is a folder, not a file")
    if facts["sha256_uncompressed"] is None:
        return _of_shape(read_csv(path), name, facts["n"], facts["d"])
    if _sha256(path) != facts["sha256_uncompressed"]:
        raise DataError(
            f"{printable(str(path))}: is not the known data set {quoted(name)} (its SHA-256 "
            "differs); fetch it again, or give the path of the file to read it as it is"
        )
    return read_csv(path)


def _of_shape(frame: Frame, name: str, n: int, d: int) -> Frame:
    """Check what can be checked of a file that was put in place by hand."""
    is_numeric = all(column.kind == "number" for column in frame.columns)
    if (
        (frame.n_rows, len(frame.names) - 1) != (n, d)
        or frame.names[-1] != TARGET
        or not is_numeric
    ):
        raise DataError(
            f"{printable(frame.source)}: is not the known data set {quoted(name)}, which has {n} "
            f"rows and {d} columns of numbers, then the target, named {quoted(TARGET)}"
        )
    return frame


def _load_shipped(name: str) -> Frame:
    from sklearn import datasets

    loaders = {
        "breast_cancer": datasets.load_breast_cancer,
        "diabetes_progression": datasets.load_diabetes,
        "digits": datasets.load_digits,
        "iris": datasets.load_iris,
        "wine": datasets.load_wine,
    }
    bunch = loaders[name]()
    columns = [
        Column(str(feature), np.asarray(values, dtype=np.float64), "number")
        for feature, values in zip(bunch.feature_names, bunch.data.T, strict=True)
    ]
    classes = bunch.get("target_names")
    if classes is not None and isinstance(classes[0], str):
        labels = np.array([str(classes[index]) for index in bunch.target], dtype=object)
        columns.append(Column(TARGET, labels, "text"))
    else:
        columns.append(Column(TARGET, np.asarray(bunch.target, dtype=np.float64), "number"))
    return Frame.from_columns(columns, name)


@cache
def _manifest() -> dict[str, dict[str, Any]]:
    text = resources.files("mercer.data").joinpath("manifest.json").read_text(encoding="utf-8")
    facts: dict[str, dict[str, Any]] = json.loads(text)
    return facts


def _find(file: str) -> Path | None:
    """Find the file of a data set, when the folder is named and holds it."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return None
    path = Path(folder) / file
    return path if os.path.lexists(path) else None


def _sha256(path: Path) -> str:
    """Sum the contents of a file, unpacked when it is gzipped."""
    with reading(path):
        try:
            opener: Any = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except (gzip.BadGzipFile, zlib.error):
            return ""
