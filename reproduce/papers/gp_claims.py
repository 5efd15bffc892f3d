"""Barber & Williams, section 2.3: are conjugate gradients an order of magnitude faster?

Newton's method for the mode, eqs. (5) to (7), three times on the same Gram matrices: every system
solved by a Cholesky factor; by conjugate gradients that start from the solution of the last one, as
the paper has it; and as mercer does it, where one factor serves several steps. All end so near to
the mode that no prediction would show the difference: the table says how near. A second start is
where a trajectory would be: the mode at hyperparameters a leapfrog step away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import threadpool_limits

from mercer.gp.laplace import fit_laplace
from reproduce.papers.kept import kept, parts_folder
from reproduce.papers.reproduction import Claim, Reproduction, Settings, judged

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Mode", "find_mode", "problem", "reproduce", "solve_by_cg", "solve_by_factor"]

Array = NDArray[np.float64]
# (K, W^.5, right-hand side, where to start) -> solution, and products of K with a vector.
Solver = Callable[[Array, Array, Array, Array], tuple[Array, int]]

_NAME = "gp-claims"
_SIZES, _QUICK_SIZES = (200, 500, 1000, 2000), (100, 200)
_N_ROUNDS, _QUICK_ROUNDS = 5, 1
_D = 7  # inputs, as many as Pima has
_ORDER_OF_MAGNITUDE = 10.0
# Newton steps end when f changes by less than this, in logits: what is left is of the order of its
# square. Conjugate gradients solve each system to this residual, relative, which is left as well.
_LAST_STEP, _RESIDUAL = 1e-5, 1e-8
_MOST_STEPS, _MOST_PRODUCTS = 100, 5000
_LOG_STEP = 0.1  # of the log parameters: one step of the paper's leapfrog
CHOLESKY, CG, MERCER = "Cholesky", "conjugate gradients", "mercer, energy and gradient"
STARTS = ("from 0", "from the last mode")


@dataclass(frozen=True)
class Mode:
    """Where Newton's method ended.

    Attributes
    ----------
    f : ndarray of shape (n,)
        In logits.
    a : ndarray of shape (n,)
        Dual coefficients, f = K a.
    z : ndarray of shape (n,)
        Solution of the last system.
    n_steps, n_products : int
    """

    f: Array
    a: Array
    z: Array
    n_steps: int
    n_products: int


def reproduce(settings: Settings) -> Reproduction:
    """Time the solvers in turn, for each number of rows and each start."""
    sizes = _QUICK_SIZES if settings.is_quick else _SIZES
    with threadpool_limits(limits=1, user_api="blas"):
        found = {n: _of_size(n, settings) for n in sizes}
    return Reproduction(
        name=_NAME,
        title="Conjugate gradients and Cholesky factors in Newton's method",
        source="Barber & Williams (1997), section 2.3",
        command=f"mercer reproduce {_NAME}" + (" --quick" if settings.is_quick else ""),
        claims=_claims(found, settings),
        measured={
            f"n = {n}, {start}: {name}": np.array(row[start][name]["seconds"])
            for n, row in found.items()
            for start in STARTS
            for name in row[start]
        },
        unit="CPU seconds",
        published={},
        notes=(
            "Simulated rows of seven inputs, length scale 2.6 and signal variance e at the first "
            "hyperparameters, all of them changed by 0.1 in the log for the second start. One "
            f"thread, medians of {_QUICK_ROUNDS if settings.is_quick else _N_ROUNDS} rounds in "
            "turn. Error: of f from the mode, in logits, the largest.",
            "A mode is not all: the energy needs a log determinant and its gradient a trace, which "
            "conjugate gradients do not give and a factor does. The row of mercer has all three, "
            "always from 0, so that the energy is a function of the hyperparameters alone.",
        ),
        draw=lambda figure: _draw(figure, found),
        number=".4f",
        tables=(_table(found),),
    )


def problem(n: int) -> tuple[Array, Array, Array]:
    """Gram matrices at two neighbouring hyperparameters, and targets in {0, 1}."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, _D))
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    latent = X[:, 0] + X[:, 1] ** 2 - 1.0 + np.sin(2.0 * X[:, 2])
    y = (latent + rng.logistic(size=n) * 0.5 > 0.0).astype(np.float64)
    grams = []
    for shift in (0.0, _LOG_STEP):
        lengthscale = np.sqrt(_D) * np.exp(-shift)
        gram = np.exp(1.0 + shift) * np.exp(-0.5 * squares / lengthscale**2)
        grams.append(gram + 1e-6 * np.eye(n))
    return grams[0], grams[1], y


def find_mode(K: Array, y: Array, solve: Solver, start: Mode | None = None) -> Mode:
    """Newton's method, each of its systems solved by ``solve`` from the last solution."""
    n = len(y)
    f = np.zeros(n) if start is None else K @ start.a
    z = np.zeros(n) if start is None else start.z
    n_products = 0
    for step in range(1, _MOST_STEPS + 1):
        proba = 1.0 / (1.0 + np.exp(-f))
        root = np.sqrt(proba * (1.0 - proba))
        b = root**2 * f + y - proba
        z, n_now = solve(K, root, root * (K @ b), z)
        n_products += n_now
        a = b - root * z
        new = K @ a
        change = float(np.abs(new - f).max())
        f = new
        if change < _LAST_STEP:
            return Mode(f, a, z, step, n_products)
    raise FloatingPointError(f"Newton's method has not settled after {_MOST_STEPS} steps")


def solve_by_factor(K: Array, root: Array, rhs: Array, start: Array) -> tuple[Array, int]:
    """Solve (I + W^.5 K W^.5) z = rhs by a Cholesky factor; the start is of no use to it."""
    B = root[:, None] * K * root
    B.flat[:: len(rhs) + 1] += 1.0
    factor = cho_factor(B, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, rhs, check_finite=False)), 0


def solve_by_cg(K: Array, root: Array, rhs: Array, start: Array) -> tuple[Array, int]:
    """Solve the same by conjugate gradients from ``start``, to the residual that is asked for."""
    x = start.copy()
    residual = rhs - x - root * (K @ (root * x))
    direction = residual.copy()
    square = float(residual @ residual)
    goal = (_RESIDUAL * float(np.linalg.norm(rhs))) ** 2
    for n_products in range(1, _MOST_PRODUCTS):
        if square <= goal:
            return x, n_products
        image = direction + root * (K @ (root * direction))
        step = square / float(direction @ image)
        x += step * direction
        residual -= step * image
        last, square = square, float(residual @ residual)
        direction = residual + (square / last) * direction
    raise FloatingPointError(f"no solution after {_MOST_PRODUCTS} products")


def _of_size(n: int, settings: Settings) -> dict[str, Any]:
    n_rounds = _QUICK_ROUNDS if settings.is_quick else _N_ROUNDS

    def run() -> dict[str, Any]:
        settings.tell(f"modes of {n} rows")
        K_before, K, y = problem(n)
        before = find_mode(K_before, y, solve_by_factor)
        # Two more steps from the end square the error away.
        truth = find_mode(K, y, solve_by_factor, find_mode(K, y, solve_by_factor)).f
        found: dict[str, Any] = {}
        for name, start in zip(STARTS, (None, before), strict=True):
            calls: dict[str, Callable[[], Any]] = {
                CHOLESKY: partial(find_mode, K, y, solve_by_factor, start),
                CG: partial(find_mode, K, y, solve_by_cg, start),
            }
            if start is None:
                calls[MERCER] = partial(fit_laplace, K, y)
            found[name] = _timed(calls, truth, n_rounds)
        return found

    stamp = {"n": n, "rounds": n_rounds, "residual": _RESIDUAL, "step": _LAST_STEP}
    return kept(parts_folder(settings, _NAME), f"modes-{n}", stamp, run)


def _timed(
    calls: Mapping[str, Callable[[], Any]], truth: Array, n_rounds: int
) -> dict[str, dict[str, Any]]:
    """CPU seconds of each call round by round, its error, its steps and its products."""
    rows: dict[str, dict[str, Any]] = {}
    for name, call in calls.items():  # the first time is not counted
        mode = call()
        rows[name] = {
            "seconds": [],
            "error": float(np.abs(mode.f - truth).max()),
            "n_steps": getattr(mode, "n_steps", None),
            "n_products": getattr(mode, "n_products", None),
        }
    for _ in range(n_rounds):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            rows[name]["seconds"].append(time.process_time() - begin)
    return rows


def _ratio(row: Mapping[str, Any]) -> float:
    """How many times as long Cholesky factors take as conjugate gradients."""
    return float(np.median(row[CHOLESKY]["seconds"]) / np.median(row[CG]["seconds"]))


def _claims(found: Mapping[int, Any], settings: Settings) -> tuple[Claim, ...]:
    claims = []
    for start in STARTS:
        ratios = {n: _ratio(row[start]) for n, row in found.items()}
        claims.append(
            judged(
                settings,
                f"conjugate gradients find the mode an order of magnitude faster, {start}",
                "yes",
                "; ".join(f"n = {n}: {ratio:.1f} times" for n, ratio in ratios.items()),
                ratios[min(ratios)] >= _ORDER_OF_MAGNITUDE,
                f"{_ORDER_OF_MAGNITUDE:.0f} times, at n = 200, the rows of the paper's Pima",
            )
        )
    return tuple(claims)


def _table(found: Mapping[int, Any]) -> str:
    heads = ["n", "start", "method", "CPU ms", "Newton steps", "products of CG", "error"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for n, row in found.items():
        for start in STARTS:
            for name, each in row[start].items():
                steps, products = each["n_steps"], each["n_products"]
                cells = [str(n), start, name, f"{1000.0 * np.median(each['seconds']):.3g}"]
                cells += ["-" if steps is None else str(steps), str(products or "-")]
                lines.append("| " + " | ".join([*cells, f"{each['error']:.0e}"]) + " |")
    return "\n".join(lines)


def _draw(figure: Figure, found: Mapping[int, Any]) -> None:
    """Median seconds over rows, a panel for each start."""
    from mercer.plot.style import CHAIN_COLOURS, FONT_SIZE, dress

    figure.set_size_inches(9.0, 3.8)
    for axes, start in zip(figure.subplots(1, 2, sharey=True), STARTS, strict=True):
        dress(axes)
        names = list(next(iter(found.values()))[start])
        for colour, name in zip(CHAIN_COLOURS, names, strict=False):
            seconds = [np.median(row[start][name]["seconds"]) for row in found.values()]
            axes.plot(list(found), seconds, "o-", color=colour, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("rows")
        axes.set_title(f"Newton's method {start}", fontsize=FONT_SIZE)
        axes.legend(fontsize=FONT_SIZE - 2, frameon=False)
    figure.axes[0].set_ylabel("CPU seconds")
