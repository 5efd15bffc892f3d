"""The work of `mercer query`: from a saved model and a pool to the rows to label next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.work.prediction import check_id, encoder_of, ignored_words, implied_id
from mercer.data.frame import Frame
from mercer.data.row_names import RowNames
from mercer.data.wording import printable
from mercer.errors import UsageError
from mercer.models import SavedModel, name_of

__all__ = ["Queries", "check_model", "query_frame"]


@dataclass(frozen=True, eq=False)
class Queries:
    """The chosen rows as named columns, the most wanted first; the first columns name them."""

    columns: dict[str, NDArray[Any]]
    n_names: int
    n_pool: int
    notes: tuple[str, ...]


def check_model(model: SavedModel, path: Path) -> None:
    """Refuse a model that does not say what a label would teach it.

    Raises
    ------
    UsageError
        Naming the model, and what to do.
    """
    if hasattr(model.estimator, "query"):
        return
    raise UsageError(
        f"{printable(str(path))}: a model of {name_of(model.estimator)}, and query needs one of "
        "sphere, which learns classes; fit it with --model sphere"
    )


def query_frame(model: SavedModel, frame: Frame, n_queries: int, id_column: str | None) -> Queries:
    """Choose rows.

    Raises
    ------
    UsageError
        If more rows are wanted than there are.
    DataError
        If a column that the model needs is missing, or a cell cannot be used.
    """
    id_column = implied_id(model, frame.names, id_column)
    encoded, estimator = encoder_of(model).transform(frame), model.estimator
    n = len(encoded.X)
    if n_queries > n:
        raise UsageError(
            f"-n {n_queries}: the pool has {n} usable row{'s' * (n != 1)}; ask for no more"
        )
    labels = [str(label) for label in estimator.classes_.tolist()]
    own = ("file", "row", "information_bits", *(f"proba_{label}" for label in labels))
    check_id(id_column, own)
    names = RowNames.of_frame(frame, encoded.rows, id_column)
    chosen = estimator.query(encoded.X, n_queries)
    X = encoded.X[chosen]
    proba = estimator.predict_proba(X)
    columns = names.take(chosen).columns()
    n_names = len(columns)
    columns["information_bits"] = np.asarray(estimator.information(X))
    columns |= {f"proba_{label}": proba[:, c] for c, label in enumerate(labels)}
    notes = [*encoded.notes, *ignored_words(model, encoded.ignored, id_column)]
    return Queries(columns, n_names, n, tuple(notes))
