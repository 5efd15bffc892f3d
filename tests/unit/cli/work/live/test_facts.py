from __future__ import annotations

from types import SimpleNamespace

from mercer.cli.stream import Facts
from mercer.cli.stream_model import Prediction, Tally


def facts_of(said: Prediction, **fields: float) -> dict[str, str]:
    tally = Tally()
    tally.n_rows = tally.n_learned = 3
    tally.add(said)
    model = SimpleNamespace(n_centres_=2.5, **fields)
    learner = SimpleNamespace(tally=tally, predictor=SimpleNamespace(model=model), is_ready=True)
    return Facts(learner, clock=lambda: 0.0)()


def test_of_numbers_noise_and_intervals_are_said() -> None:
    facts = facts_of(Prediction({}, -1.0, is_inside=True), noise_std_=0.25)
    assert facts["in interval"] == "100.0 %"
    assert facts["noise"] == "0.250"
    assert "wrong (last 1000)" not in facts


def test_of_classes_the_share_of_errors_is_said() -> None:
    facts = facts_of(Prediction({}, -1.0, is_right=False))
    assert facts["wrong (last 1000)"] == "100.0 %"
    assert facts["centres"] == "2.5"
    assert "noise" not in facts
