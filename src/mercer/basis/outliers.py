"""Outliers among the targets: rows that are set aside, neither learned nor forgotten by.

**Model.** A row is an outlier with probability e. The target of one that is none has the filters'
predictive density p(y | x, rows learned); that of an outlier has a Cauchy density q, a hundred
target scales wide, and says nothing of the function. The share e has a Beta(1/2, 100) law.

**One row**:

1. e = (1/2 + rows set aside) / (100 1/2 + rows met).
2. The row is *surprising* if e q(y) > (1 - e) t(y), where t is p with the tails of a Student's t of
   six degrees of freedom: if it is an outlier with probability above 1/2, though the noise may have
   longer tails than the model's. That is from about ten standard deviations on: what lies nearer is
   learned, since it spoils little if it is an outlier, and tells much if it is none.
3. A surprising row is set aside: sums, particles and random stream stay as they are, so that all
   sums are shared by all particles as before. But not the third in a row, nor the eighth of the
   last fifty rows: so many are a change of the function or of its level, and are learned.
4. It is scored by the mixture, log((1 - e) p(y) + e q(y)), whatever is done with it.

**Approximation.** That a row is an outlier or not is decided once, for all particles and when it
comes, where the posterior would keep both cases with their weights. Without surprising rows nothing
is decided, and what is learned is the posterior to the last bit.

**Cost.** p(y) is at least what a few particles contribute; that settles nearly all rows, and takes
one row of a design at one length scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mercer.basis.arrays import Array, Integers
from mercer.basis.population.compiled import predict_rows
from mercer.basis.predict import noise_variances
from mercer.basis.printed import AnyFilter
from mercer.basis.state import State
from mercer.posterior.student_predictive import Contamination, StudentMixture

__all__ = ["Surprises", "at_least", "contamination", "long_tailed"]

# Beta law of the share of outliers: one in two hundred at first, with the weight of a hundred rows.
_PRIOR = 0.5, 100.0
# Of q, in target scales.
_WIDTH = 100.0
# So many surprising rows are a change: in a row, and among the last ones.
_RUN, _MOST, _LAST = 3, 8, 50
_FEW = 8  # particles
_DEGREES = 6.0  # of freedom, at most: where a target is judged


@dataclass(frozen=True, eq=False)
class Surprises:
    """What was surprising so far.

    Attributes
    ----------
    n_met : int
        Rows learned or set aside.
    n_set_aside : int
    last : ndarray of shape (50,), int
        1 where one of the last rows was surprising, the latest last.
    """

    n_met: int
    n_set_aside: int
    last: Integers

    @staticmethod
    def none() -> Surprises:
        """Return those before the first row."""
        return Surprises(0, 0, np.zeros(_LAST, np.int64))

    @property
    def share(self) -> float:
        """Posterior mean of the share of outliers."""
        return (_PRIOR[0] + self.n_set_aside) / (_PRIOR[0] + _PRIOR[1] + self.n_met)

    def sets_aside(self, *, is_surprising: bool) -> bool:
        """Whether the next row is set aside: it is surprising, and there is no change."""
        run = int(self.last[1 - _RUN :].sum()) + 1
        return is_surprising and run < _RUN and int(self.last[1:].sum()) + 1 < _MOST

    def after(self, *, is_surprising: bool) -> Surprises:
        """Return those after one more row."""
        last = np.append(self.last[1:], np.int64(is_surprising))
        aside = self.sets_aside(is_surprising=is_surprising)
        return replace(self, n_met=self.n_met + 1, n_set_aside=self.n_set_aside + aside, last=last)


def contamination(surprises: Surprises) -> Contamination:
    """Return the law of outliers, of standardised targets, and their share."""
    return Contamination(surprises.share, 0.0, _WIDTH)


def long_tailed(law: StudentMixture) -> StudentMixture:
    """Return a law with the tails by which a target is judged."""
    return replace(law, df=np.minimum(law.df, _DEGREES))


def at_least(filter_: AnyFilter, state: State, x: Array, y: float) -> float:
    """Return what a few particles contribute to the log density that judges a row, in nats."""
    particles, m = state.particles, filter_.levels.n_mean
    level = int(particles.level[int(np.argmax(particles.log_weight))])
    which = np.flatnonzero(particles.level == level)[:_FEW]
    centres = state.centres[: state.statistics.n_candidates]
    design = filter_.levels.design(x[np.newaxis], centres, level)
    means = np.empty((1, len(particles.size)))
    spreads = np.empty_like(means)
    predict_rows(design, which, m, particles, means, spreads)
    variances, degrees = noise_variances(filter_, state)
    squares = variances[which] * spreads[0, which]
    ratios = (y - means[0, which]) ** 2 / squares
    degrees = min(degrees, _DEGREES)
    half = 0.5 * (degrees + 1.0)
    logs = math.lgamma(half) - math.lgamma(0.5 * degrees) - half * np.log1p(ratios / degrees)
    logs -= 0.5 * math.log(degrees * math.pi)
    logs += particles.log_weight[which] - 0.5 * np.log(squares)
    return float(np.logaddexp.reduce(logs))
