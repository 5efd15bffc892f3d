import numpy as np
import pytest
from scipy.special import comb
from scipy.stats import nbinom, poisson

from mercer.basis.model import SetPrior, integrated, sampled


@pytest.mark.parametrize("kind", ["poisson", "negative_binomial"])
@pytest.mark.parametrize("n_candidates", [0, 1, 3, 12])
def test_prior_of_sets(kind: str, n_candidates: int) -> None:
    """All sets of a size share its probability; cut at the largest size, it adds up to 1."""
    largest, mean = 5, 2.5
    log_size = SetPrior(kind, mean, largest).log_size(n_candidates)
    assert log_size.shape == (largest + 2,)
    k = np.arange(min(n_candidates, largest) + 1)
    law = poisson(mean) if kind == "poisson" else nbinom(1, 1.0 / (1.0 + mean))
    expected = law.pmf(k) / law.pmf(k).sum() / comb(n_candidates, k)
    np.testing.assert_allclose(np.exp(log_size[: len(k)]), expected, rtol=1e-12)
    assert (log_size[len(k) :] == -np.inf).all()


def test_variances() -> None:
    assert not integrated(3).is_sampled
    assert sampled(3).is_sampled
    assert integrated(3).n_mean == sampled(3).n_mean == 3
    assert 2.0 * integrated(1).noise_shape < 1.0  # hardly anything is said of the noise
