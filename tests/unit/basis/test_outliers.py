"""Outliers among the targets: set aside, without a trace; a change is no outlier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student_t

import mercer
from mercer.basis import ensemble as ensemble_module
from mercer.basis.ensemble import Surprises, at_least, filter_law, long_tailed
from mercer.basis.estimator import SequentialKernelRegressor
from mercer.errors import MercerWarning, UsageError
from support.basis_streams import STREAMS, bits, make_stream, small
from support.statistics import pairs_first

X, Y = make_stream(80)
AT = 50  # the row that is wild
WILD = np.insert(Y, AT, 1000.0)
X_WILD = np.insert(X, AT, X[3], axis=0)
pytestmark = pytest.mark.filterwarnings("ignore:the target:mercer.errors.MercerWarning")


def learned(model: SequentialKernelRegressor) -> dict[str, bytes]:
    """All that it goes on with, but what it counts."""
    return {
        name: value for name, value in bits(model).items()
        if name != "scores" and not name.startswith("state/surprises")
    }  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("own", "size"), pairs_first(STREAMS, {str(size): size for size in (1e3, -1e6, 1e90)})
)
def test_a_wild_target_leaves_no_trace(own: dict[str, Any], size: float) -> None:
    """What is learned with it and without it is the same to the last bit."""
    without = small(**own, robust=True).partial_fit(X, Y)
    y = np.where(np.arange(81) == AT, size, WILD)
    model = small(**own, robust=True).partial_fit(X_WILD, y)
    assert learned(model) == learned(without)
    assert (model.n_outliers_, without.n_outliers_) == (1, 0)
    assert (model.n_rows_seen_, without.n_rows_seen_) == (81, 80)
    np.testing.assert_array_equal(model.predict(X), without.predict(X))
    assert np.isfinite(model.log_predictive_).all()
    if own.get("forgetting") is None:
        assert model.log_evidence_ == without.log_evidence_


@pytest.mark.one_in(2)
@pytest.mark.parametrize("own", STREAMS.values(), ids=STREAMS)
def test_without_a_surprise_the_guard_changes_nothing(own: dict[str, Any]) -> None:
    """The posterior is the same to the last bit; each score pays for what could have come."""
    plain, robust = (small(**own, robust=each).partial_fit(X, Y) for each in (False, True))
    assert learned(plain) == learned(robust)
    assert robust.n_outliers_ == 0
    lost = plain.log_predictive_ - robust.log_predictive_
    shares = 0.5 / (100.5 + np.arange(80))
    assert (lost < -np.log1p(-shares) + 1e-12).all()
    assert lost.mean() < 0.005


def test_a_wild_row_is_scored_as_it_was_foretold() -> None:
    model, asked = (small(robust=True).partial_fit(X[:AT], Y[:AT]) for _ in range(2))
    said = model.prequential(X_WILD[AT : AT + 2], WILD[AT : AT + 2])
    law = asked.predictive(X_WILD[AT : AT + 1])
    assert said.log_density[0] == pytest.approx(law.log_density([1000.0])[0], abs=1e-9)
    assert said.mean[0] == pytest.approx(law.mean[0])
    assert said.std[0] == pytest.approx(law.std[0])
    assert -30.0 < said.log_density[0] < -10.0


def test_the_density_is_one() -> None:
    """With the outliers' share: over the whole line, by y = tan(angle) about the law's mean."""
    law = small(robust=True).partial_fit(X, Y).predictive(X[:1])
    angle = (np.arange(400_000) + 0.5) / 400_000 * np.pi - 0.5 * np.pi
    y = law.mean[0] + 0.3 * np.tan(angle)
    rows = [law.log_density([value])[0] for value in y[::400]]
    total = np.mean(np.exp(rows) * 0.3 / np.cos(angle[::400]) ** 2) * np.pi
    assert total == pytest.approx(1.0, abs=2e-3)


def test_few_particles_are_asked_first_and_change_no_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(7)
    y = Y + np.where(rng.random(80) < 0.15, rng.normal(size=80) * 30.0, 0.0)
    own = {"forgetting": (1.0, 0.95), "robust": True}
    quick = small(**own).partial_fit(X, y)
    running = quick._ready()
    for filter_, state in zip(running.ensemble.filters, running.state.states, strict=True):
        z = running.standardise(X[:1])
        whole = long_tailed(filter_law(filter_, state, z)).log_density([0.3])[0]
        few = at_least(filter_, state, z[0], 0.3)
        assert whole - 5.0 < few <= whole + 1e-12
        law, particles = long_tailed(filter_law(filter_, state, z)), state.particles
        best = particles.level[np.argmax(particles.log_weight)]
        first = np.flatnonzero(particles.level == best)[:8]
        each = student_t.logpdf(0.3, law.df, law.locations[0, first], law.scales[0, first])
        own_share = np.logaddexp.reduce(np.log(law.weights[first]) + each)
        assert few == pytest.approx(own_share, abs=1e-10)
    monkeypatch.setattr(ensemble_module, "at_least", lambda *_: -np.inf)
    thorough = small(**own).partial_fit(X, y)
    assert bits(thorough) == bits(quick)
    assert quick.n_outliers_ > 0


@pytest.mark.parametrize(
    ("flags", "set_aside"),
    [
        ("..!..!.!", "..!..!.!"),
        ("!!!!!.!.!", "!!....!.!"),
        ("!.!.!.!.!.!.!.!.!", "!.!.!.!.!.!.!...."),
        ("!" + 49 * "." + 7 * "!.", "!" + 49 * "." + 7 * "!."),
    ],
)
def test_many_surprises_are_a_change(flags: str, set_aside: str) -> None:
    """The third in a row is learned, and the eighth of fifty."""
    surprises, found = Surprises.none(), ""
    for flag in flags:
        is_surprising = flag == "!"
        found += "!" if surprises.sets_aside(is_surprising=is_surprising) else "."
        surprises = surprises.after(is_surprising=is_surprising)
    assert found == set_aside
    assert surprises.n_set_aside == set_aside.count("!")
    assert surprises.n_met == len(flags)


@pytest.mark.parametrize("jump", [15.0, 150.0])
def test_a_change_of_level_is_followed(jump: float) -> None:
    """Two rows are lost, the others learned: it ends where it would without the guard."""
    X, y = make_stream(200)
    y[80:] += jump
    errors = {}
    for robust in (False, True):
        model = small(robust=robust, forgetting=0.9).partial_fit(X, y)
        errors[robust] = np.sqrt(np.mean((model.predict(X[170:]) - y[170:]) ** 2))
        assert model._ready().state.surprises.n_set_aside == (2 if robust else 0)
    assert errors[True] < 1.3 * errors[False] + 0.02


@pytest.mark.parametrize("stop", [AT + 1, AT + 2, AT + 3])
def test_a_stream_goes_on_from_a_file_in_the_midst_of_surprises(stop: int, tmp_path: Path) -> None:
    y = np.where((np.arange(81) >= AT) & (np.arange(81) < AT + 4), 1000.0, WILD)
    whole = small(robust=True).partial_fit(X_WILD, y)
    assert whole.n_outliers_ == 2
    small(robust=True).partial_fit(X_WILD[:stop], y[:stop]).save(tmp_path / "m")
    again = mercer.load(tmp_path / "m").partial_fit(X_WILD[stop:], y[stop:])
    assert bits(again) == bits(whole)


def test_a_wild_target_among_the_first_rows_spoils_no_scale() -> None:
    y = Y.copy()
    y[4] = 1000.0
    model = small(scale_rows=40, robust=True).partial_fit(X, y)
    others = np.delete(Y[:40], 4)
    assert model.target_scale_ == pytest.approx(others.std())
    assert model.target_centre_ == pytest.approx(others.mean())
    assert model.n_outliers_ == 1
    assert small(scale_rows=40, robust=False).partial_fit(X, y).target_scale_ > 100.0


def test_a_table_says_what_was_set_aside() -> None:
    model = small(robust=True).fit(X_WILD, WILD)
    assert model.n_outliers_ == 1
    assert any("1 of 81 rows" in note and "robust=False" in note for note in model.notes_)
    assert len(model.log_predictive_) == 81
    assert not any("set aside" in note for note in small(robust=True).fit(X, Y).notes_)


def test_river_learns_no_outlier() -> None:
    pytest.importorskip("river")
    model = small(robust=True).to_river()
    for x, y in zip(X_WILD, WILD, strict=True):
        model.learn_one({"a": x[0], "b": x[1]}, y)
    assert abs(model.predict_one({"a": 0.7, "b": 0.0}) - np.sin(1.4)) < 0.5


def test_where_it_is_on() -> None:
    assert small()._settings().robust
    assert not small(variances="sampled")._settings().robust
    assert not SequentialKernelRegressor.paper()._settings().robust
    with pytest.raises(UsageError, match="robust"):
        small(robust="yes").fit(X, Y)
    with pytest.raises(UsageError, match="robust='auto' or False"):
        small(variances="sampled", weighting="printed", robust=True).fit(X, Y)


def test_it_is_said_that_the_target_left_its_scale() -> None:
    with pytest.warns(MercerWarning, match="the target"):
        small(robust=True).partial_fit(X_WILD[: AT + 1], WILD[: AT + 1])


@pytest.mark.one_in(7)
@pytest.mark.parametrize("size", [1e6, 1e8, 1e12, 1e99])
@pytest.mark.parametrize("variances", ["integrated", "sampled"])
def test_wild_inputs_leave_a_linear_part(variances: str, size: float) -> None:
    """Three rows far out in both inputs: what others say of the function stays."""
    X, Y = make_stream(160)
    wild = X.copy()
    wild[60:63] = size
    own = {"linear_part": True, "variances": variances, "n_particles": 30, "max_centres": 20}
    told = small(**own).partial_fit(X[:60], Y[:60])
    with pytest.warns(MercerWarning, match="more than ten scales"):
        told.partial_fit(wild[60:], Y[60:])
    new, _ = make_stream(50, seed=4)
    error = told.predict(new) - np.sin(2.0 * new[:, 0])
    assert np.sqrt(np.mean(error**2)) < 0.3  # .7 is that of the mean
