"""Exact draws of particles from the posterior: enumeration, then inverted distributions."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.integrate import cumulative_trapezoid

from mercer.basis.filter import Filter
from mercer.basis.model import Particles
from support.basis_cases import masks_of, placed
from support.basis_enumeration import LOG_SCALES, Enumerated, cover, log_likelihood
from support.statistics import FALSE_ALARM

GRID = np.linspace(*LOG_SCALES, 6001)


class ScaleLaw:
    """The law of the variances given a level and a set.

    The noise variance is integrated out over the grid of the scale; given that it is inverse gamma.

    Attributes
    ----------
    cdf : ndarray
        Of the logarithm of the scale, on `GRID`.
    noise_shape : float
    noise_rate : ndarray
        On `GRID`.
    """

    def __init__(self, exact: Enumerated, level: int, mask: int) -> None:
        prior, scales = exact.prior, np.exp(GRID)
        log_det, square = cover(prior, exact.design_of(level, mask), exact.y, scales)
        if prior.is_sampled:
            self.noise_shape = prior.noise_shape + prior.scale_shape + 0.5 * exact.n_rows
            self.noise_rate = prior.noise_rate + prior.scale_rate / scales + 0.5 * square
            log_density = -0.5 * log_det - self.noise_shape * np.log(self.noise_rate)
            log_density -= prior.scale_shape * GRID
        else:
            self.noise_shape, self.noise_rate = 1.0, np.ones(len(GRID))
            log_density = log_likelihood(prior, exact.n_rows, log_det, square, 1.0)
            law = stats.invgamma(prior.scale_shape, scale=prior.scale_rate)
            log_density += law.logpdf(scales) + GRID
        cdf = cumulative_trapezoid(np.exp(log_density - log_density.max()), GRID, initial=0.0)
        self.cdf = cdf / cdf[-1]

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Scales, and noise variances."""
        u = np.interp(rng.random(n), self.cdf, GRID)
        rate = np.interp(u, GRID, self.noise_rate)
        return np.exp(u), rate / rng.gamma(self.noise_shape, size=n)

    def noise_cdf(self, noise: np.ndarray, power: float) -> np.ndarray:
        """Distribution function of noise times scale^power."""
        mass, middle = np.diff(self.cdf), 0.5 * (GRID[1:] + GRID[:-1])
        rate = np.interp(middle, GRID, self.noise_rate)
        common = mass > 1e-9
        limits = np.geomspace(noise.min(), noise.max(), 400)
        at = limits[:, None] / np.exp(power * middle[common])
        values = stats.invgamma.cdf(at / rate[common], self.noise_shape) @ mass[common]
        return np.interp(np.log(noise), np.log(limits), values)


class Starts:
    """Draws of particles from the exact posterior.

    Attributes
    ----------
    cdf : ndarray
        Of the logarithm of the scale over all levels and sets, on `GRID`.
    """

    def __init__(self, filter_: Filter, exact: Enumerated) -> None:
        self.filter, self.exact = filter_, exact
        cells = np.argwhere(exact.probability > 0.0)
        self.laws = {(lv, mask): ScaleLaw(exact, int(lv), int(mask)) for lv, mask in cells}
        self.cdf = sum(exact.probability[cell] * law.cdf for cell, law in self.laws.items())

    def draw(self, rng: np.random.Generator, n: int) -> Particles:
        """Draw n particles, without their factors."""
        counts = rng.multinomial(n, self.exact.probability.ravel())
        n_sets = self.exact.probability.shape[1]
        level, masks = np.divmod(np.repeat(np.arange(len(counts)), counts), n_sets)
        scale, noise = np.empty(n), np.empty(n)
        for (lv, mask), law in self.laws.items():
            own = np.flatnonzero((level == lv) & (masks == mask))
            scale[own], noise[own] = law.draw(rng, len(own))
        return placed(self.filter, masks, level, scale, noise)

    def chi_square(self, particles: Particles, n_tests: int) -> float:
        """Of the counts of levels and sets, rare ones pooled, over its limit."""
        p = self.exact.probability
        which = particles.level * p.shape[1] + masks_of(particles, self.exact.n_mean)
        seen = np.bincount(which, minlength=p.size).astype(float)
        expected = len(which) * p.ravel()
        rare = expected < 20.0
        seen = np.append(seen[~rare], seen[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        seen, expected = seen[expected > 0.0], expected[expected > 0.0]
        value = ((seen - expected) ** 2 / expected).sum()
        return float(value / stats.chi2.isf(FALSE_ALARM / n_tests, len(seen) - 1))
