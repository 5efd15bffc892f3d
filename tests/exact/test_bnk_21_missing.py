"""BNK-21: missing inputs are drawn from their posterior, along with the function."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from mercer.spectral import missing
from mercer.spectral.class_model import CLASSES, ClassState
from mercer.spectral.class_sampler import ClassChain, ClassSampler, JointSampler
from mercer.spectral.missing import (
    InputLaws,
    InputState,
    MissingInputs,
    draw_input_law,
    normal_log_likelihood,
)
from mercer.spectral.rows import MemoryRows
from mercer.spectral.sampler import SpectralSampler, SpectralState
from support import spectral_class_cases, spectral_class_joint, spectral_joint
from support.spectral_cases import draw_joint, redraw_targets
from support.spectral_joint import Joint, N, evidence_of_draws, make, n_reference, sweeps
from support.statistics import dkw_limit, few_first, tiers

# The law of the inputs, and of cells given the others.


def test_bnk_21_law_of_the_inputs() -> None:
    """Whitened draws have the moments of a Wishart law and of a normal one; 5 standard errors."""
    n, d, n_draws = 6, 3, 20_000
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 1.0
    centre = X.sum(axis=0) / (n + 1.0)
    scatter = np.eye(d) + X.T @ X - (n + 1.0) * np.outer(centre, centre)
    drawn = [draw_input_law(rng, X) for _ in range(n_draws)]
    means, precisions = map(np.array, zip(*drawn, strict=True))
    L, degrees = np.linalg.cholesky(scatter), n + d + 2.0
    white = L.T @ precisions @ L  # Wishart with a unit scale
    error = np.sqrt(degrees * (1.0 + np.eye(d)) / n_draws)
    assert (np.abs(white.mean(axis=0) - degrees * np.eye(d)) < 5.0 * error).all()
    chi = np.sort(white[:, 0, 0])
    assert stats.kstest(chi, stats.chi2(degrees).cdf).pvalue > 1e-6
    squares = (n + 1.0) * np.einsum(
        "si,sij,sj->s", means - centre, precisions, means - centre, optimize=True
    )
    assert stats.kstest(squares, stats.chi2(d).cdf).pvalue > 1e-6


@pytest.mark.parametrize("gaps", [(1,), (0, 2), (0, 1, 2, 3)])
def test_bnk_21_cells_given_the_others_by_dense_formulas(gaps: tuple[int, ...]) -> None:
    rng, d, own = np.random.default_rng(1), 4, list(gaps)
    root = rng.standard_normal((d, d))
    P, m, x = root @ root.T + np.eye(d), rng.standard_normal(d), rng.standard_normal(d)
    known = [j for j in range(d) if j not in gaps]
    S = np.linalg.inv(P)
    expected = m[own]
    if known:
        gain = S[np.ix_(own, known)] @ np.linalg.inv(S[np.ix_(known, known)])
        expected = expected + gain @ (x - m)[known]
        S = S - S[:, known] @ np.linalg.inv(S[np.ix_(known, known)]) @ S[known]
    given = np.full(d, np.nan)
    given[known] = x[known]
    normals = np.vstack([np.zeros(d), np.eye(d)[own]])
    laws = [InputLaws(m[np.newaxis], P[np.newaxis], each[np.newaxis]) for each in normals]
    found = np.array([law.filled(0, given[np.newaxis])[0] for law in laws])
    assert (found[:, known] == x[known]).all()
    np.testing.assert_allclose(found[0, own], expected, rtol=1e-10)
    spread = (found[1:] - found[0])[:, own]
    np.testing.assert_allclose(spread.T @ spread, S[np.ix_(own, own)], rtol=1e-9, atol=1e-12)


def p_values_of_cells() -> list[float]:
    """Of cells of one row, in many copies of it, and the normal law that they have by algebra."""
    n, d, variance, own = 16_000, 3, 0.2, [0, 2]
    rng = np.random.default_rng(2)
    P, m = np.array([[2.0, 0.5, -0.7], [0.5, 1.0, 0.2], [-0.7, 0.2, 1.5]]), np.array([1.0, 0, 2.0])
    slopes, x1, y = np.array([1.0, -2.0, 0.5]), 0.4, 1.3
    # p(x_0, x_2 | x_1, y): precision and mean from the joint quadratic form.
    Q = P + np.outer(slopes, slopes) / variance
    shift = P @ m + slopes * y / variance
    precision = Q[np.ix_(own, own)]
    mean = np.linalg.solve(precision, shift[own] - Q[own, 1] * x1)
    cells = rng.multivariate_normal(mean, np.linalg.inv(precision), size=n)
    X = np.column_stack([cells[:, 0], np.full(n, x1), cells[:, 1]])
    gaps = np.zeros((n, d), dtype=bool)
    gaps[:, own] = True
    rows = MemoryRows(X, np.full(n, y), False, None, gaps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(missing, "draw_input_law", lambda rng, X: (m, P))
        hear = normal_log_likelihood(lambda X: X @ slopes, variance)
        drawn = MissingInputs(gaps).step(rng, rows, hear).cells
    drawn = drawn.reshape(n, 2)
    assert (drawn != cells).any(axis=1).mean() > 0.7
    white = (drawn - mean) @ np.linalg.cholesky(precision)
    looked_at = *white.T, (white[:, 0] + white[:, 1]) / math.sqrt(2.0)
    return [float(stats.kstest(values, "norm").pvalue) for values in looked_at]


def test_bnk_21_cells_given_a_linear_function() -> None:
    """False alarm 1e-6 each."""
    assert min(p_values_of_cells()) > 1e-6


def p_value_of_a_cell_of_classes() -> float:
    """Of a cell of one row, in many copies of it, and its law given a label, by quadrature."""
    n, own, rng = 16_000, 1, np.random.default_rng(3)
    P, m, x0 = np.array([[1.5, 0.6], [0.6, 1.2]]), np.array([0.5, -1.0]), 0.8

    def function(X: np.ndarray) -> np.ndarray:
        return 3.0 * np.sin(2.0 * X[:, :1].T + X[:, 1:].T)

    grid = np.linspace(-9.0, 9.0, 4001)
    centre = m[own] - P[own, 0] * (x0 - m[0]) / P[own, own]
    rows = np.column_stack([np.full(len(grid), x0), grid])
    log_density = CLASSES.log_mass(function(rows), np.zeros(len(grid)))
    log_density -= 0.5 * P[own, own] * (grid - centre) ** 2
    law = np.append(0.0, np.cumsum(np.exp(0.5 * (log_density[1:] + log_density[:-1]))))
    law /= law[-1]
    X = np.column_stack([np.full(n, x0), np.interp(rng.random(n), law, grid)])
    gaps = np.zeros((n, 2), dtype=bool)
    gaps[:, own] = True
    rows_ = MemoryRows(X, np.zeros(n), False, None, gaps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(missing, "draw_input_law", lambda rng, X: (m, P))
        drawn = MissingInputs(gaps).step(rng, rows_, lambda X, y: CLASSES.log_mass(function(X), y))
    assert (drawn.cells != X[:, own]).mean() > 0.7
    return float(stats.kstest(np.interp(drawn.cells, grid, law), "uniform").pvalue)


def test_bnk_21_a_cell_given_a_label() -> None:
    """False alarm 1e-6."""
    assert p_value_of_a_cell_of_classes() > 1e-6


# The joint law of state, inputs and targets, as BNK-6 and, of classes, BNK-12.

N_SWEEPS, N_RUNS, N_STATISTICS = 6, 600, 18
JOINT = ("diagonal, pcn, linear part", "full, half global, linear part")
D = 2
GAPS = np.zeros((N, D), dtype=bool)
GAPS[:6, 0] = GAPS[4:8, 1] = True


def with_gaps(case: str) -> SpectralSampler:
    return dataclasses.replace(make(case), missing=MissingInputs(GAPS))


def filled(sampler: Any, state: Any) -> Any:
    """The sampler as it is where the inputs of the state are known."""
    return dataclasses.replace(sampler, rows=sampler.missing.filled(sampler.rows, state.inputs))


def with_inputs(rng: np.random.Generator, sampler: Any) -> tuple[Any, InputState]:
    """The sampler of rows that are drawn by their definition, and what a chain holds of them."""
    precision = stats.wishart(D + 2, np.eye(D)).rvs(random_state=rng)
    covariance = np.linalg.inv(precision)
    mean = rng.multivariate_normal(np.zeros(D), covariance)
    X = rng.multivariate_normal(mean, covariance, size=sampler.rows.n_rows)
    rows = dataclasses.replace(sampler.rows, X=X)
    cells = X[sampler.missing.is_missing]
    return dataclasses.replace(sampler, rows=rows), InputState(cells, mean, precision)


def draw(
    rng: np.random.Generator, sampler: SpectralSampler
) -> tuple[SpectralSampler, SpectralState]:
    """Inputs, then state and targets, by their definition."""
    sampler, inputs = with_inputs(rng, sampler)
    own, state = draw_joint(rng, sampler)
    return own, dataclasses.replace(state, inputs=inputs)


def redraw(
    rng: np.random.Generator, sampler: SpectralSampler, state: SpectralState
) -> tuple[SpectralSampler, SpectralState]:
    """New targets given the state and its inputs."""
    return redraw_targets(rng, filled(sampler, state), state)


def statistics(sampler: SpectralSampler, state: SpectralState) -> dict[str, float]:
    """Those of BNK-6 with the inputs as they are, and those of the inputs."""
    own = filled(sampler, state)
    return spectral_joint.statistics(own, state) | of_inputs(own.rows.X, state.inputs)


def of_inputs(x: np.ndarray, inputs: InputState) -> dict[str, float]:
    """Values of distribution functions of inputs and of their law."""
    scale = math.sqrt(2.0 / 3.0)  # t of 3 degrees of freedom
    covariance = np.linalg.inv(inputs.precision)
    row = x[5] - inputs.mean
    found = {
        "a cell": special.stdtr(3.0, x[0, 0] / scale),
        "another cell": special.stdtr(3.0, x[7, 1] / scale),
        "variance of an input": special.gammaincc(1.5, 0.5 / covariance[0, 0]),
        "mean of an input": special.ndtr(inputs.mean[0] / math.sqrt(covariance[0, 0])),
        "a row": special.chdtr(2, row @ inputs.precision @ row),
    }
    return {k: float(v) for k, v in found.items()}


@functools.cache
def evidence_of_prior(case: str, n: int) -> np.ndarray:
    """Log evidence of n sets of targets from their joint law with state and inputs."""
    return evidence_of_draws(draw, np.random.default_rng(82), with_gaps(case), n)


def distances(case: str, n: int = N_RUNS) -> dict[str, float]:
    """Largest differences of distribution functions after sweeps from exact draws."""
    joint = Joint(draw, redraw, statistics, sweeps(N_SWEEPS))
    reference = {"log evidence": evidence_of_prior(case, n_reference(n))}
    return joint.distances(np.random.default_rng(81), with_gaps(case), n, 1, reference)


def limit(n: int = N_RUNS) -> float:
    """False alarm 1e-6 over all statistics of both cases."""
    return dkw_limit(n, N_STATISTICS * len(JOINT))


@pytest.mark.parametrize("n", tiers(150, 600))
@pytest.mark.parametrize("case", few_first(JOINT, JOINT[0]))
def test_bnk_21_joint(case: str, n: int) -> None:
    """False alarm 1e-6 over the 36 distances; detects 0.5 (600 runs: 0.25)."""
    found = distances(case, n)
    assert len(found) <= N_STATISTICS
    assert max(found.values()) < limit(n), found


# Classes: two by trajectories and sweeps, three by joint moves.

CLASS_JOINT: dict[str, tuple[type[ClassChain], int]] = {
    "two classes, pcn, linear part": (ClassSampler, 2),
    "three classes, prior, linear part": (JointSampler, 0),
}
GAPS_OF_CLASSES = np.zeros((spectral_class_joint.N, D), dtype=bool)
GAPS_OF_CLASSES[:6, 0] = GAPS_OF_CLASSES[4:8, 1] = True
N_OF_CLASSES = spectral_class_joint.MOST_STATISTICS + 5


def classes_with_gaps(case: str) -> ClassChain:
    sampler = spectral_class_joint.make(case, *CLASS_JOINT[case])
    return dataclasses.replace(sampler, missing=MissingInputs(GAPS_OF_CLASSES))


def draw_classes(rng: np.random.Generator, sampler: ClassChain) -> tuple[ClassChain, ClassState]:
    """Inputs, then state and labels, by their definition."""
    sampler, inputs = with_inputs(rng, sampler)
    own, state = spectral_class_cases.draw_joint(rng, sampler)
    return own, dataclasses.replace(state, inputs=inputs)


def redraw_classes(
    rng: np.random.Generator, sampler: ClassChain, state: ClassState
) -> tuple[ClassChain, ClassState]:
    """New labels given the state and its inputs."""
    return spectral_class_cases.redraw_labels(rng, filled(sampler, state), state), state


def statistics_of_classes(sampler: ClassChain, state: ClassState) -> dict[str, float]:
    """Those of BNK-12 with the inputs as they are, and those of the inputs."""
    own = filled(sampler, state)
    return spectral_class_joint.statistics(own, state) | of_inputs(own.rows.X, state.inputs)


OF_CLASSES = Joint(draw_classes, redraw_classes, statistics_of_classes, sweeps(N_SWEEPS))


@functools.cache
def reference_of_classes(case: str, n: int) -> dict[str, np.ndarray]:
    """Statistics of n exact draws whose law is not known."""
    found = OF_CLASSES.reference(np.random.default_rng(84), classes_with_gaps(case), n)
    return {name: found[name] for name in spectral_class_joint.TWO_SAMPLES & found.keys()}


def distances_of_classes(case: str, n: int) -> dict[str, float]:
    """Largest differences of distribution functions after sweeps from exact draws."""
    reference, rng = reference_of_classes(case, n_reference(n)), np.random.default_rng(83)
    return OF_CLASSES.distances(rng, classes_with_gaps(case), n, 2, reference)


@pytest.mark.parametrize("n", tiers(150, 600))
@pytest.mark.parametrize("case", few_first(CLASS_JOINT, "two classes, pcn, linear part"))
def test_bnk_21_joint_of_classes(case: str, n: int) -> None:
    """False alarm 1e-6 over the 48 distances; detects 0.5 (600 runs: 0.25)."""
    found = distances_of_classes(case, n)
    assert len(found) <= N_OF_CLASSES
    assert max(found.values()) < dkw_limit(n, N_OF_CLASSES * len(CLASS_JOINT)), found


def ignore_the_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells are drawn as if the function were the same everywhere."""
    step = MissingInputs.step
    monkeypatch.setattr(
        MissingInputs,
        "step",
        lambda self, rng, rows, _: step(self, rng, rows, lambda X, y: np.zeros(len(X))),
    )


def go_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a proposal keeps of a cell, it adds as much as a new one has."""

    def proposed(rng, cells, centre, variance, kept):
        normals = rng.standard_normal(len(cells))
        return centre + kept * (cells - centre) + np.sqrt(variance) * normals

    monkeypatch.setattr(missing, "propose_cells", proposed)


def take_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law of the inputs is the likeliest one, not drawn."""

    def estimated(rng: np.random.Generator, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return X.mean(axis=0), np.linalg.inv(np.cov(X.T, bias=True))

    monkeypatch.setattr(missing, "draw_input_law", estimated)


@pytest.mark.parametrize("mutant", [ignore_the_targets, go_too_far])
def test_bnk_21_sees_cells_of_another_law(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert min(p_values_of_cells()) < 1e-12
    assert p_value_of_a_cell_of_classes() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [ignore_the_targets, take_the_estimate])
def test_bnk_21_sees_a_law_forgotten(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    found = distances(JOINT[0])
    assert max(found.values()) > 1.2 * limit(), found
