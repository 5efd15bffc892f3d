from __future__ import annotations

from mercer.cli.stream import closing_words
from mercer.cli.stream_model import Prediction, Tally


def test_the_last_thousand_are_apart_from_all() -> None:
    tally = Tally()
    assert (tally.mean_score, tally.recent_score, tally.recent_coverage) == (None, None, None)
    for k in range(2000):
        tally.add(Prediction({}, float(k >= 1000), k >= 1500))
        tally.add(Prediction({}))
    assert (tally.mean_score, tally.recent_score, tally.recent_coverage) == (0.5, 1.0, 0.5)


def test_what_is_said_at_the_end() -> None:
    tally = Tally()
    tally.n_rows, tally.n_learned = 3, 2
    assert closing_words(tally) == "3 read, 2 learned"
    tally.n_bad = 1
    tally.add(Prediction({}, -1.25))
    assert closing_words(tally) == "3 read, 2 learned, 1 bad; mean score -1.25 nats a row"


def test_classes_are_counted_that_were_wrong() -> None:
    tally = Tally()
    assert tally.error_rate is tally.recent_error_rate is None
    for k in range(2000):
        tally.add(Prediction({}, -1.0, is_right=k >= 1500))
    assert (tally.error_rate, tally.recent_error_rate) == (0.75, 0.5)
    assert closing_words(tally).endswith("mean score -1.00 nats a row, 75.0 % wrong")
