from __future__ import annotations

import dataclasses
import itertools
import time
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from mercer import BaNKClassifier
from mercer.errors import ConvergenceWarning
from mercer.spectral import class_fitting
from mercer.spectral import trajectory as ascent
from mercer.spectral.class_model import log_likelihood
from mercer.spectral.class_sampler import ClassChain, ClassSampler, JointSampler
from mercer.spectral.rows import MemoryRows
from mercer.spectral.trajectory import FEWEST_ROWS, Ascent, prepare_ascent
from support.spectral_class_cases import make_classes


@pytest.fixture(scope="module")
def quick_start() -> None:
    """The start as it is."""


M, N_LINEAR = 20, 3


def rows(n: int, noise: float, seed: int = 0) -> MemoryRows:
    """Classes by a wave; noise in logits, the larger the noisier."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    f = 4.0 * np.sin(3.0 * X[:, 0]) / noise
    return MemoryRows(X, (rng.random(n) < expit(f)).astype(np.float64), True)


def prepared(n: int, noise: float) -> Ascent:
    precisions = np.full(2 * M + N_LINEAR, 0.01)
    made = prepare_ascent(np.random.default_rng(1), rows(n, noise), precisions)
    assert made is not None
    return made


def start() -> tuple[np.ndarray, np.ndarray]:
    scales = np.full((M, 2), 1.5)
    return scales * np.random.default_rng(2).standard_normal((M, 2)), scales


def test_few_rows_do_without() -> None:
    precisions = np.ones(2 * M + N_LINEAR)
    few = rows(FEWEST_ROWS - 1, 1.0)
    assert prepare_ascent(np.random.default_rng(1), few, precisions) is None


def test_rows_are_parted() -> None:
    made = prepared(FEWEST_ROWS, 1.0)
    assert (made.fitted.n_rows, made.held_out.n_rows) == (2700, 300)
    both = np.concatenate([made.fitted.X, made.held_out.X])
    assert len(np.unique(both, axis=0)) == FEWEST_ROWS


def test_of_many_rows_it_looks_at_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ascent, "_MOST_ROWS", 3200)
    made = prepared(4000, 1.0)
    assert (made.fitted.n_rows, made.held_out.n_rows) == (2880, 320)


def test_it_climbs() -> None:
    """What was not looked at at all is predicted nearly as well as by the true function."""
    made, new = prepared(4000, 0.5), rows(2000, 0.5, seed=9)
    W, coef, is_cut = made.climb(*start(), 1)
    assert not is_cut
    found = log_likelihood(new, W, coef) / 2000
    f = 8.0 * np.sin(3.0 * new.X[:, 0])
    true = -np.logaddexp(0.0, np.where(new.y == 1.0, -f, f)).mean()
    untouched = log_likelihood(new, start()[0], np.zeros_like(coef)) / 2000
    assert untouched == pytest.approx(-np.log(2.0))
    assert found > true - 0.03


@pytest.mark.parametrize(("seconds", "n_steps"), [(-1.0, 1), (2.5, 3)])
def test_it_stops_when_its_seconds_are_over(
    monkeypatch: pytest.MonkeyPatch, seconds: float, n_steps: int
) -> None:
    """A clock that ticks after each step: the point of the last one is judged and taken."""
    made, new = prepared(4000, 0.5), rows(2000, 0.5, seed=9)
    ticks = itertools.count()
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    W, coef, is_cut = dataclasses.replace(made, seconds=seconds).climb(*start(), 1)
    assert is_cut
    assert next(ticks) == n_steps + 1
    assert coef.any()
    assert log_likelihood(new, W, coef) / 2000 > -np.log(2.0)


def test_it_stops_where_what_is_held_out_gets_worse() -> None:
    """Of pure noise nothing can be learned: it does not go to the top of the posterior."""
    made = prepared(FEWEST_ROWS, 1e9)
    W, coef, _ = made.climb(*start(), 1)
    assert log_likelihood(made.held_out, W, coef) / 300 > -np.log(2.0) - 0.05


def test_the_same_each_time() -> None:
    first, second = (prepared(FEWEST_ROWS, 0.5).climb(*start(), 1) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", [ClassSampler, JointSampler])
def test_the_first_step_begins_with_it(
    monkeypatch: pytest.MonkeyPatch, kind: type[ClassChain]
) -> None:
    climbs = []
    climb = Ascent.climb

    def counted(self: Ascent, *args: Any) -> tuple[np.ndarray, np.ndarray, bool]:
        climbs.append(1)
        return climb(self, *args)

    monkeypatch.setattr(Ascent, "climb", counted)
    plain = make_classes(*_arrays(rows(FEWEST_ROWS, 0.5)), n_frequencies=M, kind=kind)
    sampler = dataclasses.replace(plain, ascent=prepared(FEWEST_ROWS, 0.5))
    first = sampler.init(np.random.default_rng(3))
    assert not climbs
    with_it, _ = sampler.step(np.random.default_rng(4), first)
    without, _ = plain.step(np.random.default_rng(4), first)
    assert with_it.log_likelihood > without.log_likelihood + 50.0
    sampler.step(np.random.default_rng(5), with_it)
    assert len(climbs) == 1


def test_a_climb_that_was_cut_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two chains; what is cut in warm-up is told though all draws are there."""
    X, y = _arrays(rows(FEWEST_ROWS, 0.5))
    options = {"n_frequencies": M, "n_draws": 2, "n_warmup": 1, "n_chains": 2, "n_leapfrog": 0}

    def fit() -> BaNKClassifier:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return BaNKClassifier(**options, random_state=0, progress=False).fit(X, y)

    assert not any("climb" in note for note in fit().notes_)
    monkeypatch.setattr(class_fitting, "_seconds_of_ascent", lambda options: 0.0)
    (note,) = (note for note in fit().notes_ if "climb" in note)
    assert note.startswith("climb of chains to their start cut short by max_seconds")


def _arrays(given: MemoryRows) -> tuple[np.ndarray, np.ndarray]:
    return given.X, given.y
