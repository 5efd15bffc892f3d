"""SMC-8: ten thousand changes of a factor leave it what it would be if worked out afresh."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mercer.basis.loops import (
    append_column,
    append_terms,
    drop_column,
    drop_terms,
    rotate_row,
)

N_CHANGES, N_COLUMNS, LARGEST = 10_000, 40, 15
OF_MEAN, OF_CENTRES = 0.01, 1.0 / 30.0


class Followed:
    """A factor that is changed step by step, and the sums that it must agree with."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.centres = self.rng.uniform(-2.0, 2.0, N_COLUMNS - 1)
        self.gram, self.moment = np.zeros((N_COLUMNS, N_COLUMNS)), np.zeros(N_COLUMNS)
        self.square, self.rss, self.half_logdet = 0.0, 0.0, 0.5 * math.log(OF_MEAN)
        self.columns = [0]
        P = LARGEST + 1
        self.U, self.w = np.zeros((P, P)), np.zeros(P)
        self.U[0, 0] = math.sqrt(OF_MEAN)
        self.x, self.v = np.zeros(P), np.zeros(P)

    def step(self, *, forgets_the_fit: bool = False) -> None:
        """Take in a row, append a column, or drop one."""
        kind, p = self.rng.integers(0, 5), len(self.columns)
        if kind == 0:
            self.take_row()
        elif kind <= 2 and p <= LARGEST:
            self.append()
        elif kind > 2 and p > 1:
            self.drop(int(self.rng.integers(1, p)), forgets_the_fit)

    def take_row(self) -> None:
        at = self.rng.uniform(-2.0, 2.0)
        row = np.append(1.0, np.exp(-0.5 * (at - self.centres) ** 2 / 0.4**2))
        y, x = math.sin(2.0 * at) + 0.3 * self.rng.standard_normal(), row[self.columns]
        self.gram += np.outer(row, row)
        self.moment += y * row
        self.square += y * y
        v = np.linalg.solve(self.upper.T, x)
        spread = 1.0 + v @ v
        self.rss += (y - v @ self.whitened) ** 2 / spread
        self.half_logdet += 0.5 * math.log(spread)
        rotate_row(self.U, self.w, len(x), x, y)

    def append(self) -> None:
        column = int(self.rng.choice(np.setdiff1d(np.arange(1, N_COLUMNS), self.columns)))
        p, columns = len(self.columns), np.array(self.columns)
        square, part = append_terms(
            self.gram, self.moment, columns, p, OF_CENTRES, self.U, self.w, column, self.x, self.v
        )
        append_column(self.U, self.w, p, self.v, square, part)
        self.rss -= part * part / square
        self.half_logdet += 0.5 * math.log(square)
        self.columns.append(column)

    def drop(self, j: int, forgets_the_fit: bool) -> None:
        p = len(self.columns)
        variance, estimate = drop_terms(self.U, self.w, p, j, self.x, self.v)
        out = drop_column(self.U, self.w, p, j, self.U[:, :0])
        assert abs(out * out - estimate**2 / variance) < 1e-9 * (1.0 + out * out)
        self.rss += 0.0 if forgets_the_fit else estimate**2 / variance
        self.half_logdet += 0.5 * math.log(variance)
        self.columns.pop(j)

    @property
    def upper(self) -> np.ndarray:
        return np.triu(self.U[: len(self.columns), : len(self.columns)])

    @property
    def whitened(self) -> np.ndarray:
        return self.w[: len(self.columns)]

    def error(self) -> float:
        """Largest relative error of factor, fit, residual sum of squares and determinant."""
        columns = self.columns
        R = np.diag([OF_MEAN] + [OF_CENTRES] * (len(columns) - 1))
        upper = np.linalg.cholesky(self.gram[np.ix_(columns, columns)] + R).T
        w = np.linalg.solve(upper.T, self.moment[columns])
        signs = np.sign(np.diag(self.upper))
        rss, half_logdet = self.square - w @ w, np.log(np.diag(upper)).sum()
        return max(
            np.abs(signs[:, None] * self.upper - upper).max() / np.abs(upper).max(),
            np.abs(signs * self.whitened - w).max() / max(np.abs(w).max(), 1.0),
            abs(self.rss - rss) / max(rss, 1.0),
            abs(self.half_logdet - half_logdet) / max(abs(half_logdet), 1.0),
        )


@pytest.mark.parametrize("seed", [1, 2])
def test_smc_8(seed: int) -> None:
    """Checked after every thousand; seldom few columns, and the largest number often."""
    followed, sizes = Followed(seed), []
    for i in range(N_CHANGES):
        followed.step()
        sizes.append(len(followed.columns))
        if i % 1000 == 999:
            assert followed.error() < 1e-9
    assert max(sizes) == LARGEST + 1
    assert min(sizes[:1000]) < 4


def test_smc_8_sees_a_fit_that_is_not_given_back() -> None:
    followed = Followed(1)
    for _ in range(200):
        followed.step(forgets_the_fit=True)
    assert followed.error() > 1e-6
