"""Section 4: at q = 0 the margin is a measure of the evidence. Is it?

The margin is the largest min_i y_i <w, x_i> over |w| = 1, rows scaled to length 1 (which changes no
version space), and the evidence is the share of the sphere on which every row is right. Both over
three families, of which the paper names none:

- kernels: four smoothnesses and length scales from a twentieth to 1.4 median distances, labels
  fixed;
- weights of the inputs of a linear kernel, so that the rank stays the same;
- labels: one kernel, labels of classifiers drawn with other length scales.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from mercer.likelihoods.label_noise import fixed_rate
from mercer.sphere.sampler import signed_rows
from mercer.sphere.tempering import Tempering, climb_errors
from reproduce.papers.reproduction import Settings
from reproduce.papers.sphere_part import Part, correlation_claim, rank_correlation, space_of
from reproduce.papers.sphere_problems import plane_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["margin", "part"]

Array = NDArray[np.float64]

_N_ROWS, _N_MEMBERS = 50, 20
_KERNELS = (
    *(("rbf", factor) for factor in (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4)),
    *(("matern12", factor) for factor in (0.1, 0.5, 2.0)),
    *(("matern32", factor) for factor in (0.1, 0.3, 1.0, 2.0)),
    *(("matern52", factor) for factor in (0.2, 0.5, 1.0)),
)
_MAX_STEPS = 100_000


def part(settings: Settings) -> Part:
    """Rank correlations of margin and log evidence within each family, for several data sets."""
    n_sets = 2 if settings.is_quick else 10
    ladder = Tempering(16, 60) if settings.is_quick else Tempering()
    pairs: dict[str, list[Array]] = {}
    for name, family in _FAMILIES.items():
        settings.tell(f"margin against evidence: {name}")
        for seed in range(n_sets):
            rng = np.random.default_rng([seed, 2])
            rows = [_margin_and_evidence(rng, S, ladder) for S in family(rng)]
            pairs.setdefault(name, []).append(np.array(rows))
    correlations = {
        name: np.array([rank_correlation(*values.T) for values in sets])
        for name, sets in pairs.items()
    }
    n_unknown = sum(int(np.isnan(values).any(axis=1).sum()) for v in pairs.values() for values in v)
    return Part(
        tuple(
            correlation_claim(
                f"at q = 0 the margin is a measure of the evidence: {name}",
                "yes, citing Herbrich et al. (1999)", values, 1, f"over {n_sets} data sets",
            )
            for name, values in correlations.items()
        ),
        (lambda axes: _draw(axes, {name: sets[0] for name, sets in pairs.items()}),),
        notes=(
            "Of near orthogonal rows every labelling has the same large margin and the evidence "
            "2^-n: the margin compares labels or kernels of one rank, not length scales."
            + (f" Left out for want of an estimate: {n_unknown}." if n_unknown else ""),
        ),
    )  # fmt: skip


def margin(S: Array) -> float:
    """Largest min_i <w, S_i>/|S_i| over |w| = 1: the distance of 0 from the hull of the rows.

    The nearest point of the hull has the direction of the a >= 0 that minimises
    |S'a|^2 + (1 - 1'a)^2, which is margin^2 / (1 + margin^2) there.
    """
    unit = S / np.linalg.norm(S, axis=1, keepdims=True)
    A = np.vstack([unit.T, np.ones(len(S))])
    _, distance = nnls(A, np.append(np.zeros(S.shape[1]), 1.0), maxiter=_MAX_STEPS)
    return float(distance / np.sqrt(1.0 - distance**2))


def _margin_and_evidence(
    rng: np.random.Generator, S: Array, ladder: Tempering
) -> tuple[float, float]:
    law = climb_errors(rng, S, ladder).law()
    return margin(S), law.log_evidence(fixed_rate(0.0, len(S)))[0]


def _of_kernels(rng: np.random.Generator) -> list[Array]:
    X, labels = plane_rows(rng, _N_ROWS)
    designs = [space_of(kernel, factor, X, 0.0).design() for kernel, factor in _KERNELS]
    return [signed_rows(design.L, labels) for design in designs]


def _of_weights(rng: np.random.Generator) -> list[Array]:
    X = rng.standard_normal((_N_ROWS, 4))
    labels = (X[:, 0] + 0.3 * X[:, 1] > 0.0).astype(np.int64)
    X[:, 0] += 0.7 * (2 * labels - 1)
    weights = rng.dirichlet(np.ones(4), _N_MEMBERS)
    return [signed_rows(X * np.sqrt(w), labels) for w in weights]


def _of_labels(rng: np.random.Generator) -> list[Array]:
    X, _ = plane_rows(rng, _N_ROWS)
    L = space_of("rbf", 0.4, X, 0.0).design().L
    members = []
    for factor in np.exp(rng.uniform(np.log(0.2), np.log(1.6), _N_MEMBERS)):
        own = space_of("rbf", float(factor), X, 0.0).design().L
        f = own @ rng.standard_normal(own.shape[1])
        members.append(signed_rows(L, (f > 0.0).astype(np.int64)))
    return members


_FAMILIES: dict[str, Callable[[np.random.Generator], list[Array]]] = {
    "kernels of all length scales": _of_kernels,
    "linear kernels, inputs weighted": _of_weights,
    "labels, one kernel": _of_labels,
}


def _draw(axes: Axes, pairs: dict[str, Array]) -> None:
    from mercer.plot.style import CHAIN_COLOURS, FONT_SIZE

    for colour, (name, values) in zip(CHAIN_COLOURS, pairs.items(), strict=False):
        axes.plot(values[:, 0], values[:, 1], "o", markersize=4, color=colour, label=name)
    axes.set_xscale("log")
    axes.set_xlabel("margin")
    axes.set_ylabel("log evidence at q = 0, nats")
    axes.set_title("margin and evidence, one data set", fontsize=FONT_SIZE)
    axes.legend(fontsize=FONT_SIZE - 3, frameon=False, loc="lower right")
