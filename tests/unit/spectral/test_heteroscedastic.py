"""`BaNKRegressor` with noise whose variance depends on the inputs."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import mercer
from mercer.errors import UsageError
from mercer.posterior.container import read_container, write_container
from mercer.spectral.estimator import BaNKRegressor
from mercer.spectral.model import HeteroscedasticNoise, log_variances
from mercer.spectral.prediction import FunctionDraws
from mercer.spectral.sampler import ProposalTuning, StepAdaptation
from support.mangled import set_array, taken
from support.spectral_cases import make_spectral
from support.spectral_fits import tiny
from support.statistics import few_first

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.ConvergenceWarning")


def table(n: int, seed: int, *, is_even: bool = False) -> tuple[np.ndarray, ...]:
    """One input, targets, and the standard deviation of their noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 1))
    std = np.full(n, 0.4) if is_even else 0.2 * (1.0 + 2.0 * np.abs(X[:, 0]))
    return X, 100.0 + 20.0 * (np.sin(2.0 * X[:, 0]) + std * rng.standard_normal(n)), 20.0 * std


N = 700
X, Y, STD = table(N, 0)
Z, NEW, NEW_STD = table(3000, 1)


def fitted(noise: str, y: np.ndarray = Y, rows: np.ndarray = X, **own: Any) -> BaNKRegressor:
    short = {"n_draws": 40, "n_warmup": 40, "n_chains": 1, "n_frequencies": 64}
    short |= {"random_state": 0, "progress": False}
    return BaNKRegressor(noise=noise, **{**short, **own}).fit(rows[: len(y)], y)


@pytest.fixture(scope="module")
def model() -> BaNKRegressor:
    return fitted("heteroscedastic")


@pytest.mark.slow
@pytest.mark.usefixtures("whole_start")
def test_intervals_hold_nine_in_ten_wherever_the_noise_is() -> None:
    """In thirds of the rows by their noise; of even noise they are far off."""
    rows, y, _ = table(1500, 0)

    def held(other: BaNKRegressor) -> np.ndarray:
        lower, upper = other.predict_interval(Z, 0.9)
        is_in = (lower < NEW) & (upper > NEW)
        thirds = np.array_split(np.argsort(NEW_STD), 3)
        return np.array([is_in[third].mean() for third in thirds])

    model, normal = (fitted(law, y, rows, n_chains=2) for law in ("heteroscedastic", "normal"))
    np.testing.assert_allclose(held(model), 0.9, atol=0.03)
    assert held(normal)[0] > 0.97
    assert held(normal)[2] < 0.83
    scores = [each.predictive(Z).log_density(NEW).mean() for each in (model, normal)]
    assert scores[0] > scores[1] + 0.1


def test_the_noise_is_found_at_each_row(model: BaNKRegressor) -> None:
    rows = np.linspace(-1.8, 1.8, 19)[:, np.newaxis]
    truth = 20.0 * 0.2 * (1.0 + 2.0 * np.abs(rows[:, 0]))
    found = model.predict_noise_std(rows)
    assert np.abs(np.log(found / truth)).mean() < 0.2
    assert model.noise_std_ == pytest.approx(np.exp(np.log(STD).mean()), rel=0.15)
    drawn = model.sample_y(rows, 4000, random_state=0)
    np.testing.assert_allclose(drawn.std(axis=0), model.predict(rows, return_std=True)[1], rtol=0.1)


@pytest.mark.slow
@pytest.mark.usefixtures("whole_start")
def test_even_noise_is_level_with_a_normal_law() -> None:
    rows, y, _ = table(400, 0, is_even=True)
    Z, new, _ = table(3000, 1, is_even=True)
    scores = [
        fitted(noise, y, rows, n_chains=2).predictive(Z).log_density(new).mean()
        for noise in ("heteroscedastic", "normal")
    ]
    assert abs(scores[0] - scores[1]) < 0.02


def test_the_law_is_a_mixture_of_normals_with_these_variances(model: BaNKRegressor) -> None:
    law, draws = model.predictive(Z[:5]), model.posterior_
    standardized = model.standardizer_.transform(Z[:5])
    V, coef = draws.flat("noise_frequencies"), draws.flat("noise_coef")
    g = np.array([log_variances(*each, standardized) for each in zip(V, coef, strict=True)])
    g = g.clip(*draws.flat("noise_range").T[..., np.newaxis])  # of the rows that taught it
    stds = draws.flat("noise_std") * np.exp(0.5 * g.T) * model.target_scale_
    stds = np.repeat(stds, law.locations.shape[1] // stds.shape[1], axis=1)
    wanted = np.log(stats.norm(law.locations, stds).pdf(NEW[:5, np.newaxis]).mean(axis=1))
    np.testing.assert_allclose(law.log_density(NEW[:5]), wanted, rtol=1e-9)


def test_what_is_recorded_is_what_rows_weigh() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((50, 3))
    law = HeteroscedasticNoise().placed(rng, np.ones(3), rows)
    parameter = np.append(0.5, rng.standard_normal(len(law.centre)))
    found = law.recorded(parameter)
    g = log_variances(found["noise_frequencies"], found["noise_coef"], rows)
    assert abs(g.mean()) < 1e-12
    V, gamma = law.known_by(np.empty((4, 3)), np.empty(8), parameter)
    f = np.array([gamma @ _features(V, row) for row in rows])
    weights, weighted = law.weigher(1.0, parameter, rng)(f, np.arange(50.0))
    np.testing.assert_allclose(weights, np.exp(-g), rtol=1e-9)
    np.testing.assert_allclose(weighted, weights * np.arange(50.0))
    far = log_variances(found["noise_frequencies"], 1e6 * found["noise_coef"], 1e3 * rows)
    assert np.abs(far).max() == 20.0


def _features(V: np.ndarray, row: np.ndarray) -> np.ndarray:
    phases = V @ row
    return np.stack([np.cos(phases), np.sin(phases)], axis=1).ravel() / np.sqrt(len(V))


def test_most_of_warm_up_finds_the_function_before_the_noise_varies() -> None:
    """Else noise explains what no frequency does yet, and the rows there count little from then on.

    A parameter that waited climbs to where it is likely, and is drawn from there.
    """
    rows, y = X[:200], (Y[:200] - 100.0) / 20.0
    sampler = make_spectral(rows, y, noise="heteroscedastic", n_frequencies=16)
    law = HeteroscedasticNoise().placed(np.random.default_rng(0), np.ones(1), rows)
    sampler = dataclasses.replace(
        sampler, noise=law, tuning=ProposalTuning(0.5, is_noise_kept=True)
    )
    rng = np.random.default_rng(1)
    state = sampler.init(rng)
    for _ in range(3):
        state, info = sampler.step(rng, state)
        np.testing.assert_array_equal(state.noise.parameter, law.first)
        assert (sampler.record(state)["noise_coef"] == 0.0).all()
    before = state.noise.log_likelihood
    assert info.log_density == before
    adaptation = StepAdaptation(n_kept=2)
    learned, waiting = adaptation.init(sampler), list[bool]()
    for _ in range(3):
        learned, sampler = adaptation.update(learned, sampler, None, info)
        waiting.append(sampler.tuning.is_noise_kept)
    assert waiting == [True, False, False]
    state, _ = sampler.step(rng, state)
    assert (state.noise.parameter[1:] != 0.0).all()
    assert state.noise.log_likelihood > before + 10.0


def test_a_chain_that_is_stopped_in_warm_up_has_even_noise() -> None:
    short = fitted("heteroscedastic", n_warmup=2000, n_draws=1, max_seconds=0.5)
    assert short.predict_noise_std(Z[:5]).std() == pytest.approx(0.0, abs=1e-9)
    assert np.isfinite(short.predictive(Z[:5]).log_density(NEW[:5])).all()


def test_the_gradient_is_that_of_the_likelihood() -> None:
    rng = np.random.default_rng(4)
    rows, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    law = HeteroscedasticNoise().placed(rng, np.ones(2), rows)
    told = np.column_stack([np.zeros(30), [_features(law.beside, row) for row in rows]]).T
    parameter = np.append(1.0, rng.standard_normal(len(law.centre)))

    def said(step: np.ndarray) -> np.ndarray:
        return np.asarray(law.hearer(0.5, parameter + step, rng)(told, y))

    along = np.append(0.0, rng.standard_normal(len(law.centre)))
    ends = [law.log_likelihood(said(e * along), parameter) for e in (1e-5, -1e-5)]
    slope = said(0.0 * along)[len(law.spreads) : -1]
    assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(slope @ along[1:], rel=1e-6)
    g = parameter[1:] @ (told[1:] - law.centre[:, np.newaxis])
    wanted = stats.norm(0.0, np.sqrt(0.5 * np.exp(g))).logpdf(y).sum()
    assert law.log_likelihood(said(0.0 * along), parameter) == pytest.approx(wanted)


def test_beyond_the_rows_the_noise_stays_within_what_it_is_among_them() -> None:
    """Of each draw: a few that explode would make the mean that of the largest."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1.5, 1.5, (400, 1))
    y = np.sin(2.0 * rows[:, 0]) + (0.1 + rows[:, 0] ** 2) * rng.standard_normal(400)
    short = {"n_draws": 30, "n_warmup": 30, "n_chains": 1, "random_state": 0, "progress": False}
    model = BaNKRegressor(noise="heteroscedastic", n_frequencies=64, **short).fit(rows, y)
    functions = model._functions
    among, far = (
        functions.noise_stds(model.standardizer_.transform(np.asarray(X)))
        for X in (rows, [[-6.5], [-1.8], [1.8], [2.5], [5.0]])
    )
    assert (far <= among.max(axis=0) * (1.0 + 1e-9)).all()
    assert (far >= among.min(axis=0) * (1.0 - 1e-9)).all()
    assert model.predict([[2.5], [5.0]], return_std=True)[1].max() < 4.0
    ends = np.log(np.square([among.min(axis=0), among.max(axis=0)] / functions.noise_std))
    np.testing.assert_allclose(model.posterior_.flat("noise_range"), ends.T, atol=1e-9)


CHANGES: dict[str, Any] = {
    "no end of the noise": set_array("draws/noise_range", lambda v: v[..., :1]),
    "the least noise above the most": set_array("draws/noise_range", lambda v: v[..., ::-1] + 0.0),
    "noise beyond all bounds": set_array("draws/noise_range", lambda v: v + 21.0),
    "no spread": set_array("draws/noise_spread", lambda v: 0.0 * v),
    "a coefficient less": set_array("draws/noise_coef", lambda v: v[..., :-1]),
    "an input more": set_array("draws/noise_frequencies", lambda v: np.concatenate([v, v], -1)),
    "no frequencies": lambda _, arrays: arrays.pop("draws/noise_frequencies"),
    "no coefficients": lambda _, arrays: arrays.pop("draws/noise_coef"),
    "no axes": set_array("draws/noise_frequencies", lambda v: v.ravel()),
}


def test_f8_noise_that_varies(model: BaNKRegressor, tmp_path: Path) -> None:
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict_noise_std(Z), model.predict_noise_std(Z))
    np.testing.assert_array_equal(again.predict_interval(Z[:50]), model.predict_interval(Z[:50]))
    assert taken(tmp_path / "m.mercer", tmp_path, CHANGES) == []


def test_a_file_of_an_earlier_version_is_read_as_it_was(
    model: BaNKRegressor, tmp_path: Path
) -> None:
    model.save(tmp_path / "m.mercer")
    manifest, arrays = read_container(tmp_path / "m.mercer")
    del arrays["draws/noise_range"]
    write_container(tmp_path / "m.mercer", manifest, arrays)
    again = mercer.load(tmp_path / "m.mercer")
    same = again.predict_noise_std(X), model.predict_noise_std(X)
    np.testing.assert_allclose(*same, rtol=1e-12)  # where the range cuts rounding
    draws, far = again.posterior_, again.standardizer_.transform([[30.0]])
    V, coef = draws.flat("noise_frequencies"), draws.flat("noise_coef")
    g = np.array([log_variances(*each, far) for each in zip(V, coef, strict=True)])
    wanted = (draws.flat("noise_std") * np.exp(0.5 * g[:, 0])).mean() * again.target_scale_
    np.testing.assert_allclose(again.predict_noise_std([[30.0]]), wanted)


def test_a_run_goes_on_from_its_checkpoint_to_the_same_draws(tmp_path: Path) -> None:
    one, two = (tiny(noise="heteroscedastic", **own).fit(X[:300], Y[:300]) for own in (
        {}, {"checkpoint": tmp_path / "c"},
    ))  # fmt: skip
    again = tiny(noise="heteroscedastic", checkpoint=tmp_path / "c").fit(X[:300], Y[:300])
    for name in one.posterior_.variables:
        np.testing.assert_array_equal(one.posterior_.flat(name), two.posterior_.flat(name))
        np.testing.assert_array_equal(one.posterior_.flat(name), again.posterior_.flat(name))


def test_rows_on_a_disk_are_learned_from_as_those_in_memory(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.csv"
    lines = [f"{float(x)!r},{float(y)!r}" for x, y in zip(X[:300, 0], Y[:300], strict=True)]
    path.write_text("a,y\n" + "\n".join(lines) + "\n")
    here, there = tiny(noise="heteroscedastic").fit(X[:300], Y[:300]), tiny(noise="heteroscedastic")
    there.fit(mercer.data.open(path), "y")
    for name in ("noise_coef", "noise_range"):
        np.testing.assert_array_equal(*(m.posterior_.flat(name) for m in (here, there)))


@pytest.mark.one_in(3)
@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
@pytest.mark.parametrize(
    "y",
    [
        np.where(np.arange(400) < 398, 1.0, 5.0),
        np.round(np.sin(X[:400, 0])),
        np.where(np.arange(400) % 9, Y[:400], 1e9),
        np.sin(X[:400, 0]),
        np.zeros(400),
        Y[:2],
    ],
    ids=["nearly constant", "ties", "huge", "no noise", "constant", "two rows"],
)
@pytest.mark.usefixtures("whole_start")
def test_hard_targets_give_finite_numbers(y: np.ndarray) -> None:
    model = fitted("heteroscedastic", y, n_draws=10, n_chains=1, n_warmup=10)
    assert np.isfinite(model.predict(X[:400], return_std=True)).all()
    assert np.isfinite(model.predict_interval(X[:400])).all()
    assert (model.predict_noise_std(X[:400]) > 0.0).all()


@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
@pytest.mark.parametrize("seed", few_first([4, 5], 5))
@pytest.mark.usefixtures("whole_start")
def test_rows_of_all_but_no_noise(seed: int) -> None:
    """Weights of 1e9 beside 1: a ridge above the rounding of products of n rows is too low."""
    rows = table(1500, 0)[0]
    model = BaNKRegressor(
        noise="heteroscedastic", n_frequencies=64, n_draws=10, n_chains=1, n_warmup=10,
        random_state=seed, progress=False,
    ).fit(rows, np.round(np.sin(rows[:, 0])))  # fmt: skip
    assert np.isfinite(model.predict(rows)).all()


@pytest.mark.filterwarnings("ignore::mercer.errors.MercerWarning")
def test_constant_inputs_say_nothing_of_the_noise() -> None:
    model = tiny(noise="heteroscedastic").fit(np.ones((60, 2)), Y[:60])
    np.testing.assert_allclose(model.predict_noise_std(np.ones((3, 2))), model.noise_std_)


def test_of_other_laws_the_noise_is_the_same_everywhere() -> None:
    for noise in ("normal", "student_t", "contaminated"):
        model = tiny(noise=noise).fit(X[:60], Y[:60])
        np.testing.assert_allclose(model.predict_noise_std(Z[:3]), model.noise_std_)
    counts = tiny(noise="negative_binomial").fit(X[:60], np.round(np.abs(Y[:60])))
    with pytest.raises(UsageError, match="counts have no noise"):
        counts.predict_noise_std(Z[:3])


def test_rows_to_ask_for_are_not_those_whose_targets_are_noise() -> None:
    """Half log2(1 + v / s^2) bits; where the noise is even the order is that of v."""
    rng = np.random.default_rng(0)
    rows, pool = rng.uniform(-2.0, 2.0, (150, 1)), np.linspace(-2.0, 2.0, 101)[:, np.newaxis]
    std = 0.02 + 1.5 * (rows[:, 0] > 0.0)
    y = 30.0 * (np.sin(2.0 * rows[:, 0]) + std * rng.standard_normal(150))
    settings = {"n_frequencies": 12, "n_warmup": 20, "n_chains": 2}
    model = tiny(noise="heteroscedastic", **settings).fit(rows, y)
    assert (model.predict_noise_std(pool[model.query(pool, 5)]) < 3.0).sum() >= 4
    Z = model._standardized(pool)
    stds, v = model._functions.noise_stds(Z) * model.target_scale_, model._drawn(Z)[:, 0].var(0)
    bits = 0.5 * np.log2(1.0 + v / np.square(stds).T).mean(axis=0)
    np.testing.assert_allclose(0.5 * np.log2(1.0 + model._information(Z)), bits, rtol=1e-9)
    even = tiny(noise="student_t", **settings).fit(rows, y)
    np.testing.assert_array_equal(even._information(Z), even._drawn(Z)[:, 0].var(axis=0))


def test_predictions_of_the_noise_hold_few_rows_at_a_time(
    model: BaNKRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, sizes, whole = model.predict_noise_std(Z[:9]), [], FunctionDraws.noise_stds
    monkeypatch.setattr(type(model), "_rows_at_once", 4)
    monkeypatch.setattr(
        FunctionDraws, "noise_stds", lambda self, X: (sizes.append(len(X)), whole(self, X))[1]
    )
    np.testing.assert_allclose(model.predict_noise_std(Z[:9]), wanted, rtol=1e-12)
    assert sizes == [4, 4, 1]


def test_reports_say_how_far_the_noise_varies(model: BaNKRegressor, tmp_path: Path) -> None:
    model.report(tmp_path / "r.html")
    assert "it depends on the inputs, and is larger or smaller" in (tmp_path / "r.html").read_text()


def test_of_more_rows_than_learn_the_kernel_notes_say_so() -> None:
    model = tiny(noise="heteroscedastic", kernel_rows=150).fit(X, Y)
    assert any("all was learned from 150 of 700 rows" in note for note in model.notes_)
