"""What is wrong with a fit, in words: what it means and what to try.

Everything is judged by what chance explains: a limit is passed by a fit that is in order with a
probability of at most 1 %, over all that is judged in it (`diagnostics.FALSE_ALARM_RATE`).

* R-hat: its law when chains agree, see `mercer.posterior.diagnostics`. Where even chains in two
  separate places could not be told from chance, the fit is too short to judge.
* Effective sample sizes (ESS) should reach `ESS_AIM`, or a quarter of the draws where they are
  few. An estimated ESS has a relative sd of about sqrt(`ESS_NOISE` / ESS): it warns below
  aim exp(-z sqrt(`ESS_NOISE` / aim)), z the normal quantile of the level.
* BFMI should reach `BFMI_AIM`. It is about 2 (1 - r), r the correlation of successive energies,
  which n draws give with a standard deviation of sqrt((1 - r^2) / n): it warns z such standard
  deviations of 2 r below.
* Weighted draws have one effective size, known exactly: it warns below a tenth of their number.
"""

from __future__ import annotations

import math

from scipy.special import ndtri

from mercer.posterior.draws import Draws
from mercer.posterior.moments import effective_size
from mercer.posterior.table import Table

__all__ = ["bfmi_limit", "ess_limit", "warning_texts"]

RHAT_LIMIT = 1.01  # Vehtari et al. (2021), section 4: disagreement that does not matter
# R-hat of many sequences, half of them in one place and half in another: normal scores have means
# +-sqrt(2 / pi) there, and variance 1 - 2 / pi within. 1 + (2 / pi) / (1 - 2 / pi) = pi / (pi - 2).
RHAT_OF_TWO_PLACES = math.sqrt(math.pi / (math.pi - 2.0))
ESS_AIM = 400.0  # a standard error of a twentieth of the posterior's standard deviation
ESS_NOISE = 16.0  # variance of an estimated log ESS, times ESS: 6 (independent draws) to 17
BFMI_AIM = 0.3  # Betancourt (2016)
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

    Parameters
    ----------
    draws : Draws
        The draws.
    table : Table
        Columns name, mean, ess_bulk, ess_tail, rhat and rhat_limit of the monitored quantities.
    n_divergent : int
        Kept draws whose trajectory diverged.
    bfmi : tuple of float
        One per chain, or empty.
    level : float
        Probability that chance alone passes one limit.

    Returns
    -------
    tuple of str
        Empty when all is well.
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
