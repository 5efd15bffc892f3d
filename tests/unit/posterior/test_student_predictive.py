"""The predictive law of particles: against scipy, quadrature, normals and simulation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from mercer.errors import DataError, UsageError
from mercer.posterior.predictive import LawMixture, NormalMixture, StudentMixture
from support.statistics import dkw_distance, dkw_limit


def some_law(
    df: float | np.ndarray = 5.0, m: int = 20, n: int = 6, seed: int = 0
) -> StudentMixture:
    rng = np.random.default_rng(seed)
    locations = 3.0 * rng.normal(size=(m, 1)) + rng.normal(size=(m, n))
    return StudentMixture(
        locations, rng.uniform(0.1, 2.0, size=(m, n)), rng.dirichlet(np.ones(n)), df
    )


@pytest.mark.parametrize("df", [2.5, 3.0, 30.0, 1e3, math.inf])
def test_one_component_is_a_t(df: float) -> None:
    law = StudentMixture(np.array([[3.0], [-2.0]]), np.array([0.5]), np.ones(1), df)
    exact = stats.t(df, [3.0, -2.0], 0.5)
    y = np.array([3.4, -4.0])
    np.testing.assert_array_equal(law.mean, [3.0, -2.0])
    np.testing.assert_allclose(law.std, exact.std(), rtol=1e-13)
    np.testing.assert_allclose(law.log_density(y), exact.logpdf(y), rtol=1e-11)
    np.testing.assert_allclose(law.cdf(y), exact.cdf(y), rtol=1e-12)
    for level in (1e-6, 0.5, 0.9, 1 - 1e-9):
        np.testing.assert_allclose(law.interval(level), exact.interval(level), rtol=1e-7)


@pytest.mark.parametrize("df", [5.0, np.array([4.5, 6.0, 11.0, 40.0, 400.0, np.inf])])
def test_moments_and_distribution_are_integrals_of_the_density(df) -> None:
    law = some_law(df)

    def integral(power: int, i: int, upto: float = np.inf) -> float:
        row = replace(law, locations=law.locations[i : i + 1], scales=law.scales[i : i + 1])
        middle = float(row.mean[0])

        def integrand(x: float) -> float:
            return (x - middle) ** power * math.exp(float(row.log_density([x])[0]))

        parts = [(-np.inf, min(middle, upto)), (middle, upto)]
        return sum(
            integrate.quad(integrand, a, b, epsabs=1e-10, limit=400)[0] for a, b in parts if a < b
        )

    below = law.cdf(law.mean + 0.3)
    for i in range(3):
        assert integral(0, i) == pytest.approx(1.0, abs=1e-8)
        assert integral(1, i) == pytest.approx(0.0, abs=1e-7)
        assert integral(2, i) == pytest.approx(law.std[i] ** 2, rel=1e-6)
        assert integral(0, i, law.mean[i] + 0.3) == pytest.approx(below[i], abs=1e-8)


def test_normals_with_equal_weights_are_the_mixture_of_normals() -> None:
    law = replace(some_law(math.inf), weights=np.full(6, 1.0 / 6.0))
    normal = NormalMixture(law.locations, law.scales)
    y = law.mean + np.linspace(-9.0, 9.0, len(law.mean))
    for df, rtol in ((math.inf, 1e-11), (1e12, 1e-8)):
        near = replace(law, df=df)
        np.testing.assert_allclose(near.mean, normal.mean, rtol=1e-13)
        np.testing.assert_allclose(near.std, normal.std, rtol=rtol)
        np.testing.assert_allclose(near.log_density(y), normal.log_density(y), rtol=rtol)
        np.testing.assert_allclose(near.cdf(y), normal.cdf(y), rtol=rtol)
        for level in (0.1, 0.9, 0.9999):
            ends = np.array(near.interval(level)) - np.array(normal.interval(level))
            assert (np.abs(ends) < 1e-8 * normal.std).all()


@pytest.mark.parametrize("df", [3.0, 250.0])
def test_units_and_offsets_only_shift_and_scale(df: float) -> None:
    law = some_law(df)
    ends = np.array(law.interval(0.9))
    moved = replace(law, locations=1e8 + 1e-3 * law.locations, scales=1e-3 * law.scales)
    # 1e8 keeps 8 digits after the point.
    np.testing.assert_allclose((np.array(moved.interval(0.9)) - 1e8) / 1e-3, ends, atol=1e-4)
    np.testing.assert_allclose(moved.std, 1e-3 * law.std, rtol=1e-4)
    y = law.mean + 1.0
    logs = law.log_density(y)
    np.testing.assert_allclose(moved.log_density(1e8 + 1e-3 * y), logs - math.log(1e-3), atol=1e-4)
    for unit in (1e-280, 1e-100, 1e100, 1e280):
        other = replace(law, locations=unit * law.locations, scales=unit * law.scales)
        np.testing.assert_allclose(other.std, unit * law.std)
        np.testing.assert_allclose(other.interval(0.9), unit * ends, rtol=1e-7)
        np.testing.assert_allclose(other.log_density(unit * y), logs - math.log(unit))


def test_scales_of_all_sizes_in_one_row() -> None:
    """Half of the weight on 1e-100, half on 1e100: quantiles of the wide half, or the middle."""
    law = StudentMixture(np.zeros((1, 2)), np.array([1e-100, 1e100]), np.array([0.5, 0.5]), 3.0)
    lower, upper = law.interval(0.75)
    np.testing.assert_allclose(upper, 1e100 * stats.t.ppf(0.75, 3), rtol=1e-7)
    np.testing.assert_allclose(lower, -upper, rtol=1e-12)
    lower, upper = law.interval(0.25)
    assert (np.abs([lower, upper]) < 1e-8 * 1e100).all()
    np.testing.assert_allclose(law.log_density([1e99]), stats.t.logpdf(0.1, 3) - math.log(2e100))


@pytest.mark.parametrize("df", [2.0 + 5e-16, 2.1, 3.0, 99.0, 1e5, 1e308, math.inf])
def test_every_answer_is_finite(df: float) -> None:
    rng = np.random.default_rng(1)
    m, n = 40, 5
    locations = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-300, 299, size=(m, n))
    scales = 10.0 ** rng.uniform(-300, 300, size=(m, n))
    weights = np.array([1e-300, 1e-17, 0.0, 0.3, 0.7])
    law = StudentMixture(locations, scales, weights, df)
    assert np.isfinite(law.mean).all()
    assert (np.isfinite(law.std) & (law.std > 0)).all()
    assert np.isfinite(law.log_density(law.mean)).all()
    assert np.isfinite(law.cdf(law.mean)).all()
    assert np.isfinite(law.sample(rng, 50)).all()
    for level in (1e-300, 1e-9, 0.5, 0.99, 1.0 - 2e-16):
        lower, upper = law.interval(level)
        assert np.isfinite([lower, upper]).all()
        assert (upper - lower >= -1e-8 * law.std).all()


def test_components_without_weight_do_not_count() -> None:
    df = np.array([3.0, 5.0, 7.0, 9.0, 11.0, np.inf])
    law = some_law(df)
    weights = np.array([0.5, 0.0, 0.25, 0.0, 0.0, 0.25])
    kept = weights > 0
    whole = replace(law, weights=weights)
    part = StudentMixture(law.locations[:, kept], law.scales[:, kept], weights[kept], df[kept])
    y = law.mean
    for a, b in (
        (whole.mean, part.mean), (whole.std, part.std), (whole.cdf(y), part.cdf(y)),
        (whole.log_density(y), part.log_density(y)), (whole.interval(0.8), part.interval(0.8)),
    ):  # fmt: skip
        np.testing.assert_array_equal(a, b)
    drawn = whole.sample(np.random.default_rng(0), 1000)
    assert drawn.shape == (1000, 20)


def test_a_row_alone_has_the_same_law_bit_for_bit() -> None:
    for df in (3.0, 150.0):
        law = replace(some_law(df, n=50), locations=np.asfortranarray(some_law(df, n=50).locations))
        y = law.mean + 0.1
        whole = [law.mean, law.std, law.log_density(y), law.cdf(y), *law.interval(0.9)]
        for i in (0, 7):
            row = replace(law, locations=law.locations[[i]], scales=law.scales[[i]])
            parts = [row.mean, row.std, row.log_density(y[[i]]), row.cdf(y[[i]])]
            parts += row.interval(0.9)
            for a, b in zip(whole, parts, strict=True):
                assert a[i] == b[0]


def test_a_centre_is_what_is_reported() -> None:
    law = some_law()
    moved = replace(law, centre=law.mean + 1.0)
    np.testing.assert_array_equal(moved.mean, law.mean + 1.0)
    np.testing.assert_array_equal(moved.std, law.std)
    np.testing.assert_array_equal(moved.interval(0.9), law.interval(0.9))


def test_samples_have_the_law_and_share_their_component() -> None:
    """False alarm 1e-6 over both rows; the mutants, normal noise and equal weights, must fail."""
    law = StudentMixture(
        np.array([[-1.0, 2.0], [5.0, 0.0]]), np.array([0.5, 1.5]), np.array([0.2, 0.8]),
        np.array([6.0, 2.2]),
    )  # fmt: skip
    n = 40_000
    draws = law.sample(np.random.default_rng(5), n)
    assert draws.shape == (n, 2)
    mutants = [
        replace(law, df=np.inf).sample(np.random.default_rng(5), n),
        replace(law, weights=np.full(2, 0.5)).sample(np.random.default_rng(5), n),
    ]
    limit = dkw_limit(n, 2)
    for i in range(2):
        row = replace(law, locations=np.tile(law.locations[i], (n, 1)))
        assert dkw_distance(draws[:, i], row.cdf) < limit
        for mutant in mutants:
            assert dkw_distance(mutant[:, i], row.cdf) > limit
    chosen = np.zeros(n, dtype=int)
    shared = np.abs(law.sample(np.random.default_rng(6), n, chosen) - law.locations[:, 0])
    # The variance is shared too; where it is not, as in the mutant, the correlation is 0 +- 0.005.
    assert stats.spearmanr(shared).statistic > 0.05
    mutant = np.random.default_rng(7).permutation(shared[:, 1])
    assert abs(stats.spearmanr(shared[:, 0], mutant).statistic) < 0.05
    assert np.median(shared[:, 0]) == pytest.approx(0.5 * stats.t.ppf(0.75, 6.0), rel=0.05)


@pytest.mark.parametrize("df", [0.5, 1.0, 2.0])
def test_without_a_variance_there_are_quantiles(df: float) -> None:
    law = StudentMixture(np.array([[3.0], [-2.0]]), np.array([0.5]), np.ones(1), df)
    lower, upper = law.interval(0.9)
    np.testing.assert_allclose(upper, stats.t.ppf(0.95, df, [3.0, -2.0], 0.5), rtol=1e-6)
    np.testing.assert_allclose(lower, stats.t.ppf(0.05, df, [3.0, -2.0], 0.5), rtol=1e-6)
    assert (law.std == np.inf).all()
    two = StudentMixture(np.array([[3.0, -2.0]]), np.array([0.5, 2.0]), np.array([0.3, 0.7]), df)
    for side, p in zip(two.interval(0.8), (0.1, 0.9), strict=True):
        np.testing.assert_allclose(two.cdf(side), p, rtol=1e-6)


def test_what_is_no_law_is_refused() -> None:
    one, w = np.ones((2, 3)), np.full(3, 1.0 / 3.0)
    for locations, scales in (
        (np.ones(3), np.ones(3)), (one, np.ones(2)), (one, np.zeros(3)), (one * np.nan, np.ones(3)),
        (one * 1e301, np.ones(3)), (one, np.full(3, 1e301)),
    ):  # fmt: skip
        with pytest.raises(DataError):
            StudentMixture(locations, scales, w, 5.0)
    for weights in (np.ones(2), np.ones(3), np.array([1.5, -0.5, 0.0]), w * np.nan, w + 1e-7):
        with pytest.raises(DataError, match="weights"):
            StudentMixture(one, np.ones(3), weights, 5.0)
    StudentMixture(one, np.ones(3), w + 1e-9, 5.0)
    for df in (0.0, -1.0, math.nan, np.array([3.0, 3.0, 0.0]), np.full(2, 3.0)):
        with pytest.raises(DataError, match="df"):
            StudentMixture(one, np.ones(3), w, df)
    law = StudentMixture(one, np.ones(3), w, 5.0)
    for y in ([1.0], [1.0, math.nan]):
        with pytest.raises(DataError, match="one finite value"):
            law.cdf(y)
    for level in (0.0, 1.0, math.nan, 90):
        with pytest.raises(UsageError, match="level"):
            law.interval(level)


def some_kinds() -> StudentMixture:
    """Two functions at two rows, with noise of two kinds."""
    return StudentMixture.of_functions(
        np.array([[-1.0, 2.0], [5.0, 0.0]]), np.array([[0.2, 0.1], [0.0, 0.3]]),
        np.array([[0.1, 4.0], [0.2, 9.0]]), np.array([[0.9, 0.1], [0.6, 0.4]]),
        np.array([0.3, 0.7]),
    )  # fmt: skip


def test_functions_with_kinds_of_noise_have_the_law_of_the_sum() -> None:
    law, y = some_kinds(), np.array([0.4, 4.0])
    means, variances = np.array([[-1.0, 2.0], [5.0, 0.0]]), np.array([[0.2, 0.1], [0.0, 0.3]])
    density = np.zeros(2)
    for f, w in enumerate((0.3, 0.7)):
        kinds = [((0.1, 4.0), (0.9, 0.1)), ((0.2, 9.0), (0.6, 0.4))][f]
        for noise, share in zip(*kinds, strict=True):
            each = stats.norm(means[:, f], np.sqrt(variances[:, f] + noise))
            density += w * share * each.pdf(y)
    np.testing.assert_allclose(law.log_density(y), np.log(density), rtol=1e-12)
    moved = law.in_units(2.0, 3.0)
    np.testing.assert_allclose(moved.cdf(2.0 * y + 3.0), law.cdf(y), rtol=1e-12)
    with pytest.raises(DataError, match="multiple of 3 kinds"):
        replace(law, n_kinds=3)


def test_rows_of_a_draw_share_the_function_and_not_the_kind_of_noise() -> None:
    """False alarm 1e-6 over both rows; the mutant, kinds that rows share, must fail."""
    law, n = some_kinds(), 40_000
    draws = law.sample(np.random.default_rng(5), n)
    for i in range(2):
        row = replace(law, locations=np.tile(law.locations[i], (n, 1)), scales=law.scales[i])
        assert dkw_distance(draws[:, i], row.cdf) < dkw_limit(n, 2)
    assert np.corrcoef(draws.T)[0, 1] < -0.2  # the first function is low here and high there

    def together(given: StudentMixture, chosen: np.ndarray) -> float:
        drawn = given.sample(np.random.default_rng(6), n, chosen)
        return float(stats.spearmanr(np.abs(drawn - law.locations[:, 2])).statistic)

    assert abs(together(law, np.ones(n, int))) < 0.025  # five standard deviations
    mutant, kind = replace(law, n_kinds=1), np.random.default_rng(7).random(n) < 0.4
    assert together(mutant, 2 + kind) > 0.2


def test_draws_of_several_laws_are_each_of_one() -> None:
    """Rows of a member's draw have kinds of noise of their own in the mixture, too."""
    n, law = 40_000, some_kinds()
    other = NormalMixture(np.array([[20.0], [20.0]]), np.array([1.0]))
    both = LawMixture([law, other], np.array([0.4, 0.6]))
    drawn = both.sample(np.random.default_rng(8), n)
    is_other = (drawn > 12.0).all(axis=1)
    assert is_other.mean() == pytest.approx(0.6, abs=0.0125)
    for i in range(2):
        row = replace(law, locations=np.tile(law.locations[i], (n, 1)), scales=law.scales[i])
        found = drawn[~is_other, i]
        part = replace(row, locations=row.locations[: len(found)])
        assert dkw_distance(found, part.cdf) < dkw_limit(len(found), 2)
    apart = both.sample(np.random.default_rng(9), 5, np.array([0, 1, 0, 1, 1]))
    np.testing.assert_array_equal((apart > 12.0).all(axis=1), [False, True, False, True, True])
