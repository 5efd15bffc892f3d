"""How a table is read, as options say it; and what a shell offers for a word of theirs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from mercer.errors import UsageError


@dataclass(frozen=True)
class TableOptions:
    """How a table is read: which column is what."""

    target: str
    task: str = "auto"
    drop: tuple[str, ...] = ()
    id_column: str | None = None
    group: str | None = None
    time: str | None = field(default=None, kw_only=True)
    missing: str = "error"
    dates: str = "auto"
    encoding: str | None = None
    null_values: str | None = None
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.time is not None and self.group is not None:
            raise UsageError("--time and --group exclude each other")

    @property
    def as_text(self) -> tuple[str, ...]:
        """Columns that are names and not numbers, whatever they look like."""
        parts = [part.strip() for entry in self.categories for part in entry.split(",")]
        named = (self.id_column, self.group, *self.categories, *parts)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def of_whole_tables(self) -> dict[str, Any]:
        """The options that need the table in memory, as they are typed; None: not given."""
        return {"--encoding": self.encoding}


# What a shell offers for a word that is being typed; anything that fails offers nothing.


def complete_data(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """Offer data sets by name, and files."""
    from mercer.data.named import list_named

    names = [each.name for each in list_named() if word and each.name.startswith(word)]
    files = sorted(path.name for path in Path().glob("*") if word and path.name.startswith(word))
    if not names:
        return [CompletionItem(word, type="file")]
    return [CompletionItem(name) for name in (*names, *files)]


def complete_column(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """Offer the columns of DATA, where it is a text file or a data set of scikit-learn."""
    from mercer.data.csv_reader import read_blocks
    from mercer.data.named import SHIPPED, load_named

    given = ctx.params.get("data") or ctx.params.get("pool")
    for data in (given,) if given else ctx.args:  # where the option lacks its value, all words
        try:
            names = (
                load_named(data).names if data in SHIPPED else next(read_blocks(Path(data))).names
            )
        except (OSError, ValueError):
            continue
        return [CompletionItem(name) for name in names if name.startswith(word)]
    return []


def complete_model(ctx: click.Context, param: click.Parameter, word: str) -> list[CompletionItem]:
    """Offer the models of mercer."""
    from mercer.models import model_names

    return [CompletionItem(name) for name in ("auto", *model_names()) if name.startswith(word)]
