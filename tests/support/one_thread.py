"""One BLAS thread: the matrices are small, and threads would only wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread() -> Iterator[None]:
    """Limit the libraries as the package does while it fits."""
    with threadpool_limits(limits=1):
        yield
