"""`mercer review`: a page on which a person goes through labels, one row at a time."""

from __future__ import annotations

import functools
import re
import webbrowser
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from mercer.cli.exits import stoppable
from mercer.cli.fitting import data_digest, describe_table
from mercer.cli.options import TableOptions
from mercer.cli.outputs import check_format, check_outputs, write_rows
from mercer.cli.tables import TrainingTable, WrittenTable, read_training, spellings
from mercer.cli.terminal import Session
from mercer.data.encoding import FILL_IN, as_levels
from mercer.data.files import printable
from mercer.data.frame import Frame
from mercer.data.row_names import RowNames
from mercer.data.tables import ARROW_SUFFIXES, TEXT_SUFFIXES, read_frame
from mercer.errors import INSTALL, DataError, StorageError, UsageError
from mercer.estimation.run import digest_json
from mercer.review.journal import open_journal
from mercer.review.reviewer import Labels, Reviewer
from mercer.sampling.progress import waiting
from mercer.sphere.propagation import LARGEST_PROPAGATED
from mercer.sphere.selection import (
    FEATURES_OF_MANY,
    MOST_PROPAGATED_CLASSES,
    settings_of_many,
)
from mercer.sphere.space import LARGEST_EXACT

_ENDING = ".review.jsonl"


@dataclass(frozen=True)
class Serving:
    """How the page is served, and what learns meanwhile."""

    port: int
    refit_every: int
    seed: int
    opens_browser: bool


def read_labels(data: str, pool: str | None, options: TableOptions) -> tuple[Labels, TrainingTable]:
    """Read the table, and rows without labels if there are any, as a person is to see them."""
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
    texts = {column.name: as_levels(column) for column in frame.columns}
    return {name: [values[k] or "" for k in rows] for name, values in texts.items()}


def write_reviewed(
    out: Path,
    data: str,
    pool: str | None,
    options: TableOptions,
    table: TrainingTable,
    labels: list[str | None],
) -> int:
    """Write the table with the labels that hold now, every other cell as it stands; changes made.

    Labelled rows of a pool follow, with the columns that they have.
    """
    target, how = options.target, (options.encoding, options.null_values)
    written = WrittenTable.read(data, *how)
    columns, at = written.columns, written.at(table.names)
    n_table, n_changed = len(table.labels), 0
    spelled = spellings(table.labels.tolist(), columns[target][at].tolist())
    for k, row in enumerate(at):
        label = labels[k]
        if label is not None and label != str(table.labels[k]):
            columns[target][row] = spelled[label]
            n_changed += 1
    if pool is not None and any(label is not None for label in labels[n_table:]):
        read = functools.partial(read_frame, pool, encoding=how[0], null_values=how[1])
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
    path = Path(data).resolve() if Path(data).name in ("", "..") else Path(data)
    known = (*TEXT_SUFFIXES, *ARROW_SUFFIXES, ".xlsx")
    longest = max((end for end in known if path.name.lower().endswith(end)), key=len, default="")
    stem = path.name[: len(path.name) - len(longest)]
    return path.with_name(re.sub(r"[:*?\[\]]", "_", stem) + ending)


def run(
    data: str,
    table: TableOptions,
    pool: str | None,
    seed: int,
    journal: Path | None,
    out: Path | None,
    refit_every: int,
    port: int,
    no_browser: bool,
    is_json: bool,
) -> None:
    """Do the work of `mercer review`: `mercer.cli.commands` has its options."""
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
    options = replace(table, task="classification")
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
    labels, table = read_labels(data, pool, options)
    n, n_classes = len(table.labels), len(labels.classes)
    if n > LARGEST_EXACT and "sampler" not in settings_of_many(n, n_classes):
        raise DataError(
            f"{data}: {n} rows of {n_classes} classes are more than the {LARGEST_EXACT} (of up to "
            f"{MOST_PROPAGATED_CLASSES} classes {LARGEST_PROPAGATED // FEATURES_OF_MANY}) that a "
            "review can learn from again and again; `mercer audit` lists those to look at"
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
            n_changed = write_reviewed(out, data, pool, options, table, final)
            counts = reviewer.progress()
    session.say("decided", f"{counts['n_decided']} rows, {counts['unsure']} of them unsure")
    session.say("written", f"{out}, {n_changed} labels changed")
    session.give({**counts, "n_changed": n_changed, "journal": str(journal), "out": str(out)})


def _serve(reviewer: Reviewer, title: str, serving: Serving, session: Session) -> None:
    from mercer.review.server import ReviewServer

    try:
        server = ReviewServer(reviewer, title, serving.port)
    except OSError as error:
        raise StorageError(f"--port {serving.port}: {error.strerror}; use another") from None
    session.say("page", f"{server.address} (Ctrl-C or q ends)")
    if serving.opens_browser:
        webbrowser.open(server.address)
    server.run()
