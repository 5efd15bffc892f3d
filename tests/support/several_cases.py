"""Posteriors of several classes: label patterns by enumeration, exact draws, broken loops.

A pattern is the class with the largest function at each row; pattern number k has class
(k // C^i) % C at row i.
"""

from __future__ import annotations

import functools
import types

import numpy as np
from scipy.stats import chi2

from mercer.likelihoods import label_noise
from mercer.likelihoods.label_noise import Confusion, LabelNoise
from mercer.sphere.several import (
    MOVES,
    SeveralModel,
    SeveralSampler,
    _costs,
    first_moves,
    make_several_start,
)
from support.sphere_cases import orthant_probability
from support.statistics import FALSE_ALARM


def make_model(n: int, r: int, n_classes: int, kind: str = "fixed", seed: int = 50):
    """Standard normal rows, labels of random functions of which about a fifth are changed."""
    rng = np.random.default_rng(seed)
    L = rng.standard_normal((n, r))
    labels = np.argmax(rng.standard_normal((n_classes, r)) @ L.T, axis=0)
    is_changed = rng.random(n) < 0.2
    labels = np.where(is_changed, (labels + 1) % n_classes, labels).astype(np.int64)
    return SeveralModel(L, labels, noises(labels, n_classes)[kind])


def entangled(kind: str = "fixed", r: int = 3) -> SeveralModel:
    """Three rows that are much alike, each of another class: some are wrong, and by any class."""
    L = np.random.default_rng(50).standard_normal((3, r)) + 2.0
    labels = np.arange(3)
    return SeveralModel(L, labels, noises(labels, 3, 0.05)[kind])


def noises(
    labels: np.ndarray, n_classes: int, rate: float = 0.2
) -> dict[str, LabelNoise | Confusion]:
    """One of each kind of label noise."""
    n = len(labels)
    rates = np.where(np.arange(n) % 3 == 0, 0.0, 0.1 + 0.4 * np.arange(n) / n)
    matrix = np.random.default_rng(52).dirichlet(np.ones(n_classes), n_classes)
    matrix = 0.4 * matrix + 0.6 * np.eye(n_classes)
    return {
        "fixed": label_noise.fixed_rate(rate, n, n_classes),
        "per row": label_noise.row_rates(rates, n_classes),
        "learned": label_noise.learned_rate((1.0, 3.0), n, n_classes),
        "confusion": Confusion(labels, matrix),
    }


def log_likelihood(model: SeveralModel, f: np.ndarray) -> np.ndarray:
    """Log probability of the labels at latent values of shape (..., C, n), in nats."""
    if isinstance(model.noise, Confusion):
        return model.noise.log_likelihood(f.argmax(axis=-2))
    return np.asarray(model.noise.log_no_errors - model.noise.cost(model.is_wrong(f)))


def cost_of(model: SeveralModel, f: np.ndarray) -> np.ndarray:
    """Cost in nats of function values (..., C, n)."""
    return np.asarray(model.noise.log_no_errors if isinstance(model.noise, LabelNoise) else 0.0) - (
        log_likelihood(model, f)
    )


def loop_costs(model: SeveralModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group, step and row_cost as the compiled loops take them."""
    return _costs(model, None)


def n_groups(model: SeveralModel) -> int:
    """Length of the errors that the loops keep count of."""
    return len(model.noise.sizes) if isinstance(model.noise, LabelNoise) else 1


def separable(model: SeveralModel, noise: LabelNoise | None = None) -> SeveralModel:
    """The same rows with labels that some functions give, and no noise."""
    rng = np.random.default_rng(51)
    f = rng.standard_normal((model.n_classes, model.rank)) @ model.L.T
    labels = np.argmax(f, axis=0).astype(np.int64)
    rate = label_noise.fixed_rate(0.0, model.n_rows, model.n_classes)
    return SeveralModel(model.L, labels, noise or rate)


def record(f: np.ndarray, g: np.ndarray) -> dict[str, np.ndarray]:
    """Keep the functions and their values."""
    return {"coef": g, "latent": f}


def make_several(
    model: SeveralModel, names: tuple[str, ...] = MOVES, n_cycles: int = 1
) -> SeveralSampler:
    """A sampler that has not been warmed up."""
    moves = first_moves(model, names)
    return SeveralSampler(model, moves, make_several_start(model), record, n_cycles)


def scratch(n: int) -> tuple[np.ndarray, ...]:
    """Scratch arrays of `sweep_class`: gap, side, floats, rows, marks."""
    return (
        np.empty(n),
        np.empty(n, np.int64),
        np.empty((3, n + 1)),
        np.empty(n, np.int64),
        np.zeros(8 * ((n + 7) // 8), np.uint8),
    )


# --- patterns ------------------------------------------------------------------------------------


def patterns(n: int, n_classes: int) -> np.ndarray:
    """All patterns in order, shape (C^n, n)."""
    return (np.arange(n_classes**n)[:, None] // n_classes ** np.arange(n)) % n_classes


def pattern_number(f: np.ndarray) -> np.ndarray:
    """Number of the pattern of function values (..., C, n)."""
    n_classes, n = f.shape[-2:]
    return np.argmax(f, axis=-2) @ n_classes ** np.arange(n)


def pattern_posterior(model: SeveralModel) -> np.ndarray:
    """Posterior probabilities of all patterns, n (C - 1) <= 6."""
    prior = _pattern_probabilities(np.ascontiguousarray(model.L).tobytes(), *model.L.shape,
                                   model.n_classes)  # fmt: skip
    chosen = patterns(model.n_rows, model.n_classes)
    if isinstance(model.noise, Confusion):
        joint = prior * np.exp(model.noise.log_likelihood(chosen))
    else:
        joint = prior * np.exp(-model.noise.cost(chosen != model.labels))
    return joint / joint.sum()


@functools.cache
def _pattern_probabilities(rows: bytes, n: int, r: int, n_classes: int) -> np.ndarray:
    """A pattern is an orthant of the leads of its classes over all others at each row."""
    L = np.frombuffer(rows).reshape(n, r)
    K = L @ L.T
    row, covariances = np.repeat(np.arange(n), n_classes - 1), []
    for s in patterns(n, n_classes):
        other = np.concatenate([[c for c in range(n_classes) if c != a] for a in s])
        contrast = np.eye(n_classes)[s[row]] - np.eye(n_classes)[other]
        covariances.append(K[np.ix_(row, row)] * (contrast @ contrast.T))
    S = np.array(covariances)
    scale = np.sqrt(np.einsum("kii->ki", S))
    return orthant_probability(S / (scale[:, :, None] * scale[:, None, :]))


def exact_draws(rng: np.random.Generator, model: SeveralModel, count: int) -> np.ndarray:
    """Posterior draws of g, (count, C, r), by rejection: a prior draw passes at exp(-cost)."""
    kept, n_kept = [], 0
    while n_kept < count:
        g = rng.standard_normal((8192, model.n_classes, model.rank))
        is_kept = rng.random(8192) < np.exp(-cost_of(model, g @ model.L.T))
        kept.append(g[is_kept])
        n_kept += int(is_kept.sum())
    return np.concatenate(kept)[:count]


def chi_square(numbers: np.ndarray, posterior: np.ndarray) -> tuple[float, float]:
    """Statistic of pattern numbers of iid draws, and its limit at a false alarm of 1e-6.

    Patterns of which fewer than 20 are expected are put together.
    """
    seen = np.bincount(numbers, minlength=len(posterior)).astype(float)
    expected = len(numbers) * posterior
    is_large = expected >= 20.0
    if not is_large.all():
        seen = np.append(seen[is_large], seen[~is_large].sum())
        expected = np.append(expected[is_large], max(expected[~is_large].sum(), 1e-9))
    statistic = float(((seen - expected) ** 2 / expected).sum())
    return statistic, float(chi2.isf(FALSE_ALARM, len(expected) - 1))


# --- broken loops --------------------------------------------------------------------------------

# The cache would give the loops of the file that was not broken.
_MARK = "from mercer.numerics.compilation import compiled\n"
_MARK_WITHOUT_CACHE = """import numba
def compiled(*, allocates=False, **options):
    return numba.njit(_nrt=allocates, **options)
"""


def broken(
    module: types.ModuleType, old: str, new: str, source_of: types.ModuleType | None = None
) -> types.ModuleType:
    """A compiled module with one piece of its source replaced, compiled anew.

    With ``source_of``, a module that this made, its source is broken once more.
    """
    path = str(module.__file__)
    if source_of is None:
        with open(path) as file:
            source = file.read().replace(_MARK, _MARK_WITHOUT_CACHE)
    else:
        source = source_of.__dict__["SOURCE"]
    assert source.count(old) == 1, f"{old!r} is not in the source exactly once"
    result = types.ModuleType(module.__name__ + "_broken")
    result.__dict__["SOURCE"] = source.replace(old, new)
    exec(compile(result.__dict__["SOURCE"], path, "exec"), result.__dict__)
    return result
