"""`mercer stream`: rows as they come, each predicted, then learned."""

from __future__ import annotations

from pathlib import Path

import click

from mercer.cli.options import debug_option, out_path

__all__ = ["command"]


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="[INPUT]", required=False)
@click.option("--target", metavar="COLUMN", help="Column to predict [default: of --load].")
@click.option(
    "--task",
    type=click.Choice(["auto", "classification", "regression"]),
    default="auto",
    show_default=True,
    help="auto: by the targets of --warmup; text, true/false or at most 10 whole numbers is "
    "classification.",
)
@click.option("--model", default="auto", show_default=True, metavar="NAME", help="auto or basis.")
@out_path("--load", "Go on from this model.")
@out_path("--save", "Save the model: as it goes, at the end, when it is stopped, when it fails.")
@click.option(
    "--save-every",
    default="60s",
    show_default=True,
    metavar="ROWS|SECONDSs",
    help="500: save after so many rows, before they are answered, and still every 60 seconds; "
    "20s: save every so many seconds.",
)
@click.option(
    "--lags",
    type=click.IntRange(1, 10_000),
    metavar="L",
    help="The rows are a series: predict from the last L values of the target.",
)
@click.option(
    "--horizon",
    type=click.IntRange(1, 10_000),
    metavar="H",
    help="Of a series: predict so many rows ahead  [default: 1].",
)
@click.option(
    "--warmup",
    type=click.IntRange(0, 1_000_000),
    default=50,
    show_default=True,
    metavar="ROWS",
    help="Read so many rows with a target before anything is predicted.",
)
@click.option(
    "--interval",
    "level",
    type=float,
    metavar="LEVEL",
    help="Also the central interval of this probability, such as 0.9.",
)
@click.option("--id", "id_column", metavar="COLUMN", help="Column that names the rows.")
@click.option(
    "--drop",
    metavar="COLUMNS",
    multiple=True,
    help="Columns to leave out, separated by commas. Repeatable.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="Any argument of the model, such as n_particles=100. Repeatable.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Of all random numbers: the same seed gives the same bits.",
)
@click.option(
    "--on-bad-row",
    type=click.Choice(["skip", "fail"]),
    default="skip",
    show_default=True,
    help="A row that cannot be used is said and skipped, or ends the stream.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", "csv", "jsonl"]),
    default="auto",
    show_default=True,
    help="Of the rows; auto: what begins with a brace is JSON.",
)
@click.option("--quiet", is_flag=True, help="Say nothing on standard error but what ends it.")
@debug_option
def command(
    path: Path | None,
    target: str | None,
    task: str,
    model: str,
    load: Path | None,
    save: Path | None,
    save_every: str,
    lags: int | None,
    horizon: int | None,
    warmup: int,
    level: float | None,
    id_column: str | None,
    drop: tuple[str, ...],
    settings: tuple[str, ...],
    seed: int,
    on_bad_row: str,
    form: str,
    quiet: bool,
) -> None:
    """Predict rows as they come, and learn each once it is predicted.

    Rows come from standard input or from the file INPUT: CSV with a header, or a JSON object a
    line. For each row one JSON line is written, at once: the mean and standard deviation of the
    target before it was seen, or the most probable class and the probability of each; the log
    density of the target (score) and the mean of that so far.
    A row without target is predicted and not learned; in JSON a later row with nothing but the
    name of the row (--id) and the target brings it.

    \b
    sensors | mercer stream --target power --interval 0.9 --save power.mercer
    mercer stream --target power --load power.mercer --save power.mercer < more.csv
    mercer stream --target level --lags 24 --horizon 3 levels.csv
    mercer stream --target species flowers.csv
    """
    import sys
    from contextlib import nullcontext

    from mercer.atomic import locked
    from mercer.cli.terminal.live_stream import LivePanel
    from mercer.cli.terminal.session import Session
    from mercer.cli.work.live.keeping import read_interval
    from mercer.cli.work.live.planning import StreamOptions, plan_stream
    from mercer.cli.work.live.running import run_stream
    from mercer.cli.work.live.warned import warnings_at_once
    from mercer.cli.work.outputs import check_outputs

    check_outputs({"--save": save}, {"INPUT": path, "--load": load})
    session = Session()
    is_shown = session.err.is_terminal and not sys.stdout.isatty() and not quiet
    options = StreamOptions(
        target=target,
        task=task,
        model=model,
        load=load,
        save=save,
        save_every=read_interval(save_every),
        lags=lags,
        horizon=horizon,
        warmup=warmup,
        id_column=id_column,
        drop=drop,
        settings=settings,
        seed=seed,
        level=level,
        is_strict=on_bad_row == "fail",
        form=form,
    )

    def tell(label: str, words: str) -> None:
        if not quiet:
            session.note(label, words)

    kept = nullcontext() if save is None else locked(save)  # also from reading --load on
    with kept, warnings_at_once(tell):
        plan = plan_stream(options, tell)
        if path is None and sys.stdin is not None and sys.stdin.isatty():
            tell("input", "type rows: CSV with a header, or a JSON object a line; Ctrl-D ends")
        run_stream(options, plan, path, tell, LivePanel(session.err, is_shown=is_shown))
