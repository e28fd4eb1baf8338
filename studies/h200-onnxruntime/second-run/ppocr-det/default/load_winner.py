"""Opens model.onnx as smart_tuner measured it, with onnxruntime-gpu 1.31.1.

    from load_winner import load, run_options
    session = load("model.onnx")

A CUDA graph replays addresses: bind inputs and outputs to tensors on the GPU that stay where they
are, and call session.run_with_iobinding; `smart-tuner export loader` writes a module that does so.
"""

from pathlib import Path

import onnxruntime


def load(model=Path(__file__).with_name('model.onnx')):
    """Open the session; `model` is the file that was tuned, wherever it lies now."""
    options = onnxruntime.SessionOptions()
    return onnxruntime.InferenceSession(
        model,
        options,
        providers=[('CUDAExecutionProvider', {'enable_cuda_graph': '1'}), 'CPUExecutionProvider'],
    )


def run_options():
    """What every run takes as its last argument."""
    options = onnxruntime.RunOptions()
    return options
