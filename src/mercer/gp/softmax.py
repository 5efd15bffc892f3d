"""GP classification of several classes: Laplace's approximation, hyperposterior, predictions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, helmert
from scipy.optimize import brentq
from scipy.special import ndtri, softmax
from scipy.stats import qmc

from mercer.errors import NumericalError
from mercer.gp.hyperparameters import (
    NormalPrior,
    is_within_range,
    no_density,
    paper_start,
)
from mercer.gp.loops import add_products, add_weighted, column_sums, mirror, weighted_identity_plus
from mercer.gp.loops import softmax_chord_steps as chord_steps
from mercer.kernels.base import Kernel
from mercer.likelihoods.logistic import (
    class_probabilities,
    expected_logistic,
    one_hot,
    softmax_log_likelihood,
)
from mercer.numerics.cholesky import (
    FactorMemory,
    Workspace,
    factorise,
    invert_factored,
    invert_lower,
    one_blas_thread,
    solve_factored,
    solve_lower,
)
from mercer.sampling.sampler import Point

Array = NDArray[np.float64]


# Laplace's approximation for several classes: mode, log evidence and its adjoint.
#
# **Target.** Psi(f) = log p(y | f) + log p(f) over the latent values f_ci of class c at row i, each
# class with its own process f_c ~ N(0, K_c), and p(y | f) the softmax. Its maximum is at f = K a
# with a = Y - pi(f), Y one-hot. There, with D_c = diag(pi_c),
#
#     B_c = I + D_c^.5 K_c D_c^.5 = L_c L_c',   E_c = D_c^.5 B_c^-1 D_c^.5,   S = sum_c E_c = M M'
#     R b = E_c b_c - E_c S^-1 sum_a E_a b_a                        [= (K + W^-1)^-1 b]
#     log Z = -sum a f/2 + sum Y f - sum_i log sum_c e^f - sum_c log |L_c| - log |M| .
#
# **Gradient.** d log Z = sum_c <A_c, dK_c> with V_c = M^-1 E_c, U_c = M^-1 E_c K_c D_c^.5:
#
#     A_c = 1/2 (a_c a_c' + q_c a_c' + a_c q_c' - E_c + V_c'V_c),        q = s2 - R K s2
#     s2_ci = -1/2 (v_ci - pi_ci sum_a v_ai),   v_ci = (1 - B_c^-1_ii)(1 - 2 pi_ci)
#             + sum_k U_c[k,i]^2 - 2 pi_ci^.5 sum_k U_c[k,i] Z[k,i],     Z = sum_c U_c D_c^.5 .
#
# Since the D_c sum to one and the E_c to M M', Z = M^-1 - M'. Nothing is divided by a probability.
#
# **Deviations.** As in `mercer.gp.laplace`: every mode is sought from f = 0 by direct solves, so
# that the evidence is a function of the Gram matrices alone.
#
# **Cost.** For each set of factors C + 1 Cholesky factors and C inverses, three to five sets (ten
# at a signal variance of e^12); then C triangular and C symmetric products: O(C n^3). Memory: two
# stacks of C matrices of order n.

# As for two classes: the last factors are taken once f is known to the first number, and a step
# below the second, with these, ends within rounding of the mode.
_LAST_FACTORS, _POLISHED = 1e-8, 1e-7
_NEAR = 1e-4  # in place of the first, in logits, where only the evidence is wanted
_FARTHEST = 30.0  # logits of a start
_MAX_STEPS, _MEMORY, _MAX_SETS = 16, 5, 40
_STATIONARY = 1e-6  # the largest |Y - pi - a| of a mode, in units of the latent values
_NO_MODE = "no mode found: the latent values are too large for double precision"


@dataclass(frozen=True)
class Curvature:
    """Factors of I + K W at latent values.

    Attributes
    ----------
    roots : ndarray of shape (C, n)
        D^.5: square roots of the probabilities.
    inverses : ndarray of shape (C, n, n)
        B_c^-1, symmetric.
    M : ndarray of shape (n, n)
        Lower factor of S, Fortran-ordered; what stands above the diagonal has no meaning.
    log_det : float
        Half of log |I + K W|, in nats.
    """

    roots: Array
    inverses: Array
    M: Array
    log_det: float

    def solve(self, b: Array) -> Array:
        """R b for b of shape (C, n)."""
        h = self._weigh(b)
        return h - self._weigh(np.broadcast_to(solve_factored(self.M, h.sum(axis=0)), b.shape))

    def _weigh(self, b: Array) -> Array:
        """E_c b_c."""
        scaled = (self.roots * b)[:, :, np.newaxis]
        return np.asarray(self.roots * np.matmul(self.inverses, scaled)[:, :, 0])


@dataclass(frozen=True)
class SoftmaxFit:
    """Mode and evidence for the Gram matrices, with what gradients and predictions need.

    Attributes
    ----------
    log_evidence : float
        In nats.
    a : ndarray of shape (C, n)
        K_c^-1 f_c at the mode, Y - pi there.
    q : ndarray of shape (C, n)
        K q is the first-order step from the mode to the mean of the posterior.
    f : ndarray of shape (C, n)
        The mode, in logits.
    adjoint : ndarray of shape (C, n, n), or (1, n, n) for a shared Gram matrix
        Symmetric matrices A_c such that d log Z = sum_c <A_c, dK_c>.
    """

    log_evidence: float
    a: Array
    q: Array
    f: Array
    adjoint: Array


def fit_softmax(
    K: Array,
    Y: Array,
    scratch: tuple[Array, Array] | None = None,
    near: Array | None = None,
) -> SoftmaxFit:
    """Find the mode for Gram matrices K and one-hot targets Y, and the log evidence.

    Parameters
    ----------
    K : ndarray of shape (C, n, n) or (1, n, n)
        One for each class, or one that all share.
    Y : ndarray of shape (C, n)
        1.0 for the class of a row, else 0.0.
    scratch : two ndarrays of shape (C, n, n), optional
        Overwritten; the first holds the adjoint in the end.
    near : ndarray of shape (C, n), optional
        Latent values close to the mode, which is sought from there and not from f = 0.

    Raises
    ------
    NumericalError
        If no mode is found: signal variances beyond about e^18.
    """
    if not np.isfinite(K[:, 0, 0]).all():
        raise NumericalError("a Gram matrix is not finite")
    Y = np.ascontiguousarray(Y)
    shape = (len(Y), *K.shape[1:])
    inverses, products = (np.empty(shape), np.empty(shape)) if scratch is None else scratch
    a, f, factors = _mode_near(K, Y, inverses, near)
    factor_f = f.copy()
    chord_steps(K, *_parts(factors), Y, a, f, _POLISHED, 3, 0)
    proba = class_probabilities(f)
    if not np.abs(Y - proba - a).max() <= _STATIONARY * max(1.0, np.abs(f).max()):
        raise NumericalError(_NO_MODE)
    s2 = _slope(factors, proba, products)
    log_det = factors.log_det - float(np.sum(s2 * (f - factor_f)))
    log_evidence = softmax_log_likelihood(Y, f) - 0.5 * float(np.sum(a * f)) - log_det
    q = s2 - factors.solve(_multiply(K, s2))
    return SoftmaxFit(log_evidence, a, q, f, _adjoint(len(K), factors, products, a, q))


def softmax_evidence(
    K: Array, Y: Array, start: Array, scratch: Array
) -> tuple[float, Array, Array]:
    """Compute log evidence, dual coefficients and mode only; ``start`` is near the mode, (C, n).

    Raises
    ------
    NumericalError
        If no mode is found: signal variances beyond about e^18.
    """
    if not np.isfinite(K[:, 0, 0]).all():
        raise NumericalError("a Gram matrix is not finite")
    Y = np.ascontiguousarray(Y)
    a, f, factors = _mode_near(K, Y, scratch, start, _NEAR)
    chord_steps(K, *_parts(factors), Y, a, f, _POLISHED, 3, 0)
    if not np.abs(Y - class_probabilities(f) - a).max() <= _STATIONARY * max(1.0, np.abs(f).max()):
        raise NumericalError(_NO_MODE)
    log_joint = softmax_log_likelihood(Y, f) - 0.5 * float(np.sum(a * f))
    return log_joint - factors.log_det, a, f


def curvature(K: Array, proba: Array, scratch: Array) -> Curvature:
    """Factorise at probabilities ``proba`` (C, n); ``scratch`` (C, n, n) becomes the inverses."""
    roots = np.sqrt(proba)
    S, log_dets = np.zeros(K.shape[1:]), np.empty(len(roots))
    is_alike = len(K) == 1 and bool((roots == roots[0]).all())  # as at f = 0
    for c in range(len(roots)):
        if is_alike and c > 0:
            scratch[c], log_dets[c] = scratch[0], log_dets[0]
        else:
            log_dets[c] = _invert_class(K[c % len(K)], roots[c], scratch[c])
        add_weighted(scratch[c], roots[c], S)
    M = factorise(S.T)
    return Curvature(roots, scratch, M, float(log_dets.sum() + np.log(M.diagonal()).sum()))


def _invert_class(K: Array, roots: Array, out: Array) -> float:
    """Write the inverse of B = I + D^.5 K D^.5 into ``out``; half of log |B|."""
    weighted_identity_plus(K, roots, out)
    L = factorise(out.T)
    log_det = float(np.log(L.diagonal()).sum())
    invert_factored(L)
    mirror(out)
    return log_det


def _mode_near(
    K: Array, Y: Array, scratch: Array, start: Array | None, tolerance: float = _LAST_FACTORS
) -> tuple[Array, Array, Curvature]:
    """Seek the mode from a start, and from f = 0 where that is no good or there is none."""
    if start is not None:
        with suppress(NumericalError):
            return _find_mode(K, Y, scratch, np.clip(start, -_FARTHEST, _FARTHEST), tolerance)
    return _find_mode(K, Y, scratch)


def _find_mode(
    K: Array,
    Y: Array,
    scratch: Array,
    start: Array | None = None,
    tolerance: float = _LAST_FACTORS,
) -> tuple[Array, Array, Curvature]:
    """(a, f, factors), these taken within 1e-8 of the mode, in place of ``scratch``.

    From f = 0, or from Newton's step at ``start``, latent values that need not be K a for any a.
    ``tolerance``, in logits, takes the place of 1e-8 in units of the largest.
    """
    a, f = np.zeros_like(Y), np.zeros_like(Y)
    proba = class_probabilities(f if start is None else start)
    factors = curvature(K, proba, scratch)
    if start is not None:
        b = proba * (start - np.sum(proba * start, axis=0)) + Y - proba
        a = b - factors.solve(_multiply(K, b))
        f = _multiply(K, a)
    for _ in range(_MAX_SETS):
        error, _ = chord_steps(K, *_parts(factors), Y, a, f, tolerance, _MAX_STEPS, _MEMORY)
        if not np.isfinite(error):
            break
        factors = curvature(K, class_probabilities(f), scratch)
        if error < tolerance * (max(1.0, np.abs(f).max()) if tolerance <= _LAST_FACTORS else 1.0):
            return a, f, factors
    raise NumericalError(_NO_MODE)


def _parts(factors: Curvature) -> tuple[Array, Array, Array]:
    return factors.inverses, factors.roots, factors.M.T


def _multiply(K: Array, b: Array) -> Array:
    """K_c b_c."""
    return np.asarray(np.matmul(K, b[:, :, np.newaxis])[:, :, 0])


def _slope(factors: Curvature, proba: Array, products: Array) -> Array:
    """s2 = -1/2 d log |I + K W| / df, (C, n); ``products`` becomes the stack of V_c'."""
    inverses, roots = factors.inverses, factors.roots
    inverse_M = invert_lower(factors.M)
    difference = inverse_M.T - np.tril(factors.M)
    squares, mixed = np.empty_like(roots), np.empty_like(roots)
    for c, N in enumerate(products):
        np.multiply(inverses[c], roots[c], out=N)
        blas.dtrmm(1.0, inverse_M, N.T, lower=1, overwrite_b=1)  # N_c = M^-1 D_c^.5 B_c^-1
        column_sums(N, inverse_M.T, difference, roots[c], squares[c], mixed[c])
    gain = 1.0 - np.diagonal(inverses, axis1=1, axis2=2)
    v = gain * (1.0 - 2.0 * proba) + squares - 2.0 * roots * mixed
    return np.asarray(-0.5 * (v - proba * v.sum(axis=0)))


def _adjoint(n_grams: int, factors: Curvature, products: Array, a: Array, q: Array) -> Array:
    """Overwrite the inverses by the A_c, or the first of them by their sum."""
    inverses, roots = factors.inverses, factors.roots
    inverses *= roots[:, :, np.newaxis]
    inverses *= roots[:, np.newaxis, :]
    if n_grams == 1:
        inverses[0] = inverses.sum(axis=0)
    adjoint = inverses[:n_grams]
    for c in range(len(roots)):
        A = adjoint[c % n_grams]
        share = -0.5 if c < n_grams else 1.0
        blas.dsyrk(0.5, products[c].T, beta=share, c=A.T, trans=1, lower=1, overwrite_c=1)
        add_products(A, a[c], q[c])
    for A in adjoint:
        mirror(A)
    return adjoint


# The covariance of the latent values of all classes at one row, training or new.


def latent_covariance(factors: Curvature, cross: Array, prior_variance: Array) -> Array:
    """Covariance of f at m rows under Laplace's approximation.

    Parameters
    ----------
    factors : Curvature
        Of the training rows, at the mode.
    cross : ndarray of shape (C, m, n) or (1, m, n)
        Covariances of these rows with the training rows, by the kernel of each class.
    prior_variance : ndarray of shape (C, m) or (1, m)

    Returns
    -------
    ndarray of shape (m, C, C)

    Notes
    -----
    With k_c the covariances of a row: delta_cc' (k_c** - k_c'E_c k_c) + (V_c k_c)'(V_c' k_c'),
    V_c = M^-1 E_c. Cost O(C n^2 m); memory C n m numbers.
    """
    n_classes, n = factors.roots.shape
    m = cross.shape[1]
    shared, covariance = np.empty((n_classes, n, m)), np.zeros((m, n_classes, n_classes))
    for c in range(n_classes):
        weighted = factors.roots[c][:, np.newaxis] * cross[c % len(cross)].T
        solved = factors.inverses[c] @ weighted
        own = prior_variance[c % len(cross)] - np.einsum("ij,ij->j", weighted, solved)
        covariance[:, c, c] = np.maximum(own, 0.0)
        shared[c] = solve_lower(factors.M, factors.roots[c][:, np.newaxis] * solved)
        for b in range(c + 1):
            product = np.einsum("ij,ij->j", shared[b], shared[c])
            covariance[:, b, c] += product
            if b < c:
                covariance[:, c, b] = product
    return covariance


# The softmax averaged over a Gaussian.

_N_NORMALS = 256
_SEED = 1


def expected_softmax(mean: Array, covariance: Array) -> Array:
    """Average the softmax of f over f ~ N(mean, covariance), for many Gaussians.

    Parameters
    ----------
    mean : ndarray of shape (m, C)
        Of the latent values, in logits.
    covariance : ndarray of shape (m, C, C)
        Positive semidefinite to rounding.

    Returns
    -------
    ndarray of shape (m, C)
        Rows sum to one. Two classes: as `expected_logistic`, error at most 7e-7. More: 256
        scrambled Sobol points, the same for every Gaussian. At standard deviations of 1, 3 and 10
        logits the root mean square of the error is 2e-4, 7e-4, 2e-3 for three classes, and 6e-4,
        3e-3, 6e-3 for six.
    """
    return softmax_average(covariance, _N_NORMALS)(mean)


def softmax_average(covariance: Array, n_normals: int) -> Callable[[Array], Array]:
    """Return the function of means (m, C) that averages by ``n_normals`` points, a power of two.

    Notes
    -----
    A common shift of all classes changes nothing, so that only C - 1 contrasts are drawn, by the
    symmetric root of their covariance: it is continuous in the covariance.
    """
    n_classes = covariance.shape[-1]
    if n_classes == 2:
        return _logistic_average(covariance)
    contrasts = helmert(n_classes)
    values, vectors = np.linalg.eigh(contrasts @ covariance @ contrasts.T)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, np.newaxis, :]
    roots = roots @ np.swapaxes(vectors, 1, 2) @ contrasts
    offsets = _normals(n_normals, n_classes - 1) @ roots

    def average(mean: Array) -> Array:
        return np.asarray(softmax(mean[:, np.newaxis, :] + offsets, axis=2).mean(axis=1))

    return average


def _logistic_average(covariance: Array) -> Callable[[Array], Array]:
    variance = covariance[:, 0, 0] + covariance[:, 1, 1] - 2.0 * covariance[:, 0, 1]
    variance = np.maximum(variance, 0.0)

    def average(mean: Array) -> Array:
        second = expected_logistic(mean[:, 1] - mean[:, 0], variance)
        return np.column_stack([1.0 - second, second])

    return average


@functools.cache
def _normals(count: int, dimension: int) -> Array:
    """Scrambled Sobol points, the same always, as standard normals of shape (count, dimension)."""
    points = qmc.Sobol(dimension, scramble=True, seed=_SEED).random(count)
    return np.asarray(ndtri(points))


# How far to go from the mode towards the mean, for several classes.
#
# As in `mercer.gp.laplace`: the length of the step K q maximises, between 0 and 1, the
# variational lower bound over Gaussians N(f + t K q, V), V Laplace's covariance. It is concave in
# t; derivative
#
#     sum_ci (Y - E pi)_ci (K q)_ci - q'K(a + t q),
#
# the softmax pi averaged over the C x C covariance of each row by 64 points.

_N_CORRECTION_NORMALS = 64
_PRECISION = 2.0**-10  # to which the length is known


def damped_correction(
    Y: Array, f: Array, covariance: Array, a: Array, q: Array, K_q: Array
) -> Array:
    """Return t q with t in [0, 1] the best length of the step.

    All arrays are of shape (C, n), but for the ``covariance`` of every row, (n, C, C).
    """
    linear, quadratic = float(np.sum(K_q * a)), float(np.sum(K_q * q))
    average = softmax_average(covariance, _N_CORRECTION_NORMALS)

    def slope(t: float) -> float:
        proba = average((f + t * K_q).T).T
        return float(np.sum((Y - proba) * K_q)) - linear - t * quadratic

    if slope(1.0) >= 0.0:
        return q
    if slope(0.0) <= 0.0:
        return np.zeros_like(q)
    return float(brentq(slope, 0.0, 1.0, xtol=_PRECISION)) * q


def correction_at(K: Array, Y: Array, f: Array, a: Array, q: Array, factors: Curvature) -> Array:
    """Return `damped_correction` of a mode f = K a from the factors there."""
    covariance = latent_covariance(factors, K, np.diagonal(K, axis1=1, axis2=2))
    return damped_correction(Y, f, covariance, a, q, _multiply(K, q))


# The posterior of the hyperparameters for several classes: Laplace's evidence times a prior.


@dataclass(frozen=True)
class SoftmaxPosterior:
    """log p(theta | y) up to a constant, theta the log parameters of all kernels.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised inputs.
    y : ndarray of shape (n,), int
        Codes of the classes, from 0 to ``n_classes`` - 1.
    n_classes : int
        C, two or more.
    kernel : Kernel
    kernel_prior : NormalPrior
        Over the log parameters of one kernel; the same for every class, and independent.
    is_shared : bool
        Whether all classes have one kernel in common. Else theta holds the log parameters of the
        kernel of the first class, then those of the second, and so on.
    """

    X: Array
    y: NDArray[np.int64]
    n_classes: int
    kernel: Kernel
    kernel_prior: NormalPrior
    is_shared: bool = False
    workspace: Workspace = field(default_factory=Workspace, compare=False, repr=False)

    def __post_init__(self) -> None:
        n_parameters = self.kernel.n_parameters(self.X.shape[1])
        if self.kernel_prior.mean.shape != (n_parameters,):
            raise ValueError(
                f"a prior of {len(self.kernel_prior.mean)} parameters for a kernel of "
                f"{n_parameters}"
            )

    @property
    def n_kernels(self) -> int:
        """How many kernels there are: one, or one for each class."""
        return 1 if self.is_shared else self.n_classes

    @property
    def prior(self) -> NormalPrior:
        """Of all log parameters."""
        one, times = self.kernel_prior, self.n_kernels
        return NormalPrior(np.tile(one.mean, times), np.tile(one.std, times))

    @property
    def starts(self) -> tuple[Array, ...]:
        """The paper's start for every kernel, whatever the prior."""
        return (np.tile(paper_start(self.X.shape[1], self.kernel), self.n_kernels),)

    def evaluate(self, theta: Array, near: Array | None = None) -> Point:
        """Log density, gradient, and what a draw records, at theta of shape (n_kernels p,).

        ``near`` is as of the protocol.
        Where the evidence cannot be computed the log density is -inf, so that no sampler goes
        there: at log parameters beyond 40, and at most signal variances beyond about e^18.
        """
        if not is_within_range(theta):
            return self._outside(theta)
        n = len(self.y)
        scratch = tuple(
            self.workspace.take_stack(name, self.n_classes, n) for name in ("factors", "products")
        )
        try:
            K = self.grams(theta)
            Y = one_hot(self.y, self.n_classes)
            fit = fit_softmax(K, Y, (scratch[0], scratch[1]), near)
        except NumericalError:
            return self._outside(theta)
        parts = zip(self.split(theta), K, fit.adjoint, strict=True)
        gradient = [self.kernel.gradient(own, self.X, K_c, A) for own, K_c, A in parts]
        prior = self.prior
        return Point(
            position=theta,
            log_density=fit.log_evidence + prior.log_density(theta),
            gradient=np.concatenate(gradient) + prior.gradient(theta),
            extra={"a": fit.a, "q": fit.q, "f": fit.f},
        )

    def split(self, theta: Array) -> Array:
        """Log parameters of each kernel, shape (n_kernels, p)."""
        return theta.reshape(self.n_kernels, -1)

    def grams(self, theta: Array) -> Array:
        """Gram matrices of the kernels, (n_kernels, n, n), in scratch memory."""
        K = self.workspace.take_stack("grams", self.n_kernels, len(self.y))
        for own, out in zip(self.split(theta), K, strict=True):
            self.kernel.gram(own, self.X, out=out)
        return K

    def values(self, point: Point, slopes: Array | None, rows: NDArray[np.int64]) -> SoftmaxValues:
        """Return what evaluates the log density alone, in the region around ``point``."""
        return SoftmaxValues(self, point, slopes, rows)

    def _outside(self, theta: Array) -> Point:
        shape = (self.n_classes, len(self.y))
        return no_density(theta, {name: np.zeros(shape) for name in ("a", "q", "f")})


@dataclass(frozen=True)
class SoftmaxValues:
    """The log density of `SoftmaxPosterior` without its gradient.

    Attributes
    ----------
    model : SoftmaxPosterior
    point : Point
        Modes are sought from the one here,
    slopes : ndarray of shape (p, C, n) or None
        and from how it changes with the hyperparameters.
    rows : ndarray of shape (k,), int
        The rows whose latent values are recorded.
    """

    model: SoftmaxPosterior
    point: Point
    slopes: Array | None
    rows: NDArray[np.int64]

    def __call__(self, theta: Array) -> tuple[float, Mapping[str, Array]]:
        """Return the log density, and the latent values and dual coefficients of a draw."""
        model, f = self.model, self.point.extra["f"]
        n_classes, n = f.shape
        if self.slopes is not None:
            moved = np.tensordot(theta - self.point.position, self.slopes, axes=1)
            f = f + moved
        if is_within_range(theta):
            scratch = model.workspace.take_stack("factors", n_classes, n)
            try:
                K, Y = model.grams(theta), one_hot(model.y, n_classes)
                log_evidence, a, f = softmax_evidence(K, Y, f, scratch)
                recorded = {"latent": f[:, self.rows], "dual_coef": a}
                return log_evidence + model.prior.log_density(theta), recorded
            except NumericalError:
                pass
        nothing = {"latent": np.zeros((n_classes, len(self.rows))), "dual_coef": np.zeros_like(f)}
        return -np.inf, nothing


@dataclass(frozen=True)
class SoftmaxRecorder:
    """Name the parts of an evaluated point that a draw keeps.

    Attributes
    ----------
    model : SoftmaxPosterior
    rows : ndarray of shape (k,), int
        The rows whose latent values are monitored.
    """

    model: SoftmaxPosterior
    rows: NDArray[np.int64]

    def predicted(self, draws: Mapping[str, Array]) -> Array:
        """Return the probabilities of the classes at the modes of draws, (..., C, n)."""
        return np.asarray(one_hot(self.model.y, self.model.n_classes) - draws["dual_coef"])

    def __call__(self, point: Point) -> Mapping[str, Array]:
        """Return log parameters (n_kernels, p), log density, latent values, dual coefficients.

        The length of the correction needs the covariance of the latent values at every row, which
        costs about one gradient.
        """
        f = point.extra["f"]
        return {
            "theta": self.model.split(point.position),
            "log_density": np.asarray(point.log_density),
            "latent": f[:, self.rows],
            "dual_coef": point.extra["a"],
            "dual_correction": self._correction(point),
        }

    def _correction(self, point: Point) -> Array:
        model, extra = self.model, point.extra
        if not np.isfinite(point.log_density):
            return np.zeros_like(extra["q"])
        K, f, q = model.grams(point.position), extra["f"], extra["q"]
        scratch = model.workspace.take_stack("factors", model.n_classes, len(model.y))
        factors = curvature(K, class_probabilities(f), scratch)
        return correction_at(K, one_hot(model.y, model.n_classes), f, extra["a"], q, factors)


# Predictions for several classes: one draw after the other, blocks of rows within.
#
# Memory is two stacks of C n x n arrays and one block of rows, however many draws and rows there
# are.

_BLOCK = 256  # rows predicted at a time


@dataclass(frozen=True)
class SoftmaxDraws:
    """What the latent functions of each draw are computed from.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Standardised training inputs.
    y : ndarray of shape (n,), int
        Codes of the classes, from 0 to C - 1.
    kernel : Kernel
    theta : ndarray of shape (n_total, C, p) or (n_total, 1, p)
        Log parameters of the kernel of each class, or of the one that all share.
    dual_coef : ndarray of shape (n_total, C, n)
        Y - pi at the mode.
    mean_coef : ndarray of shape (n_total, C, n) or None
        Coefficients of the predictive mean: ``dual_coef``, or that plus its correction. None: the
        correction is computed when it is needed.
    weights : ndarray of shape (n_total,) or None
        Of the draws, any sum.
    memory : FactorMemory
        Where factors are kept from one prediction to the next.
    """

    X: Array
    y: NDArray[np.int64]
    kernel: Kernel
    theta: Array
    dual_coef: Array
    mean_coef: Array | None
    weights: Array | None = None
    memory: FactorMemory = field(default_factory=FactorMemory, compare=False, repr=False)

    def moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Yield (rows, mean (m, C), covariance (m, C, C)) of f at rows of X, by draw and block.

        One BLAS thread, so that the bits do not depend on the machine's load.
        """
        with one_blas_thread():
            yield from self._moments(X)

    def _moments(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        scratch, kernel = Workspace(), self.kernel
        for i, theta in enumerate(self.theta):
            roots, inverses, M, mean_coef = self.memory.get(
                i,
                len(self.theta),
                lambda i=i: self._solve(i, scratch),  # type: ignore[misc]
            )
            factors = Curvature(roots, inverses, M, np.nan)
            for begin in range(0, len(X), _BLOCK):
                rows = slice(begin, begin + _BLOCK)
                cross = np.stack([kernel.cross_gram(own, X[rows], self.X) for own in theta])
                variance = np.stack([kernel.diagonal(own, X[rows]) for own in theta])
                mean = np.matmul(cross, mean_coef[:, :, np.newaxis])[:, :, 0].T
                yield rows, mean, latent_covariance(factors, cross, variance)

    def joint(self, i: int, X: Array) -> tuple[Array, Array]:
        """Mean (C m,) and covariance of f of all classes at rows X (m, d), by draw ``i``.

        As in `latent_covariance`, of all pairs of rows.
        """
        scratch, theta, m = Workspace(), self.theta[i], len(X)
        roots, inverses, M, mean_coef = self.memory.get(
            i, len(self.theta), lambda: self._solve(i, scratch)
        )
        cross = np.stack([self.kernel.cross_gram(own, X, self.X) for own in theta])
        mean = np.matmul(cross, mean_coef[:, :, np.newaxis])[:, :, 0]
        shared, own = [], np.zeros((len(roots), m, len(roots), m))
        for c, root in enumerate(roots):
            weighted = root[:, np.newaxis] * cross[c % len(cross)].T
            solved = inverses[c] @ weighted
            own[c, :, c] = self.kernel.gram(theta[c % len(theta)], X) - weighted.T @ solved
            shared.append(solve_lower(M, root[:, np.newaxis] * solved))
        together = np.hstack(shared)
        return mean.ravel(), own.reshape(mean.size, mean.size) + together.T @ together

    def _solve(self, i: int, scratch: Workspace) -> tuple[Array, Array, Array, Array]:
        """Parts of the curvature, and the coefficients of the mean, of one draw."""
        theta, a = self.theta[i], self.dual_coef[i]
        n_classes, n = a.shape
        Y, K = one_hot(self.y, n_classes), scratch.take_stack("grams", len(theta), n)
        for c, own in enumerate(theta):
            self.kernel.gram(own, self.X, out=K[c])
        proba = np.maximum(Y - a, 0.0)
        factors = curvature(K, proba, scratch.take_stack("inverses", n_classes, n))
        parts = (factors.roots, factors.inverses, factors.M)
        if self.mean_coef is not None:
            return (*parts, self.mean_coef[i])
        s2 = _slope(factors, proba, scratch.take_stack("products", n_classes, n))
        q = s2 - factors.solve(_multiply(K, s2))
        return (*parts, a + correction_at(K, Y, _multiply(K, a), a, q, factors))


def mean_class_probabilities(draws: SoftmaxDraws, X: Array) -> Array:
    """Probabilities of the classes (m, C), averaged over latent values and over draws."""
    count, total = np.zeros((len(X), 1)), np.zeros((len(X), draws.dual_coef.shape[1]))
    for weight, rows, mean, covariance in _weighted_moments(draws, X):
        count[rows] += weight
        total[rows] += weight * expected_softmax(mean, covariance)
    return total / count


def latent_moments(draws: SoftmaxDraws, X: Array) -> tuple[Array, Array]:
    """Posterior mean and variance of f, (m, C): mean of variances plus variance of means."""
    shape = (len(X), draws.dual_coef.shape[1])
    count = np.zeros((len(X), 1))
    mean, spread, variance = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for weight, rows, m, covariance in _weighted_moments(draws, X):
        count[rows] += weight
        step = m - mean[rows]
        mean[rows] += step * weight / count[rows]
        spread[rows] += weight * step * (m - mean[rows])
        variance[rows] += weight * np.diagonal(covariance, axis1=1, axis2=2)
    return mean, (variance + spread) / count


def _weighted_moments(draws: SoftmaxDraws, X: Array) -> Iterator[tuple[float, slice, Array, Array]]:
    """Yield (weight of the draw, rows, mean, covariance) of f at rows of X, by draw and block."""
    draw = -1
    for rows, mean, covariance in draws.moments(X):
        draw += rows.start == 0
        weight = 1.0 if draws.weights is None else float(draws.weights[draw])
        yield weight, rows, mean, covariance
