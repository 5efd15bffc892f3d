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


def burn(seconds: float) -> float:
    """Take so much CPU time, however busy the machine is."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))
    return seconds


def test_a_group_that_runs_out_of_time_is_ended_and_the_others_go_on() -> None:
    jobs = [Job("slow", functools.partial(burn, 60)) for _ in range(3)]
    jobs += [Job("quick", functools.partial(pow, 2, 3))]
    outcomes = run_jobs(jobs, 2, seconds_per_group=0.25)
    assert [outcome.is_out_of_time for outcome in outcomes] == [True, True, True, False]
    assert outcomes[3].value == 8


def test_time_is_that_of_the_processor() -> None:
    """Who waits, as on a busy machine, is not ended, though it takes twice the limit."""
    waits, works = run_jobs(
        [
            Job("waits", functools.partial(time.sleep, 1.2)),
            Job("works", functools.partial(burn, 0.3)),
        ],
        1,
        seconds_per_group=0.6,
    )
    assert not waits.is_out_of_time
    assert waits.seconds < 0.2
    assert 0.25 < works.seconds < 0.6
    assert works.value == 0.3


def test_what_is_due_runs_to_its_end_and_later_stages_while_they_fit() -> None:
    """Stages of two jobs, .1, .15 and 20 s each: the last is not begun, or is ended at once."""
    costs = (0.1, 0.15, 20.0)
    jobs = [
        Job("a", functools.partial(burn, cost), stage, is_due=stage == 0)
        for stage, cost in enumerate(costs)
        for _ in range(2)
    ]
    lost = [each.is_out_of_time for each in run_jobs(jobs, 1, seconds_per_group=1.0)]
    assert lost == [False] * 4 + [True] * 2
    lost = [each.is_out_of_time for each in run_jobs(jobs, 1, seconds_per_group=0.05)]
    assert lost == [False] * 2 + [True] * 4


def test_a_stage_is_given_up_when_its_first_job_shows_that_it_is_too_long() -> None:
    ended: list[float] = []
    jobs = [Job("a", functools.partial(burn, 0.05), 0, is_due=True) for _ in range(4)]
    jobs += [Job("a", functools.partial(burn, 0.5), 1) for _ in range(4)]
    outcomes = run_jobs(
        jobs, 1, seconds_per_group=1.5, on_outcome=lambda each: ended.append(each.seconds)
    )
    assert [each.is_out_of_time for each in outcomes] == [False] * 5 + [True] * 3
    assert sum(ended) < 1.25


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
