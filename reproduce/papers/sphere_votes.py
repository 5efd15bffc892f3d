"""Sections 4 and 5: votes, Bayes points, rejection, and the diversity of draws, on two problems.

100 training rows, a tenth of their labels turned over, q = 0.1 assumed; the test rows keep their
labels. RBF kernel of the median length scale with an offset, 200 draws.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reproduce.papers.reproduction import Claim, Settings, is_clearly_below_zero, mean_and_error
from reproduce.papers.sphere_draws import draw_classifiers, mean_disagreement, model_of, unit
from reproduce.papers.sphere_part import Part, space_of
from reproduce.papers.sphere_problems import PROBLEMS, Split, split_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["coverage_errors", "diversity_part", "part"]

Array = NDArray[np.float64]

_RATE, _N_TRAIN, _N_TEST = 0.1, 100, 460
_N_DRAWS, _THIN = 200, 2
_COVERAGES = (1.0, 0.9, 0.75, 0.5)
_RATES = (0.0, 0.05, 0.1, 0.2)
# Vote and Bayes point agree on so many rows, and differ by no more than this in their errors, in
# per cent: an "excellent approximation".
_AGREEING, _EQUAL = 95.0, 0.5


def part(settings: Settings) -> Part:
    """Agreement and errors of vote and Bayes point, and errors at each coverage."""
    n_splits = 10 if settings.is_quick else 30
    claims: list[Claim] = []
    measured: dict[str, Array] = {}
    covered = {}
    for problem in PROBLEMS:
        settings.tell(f"votes and Bayes points: {problem}")
        rows = [_vote_and_point(problem, seed) for seed in range(n_splits)]
        agreement, vote, point = np.array([row[:3] for row in rows]).T
        covered[problem] = np.array([row[3:] for row in rows])
        claims.append(_agreement_claim(problem, agreement, vote, point))
        claims.append(_coverage_claim(problem, covered[problem]))
        measured |= {f"{problem}: vote": vote, f"{problem}: Bayes point": point}
        for share, errors in zip(_COVERAGES[1:], covered[problem].T[1:], strict=True):
            measured[f"{problem}: vote, {100 * share:.0f} % of the rows"] = errors
    panels = (lambda axes: _draw_errors(axes, measured), lambda axes: _draw(axes, covered))
    return Part(tuple(claims), panels, measured)


def _vote_and_point(problem: str, seed: int) -> list[float]:
    """Agreement, errors of vote and Bayes point, and errors at each coverage, in per cent."""
    split = split_of(problem, seed, _N_TRAIN, _N_TEST, _RATE)
    g, f = _classifiers(split, np.random.default_rng([seed, 4]), _RATE)
    share = np.mean(f > 0.0, axis=0)
    vote = share > 0.5
    point = np.mean(f / np.linalg.norm(g, axis=1, keepdims=True), axis=0) > 0.0
    is_wrong = vote != split.labels_test
    by_hand = [np.mean(vote == point), np.mean(is_wrong), np.mean(point != split.labels_test)]
    covered = coverage_errors(is_wrong, np.abs(share - 0.5))
    return [100.0 * float(value) for value in (*by_hand, *covered)]


def _classifiers(split: Split, rng: np.random.Generator, rate: float) -> tuple[Array, Array]:
    """Draws g (k, r), and their values at the test rows (k, m)."""
    space = space_of("rbf", 1.0, split.X, 1.0)
    design = space.design()
    model = model_of(design.L, split.labels, rate)
    g = draw_classifiers(rng, model, _N_DRAWS, thin=_THIN)
    return g, space.latent(split.X_test, space.coefficients(design, g))[0]


def coverage_errors(is_wrong: NDArray[np.bool_], vote_margin: Array) -> list[float]:
    """Error on the rows of largest vote margin, for each share of the rows."""
    order = np.argsort(-vote_margin, kind="stable")
    kept = [order[: max(1, round(share * len(order)))] for share in _COVERAGES]
    return [float(is_wrong[rows].mean()) for rows in kept]


def _agreement_claim(problem: str, agreement: Array, vote: Array, point: Array) -> Claim:
    gap, error = mean_and_error(point - vote)
    return Claim(
        f"the Bayes point is an excellent approximation of the vote: {problem}",
        "yes",
        "same class on {:.1f} +- {:.1f} % of the test rows; ".format(*mean_and_error(agreement))
        + f"errors {point.mean():.2f} % against {vote.mean():.2f} %, "
        f"difference {gap:+.2f} +- {error:.2f} %",
        "holds" if agreement.mean() >= _AGREEING and abs(gap) <= _EQUAL else "fails",
        f"at least {_AGREEING:.0f} %, errors within {_EQUAL} %",
    )


def _coverage_claim(problem: str, errors: Array) -> Claim:
    """It holds if half the rows have less than half the error of all, and no step goes up."""
    means = errors.mean(axis=0)
    is_falling = all(high >= low for high, low in itertools.pairwise(means))
    is_halved = is_clearly_below_zero(errors[:, -1] - 0.5 * errors[:, 0])
    listed = ", ".join(f"{value:.2f}" for value in means)
    shares = ", ".join(f"{100 * share:.0f}" for share in _COVERAGES)
    return Claim(
        f"rejecting the closest votes reduces the error greatly: {problem}",
        "yes, citing Graepel et al. (2000)",
        f"errors at {shares} % coverage: {listed} %",
        "holds" if is_falling and is_halved else "fails",
        "greatly: half the rows, clearly less than half the error",
    )


def diversity_part(settings: Settings) -> Part:
    """Disagreement of draws at the training rows, on rows without wrong labels."""
    n_splits = 6 if settings.is_quick else 20
    settings.tell("diversity of the draws")
    percent, claims = {}, []
    for problem in PROBLEMS:
        percent[problem] = np.array([_diversity(problem, seed) for seed in range(n_splits)])
        steps = np.diff(percent[problem], axis=1).T
        means = [mean_and_error(column) for column in percent[problem].T]
        claims.append(
            Claim(
                f"diversity of the draws on the training rows rises with q: {problem}",
                "yes (by eye)",
                "; ".join(
                    f"q = {rate:g}: {mean:.1f} +- {error:.1f} %"
                    for rate, (mean, error) in zip(_RATES, means, strict=True)
                ),
                "holds" if all(is_clearly_below_zero(-step) for step in steps) else "fails",
                "disagreement of two draws; each step up above two standard errors",
            )
        )
    return Part(tuple(claims), (lambda axes: _draw_diversity(axes, percent),))


def _diversity(problem: str, seed: int) -> list[float]:
    split = split_of(problem, seed, _N_TRAIN, _N_TEST, 0.0)
    L = space_of("rbf", 1.0, split.X, 1.0).design().L
    rng = np.random.default_rng([seed, 5])
    draws = [
        draw_classifiers(rng, model_of(L, split.labels, rate), _N_DRAWS, thin=_THIN)
        for rate in _RATES
    ]
    return [100.0 * mean_disagreement(unit(g) @ L.T) for g in draws]


def _draw_errors(axes: Axes, measured: dict[str, Array]) -> None:
    """One dot a split: error of the Bayes point over that of the vote."""
    from mercer.plot.style import CHAIN_COLOURS, FONT_SIZE, PALETTE

    for colour, problem in zip(CHAIN_COLOURS, PROBLEMS, strict=False):
        vote, point = measured[f"{problem}: vote"], measured[f"{problem}: Bayes point"]
        axes.plot(vote, point, "o", markersize=4, alpha=0.7, color=colour, label=problem)
    axes.axline((0.0, 0.0), slope=1.0, color=PALETTE["muted"], linewidth=1.0, dashes=(4, 3))
    axes.set_xlabel("error of the vote, %")
    axes.set_ylabel("error of the Bayes point, %")
    axes.set_title("vote and Bayes point, one dot a split", fontsize=FONT_SIZE)
    axes.legend(fontsize=FONT_SIZE - 3, frameon=False)


def _draw(axes: Axes, covered: dict[str, Array]) -> None:
    from mercer.plot.style import CHAIN_COLOURS, FONT_SIZE

    for colour, (problem, errors) in zip(CHAIN_COLOURS, covered.items(), strict=False):
        means, bars = np.array([mean_and_error(column) for column in errors.T]).T
        shares = [100 * share for share in _COVERAGES]
        axes.errorbar(shares, means, bars, marker="o", capsize=3, color=colour, label=problem)
    axes.set_xlabel("rows that are decided, %")
    axes.set_ylabel("error on them, %")
    axes.set_ylim(0.0, None)
    axes.set_title("rejection by vote margin", fontsize=FONT_SIZE)
    axes.legend(fontsize=FONT_SIZE - 3, frameon=False)


def _draw_diversity(axes: Axes, percent: dict[str, Array]) -> None:
    from mercer.plot.style import CHAIN_COLOURS, FONT_SIZE

    for colour, (problem, values) in zip(CHAIN_COLOURS, percent.items(), strict=False):
        means, bars = np.array([mean_and_error(column) for column in values.T]).T
        axes.errorbar(_RATES, means, bars, marker="o", capsize=3, color=colour, label=problem)
    axes.set_xlabel("noise rate q")
    axes.set_ylabel("disagreement of two draws, %")
    axes.set_title("diversity on the training rows", fontsize=FONT_SIZE)
    axes.legend(fontsize=FONT_SIZE - 3, frameon=False)
