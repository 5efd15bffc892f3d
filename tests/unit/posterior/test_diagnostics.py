"""R-hat, effective sizes and BFMI: against ArviZ, and in the corners."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from mercer.cli.terminal import diagnosed
from mercer.posterior.diagnostics import RHAT_CEILING, diagnose
from mercer.posterior.draws import Draws

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # the notice of ArviZ 0.23
    arviz = pytest.importorskip("arviz")


def one(x: np.ndarray, **stats: np.ndarray) -> Draws:
    return Draws({"x": x}, stats, {}, ("x",))


def autoregression(rng: np.random.Generator, shape: tuple[int, int], rho: float) -> np.ndarray:
    x = rng.normal(size=shape)
    for t in range(1, shape[1]):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * x[:, t]
    return x


def test_agrees_with_arviz() -> None:
    rng = np.random.default_rng(3)
    shape = (4, 250)
    variables = {
        "slow": autoregression(rng, shape, 0.9),
        "shifted": rng.normal(size=shape) + np.array([[0.0], [0.0], [0.0], [0.5]]),
        "heavy": rng.standard_cauchy(size=shape),
        "vector": rng.gamma(2.0, size=(*shape, 2)),
        "count": rng.poisson(3.0, size=shape),
        "small": 1e-2 * rng.normal(size=shape) + 1.0,
    }
    draws = Draws(variables, {"energy": rng.normal(size=shape)}, {}, tuple(variables))
    found = diagnose(draws)
    theirs = draws.to_arviz()
    for name in variables:
        rows = [row for row in found.table.rows if str(row[0]).split("[")[0] == name]
        ours = np.array([row[3:7] for row in rows], dtype=float).T
        expected = [
            np.ravel(arviz.mcse(theirs, var_names=[name], method="mean")[name]),
            np.ravel(arviz.ess(theirs, var_names=[name], method="bulk")[name]),
            np.ravel(arviz.ess(theirs, var_names=[name], method="tail", prob=(0.05, 0.95))[name]),
            np.ravel(arviz.rhat(theirs, var_names=[name])[name]),
        ]
        np.testing.assert_allclose(ours, expected, rtol=1e-9, err_msg=name)
    bfmi = arviz.bfmi(theirs)
    bfmi = bfmi if isinstance(bfmi, np.ndarray) else bfmi["energy"]  # from ArviZ 1 on
    np.testing.assert_allclose(found.bfmi, np.ravel(bfmi), rtol=1e-10)


def test_constant_quantity_has_rhat_one_and_is_listed() -> None:
    found = diagnose(one(np.full((4, 100), 0.1)))
    assert found.table.rows == (("x", 0.1, 0.0, 0.0, 400.0, 400.0, 1.0, 1.01),)
    assert found.warnings == ()
    assert found.is_converged


def test_a_draw_or_two_do_not_say_that_a_quantity_is_constant() -> None:
    for shape in ((4, 1), (4, 3), (1, 3)):
        (text,) = diagnose(one(np.full(shape, 0.1))).warnings
        assert text.startswith("too short to judge")


def test_stuck_chains_are_reported_and_finite() -> None:
    found = diagnose(one(np.repeat(np.arange(4.0)[:, None], 200, axis=1)))
    assert found.max_rhat == RHAT_CEILING
    assert found.min_ess is not None
    assert found.min_ess < 10
    assert not found.is_converged


def test_balanced_binary_quantity() -> None:
    rng = np.random.default_rng(4)
    found = diagnose(one(rng.permuted(np.tile([0.0, 1.0], (4, 200)), axis=1)))
    assert found.max_rhat is not None
    assert found.max_rhat < 1.02


def test_tiny_and_huge_scales_agree() -> None:
    x = np.random.default_rng(5).normal(size=(4, 150))
    base = diagnose(one(x)).table.rows[0]
    for scale in (2.0**-900, 2.0**990):
        row = diagnose(one(x * scale)).table.rows[0]
        np.testing.assert_allclose(np.array(row[1:4], float) / scale, base[1:4], rtol=1e-9)
        np.testing.assert_allclose(np.array(row[4:], float), base[4:], rtol=1e-9)


def test_single_chain_is_judged_by_its_halves() -> None:
    x = np.random.default_rng(6).normal(size=(1, 801))
    assert diagnose(one(x)).max_rhat < 1.02  # type: ignore[operator]
    x[:, 400:] += 2.0
    assert diagnose(one(x)).max_rhat > 1.2  # type: ignore[operator]


@pytest.mark.parametrize("n_draws", [1, 2, 3])
def test_few_draws_give_none(n_draws: int) -> None:
    x = np.random.default_rng(7).normal(size=(2, n_draws))
    found = diagnose(one(x, energy=x))
    assert found.table.rows[0][3:] == (None,) * 5
    assert (found.max_rhat, found.min_ess, found.bfmi) == (None, None, ())
    assert found.warnings[0].startswith("too short to judge")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_named(bad: float) -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=(4, 200, 2))
    x[2, 5, 1] = bad
    found = diagnose(one(x))
    assert found.table.rows[1] == ("x[1]", *(None,) * 7)
    assert found.table.rows[0][1] is not None
    assert found.warnings[0].startswith("draws of x[1] are not finite:")
    json.dumps(found.to_dict(), allow_nan=False)


def test_reports_of_the_sampler() -> None:
    rng = np.random.default_rng(9)
    x = rng.normal(size=(2, 300))
    divergent = np.zeros((2, 300), dtype=bool)
    divergent[1, :3] = True
    energy = np.stack([rng.normal(size=300), rng.normal(size=300).cumsum()])
    found = diagnose(
        one(x, acceptance_rate=np.full((2, 300), 0.8), is_divergent=divergent, energy=energy)
    )
    assert found.acceptance_rate == pytest.approx(0.8)
    assert found.n_divergent == 3
    assert found.bfmi[0] > 1
    assert found.bfmi[1] < 0.3
    text = str(found)
    assert "acceptance rate  0.8" in text
    assert "divergences      3" in text
    assert text.count("warning: ") == len(found.warnings) == 2


def test_constant_energy_has_bfmi_zero() -> None:
    x = np.random.default_rng(10).normal(size=(1, 10))
    assert diagnose(one(x, energy=np.ones((1, 10)))).bfmi == (0.0,)


def test_nothing_monitored() -> None:
    found = diagnose(Draws({"x": np.zeros((4, 100))}, {}, {}, ()))
    assert found.table.rows == ()
    assert (found.max_rhat, found.min_ess, found.acceptance_rate) == (None, None, None)
    assert str(found).startswith("no monitored quantities")
    page = found._repr_html_()
    assert page.startswith("<table>")
    assert str(found).splitlines()[-1] in page


def test_weighted_draws_use_their_weights() -> None:
    x = np.array([[0.0, 1.0, 2.0, 3.0]])
    draws = Draws({"x": x}, {}, {}, ("x",), log_weights=np.log([[0.5, 0.5, 1e-300, 1e-300]]))
    found = diagnose(draws)
    _, mean, sd, mcse, bulk, tail, rhat, limit = found.table.rows[0]
    assert (mean, sd) == (pytest.approx(0.5), pytest.approx(0.5))
    assert bulk == tail == pytest.approx(2.0)
    assert mcse == pytest.approx(0.5 / np.sqrt(2.0))
    assert rhat is limit is None
    assert found.warnings == ()


def test_to_dict_is_json() -> None:
    found = diagnose(one(np.random.default_rng(11).normal(size=(4, 200))))
    restored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert restored["table"]["columns"][0] == "name"
    assert restored["max_rhat"] == found.max_rhat
    assert restored["is_converged"] is found.is_converged


def test_only_trajectories_diverge() -> None:
    x = np.random.default_rng(11).normal(size=(2, 300))
    found = diagnose(one(x, acceptance_rate=np.full((2, 300), 0.8)))
    assert "diverge" not in str(found)
    assert "diverge" not in str(diagnosed(found))
    found = diagnose(one(x, is_divergent=np.zeros((2, 300), dtype=bool), energy=x))
    assert "divergences      0" in str(found)
    assert "no divergences after warm-up" in str(diagnosed(found))


def test_chains_are_worth_longer_where_that_may_end_a_warning() -> None:
    rng = np.random.default_rng(5)

    def worth(rho: float, apart: float, times: int) -> bool:
        x = autoregression(rng, (4, 100), rho) + apart * np.arange(4.0)[:, np.newaxis]
        return diagnose(one(x)).is_worth_longer(400, times)

    assert not worth(0.0, 0.0, 10**6)  # nothing to end
    assert worth(0.99, 0.0, 10)
    assert not worth(0.99, 0.0, 1)
    assert not worth(0.5, 100.0, 4)  # four places
    broken = rng.standard_normal((4, 100))
    broken[2, 7] = np.nan
    assert not diagnose(one(broken)).is_worth_longer(400, 10**6)
