"""Opens inception-v2.onnx as smart_tuner measured it, with onnxruntime-gpu 1.31.1.

    from load_winner import load, run_options
    session = load("inception-v2.onnx")

A CUDA graph replays addresses: bind inputs and outputs to tensors on the GPU that stay where they
are, and call session.run_with_iobinding; `smart-tuner export loader` writes a module that does so.
"""

import onnxruntime


def load(model='~/.cache/smart-tuner/models/inception-v2.onnx'):
    """Open the session; `model` is the file that was tuned, wherever it lies now."""
    options = onnxruntime.SessionOptions()
    return onnxruntime.InferenceSession(
        model,
        options,
        providers=[('CUDAExecutionProvider', {'enable_cuda_graph': '1', 'prefer_nhwc': '1'}), 'CPUExecutionProvider'],
    )


def run_options():
    """What every run takes as its last argument."""
    options = onnxruntime.RunOptions()
    return options
