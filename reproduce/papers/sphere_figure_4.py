"""Graepel & Herbrich, Figure 4: Bayes point against quadratic soft margin, 5 % of labels wrong.

100 repeats of 100 training and 1000 test rows on the sphere of R^3, labels of both wrong at 5 %.
The Bayes point is the mean of 100 unit classifiers by the paper's great-circle step, at an assumed
rate q; every tenth step is kept. The soft margin is the hard margin under the kernel
<x, x'> + lambda I(x = x'), once without an offset, as the paper's classifiers are (`LinearSVC` with
squared hinge loss, C = 1/(2 lambda), is the same problem), and once with the offset of `SVC`.

Beyond the paper: penalties up to 1000, and true classifiers that are drawn from the prior. The
paper's true classifier is opposite to the mean of the rows, and it is the direction that the
largest penalties choose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC, LinearSVC

from reproduce.papers.reproduction import (
    Claim,
    Reproduction,
    Settings,
    is_clearly_below_zero,
    mean_and_error,
)
from reproduce.papers.sphere_draws import draw_by_great_circles, model_of, unit
from reproduce.papers.sphere_problems import sphere_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["reproduce", "soft_margin"]

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

_N_TRAIN, _N_TEST, _N_DRAWS, _THIN = 100, 1000, 100, 10
_TRUE_RATE = 0.05
# Both the assumed noise rate q and the penalty lambda: the paper's shared axis.
_LEVELS = np.arange(1, 11) / 100.0
_PENALTIES = np.array([0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])
_BAYES, _SOFT, _OFFSET = "Bayes point", "soft margin", "soft margin with offset"
# Spread of mean errors over q, in per cent.
_ROBUST = 0.25
# Makes the margin hard; the largest multipliers are of the order of 1/lambda.
_HARD = 1e8


@dataclass(frozen=True)
class _Errors:
    """Test errors in per cent: one row a repeat, one column a level or penalty."""

    bayes: Array
    soft: Array
    offset: Array
    soft_wide: Array
    bayes_drawn: Array  # of the true rate, for true classifiers drawn from the prior
    soft_drawn: Array

    @property
    def bayes_correct(self) -> Array:
        """Those at the true rate: one column."""
        return self.bayes[:, [int(np.argmin(np.abs(_LEVELS - _TRUE_RATE)))]]


def reproduce(settings: Settings) -> Reproduction:
    """Errors of the three methods at every level, in per cent, on the same data."""
    n_repeats = 40 if settings.is_quick else 100
    rows = []
    for repeat in range(n_repeats):
        if repeat % 20 == 0:
            settings.tell(f"repeat {repeat + 1} of {n_repeats}")
        rows.append([*_paper_errors(repeat), *_drawn_errors(repeat)])
    errors = _Errors(*(np.array(column) for column in zip(*rows, strict=True)))
    return Reproduction(
        name="sphere-figure-4",
        title=f"Bayes point against soft margin, {100 * _TRUE_RATE:.0f} % of labels wrong",
        source="Graepel & Herbrich (2001), Figure 4",
        command="mercer reproduce sphere-figure-4" + (" --quick" if settings.is_quick else ""),
        claims=_claims(errors),
        measured=_measured(errors),
        unit="test error, %",
        published={},
        notes=(
            f"{100 * _TRUE_RATE:.0f} % of the test labels are wrong: no classifier can expect "
            "a smaller error.",
        ),
        draw=lambda figure: _draw(figure, errors),
    )


def _paper_errors(repeat: int) -> list[Array]:
    """Errors of the paper's comparison: Bayes point, soft margins, large penalties."""
    rng = np.random.default_rng([repeat, 0])
    X, labels = sphere_rows(rng, _N_TRAIN, _TRUE_RATE)
    X_test, labels_test = sphere_rows(rng, _N_TEST, _TRUE_RATE)
    values = [
        [_bayes_point(rng, X, labels, X_test, level) for level in _LEVELS],
        [soft_margin(X, labels, X_test, level) for level in _LEVELS],
        [_with_offset(X, labels, X_test, level) for level in _LEVELS],
        [soft_margin(X, labels, X_test, penalty) for penalty in _PENALTIES],
    ]
    return [_errors_of(np.array(f), labels_test) for f in values]


def _drawn_errors(repeat: int) -> list[Array]:
    """Errors of Bayes point and soft margins for a true classifier drawn from the prior."""
    rng = np.random.default_rng([repeat, 1])
    classifier, labels = rng.standard_normal(3), np.zeros(1, np.int64)
    while labels.min() == labels.max():  # rows of one class only are drawn again
        X, labels = sphere_rows(rng, _N_TRAIN, _TRUE_RATE, classifier)
    X_test, labels_test = sphere_rows(rng, _N_TEST, _TRUE_RATE, classifier)
    values = [
        [_bayes_point(rng, X, labels, X_test, _TRUE_RATE)],
        [soft_margin(X, labels, X_test, penalty) for penalty in _PENALTIES],
    ]
    return [_errors_of(np.array(f), labels_test) for f in values]


def _errors_of(f: Array, labels: IntArray) -> Array:
    return np.asarray(100.0 * ((f > 0.0) != labels).mean(axis=1))


def _bayes_point(
    rng: np.random.Generator, X: Array, labels: IntArray, X_test: Array, rate: float
) -> Array:
    g = draw_by_great_circles(rng, model_of(X, labels, rate), _N_DRAWS, _THIN)
    return np.asarray(X_test @ unit(g).mean(axis=0))


def soft_margin(X: Array, labels: IntArray, X_test: Array, penalty: float) -> Array:
    """Values of the quadratic soft margin without offset, linear kernel."""
    machine = LinearSVC(
        C=0.5 / penalty, fit_intercept=False, tol=1e-8, max_iter=100_000, random_state=0
    )
    return np.asarray(machine.fit(X, labels).decision_function(X_test))


def _with_offset(X: Array, labels: IntArray, X_test: Array, penalty: float) -> Array:
    machine = SVC(kernel="precomputed", C=_HARD)
    machine.fit(X @ X.T + penalty * np.eye(len(X)), labels)
    return np.asarray(machine.decision_function(X_test @ X.T))


def _claims(errors: _Errors) -> tuple[Claim, ...]:
    means = errors.bayes.mean(axis=0)
    spread = float(np.ptp(means))
    return (
        _comparison(
            "the Bayes point at the true rate beats the soft margin at every lambda",
            errors.bayes_correct, errors.soft, "yes",
        ),
        _comparison(
            "the Bayes point at q = lambda beats the soft margin at every lambda",
            errors.bayes, errors.soft, "yes",
        ),
        _comparison(
            "the Bayes point at q = lambda beats the soft margin with offset at every lambda",
            errors.bayes, errors.offset, "-",
        ),
        Claim(
            "the Bayes point is robust in q",
            "yes (by eye)",
            f"mean errors from {means.min():.2f} % to {means.max():.2f} %, spread {spread:.2f} %",
            "holds" if spread <= _ROBUST else "fails",
            f"robust: spread at most {_ROBUST} %, a twelfth of the height of the paper's plot",
        ),
        _comparison(
            "the Bayes point at the true rate beats the soft margin, lambda from 0.01 to 1000",
            errors.bayes_correct, errors.soft_wide, "lambda to 0.10 only",
        ),
        _comparison(
            "the same for true classifiers drawn from the prior",
            errors.bayes_drawn, errors.soft_drawn, "-",
        ),
    )  # fmt: skip


def _comparison(words: str, bayes: Array, theirs: Array, paper: str) -> Claim:
    """Paired at every lambda; the least favourable one decides."""
    differences = bayes - theirs
    gap, error = max(mean_and_error(column) for column in differences.T)
    is_clear = all(is_clearly_below_zero(column) for column in differences.T)
    note = "paired, every difference above two standard errors"
    if not is_clear:
        note = "paired" if gap > 0.0 else "paired, too few repeats to tell"
    return Claim(
        words,
        paper,
        f"{_range(bayes)} % against {_range(theirs)} %, difference at most "
        f"{gap:+.2f} +- {error:.2f} %",
        "holds" if is_clear else "fails" if gap > 0.0 else "not judged",
        note,
    )


def _range(errors: Array) -> str:
    means = errors.mean(axis=0)
    lowest, highest = f"{means.min():.2f}", f"{means.max():.2f}"
    return lowest if lowest == highest else f"{lowest} to {highest}"


def _measured(errors: _Errors) -> dict[str, Array]:
    measured = {}
    for method, symbol, values in (
        (_BAYES, "q", errors.bayes),
        (_SOFT, "lambda", errors.soft),
        (_OFFSET, "lambda", errors.offset),
    ):
        for k, level in enumerate(_LEVELS):
            measured[f"{method}, {symbol} = {level:.2f}"] = values[:, k]
    for k, penalty in enumerate(_PENALTIES):
        if penalty not in _LEVELS:
            measured[f"{_SOFT}, lambda = {penalty:g}"] = errors.soft_wide[:, k]
    measured[f"w drawn: {_BAYES}, q = {_TRUE_RATE}"] = errors.bayes_drawn[:, 0]
    for k, penalty in enumerate(_PENALTIES):
        measured[f"w drawn: {_SOFT}, lambda = {penalty:g}"] = errors.soft_drawn[:, k]
    return measured


def _draw(figure: Figure, errors: _Errors) -> None:
    """Mean errors with standard errors over the shared axis."""
    from mercer.plot.style import FONT_SIZE, PALETTE, dress

    figure.set_size_inches(7.0, 4.4)
    axes = figure.subplots()
    dress(axes)
    for method, values, marker, colour in (
        (_BAYES, errors.bayes, "o", "series-1"),
        (_SOFT, errors.soft, "^", "series-2"),
        (_OFFSET, errors.offset, "v", "muted"),
    ):
        means, bars = np.array([mean_and_error(column) for column in values.T]).T / 100.0
        axes.errorbar(
            _LEVELS, means, bars, marker=marker, markersize=6, linewidth=1.2, capsize=3,
            color=PALETTE[colour], label=method,
        )  # fmt: skip
    axes.axhline(_TRUE_RATE, color=PALETTE["ink"], linewidth=1.2, linestyle=":")
    largest = errors.soft_wide[:, -1].mean() / 100.0
    axes.axhline(
        largest, color=PALETTE["series-2"], linewidth=1.0, linestyle="--",
        label=f"{_SOFT}, lambda = {_PENALTIES[-1]:g}",
    )  # fmt: skip
    axes.set_xlabel("assumed noise rate q; penalty lambda")
    axes.set_ylabel("generalisation error")
    axes.set_ylim(_TRUE_RATE - 0.003, 0.0695)
    axes.legend(fontsize=FONT_SIZE - 1, frameon=False, ncols=2, loc="upper left")
