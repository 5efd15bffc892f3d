from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import trapezoid

from mercer import BaNKRegressor
from mercer.posterior.draws import Draws
from mercer.spectral.base_measure import DiagonalBase
from mercer.spectral.mixture import Mixture
from mercer.spectral.model import feature_kernel
from mercer.spectral.prediction import Spectrum, common_period, drawn_periods, period_words

S, M = 12, 30
UNIT = 40.0


def spectrum(d: int, units: np.ndarray, n_draws: int = S) -> Spectrum:
    """Draws of the prior, with frequencies around 2 in half of them."""
    rng = np.random.default_rng(14)
    base = DiagonalBase(np.full(d, 0.5), 0.2, 3.0)
    Z = rng.integers(0, 2, (1, n_draws, M))
    W = 0.4 * rng.standard_normal((1, n_draws, M, d)) + 2.0 * Z[..., np.newaxis]
    variables = {
        "frequencies": W,
        "assignment": Z,
        "base_scale": np.full((1, n_draws, d), 0.5),
        "concentration": np.full((1, n_draws), 1.3),
        "log_evidence": rng.standard_normal((1, n_draws)),
    }
    return Spectrum(Draws(variables, {}, {}, ()), Mixture(base), units)


@pytest.mark.parametrize("unit", [1.0, UNIT])
def test_the_density_of_one_input_integrates_to_1(unit: float) -> None:
    """In radians per unit of the input."""
    own, w = spectrum(1, np.array([unit])), np.tan(np.linspace(-1.57079, 1.57079, 20_001)) / unit
    assert trapezoid(own.density(w[:, None])[0], w) == pytest.approx(1.0, abs=1e-5)
    assert trapezoid(own.marginal_density(w, 0)[0], w) == pytest.approx(1.0, abs=1e-5)


def test_one_input_is_its_own_margin() -> None:
    own, w = spectrum(1, np.array([UNIT])), np.linspace(-0.2, 0.2, 21)
    for joint, margin in zip(own.density(w[:, None]), own.marginal_density(w, 0), strict=True):
        np.testing.assert_allclose(joint, margin, rtol=1e-10)


def test_the_margin_is_the_integral_over_the_other_input() -> None:
    own = spectrum(2, np.array([UNIT, 0.1]))
    w = np.tan(np.linspace(-1.5707, 1.5707, 6001)) / 0.1
    points = np.column_stack([np.full(len(w), 0.05), w])
    found = trapezoid(own.density(points)[0], w)
    assert found == pytest.approx(own.marginal_density(np.array([0.05]), 0)[0][0], rel=1e-3)


def test_units() -> None:
    """Lags and frequencies of another unit; densities are per unit."""
    units = np.array([UNIT, 0.1])
    plain, own = spectrum(2, np.ones(2)), spectrum(2, units)
    points = np.random.default_rng(1).standard_normal((9, 2))
    for seen, expected in zip(own.kernel(points * units), plain.kernel(points), strict=True):
        np.testing.assert_allclose(seen, expected, rtol=1e-12)
    for seen, expected in zip(own.density(points / units), plain.density(points), strict=True):
        np.testing.assert_allclose(seen, expected * units.prod(), rtol=1e-12)
    pairs = own.marginal_density(points[:, 0] / UNIT, 0), plain.marginal_density(points[:, 0], 0)
    for seen, expected in zip(*pairs, strict=True):
        np.testing.assert_allclose(seen, expected * UNIT, rtol=1e-12)


def test_kernel_and_its_band() -> None:
    own = spectrum(2, np.ones(2))
    lags = np.vstack([np.zeros((1, 2)), np.random.default_rng(1).standard_normal((20, 2))])
    mean, lower, upper = own.kernel(lags)
    np.testing.assert_array_equal([mean[0], lower[0], upper[0]], 1.0)
    assert ((lower <= mean) & (mean <= upper)).all()
    W = own.draws.flat("frequencies")
    expected = np.mean([feature_kernel(each, lags) for each in W], axis=0)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    assert (np.abs(mean) <= 1.0).all()


def test_densities_are_those_of_both_signs() -> None:
    own, points = spectrum(2, np.ones(2)), np.random.default_rng(1).standard_normal((20, 2))
    for here, there in zip(own.density(points), own.density(-points), strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-12)
    mean, lower, upper = own.density(points)
    assert ((lower > 0.0) & (lower <= upper)).all()
    assert (mean > 0.0).all()


def test_the_same_question_has_the_same_answer() -> None:
    """Components are drawn anew, from the same numbers; also where not all draws are asked."""
    own, points = spectrum(1, np.ones(1), 450), np.linspace(0.0, 4.0, 5)[:, None]
    for first, second in zip(own.density(points), own.density(points), strict=True):
        np.testing.assert_array_equal(first, second)


def test_components() -> None:
    """Of the draw of the highest evidence: shares, in user units, the largest first."""
    units = np.array([UNIT, 0.1])
    own = spectrum(2, units)
    table = own.components(("age", "mass"))
    best = int(np.argmax(own.draws.flat("log_evidence")))
    W, Z = own.draws.flat("frequencies")[best], own.draws.flat("assignment")[best]
    columns = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    shares = {row["component"]: row["share"] for row in columns}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    assert [row["input"] for row in columns] == ["age", "mass"] * len(shares)
    largest = W[np.argmax(np.bincount(Z)) == Z]
    centre = largest.mean(axis=0)
    centre *= np.sign(centre[np.argmax(np.abs(centre))])
    for row, mean, spread, unit in zip(columns, centre, largest.std(axis=0), units, strict=False):
        assert row["frequency"] == pytest.approx(mean / unit)
        assert row["spread"] == pytest.approx(spread / unit)
    of_first = [abs(row["frequency"]) * unit for row, unit in zip(columns, units, strict=False)]
    assert columns[int(np.argmax(of_first))]["frequency"] > 0.0


def test_a_draw_has_the_period_that_holds_most_of_the_power_around_it() -> None:
    """That of three waves near 2 pi; slow waves have none, nor has power that is spread."""
    w = (
        2.0
        * np.pi
        * np.array([[0.02, 0.98, -1.0, 1.02], [0.1, 0.2, 0.3, 0.1], [0.7, 0.9, 1.1, 1.4]])
    )
    power = np.array([[50.0, 1.0, 2.0, 1.0], np.ones(4), np.ones(4)])
    found = drawn_periods(w, power)
    assert found[0] == pytest.approx(1.0)
    assert np.isnan(found[1:]).all()


def test_the_common_period_is_that_of_most_draws() -> None:
    """Whatever the others have; draws without one count."""
    near = np.array([3.9, 4.0, 4.1, 4.0, 4.0, 4.0])
    period, lower, upper, share = common_period(np.concatenate([near, [1.0, 7.0, np.nan, np.nan]]))
    assert period == 4.0
    assert 3.9 <= lower < 4.0 < upper <= 4.1
    assert share == 0.6
    assert common_period(np.full(3, np.nan))[3] == 0.0


def test_a_series_says_its_period_and_noise_has_none() -> None:
    """24 periods within the rows: the search from slow frequencies alone takes it for noise."""
    rng = np.random.default_rng(3)
    t = np.sort(rng.uniform(0.0, 24.0, 150))
    noise = rng.standard_normal(150)
    model = BaNKRegressor(n_draws=20, n_warmup=20, n_chains=2, random_state=0, progress=False)
    model.fit(t[:, np.newaxis], 0.2 * t + 2.0 * np.sin(2.0 * np.pi * t) + noise)
    ((name, period, lower, upper, probability),) = model.periods().rows
    assert (name, probability > 0.8) == ("x0", True)
    assert 0.98 < lower <= period <= upper < 1.02
    assert period == pytest.approx(1.0, abs=0.01)
    assert model.noise_std_ == pytest.approx(1.0, abs=0.25)
    assert period_words(model)[0].startswith("x0: a period of ")
    model.fit(t[:, np.newaxis], noise)
    assert model.periods().column("probability")[0] < 0.5
    assert period_words(model) == ("no period along any input",)
