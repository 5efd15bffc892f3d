"""Model files: a stream goes on to the bit; right sum and wrong contents fail when read (F8)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer.posterior.container import read_container
from support.class_fits import bits, little, make_rows
from support.mangled import Change, set_array, set_field, taken

X, Y = make_rows(50, 3)
CLASSES = np.unique(Y)


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
