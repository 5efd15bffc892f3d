"""Signals set a flag; an exception is raised where it is safe, and nowhere else."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from mercer.sampling.progress import Board
from mercer.sampling.signals import StopRequestedError, StopSignals, check_stop, hold_interrupts

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


def wait(seconds: float = 20.0) -> None:
    """Run bytecode for so long, without a look at any flag."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


@BOTH
def test_held_it_is_a_flag_and_handlers_come_back(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    board = Board.in_memory(1)
    with StopSignals(board) as signals:
        signal.raise_signal(number)
        check_stop()  # held: it is for `check` to say when
        assert signals.received == number
        assert board.is_stopping
        with pytest.raises(StopRequestedError) as caught:
            signals.check()
    assert caught.value.signal_number == number
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


@BOTH
def test_a_step_that_looks_is_given_up_at_once(number: signal.Signals) -> None:
    def step() -> None:
        signal.raise_signal(number)
        check_stop()
        pytest.fail("it went on")

    with StopSignals() as signals, pytest.raises(StopRequestedError), signals.interruptible():
        step()


@pytest.mark.parametrize("work", [wait, time.sleep])
def test_a_step_that_does_not_look_is_given_up_too(work: Callable[[float], None]) -> None:
    started = time.monotonic()

    def step() -> None:
        signal.raise_signal(signal.SIGTERM)
        work(60.0)

    with StopSignals() as signals, signals.interruptible(), pytest.raises(StopRequestedError):
        step()
    assert 0.4 < time.monotonic() - started < 50.0


def test_a_second_ctrl_c_does_not_wait() -> None:
    def insist() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it went on")

    with StopSignals(manner="patient"), pytest.raises(StopRequestedError):
        insist()


def test_a_signal_that_nobody_saw_is_said_at_the_end() -> None:
    with pytest.raises(StopRequestedError), StopSignals(manner="patient"):
        signal.raise_signal(signal.SIGINT)


def test_the_innermost_hears_it_and_the_others_do_not() -> None:
    with StopSignals(manner="patient") as outer, StopSignals() as inner:
        signal.raise_signal(signal.SIGINT)
        assert (outer.received, inner.received) == (None, signal.SIGINT)


def test_what_is_begun_after_it_does_not_begin() -> None:
    with StopSignals(manner="patient"):
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(StopRequestedError):
            StopSignals().__enter__()


def test_a_repeated_signal_does_not_outlive_its_context() -> None:
    """After half a second it would come to Python's own handler."""
    with suppress(ZeroDivisionError), StopSignals(manner="patient"):
        signal.raise_signal(signal.SIGINT)
        raise ZeroDivisionError
    wait(1.0)


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with StopSignals(manner="raise"):
            signal.raise_signal(signal.SIGINT)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_rows_at_a_time() -> None:
    before = signal.getsignal(signal.SIGINT)
    with hold_interrupts() as interrupts:
        interrupts.check()
        signal.raise_signal(signal.SIGINT)
        wait(0.8)
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
    assert signal.getsignal(signal.SIGINT) is before


def test_rows_at_a_time_leave_a_handler_of_somebody_else() -> None:
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with hold_interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
            interrupts.check()
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]


def test_rows_inside_a_stream_leave_it_the_signal() -> None:
    with StopSignals() as stream:
        with hold_interrupts() as interrupts:
            signal.raise_signal(signal.SIGTERM)
            interrupts.check()
        assert stream.received == signal.SIGTERM


def test_in_another_thread_nothing_is_installed() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def look() -> None:
        for context in (StopSignals(manner="raise"), hold_interrupts()):
            with context:
                seen.append(signal.getsignal(signal.SIGINT))
                check_stop()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [before, before]


def run(
    program: str, *arguments: object, timeout: float = 100.0
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


# A destructor raises where nobody can catch.
LOST = """
import signal, sys, time
import mercer.cli.main as main

class Deaf:
    def __del__(self):
        def deeper():
            signal.raise_signal(int(sys.argv[1]))
        deeper()

def sleep(arguments):
    try:
        Deaf()
        time.sleep(20)
    except KeyboardInterrupt as error:
        print("heard", error.signal_number)
    return 0

main.main = sleep
main.run()
"""


@BOTH
def test_a_signal_in_a_destructor_comes_again(number: signal.Signals) -> None:
    done = run(LOST, int(number))
    assert (done.stdout, done.stderr) == (f"heard {int(number)}\n", "")


def test_other_ignored_errors_are_told() -> None:
    words = LOST.replace("signal.raise_signal(int(sys.argv[1]))", "raise ValueError('told')")
    done = run(words.replace("sleep(20)", "sleep(0)"), 2)
    assert done.stdout == ""
    assert "ValueError: told" in done.stderr


# A program ends at the second signal, though its clean-up lasts; and where nothing is safe.
STUBBORN = """
import signal, sys, time
import mercer.cli.main as main

def clean_up(arguments):
    try:
        signal.raise_signal(int(sys.argv[1]))
        time.sleep(200)
    finally:
        signal.raise_signal(int(sys.argv[1]))
        time.sleep(200)

def held(arguments):
    words = "signal.raise_signal(int(sys.argv[1])); time.sleep(200)"
    exec(words, {**globals(), "__name__": "ctypes"})

main.main = {"clean_up": clean_up, "held": held}[sys.argv[2]]
main.run()
"""


@BOTH
@pytest.mark.parametrize("where", ["clean_up", "held"])
def test_a_program_ends_all_the_same(number: signal.Signals, where: str) -> None:
    done = run(STUBBORN, int(number), where)
    assert done.returncode == 128 + number
    assert done.stderr == f"mercer: stopped at once by {number.name}\n"


# Numba reads a generator by `ctypes`; an exception there ends the process by signal 11.
STORM = """
import signal, sys
import numba, numpy as np
from mercer.sampling import signals

@numba.njit
def loop(rng, n):
    for _ in range(n):
        rng.normal()

def calls(rng):
    for _ in range(10):
        loop(rng, n_normals)

def storm(n_signals):
    n_stopped = 0
    for k in range(n_signals):
        try:
            with signals.StopSignals(manner="raise", numbers=(signal.SIGALRM,)):
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + 2e-6 * (k % 100))
                while True:
                    calls(rng)
        except signals.StopRequestedError:
            n_stopped += 1
    print(n_stopped, flush=True)

rng = np.random.default_rng(0)
loop(rng, 1)
n_normals = 5000
storm(int(sys.argv[1]))
if sys.argv[2] == "and its mutant":
    signals._is_safe = lambda frame: True
    n_normals = 1
    storm(1000)
"""


def test_no_exception_passes_through_a_compiled_call() -> None:
    """The mutant raises anywhere: of 1000 signals, every eighth or so ends it by signal 11."""
    done = run(STORM, 100, "and its mutant")
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "100\n"), done.stderr[-500:]


FITS = """
import os, signal, sys, threading
import numpy as np
import warnings
import mercer

def stop(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, stop)
warnings.simplefilter("ignore", mercer.ConvergenceWarning)
rng = np.random.default_rng(1)
X = rng.standard_normal((60, 2))
name, arguments, n_signals = sys.argv[1], eval(sys.argv[2]), int(sys.argv[3])
y = X[:, 0] if "Regressor" in name else (X[:, 0] + rng.standard_normal(60) > 0.0).astype(int)
model = getattr(mercer, name)(random_state=0, progress=False, **arguments)
model.fit(X, y)
n_stopped = 0
for k in range(n_signals):
    number = (signal.SIGINT, signal.SIGTERM)[k % 2]
    try:
        threading.Timer(rng.uniform(0.0, 0.15), os.kill, (os.getpid(), number)).start()
        while True:
            model.fit(X, y)
    except KeyboardInterrupt:
        n_stopped += 1
print(n_stopped)
"""


_CHAINS = {"n_draws": 20, "n_warmup": 20, "n_chains": 1}
FITTED = {
    "SequentialKernelRegressor": {"n_particles": 20},
    "SequentialKernelClassifier": {"n_particles": 20},
    "GPClassifier": _CHAINS,
    "GPRegressor": _CHAINS,
    "KernelGibbsClassifier": _CHAINS,
    "BaNKClassifier": {**_CHAINS, "n_frequencies": 20},
    "BaNKRegressor": {**_CHAINS, "n_frequencies": 20},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FITTED)
def test_sixty_signals_into_fits(name: str) -> None:
    """Of basis, two of 99 ended it by a segmentation fault while handlers raised in steps.

    They come up to .15 s after a fit was begun: searches, warm-up and draws of the others.
    """
    done = run(FITS, name, repr(FITTED[name]), 60, timeout=600.0)
    assert (done.returncode, done.stdout) == (0, "60\n"), done.stderr[-500:]
