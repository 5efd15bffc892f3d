"""Section 4: the evidence is responsible for the generalisation of a model. Evidence over kernels.

100 training rows, a tenth of their labels turned over, q = 0.1 assumed; the test rows keep their
labels. Of each of twelve kernels, with an offset: the log evidence, and the test error of the vote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mercer.sphere.tempering import Tempering, climb_errors
from reproduce.papers.reproduction import Settings, mean_and_error
from reproduce.papers.sphere_draws import draw_classifiers, model_of
from reproduce.papers.sphere_part import Part, correlation_claim, rank_correlation, space_of
from reproduce.papers.sphere_problems import PROBLEMS, Split, split_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["part"]

Array = NDArray[np.float64]

_RATE, _N_TRAIN, _N_TEST = 0.1, 100, 460
_N_DRAWS, _THIN = 100, 2
_KERNELS: tuple[tuple[str, float | None], ...] = (
    *(("rbf", factor) for factor in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)),
    ("matern12", 1.0),
    *(("matern32", factor) for factor in (0.25, 1.0, 4.0)),
    ("linear", None),
    ("polynomial", None),
)


def part(settings: Settings) -> Part:
    """Rank correlation of log evidence and test error, for several splits of two problems."""
    n_splits = 2 if settings.is_quick else 10
    ladder = Tempering(16, 60) if settings.is_quick else Tempering()
    table: dict[str, Array] = {}
    for problem in PROBLEMS:
        settings.tell(f"evidence against test error: {problem}")
        splits = [split_of(problem, seed, _N_TRAIN, _N_TEST, _RATE) for seed in range(n_splits)]
        table[problem] = np.array([
            _evidence_and_error(split, np.random.default_rng([seed, 3]), ladder)
            for seed, split in enumerate(splits)
        ])  # fmt: skip
    return Part(
        tuple(
            correlation_claim(
                f"the more evidence, the smaller the test error: {problem}",
                "yes, citing McAllester (1998)",
                np.array([rank_correlation(*split.T) for split in values]),
                -1,
                f"{len(_KERNELS)} kernels, {n_splits} splits",
            )
            for problem, values in table.items()
        ),
        (lambda axes: _draw(axes, table),),
        notes=tuple(_note(problem, values) for problem, values in table.items()),
    )


def _evidence_and_error(
    split: Split, rng: np.random.Generator, ladder: Tempering
) -> list[list[float]]:
    """Of every kernel: log evidence in nats, test error of the vote in per cent."""
    rows = []
    for kernel, factor in _KERNELS:
        space = space_of(kernel, factor, split.X, 1.0)
        design = space.design()
        model = model_of(design.L, split.labels, _RATE)
        log_evidence, _ = climb_errors(rng, model.L, ladder).law().log_evidence(model.noise)
        g = draw_classifiers(rng, model, _N_DRAWS, thin=_THIN)
        f, _ = space.latent(split.X_test, space.coefficients(design, g))
        is_wrong = (np.mean(f > 0.0, axis=0) > 0.5) != split.labels_test
        rows.append([log_evidence, 100.0 * float(is_wrong.mean())])
    return rows


def _note(problem: str, values: Array) -> str:
    """How good the kernel of most evidence is beside the best and the average one."""
    errors = values[:, :, 1]
    chosen = errors[np.arange(len(values)), values[:, :, 0].argmax(axis=1)]
    means = [
        "{:.1f} +- {:.1f}".format(*mean_and_error(e))
        for e in (chosen, errors.min(axis=1), errors.mean(axis=1))
    ]
    return (
        f"Test error on {problem}, per cent: {means[0]} for the kernel of most evidence, "
        f"{means[1]} for the best in hindsight, {means[2]} on average."
    )


def _draw(axes: Axes, table: dict[str, Array]) -> None:
    from mercer.plot.style import CHAIN_COLOURS, FONT_SIZE

    for colour, (problem, values) in zip(CHAIN_COLOURS, table.items(), strict=False):
        below = values[:, :, 0] - values[:, :, 0].max(axis=1, keepdims=True)
        axes.plot(
            below.ravel(), values[:, :, 1].ravel(), "o", markersize=2.5, alpha=0.35, color=colour
        )
        axes.plot(
            below.mean(axis=0), values[:, :, 1].mean(axis=0), "D", markersize=6, color=colour,
            label=problem,
        )  # fmt: skip
    axes.set_xlabel("log evidence less the best of the split, nats")
    axes.set_ylabel("test error, %")
    axes.set_title("evidence and test error of kernels", fontsize=FONT_SIZE)
    axes.legend(fontsize=FONT_SIZE - 3, frameon=False)
