"""BaNK for classes as the paper has it: each frequency moves together with its own coefficients.

**Target** p(W, beta, ridge, Z, mu, Sigma, ... | y), as in `mercer.spectral.classes.sampler`.

**One step** (a sweep; `mercer.spectral.classes.trajectory` says what may go before it)

1. Proposals W* for all frequencies given Z, mu, Sigma; each depends on its own W_j at most.
2. For each frequency in its turn, f being what all others make of the functions: its coefficients
   beta_j* ~ Lap(. | W_j*), a normal law around the mode of their posterior, and both accepted by

       p(y | W*, beta*) p(beta*) Lap(beta_j | W_j) / (p(y | W, beta) p(beta) Lap(beta_j* | W_j*))

   eqs. (14), (15). The search for either mode starts at 0, so that Lap depends on nothing that
   changes with the decision. Several functions share W_j: the product over them decides.
3. The coefficients of the linear parts, by Polya-Gamma variables.
4. The ridges and the precisions of the linear parts given the coefficients.
5. Z with the signs of the frequencies, (mu, Sigma), base scale, concentration.

**Symbols** (paper -> code): W -> ``frequencies``, beta -> ``coef``.

**Deviations.** The paper prints Lap(beta_j* | W_j) in the numerator: the chain would have another
law. The ridge is drawn; a linear part; several classes.

**Cost** of a step: O((C - 1) n M d). All rows must be in memory.

References
----------
.. [1] Oliva et al., Bayesian nonparametric kernel-learning (AISTATS 2016), section 3.3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer.features.products import fill_features
from mercer.spectral.classes.chain import ClassChain
from mercer.spectral.classes.compiled import move_jointly
from mercer.spectral.classes.labels import signs_of
from mercer.spectral.classes.model import logistic_coefficients
from mercer.spectral.classes.products import polya_gamma
from mercer.spectral.classes.state import ClassState
from mercer.spectral.probe import design
from mercer.spectral.proposals import propose
from mercer.spectral.rows import MemoryRows, TrainingRows
from mercer.spectral.sampler import SpectralInfo

__all__ = ["JointSampler"]

Array = NDArray[np.float64]

# Numbers of one table of features that are in memory at a time: 8 MiB.
_MOST_NUMBERS = 2**20
_ROWS_AT_ONCE = 1024


@dataclass(frozen=True, eq=False)
class JointSampler(ClassChain):
    """Sweeps over frequencies with their coefficients; attributes are those of the base."""

    def step(self, rng: np.random.Generator, state: ClassState) -> tuple[ClassState, SpectralInfo]:
        """Take one sweep."""
        state, trajectory = self.before_sweep(rng, state)
        X, codes = _in_memory(self.rows)
        sign = signs_of(codes, self.n_sticks)
        coef = state.coef
        f = _functions(X, state.frequencies, coef, self.model.n_linear > 0)
        W, accepted = self._sweep(rng, state, X, sign, coef, f)
        if self.model.n_linear > 0:
            self._move_linear(rng, state, X, sign, coef, f)
        new = self._turn(rng, self._complete(rng, state, W, coef))
        density = -float(np.logaddexp(0.0, -sign * f)[sign != 0.0].sum())
        new = replace(new, log_likelihood=density)
        return new, self.info(accepted, trajectory, density)

    def _sweep(
        self,
        rng: np.random.Generator,
        state: ClassState,
        X: Array,
        sign: Array,
        coef: Array,
        f: Array,
    ) -> tuple[Array, float]:
        """Steps 1 and 2: frequencies, the share that was accepted; changes ``coef`` and ``f``."""
        W, m = state.frequencies, len(state.frequencies)
        proposed = propose(rng, self.mixture, state.mixture, W, self.tuning)
        log_uniform = np.log(rng.random(m))
        normals = rng.standard_normal((m, self.n_sticks, 2))
        is_accepted, log_ratio = np.zeros(m, dtype=bool), np.empty(m)
        for part in _parts(m, len(X)):
            own = slice(2 * part.start, 2 * part.stop)
            moved = np.ascontiguousarray(coef[:, own])
            move_jointly(
                _features(W[part], X, m), _features(proposed[part], X, m), sign, moved,
                state.ridge, normals[part], log_uniform[part], f,
                is_accepted[part], log_ratio[part],
            )  # fmt: skip
            coef[:, own] = moved
        W = np.where(is_accepted[:, np.newaxis], proposed, W)
        return W, float(is_accepted.mean())

    def _move_linear(
        self,
        rng: np.random.Generator,
        state: ClassState,
        X: Array,
        sign: Array,
        coef: Array,
        f: Array,
    ) -> None:
        """Step 3; changes ``coef`` and ``f``."""
        p = self.model.n_linear
        H = np.concatenate([np.ones((1, len(X))), X.T])
        for k in range(self.n_sticks):
            is_in, linear = sign[k] != 0.0, coef[k, -p:] @ H
            H_in = H[:, is_in]
            omega, kappa = polya_gamma(rng)(f[k, is_in], 0.5 * sign[k, is_in])
            weighted = H_in * omega
            target = kappa - omega * (f[k, is_in] - linear[is_in])
            gram = np.column_stack([weighted @ H_in.T, H_in @ target])
            law = logistic_coefficients(gram, self._linear(state.linear_precision[k]))
            coef[k, -p:] = law.mean + law.draw(rng, 1)[0]
            f[k] += coef[k, -p:] @ H - linear

    def _complete(
        self, rng: np.random.Generator, state: ClassState, W: Array, coef: Array
    ) -> ClassState:
        """Step 4: precisions given the coefficients."""
        ridges, precisions = state.ridge.copy(), state.linear_precision.copy()
        prior, n_features = self.model.ridge_prior, 2 * len(W)
        for k, each in enumerate(coef):
            if prior is not None:
                own = each[:n_features]
                ridges[k] = rng.gamma(prior.shape + len(W)) / (prior.rate + 0.5 * float(own @ own))
            precisions[k] = self._draw_linear_precision(rng, each, float(precisions[k]))
        return replace(
            state,
            frequencies=W,
            mean=coef,
            deviations=np.zeros((self.n_sticks, 1, coef.shape[1])),
            ridge=ridges,
            linear_precision=precisions,
        )


def _in_memory(rows: TrainingRows) -> tuple[Array, Array]:
    if isinstance(rows, MemoryRows):
        return rows.X, rows.y
    X, codes = zip(*rows.blocks(), strict=True)
    return np.concatenate(X), np.concatenate(codes)


def _functions(X: Array, W: Array, coef: Array, has_linear_part: bool) -> Array:
    """The functions at rows X (n, d), shape (K, n)."""
    f = np.empty((len(coef), len(X)))
    for begin in range(0, len(X), _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        f[:, rows] = coef @ design(W, X[rows], has_linear_part)
    return f


def _parts(n_frequencies: int, n_rows: int) -> list[slice]:
    """Frequencies whose features are in memory at a time."""
    size = max(_MOST_NUMBERS // (2 * n_rows), 1)
    starts = range(0, n_frequencies, size)
    return [slice(begin, min(begin + size, n_frequencies)) for begin in starts]


def _features(W: Array, X: Array, n_frequencies: int) -> Array:
    """Features of some of the frequencies, shape (2 m, n)."""
    out = np.empty((2 * len(W), len(X)))
    fill_features(W, X, out)
    out *= math.sqrt(len(W) / n_frequencies)
    return out
