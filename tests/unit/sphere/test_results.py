from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mercer import KernelGibbsClassifier
from mercer.posterior.diagnostics import diagnose
from mercer.posterior.draws import Draws
from mercer.sphere.fitting import (
    CURVE_RATES,
    FittedSphere,
    comparison_table,
    evidence_curve,
    mean_rates,
    say_comparison,
)
from mercer.sphere.selection import Candidate, Compared
from mercer.sphere.space import FeatureSpace, FiniteFeatures
from mercer.sphere.tempering import ErrorLaw, Tempering, climb_errors
from support.sphere_cases import noisy_rows


def test_a_common_rate_is_a_number_and_rates_by_class_a_dict() -> None:
    assert mean_rates(np.array([[0.1], [0.3]]), np.array(["a", "b"])) == 0.2
    by_class = mean_rates(np.array([[0.1, 0.0], [0.3, 0.5]]), np.array([7, 9]))
    assert by_class == {7: 0.2, 9: 0.25}
    assert all(type(label) is int for label in by_class)


SPACE = FeatureSpace(FiniteFeatures(None, 1.0, 0.0), np.zeros((4, 1)))
MODELS = [Candidate("rbf", 0.5, 0.1, SPACE), Candidate("linear", None, 0.0, SPACE),
          Candidate("rbf", 2.0, 0.0, SPACE)]  # fmt: skip


def fitted(
    compared: tuple[Compared, ...], models: tuple[Candidate, ...], is_wrong: Any = None
) -> FittedSphere:
    """Eight draws, one of four of them from the second model."""
    model = np.array([[0, 0, 0, 1], [0, 0, 0, 1]]) % len(models)
    more = {} if is_wrong is None else {"is_wrong": is_wrong}
    draws = Draws({"model": model, **more}, {}, {}, ())
    p, left_out = np.array([0.7, 0.24, 0.0])[: len(compared)], 0.06
    return FittedSphere(draws, np.empty((4, 2)), diagnose(draws), (), compared, models, p, left_out)


def compared_with(law: ErrorLaw | None) -> tuple[Compared, ...]:
    return (
        Compared(MODELS[0], -3.0, 0.1, 4, True, law),
        Compared(MODELS[1], -4.0, 0.2, 4, True, None),
        Compared(MODELS[2], -9.0, 0.5, 2, False, None),
    )


def test_the_table_and_the_sentence() -> None:
    one = fitted(compared_with(None), (MODELS[0], MODELS[1]))
    table = comparison_table(one)
    assert table.rows == (
        ("rbf", 0.5, 0.1, -3.0, 0.1, 4, 0.75, 0.7),
        ("linear", None, 0.0, -4.0, 0.2, 4, 0.25, 0.24),
        ("rbf", 2.0, 0.0, -9.0, 0.5, 2, 0.0, 0.0),
    )
    assert say_comparison(one) == (
        "by evidence, of 3 models: rbf lengthscale 0.5 nugget 0.1 (75% of the draws), linear "
        "nugget 0 (25% of the draws); others, with 6% of the probability, give none",
    )
    (said,) = say_comparison(replace(one, models=(MODELS[1], MODELS[0]), left_out=0.0))
    assert said.endswith("nugget 0.1 (25% of the draws)")


def test_models_that_disagree_on_the_share_of_wrong_labels() -> None:
    """A warning names both nuggets; models that agree need none."""
    is_wrong = np.zeros((2, 4, 10), dtype=bool)
    is_wrong[:, :3, :2] = True
    compared, models = compared_with(None), (MODELS[0], MODELS[1])
    assert say_comparison(fitted(compared, models, is_wrong))[1].startswith(
        "overlap and wrong labels are hard to tell apart here: "
        "20% of the labels are wrong with nugget 0.1, 0% with nugget 0;"
    )
    is_wrong[:, 3, :2] = True
    assert len(say_comparison(fitted(compared, models, is_wrong))) == 1


def test_one_model_was_not_compared() -> None:
    one = fitted(compared_with(None)[:1], (MODELS[0],))
    assert say_comparison(one) == ()
    assert len(comparison_table(one).rows) == 1
    assert comparison_table(fitted((), (MODELS[0],))).rows == ()


def test_the_evidence_curve_is_that_of_the_best_model() -> None:
    assert evidence_curve(fitted(compared_with(None), (MODELS[0],))) is None
    assert evidence_curve(fitted((), (MODELS[0],))) is None
    law = climb_errors(np.random.default_rng(1), noisy_rows(8, 2), Tempering(10, 20)).law()
    curve = evidence_curve(fitted(compared_with(law), (MODELS[0],)))
    np.testing.assert_array_equal(curve.noise_rates, CURVE_RATES)
    assert curve.log_evidence[-1] == pytest.approx(-8.0 * np.log(2.0))
    assert curve.noise_rates[0] == 0.001


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_decision_function_decides_as_predict(n_classes: int) -> None:
    """On the true class, also where rates differ so much that the recorded one is another."""
    rng = np.random.default_rng(2)
    X, Z = rng.standard_normal((80, 2)), 1.5 * rng.standard_normal((300, 2))
    y = np.digitize(X[:, 0] + X[:, 1], [0.0, 1.0][: n_classes - 1])
    rates = {0: 0.4} | dict.fromkeys(range(1, n_classes), 0.02)
    model = KernelGibbsClassifier(
        kernel="rbf", lengthscale=1.0, nugget=0.1, noise_rate=rates, n_draws=40, n_warmup=20,
        n_chains=2, random_state=0,
    ).fit(X, y)  # fmt: skip
    values, predicted = model.decision_function(Z), model.predict(Z)
    chosen = values > 0.0 if n_classes == 2 else values.argmax(axis=1)
    np.testing.assert_array_equal(chosen, predicted)
    p = model.clean_proba(Z)
    assert (p.argmax(axis=1) == predicted).mean() > 0.97
    assert (model.predict_proba(Z).argmax(axis=1) != predicted).any()
