"""From arguments to models to compare. Refusals: ``tests/contracts``."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.errors import DataError, UsageError
from mercer.features.maps import FourierMap, NystroemMap
from mercer.kernels.linear import Linear
from mercer.kernels.names import kernel_named
from mercer.kernels.stationary import MaternARD
from mercer.sphere import space as module
from mercer.sphere.selection import check_arguments, make_candidates
from mercer.sphere.space import FeatureSpace, KernelSpace, SpaceArguments, median_distance

X = np.random.default_rng(1).standard_normal((25, 2)) * 3.0
MEDIAN = median_distance(X)


def make(kernel="rbf", lengthscale="median", nugget=0.0, rank=None, approximation="nystroem",
         fit_intercept=True, X=X, seed=0):  # fmt: skip
    arguments = SpaceArguments(kernel, lengthscale, nugget, rank, approximation, fit_intercept)
    check_arguments(arguments)
    return make_candidates(arguments, X, np.random.default_rng(seed))


def test_what_is_given_is_one_model() -> None:
    ((one,), notes) = make(lengthscale=2, nugget=0.3)
    assert (one.kernel, one.lengthscale, one.nugget, notes) == ("rbf", 2.0, 0.3, ())
    assert isinstance(one.space, KernelSpace)
    assert one.space.covariance.constant == 1.0
    np.testing.assert_allclose(
        one.space.covariance.theta, [0.0, -2.0 * np.log(2), -2.0 * np.log(2)]
    )
    ((median,), _) = make()
    assert median.lengthscale == pytest.approx(MEDIAN)
    ((bare,), _) = make(fit_intercept=False)
    assert bare.space.covariance.constant == 0.0


def test_what_is_learned_is_listed() -> None:
    listed, _ = make(lengthscale="learn", nugget="learn")
    scales = sorted({one.lengthscale / MEDIAN for one in listed})
    assert scales == pytest.approx([0.25, 0.5, 1.0, 2.0, 4.0])
    assert sorted({one.nugget for one in listed}) == [0.0, 0.1, 0.4, 1.5]
    assert len(listed) == 20
    assert listed[0].space.spectrum is listed[1].space.spectrum  # of one Gram matrix


def test_kernels_that_are_compared() -> None:
    listed, _ = make("auto", nugget=0.1)
    assert [one.kernel for one in listed] == ["rbf", "matern32", "linear"]
    assert [one.lengthscale is None for one in listed] == [False, False, True]


@pytest.mark.parametrize(
    ("kernel", "name"),
    [(MaternARD(1.5), "matern32"), (Linear(), "linear"), (lambda A, B: A @ B.T, "<lambda>"),
     ("polynomial", "polynomial"), ("polynomial(3)", "polynomial(3)"),
     ("isotropic(matern32)", "isotropic(matern32)")],
)  # fmt: skip
def test_kernels_of_any_kind(kernel, name: str) -> None:
    ((one,), _) = make(kernel, nugget=0.2)
    assert one.kernel == name
    assert isinstance(one.space, KernelSpace)
    assert one.space.design().L.shape == (25, 25)


@pytest.mark.parametrize("kernel", ["linear", Linear()])
def test_a_linear_kernel_without_a_nugget_has_its_inputs_for_features(kernel) -> None:
    for nugget, n_notes in (("learn", 1), (0.0, 0), (0, 0)):
        ((one,), notes) = make(kernel, nugget=nugget)
        assert isinstance(one.space, FeatureSpace)
        assert one.space.design().L.shape == (25, 3)
        assert len(notes) == n_notes
    L = make(kernel, fit_intercept=False)[0][0].space.design().L
    assert L.shape == (25, 3)
    assert (L[:, -1] == 0.0).all()  # no row is zero


def test_ranks() -> None:
    (near, _), (far, _) = make(rank=6), make("matern12", rank=7, approximation="fourier")
    assert isinstance(near[0].space.features.map, NystroemMap)
    assert isinstance(far[0].space.features.map, FourierMap)
    assert near[0].space.design().L.shape == (25, 7)  # with the constant
    assert far[0].space.design().L.shape == (25, 7)  # an even number, and the constant
    learned, notes = make(rank=6, lengthscale="learn", nugget="learn")
    assert len(learned) == 5
    assert "finite features have none" in notes[0]
    same, other = make(rank=6, seed=0)[0][0], make(rank=6, seed=1)[0][0]
    np.testing.assert_array_equal(near[0].space.features(X), same.space.features(X))
    assert (near[0].space.features.map.landmarks != other.space.features.map.landmarks).any()


def test_precomputed_has_no_intercept_and_no_length_scale() -> None:
    G = np.exp(-0.5 * ((X[:, np.newaxis] - X) ** 2).sum(axis=-1)) * 7.0
    listed, _ = make("precomputed", nugget="learn", X=G)
    assert [one.nugget for one in listed] == [0.0, 0.1, 0.4, 1.5]
    assert {one.lengthscale for one in listed} == {None}
    np.testing.assert_allclose(listed[0].space.covariance.gram(G), G / 7.0)


def test_too_many_rows_for_a_gram_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_EXACT", 20)
    with pytest.raises(DataError, match=r"25 rows need matrices of 0\.0 GB each; set rank=512"):
        make()
    for kernel, rank in (("linear", None), ("rbf", 4)):
        assert len(make(kernel, rank=rank)[0]) == 1


@pytest.mark.parametrize("kernel", ["rbf + periodic", kernel_named("periodic")])
def test_a_kernel_whose_parameters_would_stay_unlearned_is_refused(kernel) -> None:
    with pytest.raises(UsageError, match="more than variances and length scales"):
        check_arguments(SpaceArguments(kernel, "learn", 0.0, None, "nystroem", fit_intercept=True))
