"""Filters side by side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.sampling.checkpoint import pack
from support.basis_batches import little, make_batches

Z = np.random.default_rng(5).standard_normal((9, 2))


def learned(n_rows: int = 30, **own):
    """Ensemble, state, and what was said of each row."""
    batches, rng = make_batches(n_rows, **own), np.random.default_rng(0)
    state, said = batches.filters.init(rng), []
    for z, y in zip(batches.Z, batches.y, strict=True):
        state, outlook = batches.filters.learn(rng, state, z, float(y))
        said.append(outlook)
    return batches, state, said


def test_weights_are_of_past_predictive_densities() -> None:
    """Scores fall by 1 % a row; a row is predicted with the weights before it."""
    _, _, said = learned(forgetting=(1.0, 0.7))
    scores = np.zeros(2)
    for outlook in said:
        np.testing.assert_allclose(outlook.log_weights, scores - np.logaddexp(*scores), atol=1e-12)
        each = [seen.log_density for seen in outlook.seen]
        mixed = np.logaddexp(*(outlook.log_weights + each))
        if outlook.outliers is not None:
            mixed = outlook.outliers.joined(np.array(outlook.target), mixed)
        np.testing.assert_allclose(outlook.log_density, mixed)
        scores = 0.99 * scores + each


def test_the_law_is_the_mixture_of_laws() -> None:
    batches, state, _ = learned(forgetting=(1.0, 0.7))
    shares = np.exp(state.log_weights)
    alone = [
        type(batches.filters)((f,)).law(replace(state, filters={"0": s}, scores=np.zeros(1)), Z)
        for f, s in zip(batches.filters.filters, state.states, strict=True)
    ]
    y = np.linspace(-1.0, 1.0, 9)
    law = batches.filters.law(state, Z)
    expected = np.log(sum(w * np.exp(a.log_density(y)) for w, a in zip(shares, alone, strict=True)))
    np.testing.assert_allclose(law.log_density(y), expected)
    np.testing.assert_allclose(
        law.mean, sum(w * a.mean for w, a in zip(shares, alone, strict=True))
    )
    numbers = np.array([1.0, 5.0])
    assert np.isclose(state.mean(numbers), shares @ numbers)


def test_of_one_filter_there_is_no_score() -> None:
    _, state, said = learned()
    assert state.scores[0] == 0.0
    assert state.log_weights[0] == 0.0
    assert said[3].log_density == said[3].seen[0].log_density


def test_what_was_said_is_the_density_of_the_row() -> None:
    batches, _, said = learned()
    for outlook, y in zip(said, batches.y, strict=True):
        np.testing.assert_allclose(outlook.law.log_density([y])[0], outlook.log_density, atol=1e-9)
    assert said[0].n_centres == 0.0
    assert said[-1].n_centres > 0.0


def test_a_copy_shares_nothing() -> None:
    batches, state, _ = learned(forgetting=(1.0, 0.7))
    before = {name: array.tobytes() for name, array in pack(state, "").items()}
    copy = batches.filters.copied(state)
    batches.filters.learn(np.random.default_rng(1), copy, Z[0], 0.3)
    assert {name: array.tobytes() for name, array in pack(state, "").items()} == before


def test_the_number_of_rows() -> None:
    _, state, _ = learned(12)
    assert state.n_seen == 12
    assert len(little(forgetting=(1.0, 0.9, 0.8)).forgetting) == 3
