"""BaNK for classes: Polya-Gamma variables, then the sweep of the regression that they make.

**Target** p(W, beta, ridge, Z, mu, Sigma, ... | y): one set of frequencies W_j ~ N(mu_Zj, Sigma_Zj)
under a Dirichlet-process mixture, with coefficients beta_k, gamma_k, a ridge and a precision of the
linear part for each of the C - 1 functions that tell classes apart
(`mercer.spectral.classes.labels`).

**One step** (a sweep; `mercer.spectral.classes.trajectory` says what may go before it)

1. Proposals for all frequencies given Z, mu, Sigma.
2. One pass over the rows: omega | beta, W, and products weighted by it.
3. Each frequency in its turn, accepted by the ratio of evidences given omega, beta integrated out;
   those of the functions multiply.
4. The ridges, beta integrated out.
5. beta given W and omega.
6. The precisions of the linear parts given beta.
7. Z with the signs of the frequencies, (mu, Sigma), base scale, concentration.

omega is drawn anew in each sweep, before W moves, and does not outlive it; beta is drawn after the
last change of W.

**Symbols** (paper -> code): W -> ``frequencies``, beta -> ``coef``.

**Deviations.** The paper proposes (W_j, beta_j) jointly with a Laplace law of beta_j, eqs. (14) and
(15): that is `mercer.spectral.classes.joint`; here beta is integrated out exactly, all of it at
once. The ridge is drawn; a linear part; several classes.

**Cost** of a step: (C - 1) (16 n M^2 flops and O(M^3)), fewer rows for later functions.

References
----------
.. [1] Oliva et al., Bayesian nonparametric kernel-learning (AISTATS 2016), section 3.3.2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mercer.spectral.classes.chain import ClassChain
from mercer.spectral.classes.model import logistic_coefficients
from mercer.spectral.classes.products import log_likelihood, polya_gamma, weighted_products
from mercer.spectral.classes.ridge import logistic_ridge_density
from mercer.spectral.classes.state import ClassState
from mercer.spectral.compiled import select
from mercer.spectral.halving import decide_together, join
from mercer.spectral.proposals import propose
from mercer.spectral.ridge import draw_ridge
from mercer.spectral.sampler import SpectralInfo

__all__ = ["ClassSampler"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassSampler(ClassChain):
    """Sweeps over all frequencies with Polya-Gamma variables; attributes are those of the base."""

    def step(self, rng: np.random.Generator, state: ClassState) -> tuple[ClassState, SpectralInfo]:
        """Take one sweep."""
        state, trajectory = self.before_sweep(rng, state)
        W, grams, accepted = self._sweep(rng, state)
        new = self._complete(rng, state, W, grams)
        new = self._turn(rng, new)
        density = log_likelihood(self.rows, new.frequencies, new.coef)
        new = replace(new, log_likelihood=density)
        return new, self.info(accepted, trajectory, density)

    def _sweep(
        self, rng: np.random.Generator, state: ClassState
    ) -> tuple[Array, tuple[Array, ...], float]:
        """Steps 1 to 3: frequencies, the products of each function, the share that was accepted."""
        W = state.frequencies
        proposed = propose(rng, self.mixture, state.mixture, W, self.tuning)
        log_uniform = np.log(rng.random(len(W)))
        products = weighted_products(self.rows, proposed, W, state.coef, polya_gamma(rng))
        joints = tuple(
            join(each.gram, each.among, each.across, float(ridge), self._linear(precision))
            for each, ridge, precision in zip(
                products, state.ridge, state.linear_precision, strict=True
            )
        )
        is_accepted = decide_together(joints, log_uniform).is_accepted
        grams = tuple(select(p.gram, p.among, p.across, is_accepted) for p in products)
        W = np.where(is_accepted[:, np.newaxis], proposed, W)
        return W, grams, float(is_accepted.mean())

    def _complete(
        self, rng: np.random.Generator, state: ClassState, W: Array, grams: tuple[Array, ...]
    ) -> ClassState:
        """Steps 4 to 6: draw ridges, coefficients and precisions of the linear parts."""
        mean, deviations = np.empty_like(state.mean), np.empty_like(state.deviations)
        ridges, precisions = state.ridge.copy(), state.linear_precision.copy()
        model = self.model
        for k, gram in enumerate(grams):
            if model.ridge_prior is not None:
                density = logistic_ridge_density(
                    gram, self._linear(precisions[k]), model.ridge_prior
                )
                ridges[k] = draw_ridge(rng, density, float(ridges[k]))
            diagonal = model.prior_precisions(2 * len(W), ridges[k], precisions[k])
            law = logistic_coefficients(gram, diagonal)
            mean[k], deviations[k] = law.mean, law.draw(rng, self.n_deviations)
            coef = mean[k] + deviations[k, 0]
            precisions[k] = self._draw_linear_precision(rng, coef, float(precisions[k]))
        return replace(
            state,
            frequencies=W,
            mean=mean,
            deviations=deviations,
            ridge=ridges,
            linear_precision=precisions,
        )
