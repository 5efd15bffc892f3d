"""Seeded, versioned workloads: a change of one is a new name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mercer.kernels.stationary import SquaredExponentialARD

__all__ = [
    "LAWS_V1",
    "ConeV1",
    "arm_v1",
    "audit_data_v1",
    "cone_v1",
    "drifting_rows_v1",
    "flipped_moons_v1",
    "friedman_rows_v1",
    "gp_draw_v1",
    "law_v1",
    "noisy_rows_v1",
    "outliers_v1",
    "sinc_rows_v1",
    "steady_rows_v1",
    "wavy_classes_v1",
]

#: Families of `law_v1`.
LAWS_V1 = ("smooth", "linear", "noise", "step")


def gp_draw_v1(
    n: int, d: int, log_signal_variance: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Inputs, labels and log parameters: labels drawn from the model at the default prior's mean.

    log w = -1 - log d; the signal variance is given.
    """
    rng = np.random.default_rng([n, d])
    X = rng.standard_normal((n, d))
    theta = np.full(d + 1, -1.0 - np.log(d))
    theta[0] = log_signal_variance
    K = SquaredExponentialARD().gram(theta, X)
    f = np.linalg.cholesky(K + 1e-8 * np.exp(theta[0]) * np.eye(n)) @ rng.standard_normal(n)
    return X, (rng.random(n) < expit(f)).astype(float), theta


@dataclass(frozen=True)
class ConeV1:
    """Classifiers w that are right on all rows.

    Attributes
    ----------
    rows : ndarray of shape (m, d)
        y_i x_i: the cone is where rows @ w > 0.
    w : ndarray of shape (d,)
        What the labels were made with; given them it is a draw of N(0, I) within the cone.
    directions : ndarray of shape (20, d)
        Unit vectors; the margins are directions @ w / |w|.
    """

    rows: NDArray[np.float64]
    w: NDArray[np.float64]
    directions: NDArray[np.float64]


def cone_v1(m: int, d: int) -> ConeV1:
    """Standard normal rows, labels by w ~ N(0, I), 20 random directions."""
    rng = np.random.default_rng([m, d])
    X, w = rng.standard_normal((m, d)), rng.standard_normal(d)
    directions = rng.standard_normal((20, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return ConeV1(X * np.sign(X @ w)[:, np.newaxis], w, directions)


def audit_data_v1(name: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Inputs as they are, and labels 0 or 1; all but breast cancer need ``MERCER_DATA``.

    crabs: five measurements, sex; pima_532: the complete rows of Pima (Ripley's training and test
    sets).
    """
    from sklearn.datasets import load_breast_cancer

    from reproduce.papers.matrices import named_arrays

    if name == "crabs":
        return named_arrays("crabs", without=("colour",))
    if name == "pima_532":
        parts = [named_arrays("pima_tr"), named_arrays("pima_te")]
        return np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])
    X, y = load_breast_cancer(return_X_y=True)
    return X, y.astype(np.int64)


def flipped_moons_v1(
    n: int, rate: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Two half moons with Gaussian noise of 0.25: inputs, true labels, and labels with flips."""
    true = rng.integers(0, 2, n)
    angle = np.pi * rng.random(n)
    x = np.where(true == 0, np.cos(angle), 1.0 - np.cos(angle))
    y = np.where(true == 0, np.sin(angle), 0.5 - np.sin(angle))
    X = np.column_stack([x, y]) + 0.25 * rng.standard_normal((n, 2))
    return X, true, np.where(rng.random(n) < rate, 1 - true, true)


def noisy_rows_v1(n: int, r: int, q: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Standard normal rows, labels of a random direction multiplied in, a share q flipped.

    Returns
    -------
    rows : ndarray of shape (n, r)
    w : ndarray of shape (r,)
        The direction, as long as a draw of N(0, I).
    """
    rng = np.random.default_rng([n, r, round(1000 * q)])
    X, w = rng.standard_normal((n, r)), rng.standard_normal(r)
    y = np.sign(X @ w) * np.where(rng.random(n) < q, -1.0, 1.0)
    return X * y[:, np.newaxis], w


def many_rows_v1(
    n: int, r: int, q: float, n_test: int = 100_000
) -> tuple[NDArray[np.float64], ...]:
    """Standard normal rows in single precision, labels 0 or 1, a share q of them flipped.

    Returns
    -------
    X, y, is_flipped, X_test, class_test : ndarray
        The classes of the test rows are the true ones.
    """
    rng = np.random.default_rng([n, r])
    X = rng.standard_normal((n + n_test, r), dtype=np.float32)
    true = X @ rng.standard_normal(r, dtype=np.float32) > 0.0
    is_flipped = rng.random(n) < q
    y = (true[:n] ^ is_flipped).astype(np.int64)
    return X[:n], y, is_flipped, X[n:], true[n:].astype(np.int64)


def smooth_boundary_v1(n: int, r: int, q: float) -> NDArray[np.float64]:
    """Random Fourier features of five inputs, labels of a smooth function multiplied in.

    The function is sin(1.5 z_1) + z_2 z_3 - 0.3 z_4^2 + 0.3; a share q of the labels is flipped.
    """
    rng = np.random.default_rng([n, r, 5])
    Z = rng.standard_normal((n, 5))
    phases = Z @ rng.standard_normal((5, r // 2)) / 1.5
    Phi = np.sqrt(2.0 / r) * np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
    f = np.sin(1.5 * Z[:, 0]) + Z[:, 1] * Z[:, 2] - 0.3 * Z[:, 3] ** 2 + 0.3
    y = np.sign(f) * np.where(rng.random(n) < q, -1.0, 1.0)
    return np.asarray(Phi * y[:, np.newaxis])


def friedman_rows_v1(
    n: int, part: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """Rows of Friedman's first function: 20 inputs, of which five matter, and noise.

    10 sin(pi x_1 x_2) + 20 (x_3 - 1/2)^2 + 10 x_4 + 5 x_5, inputs uniform on [0, 1], the noise
    standard normal: 4 % of the variance of the targets.

    Parameters
    ----------
    n : int
    part : int
        Each part is other rows: a set too large for memory is made part by part.

    Returns
    -------
    X : ndarray of shape (n, 20), float32
    y : ndarray of shape (n,)
    f : ndarray of shape (n,)
        y without the noise.
    """
    rng = np.random.default_rng([n, 20, part])
    X = rng.random((n, 20), dtype=np.float32)
    x = X[:, :5].astype(np.float64).T
    f = 10.0 * np.sin(np.pi * x[0] * x[1]) + 20.0 * (x[2] - 0.5) ** 2 + 10.0 * x[3] + 5.0 * x[4]
    return X, f + rng.standard_normal(n), f


def arm_v1(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Joint angles of an arm of eight links, and the distance of its hand from a point.

    In the manner of the set kin40k. Angles are uniform on [-pi, pi]; joint i turns about its own
    axis by the angle, then the axis is turned by a right angle, to either side in turn; the links
    are from 0.45 to 0.1 long. Noise: 5 % of the standard deviation.

    Returns
    -------
    X : ndarray of shape (n, 8)
        Angles in radians.
    y : ndarray of shape (n,)
    """
    rng = np.random.default_rng([n, 8])
    angles = rng.uniform(-np.pi, np.pi, (n, 8))
    lengths = np.linspace(0.45, 0.1, 8)
    frame, hand = np.broadcast_to(np.eye(3), (n, 3, 3)), np.zeros((n, 3))
    for i, length in enumerate(lengths):
        c, s = np.cos(angles[:, i]), np.sin(angles[:, i])
        side = 1.0 if i % 2 == 0 else -1.0
        nothing = np.zeros(n)
        turn = np.array(
            [[c, nothing, side * s], [s, nothing, -side * c], [nothing, nothing + side, nothing]]
        )
        frame = frame @ turn.transpose(2, 0, 1)
        hand = hand + length * frame[:, :, 0]
    distance = np.linalg.norm(hand - 0.1, axis=1)
    return angles, distance + 0.05 * distance.std() * rng.standard_normal(n)


def sinc_rows_v1(
    n: int, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Rows of sin(x) / x, the inputs uniform on [-10, 10], noise of standard deviation 0.1.

    Returns
    -------
    X : ndarray of shape (n, 1)
    y : ndarray of shape (n,)
    f : ndarray of shape (n,)
        y without the noise.
    """
    rng = np.random.default_rng([n, 1, seed])
    x = rng.uniform(-10.0, 10.0, n)
    f = np.sinc(x / np.pi)
    return x[:, np.newaxis], f + 0.1 * rng.standard_normal(n), f


def steady_rows_v1(n: int, part: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows of a wave in three inputs that never changes.

    sin(x_1 + 0.6 x_2 - 0.3 x_3), inputs uniform on [-2, 2], noise of standard deviation 0.5.

    Parameters
    ----------
    n : int
    part : int
        Each part is other rows, so that a stream of any length is made part by part.

    Returns
    -------
    X : ndarray of shape (n, 3)
    y : ndarray of shape (n,)
    """
    rng = np.random.default_rng([n, 3, part])
    X = rng.uniform(-2.0, 2.0, (n, 3))
    return X, np.sin(X @ np.array([1.0, 0.6, -0.3])) + 0.5 * rng.standard_normal(n)


def drifting_rows_v1(
    n: int, d: int, change: str, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows of a function of two projections of the inputs that may turn into another one.

    f_1 = sin(1.5 u) cos(v), f_2 = cos(1.5 u + 0.8) cos(v) - 0.5; inputs are uniform on [-3, 3] in
    one dimension, u = x, v = 0; otherwise standard normal, u and v their products with two fixed
    directions of length 1, orthogonal where d is even. Noise of standard deviation 0.2.

    Parameters
    ----------
    n, d : int
    change : {"none", "slow", "abrupt"}
        How f_2 takes over: never; in proportion to time, until the last row; after n / 2 rows.
    seed : int

    Returns
    -------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    """
    rng, time = np.random.default_rng([n, d, seed]), np.arange(n) / n
    if d == 1:
        X = rng.uniform(-3.0, 3.0, (n, 1))
        u, v = X[:, 0], np.zeros(n)
    else:
        X = rng.standard_normal((n, d))
        sums = np.ones(d) / np.sqrt(d)
        signs = np.where(np.arange(d) % 2 == 0, 1.0, -1.0) / np.sqrt(d)
        u, v = X @ sums, X @ signs
    share = {"none": np.zeros(n), "slow": time, "abrupt": np.where(time < 0.5, 0.0, 1.0)}[change]
    before, after = np.sin(1.5 * u) * np.cos(v), np.cos(1.5 * u + 0.8) * np.cos(v) - 0.5
    return X, (1.0 - share) * before + share * after + 0.2 * rng.standard_normal(n)


def outliers_v1(
    y: NDArray[np.float64], kind: str, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Move some targets (n,) of a stream.

    Parameters
    ----------
    y : ndarray of shape (n,)
    kind : {"clean", "one per cent", "one wild", "level"}
        None; one in a hundred from row n / 10 on, by 2 to 200 either way; that of row n / 2 by
        1000; all from row n / 2 on by 5.
    seed : int

    Returns
    -------
    y : ndarray of shape (n,)
    is_outlier : ndarray of shape (n,)
        Those of a level are none.
    """
    n, rng = len(y), np.random.default_rng([len(y), 29, seed])
    moves, number = np.zeros(n), np.arange(n)
    if kind == "one per cent":
        sizes = np.exp(rng.uniform(np.log(2.0), np.log(200.0), n)) * rng.choice([-1.0, 1.0], n)
        moves = np.where((rng.random(n) < 0.01) & (number >= n // 10), sizes, 0.0)
    elif kind == "one wild":
        moves[n // 2] = 1000.0
    elif kind == "level":
        moves[n // 2 :] = 5.0
    return y + moves, (moves != 0.0) & (kind != "level")


def wavy_classes_v1(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows (n, 3), standard normal, and classes 0 and 1: log odds 3 sin(2 x_1) + 2 x_2 x_3."""
    rng = np.random.default_rng([n, 17])
    X = rng.standard_normal((n, 3))
    f = 3.0 * np.sin(2.0 * X[:, 0]) + 2.0 * X[:, 1] * X[:, 2]
    return X, (rng.random(n) < expit(f)).astype(np.float64)


def law_v1(
    family: str, n: int, d: int, rng: np.random.Generator, *, is_class: bool
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Standard normal inputs (n, d), and numbers or classes 0 and 1 of a function drawn with them.

    The function: "smooth", a sum of 50 cosines, all but a draw of a process of variance 1 with
    length scale sqrt(d); "linear", of length 1 in a random direction; "noise", 0; "step", the sign
    of a linear one. Numbers have normal noise of standard deviation .3, .5, 1 and .3; classes are
    1 with probability 1 / (1 + exp(-3 f)).
    """
    X = rng.standard_normal((n, d))
    if family == "smooth":
        W, phase = rng.standard_normal((50, d)) / np.sqrt(d), 2.0 * np.pi * rng.random(50)
        f = np.cos(X @ W.T + phase) @ rng.standard_normal(50) / 5.0
    elif family == "noise":
        f = np.zeros(n)
    else:
        direction = rng.standard_normal(d)
        f = X @ direction / np.linalg.norm(direction)
        f = np.sign(f) if family == "step" else f
    if is_class:
        return X, (rng.random(n) < expit(3.0 * f)).astype(np.int64)
    noise = {"smooth": 0.3, "linear": 0.5, "noise": 1.0, "step": 0.3}[family]
    return X, f + noise * rng.standard_normal(n)
