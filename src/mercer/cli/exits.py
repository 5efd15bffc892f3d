"""How a command ends: exit codes, one line on standard error, nothing left running."""

from __future__ import annotations

import errno
import inspect
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from mercer.errors import MercerError, StorageError

_CLOSED = 128 + 13  # as a program that SIGPIPE ends
_ALSO = {"random_state": "--seed", "n_jobs": "--jobs"}  # options of arguments of estimators


class StoppedError(KeyboardInterrupt):
    """Ctrl-C or SIGTERM, with the words that tell how to go on."""

    def __init__(self, number: int, hint: str) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}; {hint}")
        self.signal_number = number


@contextmanager
def stoppable(checkpoint: Path | None) -> Iterator[None]:
    """Say, when a signal stops what is inside, what was saved and how to go on."""
    from mercer.data.files import printable

    try:
        yield
    except KeyboardInterrupt as error:
        hint = (
            "nothing was saved: with --checkpoint DIR the state is kept, and the same command "
            "goes on from it"
            if checkpoint is None
            else f"the state is saved in {printable(str(checkpoint))}: the same command goes on "
            "from it"
        )
        raise StoppedError(_signal_number(error), hint) from error


@contextmanager
def kept_to_this(folder: Path | None) -> Iterator[None]:
    """Keep a checkpoint folder, if there is one, to this command, and say what a stop leaves in it.

    A `StorageError` if another command has it in hand, or it cannot be made.
    """
    from mercer.atomic import locked
    from mercer.data.files import printable

    if folder is None:
        with stoppable(None):
            yield
        return
    name, is_new = printable(str(folder)), not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{name}: cannot make the folder: {error.strerror}") from error
    try:
        with stoppable(folder), locked(folder):
            yield
    finally:
        if is_new:
            with suppress(OSError):  # something was kept in it
                folder.rmdir()


def fail(error: BaseException, *, is_debug: bool) -> int:
    """Say on standard error why a command failed, and return its exit code."""
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        hush_output()
        return _CLOSED
    if isinstance(error, KeyboardInterrupt):
        _end_workers()
        _leave_blocks(error)
    code, words = _code_and_words(error)
    if is_debug and not isinstance(error, click.ClickException):
        traceback.print_exception(error, file=sys.stderr)
    where = ""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        where = f"{error.ctx.command_path}: "
    with suppress(OSError, ValueError):
        print(f"{where or 'mercer: '}{_one_line(words)}", file=sys.stderr, flush=True)  # noqa: T201
    return code


def _leave_blocks(error: BaseException) -> None:
    """Let blocks clean up that a signal met as they were entered, before `with` had them."""
    each: BaseException | None = error
    while each is not None:
        traceback.clear_frames(each.__traceback__)
        each = each.__cause__ or each.__context__


def mend_streams() -> None:
    """Put something in the place of standard streams that are closed, before any file is opened.

    Else a file that the command opens would get the number of the stream, and be written over by
    what is meant for it. Closed standard output is then a pipe that nobody reads: whatever is
    written ends the command quietly, as after ``| head``. Closed standard error swallows what is
    said, closed standard input is empty.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            _fill(number)


def _fill(number: int) -> None:
    if number == 1:
        reader, writer = os.pipe()
        os.close(reader)  # it may have got the number 1 itself
        if writer != number:
            os.dup2(writer, number)
            os.close(writer)
        sys.stdout = open(number, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
        return
    empty = os.open(os.devnull, os.O_RDWR)
    if empty != number:
        os.dup2(empty, number)
        os.close(empty)
    if number == 2:
        sys.stderr = open(number, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    else:
        sys.stdin = open(number, encoding="utf-8", closefd=False)  # noqa: SIM115


def hush_output() -> None:
    """Flush standard output; if nobody reads it any more, keep the interpreter quiet about it."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unknown_option(error: click.NoSuchOption) -> str:
    """Say how an argument of a model is given, where one was typed as an option."""
    import mercer
    from mercer.models import MODELS

    given, name = error.option_name, error.option_name.lstrip("-").replace("-", "_")
    params = error.ctx.command.params if error.ctx is not None else []
    options = {option for each in params for option in each.opts}
    if _ALSO.get(name) in options:
        return f"No such option {given!r}. Did you mean {_ALSO[name]!r}?"
    models = [getattr(mercer, entry.estimator) for entry in MODELS] if "--set" in options else []
    if any(name in inspect.signature(model).parameters for model in models):
        return f"No such option {given!r}: arguments of a model are given by --set {name}=VALUE"
    return error.format_message()


def _code_and_words(error: BaseException) -> tuple[int, str]:
    if isinstance(error, click.NoSuchOption):
        return 2, _unknown_option(error)
    if isinstance(error, click.ClickException):
        param = error.param if isinstance(error, click.MissingParameter) else None
        is_lost = param is not None and param.name == "target"
        return 2, error.format_message() + " `mercer inspect DATA` lists the columns." * is_lost
    if isinstance(error, KeyboardInterrupt):
        number = _signal_number(error)
        return 128 + number, str(error) or f"stopped by {signal.Signals(number).name}"
    if isinstance(error, MercerError):
        return error.exit_code, str(error)
    if isinstance(error, TimeoutError):  # max_seconds: there is no draw to use
        return 5, str(error)
    if isinstance(error, ImportError) and "pip install" in str(error):
        return 6, str(error)
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        return 6, f"{error.filename}: {reason}" if error.filename else reason
    if isinstance(error, MemoryError):
        return 3, "not enough memory; fit on fewer rows or columns"
    if type(error).__name__ == "LinAlgError":
        return 5, str(error)
    kind = type(error).__name__
    return 1, f"internal error: {kind}: {error}; run again with --debug to see where"


def _one_line(words: str) -> str:
    from mercer.data.files import printable  # imports numpy, which --help need not wait for

    lines = [line for line in words.splitlines() if line.strip()]
    marked = lines[-2:] if lines and not lines[-1].strip("^ ") else []  # carets under a text
    first = " ".join(printable(line.strip()) for line in lines[: len(lines) - len(marked)])
    return "\n".join([first, *map(printable, marked)])


def _signal_number(error: BaseException) -> int:
    return int(getattr(error, "signal_number", signal.SIGINT))


def _end_workers() -> None:
    """End joblib's worker processes, if there are any: they would be waited for at exit."""
    loky = sys.modules.get("joblib.externals.loky.reusable_executor")
    executor = getattr(loky, "_executor", None)
    if executor is not None:
        executor.shutdown(wait=False, kill_workers=True)
