"""The sequential classifier: what it predicts, says and saves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import log_expit

import mercer
from mercer.basis.classifier import SequentialKernelClassifier, class_draws, log_targets
from mercer.basis.prediction import evidence_variance, judge_ancestry
from mercer.errors import DataError
from mercer.posterior.container import read_container
from support.class_fits import bits, little, make_rows, tiny
from support.mangled import Change, set_array, set_field, taken

# `SequentialKernelClassifier`: what it learns, predicts and knows of classes.


TINY = {"n_particles": 12, "max_candidates": 8, "random_state": 0, "progress": False}


def assert_same(a: SequentialKernelClassifier, b: SequentialKernelClassifier) -> None:
    X, _ = make_rows(7, seed=9)
    assert np.array_equal(a.predict_proba(X), b.predict_proba(X))
    assert a.log_evidence_ == b.log_evidence_
    assert a.mean_log_predictive_ == b.mean_log_predictive_


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_one_by_one_equal_rows_at_once(n_classes: int) -> None:
    X, y = make_rows(40, n_classes)
    options = {**TINY, "scale_rows": 15, "n_buffered": 20}
    at_once = SequentialKernelClassifier(**options).partial_fit(X, y)
    one_by_one, parts = SequentialKernelClassifier(**options), []
    for t in range(40):
        one_by_one.partial_fit(X[t : t + 1], y[t : t + 1], classes=np.unique(y) if t == 0 else None)
        if t >= 15:
            parts.append(one_by_one.log_predictive_)
    assert_same(at_once, one_by_one)
    assert np.array_equal(at_once.log_predictive_[15:], np.concatenate(parts))


def test_prequential_predicts_what_it_then_learns() -> None:
    X, y = make_rows(40, 3)
    options = {**TINY, "scale_rows": 10}
    learned = SequentialKernelClassifier(**options).partial_fit(X, y)
    model = SequentialKernelClassifier(**options)
    first = model.prequential(X[:5], y[:5], classes=np.unique(y))
    model = SequentialKernelClassifier(**options)
    result = model.prequential(X, y)
    assert first.proba.shape == (5, 3)
    assert_same(learned, model)
    place = np.searchsorted(model.classes_, y)
    assert np.array_equal(result.log_density, np.log(result.proba[np.arange(40), place]))
    assert np.array_equal(result.prediction, model.classes_[result.proba.argmax(axis=1)])
    assert result.n_centres.shape == (40,)


class NAType:
    """As that of pandas: whether it equals itself cannot be said."""

    def __eq__(self, other: object) -> Any:
        return self

    def __ne__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = object.__hash__


@pytest.mark.parametrize("missing", [None, np.nan, NAType()])
def test_prequential_only_predicts_where_there_is_no_label(missing: object) -> None:
    X, y = make_rows(40)
    y = y.astype(object)
    holes = np.isin(np.arange(40), [0, 20, 21, 39])
    y[holes] = missing
    model = SequentialKernelClassifier(**TINY)
    model.partial_fit(X[:12], *[make_rows(40)[1][:12]], classes=["ash", "birch"])
    rows_before = model.n_rows_seen_
    result = model.prequential(X, y)
    assert np.isnan(result.log_density).tolist() == holes.tolist()
    assert np.isfinite(result.proba).all()
    assert model.n_rows_seen_ == rows_before + 36


def test_labels_that_say_nothing_are_refused() -> None:
    X, y = make_rows(40)
    with pytest.raises(DataError, match=r"shape \(m,\)"):
        little().prequential(X, y[:, np.newaxis])
    with pytest.raises(DataError, match="classes="):
        little().prequential(X[:4], [None] * 4)
    with pytest.raises(DataError, match="classes="):
        little().partial_fit(X[:0], y[:0])


def test_scales_are_those_of_the_first_known_rows() -> None:
    X, y = make_rows(40)
    holes = np.isin(np.arange(40), [0, 3])
    told, learned = little(), little().partial_fit(X[~holes], y[~holes])
    told.prequential(X[:1], [None], classes=["ash", "birch"])
    told.prequential(X, np.where(holes, None, y))
    assert bits(told) == bits(learned)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_it_learns(n_classes: int) -> None:
    X, y = make_rows(200, n_classes)
    new, truth = make_rows(300, n_classes, seed=1)
    model = SequentialKernelClassifier(n_particles=50, random_state=0).fit(X, y)
    proba = model.predict_proba(new)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    assert proba.min() > 0.0
    assert proba.max() < 1.0
    assert np.mean(model.predict(new) == truth) > 0.85
    assert model.mean_log_predictive_ > 0.6 * np.log(1.0 / n_classes)
    assert model.log_evidence_ > 200 * np.log(1.0 / n_classes)
    assert 0.0 < model.log_evidence_se_ < 5.0
    assert model.centres_.shape[1] == 2
    assert np.abs(model.centres_ - 10.0).max() < 15.0
    assert model.n_centres_ > 0.0
    assert np.isfinite(model.posterior_.stats["log_density"]).all()
    assert "n_centres" in str(model.posterior_.summary())
    assert model.diagnostics_ is not None


def test_fit_equals_a_stream_with_the_same_scales() -> None:
    X, y = make_rows(50)
    options = {**TINY, "standardize": False, "lengthscale": [4.0, 2.0], "input_scale": 1.0}
    table, streamed = (SequentialKernelClassifier(**options) for _ in range(2))
    assert_same(table.fit(X - 10.0, y), streamed.partial_fit(X - 10.0, y))


def test_paper() -> None:
    X, y = make_rows(40)
    model = SequentialKernelClassifier.paper().set_params(n_particles=10, random_state=0)
    assert model.fit(X, y).n_centres_ < 20


def test_classes_are_those_of_the_first_call() -> None:
    X, y = make_rows(40)
    model = SequentialKernelClassifier(**TINY)
    with pytest.raises(ValueError, match="one class"):
        model.partial_fit(X[:1], y[:1])
    assert not hasattr(model, "classes_")
    model.partial_fit(X, y, classes=["ash", "birch", "oak"])
    assert model.classes_.tolist() == ["ash", "birch", "oak"]
    with pytest.raises(ValueError, match="first call"):
        model.partial_fit(X, y, classes=["ash", "oak"])
    with pytest.raises(ValueError, match=r"row 1 .*: 'elm' is none of the classes"):
        model.partial_fit(X[:2], ["ash", "elm"])
    assert (model.predict_proba(X)[:, 2] > 0.0).all()


# Results.


@pytest.fixture(scope="module", params=[2, 3])
def model(request: pytest.FixtureRequest):
    return tiny().fit(*make_rows(60, request.param))


def test_particles_are_weighted_draws(model) -> None:
    draws, C = model.posterior_, len(model.classes_)
    shape = (1, 30) if C == 2 else (1, 30, C - 1)
    assert {name: v.shape for name, v in draws.variables.items()} == dict.fromkeys(
        ("n_centres", "coef_std", "lengthscale"), shape
    )
    assert np.exp(draws.log_weights).sum() == pytest.approx(1.0)
    weights = np.exp(draws.log_weights[0])
    mean = weights @ draws.variables["n_centres"][0].reshape(30, -1).sum(axis=1)
    # Of more than two classes the particles are resampled: at most one more or fewer of each.
    assert mean == pytest.approx(model.n_centres_, rel=1e-9 if C == 2 else 0.2)
    running = model._learner.running
    again = class_draws(running.sticks, running.state, model._learner.entropy, ["a", "b", "c"][:C])
    np.testing.assert_array_equal(again.variables["coef_std"], draws.variables["coef_std"])


def test_functions_are_named_by_their_class() -> None:
    draws = tiny().fit(*make_rows(40, 4)).posterior_
    assert draws.entry_names("n_centres") == (
        "n_centres[ash]", "n_centres[birch]", "n_centres[cedar]"
    )  # fmt: skip


def test_the_target_is_prior_times_likelihood(model) -> None:
    """Differences between particles, for the terms that the set does not change."""
    running = model._learner.running
    filter_, state = running.sticks.filters[0], running.state.states[0]
    before = log_targets(filter_, state)
    f = np.empty((30, state.n_held))
    p, m = state.particles, filter_.prior.n_mean
    for i in range(30):
        k = p.size[i]
        columns = [*range(m), *p.members[i, :k]]
        f[i] = p.beta[i, : m + k] @ state.rows.design[p.level[i], columns, : state.n_held]
    signs = state.rows.sign[: state.n_held]
    flipped = state.rows._replace(sign=-state.rows.sign)
    after = log_targets(filter_, dataclasses.replace(state, rows=flipped))
    expected = log_expit(-f * signs).sum(axis=1) - log_expit(f * signs).sum(axis=1)
    np.testing.assert_allclose(after - before, expected, rtol=1e-9)


def test_few_ancestors_are_pointed_out(model) -> None:
    states = model._learner.running.state.states
    poor = [dataclasses.replace(states[0], n_ancestors=0), *states[1:]]
    said = judge_ancestry(model.posterior_, states, "").warnings
    warned = judge_ancestry(model.posterior_, poor, "").warnings
    assert warned[:-1] == said
    assert warned[-1].endswith("Try more particles (n_particles).")


def test_errors_of_the_evidences_add_up(model) -> None:
    total = sum(map(evidence_variance, model._learner.running.state.states))
    assert model.log_evidence_se_ == pytest.approx(np.sqrt(total))


# Model files: a stream goes on to the bit; right sum and wrong contents fail when read (F8).


X, Y = make_rows(50, 3)
CLASSES = np.unique(Y)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n_before", [4, 10, 37, 50])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_stream_that_was_saved_goes_on_to_the_bit(
    n_classes: int, n_before: int, tmp_path: Path
) -> None:
    """While rows are held back, when the scales become known, once rows leave, at the end."""
    X, y = make_rows(50, n_classes)
    classes = np.unique(y)
    unbroken = little().partial_fit(X, y, classes)
    little().partial_fit(X[:n_before], y[:n_before], classes).save(tmp_path / "m.mercer")
    resumed = mercer.load(tmp_path / "m.mercer")
    if n_before < 50:
        resumed.partial_fit(X[n_before:], y[n_before:])
    assert bits(resumed) == bits(unbroken)
    assert resumed.mean_log_predictive_ == unbroken.mean_log_predictive_
    np.testing.assert_array_equal(resumed.predict_proba(X), unbroken.predict_proba(X))


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    model = little().fit(X, Y)
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    for name in ("n_centres_", "notes_", "feature_labels_", "n_rows_seen_", "n_features_in_",
                 "log_evidence_", "log_evidence_se_"):  # fmt: skip
        assert getattr(again, name) == getattr(model, name)
    for name in ("classes_", "log_predictive_", "centres_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.diagnostics_.to_dict() == model.diagnostics_.to_dict()
    assert str(again.posterior_.summary()) == str(model.posterior_.summary())
    again.save(tmp_path / "twice.mercer")
    assert (tmp_path / "twice.mercer").read_bytes() == (tmp_path / "m.mercer").read_bytes()


@pytest.mark.parametrize(
    "labels", [[False, True], [3, 7], [-1.0, 1.0]], ids=["bool", "int", "float"]
)
def test_labels_come_back_in_their_type(labels: list, tmp_path: Path) -> None:
    X, y = make_rows(30)
    model = little().fit(X, np.array(labels)[(y == "ash").astype(int)])
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_the_file_holds_the_buffered_rows(tmp_path: Path) -> None:
    """`mercer inspect` looks for an array of that name."""
    for n in (4, 40):
        little().partial_fit(X[:n], Y[:n], CLASSES).save(tmp_path / "m.mercer")
        _, arrays = read_container(tmp_path / "m.mercer")
        assert len(arrays["X"]) == min(n, 16)


def of_state(name: str, change: Callable[[np.ndarray], Any]) -> Change:
    return set_array(f"state/filters/1/{name}", change)


NUMBERS = ("particles/scale", "particles/beta", "particles/log_weight", "rows/sign",
           "rows/design", "centres", "waiting")  # fmt: skip
INTEGERS = ("particles/size", "particles/members", "particles/level", "particles/ancestor")
COUNTS = ("n_candidates", "n_seen", "n_ancestors")
CHANGES = {
    **{f"{name} nan": of_state(name, lambda v: v * np.nan) for name in NUMBERS},
    **{f"{name} cut": of_state(name, lambda v: v[..., :-1]) for name in (*NUMBERS, *INTEGERS)},
    **{f"{name} short": of_state(name, lambda v: v[:-1]) for name in (*NUMBERS, *INTEGERS)},
    **{f"{name} float": of_state(name, lambda v: v + 0.5) for name in INTEGERS},
    **{f"{name} large": of_state(name, lambda v: v + 10**6) for name in (*INTEGERS, *COUNTS)},
    **{f"{name} negative": of_state(name, lambda v: v - 10**6) for name in (*INTEGERS, *COUNTS)},
    **{f"{name} flat": of_state(name, lambda v: v[np.newaxis]) for name in COUNTS},
    "is_waiting cut": of_state("is_waiting", lambda v: v[:-1]),
    "is_waiting integers": of_state("is_waiting", lambda v: v.astype(np.int64)),
    "signs": of_state("rows/sign", lambda v: 0.5 * v),
    "evidence nan": of_state("log_evidence", lambda v: v * np.nan),
    "evidence variance nan": of_state("evidence_variance", lambda v: v * np.nan),
    "weights": of_state("particles/log_weight", lambda v: v + 1.0),
    "members twice": of_state("particles/members", lambda v: np.full_like(v, v.max())),
    "scale 0": of_state("particles/scale", lambda v: 0.0 * v),
    "other filter": lambda manifest, arrays: arrays.pop("state/filters/0/rows/sign"),
    "rows of the first filter": set_array("X", lambda v: v[:-1]),
    "rows gone": lambda manifest, arrays: arrays.pop("X"),
    "rows nan": set_array("X", lambda v: v * np.nan),
    "rows large": set_array("X", lambda v: v + 1e200),
    "rows cut": set_array("X", lambda v: v[:, :-1]),
    "rows integers": set_array("X", lambda v: v.astype(np.int64)),
    "lengthscales 0": set_array("lengthscales", lambda v: 0.0 * v),
    "lengthscales cut": set_array("lengthscales", lambda v: v[:-1]),
    "lengthscales rising": set_array("lengthscales", lambda v: v[::-1]),
    "standardizer cut": set_array("standardizer/scale", lambda v: v[:-1]),
    "standardizer kind": set_array("standardizer/kind", lambda v: v + 7),
    "densities": set_array("log_predictive", lambda v: v[np.newaxis]),
    "buffer 0": set_field("fields/n_buffered", 0),
    "buffer other": set_field("fields/n_buffered", 17),
    "one class": set_field("fields/classes/values", ["ash"]),
    "two classes": set_field("fields/classes/values", ["ash", "birch"]),
    "four classes": set_field("fields/classes/values", ["ash", "birch", "cedar", "fir"]),
    "class twice": set_field("fields/classes/values", ["ash", "ash", "birch"]),
    "classes not sorted": set_field("fields/classes/values", ["birch", "ash", "cedar"]),
    "entropy": set_field("fields/entropy", "-1"),
    "rng": set_field("fields/rng", {"state": "x"}),
    "rng large": set_field("fields/rng/state", str(2**200)),
    "told": set_field("fields/told", 3),
    "scored": set_field("fields/n_scored", -3),
    "sum": set_field("fields/sum_log_density", None),
    "waiting": set_field("fields/is_waiting", True),
    "labels": set_field("fields/labels_of_inputs", ["a"]),
    "params wrong": set_field("params/kernel", {"x": 1}),
    "params unknown": set_field("params/callback", "os.system"),
    "params particles": set_field("params/n_particles", 13),
    "params centres": set_field("params/max_centres", 4),
    "params candidates": set_field("params/max_candidates", 5),
    "params linear part": set_field("params/linear_part", False),
}


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.mercer"
    little().partial_fit(X, Y, CLASSES).save(path)
    return path


def test_f8_inconsistent(model_file: Path, tmp_path: Path) -> None:
    assert taken(model_file, tmp_path, CHANGES) == []


OF_WAITING = {
    "rows nan": set_array("X", lambda v: v * np.nan),
    "rows large": set_array("X", lambda v: v + 1e200),
    "rows cut": set_array("X", lambda v: v[:, :-1]),
    "rows short": set_array("X", lambda v: v[:-1]),
    "labels short": set_array("held/y", lambda v: v[:-1]),
    "labels large": set_array("held/y", lambda v: v + 3),
    "labels negative": set_array("held/y", lambda v: v - 3),
    "labels float": set_array("held/y", lambda v: v + 0.5),
    "labels of another shape": set_array("held/y", lambda v: v[:, np.newaxis]),
    "more than are held": set_field("params/scale_rows", 2),
    "not waiting": set_field("fields/is_waiting", False),
}


def test_f8_rows_held_back(tmp_path: Path) -> None:
    little().partial_fit(X[:6], Y[:6], CLASSES).save(tmp_path / "m.mercer")
    assert taken(tmp_path / "m.mercer", tmp_path, OF_WAITING) == []


def test_rows_without_a_class_are_predicted_alike_one_by_one_and_together() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "a", "b").astype(object)
    y[50:][rng.random(100) < 0.3] = None
    found = []
    for size in (100, 1):
        model = SequentialKernelClassifier(n_particles=64, random_state=0)
        model.prequential(X[:50], y[:50])  # fixes the scales
        said = [model.prequential(X[i : i + size], y[i : i + size]) for i in range(50, 150, size)]
        found.append(np.concatenate([each.proba for each in said]))
    np.testing.assert_array_equal(*found)


def test_of_many_inputs_the_mean_is_constant_and_that_is_said() -> None:
    X = np.random.default_rng(0).standard_normal((20, 257))
    y = (X[:, 0] > 0).astype(int)
    model = tiny(linear_part="auto").fit(X, y)
    assert "the mean is not linear" in " ".join(model.notes_)
    assert not tiny(linear_part="auto", standardize="std").fit(X[:, :5], y).notes_
