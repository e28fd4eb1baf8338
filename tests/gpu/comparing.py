"""What outputs should be, and whether they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt


def run_on_processor(model: Path, inputs: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def assert_close(found: Any, wanted: Any) -> None:
    """Equal names, types and shapes; values as close as float32 comes."""
    assert set(found) == set(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_allclose(found[name], array, rtol=1e-3, atol=1e-3)
