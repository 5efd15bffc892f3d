"""`mercer`: one command line, its exit code, and the process that runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from mercer.cli.commands import COMPLETE, cli
from mercer.cli.exits import fail, hush_output, mend_streams
from mercer.errors import rows_without_names
from mercer.sampling.signals import StopRequestedError, StopSignals


def main(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    words = list(arguments)
    try:
        if os.environ.get(COMPLETE):
            cli.main(words, prog_name="mercer")
        # Not `cli.main`, which answers Ctrl-C with an empty line. Rows have no names here.
        with rows_without_names(), cli.make_context("mercer", words, obj=tuple(words)) as context:
            code = cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except (Exception, KeyboardInterrupt) as error:
        return fail(error, is_debug="--debug" in arguments)
    return code if isinstance(code, int) else 0


def run() -> None:
    """Run the command line of this process, and end it."""
    mend_streams()
    try:
        with StopSignals(manner="raise", is_program=True):
            code = main(sys.argv[1:])
            hush_output()
    except StopRequestedError as error:  # after the last place where the command could be left
        code = fail(error, is_debug=False)
    sys.exit(code)


if __name__ == "__main__":
    run()
