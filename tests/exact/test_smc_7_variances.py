"""SMC-7: drawing the variances, the coefficients drawn and dropped, leaves their law as it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mercer.basis.loops import move_particles
from mercer.basis.model import Prior
from mercer.basis.population_loops import discount
from support.basis_cases import make_filter, placed, plain_design, plain_statistics, problem
from support.basis_enumeration import Enumerated
from support.basis_starts import GRID, ScaleLaw
from support.statistics import dkw_distance, dkw_limit

N = 50_000
CASES = [
    ("integrated", False, 0b0000),
    ("integrated", False, 0b1011),
    ("integrated", True, 0b0110),
    ("sampled", False, 0b0000),
    ("sampled", False, 0b1011),
    ("sampled", True, 0b0110),
]
LIMIT = dkw_limit(N, 3 * len(CASES))  # 0.0132


def distances(
    variances: str,
    has_linear_part: bool,
    mask: int,
    wrong: Callable[[Prior], Prior] = lambda prior: prior,
) -> list[float]:
    """Of the scale; where sampled also of the noise variance and of that of the coefficients."""
    filter_ = make_filter(
        variances=variances, has_linear_part=has_linear_part, lengthscales=(0.8,), largest=4
    )
    X, y = problem(6)
    design = plain_design(filter_, X)
    law = ScaleLaw(Enumerated(filter_, design, y, 4, 4), 0, mask)
    rng = np.random.default_rng(7)
    particles = placed(filter_, np.full(N, mask), np.zeros(N), *law.draw(rng, N))
    statistics, log_size = plain_statistics(design, y), filter_.sets.log_size(len(X))
    discount(statistics, filter_.prior, log_size, particles)
    old = particles.scale.copy()
    move_particles(
        rng, statistics, wrong(filter_.prior), log_size, filter_.grid.n_widths, particles, 1.0,
        0, 0, filter_.grid.log_prior_after(0),
    )  # fmt: skip
    assert np.mean(particles.scale != old) > 0.999
    assert np.all(particles.size == mask.bit_count())
    found = [dkw_distance(np.log(particles.scale), lambda u: np.interp(u, GRID, law.cdf))]
    if filter_.prior.is_sampled:
        noise, coefficients = particles.noise, particles.noise * particles.scale
        found.append(dkw_distance(noise, lambda x: law.noise_cdf(x, 0.0)))
        found.append(dkw_distance(coefficients, lambda x: law.noise_cdf(x, 1.0)))
    return found


@pytest.mark.parametrize(("variances", "has_linear_part", "mask"), CASES)
def test_smc_7(variances: str, has_linear_part: bool, mask: int) -> None:
    """One draw from exact draws. False alarm 1e-6 over all cases; detects 0.026."""
    assert max(distances(variances, has_linear_part, mask)) < LIMIT


def count_the_mean(prior: Prior) -> Prior:
    """Coefficients of the mean counted once more as those of centres, but for their squares."""
    return prior._replace(scale_shape=prior.scale_shape + 0.5 * prior.n_mean)


def noise_of_the_prior(prior: Prior) -> Prior:
    """The noise variance is drawn as if its prior's rate were six times what it is."""
    return prior._replace(noise_rate=6.0 * prior.noise_rate)


@pytest.mark.parametrize("mutant", [count_the_mean, noise_of_the_prior])
@pytest.mark.parametrize("case", [CASES[1], CASES[4]])
def test_smc_7_sees(mutant: Callable[[Prior], Prior], case: tuple[str, bool, int]) -> None:
    assert max(distances(*case, mutant)) > 1.2 * LIMIT
