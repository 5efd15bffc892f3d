"""Array libraries that tests compute features by."""

from __future__ import annotations

import pytest

from mercer.features.device import Device


def device_for_tests(library: str) -> Device:
    """The library that holds to the standard alone, "strict", or PyTorch on the processor."""
    if library == "torch":
        pytest.importorskip("torch")
        pytest.importorskip("array_api_compat")
        return Device("cpu")
    pytest.importorskip("array_api_strict")
    return Device(None, "array_api_strict")
