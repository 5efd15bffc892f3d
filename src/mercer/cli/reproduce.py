"""`mercer reproduce`: a paper's table or figure: claim, paper, ours, verdict."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mercer.cli.options import debug_option, jobs_option, json_option

if TYPE_CHECKING:
    from mercer.cli.terminal.session import Session
    from mercer.papers.reproduction import Reproduction

__all__ = ["command"]


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME...]")
@click.option("--list", "is_list", is_flag=True, help="List the names.")
@click.option("--quick", "is_quick", is_flag=True, help="Fewer repeats: minutes become seconds.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write NAME.csv, NAME.md and NAME.png there; long ones go on from what is done there.",
)
@jobs_option
@json_option
@debug_option
def command(
    names: tuple[str, ...],
    is_list: bool,
    is_quick: bool,
    out: Path | None,
    jobs: int | None,
    is_json: bool,
) -> None:
    """Run a paper's table or figure again and hold every claim against what was seen."""
    from mercer.cli.terminal.session import Session
    from mercer.errors import UsageError
    from mercer.papers.names import NAMES, reproduce
    from mercer.papers.reproduction import Settings, write_reproduction

    session = Session(is_json)
    if is_list:
        _list(session)
        return
    if not names:
        listed = ", ".join(entry.name for entry in NAMES)
        raise UsageError(f"name what to reproduce: {listed}")
    outcomes = []
    for name in names:
        tell = functools.partial(session.note, f"{name} ")
        settings = Settings(is_quick, -1 if jobs is None else jobs, tell, out)
        outcome = reproduce(name, settings)
        outcomes.append(outcome)
        _show(session, outcome)
        if out is not None:
            for path in write_reproduction(outcome, out):
                session.say("wrote", str(path))
    session.give({"reproductions": [_as_dict(outcome) for outcome in outcomes]})


def _list(session: Session) -> None:
    from mercer.cli.terminal.score_table import plain_table
    from mercer.papers.names import NAMES

    table = plain_table("name", "what", n_text=2)
    for entry in NAMES:
        table.add_row(entry.name, entry.summary)
    session.show(table)
    session.give({"names": [{"name": e.name, "summary": e.summary} for e in NAMES]})


def _show(session: Session, outcome: Reproduction) -> None:
    from mercer.cli.terminal.score_table import plain_table
    from mercer.papers.reproduction import mean_and_error

    session.say(f"{outcome.name} ", f"{outcome.title}; {outcome.source}")
    table = plain_table("claim", "paper", "ours", "verdict", n_text=4)
    for claim in outcome.claims:
        verdict = f"{claim.verdict} ({claim.note})" if claim.note else claim.verdict
        table.add_row(claim.claim, claim.paper, claim.ours, verdict)
    session.show(table)
    figures = plain_table("method", outcome.unit, "+-", "repeats")
    for method, values in outcome.measured.items():
        mean, error = mean_and_error(values)
        spread = format(error, outcome.number) if len(values) > 1 else "-"
        figures.add_row(method, format(mean, outcome.number), spread, str(len(values)))
    session.show(figures)
    for note in outcome.notes:
        session.say("", note)


def _as_dict(outcome: Reproduction) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "name": outcome.name,
        "title": outcome.title,
        "source": outcome.source,
        "command": outcome.command,
        "claims": [asdict(claim) for claim in outcome.claims],
        "unit": outcome.unit,
        "measured": {method: values.tolist() for method, values in outcome.measured.items()},
        "published": dict(outcome.published),
        "notes": list(outcome.notes),
    }
