"""Weights at the edge of what numbers hold, effective sizes, refusals. Laws: SMC-6."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mercer.errors import NumericalError, UsageError
from mercer.posterior.diagnostics import effective_sample_size
from mercer.sampling import resampling
from mercer.sampling.resampling import SCHEMES, resample


class Constant:
    """A generator whose uniform numbers are all the same."""

    def __init__(self, u: float) -> None:
        self.u = u

    def random(self, n: int | None = None) -> float | np.ndarray:
        return self.u if n is None else np.full(n, self.u)


LAST = math.nextafter(1.0, 0.0)


@pytest.mark.parametrize("scheme", ["systematic", "stratified"])
@pytest.mark.parametrize("u", [0.0, 0.3, LAST])
def test_ends_of_the_unit_interval(scheme: str, u: float) -> None:
    """N - u may be rounded to N - 1, and no particle without weight takes what is missing."""
    for n in (1, 2, 7, 1000):
        for zeros in range(min(n, 3)):
            weights = np.r_[np.full(n - zeros, 1.0 / (n - zeros)), np.zeros(zeros)]
            for W in (weights, weights[::-1]):
                ancestors = resample(Constant(u), W, scheme)
                assert len(ancestors) == n
                assert (W[ancestors] > 0).all()


@pytest.mark.parametrize("scheme", list(SCHEMES))
def test_ancestors_are_ascending_positions_and_weights_are_left_alone(scheme: str) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(50))
    before = weights.copy()
    ancestors = resample(np.random.default_rng(1), weights, scheme)
    assert ancestors.dtype == np.int64
    assert ancestors.shape == (50,)
    assert (np.diff(ancestors) >= 0).all()
    np.testing.assert_array_equal(weights, before)
    again = resample(np.random.default_rng(1), weights.tolist(), scheme)
    np.testing.assert_array_equal(ancestors, again)


def test_systematic_keeps_everybody_where_weights_are_equal() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 3, 10, 250, 999):
        for _ in range(20):
            counts = np.bincount(resample(rng, np.full(n, 1.0 / n), "systematic"), minlength=n)
            np.testing.assert_array_equal(counts, 1)


def test_what_are_no_weights_is_refused() -> None:
    rng = np.random.default_rng(0)
    for weights in (
        [], [0.0, 0.0], [0.5, 0.6], [1.5, -0.5], [math.nan, 1.0], [math.inf, 0.0], [[0.5, 0.5]],
        [0.5, 0.5 + 2e-8],
    ):  # fmt: skip
        with pytest.raises(NumericalError, match="weights"):
            resample(rng, weights, "systematic")
    with pytest.raises(UsageError, match="systematic, stratified, multinomial, and is 'residual'"):
        resample(rng, [1.0], "residual")


def test_effective_sample_size() -> None:
    assert effective_sample_size(np.full(7, -1e5)) == 7.0
    assert effective_sample_size([800.0, -np.inf, 0.0]) == 1.0
    assert effective_sample_size([0.0]) == 1.0
    W = np.random.default_rng(0).dirichlet(np.ones(9))
    for shift in (-1e4, 0.0, 1e4):
        assert effective_sample_size(np.log(W) + shift) == pytest.approx(1.0 / np.sum(W**2))
    for bad in ([], [-np.inf, -np.inf], [0.0, np.nan], [np.inf, 0.0]):
        with pytest.raises(NumericalError, match="log weights"):
            effective_sample_size(bad)


def test_a_million_particles() -> None:
    """No loop over particles, and rounding of the sums moves no count by more than one."""
    n = 1_000_000
    weights = np.random.default_rng(0).dirichlet(np.ones(n))
    for scheme in resampling.SCHEMES:
        counts = np.bincount(resample(np.random.default_rng(1), weights, scheme), minlength=n)
        assert counts.sum() == n
        if scheme == "systematic":
            assert (np.abs(counts - n * weights) < 1.0 + 1e-6).all()
