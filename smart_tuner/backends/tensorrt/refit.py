"""Giving an engine its weights: a stripped plan holds none until it is refitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt import api
from smart_tuner.errors import RunError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from smart_tuner.backends.tensorrt.logger import BuildLog
    from smart_tuner.backends.tensorrt.sdk import Sdk


def refit_engine(sdk: Sdk, engine: api.CudaEngine, model: Path, log: BuildLog) -> None:
    """Replace the weights of a refittable engine by those of an ONNX file.

    Args:
        sdk: The SDK that loaded the engine.
        engine: An engine built with ``refit`` or ``strip_plan``.
        model: The model that it was built from, or one with the same graph.
        log: The log that the engine was loaded with.

    Raises:
        RunError: The engine takes no weights, or not these.
    """
    if not engine.refittable:
        msg = "the engine takes no weights: build it with refit = on or strip_plan = on"
        raise RunError(msg)
    since = log.position
    refitter = sdk.module.Refitter(engine, log.native)
    if isinstance(sdk.module, api.HasParserRefitter):
        is_fed = sdk.module.OnnxParserRefitter(refitter, log.native).refit_from_file(str(model))
    else:
        weights = _weights(refitter, model)  # the refitter reads them where they lie
        is_fed = all(refitter.set_named_weights(*named) for named in weights.items())
    if not is_fed or not refitter.refit_cuda_engine():
        missing = refitter.get_missing_weights()
        what = f", {len(missing)} weights are missing" if missing else ""
        msg = f"the engine does not take the weights of {model}{what}: {log.reason(since)}"
        raise RunError(msg)


def _weights(refitter: api.Refitter, model: Path) -> dict[str, npt.NDArray[np.generic]]:
    """The initializers that an engine names as its weights."""
    import onnx
    from onnx import numpy_helper

    wanted = set(refitter.get_all_weights())
    return {
        tensor.name: numpy_helper.to_array(tensor, str(model.parent))
        for tensor in onnx.load(model).graph.initializer
        if tensor.name in wanted
    }
