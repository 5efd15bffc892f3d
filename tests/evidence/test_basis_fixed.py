from __future__ import annotations

import numpy as np
import pytest

from reproduce.papers import basis_fixed
from reproduce.papers.basis_answer import Answer, Method, Problem
from reproduce.papers.reproduction import Settings


@pytest.mark.parametrize(("shift", "verdict"), [(0.005, "holds"), (0.02, "fails")])
def test_the_largest_change_is_judged(
    shift: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def method(key: str, name: str, options: dict) -> Method:
        error = 0.05 + (shift if "expected" in options else 0.0)
        return Method(key, name, lambda problem, seed, is_quick: Answer(problem.f_test + error))

    monkeypatch.setattr(basis_fixed, "_method", method)
    (claim,) = basis_fixed.part(Settings()).claims
    assert claim.verdict == verdict
    assert f"{100 * shift / 0.05:+.0f} %" in claim.ours


def test_variants_are_other_models() -> None:
    """Each option reaches the filter: no two predictions are the same."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (14, 1))
    problem = Problem(X, np.sin(X[:, 0]), X[:4], np.zeros(4))
    variants = {name: o for name, o in basis_fixed._variants().items() if name != "k_max = 10"}
    means = [
        basis_fixed._method("key", name, options).run(problem, 0, True).mean
        for name, options in variants.items()
    ]
    assert len({mean.tobytes() for mean in means}) == len(variants)
