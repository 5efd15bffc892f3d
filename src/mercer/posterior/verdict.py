"""What is wrong with a fit, in words: what it means and what to try."""

from __future__ import annotations

from mercer.posterior.draws import Draws
from mercer.posterior.moments import effective_size
from mercer.posterior.table import Table

__all__ = ["warning_texts"]

RHAT_LIMIT = 1.01  # Vehtari et al. (2021), section 4
ESS_LIMIT = 400  # the same: below it, R-hat and ESS themselves are too noisy
BFMI_LIMIT = 0.3  # Betancourt (2016)
WEIGHT_LIMIT = 0.1  # effective size of weighted draws, as a fraction of their number


def warning_texts(
    draws: Draws, table: Table, n_divergent: int, bfmi: tuple[float, ...]
) -> tuple[str, ...]:
    """Say what is wrong.

    Parameters
    ----------
    draws : Draws
        The draws.
    table : Table
        Columns name, mean, ess_bulk, ess_tail and rhat of the monitored quantities.
    n_divergent : int
        Kept draws whose trajectory diverged.
    bfmi : tuple of float
        One per chain, or empty.

    Returns
    -------
    tuple of str
        Empty when all is well.
    """
    texts = _not_finite(table)
    if draws.log_weights is not None:
        texts += _uneven_weights(draws)
    elif draws.n_total < ESS_LIMIT:
        texts.append(
            f"too short to judge: {draws.n_total} draws in total, and R-hat and effective sample "
            f"sizes say little below {ESS_LIMIT}. Try more draws (n_draws) or chains (n_chains)."
        )
    else:
        texts += _high_rhat(table) + _low_ess(table) + _low_bfmi(bfmi)
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
    """Warn of chains that disagree."""
    high = [pair for pair in _named(table, "rhat") if pair[0] >= RHAT_LIMIT]
    if not high:
        return []
    worst, name = max(high)
    return [
        f"R-hat of {name} is {worst:.5g} and should be below {RHAT_LIMIT}"
        f"{_of_all(len(high), table)}: the chains have not settled on the same distribution, so "
        "that means and intervals are not yet reliable. Try a longer warm-up (n_warmup), then more "
        "draws (n_draws)."
    ]


def _low_ess(table: Table) -> list[str]:
    """Warn of draws that are worth too few independent ones."""
    low = [
        (size, name, kind)
        for kind in ("bulk", "tail")
        for size, name in _named(table, f"ess_{kind}")
        if size < ESS_LIMIT
    ]
    if not low:
        return []
    worst, name, kind = min(low)
    n_low = len({name for _, name, _ in low})
    return [
        f"the {kind} effective sample size of {name} is {worst:.0f} and should be at least "
        f"{ESS_LIMIT}{_of_all(n_low, table)}: the draws are so alike that means (bulk) or ends of "
        "intervals (tail) are imprecise. Try more draws (n_draws) or chains (n_chains)."
    ]


def _low_bfmi(bfmi: tuple[float, ...]) -> list[str]:
    """Warn of chains that change their energy too slowly."""
    low = [(value, chain) for chain, value in enumerate(bfmi, start=1) if value < BFMI_LIMIT]
    if not low:
        return []
    worst, chain = min(low)
    return [
        f"BFMI of chain {chain} is {worst:.2g} and should be at least {BFMI_LIMIT} ({len(low)} of "
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
