"""Opens silero-vad.onnx as smart_tuner measured it, with onnxruntime 1.32.0.

    from load_winner import load, run_options
    session = load("silero-vad.onnx")
    outputs = session.run(None, inputs, run_options())
"""

import onnxruntime


def load(model='~/.cache/smart-tuner/models/silero-vad.onnx'):
    """Open the session; `model` is the file that was tuned, wherever it lies now."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    options.enable_cpu_mem_arena = False
    options.enable_mem_reuse = False
    options.add_session_config_entry('mlas.nchwc_pointwise_conv_max_input_channel_batch', '128')
    options.add_session_config_entry('session.disable_prepacking', '1')
    options.add_session_config_entry('session.dynamic_block_base', '4')
    options.add_session_config_entry('session.intra_op.spin_duration_us', '1000')
    options.add_session_config_entry('session.set_denormal_as_zero', '1')
    return onnxruntime.InferenceSession(
        model,
        options,
        providers=['CPUExecutionProvider'],
    )


def run_options():
    """What every run takes as its last argument."""
    options = onnxruntime.RunOptions()
    return options
