"""`mercer query`: the rows of a pool to label next."""

from __future__ import annotations

from pathlib import Path

import click

from mercer.cli.options import debug_option, json_option, out_path, spreadsheet_option

__all__ = ["command"]


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.argument("pool", metavar="POOL")
@click.option(
    "-n",
    "n_queries",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many rows.",
)
@out_path("--out", "Write the rows: .csv, .parquet or .json.")
@click.option("--id", "id_column", metavar="COLUMN", help="Column that names the rows.")
@spreadsheet_option
@json_option
@debug_option
def command(
    model: Path,
    pool: str,
    n_queries: int,
    out: Path | None,
    id_column: str | None,
    is_for_spreadsheet: bool,
    is_json: bool,
) -> None:
    """Choose the rows of POOL whose labels would teach a saved MODEL of sphere most.

    The most wanted first, and no near duplicates. Per row: what its label is expected to say of
    the classifier, in bits, and the present probability of each class. Columns are matched by
    name, and others are ignored.

    \b
    mercer fit labelled.csv --target diabetic --model sphere --out model.mercer
    mercer query model.mercer unlabelled.csv -n 10 --id patient --out queries.csv
    """
    from mercer.cli.terminal.audit_words import rows_table
    from mercer.cli.terminal.session import Session
    from mercer.cli.work.outputs import check_outputs
    from mercer.cli.work.prediction import read_for
    from mercer.cli.work.querying import check_model, query_frame
    from mercer.cli.work.rows_out import check_format, for_spreadsheet, records, write_rows
    from mercer.models import read_model

    check_outputs({"--out": out}, {"MODEL": model, "POOL": pool})
    check_format(out, is_for_spreadsheet=is_for_spreadsheet)
    session = Session(is_json)
    saved = read_model(model)
    check_model(saved, model)
    frame = read_for(saved, pool, id_column)
    found = query_frame(saved, frame, n_queries, id_column)
    for note in found.notes:
        session.note("note", note)
    session.say("pool", f"{pool}: {found.n_pool} rows")
    session.blank()
    session.show(rows_table(found.columns, n_text=found.n_names))
    session.blank()
    if out is not None:
        columns = for_spreadsheet(found.columns) if is_for_spreadsheet else found.columns
        write_rows(out, columns)
        session.say("written", f"{out}, {n_queries} row{'s' * (n_queries > 1)}")
    session.give({"n_pool": found.n_pool, "queries": records(found.columns)})
