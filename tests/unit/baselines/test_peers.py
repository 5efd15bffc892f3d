from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mercer.baselines import random_features, rfo
from mercer.baselines.peers import PEERS
from mercer.errors import UsageError
from support.statistics import pairs_first

MAKERS = {peer.name: peer.make for peer in PEERS}


def data(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    return rng.normal(size=(60, 3)) + y[:, np.newaxis], y


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few features and settings: what is tested here does not depend on them."""
    few = {"penalties": (1e-2,), "n_features": 24}
    for module, name, settings in (
        (random_features, "RKSClassifier", {**few, "length_factors": (1.0,)}),
        (random_features, "MKLClassifier", {**few, "length_factors": (1.0,)}),
        (rfo, "RFOClassifier", {**few, "components": (1,)}),
    ):
        monkeypatch.setattr(module, name, partial(getattr(module, name), **settings))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "n_classes"), pairs_first({name: name for name in MAKERS}, {"two": 2, "three": 3})
)
def test_each_gives_probabilities_and_the_same_for_the_same_seed(name: str, n_classes: int) -> None:
    X, y = data(n_classes)
    make = pickle.loads(pickle.dumps(MAKERS[name]))
    with threadpool_limits(limits=1):
        first, second = (make(7, 60, 20).fit(X, y).predict_proba(X) for _ in range(2))
    assert first.shape == (60, n_classes)
    np.testing.assert_allclose(first.sum(axis=1), 1.0)
    np.testing.assert_array_equal(first, second)


def test_names_and_labels_are_different() -> None:
    assert len({peer.name for peer in PEERS}) == len({peer.label for peer in PEERS}) == 9
    assert [peer.name for peer in PEERS if peer.is_brief] == [
        "dummy",
        "logistic",
        "svc",
        "boosting",
    ]


def test_support_vector_machines_are_for_ten_thousand_rows() -> None:
    by_name = {peer.name: peer for peer in PEERS}
    assert by_name["svc"].refusal(10_000) == by_name["boosting"].refusal(10**6) == ""
    assert by_name["svc"].refusal(10_001) == (
        "calibrated SVC is left out: it is for 10000 rows at most"
    )


def test_calibration_needs_two_rows_of_each_class() -> None:
    with pytest.raises(UsageError, match="single row"):
        MAKERS["svc"](0, 10, 1)


def test_few_rows_leave_fewer_neighbours() -> None:
    assert MAKERS["neighbours"](0, 3, 1)[-1].n_neighbors == 3
