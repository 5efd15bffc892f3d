"""Oliva et al., Figure 3: a kernel of two bumps, recovered from noisy data (section 4.1).

k(t) = exp(-t^2/8) (1/2 + cos(3 pi t/4)/2), whose spectral density is the mixture of N(0, 1/4) and
N(3 pi/4, 1/4) in equal parts. 250 frequencies are drawn from it, 1000 inputs from N(0, 4^2), and
y = phi(x)'beta + e with beta ~ N(0, I), e ~ N(0, 1) and phi as in eq. (3). The paper estimates k by
the kernel of 250 draws from the true density (here those that made the data) and by BaNK (here the
posterior mean, with its 90 % band), and shows one data set; here there are several.

Beyond the paper: what can be learned of k from one function. A GP that is told both components,
the noise and the variance, and has the share of the second component alone to learn (a uniform
prior, on a grid), knows more than any method could, and errs too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer.numerics.cholesky import factorise, solve_lower
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.reproduction import Claim, Reproduction, Settings, mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["reproduce", "true_kernel"]

Array = NDArray[np.float64]

_N_ROWS, _N_FREQUENCIES, _INPUT_STD, _NOISE_STD = 1000, 250, 4.0, 1.0
_CENTRE, _SPREAD = 0.75 * np.pi, 0.5
_LAGS = np.linspace(0.0, 6.0, 121)
_LARGEST_ERROR, _SMALLEST_COVERAGE = 0.10, 0.80
_BANK, _DRAWN, _TOLD = "BaNK", "true spectral density, 250 draws", "all known but the shares"
_SHARES = np.linspace(0.02, 0.98, 25)


@dataclass(frozen=True, eq=False)
class _Problem:
    """Data of one seed, and the frequencies that made them."""

    X: Array
    y: Array
    frequencies: Array


@dataclass(frozen=True, eq=False)
class _Outcome:
    """Curves over the lags for one seed.

    Attributes
    ----------
    drawn : ndarray
        The kernel of the frequencies that made the data.
    told : ndarray
        Posterior mean of the GP that has the shares alone to learn.
    mean, lower, upper : ndarray
        BaNK's.
    """

    drawn: Array
    told: Array
    mean: Array
    lower: Array
    upper: Array

    @property
    def coverage(self) -> float:
        """Share of lags at which the band holds the truth."""
        truth = true_kernel(_LAGS)
        # At lag 0 all are 1, up to rounding.
        inside = (self.lower - 1e-12 <= truth) & (truth <= self.upper + 1e-12)
        return float(inside.mean())


def true_kernel(lags: Array) -> Array:
    """Return k of section 4.1."""
    return _mixture_kernel(lags, 0.5)


def _mixture_kernel(lags: Array, share: float) -> Array:
    """Return k with another share of the second component."""
    bell = np.exp(-0.5 * (_SPREAD * lags) ** 2)
    return np.asarray(bell * ((1.0 - share) + share * np.cos(_CENTRE * lags)))


def reproduce(settings: Settings) -> Reproduction:
    """Fit BaNK to each data set, and compare kernels over lags from 0 to 6."""
    n_seeds = 2 if settings.is_quick else 10
    with threadpool_limits(limits=1, user_api="blas"):
        outcomes = [_outcome(seed, settings) for seed in range(n_seeds)]
    errors = {
        _BANK: np.array([_error(outcome.mean) for outcome in outcomes]),
        _DRAWN: np.array([_error(outcome.drawn) for outcome in outcomes]),
        _TOLD: np.array([_error(outcome.told) for outcome in outcomes]),
    }
    coverage = np.array([outcome.coverage for outcome in outcomes])
    return Reproduction(
        name="spectral-figure-3",
        title="A kernel recovered from data",
        source="Oliva et al. (2016), Figure 3 and section 4.1",
        command="mercer reproduce spectral-figure-3" + (" --quick" if settings.is_quick else ""),
        claims=_claims(errors, coverage, settings.is_quick),
        measured=errors,
        unit="root mean square error of the kernel, lags 0 to 6",
        published={},
        notes=(
            "The paper draws one data set and its curves; it gives no figures.",
            f'"{_DRAWN}" are the frequencies that made the data: no data are needed to know them.',
            f'"{_TOLD}": a GP that is told the components, the noise and the variance. What it '
            "cannot learn from the data of one function, no method can.",
        ),
        draw=lambda figure: _draw(figure, outcomes[0], errors),
        number=".3f",
        beside={"coverage": {_BANK: coverage} | dict.fromkeys((_DRAWN, _TOLD), coverage * np.nan)},
    )


def _problem(seed: int) -> _Problem:
    rng = np.random.default_rng([seed, 3])
    centres = np.where(rng.random(_N_FREQUENCIES) < 0.5, 0.0, _CENTRE)
    frequencies = centres + _SPREAD * rng.standard_normal(_N_FREQUENCIES)
    x = _INPUT_STD * rng.standard_normal(_N_ROWS)
    phase = np.outer(x, frequencies)
    Phi = np.hstack([np.cos(phase), np.sin(phase)]) / np.sqrt(_N_FREQUENCIES)  # eq. (3)
    f = Phi @ rng.standard_normal(2 * _N_FREQUENCIES)
    y = f + _NOISE_STD * rng.standard_normal(_N_ROWS)
    return _Problem(x[:, np.newaxis], y, frequencies)


def _outcome(seed: int, settings: Settings) -> _Outcome:
    def run() -> dict[str, Any]:
        settings.tell(f"data set {seed + 1}")
        problem = _problem(seed)
        drawn = np.cos(np.outer(_LAGS, problem.frequencies)).mean(axis=1)
        mean, lower, upper = _fitted(problem, seed, settings).kernel(_LAGS[:, np.newaxis])
        told = _told(problem)
        curves = {"drawn": drawn, "told": told, "mean": mean, "lower": lower, "upper": upper}
        return {name: curve.tolist() for name, curve in curves.items()}

    found = kept(parts_folder(settings, "spectral-figure-3"), f"{seed}", {"seed": seed}, run)
    return _Outcome(**{name: np.array(curve) for name, curve in found.items()})


def _told(problem: _Problem) -> Array:
    """Posterior mean of the kernel when the share of the second component alone is unknown."""
    lags = problem.X - problem.X.T
    log_evidence = np.array([_log_evidence(_mixture_kernel(lags, s), problem.y) for s in _SHARES])
    weights = np.exp(log_evidence - log_evidence.max())
    # The kernel is linear in the share.
    return _mixture_kernel(_LAGS, float(weights @ _SHARES / weights.sum()))


def _log_evidence(K: Array, y: Array) -> float:
    """Up to a constant; K is overwritten."""
    K[np.diag_indices(len(K))] += _NOISE_STD**2
    L = factorise(np.asfortranarray(K))
    white = solve_lower(L, y)
    return float(-0.5 * white @ white - np.log(L.diagonal()).sum())


def _fitted(problem: _Problem, seed: int, settings: Settings) -> Any:
    from mercer.spectral.estimator import BaNKRegressor

    model = BaNKRegressor(
        standardize=False, random_state=seed, n_jobs=settings.n_jobs, progress=False
    )
    if settings.is_quick:
        model.set_params(n_draws=40, n_warmup=40, n_chains=1)
    return model.fit(problem.X, problem.y)


def _error(curve: Array) -> float:
    return float(np.sqrt(np.mean((curve - true_kernel(_LAGS)) ** 2)))


def _claims(errors: dict[str, Array], coverage: Array, is_quick: bool) -> tuple[Claim, ...]:
    mean, error = mean_and_error(errors[_BANK])
    drawn, told = errors[_DRAWN].mean(), errors[_TOLD].mean()
    note = "a quick run judges nothing: one short chain" if is_quick else ""
    return (
        Claim(
            "BaNK approximates the kernel rather well",
            "yes (by eye, one data set)",
            f"root mean square error {mean:.3f} +- {error:.3f} over lags 0 to 6; 250 draws "
            f"{drawn:.3f}, all known but the shares {told:.3f}",
            _verdict(mean <= _LARGEST_ERROR, is_quick),
            note or f"rather well: {_LARGEST_ERROR:.2f} at most, mean over data sets",
        ),
        Claim(
            "the 90 % band holds the true kernel",
            "-",
            f"at {100 * coverage.mean():.0f} % of the lags on average, "
            f"{100 * coverage.min():.0f} % at least",
            _verdict(coverage.mean() >= _SMALLEST_COVERAGE, is_quick),
            note or f"at {100 * _SMALLEST_COVERAGE:.0f} % or more on average; a promise of mercer",
        ),
    )


def _verdict(is_met: bool, is_quick: bool) -> str:
    return "not judged" if is_quick else "holds" if is_met else "fails"


def _draw(figure: Figure, outcome: _Outcome, errors: dict[str, Array]) -> None:
    """Draw the data, the curves of the first data set, and the errors of all."""
    from mercer.plot import repeats
    from mercer.plot.style import PALETTE, dress

    figure.set_size_inches(13.0, 3.9)
    data, curves, dots = figure.subplots(1, 3, width_ratios=(1.0, 1.2, 0.9))
    dress(data)
    dress(curves)
    problem = _problem(0)
    data.plot(problem.X[:, 0], problem.y, ".", markersize=2.5, color=PALETTE["muted"])
    data.set_xlabel("x")
    data.set_ylabel("y")
    _draw_curves(curves, outcome)
    names = {"BaNK": _BANK, "250 draws": _DRAWN, "shares unknown": _TOLD}
    repeats({name: errors[key] for name, key in names.items()}, ax=dots)
    dots.set_title("dots: data sets; bar: their mean", loc="left", color=PALETTE["muted"])
    dots.set_xlabel("error of the kernel")


def _draw_curves(axes: Axes, outcome: _Outcome) -> None:
    from mercer.plot.style import FONT_SIZE, PALETTE

    axes.fill_between(
        _LAGS, outcome.lower, outcome.upper, color=PALETTE["series-1"], alpha=0.2, linewidth=0,
        label="BaNK, 90 % band",
    )  # fmt: skip
    axes.plot(_LAGS, outcome.mean, color=PALETTE["series-1"], label="BaNK, posterior mean")
    axes.plot(_LAGS, outcome.drawn, color=PALETTE["series-5"], label="250 draws, true density")
    axes.plot(_LAGS, true_kernel(_LAGS), "--", color=PALETTE["series-2"], label="true kernel")
    axes.set_xlabel("lag")
    axes.set_ylabel("kernel")
    axes.legend(fontsize=FONT_SIZE - 2, frameon=False)
