"""Python source that runs a tuned plan with nothing but the SDK, cuda-python and numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_tuner.backends.tensorrt.artefact import PLAN_FILE
from smart_tuner.engine.build import MODEL_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from smart_tuner.backends.tensorrt.artefact import Facts
    from smart_tuner.backends.tensorrt.sdk import Sdk
    from smart_tuner.backends.tensorrt.settings import BuildSettings

_HEAD = '''"""Opens {plan} as smart_tuner built it: {sdk}, for {target}.

    from load_winner import load
    engine = load()
    context = engine.create_execution_context()

Set shapes and device addresses on the context by the tensors' names, then call
`execute_async_v3`.
"""

from pathlib import Path

import {module} as trt

try:
    from cuda.bindings import runtime as cudart
except ImportError:
    from cuda import cudart

VERSION = {version!r}
CAPABILITY = {capability!r}
PLUGINS = {plugins!r}
LOGGER = trt.Logger(trt.Logger.WARNING)
_KEPT = []  # runtimes must outlive their engines


def capability():
    """Compute capability of the current GPU, e.g. "90"."""
    digits = ""
    for name in ("Major", "Minor"):
        attribute = getattr(cudart.cudaDeviceAttr, "cudaDevAttrComputeCapability" + name)
        error, value = cudart.cudaDeviceGetAttribute(attribute, 0)
        if error != cudart.cudaError_t.cudaSuccess:
            raise RuntimeError(f"no usable GPU: {{error.name}}")
        digits += str(value)
    return digits


def load(plan=Path(__file__).with_name({plan!r})):
    """Load the plan; raises RuntimeError if version or GPU are not the ones it was built for."""
{checks}    trt.init_libnvinfer_plugins(LOGGER, "")
    for library in PLUGINS:
        trt.get_plugin_registry().load_library(library)
    runtime = trt.Runtime(LOGGER)
{host_code}    engine = runtime.deserialize_cuda_engine(Path(plan).read_bytes())
    if engine is None:
        raise RuntimeError(f"{{plan}} does not load")
    _KEPT.append(runtime)
{refit}    return engine
'''

_VERSION_CHECK = """    if trt.__version__ != VERSION:
        raise RuntimeError(f"built with {VERSION}, {trt.__version__} is installed")
"""
_GPU_CHECK = """    if capability() != CAPABILITY:
        raise RuntimeError(f"built for compute capability {CAPABILITY}, here is {capability()}")
"""
_AMPERE_CHECK = """    if int(capability()) < 80:
        raise RuntimeError(f"built for compute capability 80 and newer, here is {capability()}")
"""
_HOST_CODE = "    runtime.engine_host_code_allowed = True\n"
_REFIT = """    refitter = trt.Refitter(engine, LOGGER)
    weights = trt.OnnxParserRefitter(refitter, LOGGER)
    if not weights.refit_from_file({model}) or not refitter.refit_cuda_engine():
        raise RuntimeError("the engine does not take the weights of its model")
"""


def loader_source(sdk: Sdk, facts: Facts, settings: BuildSettings, model: Path) -> str:
    """Write a module with ``load``, which checks version and GPU first.

    Args:
        sdk: The SDK that built the plan.
        facts: What it was built for.
        settings: Plugins, compatibility and whether weights are missing.
        model: Where a stripped plan gets its weights from.
    """
    is_wide = settings.hardware_compatibility == "ampere_plus"
    checks = "" if settings.version_compatible else _VERSION_CHECK
    checks += _AMPERE_CHECK if is_wide else _GPU_CHECK
    return _HEAD.format(
        plan=PLAN_FILE,
        sdk=sdk,
        target=facts.target,
        module=sdk.module.__name__,
        version=sdk.version,
        capability=facts.target.compute_capability,
        plugins=list(facts.plugins),
        checks=checks,
        host_code=_HOST_CODE if settings.version_compatible else "",
        refit=_REFIT.format(model=_place(model)) if settings.strip_plan else "",
    )


def _place(model: Path) -> str:
    """Where the loader finds a model, as Python: one made for the engine lies beside it."""
    if model.name == MODEL_FILE:
        return f"str(Path(__file__).with_name({model.name!r}))"
    return repr(str(model))
