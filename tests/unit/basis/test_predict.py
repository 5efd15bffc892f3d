"""Laws of new rows, against the regression of each particle by plain linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import SequentialKernelRegressor
from mercer.basis.ensemble import filter_law, mean_function, noise_variances
from support.basis_cases import make_filter, problem, run
from support.basis_twins import of_a_kernel_at_the_row

NEW = np.linspace(-2.0, 2.0, 5)[:, np.newaxis]


@pytest.mark.parametrize("variances", ["integrated", "sampled"])
@pytest.mark.parametrize("has_linear_part", [False, True])
def test_each_particle_is_its_regression(variances: str, has_linear_part: bool) -> None:
    filter_ = make_filter(
        variances=variances, has_linear_part=has_linear_part, n_particles=8, n_slots=12
    )
    X, y = problem(12, 1)
    state = run(filter_, X, y, np.random.default_rng(0))
    law, prior, m = filter_law(filter_, state, NEW), filter_.prior, filter_.grid.n_mean
    scales, degrees = noise_variances(filter_, state)
    assert degrees == (np.inf if variances == "sampled" else 2.0 * prior.noise_shape + 12)
    particles, means = state.particles, np.empty((5, 8))
    for i in range(8):
        columns = [*range(m), *particles.members[i, : particles.size[i]]]
        design, new = (
            filter_.grid.design(rows, state.centres[:12], int(particles.level[i]))[:, columns]
            for rows in (X, NEW)
        )
        of_mean = 1.0 / particles.scale[i] if prior.is_sampled else prior.mean_precision
        ridge = np.diag([of_mean] * m + [1.0 / particles.scale[i]] * (len(columns) - m))
        A = design.T @ design + ridge
        beta = np.linalg.solve(A, design.T @ y)
        means[:, i] = new @ beta
        spread = 1.0 + np.einsum("ij,ji->i", new, np.linalg.solve(A, new.T))
        if variances == "integrated":
            all_columns = filter_.grid.design(NEW, state.centres[:12], int(particles.level[i]))
            scale = particles.scale[i]
            spread += [of_a_kernel_at_the_row(k, 12.0, scale) for k in all_columns[:, m:]]
        np.testing.assert_allclose(law.locations[:, i], means[:, i], atol=1e-8)
        np.testing.assert_allclose(law.scales[:, i] ** 2, scales[i] * spread, rtol=1e-7)
        if variances == "integrated":
            rss = y @ y - y @ design @ beta
            rate = (prior.noise_rate + 0.5 * rss) / (prior.noise_shape + 6.0)
            assert scales[i] == pytest.approx(rate, rel=1e-7)
    weights = np.exp(particles.log_weight)
    np.testing.assert_allclose(mean_function(filter_, state, NEW), means @ weights, atol=1e-8)
    without = filter_law(filter_, state, NEW, has_noise=False)
    np.testing.assert_allclose(without.scales**2 + scales, law.scales**2, rtol=1e-7)


def test_far_from_all_rows_the_function_is_not_known() -> None:
    """Of a wave of height 1 the constant alone is known to .4, whatever the function does there."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 5.0, (300, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(300)
    model = SequentialKernelRegressor(random_state=0, progress=False).fit(X, y)
    far, near = np.array([[9.0], [20.0], [-5.0], [-20.0]]), np.linspace(0.5, 4.5, 9)[:, np.newaxis]
    assert (model.latent(near)[1] < 0.1).all()
    assert (model.latent(far)[1] > 0.9).all()
