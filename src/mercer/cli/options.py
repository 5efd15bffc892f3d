"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class TableOptions:
    """How a table is read: which column is what."""

    target: str
    task: str = "auto"
    drop: tuple[str, ...] = ()
    id_column: str | None = None
    group: str | None = None
    missing: str = "error"
    dates: str = "auto"
    encoding: str | None = None
    null_values: str | None = None

    @property
    def as_text(self) -> tuple[str, ...]:
        """Columns that are names and not numbers, whatever they look like."""
        return tuple(name for name in (self.id_column, self.group) if name is not None)


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


def data_argument(name: str = "data", metavar: str = "DATA") -> Callable[[Command], Command]:
    """Add the table that a command reads."""
    is_needed = not metavar.startswith("[")
    return click.argument(name, metavar=metavar, required=is_needed, shell_complete=complete_data)


model_argument = click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
drop_option = click.option(
    "--drop",
    metavar="COLUMNS",
    multiple=True,
    shell_complete=complete_column,
    help="Columns to leave out, separated by commas. Repeatable.",
)
id_option = click.option(
    "--id",
    "id_column",
    metavar="COLUMN",
    help="Column that names the rows.",
    shell_complete=complete_column,
)
output_option = click.option(
    "--target",
    "output",
    metavar="NAME",
    help="Which of the targets, of a model that learned several.",
)
encoding_option = click.option(
    "--encoding",
    metavar="NAME",
    help="Of text files that are not UTF-8, such as latin-1 (Western European) or cp1252.",
)
null_values_option = click.option(
    "--null-values",
    metavar="WORDS",
    help="Words of text files for a missing value, separated by commas; '' is an empty cell only "
    "[default: NA,N/A,n/a,NaN,nan,NULL,null,?,None].",
)
missing_option = click.option(
    "--missing",
    type=click.Choice(["error", "drop", "impute", "indicator"]),
    default="error",
    help="A missing value is an error, drops its row, or is filled in.",
)
dates_option = click.option(
    "--dates",
    type=click.Choice(["auto", "dayfirst", "monthfirst"]),
    default="auto",
    help="What 01/02/2024 begins with where no date of its column says so.",
)
seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    help="Of all random numbers: the same seed gives the same bits.",
)


def set_option(example: str) -> Callable[[Command], Command]:
    """Add ``--set``."""
    return click.option(
        "--set",
        "settings",
        metavar="NAME=VALUE",
        multiple=True,
        help=f"Any argument of the model, such as {example}. Repeatable.",
    )


def target_option(
    text: str = "Column to predict.", *, is_required: bool = True
) -> Callable[[Command], Command]:
    """Add ``--target``, the column that is learned."""
    return click.option(
        "--target",
        metavar="COLUMN",
        required=is_required,
        help=text,
        shell_complete=complete_column,
    )


def task_option(text: str) -> Callable[[Command], Command]:
    """Add ``--task``."""
    kinds = click.Choice(["auto", "classification", "regression"])
    return click.option("--task", type=kinds, default="auto", help=f"auto: {text}")


#: When targets are classes.
WHOLE_NUMBERS = "text, true/false or at most 10 whole numbers is classification."
#: What the columns of a table are, beside the target.
READING = (
    task_option(WHOLE_NUMBERS),
    drop_option,
    id_option,
    missing_option,
    null_values_option,
    dates_option,
    encoding_option,
)
#: Options of commands that learn from a table.
TABLE = (target_option(), *READING, set_option("n_draws=500"), seed_option)
group_option = click.option(
    "--group",
    metavar="COLUMN",
    help="Rows with the same entry stay on one side of a split.",
    shell_complete=complete_column,
)
#: Options of commands that fit one model.
RUN = (
    click.option(
        "--checkpoint",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Keep the state here as it runs; the same command goes on from it.",
    ),
    click.option("--strict", is_flag=True, help="Write nothing and exit 5 when diagnostics warn."),
)


def cv_option(text: str) -> Callable[[Command], Command]:
    """Add ``--cv``."""
    return click.option("--cv", type=click.IntRange(2, 1000), metavar="K", help=text)


jobs_option = click.option(
    "--jobs", type=click.IntRange(1, 1024), metavar="N", help="Processes [default: all cores]."
)
json_option = click.option("--json", "is_json", is_flag=True, help="The result as JSON on stdout.")
# `mercer.cli.main` looks for it among the arguments.
debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show where an error came from."
)
# Of commands that write CSV.
spreadsheet_option = click.option(
    "--for-spreadsheet",
    "is_for_spreadsheet",
    is_flag=True,
    help="In CSV, put an apostrophe before texts that a spreadsheet would run as formulas.",
)


def out_path(name: str, text: str, *, is_required: bool = False) -> Callable[[Command], Command]:
    """Add an option that names a file to write."""
    return click.option(
        name, type=click.Path(path_type=Path), metavar="FILE", required=is_required, help=text
    )
