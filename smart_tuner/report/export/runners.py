"""Source of the modules that run a winner; ``load_winner`` beside them opens it."""

from __future__ import annotations

_ENGINE = '''"""Runs {engine} with {library}.

    from run_winner import Winner
    winner = Winner()
    outputs = winner({{name: {array} for each of winner.inputs}})
"""

{imports}
from load_winner import load


class Winner:
    """The engine with one execution context; calls give outputs by name."""

    def __init__(self):
        self.engine = load()
        self.context = self.engine.create_execution_context()
        names = [self.engine.get_tensor_name(i) for i in range(self.engine.num_io_tensors)]
        modes = {{name: self.engine.get_tensor_mode(name) for name in names}}
        self.inputs = [name for name in names if modes[name] == trt.TensorIOMode.INPUT]
        self.outputs = [name for name in names if modes[name] == trt.TensorIOMode.OUTPUT]

    def set_shape(self, name, shape):
        """Tell the engine the shape of an input."""
        if not self.context.set_input_shape(name, shape):
            raise ValueError(f"{{name}} cannot have the shape {{shape}}")

    def shape(self, name):
        """Shape of an output, once the inputs' shapes are set."""
        shape = tuple(self.context.get_tensor_shape(name))
        if -1 in shape:
            raise RuntimeError(name + " has a size that depends on data: use an IOutputAllocator")
        return shape
'''

_TORCH = '''
    def __call__(self, inputs):
        """Run; `inputs` are CUDA tensors by name, and so is what comes back."""
        kept = {{name: inputs[name].cuda().contiguous() for name in self.inputs}}
        for name, tensor in kept.items():
            if tensor.dtype != self.dtype(name):
                raise TypeError(f"{{name}} is {{tensor.dtype}}, the engine takes {{self.dtype(name)}}")
            self.set_shape(name, tuple(tensor.shape))
            self.context.set_tensor_address(name, tensor.data_ptr())
        found = {{}}
        for name in self.outputs:
            found[name] = torch.empty(self.shape(name), dtype=self.dtype(name), device="cuda")
            self.context.set_tensor_address(name, found[name].data_ptr())
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        if not self.context.execute_async_v3(stream.cuda_stream):
            raise RuntimeError("the engine did not run")
        stream.synchronize()
        return found

    def dtype(self, name):
        """torch's type of a tensor."""
        return getattr(torch, TYPES[self.engine.get_tensor_dtype(name).name])
'''

_TORCH_IMPORTS = """import {module} as trt
import torch
"""

_TYPES = """

TYPES = {{
    "FLOAT": "float32",
    "HALF": "float16",
    "INT32": "int32",
    "INT64": "int64",
    "INT8": "int8",
    "UINT8": "uint8",
    "BOOL": "bool",{more}
}}
"""

_CUDA_IMPORTS = """import {module} as trt
import numpy as np

try:
    from cuda.bindings import runtime as cudart
except ImportError:
    from cuda import cudart
"""

_CUDA_CHECK = '''

def check(answer):
    """The value of a CUDA call; raises RuntimeError if it failed."""
    error, *values = answer
    if error != cudart.cudaError_t.cudaSuccess:
        raise RuntimeError(error.name)
    return values[0] if values else None
'''

_CUDA = '''
    def __call__(self, inputs):
        """Run; `inputs` are numpy arrays by name, and so is what comes back."""
        stream = check(cudart.cudaStreamCreateWithFlags(cudart.cudaStreamNonBlocking))
        memory = {{}}
        try:
            given = {{}}
            for name in self.inputs:
                given[name] = np.ascontiguousarray(inputs[name], self.dtype(name))
                self.set_shape(name, given[name].shape)
                self.place(name, given[name], memory)
                self.copy(memory[name], given[name].ctypes.data, given[name].nbytes, stream)
            found = {{name: np.empty(self.shape(name), self.dtype(name)) for name in self.outputs}}
            for name, array in found.items():
                self.place(name, array, memory)
            if not self.context.execute_async_v3(int(stream)):
                raise RuntimeError("the engine did not run")
            for name, array in found.items():
                self.copy(array.ctypes.data, memory[name], array.nbytes, stream)
            check(cudart.cudaDeviceSynchronize())
            return found
        finally:
            for address in memory.values():
                check(cudart.cudaFree(address))
            check(cudart.cudaStreamDestroy(stream))

    def place(self, name, array, memory):
        """Give a tensor memory on the device."""
        memory[name] = check(cudart.cudaMalloc(max(1, array.nbytes)))
        self.context.set_tensor_address(name, memory[name])

    def copy(self, target, source, size, stream):
        """Copy bytes between host and device."""
        kind = cudart.cudaMemcpyKind.cudaMemcpyDefault
        check(cudart.cudaMemcpyAsync(target, source, size, kind, stream))

    def dtype(self, name):
        """numpy's type of a tensor."""
        return np.dtype(TYPES[self.engine.get_tensor_dtype(name).name])
'''


def runner_source(library: str, engine: str, module: str) -> str:
    """Write the module that runs a winner.

    Args:
        library: ``cuda-python`` or ``torch``.
        engine: Name of the engine file.
        module: The SDK's Python module.
    """
    is_torch = library == "torch"
    head, _, body = _ENGINE.partition("\n\nclass Winner:")
    text = "".join(
        (
            head,
            _TYPES,
            "" if is_torch else _CUDA_CHECK,
            f"\n\nclass Winner:{body}",
            _TORCH if is_torch else _CUDA,
        )
    )
    return text.format(
        engine=engine,
        library=library,
        array="CUDA tensor" if is_torch else "numpy array",
        more='\n    "BF16": "bfloat16",' if is_torch else "",
        imports=(_TORCH_IMPORTS if is_torch else _CUDA_IMPORTS).format(module=module),
    )
