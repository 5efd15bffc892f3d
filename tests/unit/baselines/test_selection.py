from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from mercer.baselines.paths import NormalEquations, cross_validate
from mercer.errors import NumericalError

RNG = np.random.default_rng(21)
W = RNG.standard_normal((15, 2))
Z = RNG.standard_normal((80, 2))
Y = np.sin(2.0 * Z[:, 0]) + 0.2 * RNG.standard_normal(80)
FACTORS, PENALTIES = (0.3, 1.0, 4.0), (1e-3, 0.1, 10.0)


def by_hand() -> np.ndarray:
    errors = np.zeros((len(FACTORS), len(PENALTIES)))
    for i, factor in enumerate(FACTORS):
        phase = Z @ (W / factor).T
        F = np.hstack([np.cos(phase), np.sin(phase)]) / np.sqrt(15)
        for k, penalty in enumerate(PENALTIES):
            for train, test in KFold(4, shuffle=True, random_state=7).split(Z):
                model = Ridge(alpha=penalty, solver="svd").fit(F[train], Y[train])
                errors[i, k] += ((model.predict(F[test]) - Y[test]) ** 2).sum() / len(Y)
    return errors


def test_errors_are_those_of_refitting_each_fold() -> None:
    chosen = cross_validate(W, Z, Y, FACTORS, PENALTIES, 4, 7)
    expected = by_hand()
    np.testing.assert_allclose(chosen.errors, expected, rtol=1e-8)
    i, k = np.unravel_index(np.argmin(expected), expected.shape)
    assert (chosen.factor, chosen.penalty) == (FACTORS[i], PENALTIES[k])


def test_sees_a_fold_that_is_not_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: the products of all rows train every fold."""
    monkeypatch.setattr(NormalEquations, "__sub__", lambda self, other: self)
    chosen = cross_validate(W, Z, Y, FACTORS, PENALTIES, 4, 7)
    assert np.abs(chosen.errors / by_hand() - 1.0).max() > 0.1


def test_singular_penalties_are_never_chosen() -> None:
    twice = np.vstack([W] * 2)
    chosen = cross_validate(twice, Z, Y, (1.0,), (1e-300, 0.1), 4, 7)
    assert np.isinf(chosen.errors[0, 0])
    assert chosen.penalty == 0.1
    with pytest.raises(NumericalError, match="larger"):
        cross_validate(twice, Z, Y, (1.0,), (1e-300,), 4, 7)


def test_two_rows_make_two_folds() -> None:
    chosen = cross_validate(W, Z[:2], Y[:2], (1.0,), (1.0,), 5, 0)
    assert chosen.errors[0, 0] == pytest.approx((Y[0] - Y[1]) ** 2)
