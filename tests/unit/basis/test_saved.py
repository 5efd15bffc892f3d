"""Model files: a stream goes on to the bit; right sum and wrong contents fail when read (F8)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mercer
from mercer.basis.filter import Filter
from mercer.posterior.container import read_container
from support.basis_streams import STREAMS, bits, make_stream, small
from support.mangled import Change, set_array, set_field, taken
from support.statistics import pairs_first

X, Y = make_stream()


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("own", "n_before"), pairs_first(STREAMS, {str(n): n for n in (4, 10, 37, 60)})
)
def test_a_stream_that_was_saved_goes_on_to_the_bit(
    own: dict, n_before: int, tmp_path: Path
) -> None:
    """While rows are held back, when the scales become known, inside a block, at the end."""
    unbroken = small(**own).partial_fit(X, Y)
    small(**own).partial_fit(X[:n_before], Y[:n_before]).save(tmp_path / "m.mercer")
    resumed = mercer.load(tmp_path / "m.mercer")
    if n_before < 60:
        resumed.partial_fit(X[n_before:], Y[n_before:])
    assert bits(resumed) == bits(unbroken)
    assert resumed.mean_log_predictive_ == unbroken.mean_log_predictive_
    for name, arguments in (
        ("predict", (X, True)), ("predict_interval", (X, 0.8)), ("sample_y", (X, 7, 1)),
    ):  # fmt: skip
        np.testing.assert_array_equal(
            getattr(resumed, name)(*arguments), getattr(unbroken, name)(*arguments)
        )


@pytest.mark.parametrize("forgetting", [0.97, (1.0, 0.6)])
@pytest.mark.parametrize("n", [30, 40])
def test_a_file_of_before_is_discounted_for_the_next_row(
    forgetting: Any, n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums in it had lost nothing since the last row: that came with the next one."""
    model = small(forgetting=forgetting).partial_fit(X[:n], Y[:n])
    before = small(forgetting=forgetting).partial_fit(X[: n - 1], Y[: n - 1])
    monkeypatch.setattr(Filter, "discounted", lambda self, state: state)
    before.partial_fit(X[n - 1 : n], Y[n - 1 : n]).save(tmp_path / "m.mercer")
    monkeypatch.undo()
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict(X, True), model.predict(X, True))
    for each in (again, model):
        each.partial_fit(X[n:], Y[n:])
    assert bits(again) == bits(model)


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    model = small().fit(X, Y)
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    for name in ("noise_std_", "n_centres_", "notes_", "feature_labels_", "n_rows_seen_",
                 "n_features_in_", "log_evidence_", "log_evidence_se_"):  # fmt: skip
        assert getattr(again, name) == getattr(model, name)
    np.testing.assert_array_equal(again.log_predictive_, model.log_predictive_)
    np.testing.assert_array_equal(again.centres_, model.centres_)
    assert again.diagnostics_.to_dict() == model.diagnostics_.to_dict()
    assert str(again.posterior_.summary()) == str(model.posterior_.summary())
    again.save(tmp_path / "twice.mercer")
    assert (tmp_path / "twice.mercer").read_bytes() == (tmp_path / "m.mercer").read_bytes()


def test_names_and_what_was_warned_of_come_back(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["age", "dose"])
    model = small().partial_fit(frame, Y)
    model._learner.told.add("age")
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert list(again.feature_names_in_) == ["age", "dose"]
    again.partial_fit(frame * [1e3, 1.0], Y)  # no warning


def test_arguments_are_those_of_the_fit(tmp_path: Path) -> None:
    """Whatever they were set to later: the arrays are of their shapes."""
    model = small(lengthscale=[1.0, 0.5], forgetting=(1.0, 0.9)).fit(X, Y)
    model.set_params(n_particles=99, forgetting=0.5)
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert again.n_particles == 12
    assert again.lengthscale == [1.0, 0.5]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.filterwarnings("ignore:.*more than ten scales")
@pytest.mark.parametrize("variances", ["integrated", "sampled"])
def test_a_stream_of_the_largest_targets_comes_back(variances: str, tmp_path: Path) -> None:
    model = small(robust=False, variances=variances).partial_fit(X[:20], Y[:20])
    model.partial_fit(X[20:30], 1e98 * Y[20:30]).save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict(X), model.predict(X))


def test_the_file_holds_the_buffered_rows(tmp_path: Path) -> None:
    """`mercer inspect` looks for an array of that name."""
    for n in (4, 40):
        small().partial_fit(X[:n], Y[:n]).save(tmp_path / "m.mercer")
        _, arrays = read_container(tmp_path / "m.mercer")
        assert len(arrays["X"]) >= n


def test_a_file_has_no_room_for_what_may_come(tmp_path: Path) -> None:
    """Nor sums that are not kept up to date; a stream that goes on has the room that it had."""
    model = small().partial_fit(X[:37], Y[:37])
    model.save(tmp_path / "m.mercer")
    _, arrays = read_container(tmp_path / "m.mercer")
    both = model, mercer.load(tmp_path / "m.mercer")
    state, again = (each._learner.running.state.states[0] for each in both)
    r, own = state.statistics.n_candidates, "state/filters/0"
    assert r < len(state.centres) == len(again.centres)
    assert len(arrays["X"]) == 37 < len(again.rows.y) == len(state.rows.y)
    assert arrays[f"{own}/rows/distances"].shape[1:] == (37, r)
    assert len(arrays[f"{own}/statistics/gram"]) == state.is_kept.sum()


def of_state(name: str, change: Callable[[np.ndarray], Any]) -> Change:
    return set_array(f"state/filters/0/{name}", change)


NUMBERS = (
    "particles/scale", "particles/noise", "particles/factor", "particles/whitened",
    "particles/rss", "particles/half_logdet", "particles/log_target", "particles/log_weight",
    "statistics/gram", "statistics/moment", "rows/y", "rows/distances", "centres", "pending",
    "pending_y", "leaving", "leaving_y",
)  # fmt: skip
INTEGERS = ("particles/size", "particles/members", "particles/level", "particles/ancestor",
            "rows/age")  # fmt: skip
COUNTS = ("n_pending", "n_leaving", "n_seen", "n_discounts", "n_ancestors",
          "statistics/n_candidates", "statistics/n_rows")  # fmt: skip
CHANGES = {
    **{f"{name} nan": of_state(name, lambda v: v * np.nan) for name in NUMBERS},
    **{f"{name} cut": of_state(name, lambda v: v[..., :-1]) for name in (*NUMBERS, *INTEGERS)},
    **{f"{name} short": of_state(name, lambda v: v[:-1]) for name in (*NUMBERS, *INTEGERS)},
    **{f"{name} float": of_state(name, lambda v: v + 0.5) for name in INTEGERS},
    **{f"{name} large": of_state(name, lambda v: v + 10**6) for name in INTEGERS[:4]},
    **{f"{name} negative": of_state(name, lambda v: v - 10**6) for name in INTEGERS[:4]},
    **{f"{name} negative": of_state(name, lambda v: -v - 1) for name in COUNTS},
    **{f"{name} flat": of_state(name, lambda v: v[np.newaxis]) for name in COUNTS},
    "n_pending large": of_state("n_pending", lambda v: v + 100),
    "n_leaving large": of_state("n_leaving", lambda v: v + 100),
    "n_candidates large": of_state("statistics/n_candidates", lambda v: v + 10**4),
    "n_candidates fewer": of_state("statistics/n_candidates", lambda v: v * 0),
    "evidence nan": of_state("log_evidence", lambda v: v * np.nan),
    "evidence variance nan": of_state("evidence_variance", lambda v: v * np.nan),
    "square nan": of_state("statistics/square", lambda v: v * np.nan),
    "weights": of_state("particles/log_weight", lambda v: v + 1.0),
    "members twice": of_state("particles/members", lambda v: np.full_like(v, v.max())),
    "scale 0": of_state("particles/scale", lambda v: 0.0 * v),
    "kept levels fewer": of_state("is_kept", lambda v: np.arange(len(v)) < v.sum() - 1),
    "kept levels flat": of_state("is_kept", lambda v: v[np.newaxis]),
    "room small": set_array("room/0", lambda v: v - v),
    "room negative": set_array("room/0", lambda v: -v),
    "room for more": set_array("room/0", lambda v: v * 10**6),
    "room float": set_array("room/0", lambda v: v + 0.0),
    "room cut": set_array("room/0", lambda v: v[:1]),
    "rows gone": lambda manifest, arrays: arrays.pop("X"),
    "rows nan": set_array("X", lambda v: v * np.nan),
    "rows short": set_array("X", lambda v: v[:-1]),
    "rows cut": set_array("X", lambda v: v[:, :-1]),
    "rows integers": set_array("X", lambda v: v.astype(np.int64)),
    "scores nan": set_array("state/scores", lambda v: v * np.nan),
    "scores long": set_array("state/scores", lambda v: np.append(v, 0.0)),
    "lengthscales 0": set_array("lengthscales", lambda v: 0.0 * v),
    "lengthscales cut": set_array("lengthscales", lambda v: v[:-1]),
    "lengthscales rising": set_array("lengthscales", lambda v: v[::-1]),
    "standardizer cut": set_array("standardizer/scale", lambda v: v[:-1]),
    "standardizer kind": set_array("standardizer/kind", lambda v: v + 7),
    "standardizer nan": set_array("standardizer/centre", lambda v: v * np.nan),
    "densities": set_array("log_predictive", lambda v: v[np.newaxis]),
    "target scale": set_field("fields/target_scale", 0.0),
    "target centre": set_field("fields/target_centre", "much"),
    "entropy": set_field("fields/entropy", "-1"),
    "rng": set_field("fields/rng", {"state": "x"}),
    "rng large": set_field("fields/rng/state", str(2**200)),
    "rng negative": set_field("fields/rng/inc", "-5"),
    "told": set_field("fields/told", 3),
    "scored": set_field("fields/n_scored", -3),
    "sum": set_field("fields/sum_log_density", None),
    "waiting": set_field("fields/is_waiting", True),
    "labels": set_field("fields/labels_of_inputs", ["a"]),
    "params wrong": set_field("params/kernel", {"x": 1}),
    "params unknown": set_field("params/callback", "os.system"),
    "params particles": set_field("params/n_particles", 13),
    "params centres": set_field("params/max_centres", 4),
    "params forgetting": set_field("params/forgetting", [1.0, 0.9]),
    "params linear part": set_field("params/linear_part", True),
}  # fmt: skip


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "m.mercer"
    small(max_candidates=5).partial_fit(X, Y).save(path)
    return path


def test_f8_inconsistent(model_file: Path, tmp_path: Path) -> None:
    assert taken(model_file, tmp_path, CHANGES) == []


OF_WAITING = {
    "rows nan": set_array("X", lambda v: v * np.nan),
    "rows cut": set_array("X", lambda v: v[:, :-1]),
    "rows short": set_array("X", lambda v: v[:-1]),
    "targets short": set_array("held/y", lambda v: v[:-1]),
    "targets large": set_array("held/y", lambda v: v + 1e200),
    "more than are held": set_field("params/scale_rows", 2),
    "not waiting": set_field("fields/is_waiting", False),
}


def test_f8_rows_held_back(tmp_path: Path) -> None:
    small().partial_fit(X[:6], Y[:6]).save(tmp_path / "m.mercer")
    assert taken(tmp_path / "m.mercer", tmp_path, OF_WAITING) == []
