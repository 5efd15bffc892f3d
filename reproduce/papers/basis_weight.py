"""The importance weight as printed, eq. (9): its bias in the evidence and in the posterior.

Six rows of the sinc data and many runs: the product of mean weights of exact runs is unbiased for
the evidence, so the ratio of the two means is the bias of the printed weight. Then the 25 sets of
Table 1: kernels and errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercer.basis.filter import AnyFilter, PrintedFilter
from reproduce.papers.basis_chain import paper_filter
from reproduce.papers.basis_methods import SINC_METHODS
from reproduce.papers.basis_part import Part
from reproduce.papers.basis_runs import column
from reproduce.papers.basis_sinc import WIDTH, sinc_set
from reproduce.papers.basis_table_1 import sinc_rows
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.reproduction import Settings, judged, mean_and_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["evidence_ratio", "part"]

Array = NDArray[np.float64]

_N_ROWS, _N_PARTICLES = 6, 200
_N_RUNS, _QUICK_RUNS = 1000, 20
_EXACT, _PRINTED = SINC_METHODS[2], SINC_METHODS[3]


def part(settings: Settings) -> Part:
    """Bias of the evidence on six rows, and what it does to the sinc data."""
    ratio, error, few, right = _six_rows(settings)
    claims = [
        judged(
            settings, "importance weights as printed are those of the posterior", "eq. (9)",
            f"on {_N_ROWS} rows the evidence is {ratio:.2f} +- {error:.2f} of the true one",
            abs(ratio - 1.0) <= 3.0 * error, "the probability of the way back is left out",
        ),
    ]  # fmt: skip
    rows = sinc_rows(settings, (_EXACT.key, _PRINTED.key))
    exact, printed = rows[_EXACT.name], rows[_PRINTED.name]
    errors = {_PRINTED.name: np.sqrt(column(printed, "error"))}
    mean, spread = mean_and_error(errors[_PRINTED.name])
    kernels = [float(column(row, "n_kernels").mean()) for row in (printed, exact)]
    claims.append(
        judged(
            settings, "with them the error of Table 1 is found", "0.0591 with 4.5 kernels",
            f"{mean:.4f} +- {spread:.4f} with {kernels[0]:.1f} kernels; exact weights "
            f"{np.sqrt(column(exact, 'error')).mean():.4f} with {kernels[1]:.1f}",
            mean <= 0.0591 + 2.0 * spread, "within two standard errors",
        )
    )  # fmt: skip
    note = f"On the {_N_ROWS} rows {few:.2f} kernels with printed weights, {right:.2f} with exact."
    sizes = {"printed weights": printed, "exact weights": exact}
    drawn = {name: column(row, "n_kernels") for name, row in sizes.items()}
    return Part(tuple(claims), (lambda axes: _draw(axes, drawn),), errors, (note,))


def _six_rows(settings: Settings) -> list[float]:
    """See `evidence_ratio`."""

    def run() -> dict[str, list[float]]:
        settings.tell(f"the printed weight on {_N_ROWS} rows")
        n_runs = _QUICK_RUNS if settings.is_quick else _N_RUNS
        return {"found": evidence_ratio(n_runs)}

    found = kept(parts_folder(settings, "basis"), "weight", {"rows": _N_ROWS}, run)
    return list(found["found"])


def evidence_ratio(n_runs: int) -> list[float]:
    """Run printed and exact weights on the first rows of a set.

    Returns
    -------
    list of float
        Ratio of the mean evidences and its standard error; mean numbers of kernels, printed, exact.
    """
    logs, sizes = np.empty((2, n_runs)), np.empty((2, n_runs))
    data = sinc_set(0)
    X, y = data.X[:_N_ROWS], data.y[:_N_ROWS] / data.y.std()
    exact = paper_filter(WIDTH, 1.0, n_particles=_N_PARTICLES)
    printed = PrintedFilter(
        _N_PARTICLES, exact.prior, exact.sets, exact.grid, _N_ROWS, exact.scheme, _N_ROWS
    )
    filters: tuple[AnyFilter, ...] = (printed, exact)
    for which, filter_ in enumerate(filters):
        for i in range(n_runs):
            rng = np.random.default_rng([which, i])
            state = filter_.init(rng)
            for x, target in zip(X, y, strict=True):
                state, _ = filter_.learn(rng, state, x, float(target))
            logs[which, i] = state.log_evidence
            sizes[which, i] = np.exp(state.particles.log_weight) @ state.particles.size
    weights = np.exp(logs - logs.max())
    means = weights.mean(axis=1)
    relative = weights.std(axis=1, ddof=1) / means / np.sqrt(n_runs)
    ratio = float(means[0] / means[1])
    kernels = (weights * sizes).mean(axis=1) / means
    return [ratio, ratio * float(np.hypot(*relative)), *map(float, kernels)]


def _draw(axes: Axes, kernels: dict[str, Array]) -> None:
    from mercer.plot import repeats
    from mercer.plot.style import PALETTE

    repeats(kernels, published={"printed weights": 4.5}, ax=axes)
    axes.set_title("diamond: published", loc="left", color=PALETTE["muted"])
    axes.set_xlabel("kernels, sinc data")
