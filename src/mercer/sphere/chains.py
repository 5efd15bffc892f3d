"""The sampler of a model, by the number of classes and rows, and what a draw of it keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.errors import UsageError
from mercer.likelihoods.label_noise import Confusion, LabelNoise
from mercer.sampling.sampler import Adaptation, Sampler
from mercer.sphere.adaptation import SphereAdaptation, first_moves
from mercer.sphere.design import Design
from mercer.sphere.model import SphereModel, signed_rows
from mercer.sphere.moves import default_moves
from mercer.sphere.sampler import SphereSampler
from mercer.sphere.screened.sampler import ScreenedSampler
from mercer.sphere.screened.warmup import ScreenedAdaptation, first_screening
from mercer.sphere.several.adaptation import SeveralAdaptation
from mercer.sphere.several.model import SeveralModel
from mercer.sphere.several.moves import cycles_a_step
from mercer.sphere.several.moves import default_moves as default_several_moves
from mercer.sphere.several.moves import first_moves as first_several_moves
from mercer.sphere.several.sampler import SeveralSampler
from mercer.sphere.several.start import make_several_start
from mercer.sphere.space import Space
from mercer.sphere.start import make_start
from mercer.sphere.tempering import TemperedSampler

__all__ = ["LARGEST_WHOLE", "Chains", "LinearStart", "check_sampler", "make_chains"]

Array = NDArray[np.float64]

# More rows of finite features than this are screened; there is no table of all of them.
LARGEST_WHOLE = 5000
# Trajectories of a step of the screened sampler.
_SCREENED_TRAJECTORIES = 16
# Rows that the linear start of a screened chain is fitted to.
_START_ROWS = 200_000
# Powers of the likelihood where rungs are asked for.
_POWERS = tuple(np.linspace(0.0, 1.0, 8).tolist())


@dataclass(frozen=True)
class Chains:
    """A sampler with its warm-up."""

    sampler: Sampler[Any, Any]
    adaptation: Adaptation | None


def check_sampler(sampler: str, noise: LabelNoise | Confusion) -> None:
    """Check what can be known before anything is computed.

    Raises
    ------
    UsageError
        If the sampler or the noise does not go with so many classes or rows.
    """
    if isinstance(noise, Confusion) and sampler == "hmc":
        raise UsageError(
            "sampler='hmc' with more than two classes needs one noise rate, or one a row; use "
            "'auto' or 'lines'"
        )
    if noise.n_classes > 2 and sampler not in ("auto", "hmc", "lines"):
        raise UsageError(f"sampler={sampler!r} is for two classes; use 'auto', 'hmc' or 'lines'")
    if isinstance(noise, Confusion) or noise.n_classes > 2 or len(noise.group) <= LARGEST_WHOLE:
        return
    if sampler not in ("auto", "hmc"):
        raise UsageError(
            f"sampler={sampler!r} needs at most {LARGEST_WHOLE} rows; use 'auto' or 'hmc'"
        )
    if not noise.is_common or noise.must_be_right.any():
        raise UsageError(
            f"above {LARGEST_WHOLE} rows noise_rate must be one number above 0, or 'learn'"
        )


def make_chains(
    space: Space,
    labels: NDArray[np.int64],
    noise: LabelNoise | Confusion,
    sampler: str,
    rows: NDArray[np.int64],
    n_warmup: int,
) -> Chains:
    """Make the sampler of one model.

    Parameters
    ----------
    space : Space
    labels : ndarray of shape (n,), int64
        0..C-1.
    noise : LabelNoise or Confusion
    sampler : str
        "auto", "tempered", or one move.
    rows : ndarray of shape (k,), int64
        Those whose margins are monitored.
    n_warmup : int
    """
    if isinstance(noise, Confusion) or noise.n_classes > 2:
        return _several(space, labels, noise, sampler, rows, n_warmup)
    if len(labels) > LARGEST_WHOLE:
        return _screened(space, labels, noise, rows, n_warmup)
    design = space.design()
    model = SphereModel(signed_rows(design.L, labels), noise)
    recorder = _Recorder(space, design, _lengths(design.L), rows)
    start = make_start(model)
    if sampler == "tempered":
        moves = first_moves(default_moves(model.rank), model)
        tempered = TemperedSampler(model, _POWERS, (moves,) * len(_POWERS), start, recorder)
        return Chains(tempered, None)
    names: tuple[str, ...] = (sampler,)
    if sampler == "auto":
        names = default_moves(model.rank, _n_trajectories(model.n_rows))
    chain = SphereSampler(model, first_moves(names, model), start, recorder)
    return Chains(chain, SphereAdaptation(n_warmup))


@dataclass(frozen=True)
class _Recorder:
    """Name the parts of a classifier of two classes that a draw keeps."""

    space: Space
    design: Design
    lengths: Array  # of the rows of the feature space
    rows: NDArray[np.int64]  # the monitored ones

    def __call__(self, f: Array, g: Array) -> Mapping[str, NDArray[Any]]:
        """Return coefficients, their length, errors, and margins as cosines."""
        length = np.linalg.norm(g)
        return {
            "coefficients": self.space.coefficients(self.design, g),
            "length": np.asarray(length),
            "is_wrong": f <= 0.0,
            "margin": f[self.rows] / (length * self.lengths[self.rows]),
        }


def _n_trajectories(n: int) -> int:
    """Trajectories of one draw: so many that a draw takes some milliseconds at most."""
    return int(np.clip(12_000 // n, 2, 16))


def _lengths(L: NDArray[np.floating[Any]]) -> Array:
    lengths = np.sqrt(np.einsum("ij,ij->i", L, L)).astype(np.float64)
    return np.where(lengths > 0.0, lengths, 1.0)


def _several(
    space: Space,
    labels: NDArray[np.int64],
    noise: LabelNoise | Confusion,
    sampler: str,
    rows: NDArray[np.int64],
    n_warmup: int,
) -> Chains:
    design = space.design()
    model = SeveralModel(design.L, labels, noise)
    names = {"auto": default_several_moves(model), "lines": ("lines", "ellipse"), "hmc": ("hmc",)}
    moves = first_several_moves(model, names[sampler])
    recorder = _SeveralRecorder(space, design, _lengths(design.L), rows, labels)
    n_cycles = cycles_a_step(model, moves.names)
    chain = SeveralSampler(model, moves, make_several_start(model), recorder, n_cycles)
    return Chains(chain, SeveralAdaptation(n_warmup))


@dataclass(frozen=True)
class _SeveralRecorder:
    """Name the parts of classifiers of several classes that a draw keeps."""

    space: Space
    design: Design
    lengths: Array
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __call__(self, g: Array, f: Array) -> Mapping[str, NDArray[Any]]:
        """Return the same; the margin is the lead of the recorded class over the best other."""
        length = np.linalg.norm(g)
        everyone = np.arange(len(self.labels))
        own = f[self.labels, everyone]
        others = f.copy()
        others[self.labels, everyone] = -np.inf
        lead = own - others.max(axis=0)
        return {
            "coefficients": self.space.coefficients(self.design, g),
            "length": np.asarray(length),
            "is_wrong": lead <= 0.0,
            "chosen": np.where(lead > 0.0, self.labels, others.argmax(axis=0)).astype(np.int16),
            "margin": lead[self.rows] / (length * self.lengths[self.rows]),
        }


def _screened(
    space: Space,
    labels: NDArray[np.int64],
    noise: LabelNoise,
    rows: NDArray[np.int64],
    n_warmup: int,
) -> Chains:
    L = space.single_precision_rows()
    np.multiply(L, np.where(labels == 1, np.float32(1.0), np.float32(-1.0))[:, np.newaxis], out=L)
    start = LinearStart(L)
    guess = start(np.random.default_rng(0))
    chain = ScreenedSampler(
        L, noise, first_screening(L, guess), _SCREENED_TRAJECTORIES, start,
        _ScreenedRecorder(L[rows].astype(np.float64), _lengths(L[rows])),
    )  # fmt: skip
    return Chains(chain, ScreenedAdaptation(n_warmup))


@dataclass(frozen=True)
class LinearStart:
    """Least squares on some of the rows, others for every chain."""

    L: NDArray[np.floating[Any]]

    def __call__(self, rng: np.random.Generator) -> Array:
        """Draw the rows and fit; the length is that of a draw from the prior."""
        n, r = self.L.shape
        chosen = np.sort(rng.choice(n, min(n, max(_START_ROWS, 10 * r)), replace=False))
        A = self.L[chosen]
        product = (A.T @ A).astype(np.float64)
        product.flat[:: r + 1] += 1e-6 * product.trace() / r
        g = np.linalg.solve(product, A.sum(axis=0))
        return np.asarray(g * (math.sqrt(r) / np.linalg.norm(g)))


@dataclass(frozen=True)
class _ScreenedRecorder:
    """What a draw of many rows keeps: too many to say of each whether it is wrong."""

    L: Array  # of the monitored rows
    lengths: Array

    def __call__(self, n_errors: int, g: Array) -> Mapping[str, NDArray[Any]]:
        """Return coefficients, their length, the number of errors, and margins as cosines."""
        length = np.linalg.norm(g)
        return {
            "coefficients": g,
            "length": np.asarray(length),
            "n_errors": np.asarray(float(n_errors)),
            "margin": self.L @ g / (length * self.lengths),
        }
