"""Peers that sample hyperparameters of a GP classifier: PyMC with nutpie, BlackJAX, NumPyro.

Model, the same for all: latent values f = v0^.5 L z of the rows, L the Cholesky factor of the
correlations plus 1e-8 on the diagonal, z standard normal; logistic likelihood; independent normals
over theta = log(v0, w_1, .., w_d). Three run NUTS over z and theta together, with their own warm-up
at its defaults; BlackJAX's `laplace_hmc` integrates z out by Laplace's approximation and runs HMC
of ten steps over theta. One chain, double precision, one thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["NUGGET", "PEERS", "Problem", "Sampled", "blackjax_nuts", "laplace_hmc", "numpyro_nuts",
           "nutpie_nuts", "one_core"]  # fmt: skip

Array = NDArray[np.float64]

NUGGET = 1e-8  # on the diagonal of the correlations
_N_STEPS = 10  # of a trajectory of `laplace_hmc`


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows and prior.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        0.0 or 1.0.
    mean, std : ndarray of shape (d + 1,)
        Of the prior of theta.
    """

    X: Array
    y: Array
    mean: Array
    std: Array


class Sampled(NamedTuple):
    """One chain.

    Attributes
    ----------
    seconds : float
        CPU seconds of warm-up and draws, without compiling.
    theta : ndarray of shape (n_draws, d + 1)
    z : ndarray of shape (n_draws, n)
    """

    seconds: float
    theta: Array
    z: Array


# Warm-up steps, draws, seed -> the chain; what is compiled before is not timed.
Run = Callable[[int], Sampled]


def one_core() -> None:
    """Keep this process on one core, and JAX on one thread; before JAX is imported."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def nutpie_nuts(problem: Problem, n_warmup: int, n_draws: int) -> Run:
    """Compile the model with PyMC and Numba; return what samples it with nutpie."""
    import nutpie
    import pymc as pm
    import pytensor.tensor as pt

    with pm.Model() as model:
        theta = pm.Normal("theta", problem.mean, problem.std, shape=len(problem.mean))
        z = pm.Normal("z", shape=len(problem.y))
        f = pt.exp(0.5 * theta[0]) * (pt.linalg.cholesky(_correlations(pt, theta, problem.X)) @ z)
        pm.Bernoulli("y", logit_p=f, observed=problem.y)
    compiled = nutpie.compile_pymc_model(model)

    def draw(n_tune: int, n_kept: int, seed: int) -> Any:
        return nutpie.sample(
            compiled, draws=n_kept, tune=n_tune, chains=1, cores=1, seed=seed, progress_bar=False
        )

    draw(2, 2, 0)

    def run(seed: int) -> Sampled:
        begin = time.process_time()
        posterior = draw(n_warmup, n_draws, seed).posterior
        seconds = time.process_time() - begin
        return Sampled(seconds, *(np.asarray(posterior[name])[0] for name in ("theta", "z")))

    return run


def blackjax_nuts(problem: Problem, n_warmup: int, n_draws: int) -> Run:
    """BlackJAX's NUTS after its window adaptation."""
    jax = _jax()
    import blackjax

    joint = _log_joint(problem)

    def log_density(position: Any) -> Any:
        return joint(position["z"], position["theta"])

    def chain(key: Any) -> tuple[Any, Any]:
        first, second, third = jax.random.split(key, 3)
        warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
        (state, tuned), _ = warmup.run(first, _start(problem, third), n_warmup)
        kernel = blackjax.nuts(log_density, **tuned)
        positions = _draws(kernel.step, state, second, n_draws).position
        return positions["theta"], positions["z"]

    return _compiled(chain)


def numpyro_nuts(problem: Problem, n_warmup: int, n_draws: int) -> Run:
    """NumPyro's NUTS."""
    jax = _jax()
    import numpyro
    from numpyro import distributions as law
    from numpyro.infer import MCMC, NUTS

    jnp = jax.numpy

    def model() -> None:
        theta = numpyro.sample("theta", law.Normal(problem.mean, problem.std).to_event(1))
        z = numpyro.sample("z", law.Normal(0.0, 1.0).expand([len(problem.y)]).to_event(1))
        L = jnp.linalg.cholesky(_correlations(jnp, theta, problem.X))
        f = jnp.exp(0.5 * theta[0]) * (L @ z)
        numpyro.sample("y", law.Bernoulli(logits=f).to_event(1), obs=problem.y)

    def chain(key: Any) -> tuple[Any, Any]:
        sampler = MCMC(NUTS(model), num_warmup=n_warmup, num_samples=n_draws, progress_bar=False)
        sampler.run(key)
        draws = sampler.get_samples()
        return draws["theta"], draws["z"]

    return _compiled(chain)


def laplace_hmc(problem: Problem, n_warmup: int, n_draws: int) -> Run:
    """BlackJAX's HMC over theta on Laplace's evidence; mass and step size by window adaptation."""
    jax = _jax()
    import blackjax
    from blackjax.mcmc.laplace_marginal import laplace_marginal_factory

    joint, zeros = _log_joint(problem), jax.numpy.zeros(len(problem.y))
    evidence = laplace_marginal_factory(joint, zeros)

    def chain(key: Any) -> tuple[Any, Any]:
        first, second, third = jax.random.split(key, 3)
        warmup = blackjax.window_adaptation(
            blackjax.hmc, lambda theta: evidence(theta)[0], num_integration_steps=_N_STEPS
        )
        (state, tuned), _ = warmup.run(first, _start(problem, third)["theta"], n_warmup)
        kernel = blackjax.laplace_hmc(joint, zeros, **tuned)
        draws = _draws(kernel.step, kernel.init(state.position), second, n_draws)
        return draws.position, draws.theta_star

    @jax.jit
    def latent_values(key: Any, theta: Any, mode: Any) -> Any:
        keys = jax.random.split(key, n_draws)
        return jax.lax.map(lambda each: evidence.sample_theta(*each), (keys, theta, mode))

    sampled = _compiled(chain)

    def run(seed: int) -> Sampled:
        seconds, theta, mode = sampled(seed)
        z = latent_values(jax.random.PRNGKey(10_000 + seed), theta, mode)
        return Sampled(seconds, theta, np.asarray(z))

    return run


#: Name -> (problem, steps of warm-up, draws) -> what runs a chain from a seed.
PEERS: dict[str, Callable[[Problem, int, int], Run]] = {
    "PyMC, nutpie": nutpie_nuts,
    "BlackJAX, NUTS": blackjax_nuts,
    "NumPyro, NUTS": numpyro_nuts,
    "BlackJAX, laplace_hmc": laplace_hmc,
}


def _jax() -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)
    return jax


def _correlations(numbers: Any, theta: Any, X: Array) -> Any:
    """Of the rows, (n, n), the nugget on the diagonal; by ``jax.numpy`` or ``pytensor.tensor``."""
    Z = X * numbers.exp(0.5 * theta[1:])
    norms = (Z**2).sum(1)
    distances = numbers.maximum(norms[:, None] + norms[None, :] - 2.0 * (Z @ Z.T), 0.0)
    return numbers.exp(-0.5 * distances) + NUGGET * np.eye(len(X))


def _log_joint(problem: Problem) -> Callable[[Any, Any], Any]:
    """log p(y, z, theta) up to a constant, a function of z (n,) and theta (d + 1,)."""
    jnp = _jax().numpy

    def log_joint(z: Any, theta: Any) -> Any:
        L = jnp.linalg.cholesky(_correlations(jnp, theta, problem.X))
        f = jnp.exp(0.5 * theta[0]) * (L @ z)
        fit = jnp.sum(problem.y * f - jnp.logaddexp(0.0, f))
        scaled = (theta - problem.mean) / problem.std
        return fit - 0.5 * jnp.sum(scaled**2) - 0.5 * jnp.sum(z**2)

    return log_joint


def _start(problem: Problem, key: Any) -> dict[str, Any]:
    """Near the prior's mean."""
    random = _jax().random
    first, second = random.split(key)
    return {
        "theta": problem.mean + 0.1 * random.normal(first, problem.mean.shape),
        "z": 0.1 * random.normal(second, problem.y.shape),
    }


def _draws(step: Any, state: Any, key: Any, n_draws: int) -> Any:
    """States of one chain, stacked."""
    jax = _jax()

    def one(state: Any, key: Any) -> tuple[Any, Any]:
        state, _ = step(key, state)
        return state, state

    return jax.lax.scan(one, state, jax.random.split(key, n_draws))[1]


def _compiled(chain: Callable[[Any], tuple[Any, Any]]) -> Run:
    """Compile the whole chain, warm-up and all; return what runs it."""
    jax = _jax()
    program = jax.jit(chain).lower(jax.random.PRNGKey(0)).compile()

    def run(seed: int) -> Sampled:
        begin = time.process_time()
        theta, z = jax.block_until_ready(program(jax.random.PRNGKey(seed)))
        return Sampled(time.process_time() - begin, np.asarray(theta), np.asarray(z))

    return run
