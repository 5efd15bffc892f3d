"""Processes for tests that are about a process, not about what it imports.

One process for all tests of a worker has imported what commands need; each that is started here is
forked from it. It has a number, streams, signals and an end of its own, as any other, but for the
second that imports take. What happens while modules are imported is tested with plain processes.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

_TESTS = Path(__file__).parents[1]
_IMPORTED = (
    "mercer.cli.compare", "mercer.cli.fit", "mercer.cli.inspect", "mercer.cli.main",
    "mercer.cli.predict", "mercer.cli.stream", "mercer.data.named", "mercer.gp.estimator",
    "mercer.baselines.peers", "mercer.report", "pandas", "pyarrow.csv", "rich.console",
    "sklearn.ensemble", "support.line_model.estimator", "support.runs", "support.targets",
    "support.toy_sampler",
)  # fmt: skip


class Forked:
    """A process that was forked: what tests use of `subprocess.Popen`, by the same names.

    Parameters
    ----------
    words : sequence of str
        The command ``mercer``, or the path of a script; and its arguments.
    stdin, stdout : file, optional
        Where its input comes from and its output goes; by default pipes.
    closed : collection of int
        Numbers of streams that it is born without.
    env : mapping, optional
        Its environment; by default the one here.
    text : bool
        Whether its streams are read as text. Bytes that are sent are not held back.
    start_new_session : bool
        Whether it leads a session of its own.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        stdin: Any = None,
        stdout: Any = None,
        closed: Collection[int] = (),
        env: Mapping[str, str] | None = None,
        text: bool = False,
        start_new_session: bool = False,
    ) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        ours_err, theirs_err = os.pipe()
        told, tell = os.pipe()
        asked = [list(words), dict(env or os.environ), os.getcwd(), start_new_session, list(closed)]
        given_in = theirs_in if stdin is None else stdin.fileno()
        given_out = theirs_out if stdout is None else stdout.fileno()
        descriptors = [given_in, given_out, theirs_err, tell]
        socket.send_fds(_parent(), [json.dumps(asked).encode()], descriptors)
        for descriptor in (theirs_in, theirs_out, theirs_err, tell):
            os.close(descriptor)
        self.returncode: int | None = None
        self._told: BinaryIO = open(told, "rb", buffering=0)  # noqa: SIM115
        self.stdin: Any = open(ours_in, "wb", buffering=0)  # noqa: SIM115
        self.stdout: Any = _reader(ours_out, text)
        self.stderr: Any = _reader(ours_err, text)
        self.pid = int(self._told.readline())

    def poll(self) -> int | None:
        """Its exit code, or minus the signal that ended it; none while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self.returncode = int(self._told.readline())
            self._told.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """End what is sent; return what comes until all have closed its streams, and wait."""
        end = None if timeout is None else time.monotonic() + timeout
        with contextlib.suppress(OSError):
            self.stdin.close()
        said: dict[str, Any] = {}

        def read(name: str) -> None:
            with getattr(self, name) as stream:
                said[name] = stream.read()

        readers = [threading.Thread(target=read, args=(n,), daemon=True) for n in _NAMES]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(None if end is None else max(0.0, end - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        self.wait(None if end is None else max(0.0, end - time.monotonic()))
        return said["stdout"], said["stderr"]

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


_NAMES = ("stdout", "stderr")


def _reader(descriptor: int, text: bool) -> Any:
    stream = open(descriptor, "rb", buffering=-1 if text else 0)  # noqa: SIM115
    return io.TextIOWrapper(stream, encoding="utf-8") if text else stream


@functools.cache
def _parent() -> socket.socket:
    """Start the process that others are forked from; it ends with this one."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path = os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-m", "support.forked"]
    with there:
        parent = subprocess.Popen(command, stdin=there, env=environment, start_new_session=True)

    def end() -> None:
        here.close()
        parent.wait()

    atexit.register(end)
    return here


def _serve() -> None:
    """Fork a process for each that is asked for; return in it, with what it is to run."""
    asking = socket.socket(fileno=os.dup(0))
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    while True:
        message, descriptors, *_ = socket.recv_fds(asking, 1 << 20, 4)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not message:
            os._exit(0)
        if os.fork() == 0:
            break
        for descriptor in descriptors:
            os.close(descriptor)
    asking.close()
    _be_born(json.loads(message), descriptors)


def _be_born(asked: list[Any], descriptors: list[int]) -> None:
    """Fork once more: one of the two becomes what was asked for, the other tells how it ends."""
    words, environment, folder, is_first, closed = asked
    *streams, tell = descriptors
    child = os.fork()
    if child:
        for descriptor in (0, 1, 2, *streams):
            os.close(descriptor)
        os.write(tell, f"{child}\n".encode())
        os.write(tell, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())
        os._exit(0)
    if is_first:
        os.setsid()
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    for number in closed:
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
        os.close(number)
    sys.argv = words
    if words[0] == "mercer":
        importlib.import_module("mercer.cli").run()
    else:
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    _serve()
