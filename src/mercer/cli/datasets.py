"""`mercer datasets`: what can be named instead of a file."""

from __future__ import annotations

import click

from mercer.cli.options import debug_option, json_option


@click.command()
@json_option
@debug_option
def command(is_json: bool) -> None:
    """List the data sets that can be named instead of a file; their target is "target"."""
    from dataclasses import asdict

    from rich.text import Text

    from mercer.cli.terminal import Session, plain_table
    from mercer.data.files import printable
    from mercer.data.named import list_named

    session = Session(is_json)
    known = list_named()
    table = plain_table("name", "task", "rows", "inputs", "where", n_text=2)
    table.columns[4].justify = "left"
    table.columns[4].no_wrap = False
    table.columns[4].overflow = "fold"
    for entry in known:
        table.add_row(
            entry.name, entry.task, str(entry.n), str(entry.d), Text(printable(entry.where))
        )
    session.show(table)
    session.give({"datasets": [asdict(entry) for entry in known]})
