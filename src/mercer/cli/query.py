"""`mercer query`: the rows of a pool to label next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mercer.cli.outputs import check_format, check_outputs, records, write_rows
from mercer.cli.prediction import (
    encoder_of,
    find_id,
    ignored_words,
    output_of,
    read_for,
    read_model_before,
)
from mercer.cli.terminal import Session, rows_table
from mercer.data.files import printable
from mercer.data.frame import Frame
from mercer.data.row_names import RowNames
from mercer.errors import UsageError
from mercer.estimation.tasks import REGRESSION, task_of
from mercer.models import SavedModel, name_of

# The work of `mercer query`: from a saved model and a pool to the rows to label next.

_N_QUERIES = 10


@dataclass(frozen=True, eq=False)
class Queries:
    """The chosen rows as named columns, the most wanted first; the first columns name them."""

    columns: dict[str, NDArray[Any]]
    n_names: int
    n_pool: int
    notes: tuple[str, ...]


def check_model(model: SavedModel, path: Path) -> None:
    """Refuse a model without a posterior."""
    if not hasattr(model.estimator, "query"):
        raise UsageError(
            f"{printable(str(path))}: {name_of(model.estimator)} has no posterior, by which query "
            "chooses; fit one of mercer's models"
        )


def query_frame(
    model: SavedModel, frame: Frame, n_queries: int | None, id_column: str | None
) -> Queries:
    """Choose the ``n_queries`` rows whose labels would teach the model most; None: ten at most."""
    encoded, estimator = encoder_of(model).transform(frame), model.estimator
    n = len(encoded.X)
    n_queries = min(n, _N_QUERIES) if n_queries is None else n_queries
    if n_queries > n:
        raise UsageError(
            f"-n {n_queries}: the pool has {n} usable row{'s' * (n != 1)}; ask for no more"
        )
    is_number = task_of(estimator) is REGRESSION
    labels = () if is_number else (f"proba_{label}" for label in estimator.classes_.tolist())
    own = ("prediction", "std") if is_number else ("information_bits", *labels)
    id_column, id_notes = find_id(model, frame.names, id_column, ("file", "row", *own))
    names = RowNames.of_frame(frame, encoded.rows, id_column)
    chosen = estimator.query(encoded.X, n_queries)
    X = encoded.X[chosen]
    columns = names.take(chosen).columns()
    n_names = len(columns)
    if is_number:
        said = estimator.predict(X, return_std=True)
    else:
        said = (estimator.information(X), *estimator.predict_proba(X).T)
    columns |= dict(zip(own, said, strict=True))
    notes = [*encoded.notes, *id_notes, *ignored_words(model, encoded.ignored, id_column)]
    return Queries(columns, n_names, n, tuple(notes))


def run(
    model: Path,
    pool: str,
    n_queries: int | None,
    out: Path | None,
    id_column: str | None,
    encoding: str | None,
    output: str | None,
    is_for_spreadsheet: bool,
    is_json: bool,
) -> None:
    """Do the work of `mercer query`: `mercer.cli.commands` has its options."""
    check_outputs({"--out": out}, {"MODEL": model, "POOL": pool})
    check_format(out, is_for_spreadsheet=is_for_spreadsheet)
    session = Session(is_json)
    saved = output_of(read_model_before(model, pool), output)
    check_model(saved, model)
    frame = read_for(saved, pool, id_column, encoding)
    found = query_frame(saved, frame, n_queries, id_column)
    for note in found.notes:
        session.note("note", note)
    session.say("pool", f"{frame.source}: {found.n_pool} rows")
    session.blank()
    session.show(rows_table(found.columns, n_text=found.n_names))
    session.blank()
    if out is not None:
        write_rows(out, found.columns, is_for_spreadsheet=is_for_spreadsheet)
        n_written = len(next(iter(found.columns.values())))
        session.say("written", f"{out}, {n_written} row{'s' * (n_written > 1)}")
    session.give({"n_pool": found.n_pool, "queries": records(found.columns)})
