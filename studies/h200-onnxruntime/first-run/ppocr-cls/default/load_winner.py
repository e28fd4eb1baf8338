"""Opens ppocr-cls.onnx as smart_tuner measured it, with onnxruntime-gpu 1.31.1.

    from load_winner import load, run_options
    session = load("ppocr-cls.onnx")

A CUDA graph replays addresses: bind inputs and outputs to tensors on the GPU that stay where they
are, and call session.run_with_iobinding; `smart-tuner export loader` writes a module that does so.
"""

import onnxruntime


def load(model='~/.cache/smart-tuner/models/ppocr-cls.onnx'):
    """Open the session; `model` is the file that was tuned, wherever it lies now."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.add_session_config_entry('optimization.enable_cast_chain_elimination', '1')
    options.add_session_config_entry('session.disable_prepacking', '1')
    return onnxruntime.InferenceSession(
        model,
        options,
        providers=[('CUDAExecutionProvider', {'cudnn_conv1d_pad_to_nc1d': '1', 'enable_cuda_graph': '1'}), 'CPUExecutionProvider'],
        disabled_optimizers=['ConvAddFusion'],
    )


def run_options():
    """What every run takes as its last argument."""
    options = onnxruntime.RunOptions()
    return options
