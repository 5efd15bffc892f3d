from __future__ import annotations

import math

import numpy as np
import pytest

from reproduce.papers.basis_answer import Problem
from reproduce.papers.basis_methods import BOSTON_METHODS, SINC_METHODS, make_model, sequential
from reproduce.papers.basis_sinc import sinc_set

DATA = sinc_set(1)
FEW = Problem(DATA.X[:15], DATA.y[:15], DATA.X_test[::50], DATA.y_test[::50], DATA.f_test[::50])


@pytest.mark.parametrize("methods", [SINC_METHODS, BOSTON_METHODS])
def test_names_are_told_apart(methods: tuple) -> None:
    assert len({m.key for m in methods}) == len({m.name for m in methods}) == len(methods)


@pytest.mark.parametrize("key", ["default", "few", "paper", "printed"])
def test_mercer_answers(key: str) -> None:
    method = next(m for m in SINC_METHODS if m.key == key)
    found = method.run(FEW, 0, True)
    assert found.mean.shape == (20,)
    assert found.n_kernels > 0.0
    np.testing.assert_array_equal(found.mean, method.run(FEW, 0, True).mean)


def test_sequential_has_both_bands() -> None:
    found = sequential(make_model(is_paper=True, random_state=0, n_particles=20), FEW)
    assert np.all(found.of_target[0] < found.of_function[0])
    assert found.noise_std > 0.0


def test_boston_has_the_paper_s_settings() -> None:
    options = make_model(is_paper=True).get_params()
    assert options["lengthscale"] == pytest.approx(1.6 / math.sqrt(2.0))
    paper = next(m for m in BOSTON_METHODS if m.key == "paper")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    problem = Problem(X, X[:, 0], X[:5], X[:5, 0])
    model = make_model(
        is_paper=True, lengthscale=5.0 / math.sqrt(2.0), expected_centres=5.0, standardize="std",
        random_state=0, n_particles=40,
    ).fit(X, X[:, 0])  # fmt: skip
    np.testing.assert_array_equal(paper.run(problem, 0, True).mean, model.predict(X[:5]))
