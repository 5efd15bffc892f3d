import json

import numpy as np
import pytest

from mercer.estimation.model_file import json_params


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1.0, 2), [1.0, 2]), ([1.0, "a", object()], [1.0, "a", None]),
        (np.array([1.0, 2.5]), [1.0, 2.5]),
        (np.float64(0.5), 0.5), (np.int64(3), 3), (np.array(3.0), 3.0), (np.bool_(True), True),
        ("learn", "learn"), (None, None), (object(), None), ({"a": 1}, None),
    ],
)  # fmt: skip
def test_arguments_as_json_holds_them(value: object, expected: object) -> None:
    params = json_params({"x": value, "n_jobs": 2, "checkpoint": "f"})
    assert params == {"x": expected}
    assert json.loads(json.dumps(params)) == params
