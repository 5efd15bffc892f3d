"""A signal that Python had to ignore ends the command all the same."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# The destructor raises where nobody can catch; the mutant, without the hook, sleeps on.
LOST = """
import signal, sys, time
import mercer.cli.main as main

class Deaf:
    def __del__(self):
        signal.raise_signal(int(sys.argv[1]))

def sleep(arguments):
    try:
        Deaf()
        time.sleep(20)
    except KeyboardInterrupt as error:
        print("heard", int(getattr(error, "signal_number", signal.SIGINT)))
    return 0

main.main = sleep
main.run()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_lost_signal_comes_again(number: signal.Signals) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOST, str(int(number))],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (f"heard {int(number)}\n", "")


def test_other_ignored_errors_are_told() -> None:
    words = LOST.replace("signal.raise_signal(int(sys.argv[1]))", "raise ValueError('told')")
    done = subprocess.run(
        [sys.executable, "-c", words.replace("sleep(20)", "sleep(0)")],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == ""
    assert "ValueError: told" in done.stderr
