from __future__ import annotations

import numpy as np
import pytest

from mercer.posterior.draws import Draws
from mercer.spectral.prediction import FunctionDraws, function_draws
from support.spectral_cases import plain_design

RNG = np.random.default_rng(3)
S, M, D, K = 4, 5, 2, 3
X = RNG.standard_normal((6, D))


def functions(has_linear_part: bool) -> FunctionDraws:
    n_coef = 2 * M + (1 + D if has_linear_part else 0)
    return FunctionDraws(
        RNG.standard_normal((S, M, D)),
        RNG.standard_normal((S, n_coef)),
        RNG.standard_normal((S, K, n_coef)),
        RNG.exponential(size=S),
    )


@pytest.mark.parametrize("has_linear_part", [False, True])
def test_locations(has_linear_part: bool) -> None:
    """phi'(mu + e) and phi'(mu - e) of each draw, and the mean of phi'mu."""
    own = functions(has_linear_part)
    assert own.has_linear_part == has_linear_part
    mean, parts = own.locations(X)
    designs = [plain_design(W, X, has_linear_part) for W in own.frequencies]
    centres = [F @ mu for F, mu in zip(designs, own.mean, strict=True)]
    np.testing.assert_allclose(mean, np.mean(centres, axis=0), rtol=1e-12)
    np.testing.assert_allclose(own.expected(X), mean, rtol=1e-12)
    assert parts.shape == (len(X), 2 * K * S)
    for i, (F, mu) in enumerate(zip(designs, own.mean, strict=True)):
        own_parts = parts[:, 2 * K * i : 2 * K * (i + 1)]
        spread = F @ own.deviations[i].T
        expected = np.column_stack([(F @ mu)[:, None] + spread, (F @ mu)[:, None] - spread])
        np.testing.assert_allclose(own_parts, expected, rtol=1e-11, atol=1e-12)
        scales = own.scales[2 * K * i : 2 * K * (i + 1)]
        np.testing.assert_array_equal(scales, own.noise_std[i])


def test_function_draws_come_chain_after_chain() -> None:
    own = functions(True)
    draws = Draws(
        {
            "frequencies": own.frequencies.reshape(2, 2, M, D),
            "coef_mean": own.mean.reshape(2, 2, -1),
            "coef_deviation": own.deviations.reshape(2, 2, K, -1),
            "noise_std": own.noise_std.reshape(2, 2),
        },
        {},
        {},
        (),
    )
    np.testing.assert_array_equal(function_draws(draws).expected(X), own.expected(X))


def test_rows_do_not_depend_on_each_other() -> None:
    own = functions(True)
    one_by_one = np.concatenate([own.expected(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_allclose(one_by_one, own.expected(X), rtol=1e-12)
