"""For all tests: Ctrl-C works in the processes that they start; loops are compiled once."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import warnings
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from support.first_run import compile_all

# The same examples everywhere, however long they take and whatever an earlier run has found.
settings.register_profile(
    "mercer",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("mercer")


def pytest_configure() -> None:
    """Undo an ignored SIGINT, which a shell gives to what it starts in the background.

    Python's own cache of compiled sources is used whatever the shell says: processes that tests
    start, and the tests' rewritten assertions, would else be compiled each time.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test marked `one_in(n)` the first tier runs each n-th, from the first on.

    They show the same of several models or settings; the second tier runs the others. Where cases
    are all pairs of two lists, an n that divides neither length meets each element of both.
    """
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("one_in")
        if mark is None or item.get_closest_marker("slow"):
            continue
        name = item.nodeid.partition("[")[0]
        if seen[name] % mark.args[0]:
            item.add_marker(pytest.mark.slow)
        seen[name] += 1


def pytest_collection_finish() -> None:
    """Spare the garbage collector the thousands of tests that stay until the end."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Do once what the workers would do at the same time: compile the loops, write ArviZ's stamp.

    ArviZ warns once a day and keeps the day in a file, which two first imports at once fight for.
    """
    is_worker = hasattr(session.config, "workerinput")
    if not is_worker and session.config.getoption("numprocesses", None):
        compile_all()
        with warnings.catch_warnings(), contextlib.suppress(ImportError):
            warnings.simplefilter("ignore")
            __import__("arviz")
