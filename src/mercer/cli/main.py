"""`mercer`: the group of commands, each imported when it is used, and the exit codes.

A command is the object ``command`` of the module ``mercer.cli.<name>``; `completion`, which is
about this group, stands here.
"""

from __future__ import annotations

import errno
import importlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem, get_completion_class

from mercer.cli.exits import fail, hush_output, mend_streams
from mercer.errors import rows_without_names
from mercer.sampling.signals import StopSignals

_COMMANDS = {
    "fit": "Fit a model to a table, score it beside baselines, save it.",
    "predict": "Predict the rows of a table with a saved model.",
    "stream": "Predict rows as they come, and learn each once it is predicted.",
    "explain": "Say what each input contributed to the prediction of a row.",
    "report": "Write the report of a saved model as one HTML file.",
    "inspect": "Say what is inside a model file or a checkpoint.",
    "audit": "List the rows whose label is probably wrong.",
    "query": "Choose the rows to label next.",
    "review": "Go through labels on a page, one row at a time.",
    "compare": "Compare all models and baselines on the same folds.",
    "reproduce": "Reproduce a table or figure of a paper.",
    "datasets": "List the data sets that can be named instead of a file.",
    "doctor": "Say what is installed, how many threads and caches there are, and what is wrong.",
    "completion": "Write the lines that let a shell complete what is typed after mercer.",
}
_COMPLETE = "_MERCER_COMPLETE"  # the variable by which a shell asks for completions


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands that are there, in the order of the table."""
        return [
            name
            for name in _COMMANDS
            if name in self.commands or importlib.util.find_spec(f"mercer.cli.{name}")
        ]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command."""
        if name in self.commands or name not in self.list_commands(ctx):
            return self.commands.get(name)
        command: click.Command = importlib.import_module(f"mercer.cli.{name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the nearest."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            import difflib

            close = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f"did you mean {close[0]!r}?" if close else "`mercer --help` lists them"
            ctx.fail(f"no such command {name!a}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        rows = [(name, _COMMANDS[name]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands without importing them, and options."""
        found = [
            CompletionItem(name, help=_COMMANDS[name])
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; what it raises becomes one line and an exit code."""
        try:
            with rows_without_names():  # matrices of tables, for a model saved from Python
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            ctx.exit(fail(error, is_debug="--debug" in (ctx.obj or ())))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
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


@cli.command("completion")
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
    click.echo(kind(cli, {}, "mercer", _COMPLETE).source())


def main(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        code = cli.main(
            list(arguments), prog_name="mercer", standalone_mode=False, obj=tuple(arguments)
        )
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except SystemExit as end:  # click's: completions are given, or nobody reads its help
        if _COMPLETE in os.environ:
            return int(end.code or 0)
        return fail(BrokenPipeError(errno.EPIPE, "standard output is closed"), is_debug=False)
    except (Exception, KeyboardInterrupt) as error:
        return fail(error, is_debug="--debug" in arguments)
    return code if isinstance(code, int) else 0


def run() -> None:
    """Run the command line of this process, and end it."""
    mend_streams()
    with StopSignals(manner="raise", is_program=True):
        code = main(sys.argv[1:])
        hush_output()
    sys.exit(code)


if __name__ == "__main__":
    run()
