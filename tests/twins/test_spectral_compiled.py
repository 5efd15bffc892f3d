"""The compiled loops of BaNK against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.spectral import loops as compiled

SIZES = [(1, 0), (1, 2), (2, 3), (7, 0), (7, 4), (20, 1)]  # frequencies, linear columns


def products(m: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All products [current, H, y, proposed], and the parts that a sweep knows of them."""
    C = np.random.default_rng(m + p).standard_normal((4 * m + p + 9, 4 * m + p + 1))
    whole, own = C.T @ C, 2 * m + p + 1
    return whole, whole[:own, :own].copy(), whole[own:, own:].copy(), whole[own:, :own].copy()


def current_columns(m: int) -> np.ndarray:
    """Places 4 j, 4 j + 1 of the current features."""
    return np.ravel([4 * np.arange(m), 4 * np.arange(m) + 1], "F")


@pytest.mark.parametrize(("m", "p"), SIZES)
def test_assemble(m: int, p: int) -> None:
    whole, gram, among, across = products(m, p)
    joint = np.full((4 * m + 1, 4 * m + 1), np.nan, order="F")
    linear = np.full((p, 4 * m + 1), np.nan, order="F")
    compiled.assemble(gram, among, across, 0.7, p, joint, linear)
    order = np.empty(4 * m + 1, dtype=int)
    order[current_columns(m)] = np.arange(2 * m)
    order[current_columns(m) + 2] = np.arange(2 * m + p + 1, 4 * m + p + 1)
    order[-1] = 2 * m + p
    expected = whole[np.ix_(order, order)] + np.diag(np.r_[np.full(4 * m, 0.7), 0.0])
    lower = np.tril_indices(len(order))
    np.testing.assert_array_equal(joint[lower], expected[lower])
    np.testing.assert_array_equal(linear, whole[2 * m : 2 * m + p][:, order])


@pytest.mark.parametrize(("m", "p"), SIZES)
def test_select(m: int, p: int) -> None:
    whole, gram, among, across = products(m, p)
    rng = np.random.default_rng(1)
    for share in (0.0, 0.5, 1.0):
        is_accepted = rng.random(m) < share
        before = gram.copy()
        found = compiled.select(gram, among, across, is_accepted)
        columns = np.arange(2 * m + p + 1)
        columns[: 2 * m] += (2 * m + p + 1) * np.repeat(is_accepted, 2)
        np.testing.assert_array_equal(found, whole[np.ix_(columns, columns)])
        np.testing.assert_array_equal(gram, before)
        np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize(("m", "p"), SIZES)
def test_select_lower(m: int, p: int) -> None:
    _, gram, among, across = products(m, p)
    diagonal = np.random.default_rng(2).random(len(gram))
    for is_accepted in (np.arange(m) % 2 == 0, np.arange(m) % 3 > 0, np.ones(m, dtype=bool)):
        out = np.full(gram.shape, np.nan, order="F")
        compiled.select_lower(gram, among, across, is_accepted, diagonal, out)
        expected = compiled.select(gram, among, across, is_accepted) + np.diag(diagonal)
        lower = np.tril_indices(len(gram))
        np.testing.assert_array_equal(out[lower], expected[lower])


@pytest.mark.parametrize("q", [1, 3])
def test_read_factor(q: int) -> None:
    rng = np.random.default_rng(q)
    A, priors, rates = rng.standard_normal((20, 8)), rng.random(8 - q), np.empty(q)
    L = np.linalg.cholesky(A.T @ A)
    found = compiled.read_factor(np.asfortranarray(L), priors, rates)
    log_det = np.linalg.slogdet((A.T @ A)[:-q, :-q])[1]
    np.testing.assert_allclose(found, log_det - np.log(priors).sum(), rtol=1e-12)
    np.testing.assert_allclose(rates, 0.5 * np.square(L[-q:, -q:]).sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("is_first_half", [True, False])
@pytest.mark.parametrize(("m", "h"), [(2, 1), (5, 2), (9, 4)])
def test_gather(m: int, h: int, is_first_half: bool) -> None:
    """Eliminate chosen columns of one half, keep all of the other and the targets."""
    A = np.random.default_rng(m).standard_normal((4 * m + 1, 4 * m + 1))
    A = A + A.T
    joint = np.asfortranarray(np.where(np.tri(len(A), dtype=bool), A, np.nan))
    keep, lose = (range(h), range(h, m)) if is_first_half else (range(h, m), range(h))
    chosen = [4 * j + 2 * (j % 3 == 0) for j in lose]
    gone = np.array([c + i for c in chosen for i in range(2)])
    kept_columns = np.r_[4 * keep.start : 4 * keep.stop, 4 * m]
    k, g = len(kept_columns), len(gone)
    kept, among, across = (np.full(s, np.nan, order="F") for s in ((k, k), (g, g), (k, g)))
    compiled.gather(joint, gone, 4 * keep.start, kept, among, across)
    for found, rows, columns in ((kept, kept_columns, kept_columns), (among, gone, gone)):
        lower = np.tril_indices(len(rows))
        np.testing.assert_array_equal(found[lower], A[np.ix_(rows, columns)][lower])
    np.testing.assert_array_equal(across, A[np.ix_(kept_columns, gone)])


def plain_decide(joint, log_uniform, shape, rate, is_accepted, log_ratio) -> None:
    """One after the other: all others eliminated as they stand, by a dense solve."""
    m = len(log_uniform)
    whole = np.tril(joint) + np.tril(joint, -1).T
    is_accepted[:] = False
    for j in range(m):
        gone = [4 * i + 2 * bool(is_accepted[i]) + c for i in range(m) if i != j for c in range(2)]
        own = [*range(4 * j, 4 * j + 4), 4 * m]
        S = whole[np.ix_(own, own)]
        if gone:
            across = whole[np.ix_(gone, own)]
            S = S - across.T @ np.linalg.solve(whole[np.ix_(gone, gone)], across)
        logs = []
        for block in (slice(0, 2), slice(2, 4)):
            left = S[4, 4] - S[4, block] @ np.linalg.solve(S[block, block], S[4, block])
            log_det = np.linalg.slogdet(S[block, block])[1]
            logs.append(-shape * np.log(rate + 0.5 * left) - 0.5 * log_det)
        log_ratio[j] = logs[1] - logs[0]
        is_accepted[j] = log_uniform[j] < log_ratio[j]


@pytest.mark.parametrize("m", [1, 2, 3, 6, 12])
def test_decide_few(m: int) -> None:
    _, gram, among, across = products(m, 0)
    joint = np.empty((4 * m + 1, 4 * m + 1), order="F")
    compiled.assemble(gram, among, across, 0.3, 0, joint, np.empty((0, 4 * m + 1), order="F"))
    rng = np.random.default_rng(3)
    for _ in range(5):
        log_uniform = np.log(rng.random(m))
        mine, plain = ((np.zeros(m, dtype=bool), np.empty(m)) for _ in range(2))
        compiled.decide_few(joint, log_uniform, 5.0, 0.4, *mine)
        plain_decide(joint, log_uniform, 5.0, 0.4, *plain)
        np.testing.assert_array_equal(mine[0], plain[0])
        np.testing.assert_allclose(mine[1], plain[1], rtol=1e-10, atol=1e-11)


def test_decide_few_where_nothing_can_be_decided() -> None:
    """A current matrix that is not positive definite gives NaN; such a proposal, minus infinity."""
    sound = np.diag([1.0, 1.0, 1.0, 1.0, 2.0])
    found, is_accepted = np.empty(1), np.ones(1, dtype=bool)
    current, proposed = sound.copy(), sound.copy()
    current[0, 0], proposed[2, 2] = -1.0, -1.0
    compiled.decide_few(np.asfortranarray(current), np.full(1, -1.0), 2.0, 1.0, is_accepted, found)
    assert np.isnan(found[0])
    compiled.decide_few(np.asfortranarray(proposed), np.full(1, -1.0), 2.0, 1.0, is_accepted, found)
    assert found[0] == -np.inf
    assert not is_accepted[0]


def plain_decide_together(joints: list, log_uniform: np.ndarray, is_accepted, log_ratio) -> None:
    """Each evidence from scratch, noise of variance 1."""
    chosen = current_columns(len(log_uniform))

    def evidence(columns: np.ndarray) -> float:
        total = 0.0
        for joint in joints:
            full = np.tril(joint) + np.tril(joint, -1).T
            A, b = full[np.ix_(columns, columns)], full[columns, -1]
            total += 0.5 * b @ np.linalg.solve(A, b) - 0.5 * np.linalg.slogdet(A)[1]
        return float(total)

    for j in range(len(log_uniform)):
        other = chosen.copy()
        other[2 * j : 2 * j + 2] += 2
        log_ratio[j] = evidence(other) - evidence(chosen)
        is_accepted[j] = log_uniform[j] < log_ratio[j]
        chosen = other if is_accepted[j] else chosen


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("m", [1, 2, 3, 6, 12])
def test_decide_few_together(m: int, n: int) -> None:
    joints = []
    for p in range(n):
        _, gram, among, across = products(m, p)
        joint = np.empty((4 * m + 1, 4 * m + 1), order="F")
        linear = np.empty((p, 4 * m + 1), order="F")
        compiled.assemble(gram, among, across, 0.3, p, joint, linear)
        joints.append(joint)
    rng = np.random.default_rng(3)
    for _ in range(5):
        log_uniform = np.log(rng.random(m))
        mine, plain = ((np.zeros(m, dtype=bool), np.empty(m)) for _ in range(2))
        compiled.decide_few_together(np.array(joints, order="C"), log_uniform, *mine)
        plain_decide_together(joints, log_uniform, *plain)
        np.testing.assert_array_equal(mine[0], plain[0])
        np.testing.assert_allclose(mine[1], plain[1], rtol=1e-10, atol=1e-11)


def test_decide_few_together_where_nothing_can_be_decided() -> None:
    """As of one regression; what one of several cannot decide, none can."""
    sound = np.diag([1.0, 1.0, 1.0, 1.0, 2.0])
    found, is_accepted = np.empty(1), np.ones(1, dtype=bool)
    current, proposed = sound.copy(), sound.copy()
    current[0, 0], proposed[2, 2] = -1.0, -1.0
    u = np.full(1, -1.0)
    compiled.decide_few_together(np.stack([sound, current, proposed]), u, is_accepted, found)
    assert np.isnan(found[0])
    compiled.decide_few_together(np.stack([sound, proposed]), u, is_accepted, found)
    assert found[0] == -np.inf
    assert not is_accepted[0]


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("m", [1, 2, 3, 40])
def test_tridiagonal_evidence(m: int, ridge: float) -> None:
    rng = np.random.default_rng(m)
    C = np.tril(np.triu(rng.standard_normal((m, m))), 1)
    T, b = C.T @ C, rng.standard_normal(m)
    diagonal, off = np.diag(T).copy(), np.diag(T, 1).copy()
    log_det, quadratic = compiled.tridiagonal_evidence(diagonal, off, b, ridge)
    A = T + ridge * np.eye(m)
    assert log_det == pytest.approx(np.linalg.slogdet(A)[1], rel=1e-11, abs=1e-11)
    assert quadratic == pytest.approx(b @ np.linalg.solve(A, b), rel=1e-9)
