"""Every command's name, options and help; its work is imported when it is used."""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import get_completion_class

from mercer.cli.options import TableOptions, complete_column, complete_data, complete_model

#: The variable by which a shell asks for completions.
COMPLETE = "_MERCER_COMPLETE"


class Group(click.Group):
    """The group of commands, in the order in which they are declared."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the nearest."""
        name = args[0]
        if not name.startswith("-") and name not in self.commands:
            import difflib

            close = difflib.get_close_matches(name, self.commands, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "`mercer --help` lists them"
            ctx.fail(f"no such command {name!a}; {hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Group,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 96,
        "show_default": True,
    },
    epilog="Example: mercer fit breast_cancer --target target --test-size 0.25 --report r.html",
)
@click.version_option(
    importlib.metadata.version("mercer"), "-V", "--version", message="mercer %(version)s"
)
def cli() -> None:
    """Bayesian kernel machines with honest uncertainty.

    DATA is a CSV, JSON lines (both also .gz, .zst), Excel, Parquet or Arrow file, a folder of
    these, the name of a known data set (see `mercer datasets`), or -, standard input.
    """


def declared(
    *options: Any, has_table: bool = False, brief: str = ""
) -> Callable[[Callable[[], None]], None]:
    """Declare a command: a function names it, and says in its docstring what it is for.

    Its work is ``run`` of the module of its name. With ``has_table`` that gets what the options say
    of columns as one argument, ``table``. ``brief`` is for the list of commands; the first line of
    the docstring by default.
    """

    def declare(described: Callable[[], None]) -> None:
        name = described.__name__

        def run(**given: Any) -> None:
            if has_table:
                of_table = given.keys() & {each.name for each in fields(TableOptions)}
                table = TableOptions(**{option: given.pop(option) for option in of_table})
                given["table"] = table
            module = importlib.import_module(f"mercer.cli.{name}")
            if not gc.isenabled():  # as the script `mercer` begins
                gc.freeze()  # what was imported stays
                gc.enable()
            module.run(**given)

        for option in reversed((*options, debug_option)):
            run = option(run)
        words = described.__doc__ or ""
        cli.command(name, help=words, short_help=brief or words.partition("\n")[0])(run)

    return declare


# Options that several commands share.

Command = TypeVar("Command", bound=Callable[..., Any])


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
    help="Column that names the rows; a model knows that of its fit.",
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
    multiple=True,
    callback=lambda _context, _option, words: ",".join(words) if words else None,
    help="Words of text files for a missing value, separated by commas; '' is an empty cell only "
    "[default: NA,N/A,n/a,NaN,nan,NULL,null,?,None]. Repeatable.",
)
missing_option = click.option(
    "--missing",
    type=click.Choice(["error", "drop", "impute", "indicator", "posterior"]),
    default="error",
    help="A missing value is an error, drops its row, or is filled in; posterior: BaNK draws it "
    "along with the function.",
)
categories_option = click.option(
    "--categories",
    metavar="COLUMNS",
    multiple=True,
    shell_complete=complete_column,
    help="Columns whose values are levels, also where they are numbers or more than 50, separated "
    "by commas. Repeatable.",
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
    categories_option,
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
    help="Rows with the same entry stay on one side of a split; no input unless --categories "
    "names it, too.",
    shell_complete=complete_column,
)
time_option = click.option(
    "--time",
    metavar="COLUMN",
    help="Score forward in time: rows are predicted by rows that are earlier in this column.",
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
#: Options of commands that leave the rows in their files.
ENGINE = (
    click.option(
        "--engine",
        type=click.Choice(["disk", "dask"]),
        help="Leave the rows in their files: this process reads them in blocks (disk), or workers "
        "of a Dask cluster read them and add up what is asked of them (dask). Spectral, sphere.",
    ),
    click.option(
        "--scheduler", metavar="ADDRESS", help="Of the cluster [default: one started here]."
    ),
    click.option(
        "--workers",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="To start [default: all cores].",
    ),
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
    """Add an option that names a file to write; --out is -o, too."""
    short = ("-o",) if name == "--out" else ()
    path = click.Path(path_type=Path)
    return click.option(*short, name, type=path, metavar="FILE", required=is_required, help=text)


@declared(
    data_argument(),
    *TABLE,
    group_option,
    time_option,
    click.option(
        "--model",
        shell_complete=complete_model,
        default="auto",
        metavar="NAME",
        help="auto, gp, sphere, spectral or basis; stack mixes all of them and boosting.",
    ),
    click.option("--test", metavar="FILE", help="Score on the rows of this file or data set."),
    click.option(
        "--test-size", type=float, metavar="SHARE", help="Score on this share of the rows."
    ),
    cv_option("Score by K folds [default: 10 below 1000 rows, else --test-size 0.25]."),
    click.option(
        "--no-refit", is_flag=True, help="Save the model that was scored, not one of all rows."
    ),
    out_path("--out", "Save the model."),
    out_path("--report", "Write a report, one HTML file."),
    *RUN,
    jobs_option,
    *ENGINE,
    json_option,
    has_table=True,
)
def fit() -> None:
    """Fit a model to a table, score it beside baselines, save it.

    DATA is a CSV, JSON lines (both also .gz, .zst), Excel (FILE.xlsx or FILE.xlsx:SHEET), Parquet
    or Arrow file, a folder of these, a data set by name, or -, standard input. Several targets,
    numbers with commas between their names, learn one kernel (spectral). A long fit is
    announced: --set max_seconds=60 ends it in time, with what it has by then, and --set
    inference=map takes the most probable hyperparameters of a Gaussian process alone.

    \b
    mercer fit - --target diabetic --out model.mercer < patients.jsonl
    mercer fit patients.csv --target diabetic --out model.mercer --report report.html
    mercer fit houses.csv --target price --task regression --out model.mercer
    mercer fit breast_cancer --target target --test-size 0.25
    mercer fit sensors.csv --target north,east --out model.mercer
    mercer fit flights/ --target delay --engine dask --workers 4 --out model.mercer
    """


@declared(
    model_argument,
    data_argument(),
    out_path("--out", "Write here: .csv, .parquet or .json [default: CSV to standard output]."),
    id_option,
    encoding_option,
    spreadsheet_option,
    json_option,
    brief="Predict the rows of a table with a saved model.",
)
def predict() -> None:
    """Predict the rows of DATA with a saved MODEL.

    Columns are matched by name, and others are ignored. Of a number, per row: the mean and the
    standard deviation of a new observation, and the ends of its 90 % interval; of several targets
    these four of each, named by it. Of a class: the most probable class and the probability of each
    class. Of two classes from gp and spectral also mean and standard deviation of the latent
    function (in logits of the second class); from sphere also the probability of each class before
    its label is recorded, without label noise, and the margin of votes. Where the target is there,
    scores are said on standard error.

    Files above 200 MB are predicted block by block, in little memory, where the result is CSV or
    Parquet and no rows are dropped; so are .npy files of any size.
    """


@declared(
    click.argument("path", type=click.Path(path_type=Path), metavar="[INPUT]", required=False),
    click.option("--target", metavar="COLUMN", help="Column to predict [default: of --load]."),
    task_option(
        "by the targets of --warmup; text, true/false, two whole numbers, or few from 0 or 1 up, "
        "the largest seen twice, is classification."
    ),
    click.option("--model", default="auto", metavar="NAME", help="auto or basis."),
    out_path("--load", "Go on from this model."),
    out_path(
        "--save", "Save the model: as it goes, at the end, when it is stopped, when it fails."
    ),
    click.option(
        "--save-every",
        default="60s",
        metavar="ROWS|SECONDSs",
        help="500: save after so many rows, before they are answered, and still every 60 seconds; "
        "20s: save every so many seconds.",
    ),
    click.option(
        "--lags",
        type=click.IntRange(1, 10_000),
        metavar="L",
        help="The rows are a series: predict from the last L values of the target; of classes with "
        "--task classification.",
    ),
    click.option(
        "--horizon",
        type=click.IntRange(1, 10_000),
        metavar="H",
        help="Of a series: predict so many rows ahead  [default: 1].",
    ),
    click.option(
        "--warmup",
        type=click.IntRange(0, 1_000_000),
        default=50,
        metavar="ROWS",
        help="Read so many rows with a target before anything is predicted.",
    ),
    click.option(
        "--interval",
        "level",
        type=float,
        metavar="LEVEL",
        help="Also the central interval of this probability, such as 0.9: of the target, or of the "
        "probability of each class.",
    ),
    id_option,
    drop_option,
    click.option(
        "--missing",
        type=click.Choice(["error", "impute", "indicator"]),
        help="A row with a missing input cannot be used, or the median or commonest value of "
        "--warmup fills it in; indicator: a column says where, for inputs with gaps in --warmup  "
        "[default: error].",
    ),
    set_option("n_particles=100"),
    seed_option,
    click.option(
        "--on-bad-row",
        type=click.Choice(["skip", "fail"]),
        default="skip",
        help="A row that cannot be used is said and skipped, or ends the stream.",
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice(["auto", "csv", "jsonl"]),
        default="auto",
        help="Of the rows; auto: what begins with a brace is JSON.",
    ),
    null_values_option,
    encoding_option,
    click.option("--quiet", is_flag=True, help="Say nothing on standard error but what ends it."),
)
def stream() -> None:
    """Predict rows as they come, and learn each once it is predicted.

    Rows come from standard input (or -) or the file INPUT: CSV with a header, or a JSON object a
    line. For each row one JSON line is written, at once: the mean and standard deviation of the
    target before it was seen, or the most probable class and the probability of each; the log
    score of the target (lower is better) and the mean of that so far. With --lags these were said H
    rows before, and "ahead" predicts the row that is H later.
    A row without target is predicted and not learned; a later row with nothing but the name of the
    row (--id) and the target brings it, and is scored by what was predicted.

    \b
    sensors | mercer stream --target power --interval 0.9 --save power.mercer
    mercer stream --target power --load power.mercer --save power.mercer < more.csv
    mercer stream --target level --lags 24 --horizon 3 levels.csv
    mercer stream --target state --lags 5 --task classification states.csv
    mercer stream --target species flowers.csv
    """


@declared(
    model_argument,
    data_argument(),
    click.option(
        "--row",
        "asked",
        multiple=True,
        required=True,
        metavar="ROW",
        help="Which row, by its number in DATA from 1, or by its entry in --id; may be repeated.",
    ),
    id_option,
    encoding_option,
    output_option,
    click.option(
        "--label",
        metavar="CLASS",
        help="Explain its probability [default: the second of two, else the most probable].",
    ),
    seed_option,
    out_path("--out", "Write all contributions: .csv, .parquet or .json."),
    spreadsheet_option,
    json_option,
    brief="Say what each input contributed to the prediction of a row.",
)
def explain() -> None:
    """Say what each input contributed to the prediction of a row of DATA.

    Contributions are Shapley values: they add up to the prediction of the row less the mean
    prediction of the other rows of DATA. Each has a 90 % interval, which says how well the model
    knows it, and a Monte Carlo error: of the contribution, while the ends, of 1000 drawn functions,
    are off by 2 % of the width, 10 % on the side of a long tail. Inputs that go together share what
    they say. What an input adds in the model need not be what it does in the world.

    \b
    mercer explain model.mercer patients.csv --row 17
    mercer explain model.mercer patients.csv --id patient --row P-204 --json
    """


@declared(
    model_argument,
    data_argument(metavar="[DATA]"),
    encoding_option,
    out_path("--out", "The HTML file to write.", is_required=True),
    brief="Write the report of a saved model as one HTML file.",
)
def report() -> None:
    """Write the report of a saved MODEL as one HTML file.

    Scores are those that were stored with the model, or, with DATA, those of its rows: they must
    hold the target, and should be rows that the model was not fitted on.
    """


@declared(
    data_argument("data", "FILE"),
    target_option(is_required=False),
    *READING,
    json_option,
    has_table=True,
    brief="Say what is inside a model file or a checkpoint.",
)
def inspect() -> None:
    """Say what is inside a table, a model file or a checkpoint. Nothing is run or learned.

    Of a table: what its columns are taken for, which of them deserve a second look, and what each
    tells of the target by itself. The other options are of tables.

    \b
    mercer inspect patients.csv --target diabetic
    mercer inspect model.mercer
    """


@declared(
    data_argument(),
    *TABLE,
    click.option(
        "--model", default="auto", metavar="NAME", help="auto; of numbers gp or spectral."
    ),
    click.option(
        "--fdr",
        type=click.FloatRange(0.0, 1.0),
        default=0.1,
        metavar="SHARE",
        help="List rows while at most this share of them is expected to be right.",
    ),
    out_path("--out", "Write all rows: .csv, .parquet or .json."),
    out_path("--report", "Write a report, one HTML file."),
    out_path(
        "--fixed", "Write DATA with each listed label or number replaced by the one suggested."
    ),
    spreadsheet_option,
    *RUN,
    jobs_option,
    *ENGINE,
    json_option,
    has_table=True,
    brief="List the rows whose label is probably wrong.",
)
def audit() -> None:
    """List the rows of DATA by the probability that their label or value is wrong.

    Classes: a kernel Gibbs classifier (sphere) learns from all rows that some labels are wrong, how
    many, and which; each suspicious row gets the label that suits it best. If more than half of the
    labels are wrong, nothing can tell. Numbers: a Gaussian process (gp) or, above 1000 rows, a
    learned kernel (spectral) learns the same of values, and says what the other rows would expect.

    \b
    mercer audit patients.csv --target diabetic --id patient --out audit.csv
    mercer audit breast_cancer --target target --fdr 0.05 --report audit.html
    mercer audit meters.csv --target kwh --id meter --out audit.csv
    mercer audit patients.csv --target diabetic --fdr 0.05 --fixed fixed.csv
    """


@declared(
    model_argument,
    data_argument("pool", "POOL"),
    click.option(
        "-n",
        "n_queries",
        type=click.IntRange(1),
        metavar="N",
        help="How many rows [default: 10, or all of fewer].",
    ),
    out_path("--out", "Write the rows: .csv, .parquet or .json."),
    id_option,
    encoding_option,
    output_option,
    spreadsheet_option,
    json_option,
    brief="Choose the rows to label next.",
)
def query() -> None:
    """Choose the rows of POOL whose targets would teach a saved MODEL most.

    The most wanted first, and no near duplicates. Per row, of classes: what its label is expected
    to say, in bits, and the present probability of each class; of numbers: prediction and
    standard deviation. Columns are matched by name, and others are ignored.

    \b
    mercer fit labelled.csv --target diabetic --out model.mercer
    mercer query model.mercer unlabelled.csv -n 10 --id patient --out queries.csv
    """


@declared(
    data_argument(),
    target_option("Column of labels."),
    click.option("--pool", metavar="FILE", help="Rows without labels, to be asked about first."),
    drop_option,
    id_option,
    missing_option,
    dates_option,
    null_values_option,
    encoding_option,
    seed_option,
    out_path("--journal", "Decisions, a line each [default: beside DATA, .review.jsonl]."),
    out_path(
        "--out",
        "The table with the labels that hold [default: named as the journal, .reviewed.csv].",
    ),
    click.option(
        "--refit-every",
        type=click.IntRange(0, 10_000),
        default=5,
        metavar="N",
        help="Decisions until the classifier learns again; 0: never.",
    ),
    click.option(
        "--port",
        type=click.IntRange(0, 65_535),
        default=0,
        show_default=False,
        help="[default: a free one]",
    ),
    click.option("--no-browser", is_flag=True, help="Only print the address of the page."),
    json_option,
    has_table=True,
    brief="Go through labels on a page, one row at a time.",
)
def review() -> None:
    """Go through the labels of DATA on a page of this machine, the most suspicious first.

    One row at a time: the probability that its label is wrong, the label that suits it better, its
    nearest rows, and what speaks against it. Keys: k keep, c change, u unsure, z undo, q finish.
    Each decision is in the journal before the next row shows, and the same command goes on from
    it. A kernel Gibbs classifier learns from the decisions meanwhile.

    \b
    mercer review patients.csv --target diabetic --id patient
    mercer review labelled.csv --target diabetic --pool unlabelled.csv
    """


@declared(
    data_argument(),
    *TABLE,
    group_option,
    time_option,
    click.option(
        "--models",
        metavar="A,B,..",
        help="Only these models and baselines; stack, all models in one, has to be named.",
    ),
    click.option(
        "--metric",
        type=click.Choice(
            [
                *("log_score", "calibration_error", "error_rate", "brier_score"),
                *("rmse", "mse", "standardized_mse", "mae"),
            ]
        ),
        help="What the table is sorted by, lower is better: the first two for any task, the next "
        "two for classes, the others for numbers [default: log_score; for numbers rmse].",
    ),
    click.option(
        "--seconds-per-model",
        type=click.FloatRange(0.1),
        default=60.0,
        help="CPU seconds, over all folds. Models of mercer have a score from a quick setting "
        "before, and then longer ones while they last; a baseline that takes longer is ended.",
    ),
    out_path("--out", "Write the scores, whole after each model: .json, .csv or .parquet."),
    cv_option("Number of folds [default: 10 below 1000 rows, else 5]."),
    jobs_option,
    json_option,
    has_table=True,
    brief="Compare all models and baselines on the same folds.",
)
def compare() -> None:
    """Compare all models and baselines that fit the task, on the same folds.

    \b
    mercer compare patients.csv --target diabetic
    mercer compare wine --target target --models forest,svc --metric error_rate
    mercer compare houses.csv --target price --metric mse
    """


@declared(
    click.argument("names", nargs=-1, metavar="[NAME...]"),
    click.option("--list", "is_list", is_flag=True, help="List the names."),
    click.option(
        "--quick", "is_quick", is_flag=True, help="Fewer repeats: minutes become seconds."
    ),
    click.option(
        "-o",
        "--out",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Write NAME.csv, NAME.md and NAME.png there; long ones go on from what is done there.",
    ),
    jobs_option,
    json_option,
    brief="Reproduce a table or figure of a paper.",
)
def reproduce() -> None:
    """Run a paper's table or figure again and hold every claim against what was seen."""


@cli.command("datasets", short_help="List the data sets that can be named instead of a file.")
@json_option
@debug_option
def datasets(is_json: bool) -> None:
    """List the data sets that can be named instead of a file; their target is "target"."""
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


@declared(
    json_option,
    brief="Say what is installed, how many threads and caches there are, and what is wrong.",
)
def doctor() -> None:
    """Say what mercer finds on this machine: versions, extras, cores, threads, caches.

    What is wrong comes last, with its remedy.
    """


@cli.command(
    "completion", short_help="Write the lines that let a shell complete what is typed after mercer."
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="SHELL")
def completion(shell: str) -> None:
    r"""Write the lines that let SHELL (bash, zsh or fish) complete what is typed after mercer.

    Commands, options, models, files, names of data sets, and columns of the table.

    \b
    eval "$(mercer completion bash)"          in ~/.bashrc
    eval "$(mercer completion zsh)"           in ~/.zshrc, after compinit
    mercer completion fish | source           in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None  # the choice of shells is click's
    click.echo(kind(cli, {}, "mercer", COMPLETE).source())
