"""Opens model.onnx as smart_tuner measured it, with onnxruntime-gpu 1.31.1.

    from load_winner import load, run_options
    session = load("model.onnx")
    outputs = session.run(None, inputs, run_options())
"""

from pathlib import Path

import onnxruntime


def load(model=Path(__file__).with_name('model.onnx')):
    """Open the session; `model` is the file that was tuned, wherever it lies now."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 4
    options.enable_cpu_mem_arena = False
    options.use_deterministic_compute = True
    options.add_session_config_entry('mlas.nchwc_pointwise_conv_max_input_channel_batch', '256')
    options.add_session_config_entry('session.inter_op.spin_backoff_max', '16')
    options.add_session_config_entry('session.intra_op.spin_duration_us', '1000')
    return onnxruntime.InferenceSession(
        model,
        options,
        providers=['CPUExecutionProvider'],
    )


def run_options():
    """What every run takes as its last argument."""
    options = onnxruntime.RunOptions()
    return options
