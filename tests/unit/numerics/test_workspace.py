from __future__ import annotations

import pickle

from mercer.numerics.cholesky import Workspace


def test_the_same_memory_until_the_size_changes() -> None:
    workspace = Workspace()
    one = workspace.take("a", 3)
    assert one.shape == (3, 3)
    assert workspace.take("a", 3) is one
    assert workspace.take("b", 3) is not one
    assert workspace.take("a", 4).shape == (4, 4)


def test_stacks() -> None:
    workspace = Workspace()
    one = workspace.take_stack("a", 2, 3)
    assert one.shape == (2, 3, 3)
    assert one.flags.c_contiguous
    assert workspace.take_stack("a", 2, 3) is one
    assert workspace.take_stack("a", 3, 3).shape == (3, 3, 3)


def test_pickled_empty() -> None:
    workspace = Workspace()
    workspace.take("a", 50)
    assert len(pickle.dumps(workspace)) < 1000
