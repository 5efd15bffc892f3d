from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from reproduce.papers.mcnemar import mcnemar


def wrong(only_first: int, only_second: int) -> tuple[np.ndarray, np.ndarray]:
    """Which rows each has wrong, beside five that both have."""
    first = np.array([True] * only_first + [False] * only_second + [True] * 5 + [False] * 9)
    second = np.array([False] * only_first + [True] * only_second + [True] * 5 + [False] * 9)
    return first, second


@pytest.mark.parametrize("pair", [(9, 1), (1, 9), (3, 4), (20, 30)])
def test_is_the_exact_value_with_what_was_seen_counted_half(pair: tuple[int, int]) -> None:
    n = sum(pair)
    exact = binomtest(min(pair), n).pvalue
    seen = binomtest(min(pair), n, alternative="less").pvalue
    seen -= binomtest(min(pair) - 1, n, alternative="less").pvalue
    assert mcnemar(*wrong(*pair)) == pytest.approx(exact - seen, rel=1e-12)


def test_a_tie_and_no_difference() -> None:
    assert mcnemar(*wrong(2, 2)) == pytest.approx(1.0 - 0.5 * 6 / 16)
    assert mcnemar(*wrong(0, 0)) == 1.0


def test_is_known_to_be_right_under_its_hypothesis() -> None:
    """Shares below 5 %, by enumeration of the law: about 5 % at n = 60, never above 5.5."""
    n = 60
    law = np.array([binomtest(k, n).pvalue for k in range(n + 1)])
    assert law.max() == pytest.approx(1.0)
    from scipy.stats import binom

    rejected = [mcnemar(*wrong(k, n - k)) < 0.05 for k in range(n + 1)]
    share = binom.pmf(np.arange(n + 1), n, 0.5)[rejected].sum()
    assert 0.03 < share < 0.055
