"""The paper's way to visit frequencies: one after the other, each with a look at all rows.

What `mercer.spectral` does in one pass a sweep is done here as the paper describes it, to be
measured beside it and to check its decisions. The features of all rows are kept in memory. For each
frequency: two new columns, their products with all others (a matrix-vector product each), the
ratio of evidences from the inverse of Phi'Phi + Lambda_0, and, if it is accepted, an update of the
inverse of rank four (removing two columns and adding two).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer.features.products import cosines_and_sines
from mercer.spectral.rows import MemoryRows
from mercer.spectral.sampler import SpectralSampler, SpectralState

__all__ = ["OneAtATime"]

Array = NDArray[np.float64]


class OneAtATime:
    """Where the scheme stands; `visit` moves it on.

    Parameters
    ----------
    sampler : SpectralSampler
        Of rows that are in memory.
    state : SpectralState
        Where it begins; it is not changed.
    """

    def __init__(self, sampler: SpectralSampler, state: SpectralState) -> None:
        rows, model = sampler.rows, sampler.model
        assert isinstance(rows, MemoryRows)
        self._X = rows.X
        self._shape, self._rate = model.posterior_shape, model.noise_rate
        self._scale = 1.0 / math.sqrt(len(state.frequencies))
        m2 = 2 * len(state.frequencies)
        linear = [np.ones((1, rows.n_rows)), rows.X.T] if rows.has_linear_part else []
        given = np.concatenate([*linear, rows.y[np.newaxis]])
        self._columns = np.empty((m2 + len(given), rows.n_rows))
        cosines_and_sines(state.frequencies @ rows.X.T, self._scale, self._columns[:m2])
        self._columns[m2:] = given
        prior = model.prior_precisions(m2, state.ridge, state.linear_precision)
        products = self._columns @ self._columns.T
        self._ridge = state.ridge
        self._A = products[:-1, :-1] + np.diag(prior)
        self._inverse = np.asfortranarray(np.linalg.inv(self._A))
        self._moments, self._square = products[-1, :-1].copy(), float(products[-1, -1])

    def visit(self, j: int, proposed: Array, log_uniform: float) -> tuple[bool, float]:
        """Accept or reject one proposal.

        Parameters
        ----------
        j : int
            Which frequency.
        proposed : ndarray of shape (d,)
        log_uniform : float

        Returns
        -------
        is_accepted : bool
        log_ratio : float
            Of the evidences, in nats.
        """
        gone, A, B = [2 * j, 2 * j + 1], self._A, self._inverse
        new = np.empty((2, len(self._X)))
        cosines_and_sines((self._X @ proposed)[np.newaxis], self._scale, new)
        across = np.column_stack([self._columns @ new[0], self._columns @ new[1]])
        among = new @ new.T + self._ridge * np.eye(2)
        # Without the two that go: A_rr^-1 u = B u - B_o B_oo^-1 (B u)_o, and 0 in their places.
        others = np.column_stack([across[:-1], self._moments])
        others[gone] = 0.0
        left = B @ others
        B_gone, S_old = B[:, gone], np.linalg.inv(B[np.ix_(gone, gone)])
        left -= B_gone @ (S_old @ left[gone])
        S_new = among - others[:, :2].T @ left[:, :2]
        v_new = across[-1] - others[:, :2].T @ left[:, 2]
        v_old = self._moments[gone] - A[gone] @ left[:, 2]
        rest = self._square - others[:, 2] @ left[:, 2]
        log_ratio = self._log_evidence(S_new, v_new, rest) - self._log_evidence(S_old, v_old, rest)
        if not log_uniform < log_ratio:
            return False, log_ratio
        E = -left[:, :2]
        E[gone] = np.eye(2)
        old_and_new = np.column_stack([B_gone, E])
        weighted = np.column_stack([-B_gone @ S_old, E @ np.linalg.inv(S_new)])
        blas.dgemm(1.0, weighted, old_and_new, beta=1.0, c=B, trans_b=1, overwrite_c=1)
        A[:, gone], A[gone, :] = across[:-1], across[:-1].T
        A[np.ix_(gone, gone)] = among
        self._moments[gone] = across[-1]
        self._columns[gone] = new
        return True, log_ratio

    def _log_evidence(self, S: Array, v: Array, rest: float) -> float:
        """Up to a constant, from the Schur complement of two columns and of the targets.

        NaN, which is never accepted, where the updates of the inverse have lost all digits.
        """
        rate = self._rate + 0.5 * (rest - float(v @ np.linalg.solve(S, v)))
        determinant = float(np.linalg.det(S))
        if not (rate > 0.0 and determinant > 0.0):
            return math.nan
        return -self._shape * math.log(rate) - 0.5 * math.log(determinant)
