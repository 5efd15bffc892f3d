"""Rows of the feature space from Gram matrices."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import DataError
from mercer.sphere.space import design_from_features, spectrum_of
from support.sphere_cases import noisy_gram

G = noisy_gram(9)[0]


@pytest.mark.parametrize("nugget", [0.0, 0.3])
def test_rows_and_the_way_back(nugget: float) -> None:
    """L L' = G + nugget I, and alpha = dual g gives (G + nugget I) alpha = L g."""
    design = spectrum_of(G).design(nugget)
    full = G + nugget * np.eye(9)
    assert design.dual is not None
    np.testing.assert_allclose(design.L @ design.L.T, full, atol=1e-9)
    np.testing.assert_allclose(full @ design.dual, design.L, atol=1e-9)
    assert design.L.flags.c_contiguous
    assert design.dual.flags.c_contiguous


def test_the_null_space_is_dropped_unless_a_nugget_fills_it() -> None:
    A = np.random.default_rng(1).standard_normal((9, 3))
    spectrum = spectrum_of(A @ A.T)
    design = spectrum.design()
    assert design.L.shape == (9, 3)
    np.testing.assert_allclose(design.L @ design.L.T, A @ A.T, atol=1e-12)
    np.testing.assert_allclose(design.dual.T @ design.L, np.eye(3), atol=1e-10)
    assert spectrum.design(0.1).L.shape == (9, 9)


def test_the_first_coordinate_is_the_first_principal_component() -> None:
    lengths = np.linalg.norm(spectrum_of(G).design().L, axis=0)
    assert (np.diff(lengths) <= 1e-12).all()


def test_rows_of_length_zero_have_a_direction_of_their_own() -> None:
    """Not that of rounding errors, whose signs would be labels."""
    for n in (5, 40, 100):
        X = np.random.default_rng(n).standard_normal((n, 3))
        K = np.exp(-0.5 * ((X[:, np.newaxis] - X) ** 2).sum(axis=-1))
        K[2], K[:, 2] = 0.0, 0.0
        design = spectrum_of(K).design()
        np.testing.assert_array_equal(design.L[2, :-1], 0.0)
        np.testing.assert_array_equal(design.L[:, -1], np.arange(n) == 2)
        np.testing.assert_allclose(design.L[:, :-1] @ design.L[:, :-1].T, K, atol=1e-8)
        assert (np.linalg.norm(np.delete(design.L, 2, axis=0), axis=1) > 0.5).all()


def test_an_indefinite_matrix_is_refused_by_its_eigenvalue() -> None:
    with pytest.raises(DataError, match=r"smallest eigenvalue is -0\.5, its largest 1\.5"):
        spectrum_of(np.array([[0.5, 1.0], [1.0, 0.5]]))
    with pytest.raises(DataError, match=r"smallest eigenvalue is -1, its largest -1"):
        spectrum_of(-np.eye(3))


def test_rounding_is_not_indefinite() -> None:
    A = np.random.default_rng(2).standard_normal((60, 2))
    noisy = A @ A.T + 1e-13 * np.random.default_rng(3).standard_normal((60, 60))
    assert spectrum_of(noisy).design().L.shape == (60, 2)


def test_finite_features_are_taken_as_they_are() -> None:
    Phi = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    design = design_from_features(Phi)
    np.testing.assert_array_equal(design.L, Phi)
    assert design.L.flags.c_contiguous
    assert design.dual is None
