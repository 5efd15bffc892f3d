"""The kernel that was learned, its spectral density and its components, in the user's units.

With u_l the length of one standardised unit of input l (its standard deviation, say), a lag t in
the user's units is t / u, a frequency w in radians per unit of the input is w u, and densities take
the factor prod_l u_l. For a warped column u_l is that at the column's centre.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.posterior.draws import Draws
from mercer.posterior.table import Table
from mercer.spectral.mixture.gibbs import Mixture
from mercer.spectral.mixture.state import MixtureState
from mercer.spectral.probe import feature_kernel

__all__ = ["Band", "Spectrum"]

Array = NDArray[np.float64]

_LEVEL = 0.9
_FARTHEST = 1e100  # lag, in standardised units
_LARGEST_LOG = 700.0  # of a density: beyond, a double overflows
# Draws whose mixture is looked at: a density of each costs more than the band gains from all.
_MOST_DRAWS = 200

Band = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Frequencies and mixtures of all draws.

    Attributes
    ----------
    draws : Draws
    mixture : Mixture
        The prior of frequencies that was used.
    units : ndarray of shape (d,)
        Length of a standardised unit of each input, in the input's units.
    best : str
        The variable that is highest for the draw whose components are listed.
    """

    draws: Draws
    mixture: Mixture
    units: Array
    best: str = "log_evidence"

    def kernel(self, lags: Array) -> Band:
        """Mean and 90 % band of the features' kernel at lags (n, d)."""
        # Beyond this a phase says nothing, and its cosine is any number.
        lags = np.clip(lags / self.units, -_FARTHEST, _FARTHEST)
        W = self.draws.flat("frequencies")
        return _band(np.stack([feature_kernel(each, lags) for each in W]))

    def density(self, frequencies: Array) -> Band:
        """Mean and 90 % band of the spectral density at frequencies (n, d)."""
        W = frequencies * self.units
        factor = float(np.log(self.units).sum())
        logs = [self.mixture.log_spectral_density(state, W) for state in self._states()]
        return _band(np.exp(np.clip(np.stack(logs) + factor, None, _LARGEST_LOG)))

    def marginal_density(self, values: Array, j: int) -> Band:
        """Mean and 90 % band of the spectral density of input j alone, at values (n,)."""
        unit = float(self.units[j])
        rows = [
            self.mixture.marginal_density(state, values * unit, j) * unit
            for state in self._states()
        ]
        return _band(np.stack(rows))

    def components(self, names: tuple[str, ...]) -> Table:
        """List the components of the draw that explains the data best, the largest first."""
        best = int(np.argmax(self.draws.flat(self.best)))
        W = self.draws.flat("frequencies")[best]
        Z = self.draws.flat("assignment")[best]
        labels, counts = np.unique(Z, return_counts=True)
        rows: list[tuple[Any, ...]] = []
        for rank, k in enumerate(labels[np.argsort(-counts, kind="stable")]):
            members = W[k == Z]
            share = len(members) / len(W)
            # The sign of a whole component means nothing: that of its largest mean is made +.
            centre = members.mean(axis=0)
            sign = np.sign(centre[np.argmax(np.abs(centre))]) or 1.0
            numbers = (np.stack([sign * centre, members.std(axis=0)]) / self.units).T
            rows += [
                (rank + 1, share, name, *map(float, pair))
                for name, pair in zip(names, numbers, strict=True)
            ]
        return Table(("component", "share", "input", "frequency", "spread"), tuple(rows))

    def _states(self) -> Iterator[MixtureState]:
        """Rebuild the mixture of each draw; its components are drawn given their members."""
        draws = self.draws
        chosen = np.linspace(0, draws.n_total - 1, min(draws.n_total, _MOST_DRAWS)).astype(int)
        W, Z = draws.flat("frequencies"), draws.flat("assignment")
        scale, concentration = draws.flat("base_scale"), draws.flat("concentration")
        for i in chosen:
            base = self.mixture.base.with_scale(scale[i])
            rng = np.random.default_rng(int(i))
            components = base.draw_components(rng, W[i], Z[i], int(Z[i].max()) + 1)
            yield MixtureState(Z[i], components, scale[i], float(concentration[i]))


def _band(values: Array) -> Band:
    """Mean, lower and upper end over draws, values (S, n)."""
    tail = 0.5 * (1.0 - _LEVEL)
    lower, upper = np.quantile(values, (tail, 1.0 - tail), axis=0)
    return values.mean(axis=0), lower, upper
