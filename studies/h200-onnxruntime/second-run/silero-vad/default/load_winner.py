"""Opens silero-vad.onnx as smart_tuner measured it, with onnxruntime-gpu 1.31.1.

    from load_winner import load, run_options
    session = load("silero-vad.onnx")
    outputs = session.run(None, inputs, run_options())
"""

import onnxruntime


def load(model='~/.cache/smart-tuner/models/silero-vad.onnx'):
    """Open the session; `model` is the file that was tuned, wherever it lies now."""
    options = onnxruntime.SessionOptions()
    return onnxruntime.InferenceSession(
        model,
        options,
        providers=[('CUDAExecutionProvider', {'cudnn_conv1d_pad_to_nc1d': '1', 'cudnn_conv_use_max_workspace': '0', 'enable_cuda_graph': '0', 'enable_skip_layer_norm_strict_mode': '1', 'tunable_op_tuning_enable': '1', 'use_tf32': '0'}), 'CPUExecutionProvider'],
    )


def run_options():
    """What every run takes as its last argument."""
    options = onnxruntime.RunOptions()
    return options
