"""Opens engine.plan as smart_tuner built it: tensorrt 8.6.0, for NVIDIA H200 (compute capability 90).

    from load_winner import load
    engine = load()
    context = engine.create_execution_context()

Set shapes and device addresses on the context by the tensors' names, then call
`execute_async_v3`.
"""

from pathlib import Path

import tensorrt as trt

try:
    from cuda.bindings import runtime as cudart
except ImportError:
    from cuda import cudart

VERSION = '8.6.0'
CAPABILITY = '90'
PLUGINS = []
LOGGER = trt.Logger(trt.Logger.WARNING)
_KEPT = []  # runtimes must outlive their engines


def capability():
    """Compute capability of the current GPU, e.g. "90"."""
    digits = ""
    for name in ("Major", "Minor"):
        attribute = getattr(cudart.cudaDeviceAttr, "cudaDevAttrComputeCapability" + name)
        error, value = cudart.cudaDeviceGetAttribute(attribute, 0)
        if error != cudart.cudaError_t.cudaSuccess:
            raise RuntimeError(f"no usable GPU: {error.name}")
        digits += str(value)
    return digits


def load(plan=Path(__file__).with_name('engine.plan')):
    """Load the plan; raises RuntimeError if version or GPU are not the ones it was built for."""
    if trt.__version__ != VERSION:
        raise RuntimeError(f"built with {VERSION}, {trt.__version__} is installed")
    if capability() != CAPABILITY:
        raise RuntimeError(f"built for compute capability {CAPABILITY}, here is {capability()}")
    trt.init_libnvinfer_plugins(LOGGER, "")
    for library in PLUGINS:
        trt.get_plugin_registry().load_library(library)
    runtime = trt.Runtime(LOGGER)
    engine = runtime.deserialize_cuda_engine(Path(plan).read_bytes())
    if engine is None:
        raise RuntimeError(f"{plan} does not load")
    _KEPT.append(runtime)
    return engine
