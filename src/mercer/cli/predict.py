"""`mercer predict`: what a saved model says of each row of a table."""

from __future__ import annotations

import os
from pathlib import Path

from mercer.cli.out_of_core import TableStream, open_stream
from mercer.cli.outputs import (
    appending_rows,
    check_format,
    check_outputs,
    for_spreadsheet,
    records,
    write_rows,
)
from mercer.cli.prediction import predict_frame, read_for, read_model_before
from mercer.cli.terminal import Session, evaluation_json, listed_scores, score_words
from mercer.data.files import quoted
from mercer.data.frame import KEEP_WORDS, MISSING
from mercer.models import SavedModel


def run(
    model: Path,
    data: str,
    out: Path | None,
    id_column: str | None,
    encoding: str | None,
    is_for_spreadsheet: bool,
    is_json: bool,
) -> None:
    """Do the work of `mercer predict`: `mercer.cli.commands` has its options."""
    check_outputs({"--out": out}, {"MODEL": model, "DATA": data})
    check_format(out, is_for_spreadsheet=is_for_spreadsheet)
    session = Session(is_json)
    saved = read_model_before(model, data)
    is_csv = not is_json if out is None else out.suffix.lower() == ".csv"
    for label in getattr(saved.estimator, "classes_", ()):
        if is_csv and label in MISSING:
            words = f"reads as missing in CSV without {KEEP_WORDS}; .parquet or .json keep it"
            session.note("note", f"class {quoted(label)} {words}")
    is_whole = is_json or encoding is not None
    with session.warnings_as_lines():
        stream = None if is_whole else open_stream(saved, data, out, id_column)
    if stream is not None:
        _predict_blocks(session, stream, out, saved, data, is_for_spreadsheet=is_for_spreadsheet)
        return
    frame = read_for(saved, data, id_column, encoding)
    predictions = predict_frame(saved, frame, id_column)
    for note in predictions.notes:
        session.note("note", note)
    evaluations = predictions.evaluations
    _say_scores(
        session,
        {k: score_words(each) for k, each in evaluations.items()},
        saved,
        data,
        frame.n_rows,
    )
    columns = predictions.columns
    if out is not None or not is_json:
        write_rows(out, columns, is_for_spreadsheet=is_for_spreadsheet)
    if out is not None:
        session.note("written", f"{out}, {len(next(iter(columns.values())))} rows")
    if is_json:
        scores = {name: evaluation_json(each) for name, each in evaluations.items()}
        only = scores.pop("", None)
        given = {"predictions": records(columns), "evaluation": only}
        session.give({**given, "outputs": scores} if len(saved.outputs) > 1 else given)


def _predict_blocks(
    session: Session,
    stream: TableStream,
    out: Path | None,
    model: SavedModel,
    data: str,
    *,
    is_for_spreadsheet: bool,
) -> None:
    """Predict a table that is not read whole, and say the same as of another."""
    dress = for_spreadsheet if is_for_spreadsheet else dict
    for note in stream.notes:
        session.note("note", note)
    if out is None:
        stream.check()
        with appending_rows(None) as writer:
            result = stream.predict(writer, lambda n: None, dress)
    else:
        with session.progress() as bar, appending_rows(out) as writer:
            task = bar.add_task("rows", total=stream.n_rows, detail="")
            result = stream.predict(writer, lambda n: bar.update(task, advance=n), dress)
    for note in result.notes:
        session.note("note", note)
    metrics = stream.predictors[0].task.metrics
    words = {name: listed_scores(each, metrics) for name, each in result.scores.items()}
    _say_scores(session, words, model, data, result.n_rows)
    if out is not None:
        session.note("written", f"{out}, {result.n_rows} rows")


def _say_scores(
    session: Session, scores: dict[str, str], model: SavedModel, data: str, n_rows: int
) -> None:
    """Say the scores of each output, and that they flatter a model of rows that it learned from.

    A file does not say which rows these were: their number and the name of the table do.
    """
    more, learned = "", None if model.table is None else model.table.provenance
    if learned is not None and data != "-":
        is_same = os.path.basename(data) == os.path.basename(learned.source)
        if is_same and n_rows == learned.n_rows:
            more = (
                "; it seems to have learned from this table (same name, as many rows), and "
                "predicts rows that it has not seen worse"
            )
    for name, words in scores.items():
        session.note("scores", (f"{name}: " if name else "") + words + more)
