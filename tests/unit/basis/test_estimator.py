"""What is particular to `SequentialKernelRegressor`: the contracts are in ``tests/contracts``."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from mercer.basis import filter as filter_module
from mercer.basis.estimator import SequentialKernelRegressor
from mercer.errors import MercerWarning, NumericalError, UsageError
from support.basis_streams import STREAMS, bits, make_stream, small
from support.statistics import few_first

X, Y = make_stream()


def test_a_table_of_which_the_scales_are_known_is_a_stream() -> None:
    """``fit`` goes through the driver, ``partial_fit`` does not: the same rows, the same bits."""
    known = {"input_scale": 1.0, "target_scale": 1.0, "lengthscale": 1.0, "input_scalings": 1}
    table, stream = small(**known).fit(X, Y), small(**known).partial_fit(X, Y)
    assert bits(table) == bits(stream)
    np.testing.assert_array_equal(table.log_predictive_, stream.log_predictive_)


def test_rows_are_checked_alike_as_arrays_and_as_lists() -> None:
    """Arrays take a short way to the filter, where nothing is wrong with them."""
    arrays, lists = small().fit(X[:40], Y[:40]), small().fit(X[:40], Y[:40])
    for t in range(40, 50):
        arrays.partial_fit(X[t : t + 1], Y[t : t + 1])
        lists.partial_fit(X[t : t + 1].tolist(), Y[t : t + 1].tolist())
    assert bits(arrays) == bits(lists)
    for rows, targets in (
        (X[50:51] * np.nan, Y[50:51]),
        (X[50:51], Y[50:51] * np.inf),
        (X[50:51, :1], Y[50:51]),
        (X[50:52], Y[50:51]),
        (X[50], Y[50:51]),
        (X[50:50], Y[50:50]),
    ):
        with pytest.raises(ValueError):
            arrays.partial_fit(rows, targets)
    assert bits(arrays) == bits(lists)


def test_after_a_fit_the_stream_goes_on() -> None:
    model = small().fit(X[:40], Y[:40])
    centre = model.target_centre_
    model.partial_fit(X[40:], Y[40:])
    assert model.n_rows_seen_ == 60
    assert len(model.log_predictive_) == 20
    assert model.target_centre_ == centre == pytest.approx(Y[:40].mean())


def test_it_learns() -> None:
    X, y = make_stream(200)
    model = small(n_particles=40, expected_centres=10.0, max_centres=20).fit(X, y)
    new_X, new_y = make_stream(200, seed=8)
    error = model.predict(new_X) - new_y
    assert np.mean(error**2) < 0.1 * new_y.var()
    lower, upper = model.predict_interval(new_X, 0.9)
    assert 0.8 < np.mean((lower < new_y) & (new_y < upper)) < 0.97
    assert model.noise_std_ == pytest.approx(0.1, rel=0.8)


def test_scores() -> None:
    model = small().partial_fit(X[:40], Y[:40])
    first = model.log_predictive_
    model.partial_fit(X[40:], Y[40:])
    assert model.log_predictive_.shape == (20,)
    total = first.sum() + model.log_predictive_.sum()
    assert model.mean_log_predictive_ == pytest.approx(total / 60)
    # With weights that add up to 1, evidence is what all rows were predicted with, and the ratio
    # of priors of sets that a new candidate brings.
    assert model.log_evidence_ == pytest.approx(total, abs=10.0)
    assert 0.0 < model.log_evidence_se_ < 5.0


# Rows of the present block, of one that was learned, and at its edge.
@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("forgetting", "n"),
    [
        *(
            pytest.param(f, n, marks=pytest.mark.slow)
            for f in (1.0, (1.0, 0.8))
            for n in (520, 528)
        ),
        *((f, 40) for f in (1.0, 0.97, 0.9, (1.0, 0.8))),
        (0.9, 520),
        (0.97, 528),
    ],
)
def test_the_score_of_a_row_is_what_was_predicted_of_it(forgetting: float, n: int) -> None:
    """With draws of which none is made anew before that row, which 12 particles would show."""
    X, y = make_stream(n + 1)
    model = small(forgetting=forgetting, random_state=1).partial_fit(X[:n], y[:n])
    law = model.predictive(X[n:])
    model.partial_fit(X[n:], y[n:])
    assert model.log_predictive_[0] == pytest.approx(law.log_density(y[n:])[0], abs=1e-9)


def test_there_is_no_evidence_where_rows_are_forgotten() -> None:
    model = small(forgetting=0.9).fit(X, Y)
    assert not hasattr(model, "log_evidence_")
    assert not hasattr(model, "log_evidence_se_")
    with pytest.raises(AttributeError, match="there is no evidence where rows are forgotten"):
        model.log_evidence_  # noqa: B018


def test_centres_are_rows() -> None:
    model = small().fit(X, Y)
    distances = np.abs(model.centres_[:, np.newaxis] - X).max(axis=2)
    assert model.centres_.shape[1] == 2
    assert (distances.min(axis=1, initial=0.0) < 1e-12).all()
    assert 0.0 <= model.n_centres_ <= 5.0


@pytest.mark.parametrize("forgetting", few_first([0.5, 0.8, 0.95], 0.8))
def test_each_row_is_forgotten_by_itself(forgetting: float) -> None:
    """Later rows are learned in blocks: the first of one was predicted from next to nothing."""
    X, y = make_stream(540)
    model = small(forgetting=forgetting).partial_fit(X[:510], y[:510])
    degrees = []
    for t in range(510, 540):
        degrees.append(model.predictive(X[t : t + 1]).df)
        model.partial_fit(X[t : t + 1], y[t : t + 1])
    # Of the prior half a row's worth; what rows count together is a geometric series.
    np.testing.assert_allclose(degrees, 0.5 + forgetting / (1.0 - forgetting), rtol=1e-9)


def test_forgetting_follows_what_changes() -> None:
    X, y = make_stream(200)
    y = np.where(np.arange(200) < 120, y, y + 3.0)
    keeps, forgets, both = (
        small(forgetting=f, target_scale=1.0, input_scale=1.0).partial_fit(X, y)
        for f in (1.0, 0.9, (1.0, 0.9))
    )
    scores = [np.mean(model.log_predictive_[-50:]) for model in (keeps, forgets, both)]
    assert scores[1] > scores[0] + 0.3
    assert scores[2] > scores[0] + 0.3
    assert len(both.posterior_.log_weights[0]) == 24


@pytest.mark.parametrize("own", STREAMS.values(), ids=STREAMS)
def test_copies_go_on_alike(own: dict) -> None:
    model = small(**own).partial_fit(X[:30], Y[:30])
    copied = pickle.loads(pickle.dumps(model)).partial_fit(X[30:], Y[30:])
    assert bits(model.partial_fit(X[30:], Y[30:])) == bits(copied)
    assert not hasattr(clone(model), "n_rows_seen_")


def test_the_paper() -> None:
    x = np.linspace(-10.0, 10.0, 40)[:, np.newaxis]
    model = SequentialKernelRegressor.paper().set_params(
        n_particles=30, random_state=0, progress=False
    )
    model.fit(x, np.sinc(x[:, 0] / np.pi))
    assert model.posterior_.variables["lengthscale"] == pytest.approx(1.6 / np.sqrt(2.0))
    assert model.standardizer_.scale[0] == 1.0
    assert abs(model.predict([[0.0]])[0] - 1.0) < 0.4


def test_known_scales_are_used_as_they_are() -> None:
    model = small(input_scale=[2.0, 4.0], target_scale=(1.0, 3.0)).partial_fit(X, Y)
    np.testing.assert_array_equal(model.standardizer_.scale, [2.0, 4.0])
    assert (model.target_centre_, model.target_scale_) == (1.0, 3.0)
    with pytest.raises(UsageError, match=r"one for each of 2 inputs; got shape \(3,\)"):
        small(input_scale=[1.0, 1.0, 1.0]).partial_fit(X, Y)


def test_a_constant_target_of_a_table_is_pointed_out_and_one_of_a_stream_may_change() -> None:
    with pytest.warns(MercerWarning, match="the target is constant"):
        small().fit(X, np.full(60, 3.0))
    model = small().partial_fit(X, np.full(60, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0)
    assert np.isfinite(model.partial_fit(X, Y).predict(X, return_std=True)).all()


def test_one_row() -> None:
    model = small().partial_fit(X[:1], Y[:1])
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0.0).all()
    with pytest.raises(ValueError, match="1 sample"):
        small().fit(X[:1], Y[:1])


def test_columns_of_very_different_scales() -> None:
    unit = small().partial_fit(X, Y).predict(X)
    other = X * [1e5, 1e-3] + [1e8, 0.0]
    np.testing.assert_allclose(small().partial_fit(other, Y).predict(other), unit, atol=1e-5)


def test_hundreds_of_rows_at_one_place() -> None:
    noise = np.random.default_rng(0).standard_normal(300)
    model = small().partial_fit(np.zeros((300, 2)), noise)
    mean, std = model.predict(np.zeros((1, 2)), return_std=True)
    assert mean[0] == pytest.approx(0.0, abs=0.2)
    assert std[0] == pytest.approx(1.0, abs=0.2)


def test_an_outlier_in_mid_stream() -> None:
    """Everything stays finite, also where it is learned."""
    model = small(robust=False).partial_fit(X[:40], Y[:40])
    with pytest.warns(MercerWarning, match="the target, more|the target: more"):
        model.partial_fit(X[40:41], [1e12])
    model.partial_fit(X[41:], Y[41:])
    assert np.isfinite(model.predict(X, return_std=True)).all()
    assert np.isfinite(model.log_predictive_).all()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kernel", ["rbf", "matern12", "matern32", "matern52"])
@pytest.mark.parametrize("linear_part", [False, True])
def test_rows_from_far_away(kernel: str, linear_part: bool) -> None:
    model = small(kernel=kernel, linear_part=linear_part).partial_fit(X, Y)
    with pytest.warns(MercerWarning, match="x0, x1: more than ten scales"):
        model.partial_fit(1e300 * X, Y)
    assert np.isfinite(model.predict(1e300 * X, return_std=True)).all()
    assert np.isfinite(model.partial_fit(X, Y).predict(X)).all()


def test_draws_of_a_row_share_their_particle() -> None:
    """Also across the blocks in which rows are worked through."""
    model = small().fit(X, Y)
    rows = np.repeat(X[:1], 1500, axis=0)
    draws = model.sample_y(rows, 200, random_state=1)
    assert draws.shape == (200, 1500)
    mean, std = model.predict(X[:1], return_std=True)
    assert draws.mean() == pytest.approx(mean[0], abs=0.3 * std[0])
    assert draws.std() == pytest.approx(std[0], rel=0.3)


def test_settings_changed_while_it_learns_change_nothing() -> None:
    model = small().partial_fit(X[:30], Y[:30]).set_params(n_particles=99, forgetting=0.5)
    expected = small().partial_fit(X, Y)
    assert bits(model.partial_fit(X[30:], Y[30:])) == bits(expected)


@pytest.mark.parametrize("error", [MemoryError, np.linalg.LinAlgError])
def test_an_error_in_the_middle_of_a_row_is_not_gone_on_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: type[Exception]
) -> None:
    """Its arrays are neither those before the row nor those after it: no file, no further row."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    model = SequentialKernelRegressor(n_particles=5, random_state=0, scale_rows=10)
    model.partial_fit(X[:20], y[:20])

    def fail(*_: object) -> None:
        raise error("no more")

    with monkeypatch.context() as patch:
        patch.setattr(filter_module, "admit", fail)
        with pytest.raises(MemoryError if error is MemoryError else NumericalError):
            model.partial_fit(X[20:], y[20:])
    for use in (
        lambda: model.save(tmp_path / "m"), lambda: model.predict(X),
        lambda: model.partial_fit(X, y), lambda: model.prequential(X, y),
    ):  # fmt: skip
        with pytest.raises(NumericalError, match="in the middle of row 21"):
            use()
    assert not (tmp_path / "m").exists()


def test_a_wave_that_the_rows_resolve_is_learned() -> None:
    """Twenty periods, ten rows each: a twentieth of the median distance between rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 20.0, (400, 1))
    y = np.sin(2.0 * np.pi * X[:, 0]) + 0.1 * rng.standard_normal(400)
    model = SequentialKernelRegressor(random_state=0).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.7
