"""One run over noise levels: shapes, seeds, what it can say. Its exactness: KGS-7, KGS-13."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere.ladder import Ladder, measure_errors
from support.sphere_cases import noisy_rows

L = noisy_rows(25, 4, 0.1)
SHORT = Ladder(10, 30)


def test_a_law_of_errors() -> None:
    law = measure_errors(np.random.default_rng(1), L, SHORT)
    assert law.log_prior.shape == (26,)
    assert np.exp(law.log_prior).sum() == pytest.approx(1.0)
    assert law.is_connected
    # Far from labels that say nothing, as many errors as not.
    mean = np.exp(law.log_prior) @ np.arange(26.0)
    assert mean == pytest.approx(12.5, abs=4.0)
    value, error = law.log_evidence(fixed_rate(0.1, 25))
    assert -25.0 * np.log(2.0) < value < 0.0
    assert 0.0 < error < 1.0


def test_the_seed_decides() -> None:
    one, two, three = (measure_errors(np.random.default_rng(s), L, SHORT) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.log_prior, two.log_prior)
    assert (one.log_prior != three.log_prior).any()


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 4), (40, 1), (3, 30)])
def test_any_shape(shape: tuple[int, int]) -> None:
    law = measure_errors(np.random.default_rng(3), noisy_rows(*shape), SHORT)
    assert np.isfinite(law.log_evidence(fixed_rate(0.2, shape[0]))).all()


def test_rows_that_are_zero_are_always_wrong() -> None:
    rows = np.vstack([L, np.zeros((3, 4))])
    law = measure_errors(np.random.default_rng(4), rows, SHORT)
    assert law.support.min() >= 3
    value, _ = law.log_evidence(fixed_rate(0.2, 28))
    expected, error = measure_errors(np.random.default_rng(5), L, Ladder(20, 300)).log_evidence(
        fixed_rate(0.2, 25)
    )
    assert value == pytest.approx(expected + 3.0 * np.log(0.2), abs=1.0 + 5.0 * error)
