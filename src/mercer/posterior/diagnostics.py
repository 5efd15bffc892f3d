"""Convergence of the monitored quantities: R-hat, effective sample sizes, warnings in words.

Rank-normalised split R-hat and bulk and tail effective sample sizes (ESS) are those of [1]_, as
`arviz_stats` computes them; the Bayesian fraction of missing information (BFMI) is that of [2]_.
For weighted draws (importance weights W, sum 1) the effective size is 1 / sum W^2 per population.

**What R-hat may be by chance.** Let m sequences (the halves of the chains) of L draws each come
from one distribution, each worth N independent draws. The variance of their means is that
distribution's variance over N, times chi-square(m - 1) / (m - 1); the variance within a sequence
is on average (1 - 1/N) L / (L - 1) of it. With R-hat^2 = (L - 1) / L + (between) / (within),

    R-hat^2  ~  (1 - 1/L) (1 + F(m - 1, nu) / (N - 1)),

F an F variable. N comes from the autocorrelations within the sequences alone: the usual ESS also
falls when chains disagree, and would excuse what R-hat is there to find. N is itself estimated,
with a relative variance of about `ESS_NOISE` / (m N), so that nu = 2 m N / `ESS_NOISE`.

The limit of R-hat is the quantile of this law at `FALSE_ALARM_RATE` shared equally among all that
is judged in a fit (of each quantity R-hat and ESS, each for its level and its spread; BFMI of each
chain), and never below 1.01, under which disagreement does not matter. So a fit whose chains are
in order warns with a probability of at most 1 %, however many quantities are monitored and however
few draws there are. The other limits stand beside their constants, below.

References
----------
.. [1] Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021), Rank-normalization, folding, and
   localization: an improved R-hat, Bayesian Analysis 16.
.. [2] Betancourt (2016), Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte
   Carlo, arXiv:1604.00695.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtri, ndtri

from mercer.errors import NumericalError
from mercer.posterior.draws import Cell, Draws, Table, finite_or_none

__all__ = ["Diagnostics"]


# Means, spreads and quantiles of draws, weighted or not.

FloatArray = NDArray[np.float64]


def flat_weights(draws: Draws) -> FloatArray | None:
    """Return the normalised weights of all draws; None where they have none."""
    if draws.log_weights is None:
        return None
    log_weights = np.asarray(draws.log_weights, dtype=float).ravel()
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum(), dtype=float)


def mean_weights(draws: Draws) -> FloatArray:
    """Return the weights of all draws in a mean, (n_total,), of sum 1: equal if they have none."""
    weights = flat_weights(draws)
    return np.full(draws.n_total, 1.0 / draws.n_total) if weights is None else weights


def effective_size(draws: Draws) -> float:
    """Return how many equal draws the weighted ones are worth.

    This is the sum over populations of 1 / sum W^2, W their weights with sum 1; the number of draws
    where they have none.
    """
    if draws.log_weights is None:
        return float(draws.n_total)
    log_weights = np.asarray(draws.log_weights, dtype=float)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return float(np.sum(weights.sum(axis=1) ** 2 / np.sum(weights**2, axis=1)))


def effective_sample_size(log_weights: ArrayLike) -> float:
    """Return how many equally weighted particles those of log weights (N,) are worth.

    This is 1 / sum W^2 with W the weights divided by their sum, in [1, N]. A `NumericalError` when
    no weight is positive, or one is not a number.
    """
    logs = np.asarray(log_weights, dtype=np.float64)
    peak = logs.max(initial=-np.inf)
    if not np.isfinite(peak):
        raise NumericalError("log weights need a finite maximum")
    weights = np.exp(logs - peak)
    return float(np.clip(weights.sum() ** 2 / np.square(weights).sum(), 1.0, logs.size))


def mean_sd(flat: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations (n,) of draws (n_total, n), normalised weights given.

    Squares of values near 1e300 do not overflow; a quantity with draws that are not finite gives
    NaN. Without weights the divisor of the variance is n_total - 1.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        scale = np.abs(flat).max(axis=0)
        scale = np.where((scale > 0) & np.isfinite(scale), scale, 1.0)
        u = flat / scale
        if weights is None:
            mean = u.mean(axis=0)
            variance = np.square(u - mean).sum(axis=0) / max(len(u) - 1, 1)
        else:
            mean = weights @ u
            variance = weights @ np.square(u - mean)
        is_finite = np.isfinite(flat).all(axis=0)
        pair = np.where(is_finite, np.array([mean * scale, np.sqrt(variance) * scale]), np.nan)
    return pair[0], pair[1]


def quantiles(
    x: FloatArray, weights: FloatArray | None, levels: tuple[float, ...]
) -> tuple[float, ...]:
    """Return quantiles of finite draws (n_total,) of one quantity.

    With normalised weights: the smallest draw that reaches the level.
    """
    if weights is None:
        return tuple(float(value) for value in np.quantile(x, levels))
    order = np.argsort(x, kind="stable")
    places = np.searchsorted(np.cumsum(weights[order]), levels)
    return tuple(float(x[order[min(place, len(x) - 1)]]) for place in places)


# What is wrong with a fit, in words: what it means and what to try.
#
# Everything is judged by what chance explains: a limit is passed by a fit that is in order with a
# probability of at most 1 %, over all that is judged in it (`diagnostics.FALSE_ALARM_RATE`).
#
# * R-hat: its law when chains agree, see `mercer.posterior.diagnostics`. Where even chains in two
#   separate places could not be told from chance, the fit is too short to judge.
# * Effective sample sizes (ESS) should reach `ESS_AIM`, or a quarter of the draws where they are
#   few. An estimated ESS has a relative sd of about sqrt(`ESS_NOISE` / ESS): it warns below
#   aim exp(-z sqrt(`ESS_NOISE` / aim)), z the normal quantile of the level.
# * BFMI should reach `BFMI_AIM`. It is about 2 (1 - r), r the correlation of successive energies,
#   which n draws give with a standard deviation of sqrt((1 - r^2) / n): it warns z such standard
#   deviations of 2 r below.
# * Weighted draws have one effective size, known exactly: it warns below a tenth of their number.

RHAT_LIMIT = 1.01  # Vehtari et al. (2021), section 4: disagreement that does not matter
# R-hat of many sequences, half of them in one place and half in another: normal scores have means
# +-sqrt(2 / pi) there, and variance 1 - 2 / pi within. 1 + (2 / pi) / (1 - 2 / pi) = pi / (pi - 2).
RHAT_OF_TWO_PLACES = math.sqrt(math.pi / (math.pi - 2.0))
ESS_AIM = 400.0  # a standard error of a twentieth of the posterior's standard deviation
ESS_NOISE = 16.0  # variance of an estimated log ESS, times ESS: 6 (independent draws) to 17
BFMI_AIM = 0.3  # Betancourt (2016)
LARGEST_SHAPE = 0.7  # of the Pareto tail of importance weights; Vehtari et al. (2024)
WEIGHT_LIMIT = 0.1  # effective size of weighted draws, as a fraction of their number


def ess_limit(n_total: int, level: float) -> float:
    """Return the estimated effective size below which `n_total` draws warn."""
    aim = min(ESS_AIM, 0.25 * n_total)
    return float(aim * math.exp(ndtri(level) * math.sqrt(ESS_NOISE / aim)))


def bfmi_limit(n_draws: int, level: float) -> float:
    """Return the BFMI below which a chain of `n_draws` warns; negative where it never does."""
    correlation = 1.0 - 0.5 * BFMI_AIM
    noise = 2.0 * math.sqrt((1.0 - correlation**2) / n_draws)
    return float(BFMI_AIM + ndtri(level) * noise)


def warning_texts(
    draws: Draws, table: Table, n_divergent: int, bfmi: tuple[float, ...], level: float
) -> tuple[str, ...]:
    """Say what is wrong, the worst first.

    The table has columns name, mean, ess_bulk, ess_tail, rhat and rhat_limit of the monitored
    quantities; ``bfmi`` has one entry a chain, or none; ``level`` is the probability that chance
    alone passes one limit.
    """
    texts = _not_finite(table)
    if draws.log_weights is not None:
        texts += _uneven_weights(draws)
    else:
        texts += _high_rhat(table)
        texts += _low_ess(table, ess_limit(draws.n_total, level))
        texts += _low_bfmi(bfmi, bfmi_limit(draws.n_draws, level))
        texts = texts or _too_short(draws, table)
    if n_divergent > 0:
        texts.append(
            f"{n_divergent} of {draws.n_total} draws came from divergent trajectories: the sampler "
            "could not follow the posterior there, so that a narrow part of it may be missing. "
            "Try a longer warm-up (n_warmup), which settles on smaller steps."
        )
    return tuple(texts)


def _not_finite(table: Table) -> list[str]:
    """Name the quantities with draws that are not finite."""
    means = zip(table.column("name"), table.column("mean"), strict=True)
    bad = [name for name, mean in means if mean is None]
    if not bad:
        return []
    return [
        f"draws of {bad[0]} are not finite{_of_all(len(bad), table)}: no result that uses them can "
        "be trusted. Check the data for extreme values, or standardise them."
    ]


def _high_rhat(table: Table) -> list[str]:
    """Warn of chains that disagree by more than chance explains."""
    columns = (table.column(each) for each in ("rhat", "rhat_limit", "name"))
    high = [
        (rhat / limit, rhat, limit, name)
        for rhat, limit, name in zip(*columns, strict=True)
        if isinstance(rhat, float) and isinstance(limit, float) and rhat >= limit
    ]
    if not high:
        return []
    _, rhat, limit, name = max(high)
    return [
        f"R-hat of {name} is {rhat:.5g} and should be below {limit:.3f}"
        f"{_of_all(len(high), table)}: the chains have not settled on the same distribution, so "
        "that means and intervals are not yet reliable. Try a longer warm-up (n_warmup), then more "
        "draws (n_draws)."
    ]


def _too_short(draws: Draws, table: Table) -> list[str]:
    """Warn where R-hat could not tell chains in two places from chance, or cannot be had."""
    wide = [
        (math.inf if limit is None else limit, str(name))
        for limit, name, mean in zip(
            *map(table.column, ("rhat_limit", "name", "mean")), strict=True
        )
        if mean is not None and (limit is None or limit > RHAT_OF_TWO_PLACES)
    ]
    if not wide:
        return []
    _, name = max(wide)
    return [
        f"too short to judge: {draws.n_total} draws in total, by which chains that have settled in "
        f"two separate places could not be told from chance (of {name}"
        f"{_of_all(len(wide), table)}). Try more draws (n_draws) or chains (n_chains)."
    ]


def _low_ess(table: Table, limit: float) -> list[str]:
    """Warn of draws that are worth too few independent ones."""
    low = [
        (size, name, kind)
        for kind in ("bulk", "tail")
        for size, name in _named(table, f"ess_{kind}")
        if size < limit
    ]
    if not low:
        return []
    worst, name, kind = min(low)
    n_low = len({name for _, name, _ in low})
    return [
        f"the {kind} effective sample size of {name} is {worst:.0f} and should be at least "
        f"{limit:.0f}{_of_all(n_low, table)}: the draws are so alike that means (bulk) or ends of "
        "intervals (tail) are imprecise. Try more draws (n_draws) or chains (n_chains)."
    ]


def _low_bfmi(bfmi: tuple[float, ...], limit: float) -> list[str]:
    """Warn of chains that change their energy too slowly."""
    low = [(value, chain) for chain, value in enumerate(bfmi, start=1) if value < limit]
    if not low:
        return []
    worst, chain = min(low)
    return [
        f"BFMI of chain {chain} is {worst:.2g} and should be at least {limit:.2g} ({len(low)} of "
        f"{len(bfmi)} chains are below): the sampler moves slowly between the core and the tails "
        "of the posterior, so that the tails may be missing. Try a longer warm-up (n_warmup) and "
        "more draws (n_draws)."
    ]


def _uneven_weights(draws: Draws) -> list[str]:
    """Warn of weights that rest on a few draws."""
    size = effective_size(draws)
    if size >= WEIGHT_LIMIT * draws.n_total:
        return []
    return [
        f"the {draws.n_total} weighted draws are worth {size:.1f} equal ones, less than "
        f"{WEIGHT_LIMIT:.0%}: a few draws carry the result. Try more particles (n_particles)."
    ]


def _named(table: Table, column: str) -> list[tuple[float, str]]:
    """Return the numbers of a column, each with its quantity."""
    pairs = zip(table.column(column), table.column("name"), strict=True)
    return [(value, str(name)) for value, name in pairs if isinstance(value, float)]


def _of_all(n_bad: int, table: Table) -> str:
    """Say how many quantities share a fault, where more than one does."""
    return "" if n_bad == 1 else f" ({n_bad} of {len(table.rows)} quantities miss this)"


RHAT_CEILING = 1000.0  # chains that do not move at all have an infinite R-hat: reported as this
MIN_DRAWS = 4  # per chain, for arviz_stats to say anything

FALSE_ALARM_RATE = 0.01  # probability that a fit whose chains are in order warns

# What not all diagnostics have.
_OPTIONAL = (
    *("k_hat", "effective_size", "n_evaluations"),
    *("prediction_error", "largest_prediction_error"),
)
_COLUMNS = ("name", "mean", "sd", "mcse", "ess_bulk", "ess_tail", "rhat", "rhat_limit")


@dataclass(frozen=True)
class Diagnostics:
    """What the draws say about themselves.

    Parameters
    ----------
    table : Table
        One row per monitored scalar: name, mean, sd, mcse (standard error of the mean), ess_bulk,
        ess_tail, rhat, rhat_limit (what chance alone reaches too seldom, see the module). None
        where a number cannot be had (fewer than four draws per sequence, draws that are not finite,
        R-hat of weighted draws). Files of the first version have no rhat_limit.
    acceptance_rate : float or None
        Mean over draws and chains, where the sampler reports one.
    n_divergent : int
        Kept draws whose trajectory diverged.
    bfmi : tuple of float
        One per chain; empty where the sampler reports no energy.
    warnings : tuple of str
        What is wrong, what it means and what to try; empty when all is well.
    k_hat, effective_size, n_evaluations : optional
        Of importance sampling: the Pareto shape of the largest weights (averages can be trusted
        below 0.7), how many equal draws the weighted ones are worth, and from how many evaluations
        of the posterior.
    prediction_error, largest_prediction_error : optional
        Monte Carlo standard error of predictions at training rows, the mean and the largest: by how
        much another random state would change them; probabilities, or units of the target.
    """

    table: Table
    acceptance_rate: float | None
    n_divergent: int
    bfmi: tuple[float, ...]
    warnings: tuple[str, ...]
    k_hat: float | None = None
    effective_size: float | None = None
    n_evaluations: int | None = None
    prediction_error: float | None = None
    largest_prediction_error: float | None = None

    @property
    def max_rhat(self) -> float | None:
        """The largest R-hat, None where there is none."""
        return max(self._numbers("rhat"), default=None)

    @property
    def min_ess(self) -> float | None:
        """The smallest effective sample size, bulk or tail, None where there is none."""
        return min(self._numbers("ess_bulk") + self._numbers("ess_tail"), default=None)

    def is_worth_longer(self, n_total: int, times: float) -> bool:
        """Whether they warn, and as many draws of chains ``times`` as long may leave no warning.

        They may where the smallest effective size of the ``n_total`` draws would be large enough
        if it were so many times as large.
        """
        if not self.warnings or any(mean is None for mean in self.table.column("mean")):
            return False
        level = FALSE_ALARM_RATE / (4 * len(self.table.rows))
        return times * (self.min_ess or 0.0) >= ess_limit(n_total, level)

    @property
    def worst_warning(self) -> str:
        """The first warning and how many follow, on one line; empty when all is well."""
        if not self.warnings:
            return ""
        more = len(self.warnings) - 1
        return self.warnings[0] + (f" ({more} more in the diagnostics.)" if more else "")

    @property
    def has_trajectories(self) -> bool:
        """Whether the sampler follows trajectories, which may diverge."""
        return bool(self.bfmi) or self.n_divergent > 0

    @property
    def is_converged(self) -> bool:
        """Whether there is nothing to warn about."""
        return not self.warnings

    def __str__(self) -> str:
        table = str(self.table) if self.table.rows else "no monitored quantities"
        return "\n".join([table, "", *self._lines()])

    __repr__ = __str__  # what an interpreter shows

    def _repr_html_(self) -> str:
        """Show table and warnings in a notebook."""
        return f"{self.table._repr_html_()}<pre>{html.escape(chr(10).join(self._lines()))}</pre>"

    def _lines(self) -> list[str]:
        """Say what is not in the table, warnings last."""
        lines = []
        if self.acceptance_rate is not None:
            lines.append(f"acceptance rate  {self.acceptance_rate:.3g}")
        if self.has_trajectories:
            lines.append(f"divergences      {self.n_divergent} (after warm-up)")
        if self.bfmi:
            lines.append("BFMI             " + ", ".join(f"{value:.3g}" for value in self.bfmi))
        if self.effective_size is not None:
            lines += [
                f"evaluations      {self.n_evaluations}",
                f"effective draws  {self.effective_size:.0f}",
                f"Pareto k-hat     {'none' if self.k_hat is None else format(self.k_hat, '.2f')}",
            ]
        if self.prediction_error is not None:
            errors = f"{self.prediction_error:.2g}, at most {self.largest_prediction_error:.2g}"
            lines.append(f"Monte Carlo error of predictions  {errors}")
        return lines + ([f"warning: {text}" for text in self.warnings] or ["no warnings"])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python types, ready for JSON.

        Returns
        -------
        dict
            The fields and properties of this class by name; the table as in `Table.to_dict`.
        """
        return {
            "table": self.table.to_dict(),
            "acceptance_rate": self.acceptance_rate,
            "n_divergent": self.n_divergent,
            "bfmi": list(self.bfmi),
            "warnings": list(self.warnings),
            "max_rhat": self.max_rhat,
            "min_ess": self.min_ess,
            "is_converged": self.is_converged,
            **{name: value for name in _OPTIONAL if (value := getattr(self, name)) is not None},
        }

    def of_importance(
        self, k_hat: float, effective_size: float, n_evaluations: int, *, is_trusted: bool
    ) -> Diagnostics:
        """Return the same with what importance sampling says of itself, and warn by it."""
        warnings = tuple(text for text in self.warnings if "weighted draws are worth" not in text)
        if not is_trusted:
            warnings += (
                f"Pareto k-hat of the weights is {k_hat:.2f} and should be at most "
                f"{LARGEST_SHAPE:g}: a few draws carry the result. Give more time (max_seconds), "
                "or take chains (inference='hmc').",
            )
        return replace(
            self,
            warnings=warnings,
            k_hat=finite_or_none(k_hat),
            effective_size=effective_size,
            n_evaluations=n_evaluations,
        )

    def of_predictions(self, values: FloatArray, weights: FloatArray | None) -> Diagnostics:
        """Return the same with the Monte Carlo error of predictions.

        ``values``, (n_chains, n_draws, k), are what draws predict at k rows, ``weights`` theirs.
        """
        errors = monte_carlo_errors(values, weights)
        if not np.isfinite(errors).all():
            return self
        mean, largest = float(errors.mean()), float(errors.max())
        return replace(self, prediction_error=mean, largest_prediction_error=largest)

    def scaled(self, scale: float) -> Diagnostics:
        """Return the same with predictions in other units."""
        if self.prediction_error is None or self.largest_prediction_error is None:
            return self
        mean, largest = scale * self.prediction_error, scale * self.largest_prediction_error
        return replace(self, prediction_error=mean, largest_prediction_error=largest)

    def _numbers(self, column: str) -> list[float]:
        return [value for value in self.table.column(column) if isinstance(value, float)]


def monte_carlo_errors(values: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Return the standard errors (k,) of averages of values (n_chains, n_draws, k) over draws.

    With weights by the delta method, sum W^2 (x - mean)^2; else the variance of the draws over the
    effective sample size of their mean, NaN where chains are too short to tell.
    """
    flat = values.reshape(-1, values.shape[-1])
    if weights is not None:
        return np.asarray(np.sqrt(weights**2 @ np.square(flat - weights @ flat)))
    from arviz_stats.base import array_stats  # takes a second, for SciPy's statistics

    errors = np.zeros(values.shape[-1])
    if values.shape[1] < MIN_DRAWS:
        return np.full_like(errors, np.nan)
    moves = np.ptp(flat, axis=0) > 1e-12
    if moves.any():
        n_equal = array_stats.ess(np.moveaxis(values, 2, 0)[moves], method="mean")
        errors[moves] = flat.std(axis=0)[moves] / np.sqrt(n_equal)
    return errors


def diagnose(draws: Draws) -> Diagnostics:
    """Judge the monitored quantities of a fit.

    Of the statistics "acceptance_rate", "is_divergent" and "energy" are used. Where the draws come
    in segments, each is judged by itself: effective sizes add up, and the R-hat that is largest
    for its limit counts, of segments long enough to be judged where there are any.

    A constant quantity has R-hat 1 and counts every draw, of chains of four draws or more. A single
    chain is judged by its two halves. Where chains are stuck, each at its own value, R-hat is 1000.
    R-hat is judged against a limit that widens for few draws as theory says (formula in the
    module); a fit whose chains are in order warns with a probability of at most 1 %. Cost: about 3
    ms per quantity for four chains of 1000 draws, and a second for the import.
    """
    parts, bfmi = draws.segments or (draws.n_draws,), _bfmi(draws)
    n_quantities = sum(len(draws.entry_names(name)) for name in draws.monitored)
    level = FALSE_ALARM_RATE / max(4 * n_quantities * len(parts) + len(bfmi), 1)
    table = Table(_COLUMNS, _rows(draws, parts, level))
    acceptance = draws.stats.get("acceptance_rate")
    divergent = draws.stats.get("is_divergent")
    n_divergent = 0 if divergent is None else int(np.count_nonzero(divergent))
    return Diagnostics(
        table=table,
        acceptance_rate=None if acceptance is None else finite_or_none(np.mean(acceptance)),
        n_divergent=n_divergent,
        bfmi=bfmi,
        warnings=warning_texts(draws, table, n_divergent, bfmi, level),
    )


def _rows(draws: Draws, segments: tuple[int, ...], level: float) -> tuple[tuple[Cell, ...], ...]:
    """Compute one row of the table per monitored scalar."""
    if not draws.monitored:
        return ()
    names = [entry for name in draws.monitored for entry in draws.entry_names(name)]
    shape = (draws.n_chains, draws.n_draws, -1)
    columns = [draws.variables[name].reshape(shape).astype(float) for name in draws.monitored]
    x = np.moveaxis(np.concatenate(columns, axis=2), 2, 0)
    weights = flat_weights(draws)
    mean, sd = mean_sd(x.reshape(len(names), -1).T, weights)
    if weights is None:
        parts = np.split(x, np.cumsum(segments)[:-1], axis=2)
        by_part = np.stack([_chain_measures(part, level) for part in parts])
        measures = np.vstack([by_part[:, :3].sum(axis=0), _most_telling(by_part[:, 3:])])
    else:
        measures = np.full((5, len(names)), effective_size(draws))
        measures[3:] = np.nan
    numbers = np.vstack([mean, sd, sd / np.sqrt(measures[0]), measures[1:]])
    numbers[:, np.isnan(mean)] = np.nan  # draws that are not finite
    is_few = weights is None or len(names) <= 300  # of more, those that were not drawn say nothing
    is_shown = np.logical_or(is_few, sd > 1e-9 * np.abs(mean))
    return tuple((names[j], *map(finite_or_none, numbers[:, j])) for j in np.flatnonzero(is_shown))


def _most_telling(by_part: FloatArray) -> FloatArray:
    """Return R-hat and its limit (2, n) of the part where R-hat is largest for its limit."""
    rhat, limit = by_part[:, 0], by_part[:, 1]
    ratio = np.where(np.isnan(rhat), 0.0, rhat / limit)
    ratio += np.where(limit <= RHAT_OF_TWO_PLACES, RHAT_CEILING, 0.0)  # long enough: they go first
    best = np.argmax(ratio, axis=0)
    return np.array(by_part[best, :, np.arange(by_part.shape[2])].T)


def _chain_measures(x: FloatArray, level: float) -> FloatArray:
    """Return ESS of the mean, bulk and tail, R-hat and its limit, of (n, n_chains, n_draws)."""
    n_quantities, n_chains, n_draws = x.shape
    measures = np.full((5, n_quantities), float(n_chains * n_draws))
    measures[3:] = [[1.0], [RHAT_LIMIT]] if n_draws >= MIN_DRAWS else np.nan
    low, high = x.min(axis=(1, 2)), x.max(axis=(1, 2))
    moves = (low < high) & np.isfinite(low) & np.isfinite(high)
    if moves.any():
        # arviz_stats takes ranges below 1e-15 for constant, so the largest value is brought to
        # [0.5, 1): by a power of two, which keeps every tie between ranks.
        _, power = np.frexp(np.maximum(np.abs(low), np.abs(high))[moves])
        measures[:, moves] = _moving_measures(np.ldexp(x[moves], -power[:, None, None]), level)
    return measures


def _moving_measures(z: FloatArray, level: float) -> FloatArray:
    """Return the same for quantities that are not constant; NaN where draws are too few."""
    from arviz_stats.base import array_stats  # takes a second, for SciPy's statistics

    measures = np.full((5, len(z)), np.nan)
    halves = z if z.shape[1] > 1 else _halves(z)
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that do not move
        if z.shape[2] >= MIN_DRAWS:
            measures[0] = array_stats.ess(z, method="mean")
            measures[1] = array_stats.ess(z, method="bulk")
            measures[2] = array_stats.ess(z, method="tail", prob=(0.05, 0.95))
        if halves.shape[2] >= MIN_DRAWS:
            measures[3:] = _rhat_and_limit(_halves(halves), level)
    return measures


def _rhat_and_limit(z: FloatArray, level: float) -> FloatArray:
    """Return R-hat of sequences (n, m, L), and what it exceeds by chance with probability `level`.

    R-hat is the larger of one of the level and one of the spread (distances from the median), of
    normal scores; N of the law in the module's text is the smaller of theirs.
    """
    spread = np.abs(z - np.median(z, axis=(1, 2), keepdims=True))
    scores = np.stack([_normal_scores(u) for u in (z, spread)])
    n_sequences, length = z.shape[1:]
    between, within = (
        scores.mean(axis=3).var(axis=2, ddof=1),
        scores.var(axis=3, ddof=1).mean(axis=2),
    )
    rhat = np.sqrt(1.0 - 1.0 / length + np.fmax.reduce(between / within))
    n_equal = np.min([_draws_of_a_sequence(each) for each in scores], axis=0)
    nu = 2.0 * n_sequences * n_equal / ESS_NOISE
    chance = fdtri(n_sequences - 1.0, nu, 1.0 - level)
    limit = np.sqrt((1.0 - 1.0 / length) * (1.0 + chance / (n_equal - 1.0)))
    rhat = np.minimum(np.nan_to_num(rhat, nan=1.0, posinf=RHAT_CEILING), RHAT_CEILING)
    return np.array([rhat, np.clip(limit, RHAT_LIMIT, RHAT_CEILING)])


def _normal_scores(z: FloatArray) -> FloatArray:
    """Replace the draws of each quantity by the normal quantiles of their ranks."""
    from scipy.stats import rankdata

    ranks = rankdata(z.reshape(len(z), -1), axis=1)
    return np.asarray(ndtri((ranks - 0.375) / (ranks.shape[1] + 0.25)).reshape(z.shape))


def _draws_of_a_sequence(s: FloatArray) -> FloatArray:
    """Return how many independent draws one sequence of (n, m, L) is worth, from 1.5 to L.

    L over the sum of autocorrelations, which are pooled over sequences, each around its own mean
    (corrected for it), and cut by Geyer's initial monotone sequence.
    """
    length = s.shape[2]
    centred = s - s.mean(axis=2, keepdims=True)
    size = 1 << (2 * length - 1).bit_length()
    power = np.mean(np.abs(np.fft.rfft(centred, size, axis=2)) ** 2, axis=1)
    covariance = np.fft.irfft(power, size, axis=1)[:, :length] / length
    is_stuck = covariance[:, 0] <= 0.0
    covariance[is_stuck, 0] = 1.0
    time = _correlation_time(covariance / covariance[:, :1])
    share = 1.0 - np.arange(length) / length  # of the pairs that are so far apart
    for _ in range(3):  # the mean of a sequence takes about variance * time / L off each of them
        lost = np.minimum(time / length, 1.0 / 3.0)[:, np.newaxis]
        variance = covariance[:, :1] / (1.0 - lost)
        time = _correlation_time(covariance / variance + lost * share)
    return np.where(is_stuck, float(length), np.maximum(length / time, 1.5))


def _correlation_time(correlation: FloatArray) -> FloatArray:
    """Sum autocorrelations over lags of both signs, by Geyer's initial monotone sequence; >= 1."""
    even = correlation.shape[1] // 2 * 2
    pairs = correlation[:, 0:even:2] + correlation[:, 1:even:2]
    pairs = np.where(np.logical_and.accumulate(pairs > 0.0, axis=1), pairs, 0.0)
    total = 2.0 * np.minimum.accumulate(pairs, axis=1).sum(axis=1) - 1.0
    return np.asarray(np.maximum(total, 1.0))


def _halves(z: FloatArray) -> FloatArray:
    """Cut every chain (n, m, L) into its halves: (n, 2 m, L // 2)."""
    half = z.shape[2] // 2
    return np.concatenate([z[:, :, :half], z[:, :, z.shape[2] - half :]], axis=1)


def _bfmi(draws: Draws) -> tuple[float, ...]:
    """Return the mean squared step of the energy over its variance, per chain (0 if stuck)."""
    energy = draws.stats.get("energy")
    if energy is None or draws.n_draws < MIN_DRAWS or not np.all(np.isfinite(energy)):
        return ()
    variance = np.var(energy, axis=1, ddof=1)
    steps = np.mean(np.square(np.diff(energy, axis=1)), axis=1)
    return tuple(float(s / v) if v > 0 else 0.0 for s, v in zip(steps, variance, strict=True))


# The table that `Draws.summary()` returns.

_JUDGED = ("mcse", "ess_bulk", "ess_tail", "rhat")


def summarise(draws: Draws) -> Table:
    """Tabulate mean, spread, quantiles and, for what is monitored, the diagnostics.

    Monitored variables come first, then the other scalars and labelled vectors.
    """
    weights = flat_weights(draws)
    table = diagnose(draws).table
    judged = zip(*map(table.column, _JUDGED), strict=True)
    known: dict[Cell, tuple[Cell, ...]] = dict(zip(table.column("name"), judged, strict=True))
    others = [
        name
        for name, values in draws.variables.items()
        if name not in draws.monitored and (name in draws.labels or values.ndim == 2)
    ]
    rows: list[tuple[Cell, ...]] = []
    for name in (*draws.monitored, *others):
        flat = draws.flat(name).reshape(draws.n_total, -1).astype(float)
        mean, sd = mean_sd(flat, weights)
        for j, entry in enumerate(draws.entry_names(name)):
            is_finite = bool(np.isfinite(mean[j]))
            ends = quantiles(flat[:, j], weights, (0.05, 0.95)) if is_finite else (None, None)
            judged_cells = known.get(entry, (None,) * len(_JUDGED))
            rows.append((entry, *map(finite_or_none, (mean[j], sd[j])), *ends, *judged_cells))
    return Table(("name", "mean", "sd", "q05", "q95", *_JUDGED), tuple(rows))
