"""`mercer review`: a page on which a person goes through labels, one row at a time."""

from __future__ import annotations

import re
import webbrowser
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mercer.cli.options import (
    TableOptions,
    dates_option,
    debug_option,
    drop_option,
    encoding_option,
    id_option,
    json_option,
    missing_option,
    null_values_option,
    out_path,
    seed_option,
)
from mercer.errors import INSTALL, DataError, UsageError
from mercer.estimation.run import digest_json

if TYPE_CHECKING:
    from mercer.cli.tables import TrainingTable
    from mercer.cli.terminal import Session
    from mercer.data.frame import Frame
    from mercer.review.reviewer import Labels, Reviewer

_ENDING = ".review.jsonl"


@dataclass(frozen=True)
class Serving:
    """How the page is served, and what learns meanwhile."""

    port: int
    refit_every: int
    seed: int
    opens_browser: bool


def read_labels(data: str, pool: str | None, options: TableOptions) -> tuple[Labels, TrainingTable]:
    """Read the table, and rows without labels if there are any, as a person is to see them.

    Raises
    ------
    UsageError
        The target is numbers.
    DataError
        A table cannot be read, or the pool lacks an input.
    """
    from mercer.cli.tables import read_training
    from mercer.data.encoding import FILL_IN
    from mercer.data.files import printable
    from mercer.data.row_names import RowNames
    from mercer.data.tables import read_frame
    from mercer.review.reviewer import Labels

    table = read_training(data, options)
    if not table.classes:
        raise UsageError(
            f"{printable(table.source)}: {table.reason}; review is of labels of classes: name "
            "another target, or use --task classification if these are classes; mercer audit lists "
            "wrong numbers"
        )
    classes = tuple(str(label) for label in table.classes)
    X, names = table.X, [table.names.listed([k]) for k in range(len(table.X))]
    recorded: list[str | None] = [str(label) for label in table.labels]
    cells = _cells(table.inputs, range(table.inputs.n_rows))
    if pool is not None:
        import numpy as np

        frame = read_frame(
            pool, as_text=options.as_text, as_written=table.encoder.texts(),
            encoding=options.encoding, null_values=options.null_values,
        )  # fmt: skip
        encoded = table.encoder.transform(frame, FILL_IN)
        id_column = options.id_column if options.id_column in frame.names else None
        more = RowNames.of_frame(frame, encoded.rows, id_column)
        names += [f"{more.listed([k])} of the pool" for k in range(len(encoded.rows))]
        X = np.concatenate([X, encoded.X])
        recorded += [None] * len(encoded.rows)
        kept = _cells(frame, encoded.rows.tolist())
        cells = {name: [*texts, *kept[name]] for name, texts in cells.items()}
    return Labels(X, tuple(recorded), classes, tuple(names), cells), table


def _cells(frame: Frame, rows: range | list[int]) -> dict[str, list[str]]:
    from mercer.data.encoding import as_levels

    texts = {column.name: as_levels(column) for column in frame.columns}
    return {name: [values[k] or "" for k in rows] for name, values in texts.items()}


def write_reviewed(
    out: Path,
    data: str,
    pool: str | None,
    target: str,
    table: TrainingTable,
    labels: list[str | None],
    encoding: str | None = None,
    null_values: str | None = None,
) -> int:
    """Write the table with the labels that hold now, every other cell as it stands; changes made.

    Labelled rows of a pool follow, with the columns that they have.
    """
    import functools

    import numpy as np

    from mercer.cli.outputs import write_rows
    from mercer.cli.tables import WrittenTable, spellings
    from mercer.data.encoding import as_levels
    from mercer.data.tables import read_frame

    written = WrittenTable.read(data, encoding, null_values)
    columns, at = written.columns, written.at(table.names)
    n_table, n_changed = len(table.labels), 0
    spelled = spellings(table.labels.tolist(), columns[target][at].tolist())
    for k, row in enumerate(at):
        label = labels[k]
        if label is not None and label != str(table.labels[k]):
            columns[target][row] = spelled[label]
            n_changed += 1
    if pool is not None and any(label is not None for label in labels[n_table:]):
        read = functools.partial(read_frame, pool, encoding=encoding, null_values=null_values)
        more = read(as_text=tuple(columns))
        encoded = table.encoder.transform(read(as_written=table.encoder.texts()))
        known = [k for k, label in enumerate(labels[n_table:]) if label is not None]
        rows = encoded.rows[known]
        for name in columns:
            empty = np.full(len(rows), None, dtype=object)
            found = as_levels(more.column(name))[rows] if name in more.names else empty
            if name == target:
                found = np.array([spelled[str(labels[n_table + k])] for k in known], dtype=object)
            columns[name] = np.concatenate([columns[name], found])
    write_rows(out, columns, written.line_end)
    return n_changed


def beside(data: str, ending: str) -> Path:
    """Name a file beside the table: without the endings of tables, and what no name may hold."""
    from mercer.data.tables import ARROW_SUFFIXES, TEXT_SUFFIXES

    path = Path(data).resolve() if Path(data).name in ("", "..") else Path(data)
    known = (*TEXT_SUFFIXES, *ARROW_SUFFIXES, ".xlsx")
    longest = max((end for end in known if path.name.lower().endswith(end)), key=len, default="")
    stem = path.name[: len(path.name) - len(longest)]
    return path.with_name(re.sub(r"[:*?\[\]]", "_", stem) + ending)


@click.command()
@click.argument("data", metavar="DATA")
@click.option("--target", metavar="COLUMN", required=True, help="Column of labels.")
@click.option("--pool", metavar="FILE", help="Rows without labels, to be asked about first.")
@drop_option
@id_option
@missing_option
@dates_option
@null_values_option
@encoding_option
@seed_option
@out_path("--journal", "Decisions, a line each [default: beside DATA, .review.jsonl].")
@out_path(
    "--out", "The table with the labels that hold [default: named as the journal, .reviewed.csv]."
)
@click.option(
    "--refit-every",
    type=click.IntRange(0, 10_000),
    default=5,
    show_default=True,
    metavar="N",
    help="Decisions until the classifier learns again; 0: never.",
)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="[default: a free one]")
@click.option("--no-browser", is_flag=True, help="Only print the address of the page.")
@json_option
@debug_option
def command(
    data: str,
    target: str,
    pool: str | None,
    drop: tuple[str, ...],
    id_column: str | None,
    missing: str,
    dates: str,
    null_values: str | None,
    encoding: str | None,
    seed: int,
    journal: Path | None,
    out: Path | None,
    refit_every: int,
    port: int,
    no_browser: bool,
    is_json: bool,
) -> None:
    """Go through the labels of DATA on a page of this machine, the most suspicious first.

    One row at a time: the probability that its label is wrong, the label that suits it better, its
    nearest rows, and what speaks against it. Keys: k keep, c change, u unsure, z undo, q finish.
    Each decision is in the journal before the next row shows, and the same command goes on from
    it. A kernel Gibbs classifier learns from the decisions meanwhile.

    \b
    mercer review patients.csv --target diabetic --id patient
    mercer review labelled.csv --target diabetic --pool unlabelled.csv
    """
    from mercer.cli.exits import stoppable
    from mercer.cli.outputs import check_format, check_outputs
    from mercer.cli.terminal import Session

    if any(find_spec(name) is None for name in ("starlette", "uvicorn")):
        raise ImportError(f"mercer review needs its page; {INSTALL.format('review')}")
    if "-" in (data, pool):
        raise UsageError("mercer review reads its table twice: give a file, not standard input")
    is_named = out is not None
    journal = beside(data, _ENDING) if journal is None else journal
    if out is None:
        stem = journal.name.removesuffix(_ENDING).removesuffix(".jsonl")
        out = journal.with_name(f"{stem}.reviewed.csv")
    check_outputs({"--out": out, "--journal": journal}, {"DATA": data, "--pool": pool})
    check_format(out, is_for_spreadsheet=False)
    session = Session(is_json)
    options = TableOptions(
        target, "classification", drop, id_column, None, missing, dates, encoding, null_values
    )
    if not is_named and out.exists() and not journal.exists():
        raise UsageError(
            f"{out} is there, and is not of the journal {journal}, which begins now; name another "
            "with --out"
        )
    serving = Serving(port, refit_every, seed, not no_browser)
    with session.warnings_as_lines(), stoppable(None):
        _review(data, pool, options, journal, out, serving, session)


def _review(
    data: str,
    pool: str | None,
    options: TableOptions,
    journal: Path,
    out: Path,
    serving: Serving,
    session: Session,
) -> None:
    from mercer.cli.fitting import data_digest, describe_table
    from mercer.review.journal import open_journal
    from mercer.review.reviewer import Reviewer
    from mercer.sampling.progress import waiting
    from mercer.sphere.fitting import LARGEST_WHOLE

    labels, table = read_labels(data, pool, options)
    if len(table.labels) > LARGEST_WHOLE:
        raise DataError(
            f"{data}: {len(table.labels)} rows are more than the {LARGEST_WHOLE} that a review can "
            "learn from again and again; `mercer audit` lists those to look at"
        )
    describe_table(table, session)
    if pool is not None:
        session.say("pool", f"{pool}: {len(labels.recorded) - len(table.labels)} rows")
    n_table = len(table.labels)
    identity = {
        "data": data_digest(table), "target": options.target, "classes": list(labels.classes),
        "n_rows": len(labels.recorded), "names": digest_json(list(labels.names)),
    }  # fmt: skip
    if pool is not None:  # by what a person sees of it
        identity["pool"] = digest_json([[k, texts[n_table:]] for k, texts in labels.cells.items()])
    with open_journal(journal, identity, labels.names) as kept:
        n_before = len(kept.standing)
        verb = f"going on after {n_before} decisions" if n_before else "each decision is kept"
        session.say("journal", f"{journal} ({verb})")
        session.say("learning", "from all labels, as an audit does; then the first row shows")
        reviewer = Reviewer(
            labels, kept, refit_every=serving.refit_every, seed=serving.seed,
            say=lambda words: session.note("", words),
        )  # fmt: skip
        with session.at_work("learning"), waiting("learning", "auto"):
            reviewer.begin()
        try:
            _serve(reviewer, f"{data}, {options.target}", serving, session)
        finally:
            reviewer.close()
            final = reviewer.final_labels()
            n_changed = write_reviewed(
                out,
                data,
                pool,
                options.target,
                table,
                final,
                options.encoding,
                options.null_values,
            )
            counts = reviewer.progress()
    session.say("decided", f"{counts['n_decided']} rows, {counts['unsure']} of them unsure")
    session.say("written", f"{out}, {n_changed} labels changed")
    session.give({**counts, "n_changed": n_changed, "journal": str(journal), "out": str(out)})


def _serve(reviewer: Reviewer, title: str, serving: Serving, session: Session) -> None:
    from mercer.errors import StorageError
    from mercer.review.server import ReviewServer

    try:
        server = ReviewServer(reviewer, title, serving.port)
    except OSError as error:
        raise StorageError(f"--port {serving.port}: {error.strerror}; use another") from None
    session.say("page", f"{server.address} (Ctrl-C or q ends)")
    if serving.opens_browser:
        webbrowser.open(server.address)
    server.run()
