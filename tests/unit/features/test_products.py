from __future__ import annotations

import math
import pickle
import sys

import numpy as np
import pytest

from mercer.errors import UsageError
from mercer.features import products
from mercer.features.device import Device, _namespace, check_device, feature_products
from mercer.features.products import FeatureProducts, fill_features
from mercer.numerics.sums import ROWS_PER_TERM, PairwiseSum, aligned_runs
from support.devices import device_for_tests
from support.spectral_cases import plain_design

RNG = np.random.default_rng(5)
D, M_NEW, M_OLD = 3, 4, 5
NEW, OLD = RNG.standard_normal((M_NEW, D)), RNG.standard_normal((M_OLD, D))


def data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and two further columns, as rows; one of them is far from 0."""
    rng = np.random.default_rng(6)
    X, offset = rng.standard_normal((n, D)), np.array([[0.0], [3.0]])
    return X, rng.standard_normal((2, n)) + offset


def summed(X, columns, cuts=(), weights=None, old=OLD):
    """Add the rows in blocks that end at the cuts."""
    sums = FeatureProducts(NEW, old, len(columns))
    for rows in np.split(np.arange(len(X)), cuts):
        sums.add(X[rows], columns[:, rows], None if weights is None else weights[rows])
    return sums.total()


def bits(found) -> tuple[bytes, bytes]:
    return found.among.tobytes(), found.across.tobytes()


def plain(X, columns, old=OLD) -> tuple[np.ndarray, np.ndarray]:
    new = plain_design(NEW, X, False)
    given = [columns.T] if old is None else [plain_design(old, X, False), columns.T]
    return new, np.column_stack(given)


@pytest.mark.parametrize("old", [OLD, None], ids=["with old", "without"])
@pytest.mark.parametrize("n", [1, 2, 1023, 1024, 1025, ROWS_PER_TERM, 2 * ROWS_PER_TERM + 700])
def test_products(n: int, old) -> None:
    X, columns = data(n)
    found = summed(X, columns, old=old)
    new, given = plain(X, columns, old)
    np.testing.assert_allclose(found.among, new.T @ new, rtol=1e-12, atol=1e-12 * n)
    np.testing.assert_allclose(found.across, new.T @ given, rtol=1e-12, atol=1e-12 * n)
    np.testing.assert_array_equal(found.among, found.among.T)
    assert found.among.flags.c_contiguous
    assert found.across.flags.c_contiguous


def test_dist_2_compensated_sums() -> None:
    """Against sums without rounding, to 1e-12 of the squared Frobenius norm."""
    X, columns = data(3000)
    columns *= 1e3
    found, (new, given) = summed(X, columns), plain(X, columns)
    for seen, right in ((found.among, new), (found.across, given)):
        limit = 1e-12 * math.fsum(np.concatenate([new, right], axis=1).ravel() ** 2)
        for a in range(new.shape[1]):
            for b in range(right.shape[1]):
                assert abs(seen[a, b] - math.fsum(new[:, a] * right[:, b])) < limit


@pytest.mark.parametrize(
    "cuts",
    [(1024,), (3072, 4096), (16384,), (20480, 32768), tuple(range(1024, 40_000, 1024)), (0, 1024)],
)
def test_dist_3_cuts_at_multiples_of_1024_change_no_bit(cuts: tuple[int, ...]) -> None:
    X, columns = data(40_000)
    assert bits(summed(X, columns, cuts)) == bits(summed(X, columns))


@pytest.mark.parametrize("cuts", [(1,), (700, 701, 5000), (16383, 16385), (39_999,)])
def test_dist_3_other_cuts_change_the_last_digits_at_most(cuts: tuple[int, ...]) -> None:
    X, columns = data(40_000)
    whole, cut = summed(X, columns), summed(X, columns, cuts)
    np.testing.assert_allclose(cut.among, whole.among, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(cut.across, whole.across, rtol=1e-12, atol=1e-9)


def test_memory_layout_changes_no_bit() -> None:
    """Rows of a Fortran-ordered, strided or read-only array are the same rows."""
    X, columns = data(2500)
    expected = bits(summed(X, columns))
    frozen = X.copy()
    frozen.flags.writeable = False
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], frozen):
        assert bits(summed(other, columns)) == expected
    assert bits(summed(X, np.asfortranarray(columns))) == expected


def test_weights() -> None:
    X, columns = data(2000)
    weights = np.random.default_rng(7).exponential(size=2000)
    weights[::7] = 0.0
    found, (new, given) = summed(X, columns, (600,), weights), plain(X, columns)
    np.testing.assert_allclose(found.among, (new.T * weights) @ new, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(found.across, (new.T * weights) @ given, rtol=1e-11, atol=1e-9)
    assert bits(summed(X, columns, weights=np.ones(2000))) == bits(summed(X, columns))


def test_nothing_that_is_passed_in_changes() -> None:
    X, columns = data(1500)
    weights = np.full(1500, 2.0)
    before = [array.copy() for array in (X, columns, weights, NEW, OLD)]
    summed(X, columns, (1024,), weights)
    for array, kept in zip((X, columns, weights, NEW, OLD), before, strict=True):
        np.testing.assert_array_equal(array, kept)


def test_rows_at_the_centre_and_no_rows_in_a_block() -> None:
    """A row of zeros has cosines of 1 and sines of 0; an empty block adds nothing."""
    X, columns = np.zeros((10, D)), np.ones((1, 10))
    found = summed(X, columns, (0, 4, 4))
    cosines = np.tile([1.0, 0.0], M_NEW)
    np.testing.assert_allclose(found.among, 10.0 / M_NEW * np.outer(cosines, cosines))
    np.testing.assert_allclose(found.across[:, -1], 10.0 / math.sqrt(M_NEW) * cosines)


def test_features_in_the_order_of_frequencies() -> None:
    X, _ = data(30)
    out = np.empty((2 * M_NEW, 30))
    fill_features(NEW, X, out)
    np.testing.assert_allclose(out.T, plain_design(NEW, X, False), atol=1e-15)


@pytest.mark.parametrize("n", range(1, 20))
def test_pairwise_sum(n: int) -> None:
    """The first 2^k terms, then the rest, in the same way: to the bit."""

    def plain_sum(terms: list[np.ndarray]) -> np.ndarray:
        if len(terms) == 1:
            return terms[0]
        half = 1 << (len(terms) - 1).bit_length() - 1
        return plain_sum(terms[:half]) + plain_sum(terms[half:])

    terms = list(10.0 ** np.random.default_rng(n).uniform(-8.0, 8.0, (n, 4)))
    total = PairwiseSum()
    for term in terms:
        total.add(term.copy())
    np.testing.assert_array_equal(total.total(), plain_sum(terms))


@pytest.mark.parametrize("level", [0, 1, 2, 5])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 13])
def test_runs_that_are_summed_apart_change_no_bit(n: int, level: int) -> None:
    terms = list(10.0 ** np.random.default_rng(n).uniform(-8.0, 8.0, (n, 4)))
    total, apart = PairwiseSum(), PairwiseSum(plus=lambda a, b: a + b)
    for term in terms:
        total.add(term.copy())
    ends = 0
    for first, own_level in aligned_runs(n, level):
        assert first == ends
        run = PairwiseSum()
        for term in terms[first : first + (1 << own_level)]:
            run.add(term.copy())
        apart.add(run.total(), own_level)
        ends = first + (1 << own_level)
    assert ends == n
    np.testing.assert_array_equal(apart.total(), total.total())


def test_pairwise_sum_is_kept_by_its_total() -> None:
    """Asking for the total changes nothing: more can be added."""
    total = PairwiseSum()
    for i in range(7):
        total.add(np.array([float(i)]))
        assert total.total() == i * (i + 1) / 2
        assert total.total() == i * (i + 1) / 2


def test_tasks_are_summed_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short tasks give the same sums, in another order."""
    X, columns = data(5000)
    expected = summed(X, columns)
    monkeypatch.setattr(products, "ROWS_PER_TERM", 1024)
    found = summed(X, columns)
    np.testing.assert_allclose(found.among, expected.among, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(found.across, expected.across, rtol=1e-12, atol=1e-10)


# The same sums by another array library.


@pytest.fixture(params=["strict", "torch"])
def device(request: pytest.FixtureRequest) -> Device:
    """An array library that holds to the standard alone, and PyTorch on the processor."""
    return device_for_tests(request.param)


def summed_there(device: Device, X, columns, cuts=(), old=OLD) -> np.ndarray:
    sums = feature_products(NEW, old, len(columns), pickle.loads(pickle.dumps(device)))
    for rows in np.split(np.arange(len(X)), cuts):
        sums.add(X[rows], columns[:, rows])
    return sums.sum()


@pytest.mark.parametrize("old", [OLD, None], ids=["with old", "without"])
@pytest.mark.parametrize("n", [0, 1, 4097, ROWS_PER_TERM, 2 * ROWS_PER_TERM + 700])
def test_a_device_gives_the_sums_of_numpy(device: Device, n: int, old) -> None:
    X, columns = data(n)
    X.flags.writeable = False
    found = feature_products(NEW, old, 2, device).products(
        summed_there(device, X, columns, (), old)
    )
    expected = summed(X, columns, old=old)
    for name in ("among", "across"):
        seen, right = device.get(getattr(found, name)), getattr(expected, name)
        np.testing.assert_allclose(seen, right, rtol=1e-12, atol=1e-12 * max(n, 1))
    among = device.get(found.among)
    np.testing.assert_array_equal(among, among.T)


def test_dist_1_runs_of_terms_on_a_device_are_parts_of_the_tree(device: Device) -> None:
    """Whoever sums which aligned run of blocks, the sum has the same bits."""
    n_terms = 5
    X, columns = data(n_terms * ROWS_PER_TERM - 100)
    whole = summed_there(device, X, columns)
    for level in range(3):
        total = PairwiseSum()
        for first, own in aligned_runs(n_terms, level):
            rows = slice(first * ROWS_PER_TERM, (first + (1 << own)) * ROWS_PER_TERM)
            total.add(summed_there(device, X[rows], columns[:, rows]), own)
        np.testing.assert_array_equal(device.get(total.total()), device.get(whole))


def test_a_device_that_is_not_there() -> None:
    assert check_device(None) is None
    with pytest.raises(UsageError, match=r"device=None cannot be used.*leave device out"):
        Device(None, "math").check()  # a library without arrays


def test_a_device_of_torch_that_is_not_there() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    assert check_device("cpu") == Device("cpu")
    for name in ("abacus", f"cuda:{torch.cuda.device_count()}", "meta"):
        with pytest.raises(UsageError, match=f"device='{name}' cannot be used"):
            check_device(name)


def test_a_device_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "array_api_compat.torch", None)
    _namespace.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'mercer\[torch\]'"):
        check_device("cpu")
    _namespace.cache_clear()
