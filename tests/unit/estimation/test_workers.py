from __future__ import annotations

import functools
import os
import time

import pytest

from mercer.data.named import load_named
from mercer.errors import StorageError
from mercer.estimation.workers import Job, Outcome, run_jobs


def test_values_come_in_the_order_of_the_jobs_and_failures_keep_their_type() -> None:
    begun: list[Job] = []
    ended: list[Outcome] = []
    jobs = [Job("a", functools.partial(pow, 2, k)) for k in range(5)] + [
        Job("b", functools.partial(load_named, "nothing"))
    ]
    outcomes = run_jobs(jobs, 2, on_begin=begun.append, on_outcome=ended.append)
    assert [outcome.value for outcome in outcomes[:5]] == [1, 2, 4, 8, 16]
    assert isinstance(outcomes[5].error, StorageError)
    assert len(begun) == len(ended) == 6


def test_a_group_that_runs_out_of_time_is_ended_and_the_others_go_on() -> None:
    jobs = [Job("slow", functools.partial(time.sleep, 60)) for _ in range(3)]
    jobs += [Job("quick", functools.partial(pow, 2, 3))]
    started = time.monotonic()
    outcomes = run_jobs(jobs, 2, seconds_per_group=0.5)
    assert time.monotonic() - started < 20
    assert [outcome.is_out_of_time for outcome in outcomes] == [True, True, True, False]
    assert outcomes[3].value == 8


def test_a_process_that_dies_is_replaced() -> None:
    jobs = [Job("dies", functools.partial(os._exit, 9)), Job("fine", functools.partial(pow, 2, 3))]
    outcomes = run_jobs(jobs, 1, seconds_per_group=60.0)
    assert "ended unexpectedly" in str(outcomes[0].error)
    assert outcomes[1].value == 8


def test_in_this_process_an_interrupt_goes_through() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs([Job("a", interrupted)], 1)
