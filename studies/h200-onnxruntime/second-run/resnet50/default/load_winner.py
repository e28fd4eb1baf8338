"""Opens resnet50.onnx as smart_tuner measured it, with onnxruntime-gpu 1.31.1.

    from load_winner import load, run_options
    session = load("resnet50.onnx")

A CUDA graph replays addresses: bind inputs and outputs to tensors on the GPU that stay where they
are, and call session.run_with_iobinding; `smart-tuner export loader` writes a module that does so.
"""

import onnxruntime


def load(model='~/.cache/smart-tuner/models/resnet50.onnx'):
    """Open the session; `model` is the file that was tuned, wherever it lies now."""
    options = onnxruntime.SessionOptions()
    return onnxruntime.InferenceSession(
        model,
        options,
        providers=[('CUDAExecutionProvider', {'cudnn_conv_use_max_workspace': '0', 'enable_cuda_graph': '1', 'prefer_nhwc': '1', 'tunable_op_enable': '1', 'use_ep_level_unified_stream': '1'}), 'CPUExecutionProvider'],
    )


def run_options():
    """What every run takes as its last argument."""
    options = onnxruntime.RunOptions()
    return options
