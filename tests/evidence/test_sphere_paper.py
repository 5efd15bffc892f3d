"""The reproduction of the kernel Gibbs sampler: its parts at tiny sizes, and what they stand on."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.svm import LinearSVC

from mercer.errors import DataError
from mercer.posterior.labels import entropy_bits
from mercer.sphere.sampler import make_start, signed_rows
from mercer.sphere.tempering import Tempering
from reproduce.papers import (
    sphere_claims,
    sphere_figure_1,
    sphere_figure_3,
    sphere_figure_4,
    sphere_margin,
    sphere_seconds,
    sphere_selection,
    sphere_votes,
)
from reproduce.papers.reproduction import Claim, Settings, write_reproduction
from reproduce.papers.sphere_draws import (
    draw_by_great_circles,
    draw_classifiers,
    mean_disagreement,
    model_of,
    unit,
)
from reproduce.papers.sphere_figure_1 import _claims, _log_posterior, _Surface
from reproduce.papers.sphere_figure_4 import _comparison, soft_margin
from reproduce.papers.sphere_margin import margin
from reproduce.papers.sphere_modes import Cells, cells_of, find_modes
from reproduce.papers.sphere_part import Part, correlation_claim, rank_correlation, space_of
from reproduce.papers.sphere_problems import (
    PROBLEMS,
    TRUE_CLASSIFIER,
    on_sphere,
    plane_rows,
    sphere_rows,
    split_of,
)
from reproduce.papers.sphere_seconds import _CIRCLE, _HMC
from reproduce.papers.sphere_votes import _agreement_claim, _coverage_claim, coverage_errors
from support.statistics import largest_z, z_limit

# ------------------------------------------------------------------------------------------- claims

# The parts put together; their verdicts are judged in files of their own, quick runs are slow.


def test_parts_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cheap parts as they are, and one that fills the other three panels."""
    drawn = []
    other = Part((Claim("c", "yes", "1", "fails"),), (drawn.append,) * 3, notes=("n",))
    parts = (sphere_votes.diversity_part, lambda settings: other, sphere_votes.part)
    monkeypatch.setattr(sphere_claims, "_PARTS", parts)
    outcome = sphere_claims.reproduce(Settings(is_quick=True))
    begins = ["diversity"] * 2 + ["c"] + ["the Bayes point", "rejecting the closest"] * 2
    for claim, begin in zip(outcome.claims, begins, strict=True):
        assert claim.claim.startswith(begin)
    assert outcome.claims[2].verdict == "fails"
    assert set(outcome.measured) >= {"plane: vote", "breast cancer: vote, 50 % of the rows"}
    assert all(np.isfinite(values).all() for values in outcome.measured.values())
    assert outcome.notes == ("n",)
    assert write_reproduction(outcome, tmp_path)[2].read_bytes().startswith(b"\x89PNG")
    assert len(drawn) == 3


# ------------------------------------------------------------------------------------------ printed

# What the paper prints and must not be followed in, where no exact test of the step shows it.


def test_an_arbitrary_start_leads_nowhere_at_rate_0() -> None:
    """Trap K3: the paper's step 1; every arc of the first circle has likelihood 0 there."""
    rng = np.random.default_rng(8)
    X, labels = sphere_rows(rng, 200, 0.0)
    S = signed_rows(X, labels)
    t = np.linspace(0.0, 2.0 * np.pi, 2000)[:, np.newaxis]
    arbitrary, direction = rng.standard_normal((2, 3))
    errors = np.count_nonzero((np.cos(t) * arbitrary + np.sin(t) * direction) @ S.T <= 0.0, axis=1)
    assert errors.min() > 0
    assert (S @ make_start(model_of(X, labels, 0.0))(rng) > 0.0).all()


def test_an_empty_version_space_is_an_error() -> None:
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    model = model_of(X, np.array([1, 0, 0]), 0.0)
    with pytest.raises(DataError, match="rows 0 and 2"):
        draw_classifiers(np.random.default_rng(9), model, 1)


def test_information_is_largest_where_the_votes_are_split() -> None:
    """Section 4 prints p+ log2 p+ + p- log2 p-, which is smallest there."""
    p = np.array([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]])
    assert entropy_bits(p) == pytest.approx([1.0, 0.468996, 0.0], abs=1e-6)
    printed = (p[:2] * np.log2(p[:2])).sum(axis=1)
    assert printed[0] < printed[1] < 0.0


# ----------------------------------------------------------------------------------------- problems


def test_angles_are_those_of_the_paper() -> None:
    assert on_sphere(np.array(np.pi / 2), np.array(np.pi)) == pytest.approx(TRUE_CLASSIFIER)
    assert on_sphere(np.array(0.0), np.array(1.0)) == pytest.approx([0.0, 0.0, 1.0])
    grid = on_sphere(np.linspace(0.0, 3.0, 4)[:, None], np.linspace(0.0, 6.0, 5))
    assert grid.shape == (4, 5, 3)


def test_rows_have_length_one_and_a_share_of_wrong_labels() -> None:
    """|share - 0.2| < 5 sd: false alarm 6e-7; a rate of 0.25 is 40 sd away."""
    n = 100_000
    X, labels = sphere_rows(np.random.default_rng(1), n, 0.2)
    assert np.linalg.norm(X, axis=1) == pytest.approx(np.ones(n))
    is_wrong = labels != (X @ TRUE_CLASSIFIER > 0.0)
    assert abs(is_wrong.mean() - 0.2) < 5.0 * np.sqrt(0.16 / n)


def test_the_same_seed_has_the_same_rows_at_another_rate() -> None:
    noisy, clean = (sphere_rows(np.random.default_rng(2), 50, rate) for rate in (0.3, 0.0))
    assert np.array_equal(noisy[0], clean[0])
    assert np.array_equal(clean[1], clean[0] @ TRUE_CLASSIFIER > 0.0)
    assert not np.array_equal(noisy[1], clean[1])


def test_another_classifier_gives_its_own_classes() -> None:
    w = np.array([0.2, -1.0, 0.4])
    X, labels = sphere_rows(np.random.default_rng(3), 50, 0.0, w)
    assert np.array_equal(labels, X @ w > 0.0)


def test_rows_in_the_plane_have_both_classes() -> None:
    X, labels = plane_rows(np.random.default_rng(4), 76)
    assert X.shape == (76, 2)
    assert 20 < labels.sum() < 56


@pytest.mark.parametrize("problem", PROBLEMS)
def test_only_training_labels_are_turned_over(problem: str) -> None:
    noisy, clean = (split_of(problem, 5, 60, 80, rate) for rate in (0.5, 0.0))
    assert noisy.X.shape[0] == 60
    assert np.array_equal(noisy.X_test, clean.X_test)
    assert np.array_equal(noisy.labels_test, clean.labels_test)
    assert 10 < np.count_nonzero(noisy.labels != clean.labels) < 50


# -------------------------------------------------------------------------------------------- draws


def test_disagreement_is_that_of_all_pairs() -> None:
    f = np.random.default_rng(1).standard_normal((7, 5))
    pairs = [np.mean((a > 0) != (b > 0)) for a, b in itertools.combinations(f, 2)]
    assert mean_disagreement(f) == pytest.approx(np.mean(pairs))
    assert mean_disagreement(np.repeat(f[:1], 4, axis=0)) == 0.0


def test_directions_have_length_one() -> None:
    g = np.random.default_rng(2).standard_normal((4, 3))
    assert np.linalg.norm(unit(g), axis=1) == pytest.approx(np.ones(4))


def test_without_noise_every_draw_is_right() -> None:
    X, labels = sphere_rows(np.random.default_rng(3), 30, 0.0)
    model = model_of(X, labels, 0.0)
    rng = np.random.default_rng(4)
    for g in (draw_classifiers(rng, model, 10, thin=2), draw_by_great_circles(rng, model, 10, 5)):
        assert g.shape == (10, 3)
        assert np.array_equal(g @ X.T > 0.0, np.tile(labels == 1, (10, 1)))


def test_the_same_seed_gives_the_same_draws() -> None:
    model = model_of(*sphere_rows(np.random.default_rng(5), 20, 0.1), 0.1)
    first, second = (draw_classifiers(np.random.default_rng(6), model, 5) for _ in range(2))
    assert np.array_equal(first, second)


def difference_z(rate_of_circles: float) -> float:
    """Largest |t| of u and u_1^2 between the two samplers, 100 batches of thinned draws."""
    rng = np.random.default_rng(7)
    X, labels = sphere_rows(rng, 25, 0.2)
    by_moves = unit(draw_classifiers(rng, model_of(X, labels, 0.2), 2000, thin=2))
    by_circles = unit(draw_by_great_circles(rng, model_of(X, labels, rate_of_circles), 2000, 10))
    difference = by_moves - by_circles
    squares = by_moves[:, :1] ** 2 - by_circles[:, :1] ** 2
    return largest_z(np.hstack([difference, squares]), np.zeros(4), 100)


def test_both_samplers_have_one_law() -> None:
    assert difference_z(0.2) < z_limit(100, 4)


def test_another_rate_is_seen() -> None:
    assert difference_z(0.4) > 1.5 * z_limit(100, 4)


# -------------------------------------------------------------------------------------------- modes

# Cells and modes against brute force: patterns of many points, adjacent where one row differs.


def random_rows(n: int, seed: int) -> np.ndarray:
    """Signed rows whose signs are random: many modes."""
    return np.random.default_rng(seed).standard_normal((n, 3))


def brute_patterns(S: np.ndarray) -> np.ndarray:
    """Patterns of wrong rows of points around every vertex, which meets four cells."""
    n = len(S)
    i, j = np.triu_indices(n, 1)
    vertices = np.cross(S[i], S[j])
    vertices = np.concatenate([vertices, -vertices])
    vertices /= np.linalg.norm(vertices, axis=1, keepdims=True)
    near = vertices[:, None] + 1e-6 * np.random.default_rng(0).standard_normal((60, 3))
    return np.unique((near.reshape(-1, 3) @ S.T <= 0.0), axis=0)


def brute_depths(patterns: np.ndarray) -> list[float]:
    """Depths of all modes, by flooding from each and raising the level one error at a time."""
    errors = patterns.sum(axis=1)
    neighbours = (patterns[:, None] != patterns).sum(axis=2) == 1
    rank = np.lexsort((np.arange(len(errors)), errors)).argsort()  # breaks ties between modes
    depths = []
    for cell in range(len(errors)):
        if (errors[neighbours[cell]] < errors[cell]).any():
            continue
        for level in range(errors[cell], len(patterns[0]) + 1):
            reached = np.zeros(len(errors), bool)
            reached[cell] = True
            while True:
                grown = reached | (neighbours[reached].any(axis=0) & (errors <= level))
                if (grown == reached).all():
                    break
                reached = grown
            if (rank[reached] < rank[cell]).any():
                depths.append(float(level - errors[cell]))
                break
        else:
            depths.append(np.inf)
    return sorted(depths, reverse=True)


@pytest.mark.parametrize("seed", range(6))
def test_cells_and_modes_are_those_of_brute_force(seed: int) -> None:
    S = random_rows(9, seed)
    cells = cells_of(np.random.default_rng(1), S)
    patterns = brute_patterns(S)
    assert len(cells.errors) == len(patterns) == 9 * 8 + 2
    assert sorted(cells.errors) == sorted(patterns.sum(axis=1))
    assert find_modes(cells).depth.tolist() == brute_depths(patterns)


@pytest.mark.parametrize("n", [2, 3, 60])
def test_n_circles_make_so_many_cells_and_edges(n: int) -> None:
    cells = cells_of(np.random.default_rng(1), random_rows(n, 7))
    assert len(cells.errors) == n * (n - 1) + 2
    assert len(cells.better) == 2 * n * (n - 1)
    assert (cells.errors[cells.worse] == cells.errors[cells.better] + 1).all()


def test_the_centre_of_a_cell_has_its_errors() -> None:
    S = random_rows(12, 8)
    cells = cells_of(np.random.default_rng(1), S)
    centres = np.array([cells.centre(cell) for cell in range(len(cells.errors))])
    assert np.array_equal(np.count_nonzero(centres @ S.T <= 0.0, axis=1), cells.errors)


@pytest.mark.parametrize("n", [5, 10, 60])
def test_without_wrong_labels_there_is_one_mode(n: int) -> None:
    """On the way to a separating classifier every crossing of a row puts it right."""
    rng = np.random.default_rng(n)
    modes = find_modes(cells_of(rng, signed_rows(*sphere_rows(rng, n, 0.0))))
    assert modes.depth.tolist() == [np.inf]


def test_a_wrong_turn_of_the_list_is_seen() -> None:
    """Mutant of the errors: those of the cells across the edge, as if rows changed late."""
    S = random_rows(9, 0)
    cells = cells_of(np.random.default_rng(1), S)
    turned = Cells(cells.errors, cells.worse, cells.better, cells.middle)
    assert find_modes(turned).depth.tolist() != brute_depths(brute_patterns(S))


# ------------------------------------------------------------------------------------------- margin


@pytest.mark.parametrize("n", [1, 2, 9])
def test_margin_of_orthogonal_rows(n: int) -> None:
    """Whatever their lengths: 1/sqrt(n)."""
    assert margin(np.diag(np.arange(1.0, n + 1.0))) == pytest.approx(1.0 / np.sqrt(n))


def test_margin_is_that_of_a_support_vector_machine() -> None:
    X, labels = sphere_rows(np.random.default_rng(1), 30, 0.0)
    machine = LinearSVC(C=1e6, fit_intercept=False, tol=1e-10, max_iter=1_000_000, random_state=0)
    w = machine.fit(X, labels).coef_[0]
    S = signed_rows(X, labels)
    assert margin(S) == pytest.approx((S @ w).min() / np.linalg.norm(w), rel=1e-4)


@pytest.mark.parametrize("family", sphere_margin._FAMILIES)
def test_members_of_a_family(family: str) -> None:
    members = sphere_margin._FAMILIES[family](np.random.default_rng(2))
    assert len(members) >= 18
    assert all(len(S) == 50 for S in members)
    ranks = {S.shape[1] for S in members}
    assert (len(ranks) == 1) == (family != "kernels of all length scales")
    assert all(margin(S) > 0.0 for S in members[:3])


# -------------------------------------------------------------------------------------------- votes


def test_rows_of_small_margin_are_left_out_first() -> None:
    is_wrong = np.array([True, False, False, False, True, False, False, False])
    vote_margin = np.array([0.0, 0.1, 0.2, 0.3, 0.15, 0.4, 0.5, 0.5])
    assert coverage_errors(is_wrong, vote_margin) == [0.25, 1 / 7, 1 / 6, 0.0]


@pytest.mark.parametrize(
    ("last", "verdict"), [((1.0, 1.2), "holds"), ((3.0, 3.2), "fails"), ((9.0, 9.0), "fails")]
)
def test_coverage_must_halve_the_error(last: tuple[float, float], verdict: str) -> None:
    errors = np.array([[6.0, 5.0, 4.0, last[0]], [6.2, 5.2, 4.2, last[1]]])
    assert _coverage_claim("toy", errors).verdict == verdict


def test_errors_must_not_rise_on_the_way() -> None:
    errors = np.array([[6.0, 7.0, 4.0, 1.0], [6.2, 7.2, 4.2, 1.2]])
    assert _coverage_claim("toy", errors).verdict == "fails"


@pytest.mark.parametrize(
    ("agreement", "gap", "verdict"),
    [(99.0, 0.2, "holds"), (94.0, 0.2, "fails"), (99.0, 0.8, "fails"), (99.0, -0.8, "fails")],
)
def test_agreement_and_errors_are_both_asked_for(
    agreement: float, gap: float, verdict: str
) -> None:
    vote = np.array([5.0, 6.0, 7.0])
    claim = _agreement_claim("toy", np.full(3, agreement), vote, vote + gap)
    assert claim.verdict == verdict
    assert f"difference {gap:+.2f}" in claim.ours


# --------------------------------------------------------------------------------------------- part


def test_rank_correlation_leaves_out_what_is_not_known() -> None:
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 8.0, np.nan, 9.0])
    assert rank_correlation(x, y) == pytest.approx(1.0)
    assert rank_correlation(x, -y) == pytest.approx(-1.0)


@pytest.mark.parametrize(
    ("values", "sign", "verdict"),
    [
        ((0.8, 0.9), 1, "holds"),
        ((0.8, 0.9), -1, "fails"),
        ((-0.8, -0.9), -1, "holds"),
        ((-0.1, 0.9), 1, "not judged"),
        ((-0.9, 0.1), 1, "fails"),
    ],
)
def test_a_correlation_must_be_clear(values: tuple[float, float], sign: int, verdict: str) -> None:
    assert correlation_claim("words", "yes", np.array(values), sign, "").verdict == verdict


def test_space_has_unit_variances_and_a_constant() -> None:
    X = np.random.default_rng(1).standard_normal((12, 2))
    for kernel, factor in (("rbf", 0.5), ("linear", None)):
        G = space_of(kernel, factor, X, 1.0).covariance.gram(X)
        assert np.mean(np.diagonal(G)) == pytest.approx(2.0)


# ------------------------------------------------------------------------------------------ seconds


@pytest.fixture(scope="module")
def methods() -> dict[str, sphere_seconds._Method]:
    split = split_of("plane", 0, 60, 40, 0.1)
    return {**sphere_seconds._exact(split), **sphere_seconds._low_rank(split)}


def test_every_method_votes_at_the_test_rows(methods) -> None:
    assert len(methods) == 5
    for method in methods.values():
        times, votes = sphere_seconds._run(method, np.random.default_rng(1), n_steps=3)
        assert votes.shape == (3, 40)
        assert (np.diff([method.set_up, *times]) >= 0.0).all()


def test_a_chain_stops_when_its_time_is_over(methods) -> None:
    times, votes = sphere_seconds._run(methods[_HMC], np.random.default_rng(1), seconds=0.05)
    assert len(times) == len(votes)
    assert times[-1] >= 0.05
    assert (times[:-1] < 0.05).all()


def test_before_the_first_draw_the_answer_is_a_half(methods) -> None:
    exact = np.linspace(0.0, 1.0, 40)
    never = sphere_seconds._distances(
        methods[_HMC], np.random.default_rng(1), np.array([-1.0, 0.0]), exact
    )
    assert never == pytest.approx(np.sqrt(np.mean((exact - 0.5) ** 2)))


@pytest.mark.parametrize(("low_rank", "trade"), [(0.2, "holds"), (0.001, "fails")])
def test_verdicts(low_rank: float, trade: str) -> None:
    times = np.array([0.1, 1.0])
    distances = {
        _CIRCLE: np.array([[0.5, 0.3], [0.5, 0.2]]),
        _HMC: np.array([[0.5, 0.01], [0.4, 0.02]]),
        f"{_HMC}, 100 landmarks": np.array([[0.3, low_rank], [0.3, low_rank]]),
    }
    nearer, traded = sphere_seconds._claims(distances, times)
    assert (nearer.verdict, traded.verdict) == ("holds", trade)
    distances[_HMC][0, 1] = 0.25  # one chain further than one of the great circles
    assert sphere_seconds._claims(distances, times)[0].verdict == "fails"


# ---------------------------------------------------------------------------------------- selection


def test_note_compares_with_hindsight() -> None:
    """Two splits, three kernels: evidence takes those with errors 4 and 6."""
    values = np.array([[[-3.0, 4.0], [-5.0, 2.0], [-9.0, 9.0]], [[-4, 3], [-2, 6], [-8, 9]]])
    note = sphere_selection._note("toy", values)
    assert "5.0 +- 1.0 for the kernel of most evidence" in note
    assert "2.5 +- 0.5 for the best" in note
    assert "5.5 +- 0.5 on average" in note


def test_evidence_and_error_of_every_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A length scale of a tenth of the median distance is hopeless on both counts."""
    monkeypatch.setattr(
        sphere_selection, "_KERNELS", (("rbf", 0.1), ("rbf", 1.0), ("linear", None))
    )
    split = split_of("breast cancer", 0, 60, 300, 0.1)
    rows = sphere_selection._evidence_and_error(split, np.random.default_rng(1), Tempering(12, 30))
    (short, short_error), (median, median_error), (linear, linear_error) = rows
    assert short < median - 5.0
    assert short < linear - 5.0
    assert short_error > 2.0 * max(median_error, linear_error)


# ----------------------------------------------------------------------------------------- figure 1


def surface(n_modes: int, angle: float = 3.0) -> _Surface:
    modes = np.tile([-1.0, 0.0, 0.0], (n_modes, 1))
    return _Surface(np.eye(3), n_modes, n_modes, modes, 0.1, 0.2, angle)


def verdicts(few: list[int], many: list[int], angle: float, clean: list[int]) -> list[str]:
    claims = _claims([surface(k) for k in few], [surface(k, angle) for k in many], clean)
    return [claim.verdict for claim in claims]


def test_verdicts_of_figure_1() -> None:
    assert verdicts([4, 1, 2], [1, 1], 9.0, [1, 1, 1]) == ["holds"] * 4
    assert verdicts([4, 1, 1], [1, 2], 11.0, [1, 2, 1]) == ["fails"] * 4


def test_log_posterior_is_that_of_the_likelihood() -> None:
    """n = 3 signed rows along the axes; at longitude pi/2, latitude pi only the first is wrong."""
    values = _log_posterior(np.eye(3) + 0.1, np.array([np.pi / 2]), np.array([np.pi, np.pi / 4]))
    assert values[0, 1] == pytest.approx(np.log(0.8))
    assert values[0, 0] == pytest.approx(np.log(0.2))
    S = np.array([[1.0, 0, 0], [0, 1.0, 0.1], [-1.0, 0, 0]])
    one = _log_posterior(S, np.array([np.pi / 2]), np.array([np.pi / 3]))
    assert one[0, 0] == pytest.approx((2 * np.log(0.8) + np.log(0.2)) / 3)


def test_every_local_maximum_of_ten_rows_counts() -> None:
    ten = sphere_figure_1._surface(10, 0)
    assert ten.n_modes == ten.n_local > 1
    assert ten.second_depth >= np.log(4.0) / 10 - 1e-12


def test_quick_run_draws_two_panels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sphere_figure_1, "_MANY", 150)
    outcome = sphere_figure_1.reproduce(Settings(is_quick=True))
    assert list(outcome.measured) == ["n = 10", "n = 150"]
    assert outcome.claims[0].verdict == outcome.claims[1].verdict == "holds"
    paths = write_reproduction(outcome, tmp_path)
    assert paths[2].read_bytes().startswith(b"\x89PNG")


# ----------------------------------------------------------------------------------------- figure 3


@pytest.mark.parametrize(
    ("steps", "verdict"),
    [((2.0, 2.0), "holds"), ((2.0, -2.0), "fails"), ((2.0, 0.1), "fails")],
)
def test_every_step_must_be_clear(steps: tuple[float, float], verdict: str) -> None:
    """The last case: 0.1 is within two standard errors of 0."""
    noise = np.array([-0.3, 0.3, 0.3, -0.3])
    first = np.array([5.0, 6.0, 7.0, 8.0])
    percent = {("grid", 0.0): first, ("grid", 0.1): first + steps[0] + noise}
    percent["grid", 0.2] = percent["grid", 0.1] + steps[1] - noise
    assert sphere_figure_3._claim(percent, "grid").verdict == verdict


def test_a_cloud_has_fifty_draws_at_each_rate() -> None:
    cloud = sphere_figure_3._cloud(0)
    assert [f.shape for f in cloud.at_rows] == [(50, 76)] * 3
    assert np.array_equal(cloud.at_rows[0] > 0.0, np.tile(cloud.labels == 1, (50, 1)))
    assert not np.array_equal(cloud.at_rows[2] > 0.0, np.tile(cloud.labels == 1, (50, 1)))
    n_columns, n_rows = len(sphere_figure_3._SIDE[0]), len(sphere_figure_3._SIDE[1])
    nearest = int(np.abs(sphere_figure_3._SIDE[1] - cloud.X[0, 1]).argmin()) * n_columns
    nearest += int(np.abs(sphere_figure_3._SIDE[0] - cloud.X[0, 0]).argmin())
    on_grid = cloud.on_grid[1].reshape(50, n_rows * n_columns)[:, nearest]
    assert np.corrcoef(on_grid, cloud.at_rows[1][:, 0])[0, 1] > 0.99


def test_quick_run_holds_and_draws(tmp_path: Path) -> None:
    outcome = sphere_figure_3.reproduce(Settings(is_quick=True))
    assert [claim.verdict for claim in outcome.claims] == ["holds", "holds"]
    assert outcome.measured["training rows, q = 0.0"].tolist() == [0.0] * 5
    assert write_reproduction(outcome, tmp_path)[2].read_bytes().startswith(b"\x89PNG")


# ----------------------------------------------------------------------------------------- figure 4


@pytest.mark.parametrize("penalty", [0.01, 0.1, 100.0])
def test_soft_margin_is_the_hard_margin_with_a_penalty_on_the_diagonal(penalty: float) -> None:
    """The nearest point to 0 of the hull of the rows [y x, sqrt(lambda) e_i]."""
    rng = np.random.default_rng(1)
    X, labels = sphere_rows(rng, 40, 0.1)
    S = signed_rows(X, labels)
    A = np.vstack([S.T, np.sqrt(penalty) * np.eye(40), np.ones(40)])
    a, _ = nnls(A, np.append(np.zeros(43), 1.0))
    X_test, _ = sphere_rows(rng, 20, 0.0)
    expected, values = X_test @ (S.T @ a), soft_margin(X, labels, X_test, penalty)
    assert values / np.linalg.norm(values) == pytest.approx(
        expected / np.linalg.norm(expected), abs=1e-5
    )


@pytest.mark.parametrize(
    ("gap", "verdict"), [(-1.0, "holds"), (-0.01, "not judged"), (0.5, "fails")]
)
def test_the_least_favourable_penalty_decides(gap: float, verdict: str) -> None:
    noise = np.array([-0.1, 0.1, 0.2, -0.2])
    theirs = np.column_stack([7.0 + noise, 6.0 - noise])
    bayes = theirs + np.array([-3.0, gap]) + noise[:, np.newaxis]
    claim = _comparison("words", bayes, theirs, "yes")
    assert claim.verdict == verdict
    assert f"difference at most {gap:+.2f}" in claim.ours


def test_one_column_is_paired_with_every_penalty() -> None:
    theirs = np.array([[6.0, 7.0], [7.0, 8.0]])
    assert _comparison("words", np.array([[5.0], [6.1]]), theirs, "yes").verdict == "holds"


def test_spread_over_rates_is_judged() -> None:
    flat = np.full((3, 10), 5.7)
    spread = flat + np.linspace(0.0, 0.4, 10)
    verdicts = []
    for bayes in (flat, spread):
        wide = np.full((3, 6), 6.1)
        errors = sphere_figure_4._Errors(bayes, flat, flat, wide, bayes[:, :1], wide)
        verdicts.append(sphere_figure_4._claims(errors)[3].verdict)
    assert verdicts == ["holds", "fails"]


def test_drawn_classifiers_have_rows_of_both_classes() -> None:
    errors = [sphere_figure_4._drawn_errors(repeat) for repeat in range(2)]
    assert [len(part) for part in errors[0]] == [1, len(sphere_figure_4._PENALTIES)]
    assert not np.array_equal(errors[0][1], errors[1][1])


@pytest.mark.slow  # a quick run draws
def test_run_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three levels and short chains."""
    monkeypatch.setattr(sphere_figure_4, "_LEVELS", np.array([0.02, 0.05, 0.1]))
    monkeypatch.setattr(sphere_figure_4, "_N_DRAWS", 20)
    outcome = sphere_figure_4.reproduce(Settings(is_quick=True))
    assert len(outcome.claims) == 6
    assert len(outcome.measured["Bayes point, q = 0.05"]) == 40
    assert 4.0 < outcome.measured["Bayes point, q = 0.05"].mean() < 8.0
    assert write_reproduction(outcome, tmp_path)[2].read_bytes().startswith(b"\x89PNG")
