"""`mercer reproduce`: a paper's table or figure: claim, paper, ours, verdict."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import mercer
from mercer.cli.terminal import Session, plain_table
from mercer.errors import UsageError


def run(
    names: tuple[str, ...],
    is_list: bool,
    is_quick: bool,
    out: Path | None,
    jobs: int | None,
    is_json: bool,
) -> None:
    """Do the work of `mercer reproduce`: `mercer.cli.commands` has its options."""
    session = Session(is_json)
    papers, outcome_type = _load("names"), _load("reproduction")
    if is_list:
        _list(session, papers.NAMES)
        return
    if not names:
        listed = ", ".join(entry.name for entry in papers.NAMES)
        raise UsageError(f"name what to reproduce: {listed}")
    outcomes = []
    for name in names:
        tell = functools.partial(session.note, f"{name} ")
        settings = outcome_type.Settings(is_quick, -1 if jobs is None else jobs, tell, out)
        outcome = papers.reproduce(name, settings)
        outcomes.append(outcome)
        _show(session, outcome, outcome_type.mean_and_error)
        if out is not None:
            for path in outcome_type.write_reproduction(outcome, out):
                session.say("wrote", str(path))
    session.give({"reproductions": [_as_dict(outcome) for outcome in outcomes]})


def _load(name: str) -> ModuleType:
    """Import a module of the papers, which are not installed with the package."""
    from mercer.posterior.container import mercer_version

    homes = (Path(mercer.__file__).resolve().parents[2], Path.cwd())
    home = next((h for h in homes if (h / "reproduce" / "papers" / "names.py").is_file()), None)
    if home is None:
        raise UsageError(
            "`mercer reproduce` runs in the folder of mercer's source, where the papers and their "
            f"data lie: unpack the source archive of mercer {mercer_version()} and run it there"
        )
    if str(home) not in sys.path:
        sys.path.append(str(home))
    return importlib.import_module(f"reproduce.papers.{name}")


def _list(session: Session, entries: Sequence[Any]) -> None:
    table = plain_table("name", "what", n_text=2)
    for entry in entries:
        table.add_row(entry.name, entry.summary)
    session.show(table)
    session.give({"names": [{"name": e.name, "summary": e.summary} for e in entries]})


def _show(
    session: Session, outcome: Any, mean_and_error: Callable[[Any], tuple[float, float]]
) -> None:
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


def _as_dict(outcome: Any) -> dict[str, object]:
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
