"""``checkpoint`` and ``n_jobs`` of an estimator: the same draws, bit for bit."""

from __future__ import annotations

import functools
import signal
from pathlib import Path

import numpy as np
import pytest

from mercer.errors import ModelFileError
from mercer.estimation import run as estimation_run
from mercer.gp.estimator import GPClassifier
from mercer.gp.model import HyperparameterPosterior
from mercer.sampling.driver import SamplingStoppedError
from support.gp_cases import problem
from support.runs import digest
from support.toy_sampler import AtCall

_X, _Y = problem(15, 2)


def model(folder: Path | None = None, **arguments) -> GPClassifier:
    plan = {"n_draws": 15, "n_warmup": 65, "n_chains": 2, "random_state": 0, "progress": False}
    return GPClassifier(checkpoint=folder, **{**plan, **arguments})


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch):
    """Do something at one of the evaluations from now on."""
    evaluate = HyperparameterPosterior.evaluate

    def start(count: int, action) -> AtCall:
        counter = AtCall(count, action)

        def watched(self, theta):
            counter(None)
            return evaluate(self, theta)

        monkeypatch.setattr(HyperparameterPosterior, "evaluate", watched)
        return counter

    return start


@pytest.mark.parametrize("inference", ["hmc", "nuts"])
def test_p2_stopped_and_resumed(inference: str, tmp_path: Path, watch) -> None:
    counter = watch(-1, None)
    undisturbed = model(inference=inference).fit(_X, _Y)
    for share in (0.2, 0.3, 0.3):
        watch(int(share * counter.seen), functools.partial(signal.raise_signal, signal.SIGTERM))
        with pytest.raises(SamplingStoppedError):
            model(tmp_path, inference=inference).fit(_X, _Y)
    watch(-1, None)
    resumed = model(tmp_path, inference=inference).fit(_X, _Y)
    assert digest(resumed.posterior_) == digest(undisturbed.posterior_)
    np.testing.assert_array_equal(resumed.predict_proba(_X), undisturbed.predict_proba(_X))
    assert "resumed" in resumed.notes_[0]
    assert str(resumed.posterior_.summary()) == str(undisturbed.posterior_.summary())


def test_p1_same_draws_for_any_number_of_jobs() -> None:
    one, two = (model(n_jobs=n).fit(_X, _Y) for n in (1, 2))
    assert digest(one.posterior_) == digest(two.posterior_)


def test_another_seed_gives_other_draws() -> None:
    one, two = (model(random_state=seed).fit(_X, _Y) for seed in (0, 1))
    assert digest(one.posterior_) != digest(two.posterior_)


def test_without_a_seed_a_run_still_resumes(tmp_path: Path) -> None:
    first = model(tmp_path, random_state=None).fit(_X, _Y)
    again = model(tmp_path, random_state=None).fit(_X, _Y)
    assert digest(first.posterior_) == digest(again.posterior_)


@pytest.mark.parametrize(
    "change",
    [{"n_draws": 16}, {"n_warmup": 66}, {"thin": 2}, {"random_state": 3}, {"prior": "paper"},
     {"inference": "nuts"}, {"n_chains": 1}],
    ids=str,
)  # fmt: skip
def test_r6_other_options_are_another_run(tmp_path: Path, change: dict) -> None:
    """A folder may hold several runs: one with other options begins anew, and finds its own."""
    model(tmp_path).fit(_X, _Y)
    other = model(tmp_path, **change).fit(_X, _Y)
    assert other.notes_ == ()
    assert digest(other.posterior_) == digest(model(**change).fit(_X, _Y).posterior_)


def test_r6_other_data_are_another_run(tmp_path: Path) -> None:
    model(tmp_path).fit(_X, _Y)
    assert model(tmp_path).fit(_X, 1.0 - _Y).notes_ == ()


def test_r6_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model(tmp_path).fit(_X, _Y)
    monkeypatch.setattr(estimation_run, "mercer_version", lambda: "99.0")
    with pytest.raises(ModelFileError, match=r"this is 99\.0"):
        model(tmp_path).fit(_X, _Y)
