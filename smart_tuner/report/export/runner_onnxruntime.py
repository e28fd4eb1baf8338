"""The module that runs a tuned session of ONNX Runtime, on the processor or on a GPU."""

from __future__ import annotations

_HEAD = '''"""Runs {engine} with onnxruntime.

    from run_winner import Winner
    winner = Winner("model.onnx")
    outputs = winner({{name: array for each of winner.inputs}})
"""

'''

_OPEN = '''        """Open it; give the model's path if the file was moved since it was tuned."""
        self.session = load(*model)
        self.inputs = [item.name for item in self.session.get_inputs()]
        self.outputs = [item.name for item in self.session.get_outputs()]
'''

_PROCESSOR = f'''{_HEAD}from load_winner import load, run_options


class Winner:
    """The tuned session; calls give outputs by name."""

    def __init__(self, *model):
{_OPEN}
    def __call__(self, inputs):
        """Run; `inputs` are numpy arrays by name."""
        found = self.session.run(self.outputs, inputs, run_options())
        return dict(zip(self.outputs, found))
'''

_GPU = f'''{_HEAD}import numpy
import onnxruntime

from load_winner import load, run_options

DEVICE = "cuda"


class Winner:
    """The tuned session; calls give outputs by name.

    Inputs and outputs lie on the GPU in tensors that stay where they are, since a CUDA graph
    replays addresses; each set of input shapes has its own.
    """

    def __init__(self, *model):
{_OPEN}        self.bound = {{{{}}}}

    def __call__(self, inputs):
        """Run; `inputs` are numpy arrays by name."""
        given = {{{{name: numpy.ascontiguousarray(inputs[name]) for name in self.inputs}}}}
        shapes = tuple(array.shape for array in given.values())
        if shapes not in self.bound:
            self.bound[shapes] = self.bind(given, options(len(self.bound)))
        binding, fed, found, chosen = self.bound[shapes]
        for name, array in given.items():
            fed[name].update_inplace(array)
        self.session.run_with_iobinding(binding, chosen)
        return {{{{name: numpy.array(value.numpy()) for name, value in found.items()}}}}

    def bind(self, given, chosen):
        """Make tensors for these shapes; a run without a graph tells the outputs'."""
        sample = dict(zip(self.outputs, self.session.run(self.outputs, given, options(-1))))
        fed = {{{{name: tensor(array) for name, array in given.items()}}}}
        found = {{{{name: tensor(array) for name, array in sample.items()}}}}
        binding = self.session.io_binding()
        for name, value in fed.items():
            binding.bind_ortvalue_input(name, value)
        for name, value in found.items():
            binding.bind_ortvalue_output(name, value)
        return binding, fed, found, chosen


def tensor(array):
    """A copy on the device."""
    return onnxruntime.OrtValue.ortvalue_from_numpy(array, DEVICE, 0)


def options(graph):
    """Run options that choose a CUDA graph by number; -1 runs without one."""
    chosen = run_options()
    chosen.add_run_config_entry("gpu_graph_id", str(graph))
    return chosen
'''


def session_runner(engine: str, *, on_gpu: bool) -> str:
    """Write the module.

    Args:
        engine: Name of the engine file.
        on_gpu: Whether the session runs with the CUDA provider.
    """
    return (_GPU if on_gpu else _PROCESSOR).format(engine=engine)
