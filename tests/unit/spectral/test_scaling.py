from __future__ import annotations

import itertools
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

from mercer import BaNKRegressor
from mercer.estimation.standardize import ONE_SCALE, fit_standardizer, scale_target
from mercer.spectral import settings
from mercer.spectral.model import Scales
from mercer.spectral.settings import BEGINNINGS, SpectralSettings, choose_standardizer


@pytest.fixture(scope="module")
def quick_start() -> None:
    """The start as it is."""


SETTINGS = SpectralSettings(8, 2.0, "pcn", "diagonal", "learn", "learn", True, 1)
NAMES = ("x0", "x1", "x2")
RNG = np.random.default_rng(8)
PLAIN = RNG.standard_normal((300, 3))
NOISE = 0.05 * RNG.standard_normal(300)


def choose(X: np.ndarray, y: np.ndarray, method: object = "auto", entropy: int = 1):
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    scaled = scale_target(y).transform(y)
    return choose_standardizer(X, scaled, method, names, SETTINGS, entropy)


def skewed(column: np.ndarray) -> np.ndarray:
    return np.column_stack([column, PLAIN[:, 1:]])


def test_columns_that_are_not_skewed_need_no_choice() -> None:
    standardizer, notes = choose(PLAIN, PLAIN[:, 0])
    assert notes == ()
    assert not standardizer.is_warped.any()


def test_a_function_of_the_logarithm_is_warped() -> None:
    X = skewed(np.exp(1.5 * PLAIN[:, 0]))
    standardizer, notes = choose(X, np.sin(2.0 * PLAIN[:, 0]) + NOISE)
    np.testing.assert_array_equal(standardizer.is_warped, [True, False, False])
    assert len(notes) == 1
    assert "warped" in notes[0]
    assert "'x0'" in notes[0]


def test_a_function_of_the_values_is_not() -> None:
    values = np.exp(PLAIN[:, 0])
    standardizer, notes = choose(skewed(values), np.sin(values) + NOISE)
    assert not standardizer.is_warped.any()
    assert "as they are" in notes[0]


def test_artefacts_do_not_squeeze_the_rest() -> None:
    """One value of 1e12: what is chosen tells the other rows from each other."""
    column = PLAIN[:, 0].copy()
    column[7] = 1e12
    X = skewed(column)
    standardizer, notes = choose(X, np.sin(2.0 * PLAIN[:, 0]) + NOISE)
    Z = standardizer.transform(X)[:, 0]
    assert np.delete(Z, 7).std() > 0.1
    assert np.isfinite(Z).all()
    assert len(notes) == 1


@pytest.mark.parametrize("n", [5, 19])
def test_few_rows_need_no_choice(n: int) -> None:
    X = skewed(np.exp(2.0 * PLAIN[:, 0]))[:n]
    assert choose(X, PLAIN[:n, 0])[1] == ()


@pytest.mark.parametrize("method", ["std", "robust", "yeo-johnson", "arcsinh", False])
def test_a_method_that_is_given_is_taken(method: object) -> None:
    X = skewed(np.exp(2.0 * PLAIN[:, 0]))
    standardizer, notes = choose(X, PLAIN[:, 0], method)
    assert notes == ()
    assert standardizer.is_warped.all() == (method in ("yeo-johnson", "arcsinh"))


def test_so_many_rows_at_most_decide() -> None:
    sizes = []

    class Climber:
        def climb(
            self, rng: np.random.Generator, X: np.ndarray, y: np.ndarray, *, deadline=None, **_
        ) -> Scales:
            sizes.append(len(X))
            return Scales(np.ones(X.shape[1]), 1.0, 0.0)

    X = skewed(np.exp(2.0 * PLAIN[:, 0]))
    choose_standardizer(X, PLAIN[:, 0], "auto", NAMES, Climber(), 1, most_rows=70)
    assert set(sizes) == {70}


@pytest.mark.parametrize(("n", "knee"), [(2999, 1.0), (3000, 0.1)])
def test_a_threshold_close_to_the_median_moves_the_knee(n: int, knee: float) -> None:
    """Long tails on both sides, and a function of the order of magnitude alone: many rows tell."""
    rng = np.random.default_rng(9)
    magnitude = 3.0 * rng.standard_normal(n)
    column = np.sign(magnitude) * np.expm1(np.abs(magnitude))
    X = np.column_stack([column, rng.standard_normal((n, 2))])
    standardizer, notes = choose(X, np.sin(magnitude) + 0.05 * rng.standard_normal(n))
    assert ("knee at 0.1 interquartile ranges" in notes[0]) == (knee == 0.1)
    quartiles = np.quantile(column, (0.25, 0.75))
    np.testing.assert_allclose(standardizer.scale[0], knee * np.ptp(quartiles))


def few_of_many(n: int, *spreads: float) -> tuple[np.ndarray, np.ndarray]:
    """Rows of 24 inputs, of which the first two make the targets; all have spread 1 but those."""
    rng = np.random.default_rng(12)
    X = rng.standard_normal((n, 24))
    y = np.tanh(X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(n)
    X[:, : len(spreads)] *= spreads
    return X, (y - y.mean()) / y.std()


@pytest.mark.parametrize("is_one", [False, True])
def test_one_scale_is_taken_where_more_is_found_from_there(
    monkeypatch: pytest.MonkeyPatch, is_one: bool
) -> None:
    """With all inputs alike it looks better; what counts is the evidence with scales found."""
    X, y = few_of_many(400, 3.0, 0.3)
    names = tuple(f"x{j}" for j in range(24))
    plain = fit_standardizer(X, "std", names)
    one = replace(plain, scale=np.full(24, plain.scale.mean()))
    better, asked = (one if is_one else plain).transform(X), []

    class Climber:
        def climb(self, rng: np.random.Generator, X: np.ndarray, y: np.ndarray, **given) -> Scales:
            asked.append(given["beginnings"])
            return Scales(np.ones(24), 1.0, float(np.array_equal(X, better)))

    monkeypatch.setattr(settings, "with_scales_by_evidence", lambda *_, **__: (one, (ONE_SCALE,)))
    monkeypatch.setattr(settings, "fit_standardizer", lambda *_: plain)
    found, said = choose_standardizer(X, y, "auto", names, Climber(), 1)
    assert found is (one if is_one else plain)
    assert said == ((ONE_SCALE,) if is_one else ())
    assert asked == [BEGINNINGS] * 2


def test_the_best_of_several_beginnings_is_the_start() -> None:
    X, y = few_of_many(300)
    each = [
        SETTINGS.climb(np.random.default_rng(3), X, y, beginnings=(1.0, *BEGINNINGS[1:k]))
        for k in range(1, len(BEGINNINGS) + 1)
    ]
    evidence = [found.log_evidence for found in each]
    assert evidence == sorted(evidence)
    assert evidence[-1] > evidence[0] + 30.0
    matter = np.argsort(each[-1].scales)[-2:]
    assert set(matter) == {0, 1}


@pytest.mark.parametrize(("gain", "taken"), [(4.9, 0), (5.1, 2)])
def test_another_beginning_must_end_higher_by_far(
    gain: float, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By .05 nats a target: less does not tell which start is better for the chains."""
    ends = iter([-90.0, -95.0, -90.0 + gain])

    def found(
        rng: object, X: object, y: object, model: object, begun: Scales, *_: object
    ) -> Scales:
        return replace(begun, log_evidence=next(ends), is_cut=False)

    monkeypatch.setattr(settings, "find_scales", found)
    y = np.random.default_rng(0).standard_normal(100)
    begun = SETTINGS.first_scales(3).scales
    best = SETTINGS.climb(np.random.default_rng(3), PLAIN[:100], y, beginnings=BEGINNINGS)
    np.testing.assert_array_equal(best.scales, BEGINNINGS[taken] * begun)


@pytest.mark.parametrize("noise", ["normal", "student_t"])
def test_few_inputs_that_matter_are_found_whatever_the_noise(noise: str) -> None:
    """Chains that start from a straight line stay there."""
    X, y = few_of_many(300)
    given = {"n_draws": 5, "n_warmup": 5, "n_chains": 1, "n_frequencies": 64, "progress": False}
    model = BaNKRegressor(noise=noise, random_state=0, **given).fit(X, y)
    new, truth = few_of_many(700)
    residuals = model.predict(new[300:]) - truth[300:]
    assert np.square(residuals).mean() < 0.5


def test_no_other_beginning_is_tried_when_time_is_over() -> None:
    X, y = few_of_many(60)
    first = SETTINGS.climb(np.random.default_rng(3), X, y, deadline=-1.0)
    found = SETTINGS.climb(np.random.default_rng(3), X, y, deadline=-1.0, beginnings=BEGINNINGS)
    np.testing.assert_array_equal(found.scales, first.scales)
    assert found.is_cut


def test_the_choice_is_that_of_the_seed() -> None:
    X = skewed(np.exp(2.0 * PLAIN[:, 0]))
    first, second = (choose(X, PLAIN[:, 0], entropy=5) for _ in range(2))
    assert first[1] == second[1]
    np.testing.assert_array_equal(first[0].transform(X), second[0].transform(X))


def test_many_columns_are_not_all_listed() -> None:
    X = np.exp(RNG.standard_normal((100, 9)) * 1.5)
    _, notes = choose(X, X[:, 0])
    assert "and 4 more" in notes[0]


def test_constant_columns_are_named_once() -> None:
    X = skewed(np.exp(2.0 * PLAIN[:, 0]))
    X[:, 1] = 3.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        choose(X, PLAIN[:, 0])
    assert [str(one.message) for one in caught] == [
        "constant columns say nothing and are ignored: 'x1'"
    ]


@pytest.mark.parametrize(("deadline", "n_tried"), [(-1.0, 0), (0.5, 1), (1.5, 2), (9.5, 3)])
def test_the_choice_ends_with_the_time(
    monkeypatch: pytest.MonkeyPatch, deadline: float, n_tried: int
) -> None:
    """A clock that ticks before each way: with fewer than two of them nothing can be chosen."""

    class Climber:
        def climb(
            self, rng: np.random.Generator, X: np.ndarray, y: np.ndarray, *, deadline=None, **_
        ) -> Scales:
            tried.append(deadline)
            return Scales(np.ones(X.shape[1]), 1.0, float(len(tried)))

    tried: list[float] = []
    X = skewed(np.exp(0.5 * PLAIN[:, 0]))
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    standardizer, (note,) = choose_standardizer(
        X, PLAIN[:, 0], "auto", NAMES, Climber(), 1, deadline=deadline
    )
    assert tried == [deadline] * n_tried
    assert np.isfinite(standardizer.transform(X)).all()
    assert ("left no time to choose a warp" in note) == (n_tried < 2)
    assert ("(2 of 3 ways tried within max_seconds)" in note) == (n_tried == 2)
    assert ("max_seconds" in note) == (n_tried < 3)


def test_a_climb_that_was_cut_is_not_compared() -> None:
    class Climber:
        def climb(
            self, rng: np.random.Generator, X: np.ndarray, y: np.ndarray, *, deadline=None, **_
        ) -> Scales:
            return Scales(np.ones(X.shape[1]), 1.0, 0.0, is_cut=True)

    X = skewed(np.exp(0.5 * PLAIN[:, 0]))
    _, (note,) = choose_standardizer(X, PLAIN[:, 0], "auto", NAMES, Climber(), 1)
    assert "left no time to choose a warp" in note
