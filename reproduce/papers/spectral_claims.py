"""Oliva et al., Proposition 2.2: how fast the kernel of M random frequencies nears the true one.

The claim is that the probability of an error above eps somewhere on a compact set is
O(exp(-M eps^2 / (4 (d + 2)))). The constant is left free, so what can be tested is the slope of the
log probability in M. Spectral density N(0, I), so k(x, y) = exp(-|x - y|^2 / 2), on the cube
[-1, 1]^d; the largest error over a set of differences x - y stands for that over all of them: every
point of a grid in one and two dimensions, random points in five.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.reproduction import Claim, Reproduction, Settings, judged

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Curve", "exceedance", "fitted_slope", "reproduce"]

Array = NDArray[np.float64]
Draw = Callable[[tuple[int, int]], Array]

_NAME = "spectral-claims"
_DIMENSIONS, _EPSILONS = (1, 2, 5), (0.2, 0.3)
# M eps^2: from where an error above eps is rarer than every second time, to where it is rare.
_SCALED_SIZES = (1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
_N_REPEATS, _QUICK_REPEATS = 4000, 100
_N_POINTS = {1: 101, 2: 21, 5: 400}
_AT_ONCE = 50
# Probabilities that the slope is fitted to: above a half they are bent by their bound of 1, and
# fewer events than this say little.
_LARGEST, _FEWEST = 0.5, 10
# A slope is below the bound if it is so by this many standard errors.
_CLEAR = 2.0


@dataclass(frozen=True)
class Curve:
    """Of one dimension and eps: how often the largest error was above eps, for each M."""

    d: int
    epsilon: float
    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    n_repeats: int

    @property
    def bound(self) -> float:
        """Slope of the log probability in M that the proposition promises at least."""
        return -(self.epsilon**2) / (4.0 * (self.d + 2))


def reproduce(settings: Settings) -> Reproduction:
    """Draw frequencies and count, for each dimension, eps and M."""
    curves = [_curve(d, epsilon, settings) for d in _DIMENSIONS for epsilon in _EPSILONS]
    return Reproduction(
        name=_NAME,
        title="Proposition 2.2: errors of the approximated kernel",
        source="Oliva et al. (2016), Proposition 2.2",
        command=f"mercer reproduce {_NAME}" + (" --quick" if settings.is_quick else ""),
        claims=tuple(_claim(d, [c for c in curves if c.d == d], settings) for d in _DIMENSIONS),
        measured={
            f"d = {curve.d}, eps = {curve.epsilon:g}, M = {size}": np.array(
                [count / curve.n_repeats]
            )
            for curve in curves
            for size, count in zip(curve.sizes, curve.counts, strict=True)
        },
        unit="share of repeats with an error above eps",
        published={},
        notes=_notes(curves),
        draw=lambda figure: _draw(figure, curves),
        number=".4f",
        tables=(_table(curves),),
    )


def _curve(d: int, epsilon: float, settings: Settings) -> Curve:
    n_repeats = _QUICK_REPEATS if settings.is_quick else _N_REPEATS
    sizes = tuple(round(scaled / epsilon**2) for scaled in _SCALED_SIZES)

    def run() -> dict[str, list[int]]:
        settings.tell(f"errors of kernels, d = {d}, eps = {epsilon:g}")
        rng = np.random.default_rng([d, round(1000 * epsilon)])
        return {
            "counts": [
                exceedance(rng.standard_normal, d, epsilon, size, n_repeats) for size in sizes
            ]
        }

    stamp = {"d": d, "epsilon": epsilon, "sizes": list(sizes), "repeats": n_repeats}
    found = kept(parts_folder(settings, _NAME), f"d{d}-eps{epsilon:g}", stamp, run)
    return Curve(d, epsilon, sizes, tuple(int(count) for count in found["counts"]), n_repeats)


def exceedance(draw: Draw, d: int, epsilon: float, size: int, n_repeats: int) -> int:
    """Count the repeats in which the error of ``size`` frequencies is above eps somewhere.

    Parameters
    ----------
    draw : callable
        (shape) -> frequencies from N(0, I).
    """
    D = differences(d)
    truth = np.exp(-0.5 * (D**2).sum(axis=1))
    count = 0
    for begin in range(0, n_repeats, _AT_ONCE):
        n_now = min(_AT_ONCE, n_repeats - begin)
        W = draw((n_now * size, d))
        # Eq. (3): phi(x)'phi(y) with cosines and sines of W x is the mean of cos(w'(x - y)).
        estimate = np.cos(W @ D.T).reshape(n_now, size, -1).mean(axis=1)
        count += int(np.count_nonzero(np.abs(estimate - truth).max(axis=1) > epsilon))
    return count


def differences(d: int) -> Array:
    """Differences of points of [-1, 1]^d at which errors are looked at; never x and -x both."""
    n = _N_POINTS[d]
    if d <= 2:
        axes = [np.linspace(0.0, 2.0, n), *[np.linspace(-2.0, 2.0, n)] * (d - 1)]
        return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, d)
    return np.asarray(np.random.default_rng(d).uniform(-2.0, 2.0, (n, d)))


def fitted_slope(curve: Curve) -> tuple[float, float]:
    """Slope of the log probability in M by weighted least squares, and its standard error."""
    sizes, counts = np.array(curve.sizes, np.float64), np.array(curve.counts, np.float64)
    proba = counts / curve.n_repeats
    is_used = (proba <= _LARGEST) & (counts >= _FEWEST)
    if np.count_nonzero(is_used) < 2:
        return np.nan, np.nan
    x, p = sizes[is_used], proba[is_used]
    weights = curve.n_repeats * p / (1.0 - p)  # one over the variance of log p
    centred = x - np.average(x, weights=weights)
    precision = float(weights @ centred**2)
    return float((weights * centred) @ np.log(p)) / precision, precision**-0.5


def _claim(d: int, curves: list[Curve], settings: Settings) -> Claim:
    slopes = [fitted_slope(curve) for curve in curves]
    is_met = all(
        slope + _CLEAR * error <= curve.bound
        for (slope, error), curve in zip(slopes, curves, strict=True)
    )
    return judged(
        settings,
        f"the probability of an error above eps falls in M at least as fast as promised: d = {d}",
        "; ".join(f"eps = {c.epsilon:g}: exponent {c.bound:.4f} M" for c in curves),
        "; ".join(f"{slope:.4f} +- {error:.4f} M" for slope, error in slopes),
        is_met,
        "the constant is left free; at least as fast by two standard errors",
    )


def _notes(curves: list[Curve]) -> tuple[str, ...]:
    first = curves[-1]
    share = first.counts[-1] / first.n_repeats
    # Rahimi & Recht (2007), Claim 1: 2^8 (sigma_p diam / eps)^2 exp(-M eps^2 / (4 (d + 2))).
    factor = 2.0**8 * first.d * 4.0 * first.d / first.epsilon**2
    size = np.log(factor) / -first.bound
    return (
        "What the O hides grows with the diameter of the set and with the second moment of the "
        "spectral density, neither of which the proposition defines, and with 1 / eps. With the "
        "constant of its source (Rahimi & Recht, 2007), the spread taken as the root of the trace "
        f"of the second moment, the bound is below 1 from M = {size:.0f} on for d = {first.d}, "
        f"eps = {first.epsilon:g}; the share that is seen is {share:.4f} at M = {first.sizes[-1]} "
        "already. As a number it says nothing at sizes in use, and only the slope is tested.",
        f"{first.n_repeats} repeats for each M. Errors are looked at in finitely many places, so "
        "the shares are of an error somewhere among these, not on the whole set.",
    )


def _table(curves: list[Curve]) -> str:
    scaled = [f"M eps^2 = {value:g}" for value in _SCALED_SIZES]
    heads = ["d", "eps", *scaled, "slope in M", "promised", "times as fast"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for curve in curves:
        slope, error = fitted_slope(curve)
        cells = [str(curve.d), f"{curve.epsilon:g}"]
        cells += [f"{count / curve.n_repeats:.4f}" for count in curve.counts]
        cells += [f"{slope:.4f} ± {error:.4f}", f"{curve.bound:.4f}", f"{slope / curve.bound:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _draw(figure: Figure, curves: list[Curve]) -> None:
    """Log probabilities over M, a panel for each dimension; dashed the slope that is promised."""
    from mercer.plot.style import CHAIN_COLOURS, FONT_SIZE, dress

    figure.set_size_inches(11.0, 3.8)
    panels = figure.subplots(1, len(_DIMENSIONS), sharey=True)
    for axes, d in zip(panels, _DIMENSIONS, strict=True):
        dress(axes)
        own = [curve for curve in curves if curve.d == d]
        for colour, curve in zip(CHAIN_COLOURS, own, strict=False):
            x, counts = np.array(curve.sizes), np.array(curve.counts)
            seen = counts > 0
            proba = counts[seen] / curve.n_repeats
            axes.plot(x[seen], proba, "o-", color=colour, label=f"eps = {curve.epsilon:g}")
            if len(proba):
                promised = proba[0] * np.exp(curve.bound * (x - x[seen][0]))
                axes.plot(x, promised, color=colour, linewidth=1.0, dashes=(4, 3))
        axes.set_yscale("log")
        axes.set_title(f"d = {d}; dashed: promised slope", fontsize=FONT_SIZE)
        axes.set_xlabel("frequencies M")
        axes.legend(fontsize=FONT_SIZE - 2, frameon=False)
    panels[0].set_ylabel("share with an error above eps")
