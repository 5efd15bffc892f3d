"""Ctrl-C and SIGTERM: a flag that is looked at between two steps, never an exception in a loop.

Python calls the handler of a signal wherever its own code runs, also in what Numba calls while it
reads the arguments of a compiled loop (a generator, by `ctypes`) or compiles one. An exception
there is lost, or ends the process by a segmentation fault. So the handler sets a flag. Who works in
steps looks at it: `StopSignals.check`, or `check_stop` from inside a long step. Only where nobody
looks for a while is an exception raised, and only from a place where that is safe.

Everything here speaks of the main thread: elsewhere no signal arrives, and nothing is installed.
"""

from __future__ import annotations

import _thread
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # --help need not wait for numpy
    from mercer.sampling.progress import Board

#: What a signal does beside setting the flag: nothing; raise once a step has lasted for too long
#: without a look at the flag; raise at the next safe place.
Manner = Literal["hold", "patient", "raise"]

_STEP_PATIENCE = 0.5  # seconds that a step has to look at the flag
_WORKER_PATIENCE = 1.2  # and that chains in other processes have to finish theirs and save
_LAST_PATIENCE = 1.6  # after which a program ends without unwinding
_RETRY = 0.002  # seconds until it is asked again whether the place is safe

# What Numba runs when it calls a loop or compiles one, and what cannot be left halfway.
_FOREIGN = ("numba", "llvmlite", "ctypes", "importlib", "weakref")


class StopRequestedError(KeyboardInterrupt):
    """Ctrl-C or SIGTERM, raised where it was safe."""

    def __init__(self, number: int, words: str = "") -> None:
        super().__init__(words or f"stopped by {signal.Signals(number).name}")
        self.signal_number = number


class StopSignals:
    """Context manager: while it is open, SIGINT and SIGTERM set ``received``.

    They may be nested: signals go to the innermost. A signal that is ignored stays so.

    The ``board`` is asked to stop the chains of other processes too; and looked at by `check_stop`.
    The ``manner`` is what else a signal does: nothing ("hold"), raise `StopRequestedError` after
    half a second in which nobody looked ("patient"), or raise it at the next safe place ("raise").
    Without ``numbers``, the signals, only the board stops. With ``is_program`` the process is
    mercer's own: the second signal ends it at once, and so does the first where no safe place is
    found.
    """

    def __init__(
        self,
        board: Board | None = None,
        manner: Manner = "hold",
        numbers: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM),
        *,
        is_program: bool = False,
    ) -> None:
        self.board = board
        self.received: int | None = None
        self._manner: Manner = manner
        self._numbers = numbers
        self._is_program = is_program
        self._is_told = False  # raised, or looked at by whoever ends the work
        self._is_urgent = False
        self._is_ending = False  # of a program: a signal has come
        self._is_open = False
        self._patience = _STEP_PATIENCE
        self._previous: dict[int, Any] = {}
        self._hook: Callable[..., Any] | None = None

    def __enter__(self) -> StopSignals:
        if not _is_main_thread() or not (self._numbers or self.board):
            return self
        if _open and _open[-1]._manner != "hold":
            _open[-1].check()
        for number in self._numbers:
            handler = signal.getsignal(number)
            if handler not in (signal.SIG_IGN, None):
                self._previous[number] = handler
        self._hook, sys.unraisablehook = sys.unraisablehook, _again_if_lost
        self._is_open = True
        _open.append(self)
        for number in self._previous:
            signal.signal(number, _handle)
        return self

    def __exit__(self, kind: object = None, error: object = None, trace: object = None) -> None:
        if not self._is_open:
            return
        with _sending:  # nothing is sent again from here on
            self._is_open = False
            _sent_again.clear()
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        _open.remove(self)
        sys.unraisablehook = self._hook or sys.__unraisablehook__
        if kind is None and self._manner != "hold" and self._is_pending:
            self.check()

    def check(self) -> None:
        """Raise `StopRequestedError` if a signal came."""
        if self.received is not None:
            self._is_told = True
            raise StopRequestedError(self.received)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let this block, a pure step, be given up: by `check_stop`, or when it lasts too long."""
        self.check()
        before, self._manner = self._manner, "patient"
        try:
            yield
        finally:
            self._manner = before

    def wait_for(self, call: Callable[[], Any]) -> Any:
        """Run ``call``, which waits for other processes; give it up if they do not stop."""
        self._patience = _WORKER_PATIENCE
        try:
            with self.interruptible():
                return call()
        finally:
            self._patience = _STEP_PATIENCE

    @property
    def _is_pending(self) -> bool:
        return self.received is not None and not self._is_told

    @property
    def _is_asked(self) -> bool:
        return self.received is not None or (self.board is not None and self.board.is_stopping)

    def _take(self, number: int, frame: FrameType | None) -> None:
        """Take in a signal that came from outside."""
        outermost = _open[0]
        if outermost._is_program:
            if outermost._is_ending:
                _leave(number)
            outermost._is_ending = True
            _thread.start_new_thread(_leave_late, (number,))
        if self.received is not None:
            self._is_urgent = True  # asked twice
        else:
            self.received = number
            if self.board is not None:
                self.board.request_stop()
        if self._manner == "patient" and not self._is_urgent:
            self._send_again(self._patience)
        else:
            self._raise_if_safe(frame)

    def _raise_if_safe(self, frame: FrameType | None) -> None:
        if self._manner == "hold" or self.received is None:
            return
        if not _is_safe(frame):
            self._send_again(_RETRY)
            return
        self._is_told = True
        raise StopRequestedError(self.received)

    def _send_again(self, seconds: float) -> None:
        # Not a Thread or a Timer: they take locks, which the interrupted code may hold.
        _thread.start_new_thread(_send_later, (self, seconds))


_open: list[StopSignals] = []  # the innermost last
_sent_again: list[StopSignals] = []  # signals that are on their way a second time
_sending = threading.Lock()


def check_stop() -> None:
    """Give up a long step if a stop was asked for: called between its parts, in any depth.

    `StopRequestedError` is raised only where the step may be given up: inside
    `StopSignals.interruptible`, or in something that is no step.
    """
    if not _open or not _is_main_thread():
        return
    innermost = _open[-1]
    if innermost._manner != "hold" and innermost._is_asked:
        innermost._is_told = True
        raise StopRequestedError(innermost.received or signal.SIGINT)


def hold_interrupts() -> StopSignals:
    """Return what holds Ctrl-C back until its ``check``, while states are changed in place.

    Only where Python's own handler would raise: a handler that somebody else installed stays.
    """
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return StopSignals(numbers=(signal.SIGINT,) if is_default else ())


def _handle(number: int, frame: FrameType | None) -> None:
    """Be the handler of both signals, whatever is open."""
    if not _open:  # restored in the meantime
        return
    innermost, is_again = _open[-1], bool(_sent_again)
    _sent_again.clear()
    if is_again:
        innermost._raise_if_safe(frame)
    else:
        innermost._take(number, frame)


def _send_later(context: StopSignals, seconds: float) -> None:
    time.sleep(seconds)
    with _sending:
        if not (_open and context is _open[-1] and context._is_pending and context.received):
            return
        _sent_again.append(context)
        if hasattr(signal, "pthread_kill"):  # ends a wait, too
            signal.pthread_kill(threading.main_thread().ident or 0, context.received)
        else:
            _thread.interrupt_main(signal.Signals(context.received))


def _again_if_lost(unraisable: sys.UnraisableHookArgs) -> None:
    """Send a signal again whose exception Python had to ignore, as in a destructor."""
    if isinstance(unraisable.exc_value, StopRequestedError) and _open:
        _open[-1].received = unraisable.exc_value.signal_number
        _open[-1]._is_told = False
        _open[-1]._send_again(_RETRY)
    else:
        (_open[0]._hook if _open and _open[0]._hook else sys.__unraisablehook__)(unraisable)


def _is_safe(frame: FrameType | None) -> bool:
    """Whether an exception in this frame goes up to the code of mercer that called it.

    It does not through what Numba calls, an import that is half done, or a destructor.
    """
    if frame is not None and frame.f_globals.get("__name__") == __name__:
        return False  # signals are being set up, or given back
    while frame is not None:
        package, _, _ = str(frame.f_globals.get("__name__", "")).partition(".")
        if package in _FOREIGN or frame.f_code.co_name == "__del__":
            return False
        if package == "mercer":
            return True
        frame = frame.f_back
    return True


def _is_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _leave(number: int) -> None:
    """End the process without unwinding; what is written whole or not at all is whole."""
    words = f"mercer: stopped at once by {signal.Signals(number).name}\n"
    try:
        os.write(2, words.encode())
    finally:  # also where standard error is closed
        os._exit(128 + number)


def _leave_late(number: int) -> None:
    """End a program in which the exception could not be raised: nobody is unwinding."""
    time.sleep(_LAST_PATIENCE)
    with _sending:
        if _open and _open[-1]._is_pending and _open[-1]._manner != "hold":
            _leave(number)


# A worker, whose parent alone hears signals.

_TICK = 0.2  # seconds between two looks at whether the parent is still there


def call_deaf(parent: int, call: Callable[..., Any], given: Any, named: Any) -> Any:
    """Call, for another process, ignoring Ctrl-C and SIGTERM; end soon after that process."""
    if parent == os.getpid():  # joblib starts no processes below its threads
        return call(*given, **named)
    _follow(parent)
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        return call(*given, **named)
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)


@functools.cache
def _follow(parent: int) -> None:
    """End this process soon after its parent, which may be killed without a chance to say so."""
    if hasattr(os, "getppid"):
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:  # an orphan is given to another
        time.sleep(_TICK)
    os._exit(1)


# The clock. A deadline is a time of `time.monotonic`; None is no limit.


def is_late(deadline: float | None) -> bool:
    """Whether the deadline has passed."""
    return deadline is not None and time.monotonic() > deadline


def part_of_time(deadline: float | None, share: float) -> float | None:
    """When a share of the time that is left has passed."""
    if deadline is None:
        return None
    now = time.monotonic()
    return now + share * (deadline - now)


def stop_when_late(deadline: float | None) -> Callable[[object], None]:
    """Return a callback for `scipy.optimize.minimize`: it ends after the step that is late."""

    def callback(intermediate_result: object) -> None:
        if is_late(deadline):
            raise StopIteration

    return callback
