"""KGS-10: several classes, each move from exact starts, against enumerated patterns of labels.

Starts come from the posterior by rejection; after a move they must still be posterior draws, so
that the classes at three rows follow the law that orthant probabilities give: a chi-square test of
27 cells, false alarm 1e-6. Where a move acts on what patterns do not show, a test of one function
of the draws against exact draws, by the bound of Dvoretzky, Kiefer and Wolfowitz, false alarm 1e-6.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy.stats import chi2, norm

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere import several_loops as compiled
from mercer.sphere import several_loops as joint
from mercer.sphere.several import SeveralModel
from support.several_cases import (
    broken,
    chi_square,
    entangled,
    exact_draws,
    loop_costs,
    make_model,
    make_several,
    n_groups,
    noises,
    pattern_number,
    pattern_posterior,
    scratch,
    separable,
)
from support.sphere_cases import pattern_posterior as two_class_posterior
from support.statistics import FALSE_ALARM, dkw_distance, dkw_limit, few_first, tiers

KINDS = ["fixed", "per row", "learned", "confusion"]
OF_ERRORS = [kind for kind in KINDS if kind != "confusion"]  # what trajectories know
_COUNT = 5_000


@pytest.fixture(autouse=True, params=tiers(5_000, 20_000))
def count(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of how many exact starts each test is."""
    monkeypatch.setitem(globals(), "_COUNT", request.param)


# What some mutants change is seen on so many only.
_ON_MANY = pytest.mark.parametrize("count", [20_000], indirect=True)


def starts(model: SeveralModel, rng: np.random.Generator) -> np.ndarray:
    """Exact points [f; g], shape (count, C, n + r)."""
    g = exact_draws(rng, model, _COUNT)
    return np.concatenate([g @ model.L.T, g], axis=2)


def after_line_moves(
    model: SeveralModel, module=compiled, width: float = 3.0, n_moves: int = 3
) -> np.ndarray:
    """Each start after line moves of random classes along random directions."""
    rng = np.random.default_rng(60)
    points, costs, H = starts(model, rng), loop_costs(model), np.ascontiguousarray(model.L.T)
    classes = rng.integers(0, model.n_classes, (len(points), n_moves))
    directions = rng.integers(0, model.rank, (len(points), n_moves, 1))
    errors, widths = np.empty(n_groups(model), np.int64), np.full(model.rank, width)
    arrays = scratch(model.n_rows)
    for point, of_class, along in zip(points, classes, directions, strict=True):
        for c, order in zip(of_class, along, strict=True):
            module.sweep_class(
                rng, point, c, order, H, widths, model.labels, *costs, errors, arrays,
            )  # fmt: skip
    return points


def after_a_trajectory(model: SeveralModel, module=joint, products=None) -> np.ndarray:
    """The functions g at the end of a trajectory from each start, (count, C, r)."""
    rng = np.random.default_rng(61)
    points, noise, n = starts(model, rng), model.noise, model.n_rows
    z = rng.standard_normal(points[:, :, n:].shape)
    velocities = np.concatenate([z @ model.L.T, z], axis=2)
    durations = rng.uniform(0.5, 2.0, len(points))
    products = model.wall_products if products is None else products
    for point, velocity, duration in zip(points, velocities, durations, strict=True):
        assert module.trajectory(
            model.gram, model.L, products, model.labels, point, velocity, noise.group, noise.step,
            noise.row_cost, duration, 10_000,
        )[2]  # fmt: skip
    return points[:, :, n:]


def after_a_slice(model: SeveralModel, module=joint) -> np.ndarray:
    """Each start after an elliptical slice, with the mean and the length drawn anew."""
    rng = np.random.default_rng(62)
    points, costs = starts(model, rng), loop_costs(model)
    z = rng.standard_normal(points[:, :, model.n_rows :].shape)
    velocities = np.concatenate([z @ model.L.T, z], axis=2)
    for point, velocity in zip(points, velocities, strict=True):
        module.joint_move(rng, point, velocity, model.labels, *costs)
    return points


def discrepancy(f: np.ndarray, model: SeveralModel) -> float:
    """Chi-square of the patterns over its limit: above 1 is an alarm."""
    statistic, limit = chi_square(pattern_number(f), pattern_posterior(model))
    return statistic / limit


@functools.cache
def exact_leads(is_noisy: bool, n_draws: int) -> np.ndarray:
    """Leads of many exact draws of `plain`, in order."""
    model = plain(is_noisy)
    g = exact_draws(np.random.default_rng(63), model, n_draws)
    return np.sort(smallest_lead(g, model))


def plain(is_noisy: bool = True) -> SeveralModel:
    """Three rows in the plane, with noise or separable without."""
    model = make_model(3, 2, 3)
    return model if is_noisy else separable(model)


def smallest_lead(g: np.ndarray, model: SeveralModel) -> np.ndarray:
    """f_y less the best other, at the first row."""
    f, label = g @ model.L[0], model.labels[0]
    return f[:, label] - np.delete(f, label, axis=1).max(axis=1)


def lead_error(g: np.ndarray, is_noisy: bool = True) -> float:
    """Distance from the law of the lead over its limit: above 1 is an alarm."""
    exact = exact_leads(is_noisy, 5 * _COUNT)
    limit = dkw_limit(len(g), 2) + dkw_limit(len(exact), 2) + 1.0 / len(exact)
    values = smallest_lead(g, plain(is_noisy))
    cdf = lambda x: np.searchsorted(exact, x, side="right") / len(exact)  # noqa: E731
    return dkw_distance(values, cdf) / limit


def sum_error(g: np.ndarray) -> float:
    """Distance over its limit of the sum over classes from its law, N(0, C): labels leave it be."""
    law = norm(scale=math.sqrt(g.shape[1])).cdf
    return dkw_distance(g[:, :, 0].sum(axis=1), law) / dkw_limit(len(g), 1)


@pytest.mark.parametrize("kind", few_first(KINDS, "confusion"))
def test_kgs_10_rejection_and_enumeration_agree(kind: str) -> None:
    model = entangled(kind)
    g = exact_draws(np.random.default_rng(64), model, _COUNT)
    assert discrepancy(g @ model.L.T, model) < 1.0


@pytest.mark.parametrize("kind", few_first(KINDS, "confusion"))
def test_kgs_10_three_line_moves(kind: str) -> None:
    model = entangled(kind)
    points = after_line_moves(model)
    assert discrepancy(points[:, :, :3], model) < 1.0
    np.testing.assert_allclose(points[:, :, :3], points[:, :, 3:] @ model.L.T, atol=1e-12)


@_ON_MANY
@pytest.mark.slow
def test_kgs_10_sees_two_class_toggles() -> None:
    """Every crossing of a line changes the errors, as with two classes."""
    toggles = broken(compiled, "(-1 if labels[i] == rival[i] else 0)", "-1")
    model = entangled()
    assert discrepancy(after_line_moves(model, toggles)[:, :, :3], model) > 2.0


@pytest.mark.parametrize("width", [1.0, 3.0])
def test_kgs_10_line_moves_within_segments(width: float) -> None:
    g = after_line_moves(plain(), width=width)[:, :, 3:]
    assert lead_error(g) < 1.0
    assert sum_error(g) < 1.0


@pytest.mark.slow
def test_kgs_10_sees_a_window_without_a_place_of_its_own() -> None:
    fixed = broken(compiled, "low = x - width * rng.random()", "low = x - 0.2 * width")
    assert sum_error(after_line_moves(plain(), fixed)[:, :, 3:]) > 2.0


@_ON_MANY
@pytest.mark.slow
def test_kgs_10_sees_uniform_draws_within_segments() -> None:
    uniform = broken(
        compiled, "new = truncated_normal(rng, begin, end)",
        "new = begin + (end - begin) * rng.random()",
    )  # fmt: skip
    assert sum_error(after_line_moves(plain(), uniform)[:, :, 3:]) > 2.0


@pytest.mark.parametrize("kind", OF_ERRORS)
def test_kgs_10_one_trajectory(kind: str) -> None:
    model = entangled(kind)
    assert discrepancy(after_a_trajectory(model) @ model.L.T, model) < 1.0


def test_kgs_10_a_trajectory_keeps_leads() -> None:
    g = after_a_trajectory(plain())
    assert lead_error(g) < 1.0
    assert sum_error(g) < 1.0


def test_kgs_10_trajectories_see_walls_of_two_classes() -> None:
    """All walls with the same normal for each row, as if there were one contrast only."""
    model = entangled()
    g = after_a_trajectory(model, products=np.full_like(model.wall_products, 2))
    assert discrepancy(g @ model.L.T, model) > 2.0


@_ON_MANY
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("if energy <= 0.0:", "if True:", id="always reflect"),
        pytest.param(
            "energy -= 2.0 * cost_up", "pass", id="pass without paying", marks=pytest.mark.slow
        ),
        pytest.param(
            "elif not is_ahead and n_behind == 1:", "elif False:", id="nothing back",
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_kgs_10_trajectories_see_no_refraction(old: str, new: str) -> None:
    model = entangled("learned")
    g = after_a_trajectory(model, broken(joint, old, new))
    assert discrepancy(g @ model.L.T, model) > 2.0


def conflict() -> SeveralModel:
    """The same row twice, with labels 0 and 1 of three classes."""
    L = np.array([[1.0, 0.5], [1.0, 0.5]])
    return SeveralModel(L, np.array([0, 1]), fixed_rate(0.1, 2, 3))


def conflict_discrepancy(g: np.ndarray) -> float:
    """Classes 0 and 1 make one error, class 2 makes two: chi-square over its limit."""
    weights = np.exp(-conflict().noise.step[0, 0] * np.array([1.0, 1.0, 2.0]))
    seen = np.bincount(np.argmax(g @ conflict().L[0], axis=1), minlength=3)
    expected = len(g) * weights / weights.sum()
    return float(((seen - expected) ** 2 / expected).sum() / chi2.isf(FALSE_ALARM, 2))


def test_kgs_10_equal_rows_with_different_labels() -> None:
    assert conflict_discrepancy(after_a_trajectory(conflict())) < 1.0
    assert conflict_discrepancy(after_line_moves(conflict())[:, :, 2:]) < 1.0


def test_kgs_10_sees_walls_at_one_place_in_the_order_of_rows() -> None:
    """From one side the error is paid first, from the other got back first: not reversible."""
    ordered = broken(joint, "index = i if signs[i] < 0.0 else n + i", "index = i")
    assert conflict_discrepancy(after_a_trajectory(conflict(), ordered)) > 2.0


@pytest.mark.parametrize("kind", few_first(KINDS, "confusion"))
def test_kgs_10_one_slice(kind: str) -> None:
    model = entangled(kind)
    points = after_a_slice(model)
    assert discrepancy(points[:, :, :3], model) < 1.0
    np.testing.assert_allclose(points[:, :, :3], points[:, :, 3:] @ model.L.T, atol=1e-12)


def length_error(points: np.ndarray) -> float:
    """The squared length of contrasts of 3 x 2 numbers is chi-square with 4 degrees of freedom."""
    g = points[:, :, 3:]
    squared = ((g - g.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2))
    return dkw_distance(squared, chi2(4).cdf) / dkw_limit(len(g), 1)


def test_kgs_10_length_and_mean_are_those_of_the_prior() -> None:
    points = after_a_slice(plain())
    assert length_error(points) < 1.0
    assert sum_error(points[:, :, 3:]) < 1.0
    assert lead_error(points[:, :, 3:]) < 1.0


@_ON_MANY
def test_kgs_10_slices_see_one_that_is_not_drawn_and_a_length_of_too_many_dimensions() -> None:
    """Two mutants in one, since patterns do not depend on the length nor it on them."""
    greedy = broken(joint, "limit = rng.standard_exponential()", "limit = 0.0")
    longer = broken(joint, "0.5 * (n_classes - 1) * (m - n)", "0.5 * n_classes * (m - n)", greedy)
    points = after_a_slice(plain(), longer)
    assert discrepancy(points[:, :, :3], plain()) > 2.0
    assert length_error(points) > 2.0


@pytest.mark.parametrize("kind", few_first(["learned", "confusion"], "confusion"))
def test_kgs_10_a_whole_step(kind: str) -> None:
    """All moves, along rotated directions, of a sampler."""
    model = entangled(kind)
    sampler, rng = make_several(model), np.random.default_rng(65)
    assert np.abs(sampler.moves.directions - np.eye(3)).max() > 0.1
    ends = np.array([
        sampler.moves.apply(rng, model, g, 1)[0] for g in exact_draws(rng, model, _COUNT)
    ])  # fmt: skip
    assert discrepancy(ends, model) < 1.0


def test_kgs_10_two_classes_are_the_two_class_posterior() -> None:
    """Signs of f_1 - f_0 after line moves, against the enumeration of two classes."""
    model = make_model(3, 3, 2, "per row")
    points = after_line_moves(model)
    signs = np.where(model.labels == 1, 1.0, -1.0)
    G = model.gram * np.outer(signs, signs)
    posterior = two_class_posterior(G, noises(model.labels, 2)["per row"])[0]
    f = (points[:, 1, :3] - points[:, 0, :3]) * signs
    statistic, limit = chi_square((f <= 0.0) @ 2 ** np.arange(3), posterior)
    assert statistic < limit


def test_kgs_10_without_noise_no_row_is_ever_wrong() -> None:
    """q = 0: exact starts stay right, and leads keep their law under each move."""
    model = plain(is_noisy=False)
    for g in (
        after_line_moves(model)[:, :, 3:],
        after_a_trajectory(model),
        after_a_slice(model)[:, :, 3:],
    ):
        assert not model.is_wrong(g @ model.L.T).any()
        assert lead_error(g, is_noisy=False) < 1.0
