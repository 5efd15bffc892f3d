"""A run in a process of its own, to be killed: prints the digest of its draws when it ends.

Usage: run_to_kill.py KIND FOLDER N_JOBS SECONDS_A_STEP. It saves after every step.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from mercer.sampling import checkpoint
from mercer.sampling.driver import SamplingStoppedError, sample
from mercer.sampling.hmc import HamiltonianAdaptation
from support.runs import digest, open_folder, options
from support.targets import make_hmc
from support.toy_sampler import Pause, ToyAdaptation, ToySampler, ToyState


class SlowRecord(ToySampler):
    """A sampler to which SIGTERM comes between two steps, and whose record then takes long."""

    def record(self, state: ToyState):
        """Raise the signal, then wait for longer than the patience with other processes."""
        signal.raise_signal(signal.SIGTERM)
        time.sleep(1.4)
        return super().record(state)


def tell(line: str) -> None:
    """Say a line to whoever reads standard output."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Run, and say how it ended."""
    kind, folder, n_jobs, seconds = sys.argv[1:]
    checkpoint._INTERVAL = -1.0
    if kind == "hmc":
        sampler, adaptation = make_hmc(0.5), HamiltonianAdaptation(90)
        plan = options(60, 90, 1, run=open_folder(Path(folder)))
    else:
        make = SlowRecord if kind == "slow-record" else ToySampler
        sampler, adaptation = make(before_step=Pause(float(seconds))), ToyAdaptation()
        plan = options(n_jobs=int(n_jobs), run=open_folder(Path(folder)))
    tell("begun")
    try:
        draws = sample(sampler, plan, adaptation=adaptation).draws
    except SamplingStoppedError as error:
        tell(f"stopped {error.signal_number}")
        return 128 + error.signal_number
    tell(digest(draws))
    return 0


if __name__ == "__main__":
    sys.exit(main())
