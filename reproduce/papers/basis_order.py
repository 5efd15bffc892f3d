"""Whether the order of the rows matters: orders against seeds of the same order.

Some sets of the sinc data, each learned in several orders and, in one order, with several seeds. If
the order were without importance beyond what chance does anyway, curves from two orders would lie
no further apart than curves from two seeds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reproduce.papers.basis_methods import make_model
from reproduce.papers.basis_part import Part
from reproduce.papers.basis_sinc import sinc_set
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.reproduction import Settings, judged, mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["mean_distance", "part"]

Array = NDArray[np.float64]

_N_SETS, _N_EACH = 10, 10
_QUICK_SETS, _QUICK_EACH = 2, 2
_KINDS = {"paper": "paper's settings", "default": "mercer, default"}
# Orders may set curves apart by so much more than seeds do.
_MOST = 1.25
_EVERY = 10


def part(settings: Settings) -> Part:
    """Distances between curves from several orders, and from several seeds."""
    claims, ratios, measured = [], {}, {}
    for kind, name in _KINDS.items():
        found = np.array([_of_set(kind, seed, settings) for seed in range(_n_sets(settings))])
        ratios[name] = found[:, 1] / found[:, 0]
        measured[f"{name}, orders"] = found[:, 3]
        measured[f"{name}, seeds"] = found[:, 2]
        mean, error = mean_and_error(ratios[name])
        seeds, orders = found[:, :2].mean(axis=0)
        words = "the order of presentation is unimportant: " + name
        ours = f"curves {orders:.4f} apart over orders, {seeds:.4f} over seeds: "
        ours += f"{mean:.2f} +- {error:.2f} times as far"
        note = f"unimportant: at most {_MOST:g} times as far as seeds alone set them"
        paper = "yes" if kind == "paper" else "-"
        claims.append(judged(settings, words, paper, ours, mean <= _MOST, note))
    return Part(tuple(claims), (lambda axes: _draw(axes, ratios),), measured)


def mean_distance(curves: Array) -> float:
    """Root mean square distance between two of several curves (n, m)."""
    # Of two independent ones: twice the variance.
    return float(np.sqrt(2.0 * curves.var(axis=0, ddof=1).mean()))


def _n_sets(settings: Settings) -> int:
    return _QUICK_SETS if settings.is_quick else _N_SETS


def _of_set(kind: str, seed: int, settings: Settings) -> list[float]:
    """Distances over seeds and over orders, then mean errors of both."""

    def run() -> dict[str, list[float]]:
        settings.tell(f"orders of set {seed + 1}, {_KINDS[kind]}")
        n = _QUICK_EACH if settings.is_quick else _N_EACH
        sets = [_curves(kind, seed, n, is_ordered=is_ordered) for is_ordered in (False, True)]
        truth = np.asarray(sinc_set(seed).f_test)[::_EVERY]
        errors = [np.sqrt(((curves - truth) ** 2).mean(axis=1)).mean() for curves in sets]
        return {"found": [*map(mean_distance, sets), *map(float, errors)]}

    stamp = {"order": kind, "seed": seed}
    found = kept(parts_folder(settings, "basis"), f"order-{kind}-{seed}", stamp, run)
    return list(found["found"])


def _curves(kind: str, seed: int, n: int, *, is_ordered: bool) -> Array:
    curves = []
    for i in range(n):
        data = sinc_set(seed, order=i if is_ordered else None)
        model = make_model(is_paper=kind == "paper", random_state=i).fit(data.X, data.y)
        curves.append(model.predict(data.X_test[::_EVERY]))
    return np.array(curves)


def _draw(axes: Axes, ratios: dict[str, Array]) -> None:
    from mercer.plot import repeats
    from mercer.plot.style import PALETTE

    repeats(ratios, ax=axes)
    axes.axvline(1.0, color=PALETTE["muted"], linewidth=0.8)
    axes.set_title("dots: sets; bar: their mean", loc="left", color=PALETTE["muted"])
    axes.set_xlabel("distance over orders / over seeds")
