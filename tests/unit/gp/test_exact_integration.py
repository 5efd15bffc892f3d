"""`GPClassifier(integration="exact")`: the estimator around the exact posterior."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer import GPClassifier
from mercer.errors import UsageError
from mercer.report.gp import sections
from support.gp_cases import problem

SETTINGS: dict[str, Any] = {
    "kernel": "rbf",
    "n_draws": 30,
    "n_warmup": 10,
    "n_chains": 2,
    "random_state": 0,
    "progress": False,
    "integration": "exact",
}
X, Y = problem(25, 2)


@pytest.fixture(scope="module")
def model() -> GPClassifier:
    return GPClassifier(**SETTINGS).fit(X, Y)


def test_predictions_are_those_of_the_drawn_functions(model: GPClassifier) -> None:
    proba = model.predict_proba(X)[:, 1]
    mean, variance = model.latent(X)
    assert np.corrcoef(proba, mean)[0, 1] > 0.9
    assert (variance > 0.0).all()
    assert "exact_latent" in model.posterior_.monitored


def test_the_distance_to_laplace(model: GPClassifier) -> None:
    distance = model.laplace_distance(X[:7])
    laplace = GPClassifier(**{**SETTINGS, "integration": "laplace"}).fit(X, Y)
    in_region = model.rows_per_region(X[:7])
    assert distance.differences.shape == in_region.shape == (7,)
    assert distance.largest == np.abs(distance.differences).max()
    assert ((in_region > 1.0) & (in_region < 25.0)).all()  # the row itself, and others
    gap = model.predict_proba(X[:7])[:, 1] - laplace.predict_proba(X[:7])[:, 1]
    np.testing.assert_allclose(distance.differences, gap, atol=0.2)
    with pytest.raises(UsageError, match="integration='exact'"):
        laplace.laplace_distance(X)


def test_files(model: GPClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "m.mercer")
    back = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    assert back.laplace_distance(X).mean == model.laplace_distance(X).mean


def test_the_report_says_how_far(model: GPClassifier) -> None:
    section = sections(model)[-1]
    assert section.key == "laplace"
    assert "25 training rows" in section.text[0]
    assert len(section.figures) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inference": "map"}, "inference"),
        ({"inference": "metropolis"}, "inference"),
        ({"n_leapfrog": 3, "step_size": 0.1}, "leave n_leapfrog out"),
        ({"integration": "laplacian"}, "integration must be"),
    ],
)
def test_refusals(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        GPClassifier(**{**SETTINGS, **arguments}).fit(X, Y)


def test_several_classes_are_refused() -> None:
    with pytest.raises(UsageError, match="for two classes; there are 3"):
        GPClassifier(**SETTINGS).fit(X, np.arange(25) % 3)
