"""The loops have their twins in ``tests/twins``."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from mercer.basis.length_scales import KINDS, LengthScaleGrid, n_linear, widths_around

RNG = np.random.default_rng(4)
X, Z = RNG.standard_normal((7, 3)), RNG.standard_normal((5, 3))
SCALINGS = np.array([[1.0, 1.0, 1.0], [0.2, 1.0, 3.0]])
KERNELS = {
    "rbf": RBF, "matern12": lambda w: Matern(w, nu=0.5), "matern32": lambda w: Matern(w, nu=1.5),
    "matern52": lambda w: Matern(w, nu=2.5),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("linear_part", [False, True, np.True_, 2, 9, "auto"])
@pytest.mark.parametrize("widths", [[2.0, 1.3, 0.7], [2.0, 2.0**0.5, 1.0]])
def test_three_ways_to_the_same_design(
    kind: str, linear_part: bool | int | str, widths: list
) -> None:
    grid = LengthScaleGrid(np.array(widths), SCALINGS, kind, linear_part)
    assert grid.is_halving == (kind == "rbf" and widths[2] == 1.0)
    m = grid.n_mean
    assert m == {False: 1, True: 4, np.True_: 4, 2: 3, 9: 4, "auto": 4}[linear_part]
    rows = np.zeros((7, grid.n_levels, m + 5))
    for x, row in zip(X, rows, strict=True):
        grid.fill_row(x, grid.distances(x, Z, 5), 5, row)
    distances = np.stack([grid.distances(x, Z, 5) for x in X])
    kernels = np.zeros((7, grid.n_levels, 5))
    for one, row in zip(distances, kernels, strict=True):
        grid.fill_kernel(one, 5, row)
    for level in range(grid.n_levels):
        scaling, width = SCALINGS[level // 3], widths[level % 3]
        expected = KERNELS[kind](width)(X * scaling, Z * scaling)
        mean = np.column_stack([np.ones(7), X])[:, :m]
        design = grid.design(X, Z, level)
        np.testing.assert_allclose(design, np.hstack([mean, expected]), atol=1e-14)
        np.testing.assert_allclose(rows[:, level], design, atol=1e-13)
        np.testing.assert_allclose(kernels[:, level], expected, atol=1e-13)
        np.testing.assert_array_equal(grid.only(level).design(X, Z, 0), design)


def test_widths() -> None:
    widths = widths_around(X)
    distances = np.linalg.norm(X[:, np.newaxis] - X, axis=2)[np.triu_indices(7, 1)]
    assert widths[0] == pytest.approx(2.0 * np.median(distances) / np.sqrt(2.0))
    np.testing.assert_allclose(widths[1:] ** 2 / widths[:-1] ** 2, 0.5)
    nearest = np.linalg.norm(X[:, np.newaxis] - X, axis=2)
    np.fill_diagonal(nearest, np.inf)
    assert widths[-1] >= np.median(nearest.min(axis=1)) > widths[-1] / np.sqrt(2.0)
    assert len(widths_around(np.linspace(0.0, 1.0, 200)[:, np.newaxis])) == 13
    assert len(widths_around(np.eye(40))) == 3
    stretched = np.array([[1.0] * X.shape[1], [1e-3] + [1.0] * (X.shape[1] - 1)])
    assert len(widths_around(X, stretched)) >= len(widths)
    np.testing.assert_array_equal(widths_around(np.vstack([X, X])), widths)
    assert widths_around(np.zeros((1, 3)))[0] == widths_around(np.zeros((4, 3)))[0] > 0.0


def test_a_mean_is_linear_in_inputs_that_are_not_too_many() -> None:
    assert (n_linear("auto", 256), n_linear("auto", 257), n_linear(True, 257)) == (256, 0, 257)
